// SPDX-License-Identifier: GPL-2.0
/*
 * The fence of a QP on rxe.
 *
 * Order matters.  (1) GATED keeps doorbells out of the driver; after an RCU grace
 * period the last one has left it.  (2) Threads that see the flag word do not post.  After a
 * barrier on every CPU, the provider's queue locks tell whether a thread that did not see it is
 * still posting: RESET zeroes the ring.  (3) Ring and CQ producer are copied when both stand
 * still.  (4) After RESET no packet is executed.  (5) The responder's expected PSN is
 * final, and so are the completions in the default CQ.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/ring.h"
#include "provider/provider.h"
#include "provider/rxe/flush.h"
#include "provider/rxe/ring.h"
#include "provider/rxe/rxe.h"
#include "provider/rxe/wqe.h"
#include "pure/ledger.h"
#include "pure/psn.h"
#include "pure/wr.h"

#define HOLD_US		20000	/* to wait for a post under way to finish, scaled */
#define STILL_US	20000	/* to wait for completions and packets to stop, scaled */
#define QUIET_US	500	/* a pause: longer than between packets of one message */
#define NOISE_US	2000	/* to wait for a pause in packets of all QPs, scaled */

static bool ring_is_posting(const struct shift_qp *sqp)
{
	const struct shift_word *word = sqp->rings.pins.word;
	const struct shift_rxe_qp *rxe = sqp->rings.priv;

	if (shift_word_read(&word[SHIFT_RXE_SQ_LOCK]) != rxe->lock_free)
		return true;
	return word[SHIFT_RXE_RQ_LOCK].page &&
	       shift_word_read(&word[SHIFT_RXE_RQ_LOCK]) != rxe->lock_free;
}

/**
 * shift_rxe_hold - keep the provider off its rings
 * @sqp: the QP, locked and registered.
 *
 * Threads that post after this see the flag and WAIT.  This does not wait longer than the deadline
 * for a thread that holds a queue lock (it may be stopped by a debugger).  The fence goes on
 * without it: a WQE that is lost by that shows as a gap in the ring and ends in an error.
 *
 * Context: process context; sleeps.
 * Return: false if a thread still holds a queue lock.
 */
