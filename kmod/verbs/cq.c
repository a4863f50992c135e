// SPDX-License-Identifier: GPL-2.0
/* Completion queues: how they are tracked, and the verbs of user space. */
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "compat/compat.h"
#include "core/account.h"
#include "core/kernel_cq.h"
#include "core/object.h"
#include "verbs/verbs.h"

static struct shift_cq *cq_new(struct shift_dev *sdev, struct ib_cq *cq, gfp_t gfp)
{
	struct shift_cq *scq = kzalloc(sizeof(*scq), gfp);

	if (!scq)
		return NULL;
	kref_init(&scq->ref);
	spin_lock_init(&scq->lock);
	scq->sdev = shift_dev_get(sdev);
	scq->cq = cq;
	__module_get(THIS_MODULE);
	return scq;
}

/* QPs that complete into a CQ without a shadow are not protected. */
static int cq_track(struct shift_dev *sdev, struct ib_cq *cq, u32 cqe)
{
	struct shift_cq *scq = cq_new(sdev, cq, GFP_KERNEL_ACCOUNT);
	int err;

	if (!scq)
		return -ENOMEM;
	scq->cqe = cqe;
	/* struct ib_ucq_object begins with its struct ib_uobject */
	shift_obj_set_owner(&scq->obj, (struct ib_uobject *)cq->uobject);
	err = shift_track(sdev, &scq->obj, cq, SHIFT_OBJ_CQ, &sdev->cqs);
	if (err)
		shift_cq_put(scq);
	return err;
}

/**
 * shift_cq_track_kernel - make the shadow of a kernel user's CQ
 * @sdev: its device.
 * @cq: the CQ, which has no shadow.
 * @provider: of its kind.
 * @kernel: its side ring; belongs to the shadow, or is freed.
 *
 * Context: process context.
 * Return: the shadow, until shift_cq_drop(); NULL: it cannot be tracked.
 */
struct shift_cq *shift_cq_track_kernel(struct shift_dev *sdev, struct ib_cq *cq,
				       const struct shift_provider *provider,
				       struct shift_kernel_cq *kernel)
{
	struct shift_cq *scq;

	if (!shift_dev_count(sdev)) {
		shift_kernel_cq_free(kernel);
		return NULL;
	}
	scq = cq_new(sdev, cq, GFP_KERNEL);
	if (!scq) {
		shift_kernel_cq_free(kernel);
		goto err;
	}
	scq->kernel = kernel;
	scq->provider = provider;
	scq->registered = true;
	if (!shift_track(sdev, &scq->obj, cq, SHIFT_OBJ_CQ, &sdev->cqs))
		return scq;
	shift_cq_put(scq);
err:
	shift_dev_uncount(sdev);
	return NULL;
}

/* Also stands for create_user_cq, which newer kernels call for CQs of user space. */
static int wrap_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			  SHIFT_CREATE_CQ_UDATA *udata)
{
	struct shift_lent lent;
	struct shift_dev *sdev;
	int idx, err;

	sdev = shift_verb_begin(cq->device, &idx);
	shift_account_lend(&lent, true);
	err = shift_driver_create_cq(&sdev->saved, cq, attr, udata);
	if (!err && udata && cq->uobject && shift_dev_count(sdev) &&
	    cq_track(sdev, cq, attr->cqe))
		shift_dev_uncount(sdev);
	if (!err && udata)
		shift_charge_make_room(sdev);
	shift_account_restore(&lent);
	shift_verb_end(sdev, idx);
	return err;
}

/* The user's CQ goes: its handler is not called after this returns. */
void shift_cq_drop(struct shift_obj *obj)
{
	struct shift_cq *scq = container_of(obj, struct shift_cq, obj);
	struct shift_dev *sdev = scq->sdev;

	if (!shift_untrack(sdev, obj))
		return;
	spin_lock_bh(&scq->lock);
	scq->cq = NULL;
	scq->obj.ufile = NULL;
	spin_unlock_bh(&scq->lock);
	if (scq->kernel)
		shift_kernel_cq_end(scq->kernel);
	shift_dev_uncount(sdev);
	shift_cq_put(scq);
}

static int wrap_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	struct shift_dev *sdev;
	struct shift_obj *obj;
	int idx, err;

	sdev = shift_verb_begin(cq->device, &idx);
	/*
	 * Its handler must not be called once the driver lets go of @cq.  A CQ that the driver
	 * then fails to destroy is not tracked any more.
	 */
	obj = shift_object_find(cq, SHIFT_OBJ_CQ);
	if (obj)
		shift_cq_drop(obj);
	err = sdev->saved.destroy_cq(cq, udata);
	shift_verb_end(sdev, idx);
	return err;
}

static int wrap_resize_user_cq(struct ib_cq *cq, SHIFT_RESIZE_CQE cqe, struct ib_udata *udata)
{
	struct shift_lent lent;
	struct shift_dev *sdev;
	int idx, err;

	/* the provider unregisters the CQ before a resize, and registers it again afterwards */
	sdev = shift_verb_begin(cq->device, &idx);
	shift_account_lend(&lent, true);
	err = sdev->saved.resize_user_cq(cq, cqe, udata);
	shift_account_restore(&lent);
	shift_verb_end(sdev, idx);
	return err;
}

/* Called with spinlocks held: it does not sleep, and RCU keeps @sdev and @scq. */
static int wrap_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	struct shift_obj *obj;
	struct shift_dev *sdev;
	struct shift_cq *scq;
	int ret;

	rcu_read_lock();
	obj = shift_object_find_rcu(cq, SHIFT_OBJ_CQ);
	scq = obj ? container_of(obj, struct shift_cq, obj) : NULL;
	if (scq && scq->kernel) {
		ret = shift_kernel_cq_arm(scq, cq, flags);
		goto out;
	}
	if (scq && READ_ONCE(scq->registered)) {
		spin_lock_bh(&scq->lock);
		scq->armed |= flags & IB_CQ_SOLICITED_MASK;
		spin_unlock_bh(&scq->lock);
	}
	/*
	 * As with a driver, completions from before the arming cause no event.  An application
	 * that polls once for each event would get one event too many.
	 */
	sdev = scq ? scq->sdev : shift_ops_dev(cq->device);
	ret = sdev->saved.req_notify_cq(cq, flags);
out:
	rcu_read_unlock();
	return ret;
}

const struct ib_device_ops shift_cq_ops = {
	.create_cq = wrap_create_cq,
#ifdef SHIFT_HAVE_CREATE_USER_CQ
	.create_user_cq = wrap_create_cq,
#endif
	.destroy_cq = wrap_destroy_cq,
	.resize_user_cq = wrap_resize_user_cq,
	.req_notify_cq = wrap_req_notify_cq,
};

/**
 * shift_cq_device_gone - a default device goes: forget its CQs
 * @sdev: the device; its QPs are gone.
 *
 * Context: process context.
 */
void shift_cq_device_gone(struct shift_dev *sdev)
{
	shift_untrack_all(sdev, &sdev->cqs, shift_cq_drop);
}
