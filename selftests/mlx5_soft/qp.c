// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: the user's rings and an rxe QP that executes them.  State, numbers and
 * PSNs are those of the rxe QP.
 */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/log2.h>
#include <rdma/ib_cache.h>
#include <rdma/mlx5-abi.h>
#include <rdma/uverbs_ioctl.h>
#include "mlx5_soft.h"

#define MLS_INIT_MASK (IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS)

static struct mls_dev *qp_dev(struct mls_qp *qp)
{
	return to_mls_dev(qp->ibqp.device);
}

static int qp_sizes(struct mls_qp *qp, const struct mlx5_ib_create_qp *cmd)
{
	u32 rq_bytes = 0;

	if (cmd->flags & (MLX5_QP_FLAG_SIGNATURE | MLX5_QP_FLAG_TYPE_DCT | MLX5_QP_FLAG_TYPE_DCI |
			  MLX5_QP_FLAG_BFREG_INDEX | MLX5_QP_FLAG_UAR_PAGE_INDEX))
		return -EOPNOTSUPP;
	if (cmd->sq_wqe_count > MLS_MAX_WQ || cmd->rq_wqe_count > MLS_MAX_WQ)
		return -EINVAL;
	if (cmd->sq_wqe_count && !is_power_of_2(cmd->sq_wqe_count))
		return -EINVAL;
	if (cmd->rq_wqe_count) {
		if (!is_power_of_2(cmd->rq_wqe_count) || cmd->rq_wqe_shift < 4 ||
		    1 << min(cmd->rq_wqe_shift, 16U) > MLS_MAX_RQ_DESC)
			return -EINVAL;
		rq_bytes = cmd->rq_wqe_count << cmd->rq_wqe_shift;
	}
	qp->sq_count = cmd->sq_wqe_count;
	qp->sq_offset = rq_bytes;
	qp->rq_count = cmd->rq_wqe_count;
	qp->rq_shift = cmd->rq_wqe_shift;
	qp->rq_gs = rq_bytes ? min((1U << qp->rq_shift) / 16, (unsigned int)MLS_MAX_SGE) : 0;
	qp->send_depth = min_t(u32, qp->sq_count, MLS_SEND_DEPTH);
	qp->recv_depth = min_t(u32, qp->rq_count, MLS_RECV_DEPTH);
	qp->uidx = cmd->uidx;
	return 0;
}

static int qp_pin(struct mls_qp *qp, const struct mlx5_ib_create_qp *cmd)
{
	struct ib_device *ibdev = qp->ibqp.device;
	size_t size = qp->sq_offset + ((size_t)qp->sq_count << 6);
	int err;

	err = mls_pin_record(&qp->db, ibdev, cmd->db_addr, 2 * sizeof(__be32));
	if (err || !size)
		return err;
	err = mls_pin_init(&qp->buf, ibdev, cmd->buf_addr, size, 0);
	if (err)
		mls_pin_release(&qp->db);
	return err;
}

static void qp_unpin(struct mls_qp *qp)
{
	mls_pin_release(&qp->buf);
	mls_pin_release(&qp->db);
}

static void qp_lower_event(struct ib_event *event, void *context)
{
	/* IB_EVENT_SQ_DRAINED, COMM_EST and the like are the application's */
	mls_qp_event(context, event->event);
}

static struct ib_qp *qp_create_lower(struct mls_qp *qp)
{
	struct ib_qp_init_attr lower = {
		.event_handler = qp_lower_event,
		.qp_context = qp,
		.send_cq = to_mls_cq(qp->ibqp.send_cq)->lower,
		.recv_cq = to_mls_cq(qp->ibqp.recv_cq)->lower,
		.srq = qp->srq ? qp->srq->lower : NULL,
		.cap.max_send_wr = max(qp->send_depth, 1U),
		.cap.max_recv_wr = max(qp->recv_depth, 1U),
		.cap.max_send_sge = MLS_MAX_SGE,
		.cap.max_recv_sge = max(qp->rq_gs, 1U),
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};

