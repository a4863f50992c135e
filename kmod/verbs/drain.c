// SPDX-License-Identifier: GPL-2.0
/*
 * Draining queues of users in the kernel (ib_drain_qp()).  A driver that has operations for that
 * posts to its own QP, which may be away.  Then it is drained as the core does it where a driver
 * has none: by a request that the engine flushes, like any.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include "core/kernel_qp.h"
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "verbs/verbs.h"

#define DRAIN_GONE_MS	2000	/* for what is flushed when a device goes; scaled */
#define DRAIN_ROOM_MS	60000	/* for room for the last request; scaled */

static void drain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct shift_kernel_drain, cqe)->done);
}

/* What is flushed is polled by its user, who does it here if nobody else does. */
static void drain_poll(struct ib_cq *cq)
{
	if (cq->poll_ctx == IB_POLL_DIRECT)
		ib_process_cq_direct(cq, -1);
}

/*
 * As long as the core waits, which the engine ends by flushing what it has.  If the QP's device
 * goes meanwhile its user's CQ may be polled past the module: then nobody waits for long.
 */
static void drain_wait(struct shift_qp *sqp, struct shift_kernel_drain *drain, struct ib_cq *cq)
{
	unsigned long end = 0;

	while (!wait_for_completion_timeout(&drain->done, HZ / 10)) {
		drain_poll(cq);
		if (!test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags))
			continue;
		if (!end)
			end = jiffies + shift_scaled_jiffies(DRAIN_GONE_MS);
		else if (time_after(jiffies, end))
			return;
	}
}

static int post_last_send(struct ib_qp *qp, struct shift_kernel_drain *drain)
{
	struct ib_rdma_wr wr = { .wr = { .opcode = IB_WR_RDMA_WRITE, .wr_cqe = &drain->cqe } };

	return ib_post_send(qp, &wr.wr, NULL);
}

static int post_last_recv(struct ib_qp *qp, struct shift_kernel_drain *drain)
{
	struct ib_recv_wr wr = { .wr_cqe = &drain->cqe };

	return ib_post_recv(qp, &wr, NULL);
}

static int post_last(struct ib_qp *qp, struct shift_kernel_drain *drain, bool recv)
{
	return recv ? post_last_recv(qp, drain) : post_last_send(qp, drain);
}

/*
 * Drain a queue of a QP that is in ERR, as its user knows it, and away.  The request's cqe is the
 * shadow's, which leaves no completion behind when it goes.
 *
 * A queue may have as much outstanding as it takes.  It takes one more request as soon as the
 * oldest one is flushed and polled, which needs no peer.  A user that does not poll for a minute is
 * not waited for: it is told that its queue is not drained, as by the core if a post fails.
 */
static void drain_away(struct shift_qp *sqp, struct ib_qp *qp, bool recv)
{
	unsigned long end = jiffies + shift_scaled_jiffies(DRAIN_ROOM_MS);
	struct shift_kernel_drain *drain = &sqp->kernel->drain[recv];
	struct ib_cq *cq = recv ? qp->recv_cq : qp->send_cq;
	int err;

	drain->cqe.done = drain_done;
	init_completion(&drain->done);
	while ((err = post_last(qp, drain, recv)) == -ENOMEM && time_before(jiffies, end) &&
	       !test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags)) {
		drain_poll(cq);
		usleep_range(500, 1000);
	}
	/* its device goes, and what it has is not flushed any more */
	if (err && test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags))
		return;
	if (!WARN_ONCE(err, "rdma_shift: a queue could not be drained\n"))
		drain_wait(sqp, drain, cq);
}

static bool is_away(struct shift_qp *sqp)
{
	bool away;

	mutex_lock(&sqp->lock);
	away = sqp->qp && shift_qp_is_away(sqp);
	mutex_unlock(&sqp->lock);
	return away;
}

/* Nobody waits within the read section of the device, as its removal waits for that. */
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
	if (sqp && sqp->kernel)
		shift_qp_get(sqp);
	else
		sqp = NULL;
	/* it waits here, whatever becomes of the device */
	__module_get(THIS_MODULE);
	shift_verb_end(sdev, idx);
	/* after that it does not leave its path any more */
	if (sqp && !ib_modify_qp(qp, &attr, IB_QP_STATE) && is_away(sqp))
		drain_away(sqp, qp, recv);
	else
		drivers(qp);
	if (sqp)
		shift_qp_put(sqp);
	module_put(THIS_MODULE);
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
