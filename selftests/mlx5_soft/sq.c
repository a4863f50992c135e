// SPDX-License-Identifier: GPL-2.0
/*
 * Execution of send queues.  What rxe has not completed yet is a queue of flights in
 * posting order; a WQE that never reaches rxe (NOP, a wrong one) waits there for its
 * turn, so that completions keep the order.
 */
#include <linux/mlx5/cq.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include "mlx5_soft.h"

static struct mls_flight *flight_at(struct mls_qp *qp, u32 at)
{
	return &qp->flight[at % MLS_SEND_DEPTH];
}

static u32 flights(struct mls_qp *qp)
{
	return qp->flight_next - qp->flight_first;
}

static void flight_pop(struct mls_qp *qp)
{
	kfree(flight_at(qp, qp->flight_first++)->bounce);
}

/* A doorbell record that cannot be: hardware would not survive it either. */
static void sq_nonsense(struct mls_qp *qp, u16 db)
{
	qp->sq_head = db;
	mls_qp_event(qp, IB_EVENT_QP_FATAL);
	mls_qp_break(qp);
}

/* Complete what heads the queue without rxe's doing. */
static void sq_retire(struct mls_qp *qp)
{
	struct mls_flight *flight;

	while (flights(qp)) {
		flight = flight_at(qp, qp->flight_first);
		if (!flight->done && !flight->syndrome)
			return;
		if (qp->state == IB_QPS_ERR)
			mls_cqe_flush(qp, MLS_SEND, flight->index);
		else
			mls_cqe_send(qp, flight, flight->syndrome);
		if (flight->syndrome) {
			qp->stopped = false;
			mls_qp_break(qp);
		}
		flight_pop(qp);
	}
}

static u8 sq_injected(struct mls_dev *dev)
{
	u8 syndrome = dev->faults.fail_next;

	if (syndrome) {
		dev->faults.fail_next = 0;
		dev->stats.faults++;
	}
	return syndrome;
}

/*
 * Fences are kept here: rxe's counts READs behind it, too, after a retry, and then they wait
 * for each other for ever.
 */
static bool sq_fence_holds(struct mls_qp *qp, const struct mls_wr *wr)
{
	u32 at;

	for (at = qp->flight_first; wr->fenced && at != qp->flight_next; at++)
		if (flight_at(qp, at)->fetches)
			return true;
	return false;
}

/* Take the next WQE; false if rxe has no room for it now, or a fence holds it. */
static bool sq_take(struct mls_qp *qp, u16 blocks)
{
	struct mls_dev *dev = to_mls_dev(qp->ibqp.device);
	const struct ib_send_wr *wrong;
	struct mls_wr wr;
	u8 bad;

	bad = mls_wqe_decode(dev, qp, blocks, &wr);
	if (!bad && sq_fence_holds(qp, &wr)) {
		kfree(wr.flight.bounce);
		return false;
	}
	if (!bad)
		bad = sq_injected(dev);
	if (bad) {
		wr.flight.syndrome = bad;
		qp->stopped = true;
	} else if (wr.nop) {
		wr.flight.done = true;
	} else if (ib_post_send(qp->lower, &wr.send, &wrong)) {
		kfree(wr.flight.bounce);
		return false;
	}
	*flight_at(qp, qp->flight_next++) = wr.flight;
	qp->sq_head += wr.blocks;
	dev->stats.sends++;
	return true;
}

/* After an error, when rxe has given everything back. */
static void sq_flush(struct mls_qp *qp, u16 db)
{
	struct mlx5_wqe_ctrl_seg ctrl;
	u16 left, blocks;

	while ((left = db - qp->sq_head)) {
		mls_pin_read(&qp->buf, qp->sq_offset +
			     (size_t)(qp->sq_head & (qp->sq_count - 1)) * MLX5_SEND_WQE_BB,
			     &ctrl, sizeof(ctrl));
		blocks = DIV_ROUND_UP(be32_to_cpu(ctrl.qpn_ds) & MLX5_WQE_CTRL_DS_MASK, 4);
		mls_cqe_flush(qp, MLS_SEND, qp->sq_head);
		qp->sq_head += clamp_t(u16, blocks, 1, left);
	}
}

