// SPDX-License-Identifier: GPL-2.0
/* The lifetime of a QP's shadow, and how it is found. */
#include <linux/module.h>
#include <linux/memcontrol.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include "core/kernel_mr.h"
#include "core/kernel_qp.h"
#include "core/kick.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/srq.h"
#include "core/provider.h"
#include "pure/msg.h"

/* QPs by the low half of their cookie; the high half is random. */
static DEFINE_XARRAY_FLAGS(shift_cookies, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);

void shift_qp_get(struct shift_qp *sqp)
{
	kref_get(&sqp->ref);
}

/*
 * Verbs that may sleep have looked the QP up under RCU, too, but hold it for longer: the caller of
 * qp_detach() waits for them.
 */
static void qp_free(struct rcu_head *rcu)
{
	struct shift_qp *sqp = container_of(rcu, struct shift_qp, obj.rcu);

	kvfree(sqp->rec.ledger.entry);
	kvfree(sqp->rec.ledger.raw);
	if (sqp->rings.provider && sqp->rings.provider->release)
		sqp->rings.provider->release(sqp->rings.priv);
	shift_recv_free(&sqp->rec.recvs);
	shift_kernel_qp_free(sqp->kernel);
	kfree(sqp);
}

static void qp_release(struct kref *ref)
{
	struct shift_qp *sqp = container_of(ref, struct shift_qp, ref);

	if (sqp->cookie)
		xa_erase(&shift_cookies, (u32)sqp->cookie);
	xa_destroy(&sqp->peer.rkeys);
	if (sqp->scq)
		shift_cq_put(sqp->scq);
	if (sqp->rcq)
		shift_cq_put(sqp->rcq);
	if (sqp->srqm.ssrq)
		shift_srq_put(sqp->srqm.ssrq);
	if (sqp->spd)
		shift_pd_put(sqp->spd);
	shift_dev_put(sqp->sdev);
	mem_cgroup_put(sqp->app.memcg);
	call_rcu(&sqp->obj.rcu, qp_free);
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
 * shift_qp_is_named - does a PAIR name this QP and the peer that it is connected to?
 * @sqp: the QP.
 * @m: the PAIR.
 *
 * Context: any.  Without sqp->lock the answer may change at once.
 */
bool shift_qp_is_named(const struct shift_qp *sqp, const struct shift_msg *m)
{
	return sqp->qpn == m->pair.dst_qpn &&
	       READ_ONCE(sqp->app.dest_qpn) == m->pair.src_qpn &&
	       !memcmp(&sqp->app.sgid, m->pair.dst_gid, sizeof(sqp->app.sgid)) &&
	       !memcmp(&sqp->app.dgid, m->pair.src_gid, sizeof(sqp->app.dgid));
}

/**
 * shift_qp_find_named - the QP that a PAIR names
 * @m: the PAIR.
 *
 * Takes no lock.  An application that connects the QP at this moment may hide it: the peer
 * repeats its PAIR.
 *
 * Context: any.
 * Return: the QP with a reference, or NULL.
 */
struct shift_qp *shift_qp_find_named(const struct shift_msg *m)
{
	struct shift_qp *sqp, *found = NULL;
	struct shift_dev *sdev;

	rcu_read_lock();
	list_for_each_entry_rcu(sdev, &shift_devices, list) {
		sqp = xa_load(&sdev->qpn, m->pair.dst_qpn);
		if (sqp && shift_qp_is_named(sqp, m) && kref_get_unless_zero(&sqp->ref)) {
			found = sqp;
			break;
		}
	}
	rcu_read_unlock();
	return found;
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

/**
 * shift_qp_lock - take sqp->lock, but in its work item
 * @sqp: a QP.
 *
 * Reclaim may wait for a round of a kernel user's QP, which waits for the lock.  So its holder must
 * not wait for reclaim, as drivers do that allocate in a verb, also when they destroy something.
 *
 * Context: process context.
 * Return: for shift_qp_unlock().
 */
unsigned int shift_qp_lock(struct shift_qp *sqp)
{
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&sqp->lock);
	/* an application's may wait */
	if (!sqp->kernel)
		memalloc_noio_restore(noio);
	return noio;
}

/**
 * shift_qp_unlock - the end of that
 * @sqp: the QP.
 * @noio: what shift_qp_lock() has returned, in the same thread.
 */
void shift_qp_unlock(struct shift_qp *sqp, unsigned int noio)
{
	bool kernel = sqp->kernel;

	mutex_unlock(&sqp->lock);
	if (kernel)
		memalloc_noio_restore(noio);
}

int shift_qp_walk(const struct shift_pd *spd, int (*fn)(struct shift_qp *sqp, void *arg),
		  void *arg)
{
	unsigned long index = 0;
	struct shift_qp *sqp;
	unsigned int noio;
	int err = 0;

	for (; !err && (sqp = shift_qp_next(&index)); shift_qp_put(sqp)) {
		/* do not wait for the lock of a QP of another PD, which may be in a fence */
		if (spd && sqp->spd != spd)
			continue;
		noio = shift_qp_lock(sqp);
		if (sqp->qp)
			err = fn(sqp, arg);
		shift_qp_unlock(sqp, noio);
	}
	return err;
}

/* Kick all QPs of a PD. */
void shift_qp_kick_pd(const struct shift_pd *spd, unsigned int bit)
{
	unsigned long index = 0;
	struct shift_qp *sqp;

	for (; (sqp = shift_qp_next(&index)); shift_qp_put(sqp))
		if (sqp->spd == spd)
			shift_qp_kick(sqp, bit);
}

/* Give the QP a new cookie: the number by which peers name this incarnation of it. */
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
 * shift_qp_renew_cookie - the QP was reset: messages to its old cookie are to find no QP
 * @sqp: the QP, locked, without a peer.
 */
void shift_qp_renew_cookie(struct shift_qp *sqp)
{
	u64 incarnation = (u64)get_random_u32() << 32;

	lockdep_assert_held(&sqp->lock);
	xa_lock(&shift_cookies);
	if (sqp->cookie >> 32 == incarnation >> 32)
		incarnation += 1ull << 32;
	WRITE_ONCE(sqp->cookie, incarnation | (u32)sqp->cookie);
	xa_unlock(&shift_cookies);
	/* epochs are those of this cookie */
	sqp->fo.epoch = 0;
	sqp->fo.highest = 0;
}

void shift_qp_uninit(void)
{
	xa_destroy(&shift_cookies);
}

/*
 * A peer in the kernel registers an MR with a new key each time, of which only the low byte is new.
 * If it is the same in both keys of an answer to a user in the kernel, which asks at each key that
 * it does not know, the answer is good for all keys with that index.  If the MR has one key only,
 * the peer's device refuses the others, as it would without the module.
 */
static unsigned long rkey_index(u32 rkey)
{
	return 1ul << 32 | rkey >> 8;
}

int shift_rkey_get(const struct shift_qp *sqp, u32 rkey, u32 *key)
{
	struct xarray *rkeys = (struct xarray *)&sqp->peer.rkeys;
	void *entry = sqp->kernel ? xa_load(rkeys, rkey_index(rkey)) : NULL;

	if (entry) {
		*key = shift_kernel_key((u32)xa_to_value(entry), rkey);
		return 0;
	}
	entry = xa_load(rkeys, rkey);
	if (entry == SHIFT_RKEY_NONE)
		return -ENOENT;
	if (!entry || shift_rkey_is_asked(entry))
		return -EINPROGRESS;
	*key = (u32)xa_to_value(entry);
	return 0;
}

/* Forget one remote key, as this end has invalidated the peer's window. */
void shift_rkey_forget(struct shift_qp *sqp, u32 rkey)
{
	xa_erase_bh(&sqp->peer.rkeys, rkey);
}

/* The peer's memory is gone: forget all keys with the index of this one. */
void shift_rkey_forget_memory(struct shift_qp *sqp, u32 rkey)
{
	unsigned long key;
	void *entry;

	xa_erase_bh(&sqp->peer.rkeys, rkey);
	if (!sqp->kernel)
		return;
	xa_erase_bh(&sqp->peer.rkeys, rkey_index(rkey));
	/* an answer that is still to come must not bring it back: no question is open any more */
	xa_for_each_range(&sqp->peer.rkeys, key, entry, rkey & ~0xffu, rkey | 0xffu)
		xa_erase_bh(&sqp->peer.rkeys, key);
}

/* Forget all remote keys: they are asked for again when they are needed. */
void shift_rkey_forget_all(struct shift_qp *sqp)
{
	xa_destroy(&sqp->peer.rkeys);
}

/* The peer's answer to a RESOLVE; no lock.  Ignored if it does not answer the last question. */
void shift_rkey_told(struct shift_qp *sqp, const struct shift_msg *m)
{
	void *key = m->key.status ? SHIFT_RKEY_NONE : xa_mk_value(m->key.new_rkey);
	void *was = NULL;

	if (!sqp->peer.windows || m->epoch == READ_ONCE(sqp->fo.epoch))
		was = xa_cmpxchg_bh(&sqp->peer.rkeys, m->key.rkey, shift_rkey_asked(m->key.ask),
				    key, GFP_NOIO);
	/* if there is no memory for it the next key of that index is asked for */
	if (sqp->kernel && was == shift_rkey_asked(m->key.ask) && !m->key.status &&
	    (u8)m->key.rkey == (u8)m->key.new_rkey &&
	    !xa_err(xa_store_bh(&sqp->peer.rkeys, rkey_index(m->key.rkey), key, GFP_NOIO)))
		xa_erase_bh(&sqp->peer.rkeys, m->key.rkey);
	shift_qp_kick(sqp, SHIFT_QPB_KICK);
}

/*
 * QPs that are being handed back: one of a process at a time.  A thread that waits in KICK for one
 * QP does not poll for another, and neither may the thread of that one's peer: both would wait.
 */
static DEFINE_SPINLOCK(handbacks_lock);
static LIST_HEAD(handbacks);

/* Begin a handback; false if another QP of the process is being handed back.  Any context. */
bool shift_handback_take(struct shift_qp *sqp)
{
	struct shift_qp *other;
	bool free = true;

	spin_lock_bh(&handbacks_lock);
	list_for_each_entry(other, &handbacks, handback.node)
		free = free && (other == sqp || other->obj.mm != sqp->obj.mm);
	if (free && list_empty(&sqp->handback.node))
		list_add_tail(&sqp->handback.node, &handbacks);
	spin_unlock_bh(&handbacks_lock);
	return free;
}

void shift_handback_drop(struct shift_qp *sqp)
{
	spin_lock_bh(&handbacks_lock);
	list_del_init(&sqp->handback.node);
	spin_unlock_bh(&handbacks_lock);
}

/**
 * shift_handback_awaited - may a thread of this QP's process wait in KICK, and so not poll?
 * @sqp: the QP.
 *
 * Context: any that may take a spinlock.
 */
bool shift_handback_awaited(struct shift_qp *sqp)
{
	struct shift_qp *other;
	bool any = false;

	spin_lock_bh(&handbacks_lock);
	list_for_each_entry(other, &handbacks, handback.node)
		any = any || other->obj.mm == sqp->obj.mm;
	spin_unlock_bh(&handbacks_lock);
	return any;
}

/**
 * shift_qp_keeps_error - is an error of the QP kept back?
 * @sqp: the QP, locked.
 *
 * If not, none is kept back from now on: the CQE filter looks under the same spinlock.
 *
 * Context: process context.
 * Return: true if one is kept back: the QP cannot go on as if there were none.
 */
bool shift_qp_keeps_error(struct shift_qp *sqp)
{
	bool errored;

	lockdep_assert_held(&sqp->lock);
	spin_lock_bh(&sqp->inbox_lock);
	errored = test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags);
	if (!errored)
		set_bit(SHIFT_QPB_APP, &sqp->pend.flags);
	spin_unlock_bh(&sqp->inbox_lock);
	return errored;
}
