// SPDX-License-Identifier: GPL-2.0
/*
 * The reading of send and receive WQEs.  It shares nothing with the module under
 * test, so that a misreading there is not repeated here.  Stricter than hardware:
 * index and QP number of the control segment must be right.
 */
#include <linux/mlx5/cq.h>
#include <linux/slab.h>
#include "mlx5_soft.h"

#define SEG	16	/* bytes; also what ds counts */

/* A place in a WQE that was copied out of the ring. */
struct cursor {
	const u8 *at;
	const u8 *end;
};

static const void *take(struct cursor *c, size_t size)
{
	const u8 *at = c->at;

	if (c->end - c->at < size)
		return NULL;
	c->at += size;
	return at;
}

static bool add_sge(struct mls_wr *wr, u64 addr, u32 length, u32 lkey)
{
	struct ib_sge *sge = &wr->sge[wr->send.num_sge];

	if (wr->send.num_sge == MLS_MAX_SGE)
		return false;
	wr->send.num_sge++;
	sge->addr = addr;
	sge->length = length;
	sge->lkey = lkey;
	wr->flight.bytes += length;
	return true;
}

/* Inline data: copied, since the ring's slot is the user's again at completion. */
static u8 read_inline(struct mls_qp *qp, struct cursor *c, struct mls_wr *wr, u32 length)
{
	struct ib_pd *lower = to_mls_pd(qp->ibqp.pd)->lower;
	u8 *bounce = wr->flight.bounce;
	const u8 *data;

	data = take(c, ALIGN(sizeof(__be32) + length, SEG));
	if (!data || wr->send.opcode == IB_WR_RDMA_READ)
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	if (!bounce) {
		bounce = kmalloc(MLS_WQE_MAX, GFP_KERNEL);
		if (!bounce)
			return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
		wr->flight.bounce = bounce;
		to_mls_dev(qp->ibqp.device)->stats.inlines++;
	}
	/* pieces do not overlap: each has its place by its offset in the WQE */
	bounce += data - to_mls_dev(qp->ibqp.device)->wqe;
	memcpy(bounce, data + sizeof(__be32), length);
	if (!add_sge(wr, (uintptr_t)bounce, length, lower->local_dma_lkey))
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	return 0;
}

