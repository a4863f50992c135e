// SPDX-License-Identifier: GPL-2.0
/*
 * Remote keys: on a proxy QP the peer's memory has other keys than those that the application
 * knows, and the peer is asked for them when they are needed.  Keys of memory windows differ from
 * path to path: Documentation/internals/windows.md.
 */
#include "core/account.h"
#include "core/kick.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/trace.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "link/link.h"
#include "mw/mw.h"
#include "provider/provider.h"
#include "pure/fsm.h"
#include "pure/msg.h"

/* Send the peer a message about keys.  Who is its own peer handles it at once.  sqp->lock */
static void tell(struct shift_qp *sqp, u8 path, struct shift_msg *m)
{
	lockdep_assert_held(&sqp->lock);
	if (!shift_qp_is_loop(sqp)) {
		shift_path_send(sqp, path, m);
		return;
	}
	m->src_cookie = sqp->cookie;
	m->dst_cookie = sqp->cookie;
	trace_shift_msg_tx(sqp->sdev->name, sqp->qpn, m->type, m->epoch);
	shift_rkey_message(sqp, NULL, m);
}

/* Ask the peer for a key, and again after a while, as the answer may be lost; sqp->lock. */
void shift_rkey_ask(struct shift_qp *sqp, u32 rkey)
{
	struct shift_msg m = {
		.type = SHIFT_MSG_RESOLVE,
		.epoch = sqp->peer.windows ? sqp->fo.epoch : 0,
		.key = { .rkey = rkey, .new_rkey = shift_provider_invalidations(sqp, rkey) },
	};
	void *entry = xa_load(&sqp->peer.rkeys, rkey);

	lockdep_assert_held(&sqp->lock);
	if (entry && (!shift_rkey_is_asked(entry) ||
		      !time_after(jiffies, sqp->peer.rkey_asked +
				  msecs_to_jiffies(SHIFT_RESEND_MS))))
		return;
	if (!entry) {
		entry = shift_rkey_asked(++sqp->peer.rkey_asks);
		/* nothing would take the answer; who needs the key asks again */
		if (xa_err(xa_store_bh(&sqp->peer.rkeys, rkey, entry, GFP_NOIO | SHIFT_GFP_PAID)))
			return;
	}
	m.key.ask = (u32)xa_to_value(entry);
	sqp->peer.rkey_asked = jiffies;
	tell(sqp, sqp->fo.to, &m);
}

/* To whom a message about keys came from; @link: the link that it came in on, or NULL: itself. */
static void reply(struct shift_qp *sqp, struct shift_link *link, const struct shift_msg *r)
{
	trace_shift_msg_tx(sqp->sdev->name, sqp->qpn, r->type, r->epoch);
	if (link)
		shift_session_send(link, r);
	else
		shift_rkey_message(sqp, NULL, r);
}

/* Before a key is looked up to be told: who takes the memory away tells the peer from now on. */
static void told_keys(struct shift_qp *sqp)
{
	WRITE_ONCE(sqp->peer.resolved, true);
	WRITE_ONCE(sqp->spd->resolved, true);
}

/* Answer a RESOLVE: the backup's key of one of our MRs.  No lock. */
static void answer_key(struct shift_qp *sqp, struct shift_link *link,
		       const struct shift_msg *m)
{
	struct shift_msg r = {
		.type = SHIFT_MSG_RESOLVED,
		.src_cookie = READ_ONCE(sqp->cookie),
		.dst_cookie = m->src_cookie,
		.key = { .rkey = m->key.rkey, .status = ENOENT, .ask = m->key.ask },
	};

	if (!shift_qp_answers(sqp))
		return;
	told_keys(sqp);
	/* rkeys are shown to peers of a QP in the same PD only */
	if (shift_mr_backup_rkey(sqp->spd, m->key.rkey, &r.key.new_rkey))
		r.key.status = 0;
	if (r.key.status)
		shift_qp_note_missed(sqp);
	reply(sqp, link, &r);
}

