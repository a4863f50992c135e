// SPDX-License-Identifier: GPL-2.0
/*
 * The ledger at work: fed by the user's ring, posted to the backup QP, and
 * emptied into the side ring of the CQ, strictly in posting order.
 *
 * ledger_lock covers the ledger and the ring's consumer index; completions of
 * the backup take it from the completion workqueue.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include "mw.h"
#include "provider.h"

#define RETRY_MS	20
#define FLUSH_PASSES	4

/* A test builds a module that replays from a wrong point, to see that it is caught. */
#ifndef SHIFT_REPLAY_SKIPS
#define SHIFT_REPLAY_SKIPS	0
#endif

static u32 wc_opcode(u32 opcode)
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
	default:
		return IB_WC_SEND;
	}
}

static int push_wc(struct shift_qp *sqp, u64 seq, u32 status)
{
	struct shift_abi_wc wc = {
		.wr_id = sqp->provider->wr_id(sqp, seq),
		.status = status,
		.qp_num = sqp->qpn,
	};
	struct shift_cq_slot slot = {
		.sqp = sqp, .seq = seq, .free = sqp->provider->completed,
	};
	struct shift_wr wr;

	if (!sqp->provider->decode(sqp, seq, &wr)) {
		wc.opcode = wc_opcode(wr.opcode);
		wc.byte_len = wr.length;
	}
	return shift_cq_push(sqp->scq, &wc, &slot);
}

/**
 * shift_replay_deliver - complete what is executed, oldest first
 * @sqp: the QP.
 *
 * Context: process or softirq context, any lock but ledger_lock.
 */
void shift_replay_deliver(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->ledger;
	bool first = false;
	u64 seq;
	int err;

	spin_lock_bh(&sqp->ledger_lock);
	while (shift_ledger_count(l) &&
	       shift_ledger_at(l, l->tail)->state == SHIFT_ENTRY_EXECUTED) {
		struct shift_entry *e = shift_ledger_at(l, l->tail);

		if (!(e->flags & (SHIFT_ENTRY_SILENT | SHIFT_ENTRY_SEEN)) || e->status) {
			err = push_wc(sqp, l->tail, e->status);
			if (err == -ENOSPC) {
				shift_switch_arm(sqp, RETRY_MS);
				break;
			}
			if (!e->status && sqp->path && !sqp->first_done) {
				sqp->first_done = true;
				first = true;
			}
		} else if (sqp->registered) {
			sqp->provider->completed(sqp, l->tail + 1);
		}
		shift_ledger_pop(l, &seq);
	}
	spin_unlock_bh(&sqp->ledger_lock);

	if (first) {
		WRITE_ONCE(sqp->times.completion, ktime_get_real_ns());
		shift_switch_kick(sqp, SHIFT_QP_FIRST);
	}
}

/**
 * shift_replay_enter - the operation at the ledger's head becomes its newest entry
 * @sqp: the QP.
 * @wr: it, decoded; NULL: that was not possible.
 *
 * What cannot be moved stays in the record all the same: it gets its error.
 *
 * Context: ledger_lock; there is room.
 * Return: 0; -EOPNOTSUPP: it cannot be moved.
 */
int shift_replay_enter(struct shift_qp *sqp, const struct shift_wr *wr)
{
	struct shift_ledger *l = &sqp->ledger;
	u16 flags;

	if (!wr || !shift_qp_can_move(sqp, wr)) {
		shift_ledger_append(l, 0, 0);
		return -EOPNOTSUPP;
	}
	flags = shift_ledger_kind(wr->opcode);
	if (!sqp->sig_all && !(wr->flags & SHIFT_WR_SIGNALED))
		flags |= SHIFT_ENTRY_SILENT;
	if (wr->flags & SHIFT_WR_FENCE)
		flags |= SHIFT_ENTRY_FENCED;
	shift_ledger_append(l, shift_wr_packets(wr->opcode, wr->length, sqp->mtu), flags);
	return 0;
}

static bool has_room(const struct shift_ledger *l)
{
	return shift_ledger_count(l) < l->slots - 1;
}

/*
 * Take what the application has posted since into the ledger.  What cannot be
 * replayed stops the intake; it gets its error when all before it is done.
 */
static void ingest(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->ledger;
	struct shift_wr wr;
	int err;

	while (!sqp->stop_status && has_room(l) && !shift_own_keeps_off(sqp)) {
		err = sqp->provider->take(sqp, &wr);
		if (!err)
			break;
		if (err > 0 && !shift_qp_can_move(sqp, &wr))
			err = -EOPNOTSUPP;
		if (err < 0) {
			sqp->stop_status = IB_WC_LOC_QP_OP_ERR;
			pr_warn_ratelimited("%s qp %u: cannot carry on with what was posted (%d)\n",
					    sqp->sdev->name, sqp->qpn, err);
			break;
		}
		shift_replay_enter(sqp, &wr);
	}
}

