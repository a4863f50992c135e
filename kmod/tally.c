// SPDX-License-Identifier: GPL-2.0
/*
 * Counting completions of a QP in the memory of a user's CQ: what rxe gave in the
 * time between a look at its rings and the RESET.  The memory is the user's (ring.h).
 *
 * A stamp in the slot before the first one counted tells whether the CQ went round
 * meanwhile: the tail of a slot is nobody's, but a new completion overwrites it.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <rdma/ib_user_verbs.h>
#include "provider.h"

#define CQ_STAMP	0x5348494654535450ull
#define SETTLE_US	100000	/* for a fence to count what a resize would lose; scaled */

static void stamp(const struct shift_ring *ring, u32 first)
{
	u64 value = CQ_STAMP;

	shift_ring_write_slot(ring, first - 1, ring->slot_size - sizeof(value), &value,
			      sizeof(value));
}

static bool stamped(const struct shift_ring *ring, u32 first, u8 *slot)
{
	u64 value;

	shift_ring_copy_slot(ring, first - 1, slot);
	memcpy(&value, slot + ring->slot_size - sizeof(value), sizeof(value));
	return value == CQ_STAMP;
}

/* Count from the next completion on: its index. */
u32 shift_tally_begin(struct shift_cq *scq)
{
	u32 producer = shift_ring_producer(&scq->ring);

	stamp(&scq->ring, producer);
	return producer;
}

/**
 * shift_tally_done - completions with success
 * @sqp: whose.
 * @scq: its send or its receive CQ.
 * @from: from shift_tally_begin().
 * @recvs: count those of receives, else those of sends.
 * @slot: scratch for one slot of the CQ.
 *
 * Return: the number; -EOVERFLOW: the CQ went round.
 */
int shift_tally_done(struct shift_qp *sqp, struct shift_cq *scq, u32 from, bool recvs, u8 *slot)
{
	const struct shift_ring *ring = &scq->ring;
	const struct ib_uverbs_wc *wc = (void *)slot;
	u32 i, end = shift_ring_producer(ring);
	int n = 0;

	if (!stamped(ring, from, slot))
		return -EOVERFLOW;
	for (i = from & (ring->slots - 1); i != end; i = (i + 1) & (ring->slots - 1)) {
		shift_ring_copy_slot(ring, i, slot);
		if (wc->qp_num == sqp->qpn && wc->status == IB_WC_SUCCESS &&
		    !!(wc->opcode & IB_WC_RECV) == recvs)
			n++;
	}
	return n;
}

static u32 mark_error(struct shift_cq *scq)
{
	u32 consumer = 0;

	spin_lock_bh(&scq->lock);
	if (scq->registered) {
		consumer = shift_ring_consumer(&scq->ring);
		stamp(&scq->ring, consumer);
	}
	spin_unlock_bh(&scq->lock);
	return consumer;
}

/**
 * shift_tally_mark_error - the first error completion of the QP is at hand
 * @sqp: the QP.
 * @status: its status.
 *
 * From there on its error completions will be counted: one for each operation
 * that was outstanding.
 *
 * Context: any that may take a spinlock.
 */
void shift_tally_mark_error(struct shift_qp *sqp, u32 status)
{
	sqp->error_pos = mark_error(sqp->scq);
	sqp->error_rpos = mark_error(sqp->rcq);
	sqp->error_status = status;
}

/**
 * shift_tally_errors - error completions, one for each operation that was flushed
 * @sqp: whose.
 * @scq: its send or its receive CQ.
 * @pos: where it stood at shift_tally_mark_error(), if that was called.
 * @end: its producer when the QP's rings were copied: what is flushed after that is
 *	not in the copies either.
 * @least: how many it has to have room for, so that none can be missing.
 * @flush: takes each, newest first; NULL: they are only counted.
 * @slot: scratch for one slot of the CQ.
 *
 * Return: the number; -ENODATA: the CQ is full, went round, or is too small.
 */
int shift_tally_errors(struct shift_qp *sqp, struct shift_cq *scq, u32 pos, u32 end, u32 least,
		       struct shift_flush *flush, u8 *slot)
{
	const struct shift_ring *ring = &scq->ring;
	const struct ib_uverbs_wc *wc = (void *)slot;
	u32 first, i, mask = ring->slots - 1;
	int n = 0;

	first = shift_ring_consumer(ring);
	if (mask < least || ((shift_ring_producer(ring) + 1) & mask) == first)
		return -ENODATA;
	if (sqp->error_status) {
		first = pos;
		if (!stamped(ring, first, slot))
			return -ENODATA;
	}
	for (i = end & mask; i != (first & mask); ) {
		i = (i - 1) & mask;
		shift_ring_copy_slot(ring, i, slot);
		/* one receive of an SRQ may be flushed, too: it counts for none */
		if (wc->qp_num != sqp->qpn || !wc->status || shift_srq_is_recv(sqp, wc->wr_id))
			continue;
		if (flush)
			shift_flush_take(flush, wc->wr_id);
		n++;
	}
	return n;
}

/* Has it shown an error that its fence will count from? */
static bool counts_later(const struct shift_qp *sqp, const struct shift_cq *scq)
{
	u32 state = READ_ONCE(sqp->state);

	return (sqp->scq == scq || sqp->rcq == scq) && test_bit(SHIFT_QP_ERRORED, &sqp->flags) &&
	       !test_bit(SHIFT_QP_FENCED, &sqp->flags) && state != SHIFT_ST_OFF &&
	       state != SHIFT_ST_APP && state != SHIFT_ST_FAIL;
}

/**
 * shift_tally_settle - error completions of the CQ were counted, where they have to be
 * @scq: about to be resized.
 *
 * A resize leaves behind what was polled, and with it the errors of a QP that has shown
 * its first one and is not fenced yet.
 *
 * Context: process context; sleeps, for as long as a fence may be late.
 */
void shift_tally_settle(const struct shift_cq *scq)
{
	u64 end = shift_fence_deadline(SETTLE_US);
	unsigned long index = 0;
	struct shift_qp *sqp;

	while ((sqp = shift_qp_next(&index))) {
		while (counts_later(sqp, scq) && ktime_get_ns() < end)
			usleep_range(500, 1000);
		shift_qp_put(sqp);
	}
}
