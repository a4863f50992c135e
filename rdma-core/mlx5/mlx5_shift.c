// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What mlx5's CQs and QPs tell the rdma_shift module, and its completions.
 *
 * A side ring's completion names its WQE by the device's index. It is turned into
 * a CQE, and all that follows (wr_id, tail, opcode, the accessors of an extended
 * CQ) is what the provider does for the device's own.
 */
#include <config.h>

#include <string.h>

#include "mlx5.h"
#include "mlx5_shift_buf.h"
#include "mlx5_shift_post.h"
#include "wqe.h"

/* Of struct ib_wc; IBV_WC_WITH_INV has another value */
#define SHIFT_WC_WITH_INVALIDATE	(1U << 2)

static struct shift_context *shift_ctx(struct ibv_context *ibctx)
{
	return &to_mctx(ibctx)->shift;
}

/* Must hold cq->lock, unless no one can be polling yet */
void mlx5_shift_register_cq(struct mlx5_cq *cq)
{
	struct ibv_cq *ibcq = &cq->verbs_cq.cq;
	struct shift_abi_reg_cq cmd = {
		.provider = SHIFT_PROVIDER_MLX5,
		.cmd_fd = ibcq->context->cmd_fd,
		.handle = ibcq->handle,
		.ring.addr = (uintptr_t)mlx5_buf_addr(cq->active_buf),
		.ring.len = (ibcq->cqe + 1) * cq->cqe_sz,
		.flag_addr = (uintptr_t)&cq->shift_flag,
		.stride = cq->cqe_sz,
		.db_addr = (uintptr_t)cq->dbrec,
	};

	struct shift_side was = cq->shift.cq.side;

	if (cq->shift.off)
		return;

	shift_register_cq(shift_ctx(ibcq->context), &cq->shift.cq, &cmd);
	/* after a resize: what goes before what is known */
	if (was.ring && cq->shift.cq.side.ring) {
		cq->shift.cq.side.batch_end = was.batch_end;
		shift_side_follow(&cq->shift.cq.side, was.cq_seen, was.cq_ahead);
	}
}

void mlx5_shift_unregister_cq(struct mlx5_cq *cq)
{
	shift_unregister(shift_ctx(cq->verbs_cq.cq.context), &cq->shift.cq.obj,
			 SHIFT_ABI_CQ);
}

/* With CQEs of version 1 nothing else finds a QP by its number */
static bool store_qp(struct mlx5_context *ctx, struct mlx5_qp *qp)
{
	int err;

	if (!ctx->cqe_version || qp->shift.stored)
		return true;

	pthread_mutex_lock(&ctx->qp_table_mutex);
	err = mlx5_store_qp(ctx, qp->ibv_qp->qp_num, qp);
	pthread_mutex_unlock(&ctx->qp_table_mutex);
	qp->shift.stored = !err;
	return !err;
}

/* Others write the rings, or read them, or they hold what the kernel cannot decode */
static bool is_foreign(const struct mlx5_qp *qp)
{
	return qp->shift.off || qp->flags || to_mcq(qp->ibv_qp->send_cq)->shift.off ||
	       to_mcq(qp->ibv_qp->recv_cq)->shift.off;
}

/* What stands for the send ring of a QP that has none: one block, which stays as it is */
static uintptr_t no_sends(const struct mlx5_qp *qp)
{
	return align((uintptr_t)qp->shift.no_sends, MLX5_SEND_WQE_BB);
}

