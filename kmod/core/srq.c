// SPDX-License-Identifier: GPL-2.0
/* Shadows of SRQs. */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/moduleparam.h>
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/vmalloc.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <rdma/ib_user_verbs.h>
#include "core/kernel_srq.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/srq.h"
#include "pure/srq_id.h"

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
	/* who polls for a user in the kernel finds its SRQ by a QP, under RCU */
	if (ssrq->kernel)
		synchronize_rcu_expedited();
	shift_srq_free_table(ssrq);
	shift_kernel_srq_free(ssrq->kernel);
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

void shift_srq_free_table(struct shift_srq *ssrq)
{
	vfree(ssrq->rings.table);
	kvfree(ssrq->rec.known);
	kvfree(ssrq->rec.scratch);
	kvfree(ssrq->rec.recv);
	kvfree(ssrq->rec.sge);
	kvfree(ssrq->rec.lent.ids);
	kvfree(ssrq->rec.lent.order);
	ssrq->rings.table = NULL;
	ssrq->rec.known = NULL;
	ssrq->rec.scratch = NULL;
	ssrq->rec.recv = NULL;
	ssrq->rec.sge = NULL;
	ssrq->rec.lent.ids = NULL;
	ssrq->rec.lent.order = NULL;
}

/* Does its device keep what was taken over, until a QP has taken it?  struct shift_srq_ops */
bool shift_srq_is_one_way(const struct shift_srq *ssrq)
{
	return ssrq->ops && !ssrq->ops->empty;
}

/**
 * shift_srq_find - look up the shadow of an SRQ
 * @srq: of the default device, or NULL.
 *
 * Context: inside a verb.
 * Return: its shadow, or NULL: not tracked.
 */
struct shift_srq *shift_srq_find(struct ib_srq *srq)
{
	struct shift_obj *obj = srq ? shift_object_find(srq, SHIFT_OBJ_SRQ) : NULL;

	return obj ? container_of(obj, struct shift_srq, obj) : NULL;
}

/* The same, for who does not sleep. */
struct shift_srq *shift_srq_find_rcu(struct ib_srq *srq)
{
	struct shift_obj *obj = shift_object_find_rcu(srq, SHIFT_OBJ_SRQ);

	return obj ? container_of(obj, struct shift_srq, obj) : NULL;
}

/*
 * Is the wr_id that of a receive of the QP's SRQ?  An error completion does not say otherwise
 * whether it is of a send or of a receive.
 */
bool shift_srq_is_recv(const struct shift_qp *sqp, u64 wr_id)
{
	const struct shift_srq *ssrq = sqp->srqm.ssrq;

	return ssrq && ssrq->rings.table &&
	       shift_srq_id_of(wr_id, ssrq->rings.key, ssrq->rings.entries);
}
