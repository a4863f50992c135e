// SPDX-License-Identifier: GPL-2.0
/*
 * The fence: stop the default QP for good and take its work queue over.
 *
 * Order matters.  (1) GATED keeps doorbells out of the driver; RCU tells when
 * the last one has left it.  (2) The provider's flag, a barrier on every CPU, and
 * a look at its queue locks tell when no thread is in the middle of a post: RESET
 * zeroes the ring.  (3) Ring and CQ producer are copied when both stood still.
 * (4) RESET executes not one packet more.  (5) The responder's expected PSN is
 * final, and so are the completions that the default CQ was given.
 *
 * The whole ring is the user's memory: see ring.h.  Errors here end in an error
 * completion, never in a guess.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/smp.h>
#include <linux/slab.h>
#include <rdma/ib_user_verbs.h>
#include "shift.h"

#define HOLD_US		20000	/* for a post under way to finish, scaled */
#define STILL_US	20000	/* for completions to stop, scaled */

static void cpu_barrier(void *unused)
{
	/* a thread's look at the flag and its lock word: pairs with shift_fence_hold() */
	smp_mb();
}

static u64 deadline_us(unsigned int us)
{
	return ktime_get_ns() + (u64)us * NSEC_PER_USEC *
	       max(READ_ONCE(shift_deadline_scale), 1u);
}

/*
 * The rings of both CQs, kept where they are until release_rings().  A CQ that is
 * being resized is registered again in a moment.
 */
static int hold_rings(struct shift_qp *sqp)
{
	u64 end = deadline_us(HOLD_US);

	for (;;) {
		down_read(&sqp->sdev->ring_sem);
		if (shift_cq_registered(sqp->scq) && shift_cq_registered(sqp->rcq))
			return 0;
		up_read(&sqp->sdev->ring_sem);
		if (ktime_get_ns() > end)
			return -EIO;
		usleep_range(500, 1000);
	}
}

static void release_rings(struct shift_qp *sqp)
{
	up_read(&sqp->sdev->ring_sem);
}

static bool posting(const struct shift_qp *sqp)
{
	if (shift_word_read(&sqp->sq_lock) != sqp->lock_free)
		return true;
	return sqp->rq_lock.page && shift_word_read(&sqp->rq_lock) != sqp->lock_free;
}

/**
 * shift_fence_hold - keep the provider off its rings
 * @sqp: the QP, locked and registered.
 *
 * Threads that post after this see the flag and WAIT.  One that holds a lock for
 * longer than the deadline (stopped by a debugger, say) is not waited for: a fence
 * goes on, and a WQE that is lost by it shows as a gap in the ring and ends in an
 * error.
 *
 * Context: process context; sleeps.
 * Return: false if such a thread is there.
 */
bool shift_fence_hold(struct shift_qp *sqp)
{
	u64 end;

	set_bit(SHIFT_QP_GATED, &sqp->flags);
	WRITE_ONCE(sqp->provider_held, true);
	shift_word_write(&sqp->gate, SHIFT_QP_FLAG_GATE);
	/* flag before the look at lock words; the other side: cpu_barrier() */
	smp_mb();
	smp_call_function(cpu_barrier, NULL, 1);
	synchronize_rcu_expedited();

	end = deadline_us(HOLD_US);
	while (posting(sqp)) {
		if (ktime_get_ns() > end)
			return false;
		usleep_range(20, 50);
	}
	return true;
}

/* Let threads that WAIT go on; also when nothing was held. */
void shift_fence_open(struct shift_qp *sqp)
{
	if (!sqp->provider_held)
		return;
	/* a QP that is away is told of receives only if the provider does so */
	if (sqp->gate.page)
		shift_word_write(&sqp->gate, sqp->ledger_live && sqp->rq.npages ?
					     SHIFT_QP_FLAG_KICK : 0);
	WRITE_ONCE(sqp->provider_held, false);
	wake_up_all(&sqp->gate_wait);
}

/**
 * shift_fence_mark_start - mark in the send ring that nothing was completed yet
 * @sqp: the QP, about to go to RTS.
 */
void shift_fence_mark_start(struct shift_qp *sqp)
{
	u32 mark = SHIFT_RXE_START;

	if (sqp->registered)
		shift_ring_write_slot(&sqp->sq, shift_ring_consumer(&sqp->sq) - 1,
				      shift_rxe_first_psn_offset(), &mark, sizeof(mark));
}

