/* SPDX-License-Identifier: GPL-2.0 */
/* The shadow of a QP, and what is asked of it.  Its parts are in qp_parts.h. */
#ifndef SHIFT_CORE_QP_H
#define SHIFT_CORE_QP_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/memcontrol.h>
#include <linux/mutex.h>
#include "core/kick.h"
#include "core/object.h"
#include "core/pair.h"
#include "core/qp_parts.h"
#include "pure/fsm.h"
#include "pure/psn.h"

struct shift_kernel_qp;

/**
 * struct shift_qp - the shadow of an RC QP of an application, or of a user in the kernel
 * @qp: its own QP; NULL once destroyed; under @lock, and read by @report's work item, for which
 *	who destroys it waits.
 * @qpn: its number.
 * @cookie: the number by which peers name it; core/qp.c.
 * @lock: serializes the work item with modify, query and destroy; sleeps.
 * @ledger_lock: protects @rec, and the consumer indices of the user's rings; taken in completion
 *	context, inside @lock.
 * @inbox_lock: protects @pend.
 * @charge: for its proxy QPs; from its registration until it is destroyed.
 * @kernel: what its user in the kernel has posted; NULL: it is an application's.
 *
 * Each part says who owns it, and under which lock it is.
 */
struct shift_qp {
	struct shift_obj obj;
	struct kref ref;
	struct shift_dev *sdev;
	struct shift_pd *spd;
	struct shift_cq *scq, *rcq;
	struct ib_qp *qp;
	u32 qpn;
	u64 cookie;

	struct mutex lock;
	struct shift_qp_app app;
	struct shift_qp_failover fo;
	struct shift_qp_peer peer;
	struct shift_qp_move move;
	struct shift_qp_handback handback;
	struct shift_qp_silence silence;
	struct shift_qp_report report;
	struct shift_qp_rings rings;
	struct shift_qp_proxies proxies;
	struct shift_charge charge;
	struct shift_qp_srq srqm;
	struct shift_kernel_qp *kernel;

	spinlock_t ledger_lock;
	struct shift_qp_record rec;

	spinlock_t inbox_lock;
	struct shift_qp_pending pend;
};

/* The shadow of a QP, or NULL: it is not tracked. */
static inline struct shift_qp *shift_qp_find(const struct ib_qp *qp)
{
	struct shift_obj *obj = shift_object_find(qp, SHIFT_OBJ_QP);

	return obj ? container_of(obj, struct shift_qp, obj) : NULL;
}

/* The same, under rcu_read_lock(). */
static inline struct shift_qp *shift_qp_find_rcu(const struct ib_qp *qp)
{
	struct shift_obj *obj = shift_object_find_rcu(qp, SHIFT_OBJ_QP);

	return obj ? container_of(obj, struct shift_qp, obj) : NULL;
}

static inline bool shift_state_is_protected(enum shift_state state)
{
	return state != SHIFT_ST_OFF && state != SHIFT_ST_FAIL && state != SHIFT_ST_APP;
}

/* Is it connected to itself?  Constant from RTR to RESET, so any context while it is protected. */
static inline bool shift_qp_is_loop(const struct shift_qp *sqp)
{
	return sqp->app.dest_qpn == sqp->qpn &&
	       !memcmp(&sqp->app.dgid, &sqp->app.sgid, sizeof(sqp->app.dgid));
}

/* Is there a peer that it moves with?  sqp->lock */
static inline bool shift_qp_is_protected(const struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	return shift_state_is_protected(sqp->fo.state);
}

/* Has it left its own QP, or was that stopped?  Without sqp->lock the answer may be old. */
static inline bool shift_qp_is_moved(const struct shift_qp *sqp)
{
	return sqp->fo.path || test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
}

/* Are the application's verbs not for its own QP, which was left or stopped?  sqp->lock */
static inline bool shift_qp_is_away(const struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	return shift_qp_is_moved(sqp) || sqp->fo.state == SHIFT_ST_FAIL;
}

/* Has its provider registered both of its CQs?  Any context. */
static inline bool shift_qp_cqs_registered(const struct shift_qp *sqp)
{
	return READ_ONCE(sqp->scq->registered) && READ_ONCE(sqp->rcq->registered);
}

/* Does it have memory windows that the peer does not record?  Then it cannot leave its path. */
static inline bool shift_qp_mws_stay(const struct shift_qp *sqp)
{
	/* without spd its PD is older than the pair, and it is never protected */
	return sqp->spd && READ_ONCE(sqp->spd->windows) && !READ_ONCE(sqp->peer.windows);
}