static u8 read_data(struct mls_dev *dev, struct mls_qp *qp, struct cursor *c, struct mls_wr *wr)
{
	const struct mlx5_wqe_data_seg *seg;
	u32 count;
	u8 bad;

	while (c->at < c->end) {
		if (c->end - c->at < SEG)
			return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
		seg = (const void *)c->at;
		count = be32_to_cpu(seg->byte_count);
		if (count & MLX5_INLINE_SEG) {
			bad = read_inline(qp, c, wr, count & MLX5_WQE_INLINE_SEG_BYTE_COUNT_MASK);
			if (bad)
				return bad;
			continue;
		}
		take(c, SEG);
		/* hardware reads 0 as 2 GiB, which no message has */
		if (!count)
			return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
		if (!add_sge(wr, be64_to_cpu(seg->addr), count,
			     mls_lower_key(dev, qp->ibqp.pd, be32_to_cpu(seg->lkey))))
			return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	return 0;
}

static const struct {
	enum ib_wr_opcode verb;
	bool known, remote, atomic;
} opcodes[] = {
	[MLX5_OPCODE_SEND_INVAL] = { IB_WR_SEND_WITH_INV, true },
	[MLX5_OPCODE_RDMA_WRITE] = { IB_WR_RDMA_WRITE, true, true },
	[MLX5_OPCODE_RDMA_WRITE_IMM] = { IB_WR_RDMA_WRITE_WITH_IMM, true, true },
	[MLX5_OPCODE_SEND] = { IB_WR_SEND, true },
	[MLX5_OPCODE_SEND_IMM] = { IB_WR_SEND_WITH_IMM, true },
	[MLX5_OPCODE_RDMA_READ] = { IB_WR_RDMA_READ, true, true },
	[MLX5_OPCODE_ATOMIC_CS] = { IB_WR_ATOMIC_CMP_AND_SWP, true, true, true },
	[MLX5_OPCODE_ATOMIC_FA] = { IB_WR_ATOMIC_FETCH_AND_ADD, true, true, true },
};

static int send_flags(u8 fm_ce_se)
{
	return IB_SEND_SIGNALED | (fm_ce_se & MLX5_WQE_CTRL_SOLICITED ? IB_SEND_SOLICITED : 0);
}

static u8 read_remote(struct cursor *c, struct mls_wr *wr, bool atomic)
{
	const struct mlx5_wqe_atomic_seg *operands;
	const struct mlx5_wqe_raddr_seg *remote;

	remote = take(c, sizeof(*remote));
	if (!remote)
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	if (!atomic) {
		wr->rdma.remote_addr = be64_to_cpu(remote->raddr);
		wr->rdma.rkey = be32_to_cpu(remote->rkey);
		return 0;
	}
	operands = take(c, sizeof(*operands));
	if (!operands)
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	wr->atomic.remote_addr = be64_to_cpu(remote->raddr);
	wr->atomic.rkey = be32_to_cpu(remote->rkey);
	wr->atomic.swap = be64_to_cpu(operands->swap_add);
	wr->atomic.compare_add = be64_to_cpu(operands->compare);
	if (wr->send.opcode == IB_WR_ATOMIC_FETCH_AND_ADD)
		wr->atomic.compare_add = wr->atomic.swap;
	return 0;
}

static u8 read_body(struct mls_dev *dev, struct mls_qp *qp,
		    const struct mlx5_wqe_ctrl_seg *ctrl, unsigned int ds, struct mls_wr *wr)
{
	struct cursor c = { (const u8 *)(ctrl + 1), (const u8 *)ctrl + ds * SEG };
	u8 opcode = wr->flight.opcode, bad = 0;

	if (opcode == MLX5_OPCODE_NOP) {
		wr->nop = true;
		return 0;
	}
	if (opcode >= ARRAY_SIZE(opcodes) || !opcodes[opcode].known)
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	wr->send.opcode = opcodes[opcode].verb;
	wr->send.send_flags = send_flags(ctrl->fm_ce_se);
	wr->send.sg_list = wr->sge;
	wr->fenced = (ctrl->fm_ce_se & 0xe0) >= MLX5_FENCE_MODE_FENCE;
	wr->flight.fetches = opcodes[opcode].atomic || opcode == MLX5_OPCODE_RDMA_READ;
	if (opcode == MLX5_OPCODE_SEND_INVAL)
		wr->send.ex.invalidate_rkey = be32_to_cpu(ctrl->imm);
	else
		wr->send.ex.imm_data = ctrl->imm;
	if (opcodes[opcode].remote)
		bad = read_remote(&c, wr, opcodes[opcode].atomic);
	if (!bad)
		bad = read_data(dev, qp, &c, wr);
	if (!bad && opcodes[opcode].atomic && wr->flight.bytes != sizeof(u64))
		bad = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	return bad;
}

/* How the doorbell of this WQE was rung, as far as it can still be seen. */
static void look_at_uar(struct mls_dev *dev, struct mls_qp *qp, unsigned int ds)
{
	const u8 *reg = page_address(qp->uar) + qp->bf_offset;
	unsigned int half;

	for (half = 0; half < MLS_BF_REG_SIZE; half += MLS_BF_REG_SIZE / 2) {
		if (memcmp(reg + half, dev->wqe, sizeof(u64)))
			continue;
		if (ds > 1 && !memcmp(reg + half, dev->wqe, min(ds * SEG, 64U)))
			dev->stats.blueflame++;
		else
			dev->stats.doorbells++;
	}
}

/**
 * mls_wqe_decode() - read the send WQE at the QP's head
 * @dev: the device; its lock is held
 * @qp: the QP
 * @most: basic blocks that the doorbell covers
 * @wr: gets the work request; its memory is freed by whoever completes it
 *
 * Return: 0, or the syndrome to complete it with.
 */
u8 mls_wqe_decode(struct mls_dev *dev, struct mls_qp *qp, unsigned int most, struct mls_wr *wr)
{
	const struct mlx5_wqe_ctrl_seg *ctrl = (const void *)dev->wqe;
	unsigned int ds, i;
	u32 word, qpn_ds;

	lockdep_assert_held(&dev->lock);
	memset(wr, 0, sizeof(*wr));
	wr->blocks = 1;
	for (i = 0; i < min_t(unsigned int, most, MLS_WQE_MAX / MLX5_SEND_WQE_BB); i++)
		mls_pin_read(&qp->buf, qp->sq_offset +
			     (size_t)((qp->sq_head + i) & (qp->sq_count - 1)) * MLX5_SEND_WQE_BB,
			     dev->wqe + i * MLX5_SEND_WQE_BB, MLX5_SEND_WQE_BB);
	word = be32_to_cpu(ctrl->opmod_idx_opcode);
	qpn_ds = be32_to_cpu(ctrl->qpn_ds);
	ds = qpn_ds & MLX5_WQE_CTRL_DS_MASK;
	wr->flight.index = qp->sq_head;
	wr->flight.opcode = word & MLX5_WQE_CTRL_OPCODE_MASK;
	wr->flight.signaled = ctrl->fm_ce_se & MLX5_WQE_CTRL_CQ_UPDATE;
	if (!ds || DIV_ROUND_UP(ds * SEG, MLX5_SEND_WQE_BB) > most)
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	wr->blocks = DIV_ROUND_UP(ds * SEG, MLX5_SEND_WQE_BB);
	if ((word >> MLX5_WQE_CTRL_WQE_INDEX_SHIFT & 0xffff) != qp->sq_head ||
	    qpn_ds >> MLX5_WQE_CTRL_QPN_SHIFT != qp->number)
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	look_at_uar(dev, qp, ds);
	wr->send.wr_id = mls_wr_id(MLS_SEND, qp->epoch, qp->sq_head);
	return read_body(dev, qp, ctrl, ds, wr);
}

/**
 * mls_wqe_scatter() - read the scatter list of a receive WQE
 * @dev: the device; its lock is held
 * @ibpd: whose keys count
 * @segs: a copy of the data segments
 * @count: how many there may be
 * @sge: gets at most so many pieces
 *
 * Return: the number of pieces.
 */
int mls_wqe_scatter(struct mls_dev *dev, struct ib_pd *ibpd, const void *segs,
		    unsigned int count, struct ib_sge *sge)
{
	const struct mlx5_wqe_data_seg *seg = segs;
	unsigned int i;
	int n = 0;

	for (i = 0; i < count; i++, seg++) {
		if (be32_to_cpu(seg->lkey) == MLS_END_KEY)
			break;
		if (!seg->byte_count)
			continue;
		sge[n].addr = be64_to_cpu(seg->addr);
		sge[n].length = be32_to_cpu(seg->byte_count) & ~MLX5_INLINE_SEG;
		sge[n].lkey = mls_lower_key(dev, ibpd, be32_to_cpu(seg->lkey));
		n++;
	}
	return n;
}