/**
 * shift_fence_supported - is all outstanding work of a kind that can be moved?
 * @sqp: a QP that runs on its default NIC.
 *
 * A look at a moving target: what is posted right after is caught at the fence.
 *
 * Return: 0, -EOPNOTSUPP.
 */
int shift_fence_supported(struct shift_qp *sqp)
{
	u32 mask = sqp->sq.slots - 1;
	struct shift_wr wr;
	u32 i, end;
	u8 *slot;

	if (!sqp->registered)
		return -EOPNOTSUPP;
	end = shift_ring_producer(&sqp->sq);
	for (i = shift_ring_consumer(&sqp->sq); i != end; i = (i + 1) & mask) {
		slot = shift_ledger_raw(&sqp->ledger, i);
		shift_ring_copy_slot(&sqp->sq, i, slot);
		if (shift_rxe_decode(slot, sqp->sq.slot_size, &wr) ||
		    !shift_wr_movable(&wr))
			return -EOPNOTSUPP;
	}
	return 0;
}

/**
 * shift_fence_cause - the status that broke the QP, as the ring has it
 * @sqp: the QP.
 *
 * rxe 6.12 shows only flushes of a QP whose own sending failed.
 *
 * Context: any that may take a spinlock.
 * Return: enum ib_wc_status, 0 if no slot has one.
 */
u32 shift_fence_cause(struct shift_qp *sqp)
{
	u32 i, n, status = 0;

	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->registered) {
		i = shift_ring_producer(&sqp->sq);
		for (n = 1; n < sqp->sq.slots; n++) {
			status = shift_ring_slot_u32(&sqp->sq, --i, shift_rxe_status_offset());
			if (status && status != IB_WC_WR_FLUSH_ERR)
				break;
			status = 0;
		}
	}
	spin_unlock_bh(&sqp->ledger_lock);
	return status;
}

/* The rings just before the fence: what came after is counted in the CQs. */
struct shift_still {
	struct shift_rxe_view *send;
	u32 rq_producer, rq_consumer;
	u32 scq_producer, rcq_producer;
};

/*
 * Where the flushed part of the send ring begins.  rxe does not tell flushes of
 * sends and receives apart: if both go to one CQ and there are receives, no answer.
 */
static void find_flushed(struct shift_qp *sqp, const struct shift_still *still, u8 *slot)
{
	struct shift_rxe_view *view = still->send;
	int n;

	if (sqp->scq == sqp->rcq && shift_recv_used(sqp))
		return;
	n = shift_tally_errors(sqp, sqp->scq, sqp->error_pos, sqp->asked_send, slot);
	if (n > 0 && n < view->slots) {
		view->acked = (view->consumer - n) & (view->slots - 1);
		view->acked_valid = true;
	}
}

/*
 * Receives that were flushed: all of them are outstanding still.  @sends: error
 * completions that the same CQ got for sends; negative: not known.
 */
static int recvs_flushed(struct shift_qp *sqp, int sends, u8 *slot)
{
	u32 least = sqp->asked_recv;
	int n;

	if (!shift_recv_used(sqp))
		return 0;
	if (sqp->scq == sqp->rcq) {
		if (sends < 0)
			return -ENODATA;
		least += sqp->asked_send;
	} else {
		sends = 0;
	}
	n = shift_tally_errors(sqp, sqp->rcq, sqp->error_rpos, least, slot);
	if (n < 0)
		return n;
	n -= sends;
	return n < 0 || n >= (int)sqp->rq.slots ? -ENODATA : n;
}

static void copy_rings(struct shift_qp *sqp, struct shift_still *still)
{
	struct shift_rxe_view *view = still->send;
	u32 i;

	view->producer = shift_ring_producer(&sqp->sq);
	for (i = 0; i < sqp->sq.slots; i++)
		shift_ring_copy_slot(&sqp->sq, i, shift_ledger_raw(&sqp->ledger, i));
	view->consumer = shift_ring_consumer(&sqp->sq);
	if (!sqp->rq.npages)
		return;
	still->rq_producer = shift_ring_producer(&sqp->rq);
	shift_recv_capture(sqp);
	still->rq_consumer = shift_ring_consumer(&sqp->rq);
}