/**
 * shift_replay_doubtful - what a peer that cannot be asked may have executed of ours
 * @sqp: the QP.
 * @once: out: an atomic is among them.
 *
 * Context: ledger_lock.
 * Return: the number of operations for which that matters.
 */
u32 shift_replay_doubtful(struct shift_qp *sqp, bool *once)
{
	*once = false;
	if (!sqp->sent_any)
		return 0;
	return shift_ledger_doubtful(&sqp->ledger, !sqp->sent.path, once);
}

/**
 * shift_replay_progress - what the peer's responder executed of ours
 * @sqp: the QP, locked, everything fenced.
 * @m: its PROGRESS.
 *
 * It names the last life in which it executed anything.  One before that in which
 * ours were sent: nothing of them.  One that it does not know: perhaps all of them; the
 * policy was to go on.  After this all that is not executed is to be posted again.
 *
 * Return: 0; -ERANGE: it cannot be; -ENODATA: the answer to an atomic is lost, or may be.
 */
int shift_replay_progress(struct shift_qp *sqp, const struct shift_msg *m)
{
	struct shift_ledger *l = &sqp->ledger;
	u32 doubtful = 0;
	u64 packets = 0;
	int err = 0;

	spin_lock_bh(&sqp->ledger_lock);
	if (m->progress.status == SHIFT_PROGRESS_UNKNOWN) {
		bool once;

		doubtful = shift_replay_doubtful(sqp, &once);
		if (once)
			err = -ENODATA;
	}
	if (m->progress.status == SHIFT_PROGRESS_OK && sqp->sent_any) {
		if (m->progress.arm_epoch == sqp->sent.epoch &&
		    m->progress.path == sqp->sent.path)
			packets = shift_psn_delta(m->progress.expected_psn, sqp->sent.psn) +
				  SHIFT_REPLAY_SKIPS;
		else if (m->progress.arm_epoch >= sqp->sent.epoch)
			err = -ERANGE;
		if (!err)
			err = sqp->sent.path ? shift_ledger_progress_sent(l, packets) :
					       shift_ledger_progress(l, packets);
	}
	if (!err) {
		sqp->sent_any = false;
		shift_ledger_rewind(l);
	}
	spin_unlock_bh(&sqp->ledger_lock);
	if (doubtful && !err) {
		shift_stat_add(SHIFT_STAT_DOUBTFUL, doubtful);
		pr_warn_ratelimited("%s qp %u: policy paper: %u operations are posted again, some may be executed twice\n",
				    sqp->sdev->name, sqp->qpn, doubtful);
	}
	return err;
}

/*
 * Take in what was posted and post it on the backup, in order; ledger_lock.
 * @rkey: the remote key that is not known, if that is what stops it.
 *
 * 0 also if a fence holds the rest: shift_standby_done() wakes the work item when the
 * answers are there, and every switch when they are to be asked for again.
 */
static int post_all(struct shift_qp *sqp, u32 *rkey)
{
	struct shift_ledger *l = &sqp->ledger;
	int err = 0;
	u64 seq;

	ingest(sqp);
	while (!err && shift_ledger_next(l, &seq))
		err = shift_standby_post(sqp, seq, rkey);
	return err;
}

/**
 * shift_replay_doorbell - a doorbell of a QP that is gated or away from home
 * @sqp: the QP.
 *
 * In the posting thread: rxe moves the ring's consumer index once more when a
 * timer from before the RESET fires, and the application would then overrun
 * what was not taken in yet.  Each doorbell takes all in and puts that right;
 * and what can be posted on the backup at once is.
 *
 * Context: any that may take a spinlock, but softirq.
 */
void shift_replay_doorbell(struct shift_qp *sqp)
{
	bool more = true, open = false;
	u32 rkey;

	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->ledger_live && sqp->registered && sqp->state != SHIFT_ST_FAIL &&
	    sqp->state != SHIFT_ST_APP) {
		more = post_all(sqp, &rkey) || sqp->stop_status;
		sqp->provider->completed(sqp, sqp->ledger.tail);
		open = shift_standby_is_open(sqp);
	} else {
		set_bit(SHIFT_QP_KEPT, &sqp->flags);
	}
	spin_unlock_bh(&sqp->ledger_lock);
	/* what works on windows is done without a device */
	if (open && sqp->notes)
		shift_replay_deliver(sqp);
	if (more)
		shift_switch_kick(sqp, SHIFT_QP_KICK);
}

/* A window is invalidated whose region the peer may be using: that ends first. */
static bool end_region(struct shift_qp *sqp, u32 key)
{
	if (!shift_region_drop(sqp, key))
		return false;
	shift_pairing_key_gone(sqp, key);
	return true;
}

