// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs of rxe: slot and ledger entry of an operation have the same index; both
 * indices of a ring are in its head; a doorbell is the post_send op without a request.
 */
#include <linux/slab.h>
#include <rdma/ib_user_verbs.h>
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/ring.h"
#include "mw/mw.h"
#include "provider/provider.h"
#include "provider/rxe/ring.h"
#include "provider/rxe/rxe.h"
#include "provider/rxe/wqe.h"
#include "pure/ledger.h"
#include "pure/wr.h"

static int rxe_pin_cq(struct shift_cq *scq, struct shift_new_cq *new,
		      const struct shift_abi_reg_cq *reg)
{
	u32 entries;
	int err;

	if (reg->stride || reg->db_addr)
		return -EINVAL;
	spin_lock_bh(&scq->lock);
	entries = scq->cq ? scq->cq->cqe : 0;
	spin_unlock_bh(&scq->lock);
	err = shift_rxe_ring_pin(&new->pins.ring, reg->ring.addr, reg->ring.len, entries,
				 max(sizeof(struct ib_wc), sizeof(struct ib_uverbs_wc)));
	if (!err && new->pins.ring.slot_size < sizeof(struct ib_uverbs_wc) + sizeof(u64))
		err = -EINVAL;
	return err;
}

static int rxe_pin_rings(struct shift_qp_pins *pins, const struct shift_abi_reg_qp *reg,
			 const struct ib_qp_cap *cap)
{
	int err;

	err = shift_rxe_ring_pin(&pins->sq, reg->sq.addr, reg->sq.len, cap->max_send_wr,
				 shift_rxe_slot_size(cap->max_send_sge, cap->max_inline_data));
	if (!err && reg->rq.addr)
		err = shift_rxe_ring_pin(&pins->rq, reg->rq.addr, reg->rq.len, cap->max_recv_wr,
					 shift_rxe_recv_slot_size(cap->max_recv_sge));
	if (!err)
		err = shift_word_pin(&pins->word[SHIFT_RXE_SQ_LOCK], reg->sq_lock_addr);
	if (!err && reg->rq.addr)
		err = shift_word_pin(&pins->word[SHIFT_RXE_RQ_LOCK], reg->rq_lock_addr);
	if (!err && pins->sq.slot_size < shift_rxe_slot_min())
		err = -EINVAL;
	if (!err && pins->rq.npages && pins->rq.slot_size < shift_rxe_recv_slot_min())
		err = -EINVAL;
	return err;
}

static int rxe_pin_qp(struct shift_qp *sqp, struct shift_new_qp *new,
		      const struct shift_abi_reg_qp *reg)
{
	struct shift_rxe_qp *priv;
	int err;

	if (reg->db_addr || reg->rq_slot || reg->create_flags || reg->anchor_addr ||
	    reg->sq_tail_addr || reg->sq_heads_addr || reg->rq_tail_addr)
		return -EINVAL;
	err = rxe_pin_rings(&new->pins, reg, &sqp->app.init.cap);
	if (err)
		return err;
	priv = kzalloc(sizeof(*priv), GFP_KERNEL_ACCOUNT);
	if (!priv)
		return -ENOMEM;
	priv->lock_free = reg->lock_free;
	/* if there is no memory for a journal, the QP is not protected once it has windows */
	if (shift_mw_enabled(sqp->sdev))
		priv->journal = shift_mw_journal_new(&new->pins.sq);
	new->entries = new->pins.sq.slots;
	new->priv = priv;
	new->tracks_mws = priv->journal;
	return 0;
}

static void rxe_release(void *priv)
{
	struct shift_rxe_qp *rxe = priv;

	shift_mw_journal_free(rxe->journal);
	kfree(rxe);
}

static u32 rxe_send_slots(const struct shift_qp *sqp)
{
	return sqp->rings.pins.sq.slots;
}

/* Mark in the send ring that nothing was completed yet. */
static void rxe_starts(struct shift_qp *sqp)
{
	u32 mark = SHIFT_RXE_START;

	shift_ring_write_slot(&sqp->rings.pins.sq, shift_rxe_consumer(&sqp->rings.pins.sq) - 1,
			      shift_rxe_first_psn_offset(), &mark, sizeof(mark));
}

