/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared receive queues of users in the kernel.  The module sees each post, and so keeps the table
 * of receives itself that a provider in user space shares with it: Documentation/internals/srq.md.
 */
#ifndef SHIFT_CORE_KERNEL_SRQ_H
#define SHIFT_CORE_KERNEL_SRQ_H

#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include "pure/wr_ids.h"

struct shift_qp;
struct shift_sge;
struct shift_srq;

/**
 * struct shift_kernel_srq - what only the shadow of a kernel user's SRQ has
 * @ssrq: the shadow.
 * @lock: protects @ids, and changes of the table; held across the driver's post, so that the
 *	table has the order of the device.  Innermost, any context.
 * @ids: by the index of an entry of the table.  Listed are those that the driver has.
 * @held: the driver is given nothing by the user's posts.
 * @held_at: what was posted has numbers below this where the driver has it, unless it was lent.
 * @lost: it is not known what the driver has.
 * @limit: the user is to be told that its limit is reached.
 * @stale: the driver's ring has receives that were taken over; ssrq->lock.
 * @work: posts what was posted where that is not possible, and tells of @limit.
 */
struct shift_kernel_srq {
	struct shift_srq *ssrq;
	spinlock_t lock;
	struct shift_wr_ids ids;
	bool held, lost, limit;
	bool stale;
	u64 held_at;
	struct work_struct work;
};

int shift_kernel_srq_new(struct shift_srq *ssrq, work_func_t work);
void shift_kernel_srq_free(struct shift_kernel_srq *kernel);
int shift_kernel_srq_post(struct shift_srq *ssrq, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad_wr, bool *kept);
void shift_kernel_srq_polled(struct shift_srq *ssrq, u64 wr_id);
void shift_kernel_srq_errored(struct shift_srq *ssrq, u64 wr_id);
bool shift_kernel_srq_is_whole(struct shift_srq *ssrq);
int shift_kernel_srq_hold(struct shift_srq *ssrq);
u32 shift_kernel_srq_recv_id(struct shift_srq *ssrq, u64 wr_id);
void shift_kernel_srq_taken(struct shift_srq *ssrq, u32 recv_id);
u64 shift_kernel_srq_wr_id(const struct shift_srq *ssrq, u32 recv_id);
void shift_kernel_srq_completed(struct shift_qp *sqp, u64 next);
int shift_kernel_srq_lend(struct shift_srq *ssrq, u32 recv_id, const struct shift_sge *sge,
			  u32 num_sge);

#endif /* SHIFT_CORE_KERNEL_SRQ_H */