	return ib_create_qp(to_mls_pd(qp->ibqp.pd)->lower, &lower);
}

/* Completions that an rxe queue must have room for. */
static int qp_reserve(struct mls_qp *qp)
{
	struct mls_cq *send = to_mls_cq(qp->ibqp.send_cq), *recv = to_mls_cq(qp->ibqp.recv_cq);
	u32 recvs = qp->srq ? min_t(u32, qp->srq->count, MLS_RECV_DEPTH) : qp->recv_depth;

	send->reserved += qp->send_depth;
	recv->reserved += recvs;
	if (send->reserved <= MLS_LOWER_CQE && recv->reserved <= MLS_LOWER_CQE)
		return 0;
	send->reserved -= qp->send_depth;
	recv->reserved -= recvs;
	return -ENOMEM;
}

static void qp_unreserve(struct mls_qp *qp)
{
	to_mls_cq(qp->ibqp.send_cq)->reserved -= qp->send_depth;
	to_mls_cq(qp->ibqp.recv_cq)->reserved -=
		qp->srq ? min_t(u32, qp->srq->count, MLS_RECV_DEPTH) : qp->recv_depth;
}

int mls_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct mls_dev *dev = to_mls_dev(ibqp->device);
	struct mlx5_ib_create_qp_resp resp = {};
	struct mls_qp *qp = to_mls_qp(ibqp);
	struct mlx5_ib_create_qp cmd = {};
	struct mls_ucontext *uc;
	int err;

	if (!udata)
		return mls_kernel_create_qp(qp, attr);
	if (attr->qp_type != IB_QPT_RC || attr->create_flags)
		return -EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq || to_mls_cq(attr->send_cq)->kernel ||
	    to_mls_cq(attr->recv_cq)->kernel)
		return -EINVAL;
	err = ib_copy_from_udata(&cmd, udata, min(sizeof(cmd), udata->inlen));
	if (err)
		return err;
	uc = rdma_udata_to_drv_context(udata, struct mls_ucontext, ibuc);
	qp->srq = attr->srq ? to_mls_srq(attr->srq) : NULL;
	qp->state = IB_QPS_RESET;
	qp->cqe_version = uc->cqe_version;
	err = qp_sizes(qp, &cmd);
	if (err)
		return err;
	if (qp->srq && qp->rq_count)
		return -EINVAL;
	err = qp_pin(qp, &cmd);
	if (err)
		return err;

	mutex_lock(&dev->lock);
	err = qp_reserve(qp);
	if (err)
		goto err_pin;
	qp->lower = qp_create_lower(qp);
	if (IS_ERR(qp->lower)) {
		err = PTR_ERR(qp->lower);
		goto err_reserve;
	}
	INIT_LIST_HEAD(&qp->spent);
	qp->first = qp->lower;
	qp->number = qp->lower->qp_num;
	ibqp->qp_num = qp->number;
	qp->epoch = ++dev->next_number;
	qp->cap = attr->cap;
	resp.bfreg_index = mls_bfreg_get(uc, &qp->uar, &qp->bf_offset);
	get_page(qp->uar);
	err = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
	if (err)
		goto err_lower;
	list_add_tail(&qp->entry, &dev->qps);
	mutex_unlock(&dev->lock);
	return 0;

err_lower:
	put_page(qp->uar);
	ib_destroy_qp(qp->lower);
err_reserve:
	qp_unreserve(qp);
err_pin:
	mutex_unlock(&dev->lock);
	qp_unpin(qp);
	return err;
}

/*
 * rxe is in ERR.  As with hardware that is the end of it: packets that it was processing
 * as it was told so are done with (6.1: in softirqs), and what they completed is.
 */
static void qp_in_error(struct mls_qp *qp)
{
	qp->asked = true;
	synchronize_rcu_expedited();
	mls_cq_drain(to_mls_cq(qp->ibqp.send_cq));
	mls_cq_drain(to_mls_cq(qp->ibqp.recv_cq));
	qp->asked = false;
}

