// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel user's QP is drained on the backup while each of its queues has as much outstanding as
 * it takes, and its CQ has room for a part of that.  The QP is connected to itself.  Whoever runs
 * this has its pair drained, so that the QP leaves its NIC as soon as it is protected.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include "kernel_user.h"

#define CQES		4
#define MOST		(8 * DEPTH)

static struct token tokens[MOST];
static unsigned int handled;

static void full_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct token *token = container_of(wc->wr_cqe, struct token, cqe);

	token->status = wc->status;
	handled++;
}

/* Without a receive a SEND waits, and without a SEND a receive. */
static int post_one(struct ib_qp *qp, struct ib_cqe *cqe, bool recv)
{
	struct ib_send_wr send = { .opcode = IB_WR_SEND, .wr_cqe = cqe };
	struct ib_recv_wr wr = { .wr_cqe = cqe };

	return recv ? ib_post_recv(qp, &wr, NULL) : ib_post_send(qp, &send, NULL);
}

/* Post until the queue is full; the number of requests. */
static int fill(struct ib_qp *qp, bool recv)
{
	int n, err = 0;

	handled = 0;
	for (n = 0; n < MOST; n++) {
		tokens[n].cqe.done = full_done;
		tokens[n].status = IB_WC_SUCCESS;
		err = post_one(qp, &tokens[n].cqe, recv);
		if (err)
			break;
	}
	return err == -ENOMEM ? n : -EINVAL;
}

static int drain(struct ib_qp *qp, bool recv)
{
	int i, n = fill(qp, recv);

	if (n <= 2 * CQES) {
		pr_err("%d requests fit\n", n);
		return -EINVAL;
	}
	if (recv)
		ib_drain_rq(qp);
	else
		ib_drain_sq(qp);
	for (i = 0; i < n && tokens[i].status; i++)
		;
	if (i == n && handled == n)
		return 0;
	pr_err("drained (%d), and of %d %u were handled, %d flushed\n", recv, n, handled, i);
	return -EIO;
}

static int full_run(struct ib_device *ibdev, struct ib_pd *pd, struct ib_cq *cq, bool recv)
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_ALL_WR, .send_cq = cq, .recv_cq = cq,
		.cap = {
			.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_qp *qp = ib_create_qp(pd, &attr);
	int err;

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	err = kernel_user_connect(ibdev, qp, qp->qp_num, 100, 100);
	if (!err)
		err = kernel_push_path(qp, true);
	if (!err)
		err = drain(qp, recv);
	ib_destroy_qp(qp);
	return err;
}

static int full_way(struct ib_device *ibdev, enum ib_poll_context ctx)
{
	struct ib_pd *pd = ib_alloc_pd(ibdev, 0);
	struct ib_cq *cq;
	int err;

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	cq = ib_alloc_cq(ibdev, NULL, CQES, 0, ctx);
	err = PTR_ERR_OR_ZERO(cq);
	if (!err) {
		err = full_run(ibdev, pd, cq, false) ?: full_run(ibdev, pd, cq, true);
		ib_free_cq(cq);
	}
	ib_dealloc_pd(pd);
	return err;
}

int kernel_full(struct ib_device *ibdev)
{
	static const enum ib_poll_context ways[] = {
		IB_POLL_DIRECT, IB_POLL_WORKQUEUE, IB_POLL_SOFTIRQ,
	};
	int i, err = kernel_push_init();

	for (i = 0; !err && i < ARRAY_SIZE(ways); i++) {
		err = full_way(ibdev, ways[i]);
		if (err)
			pr_err("full queues, way of polling %d: %d\n", ways[i], err);
	}
	return err;
}
