// SPDX-License-Identifier: GPL-2.0
/*
 * From a connected QP to a protected one: the route to the peer's NICs, the
 * backup QP, the exchange of PAIR.
 *
 *	PAIR     A -> B   my QP and yours, my backup QP, my cookie
 *	PAIR|ACK B -> A   the same of B, and A's cookie
 *
 * A side is paired once it was sent its own cookie.  A PAIR is repeated, with
 * back-off, until then: the peer's QP may not be connected yet.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/module.h>
#include "mw.h"

#define RETRY_MS_MIN	50
#define RETRY_MS_MAX	5000

static bool atomics_anyway;
module_param(atomics_anyway, bool, 0644);
MODULE_PARM_DESC(atomics_anyway, "move atomics between NICs that are not atomic to one another");

/* May one counter be reached through the default NIC and its backup? mirror_sem */
static bool atomic_together(struct shift_dev *sdev)
{
	struct shift_dev *backup = sdev->backup;

	return READ_ONCE(atomics_anyway) ||
	       (backup && backup->ibdev && sdev->ibdev &&
		sdev->ibdev->attrs.atomic_cap == IB_ATOMIC_GLOB &&
		backup->ibdev->attrs.atomic_cap == IB_ATOMIC_GLOB);
}

/* Set the reason; tell operators when it changes. */
static void give_reason(struct shift_qp *sqp, enum shift_reason reason)
{
	if (sqp->reason == reason)
		return;
	sqp->reason = reason;
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
}

static void retry_later(struct shift_qp *sqp)
{
	unsigned int ms = RETRY_MS_MIN << min(sqp->pair_tries, 7u);

	sqp->pair_tries++;
	shift_switch_arm(sqp, min_t(unsigned int, ms, RETRY_MS_MAX));
}

/* Where the peer is and who stands in for it. */
static enum shift_reason find_route(struct shift_qp *sqp)
{
	struct shift_dev *sdev = sqp->sdev, *backup;
	enum shift_reason reason = SHIFT_REASON_NONE;
	int err;

	down_read(&sdev->mirror_sem);
	backup = sdev->backup;
	if (!backup || !backup->ibdev)
		reason = SHIFT_REASON_DEVICE_GONE;
	else if (shift_gid_is_local(sdev, &sqp->dgid))
		reason = SHIFT_REASON_LOOPBACK;
	else if (shift_dev_gid(backup->ibdev, &sqp->backup_sgid))
		reason = SHIFT_REASON_ADDRESS;
	if (reason)
		goto out;
	err = shift_peer_backup(&sqp->dgid, &sqp->backup_dgid);
	if (err) {
		reason = SHIFT_REASON_NO_PEER;
		goto out;
	}
	if (!sqp->link[0])
		sqp->link[0] = shift_dev_link(sdev, &sqp->sgid, &sqp->dgid);
	if (!sqp->link[1])
		sqp->link[1] = shift_dev_link(backup, &sqp->backup_sgid, &sqp->backup_dgid);
	if (!sqp->link[0] || !sqp->link[1])
		reason = SHIFT_REASON_NO_SESSION;
out:
	up_read(&sdev->mirror_sem);
	return reason;
}

static void send_pair(struct shift_qp *sqp, u32 flags)
{
	struct shift_msg m = { .type = SHIFT_MSG_PAIR };

	down_read(&sqp->sdev->mirror_sem);
	if (atomic_together(sqp->sdev))
		flags |= SHIFT_PAIR_ATOMIC;
	if (sqp->notes)
		flags |= SHIFT_PAIR_WINDOWS;
	up_read(&sqp->sdev->mirror_sem);
	m.pair.flags = flags;
	m.pair.reason = flags & SHIFT_PAIR_REFUSED ? sqp->reason : 0;
	m.pair.src_qpn = sqp->qpn;
	m.pair.dst_qpn = sqp->dest_qpn;
	memcpy(m.pair.src_gid, &sqp->sgid, sizeof(m.pair.src_gid));
	memcpy(m.pair.dst_gid, &sqp->dgid, sizeof(m.pair.dst_gid));
	memcpy(m.pair.backup_gid, &sqp->backup_sgid, sizeof(m.pair.backup_gid));
	m.pair.backup_qpn = shift_standby_qpn(sqp, SHIFT_PATH_BACKUP);
	m.pair.mtu = sqp->mtu;
	/* over the backup only: nothing is protected before that path is proven */
	if (!shift_switch_send(sqp, 1, &m) && sqp->peer_cookie)
		sqp->peer_told = true;
}

