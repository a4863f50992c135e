// SPDX-License-Identifier: GPL-2.0
/*
 * Verbs for the kernel: queue pairs and completion queues of rxe's, passed through.
 * Their rings are rxe's own, so that the engine has nothing to do with them.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <rdma/ib_mad.h>
#include "mlx5_soft.h"

static void cq_lower_event(struct ib_cq *lower, void *context)
{
	struct mls_cq *cq = context;

	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

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
	struct mls_stashed *first = list_first_entry_or_null(&cq->stash, struct mls_stashed, entry);

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
	struct mls_stashed *stashed;
	unsigned long flags;
	LIST_HEAD(kept);
	struct ib_wc wc;

	spin_lock_irqsave(&cq->stash_lock, flags);
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
	spin_unlock_irqrestore(&cq->stash_lock, flags);
}

void mls_kernel_destroy_cq(struct mls_cq *cq)
{
	struct ib_wc wc;

	while (cq_unstash(cq, &wc))
		;
}

/* rxe's QP gives way to ours; what is of none that is there any more is dropped. */
static int cq_show(struct mls_dev *dev, struct ib_wc *wc, int num)
{
	struct mls_qp *qp;
	int i, n = 0;

	for (i = 0; i < num; i++) {
		qp = xa_load(&dev->kernel_qps, (unsigned long)wc[i].qp);
		if (!qp)
			continue;
		wc[n] = wc[i];
		wc[n++].qp = &qp->ibqp;
	}
	return n;
}

/* Any context. */
int mls_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct mls_cq *cq = to_mls_cq(ibcq);
	unsigned long flags;
	int n, shown;

	if (!cq->kernel)
		return -EINVAL;
	do {
		spin_lock_irqsave(&cq->stash_lock, flags);
		n = cq_poll(cq, num, wc);
		spin_unlock_irqrestore(&cq->stash_lock, flags);
		shown = cq_show(to_mls_dev(ibcq->device), wc, mls_break_wc(ibcq->device, wc, n));
	} while (n && !shown);
	return shown;
}

/* An application arms its queue in the doorbell record. */
int mls_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct mls_cq *cq = to_mls_cq(ibcq);
	unsigned long irq;
	bool missed;
	int err;

	if (!cq->kernel)
		return 0;
	err = ib_req_notify_cq(cq->lower, flags);
	spin_lock_irqsave(&cq->stash_lock, irq);
	missed = flags & IB_CQ_REPORT_MISSED_EVENTS && !list_empty(&cq->stash);
	spin_unlock_irqrestore(&cq->stash_lock, irq);
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
	struct mls_dev *dev = to_mls_dev(qp->ibqp.device);
	struct mls_cq *send, *recv;
	int err;

	qp->gsi = mls_cm && attr->qp_type == IB_QPT_GSI;
	if (qp->gsi)
		lower.qp_type = IB_QPT_UD;
	if ((attr->qp_type != IB_QPT_RC && !qp->gsi) || !attr->send_cq || !attr->recv_cq ||
	    attr->create_flags & ~(mls_pi ? IB_QP_CREATE_INTEGRITY_EN : 0))
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
	/* the core has added what these need already */
	lower.cap.max_rdma_ctxs = 0;
	qp->lower = ib_create_qp(to_mls_pd(qp->ibqp.pd)->lower, &lower);
	if (IS_ERR(qp->lower))
		return PTR_ERR(qp->lower);
	err = xa_err(xa_store(&dev->kernel_qps, (unsigned long)qp->lower, qp, GFP_KERNEL));
	if (err) {
		ib_destroy_qp(qp->lower);
		return err;
	}
	qp->kernel = true;
	qp->srq = attr->srq ? to_mls_srq(attr->srq) : NULL;
	qp->state = IB_QPS_RESET;
	qp->ibqp.qp_num = qp->gsi ? 1 : qp->lower->qp_num;
	lower.cap.max_rdma_ctxs = attr->cap.max_rdma_ctxs;
	attr->cap = lower.cap;
	qp->cap = lower.cap;
	if (qp->gsi)
		mls_gsi_start(qp);
	return 0;
}

