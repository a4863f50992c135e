// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queue entries as mlx5 hardware writes them, and the event that follows
 * where the queue is armed.
 */
#include <linux/mlx5/cq.h>
#include "mlx5_soft.h"

#define CQ_MASK		0xffffff	/* indices in doorbell records have 24 bits */
#define CQ_SET_CI	0		/* in a CQ's doorbell record, bytes */
#define CQ_ARM		4
#define CQ_ARM_SOLICITED (1 << 24)
#define CQE_OP_OWN	63
#define CQE_RES_SRQN	0xffffff

/* What drivers and users of mlx5 commonly see beside the syndrome. */
static const struct {
	enum ib_wc_status status;
	u8 syndrome;
	u8 vendor;
} syndromes[] = {
	{ IB_WC_LOC_LEN_ERR, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, 0x32 },
	{ IB_WC_LOC_QP_OP_ERR, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0x68 },
	{ IB_WC_LOC_PROT_ERR, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, 0x51 },
	{ IB_WC_WR_FLUSH_ERR, MLX5_CQE_SYNDROME_WR_FLUSH_ERR, 0xf9 },
	{ IB_WC_MW_BIND_ERR, MLX5_CQE_SYNDROME_MW_BIND_ERR, 0x74 },
	{ IB_WC_BAD_RESP_ERR, MLX5_CQE_SYNDROME_BAD_RESP_ERR, 0x83 },
	{ IB_WC_LOC_ACCESS_ERR, MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR, 0x54 },
	{ IB_WC_REM_INV_REQ_ERR, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, 0x8a },
	{ IB_WC_REM_ACCESS_ERR, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, 0x88 },
	{ IB_WC_REM_OP_ERR, MLX5_CQE_SYNDROME_REMOTE_OP_ERR, 0x89 },
	{ IB_WC_RETRY_EXC_ERR, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR, 0x81 },
	{ IB_WC_RNR_RETRY_EXC_ERR, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR, 0x87 },
	{ IB_WC_REM_ABORT_ERR, MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR, 0x8c },
};

/* 0 for success; a status without a syndrome of its own becomes a QP operation error. */
u8 mls_syndrome(enum ib_wc_status status)
{
	int i;

	if (status == IB_WC_SUCCESS)
		return 0;
	for (i = 0; i < ARRAY_SIZE(syndromes); i++)
		if (syndromes[i].status == status)
			return syndromes[i].syndrome;
	return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
}

static u8 vendor_syndrome(u8 syndrome)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(syndromes); i++)
		if (syndromes[i].syndrome == syndrome)
			return syndromes[i].vendor;
	return 0;
}

static struct mls_dev *cq_dev(struct mls_cq *cq)
{
	return to_mls_dev(cq->ibcq.device);
}

static u32 cq_unpolled(struct mls_cq *cq)
{
	return (cq->pi - mls_pin_word(&cq->db, CQ_SET_CI)) & CQ_MASK;
}

static bool cq_full(struct mls_cq *cq)
{
	struct ib_event event;

	if (cq_unpolled(cq) < cq->ncqe)
		return false;
	if (!cq->overrun && cq->ibcq.event_handler) {
		event.device = cq->ibcq.device;
		event.event = IB_EVENT_CQ_ERR;
		event.element.cq = &cq->ibcq;
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
	}
	cq->overrun = true;
	return true;
}

/* Entries of 128 bytes carry these 64 in their second half. */
static bool cq_write(struct mls_cq *cq, struct mlx5_cqe64 *cqe, u8 opcode, bool solicited)
{
	size_t at = (size_t)(cq->pi & (cq->ncqe - 1)) * cq->cqe_size + cq->cqe_size - 64;
	u8 owner = !!(cq->pi & cq->ncqe);

	BUILD_BUG_ON(sizeof(*cqe) != 64);
	BUILD_BUG_ON(offsetof(struct mlx5_cqe64, op_own) != CQE_OP_OWN);
	BUILD_BUG_ON(offsetof(struct mlx5_err_cqe, op_own) != CQE_OP_OWN);
	if (cq->overrun || cq_full(cq))
		return false;
	mls_pin_write(&cq->buf, at, cqe, CQE_OP_OWN);
	mls_pin_publish(&cq->buf, at + CQE_OP_OWN, opcode << 4 | owner);
	cq->pi++;
	if (solicited)
		cq->solicited_pi = cq->pi;
	cq_dev(cq)->stats.cqes++;
	return true;
}

/* How an entry names its queue differs with the version of the context. */
static __be32 cqe_resource(struct mls_qp *qp, bool responder)
{
	if (qp->cqe_version)
		return cpu_to_be32(qp->uidx & CQE_RES_SRQN);
	return cpu_to_be32(responder && qp->srq ? qp->srq->srqn : 0);
}

