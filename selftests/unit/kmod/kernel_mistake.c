// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel user's QP, connected to itself and protected, is given a request that fails on each
 * device: a key is invalidated that names nothing, or an MR is registered that is registered.  The
 * user sees an error in any case.  Or its user maps an MR with signatures, which ends the
 * protection, as their allocation does not.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include "kernel_user.h"

#define NO_KEY		0x00800011	/* in the range of rxe's MRs, and none of them */

static int post_and_wait(struct kernel_user *u, struct ib_qp *qp, const struct ib_send_wr *wr)
{
	int err;

	token_begin(&u->send);
	err = ib_post_send(qp, wr, NULL);
	return err ?: token_wait(u, &u->send);
}

static int invalidate_nothing(struct kernel_user *u, struct ib_qp *qp)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = NO_KEY, .wr_cqe = &u->send.cqe,
		.send_flags = IB_SEND_SIGNALED,
	};

	return post_and_wait(u, qp, &wr);
}

static int register_twice(struct kernel_user *u, struct ib_qp *qp)
{
	struct ib_reg_wr wr = {
		.wr = {
			.opcode = IB_WR_REG_MR, .wr_cqe = &u->send.cqe,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = u->mr, .access = IB_ACCESS_LOCAL_WRITE,
	};
	struct scatterlist sg;
	int err;

	sg_init_one(&sg, u->memory, PAGE_SIZE);
	if (ib_dma_map_sg(u->ibdev, &sg, 1, DMA_BIDIRECTIONAL) != 1)
		return -EIO;
	err = ib_map_mr_sg(u->mr, &sg, 1, NULL, PAGE_SIZE) == 1 ? 0 : -EIO;
	wr.key = u->mr->rkey;
	err = err ?: post_and_wait(u, qp, &wr.wr) ?: u->send.status ? -EIO : 0;
	/* its user would have to invalidate it first */
	err = err ?: post_and_wait(u, qp, &wr.wr);
	ib_dma_unmap_sg(u->ibdev, &sg, 1, DMA_BIDIRECTIONAL);
	return err;
}

static int map_signed(struct kernel_user *u, struct ib_qp *qp)
{
	struct ib_mr *mr = ib_alloc_mr_integrity(u->pd, 1, 1);
	struct scatterlist sg;
	int err;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	sg_init_one(&sg, u->memory, PAGE_SIZE);
	/* long enough for what would have ended its protection by now */
	msleep(500);
	err = kernel_push_path(qp, false);
	err = err ?: ib_map_mr_sg_pi(mr, &sg, 1, NULL, NULL, 0, NULL, PAGE_SIZE);
	err = err ?: kernel_push_reason(qp, SHIFT_REASON_OPERATION);
	ib_dereg_mr(mr);
	return err;
}

static int mistake_make(struct kernel_user *u, struct ib_qp *qp, unsigned int which)
{
	int err;

	if (which == 3)
		return map_signed(u, qp);
	err = which == 2 ? register_twice(u, qp) : invalidate_nothing(u, qp);
	return err ?: u->send.status ? 0 : -EILSEQ;
}

static int mistake_run(struct kernel_user *u, struct ib_qp_init_attr *attr, unsigned int which)
{
	struct ib_qp *qp = ib_create_qp(u->pd, attr);
	int err;

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	err = kernel_user_connect(u->ibdev, qp, qp->qp_num, 100, 100);
	if (!err)
		err = kernel_push_path(qp, false);
	if (!err)
		err = mistake_make(u, qp, which);
	ib_destroy_qp(qp);
	return err;
}

static int mistake_alloc(struct kernel_user *u)
{
	u->memory = kzalloc(PAGE_SIZE, GFP_KERNEL);
	u->mr = ib_alloc_mr(u->pd, IB_MR_TYPE_MEM_REG, 1);
	return u->memory && !IS_ERR(u->mr) ? 0 : -ENOMEM;
}

static void mistake_free(struct kernel_user *u)
{
	if (!IS_ERR(u->mr))
		ib_dereg_mr(u->mr);
	kfree(u->memory);
}

int kernel_mistake(struct ib_device *ibdev, unsigned int which)
{
	static struct kernel_user user;
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.cap = {
			.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	int err = kernel_push_init();

	if (err)
		return err;
	user.ibdev = ibdev;
	user.ctx = IB_POLL_WORKQUEUE;
	user.pd = ib_alloc_pd(ibdev, 0);
	if (IS_ERR(user.pd))
		return PTR_ERR(user.pd);
	user.cq = ib_alloc_cq(ibdev, NULL, 4 * DEPTH, 0, user.ctx);
	err = PTR_ERR_OR_ZERO(user.cq);
	if (!err) {
		attr.send_cq = user.cq;
		attr.recv_cq = user.cq;
		err = mistake_alloc(&user) ?: mistake_run(&user, &attr, which);
		mistake_free(&user);
		ib_free_cq(user.cq);
	}
	ib_dealloc_pd(user.pd);
	if (err)
		pr_err("a request that fails: %d\n", err);
	return err;
}
