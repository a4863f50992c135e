// SPDX-License-Identifier: GPL-2.0
/*
 * Members of a shared receive queue are told to follow the others, and how long they may take.
 * See Documentation/internals/srq.md.
 */
#include <linux/ktime.h>
#include <linux/sched/mm.h>
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/srq.h"
#include "pure/fsm.h"
#include "srq/srq.h"

#define FOLLOW_MS	50	/* members that have not left are told to follow this often */
#define LATE_MS		6400	/* late ones ever more rarely, as a try holds posts up; at most */
#define DEADLINE_MS	3000	/* for all members to leave, scaled */
#define LATEST_MS	120000	/* the same, however late their work items are; scaled */

/* Does it draw from the pool in use, so that the receives cannot leave that yet? */
bool shift_srq_stays(const struct shift_qp *sqp)
{
	return sqp->srqm.live && sqp->srqm.pool == sqp->srqm.ssrq->pool;
}

/* Is it on its own QP, though its SRQ is away?  The application has connected it since then. */
bool shift_srq_is_behind(const struct shift_qp *sqp)
{
	return sqp->srqm.live && !sqp->srqm.pool && sqp->srqm.ssrq->rec.away;
}

/* Can it never leave its default NIC? */
bool shift_srq_is_stuck(const struct shift_qp *sqp)
{
	return !sqp->fo.path && shift_qp_mws_stay(sqp);
}

/* Look again soon, in shift_srq_timer(). */
void shift_srq_arm(struct shift_srq *ssrq)
{
	if (!ssrq->dead)
		mod_delayed_work(shift_wq, &ssrq->timer, msecs_to_jiffies(FOLLOW_MS));
}

/* Are the receives elsewhere, and can it follow, now or after what it is doing? */
bool shift_srq_can_follow(const struct shift_qp *sqp)
{
	return (shift_srq_is_behind(sqp) || sqp->srqm.stranded) && sqp->srqm.ssrq->pool &&
	       !shift_srq_is_stuck(sqp) && shift_state_is_protected(READ_ONCE(sqp->fo.state));
}

/* A limit was set, or members are late: while both is so the ring is to be looked at. */
void shift_srq_limit_set(struct shift_srq *ssrq)
{
	lockdep_assert_held(&ssrq->lock);
	if (shift_srq_watch_limit(ssrq))
		shift_srq_arm(ssrq);
}

/* A member is late from now on, or the others are elsewhere: it may be able to follow soon. */
void shift_srq_tell_late(struct shift_srq *ssrq)
{
	ssrq->late_ms = FOLLOW_MS;
	ssrq->late_ns = ktime_get_ns();
}

/* Tell all that have to follow. */
void shift_srq_tell(struct shift_srq *ssrq)
{
	bool late = ktime_get_ns() >= ssrq->late_ns;
	struct shift_qp *sqp;

	list_for_each_entry(sqp, &ssrq->members, srqm.node)
		if ((ssrq->broken && shift_state_is_protected(READ_ONCE(sqp->fo.state))) ||
		    (ssrq->target && shift_srq_stays(sqp)) || (late && shift_srq_can_follow(sqp)))
			shift_qp_kick(sqp, SHIFT_QPB_FOLLOW);
	if (!late)
		return;
	ssrq->late_ns = ktime_get_ns() + (u64)ssrq->late_ms * NSEC_PER_MSEC;
	ssrq->late_ms = min_t(u32, 2 * ssrq->late_ms, LATE_MS);
}

/* The first member is about to leave, and the others are to follow it in time; ssrq->lock. */
void shift_srq_follow_start(struct shift_srq *ssrq)
{
	lockdep_assert_held(&ssrq->lock);
	ssrq->deadline_ns = shift_from_now(DEADLINE_MS);
	ssrq->latest_ns = shift_from_now(LATEST_MS);
	ssrq->told_ns = ktime_get_ns();
	shift_srq_arm(ssrq);
}

/* Some members did not leave in time: those that have left fail, as they have no receives. */
static void srq_give_up(struct shift_srq *ssrq)
{
	struct shift_qp *sqp;

	lockdep_assert_held(&ssrq->lock);
	list_for_each_entry(sqp, &ssrq->members, srqm.node) {
		if (!sqp->srqm.left)
			continue;
		sqp->srqm.overdue = true;
		shift_qp_kick(sqp, SHIFT_QPB_FOLLOW);
	}
}

/**
 * shift_srq_is_overdue - has the QP left, and did others not follow in time?
 * @sqp: the QP, locked.
 *
 * Return: true once: the caller lets the QP fail then.
 */
bool shift_srq_is_overdue(struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	bool overdue;

	lockdep_assert_held(&sqp->lock);
	if (!ssrq)
		return false;
	mutex_lock(&ssrq->lock);
	overdue = sqp->srqm.overdue && sqp->srqm.left && ssrq->target;
	sqp->srqm.overdue = false;
	mutex_unlock(&ssrq->lock);
	return overdue;
}

/*
 * Has a member that is to leave not come to look at what it was told one period ago, or does its
 * peer say so of itself?
 */
static bool srq_is_late(const struct shift_srq *ssrq)
{
	struct shift_qp *sqp;

	list_for_each_entry(sqp, &ssrq->members, srqm.node)
		if (shift_srq_stays(sqp) && (test_bit(SHIFT_QPB_FOLLOW, &sqp->pend.flags) ||
					     shift_qp_peer_is_late(sqp)))
			return true;
	return false;
}

/*
 * Members that have not left are told once more, until the deadline.  It is for members whose peers
 * are mute: time in which one waits for a work item, its own or its peer's, does not count.
 */
void shift_srq_timer(struct work_struct *work)
{
	struct shift_srq *ssrq = container_of(to_delayed_work(work), struct shift_srq, timer);
	unsigned int noio = memalloc_noio_save();
	struct shift_qp *sqp;
	bool over, again;
	u64 now;

	mutex_lock(&ssrq->lock);
	now = ktime_get_ns();
	if (srq_is_late(ssrq))
		ssrq->deadline_ns += now - ssrq->told_ns;
	ssrq->told_ns = now;
	over = ssrq->target && now > min(ssrq->deadline_ns, ssrq->latest_ns);
	again = shift_srq_watch_limit(ssrq) || ssrq->target;
	list_for_each_entry(sqp, &ssrq->members, srqm.node)
		again |= shift_srq_can_follow(sqp);
	shift_srq_tell(ssrq);
	if (over)
		srq_give_up(ssrq);
	else if (again)
		shift_srq_arm(ssrq);
	mutex_unlock(&ssrq->lock);
	memalloc_noio_restore(noio);
}