/* Last in create_qp. The kernel is asked about all of RC: it keeps the reason. */
void mlx5_shift_register_qp(struct mlx5_qp *qp)
{
	struct ibv_qp *ibqp = qp->ibv_qp;
	struct shift_abi_reg_qp cmd = {
		.provider = SHIFT_PROVIDER_MLX5,
		.cmd_fd = ibqp->context->cmd_fd,
		.handle = ibqp->handle,
		.sq.addr = (uintptr_t)qp->sq_start,
		.sq.len = qp->sq.wqe_cnt << qp->sq.wqe_shift,
		.flag_addr = (uintptr_t)&qp->shift_flag,
		.db_addr = (uintptr_t)qp->db,
		.create_flags = qp->shift.create_flags,
		.anchor_addr = (uintptr_t)&qp->shift_anchor,
		.sq_tail_addr = (uintptr_t)&qp->sq.tail,
		.sq_heads_addr = (uintptr_t)qp->sq.wqe_head,
	};
	bool taken;

	if (ibqp->qp_type != IBV_QPT_RC || !ibqp->send_cq || !ibqp->recv_cq)
		return;

	/* it only receives, and to the kernel it has a ring of one block and never posts */
	if (!qp->sq.wqe_cnt) {
		cmd.sq.addr = no_sends(qp);
		cmd.sq.len = MLX5_SEND_WQE_BB;
		cmd.sq_heads_addr = (uintptr_t)qp->shift.no_heads;
	}

	if (qp->wq_sig)
		cmd.create_flags |= SHIFT_QP_CREATE_SIGNATURE;
	if (is_foreign(qp))
		cmd.create_flags |= SHIFT_QP_CREATE_FOREIGN;
	taken = !(cmd.create_flags & (SHIFT_QP_CREATE_SIGNATURE | SHIFT_QP_CREATE_FOREIGN));
	/* what an SRQ's ring has once had stays there */
	if (taken && !ibqp->srq && mlx5_shift_can_rebase(qp))
		cmd.create_flags |= SHIFT_QP_CREATE_REBASE;
	if (taken &&
	    (!to_mcq(ibqp->send_cq)->shift.cq.obj.registered ||
	     !to_mcq(ibqp->recv_cq)->shift.cq.obj.registered ||
	     !store_qp(to_mctx(ibqp->context), qp)))
		return;

	if (qp->rq.wqe_cnt) {
		cmd.rq.addr = (uintptr_t)mlx5_buf_addr(&qp->buf) + qp->rq.offset;
		cmd.rq.len = qp->rq.wqe_cnt << qp->rq.wqe_shift;
		cmd.rq_slot = 1U << qp->rq.wqe_shift;
		cmd.rq_tail_addr = (uintptr_t)&qp->rq.tail;
	}

	shift_register_qp(shift_ctx(ibqp->context), &qp->shift.obj, &cmd);
}

void mlx5_shift_unregister_qp(struct mlx5_qp *qp)
{
	shift_unregister(shift_ctx(qp->ibv_qp->context), &qp->shift.obj, SHIFT_ABI_QP);
	qp->shift_flag = 0;
}

/* The QP is destroyed, and its CQs are cleaned: another one may have its number by now */
void mlx5_shift_forget_qp(struct mlx5_qp *qp)
{
	struct mlx5_context *ctx = to_mctx(qp->ibv_qp->context);
	uint32_t qpn = qp->ibv_qp->qp_num;

	if (!qp->shift.stored)
		return;

	pthread_mutex_lock(&ctx->qp_table_mutex);
	if (mlx5_find_qp(ctx, qpn) == qp)
		mlx5_clear_qp(ctx, qpn);
	else
		ctx->qp_table[qpn >> MLX5_QP_TABLE_SHIFT].refcnt--;
	pthread_mutex_unlock(&ctx->qp_table_mutex);
	qp->shift.stored = false;
}

/* Holds rq.lock; the record is written */
void mlx5_shift_kick_recv(struct mlx5_qp *qp)
{
	shift_kick(shift_ctx(qp->ibv_qp->context), &qp->shift.obj, SHIFT_ABI_RECV);
}

/* One packet is counted of each WQE when it is posted */
void mlx5_shift_count_large(struct mlx5_qp *qp, uint32_t bytes)
{
	qp->shift_psn += (uint64_t)((bytes - 1) / qp->shift_mtu) * MLX5_SHIFT_PACKET;
}

void mlx5_shift_count_wr(struct mlx5_qp *qp, const struct ibv_send_wr *wr)
{
	uint32_t bytes = 0;
	int i;

	switch (wr->opcode) {
	case IBV_WR_BIND_MW:
	case IBV_WR_LOCAL_INV:
		mlx5_shift_count_local(qp);
		return;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return;
	default:
		for (i = 0; i < wr->num_sge; i++)
			bytes += wr->sg_list[i].length;
		mlx5_shift_count(qp, bytes);
	}
}

