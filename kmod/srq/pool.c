// SPDX-License-Identifier: GPL-2.0
/*
 * Pools: the kernel-owned SRQs that hold the receives of an application's SRQ while that is
 * away.  See Documentation/internals/srq.md.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "core/account.h"
#include "core/object.h"
#include "core/pair.h"
#include "core/qp.h"
#include "core/srq.h"
#include "srq/srq.h"

static void pool_release(struct kref *ref)
{
	struct shift_srq_pool *pool = container_of(ref, struct shift_srq_pool, ref);
	/* the core allocates, and a QP that is moved may wait for a lock that is held here */
	unsigned int noio = memalloc_noio_save();

	ib_destroy_srq(pool->srq);
	memalloc_noio_restore(noio);
	if (pool->path == SHIFT_PATH_BACKUP)
		shift_pair_drop_mirror(pool->spd->pair);
	shift_pd_put(pool->spd);
	kfree(pool);
}

/* Process context; by a proxy QP after the QP on the pool was destroyed. */
void shift_srq_pool_put(struct shift_srq_pool *pool)
{
	if (pool)
		kref_put(&pool->ref, pool_release);
}

/* No limit is ever set.  By this a pool is known from an SRQ of its user, in the same PD. */
static void pool_event(struct ib_event *event, void *context)
{
}

bool shift_srq_is_pool(const struct ib_srq *srq)
{
	return srq->event_handler == pool_event;
}

static struct shift_srq_pool *pool_make(struct shift_srq *ssrq, u8 path, struct ib_pd *pd)
{
	struct ib_device *ibdev = pd->device;
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_BASIC,
		.event_handler = pool_event,
		.attr = {
			.max_wr = min_t(u32, ssrq->rec.depth, ibdev->attrs.max_srq_wr),
			.max_sge = clamp_t(u32, ssrq->max_sge, 1, ibdev->attrs.max_srq_sge),
		},
	};
	struct shift_srq_pool *pool = kzalloc(sizeof(*pool), GFP_KERNEL | SHIFT_GFP_PAID);

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
	if (path == SHIFT_PATH_BACKUP)
		shift_pair_add_mirror(pool->spd->pair);
	return pool;
}

/* The pool that a proxy QP of @sqp on @path has to draw from; NULL: it has to be made. */
static struct shift_srq_pool *pool_wanted(const struct shift_qp *sqp, u8 path)
{
	const struct shift_srq *ssrq = sqp->srqm.ssrq;

	lockdep_assert_held(&ssrq->lock);
	if (ssrq->target && ssrq->target->path == path)
		return ssrq->target;
	if (ssrq->pool && ssrq->pool->path == path &&
	    (sqp->srqm.pool != ssrq->pool || sqp->srqm.keeps))
		return ssrq->pool;
	return ssrq->next[path];
}

/**
 * shift_srq_pool_get - the pool for a proxy QP that is to be made
 * @sqp: the QP, on an SRQ, locked.
 * @path: of the proxy QP; not 0.
 * @pd: of the proxy QP.
 *
 * Context: process context, between shift_pair_use() and shift_pair_unuse() for the backup.
 * Return: the pool, with a reference; NULL: there can be none.
 */
struct shift_srq_pool *shift_srq_pool_get(struct shift_qp *sqp, u8 path, struct ib_pd *pd)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	struct shift_srq_pool *pool = NULL;

	lockdep_assert_held(&sqp->lock);
	mutex_lock(&ssrq->lock);
	if (ssrq->rings.registered && !ssrq->dead) {
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

/* Is a spare proxy QP still on the pool that it would have to draw from? */
bool shift_srq_pool_fits(struct shift_qp *sqp, u8 path, const struct shift_srq_pool *pool)
{
	bool fits;

	if (!sqp->srqm.ssrq)
		return true;
	mutex_lock(&sqp->srqm.ssrq->lock);
	fits = pool && pool == pool_wanted(sqp, path);
	mutex_unlock(&sqp->srqm.ssrq->lock);
	return fits;
}

/* The SRQ lets go of the pools of @path (0: of all).  QPs on them keep them; ssrq->lock. */
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
			/* those that have drawn from it have failed, or do now */
			ssrq->broken = true;
			shift_srq_pool_lost(ssrq);
		}
		spin_lock_bh(&ssrq->look);
		*all[i] = NULL;
		spin_unlock_bh(&ssrq->look);
		shift_srq_pool_put(pool);
	}
}
