// SPDX-License-Identifier: GPL-2.0
/*
 * The QPs on a shared receive queue: they leave a path together, as the receives can
 * be on one device only.  See Documentation/srq.md.
 *
 * A QP draws from a pool: the application's own ring, or a kernel-owned SRQ.  The
 * first one that is to be fenced names the next pool; the others are told to follow.
 * When the last one has left, all that is outstanding moves over; not before that are
 * the peers of those that have left told READY.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "srq.h"

#define FOLLOW_MS	50	/* between calls to those who have not left */
#define DEADLINE_MS	3000	/* for all of them to leave, scaled */

static void pool_release(struct kref *ref)
{
	struct shift_srq_pool *pool = container_of(ref, struct shift_srq_pool, ref);

	ib_destroy_srq(pool->srq);
	shift_pd_put(pool->spd);
	kfree(pool);
}

/* Process context; after the last QP on it was destroyed. */
void shift_srq_pool_put(struct shift_srq_pool *pool)
{
	if (pool)
		kref_put(&pool->ref, pool_release);
}

static struct shift_srq_pool *pool_make(struct shift_srq *ssrq, u8 path, struct ib_pd *pd)
{
	struct ib_device *ibdev = pd->device;
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_BASIC,
		.attr = {
			.max_wr = min_t(u32, ssrq->depth, ibdev->attrs.max_srq_wr),
			.max_sge = clamp_t(u32, ssrq->max_sge, 1, ibdev->attrs.max_srq_sge),
		},
	};
	struct shift_srq_pool *pool = kzalloc(sizeof(*pool), GFP_KERNEL);

	if (!pool)
		return NULL;
	kref_init(&pool->ref);
	pool->path = path;
	pool->depth = init.attr.max_wr;
	pool->srq = ib_create_srq(pd, &init);
	if (IS_ERR(pool->srq)) {
		kfree(pool);
		return NULL;
	}
	pool->spd = ssrq->spd;
	shift_pd_get(pool->spd);
	return pool;
}

/* Where a QP of @sqp's on @path has to draw from, if that is there already. */
static struct shift_srq_pool *pool_wanted(const struct shift_qp *sqp, u8 path)
{
	const struct shift_srq *ssrq = sqp->ssrq;

	lockdep_assert_held(&ssrq->lock);
	if (ssrq->target && ssrq->target->path == path)
		return ssrq->target;
	if (ssrq->pool && ssrq->pool->path == path && sqp->srq_pool != ssrq->pool)
		return ssrq->pool;
	return ssrq->next[path];
}

/**
 * shift_srq_pool_get - the pool for a QP to be made
 * @sqp: whose.
 * @path: where; not 0.
 * @pd: its PD there.
 *
 * Context: process context, sqp->lock and mirror_sem.
 * Return: the pool, with a reference; NULL: there can be none.
 */
struct shift_srq_pool *shift_srq_pool_get(struct shift_qp *sqp, u8 path, struct ib_pd *pd)
{
	struct shift_srq *ssrq = sqp->ssrq;
	struct shift_srq_pool *pool = NULL;

	mutex_lock(&ssrq->lock);
	if (ssrq->registered && !ssrq->dead) {
		pool = pool_wanted(sqp, path);
		if (!pool) {
			ssrq->next[path] = pool_make(ssrq, path, pd);
			pool = ssrq->next[path];
		}
		if (pool)
			kref_get(&pool->ref);
	}
	mutex_unlock(&ssrq->lock);
	return pool;
}

/* Is a QP that was made earlier still on the pool that it has to be on? */
bool shift_srq_pool_fits(struct shift_qp *sqp, u8 path, const struct shift_srq_pool *pool)
{
	bool fits;

	if (!sqp->ssrq)
		return true;
	mutex_lock(&sqp->ssrq->lock);
	fits = pool && pool == pool_wanted(sqp, path);
	mutex_unlock(&sqp->ssrq->lock);
	return fits;
}

static bool stays(const struct shift_qp *sqp)
{
	return sqp->srq_live && sqp->srq_pool == sqp->ssrq->pool;
}

/* On its own QP still, while its SRQ is away: connected too late. */
static bool late(const struct shift_qp *sqp)
{
	return sqp->srq_live && !sqp->srq_pool && sqp->ssrq->pool;
}

