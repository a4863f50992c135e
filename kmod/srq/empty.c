// SPDX-License-Identifier: GPL-2.0
/*
 * Emptying the ring of an SRQ that is away, if only its device can: by a QP that is about to be
 * connected.  From then on the kernel lends receives to the ring.  See
 * Documentation/internals/srq.md.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include "core/node.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/srq.h"
#include "srq/srq.h"

#define WAIT_MS		5000	/* for a port, or for others to leave or empty the ring; scaled */

/* The provider posts no more.  What it says of its ring is used once, and only to index it. */
static void ring_take(struct shift_srq *ssrq, const struct shift_abi_empty *cmd)
{
	struct shift_srq_lent *lent = &ssrq->rec.lent;

	lockdep_assert_held(&ssrq->lock);
	spin_lock_bh(&ssrq->post_lock);
	lent->wqe = cmd->head & (ssrq->rings.ring.slots - 1);
	lent->look = lent->wqe;
	lent->counter = cmd->counter;
	lent->ours = true;
	spin_unlock_bh(&ssrq->post_lock);
}

/*
 * 0: the ring is to be emptied now, until ring_end(); -EALREADY: that is not needed; -EAGAIN: the
 * provider has not stopped posting; -EINPROGRESS: others are about to leave the ring, or empty it;
 * -EBUSY: it cannot be.
 */
static int ring_begin(struct shift_srq *ssrq, const struct shift_abi_empty *cmd)
{
	lockdep_assert_held(&ssrq->lock);
	/* once it is away, one whose pools are gone still lends what it has */
	if ((ssrq->broken && !ssrq->rec.away) || ssrq->dead || !ssrq->rings.registered ||
	    READ_ONCE(ssrq->spoiled))
		return -EBUSY;
	if (ssrq->rec.lent.emptying || (ssrq->target && !ssrq->rec.away))
		return -EINPROGRESS;
	if (!ssrq->rec.away || ssrq->rec.lent.empty)
		return -EALREADY;
	if (!ssrq->rec.lent.ours) {
		if (!cmd->handed)
			return -EAGAIN;
		ring_take(ssrq, cmd);
	}
	ssrq->rec.lent.emptying = true;
	return 0;
}

static void ring_end(struct shift_srq *ssrq, bool empty)
{
	struct shift_srq_lent *lent = &ssrq->rec.lent;

	lockdep_assert_held(&ssrq->lock);
	spin_lock_bh(&ssrq->post_lock);
	lent->emptying = false;
	lent->empty = empty;
	if (empty)
		lent->tail = lent->head;
	spin_unlock_bh(&ssrq->post_lock);
}

/* One try; sqp->lock. */
static int ring_empty(struct shift_qp *sqp, const struct shift_abi_empty *cmd)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	int err;

	lockdep_assert_held(&sqp->lock);
	if (!sqp->qp)
		return -ENODEV;
	if (sqp->app.state != IB_QPS_INIT || shift_qp_is_away(sqp) || sqp->srqm.live)
		return -EINVAL;
	mutex_lock(&ssrq->lock);
	err = ring_begin(ssrq, cmd);
	mutex_unlock(&ssrq->lock);
	if (err)
		return err;
	/* the lock is not held meanwhile, as others of the SRQ fail over */
	err = ssrq->ops->drain(sqp);
	mutex_lock(&ssrq->lock);
	ring_end(ssrq, !err);
	mutex_unlock(&ssrq->lock);
	return err;
}

/**
 * shift_srq_empty - a QP that is about to be connected empties the ring of its SRQ
 * @sqp: the QP, in INIT.
 * @cmd: what its provider says of the ring.
 *
 * Context: process context; sleeps, for seconds at most (scaled), killable.
 * Return: 0: it may be connected; -EAGAIN: the completions are to be dropped, and it goes on; else
 * a negative errno: it may not, and is in INIT as before.
 */
int shift_srq_empty(struct shift_qp *sqp, const struct shift_abi_empty *cmd)
{
	u64 end = shift_from_now(WAIT_MS);
	unsigned int noio;
	int err;

	if (!sqp->srqm.ssrq || !shift_srq_is_one_way(sqp->srqm.ssrq) || cmd->handed > 1)
		return -EINVAL;
	for (;;) {
		noio = memalloc_noio_save();
		mutex_lock(&sqp->lock);
		err = ring_empty(sqp, cmd);
		mutex_unlock(&sqp->lock);
		memalloc_noio_restore(noio);
		if (err == -EALREADY)
			return 0;
		if (err != -EINPROGRESS && err != -ENETDOWN)
			return err;
		if (ktime_get_ns() > end)
			return -EBUSY;
		if (fatal_signal_pending(current))
			return -EINTR;
		usleep_range(10000, 20000);
	}
}