/* What it has completed is not shown any more: no CQ finds it. */
void mls_kernel_destroy_qp(struct mls_qp *qp)
{
	if (qp->gsi)
		mls_gsi_stop(qp);
	xa_erase(&to_mls_dev(qp->ibqp.device)->kernel_qps, (unsigned long)qp->lower);
	ib_destroy_qp(qp->lower);
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

/* Something completes that should not. */
static void qp_flush_more(struct mls_qp *qp, u64 wr_id)
{
	struct mls_stashed *stashed = kzalloc(sizeof(*stashed), GFP_KERNEL);
	struct mls_cq *cq = to_mls_cq(qp->ibqp.recv_cq);
	unsigned long flags;

	if (!stashed)
		return;
	stashed->wc.status = IB_WC_WR_FLUSH_ERR;
	stashed->wc.wr_id = wr_id;
	stashed->wc.qp = qp->lower;
	spin_lock_irqsave(&cq->stash_lock, flags);
	list_add_tail(&stashed->entry, &cq->stash);
	spin_unlock_irqrestore(&cq->stash_lock, flags);
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
	/* rxe's QP is an ordinary one, for which a port is chosen */
	if (qp->gsi && to == IB_QPS_INIT && qp->state == IB_QPS_RESET) {
		attr->port_num = 1;
		mask |= IB_QP_PORT;
	}
	err = ib_modify_qp(qp->lower, attr, mask);
	if (err)
		return err;
	if (to == IB_QPS_ERR && qp->state != IB_QPS_ERR) {
		qp_is_over();
		/* 17: a receive of the SRQ is flushed that nothing was received into */
		if (qp->srq && qp->srq->last < PAGE_SIZE && mls_breaks(ibdev, 17))
			qp_flush_more(qp, qp->srq->last);
	}
	if (to == IB_QPS_RESET && qp->state != IB_QPS_RESET) {
		mls_kernel_cq_clean(to_mls_cq(qp->ibqp.send_cq), qp->lower);
		mls_kernel_cq_clean(to_mls_cq(qp->ibqp.recv_cq), qp->lower);
		qp->used = true;
		/* 5: something completes after the RESET */
		if (mls_breaks(ibdev, 5))
			qp_flush_more(qp, 0);
	}
	qp->state = to;
	return 0;
}

/* Requests that name an object of ours, or addresses of the device. */
union kernel_wr {
	struct ib_send_wr send;
	struct ib_rdma_wr rdma;
	struct ib_atomic_wr atomic;
	struct ib_reg_wr reg;
	struct ib_ud_wr ud;
};

static bool wr_is_ours(const struct mls_qp *qp, const struct ib_send_wr *wr)
{
	return qp->gsi || wr->opcode == IB_WR_REG_MR || qp->ibqp.device->dma_device;
}

static size_t wr_size(const struct mls_qp *qp, const struct ib_send_wr *wr)
{
	if (qp->gsi)
		return sizeof(struct ib_ud_wr);
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		return sizeof(struct ib_rdma_wr);
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return sizeof(struct ib_atomic_wr);
	case IB_WR_REG_MR:
		return sizeof(struct ib_reg_wr);
	default:
		return sizeof(struct ib_send_wr);
	}
}

/* One request, with rxe's objects and addresses. */
static int post_one(struct mls_qp *qp, const struct ib_send_wr *wr)
{
	struct ib_sge sge[MLS_MAX_SGE];
	union kernel_wr copy;
	struct ib_mr *mine;
	int err = 0;

	memcpy(&copy, wr, wr_size(qp, wr));
	copy.send.next = NULL;
	if (qp->gsi) {
		copy.ud.ah = to_mls_ah(copy.ud.ah)->lower;
		/* only of its own QP 1 does rxe know which one is meant */
		copy.ud.remote_qkey = IB_QP1_QKEY;
	} else if (wr->opcode == IB_WR_REG_MR) {
		mine = copy.reg.mr;
		copy.reg.mr = to_mls_mr(mine)->lower;
		/* its user may have changed that since it was mapped */
		copy.reg.mr->iova = mine->iova;
	}
	/* what is inline is not mapped */
	if (!(wr->send_flags & IB_SEND_INLINE))
		err = mls_iommu_sges(qp->ibqp.pd, &copy.send.sg_list, wr->num_sge, sge);
	return err ?: ib_post_send(qp->lower, &copy.send, NULL);
}

