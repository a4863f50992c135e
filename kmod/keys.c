// SPDX-License-Identifier: GPL-2.0
/*
 * Remote keys: a path has other ones than the application's, and the peer is asked for
 * them when they are needed.  Those of memory windows are a path's own, too:
 * Documentation/windows.md.
 */
#include "mw.h"

#define KEY_ASKED	xa_mk_value(1ul << 32)
#define KEY_NONE	xa_mk_value(1ul << 33)

int shift_pairing_key(const struct shift_qp *sqp, u32 rkey, u32 *key)
{
	void *entry = xa_load((struct xarray *)&sqp->rkeys, rkey);

	if (entry == KEY_NONE)
		return -ENOENT;
	if (!entry || entry == KEY_ASKED)
		return -EINPROGRESS;
	*key = (u32)xa_to_value(entry);
	return 0;
}

/* Ask the peer for a key: once, and again after a while, the answer may be lost. */
void shift_pairing_ask_key(struct shift_qp *sqp, u32 rkey)
{
	struct shift_msg m = {
		.type = SHIFT_MSG_RESOLVE,
		.epoch = sqp->windows ? sqp->epoch : 0,
		.key = { .rkey = rkey, .new_rkey = shift_notes_invs(sqp, rkey) },
	};
	void *entry = xa_load(&sqp->rkeys, rkey);

	lockdep_assert_held(&sqp->lock);
	if (entry && entry != KEY_ASKED)
		return;
	if (!entry || time_after(jiffies, sqp->key_asked +
				 msecs_to_jiffies(SHIFT_RESEND_MS))) {
		xa_store_bh(&sqp->rkeys, rkey, KEY_ASKED, GFP_NOIO);
		sqp->key_asked = jiffies;
		shift_switch_send(sqp, sqp->to, &m);
	}
}

/* The peer asks for the backup key of one of ours; no lock. */
static void answer_key(struct shift_qp *sqp, struct shift_link *link,
		       const struct shift_msg *m)
{
	struct shift_msg r = {
		.type = SHIFT_MSG_RESOLVED,
		.src_cookie = READ_ONCE(sqp->cookie),
		.dst_cookie = m->src_cookie,
		.key = { .rkey = m->key.rkey, .status = ENOENT },
	};
	struct shift_mr *smr = shift_mr_find(sqp->sdev, m->key.rkey);

	if (smr) {
		/* rkeys are shown to peers of a QP in the same PD only */
		if (READ_ONCE(smr->mirror) && smr->rkey == m->key.rkey &&
		    smr->spd == sqp->spd) {
			r.key.new_rkey = smr->mirror_rkey;
			r.key.status = 0;
			WRITE_ONCE(sqp->resolved, true);
			WRITE_ONCE(sqp->spd->resolved, true);
		}
		shift_mr_put(smr);
	}
	shift_session_send(link, &r);
}

/* One of ours in a PD that the QP's peer may know, as of @path. */
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
 * shift_pairing_resolve - the peer asks for the key of the path that both are on
 * @sqp: the QP, locked; keys of windows are the path's, too.
 * @m: RESOLVE; it says how often the peer has invalidated that window on path 0.
 *
 * What cannot be told yet is not answered: the peer asks again.
 */
void shift_pairing_resolve(struct shift_qp *sqp, const struct shift_msg *m)
{
	struct shift_msg r = {
		.type = SHIFT_MSG_RESOLVED, .epoch = m->epoch, .key.rkey = m->key.rkey,
	};
	u8 path = sqp->state == SHIFT_ST_RUN ? sqp->path : sqp->to;
	int err = 0;

	lockdep_assert_held(&sqp->lock);
	if (!sqp->windows || m->epoch != sqp->epoch || !path ||
	    (sqp->state != SHIFT_ST_RUN && sqp->state != SHIFT_ST_SYNC))
		return;
	if (!key_of_mr(sqp, m->key.rkey, path, &r.key.new_rkey)) {
		shift_mw_told(sqp, m->key.rkey, m->key.new_rkey);
		err = shift_region_get(sqp, m->key.rkey, &r.key.new_rkey);
	}
	if (err && err != -ENOENT)
		return;
	r.key.status = -err;
	if (!err) {
		WRITE_ONCE(sqp->resolved, true);
		WRITE_ONCE(sqp->spd->resolved, true);
	}
	shift_switch_send(sqp, path, &r);
}

/* One of our windows was invalidated. */
void shift_pairing_key_gone(struct shift_qp *sqp, u32 rkey)
{
	struct shift_msg m = { .type = SHIFT_MSG_RKEY_GONE, .key.rkey = rkey };

	shift_switch_send(sqp, sqp->path, &m);
}

/* A window of the peer's was invalidated from here. */
void shift_pairing_forget_key(struct shift_qp *sqp, u32 rkey)
{
	xa_erase_bh(&sqp->rkeys, rkey);
}

/* Of an earlier path. */
void shift_pairing_forget_keys(struct shift_qp *sqp)
{
	if (sqp->windows)
		xa_destroy(&sqp->rkeys);
}

/* What the peer answers to our RESOLVE; no lock.  Only what was asked for. */
static void key_told(struct shift_qp *sqp, const struct shift_msg *m)
{
	void *key = m->key.status ? KEY_NONE : xa_mk_value(m->key.new_rkey);

	if (!sqp->windows || m->epoch == READ_ONCE(sqp->epoch))
		xa_cmpxchg_bh(&sqp->rkeys, m->key.rkey, KEY_ASKED, key, GFP_NOIO);
	shift_switch_kick(sqp, SHIFT_QP_KICK);
}

static int revoke_one(struct shift_qp *sqp, void *arg)
{
	struct shift_mr *smr = arg;
	struct shift_msg m = { .type = SHIFT_MSG_RKEY_GONE, .key.rkey = smr->rkey };

	if (sqp->resolved)
		shift_switch_send(sqp, 1, &m);
	return 0;
}

void shift_pairing_revoke(struct shift_mr *smr)
{
	if (smr->rkey && READ_ONCE(smr->spd->resolved))
		shift_qp_walk(smr->spd, revoke_one, smr);
}

/**
 * shift_pairing_key_message - one about keys
 * @sqp: the QP it is for.
 * @link: where it came in.
 * @m: RESOLVE, RESOLVED or RKEY_GONE.
 *
 * Context: process context, no lock held.
 */
void shift_pairing_key_message(struct shift_qp *sqp, struct shift_link *link,
			       const struct shift_msg *m)
{
	if (m->type == SHIFT_MSG_RESOLVED)
		key_told(sqp, m);
	else if (m->type == SHIFT_MSG_RKEY_GONE)
		shift_pairing_forget_key(sqp, m->key.rkey);
	else if (READ_ONCE(sqp->windows))
		shift_switch_deliver(sqp, m);
	else
		answer_key(sqp, link, m);
}
