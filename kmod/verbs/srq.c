// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues: how they are tracked, and their verbs. */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "core/account.h"
#include "core/kernel_srq.h"
#include "core/object.h"
#include "core/pair.h"
#include "core/srq.h"
#include "provider/provider.h"
#include "proxy/proxy.h"
#include "pure/wr.h"
#include "srq/srq.h"
#include "verbs/verbs.h"

/* The module keeps the table itself, and so it is there from the beginning. */
static int srq_init_kernel(struct shift_srq *ssrq)
{
	int err;

	ssrq->ops = &shift_kernel_srq_provider;
	err = shift_srq_make_table(ssrq, roundup_pow_of_two(max(ssrq->max_wr, 1u)), GFP_KERNEL);
	if (!err)
		err = shift_kernel_srq_new(ssrq, shift_srq_work);
	ssrq->rings.registered = !err;
	return err;
}

/* As kernel_qp_lock in verbs/qp.c. */
static struct lock_class_key kernel_srq_lock;

/* QPs on an SRQ without a shadow are not protected. */
static int srq_track(struct shift_dev *sdev, struct ib_srq *srq, const struct ib_srq_attr *attr,
		     bool kernel)
{
	struct shift_pd *spd = shift_pd_find(srq->pd);
	struct shift_srq *ssrq;
	int err;

	if (!spd || attr->max_sge > SHIFT_WR_MAX_SGE)
		return -EOPNOTSUPP;
	if (kernel && (!spd->ulp || !shift_srq_is_enabled()))
		return -EOPNOTSUPP;
	ssrq = kzalloc(sizeof(*ssrq), kernel ? GFP_KERNEL : GFP_KERNEL_ACCOUNT);
	if (!ssrq)
		return -ENOMEM;
	kref_init(&ssrq->ref);
	mutex_init(&ssrq->lock);
	if (kernel)
		lockdep_set_class(&ssrq->lock, &kernel_srq_lock);
	spin_lock_init(&ssrq->look);
	spin_lock_init(&ssrq->post_lock);
	INIT_LIST_HEAD(&ssrq->members);
	INIT_LIST_HEAD(&ssrq->cqs);
	INIT_LIST_HEAD(&ssrq->rec.pending);
	INIT_LIST_HEAD(&ssrq->rec.posted);
	INIT_DELAYED_WORK(&ssrq->timer, shift_srq_timer);
	ssrq->sdev = shift_dev_get(sdev);
	ssrq->spd = spd;
	shift_pd_get(spd);
	ssrq->srq = srq;
	ssrq->max_wr = attr->max_wr;
	ssrq->max_sge = attr->max_sge;
	ssrq->rec.done = shift_srq_recv_done;
	ssrq->ops = sdev->provider ? sdev->provider->srq : NULL;
	__module_get(THIS_MODULE);
	/* struct ib_usrq_object begins with its struct ib_uobject */
	if (!kernel)
		shift_obj_set_owner(&ssrq->obj, (struct ib_uobject *)srq->uobject);
	err = kernel ? srq_init_kernel(ssrq) : 0;
	if (!err)
		err = shift_track(sdev, &ssrq->obj, srq, SHIFT_OBJ_SRQ, &sdev->srqs);
	if (err)
		shift_srq_put(ssrq);
	else if (!kernel)
		shift_charge_pd(&ssrq->charge, spd, 1, 1);
	return err;
}

/* Is it of a user in the kernel that is tracked?  The module's own are in the PDs of such users. */
static bool srq_is_kernel_users(const struct shift_dev *sdev, const struct ib_srq *srq)
{
	return !shift_srq_is_pool(srq) && shift_kernel_pd_user(sdev, srq->pd) != SHIFT_ULP_NONE;
}

static int wrap_create_srq(struct ib_srq *srq, struct ib_srq_init_attr *attr,
			   struct ib_udata *udata)
{
	struct shift_lent lent;
	struct shift_dev *sdev;
	bool kernel;
	int idx, err;

	sdev = shift_verb_begin(srq->device, &idx);
	shift_account_lend(&lent, true);
	kernel = !udata && srq_is_kernel_users(sdev, srq);
	err = sdev->saved.create_srq(srq, attr, udata);
	if (!err && (kernel || (udata && srq->uobject)) && shift_dev_count(sdev) &&
	    srq_track(sdev, srq, &attr->attr, kernel))
		shift_dev_uncount(sdev);
	if (!err && udata)
		shift_charge_make_room(sdev);
	shift_account_restore(&lent);
	shift_verb_end(sdev, idx);
	return err;
}

/* Nothing is posted any more, and no QP joins. */
static void srq_drop_kernel(struct shift_srq *ssrq)
{
	struct shift_srq_cq *link;

	/* who has found it before may queue the work */
	synchronize_rcu_expedited();
	cancel_work_sync(&ssrq->kernel->work);
	list_for_each_entry(link, &ssrq->cqs, node)
		shift_kernel_cq_leave(link->scq);
}

/* The user's SRQ goes, and with it what stands in for it. */
static void srq_drop(struct shift_obj *obj)
{
	struct shift_srq *ssrq = container_of(obj, struct shift_srq, obj);
	struct shift_dev *sdev = ssrq->sdev;

	if (!shift_untrack(sdev, obj))
		return;
	mutex_lock(&ssrq->lock);
	ssrq->dead = true;
	ssrq->obj.ufile = NULL;
	shift_srq_drop_pools(ssrq, 0);
	spin_lock_bh(&ssrq->post_lock);
	ssrq->srq = NULL;
	spin_unlock_bh(&ssrq->post_lock);
	mutex_unlock(&ssrq->lock);
	cancel_delayed_work_sync(&ssrq->timer);
	if (ssrq->kernel)
		srq_drop_kernel(ssrq);
	shift_charge_drop(&ssrq->charge);
	shift_dev_uncount(sdev);
	shift_srq_put(ssrq);
}

