// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: the user's ring, and an rxe queue whose completions are turned
 * into its entries.
 */
#include <linux/log2.h>
#include <rdma/mlx5-abi.h>
#include <rdma/uverbs_ioctl.h>
#include "mlx5_soft.h"

/* In softirq or under rxe's locks. */
static void cq_lower_event(struct ib_cq *lower, void *context)
{
	struct mls_cq *cq = context;

	atomic_set(&cq->poked, 1);
	mls_engine_kick(to_mls_dev(cq->ibcq.device));
}

static int cq_pin(struct mls_cq *cq, const struct mlx5_ib_create_cq *cmd)
{
	struct ib_device *ibdev = cq->ibcq.device;
	int err;

	err = mls_pin_init(&cq->buf, ibdev, cmd->buf_addr, (size_t)cq->ncqe * cq->cqe_size,
			   IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	err = mls_pin_record(&cq->db, ibdev, cmd->db_addr, 2 * sizeof(__be32));
	if (err)
		mls_pin_release(&cq->buf);
	return err;
}

int mls_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  struct ib_udata *udata)
{
	struct mls_dev *dev = to_mls_dev(ibcq->device);
	struct ib_cq_init_attr lower = { .cqe = MLS_LOWER_CQE };
	struct mlx5_ib_create_cq_resp resp = {};
	struct mls_cq *cq = to_mls_cq(ibcq);
	struct mlx5_ib_create_cq cmd = {};
	int err;

	if (!udata)
		return mls_kernel_create_cq(cq, attr);
	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe >= MLS_MAX_CQE)
		return -EINVAL;
	err = ib_copy_from_udata(&cmd, udata, min(sizeof(cmd), udata->inlen));
	if (err)
		return err;
	if (cmd.cqe_size != 64 && cmd.cqe_size != 128)
		return -EINVAL;
	if (cmd.cqe_comp_en || cmd.flags)
		return -EOPNOTSUPP;
	cq->cqe_size = cmd.cqe_size;
	cq->ncqe = roundup_pow_of_two(attr->cqe + 1);
	cq->fired = -1;
	atomic_set(&cq->poked, 1);
	err = cq_pin(cq, &cmd);
	if (err)
		return err;
	cq->lower = ib_create_cq(dev->lower, cq_lower_event, NULL, cq, &lower);
	if (IS_ERR(cq->lower)) {
		err = PTR_ERR(cq->lower);
		goto err_pin;
	}
	mutex_lock(&dev->lock);
	cq->cqn = ++dev->next_number & 0xffffff;
	resp.cqn = cq->cqn;
	err = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
	if (!err)
		list_add_tail(&cq->entry, &dev->cqs);
	mutex_unlock(&dev->lock);
	if (err)
		goto err_lower;
	ibcq->cqe = cq->ncqe - 1;
	mls_engine_kick(dev);
	return 0;

err_lower:
	ib_destroy_cq(cq->lower);
err_pin:
	mls_pin_release(&cq->db);
	mls_pin_release(&cq->buf);
	return err;
}

int mls_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct mls_dev *dev = to_mls_dev(ibcq->device);
	struct mls_cq *cq = to_mls_cq(ibcq);

	if (cq->kernel) {
		ib_destroy_cq(cq->lower);
		mls_kernel_destroy_cq(cq);
		return 0;
	}
	mutex_lock(&dev->lock);
	list_del(&cq->entry);
	mutex_unlock(&dev->lock);
	ib_destroy_cq(cq->lower);
	mls_pin_release(&cq->db);
	mls_pin_release(&cq->buf);
	return 0;
}

/**
 * mls_resize_cq() - go on in another ring of the user's
 * @ibcq: the queue
 * @cqe: entries that it has to have room for
 * @udata: where that ring is
 *
 * Room in the rxe queue goes by the QPs (qp_reserve()), and stays as it is.
 *
 * Return: 0 or -errno; then all is as before.
 */
int mls_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct mls_dev *dev = to_mls_dev(ibcq->device);
	struct mls_cq *cq = to_mls_cq(ibcq);
	struct mlx5_ib_resize_cq cmd = {};
	struct mls_pin buf = {};
	u32 ncqe;
	int err;

	if (!udata)
		return -EOPNOTSUPP;
	if (cqe < 1 || cqe >= MLS_MAX_CQE)
		return -EINVAL;
	ncqe = roundup_pow_of_two(cqe + 1);
	/* as mlx5's driver does: libmlx5 does not ask then, and awaits no entry */
	if (ncqe == cq->ncqe)
		return 0;
	err = ib_copy_from_udata(&cmd, udata, min(sizeof(cmd), udata->inlen));
	if (err)
		return err;
	if (cmd.cqe_size != cq->cqe_size || cmd.reserved0 || cmd.reserved1)
		return -EINVAL;
	err = mls_pin_init(&buf, ibcq->device, cmd.buf_addr, (size_t)ncqe * cq->cqe_size,
			   IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	mutex_lock(&dev->lock);
	err = mls_cqe_resize(cq, ncqe);
	if (!err) {
		swap(cq->buf, buf);
		cq->ncqe = ncqe;
		ibcq->cqe = ncqe - 1;
	}
	mutex_unlock(&dev->lock);
	mls_pin_release(&buf);
	return err;
}

static void cq_handle(const struct ib_wc *wc)
{
	struct mls_qp *qp = wc->qp->qp_context;

	enum mls_kind kind = wc->wr_id >> 16 & 0xffff;

	/* of before a reset; a shared receive is told all the same */
	if (kind != MLS_SRQ_RECV && wc->wr_id >> 32 != qp->epoch)
		return;
	if (kind != MLS_SRQ_RECV && qp->resetting && wc->status != IB_WC_SUCCESS)
		return;
	if (kind == MLS_SEND)
		mls_sq_complete(qp, wc);
	else
		mls_rq_complete(qp, wc);
}

/**
 * mls_cq_drain() - turn what rxe has completed into entries
 * @cq: the queue; the device's lock is held
 *
 * Also called before an rxe QP is destroyed, so that no completion names a QP that
 * is no more.
 *
 * Return: whether there was any.
 */
bool mls_cq_drain(struct mls_cq *cq)
{
	struct mls_dev *dev = to_mls_dev(cq->ibcq.device);
	bool any = false;
	int i, n;

	lockdep_assert_held(&dev->lock);
	/* armed before it is emptied, so that nothing is missed between */
	if (atomic_xchg(&cq->poked, 0))
		ib_req_notify_cq(cq->lower, IB_CQ_NEXT_COMP);
	do {
		n = ib_poll_cq(cq->lower, MLS_POLL_BATCH, dev->wc);
		for (i = 0; i < n; i++)
			cq_handle(&dev->wc[i]);
		any |= n > 0;
	} while (n == MLS_POLL_BATCH);
	return any;
}
