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
#include "shift.h"

#define RETRY_MS	20

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
	default:
		return IB_WC_SEND;
	}
}

static int push_wc(struct shift_qp *sqp, const u8 *raw, u32 status)
{
	struct shift_abi_wc wc = { .status = status, .qp_num = sqp->qpn };
	struct shift_wr wr;

	/* a slot that cannot be decoded has at least its wr_id in front */
	if (shift_rxe_decode(raw, sqp->ledger.slot_size, &wr)) {
		memcpy(&wc.wr_id, raw, sizeof(wc.wr_id));
	} else {
		wc.wr_id = wr.wr_id;
		wc.opcode = wc_opcode(wr.opcode);
		wc.byte_len = wr.length;
	}
	return shift_cq_push(sqp->scq, &wc);
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

		/* as rxe does: the slot is free before its completion is seen */
		if (sqp->registered)
			shift_ring_set_consumer(&sqp->sq, shift_ledger_slot(l, l->tail + 1));
		if (!(e->flags & (SHIFT_ENTRY_SILENT | SHIFT_ENTRY_SEEN)) || e->status) {
			err = push_wc(sqp, shift_ledger_raw(l, l->tail), e->status);
			if (err == -ENOSPC) {
				shift_switch_arm(sqp, RETRY_MS);
				break;
			}
			if (!e->status && sqp->path && !sqp->first_done) {
				sqp->first_done = true;
				first = true;
			}
		}
		shift_ledger_pop(l, &seq);
	}
	spin_unlock_bh(&sqp->ledger_lock);

	if (first) {
		WRITE_ONCE(sqp->times.completion, ktime_get_real_ns());
		shift_switch_kick(sqp, SHIFT_QP_FIRST);
	}
}

/*
 * Take what the application has posted since into the ledger.  What cannot be
 * replayed stops the intake; it gets its error when all before it is done.
 */
static void ingest(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->ledger;
	struct shift_rxe_mark mark;
	u32 producer = shift_ring_producer(&sqp->sq);
	struct shift_wr wr;
	u8 *raw;
	int err;

	while (!sqp->stop_status && shift_ledger_slot(l, l->head) != producer &&
	       shift_ledger_count(l) < l->slots - 1) {
		raw = shift_ledger_raw(l, l->head);
		shift_ring_copy_slot(&sqp->sq, shift_ledger_slot(l, l->head), raw);
		err = shift_rxe_mark(raw, l->slot_size, &mark);
		if (!err && mark.first_psn != SHIFT_RXE_UNSENT)
			err = -EINVAL;	/* zeroed by the RESET while it was posted */
		if (!err)
			err = shift_rxe_decode(raw, l->slot_size, &wr);
		if (!err && !shift_wr_movable(&wr))
			err = -EOPNOTSUPP;
		if (err) {
			sqp->stop_status = IB_WC_LOC_QP_OP_ERR;
			pr_warn_ratelimited("%s qp %u: cannot carry on with what was posted (%d)\n",
					    sqp->sdev->name, sqp->qpn, err);
			break;
		}
		shift_ledger_append(l, shift_wr_packets(wr.opcode, wr.length, sqp->mtu),
				    shift_ledger_kind(wr.opcode) |
				    (sqp->sig_all || wr.flags & SHIFT_WR_SIGNALED ?
				     0 : SHIFT_ENTRY_SILENT));
	}
}

/*
 * The receiver of a WRITE with immediate that is resumed would be told only what
 * was left of it: its whole length, or 0.
 */
static u32 resumed_imm(struct shift_ledger *l)
{
	u64 seq = shift_ledger_cut(l);
	struct shift_wr wr;

	if (seq == l->head ||
	    shift_rxe_decode(shift_ledger_raw(l, seq), l->slot_size, &wr) ||
	    wr.opcode != SHIFT_WR_RDMA_WRITE_WITH_IMM)
		return 0;
	return wr.length;
}

/**
 * shift_replay_progress - what the peer's responder executed of ours
 * @sqp: the QP, locked, everything fenced.
 * @m: its PROGRESS.
 *
 * It names the last life in which it executed anything.  One before that in which
 * ours were sent: nothing of them.  After this all that is not executed is to be
 * posted again.
 *
 * Return: 0; -ERANGE: it cannot be; -ENODATA: the answer to an atomic is lost.
 */
int shift_replay_progress(struct shift_qp *sqp, const struct shift_msg *m)
{
	struct shift_ledger *l = &sqp->ledger;
	u64 packets = 0;
	int err = 0;

	spin_lock_bh(&sqp->ledger_lock);
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
		sqp->resumed_imm = resumed_imm(l);
	}
	spin_unlock_bh(&sqp->ledger_lock);
	return err;
}

/*
 * Take in what was posted and post it on the backup, in order; ledger_lock.
 * @rkey: the remote key that is not known, if that is what stops it.
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
	struct shift_ledger *l = &sqp->ledger;
	bool more = true;
	u32 rkey;

	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->ledger_live && sqp->registered && sqp->state != SHIFT_ST_FAIL &&
	    sqp->state != SHIFT_ST_APP) {
		more = post_all(sqp, &rkey) || sqp->stop_status;
		shift_ring_set_consumer(&sqp->sq, shift_ledger_slot(l, l->tail));
	}
	spin_unlock_bh(&sqp->ledger_lock);
	if (more)
		shift_switch_kick(sqp, SHIFT_QP_KICK);
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
	spin_lock_bh(&sqp->ledger_lock);
	err = post_all(sqp, &rkey);
	spin_unlock_bh(&sqp->ledger_lock);
	switch (err) {
	case 0:
	case -EAGAIN:		/* send queue full: its completions kick us */
		break;
	case -EINPROGRESS:
		shift_pairing_ask_key(sqp, rkey);
		fallthrough;
	case -ENOMEM:
		shift_switch_arm(sqp, RETRY_MS);
		break;
	case -EACCES:
		sqp->stop_status = IB_WC_LOC_PROT_ERR;
		break;
	case -ENOENT:
		sqp->stop_status = IB_WC_REM_ACCESS_ERR;
		break;
	case -EPERM:
		sqp->stop_status = IB_WC_RETRY_EXC_ERR;
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
	u64 seq;

	lockdep_assert_held(&sqp->lock);
	if (!sqp->registered)
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
		while (shift_ledger_slot(l, l->head) != shift_ring_producer(&sqp->sq) &&
		       shift_ledger_count(l) < l->slots - 1) {
			shift_ring_copy_slot(&sqp->sq, shift_ledger_slot(l, l->head),
					     shift_ledger_raw(l, l->head));
			shift_ledger_append(l, 0, 0);
		}
		spin_unlock_bh(&sqp->ledger_lock);
	} while (shift_ledger_count(l) &&
		 shift_ledger_at(l, l->tail)->state != SHIFT_ENTRY_EXECUTED);
	shift_recv_flush(sqp);
}