/*
 * RESET, without a flush if it was not in ERR: what rxe has completed is completed, as
 * hardware writes its entries before a RESET is done; what is in its hands still is
 * forgotten.  rxe goes to ERR first: a RESET beside a packet that is being processed
 * drops that twice.
 */
static int qp_reset_lower(struct mls_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (qp->state == IB_QPS_RTR || qp->state == IB_QPS_RTS) {
		qp->resetting = true;
		if (!ib_modify_qp(qp->lower, &attr, IB_QP_STATE))
			qp_in_error(qp);
	}
	attr.qp_state = IB_QPS_RESET;
	return ib_modify_qp(qp->lower, &attr, IB_QP_STATE);
}

static void qp_reset(struct mls_qp *qp)
{
	mls_cq_drain(to_mls_cq(qp->ibqp.send_cq));
	mls_cq_drain(to_mls_cq(qp->ibqp.recv_cq));
	qp->resetting = false;
	qp->epoch = ++qp_dev(qp)->next_number;
	mls_sq_forget(qp);
	qp->recvs = 0;
	qp->held = 0;
	qp->sq_head = 0;
	qp->rq_head = 0;
	qp->flushed_ns = 0;
	qp->stopped = false;
}

static void qp_spend(struct mls_qp *qp)
{
	struct mls_spent *spent = kzalloc(sizeof(*spent), GFP_KERNEL | __GFP_NOFAIL);

	spent->qp = qp->lower;
	list_add(&spent->entry, &qp->spent);
}

/*
 * The QP is in RESET: choose the rxe QP that it uses next.  A NIC can use a QP again, rxe cannot
 * well: its completer goes on with what it had begun before the RESET, and packets are lost.  So
 * each time the kernel resets an application's QP another rxe QP is used, whose number kernel users
 * see.  If the application resets it, the first one is used, whose number the peer was told.
 */
static int qp_renew(struct mls_qp *qp, bool kernel)
{
	struct ib_qp *next = qp->first;

	if (!kernel && qp->lower == next)
		return 0;
	if (kernel) {
		next = qp_create_lower(qp);
		if (IS_ERR(next))
			return PTR_ERR(next);
	}
	if (qp->lower != qp->first)
		qp_spend(qp);
	qp->lower = next;
	qp->ibqp.qp_num = next->qp_num;
	return 0;
}

/*
 * The application connects its QP, which the kernel has used meanwhile and brought back to INIT: the
 * peer was told the number of the first rxe QP.
 */
static int qp_return(struct mls_qp *qp)
{
	struct ib_qp_attr reset = { .qp_state = IB_QPS_RESET }, init = qp->init;
	int err = ib_modify_qp(qp->lower, &reset, IB_QP_STATE);

	return err ?: qp_renew(qp, false) ?: ib_modify_qp(qp->lower, &init, MLS_INIT_MASK);
}

static void qp_destroy_lower(struct mls_qp *qp)
{
	struct mls_spent *spent, *next;

	if (qp->lower != qp->first)
		ib_destroy_qp(qp->lower);
	ib_destroy_qp(qp->first);
	list_for_each_entry_safe(spent, next, &qp->spent, entry) {
		ib_destroy_qp(spent->qp);
		kfree(spent);
	}
}

/* Our table of GIDs need not have the order of rxe's. */
int mls_translate_gid(struct mls_dev *dev, struct rdma_ah_attr *ah)
{
	const struct ib_gid_attr *mine = ah->grh.sgid_attr, *lower;

	if (!mine)
		return -EINVAL;
	lower = rdma_find_gid_by_port(dev->lower, &mine->gid, mine->gid_type, 1, dev->ndev);
	if (IS_ERR(lower))
		return PTR_ERR(lower);
	ah->grh.sgid_index = lower->index;
	ah->grh.sgid_attr = NULL;
	rdma_put_gid_attr(lower);
	return 0;
}

