// SPDX-License-Identifier: GPL-2.0
/*
 * How operations pass through the ledger: they are taken from the user's ring, posted to the
 * proxy QP, and completed in the side ring of the CQ, strictly in posting order.
 *
 * ledger_lock covers the ledger and the ring's consumer index; completion handlers of the proxy QP
 * take it, too.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include "core/kick.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/stat.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"
#include "pure/ledger.h"
#include "pure/msg.h"
#include "pure/psn.h"
#include "pure/wr.h"

#define RETRY_MS	20
#define FLUSH_PASSES	4

/* A test builds a module that replays from a wrong point, to see that the tests notice it. */
#ifndef SHIFT_REPLAY_SKIPS
#define SHIFT_REPLAY_SKIPS	0
#endif

static u32 replay_wc_opcode(u32 opcode)
{
	switch (opcode) {
	case SHIFT_WR_RDMA_WRITE:
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case SHIFT_WR_RDMA_READ:
		return IB_WC_RDMA_READ;
	case SHIFT_WR_ATOMIC_CMP_AND_SWP:
		return IB_WC_COMP_SWAP;
	case SHIFT_WR_ATOMIC_FETCH_AND_ADD:
		return IB_WC_FETCH_ADD;
	case SHIFT_WR_BIND_MW:
		return IB_WC_BIND_MW;
	case SHIFT_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case SHIFT_WR_REG_MR:
		return IB_WC_REG_MR;
	default:
		return IB_WC_SEND;
	}
}

static int replay_push_wc(struct shift_qp *sqp, u64 seq, u32 status)
{
	struct shift_abi_wc wc = {
		.wr_id = sqp->rings.provider->wr_id(sqp, seq),
		.status = status,
		.qp_num = sqp->qpn,
	};
	struct shift_cq_slot slot = {
		.sqp = sqp, .seq = seq, .free = sqp->rings.provider->completed,
	};
	struct shift_wr wr;

	if (!sqp->rings.provider->decode(sqp, seq, &wr)) {
		wc.opcode = replay_wc_opcode(wr.opcode);
		wc.byte_len = wr.length;
	}
	return shift_cq_push(sqp->scq, &wc, &slot);
}

/**
 * shift_replay_deliver - show completions of executed operations, oldest first
 * @sqp: the QP.
 *
 * Context: process or softirq context, any lock but ledger_lock.
 */
void shift_replay_deliver(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	bool first = false;
	u32 n = 0;
	u64 seq;
	int err;

	spin_lock_bh(&sqp->ledger_lock);
	/* who finds out meanwhile that one was executed shows it, too */
	while (shift_ledger_count(l) && n < l->slots &&
	       shift_ledger_at(l, l->tail)->state == SHIFT_ENTRY_EXECUTED) {
		struct shift_entry *e = shift_ledger_at(l, l->tail);

		if (!(e->flags & (SHIFT_ENTRY_SILENT | SHIFT_ENTRY_SEEN)) || e->status) {
			err = replay_push_wc(sqp, l->tail, e->status);
			if (err == -ENOSPC) {
				shift_qp_arm(sqp, RETRY_MS);
				break;
			}
			if (!e->status && sqp->fo.path && !sqp->fo.first_done) {
				sqp->fo.first_done = true;
				first = true;
			}
		} else if (sqp->rings.usable) {
			sqp->rings.provider->completed(sqp, l->tail + 1);
		}
		shift_ledger_pop(l, &seq);
		shift_ledger_breathe(sqp, &n);
	}
	spin_unlock_bh(&sqp->ledger_lock);

	if (first) {
		WRITE_ONCE(sqp->fo.times.completion, ktime_get_real_ns());
		shift_qp_kick(sqp, SHIFT_QPB_FIRST);
	}
}

static bool ledger_has_room(const struct shift_ledger *l)
{
	return shift_ledger_count(l) < l->slots - 1;
}

/*
 * Take what the application has posted since into the ledger.  An operation that cannot be
 * replayed stops this; it is completed in error when all before it is done.  True: there may be
 * more, but SHIFT_PASS were taken.
 */
