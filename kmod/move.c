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
#define SETTLE_TIMES	4	/* as long, if an atomic is among it */
#define MOVE_MS		10000	/* for one that cannot be made at once, scaled */

static u64 from_now(unsigned int ms)
{
	return ktime_get_ns() + (u64)ms * NSEC_PER_MSEC *
	       max(READ_ONCE(shift_deadline_scale), 1u);
}

static bool default_still(struct shift_qp *sqp, struct ib_qp_attr *attr)
{
	u32 psn = attr->rq_psn;

	return !shift_fence_query(sqp, attr) && psn == attr->rq_psn &&
	       sqp->provider->still(sqp);
}

/*
 * Nothing tells when the default QP has nothing to do: look a few times.  True also if it
 * broke, or cannot be asked: it is not to be waited for.
 */
static bool settle_default(struct shift_qp *sqp, u64 end)
{
	struct ib_qp_attr *attr = kzalloc(sizeof(*attr), GFP_NOIO);
	bool over = true;
	u32 still = 0;

	if (!attr)
		return true;
	if (!shift_fence_query(sqp, attr)) {
		while (still < 3 && attr->qp_state != IB_QPS_ERR && ktime_get_ns() < end) {
			usleep_range(100, 200);
			still = default_still(sqp, attr) ? still + 1 : 0;
		}
		over = still == 3 || attr->qp_state == IB_QPS_ERR;
	}
	kfree(attr);
	return over;
}

static bool settle_standby(struct shift_qp *sqp, u64 end)
{
	while (shift_standby_busy(sqp) && ktime_get_ns() < end)
		usleep_range(100, 200);
	return !shift_standby_busy(sqp) || shift_standby_error(sqp);
}

/* Is something under way that a fence may turn into an error? */
static bool once(struct shift_qp *sqp)
{
	bool found;

	if (!sqp->path)
		return shift_provider_movable(sqp) ||
		       (sqp->provider->once && sqp->provider->once(sqp));
	spin_lock_bh(&sqp->ledger_lock);
	shift_ledger_doubtful(&sqp->ledger, false, &found);
	spin_unlock_bh(&sqp->ledger_lock);
	return found;
}

/* Has it been settled? */
bool shift_move_holds(struct shift_qp *sqp)
{
	if (sqp->path)
		return shift_standby_is_held(sqp) || READ_ONCE(sqp->own_hold);
	return test_bit(SHIFT_QP_GATED, &sqp->flags);
}

static bool settle(struct shift_qp *sqp)
{
	unsigned int n;
	u64 end;

	if (sqp->path)
		shift_standby_hold(sqp, true);
	else if (!test_bit(SHIFT_QP_GATED, &sqp->flags))
		sqp->provider->hold(sqp);
	for (n = 0; n < SETTLE_TIMES; n++) {
		end = ktime_get_ns() + (u64)SETTLE_US * NSEC_PER_USEC *
		      max(READ_ONCE(shift_deadline_scale), 1u);
		if (sqp->path ? settle_standby(sqp, end) : settle_default(sqp, end))
			return true;
		if (!once(sqp))
			return true;
	}
	return false;
}

/* Its own work, or the peer's, is what a move waits for: the paper's names. */
static void show_waits(struct shift_qp *sqp, enum shift_qp_state waits)
{
	sqp->waits = waits;
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
}

/**
 * shift_move_settle - post nothing new and let what is under way finish
 * @sqp: the QP, locked, on a path that works.
 * @to: where it is to go.
 *
 * Atomics get their answers, no READ is asked twice.  And rxe does not survive a RESET
 * in the middle of a packet, as it processes packets beside its tasks; so both ends do
 * this before either is fenced.  What does not finish in time is left to the fence, but
 * for atomics: who only wants to move does not risk an error.
 * It changes nothing: called off, the QP goes on.
 *
 * Context: process context; sleeps.
 * Return: false if an atomic is under way, or what cannot be moved at all.
 */
bool shift_move_settle(struct shift_qp *sqp, u8 to)
{
	bool over;

	if (to == SHIFT_PATH_OWN)
		return shift_own_settle(sqp, from_now(SETTLE_US / USEC_PER_MSEC));

	if (!sqp->path && (!sqp->registered || test_bit(SHIFT_QP_FENCED, &sqp->flags)))
		return true;
	show_waits(sqp, SHIFT_QP_WAIT_SIGNALED);
	over = settle(sqp);
	if (over && sqp->state == SHIFT_ST_ASKED)
		show_waits(sqp, SHIFT_QP_WAIT_SINKED);
	else
		sqp->waits = 0;
	return over;
}

/**
 * shift_move_stays - would a move make errors of what the application does?
 * @sqp: the QP, locked.
 *
 * Who only wants to move leaves such a one where it is.
 */
