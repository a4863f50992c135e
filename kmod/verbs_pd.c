// SPDX-License-Identifier: GPL-2.0
/*
 * Protection domains of user space, and their mirrors.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "shift.h"

/* Outside sdev->list_lock: old_pds of all devices, and that no mirror outlives its device. */
static DEFINE_MUTEX(pd_lock);

void shift_pd_get(struct shift_pd *spd)
{
	kref_get(&spd->ref);
}

/* Before its device goes; pd_lock. */
static void pd_drop_mirror(struct shift_pd *spd)
{
	struct ib_pd *mirror;

	mutex_lock(&spd->lock);
	mirror = spd->mirror;
	spd->mirror = NULL;
	mutex_unlock(&spd->lock);
	if (mirror)
		ib_dealloc_pd(mirror);
}

/* The last child is gone: so is the mirror PD.  On a list until then: its device may go first. */
static void pd_release(struct kref *ref)
{
	struct shift_pd *spd = container_of(ref, struct shift_pd, ref);

	mutex_lock(&pd_lock);
	list_del(&spd->obj.list);
	pd_drop_mirror(spd);
	mutex_unlock(&pd_lock);
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
 * shift_pd_find - what is known of a PD
 * @pd: of the default device.
 *
 * Context: inside shift_srcu.
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
 * Context: process context, sdev->mirror_sem held for reading.
 * Return: the PD or NULL.
 */
struct ib_pd *shift_pd_mirror(struct shift_pd *spd)
{
	struct shift_dev *bdev = spd->sdev->backup;
	struct ib_pd *pd;

	lockdep_assert_held(&spd->sdev->mirror_sem);
	/* it goes, and what is in its PDs is being dropped */
	if (!bdev || !bdev->ibdev)
		return NULL;
	mutex_lock(&spd->lock);
	if (!spd->mirror) {
		pd = ib_alloc_pd(bdev->ibdev, 0);
		if (!IS_ERR(pd))
			spd->mirror = pd;
	}
	pd = spd->mirror;
	mutex_unlock(&spd->lock);
	return pd;
}

static int wrap_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	struct shift_dev *sdev;
	struct shift_pd *spd;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(pd->device);
	err = sdev->saved.alloc_pd(pd, udata);
	if (err || !udata || !READ_ONCE(sdev->tracking))
		goto out;

	spd = kzalloc(sizeof(*spd), GFP_KERNEL);
	if (!spd)
		goto out;	/* untracked, its QPs are unprotected */
	kref_init(&spd->ref);
	mutex_init(&spd->lock);
	mutex_init(&spd->region_mutex);
	INIT_LIST_HEAD(&spd->regions);
	INIT_LIST_HEAD(&spd->obj.list);
	spd->sdev = shift_dev_get(sdev);
	spd->pd = pd;
	__module_get(THIS_MODULE);
	if (shift_object_insert(&spd->obj, pd, SHIFT_OBJ_PD)) {
		shift_pd_put(spd);
		goto out;
	}
	atomic_inc(&sdev->objects);
	mutex_lock(&sdev->list_lock);
	list_add_tail(&spd->obj.list, &sdev->pds);
	mutex_unlock(&sdev->list_lock);
out:
	srcu_read_unlock(&shift_srcu, idx);
	return err;
}

/* Forget @spd's default half; true for the caller that did. */
static bool pd_detach(struct shift_pd *spd)
{
	struct shift_dev *sdev = spd->sdev;

	if (!shift_object_remove(&spd->obj))
		return false;
	mutex_lock(&pd_lock);
	mutex_lock(&sdev->list_lock);
	list_del(&spd->obj.list);
	mutex_unlock(&sdev->list_lock);
	list_add_tail(&spd->obj.list, &sdev->old_pds);
	mutex_unlock(&pd_lock);
	spd->pd = NULL;
	atomic_dec(&sdev->objects);
	return true;
}

static int wrap_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	struct shift_dev *sdev;
	struct shift_pd *spd;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(pd->device);
	spd = shift_pd_find(pd);
	/* @pd is the core's until we return: nobody else finds a new one there */
	err = sdev->saved.dealloc_pd(pd, udata);
	if (!err && spd && pd_detach(spd))
		shift_pd_put(spd);
	srcu_read_unlock(&shift_srcu, idx);
	return err;
}

const struct ib_device_ops shift_pd_ops = {
	.alloc_pd = wrap_alloc_pd,
	.dealloc_pd = wrap_dealloc_pd,
};

/**
 * shift_pd_device_gone - a device goes: drop the PDs that hang on it
 * @sdev: default device.
 * @backup_only: only the mirrors, since the backup goes; else all tracking.
 *
 * Context: process context.  sdev->backup is NULL already, and no verb that saw it is under
 * way: no new mirrors, and nothing in those there are.
 */
void shift_pd_device_gone(struct shift_dev *sdev, bool backup_only)
{
	struct shift_obj *obj;
	struct shift_pd *spd;

	mutex_lock(&pd_lock);
	mutex_lock(&sdev->list_lock);
	list_for_each_entry(obj, &sdev->pds, list) {
		spd = container_of(obj, struct shift_pd, obj);
		shift_pd_spoil(spd, SHIFT_REASON_DEVICE_GONE);
		pd_drop_mirror(spd);
	}
	mutex_unlock(&sdev->list_lock);
	list_for_each_entry(obj, &sdev->old_pds, list)
		pd_drop_mirror(container_of(obj, struct shift_pd, obj));
	mutex_unlock(&pd_lock);

	while (!backup_only) {
		mutex_lock(&sdev->list_lock);
		obj = list_first_entry_or_null(&sdev->pds, struct shift_obj, list);
		mutex_unlock(&sdev->list_lock);
		if (!obj)
			break;
		spd = container_of(obj, struct shift_pd, obj);
		if (pd_detach(spd))
			shift_pd_put(spd);
	}
}
