// SPDX-License-Identifier: GPL-2.0
/* Protection domains: how they are tracked, and their verbs. */
#include <linux/module.h>
#include <linux/slab.h>
#include "core/object.h"
#include "core/pair.h"
#include "verbs/verbs.h"

/* Reclaim may wait for who holds such a lock, so that lockdep has to tell it from others. */
static struct lock_class_key kernel_region_mutex;

/* QPs of a PD without a shadow are not protected. */
static int pd_track(struct shift_dev *sdev, struct ib_pd *pd, enum shift_ulp ulp)
{
	struct shift_pd *spd = kzalloc(sizeof(*spd), ulp ? GFP_KERNEL : GFP_KERNEL_ACCOUNT);
	int err;

	if (!spd)
		return -ENOMEM;
	kref_init(&spd->ref);
	mutex_init(&spd->lock);
	mutex_init(&spd->region_mutex);
	if (ulp)
		lockdep_set_class(&spd->region_mutex, &kernel_region_mutex);
	INIT_LIST_HEAD(&spd->regions);
	xa_init(&spd->mirrors);
	spd->ulp = ulp;
	INIT_LIST_HEAD(&spd->obj.list);
	spd->sdev = shift_dev_get(sdev);
	spd->pair = shift_pair_of(sdev);
	spd->pd = pd;
	__module_get(THIS_MODULE);
	err = shift_track(sdev, &spd->obj, pd, SHIFT_OBJ_PD, &sdev->pds);
	if (err)
		shift_pd_put(spd);
	else if (!ulp)
		shift_charge_pd(&spd->charge, spd, 1, 0);
	return err;
}

static int wrap_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	enum shift_ulp ulp = SHIFT_ULP_NONE;
	struct shift_dev *sdev;
	int idx, err;

	sdev = shift_verb_begin(pd->device, &idx);
	if (!udata)
		ulp = shift_kernel_pd_user(sdev, pd);
	err = sdev->saved.alloc_pd(pd, udata);
	if (!err && (udata || ulp) && shift_dev_count(sdev) && pd_track(sdev, pd, ulp))
		shift_dev_uncount(sdev);
	if (!err && udata)
		shift_charge_make_room(sdev);
	shift_verb_end(sdev, idx);
	return err;
}

/* The application's PD goes.  Its shadow stays for as long as anything of it is left. */
static void pd_drop(struct shift_obj *obj)
{
	struct shift_pd *spd = container_of(obj, struct shift_pd, obj);
	struct shift_dev *sdev = spd->sdev;
	bool mine;

	mutex_lock(&shift_pd_lock);
	mine = shift_untrack(sdev, obj);
	if (mine)
		list_add_tail(&obj->list, &sdev->old_pds);
	mutex_unlock(&shift_pd_lock);
	if (!mine)
		return;
	spd->pd = NULL;
	shift_dev_uncount(sdev);
	shift_pd_put(spd);
}

static int wrap_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	struct shift_dev *sdev;
	struct shift_pd *spd;
	int idx, err;

	sdev = shift_verb_begin(pd->device, &idx);
	spd = shift_pd_find(pd);
	/* the core frees @pd after this returns: no new PD can have its address before */
	err = sdev->saved.dealloc_pd(pd, udata);
	if (!err && spd)
		pd_drop(&spd->obj);
	shift_verb_end(sdev, idx);
	return err;
}

const struct ib_device_ops shift_pd_ops = {
	.alloc_pd = wrap_alloc_pd,
	.dealloc_pd = wrap_dealloc_pd,
};

/**
 * shift_pd_users - who has PDs on a device, and with them holds its pair
 * @sdev: the device.
 *
 * Context: process context; takes sdev->list_lock.
 * Return: BIT(enum shift_ulp) of each user in the kernel; BIT(SHIFT_ULP_NONE): applications have.
 */
u32 shift_pd_users(struct shift_dev *sdev)
{
	struct shift_obj *obj;
	u32 users = 0;

	mutex_lock(&sdev->list_lock);
	list_for_each_entry(obj, &sdev->pds, list)
		users |= BIT(container_of(obj, struct shift_pd, obj)->ulp);
	mutex_unlock(&sdev->list_lock);
	/* an application may have a CQ, and no PD yet */
	if (!users && atomic_read(&sdev->objects) > 0)
		users = BIT(SHIFT_ULP_NONE);
	return users;
}

/**
 * shift_pd_pair_gone - drop the mirror PDs of a pair
 * @pair: dying, with nothing in those PDs any more.
 *
 * Context: process context.
 */
void shift_pd_pair_gone(struct shift_pair *pair)
{
	struct shift_dev *sdev = pair->sdev;
	struct list_head *lists[] = { &sdev->pds, &sdev->old_pds };
	struct shift_obj *obj;
	struct shift_pd *spd;
	int i;

	mutex_lock(&shift_pd_lock);
	mutex_lock(&sdev->list_lock);
	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		list_for_each_entry(obj, lists[i], list) {
			spd = container_of(obj, struct shift_pd, obj);
			if (spd->pair != pair)
				continue;
			shift_pd_spoil(spd, SHIFT_REASON_DEVICE_GONE);
			shift_pd_drop_mirror(spd);
		}
	}
	mutex_unlock(&sdev->list_lock);
	mutex_unlock(&shift_pd_lock);
}

static void pd_lose(struct shift_obj *obj)
{
	shift_pd_spoil(container_of(obj, struct shift_pd, obj), SHIFT_REASON_DEVICE_GONE);
	pd_drop(obj);
}

/**
 * shift_pd_device_gone - a default device goes: forget its PDs
 * @sdev: the device; its pairs are empty, and no verb is under way.
 *
 * Context: process context.
 */
void shift_pd_device_gone(struct shift_dev *sdev)
{
	shift_untrack_all(sdev, &sdev->pds, pd_lose);
}
