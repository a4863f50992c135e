// SPDX-License-Identifier: GPL-2.0
/*
 * Draining queues of users in the kernel (ib_drain_qp()).  A driver that has operations for that
 * posts to its own QP, which may be away.  Then it is drained as the core does it where a driver
 * has none: by a request that the engine flushes, like any.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include "core/kernel_qp.h"
#include "core/object.h"
#include "core/qp.h"
#include "verbs/verbs.h"

/* The last request, or receive, of a queue. */
struct drain {
	struct ib_cqe cqe;
	struct completion done;
};

static void drain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct drain, cqe)->done);
}

/* As long as the core waits: the request is on the stack, and the engine flushes what it has. */
static void drain_wait(struct drain *drain, struct ib_cq *cq)
{
	if (cq->poll_ctx != IB_POLL_DIRECT)
		wait_for_completion(&drain->done);
	else
		while (!wait_for_completion_timeout(&drain->done, HZ / 10))
			ib_process_cq_direct(cq, -1);
}

static int post_last_send(struct ib_qp *qp, struct drain *drain)
{
	struct ib_rdma_wr wr = { .wr = { .opcode = IB_WR_RDMA_WRITE, .wr_cqe = &drain->cqe } };

	return ib_post_send(qp, &wr.wr, NULL);
}

static int post_last_recv(struct ib_qp *qp, struct drain *drain)
{
	struct ib_recv_wr wr = { .wr_cqe = &drain->cqe };

	return ib_post_recv(qp, &wr, NULL);
}

/* Drain a queue of a QP that is in ERR, as its user knows it, and away. */
static void drain_away(struct ib_qp *qp, struct ib_cq *cq,
		       int (*post)(struct ib_qp *qp, struct drain *drain))
{
	struct drain drain = { .cqe.done = drain_done };

	init_completion(&drain.done);
	if (!WARN_ONCE(post(qp, &drain), "rdma_shift: a queue could not be drained\n"))
		drain_wait(&drain, cq);
}

static bool is_away(struct shift_qp *sqp)
{
	bool away;

	mutex_lock(&sqp->lock);
	away = sqp->qp && shift_qp_is_away(sqp);
	mutex_unlock(&sqp->lock);
	return away;
}

/*
 * Nobody waits within the read section of the device, as the removal of the device waits for that.
 * The shadow of a QP, which its user keeps meanwhile, keeps the module loaded.
 */
static void drain_queue(struct ib_qp *qp, bool recv)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	void (*drivers)(struct ib_qp *qp);
	struct shift_dev *sdev;
	struct shift_qp *sqp;
	int idx;

	sdev = shift_verb_begin(qp->device, &idx);
	drivers = recv ? sdev->saved.drain_rq : sdev->saved.drain_sq;
	sqp = shift_qp_find(qp);
	if (!sqp || !sqp->kernel) {
		drivers(qp);
		shift_verb_end(sdev, idx);
		return;
	}
	shift_verb_end(sdev, idx);
	/* after that it does not leave its path any more */
	if (!ib_modify_qp(qp, &attr, IB_QP_STATE) && is_away(sqp))
		drain_away(qp, recv ? qp->recv_cq : qp->send_cq,
			   recv ? post_last_recv : post_last_send);
	else
		drivers(qp);
}

static void wrap_drain_sq(struct ib_qp *qp)
{
	drain_queue(qp, false);
}

static void wrap_drain_rq(struct ib_qp *qp)
{
	drain_queue(qp, true);
}

const struct ib_device_ops shift_drain_ops = {
	.drain_sq = wrap_drain_sq,
	.drain_rq = wrap_drain_rq,
};
