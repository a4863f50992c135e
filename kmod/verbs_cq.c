// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues of user space and their side rings: where completions of
 * replayed work reach the patched provider.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "account.h"
#include "compat/compat.h"
#include "provider.h"

void shift_cq_get(struct shift_cq *scq)
{
	kref_get(&scq->ref);
}

static void cq_release(struct kref *ref)
{
	struct shift_cq *scq = container_of(ref, struct shift_cq, ref);

	vfree(scq->side);
	shift_dev_put(scq->sdev);
	kfree_rcu(scq, obj.rcu);
	module_put(THIS_MODULE);
}

void shift_cq_put(struct shift_cq *scq)
{
	kref_put(&scq->ref, cq_release);
}

static struct shift_cq *cq_find(struct ib_cq *cq)
{
	struct shift_obj *obj = shift_object_find(cq, SHIFT_OBJ_CQ);

	return obj ? container_of(obj, struct shift_cq, obj) : NULL;
}

static int wrap_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			  SHIFT_CREATE_CQ_UDATA *udata)
{
	struct shift_account *lent = shift_account_lend();
	struct ib_uobject *uobject;
	struct shift_dev *sdev;
	struct shift_cq *scq;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(cq->device);
	err = sdev->saved.create_cq(cq, attr, udata);
	if (err || !udata || !cq->uobject || !READ_ONCE(sdev->tracking))
		goto out;

	scq = kzalloc(sizeof(*scq), GFP_KERNEL);
	if (!scq)
		goto out;
	/* struct ib_ucq_object begins with its struct ib_uobject */
	uobject = (struct ib_uobject *)cq->uobject;
	kref_init(&scq->ref);
	spin_lock_init(&scq->lock);
	scq->sdev = shift_dev_get(sdev);
	scq->cq = cq;
	scq->cqe = attr->cqe;
	scq->ufile = uobject->ufile;
	scq->handle = uobject->id;
	scq->mm = current->mm;
	__module_get(THIS_MODULE);
	if (shift_object_insert(&scq->obj, cq, SHIFT_OBJ_CQ)) {
		shift_cq_put(scq);
		goto out;
	}
	atomic_inc(&sdev->objects);
	mutex_lock(&sdev->list_lock);
	list_add_tail(&scq->obj.list, &sdev->cqs);
	mutex_unlock(&sdev->list_lock);
out:
	srcu_read_unlock(&shift_srcu, idx);
	shift_account_restore(lent);
	return err;
}

/* Forget the default half; nothing calls into it after this returns. */
static bool cq_detach(struct shift_cq *scq)
{
	struct shift_dev *sdev = scq->sdev;

	if (!shift_object_remove(&scq->obj))
		return false;
	mutex_lock(&sdev->list_lock);
	list_del_init(&scq->obj.list);
	mutex_unlock(&sdev->list_lock);
	spin_lock_bh(&scq->lock);
	scq->cq = NULL;
	scq->ufile = NULL;
	spin_unlock_bh(&scq->lock);
	atomic_dec(&sdev->objects);
	return true;
}

static int wrap_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	struct shift_dev *sdev;
	struct shift_cq *scq;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(cq->device);
	/*
	 * The handler must not be called once the driver lets go of @cq; a CQ
	 * that then cannot be destroyed stays, without our tracking.
	 */
	scq = cq_find(cq);
	if (scq && cq_detach(scq))
		shift_cq_put(scq);
	err = sdev->saved.destroy_cq(cq, udata);
	srcu_read_unlock(&shift_srcu, idx);
	return err;
}

static int wrap_resize_cq(struct ib_cq *cq, int cqe, struct ib_udata *udata)
{
	struct shift_account *lent = shift_account_lend();
	struct shift_dev *sdev;
	int idx, err;

	/* the provider takes the CQ out of registration around a resize */
	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(cq->device);
	err = sdev->saved.resize_cq(cq, cqe, udata);
	srcu_read_unlock(&shift_srcu, idx);
	shift_account_restore(lent);
	return err;
}

/*
 * Caller holds scq->lock, bottom halves off: the handler may be picky.  A kernel's
 * completion does not tell whether it was solicited: receives and errors are.
 */
static void cq_fire(struct shift_cq *scq, bool solicited)
{
	if (!scq->cq)
		return;
	if (scq->provider->armed) {
		if (!scq->provider->armed(scq, solicited))
			return;
	} else if (!scq->armed || (scq->armed == IB_CQ_SOLICITED && !solicited)) {
		return;
	}
	scq->armed = 0;
	scq->cq->comp_handler(scq->cq, scq->cq->cq_context);
}