int mls_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct mls_qp *qp = to_mls_qp(ibqp);
	struct mls_dev *dev = qp_dev(qp);
	struct ib_qp_attr lower = *attr;
	int err = 0;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS || mask & (IB_QP_ALT_PATH | IB_QP_CAP))
		return -EOPNOTSUPP;
	/* rxe looks for its way itself, hardware does not: who is in the kernel has to tell */
	if (mask & IB_QP_AV && is_zero_ether_addr(attr->ah_attr.roce.dmac))
		return -EINVAL;
	if (mask & IB_QP_AV)
		err = mls_translate_gid(dev, &lower.ah_attr);
	if (err)
		return err;
	mutex_lock(&dev->lock);
	if (!qp->kernel && mask & IB_QP_STATE && attr->qp_state == IB_QPS_RTR) {
		if (udata && qp->state == IB_QPS_INIT && qp->lower != qp->first)
			err = qp_return(qp);
		/* a NIC looks at the record when it needs a receive */
		if (qp->srq)
			mls_srq_run(qp->srq);
	}
	if (err)
		goto unlock;
	if (qp->kernel)
		err = mls_kernel_modify_qp(qp, &lower, mask);
	else if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_RESET)
		err = qp_reset_lower(qp);
	else
		err = ib_modify_qp(qp->lower, &lower, mask);
	if (!err && mask & IB_QP_STATE && !qp->kernel) {
		if (attr->qp_state == IB_QPS_ERR)
			qp_in_error(qp);
		qp->state = attr->qp_state;
		if (qp->state == IB_QPS_INIT)
			qp->init = *attr;
		if (qp->state == IB_QPS_RESET) {
			qp_reset(qp);
			err = qp_renew(qp, !udata);
		}
	}
unlock:
	mutex_unlock(&dev->lock);
	mls_engine_kick(dev);
	return err;
}

int mls_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init)
{
	struct mls_qp *qp = to_mls_qp(ibqp);
	u32 ms = READ_ONCE(qp_dev(qp)->faults.query_ms);
	struct ib_qp_init_attr lower;
	int err;

	if (ms && !qp->kernel)
		msleep(ms);
	mutex_lock(&qp_dev(qp)->lock);
	err = ib_query_qp(qp->lower, attr, mask, &lower);
	if (qp->state == IB_QPS_RESET) {
		/* rxe knows in RESET what was before; a NIC need not */
		attr->rq_psn = 0;
		attr->sq_psn = 0;
	} else if (qp->kernel) {
		attr->rq_psn = mls_break_psn(qp, attr->rq_psn);
		attr->qp_state = mls_break_state(qp, attr->qp_state);
	}
	mutex_unlock(&qp_dev(qp)->lock);
	if (err)
		return err;
	attr->cap = qp->cap;
	init->cap = qp->cap;
	init->qp_type = ibqp->qp_type;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	return 0;
}

int mls_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct mls_qp *qp = to_mls_qp(ibqp);
	struct mls_dev *dev = qp_dev(qp);

	if (qp->kernel) {
		mls_kernel_destroy_qp(qp);
		return 0;
	}
	mutex_lock(&dev->lock);
	qp_reset_lower(qp);
	qp_reset(qp);
	list_del(&qp->entry);
	qp_destroy_lower(qp);
	qp_unreserve(qp);
	mutex_unlock(&dev->lock);
	put_page(qp->uar);
	qp_unpin(qp);
	return 0;
}

/**
 * mls_qp_break() - a fatal error: everything else is flushed
 * @qp: the QP; the device's lock is held
 */
void mls_qp_break(struct mls_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	lockdep_assert_held(&qp_dev(qp)->lock);
	if (qp->state == IB_QPS_ERR || qp->state == IB_QPS_RESET)
		return;
	qp->state = IB_QPS_ERR;
	ib_modify_qp(qp->lower, &attr, IB_QP_STATE);
}

void mls_qp_event(struct mls_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->ibqp.device,
		.event = type,
		.element.qp = &qp->ibqp,
	};

	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}