/*
 * Is this error part of a switch, and not for the application to see? Asked once of
 * each: when it is looked for a CQE to be shown, or when one is parsed.
 */
bool mlx5_shift_swallow(struct mlx5_cq *cq, const struct mlx5_cqe64 *cqe64,
			enum ibv_wc_status status)
{
	if (cq->shift.asked) {
		cq->shift.asked = false;
		return false;
	}
	return shift_swallow(shift_ctx(cq->verbs_cq.cq.context), &cq->shift.cq,
			     be32toh(cqe64->sop_drop_qpn) & 0xffffff, status);
}

/*
 * One that was polled says nothing more. The device may write the next one there at any
 * time: that has another owner bit, and stays.
 */
void mlx5_shift_cqe_forget(struct mlx5_cqe64 *cqe64, uint64_t end)
{
	union {
		uint64_t word;
		struct {
			__be32 sop_drop_qpn;
			__be16 wqe_counter;
			uint8_t signature;
			uint8_t op_own;
		};
	} forgotten = { .word = end };

	forgotten.op_own = MLX5_CQE_INVALID << 4 | (forgotten.op_own & MLX5_CQE_OWNER_MASK);
	atomic_compare_exchange_strong((_Atomic(uint64_t) *)&cqe64->sop_drop_qpn, &end,
				       forgotten.word);
}

static struct mlx5_qp *side_qp(struct mlx5_cq *cq, const struct shift_abi_wc *wc)
{
	if (wc->qp_num > 0xffffff)
		return NULL;
	return mlx5_find_qp(to_mctx(cq->verbs_cq.cq.context), wc->qp_num);
}

/* Holds cq->lock. Completions of a QP that is in RESET are lost, as its CQEs are. */
void mlx5_shift_clean_cq(struct mlx5_cq *cq, uint32_t rsn)
{
	struct shift_side *side = &cq->shift.cq.side;
	struct shift_abi_wc *wc;
	struct mlx5_qp *qp;
	uint32_t prod;
	uint32_t i;

	if (!side->ring || cq->shift.keep_side)
		return;

	prod = shift_side_load(&side->ring->producer, memory_order_acquire);
	for (i = side->ring->consumer; i != prod; i++) {
		wc = &side->ring->wc[i & side->mask];
		qp = side_qp(cq, wc);
		if (qp && qp->rsc.rsn != rsn)
			continue;
		if (qp && wc->opcode & SHIFT_WC_RECV && qp->ibv_qp->srq)
			mlx5_shift_drop_side(to_msrq(qp->ibv_qp->srq), wc);
		wc->qp_num = UINT32_MAX;
	}
}

static uint8_t error_syndrome(uint32_t status)
{
	switch (status) {
	case IBV_WC_LOC_LEN_ERR:
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	case IBV_WC_LOC_QP_OP_ERR:
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	case IBV_WC_LOC_PROT_ERR:
		return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
	case IBV_WC_WR_FLUSH_ERR:
		return MLX5_CQE_SYNDROME_WR_FLUSH_ERR;
	case IBV_WC_MW_BIND_ERR:
		return MLX5_CQE_SYNDROME_MW_BIND_ERR;
	case IBV_WC_BAD_RESP_ERR:
		return MLX5_CQE_SYNDROME_BAD_RESP_ERR;
	case IBV_WC_LOC_ACCESS_ERR:
		return MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR;
	case IBV_WC_REM_INV_REQ_ERR:
		return MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR;
	case IBV_WC_REM_ACCESS_ERR:
		return MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
	case IBV_WC_REM_OP_ERR:
		return MLX5_CQE_SYNDROME_REMOTE_OP_ERR;
	case IBV_WC_RETRY_EXC_ERR:
		return MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR;
	case IBV_WC_REM_ABORT_ERR:
		return MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR;
	default:
		return 0;	/* IBV_WC_GENERAL_ERR */
	}
}

