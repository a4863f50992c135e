// SPDX-License-Identifier: GPL-2.0
/*
 * Receive queues: WQEs are given to rxe as soon as they are posted.
 */
#include "mlx5_soft.h"

static void rq_take(struct mls_qp *qp)
{
	struct mls_dev *dev = to_mls_dev(qp->ibqp.device);
	size_t at = (size_t)(qp->rq_head & (qp->rq_count - 1)) << qp->rq_shift;
	const struct ib_recv_wr *wrong;
	struct ib_sge sge[MLS_MAX_SGE];
	struct ib_recv_wr wr = {
		.wr_id = mls_wr_id(MLS_RECV, qp->epoch, qp->rq_head),
		.sg_list = sge,
	};

	mls_pin_read(&qp->buf, at, dev->wqe, 1UL << qp->rq_shift);
	wr.num_sge = mls_wqe_scatter(dev, qp->ibqp.pd, dev->wqe, qp->rq_gs, sge);
	qp->rq_head++;
	if (!ib_post_recv(qp->lower, &wr, &wrong)) {
		qp->recvs++;
		dev->stats.recvs++;
		return;
	}
	mls_qp_event(qp, IB_EVENT_QP_FATAL);
	mls_qp_break(qp);
}

/* Is the next flush due?  Hardware takes a time for each. */
static bool rq_flush_is_due(struct mls_qp *qp)
{
	u64 pause = (u64)READ_ONCE(to_mls_dev(qp->ibqp.device)->faults.flush_us) * NSEC_PER_USEC;
	u64 now = ktime_get_ns();

	if (!pause)
		return true;
	if (!qp->flushed_ns)
		qp->flushed_ns = now;
	if (now - qp->flushed_ns < pause)
		return false;
	qp->flushed_ns += pause;
	return true;
}

static bool rq_flush(struct mls_qp *qp, u16 db)
{
	u16 first = qp->rq_head;

	while (qp->rq_head != db && rq_flush_is_due(qp))
		mls_cqe_flush(qp, MLS_RECV, qp->rq_head++);
	return qp->rq_head != first;
}

/**
 * mls_rq_run() - take what was posted since the last time
 * @qp: the QP; the device's lock is held
 *
 * Return: whether there was anything to do.
 */
bool mls_rq_run(struct mls_qp *qp)
{
	u16 db, left;

	if (!qp->rq_count || qp->state == IB_QPS_RESET)
		return false;
	db = mls_pin_word(&qp->db, MLX5_RCV_DBR * sizeof(__be32));
	left = db - qp->rq_head;
	if (!left)
		return false;
	if (left > qp->rq_count) {
		qp->rq_head = db;
		mls_qp_event(qp, IB_EVENT_QP_FATAL);
		mls_qp_break(qp);
		return true;
	}
	if (qp->state == IB_QPS_ERR) {
		if (qp->recvs || qp->held)
			return false;
		return rq_flush(qp, db);
	}
	if (qp->recvs == qp->recv_depth)
		return false;
	for (; left && qp->state != IB_QPS_ERR && qp->recvs < qp->recv_depth; left--)
		rq_take(qp);
	return true;
}

/* Flush the receives that were held until the error of a send was told. */
void mls_rq_flush_held(struct mls_qp *qp)
{
	for (; qp->held; qp->held--)
		mls_cqe_flush(qp, MLS_RECV, qp->held_first++);
}

void mls_rq_complete(struct mls_qp *qp, const struct ib_wc *wc)
{
	if ((wc->wr_id >> 16 & 0xffff) == MLS_SRQ_RECV) {
		if (qp->srq && qp->srq->posted)
			qp->srq->posted--;
	} else if (qp->recvs) {
		qp->recvs--;
		if (mls_sq_owes_error(qp, wc)) {
			if (!qp->held++)
				qp->held_first = (u16)wc->wr_id;
			return;
		}
	}
	mls_cqe_recv(qp, (u16)wc->wr_id, wc);
	if (wc->status != IB_WC_SUCCESS)
		mls_qp_break(qp);
}