/* Write the flag word that the provider in user space looks at, if it has one; sqp->lock. */
static inline void shift_gate_write(const struct shift_qp *sqp, u32 flags)
{
	lockdep_assert_held(&sqp->lock);
	if (sqp->rings.pins.gate.page)
		shift_word_write(&sqp->rings.pins.gate, flags);
}

/*
 * Why can the QP not leave its path?  NONE: it can.  What is missing on the backup does not matter
 * to a QP that is there already.  Any context.
 */
static inline enum shift_reason shift_qp_reason(const struct shift_qp *sqp, u8 path)
{
	enum shift_reason reason = shift_pd_reason(sqp->spd, path);

	if (!reason && path != SHIFT_PATH_BACKUP && shift_charge_is_lacking(&sqp->charge))
		reason = SHIFT_REASON_CGROUP;
	if (!reason && READ_ONCE(sqp->app.foreign))
		reason = SHIFT_REASON_NAMESPACE;
	return reason;
}

/* The pair under which the QP was created; NULL: none, or it cannot be protected. */
static inline struct shift_pair *shift_qp_pair(const struct shift_qp *sqp)
{
	return sqp->spd ? sqp->spd->pair : NULL;
}

static inline bool shift_qp_is_drained(const struct shift_qp *sqp)
{
	const struct shift_pair *pair = shift_qp_pair(sqp);

	return pair && READ_ONCE(pair->drained);
}

/* enum shift_policy of its pair: what to do if a NIC cannot be asked how far it got. */
static inline u32 shift_qp_policy(const struct shift_qp *sqp)
{
	const struct shift_pair *pair = shift_qp_pair(sqp);

	return pair ? READ_ONCE(pair->policy) : SHIFT_POLICY_EXACTLY_ONCE;
}

/*
 * Does a handback keep the kernel from taking posted work out of the application's rings?
 * ledger_lock
 */
static inline bool shift_handback_keeps_off(const struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->ledger_lock);
	return sqp->handback.hold || sqp->handback.rebase == SHIFT_REBASE_BUSY;
}

/* In sqp->peer.rkeys: a key that the peer does not have, and one that it was asked for. */
#define SHIFT_RKEY_NONE		xa_mk_value(1ul << 32)

/* @ask: the number of the question; an answer to another one is of no use. */
static inline void *shift_rkey_asked(u32 ask)
{
	return xa_mk_value(1ul << 33 | ask);
}

static inline bool shift_rkey_is_asked(const void *entry)
{
	return xa_to_value(entry) >> 33;
}

/* For so long after it has read a message a provider is taken to poll; ms, scaled. */
#define SHIFT_AWAKE_MS		100

/* qp.c */
void shift_qp_get(struct shift_qp *sqp);
void shift_qp_put(struct shift_qp *sqp);
struct shift_qp *shift_qp_find_cookie(u64 cookie);		/* kref taken */
struct shift_qp *shift_qp_find_qpn(struct shift_dev *sdev, u32 qpn); /* kref taken */
struct shift_qp *shift_qp_find_named(const struct shift_msg *m);	/* by PAIR; kref taken */
bool shift_qp_is_named(const struct shift_qp *sqp, const struct shift_msg *m);
int shift_qp_new_cookie(struct shift_qp *sqp);
void shift_qp_renew_cookie(struct shift_qp *sqp);
bool shift_qp_keeps_error(struct shift_qp *sqp);	/* sqp->lock */
struct shift_qp *shift_qp_next(unsigned long *index);		/* kref taken */
void shift_qp_uninit(void);
unsigned int shift_qp_lock(struct shift_qp *sqp);
void shift_qp_unlock(struct shift_qp *sqp, unsigned int noio);
/* calls @fn for every tracked QP (of @spd, if given) with its lock held; stops at non-zero */
int shift_qp_walk(const struct shift_pd *spd, int (*fn)(struct shift_qp *sqp, void *arg),
		  void *arg);
void shift_qp_kick_pd(const struct shift_pd *spd, unsigned int bit);	/* takes no QP's mutex */
/* 0: *key; -EINPROGRESS: not known yet; -ENOENT: the peer has none */
int shift_rkey_get(const struct shift_qp *sqp, u32 rkey, u32 *key);	/* any context */
void shift_rkey_forget(struct shift_qp *sqp, u32 rkey);	/* any; one of the peer's */
void shift_rkey_forget_memory(struct shift_qp *sqp, u32 rkey);	/* any */
void shift_rkey_told(struct shift_qp *sqp, const struct shift_msg *m);	/* no lock */
void shift_rkey_forget_all(struct shift_qp *sqp);		/* any */
bool shift_handback_take(struct shift_qp *sqp);			/* no lock */
void shift_handback_drop(struct shift_qp *sqp);
bool shift_handback_awaited(struct shift_qp *sqp);			/* no lock */

#endif /* SHIFT_CORE_QP_H */