/* On its own NIC for good, as its peer does not know of windows: see rxe_movable(). */
static bool stuck(const struct shift_qp *sqp)
{
	/* none: it is of a PD that is older than the pair, and never protected */
	return !sqp->path && sqp->spd && READ_ONCE(sqp->spd->windows) &&
	       !READ_ONCE(sqp->windows);
}

/* Nothing of an earlier pool is remembered: another may come to lie there. */
static void draws_nothing(struct shift_qp *sqp)
{
	sqp->srq_live = false;
	sqp->srq_pool = NULL;
	sqp->srq_waits = false;
}

static void wake(struct shift_srq *ssrq)
{
	if (!ssrq->dead)
		mod_delayed_work(shift_wq, &ssrq->timer, msecs_to_jiffies(FOLLOW_MS));
}

/* Late, and can follow: now, or once what it is doing is over. */
static bool can_follow(const struct shift_qp *sqp)
{
	enum shift_state state = READ_ONCE(sqp->state);

	return late(sqp) && !stuck(sqp) && state != SHIFT_ST_OFF &&
	       state != SHIFT_ST_FAIL && state != SHIFT_ST_APP;
}

static void kick_members(struct shift_srq *ssrq)
{
	struct shift_qp *sqp;

	list_for_each_entry(sqp, &ssrq->members, srq_node)
		if (ssrq->broken || (ssrq->target && stays(sqp)) || can_follow(sqp))
			shift_switch_kick(sqp, SHIFT_QP_FOLLOW);
}

static void set_pools(struct shift_srq *ssrq, struct shift_srq_pool *pool,
		      struct shift_srq_pool *target)
{
	lockdep_assert_held(&ssrq->lock);
	spin_lock_bh(&ssrq->look);
	ssrq->pool = pool;
	ssrq->target = target;
	spin_unlock_bh(&ssrq->look);
}

/* Nobody has left after all. */
static void forget_target(struct shift_srq *ssrq)
{
	struct shift_srq_pool *pool = ssrq->target;

	set_pools(ssrq, ssrq->pool, NULL);
	if (ssrq->next[pool->path])
		shift_srq_pool_put(pool);
	else
		ssrq->next[pool->path] = pool;
}

/* Is it time for the receives to move? */
static void check(struct shift_srq *ssrq)
{
	struct shift_srq_pool *old = ssrq->pool;
	bool left = false, stay = false;
	struct shift_qp *sqp;

	lockdep_assert_held(&ssrq->lock);
	if (!ssrq->target)
		return;
	list_for_each_entry(sqp, &ssrq->members, srq_node) {
		left |= sqp->srq_left;
		stay |= stays(sqp);
	}
	if (!left)
		forget_target(ssrq);
	if (!left || stay)
		return;
	if (shift_srq_take_over(ssrq)) {
		pr_warn_ratelimited("%s: receives of a shared queue could not be taken over\n",
				    ssrq->sdev->name);
		ssrq->broken = true;
	}
	set_pools(ssrq, ssrq->target, NULL);
	shift_srq_pool_put(old);
	list_for_each_entry(sqp, &ssrq->members, srq_node) {
		sqp->srq_left = false;
		if (sqp->srq_waits)
			shift_switch_kick(sqp, SHIFT_QP_READY);
	}
	kick_members(ssrq);
}

/* The application's QP goes; sqp->lock. */
void shift_srq_leave(struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->ssrq;

	if (!ssrq)
		return;
	mutex_lock(&ssrq->lock);
	draws_nothing(sqp);
	sqp->srq_left = false;
	spin_lock_bh(&ssrq->look);
	list_del_init(&sqp->srq_node);
	spin_unlock_bh(&ssrq->look);
	check(ssrq);
	mutex_unlock(&ssrq->lock);
	shift_srq_drop_done(sqp);
}

/* Its own QP can receive from now on; sqp->lock. */
void shift_srq_connected(struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->ssrq;

	if (!ssrq)
		return;
	mutex_lock(&ssrq->lock);
	sqp->srq_pool = NULL;
	sqp->srq_live = true;
	mutex_unlock(&ssrq->lock);
}