/* Does @is hold for all outstanding operations? */
static bool all_are(struct shift_qp *sqp,
		    bool (*kind)(const struct shift_qp *sqp, const struct shift_wr *wr))
{
	u32 mask = sqp->rings.pins.sq.slots - 1;
	struct shift_wr wr;
	u32 i, end;
	u8 *slot;

	end = shift_rxe_producer(&sqp->rings.pins.sq);
	for (i = shift_rxe_consumer(&sqp->rings.pins.sq); i != end; i = (i + 1) & mask) {
		slot = shift_ledger_raw(&sqp->rec.ledger, i);
		shift_ring_copy_slot(&sqp->rings.pins.sq, i, slot);
		if (shift_rxe_decode(slot, sqp->rings.pins.sq.slot_size, &wr) || !kind(sqp, &wr))
			return false;
	}
	return true;
}

/*
 * Of rxe with FLUSH, newer than 6.1, a packet that the netdev refuses is an error of the QP, and
 * flushes leave no trace in the ring.
 */
#ifdef SHIFT_HAVE_RXE_FLUSH
#define FLUSHES_ARE_COUNTED	true
#else
#define FLUSHES_ARE_COUNTED	false
#endif

/* Was a receive ever posted?  Its slot is not zero, as rxe made it, or the indices are not. */
static bool has_received(const struct shift_qp *sqp)
{
	const struct shift_ring *rq = &sqp->rings.pins.rq;
	u32 i;

	if (!rq->npages)
		return false;
	if (shift_rxe_producer(rq))
		return true;
	for (i = 0; i < rq->slot_size; i += sizeof(u32))
		if (shift_ring_slot_u32(rq, 0, i))
			return true;
	return false;
}

/*
 * Do its CQs have room for all that is flushed if the QP breaks?  Where a cable that is pulled
 * breaks it, what was outstanding is told by its error completions, each of which has to be there.
 */
static bool cqs_hold_flushes(struct shift_qp *sqp)
{
	u64 sends = sqp->app.asked_send, recvs = has_received(sqp) ? sqp->app.asked_recv : 0;
	bool fits;

	if (!FLUSHES_ARE_COUNTED)
		return true;
	if (sqp->scq == sqp->rcq) {
		sends += recvs;
		recvs = 0;
	}
	down_read(&sqp->sdev->ring_sem);
	/* one that is being resized is looked at again */
	fits = !shift_cq_registered(sqp->scq) || !shift_cq_registered(sqp->rcq) ||
	       (sqp->scq->pins.ring.slots > sends && sqp->rcq->pins.ring.slots > recvs);
	up_read(&sqp->sdev->ring_sem);
	return fits;
}

static int rxe_movable(struct shift_qp *sqp)
{
	return all_are(sqp, shift_qp_can_move) && cqs_hold_flushes(sqp) ? 0 : -EOPNOTSUPP;
}

static bool not_once(const struct shift_qp *sqp, const struct shift_wr *wr)
{
	return !(shift_ledger_kind(wr->opcode) & SHIFT_ENTRY_ONCE);
}

static bool rxe_once(struct shift_qp *sqp)
{
	return !all_are(sqp, not_once);
}

static bool rxe_still(struct shift_qp *sqp, u32 *done)
{
	*done = shift_rxe_consumer(&sqp->rings.pins.sq);
	return *done == shift_rxe_producer(&sqp->rings.pins.sq);
}

static void rxe_doorbell(struct shift_qp *sqp)
{
	const struct ib_send_wr *bad;

	sqp->sdev->saved.post_send(sqp->qp, NULL, &bad);
}

/* Doorbells of sends reach the kernel.  KICK is needed for receives, if there is a receive ring. */
static u32 rxe_away_flags(const struct shift_qp *sqp)
{
	return sqp->rings.pins.rq.npages ? SHIFT_QP_FLAG_KICK : 0;
}