/**
 * shift_pairing_run - one step towards protection
 * @sqp: the QP, locked, in state OFF.
 *
 * Called when it goes to RTS, when a link comes up, and by its timer.
 */
void shift_pairing_run(struct shift_qp *sqp)
{
	enum shift_reason reason;

	lockdep_assert_held(&sqp->lock);
	/* a side that only answers may stay in RTR */
	if (sqp->state != SHIFT_ST_OFF || !sqp->qp || !sqp->registered ||
	    (sqp->app_state != IB_QPS_RTR && sqp->app_state != IB_QPS_RTS))
		return;
	reason = atomic_read(&sqp->spd->reason);
	if (reason) {
		give_reason(sqp, reason);
		return;
	}
	reason = find_route(sqp);
	if (reason) {
		give_reason(sqp, reason);
		if (reason != SHIFT_REASON_LOOPBACK && reason != SHIFT_REASON_DEVICE_GONE)
			retry_later(sqp);
		return;
	}
	if (shift_standby_prepare(sqp, SHIFT_PATH_BACKUP)) {
		give_reason(sqp, SHIFT_REASON_MIRROR_QP);
		return;
	}
	if (sqp->reason != SHIFT_REASON_PEER_UNPROTECTED)
		give_reason(sqp, SHIFT_REASON_NO_SESSION);
	send_pair(sqp, 0);
	retry_later(sqp);
}

/**
 * shift_pairing_message - a PAIR for this QP
 * @sqp: the QP, locked.
 * @m: the message; it names this QP and its peer (checked at lookup).
 */
void shift_pairing_message(struct shift_qp *sqp, const struct shift_msg *m)
{
	u32 flags = SHIFT_PAIR_ACK;

	lockdep_assert_held(&sqp->lock);
	if (m->pair.flags & SHIFT_PAIR_REFUSED) {
		if (sqp->state == SHIFT_ST_OFF)
			give_reason(sqp, SHIFT_REASON_PEER_UNPROTECTED);
		return;
	}
	if (sqp->state == SHIFT_ST_FAIL || sqp->state == SHIFT_ST_APP) {
		/* this life has ended: a peer that was healthy when it heard so tries again */
		if (!(m->pair.flags & SHIFT_PAIR_ACK))
			send_pair(sqp, SHIFT_PAIR_ACK | SHIFT_PAIR_REFUSED);
		return;
	}
	if (sqp->state != SHIFT_ST_OFF) {
		/* a repeat, or a new incarnation whose GONE was lost */
		if (m->src_cookie != sqp->peer_cookie && sqp->state == SHIFT_ST_RUN &&
		    !sqp->path)
			shift_switch_unprotect(sqp, SHIFT_REASON_NO_SESSION);
		else if (m->src_cookie == sqp->peer_cookie &&
			 !(m->pair.flags & SHIFT_PAIR_ACK))
			send_pair(sqp, SHIFT_PAIR_ACK);
		return;
	}
	/* dropped, it has a spare and no links */
	if (!sqp->spare[SHIFT_PATH_BACKUP] || !sqp->link[1])
		shift_pairing_run(sqp);
	if (!sqp->spare[SHIFT_PATH_BACKUP] || !sqp->link[1]) {
		if (sqp->link[0] || sqp->link[1])
			send_pair(sqp, SHIFT_PAIR_ACK | SHIFT_PAIR_REFUSED);
		return;
	}
	if (memcmp(m->pair.backup_gid, &sqp->backup_dgid, sizeof(m->pair.backup_gid)) ||
	    m->pair.mtu != sqp->mtu) {
		/* directory and peer disagree: a later PAIR may not */
		give_reason(sqp, SHIFT_REASON_ADDRESS);
		return;
	}
	if (sqp->peer_cookie != m->src_cookie) {
		sqp->peer_cookie = m->src_cookie;
		sqp->peer_told = false;
	}
	sqp->peer_atomic = m->pair.flags & SHIFT_PAIR_ATOMIC;
	sqp->windows = m->pair.flags & SHIFT_PAIR_WINDOWS && sqp->notes;
	if (!(m->pair.flags & SHIFT_PAIR_ACK) || !sqp->peer_told)
		send_pair(sqp, flags);
	if (m->dst_cookie == sqp->cookie) {
		struct shift_link_info info;

		shift_link_fill_info(sqp->link[1], &info);
		memcpy(sqp->peer_boot, info.peer_boot_id, sizeof(sqp->peer_boot));
		sqp->peer_ok = true;
		sqp->pair_tries = 0;
		shift_switch_event(sqp, SHIFT_EV_PAIRED, NULL);
	}
}

