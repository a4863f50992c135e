// SPDX-License-Identifier: GPL-2.0
/*
 * The members of a shared receive queue, which are the QPs on it.  They leave a path together,
 * because the receives can be on one device only.  See Documentation/internals/srq.md.
 *
 * A QP draws its receives from a pool: the application's ring, or a kernel-owned SRQ (pool.c).  The
 * first member that is about to be fenced makes the pool on its target path the target of all
 * others, which are told to follow.  When the last member has left the old pool, all outstanding
 * receives are moved to the new one.  Until then no peer of a member that has left is sent READY.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include "core/kick.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/srq.h"
#include "pure/fsm.h"
#include "srq/srq.h"

static void srq_set_pools(struct shift_srq *ssrq, struct shift_srq_pool *pool,
			  struct shift_srq_pool *target)
{
	lockdep_assert_held(&ssrq->lock);
	spin_lock_bh(&ssrq->look);
	ssrq->pool = pool;
	ssrq->target = target;
	spin_unlock_bh(&ssrq->look);
}

/* The members that had left have failed or are gone: the target is kept for another time. */
static void srq_forget_target(struct shift_srq *ssrq)
{
	struct shift_srq_pool *pool = ssrq->target;

	srq_set_pools(ssrq, ssrq->pool, NULL);
	if (ssrq->next[pool->path])
		shift_srq_pool_put(pool);
	else
		ssrq->next[pool->path] = pool;
}

/* Move the receives to the target, if the last member has left the old pool. */
static void srq_check(struct shift_srq *ssrq)
{
	struct shift_srq_pool *old = ssrq->pool;
	bool left = false, stay = false;
	struct shift_qp *sqp;

	lockdep_assert_held(&ssrq->lock);
	if (!ssrq->target)
		return;
	list_for_each_entry(sqp, &ssrq->members, srqm.node) {
		left |= sqp->srqm.left;
		stay |= shift_srq_stays(sqp);
	}
	if (!left)
		srq_forget_target(ssrq);
	if (!left || stay)
		return;
	if (shift_srq_take_over(ssrq)) {
		pr_warn_ratelimited("%s: receives of a shared queue could not be taken over\n",
				    ssrq->sdev->name);
		ssrq->broken = true;
	}
	srq_set_pools(ssrq, ssrq->target, NULL);
	shift_srq_pool_put(old);
	list_for_each_entry(sqp, &ssrq->members, srqm.node) {
		sqp->srqm.left = false;
		if (sqp->srqm.waits)
			shift_qp_kick(sqp, SHIFT_QPB_READY);
	}
	shift_srq_tell_late(ssrq);
	shift_srq_tell(ssrq);
}

/* Members that are late draw from the application's ring: it is to have receives as long. */
static void srq_share(struct shift_srq *ssrq)
{
	struct shift_qp *sqp;
	bool late = false;

	lockdep_assert_held(&ssrq->lock);
	list_for_each_entry(sqp, &ssrq->members, srqm.node)
		late |= shift_srq_is_behind(sqp);
	shift_srq_lends(ssrq, late);
	shift_srq_limit_set(ssrq);
}

/* Does it draw from a pool, or may it be on its way to one? */
static bool member_is_away(const struct shift_qp *sqp)
{
	enum shift_state state = READ_ONCE(sqp->fo.state);

	if (sqp->srqm.live && !sqp->srqm.pool)
		return state == SHIFT_ST_FENCE;
	return sqp->srqm.live || shift_state_is_protected(state);
}

/**
 * shift_srq_come_home - the application's ring is about to be replaced
 * @ssrq: the SRQ; its lock is held.
 *
 * The driver copies what is in the ring, and the kernel cannot post to the next one.  So if all QPs
 * that have left the ring have ended, it gets all receives back, for the QPs that draw from it.
 *
 * Context: process context; sleeps.
 */
void shift_srq_come_home(struct shift_srq *ssrq)
{
	struct shift_srq_pool *old = ssrq->pool;
	struct shift_qp *sqp;

	lockdep_assert_held(&ssrq->lock);
	/* in a ring that was replaced before nobody would find them */
	if (!ssrq->rec.away || ssrq->target || ssrq->dead || !ssrq->rings.registered ||
	    READ_ONCE(ssrq->spoiled) || shift_srq_is_one_way(ssrq) || ssrq->kernel)
		return;
	list_for_each_entry(sqp, &ssrq->members, srqm.node)
		if (member_is_away(sqp))
			return;
	if (!shift_srq_give_back(ssrq))
		return;
	srq_set_pools(ssrq, NULL, NULL);
	shift_srq_pool_put(old);
}