/* The core makes sure that no QP of the application uses it. */
static int wrap_destroy_srq(struct ib_srq *srq, struct ib_udata *udata)
{
	struct shift_srq *ssrq;
	struct shift_dev *sdev;
	int idx, err;

	sdev = shift_verb_begin(srq->device, &idx);
	ssrq = shift_srq_find(srq);
	if (ssrq)
		srq_drop(&ssrq->obj);
	err = sdev->saved.destroy_srq(srq, udata);
	shift_verb_end(sdev, idx);
	return err;
}

static void srq_note_limit(struct shift_srq *ssrq, u32 limit)
{
	lockdep_assert_held(&ssrq->lock);
	spin_lock_bh(&ssrq->post_lock);
	WRITE_ONCE(ssrq->rec.limit, limit);
	spin_unlock_bh(&ssrq->post_lock);
	shift_srq_limit_set(ssrq);
}

/*
 * Set the limit.  While the SRQ is away the kernel watches it, and not the device, which sees what
 * is taken from the ring only; ssrq->lock.
 */
static int srq_set_limit(struct shift_srq *ssrq, struct ib_srq_attr *attr, struct ib_udata *udata)
{
	const struct ib_device_ops *saved = &ssrq->sdev->saved;
	struct ib_srq_attr has = {};
	int err;

	lockdep_assert_held(&ssrq->lock);
	if (ssrq->rec.away) {
		err = saved->query_srq(ssrq->srq, &has);
		if (!err && attr->srq_limit > has.max_wr)
			err = -EINVAL;
	} else {
		err = saved->modify_srq(ssrq->srq, attr, IB_SRQ_LIMIT, udata);
	}
	if (!err)
		srq_note_limit(ssrq, attr->srq_limit);
	return err;
}

/* A resize on the default device copies what is in the ring to another one, which is not known. */
static int srq_resize(struct shift_srq *ssrq, struct ib_srq_attr *attr,
		      enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	int err;

	/* a take-over that is under way is waited for; then none begins, and nothing is lent */
	mutex_lock(&ssrq->lock);
	shift_srq_come_home(ssrq);
	spin_lock_bh(&ssrq->post_lock);
	WRITE_ONCE(ssrq->spoiled, true);
	spin_unlock_bh(&ssrq->post_lock);
	mutex_unlock(&ssrq->lock);
	/* the lock is not held for the driver, which writes to memory of the process */
	err = ssrq->sdev->saved.modify_srq(ssrq->srq, attr, mask, udata);
	if (err || !(mask & IB_SRQ_LIMIT))
		return err;
	mutex_lock(&ssrq->lock);
	srq_note_limit(ssrq, attr->srq_limit);
	mutex_unlock(&ssrq->lock);
	return 0;
}

static int wrap_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr,
			   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct shift_srq *ssrq;
	struct shift_dev *sdev;
	int idx, err;

	sdev = shift_verb_begin(srq->device, &idx);
	ssrq = shift_srq_find(srq);
	if (!ssrq) {
		err = sdev->saved.modify_srq(srq, attr, mask, udata);
	} else if (mask & IB_SRQ_MAX_WR) {
		err = srq_resize(ssrq, attr, mask, udata);
	} else {
		mutex_lock(&ssrq->lock);
		err = srq_set_limit(ssrq, attr, udata);
		mutex_unlock(&ssrq->lock);
	}
	shift_verb_end(sdev, idx);
	return err;
}

static int wrap_query_srq(struct ib_srq *srq, struct ib_srq_attr *attr)
{
	struct shift_srq *ssrq;
	struct shift_dev *sdev;
	int idx, err;

	sdev = shift_verb_begin(srq->device, &idx);
	ssrq = shift_srq_find(srq);
	err = sdev->saved.query_srq(srq, attr);
	if (!err && ssrq) {
		mutex_lock(&ssrq->lock);
		if (ssrq->rec.away)
			attr->srq_limit = READ_ONCE(ssrq->rec.limit);
		mutex_unlock(&ssrq->lock);
	}
	shift_verb_end(sdev, idx);
	return err;
}

const struct ib_device_ops shift_srq_ops = {
	.create_srq = wrap_create_srq,
	.destroy_srq = wrap_destroy_srq,
	.modify_srq = wrap_modify_srq,
	.query_srq = wrap_query_srq,
};

/**
 * shift_srq_pair_gone - drop the pools of a pair's SRQs on the backup
 * @pair: dying; shift_qp_pair_gone() was called.
 *
 * Context: process context.
 */
void shift_srq_pair_gone(struct shift_pair *pair)
{
	struct shift_dev *sdev = pair->sdev;
	struct shift_srq *ssrq;
	struct shift_obj *obj;

	mutex_lock(&sdev->list_lock);
	list_for_each_entry(obj, &sdev->srqs, list) {
		ssrq = container_of(obj, struct shift_srq, obj);
		if (ssrq->spd->pair != pair)
			continue;
		mutex_lock(&ssrq->lock);
		shift_srq_drop_pools(ssrq, SHIFT_PATH_BACKUP);
		mutex_unlock(&ssrq->lock);
	}
	mutex_unlock(&sdev->list_lock);
}

/**
 * shift_srq_device_gone - a default device goes
 * @sdev: the device; its QPs are gone.
 *
 * Context: process context.
 */
void shift_srq_device_gone(struct shift_dev *sdev)
{
	shift_untrack_all(sdev, &sdev->srqs, srq_drop);
}
