// SPDX-License-Identifier: GPL-2.0
/* Shadows of CQs, and the side rings in which the kernel hands completions to a provider. */
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "compat/compat.h"
#include "core/kernel_cq.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/ring.h"
#include "core/stat.h"

void shift_cq_get(struct shift_cq *scq)
{
	kref_get(&scq->ref);
}

static void cq_release(struct kref *ref)
{
	struct shift_cq *scq = container_of(ref, struct shift_cq, ref);

	kfree(scq->priv);
	vfree(scq->side);
	shift_kernel_cq_free(scq->kernel);
	shift_dev_put(scq->sdev);
	kfree_rcu(scq, obj.rcu);
	module_put(THIS_MODULE);
}

void shift_cq_put(struct shift_cq *scq)
{
	kref_put(&scq->ref, cq_release);
}

/*
 * Raise the event that the application waits for, if it does.  Caller holds scq->lock with bottom
 * halves off, as drivers call the handler.  A completion of a proxy QP does not tell whether it
 * was solicited: receives and errors are taken to be.
 */
static void cq_fire(struct shift_cq *scq, bool solicited)
{
	lockdep_assert_held(&scq->lock);
	if (!scq->cq)
		return;
	if (scq->provider->cq->armed) {
		if (!scq->provider->cq->armed(scq, solicited))
			return;
	} else if (!scq->armed || (scq->armed == IB_CQ_SOLICITED && !solicited)) {
		return;
	}
	scq->armed = 0;
	scq->cq->comp_handler(scq->cq, scq->cq->cq_context);
}

/**
 * shift_cq_side_room - is there room in the side ring that is shared with the provider?
 * @scq: the CQ.
 *
 * Context: scq->lock, bottom halves off.
 * Return: 0; -ENOSPC: it is full, or the CQ is being resized; -ENODEV: there is none.
 */
int shift_cq_side_room(const struct shift_cq *scq)
{
	lockdep_assert_held(&scq->lock);
	if (!scq->side)
		return -ENODEV;
	if (!scq->registered)
		return -ENOSPC;
	/*
	 * The application may write anything into this index; only its distance from ours counts.
	 * Acquire: the provider has read the slot before it moved the index.
	 */
	if (scq->side_producer - smp_load_acquire(&scq->side->consumer) >= scq->side_entries)
		return -ENOSPC;
	return 0;
}

static int cq_room(const struct shift_cq *scq)
{
	return scq->cq && scq->provider ? scq->provider->cq->room(scq) : -ENODEV;
}

static void side_put_entry(struct shift_cq *scq, const struct shift_abi_wc *wc)
{
	struct shift_abi_side *side = scq->side;

	side->wc[scq->side_producer & (scq->side_entries - 1)] = *wc;
	scq->side_producer++;
	/* The entry is written before the index; the provider load-acquires the index. */
	smp_store_release(&side->producer, scq->side_producer);
	shift_word_write(&scq->pins.flag, SHIFT_CQ_FLAG_SIDE);
}

/**
 * shift_cq_side_put - put a completion into the side ring that is shared with the provider
 * @scq: the CQ, whose side ring has room.
 * @sqp: the QP that it is of.
 * @wc: the completion.
 *
 * Context: scq->lock, bottom halves off.
 */
void shift_cq_side_put(struct shift_cq *scq, struct shift_qp *sqp, const struct shift_abi_wc *wc)
{
	side_put_entry(scq, wc);
	/*
	 * The provider arms the CQ and then looks at the flag word.  Here the flag word is written
	 * first, then cq_fire() looks whether the CQ is armed.
	 */
	smp_mb();
	cq_fire(scq, wc->status || wc->opcode & IB_WC_RECV);
}

/**
 * shift_cq_tell - leave a message for the provider, to be read when it polls
 * @scq: the CQ.
 * @wc: the message: SHIFT_WC_REBASE.
 *
 * The application is not woken.  So no message is left in a CQ whose application has ever asked
 * for an event, as it may sleep for as long as nothing completes.
 *
 * Context: process or softirq context.
 * Return: 0, -ENOSPC, -ENODEV, -EOPNOTSUPP.
 */
int shift_cq_tell(struct shift_cq *scq, const struct shift_abi_wc *wc)
{
	int err;

	spin_lock_bh(&scq->lock);
	err = cq_room(scq);
	/* a CQ without a completion channel can only be polled */
	if (!err && (!scq->provider->cq->sleeps ||
		     (scq->cq->cq_context && scq->provider->cq->sleeps(scq))))
		err = -EOPNOTSUPP;
	if (!err)
		side_put_entry(scq, wc);
	spin_unlock_bh(&scq->lock);
	return err;
}

/**
 * shift_cq_push - hand one completion to the application
 * @scq: the CQ.
 * @wc: the completion.
 * @slot: the QP that it is of, and the slot of the user's ring that it frees.
 *
 * The slot is freed when there is room for the completion, and before the application can see
 * the completion, as it may post into the slot from then on.
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
	if (slot->free && slot->sqp->rings.usable)
		slot->free(slot->sqp, slot->seq + 1);
	shift_stat_inc(SHIFT_STAT_SIDE_WC);
	scq->provider->cq->put(scq, slot->sqp, wc);
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
