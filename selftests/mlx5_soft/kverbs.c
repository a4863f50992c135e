// SPDX-License-Identifier: GPL-2.0
/*
 * Verbs for the kernel: queue pairs and completion queues of rxe's, passed through.
 * Their rings are rxe's own, so that the engine has nothing to do with them.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/version.h>
#include "mlx5_soft.h"

static void cq_lower_event(struct ib_cq *lower, void *context)
{
	struct mls_cq *cq = context;

	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/* Polled before another QP's RESET, which has taken its own away. */
struct stashed {
	struct list_head entry;
	struct ib_wc wc;
};

int mls_kernel_create_cq(struct mls_cq *cq, const struct ib_cq_init_attr *attr)
{
	struct mls_dev *dev = to_mls_dev(cq->ibcq.device);
	struct ib_cq_init_attr lower = { .cqe = attr->cqe };

	cq->lower = ib_create_cq(dev->lower, cq_lower_event, NULL, cq, &lower);
	if (IS_ERR(cq->lower))
		return PTR_ERR(cq->lower);
	cq->kernel = true;
	cq->ibcq.cqe = cq->lower->cqe;
	spin_lock_init(&cq->stash_lock);
	INIT_LIST_HEAD(&cq->stash);
	return 0;
}

/* @cq->stash_lock */
static bool cq_unstash(struct mls_cq *cq, struct ib_wc *wc)
{
	struct stashed *first = list_first_entry_or_null(&cq->stash, struct stashed, entry);

	if (!first)
		return false;
	*wc = first->wc;
	list_del(&first->entry);
	kfree(first);
	return true;
}

static int cq_poll(struct mls_cq *cq, int num, struct ib_wc *wc)
{
	int n = 0;

	while (n < num && cq_unstash(cq, &wc[n]))
		n++;
	return n == num ? n : n + max(ib_poll_cq(cq->lower, num - n, wc + n), 0);
}

/**
 * mls_kernel_cq_clean() - forget what a QP that was reset has completed
 * @cq: a CQ of the kernel's
 * @lower: the QP below
 *
 * mlx5's driver does that (mlx5_ib_cq_clean()): who did not poll before has lost it.
 */
void mls_kernel_cq_clean(struct mls_cq *cq, struct ib_qp *lower)
{
	struct stashed *stashed;
	LIST_HEAD(kept);
	struct ib_wc wc;

	spin_lock_bh(&cq->stash_lock);
	while (cq_poll(cq, 1, &wc)) {
		if (wc.qp == lower)
			continue;
		stashed = kmalloc(sizeof(*stashed), GFP_ATOMIC);
		if (!stashed)
			continue;
		stashed->wc = wc;
		list_add_tail(&stashed->entry, &kept);
	}
	list_splice(&kept, &cq->stash);
	spin_unlock_bh(&cq->stash_lock);
}

void mls_kernel_destroy_cq(struct mls_cq *cq)
{
	struct ib_wc wc;

	while (cq_unstash(cq, &wc))
		;
}

int mls_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct mls_cq *cq = to_mls_cq(ibcq);
	int i, n;

	if (!cq->kernel)
		return -EINVAL;
	spin_lock_bh(&cq->stash_lock);
	n = cq_poll(cq, num, wc);
	spin_unlock_bh(&cq->stash_lock);
	n = mls_break_wc(ibcq->device, wc, n);
	/* rxe's, and it may be gone already */
	for (i = 0; i < n; i++)
		wc[i].qp = NULL;
	return n;
}

/* An application arms its queue in the doorbell record. */
int mls_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct mls_cq *cq = to_mls_cq(ibcq);
	bool missed;
	int err;

	if (!cq->kernel)
		return 0;
	err = ib_req_notify_cq(cq->lower, flags);
	spin_lock_bh(&cq->stash_lock);
	missed = flags & IB_CQ_REPORT_MISSED_EVENTS && !list_empty(&cq->stash);
	spin_unlock_bh(&cq->stash_lock);
	return err ?: missed;
}

static void qp_lower_event(struct ib_event *event, void *context)
{
	mls_qp_event(context, event->event);
}

int mls_kernel_create_qp(struct mls_qp *qp, struct ib_qp_init_attr *attr)
{
	struct ib_qp_init_attr lower = {
		.event_handler = qp_lower_event,
		.qp_context = qp,
		.cap = attr->cap,
		.sq_sig_type = attr->sq_sig_type,
		.qp_type = attr->qp_type,
	};
	struct mls_cq *send, *recv;

	if (attr->qp_type != IB_QPT_RC || attr->create_flags ||
	    !attr->send_cq || !attr->recv_cq)
		return -EOPNOTSUPP;
	if (attr->srq && !to_mls_srq(attr->srq)->kernel)
		return -EINVAL;
	send = to_mls_cq(attr->send_cq);
	recv = to_mls_cq(attr->recv_cq);
	if (!send->kernel || !recv->kernel)
		return -EINVAL;
	lower.send_cq = send->lower;
	lower.recv_cq = recv->lower;
	lower.srq = attr->srq ? to_mls_srq(attr->srq)->lower : NULL;
	qp->lower = ib_create_qp(to_mls_pd(qp->ibqp.pd)->lower, &lower);
	if (IS_ERR(qp->lower))
		return PTR_ERR(qp->lower);
	qp->kernel = true;
	qp->srq = attr->srq ? to_mls_srq(attr->srq) : NULL;
	qp->state = IB_QPS_RESET;
	qp->ibqp.qp_num = qp->lower->qp_num;
	attr->cap = lower.cap;
	qp->cap = lower.cap;
	return 0;
}