/* A ConnectX-6 leaves out opcode and byte count: Documentation/internals/mlx5.md. */
static void cqe_error(struct mls_cq *cq, struct mls_qp *qp, bool responder, u16 index,
		      u8 syndrome)
{
	union {
		struct mlx5_err_cqe err;
		struct mlx5_cqe64 cqe;
	} u = {};

	u.err.srqn = cqe_resource(qp, responder);
	u.err.vendor_err_synd = vendor_syndrome(syndrome);
	u.err.syndrome = syndrome;
	u.err.s_wqe_opcode_qpn = cpu_to_be32(qp->number);
	u.err.wqe_counter = cpu_to_be16(index);
	cq_write(cq, &u.cqe, responder ? MLX5_CQE_RESP_ERR : MLX5_CQE_REQ_ERR, true);
	if (syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR)
		cq_dev(cq)->stats.flushes++;
	else
		cq_dev(cq)->stats.errors++;
}

/* A send's completion: an error, or success if one was asked for. */
void mls_cqe_send(struct mls_qp *qp, const struct mls_flight *flight, u8 syndrome)
{
	struct mls_cq *cq = to_mls_cq(qp->ibqp.send_cq);
	struct mlx5_cqe64 cqe = {};

	if (syndrome) {
		cqe_error(cq, qp, false, flight->index, syndrome);
		return;
	}
	if (!flight->signaled)
		return;
	cqe.srqn = cqe_resource(qp, false);
	cqe.byte_cnt = cpu_to_be32(flight->bytes);
	cqe.sop_drop_qpn = cpu_to_be32(flight->opcode << 24 | qp->number);
	cqe.wqe_counter = cpu_to_be16(flight->index);
	cq_write(cq, &cqe, MLX5_CQE_REQ, false);
}

static u8 recv_opcode(const struct ib_wc *wc, struct mlx5_cqe64 *cqe)
{
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE) {
		cqe->inval_rkey = cpu_to_be32(wc->ex.invalidate_rkey);
		return MLX5_CQE_RESP_SEND_INV;
	}
	if (!(wc->wc_flags & IB_WC_WITH_IMM))
		return MLX5_CQE_RESP_SEND;
	cqe->immediate = wc->ex.imm_data;
	return wc->opcode == IB_WC_RECV_RDMA_WITH_IMM ? MLX5_CQE_RESP_WR_IMM :
		MLX5_CQE_RESP_SEND_IMM;
}

/* rxe does not tell whether a receive was solicited: all count as such. */
void mls_cqe_recv(struct mls_qp *qp, u16 index, const struct ib_wc *wc)
{
	struct mls_cq *cq = to_mls_cq(qp->ibqp.recv_cq);
	struct mlx5_cqe64 cqe = {};
	u8 opcode, syndrome = mls_syndrome(wc->status);

	if (syndrome) {
		cqe_error(cq, qp, true, index, syndrome);
		return;
	}
	opcode = recv_opcode(wc, &cqe);
	cqe.srqn = cqe_resource(qp, true);
	cqe.byte_cnt = cpu_to_be32(wc->byte_len);
	cqe.sop_drop_qpn = cpu_to_be32(qp->number);
	cqe.wqe_counter = cpu_to_be16(index);
	cq_write(cq, &cqe, opcode, true);
}

void mls_cqe_flush(struct mls_qp *qp, enum mls_kind kind, u16 index)
{
	struct ib_cq *cq = kind == MLS_SEND ? qp->ibqp.send_cq : qp->ibqp.recv_cq;

	cqe_error(to_mls_cq(cq), qp, kind != MLS_SEND, index, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
}

/**
 * mls_cqe_resize() - write the last entry of a ring
 * @cq: the queue; the device's lock is held
 * @ncqe: entries of the ring that follows
 *
 * The library takes along what it has not polled, each to the index after its own, as
 * this one has an index, too.  The next is for the new ring.
 *
 * Return: 0; -EINVAL after an overrun, or if one ring or the other has no room for it.
 */
int mls_cqe_resize(struct mls_cq *cq, u32 ncqe)
{
	struct mlx5_cqe64 cqe = {};

	lockdep_assert_held(&cq_dev(cq)->lock);
	if (cq->overrun || cq_unpolled(cq) >= min(ncqe, cq->ncqe))
		return -EINVAL;
	return cq_write(cq, &cqe, MLX5_CQE_RESIZE_CQ, false) ? 0 : -EINVAL;
}

/*
 * Fire the event of an armed queue.  There is one per arm sequence number.  A record
 * that was never written looks like the first arm: a queue is armed from its start.
 */
void mls_cq_notify(struct mls_cq *cq)
{
	u32 arm = mls_pin_word(&cq->db, CQ_ARM);
	u32 pi = arm & CQ_ARM_SOLICITED ? cq->solicited_pi : cq->pi;
	int sn = arm >> 28 & 3;

	if (sn == cq->fired || !((pi - arm) & CQ_MASK) || (pi - arm) & (CQ_MASK + 1) >> 1)
		return;
	cq->fired = sn;
	if (!cq->ibcq.comp_handler)
		return;
	cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	cq_dev(cq)->stats.events++;
}
