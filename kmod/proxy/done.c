// SPDX-License-Identifier: GPL-2.0
/* Completion handlers of proxy QPs; called in softirq, or by the fence. */
#include <linux/ktime.h>
#include <linux/delay.h>
#include <rdma/ib_user_verbs.h>
#include "core/kick.h"
#include "core/provider.h"
#include "core/proxy.h"
#include "core/qp.h"
#include "core/srq.h"
#include "proxy/proxy.h"
#include "pure/ledger.h"
#include "pure/psn.h"
#include "srq/srq.h"

/*
 * Does the work item have to post more after a completion?  It does when half of the queue is free.
 * It does at once if the completion was an answer (@answered) for which a fenced operation has
 * waited.  ledger_lock.
 */
static bool work_is_left(struct shift_qp *sqp, const struct shift_proxy *b, bool answered)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	bool next;
	u64 seq;

	lockdep_assert_held(&sqp->ledger_lock);
	next = shift_ledger_next(l, &seq);
	if (b->inflight < max(b->depth / 2, 1u))
		return next || sqp->fo.stop_status;
	return next && answered && shift_ledger_at(l, seq)->flags & SHIFT_ENTRY_FENCED;
}

/* Completion of a send.  Softirq, or the fence.  Wakes the work item only if it is needed. */
void shift_proxy_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct shift_proxy *b = container_of(wc->wr_cqe, struct shift_proxy, cqe);
	struct shift_qp *sqp = b->sqp;
	bool more, answered = false;
	u64 seq;

	spin_lock_bh(&sqp->ledger_lock);
	if (b->inflight)
		b->inflight--;
	if (shift_proxy_flushed(b, wc)) {
		spin_unlock_bh(&sqp->ledger_lock);
		return;
	}
	seq = shift_ledger_next_sent(&sqp->rec.ledger, b->next_done);
	/* even if a receive has failed (b->error): the peer has executed this send */
	if (wc->status == IB_WC_SUCCESS) {
		struct shift_entry *e = shift_ledger_at(&sqp->rec.ledger, seq);
		u32 packets = e->packets - e->done;

		if (!shift_ledger_executed(&sqp->rec.ledger, seq)) {
			b->next_done = seq + 1;
			if (sqp->rings.provider->mrs)
				sqp->rings.provider->mrs->executed(sqp, seq, b->path);
			sqp->rec.outstanding.psn = shift_psn_add(sqp->rec.outstanding.psn, packets);
			answered = e->flags & (SHIFT_ENTRY_AGAIN | SHIFT_ENTRY_ONCE);
		}
	} else if (!b->error || b->error == IB_WC_WR_FLUSH_ERR) {
		WRITE_ONCE(b->error, wc->status);
	}
	more = work_is_left(sqp, b, answered);
	spin_unlock_bh(&sqp->ledger_lock);

	if (READ_ONCE(b->error)) {
		shift_qp_kick(sqp, SHIFT_QPB_PROXY_ERR);
		return;
	}
	shift_replay_deliver(sqp);
	if (more)
		shift_qp_kick(sqp, SHIFT_QPB_KICK);
}

/*
 * Completion of a receive.  Softirq, or the fence.  A flush means that the QP broke; the completion
 * of a send may tell why.
 */
void shift_proxy_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct shift_proxy *b = container_of(wc->wr_cqe, struct shift_proxy, recv_cqe);
	struct shift_qp *sqp = b->sqp;
	bool failed = wc->status != IB_WC_SUCCESS;

	spin_lock_bh(&sqp->ledger_lock);
	if (b->receives)
		b->receives--;
	if (shift_proxy_flushed(b, wc)) {
		spin_unlock_bh(&sqp->ledger_lock);
		return;
	}
	if (wc->status != IB_WC_WR_FLUSH_ERR) {
		shift_recv_done(sqp, wc);
		b->recv_failed |= failed;
	}
	if (failed && !b->error)
		WRITE_ONCE(b->error, IB_WC_WR_FLUSH_ERR);
	spin_unlock_bh(&sqp->ledger_lock);

	shift_recv_deliver(sqp);
	if (failed)
		shift_qp_kick(sqp, SHIFT_QPB_PROXY_ERR);
}

/*
 * Completion of a receive of a pool.  Softirq, or the fence.  A flush means that the QP broke; the
 * receive stays in the pool.
 */
void shift_srq_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct shift_srq_recv *recv = container_of(wc->wr_cqe, struct shift_srq_recv, cqe);
	struct shift_proxy *b = cq->cq_context;
	struct shift_qp *sqp = b->sqp;
	struct shift_recv got;
	bool failed = wc->status != IB_WC_SUCCESS;

	spin_lock_bh(&sqp->ledger_lock);
	if (shift_proxy_flushed(b, wc)) {
		spin_unlock_bh(&sqp->ledger_lock);
		return;
	}
	if (wc->status != IB_WC_WR_FLUSH_ERR) {
		got = shift_recv_got(sqp, wc);
		shift_srq_got(sqp, recv, &got);
		b->recv_failed |= failed;
	}
	if (failed && !b->error)
		WRITE_ONCE(b->error, IB_WC_WR_FLUSH_ERR);
	spin_unlock_bh(&sqp->ledger_lock);

	shift_recv_deliver(sqp);
	if (failed)
		shift_qp_kick(sqp, SHIFT_QPB_PROXY_ERR);
}
