// SPDX-License-Identifier: GPL-2.0
/* The life of a QP's shadow, and how it is found. */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "mw.h"
#include "srq.h"

/* QPs by the low half of their cookie; the high half is random. */
static DEFINE_XARRAY_ALLOC1(shift_cookies);

void shift_qp_get(struct shift_qp *sqp)
{
	kref_get(&sqp->ref);
}

static void qp_free(struct rcu_head *rcu)
{
	struct shift_qp *sqp = container_of(rcu, struct shift_qp, obj.rcu);

	kvfree(sqp->ledger.entry);
	kvfree(sqp->ledger.raw);
	kvfree(sqp->mlx5);
	shift_recv_free(&sqp->recvs);
	shift_notes_free(sqp->notes);
	kfree(sqp);
}

/* A verb that waited for its lock as its device was removed has looked it up by RCU. */
static void qp_free_later(struct rcu_head *rcu)
{
	call_srcu(&shift_srcu, rcu, qp_free);
}

static void qp_release(struct kref *ref)
{
	struct shift_qp *sqp = container_of(ref, struct shift_qp, ref);

	if (sqp->cookie)
		xa_erase(&shift_cookies, (u32)sqp->cookie);
	xa_destroy(&sqp->rkeys);
	if (sqp->scq)
		shift_cq_put(sqp->scq);
	if (sqp->rcq)
		shift_cq_put(sqp->rcq);
	if (sqp->ssrq)
		shift_srq_put(sqp->ssrq);
	if (sqp->spd)
		shift_pd_put(sqp->spd);
	shift_dev_put(sqp->sdev);
	call_rcu(&sqp->obj.rcu, qp_free_later);
	module_put(THIS_MODULE);
}

void shift_qp_put(struct shift_qp *sqp)
{
	kref_put(&sqp->ref, qp_release);
}

/**
 * shift_qp_find_cookie - the QP incarnation that a peer names
 * @cookie: from a message.
 *
 * Return: the QP with a reference, or NULL.
 */
struct shift_qp *shift_qp_find_cookie(u64 cookie)
{
	struct shift_qp *sqp;

	xa_lock(&shift_cookies);
	sqp = xa_load(&shift_cookies, (u32)cookie);
	if (sqp && (sqp->cookie != cookie || !kref_get_unless_zero(&sqp->ref)))
		sqp = NULL;
	xa_unlock(&shift_cookies);
	return sqp;
}

struct shift_qp *shift_qp_find_qpn(struct shift_dev *sdev, u32 qpn)
{
	struct shift_qp *sqp;

	xa_lock(&sdev->qpn);
	sqp = xa_load(&sdev->qpn, qpn);
	if (sqp && !kref_get_unless_zero(&sqp->ref))
		sqp = NULL;
	xa_unlock(&sdev->qpn);
	return sqp;
}

/**
 * shift_qp_next - tracked QPs, one by one
 * @index: where the last one was; 0: begin.
 *
 * Return: the next one with a reference, or NULL.
 */
struct shift_qp *shift_qp_next(unsigned long *index)
{
	struct shift_qp *sqp;

	xa_lock(&shift_cookies);
	do {
		sqp = xa_find_after(&shift_cookies, index, ULONG_MAX, XA_PRESENT);
	} while (sqp && !kref_get_unless_zero(&sqp->ref));
	xa_unlock(&shift_cookies);
	return sqp;
}

int shift_qp_walk(const struct shift_pd *spd, int (*fn)(struct shift_qp *sqp, void *arg),
		  void *arg)
{
	unsigned long index = 0;
	struct shift_qp *sqp;
	int err = 0;

	for (; !err && (sqp = shift_qp_next(&index)); shift_qp_put(sqp)) {
		/* others may be in a fence, for as long as their driver takes */
		if (spd && sqp->spd != spd)
			continue;
		mutex_lock(&sqp->lock);
		if (sqp->qp)
			err = fn(sqp, arg);
		mutex_unlock(&sqp->lock);
	}
	return err;
}

/* A new incarnation: what peers call it by. */
int shift_qp_new_cookie(struct shift_qp *sqp)
{
	u32 id;
	int err;

	err = xa_alloc(&shift_cookies, &id, sqp, xa_limit_32b, GFP_KERNEL);
	if (err)
		return err;
	WRITE_ONCE(sqp->cookie, ((u64)get_random_u32() << 32) | id);
	return 0;
}

/**
 * shift_qp_renew_cookie - the QP was reset: messages to what it was are for nobody
 * @sqp: the QP, locked, without a peer.
 */
void shift_qp_renew_cookie(struct shift_qp *sqp)
{
	u64 life = (u64)get_random_u32() << 32;

	lockdep_assert_held(&sqp->lock);
	xa_lock(&shift_cookies);
	if (sqp->cookie >> 32 == life >> 32)
		life += 1ull << 32;
	WRITE_ONCE(sqp->cookie, life | (u32)sqp->cookie);
	xa_unlock(&shift_cookies);
}

int shift_qp_init(void)
{
	return 0;
}

void shift_qp_uninit(void)
{
	xa_destroy(&shift_cookies);
}
