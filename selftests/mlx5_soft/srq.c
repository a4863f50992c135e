// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues: a list in the user's buffer, each WQE naming the next, and
 * an rxe queue that is given what the doorbell record covers.
 */
#include <linux/log2.h>
#include <rdma/mlx5-abi.h>
#include <rdma/uverbs_ioctl.h>
#include "mlx5_soft.h"

#define MLS_LOWER_SRQ_SGE	27	/* rxe's most */

void mls_srq_lower_event(struct ib_event *event, void *context)
{
	struct mls_srq *srq = context;
	struct ib_event ours = {
		.device = srq->ibsrq.device,
		.event = event->event,
		.element.srq = &srq->ibsrq,
	};

	if (srq->ibsrq.event_handler)
		srq->ibsrq.event_handler(&ours, srq->ibsrq.srq_context);
}

static int srq_sizes(struct mls_srq *srq, const struct ib_srq_attr *attr)
{
	u32 size;

	if (!attr->max_wr || attr->max_wr >= MLS_MAX_WQ ||
	    attr->max_sge > MLS_MAX_RQ_DESC / sizeof(struct mlx5_wqe_data_seg) - 1)
		return -EINVAL;
	srq->count = roundup_pow_of_two(attr->max_wr + 1);
	size = sizeof(struct mlx5_wqe_srq_next_seg) +
		attr->max_sge * sizeof(struct mlx5_wqe_data_seg);
	srq->shift = max(order_base_2(size), 5);
	srq->max_gs = min_t(u32, (1U << srq->shift) / sizeof(struct mlx5_wqe_data_seg) - 1,
			    MLS_LOWER_SRQ_SGE);
	return 0;
}

static int srq_pin(struct mls_srq *srq, const struct mlx5_ib_create_srq *cmd)
{
	struct ib_device *ibdev = srq->ibsrq.device;
	int err;

	err = mls_pin_init(&srq->buf, ibdev, cmd->buf_addr, (size_t)srq->count << srq->shift, 0);
	if (err)
		return err;
	err = mls_pin_record(&srq->db, ibdev, cmd->db_addr, sizeof(__be32));
	if (err)
		mls_pin_release(&srq->buf);
	return err;
}

int mls_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	struct mls_dev *dev = to_mls_dev(ibsrq->device);
	struct mlx5_ib_create_srq_resp resp = {};
	struct mls_srq *srq = to_mls_srq(ibsrq);
	struct mlx5_ib_create_srq cmd = {};
	struct ib_srq_init_attr lower = {
		.event_handler = mls_srq_lower_event,
		.srq_context = srq,
		.srq_type = IB_SRQT_BASIC,
	};
	int err;

	if (attr->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!udata)
		return mls_kernel_create_srq(srq, attr);
	err = ib_copy_from_udata(&cmd, udata, min(sizeof(cmd), udata->inlen));
	if (err)
		return err;
	if (cmd.flags)
		return -EOPNOTSUPP;
	err = srq_sizes(srq, &attr->attr);
	if (err)
		return err;
	err = srq_pin(srq, &cmd);
	if (err)
		return err;
	lower.attr.max_wr = srq->count;
	lower.attr.max_sge = srq->max_gs;
	srq->lower = ib_create_srq(to_mls_pd(ibsrq->pd)->lower, &lower);
	if (IS_ERR(srq->lower)) {
		err = PTR_ERR(srq->lower);
		goto err_pin;
	}
	mutex_lock(&dev->lock);
	srq->srqn = ++dev->next_number & 0xffffff;
	resp.srqn = srq->srqn;
	err = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
	if (!err)
		list_add_tail(&srq->entry, &dev->srqs);
	mutex_unlock(&dev->lock);
	if (err)
		goto err_lower;
	attr->attr.max_wr = srq->count - 1;
	return 0;

err_lower:
	ib_destroy_srq(srq->lower);
err_pin:
	mls_pin_release(&srq->db);
	mls_pin_release(&srq->buf);
	return err;
}

int mls_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct mls_dev *dev = to_mls_dev(ibsrq->device);
	struct mls_srq *srq = to_mls_srq(ibsrq);
	int err;

	if (mask != IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	/* what was posted before counts */
	mutex_lock(&dev->lock);
	if (!srq->kernel)
		mls_srq_run(srq);
	err = ib_modify_srq(srq->lower, attr, mask);
	mutex_unlock(&dev->lock);
	return err;
}

int mls_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct mls_srq *srq = to_mls_srq(ibsrq);
	int err;

	err = ib_query_srq(srq->lower, attr);
	if (err || srq->kernel)
		return err;
	attr->max_wr = srq->count - 1;
	attr->max_sge = srq->max_gs;
	return 0;
}

int mls_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct mls_dev *dev = to_mls_dev(ibsrq->device);
	struct mls_srq *srq = to_mls_srq(ibsrq);

	if (srq->kernel) {
		ib_destroy_srq(srq->lower);
		return 0;
	}
	mutex_lock(&dev->lock);
	list_del(&srq->entry);
	mutex_unlock(&dev->lock);
	ib_destroy_srq(srq->lower);
	mls_pin_release(&srq->db);
	mls_pin_release(&srq->buf);
	return 0;
}

static bool srq_take(struct mls_srq *srq)
{
	struct mls_dev *dev = to_mls_dev(srq->ibsrq.device);
	const struct mlx5_wqe_srq_next_seg *next = (const void *)dev->wqe;
	u16 index = srq->next & (srq->count - 1);
	const struct ib_recv_wr *wrong;
	struct ib_sge sge[MLS_LOWER_SRQ_SGE];
	struct ib_recv_wr wr = {
		.sg_list = sge,
		.wr_id = mls_wr_id(MLS_SRQ_RECV, 0, index),
	};

	mls_pin_read(&srq->buf, (size_t)index << srq->shift, dev->wqe, 1UL << srq->shift);
	wr.num_sge = mls_wqe_scatter(dev, srq->ibsrq.pd, next + 1, srq->max_gs, sge);
	if (ib_post_srq_recv(srq->lower, &wr, &wrong))
		return false;
	srq->next = be16_to_cpu(next->next_wqe_index);
	srq->counter++;
	srq->posted++;
	dev->stats.recvs++;
	return true;
}

/**
 * mls_srq_run() - take what was posted since the last time
 * @srq: the queue; the device's lock is held
 *
 * Return: whether there was anything to do.
 */
bool mls_srq_run(struct mls_srq *srq)
{
	struct ib_event event = { .event = IB_EVENT_SRQ_ERR };
	bool any = false;
	u16 left;

	if (srq->broken)
		return false;
	left = mls_pin_word(&srq->db, 0) - srq->counter;
	if (left > srq->count) {
		srq->broken = true;
		mls_srq_lower_event(&event, srq);
		return true;
	}
	for (; left && srq->posted < srq->count; left--) {
		if (!srq_take(srq))
			break;
		any = true;
	}
	return any;
}
