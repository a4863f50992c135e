// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs of mlx5.  The send ring holds WQEs of one or more blocks, but does not say which were
 * posted or completed: the doorbell record and the CQ do.  User space posts directly to the
 * device, without a system call, so that the kernel cannot keep it from posting.
 */
#include <linux/moduleparam.h>
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/ring.h"
#include "provider/mlx5/cq.h"
#include "provider/mlx5/format.h"
#include "provider/mlx5/mlx5.h"
#include "provider/mlx5/rewind.h"
#include "provider/mlx5/wqe.h"
#include "provider/provider.h"
#include "pure/wr.h"

#define CAUSE_MOST	4096	/* most completions to look at under a spinlock */
#define ARM_SOLICITED	(1u << 24)

static int mlx5_pin_cq(struct shift_cq *scq, struct shift_new_cq *new,
		       const struct shift_abi_reg_cq *reg)
{
	struct shift_mlx5_cq_state *state;
	int err;

	if ((reg->stride != 64 && reg->stride != 128) || reg->db_addr & 7)
		return -EINVAL;
	err = shift_ring_pin(&new->pins.ring, reg->ring.addr, reg->ring.len, reg->stride,
			     !new->again);
	if (!err)
		err = shift_word_pin(&new->pins.word, reg->db_addr);
	if (err)
		return err;
	state = kzalloc(sizeof(*state), GFP_KERNEL_ACCOUNT);
	if (!state)
		return -ENOMEM;
	mutex_init(&state->lock);
	new->priv = state;
	return 0;
}

static int mlx5_pin_words(struct shift_word *word, const struct shift_abi_reg_qp *reg)
{
	int err;

	err = shift_word_pin(&word[SHIFT_MLX5_RQ_COUNTER], reg->db_addr);
	if (!err)
		err = shift_word_pin(&word[SHIFT_MLX5_SQ_COUNTER], reg->db_addr + sizeof(u32));
	if (!err)
		err = shift_word_pin(&word[SHIFT_MLX5_ANCHOR], reg->anchor_addr);
	if (!err)
		err = shift_word_pin(&word[SHIFT_MLX5_SQ_TAIL], reg->sq_tail_addr);
	if (!err && reg->rq.addr)
		err = shift_word_pin(&word[SHIFT_MLX5_RQ_TAIL], reg->rq_tail_addr);
	return err;
}

static int mlx5_pin_qp(struct shift_qp *sqp, struct shift_new_qp *new,
		       const struct shift_abi_reg_qp *reg)
{
	struct shift_qp_pins *pins = &new->pins;
	struct shift_mlx5_qp *priv;
	int err;

	/*
	 * On 64-bit machines only, where user space writes the anchor in one piece.  A ring that
	 * shift_mlx5_decode_recv() would refuse is refused here, so that its QP is not protected:
	 * on the backup it would fail with its first receive.
	 */
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
	if (!err && (pins->sq.slots > SHIFT_MLX5_MAX_RING || pins->rq.slots > SHIFT_MLX5_MAX_RING))
		err = -EINVAL;
	if (!err)
		err = mlx5_pin_words(pins->word, reg);
	if (!err)
		err = shift_ring_pin_words(&pins->more, reg->sq_heads_addr, pins->sq.slots, true);
	if (err)
		return err;
	/* a full ring may have one WQE in each block; a ledger always has one slot free */
	new->entries = 2 * pins->sq.slots;
	priv = kvzalloc(struct_size(priv, at, new->entries), GFP_KERNEL_ACCOUNT);
	new->priv = priv;
	return priv ? 0 : -ENOMEM;
}

static void mlx5_release(void *priv)
{
	kvfree(priv);
}

/* Slots of the ring are blocks; a request takes at least one. */
static u32 mlx5_send_slots(const struct shift_qp *sqp)
{
	return min(sqp->rings.pins.sq.slots, sqp->app.asked_send);
}

static u32 arm_word(const struct shift_cq *scq)
{
	struct shift_word word = {
		.page = scq->pins.word.page, .offset = scq->pins.word.offset + sizeof(u32),
	};

	return be32_to_cpu((__force __be32)shift_word_read(&word));
}

