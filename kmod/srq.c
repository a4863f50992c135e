// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues of user space: tracking, and their verbs. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include "account.h"
#include "srq.h"

void shift_srq_get(struct shift_srq *ssrq)
{
	kref_get(&ssrq->ref);
}

static void srq_release(struct kref *ref)
{
	struct shift_srq *ssrq = container_of(ref, struct shift_srq, ref);
	struct shift_srq_cq *link, *next;

	list_for_each_entry_safe(link, next, &ssrq->cqs, node) {
		shift_cq_put(link->scq);
		kfree(link);
	}
	shift_srq_free_table(ssrq);
	if (ssrq->spd)
		shift_pd_put(ssrq->spd);
	shift_dev_put(ssrq->sdev);
	kfree_rcu(ssrq, obj.rcu);
	module_put(THIS_MODULE);
}

void shift_srq_put(struct shift_srq *ssrq)
{
	kref_put(&ssrq->ref, srq_release);
}

static struct shift_srq *srq_find(struct ib_srq *srq)
{
	struct shift_obj *obj = srq ? shift_object_find(srq, SHIFT_OBJ_SRQ) : NULL;

	return obj ? container_of(obj, struct shift_srq, obj) : NULL;
}

/**
 * shift_srq_join - a QP was created
 * @sqp: the QP, new.
 * @srq: its SRQ or NULL.
 *
 * Return: false if it has an SRQ with which it cannot be protected.
 */
bool shift_srq_join(struct shift_qp *sqp, struct ib_srq *srq)
{
	struct shift_srq *ssrq = srq_find(srq);
	struct shift_srq_cq *link;
	bool found = false;

	INIT_LIST_HEAD(&sqp->srq_node);
	INIT_LIST_HEAD(&sqp->srq_done);
	if (!srq)
		return true;
	if (!ssrq)
		return false;
	shift_srq_get(ssrq);
	sqp->ssrq = ssrq;
	mutex_lock(&ssrq->lock);
	spin_lock_bh(&ssrq->look);
	list_add_tail(&sqp->srq_node, &ssrq->members);
	spin_unlock_bh(&ssrq->look);
	list_for_each_entry(link, &ssrq->cqs, node)
		found |= link->scq == sqp->rcq;
	if (!found) {
		link = sqp->rcq ? kzalloc(sizeof(*link), GFP_KERNEL) : NULL;
		if (link) {
			link->scq = sqp->rcq;
			shift_cq_get(link->scq);
			list_add_tail(&link->node, &ssrq->cqs);
		} else {
			ssrq->spoiled = true;
		}
	}
	mutex_unlock(&ssrq->lock);
	return sqp->spd && sqp->spd == ssrq->spd;
}

/* A QP that we know nothing of draws from it. */
void shift_srq_spoil(struct ib_srq *srq)
{
	struct shift_srq *ssrq = srq_find(srq);

	if (ssrq)
		WRITE_ONCE(ssrq->spoiled, true);
}

static int wrap_create_srq(struct ib_srq *srq, struct ib_srq_init_attr *attr,
			   struct ib_udata *udata)
{
	struct shift_account *lent = shift_account_lend();
	struct ib_uobject *uobject;
	struct shift_dev *sdev;
	struct shift_srq *ssrq;
	struct shift_obj *pd;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(srq->device);
	err = sdev->saved.create_srq(srq, attr, udata);
	if (err || !udata || !srq->uobject || !READ_ONCE(sdev->tracking))
		goto out;
	pd = shift_object_find(srq->pd, SHIFT_OBJ_PD);
	if (!pd || attr->attr.max_sge > SHIFT_WR_MAX_SGE)
		goto out;
	ssrq = kzalloc(sizeof(*ssrq), GFP_KERNEL);
	if (!ssrq)
		goto out;
	/* struct ib_usrq_object begins with its struct ib_uobject */
	uobject = (struct ib_uobject *)srq->uobject;
	kref_init(&ssrq->ref);
	mutex_init(&ssrq->lock);
	spin_lock_init(&ssrq->look);
	spin_lock_init(&ssrq->post_lock);
	INIT_LIST_HEAD(&ssrq->members);
	INIT_LIST_HEAD(&ssrq->cqs);
	INIT_LIST_HEAD(&ssrq->pending);
	INIT_LIST_HEAD(&ssrq->posted);
	INIT_DELAYED_WORK(&ssrq->timer, shift_srq_timer);
	ssrq->sdev = shift_dev_get(sdev);
	ssrq->spd = container_of(pd, struct shift_pd, obj);
	shift_pd_get(ssrq->spd);
	ssrq->srq = srq;
	ssrq->max_sge = attr->attr.max_sge;
	ssrq->ufile = uobject->ufile;
	ssrq->handle = uobject->id;
	ssrq->mm = current->mm;
	__module_get(THIS_MODULE);
	if (shift_object_insert(&ssrq->obj, srq, SHIFT_OBJ_SRQ)) {
		shift_srq_put(ssrq);
		goto out;
	}
	atomic_inc(&sdev->objects);
	mutex_lock(&sdev->list_lock);
	list_add_tail(&ssrq->obj.list, &sdev->srqs);
	mutex_unlock(&sdev->list_lock);
out:
	srcu_read_unlock(&shift_srcu, idx);
	shift_account_restore(lent);
	return err;
}