static int rxe_take(struct shift_qp *sqp, struct shift_wr *wr)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	u8 *raw = shift_ledger_raw(l, l->head);
	struct shift_rxe_mark mark;
	int err;

	if (shift_ledger_slot(l, l->head) == shift_rxe_producer(&sqp->rings.pins.sq))
		return 0;
	shift_ring_copy_slot(&sqp->rings.pins.sq, shift_ledger_slot(l, l->head), raw);
	err = shift_rxe_mark(raw, l->slot_size, &mark);
	if (!err && mark.first_psn != SHIFT_RXE_UNSENT)
		err = -EINVAL;	/* RESET zeroed the slot while it was being posted */
	if (!err)
		err = shift_rxe_decode(raw, l->slot_size, wr);
	return err ?: 1;
}

static int rxe_decode(struct shift_qp *sqp, u64 seq, struct shift_wr *wr)
{
	struct shift_ledger *l = &sqp->rec.ledger;

	return shift_rxe_decode(shift_ledger_raw(l, seq), l->slot_size, wr);
}

/* A slot of either ring begins with its wr_id. */
static u64 slot_wr_id(const u8 *slot)
{
	u64 wr_id;

	memcpy(&wr_id, slot, sizeof(wr_id));
	return wr_id;
}

static u64 rxe_wr_id(const struct shift_qp *sqp, u64 seq)
{
	return slot_wr_id(shift_ledger_raw((struct shift_ledger *)&sqp->rec.ledger, seq));
}

/* Set the consumer's index, also backwards: rxe may have drained the ring of a QP in RESET. */
static void rxe_completed(struct shift_qp *sqp, u64 seq)
{
	shift_rxe_set_consumer(&sqp->rings.pins.sq, shift_ledger_slot(&sqp->rec.ledger, seq));
}

static u32 rxe_recvs_posted(const struct shift_qp *sqp)
{
	const struct shift_ring *rq = &sqp->rings.pins.rq;

	return (shift_rxe_producer(rq) - (u32)sqp->rec.recvs.head) & (rq->slots - 1);
}

static int rxe_decode_recv(const struct shift_qp *sqp, u64 seq, struct shift_wr *wr)
{
	return shift_rxe_decode_recv(shift_recv_raw(&sqp->rec.recvs, seq), sqp->rec.recvs.slot_size,
				     wr);
}

static u64 rxe_recv_wr_id(const struct shift_qp *sqp, u64 seq)
{
	return slot_wr_id(shift_recv_raw(&sqp->rec.recvs, seq));
}

static void rxe_recvs_completed(struct shift_qp *sqp, u64 seq)
{
	shift_rxe_set_consumer(&sqp->rings.pins.rq, (u32)seq);
}

static const struct shift_cq_ops rxe_cq_ops = {
	.pin = rxe_pin_cq,
	.leaves = shift_cq_count_settle,
	.room = shift_cq_side_room,
	.put = shift_cq_side_put,
};

const struct shift_provider shift_provider_rxe = {
	.id = SHIFT_PROVIDER_RXE,
	.driver = RDMA_DRIVER_RXE,
	.flags = SHIFT_PROVIDES_WINDOWS | SHIFT_PROVIDES_RESET_PSN | SHIFT_PROVIDES_STATE |
		 SHIFT_PROVIDES_KERNEL | SHIFT_PROVIDES_LOCAL_TWICE,
	.endless_retries = 7,
	.cq = &rxe_cq_ops,
	.pin_qp = rxe_pin_qp,
	.srq = &shift_rxe_srq_ops,
	.release = rxe_release,
	.send_slots = rxe_send_slots,
	.posting = shift_mw_journal_doorbell,
	.restarts = shift_mw_journal_restart,
	.executed = shift_mw_journal_executed,
	.invalidations = shift_mw_journal_invalidations,
	.starts = rxe_starts,
	.movable = rxe_movable,
	.cause = shift_rxe_cause,
	.first_error = shift_cq_count_mark_error,
	.hold = shift_rxe_hold,
	.still = rxe_still,
	.once = rxe_once,
	.doorbell = rxe_doorbell,
	.quiet = shift_rxe_quiet,
	.fence = shift_rxe_fence,
	.away_flags = rxe_away_flags,
	.take = rxe_take,
	.decode = rxe_decode,
	.wr_id = rxe_wr_id,
	.completed = rxe_completed,
	.recvs_posted = rxe_recvs_posted,
	.decode_recv = rxe_decode_recv,
	.recv_wr_id = rxe_recv_wr_id,
	.recvs_completed = rxe_recvs_completed,
};