static uint8_t cqe_opcode(const struct shift_abi_wc *wc)
{
	bool recv = wc->opcode & SHIFT_WC_RECV;

	if (wc->status)
		return recv ? MLX5_CQE_RESP_ERR : MLX5_CQE_REQ_ERR;
	if (!recv)
		return MLX5_CQE_REQ;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		return MLX5_CQE_RESP_WR_IMM;
	if (wc->wc_flags & IBV_WC_WITH_IMM)
		return MLX5_CQE_RESP_SEND_IMM;
	if (wc->wc_flags & (IBV_WC_WITH_INV | SHIFT_WC_WITH_INVALIDATE))
		return MLX5_CQE_RESP_SEND_INV;
	return MLX5_CQE_RESP_SEND;
}

static void fill_cqe(struct mlx5_cqe64 *cqe, const struct shift_abi_wc *wc,
		     struct mlx5_qp *qp, bool v1)
{
	uint8_t opcode = cqe_opcode(wc);
	uint32_t op = 0;

	memset(cqe, 0, sizeof(*cqe));
	cqe->op_own = opcode << 4;
	cqe->wqe_counter = htobe16(wc->wr_id);
	if (v1)
		cqe->srqn_uidx = htobe32(qp->rsc.rsn);
	else if (wc->opcode & SHIFT_WC_RECV && qp->ibv_qp->srq)
		cqe->srqn_uidx = htobe32(to_msrq(qp->ibv_qp->srq)->srqn);

	switch (opcode) {
	case MLX5_CQE_REQ:
		/* the WQE is still there: nobody has moved the tail */
		op = be32toh(((struct mlx5_wqe_ctrl_seg *)
			      mlx5_get_send_wqe(qp, wc->wr_id & (qp->sq.wqe_cnt - 1)))->
			     opmod_idx_opcode) & 0xff;
		break;
	case MLX5_CQE_RESP_SEND_INV:
		cqe->imm_inval_pkey = htobe32(wc->ex);
		break;
	case MLX5_CQE_RESP_WR_IMM:
	case MLX5_CQE_RESP_SEND_IMM:
		memcpy(&cqe->imm_inval_pkey, &wc->ex, sizeof(wc->ex));
		break;
	}
	cqe->sop_drop_qpn = htobe32(op << 24 | wc->qp_num);

	if (wc->status) {
		struct mlx5_err_cqe *err = (struct mlx5_err_cqe *)cqe;

		err->vendor_err_synd = wc->vendor_err;
		err->syndrome = error_syndrome(wc->status);
		return;
	}
	cqe->byte_cnt = htobe32(wc->byte_len);
	cqe->slid = htobe16(wc->slid);
	cqe->ml_path = wc->dlid_path_bits & 0x7f;
	cqe->flags_rqpn = htobe32((wc->wc_flags & IBV_WC_GRH ? 1U << 28 : 0) |
				  (wc->sl & 0xfU) << 24 | (wc->src_qp & 0xffffff));
}

/* Is there a WQE, or an SRQ's receive, of which it is? Then wr_id is its index */
static bool finds_wqe(struct mlx5_qp *qp, struct shift_abi_wc *wc)
{
	int entry;

	if (!(wc->opcode & SHIFT_WC_RECV))
		return qp->sq.wqe_cnt;
	if (!qp->ibv_qp->srq)
		return qp->rq.wqe_cnt;
	entry = mlx5_shift_side_entry(to_msrq(qp->ibv_qp->srq), wc);
	wc->wr_id = entry;
	return entry >= 0;
}

/* The next entry of the side ring as a CQE; false if it is of no QP any more */
bool mlx5_shift_take(struct mlx5_cq *cq)
{
	struct shift_abi_wc wc;
	struct mlx5_qp *qp;

	shift_side_take(&cq->shift.cq.side, &wc);
	qp = side_qp(cq, &wc);
	if (qp && wc.opcode & SHIFT_WC_REBASE) {
		mlx5_shift_rebase(qp, cq);
		return false;
	}
	if (!qp || !finds_wqe(qp, &wc))
		return false;
	fill_cqe(&cq->shift.cqe, &wc, qp, to_mctx(cq->verbs_cq.cq.context)->cqe_version);
	cq->shift.asked = wc.status;
	return true;
}
