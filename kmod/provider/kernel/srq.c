// SPDX-License-Identifier: GPL-2.0
/*
 * SRQs of users in the kernel, whatever their device.  Their ring is the driver's, which the module
 * cannot look into; the table says what is in it.  What was completed has left that when the CQ's
 * side ring has it, but for errors of which the CQE filter has not decided yet.
 */
#include "core/kernel_cq.h"
#include "core/kernel_srq.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/srq.h"
#include "provider/kernel/kernel.h"
#include "provider/provider.h"

static int kernel_srq_settle(struct shift_cq *scq)
{
	return shift_kernel_cq_drain(scq);
}

static void kernel_srq_unpolled(const struct shift_cq *scq, shift_cqe_fn *fn, void *arg)
{
	shift_kernel_cq_each_raw(scq->kernel, fn, arg);
}

/* It stays as it is until a QP is connected that would draw from it: reopen.c */
static void kernel_srq_empty(struct shift_srq *ssrq)
{
	lockdep_assert_held(&ssrq->lock);
	ssrq->kernel->stale = true;
}

static int kernel_srq_post(struct shift_srq *ssrq, u64 wr_id, const struct shift_sge *sge,
			   u32 num_sge)
{
	return shift_kernel_srq_lend(ssrq, wr_id, sge, num_sge);
}

/* One whose completion was not polled yet counts. */
static u32 kernel_srq_posted(struct shift_srq *ssrq)
{
	return READ_ONCE(ssrq->kernel->ids.listed);
}

const struct shift_srq_ops shift_kernel_srq_provider = {
	.settle = kernel_srq_settle,
	.unpolled = kernel_srq_unpolled,
	.empty = kernel_srq_empty,
	.post = kernel_srq_post,
	.posted = kernel_srq_posted,
	.reopen = shift_kernel_srq_reopen,
};
