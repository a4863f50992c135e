// SPDX-License-Identifier: GPL-2.0
/*
 * The driver's ring of an SRQ that is away has receives that were taken over.  A QP that is
 * connected now would receive into them.  No verb takes them out, so messages do: a QP that is
 * connected to itself sends itself messages of no bytes, until one finds no receive.  Each writes
 * nothing but its completion, into a CQ that nobody else has.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/ktime.h>
#include "core/ib.h"
#include "core/kernel_srq.h"
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/srq.h"
#include "provider/kernel/kernel.h"

#define BATCH		32		/* messages that are under way */
#define DEADLINE_MS	2000		/* scaled */

/**
 * struct taker - takes receives out of an SRQ
 * @qp: connected to itself, on the SRQ.
 * @cq: of all its completions.
 * @sent: messages.
 * @done: those that have arrived.
 * @taken: receives that came out.
 * @empty: a message has found none.
 * @failed: it cannot go on.
 */
struct taker {
	struct ib_qp *qp;
	struct ib_cq *cq;
	u32 sent, done, taken;
	bool empty, failed;
};

static void taker_event(struct ib_event *event, void *context)
{
}

static int taker_init(struct taker *t, struct shift_srq *ssrq)
{
	struct ib_qp_init_attr init = {
		.event_handler = taker_event,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.srq = ssrq->srq,
		.cap = { .max_send_wr = BATCH, .max_send_sge = 1 },
	};
	struct ib_device *ibdev = ssrq->srq->device;
	union ib_gid own;
	int err;

	err = shift_dev_gid(ibdev, SHIFT_VLAN_ANY, &own);
	if (err)
		return err;
	t->cq = ib_alloc_cq_any(ibdev, NULL, 4 * BATCH, IB_POLL_DIRECT);
	if (IS_ERR(t->cq))
		return PTR_ERR(t->cq);
	init.send_cq = t->cq;
	init.recv_cq = t->cq;
	t->qp = ib_create_qp(ssrq->srq->pd, &init);
	if (IS_ERR(t->qp))
		return PTR_ERR(t->qp);
	return shift_qp_connect_self(t->qp, &own, SHIFT_VLAN_ANY, IB_MTU_256);
}

static void taker_free(struct taker *t)
{
	if (!IS_ERR_OR_NULL(t->qp)) {
		shift_qp_quiet(t->qp);
		ib_destroy_qp(t->qp);
	}
	if (!IS_ERR_OR_NULL(t->cq))
		ib_free_cq(t->cq);
}

/* The wr_ids of receives are the user's, and are not looked at. */
static void taker_poll(struct taker *t)
{
	struct ib_wc wc;

	while (ib_poll_cq(t->cq, 1, &wc) == 1) {
		if (wc.status == IB_WC_RNR_RETRY_EXC_ERR)
			t->empty = true;
		else if (wc.status)
			t->failed = true;
		else if (wc.opcode & IB_WC_RECV)
			t->taken++;
		else
			t->done++;
	}
}

static void taker_run(struct taker *t)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	u64 until = shift_from_now(DEADLINE_MS);

	while (!t->empty && !t->failed) {
		while (t->sent - t->done < BATCH && !t->failed) {
			t->failed = ib_post_send(t->qp, &wr, NULL);
			t->sent += !t->failed;
		}
		taker_poll(t);
		if (t->sent - t->done == BATCH)
			usleep_range(20, 100);
		t->failed |= ktime_get_ns() > until;
	}
}

/**
 * shift_kernel_srq_reopen - the op reopen
 * @sqp: a QP on the SRQ, both locked.
 *
 * Context: process context; sleeps.
 * Return: 0; -EBUSY: the ring could not be emptied.
 */
int shift_kernel_srq_reopen(struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	struct taker taker = {};

	lockdep_assert_held(&ssrq->lock);
	if (!ssrq->kernel->stale)
		return 0;
	if (!ssrq->srq)
		return -EBUSY;
	if (!taker_init(&taker, ssrq))
		taker_run(&taker);
	taker_free(&taker);
	if (!taker.empty) {
		pr_warn_ratelimited("%s qp %u: not connected: old receives are in its shared queue\n",
				    sqp->sdev->name, sqp->qpn);
		return -EBUSY;
	}
	ssrq->kernel->stale = false;
	return 0;
}