/* Is the peer asked for this key, in this life of the QP, for longer than it may take? */
static bool key_overdue(struct shift_qp *sqp, u32 rkey)
{
	u64 now = ktime_get_ns();

	if (!sqp->key_since || sqp->key_waits != rkey || sqp->key_epoch != sqp->epoch) {
		sqp->key_since = now;
		sqp->key_waits = rkey;
		sqp->key_epoch = sqp->epoch;
	}
	return now - sqp->key_since > (u64)SHIFT_KEY_MS * NSEC_PER_MSEC *
				      max(READ_ONCE(shift_deadline_scale), 1u);
}

/**
 * shift_replay_pump - move work from the ring over the ledger to the backup QP
 * @sqp: the QP, locked, in RUN on a backup path.
 */
void shift_replay_pump(struct shift_qp *sqp)
{
	u32 rkey;
	int err;

	lockdep_assert_held(&sqp->lock);
	if (!sqp->registered)
		return;
	shift_replay_deliver(sqp);
	shift_region_reap(sqp);
	do {
		spin_lock_bh(&sqp->ledger_lock);
		err = post_all(sqp, &rkey);
		spin_unlock_bh(&sqp->ledger_lock);
	} while (err == -ESTALE && end_region(sqp, rkey));
	if (sqp->notes)
		shift_replay_deliver(sqp);
	if (err != -EINPROGRESS)
		sqp->key_since = 0;
	switch (err) {
	case 0:
		break;
	case -EAGAIN:		/* send queue full, or held: who changes that kicks us */
		return;
	case -EINPROGRESS:
		if (sqp->peer_ok && !key_overdue(sqp, rkey)) {
			shift_pairing_ask_key(sqp, rkey);
			shift_switch_arm(sqp, RETRY_MS);
			return;
		}
		/* nobody is left to tell the key, nor to do it, or nobody says so */
		sqp->stop_status = IB_WC_RETRY_EXC_ERR;
		break;
	case -ENOMEM:
	case -ESTALE:
		shift_switch_arm(sqp, RETRY_MS);
		return;
	case -EACCES:
		sqp->stop_status = IB_WC_LOC_PROT_ERR;
		break;
	case -ENOENT:
		sqp->stop_status = IB_WC_REM_ACCESS_ERR;
		break;
	case -EPERM:
		if (shift_move_atomic(sqp)) {
			shift_switch_arm(sqp, RETRY_MS);
			return;
		}
		sqp->stop_status = IB_WC_RETRY_EXC_ERR;
		break;
	case -EKEYREJECTED:
		sqp->stop_status = IB_WC_MW_BIND_ERR;
		break;
	default:
		sqp->stop_status = IB_WC_LOC_QP_OP_ERR;
	}
	if (sqp->stop_status && !shift_standby_busy(sqp))
		shift_switch_fail(sqp, sqp->stop_status);
}

/**
 * shift_replay_flush - error completions for everything outstanding
 * @sqp: the QP, locked, in FAIL or APP; nothing can execute any more.
 *
 * The first unfinished operation gets sqp->fail_status, all others are flushed,
 * in order, and so is what is posted later.  Called again until all is shown.
 */
void shift_replay_flush(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->ledger;
	int passes = FLUSH_PASSES;
	struct shift_wr wr;
	u64 seq;

	lockdep_assert_held(&sqp->lock);
	/* not fenced: what it has posted is the driver's to flush */
	if (!sqp->registered || !sqp->ledger_live || READ_ONCE(sqp->rebase) == SHIFT_REBASE_BUSY)
		return;
	do {
		spin_lock_bh(&sqp->ledger_lock);
		/* nothing behind an error may succeed, executed or not */
		for (seq = shift_ledger_unfinished(l); seq < l->head; seq++) {
			struct shift_entry *e = shift_ledger_at(l, seq);

			if (e->status)
				continue;
			e->state = SHIFT_ENTRY_EXECUTED;
			e->status = sqp->fail_status;
			sqp->fail_status = IB_WC_WR_FLUSH_ERR;
		}
		spin_unlock_bh(&sqp->ledger_lock);
		shift_replay_deliver(sqp);

		/* the rest of the ring, whatever it holds */
		spin_lock_bh(&sqp->ledger_lock);
		while (has_room(l) && sqp->provider->take(sqp, &wr))
			shift_ledger_append(l, 0, 0);
		spin_unlock_bh(&sqp->ledger_lock);
	} while (shift_ledger_count(l) &&
		 shift_ledger_at(l, l->tail)->state != SHIFT_ENTRY_EXECUTED && --passes);
	/* it posts as fast as this flushes, or says so: let others run */
	if (!passes)
		shift_switch_arm(sqp, RETRY_MS);
	shift_recv_flush(sqp);
}