/* It receives nothing any more and will not come back by itself; sqp->lock. */
void shift_srq_ended(struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->ssrq;

	if (!ssrq)
		return;
	mutex_lock(&ssrq->lock);
	draws_nothing(sqp);
	sqp->srq_left = false;
	check(ssrq);
	mutex_unlock(&ssrq->lock);
}

/**
 * shift_srq_movable - may this QP leave its path, as far as its SRQ goes?
 * @sqp: the QP.
 *
 * Not if another one could not follow it.
 *
 * Context: any that may take a spinlock; racy by nature.
 */
bool shift_srq_movable(const struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->ssrq;
	struct shift_qp *other;
	bool movable;

	if (!ssrq)
		return true;
	spin_lock_bh(&ssrq->look);
	movable = ssrq->registered && !ssrq->broken && !ssrq->dead &&
		  (ssrq->pool || !READ_ONCE(ssrq->spoiled));
	list_for_each_entry(other, &ssrq->members, srq_node) {
		enum shift_state state = READ_ONCE(other->state);

		/* one that is being destroyed need not follow: it is waited for */
		if (other == sqp || !stays(other) || test_bit(SHIFT_QP_DEAD, &other->flags))
			continue;
		if (state == SHIFT_ST_OFF || state == SHIFT_ST_APP || state == SHIFT_ST_FAIL ||
		    stuck(other) ||
		    !(READ_ONCE(other->link_ok[1]) ||
		      (ssrq->pool && READ_ONCE(other->link_ok[0]))))
			movable = false;
	}
	spin_unlock_bh(&ssrq->look);
	return movable;
}

/**
 * shift_srq_path - where the other QPs of its SRQ are, or are going
 * @sqp: the QP.
 * @must: out: it may go nowhere else.
 *
 * Context: any that may take a spinlock.
 * Return: the path; 0: that is for @sqp to say.
 */
u8 shift_srq_path(const struct shift_qp *sqp, bool *must)
{
	struct shift_srq *ssrq = sqp->ssrq;
	u8 path = 0;

	*must = false;
	if (!ssrq)
		return 0;
	spin_lock_bh(&ssrq->look);
	if (ssrq->target) {
		path = ssrq->target->path;
		*must = true;
	} else if (ssrq->pool && sqp->srq_pool != ssrq->pool) {
		path = ssrq->pool->path;
	}
	spin_unlock_bh(&ssrq->look);
	return path;
}

/* Has it to follow the others?  The path, or 0; asked again for as long.  sqp->lock. */
u8 shift_srq_wanted(const struct shift_qp *sqp, bool *broken)
{
	struct shift_srq *ssrq = sqp->ssrq;
	u8 path = 0;

	*broken = false;
	if (!ssrq)
		return 0;
	mutex_lock(&ssrq->lock);
	*broken = ssrq->broken;
	if (ssrq->target && stays(sqp))
		path = ssrq->target->path;
	else if (!ssrq->target && can_follow(sqp))
		path = ssrq->pool->path;
	if (path)
		wake(ssrq);
	mutex_unlock(&ssrq->lock);
	return path;
}

/**
 * shift_srq_claim - the QP is about to be fenced, and will draw from @pool
 * @sqp: the QP, locked.
 * @pool: of the kernel-owned QP that it is going to.
 *
 * Return: 0; -EBUSY: the others are going elsewhere.
 */
int shift_srq_claim(struct shift_qp *sqp, struct shift_srq_pool *pool)
{
	struct shift_srq *ssrq = sqp->ssrq;
	int err = 0;

	if (!ssrq)
		return 0;
	mutex_lock(&ssrq->lock);
	if (!pool || (ssrq->target && ssrq->target != pool)) {
		err = -EBUSY;
	} else if (pool != ssrq->pool) {
		if (!ssrq->target && ssrq->next[pool->path] != pool) {
			err = -EBUSY;
		} else if (!ssrq->target) {
			set_pools(ssrq, ssrq->pool, pool);
			ssrq->next[pool->path] = NULL;
			ssrq->deadline_ns = ktime_get_ns() + (u64)DEADLINE_MS * NSEC_PER_MSEC *
					    max(READ_ONCE(shift_deadline_scale), 1u);
			wake(ssrq);
		}
		if (!err) {
			sqp->srq_left = true;
			kick_members(ssrq);
		}
	}
	mutex_unlock(&ssrq->lock);
	return err;
}