static bool replay_ingest(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	struct shift_wr wr;
	u32 n = 0;
	int err;

	while (!sqp->fo.stop_status && ledger_has_room(l) && !shift_handback_keeps_off(sqp)) {
		if (n++ == SHIFT_PASS)
			return true;
		err = sqp->rings.provider->take(sqp, &wr);
		if (!err)
			break;
		if (err > 0 && !shift_qp_can_move(sqp, &wr))
			err = -EOPNOTSUPP;
		if (err < 0) {
			sqp->fo.stop_status = IB_WC_LOC_QP_OP_ERR;
			pr_warn_ratelimited("%s qp %u: a posted operation cannot be replayed (%d)\n",
					    sqp->sdev->name, sqp->qpn, err);
			break;
		}
		shift_replay_enter(sqp, &wr);
	}
	return false;
}

/**
 * shift_replay_doubtful - operations that a peer which cannot be asked may have executed
 * @sqp: the QP.
 * @once: out: an atomic is among them.
 *
 * Context: ledger_lock.
 * Return: the number of those that do harm if executed twice.
 */
u32 shift_replay_doubtful(struct shift_qp *sqp, bool *once)
{
	lockdep_assert_held(&sqp->ledger_lock);
	*once = false;
	if (!sqp->rec.any_outstanding)
		return 0;
	/* what was posted after the fence of the own QP, no device has seen yet */
	return shift_ledger_doubtful(&sqp->rec.ledger,
				     sqp->rec.outstanding.path ? 0 : sqp->rec.own_end, once);
}

/*
 * How many of the outstanding packets has the peer executed?  ledger_lock.  -ERANGE: the numbers do
 * not fit what was sent; -EOVERFLOW: a packet number has 24 bits, and so much is outstanding that
 * it does not tell.
 */
static int replay_reached(struct shift_qp *sqp, const struct shift_msg *m, u64 *packets)
{
	const struct shift_arming *sent = &sqp->rec.outstanding;
	bool once;

	lockdep_assert_held(&sqp->ledger_lock);
	*packets = 0;
	if (m->progress.arm_epoch != sent->epoch || m->progress.path != sent->path)
		return m->progress.arm_epoch < sent->epoch ? 0 : -ERANGE;
	*packets = shift_psn_delta(m->progress.expected_psn, sent->psn) + SHIFT_REPLAY_SKIPS;
	if (!shift_ledger_is_unique(&sqp->rec.ledger, *packets, sent->path) &&
	    shift_replay_doubtful(sqp, &once))
		return -EOVERFLOW;
	return 0;
}

/**
 * shift_replay_progress - mark in the ledger what the peer's responder executed
 * @sqp: the QP, locked, everything fenced.
 * @m: the peer's PROGRESS.
 *
 * PROGRESS names the last arming in which the peer's responder executed anything.  If that is older
 * than the arming in which the outstanding operations were sent, none of them was executed.  If the
 * progress is UNKNOWN, all may be executed; policy at-least-once goes on with that.  After this all
 * that is not executed is to be posted again.
 *
 * Return: 0; -ERANGE, -EOVERFLOW: see replay_reached(); -ENODATA: the answer to an atomic is, or
 * may be, lost.
 */
int shift_replay_progress(struct shift_qp *sqp, const struct shift_msg *m)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	u32 doubtful = 0;
	u64 packets = 0;
	int err = 0;

	lockdep_assert_held(&sqp->lock);
	spin_lock_bh(&sqp->ledger_lock);
	if (m->progress.status == SHIFT_PROGRESS_UNKNOWN) {
		bool once;

		doubtful = shift_replay_doubtful(sqp, &once);
		if (once)
			err = -ENODATA;
	}
	if (m->progress.status == SHIFT_PROGRESS_OK && sqp->rec.any_outstanding) {
		err = replay_reached(sqp, m, &packets);
		if (!err)
			err = sqp->rec.outstanding.path ? shift_ledger_progress_sent(l, packets) :
					       shift_ledger_progress(l, packets);
	}
	if (!err) {
		sqp->rec.any_outstanding = false;
		shift_ledger_rewind(l);
	}
	spin_unlock_bh(&sqp->ledger_lock);
	if (doubtful && !err) {
		shift_stat_add(SHIFT_STAT_DOUBTFUL, doubtful);
		pr_warn_ratelimited("%s qp %u: policy at-least-once: %u operations are posted again, some may be executed twice\n",
				    sqp->sdev->name, sqp->qpn, doubtful);
	}
	return err;
}

/*
 * Take in what was posted and post it to the proxy QP, in order; ledger_lock.
 * @rkey: out: the remote key that is not known, if that has stopped it.
 *
 * Returns 0 also if the rest waits for a fence: shift_proxy_done() wakes the work item when the
 * answers are there, and a failover posts the READs again that have no answer.  Returns 1 if there
 * may be more: the caller drops the lock, and calls this again if it still may.
 */