/* Forget the peer; sqp->lock, any state without protection. */
void shift_pairing_drop(struct shift_qp *sqp)
{
	int i;

	sqp->peer_ok = false;
	sqp->peer_told = false;
	sqp->peer_cookie = 0;
	sqp->pair_tries = 0;
	sqp->asks = 0;
	sqp->move_until = 0;
	sqp->epoch = 0;
	sqp->error_status = 0;
	clear_bit(SHIFT_QP_ERRORED, &sqp->flags);
	sqp->highest = 0;
	sqp->unfenced = false;
	xa_destroy(&sqp->rkeys);
	for (i = 0; i < ARRAY_SIZE(sqp->link); i++) {
		struct shift_link *link = sqp->link[i];

		sqp->link[i] = NULL;
		if (link)
			shift_link_put(link);
	}
}

struct pair_match {
	const struct shift_msg *m;
	struct shift_qp *found;
};

static bool names(const struct shift_qp *sqp, const struct shift_msg *m)
{
	return sqp->qpn == m->pair.dst_qpn && sqp->dest_qpn == m->pair.src_qpn &&
	       !memcmp(&sqp->sgid, m->pair.dst_gid, sizeof(sqp->sgid)) &&
	       !memcmp(&sqp->dgid, m->pair.src_gid, sizeof(sqp->dgid));
}

static int match_pair(struct shift_dev *sdev, struct shift_dev *backup, void *arg)
{
	struct pair_match *match = arg;
	struct shift_qp *sqp = shift_qp_find_qpn(sdev, match->m->pair.dst_qpn);

	if (!sqp)
		return 0;
	if (names(sqp, match->m)) {
		match->found = sqp;
		return 1;
	}
	shift_qp_put(sqp);
	return 0;
}

/* A QP that cannot be protected says so, so that the peer's operator knows. */
static void refuse_pair(struct shift_qp *sqp, struct shift_link *link,
			const struct shift_msg *m)
{
	struct shift_msg r = {
		.type = SHIFT_MSG_PAIR,
		.src_cookie = READ_ONCE(sqp->cookie),
		.dst_cookie = m->src_cookie,
	};

	r.pair.flags = SHIFT_PAIR_ACK | SHIFT_PAIR_REFUSED;
	r.pair.reason = READ_ONCE(sqp->reason);
	r.pair.src_qpn = m->pair.dst_qpn;
	r.pair.dst_qpn = m->pair.src_qpn;
	memcpy(r.pair.src_gid, m->pair.dst_gid, sizeof(r.pair.src_gid));
	memcpy(r.pair.dst_gid, m->pair.src_gid, sizeof(r.pair.dst_gid));
	r.pair.mtu = m->pair.mtu;
	shift_link_send(link, &r);
}

/**
 * shift_link_received - a message came in
 * @link: where.
 * @m: the message, validated in form only.
 *
 * Context: process context, no lock held.
 */