/* Fenced: it draws from nowhere.  The last one takes the receives along; sqp->lock. */
void shift_srq_fenced(struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->ssrq;

	if (!ssrq)
		return;
	mutex_lock(&ssrq->lock);
	draws_nothing(sqp);
	check(ssrq);
	mutex_unlock(&ssrq->lock);
}

/**
 * shift_srq_ready - may the peer be told READY: do its SENDs find receives here?
 * @sqp: the QP, locked; its kernel-owned QP is connected.
 * @pool: what that draws from.
 *
 * Until they have moved there it draws from nowhere, as nobody sends to it.
 *
 * Return: if not, the QP is kicked with SHIFT_QP_READY when that is worth another look.
 */
bool shift_srq_ready(struct shift_qp *sqp, struct shift_srq_pool *pool)
{
	struct shift_srq *ssrq = sqp->ssrq;
	bool ready;

	if (!ssrq)
		return true;
	mutex_lock(&ssrq->lock);
	ready = pool && pool == ssrq->pool && !ssrq->broken;
	if (ready) {
		sqp->srq_pool = pool;
		sqp->srq_live = true;
	}
	sqp->srq_waits = !ready;
	mutex_unlock(&ssrq->lock);
	return ready;
}

/* One that has left and has to be given up, with a reference. */
static struct shift_qp *one_left(struct shift_srq *ssrq)
{
	struct shift_qp *sqp, *found = NULL;

	mutex_lock(&ssrq->lock);
	list_for_each_entry(sqp, &ssrq->members, srq_node) {
		if (ssrq->target && sqp->srq_left) {
			found = sqp;
			shift_qp_get(sqp);
			break;
		}
	}
	mutex_unlock(&ssrq->lock);
	return found;
}

/* The rest could not follow in time: those that have left have no receives. */
static void give_up(struct shift_srq *ssrq)
{
	struct shift_qp *sqp;

	while ((sqp = one_left(ssrq))) {
		mutex_lock(&sqp->lock);
		if (sqp->srq_left && sqp->qp)
			shift_switch_fail(sqp, IB_WC_RETRY_EXC_ERR);
		shift_srq_ended(sqp);
		mutex_unlock(&sqp->lock);
		shift_qp_put(sqp);
	}
}

void shift_srq_timer(struct work_struct *work)
{
	struct shift_srq *ssrq = container_of(to_delayed_work(work), struct shift_srq, timer);
	unsigned int noio = memalloc_noio_save();
	struct shift_qp *sqp;
	bool over, again;

	mutex_lock(&ssrq->lock);
	over = ssrq->target && ktime_get_ns() > ssrq->deadline_ns;
	again = ssrq->target;
	list_for_each_entry(sqp, &ssrq->members, srq_node)
		again |= can_follow(sqp);
	kick_members(ssrq);
	if (again && !over)
		wake(ssrq);
	mutex_unlock(&ssrq->lock);
	if (over)
		give_up(ssrq);
	memalloc_noio_restore(noio);
}

/* Pools of @path, or all, are not to be used any more; who is on them stays; ssrq->lock. */
void shift_srq_drop_pools(struct shift_srq *ssrq, u8 path)
{
	struct shift_srq_pool **all[] = {
		&ssrq->pool, &ssrq->target, &ssrq->next[SHIFT_PATH_BACKUP],
		&ssrq->next[SHIFT_PATH_HOME],
	};
	int i;

	lockdep_assert_held(&ssrq->lock);
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		struct shift_srq_pool *pool = *all[i];

		if (!pool || (path && pool->path != path))
			continue;
		if (all[i] == &ssrq->pool) {
			/* away for good */
			ssrq->broken = true;
			spin_lock_bh(&ssrq->post_lock);
			ssrq->post_to = NULL;
			spin_unlock_bh(&ssrq->post_lock);
		}
		spin_lock_bh(&ssrq->look);
		*all[i] = NULL;
		spin_unlock_bh(&ssrq->look);
		shift_srq_pool_put(pool);
	}
}
