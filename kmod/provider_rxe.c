// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs of rxe: a slot of the ring is an entry of the ledger, by its index; both
 * indices of a ring lie in its head; a doorbell is the post_send op without a request.
 */
#include <rdma/ib_user_verbs.h>
#include "mw.h"
#include "provider.h"

static int rxe_pin_cq(struct shift_cq_pins *pins, const struct shift_abi_reg_cq *reg)
{
	int err;

	if (reg->stride || reg->db_addr)
		return -EINVAL;
	err = shift_ring_pin_rxe(&pins->ring, reg->ring.addr, reg->ring.len);
	if (!err && pins->ring.slot_size < sizeof(struct ib_uverbs_wc) + sizeof(u64))
		err = -EINVAL;
	return err;
}

static int rxe_pin_qp(struct shift_qp_pins *pins, const struct shift_abi_reg_qp *reg)
{
	int err;

	if (reg->db_addr || reg->rq_slot || reg->create_flags || reg->anchor_addr ||
	    reg->sq_tail_addr || reg->sq_heads_addr || reg->rq_tail_addr)
		return -EINVAL;
	err = shift_ring_pin_rxe(&pins->sq, reg->sq.addr, reg->sq.len);
	if (!err && reg->rq.addr)
		err = shift_ring_pin_rxe(&pins->rq, reg->rq.addr, reg->rq.len);
	if (!err)
		err = shift_word_pin(&pins->sq_word, reg->sq_lock_addr);
	if (!err && reg->rq.addr)
		err = shift_word_pin(&pins->rq_word, reg->rq_lock_addr);
	if (!err && pins->sq.slot_size < shift_rxe_slot_min())
		err = -EINVAL;
	if (!err && pins->rq.npages && pins->rq.slot_size < shift_rxe_recv_slot_min())
		err = -EINVAL;
	pins->lock_free = reg->lock_free;
	pins->entries = pins->sq.slots;
	return err;
}

/* Mark in the send ring that nothing was completed yet. */
static void rxe_starts(struct shift_qp *sqp)
{
	u32 mark = SHIFT_RXE_START;

	shift_ring_write_slot(&sqp->sq, shift_ring_consumer(&sqp->sq) - 1,
			      shift_rxe_first_psn_offset(), &mark, sizeof(mark));
}

/* Is all that is outstanding of a kind? */
static bool all_are(struct shift_qp *sqp,
		    bool (*kind)(const struct shift_qp *sqp, const struct shift_wr *wr))
{
	u32 mask = sqp->sq.slots - 1;
	struct shift_wr wr;
	u32 i, end;
	u8 *slot;

	end = shift_ring_producer(&sqp->sq);
	for (i = shift_ring_consumer(&sqp->sq); i != end; i = (i + 1) & mask) {
		slot = shift_ledger_raw(&sqp->ledger, i);
		shift_ring_copy_slot(&sqp->sq, i, slot);
		if (shift_rxe_decode(slot, sqp->sq.slot_size, &wr) || !kind(sqp, &wr))
			return false;
	}
	return true;
}

static int rxe_movable(struct shift_qp *sqp)
{
	/* what was done with windows is not known, or means nothing to the peer */
	if (READ_ONCE(sqp->spd->windows) && !sqp->windows)
		return -EOPNOTSUPP;
	return all_are(sqp, shift_qp_can_move) ? 0 : -EOPNOTSUPP;
}

static bool not_once(const struct shift_qp *sqp, const struct shift_wr *wr)
{
	return !(shift_ledger_kind(wr->opcode) & SHIFT_ENTRY_ONCE);
}

static bool rxe_once(struct shift_qp *sqp)
{
	return !all_are(sqp, not_once);
}

static bool rxe_still(struct shift_qp *sqp)
{
	return shift_ring_consumer(&sqp->sq) == shift_ring_producer(&sqp->sq);
}

static void rxe_doorbell(struct shift_qp *sqp)
{
	const struct ib_send_wr *bad;

	sqp->sdev->saved.post_send(sqp->qp, NULL, &bad);
}

/* Sends have a doorbell; of receives we are told only if the provider does so. */
static u32 rxe_away_flags(const struct shift_qp *sqp)
{
	return sqp->rq.npages ? SHIFT_QP_FLAG_KICK : 0;
}

static int rxe_take(struct shift_qp *sqp, struct shift_wr *wr)
{
	struct shift_ledger *l = &sqp->ledger;
	u8 *raw = shift_ledger_raw(l, l->head);
	struct shift_rxe_mark mark;
	int err;

	if (shift_ledger_slot(l, l->head) == shift_ring_producer(&sqp->sq))
		return 0;
	shift_ring_copy_slot(&sqp->sq, shift_ledger_slot(l, l->head), raw);
	err = shift_rxe_mark(raw, l->slot_size, &mark);
	if (!err && mark.first_psn != SHIFT_RXE_UNSENT)
		err = -EINVAL;	/* zeroed by the RESET while it was posted */
	if (!err)
		err = shift_rxe_decode(raw, l->slot_size, wr);
	return err ?: 1;
}

static int rxe_decode(struct shift_qp *sqp, u64 seq, struct shift_wr *wr)
{
	struct shift_ledger *l = &sqp->ledger;

	return shift_rxe_decode(shift_ledger_raw(l, seq), l->slot_size, wr);
}

/* It is what a slot of either ring begins with. */
static u64 slot_wr_id(const u8 *slot)
{
	u64 wr_id;

	memcpy(&wr_id, slot, sizeof(wr_id));
	return wr_id;
}

static u64 rxe_wr_id(const struct shift_qp *sqp, u64 seq)
{
	return slot_wr_id(shift_ledger_raw((struct shift_ledger *)&sqp->ledger, seq));
}

/* Not only forward: rxe may have drained the ring of a QP in RESET. */
static void rxe_completed(struct shift_qp *sqp, u64 seq)
{
	shift_ring_set_consumer(&sqp->sq, shift_ledger_slot(&sqp->ledger, seq));
}

static u32 rxe_recvs_posted(const struct shift_qp *sqp)
{
	return (shift_ring_producer(&sqp->rq) - (u32)sqp->recvs.head) & (sqp->rq.slots - 1);
}

static int rxe_decode_recv(const struct shift_qp *sqp, u64 seq, struct shift_wr *wr)
{
	return shift_rxe_decode_recv(shift_recv_raw(&sqp->recvs, seq), sqp->recvs.slot_size, wr);
}

static u64 rxe_recv_wr_id(const struct shift_qp *sqp, u64 seq)
{
	return slot_wr_id(shift_recv_raw(&sqp->recvs, seq));
}

static void rxe_recvs_completed(struct shift_qp *sqp, u64 seq)
{
	shift_ring_set_consumer(&sqp->rq, (u32)seq);
}

const struct shift_provider shift_provider_rxe = {
	.id = SHIFT_PROVIDER_RXE,
	.driver = RDMA_DRIVER_RXE,
	.pin_cq = rxe_pin_cq,
	.pin_qp = rxe_pin_qp,
	.starts = rxe_starts,
	.movable = rxe_movable,
	.cause = shift_rxe_cause,
	.first_error = shift_tally_mark_error,
	.hold = shift_rxe_hold,
	.still = rxe_still,
	.once = rxe_once,
	.doorbell = rxe_doorbell,
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