/* Not for applications: rxe would take any key of its PD's. */
int mls_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad)
{
	struct mls_qp *qp = to_mls_qp(ibqp);
	const struct ib_send_wr *each;
	int err;

	if (!qp->kernel) {
		*bad = wr;
		return -EOPNOTSUPP;
	}
	/* 16: a QP that was reset does nothing any more */
	if (qp->used && mls_breaks(ibqp->device, 16))
		return 0;
	for (each = wr; each && !wr_is_ours(qp, each); each = each->next)
		;
	if (!each)
		return ib_post_send(qp->lower, wr, bad);
	for (; wr; wr = wr->next) {
		err = post_one(qp, wr);
		if (err) {
			*bad = wr;
			return err;
		}
	}
	return 0;
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
	struct ib_sge sge[MLS_MAX_SGE];
	struct ib_recv_wr one;
	int err;

	if (!qp->kernel)
		return refuse_recv(wr, bad);
	if (qp->gsi)
		return mls_gsi_post_recv(qp, wr, bad);
	if (wr->num_sge)
		mls_break_recv(ibqp->device, wr->sg_list);
	for (; wr; wr = wr->next) {
		one = *wr;
		one.next = NULL;
		err = mls_iommu_sges(ibqp->pd, &one.sg_list, one.num_sge, sge) ?:
		      ib_post_recv(qp->lower, &one, NULL);
		if (err) {
			*bad = wr;
			return err;
		}
	}
	return 0;
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
	struct ib_sge sge[MLS_MAX_SGE];
	struct ib_recv_wr one;
	int err;

	if (!srq->kernel)
		return refuse_recv(wr, bad);
	for (; wr; wr = wr->next) {
		one = *wr;
		one.next = NULL;
		one.wr_id = mls_break_srq_recv(srq, wr->wr_id);
		err = mls_iommu_sges(ibsrq->pd, &one.sg_list, one.num_sge, sge) ?:
		      ib_post_srq_recv(srq->lower, &one, NULL);
		if (err) {
			*bad = wr;
			return err;
		}
		WRITE_ONCE(srq->last, wr->wr_id);
	}
	return 0;
}

/* What mlx5's driver waits for in drain_sq and drain_rq. */
struct drain {
	struct ib_cqe cqe;
	struct completion done;
};

static void drain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct drain, cqe)->done);
}

/* Everybody has to see that the QP is in error: by the core. */
static int drain_begin(struct ib_qp *ibqp, struct drain *drain)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	drain->cqe.done = drain_done;
	init_completion(&drain->done);
	return ib_modify_qp(ibqp, &attr, IB_QP_STATE);
}

static void drain_wait(struct drain *drain, struct ib_cq *cq, int err)
{
	/* as mlx5's driver: the QP is not what it has to be, and nothing is waited for */
	if (WARN_ONCE(err, "mlx5_soft: a queue was not drained: %d", err))
		return;
	if (cq->poll_ctx != IB_POLL_DIRECT)
		wait_for_completion(&drain->done);
	else
		while (!wait_for_completion_timeout(&drain->done, HZ / 10))
			ib_process_cq_direct(cq, -1);
}

/* As mlx5's driver they post to the device themselves, past the core. */
void mls_drain_sq(struct ib_qp *ibqp)
{
	struct drain drain;
	struct ib_rdma_wr wr = { .wr = { .opcode = IB_WR_RDMA_WRITE, .wr_cqe = &drain.cqe } };
	int err = drain_begin(ibqp, &drain);

	drain_wait(&drain, ibqp->send_cq,
		   err ?: ib_post_send(to_mls_qp(ibqp)->lower, &wr.wr, NULL));
}

void mls_drain_rq(struct ib_qp *ibqp)
{
	struct drain drain;
	struct ib_recv_wr wr = { .wr_cqe = &drain.cqe };
	int err = drain_begin(ibqp, &drain);

	drain_wait(&drain, ibqp->recv_cq,
		   err ?: ib_post_recv(to_mls_qp(ibqp)->lower, &wr, NULL));
}
