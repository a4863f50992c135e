// SPDX-License-Identifier: GPL-2.0
/* A QP becomes a member of its shared receive queue, or draws from it without being one. */
#include <linux/slab.h>
#include "core/kernel_cq.h"
#include "core/kernel_srq.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/srq.h"
#include "srq/srq.h"

/* For link_add(); kfree() frees it.  Not under ssrq->lock, which a member that moves waits for. */
static struct shift_srq_cq *link_new(const struct shift_qp *sqp, const struct shift_cq *held)
{
	if (!sqp->rcq || (sqp->kernel && !held))
		return NULL;
	return kzalloc(sizeof(struct shift_srq_cq), sqp->kernel ? GFP_KERNEL : GFP_KERNEL_ACCOUNT);
}

/* The SRQ keeps a CQ that completions of its receives come to.  Takes over *@held, if given. */
static void link_add(struct shift_qp *sqp, struct shift_srq_cq *link, struct shift_cq **held)
{
	link->scq = sqp->rcq;
	if (sqp->kernel)
		*held = NULL;
	else
		shift_cq_get(link->scq);
	list_add_tail(&link->node, &sqp->srqm.ssrq->cqs);
}

/* Forget CQs that their user in the kernel has destroyed: there may be any number of them. */
static void drop_ended(struct shift_srq *ssrq)
{
	struct shift_srq_cq *link, *next;

	list_for_each_entry_safe(link, next, &ssrq->cqs, node) {
		if (!link->scq->kernel || !READ_ONCE(link->scq->kernel->ended))
			continue;
		list_del(&link->node);
		shift_cq_put(link->scq);
		kfree(link);
	}
}

/**
 * shift_srq_join - a QP was created: it becomes a member of its SRQ
 * @sqp: the QP, new.
 * @srq: its SRQ or NULL.
 * @held: of a user in the kernel: its receive CQ, as the SRQ keeps it, so that each completion of a
 *	receive is seen; NULL afterwards: the SRQ does.
 *
 * Return: false if it has an SRQ with which it cannot be protected.
 */
bool shift_srq_join(struct shift_qp *sqp, struct ib_srq *srq, struct shift_cq **held)
{
	struct shift_srq *ssrq = shift_srq_find(srq);
	struct shift_srq_cq *link, *fresh;
	bool found = false;

	INIT_LIST_HEAD(&sqp->srqm.node);
	INIT_LIST_HEAD(&sqp->srqm.done);
	if (!srq)
		return true;
	if (!ssrq)
		return false;
	shift_srq_get(ssrq);
	sqp->srqm.ssrq = ssrq;
	fresh = link_new(sqp, *held);
	mutex_lock(&ssrq->lock);
	spin_lock_bh(&ssrq->look);
	list_add_tail(&sqp->srqm.node, &ssrq->members);
	spin_unlock_bh(&ssrq->look);
	drop_ended(ssrq);
	list_for_each_entry(link, &ssrq->cqs, node)
		found |= link->scq == sqp->rcq;
	if (!found && fresh) {
		link_add(sqp, fresh, held);
		fresh = NULL;
	} else if (!found) {
		ssrq->spoiled = true;
	}
	mutex_unlock(&ssrq->lock);
	kfree(fresh);
	return sqp->spd && sqp->spd == ssrq->spd;
}

/**
 * shift_srq_spoil - a QP that is not tracked draws from the SRQ: it cannot be moved
 * @srq: the SRQ, of an application or of a user in the kernel.
 *
 * Return: false: it may not draw, as what the ring has is elsewhere, too.
 */
bool shift_srq_spoil(struct ib_srq *srq)
{
	struct shift_srq *ssrq = shift_srq_find(srq);
	bool may = true;

	if (!ssrq)
		return true;
	if (!ssrq->kernel) {
		WRITE_ONCE(ssrq->spoiled, true);
		return true;
	}
	mutex_lock(&ssrq->lock);
	/* while it is away the kernel would lend no more to a ring that it does not know */
	if (ssrq->kernel->stale || ssrq->rec.away)
		may = false;
	else
		WRITE_ONCE(ssrq->spoiled, true);
	mutex_unlock(&ssrq->lock);
	return may;
}