/*
 * A copy that no completion crossed: consumers and CQ producers are the same
 * before and after.  Nothing new can be posted, so the last completions come
 * within a round trip; on a dead path they have come already.
 */
static void copy_still(struct shift_qp *sqp, struct shift_still *still)
{
	u64 end = deadline_us(STILL_US);
	u32 sq, rq = 0;

	do {
		sq = shift_ring_consumer(&sqp->sq);
		if (sqp->rq.npages)
			rq = shift_ring_consumer(&sqp->rq);
		still->scq_producer = shift_tally_begin(sqp->scq);
		still->rcq_producer = shift_tally_begin(sqp->rcq);
		usleep_range(50, 100);
		copy_rings(sqp, still);
		if (still->send->consumer == sq && still->rq_consumer == rq &&
		    shift_ring_producer(&sqp->scq->ring) == still->scq_producer &&
		    shift_ring_producer(&sqp->rcq->ring) == still->rcq_producer)
			return;
	} while (ktime_get_ns() < end);
}

/* State and expected PSN of the default QP. */
int shift_fence_query(struct shift_qp *sqp, struct ib_qp_attr *attr)
{
	struct ib_qp_init_attr init = {};

	memset(attr, 0, sizeof(*attr));
	return sqp->sdev->saved.query_qp(sqp->qp, attr, IB_QP_STATE | IB_QP_RQ_PSN, &init);
}

static int reset_default(struct shift_qp *sqp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	return sqp->sdev->saved.modify_qp(sqp->qp, &attr, IB_QP_STATE, NULL);
}

/**
 * shift_fence_heard - how far our responder got in the life that ends
 * @sqp: the QP, locked.
 * @path: where.
 * @expected: the PSN that it expects next.
 *
 * A life in which nothing was executed does not hide the one before: the peer may
 * not know yet how that ended.  Once both are ready in a life, it does.
 */
void shift_fence_heard(struct shift_qp *sqp, u8 path, u32 expected)
{
	const struct shift_life *armed = &sqp->armed[path];

	if (expected == armed->psn && armed->epoch != sqp->heard.epoch)
		return;
	sqp->heard = (struct shift_life) {
		.path = path, .epoch = armed->epoch, .psn = expected,
	};
}

/* The copied ring becomes the ledger: entry for entry, from @rewind->first. */
static int fill_ledger(struct shift_qp *sqp, const struct shift_rxe_rewind *rewind)
{
	struct shift_ledger *l = &sqp->ledger;
	struct shift_wr wr;
	int err = 0;
	u32 i;

	shift_ledger_start(l, rewind->first);
	for (i = 0; i < rewind->count; i++) {
		const u8 *raw = shift_ledger_raw(l, l->head);
		u32 packets = 0;
		u8 flags = 0;

		/* what cannot be moved stays in the record: it gets its error */
		if (shift_rxe_decode(raw, l->slot_size, &wr) || !shift_wr_movable(&wr)) {
			err = -EOPNOTSUPP;
		} else {
			packets = shift_wr_packets(wr.opcode, wr.length, sqp->mtu);
			flags = shift_ledger_kind(wr.opcode);
			if (!sqp->sig_all && !(wr.flags & SHIFT_WR_SIGNALED))
				flags |= SHIFT_ENTRY_SILENT;
		}
		shift_ledger_append(l, packets, flags);
	}
	return err;
}

/*
 * The receives that have no completion; ledger_lock.  @n: those flushed by an
 * error, or completed with success since the copy; negative: not known.
 */
static int fill_recvs(struct shift_qp *sqp, const struct shift_still *still, bool errored, int n)
{
	u32 mask = sqp->rq.slots - 1;
	u32 first = still->rq_consumer;

	if (!sqp->rq.npages)
		return 0;
	if (n > 0)
		first += errored ? -n : n;
	shift_recv_start(sqp, first & mask, (still->rq_producer - first) & mask);
	return n < 0 ? n : 0;
}

/**
 * shift_fence - stop the default QP and rewind its send queue into the ledger
 * @sqp: the QP, locked.
 * @errored: out: it was in ERR already.
 *
 * One that is away has its active QP stopped.  sqp->heard is what the responder executed.
 *
 * Context: process context; sleeps for up to some tens of ms.
 * Return: 0; -ECANCELED: the error is the application's own, nothing was
 * changed; -EIO: the NIC could not be asked; another error: fenced, but what
 * is outstanding cannot be told or moved.
 */