/* The QP draws from no pool any more.  It may be the last one that the others waited for. */
static void member_stops(struct shift_qp *sqp)
{
	/* not to be compared later: another pool may get this address */
	sqp->srqm.live = false;
	sqp->srqm.pool = NULL;
	sqp->srqm.waits = false;
	sqp->srqm.stranded = false;
	sqp->srqm.overdue = false;
	srq_check(sqp->srqm.ssrq);
	srq_share(sqp->srqm.ssrq);
}

/* The application destroys the QP: it is no member any more; sqp->lock. */
void shift_srq_leave(struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;

	lockdep_assert_held(&sqp->lock);
	if (!ssrq)
		return;
	mutex_lock(&ssrq->lock);
	sqp->srqm.left = false;
	spin_lock_bh(&ssrq->look);
	list_del_init(&sqp->srqm.node);
	spin_unlock_bh(&ssrq->look);
	ssrq->leaver[ssrq->nleavers++ % SHIFT_SRQ_LEAVERS] = sqp->qpn;
	member_stops(sqp);
	mutex_unlock(&ssrq->lock);
	shift_srq_drop_done(sqp);
}

/* Were receives taken over that the device's ring still has, or are about to be?  ssrq->lock. */
static bool ring_is_stale(const struct shift_srq *ssrq)
{
	if (!shift_srq_is_one_way(ssrq))
		return false;
	if (!ssrq->rec.away)
		return ssrq->pool || ssrq->target;
	return !ssrq->rec.lent.empty || !ssrq->rings.registered || READ_ONCE(ssrq->spoiled);
}

/*
 * The application connects its QP, which draws from the ring from now on; sqp->lock.  False: it may
 * not before the ring was emptied.
 */
bool shift_srq_connected(struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	bool may = true;

	lockdep_assert_held(&sqp->lock);
	if (!ssrq)
		return true;
	mutex_lock(&ssrq->lock);
	if (ring_is_stale(ssrq)) {
		may = false;
	} else if (ssrq->ops && ssrq->ops->reopen && ssrq->ops->reopen(sqp)) {
		may = false;
	} else {
		sqp->srqm.pool = NULL;
		sqp->srqm.live = true;
		shift_srq_tell_late(ssrq);
		srq_share(ssrq);
	}
	mutex_unlock(&ssrq->lock);
	return may;
}

/* The QP receives nothing any more, unless the application connects it again; sqp->lock. */
void shift_srq_ended(struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;

	lockdep_assert_held(&sqp->lock);
	if (!ssrq)
		return;
	mutex_lock(&ssrq->lock);
	sqp->srqm.left = false;
	member_stops(sqp);
	mutex_unlock(&ssrq->lock);
}

/* Is it still to be connected, and cannot empty the ring first?  Then it could not be connected. */
static bool member_needs_ring(const struct shift_qp *sqp)
{
	enum ib_qp_state state = READ_ONCE(sqp->app.state);

	return (state == IB_QPS_RESET || state == IB_QPS_INIT) && !READ_ONCE(sqp->rings.usable) &&
	       !test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags);
}

/**
 * shift_srq_movable - does its SRQ allow this QP to leave its path?
 * @sqp: the QP.
 *
 * It does not if another member could not follow, or could not be connected any more.
 *
 * Context: any that may take a spinlock; racy by nature.
 */
bool shift_srq_movable(const struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	struct shift_qp *other;
	bool movable, waits;

	if (!ssrq)
		return true;
	/* for those that are not connected yet, and could not be later */
	waits = shift_srq_is_one_way(ssrq) && !READ_ONCE(ssrq->pool);
	spin_lock_bh(&ssrq->look);
	movable = ssrq->rings.registered && !ssrq->broken && !ssrq->dead &&
		  (ssrq->pool || !READ_ONCE(ssrq->spoiled));
	list_for_each_entry(other, &ssrq->members, srqm.node) {
		if (waits && member_needs_ring(other))
			movable = false;
		/* a member that is being destroyed leaves the SRQ, and need not follow */
		if (other == sqp || !shift_srq_stays(other) ||
		    test_bit(SHIFT_QPB_DEAD, &other->pend.flags))
			continue;
		if (!shift_state_is_protected(READ_ONCE(other->fo.state)) ||
		    shift_srq_is_stuck(other) ||
		    !(shift_link_user_up(&other->peer.use[1]) ||
		      (ssrq->pool && shift_link_user_up(&other->peer.use[0]))))
			movable = false;
	}
	spin_unlock_bh(&ssrq->look);
	return movable;
}

/**
 * shift_srq_path - the path of the other members, or the one that they are going to
 * @sqp: the QP.
 * @must: out: @sqp may go to no other path.
 *
 * Context: any that may take a spinlock.
 * Return: the path; 0: the others do not matter.
 */
u8 shift_srq_path(const struct shift_qp *sqp, bool *must)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	u8 path = 0;

	*must = false;
	if (!ssrq)
		return 0;
	spin_lock_bh(&ssrq->look);
	if (ssrq->target) {
		path = ssrq->target->path;
		*must = true;
	} else if (ssrq->pool && sqp->srqm.pool != ssrq->pool) {
		path = ssrq->pool->path;
	}
	spin_unlock_bh(&ssrq->look);
	return path;
}

