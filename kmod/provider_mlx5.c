// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs of mlx5: WQEs of one or more blocks, in a ring that says nothing of what was
 * posted or completed; that is in the doorbell record and in the CQ.  The provider posts
 * to a device of its own, without a call, so that nothing keeps it off its rings.
 */
#include <linux/moduleparam.h>
#include "provider_mlx5.h"

/* Until what Documentation/mlx5.md assumes of the device was seen on one. */
static bool mlx5_enabled;
module_param_named(mlx5, mlx5_enabled, bool, 0644);
MODULE_PARM_DESC(mlx5, "protect queue pairs of mlx5 devices (not proven on hardware)");

#define CAUSE_MOST	4096	/* completions to look at under a spinlock */
#define ARM_SOLICITED	(1u << 24)

static int mlx5_pin_cq(struct shift_cq_pins *pins, const struct shift_abi_reg_cq *reg)
{
	int err;

	if ((reg->stride != 64 && reg->stride != 128) || reg->db_addr & 7)
		return -EINVAL;
	err = shift_ring_pin(&pins->ring, reg->ring.addr, reg->ring.len, reg->stride,
			     !pins->again);
	return err ?: shift_word_pin(&pins->db, reg->db_addr);
}

static int mlx5_pin_qp(struct shift_qp_pins *pins, const struct shift_abi_reg_qp *reg)
{
	int err;

	if (!READ_ONCE(mlx5_enabled))
		return -EOPNOTSUPP;
	/* the anchor is written in one piece there */
	if (!IS_ENABLED(CONFIG_64BIT) ||
	    reg->create_flags & (SHIFT_QP_CREATE_SIGNATURE | SHIFT_QP_CREATE_FOREIGN))
		return -EOPNOTSUPP;
	if (reg->create_flags & ~SHIFT_QP_CREATE_FLAGS_ALL || reg->db_addr & 7 ||
	    !reg->anchor_addr || reg->anchor_addr & 7 || reg->sq_lock_addr ||
	    reg->rq_lock_addr || reg->lock_free || (reg->rq.addr && reg->rq_slot < 16) ||
	    reg->rq_slot > SHIFT_MLX5_MAX_SLOT || !reg->rq.addr != !reg->rq_tail_addr)
		return -EINVAL;
	err = shift_ring_pin(&pins->sq, reg->sq.addr, reg->sq.len, SHIFT_MLX5_BLOCK,
			     true);
	if (!err && reg->rq.addr)
		err = shift_ring_pin(&pins->rq, reg->rq.addr, reg->rq.len, reg->rq_slot, true);
	if (!err)
		err = shift_word_pin(&pins->rq_word, reg->db_addr);
	if (!err)
		err = shift_word_pin(&pins->sq_word, reg->db_addr + sizeof(u32));
	if (!err)
		err = shift_word_pin(&pins->anchor, reg->anchor_addr);
	if (!err && (pins->sq.slots > SHIFT_MLX5_MAX_RING || pins->rq.slots > SHIFT_MLX5_MAX_RING))
		err = -EINVAL;
	if (!err)
		err = shift_word_pin(&pins->sq_tail, reg->sq_tail_addr);
	if (!err)
		err = shift_ring_pin_words(&pins->sq_heads, reg->sq_heads_addr, pins->sq.slots,
					   true);
	if (!err && reg->rq.addr)
		err = shift_word_pin(&pins->rq_tail, reg->rq_tail_addr);
	if (err)
		return err;
	/* each may have one block, and the ring be full; a ledger has one free */
	pins->entries = 2 * pins->sq.slots;
	pins->mlx5 = kvzalloc(struct_size(pins->mlx5, at, pins->entries), GFP_KERNEL);
	return pins->mlx5 ? 0 : -ENOMEM;
}

static u32 arm_word(const struct shift_cq *scq)
{
	struct shift_word word = { .page = scq->db.page, .offset = scq->db.offset + 4 };

	return be32_to_cpu((__force __be32)shift_word_read(&word));
}

/* The word begins as 0, and is so for one more arm: one before the first completion. */
static bool mlx5_sleeps(const struct shift_cq *scq)
{
	return arm_word(scq);
}

/*
 * Does somebody wait for an event that nobody has fired?  @solicited: it is of an error, or
 * of a receive; scq->lock.
 *
 * The arm word is written by the provider: a sequence number, which moves on with each
 * event, and the consumer's index, which moves on with each of the device's completions.
 * A device fires once for each number; whether it has we cannot tell, so that an
 * event may come twice.  The word begins as 0, which is an arm, too.  True once for each
 * value of the word: numbers come round after four events.
 */