/*
 * The arm word begins as 0.  It is also 0 if the application arms the CQ before its first
 * completion: that one is not noticed.
 */
static bool mlx5_sleeps(const struct shift_cq *scq)
{
	return arm_word(scq);
}

/*
 * Does the application wait for an event that the kernel has not raised yet?  @solicited: the
 * completion is a receive or an error.  scq->lock.
 *
 * User space writes the arm word: a sequence number, which grows with each event, and the
 * consumer's index, which grows with each completion of the device.  The device raises one event
 * for each number.  It is not known here whether it has, so that an event may come twice.
 * The word begins as 0, which means armed, too.  This is true once for each value of the word,
 * not of the number, which is the same again after four events.
 */
static bool mlx5_armed(struct shift_cq *scq, bool solicited)
{
	struct shift_mlx5_cq_state *state = scq->priv;
	u32 arm = arm_word(scq);

	lockdep_assert_held(&scq->lock);
	if (state->fired == (u64)arm + 1 || (arm & ARM_SOLICITED && !solicited))
		return false;
	state->fired = (u64)arm + 1;
	return true;
}

/* Of the beginning of an arming nothing is noted: sqp->app.sq_psn and an anchor of 0 are enough. */
static void mlx5_starts(struct shift_qp *sqp)
{
	mlx5_qp(sqp)->sends_again = false;
	mlx5_qp(sqp)->recvs_again = false;
}

static u32 mlx5_cause(struct shift_qp *sqp)
{
	struct shift_mlx5_found found = {};

	spin_lock(&sqp->scq->lock);
	if (sqp->scq->registered)
		shift_mlx5_cq_find(&sqp->scq->pins.ring, shift_mlx5_consumer(sqp->scq), sqp->qpn,
				   false, CAUSE_MOST, &found);
	spin_unlock(&sqp->scq->lock);
	return found.cause;
}

static void mlx5_first_error(struct shift_qp *sqp, u32 status)
{
	sqp->fo.error_status = status;
}

static bool mlx5_hold(struct shift_qp *sqp)
{
	return false;
}

/* No doorbell is kept back before the fence. */
static void mlx5_doorbell(struct shift_qp *sqp)
{
}

static u32 mlx5_away_flags(const struct shift_qp *sqp)
{
	return SHIFT_QP_FLAG_KICK;
}

static bool is_atomic(u32 op)
{
	return op == SHIFT_MLX5_OP_ATOMIC_CS || op == SHIFT_MLX5_OP_ATOMIC_FA ||
	       op == SHIFT_MLX5_OP_ATOMIC_MASKED_CS || op == SHIFT_MLX5_OP_ATOMIC_MASKED_FA;
}

/*
 * Is there an atomic in the ring, outstanding or not?  A proxy QP may not post atomics, as mlx5's
 * driver takes none from the kernel.
 */
static bool mlx5_keeps(struct shift_qp *sqp)
{
	struct shift_mlx5_ctrl ctrl;
	u32 i, op;

	for (i = 0; i < sqp->rings.pins.sq.slots; i++) {
		shift_mlx5_copy_block(sqp, i);
		memcpy(&ctrl, sqp->rec.ledger.raw + (size_t)i * SHIFT_MLX5_BLOCK, sizeof(ctrl));
		op = be32_to_cpu(ctrl.opmod_index_opcode) & 0xff;
		if (be32_to_cpu(ctrl.qpn_chunks) >> 8 == sqp->qpn && is_atomic(op))
			return true;
	}
	return false;
}

static int mlx5_decode(struct shift_qp *sqp, u64 seq, struct shift_wr *wr)
{
	struct shift_mlx5_sq sq = shift_mlx5_copied(sqp, *shift_mlx5_index_at(sqp, seq + 1));
	enum shift_mlx5_refusal why;

	why = shift_mlx5_decode(&sq, *shift_mlx5_index_at(sqp, seq), &mlx5_qp(sqp)->wqe);
	*wr = mlx5_qp(sqp)->wqe.wr;
	return shift_mlx5_refusal_errno(why);
}

static u64 mlx5_wr_id(const struct shift_qp *sqp, u64 seq)
{
	return *shift_mlx5_index_at(sqp, seq);
}