static bool srq_detach(struct shift_srq *ssrq)
{
	struct shift_dev *sdev = ssrq->sdev;

	if (!shift_object_remove(&ssrq->obj))
		return false;
	mutex_lock(&sdev->list_lock);
	list_del_init(&ssrq->obj.list);
	mutex_unlock(&sdev->list_lock);
	mutex_lock(&ssrq->lock);
	ssrq->dead = true;
	ssrq->ufile = NULL;
	shift_srq_drop_pools(ssrq, 0);
	spin_lock_bh(&ssrq->post_lock);
	ssrq->srq = NULL;
	spin_unlock_bh(&ssrq->post_lock);
	mutex_unlock(&ssrq->lock);
	cancel_delayed_work_sync(&ssrq->timer);
	atomic_dec(&sdev->objects);
	return true;
}

/* The core has seen to it that no QP of the application's uses it. */
static int wrap_destroy_srq(struct ib_srq *srq, struct ib_udata *udata)
{
	struct shift_srq *ssrq;
	struct shift_dev *sdev;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(srq->device);
	ssrq = srq_find(srq);
	if (ssrq && srq_detach(ssrq))
		shift_srq_put(ssrq);
	err = sdev->saved.destroy_srq(srq, udata);
	srcu_read_unlock(&shift_srcu, idx);
	return err;
}

/*
 * Away, the limit is ours to watch.  A ring that is resized is another one, with what
 * was in it copied: at home such an SRQ is left alone from then on.
 */
static int wrap_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr,
			   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct shift_srq *ssrq;
	struct shift_dev *sdev;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(srq->device);
	ssrq = srq_find(srq);
	if (!ssrq) {
		err = sdev->saved.modify_srq(srq, attr, mask, udata);
		goto out;
	}
	if (mask & IB_SRQ_MAX_WR)
		WRITE_ONCE(ssrq->spoiled, true);
	err = sdev->saved.modify_srq(srq, attr, mask, udata);
	if (!err && mask & IB_SRQ_LIMIT) {
		spin_lock_bh(&ssrq->post_lock);
		ssrq->limit = attr->srq_limit;
		spin_unlock_bh(&ssrq->post_lock);
	}
out:
	srcu_read_unlock(&shift_srcu, idx);
	return err;
}

static int wrap_query_srq(struct ib_srq *srq, struct ib_srq_attr *attr)
{
	struct shift_srq *ssrq;
	struct shift_dev *sdev;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(srq->device);
	ssrq = srq_find(srq);
	err = sdev->saved.query_srq(srq, attr);
	if (!err && ssrq) {
		mutex_lock(&ssrq->lock);
		if (ssrq->pool)
			attr->srq_limit = READ_ONCE(ssrq->limit);
		mutex_unlock(&ssrq->lock);
	}
	srcu_read_unlock(&shift_srcu, idx);
	return err;
}

const struct ib_device_ops shift_srq_ops = {
	.create_srq = wrap_create_srq,
	.destroy_srq = wrap_destroy_srq,
	.modify_srq = wrap_modify_srq,
	.query_srq = wrap_query_srq,
};

/**
 * shift_srq_device_gone - a device goes
 * @sdev: default device; its QPs have been told.
 * @backup_only: only its backup goes.
 *
 * Context: process context.
 */
void shift_srq_device_gone(struct shift_dev *sdev, bool backup_only)
{
	struct shift_srq *ssrq;
	struct shift_obj *obj;

	if (backup_only) {
		mutex_lock(&sdev->list_lock);
		list_for_each_entry(obj, &sdev->srqs, list) {
			ssrq = container_of(obj, struct shift_srq, obj);
			mutex_lock(&ssrq->lock);
			shift_srq_drop_pools(ssrq, SHIFT_PATH_BACKUP);
			mutex_unlock(&ssrq->lock);
		}
		mutex_unlock(&sdev->list_lock);
		return;
	}
	while (true) {
		mutex_lock(&sdev->list_lock);
		obj = list_first_entry_or_null(&sdev->srqs, struct shift_obj, list);
		mutex_unlock(&sdev->list_lock);
		if (!obj)
			return;
		ssrq = container_of(obj, struct shift_srq, obj);
		if (srq_detach(ssrq))
			shift_srq_put(ssrq);
	}
}