static bool mlx5_armed(struct shift_cq *scq, bool solicited)
{
	u32 arm = arm_word(scq);

	if (scq->fired == (u64)arm + 1 || (arm & ARM_SOLICITED && !solicited))
		return false;
	scq->fired = (u64)arm + 1;
	return true;
}

/* sqp->sq_psn and the anchor, which is 0 then, say it all */
static void mlx5_starts(struct shift_qp *sqp)
{
	sqp->mlx5->sends_again = false;
	sqp->mlx5->recvs_again = false;
}

static u32 mlx5_cause(struct shift_qp *sqp)
{
	struct shift_mlx5_found found = {};

	spin_lock(&sqp->scq->lock);
	if (sqp->scq->registered)
		shift_mlx5_cq_find(&sqp->scq->ring, shift_mlx5_consumer(sqp->scq), sqp->qpn,
				   false, CAUSE_MOST, &found);
	spin_unlock(&sqp->scq->lock);
	return found.cause;
}

static void mlx5_first_error(struct shift_qp *sqp, u32 status)
{
	sqp->error_status = status;
}

static bool mlx5_hold(struct shift_qp *sqp)
{
	return false;
}

/* Nothing is kept back before the fence. */
static void mlx5_doorbell(struct shift_qp *sqp)
{
}

static u32 mlx5_away_flags(const struct shift_qp *sqp)
{
	return SHIFT_QP_FLAG_KICK;
}

static u16 *index_at(const struct shift_qp *sqp, u64 seq)
{
	return &sqp->mlx5->at[shift_ledger_slot(&sqp->ledger, seq)];
}

/* The kernel's copy of the ring, of what is posted up to @producer. */
static struct shift_mlx5_sq copied(const struct shift_qp *sqp, u16 producer)
{
	return (struct shift_mlx5_sq) {
		.ring = sqp->ledger.raw,
		.blocks = sqp->ledger.slots / 2,
		.producer = producer,
		.qpn = sqp->qpn,
	};
}

static void copy_block(struct shift_qp *sqp, u16 index)
{
	u32 block = index & (sqp->sq.slots - 1);

	shift_ring_copy_slot(&sqp->sq, block, sqp->ledger.raw + (size_t)block * SHIFT_MLX5_BLOCK);
}

/* Blocks of the WQE that begins with one that was copied, one at least. */
static u32 blocks_of(const struct shift_qp *sqp, u16 index)
{
	u32 block = index & (sqp->sq.slots - 1);
	struct shift_mlx5_ctrl ctrl;

	memcpy(&ctrl, sqp->ledger.raw + (size_t)block * SHIFT_MLX5_BLOCK, sizeof(ctrl));
	return clamp_t(u32, DIV_ROUND_UP((be32_to_cpu(ctrl.qpn_chunks) & 0xff) * SHIFT_MLX5_CHUNK,
					 SHIFT_MLX5_BLOCK), 1, SHIFT_MLX5_MAX_BLOCKS);
}

/* Atomics in the last lap of the ring: mlx5's driver posts none for the kernel. */
static bool mlx5_keeps(struct shift_qp *sqp)
{
	struct shift_mlx5_ctrl ctrl;
	u32 i, op;

	for (i = 0; i < sqp->sq.slots; i++) {
		copy_block(sqp, i);
		memcpy(&ctrl, sqp->ledger.raw + (size_t)i * SHIFT_MLX5_BLOCK, sizeof(ctrl));
		op = be32_to_cpu(ctrl.opmod_index_opcode) & 0xff;
		if (be32_to_cpu(ctrl.qpn_chunks) >> 8 == sqp->qpn &&
		    (op == SHIFT_MLX5_OP_ATOMIC_CS || op == SHIFT_MLX5_OP_ATOMIC_FA))
			return true;
	}
	return false;
}

/*
 * Behind a WQE that is malformed nothing can be found: it stands for all that was posted
 * until then.
 */