void shift_link_received(struct shift_link *link, const struct shift_msg *m)
{
	struct shift_qp *sqp;

	if (m->type == SHIFT_MSG_PAIR) {
		struct pair_match match = { .m = m };

		shift_pair_walk(match_pair, &match);
		sqp = match.found;
		if (sqp && !READ_ONCE(sqp->registered)) {
			if (!(m->pair.flags & SHIFT_PAIR_ACK))
				refuse_pair(sqp, link, m);
			shift_qp_put(sqp);
			return;
		}
	} else {
		sqp = shift_qp_find_cookie(m->dst_cookie);
		if (sqp && READ_ONCE(sqp->peer_cookie) != m->src_cookie) {
			shift_stat_inc(SHIFT_STAT_MSG_STALE);
			shift_qp_put(sqp);
			return;
		}
	}
	if (!sqp)
		return;

	switch (m->type) {
	case SHIFT_MSG_RESOLVE:
	case SHIFT_MSG_RESOLVED:
	case SHIFT_MSG_RKEY_GONE:
		shift_pairing_key_message(sqp, link, m);
		break;
	default:
		shift_switch_deliver(sqp, m);
	}
	shift_qp_put(sqp);
}

/* What the other QPs of its SRQ go by; sqp->lock. */
void shift_qp_note_links(struct shift_qp *sqp)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(sqp->link); i++)
		WRITE_ONCE(sqp->link_ok[i], sqp->link[i] &&
			   shift_link_state(sqp->link[i]) == SHIFT_LINK_UP);
}

struct link_change {
	struct shift_link *link;
	bool up, restarted, silent;
	u8 boot[16];		/* of the peer that restarted */
};

static int link_change(struct shift_qp *sqp, void *arg)
{
	struct link_change *change = arg;

	if (sqp->link[0] != change->link && sqp->link[1] != change->link)
		return 0;
	shift_qp_note_links(sqp);
	/* another link may have told of it, and the QP be paired with the new one */
	if (change->restarted && memcmp(sqp->peer_boot, change->boot, sizeof(change->boot))) {
		shift_switch_peer_gone(sqp);
		shift_switch_kick(sqp, SHIFT_QP_RETRY_PAIR);
	}
	if (change->silent && shift_switch_link(sqp, sqp->path) == change->link) {
		set_bit(SHIFT_QP_SILENT, &sqp->flags);
		shift_switch_kick(sqp, SHIFT_QP_FAULT);
	}
	if (change->up) {
		sqp->pair_tries = 0;
		shift_switch_kick(sqp, SHIFT_QP_RETRY_PAIR);
		/* a fault that found no usable path may find one now */
		if (sqp->state == SHIFT_ST_RUN &&
		    (sqp->path || READ_ONCE(sqp->sdev->port_down) ||
		     test_bit(SHIFT_QP_ERRORED, &sqp->flags)))
			shift_switch_kick(sqp, SHIFT_QP_FAULT);
	}
	return 0;
}

void shift_link_changed(struct shift_link *link, enum shift_link_state state)
{
	struct link_change change = { .link = link, .up = state == SHIFT_LINK_UP };
	struct shift_link_info info;

	shift_link_fill_info(link, &info);
	shift_notify_link(&info);
	shift_qp_walk(NULL, link_change, &change);
}

void shift_link_silent(struct shift_link *link)
{
	struct link_change change = { .link = link, .silent = true };

	shift_qp_walk(NULL, link_change, &change);
}

void shift_link_peer_restarted(struct shift_link *link)
{
	struct link_change change = { .link = link, .restarted = true };
	struct shift_link_info info;

	shift_link_fill_info(link, &info);
	memcpy(change.boot, info.peer_boot_id, sizeof(change.boot));
	shift_qp_walk(NULL, link_change, &change);
}

/**
 * shift_qp_refresh - bring what operators see of a QP up to date
 * @sqp: the QP, locked.
 *
 * A QP that is home again is as good as its PD.  One in Default that holds work we cannot
 * move is not protected while it does: operators are told before the fault, not after.
 */
void shift_qp_refresh(struct shift_qp *sqp)
{
	if (sqp->state != SHIFT_ST_RUN || sqp->path == SHIFT_PATH_BACKUP)
		return;
	sqp->reason = atomic_read(&sqp->spd->reason);
	if (sqp->path)
		return;
	if (!sqp->reason && shift_provider_movable(sqp))
		sqp->reason = SHIFT_REASON_OPERATION;
	if (!sqp->reason && !shift_srq_movable(sqp))
		sqp->reason = SHIFT_REASON_SRQ;
	if (!sqp->reason && shift_link_state(sqp->link[1]) != SHIFT_LINK_UP)
		sqp->reason = SHIFT_REASON_NO_SESSION;
}