/**
 * mls_sq_run() - execute what was posted since the last time
 * @qp: the QP; the device's lock is held
 *
 * Return: whether there was anything to do.
 */
bool mls_sq_run(struct mls_qp *qp)
{
	bool any = false;
	u16 db, left;

	if (!qp->sq_count || (qp->state != IB_QPS_RTS && qp->state != IB_QPS_ERR))
		return false;
	db = mls_pin_word(&qp->db, MLX5_SND_DBR * sizeof(__be32));
	left = db - qp->sq_head;
	if (left > qp->sq_count) {
		sq_nonsense(qp, db);
		return true;
	}
	while (left && qp->state == IB_QPS_RTS && !qp->stopped && flights(qp) < qp->send_depth) {
		if (!sq_take(qp, left))
			break;
		sq_retire(qp);
		left = db - qp->sq_head;
		any = true;
	}
	if (left && qp->state == IB_QPS_ERR && !flights(qp)) {
		sq_flush(qp, db);
		any = true;
	}
	return any;
}

/* The peer has executed it, but nobody on this side will ever know. */
static bool sq_ack_lost(struct mls_dev *dev, const struct ib_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS || !dev->faults.lose_ack || --dev->faults.lose_ack)
		return false;
	dev->stats.faults++;
	return true;
}

/*
 * rxe of 6.12 gives a QP up as soon as it has no carrier to send by, and flushes all of
 * it.  A NIC tries again for a while, and says so of the first.
 */
static bool sq_no_carrier(struct mls_qp *qp, const struct ib_wc *wc)
{
	struct net_device *ndev = to_mls_dev(qp->ibqp.device)->ndev;

	return wc->status == IB_WC_WR_FLUSH_ERR && qp->state != IB_QPS_ERR && !qp->asked &&
	       ndev && !netif_carrier_ok(ndev);
}

/*
 * rxe flushes receives and sends in any order.  A NIC tells the error that broke the QP before any
 * flush: is this one of a receive that comes too early?
 */
bool mls_sq_owes_error(struct mls_qp *qp, const struct ib_wc *wc)
{
	return flights(qp) && sq_no_carrier(qp, wc);
}

/* A completion of rxe's for the oldest send that it has. */
void mls_sq_complete(struct mls_qp *qp, const struct ib_wc *wc)
{
	struct mls_dev *dev = to_mls_dev(qp->ibqp.device);
	enum ib_wc_status status = wc->status;
	struct mls_flight *flight;
	u8 syndrome;

	sq_retire(qp);
	if (!flights(qp))
		return;
	flight = flight_at(qp, qp->flight_first);
	if (flight->index != (u16)wc->wr_id) {
		dev_warn_ratelimited(&dev->ibdev.dev, "QP %u: completion of WQE %u, not %u\n",
				     qp->number, (u16)wc->wr_id, flight->index);
		return;
	}
	/* rxe may complete a few more after an error that is ours */
	if (qp->state == IB_QPS_ERR && status == IB_WC_SUCCESS)
		status = IB_WC_WR_FLUSH_ERR;
	else if (sq_ack_lost(dev, wc) || sq_no_carrier(qp, wc))
		status = IB_WC_RETRY_EXC_ERR;
	syndrome = mls_syndrome(status);
	mls_cqe_send(qp, flight, syndrome);
	flight_pop(qp);
	if (syndrome) {
		mls_qp_break(qp);
		mls_rq_flush_held(qp);
	}
	sq_retire(qp);
}

void mls_sq_forget(struct mls_qp *qp)
{
	while (flights(qp))
		flight_pop(qp);
}