/* The key on @path of one of our MRs, if it is in the QP's PD and so may be known to the peer. */
static bool key_of_mr(struct shift_qp *sqp, u32 rkey, u8 path, u32 *key)
{
	struct shift_mr *smr = shift_mr_find(sqp->sdev, rkey);
	bool known = false;

	if (!smr)
		return false;
	if (smr->rkey == rkey && smr->spd == sqp->spd &&
	    (path == SHIFT_PATH_HOME || READ_ONCE(smr->mirror))) {
		*key = path == SHIFT_PATH_HOME ? rkey : smr->mirror_rkey;
		known = true;
	}
	shift_mr_put(smr);
	return known;
}

/**
 * shift_rkey_resolve - answer a RESOLVE with the key on the path that both ends are on
 * @sqp: the QP, locked, which tracks memory windows.
 * @m: RESOLVE; it says how often the peer has invalidated that window on path 0.
 *
 * A key that is not known yet is not answered: the peer asks again.
 *
 * Context: process context.
 */
void shift_rkey_resolve(struct shift_qp *sqp, const struct shift_msg *m)
{
	struct shift_msg r = {
		.type = SHIFT_MSG_RESOLVED, .epoch = m->epoch,
		.key = { .rkey = m->key.rkey, .ask = m->key.ask },
	};
	u8 path = sqp->fo.state == SHIFT_ST_RUN ? sqp->fo.path : sqp->fo.to;
	int err = 0;

	lockdep_assert_held(&sqp->lock);
	if (!sqp->peer.windows || m->epoch != sqp->fo.epoch || !path ||
	    (sqp->fo.state != SHIFT_ST_RUN && sqp->fo.state != SHIFT_ST_SYNC) ||
	    !shift_qp_answers(sqp))
		return;
	told_keys(sqp);
	if (!key_of_mr(sqp, m->key.rkey, path, &r.key.new_rkey)) {
		shift_mw_told(sqp, m->key.rkey, m->key.new_rkey);
		err = shift_region_get(sqp, m->key.rkey, &r.key.new_rkey);
	}
	if (err && err != -ENOENT)
		return;
	if (err)
		shift_qp_note_missed(sqp);
	r.key.status = -err;
	tell(sqp, path, &r);
}

/* Tell the peer that one of our windows was invalidated; sqp->lock. */
void shift_rkey_gone(struct shift_qp *sqp, u32 rkey)
{
	struct shift_msg m = { .type = SHIFT_MSG_RKEY_GONE, .key.rkey = rkey };

	lockdep_assert_held(&sqp->lock);
	tell(sqp, sqp->fo.path, &m);
}

/* The peer's memory or window has gone: forget its key, and say so if the peer waits for that. */
static void forget_key(struct shift_qp *sqp, struct shift_link *link, const struct shift_msg *m)
{
	struct shift_msg r = {
		.type = SHIFT_MSG_RKEY_GONE,
		.src_cookie = READ_ONCE(sqp->cookie),
		.dst_cookie = m->src_cookie,
		.key = { .rkey = m->key.rkey, .new_rkey = SHIFT_RKEY_FORGOTTEN },
	};

	shift_rkey_disuse(sqp, m->key.rkey);
	if (m->key.new_rkey == SHIFT_RKEY_TELL)
		reply(sqp, link, &r);
}

/**
 * shift_rkey_message - handle a message about keys
 * @sqp: the QP that it is for.
 * @link: the link that it came in on; NULL: the QP is connected to itself.
 * @m: RESOLVE, RESOLVED or RKEY_GONE.
 *
 * Context: process context; takes no mutex.
 */
void shift_rkey_message(struct shift_qp *sqp, struct shift_link *link,
			const struct shift_msg *m)
{
	if (m->type == SHIFT_MSG_RESOLVED)
		shift_rkey_told(sqp, m);
	else if (m->type == SHIFT_MSG_RKEY_GONE && m->key.new_rkey == SHIFT_RKEY_FORGOTTEN)
		shift_rkey_revoked(sqp, m->key.rkey);
	else if (m->type == SHIFT_MSG_RKEY_GONE)
		forget_key(sqp, link, m);
	else if (READ_ONCE(sqp->peer.windows))
		shift_qp_post_msg(sqp, m);
	else
		answer_key(sqp, link, m);
}
