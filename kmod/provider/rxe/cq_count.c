// SPDX-License-Identifier: GPL-2.0
/*
 * Counting completions of a QP in the memory of a user's CQ: those that rxe wrote
 * between the copy of its rings and the RESET.  The memory is the user's (ring.h).
 *
 * A stamp in the slot before the first one to count tells whether the CQ went round
 * meanwhile: nobody uses the last bytes of a slot, but a new completion overwrites them.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <rdma/ib_user_verbs.h>
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/ring.h"
#include "core/srq.h"
#include "provider/rxe/flush.h"
#include "provider/rxe/ring.h"
#include "provider/rxe/rxe.h"
#include "pure/fsm.h"

#define CQ_STAMP	0x5348494654535450ull
#define SETTLE_US	100000	/* for a fence to count what a resize would lose; scaled */

static void cq_stamp(const struct shift_ring *ring, u32 first)
{
	u64 value = CQ_STAMP;

	shift_ring_write_slot(ring, first - 1, ring->slot_size - sizeof(value), &value,
			      sizeof(value));
}

static bool cq_is_stamped(const struct shift_ring *ring, u32 first, u8 *slot)
{
	u64 value;

	shift_ring_copy_slot(ring, first - 1, slot);
	memcpy(&value, slot + ring->slot_size - sizeof(value), sizeof(value));
	return value == CQ_STAMP;
}

/* Begin to count: returns the index of the next completion. */
u32 shift_cq_count_begin(struct shift_cq *scq)
{
	u32 producer = shift_rxe_producer(&scq->pins.ring);

	cq_stamp(&scq->pins.ring, producer);
	return producer;
}

/**
 * shift_cq_count_done - count completions with success
 * @sqp: the QP that they are of.
 * @scq: its send or its receive CQ.
 * @from: from shift_cq_count_begin().
 * @recvs: count those of receives, else those of sends.
 * @slot: scratch for one slot of the CQ.
 *
 * Return: the number; -EOVERFLOW: the CQ went round.
 */
int shift_cq_count_done(struct shift_qp *sqp, struct shift_cq *scq, u32 from, bool recvs, u8 *slot)
{
	const struct shift_ring *ring = &scq->pins.ring;
	const struct ib_uverbs_wc *wc = (void *)slot;
	u32 i, end = shift_rxe_producer(ring);
	int n = 0;

	if (!cq_is_stamped(ring, from, slot))
		return -EOVERFLOW;
	for (i = from & (ring->slots - 1); i != end; i = (i + 1) & (ring->slots - 1)) {
		shift_ring_copy_slot(ring, i, slot);
		if (wc->qp_num == sqp->qpn && wc->status == IB_WC_SUCCESS &&
		    !!(wc->opcode & IB_WC_RECV) == recvs)
			n++;
	}
	return n;
}

static u32 cq_mark_error(struct shift_cq *scq)
{
	u32 consumer = 0;

	spin_lock_bh(&scq->lock);
	if (scq->registered) {
		consumer = shift_rxe_consumer(&scq->pins.ring);
		cq_stamp(&scq->pins.ring, consumer);
	}
	spin_unlock_bh(&scq->lock);
	return consumer;
}

/**
 * shift_cq_count_mark_error - note the position of a QP's first error completion
 * @sqp: the QP; the application is about to poll that completion.
 * @status: its status.
 *
 * From this position on shift_cq_count_errors() counts the QP's error completions: one for each
 * operation that was outstanding.
 *
 * Context: any that may take a spinlock.
 */
void shift_cq_count_mark_error(struct shift_qp *sqp, u32 status)
{
	sqp->fo.error_pos = cq_mark_error(sqp->scq);
	sqp->fo.error_rpos = cq_mark_error(sqp->rcq);
	sqp->fo.error_status = status;
}

/**
 * shift_cq_count_errors - count error completions, one for each operation that was flushed
 * @sqp: the QP that they are of.
 * @scq: its send or its receive CQ.
 * @pos: position from shift_cq_count_mark_error(), if that was called.
 * @end: the CQ's producer when the QP's rings were copied: an operation that is flushed later is
 *	not in the copies either.
 * @least: number of entries that the CQ needs, so that no completion can be missing.
 * @flush: is given each wr_id, newest first; NULL: completions are only counted.
 * @slot: scratch for one slot of the CQ.
 *
 * Return: the number; -ENODATA: the CQ is full, went round, or is too small.
 */
int shift_cq_count_errors(struct shift_qp *sqp, struct shift_cq *scq, u32 pos, u32 end, u32 least,
			  struct shift_flush *flush, u8 *slot)
{
	const struct shift_ring *ring = &scq->pins.ring;
	const struct ib_uverbs_wc *wc = (void *)slot;
	u32 first, i, mask = ring->slots - 1;
	int n = 0;

	first = shift_rxe_consumer(ring);
	if (mask < least || ((shift_rxe_producer(ring) + 1) & mask) == first)
		return -ENODATA;
	if (sqp->fo.error_status) {
		first = pos;
		if (!cq_is_stamped(ring, first, slot))
			return -ENODATA;
	}
	for (i = end & mask; i != (first & mask); ) {
		i = (i - 1) & mask;
		shift_ring_copy_slot(ring, i, slot);
		/* rxe may flush one receive of an SRQ, too, which is none of the QP's operations */
		if (wc->qp_num != sqp->qpn || !wc->status || shift_srq_is_recv(sqp, wc->wr_id))
			continue;
		if (flush)
			shift_flush_take(flush, wc->wr_id);
		n++;
	}
	return n;
}

/* Has the QP an error noted from which its fence is going to count? */
static bool qp_counts_later(const struct shift_qp *sqp, const struct shift_cq *scq)
{
	u32 state = READ_ONCE(sqp->fo.state);

	return (sqp->scq == scq || sqp->rcq == scq) &&
	       test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags) &&
	       !test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags) && state != SHIFT_ST_OFF &&
	       state != SHIFT_ST_APP && state != SHIFT_ST_FAIL;
}

/**
 * shift_cq_count_settle - wait for fences that will count error completions of a CQ
 * @scq: about to be resized.
 *
 * A resize loses completions that were polled, and with them the errors of a QP that has shown
 * its first one and is not fenced yet.
 *
 * Context: process context; sleeps, for SETTLE_US (scaled) at most.
 */
void shift_cq_count_settle(const struct shift_cq *scq)
{
	u64 end = shift_from_now_us(SETTLE_US);
	unsigned long index = 0;
	struct shift_qp *sqp;

	while ((sqp = shift_qp_next(&index))) {
		while (qp_counts_later(sqp, scq) && ktime_get_ns() < end)
			usleep_range(500, 1000);
		shift_qp_put(sqp);
	}
}