/* Nothing to write: user space frees the slots when it polls the completion. */
static void mlx5_completed(struct shift_qp *sqp, u64 seq)
{
}

static u32 mlx5_recvs_posted(const struct shift_qp *sqp)
{
	u16 n = shift_mlx5_counter(sqp, SHIFT_MLX5_RQ_COUNTER) - (u16)sqp->rec.recvs.head;

	return n <= sqp->rings.pins.rq.slots ? n : 0;
}

static int mlx5_decode_recv(const struct shift_qp *sqp, u64 seq, struct shift_wr *wr)
{
	struct shift_mlx5_rq rq = {
		.ring = sqp->rec.recvs.raw,
		.slots = sqp->rec.recvs.slots,
		.slot_size = sqp->rec.recvs.slot_size,
	};

	return shift_mlx5_refusal_errno(shift_mlx5_decode_recv(&rq, seq, wr));
}

static u64 mlx5_recv_wr_id(const struct shift_qp *sqp, u64 seq)
{
	return (u16)seq;
}

/* All before the kept anchor was taken in; user space moves what was posted behind it. */
static int mlx5_rebase(struct shift_qp *sqp, struct shift_abi_rebase *base)
{
	u16 index = *shift_mlx5_index_at(sqp, sqp->rec.ledger.head);
	u64 anchor = mlx5_qp(sqp)->anchor;

	/* when it was read, the anchor was not of all that was taken in */
	if (SHIFT_MLX5_ANCHOR_INDEX(anchor) != index)
		anchor = shift_word_read64(mlx5_word(sqp, SHIFT_MLX5_ANCHOR));
	if (SHIFT_MLX5_ANCHOR_INDEX(anchor) != index)
		return -EAGAIN;
	base->sq_base = index;
	base->rq_base = (u16)sqp->rec.recvs.done;
	base->packets = anchor & ~0xffffULL;
	return 0;
}

static void mlx5_rebased(struct shift_qp *sqp, const struct shift_abi_rebase *base)
{
	mlx5_qp(sqp)->sends_again = true;
	mlx5_qp(sqp)->recvs_again = true;
	mlx5_qp(sqp)->number = base->sq_number;
	*shift_mlx5_index_at(sqp, sqp->rec.ledger.head) = 0;
	mlx5_qp(sqp)->anchor = 0;
}

static const struct shift_cq_ops mlx5_cq_ops = {
	.pin = mlx5_pin_cq,
	.room = shift_cq_side_room,
	.put = shift_cq_side_put,
	.armed = mlx5_armed,
	.sleeps = mlx5_sleeps,
};

/* off: nobody has seen it work on a NIC */
static bool mlx5_kernel_users;
module_param(mlx5_kernel_users, bool, 0444);
MODULE_PARM_DESC(mlx5_kernel_users, "protect QPs of users in the kernel on mlx5 devices as well");

const struct shift_provider shift_provider_mlx5 = {
	.id = SHIFT_PROVIDER_MLX5,
	.driver = RDMA_DRIVER_MLX5,
	.protects_if = SHIFT_MLX5_PROTECTS_IF,
	.hands_back_if = SHIFT_MLX5_HANDS_BACK_IF,
	.prove = shift_mlx5_prove,
	.cq = &mlx5_cq_ops,
	.pin_qp = mlx5_pin_qp,
	.srq = &shift_mlx5_srq_ops,
	.release = mlx5_release,
	.send_slots = mlx5_send_slots,
	.starts = mlx5_starts,
	.movable = shift_mlx5_movable,
	.cause = mlx5_cause,
	.first_error = mlx5_first_error,
	.hold = mlx5_hold,
	.still = shift_mlx5_still,
	.keeps = mlx5_keeps,
	.holds_flushes = shift_mlx5_holds_flushes,
	.doorbell = mlx5_doorbell,
	.fence = shift_mlx5_fence,
	.away_flags = mlx5_away_flags,
	.flags = SHIFT_PROVIDES_SEND_KICKS | SHIFT_PROVIDES_KERNEL,
	.kernel_users = &mlx5_kernel_users,
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