int shift_mlx5_take(struct shift_qp *sqp, struct shift_wr *wr)
{
	u16 i, index = *index_at(sqp, sqp->ledger.head);
	struct shift_mlx5_wqe *wqe = &sqp->mlx5->wqe;
	u16 producer = shift_mlx5_counter(&sqp->sq_word);
	u16 posted = producer - index;
	enum shift_mlx5_refusal why;
	struct shift_mlx5_sq sq;
	u32 blocks;

	if (!posted) {
		sqp->mlx5->anchor = shift_word_read64(&sqp->anchor);
		return 0;
	}
	copy_block(sqp, index);
	blocks = min_t(u32, blocks_of(sqp, index), posted);
	for (i = 1; i < blocks; i++)
		copy_block(sqp, index + i);
	sq = copied(sqp, producer);
	why = shift_mlx5_decode(&sq, index, wqe);
	*index_at(sqp, sqp->ledger.head + 1) = index + (wqe->blocks ?: posted);
	if (why)
		return shift_mlx5_refusal_errno(why);
	*wr = wqe->wr;
	return 1;
}

static int mlx5_decode(struct shift_qp *sqp, u64 seq, struct shift_wr *wr)
{
	struct shift_mlx5_sq sq = copied(sqp, *index_at(sqp, seq + 1));
	enum shift_mlx5_refusal why;

	why = shift_mlx5_decode(&sq, *index_at(sqp, seq), &sqp->mlx5->wqe);
	*wr = sqp->mlx5->wqe.wr;
	return shift_mlx5_refusal_errno(why);
}

static u64 mlx5_wr_id(const struct shift_qp *sqp, u64 seq)
{
	return *index_at(sqp, seq);
}

/* The provider learns it with the completion. */
static void mlx5_completed(struct shift_qp *sqp, u64 seq)
{
}

static u32 mlx5_recvs_posted(const struct shift_qp *sqp)
{
	u16 n = shift_mlx5_counter(&sqp->rq_word) - (u16)sqp->recvs.head;

	return n <= sqp->rq.slots ? n : 0;
}

static int mlx5_decode_recv(const struct shift_qp *sqp, u64 seq, struct shift_wr *wr)
{
	struct shift_mlx5_rq rq = {
		.ring = sqp->recvs.raw,
		.slots = sqp->recvs.slots,
		.slot_size = sqp->recvs.slot_size,
	};

	return shift_mlx5_refusal_errno(shift_mlx5_decode_recv(&rq, seq, wr));
}

static u64 mlx5_recv_wr_id(const struct shift_qp *sqp, u64 seq)
{
	return (u16)seq;
}

/* What is posted meanwhile lies behind the anchor that was kept. */
static int mlx5_rebase(struct shift_qp *sqp, struct shift_abi_rebase *base)
{
	u16 index = *index_at(sqp, sqp->ledger.head);
	u64 anchor = sqp->mlx5->anchor;

	if (SHIFT_MLX5_ANCHOR_INDEX(anchor) != index)
		anchor = shift_word_read64(&sqp->anchor);	/* it was half written */
	if (SHIFT_MLX5_ANCHOR_INDEX(anchor) != index)
		return -EAGAIN;
	base->sq_base = index;
	base->rq_base = (u16)sqp->recvs.done;
	base->packets = anchor & ~0xffffULL;
	return 0;
}

static void mlx5_rebased(struct shift_qp *sqp, const struct shift_abi_rebase *base)
{
	sqp->mlx5->sends_again = true;
	sqp->mlx5->recvs_again = true;
	sqp->mlx5->number = base->sq_number;
	*index_at(sqp, sqp->ledger.head) = 0;
	sqp->mlx5->anchor = 0;
}

const struct shift_provider shift_provider_mlx5 = {
	.id = SHIFT_PROVIDER_MLX5,
	.driver = RDMA_DRIVER_MLX5,
	.pin_cq = mlx5_pin_cq,
	.pin_qp = mlx5_pin_qp,
	.armed = mlx5_armed,
	.sleeps = mlx5_sleeps,
	.starts = mlx5_starts,
	.movable = shift_mlx5_movable,
	.cause = mlx5_cause,
	.first_error = mlx5_first_error,
	.hold = mlx5_hold,
	.still = shift_mlx5_still,
	.keeps = mlx5_keeps,
	.doorbell = mlx5_doorbell,
	.fence = shift_mlx5_fence,
	.away_flags = mlx5_away_flags,
	.kick_sends = true,
	.take = shift_mlx5_take,
	.decode = mlx5_decode,
	.wr_id = mlx5_wr_id,
	.completed = mlx5_completed,
	.recvs_posted = mlx5_recvs_posted,
	.decode_recv = mlx5_decode_recv,
	.recv_wr_id = mlx5_recv_wr_id,
	.recvs_completed = mlx5_completed,
	.rebase = mlx5_rebase,
	.rebased = mlx5_rebased,
};
