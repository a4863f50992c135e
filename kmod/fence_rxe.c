// SPDX-License-Identifier: GPL-2.0
/*
 * The fence of a QP on rxe.
 *
 * Order matters.  (1) GATED keeps doorbells out of the driver; RCU tells when
 * the last one has left it.  (2) The provider's flag, a barrier on every CPU, and
 * a look at its queue locks tell when no thread is in the middle of a post: RESET
 * zeroes the ring.  (3) Ring and CQ producer are copied when both stood still.
 * (4) RESET executes not one packet more.  (5) The responder's expected PSN is
 * final, and so are the completions that the default CQ was given.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include "mw.h"
#include "provider.h"

#define HOLD_US		20000	/* for a post under way to finish, scaled */
#define STILL_US	20000	/* for completions and packets to stop, scaled */
#define QUIET_US	500	/* without any: longer than between packets of one message */
#define NOISE_US	2000	/* for packets of others, too, to pause, scaled */

static bool posting(const struct shift_qp *sqp)
{
	if (shift_word_read(&sqp->sq_word) != sqp->lock_free)
		return true;
	return sqp->rq_word.page && shift_word_read(&sqp->rq_word) != sqp->lock_free;
}

/**
 * shift_rxe_hold - keep the provider off its rings
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
bool shift_rxe_hold(struct shift_qp *sqp)
{
	u64 end;

	set_bit(SHIFT_QP_GATED, &sqp->flags);
	WRITE_ONCE(sqp->provider_held, true);
	shift_word_write(&sqp->gate, SHIFT_QP_FLAG_GATE);
	shift_fence_barrier();
	synchronize_rcu_expedited();

	end = shift_fence_deadline(HOLD_US);
	while (posting(sqp)) {
		if (ktime_get_ns() > end)
			return false;
		usleep_range(20, 50);
	}
	return true;
}

/**
 * shift_rxe_cause - the status that broke the QP, as the ring has it
 * @sqp: the QP; ledger_lock.
 *
 * rxe 6.12 shows only flushes of a QP whose own sending failed.
 *
 * Return: enum ib_wc_status, 0 if no slot has one.
 */
u32 shift_rxe_cause(struct shift_qp *sqp)
{
	u32 i = shift_ring_producer(&sqp->sq);
	u32 n, status;

	for (n = 1; n < sqp->sq.slots; n++) {
		status = shift_ring_slot_u32(&sqp->sq, --i, shift_rxe_status_offset());
		if (status && status != IB_WC_WR_FLUSH_ERR)
			return status;
	}
	return 0;
}

/* Was a receive ever posted?  After they were copied: rxe hands rings out zeroed. */
static bool recv_used(const struct shift_qp *sqp)
{
	const struct shift_recvs *r = &sqp->recvs;

	return r->slots && memchr_inv(r->raw, 0, (size_t)r->slots * r->slot_size);
}

/* The rings just before the fence: what came after is counted in the CQs. */
struct shift_still {
	struct shift_rxe_view *send;
	u32 rq_producer, rq_consumer;
	u32 scq_producer, rcq_producer;
};

/*
 * Where the flushed part of the send ring begins.  @failed: the operation that broke the
 * QP; it and all behind it were flushed, and so were those before it that were under
 * way: newer rxe leaves no trace of it in their slots, so completions are counted.  If
 * receives were flushed into the same CQ their wr_ids have to tell them apart.
 */
static bool find_flushed(struct shift_qp *sqp, const struct shift_still *still, u32 failed,
			 u8 *slot)
{
	struct shift_rxe_view *view = still->send;
	u32 mask = view->slots - 1, room = sqp->asked_send;
	struct shift_flush flush, *both = NULL;
	int n;

	if (sqp->scq == sqp->rcq && recv_used(sqp)) {
		shift_flush_init(&flush, &(struct shift_flush_queue) {
			.raw = view->ring, .slots = view->slots, .slot_size = view->slot_size,
			.end = view->consumer, .most = mask,
		}, &(struct shift_flush_queue) {
			.raw = sqp->recvs.raw, .slots = sqp->recvs.slots,
			.slot_size = sqp->recvs.slot_size, .end = still->rq_consumer,
			.most = sqp->recvs.slots - 1,
		});
		both = &flush;
		room += sqp->asked_recv;
	}
	n = shift_tally_errors(sqp, sqp->scq, sqp->error_pos, still->scq_producer, room, both,
			       slot);
	if (n > 0 && both)
		n = shift_flush_sends(&flush, (view->consumer - failed) & mask);
	if (n <= 0 || n > mask)
		return false;
	view->acked = (view->consumer - n) & mask;
	view->acked_valid = true;
	return true;
}