int shift_fence(struct shift_qp *sqp, bool *errored)
{
	struct shift_rxe_view view = {
		.ring = sqp->ledger.raw,
		.slots = sqp->sq.slots,
		.slot_size = sqp->sq.slot_size,
		.start_psn = sqp->sq_psn,
		.mtu = sqp->mtu,
	};
	struct shift_still still = { .send = &view };
	int err, rewound, seen, seen_err, got = 0, sends = -1;
	struct shift_rxe_rewind rewind;
	struct ib_qp_attr *attr;
	u8 *slot;

	lockdep_assert_held(&sqp->lock);
	if (test_bit(SHIFT_QP_FENCED, &sqp->flags)) {
		err = shift_standby_fence(sqp);
		spin_lock_bh(&sqp->ledger_lock);
		shift_recv_rewind(sqp);
		spin_unlock_bh(&sqp->ledger_lock);
		return err ? -EIO : 0;
	}
	if (!sqp->registered || hold_rings(sqp))
		return -EIO;
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	slot = kzalloc(max(sqp->scq->ring.slot_size, sqp->rcq->ring.slot_size), GFP_NOIO);
	if (!attr || !slot) {
		err = -EIO;
		goto out_free;
	}

	shift_fence_hold(sqp);
	copy_still(sqp, &still);
	if (shift_fence_query(sqp, attr)) {
		err = -EIO;
		goto out_open;
	}
	view.errored = attr->qp_state == IB_QPS_ERR;
	*errored = view.errored;
	if (view.errored) {
		copy_still(sqp, &still);	/* it may have become so after the copy */
		find_flushed(sqp, &still, slot);
	}
	rewound = shift_rxe_rewind(&view, &rewind);
	if (rewound && view.errored && !test_bit(SHIFT_QP_ERRORED, &sqp->flags)) {
		/* no path error in the ring: what failed is the application's */
		clear_bit(SHIFT_QP_GATED, &sqp->flags);
		err = -ECANCELED;
		goto out_open;
	}

	err = reset_default(sqp);
	if (!err)
		err = shift_fence_query(sqp, attr);
	if (err) {
		err = -EIO;
		goto out_open;
	}
	set_bit(SHIFT_QP_FENCED, &sqp->flags);
	shift_fence_heard(sqp, 0, attr->rq_psn & SHIFT_PSN_MASK);
	if (view.errored) {
		if (!rewound)
			sends = (view.consumer - rewind.first) & (view.slots - 1);
		seen = 0;
		if (sqp->rq.npages)
			got = recvs_flushed(sqp, sends, slot);
	} else {
		seen = shift_tally_done(sqp, sqp->scq, still.scq_producer, false, slot);
		if (sqp->rq.npages)
			got = shift_tally_done(sqp, sqp->rcq, still.rcq_producer, true, slot);
	}

	spin_lock_bh(&sqp->ledger_lock);
	if (rewound) {
		/* how far it got cannot be told; what is outstanding can, unless
		 * the ring was overrun after the error
		 */
		rewind.first = view.errored ? view.producer : view.consumer;
		rewind.count = (view.producer - rewind.first) & (view.slots - 1);
		rewind.first_psn = 0;
	}
	sqp->sent = (struct shift_life) {
		.epoch = sqp->armed[0].epoch, .psn = rewind.first_psn,
	};
	err = fill_ledger(sqp, &rewind);
	if (rewound)
		err = rewound;
	seen_err = fill_recvs(sqp, &still, view.errored, got);
	if (!err)
		err = seen_err;
	sqp->sent_any = shift_ledger_count(&sqp->ledger);
	if (!err && seen)
		err = seen < 0 ? seen : shift_ledger_seen(&sqp->ledger, seen);
	sqp->ledger_live = true;
	shift_ring_set_consumer(&sqp->sq, shift_ledger_slot(&sqp->ledger, sqp->ledger.tail));
	spin_unlock_bh(&sqp->ledger_lock);
	if (err)
		pr_warn_ratelimited("%s qp %u: outstanding work could not be taken over (%d)\n",
				    sqp->sdev->name, sqp->qpn, err);
out_open:
	shift_fence_open(sqp);
out_free:
	release_rings(sqp);
	kfree(slot);
	kfree(attr);
	return err;
}
