// SPDX-License-Identifier: GPL-2.0
/* Shadows of PDs, their mirrors, and why the QPs of a PD cannot be protected. */
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "core/object.h"
#include "core/pair.h"

/*
 * Protects old_pds of all devices, and is held to drop mirror PDs, so that none outlives its
 * device.  Outside sdev->list_lock.
 */
DEFINE_MUTEX(shift_pd_lock);

void shift_pd_get(struct shift_pd *spd)
{
	kref_get(&spd->ref);
}

/* Free the mirror PD, at the latest before its device is removed; shift_pd_lock. */
void shift_pd_drop_mirror(struct shift_pd *spd)
{
	unsigned int noio = memalloc_noio_save();
	struct ib_pd *mirror;

	lockdep_assert_held(&shift_pd_lock);
	mutex_lock(&spd->lock);
	mirror = spd->mirror;
	spd->mirror = NULL;
	mutex_unlock(&spd->lock);
	/* who delivers messages may wait for the lock, and reclaim for such a message */
	if (mirror)
		ib_dealloc_pd(mirror);
	memalloc_noio_restore(noio);
}

/*
 * The last object in the PD is gone, so that the mirror PD can go.  Until then the PD is on a list,
 * as the device of its mirror may be removed first.
 */
static void pd_release(struct kref *ref)
{
	struct shift_pd *spd = container_of(ref, struct shift_pd, ref);

	mutex_lock(&shift_pd_lock);
	list_del(&spd->obj.list);
	shift_pd_drop_mirror(spd);
	mutex_unlock(&shift_pd_lock);
	shift_charge_drop(&spd->charge);
	shift_pair_put(spd->pair);
	shift_dev_put(spd->sdev);
	kfree_rcu(spd, obj.rcu);
	module_put(THIS_MODULE);
}

void shift_pd_put(struct shift_pd *spd)
{
	kref_put(&spd->ref, pd_release);
}

/* QPs of this PD cannot be protected from now on; the first reason stays. */
void shift_pd_spoil(struct shift_pd *spd, enum shift_reason reason)
{
	atomic_cmpxchg(&spd->reason, 0, reason);
}

/**
 * shift_pd_reason - why cannot a QP of this PD leave its path?
 * @spd: the PD; NULL: none.
 * @path: where the QP is.  Memory without a mirror keeps no QP on the backup.
 *
 * Context: any.
 * Return: the reason; NONE: it can.
 */
enum shift_reason shift_pd_reason(const struct shift_pd *spd, u8 path)
{
	int reason = spd ? atomic_read(&spd->reason) : 0;
	unsigned int i;

	if (reason || !spd || path == SHIFT_PATH_BACKUP)
		return reason;
	for (i = 0; i < ARRAY_SIZE(spd->unmirrored); i++)
		if (atomic_read(&spd->unmirrored[i]))
			return i;
	return SHIFT_REASON_NONE;
}

/**
 * shift_pd_find - look up the shadow of a PD
 * @pd: of the default device.
 *
 * Context: inside a verb.
 * Return: its shadow, or NULL: not tracked.
 */
struct shift_pd *shift_pd_find(struct ib_pd *pd)
{
	struct shift_obj *obj = shift_object_find(pd, SHIFT_OBJ_PD);

	return obj ? container_of(obj, struct shift_pd, obj) : NULL;
}

/**
 * shift_pd_mirror - the PD on the backup device, made on first use
 * @spd: shadow of the default PD.
 *
 * Who finds it there does not wait for the lock, under which another thread may wait for memory.
 *
 * Context: process context, between shift_pair_use() and shift_pair_unuse().
 * Return: the PD or NULL.
 */
struct ib_pd *shift_pd_mirror(struct shift_pd *spd)
{
	unsigned int noio;
	struct ib_pd *pd;

	WARN_ON_ONCE(!refcount_read(&spd->pair->users));
	/* it stays for as long as the pair is used */
	pd = smp_load_acquire(&spd->mirror);
	if (pd)
		return pd;
	/* a QP that is being paired waits for it, and its user may carry out reclaim's I/O */
	noio = memalloc_noio_save();
	mutex_lock(&spd->lock);
	if (!spd->mirror) {
		pd = ib_alloc_pd(spd->pair->backup->ibdev, spd->pd->flags);
		if (!IS_ERR(pd))
			smp_store_release(&spd->mirror, pd);	/* with all that is in it */
	}
	pd = spd->mirror;
	mutex_unlock(&spd->lock);
	memalloc_noio_restore(noio);
	return pd;
}