bool shift_move_stays(struct shift_qp *sqp)
{
	if (sqp->path)
		return false;
	return shift_provider_movable(sqp) || (sqp->provider->keeps && sqp->provider->keeps(sqp));
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

/* Is that the side it is wanted on? */
static bool wanted(const struct shift_qp *sqp, u8 path)
{
	bool backup = path == SHIFT_PATH_BACKUP;

	return backup == backup_wanted(sqp);
}

/**
 * shift_move_want - somebody wants the QP elsewhere
 * @sqp: the QP, locked.
 * @to: SHIFT_PATH_DEFAULT (its own device) or SHIFT_PATH_BACKUP.
 * @keep: if it cannot be moved now it is tried again, until it arrives or MOVE_MS are over.
 */
void shift_move_want(struct shift_qp *sqp, u8 to, bool keep)
{
	sqp->move_to = to;
	sqp->move_until = keep ? from_now(MOVE_MS) : 0;
	shift_switch_kick(sqp, SHIFT_QP_MOVE);
}

/**
 * shift_move_run - the QP is wanted on sqp->move_to
 * @sqp: the QP, locked.
 *
 * Nothing happens to one that is there, is on its way anywhere, or cannot be moved:
 * that is not worth an error.
 */
void shift_move_run(struct shift_qp *sqp)
{
	bool must, works = target_works(sqp);
	u8 others = shift_srq_path(sqp, &must);

	sqp->move_next = from_now(SHIFT_AGAIN_MS);
	if (sqp->state != SHIFT_ST_RUN || !shift_switch_healthy(sqp))
		return;		/* it comes to RUN again, or to its end */
	if (others && !wanted(sqp, others)) {
		works = false;	/* its SRQ is on its way to the other side */
	} else if (wanted(sqp, sqp->path)) {
		sqp->move_until = 0;
		return;
	}
	if (works && !shift_move_stays(sqp)) {
		sqp->cause = SHIFT_CAUSE_OPERATOR;
		shift_switch_event(sqp, SHIFT_EV_FAULT, NULL);
		if (sqp->state == SHIFT_ST_RUN)
			sqp->cause = SHIFT_CAUSE_NONE;	/* no path to ask */
	}
	if (sqp->move_until)
		shift_switch_later(sqp, SHIFT_AGAIN_MS);
}

/* In RUN, by whatever timer: is somebody still waiting? sqp->lock. */
void shift_move_again(struct shift_qp *sqp)
{
	u64 now = ktime_get_ns();

	if (!sqp->move_until)
		return;
	if (now > sqp->move_until)
		sqp->move_until = 0;
	else if (now < sqp->move_next)
		shift_switch_later(sqp, SHIFT_AGAIN_MS);
	else
		shift_move_run(sqp);
}

/**
 * shift_move_atomic - an atomic is next, and the backup is not atomic towards home
 * @sqp: the QP, locked, in RUN.
 *
 * Who was moved while its own NIC works must not get an error for that: it goes back.
 * Called again while it has not.
 *
 * Return: true if it is on its way; false: the atomic is an error.
 */
bool shift_move_atomic(struct shift_qp *sqp)
{
	/* nor could it be posted there, if only the user may */
	if (sqp->path != SHIFT_PATH_BACKUP || sqp->provider->keeps)
		return false;
	if (!sqp->atomic_until)
		sqp->atomic_until = from_now(MOVE_MS);
	if (!sqp->move_until || backup_wanted(sqp))
		shift_move_want(sqp, SHIFT_PATH_DEFAULT, true);
	if (ktime_get_ns() < sqp->atomic_until && target_works(sqp))
		return true;
	sqp->move_until = 0;
	return false;
}

/* A switch is over, for whatever reason it was; sqp->lock. */
void shift_move_done(struct shift_qp *sqp)
{
	sqp->atomic_until = 0;
	if (!sqp->move_until)
		return;
	if (wanted(sqp, sqp->path))
		sqp->move_until = 0;
	else
		shift_switch_later(sqp, SHIFT_AGAIN_MS);
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
	bool keep;
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
	/* on its way anywhere: its end comes back to one that is kept */
	if (sqp->state != SHIFT_ST_RUN && !ask->keep)
		return 0;
	if (ask->sdev ? sqp->sdev != ask->sdev : !link || shift_link_id(link) != ask->link_id)
		return 0;
	shift_move_want(sqp, ask->sdev ? ask->to : other, ask->keep);
	ask->told++;
	return 0;
}

/**
 * shift_move_ask - tell QPs to move
 * @sdev: those of this device go to @to; or NULL:
 * @link_id: those that use this link leave it.
 * @qpn: only this one; 0: all.
 * @to: SHIFT_PATH_DEFAULT (their own device) or SHIFT_PATH_BACKUP.
 * @keep: those that cannot move now are tried again.
 *
 * Context: process context, no QP's lock held.
 * Return: how many were told; those that are there already are among them.
 */
unsigned int shift_move_ask(struct shift_dev *sdev, u32 link_id, u32 qpn, u8 to, bool keep)
{
	struct ask ask = {
		.sdev = sdev, .link_id = link_id, .qpn = qpn, .to = to, .keep = keep,
	};

	shift_qp_walk(NULL, ask_one, &ask);
	return ask.told;
}
