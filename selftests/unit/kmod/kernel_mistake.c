// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel user's QP, connected to itself and protected, is given a request that fails on each
 * device: a key is invalidated that names nothing.  The user sees an error in any case.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel_user.h"

#define NO_KEY		0x00800011	/* in the range of rxe's MRs, and none of them */

static int post_mistake(struct kernel_user *u, struct ib_qp *qp)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = NO_KEY, .wr_cqe = &u->send.cqe,
		.send_flags = IB_SEND_SIGNALED,
	};
	int err;

	token_begin(&u->send);
	err = ib_post_send(qp, &wr, NULL);
	if (!err)
		err = token_wait(u, &u->send);
	if (!err && !u->send.status)
		err = -EILSEQ;
	return err;
}

static int mistake_run(struct kernel_user *u, struct ib_qp_init_attr *attr)
{
	struct ib_qp *qp = ib_create_qp(u->pd, attr);
	int err;

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	err = kernel_user_connect(u->ibdev, qp, qp->qp_num, 100, 100);
	if (!err)
		err = kernel_push_path(qp, false);
	if (!err)
		err = post_mistake(u, qp);
	ib_destroy_qp(qp);
	return err;
}

int kernel_mistake(struct ib_device *ibdev)
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
		err = mistake_run(&user, &attr);
		ib_free_cq(user.cq);
	}
	ib_dealloc_pd(user.pd);
	if (err)
		pr_err("a request that fails: %d\n", err);
	return err;
}