int shift_replay_post(struct shift_qp *sqp, u32 *rkey)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	bool more;
	u32 n = 0;
	u64 seq;
	int err;

	lockdep_assert_held(&sqp->ledger_lock);
	more = replay_ingest(sqp);
	while (shift_ledger_next(l, &seq)) {
		if (n++ == SHIFT_PASS)
			return 1;
		err = shift_proxy_post(sqp, seq, rkey);
		if (err)
			return err;
	}
	return more;
}

/**
 * shift_replay_doorbell - a doorbell of a QP that is gated or runs on a proxy QP
 * @sqp: the QP.
 *
 * Takes posted work in and posts what it can.  This is done in the posting thread, not only in the
 * work item: rxe moves the ring's consumer index once more when a timer from before the RESET
 * fires, and the application could then overwrite work that was not taken in.  Each doorbell takes
 * in all work and sets the index right.
 *
 * Context: any that may take a spinlock, but softirq.
 */
void shift_replay_doorbell(struct shift_qp *sqp)
{
	u32 rkey, most, passes = 0;
	bool more, open;
	int left;

	do {
		more = true;
		open = false;
		left = 0;
		spin_lock_bh(&sqp->ledger_lock);
		most = shift_passes(sqp->rec.ledger.slots);
		if (sqp->rec.live && sqp->rings.usable && sqp->fo.state != SHIFT_ST_FAIL &&
		    sqp->fo.state != SHIFT_ST_APP) {
			left = shift_replay_post(sqp, &rkey);
			more = left || sqp->fo.stop_status;
			sqp->rings.provider->completed(sqp, sqp->rec.ledger.tail);
			open = shift_proxy_is_open(sqp);
		} else {
			set_bit(SHIFT_QPB_KEPT, &sqp->pend.flags);
		}
		spin_unlock_bh(&sqp->ledger_lock);
	} while (left > 0 && ++passes < most);
	/* no completion handler does this for window operations, which no device executes */
	if (open && sqp->rings.tracks_mws)
		shift_replay_deliver(sqp);
	if (more)
		shift_qp_kick(sqp, SHIFT_QPB_KICK);
}

/**
 * shift_replay_flush - error completions for everything outstanding
 * @sqp: the QP, locked, in FAIL or APP; nothing can execute any more.
 *
 * The first unfinished operation gets sqp->fo.fail_status, all others are flushed,
 * in order, and so is what is posted later.  Called again until all is shown.
 */
void shift_replay_flush(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	int passes = FLUSH_PASSES;
	struct shift_wr wr;
	u64 seq;
	u32 n;

	lockdep_assert_held(&sqp->lock);
	/* if it was not fenced, the driver flushes what was posted */
	if (!sqp->rings.usable || !sqp->rec.live ||
	    READ_ONCE(sqp->handback.rebase) == SHIFT_REBASE_BUSY)
		return;
	do {
		spin_lock_bh(&sqp->ledger_lock);
		/* an operation behind an error may not succeed, even if it was executed */
		for (seq = shift_ledger_unfinished(l); seq < l->head; seq++) {
			struct shift_entry *e = shift_ledger_at(l, seq);

			if (e->status)
				continue;
			e->state = SHIFT_ENTRY_EXECUTED;
			e->status = sqp->fo.fail_status;
			sqp->fo.fail_status = IB_WC_WR_FLUSH_ERR;
		}
		spin_unlock_bh(&sqp->ledger_lock);
		shift_replay_deliver(sqp);

		/* take in the rest of the ring, valid or not */
		n = 0;
		spin_lock_bh(&sqp->ledger_lock);
		while (ledger_has_room(l) && n < l->slots &&
		       sqp->rings.provider->take(sqp, &wr)) {
			shift_ledger_append(l, 0, 0);
			shift_ledger_breathe(sqp, &n);
		}
		spin_unlock_bh(&sqp->ledger_lock);
	} while (shift_ledger_count(l) &&
		 shift_ledger_at(l, l->tail)->state != SHIFT_ENTRY_EXECUTED && --passes);
	/* the application posts as fast as this flushes, or pretends to: go on later */
	if (!passes)
		shift_qp_arm(sqp, RETRY_MS);
	shift_recv_flush(sqp);
}