/**
 * shift_srq_wanted - has the QP to follow the other members?
 * @sqp: the QP, locked.
 * @broken: out: the receives of the SRQ are lost.
 * @moves: out: the others have moved; there was no fault.
 *
 * While it has, its work item is kicked with SHIFT_QPB_FOLLOW every FOLLOW_MS.
 *
 * Context: process context.
 * Return: the path to go to; 0: it has not.
 */
u8 shift_srq_wanted(const struct shift_qp *sqp, bool *broken, bool *moves)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	u8 path = 0;

	lockdep_assert_held(&sqp->lock);
	*broken = false;
	*moves = false;
	if (!ssrq)
		return 0;
	mutex_lock(&ssrq->lock);
	*broken = ssrq->broken;
	*moves = ssrq->moves;
	if (ssrq->target && shift_srq_stays(sqp))
		path = ssrq->target->path;
	else if (!ssrq->target && shift_srq_can_follow(sqp))
		path = ssrq->pool->path;
	if (path)
		shift_srq_arm(ssrq);
	mutex_unlock(&ssrq->lock);
	return path;
}

/**
 * shift_srq_claim - the QP is about to be fenced, and is to draw from @pool then
 * @sqp: the QP, locked.
 * @pool: that of the proxy QP that it is going to.
 *
 * Return: 0; -EBUSY: the other members are going to another pool.
 */
int shift_srq_claim(struct shift_qp *sqp, struct shift_srq_pool *pool)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	int err = 0;

	lockdep_assert_held(&sqp->lock);
	if (!ssrq)
		return 0;
	mutex_lock(&ssrq->lock);
	if (!pool || (ssrq->target && ssrq->target != pool)) {
		err = -EBUSY;
	} else if (pool != ssrq->pool) {
		if (!ssrq->target && ssrq->next[pool->path] != pool) {
			err = -EBUSY;
		} else if (!ssrq->target) {
			srq_set_pools(ssrq, ssrq->pool, pool);
			ssrq->next[pool->path] = NULL;
			ssrq->moves = sqp->fo.moves;
			shift_srq_follow_start(ssrq);
		}
		if (!err) {
			sqp->srqm.left = true;
			shift_srq_tell(ssrq);
		}
	}
	mutex_unlock(&ssrq->lock);
	return err;
}

/* The QP was fenced.  If it was the last member to leave, the receives move; sqp->lock. */
void shift_srq_fenced(struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;

	lockdep_assert_held(&sqp->lock);
	if (!ssrq)
		return;
	mutex_lock(&ssrq->lock);
	member_stops(sqp);
	mutex_unlock(&ssrq->lock);
}

/**
 * shift_srq_ready - may the peer be sent READY, because its SENDs find receives here?
 * @sqp: the QP, locked; its proxy QP is connected.
 * @pool: that of the proxy QP.
 *
 * The QP counts as drawing from @pool once the receives are there.  Before, the peer sends nothing.
 *
 * Return: true if it may.  Otherwise the QP is kicked with SHIFT_QPB_READY when the receives have
 * moved.
 */
bool shift_srq_ready(struct shift_qp *sqp, struct shift_srq_pool *pool)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	bool ready, stranded;

	lockdep_assert_held(&sqp->lock);
	if (!ssrq)
		return true;
	mutex_lock(&ssrq->lock);
	ready = pool && pool == ssrq->pool && !ssrq->broken;
	if (ready) {
		sqp->srqm.pool = pool;
		sqp->srqm.live = true;
	}
	sqp->srqm.waits = !ready;
	/*
	 * The others have gone on from @pool before this one has looked: without READY it draws
	 * from nothing, so they did not wait for it.  It follows them.
	 */
	stranded = !ready && ssrq->pool && !ssrq->target && !ssrq->broken;
	if (stranded && !sqp->srqm.stranded) {
		shift_srq_tell_late(ssrq);
		shift_qp_kick(sqp, SHIFT_QPB_FOLLOW);
	}
	sqp->srqm.stranded = stranded;
	mutex_unlock(&ssrq->lock);
	return ready;
}

/*
 * Does its READY wait for others to leave their path?  That of a stranded QP waits for nobody: it
 * is never sent, and the peer has to ask again.  sqp->lock.
 */
bool shift_srq_awaits(const struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	bool awaits;

	lockdep_assert_held(&sqp->lock);
	if (!ssrq)
		return false;
	mutex_lock(&ssrq->lock);
	awaits = sqp->srqm.waits && !sqp->srqm.stranded && !ssrq->broken;
	mutex_unlock(&ssrq->lock);
	return awaits;
}