/*
 * In ERR: packets that rxe was processing as it was told so are done with.  On 6.1 that is so after
 * a grace period; on 6.12 a worker processes them, which nobody can wait for.
 */
static void qp_is_over(void)
{
	synchronize_rcu_expedited();
	if (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0))
		usleep_range(2000, 4000);
}

/* Something is flushed that should not be. */
static void qp_flush_more(struct mls_cq *cq, u64 wr_id)
{
	struct stashed *stashed = kzalloc(sizeof(*stashed), GFP_KERNEL);

	if (!stashed)
		return;
	stashed->wc.status = IB_WC_WR_FLUSH_ERR;
	stashed->wc.wr_id = wr_id;
	spin_lock_bh(&cq->stash_lock);
	list_add_tail(&stashed->entry, &cq->stash);
	spin_unlock_bh(&cq->stash_lock);
}

/* The device's lock is held. */
int mls_kernel_modify_qp(struct mls_qp *qp, struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr err_attr = { .qp_state = IB_QPS_ERR };
	struct ib_device *ibdev = qp->ibqp.device;
	enum ib_qp_state to = mask & IB_QP_STATE ? attr->qp_state : qp->state;
	int err;

	/* 1: a QP in ERR sends on, until it is reset */
	if (to == IB_QPS_ERR && mls_breaks(ibdev, 1)) {
		qp->state = IB_QPS_ERR;
		return 0;
	}
	if (to == IB_QPS_RESET && mls_breaks(ibdev, 1) &&
	    !ib_modify_qp(qp->lower, &err_attr, IB_QP_STATE))
		qp_is_over();
	err = ib_modify_qp(qp->lower, attr, mask);
	if (err)
		return err;
	if (to == IB_QPS_ERR && qp->state != IB_QPS_ERR) {
		qp_is_over();
		/* 17: a receive of the SRQ is flushed that nothing was received into */
		if (qp->srq && qp->srq->last < PAGE_SIZE && mls_breaks(ibdev, 17))
			qp_flush_more(to_mls_cq(qp->ibqp.recv_cq), qp->srq->last);
	}
	if (to == IB_QPS_RESET && qp->state != IB_QPS_RESET) {
		mls_kernel_cq_clean(to_mls_cq(qp->ibqp.send_cq), qp->lower);
		mls_kernel_cq_clean(to_mls_cq(qp->ibqp.recv_cq), qp->lower);
		qp->used = true;
		/* 5: something completes after the RESET */
		if (mls_breaks(ibdev, 5))
			qp_flush_more(to_mls_cq(qp->ibqp.recv_cq), 0);
	}
	qp->state = to;
	return 0;
}

/* Not for applications: rxe would take any key of its PD's. */
int mls_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad)
{
	struct mls_qp *qp = to_mls_qp(ibqp);

	if (!qp->kernel) {
		*bad = wr;
		return -EOPNOTSUPP;
	}
	/* 16: a QP that was reset does nothing any more */
	if (qp->used && mls_breaks(ibqp->device, 16))
		return 0;
	return ib_post_send(qp->lower, wr, bad);
}

static int refuse_recv(const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	*bad = wr;
	return -EOPNOTSUPP;
}

int mls_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad)
{
	struct mls_qp *qp = to_mls_qp(ibqp);

	if (!qp->kernel)
		return refuse_recv(wr, bad);
	if (wr->num_sge)
		mls_break_recv(ibqp->device, wr->sg_list);
	return ib_post_recv(qp->lower, wr, bad);
}

int mls_kernel_create_srq(struct mls_srq *srq, struct ib_srq_init_attr *attr)
{
	struct ib_srq_init_attr lower = {
		.event_handler = mls_srq_lower_event,
		.srq_context = srq,
		.attr = attr->attr,
		.srq_type = IB_SRQT_BASIC,
	};

	srq->lower = ib_create_srq(to_mls_pd(srq->ibsrq.pd)->lower, &lower);
	if (IS_ERR(srq->lower))
		return PTR_ERR(srq->lower);
	srq->kernel = true;
	attr->attr = lower.attr;
	return 0;
}

int mls_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad)
{
	struct mls_srq *srq = to_mls_srq(ibsrq);
	struct ib_recv_wr one;
	int err;

	if (!srq->kernel)
		return refuse_recv(wr, bad);
	for (; wr; wr = wr->next) {
		one = *wr;
		one.next = NULL;
		one.wr_id = mls_break_srq_recv(srq, wr->wr_id);
		err = ib_post_srq_recv(srq->lower, &one, bad);
		if (err) {
			*bad = wr;
			return err;
		}
		WRITE_ONCE(srq->last, wr->wr_id);
	}
	return 0;
}

/* The key for all memory that rxe has made for its PD. */
struct ib_mr *mls_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct mls_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->ibmr.pd = ibpd;
	mr->ibmr.lkey = to_mls_pd(ibpd)->lower->local_dma_lkey;
	return &mr->ibmr;
}
