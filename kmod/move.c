// SPDX-License-Identifier: GPL-2.0
/*
 * Changes of path that somebody wants: an operator who takes a NIC out of use, or
 * failback to one that is good again.  They are switches like any other, but both paths
 * work, so both ends let what is under way finish first: see Documentation/protocol.md.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include "provider.h"

#define SETTLE_US	50000	/* for work under way to finish, scaled */
#define MOVE_TRIES	20	/* SHIFT_AGAIN_MS apart */

static bool default_still(struct shift_qp *sqp, struct ib_qp_attr *attr)
{
	u32 psn = attr->rq_psn;

	return !shift_fence_query(sqp, attr) && psn == attr->rq_psn &&
	       sqp->provider->still(sqp);
}

/* Nothing tells when the default QP has nothing to do: look a few times. */
static void settle_default(struct shift_qp *sqp, u64 end)
{
	struct ib_qp_attr *attr = kzalloc(sizeof(*attr), GFP_NOIO);
	u32 still = 0;

	if (!attr)
		return;
	sqp->provider->hold(sqp);
	if (!shift_fence_query(sqp, attr)) {
		while (still < 3 && attr->qp_state != IB_QPS_ERR && ktime_get_ns() < end) {
			usleep_range(100, 200);
			still = default_still(sqp, attr) ? still + 1 : 0;
		}
	}
	kfree(attr);
}

/**
 * shift_move_settle - post nothing new and let what is under way finish
 * @sqp: the QP, locked, on a path that works.
 *
 * Atomics get their answers, no READ is asked twice.  And rxe does not survive a RESET
 * in the middle of a packet, as it processes packets beside its tasks; so both ends do
 * this before either is fenced.  What does not finish in time is left to the fence.
 * It changes nothing: called off, the QP goes on.
 *
 * Context: process context; sleeps.
 */
void shift_move_settle(struct shift_qp *sqp)
{
	u64 end = ktime_get_ns() + (u64)SETTLE_US * NSEC_PER_USEC *
		  max(READ_ONCE(shift_deadline_scale), 1u);

	if (sqp->path) {
		shift_standby_hold(sqp, true);
		while (shift_standby_busy(sqp) && ktime_get_ns() < end)
			usleep_range(100, 200);
	} else if (sqp->registered && !test_bit(SHIFT_QP_FENCED, &sqp->flags)) {
		settle_default(sqp, end);
	}
}

static bool backup_wanted(const struct shift_qp *sqp)
{
	return sqp->move_to == SHIFT_PATH_BACKUP;
}

/* Is there a link to where it shall go, and a port? */
static bool target_works(const struct shift_qp *sqp)
{
	struct shift_link *link = sqp->link[backup_wanted(sqp)];

	return link && shift_link_state(link) == SHIFT_LINK_UP &&
	       (backup_wanted(sqp) || !READ_ONCE(sqp->sdev->port_down));
}

/**
 * shift_move_want - somebody wants the QP elsewhere
 * @sqp: the QP, locked.
 * @to: SHIFT_PATH_DEFAULT (its own device) or SHIFT_PATH_BACKUP.
 */
void shift_move_want(struct shift_qp *sqp, u8 to)
{
	sqp->move_to = to;
	sqp->moves_left = MOVE_TRIES;
	shift_switch_kick(sqp, SHIFT_QP_MOVE);
}

/**
 * shift_move_run - the QP is wanted on sqp->move_to
 * @sqp: the QP, locked.
 *
 * One that is on its way anywhere, whose move was called off, or that cannot be moved as
 * it is, is looked at again some times, SHIFT_AGAIN_MS apart.  Then it stays: that is not
 * worth an error.
 */
void shift_move_run(struct shift_qp *sqp)
{
	bool on_backup = sqp->path == SHIFT_PATH_BACKUP;

	if (!sqp->moves_left || sqp->state != SHIFT_ST_RUN)
		return;		/* the end of its switch comes back to it */
	if (on_backup == backup_wanted(sqp)) {
		sqp->moves_left = 0;
		return;
	}
	if (!shift_switch_healthy(sqp))
		return;		/* it leaves, or fails: that has its own time */
	if (--sqp->moves_left)
		shift_switch_arm(sqp, SHIFT_AGAIN_MS);
	if (!target_works(sqp) || (!sqp->path && shift_provider_movable(sqp)))
		return;
	sqp->cause = SHIFT_CAUSE_OPERATOR;
	shift_switch_event(sqp, SHIFT_EV_FAULT, NULL);
	if (sqp->state == SHIFT_ST_RUN)
		sqp->cause = SHIFT_CAUSE_NONE;	/* no path to ask */
}

/**
 * shift_move_follow - other QPs of its SRQ have left, or are elsewhere
 * @sqp: the QP, locked.
 *
 * Called again while that is so: one that is busy now may not be then.
 */
void shift_move_follow(struct shift_qp *sqp)
{
	bool broken, away = sqp->path || test_bit(SHIFT_QP_FENCED, &sqp->flags);
	u8 path = shift_srq_wanted(sqp, &broken);
	struct shift_link *link = path ? shift_switch_link(sqp, path) : NULL;

	if (broken && away && sqp->state != SHIFT_ST_OFF && sqp->state != SHIFT_ST_APP) {
		shift_switch_fail(sqp, IB_WC_RETRY_EXC_ERR);
		return;
	}
	if (sqp->state != SHIFT_ST_RUN || !link ||
	    shift_link_state(link) != SHIFT_LINK_UP || !shift_switch_healthy(sqp) ||
	    (!sqp->path && shift_provider_movable(sqp)))
		return;
	sqp->cause = SHIFT_CAUSE_SRQ;
	shift_switch_event(sqp, SHIFT_EV_FAULT, NULL);
	if (sqp->state == SHIFT_ST_RUN)
		sqp->cause = SHIFT_CAUSE_NONE;	/* not now */
}

struct ask {
	struct shift_dev *sdev;
	u32 link_id, qpn;
	u8 to;
	unsigned int told;
};

static int ask_one(struct shift_qp *sqp, void *arg)
{
	struct ask *ask = arg;
	const struct shift_link *link = shift_switch_link(sqp, sqp->path);
	u8 other = sqp->path == SHIFT_PATH_BACKUP ? SHIFT_PATH_DEFAULT : SHIFT_PATH_BACKUP;

	if (sqp->state == SHIFT_ST_OFF || sqp->state == SHIFT_ST_FAIL ||
	    sqp->state == SHIFT_ST_APP || (ask->qpn && sqp->qpn != ask->qpn))
		return 0;
	if (ask->sdev ? sqp->sdev != ask->sdev :
	    sqp->state != SHIFT_ST_RUN || !link || shift_link_id(link) != ask->link_id)
		return 0;
	shift_move_want(sqp, ask->sdev ? ask->to : other);
	ask->told++;
	return 0;
}

/**
 * shift_move_ask - tell QPs to move
 * @sdev: those of this device go to @to; or NULL:
 * @link_id: those that use this link leave it.
 * @qpn: only this one; 0: all.
 * @to: SHIFT_PATH_DEFAULT (their own device) or SHIFT_PATH_BACKUP.
 *
 * Context: process context, no QP's lock held.
 * Return: how many were told; those that are there already are among them.
 */
unsigned int shift_move_ask(struct shift_dev *sdev, u32 link_id, u32 qpn, u8 to)
{
	struct ask ask = {
		.sdev = sdev, .link_id = link_id, .qpn = qpn, .to = to,
	};

	shift_qp_walk(ask_one, &ask);
	return ask.told;
}