/*
 * Receives that were flushed: all of them are outstanding still.  @sends: error
 * completions that the same CQ got for sends; negative: not known.
 */
static int recvs_flushed(struct shift_qp *sqp, const struct shift_still *still, int sends,
			 u8 *slot)
{
	u32 least = sqp->asked_recv;
	int n;

	if (!recv_used(sqp))
		return 0;
	if (sqp->scq == sqp->rcq) {
		if (sends < 0)
			return -ENODATA;
		least += sqp->asked_send;
	} else {
		sends = 0;
	}
	n = shift_tally_errors(sqp, sqp->rcq, sqp->error_rpos, still->rcq_producer, least, NULL,
			       slot);
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

/* What the responder expects next: it moves with every packet of a message. */
static u32 expected_psn(struct shift_qp *sqp, struct ib_qp_attr *attr)
{
	return shift_fence_query(sqp, attr) ? 0 : attr->rq_psn;
}

/* Packets that the device has received, or 0. */
static u64 received(struct shift_qp *sqp, struct rdma_hw_stats *stats)
{
	int i;

	if (sqp->sdev->saved.get_hw_stats(sqp->sdev->ibdev, stats, 1, stats->num_counters) < 0)
		return 0;
	for (i = 0; i < stats->num_counters; i++)
		if (!strcmp(stats->descs[i].name, "rcvd_pkts"))
			return stats->value[i];
	return 0;
}

/*
 * rxe of 6.1 takes packets in the receiving softirq, and a RESET beside that gives back the
 * same reference twice.  Packets that are repeated show in the device's counter only.
 * No more than a pause is waited for: the device has other QPs.
 */
static void wait_quiet(struct shift_qp *sqp)
{
	const struct ib_device_ops *ops = &sqp->sdev->saved;
	u64 end = shift_fence_deadline(NOISE_US);
	struct rdma_hw_stats *stats;
	u64 before;

	if (!ops->alloc_hw_port_stats || !ops->get_hw_stats)
		return;
	stats = ops->alloc_hw_port_stats(sqp->sdev->ibdev, 1);
	if (!stats)
		return;
	do {
		before = received(sqp, stats);
		usleep_range(QUIET_US, 2 * QUIET_US);
	} while (received(sqp, stats) != before && ktime_get_ns() < end);
	rdma_free_hw_stats_struct(stats);
}

/*
 * A copy that no completion crossed, and no packet: consumers, CQ producers and the PSN
 * expected are the same before and after.  Nothing new can be posted, so the last
 * completions come within a round trip; on a dead path they have come already.
 */
static void copy_still(struct shift_qp *sqp, struct shift_still *still,
		       struct ib_qp_attr *attr)
{
	u64 end = shift_fence_deadline(STILL_US);
	u32 sq, rq = 0, psn;

	do {
		psn = expected_psn(sqp, attr);
		sq = shift_ring_consumer(&sqp->sq);
		if (sqp->rq.npages)
			rq = shift_ring_consumer(&sqp->rq);
		still->scq_producer = shift_tally_begin(sqp->scq);
		still->rcq_producer = shift_tally_begin(sqp->rcq);
		usleep_range(QUIET_US, 2 * QUIET_US);
		copy_rings(sqp, still);
		if (expected_psn(sqp, attr) == psn && still->send->consumer == sq &&
		    still->rq_consumer == rq &&
		    shift_ring_producer(&sqp->scq->ring) == still->scq_producer &&
		    shift_ring_producer(&sqp->rcq->ring) == still->rcq_producer)
			return;
	} while (ktime_get_ns() < end);
}

static bool half_round(const struct shift_cq *scq, u32 from)
{
	u32 slots = scq->ring.slots;

	return ((shift_ring_producer(&scq->ring) - from) & (slots - 1)) >= slots / 2;
}

/*
 * Has too much happened since the copy, in the time of a grace period?  Others may fill the
 * CQ, and what failed after the copy is not in it.
 */
static bool outdated(struct shift_qp *sqp, const struct shift_still *still,
		     struct ib_qp_attr *attr)
{
	return (!shift_fence_query(sqp, attr) && attr->qp_state == IB_QPS_ERR) ||
	       half_round(sqp->scq, still->scq_producer) ||
	       half_round(sqp->rcq, still->rcq_producer);
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
		bool bad = shift_rxe_decode(shift_ledger_raw(l, l->head), l->slot_size, &wr);

		if (shift_replay_enter(sqp, bad ? NULL : &wr))
			err = -EOPNOTSUPP;
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
	shift_recv_start(sqp, first & mask, (still->rq_producer - first) & mask, mask);
	return n < 0 ? n : 0;
}

/**
 * shift_rxe_fence - stop the default QP and rewind its send queue into the ledger
 * @sqp: the QP, locked and not fenced yet.
 * @errored: out: it was in ERR already.
 *
 * Return: as shift_fence().
 */
int shift_rxe_fence(struct shift_qp *sqp, bool *errored)
{
	struct shift_rxe_view view = {
		.ring = sqp->ledger.raw,
		.slots = sqp->sq.slots,
		.slot_size = sqp->sq.slot_size,
		.start_psn = sqp->sq_psn,
		.mtu = sqp->mtu,
	};
	struct shift_still still = { .send = &view };
	int err, rewound, deaf, seen, seen_err, got = 0, sends = -1;
	bool waited = false;
	struct shift_rxe_rewind rewind;
	struct ib_qp_attr *attr;
	u8 *slot;

	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	slot = kzalloc(max(sqp->scq->ring.slot_size, sqp->rcq->ring.slot_size), GFP_NOIO);
	if (!attr || !slot) {
		err = -ENOMEM;
		goto out_free;
	}

	shift_rxe_hold(sqp);
	if (!test_bit(SHIFT_QP_ERRORED, &sqp->flags))
		wait_quiet(sqp);
again:
	copy_still(sqp, &still, attr);
	if (shift_fence_query(sqp, attr))
		view.errored = test_bit(SHIFT_QP_ERRORED, &sqp->flags) ||
			       shift_provider_cause(sqp);
	else
		view.errored = attr->qp_state == IB_QPS_ERR;
	*errored = view.errored;
	if (view.errored)
		copy_still(sqp, &still, attr);	/* it may have become so after the copy */
	rewound = shift_rxe_rewind(&view, &rewind);
	if (rewound && rewind.status == IB_WC_LOC_QP_OP_ERR &&
	    find_flushed(sqp, &still, rewind.first, slot))
		rewound = shift_rxe_rewind(&view, &rewind);
	if (rewound && view.errored && !test_bit(SHIFT_QP_ERRORED, &sqp->flags)) {
		/* no path error in the ring: what failed is the application's */
		err = -ECANCELED;
		goto out_free;
	}

	/* RESET zeroes what was posted without a doorbell */
	spin_lock_bh(&sqp->ledger_lock);
	shift_notes_scan(sqp);
	spin_unlock_bh(&sqp->ledger_lock);
	if (!waited) {
		/* for a packet in the middle of it, on a processor that was kept from its work */
		synchronize_rcu_expedited();
		waited = true;
		if (!view.errored && outdated(sqp, &still, attr))
			goto again;
	}
	if (shift_fence_stop(sqp, IB_QPS_RESET)) {
		/* it may go on: completions could come from there and from us */
		err = -EBUSY;
		goto out_free;
	}
	deaf = shift_fence_query(sqp, attr);
	set_bit(SHIFT_QP_FENCED, &sqp->flags);
	if (!deaf)
		shift_fence_heard(sqp, 0, attr->rq_psn & SHIFT_PSN_MASK);
	if (view.errored) {
		if (!rewound)
			sends = (view.consumer - rewind.first) & (view.slots - 1);
		seen = 0;
		if (sqp->rq.npages)
			got = recvs_flushed(sqp, &still, sends, slot);
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
	shift_notes_settle(sqp, rewind.count);
	if (rewound)
		err = rewound;
	seen_err = fill_recvs(sqp, &still, view.errored, got);
	if (!err)
		err = seen_err;
	sqp->sent_any = shift_ledger_count(&sqp->ledger) && !rewind.local;
	if (!err && seen)
		err = seen < 0 ? seen : shift_ledger_seen(&sqp->ledger, seen);
	sqp->ledger_live = true;
	sqp->provider->completed(sqp, sqp->ledger.tail);
	spin_unlock_bh(&sqp->ledger_lock);
	if (err)
		pr_warn_ratelimited("%s qp %u: outstanding work could not be taken over (%d)\n",
				    sqp->sdev->name, sqp->qpn, err);
	else if (deaf)
		err = -EIO;
out_free:
	kfree(slot);
	kfree(attr);
	return err;
}