bool shift_rxe_hold(struct shift_qp *sqp)
{
	u64 end;

	lockdep_assert_held(&sqp->lock);
	set_bit(SHIFT_QPB_GATED, &sqp->pend.flags);
	WRITE_ONCE(sqp->rings.held, true);
	shift_word_write(&sqp->rings.pins.gate, SHIFT_QP_FLAG_GATE);
	shift_fence_barrier();
	synchronize_rcu_expedited();

	end = shift_from_now_us(HOLD_US);
	while (ring_is_posting(sqp)) {
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
 * rxe of 6.12 completes all operations as flushed if the QP's own sending failed: only the slot in
 * the ring has the status.
 *
 * Return: enum ib_wc_status, 0 if no slot has one.
 */
u32 shift_rxe_cause(struct shift_qp *sqp)
{
	u32 i = shift_rxe_producer(&sqp->rings.pins.sq);
	u32 n, status;

	lockdep_assert_held(&sqp->ledger_lock);
	for (n = 1; n < sqp->rings.pins.sq.slots; n++) {
		status = shift_ring_slot_u32(&sqp->rings.pins.sq, --i, shift_rxe_status_offset());
		if (status && status != IB_WC_WR_FLUSH_ERR)
			return status;
	}
	return 0;
}

/* Was a receive ever posted?  Looks at the copy: if not, it is zero, as rxe made the ring. */
static bool recvs_used(const struct shift_qp *sqp)
{
	const struct shift_recvs *r = &sqp->rec.recvs;

	return r->slots && memchr_inv(r->raw, 0, (size_t)r->slots * r->slot_size);
}

/* Copies of the rings just before RESET, and CQ positions from which later completions count. */
struct shift_still {
	struct shift_rxe_view *send;
	u32 rq_producer, rq_consumer;
	u32 scq_producer, rcq_producer;
};

/*
 * Find where the flushed part of the send ring begins.  @failed: the operation that broke the
 * QP.  It and all behind it were flushed, and so were those before it that were under way.  Newer
 * rxe leaves no trace of that in their slots, so that their error completions are counted.  If
 * receives were flushed into the same CQ, wr_ids tell the two apart.
 */
static bool find_flushed(struct shift_qp *sqp, const struct shift_still *still, u32 failed,
			 u8 *slot)
{
	struct shift_rxe_view *view = still->send;
	u32 mask = view->slots - 1, room = sqp->app.asked_send;
	struct shift_flush flush, *both = NULL;
	int n;

	if (sqp->scq == sqp->rcq && recvs_used(sqp)) {
		shift_flush_init(&flush, &(struct shift_flush_queue) {
			.raw = view->ring, .slots = view->slots, .slot_size = view->slot_size,
			.end = view->consumer, .most = mask,
		}, &(struct shift_flush_queue) {
			.raw = sqp->rec.recvs.raw, .slots = sqp->rec.recvs.slots,
			.slot_size = sqp->rec.recvs.slot_size, .end = still->rq_consumer,
			.most = sqp->rec.recvs.slots - 1,
		});
		both = &flush;
		room += sqp->app.asked_recv;
	}
	n = shift_cq_count_errors(sqp, sqp->scq, sqp->fo.error_pos, still->scq_producer, room, both,
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
 * Number of receives that were flushed, which are still outstanding.  @sends: number of error
 * completions in the same CQ that are of sends; negative: not known.
 */
static int recvs_flushed(struct shift_qp *sqp, const struct shift_still *still, int sends,
			 u8 *slot)
{
	u32 least = sqp->app.asked_recv;
	int n;

	if (!recvs_used(sqp))
		return 0;
	if (sqp->scq == sqp->rcq) {
		if (sends < 0)
			return -ENODATA;
		least += sqp->app.asked_send;
	} else {
		sends = 0;
	}
	n = shift_cq_count_errors(sqp, sqp->rcq, sqp->fo.error_rpos, still->rcq_producer, least,
				  NULL,
				  slot);
	if (n < 0)
		return n;
	n -= sends;
	return n < 0 || n >= (int)sqp->rings.pins.rq.slots ? -ENODATA : n;
}

static void copy_rings(struct shift_qp *sqp, struct shift_still *still)
{
	struct shift_rxe_view *view = still->send;
	u32 i;

	view->producer = shift_rxe_producer(&sqp->rings.pins.sq);
	for (i = 0; i < sqp->rings.pins.sq.slots; i++)
		shift_ring_copy_slot(&sqp->rings.pins.sq, i, shift_ledger_raw(&sqp->rec.ledger, i));
	view->consumer = shift_rxe_consumer(&sqp->rings.pins.sq);
	if (!sqp->rings.pins.rq.npages)
		return;
	still->rq_producer = shift_rxe_producer(&sqp->rings.pins.rq);
	shift_recv_capture(sqp);
	still->rq_consumer = shift_rxe_consumer(&sqp->rings.pins.rq);
}

/* The PSN that the responder expects next; it grows with every packet of a message. */
static u32 expected_psn(struct shift_qp *sqp, struct ib_qp_attr *attr)
{
	return shift_fence_query(sqp, attr) ? 0 : attr->rq_psn;
}

/* Number of packets that the device has received; 0 if it does not say. */
static u64 qp_received(struct shift_qp *sqp, struct rdma_hw_stats *stats)
{
	int i;

	if (sqp->sdev->saved.get_hw_stats(sqp->sdev->ibdev, stats, 1, stats->num_counters) < 0)
		return 0;
	for (i = 0; i < stats->num_counters; i++)
		if (!strcmp(stats->descs[i].name, "rcvd_pkts"))
			return stats->value[i];
	return 0;
}

/**
 * shift_rxe_quiet - wait for a pause in the packets that the device receives
 * @sqp: a QP of the device, locked; also one of a user in the kernel.
 *
 * rxe of 6.1 handles packets in the receiving softirq, and a RESET at the same time drops a
 * reference twice.  Repeated packets show in no counter but the device's.  This does not wait for
 * long, as other QPs receive packets, too.
 *
 * Context: process context; sleeps for some ms.
 */
void shift_rxe_quiet(struct shift_qp *sqp)
{
	const struct ib_device_ops *ops = &sqp->sdev->saved;
	u64 end = shift_from_now_us(NOISE_US);
	struct rdma_hw_stats *stats;
	u64 before;

	lockdep_assert_held(&sqp->lock);
	if (!ops->alloc_hw_port_stats || !ops->get_hw_stats)
		return;
	stats = ops->alloc_hw_port_stats(sqp->sdev->ibdev, 1);
	if (!stats)
		return;
	do {
		before = qp_received(sqp, stats);
		usleep_range(QUIET_US, 2 * QUIET_US);
	} while (qp_received(sqp, stats) != before && ktime_get_ns() < end);
	rdma_free_hw_stats_struct(stats);
}

/*
 * Copy the rings while no completion and no packet arrives: consumers, CQ producers and the
 * expected PSN are the same before and after.  Nothing new can be posted, so that the last
 * completions come within a round trip; on a dead path they have come already.
 */
static void copy_still(struct shift_qp *sqp, struct shift_still *still,
		       struct ib_qp_attr *attr)
{
	u64 end = shift_from_now_us(STILL_US);
	u32 sq, rq = 0, psn;

	do {
		psn = expected_psn(sqp, attr);
		sq = shift_rxe_consumer(&sqp->rings.pins.sq);
		if (sqp->rings.pins.rq.npages)
			rq = shift_rxe_consumer(&sqp->rings.pins.rq);
		still->scq_producer = shift_cq_count_begin(sqp->scq);
		still->rcq_producer = shift_cq_count_begin(sqp->rcq);
		usleep_range(QUIET_US, 2 * QUIET_US);
		copy_rings(sqp, still);
		if (expected_psn(sqp, attr) == psn && still->send->consumer == sq &&
		    still->rq_consumer == rq &&
		    shift_rxe_producer(&sqp->scq->pins.ring) == still->scq_producer &&
		    shift_rxe_producer(&sqp->rcq->pins.ring) == still->rcq_producer)
			return;
	} while (ktime_get_ns() < end);
}

static bool half_round(const struct shift_cq *scq, u32 from)
{
	u32 slots = scq->pins.ring.slots;

	return ((shift_rxe_producer(&scq->pins.ring) - from) & (slots - 1)) >= slots / 2;
}

/*
 * Must the copy be made again, as too much has happened during a grace period?  Other QPs may have
 * filled the CQ, or the QP may have failed after the copy.
 */
static bool view_is_outdated(struct shift_qp *sqp, const struct shift_still *still,
			     struct ib_qp_attr *attr)
{
	return (!shift_fence_query(sqp, attr) && attr->qp_state == IB_QPS_ERR) ||
	       half_round(sqp->scq, still->scq_producer) ||
	       half_round(sqp->rcq, still->rcq_producer);
}

/* Make the copied ring the ledger, entry by entry, from @rewind->first on. */
static int fill_ledger(struct shift_qp *sqp, const struct shift_rxe_rewind *rewind)
{
	struct shift_ledger *l = &sqp->rec.ledger;
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
 * Take over the receives that have no completion; ledger_lock.  @n: number of receives that were
 * flushed (@errored), or else completed with success since the copy; negative: not known.
 */
static int fill_recvs(struct shift_qp *sqp, const struct shift_still *still, bool errored, int n)
{
	u32 mask = sqp->rings.pins.rq.slots - 1;
	u32 first = still->rq_consumer;

	lockdep_assert_held(&sqp->ledger_lock);
	if (!sqp->rings.pins.rq.npages)
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
		.ring = sqp->rec.ledger.raw,
		.slots = sqp->rings.pins.sq.slots,
		.slot_size = sqp->rings.pins.sq.slot_size,
		.start_psn = sqp->app.sq_psn,
		.mtu = sqp->app.mtu,
	};
	struct shift_still still = { .send = &view };
	int err, rewound, query_err, seen, seen_err, got = 0, sends = -1;
	bool waited = false;
	struct shift_rxe_rewind rewind;
	struct ib_qp_attr *attr;
	u8 *slot;

	lockdep_assert_held(&sqp->lock);
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	slot = kzalloc(max(sqp->scq->pins.ring.slot_size, sqp->rcq->pins.ring.slot_size), GFP_NOIO);
	if (!attr || !slot) {
		err = -ENOMEM;
		goto out_free;
	}

	shift_rxe_hold(sqp);
	if (!test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags))
		shift_rxe_quiet(sqp);
again:
	copy_still(sqp, &still, attr);
	if (shift_fence_query(sqp, attr))
		view.errored = test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags) ||
			       shift_provider_cause(sqp);
	else
		view.errored = attr->qp_state == IB_QPS_ERR;
	*errored = view.errored;
	if (view.errored)
		copy_still(sqp, &still, attr);	/* it may have failed after the copy */
	rewound = shift_rxe_rewind(&view, &rewind);
	if (rewound && rewind.status == IB_WC_LOC_QP_OP_ERR &&
	    find_flushed(sqp, &still, rewind.first, slot))
		rewound = shift_rxe_rewind(&view, &rewind);
	if (rewound && view.errored && !test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags)) {
		/* the ring has no error of the path: the application has caused the error */
		err = -ECANCELED;
		goto out_free;
	}

	/* before RESET zeroes it: window operations that were posted without a doorbell */
	spin_lock_bh(&sqp->ledger_lock);
	shift_mw_journal_scan(sqp);
	spin_unlock_bh(&sqp->ledger_lock);
	if (!waited) {
		/* wait for packets that are being received on a CPU that was kept from running */
		synchronize_rcu_expedited();
		waited = true;
		if (!view.errored && view_is_outdated(sqp, &still, attr))
			goto again;
	}
	/* before RESET: from then on no slot tells the CQE filter why a receive was flushed */
	set_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
	if (shift_fence_stop(sqp, IB_QPS_RESET)) {
		/* the QP may go on: the same operations could be completed by it and by us */
		clear_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
		err = -EBUSY;
		goto out_free;
	}
	query_err = shift_fence_query(sqp, attr);
	if (!query_err)
		shift_fence_heard(sqp, 0, attr->rq_psn & SHIFT_PSN_MASK);
	if (view.errored) {
		if (!rewound)
			sends = (view.consumer - rewind.first) & (view.slots - 1);
		seen = 0;
		if (sqp->rings.pins.rq.npages)
			got = recvs_flushed(sqp, &still, sends, slot);
	} else {
		seen = shift_cq_count_done(sqp, sqp->scq, still.scq_producer, false, slot);
		if (sqp->rings.pins.rq.npages)
			got = shift_cq_count_done(sqp, sqp->rcq, still.rcq_producer, true, slot);
	}

	spin_lock_bh(&sqp->ledger_lock);
	if (rewound) {
		/*
		 * It is not known how far the peer got.  It is known what is outstanding, unless
		 * the ring was overwritten after the error.
		 */
		rewind.first = view.errored ? view.producer : view.consumer;
		rewind.count = (view.producer - rewind.first) & (view.slots - 1);
		rewind.first_psn = 0;
	}
	sqp->rec.outstanding = (struct shift_arming) {
		.epoch = sqp->fo.armed[0].epoch, .psn = rewind.first_psn,
	};
	err = fill_ledger(sqp, &rewind);
	shift_mw_journal_settle(sqp, rewind.count);
	if (rewound)
		err = rewound;
	seen_err = fill_recvs(sqp, &still, view.errored, got);
	if (!err)
		err = seen_err;
	sqp->rec.any_outstanding = shift_ledger_count(&sqp->rec.ledger) && !rewind.local;
	if (!err && seen)
		err = seen < 0 ? seen : shift_ledger_seen(&sqp->rec.ledger, seen);
	sqp->rec.own_end = sqp->rec.ledger.head;
	sqp->rec.live = true;
	sqp->rings.provider->completed(sqp, sqp->rec.ledger.tail);
	spin_unlock_bh(&sqp->ledger_lock);
	if (err)
		pr_warn_ratelimited("%s qp %u: outstanding work could not be taken over (%d)\n",
				    sqp->sdev->name, sqp->qpn, err);
	else if (query_err)
		err = -EIO;
out_free:
	kfree(slot);
	kfree(attr);
	return err;
}