/* Fast: no sleeping; rcu keeps @sdev and @scq. */
static int wrap_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	struct shift_dev *sdev;
	struct shift_cq *scq;
	int ret;

	rcu_read_lock();
	sdev = shift_ops_dev(cq->device);
	scq = cq_find(cq);
	if (scq && READ_ONCE(scq->registered)) {
		spin_lock_bh(&scq->lock);
		scq->armed |= flags & IB_CQ_SOLICITED_MASK;
		spin_unlock_bh(&scq->lock);
	}
	/*
	 * No event for what came before the arming, as from a driver: who polls
	 * once for each event would be an event ahead for ever.
	 */
	ret = sdev->saved.req_notify_cq(cq, flags);
	rcu_read_unlock();
	return ret;
}

/* -ENOSPC: full, or being resized. */
static int cq_room(const struct shift_cq *scq)
{
	if (!scq->cq || !scq->side)
		return -ENODEV;
	if (!scq->registered)
		return -ENOSPC;
	/* the user's: only its distance matters; acquire: the slot was read */
	if (scq->side_producer - smp_load_acquire(&scq->side->consumer) >= scq->side_entries)
		return -ENOSPC;
	return 0;
}

static void cq_put_entry(struct shift_cq *scq, const struct shift_abi_wc *wc)
{
	struct shift_abi_side *side = scq->side;

	side->wc[scq->side_producer & (scq->side_entries - 1)] = *wc;
	scq->side_producer++;
	/* the entry before the index that shows it: the provider load-acquires it */
	smp_store_release(&side->producer, scq->side_producer);
	shift_word_write(&scq->flag, SHIFT_CQ_FLAG_SIDE);
}

/**
 * shift_cq_tell - a word to the provider, for when it polls: the application is not woken
 * @scq: the CQ.
 * @wc: SHIFT_WC_REBASE.
 *
 * One whose application has ever asked for an event gets none: it may sleep.
 *
 * Context: process or softirq context.
 * Return: 0, -ENOSPC, -ENODEV, -EOPNOTSUPP.
 */
int shift_cq_tell(struct shift_cq *scq, const struct shift_abi_wc *wc)
{
	int err;

	spin_lock_bh(&scq->lock);
	err = cq_room(scq);
	/* one without a channel is polled */
	if (!err && (!scq->provider->sleeps ||
		     (scq->cq->cq_context && scq->provider->sleeps(scq))))
		err = -EOPNOTSUPP;
	if (!err)
		cq_put_entry(scq, wc);
	spin_unlock_bh(&scq->lock);
	return err;
}

/**
 * shift_cq_push - hand one completion to the application
 * @scq: the CQ.
 * @wc: the completion.
 * @slot: whose slot of a ring is free by it; NULL: there is none.
 *
 * That is free once the completion is sure to be seen, and before it may have been.
 *
 * Context: process or softirq context.
 * Return: 0, -ENOSPC (full, or being resized: try again), -ENODEV (the CQ is gone).
 */
int shift_cq_push(struct shift_cq *scq, const struct shift_abi_wc *wc,
		  const struct shift_cq_slot *slot)
{
	int err;

	spin_lock_bh(&scq->lock);
	err = cq_room(scq);
	if (err)
		goto out;
	if (slot && slot->sqp->registered)
		slot->free(slot->sqp, slot->seq + 1);
	cq_put_entry(scq, wc);
	shift_stat_inc(SHIFT_STAT_SIDE_WC);
	/* before it is looked whether the application sleeps: it arms, then looks at the flag */
	smp_mb();
	cq_fire(scq, wc->status || wc->opcode & IB_WC_RECV);
out:
	spin_unlock_bh(&scq->lock);
	return err;
}

bool shift_cq_registered(struct shift_cq *scq)
{
	bool registered;

	spin_lock_bh(&scq->lock);
	registered = scq->registered;
	spin_unlock_bh(&scq->lock);
	return registered;
}

const struct ib_device_ops shift_cq_ops = {
	.create_cq = wrap_create_cq,
	.destroy_cq = wrap_destroy_cq,
	.resize_cq = wrap_resize_cq,
	.req_notify_cq = wrap_req_notify_cq,
};

void shift_cq_device_gone(struct shift_dev *sdev)
{
	struct shift_obj *obj;
	struct shift_cq *scq;

	while (true) {
		mutex_lock(&sdev->list_lock);
		obj = list_first_entry_or_null(&sdev->cqs, struct shift_obj, list);
		mutex_unlock(&sdev->list_lock);
		if (!obj)
			return;
		scq = container_of(obj, struct shift_cq, obj);
		if (cq_detach(scq))
			shift_cq_put(scq);
	}
}
