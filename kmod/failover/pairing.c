// SPDX-License-Identifier: GPL-2.0
/*
 * Pairing makes a connected QP a protected one: it finds the route to the peer's NICs, makes the
 * proxy QP on the backup, and exchanges PAIR.
 *
 *	PAIR     A -> B   my QP and yours, my backup QP, my cookie
 *	PAIR|ACK B -> A   the same of B, and A's cookie
 *
 * An end is paired when it has got its own cookie back.  Until then it repeats PAIR, with back-off,
 * because the peer's QP may not be connected yet.
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include "core/event.h"
#include "core/ib.h"
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "link/link.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"
#include "pure/msg.h"

#define RETRY_MS_MIN	50
#define RETRY_MS_MAX	5000

static bool allow_nonglobal_atomics;
module_param(allow_nonglobal_atomics, bool, 0644);
MODULE_PARM_DESC(allow_nonglobal_atomics,
		 "move atomics between NICs that are not atomic to one another");

/* May one counter be reached through the default NIC and its backup? */
static bool atomic_together(struct shift_pair *pair)
{
	bool both = READ_ONCE(allow_nonglobal_atomics);

	if (both || !shift_pair_use(pair))
		return both;
	both = pair->sdev->ibdev &&
	       pair->sdev->ibdev->attrs.atomic_cap == IB_ATOMIC_GLOB &&
	       pair->backup->ibdev->attrs.atomic_cap == IB_ATOMIC_GLOB;
	shift_pair_unuse(pair);
	return both;
}

/* Set the reason; tell operators when it changes. */
static void pairing_give_reason(struct shift_qp *sqp, enum shift_reason reason)
{
	if (sqp->fo.reason == reason)
		return;
	sqp->fo.reason = reason;
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
}

static void pairing_retry_later(struct shift_qp *sqp)
{
	unsigned int ms = RETRY_MS_MIN << min(sqp->peer.tries, 7u);

	sqp->peer.tries++;
	shift_qp_arm(sqp, min_t(unsigned int, ms, RETRY_MS_MAX));
}

/*
 * Look where the address of the QP is that the application has chosen: an interface, and with it
 * its namespace, may change until the QP is protected.
 */
static void pairing_note_gid(struct shift_qp *sqp)
{
	bool ours = shift_gid_is_ours(sqp->sdev->ibdev, sqp->app.sgid_index, &sqp->app.sgid,
				      &sqp->app.vlan);

	WRITE_ONCE(sqp->app.foreign, !ours);
}

/* Does a link join the backups of both ends, as they are known now? */
static bool is_backup_link(const struct shift_qp *sqp, const struct shift_link *link)
{
	return !memcmp(shift_link_local(link), &sqp->peer.backup_sgid, sizeof(union ib_gid)) &&
	       !memcmp(shift_link_remote(link), &sqp->peer.backup_dgid, sizeof(union ib_gid));
}

static bool backup_carries(const struct shift_qp *sqp, const struct shift_dev *backup)
{
	return shift_gid_carries(backup->ibdev, &sqp->peer.backup_sgid, sqp->app.mtu,
				 !sqp->kernel);
}

/* Find the links to the peer's default NIC and to its backup. */
static enum shift_reason pairing_find_route(struct shift_qp *sqp)
{
	struct shift_pair *pair = shift_qp_pair(sqp);
	enum shift_reason reason = SHIFT_REASON_NONE;
	struct shift_dev *backup;
	int err;

	if (!shift_pair_use(pair))
		return SHIFT_REASON_DEVICE_GONE;
	backup = pair->backup;
	/* one that is connected to itself moves with itself; but QPs of an SRQ follow by links */
	if (shift_gid_is_local(pair, &sqp->app.dgid) &&
	    (!shift_qp_is_loop(sqp) || sqp->srqm.ssrq))
		reason = SHIFT_REASON_LOOPBACK;
	else if (shift_dev_gid(backup->ibdev, sqp->app.vlan, &sqp->peer.backup_sgid))
		reason = SHIFT_REASON_ADDRESS;
	if (reason)
		goto out;
	if (shift_qp_is_loop(sqp)) {
		sqp->peer.backup_dgid = sqp->peer.backup_sgid;
		if (!backup_carries(sqp, backup))
			reason = SHIFT_REASON_MTU;
		goto out;
	}
	err = shift_peer_backup(&sqp->app.dgid, &sqp->peer.backup_dgid);
	if (err) {
		reason = SHIFT_REASON_NO_PEER;
		goto out;
	}
	/* the directory names another backup than at the last attempt, or ours has a new address */
	if (sqp->peer.link[1] && !is_backup_link(sqp, sqp->peer.link[1]))
		shift_path_drop_link(sqp, 1);
	if (!sqp->peer.link[0])
		shift_path_take_link(sqp, 0, shift_dev_link(pair->sdev, &sqp->app.sgid,
							    &sqp->app.dgid));
	if (!sqp->peer.link[1])
		shift_path_take_link(sqp, 1, shift_dev_link(backup, &sqp->peer.backup_sgid,
							    &sqp->peer.backup_dgid));
	if (!sqp->peer.link[0] || !sqp->peer.link[1])
		reason = SHIFT_REASON_NO_SESSION;
	/* with the links: the peer is told */
	else if (!backup_carries(sqp, backup))
		reason = SHIFT_REASON_MTU;
out:
	shift_pair_unuse(pair);
	return reason;
}

static void pairing_send(struct shift_qp *sqp, u32 flags)
{
	struct shift_msg m = { .type = SHIFT_MSG_PAIR, .epoch = sqp->fo.highest };

	if (atomic_together(shift_qp_pair(sqp)))
		flags |= SHIFT_PAIR_ATOMIC;
	if (sqp->rings.tracks_mws)
		flags |= SHIFT_PAIR_WINDOWS;
	if (!sqp->srqm.ssrq)
		flags |= SHIFT_PAIR_ALONE;
	m.pair.flags = flags;
	m.pair.src_qpn = sqp->qpn;
	m.pair.dst_qpn = sqp->app.dest_qpn;
	memcpy(m.pair.src_gid, &sqp->app.sgid, sizeof(m.pair.src_gid));
	memcpy(m.pair.dst_gid, &sqp->app.dgid, sizeof(m.pair.dst_gid));
	memcpy(m.pair.backup_gid, &sqp->peer.backup_sgid, sizeof(m.pair.backup_gid));
	m.pair.mtu = sqp->app.mtu;
	/* over the backup only: a QP is not protected before that path has worked */
	if (!shift_path_send(sqp, 1, &m) && sqp->peer.cookie)
		sqp->peer.told = true;
}

/**
 * shift_pairing_run - one step towards protection
 * @sqp: the QP, locked, in state OFF; in RUN it may have to leave the protection.
 *
 * Called when the QP goes to RTR or RTS, when a link comes up, when memory without a mirror comes
 * to its PD or goes, when its charge was given up, and by the QP's timer.
 *
 * Context: process context; may sleep.
 */
void shift_pairing_run(struct shift_qp *sqp)
{
	enum shift_reason reason;

	lockdep_assert_held(&sqp->lock);
	if (sqp->fo.state == SHIFT_ST_OFF && sqp->qp)
		pairing_note_gid(sqp);
	reason = shift_qp_reason(sqp, SHIFT_PATH_DEFAULT);
	/* to leave the protection is no error on path 0: now, and not after a fault */
	if (reason && sqp->fo.state == SHIFT_ST_RUN && !sqp->fo.path && shift_path_healthy(sqp))
		shift_failover_unprotect(sqp, reason);
	/* nobody pays for its proxy QPs any more */
	if (sqp->fo.state == SHIFT_ST_OFF && shift_charge_is_lacking(&sqp->charge)) {
		shift_proxy_drop(sqp, SHIFT_PATH_BACKUP);
		shift_proxy_drop(sqp, SHIFT_PATH_HOME);
	}
	/* an end that only receives may stay in RTR */
	if (sqp->fo.state != SHIFT_ST_OFF || !sqp->qp || !sqp->rings.usable ||
	    (sqp->app.state != IB_QPS_RTR && sqp->app.state != IB_QPS_RTS))
		return;
	if (reason) {
		pairing_give_reason(sqp, reason);
		return;
	}
	reason = pairing_find_route(sqp);
	if (reason) {
		pairing_give_reason(sqp, reason);
		if (reason != SHIFT_REASON_LOOPBACK && reason != SHIFT_REASON_DEVICE_GONE)
			pairing_retry_later(sqp);
		return;
	}
	if (shift_proxy_prepare(sqp, SHIFT_PATH_BACKUP)) {
		pairing_give_reason(sqp, SHIFT_REASON_MIRROR_QP);
		pairing_retry_later(sqp);
		return;
	}
	if (shift_qp_is_loop(sqp)) {
		shift_loop_pair(sqp, atomic_together(shift_qp_pair(sqp)));
		return;
	}
	if (sqp->fo.reason != SHIFT_REASON_PEER_UNPROTECTED)
		pairing_give_reason(sqp, SHIFT_REASON_NO_SESSION);
	pairing_send(sqp, 0);
	pairing_retry_later(sqp);
}

/*
 * Has this end all that it needs to be protected?  A QP whose pairing was dropped has a spare proxy
 * QP and no links; one whose backup is too small for its packets may have both, and so may one
 * whose PD has got a reason since it has asked its peer.
 */
static bool pairing_is_prepared(const struct shift_qp *sqp)
{
	return sqp->proxies.spare[SHIFT_PATH_BACKUP] && sqp->peer.link[1] &&
	       !shift_qp_reason(sqp, SHIFT_PATH_DEFAULT) && sqp->fo.reason != SHIFT_REASON_MTU;
}

/**
 * shift_pairing_mtu - the MTU of the backup's interface has changed
 * @sqp: the QP, locked.
 *
 * A QP that is away stays where it is, since to leave the protection there is an error.
 *
 * Context: process context; may sleep.
 */
void shift_pairing_mtu(struct shift_qp *sqp)
{
	struct shift_pair *pair = shift_qp_pair(sqp);
	bool carries;

	lockdep_assert_held(&sqp->lock);
	if (sqp->fo.state == SHIFT_ST_OFF) {
		sqp->peer.tries = 0;
		set_bit(SHIFT_QPB_RETRY_PAIR, &sqp->pend.flags);
		return;
	}
	if (sqp->fo.state != SHIFT_ST_RUN || sqp->fo.path || !shift_path_healthy(sqp) ||
	    !shift_pair_use(pair))
		return;
	carries = backup_carries(sqp, pair->backup);
	shift_pair_unuse(pair);
	if (!carries)
		shift_failover_unprotect(sqp, SHIFT_REASON_MTU);
}

/**
 * shift_pairing_look - a PD has got a reason against the protection of its QPs, or lost one
 * @spd: the PD.
 *
 * Context: process context; takes no QP's mutex.
 */
void shift_pairing_look(const struct shift_pd *spd)
{
	shift_qp_kick_pd(spd, SHIFT_QPB_RETRY_PAIR);
}

static void look_at_pds(struct work_struct *work)
{
	unsigned long index = 0;
	struct shift_qp *sqp;

	for (; (sqp = shift_qp_next(&index)); shift_qp_put(sqp))
		if (shift_pd_reason(sqp->spd, SHIFT_PATH_BACKUP))
			shift_qp_kick(sqp, SHIFT_QPB_RETRY_PAIR);
}

static DECLARE_WORK(pd_look, look_at_pds);

/**
 * shift_pairing_look_soon - as shift_pairing_look(), for PDs that have got a reason that stays
 *
 * Context: any.
 */
void shift_pairing_look_soon(void)
{
	queue_work(shift_wq, &pd_look);
}

/**
 * shift_pairing_message - handle a PAIR
 * @sqp: the QP, locked.
 * @m: the message.
 *
 * Context: process context; may sleep.
 */
void shift_pairing_message(struct shift_qp *sqp, const struct shift_msg *m)
{
	u32 flags = SHIFT_PAIR_ACK;

	lockdep_assert_held(&sqp->lock);
	/* the application may have connected the QP to another one since it was found */
	if (!shift_qp_is_named(sqp, m))
		return;
	if (m->pair.flags & SHIFT_PAIR_REFUSED) {
		if (sqp->fo.state == SHIFT_ST_OFF)
			pairing_give_reason(sqp, SHIFT_REASON_PEER_UNPROTECTED);
		return;
	}
	if (sqp->fo.state == SHIFT_ST_FAIL || sqp->fo.state == SHIFT_ST_APP) {
		/* this incarnation has ended, and a peer that was healthy then pairs anew */
		if (!(m->pair.flags & SHIFT_PAIR_ACK))
			pairing_send(sqp, SHIFT_PAIR_ACK | SHIFT_PAIR_REFUSED);
		return;
	}
	if (sqp->fo.state != SHIFT_ST_OFF) {
		/* the PAIR is a repeat, or of a new incarnation whose GONE was lost */
		if (m->src_cookie != sqp->peer.cookie && sqp->fo.state == SHIFT_ST_RUN &&
		    !sqp->fo.path)
			shift_failover_unprotect(sqp, SHIFT_REASON_NO_SESSION);
		else if (m->src_cookie == sqp->peer.cookie &&
			 !(m->pair.flags & SHIFT_PAIR_ACK))
			pairing_send(sqp, SHIFT_PAIR_ACK);
		return;
	}
	pairing_note_gid(sqp);
	if (!pairing_is_prepared(sqp))
		shift_pairing_run(sqp);
	if (!pairing_is_prepared(sqp)) {
		if (sqp->peer.link[0] || sqp->peer.link[1])
			pairing_send(sqp, SHIFT_PAIR_ACK | SHIFT_PAIR_REFUSED);
		return;
	}
	if (memcmp(m->pair.backup_gid, &sqp->peer.backup_dgid, sizeof(m->pair.backup_gid)) ||
	    m->pair.mtu != sqp->app.mtu) {
		/* the directory and the peer disagree; they may agree by a later PAIR */
		pairing_give_reason(sqp, SHIFT_REASON_ADDRESS);
		return;
	}
	if (sqp->peer.cookie != m->src_cookie) {
		sqp->peer.cookie = m->src_cookie;
		sqp->peer.told = false;
	}
	/* the peer may have been paired with this cookie before, and refuses what is not above */
	sqp->fo.highest = shift_epoch_learn(sqp->fo.highest, m->epoch);
	sqp->peer.atomic = m->pair.flags & SHIFT_PAIR_ATOMIC;
	sqp->peer.alone = m->pair.flags & SHIFT_PAIR_ALONE;
	sqp->peer.windows = m->pair.flags & SHIFT_PAIR_WINDOWS && sqp->rings.tracks_mws;
	if (!(m->pair.flags & SHIFT_PAIR_ACK) || !sqp->peer.told)
		pairing_send(sqp, flags);
	if (m->dst_cookie == sqp->cookie) {
		struct shift_link_info info;

		shift_link_fill_info(sqp->peer.link[1], &info);
		memcpy(sqp->peer.boot, info.peer_boot_id, sizeof(sqp->peer.boot));
		sqp->peer.ok = true;
		sqp->peer.tries = 0;
		shift_failover_event(sqp, SHIFT_EV_PAIRED, NULL);
	}
}

/*
 * A link's peer is another kernel than before, or its first one.  If the QP is not paired with that
 * kernel the node has restarted, and the peer's QP has ended.
 */
static void peer_restarted(struct shift_qp *sqp, struct shift_link *link)
{
	struct shift_link_info info;

	shift_link_fill_info(link, &info);
	/* the other link may have had the same news before */
	if (!memcmp(sqp->peer.boot, info.peer_boot_id, sizeof(sqp->peer.boot)))
		return;
	/* a PAIR of the kernel that has gone would be taken for one of the new kernel's */
	shift_qp_clear_msgs(sqp, false);
	shift_failover_peer_gone(sqp);
	set_bit(SHIFT_QPB_RETRY_PAIR, &sqp->pend.flags);
}

/**
 * shift_pairing_links - handle the news of the QP's links
 * @sqp: the QP, locked, in its work item: it finds what is to be done next as pending bits.
 *
 * Called before messages are handled, because a peer that restarted has sent them afterwards.
 *
 * Context: process context; sleeps as a fence does.
 */
void shift_pairing_links(struct shift_qp *sqp)
{
	unsigned long news;
	int i;

	lockdep_assert_held(&sqp->lock);
	for (i = 0; i < ARRAY_SIZE(sqp->peer.use); i++) {
		news = xchg(&sqp->peer.use[i].news, 0);
		if (news & BIT(SHIFT_LINK_NEWS_RESTARTED))
			peer_restarted(sqp, sqp->peer.link[i]);
		if (news & BIT(SHIFT_LINK_NEWS_SILENT) && sqp->peer.link[i] &&
		    shift_path_link(sqp, sqp->fo.path) == sqp->peer.link[i] &&
		    !shift_silence_begins(sqp)) {
			set_bit(SHIFT_QPB_SILENT, &sqp->pend.flags);
			set_bit(SHIFT_QPB_TRIGGER, &sqp->pend.flags);
		}
		if (news & BIT(SHIFT_LINK_NEWS_UP)) {
			sqp->peer.tries = 0;
			set_bit(SHIFT_QPB_RETRY_PAIR, &sqp->pend.flags);
			set_bit(SHIFT_QPB_PATH_UP, &sqp->pend.flags);
		}
	}
}

/* QPs to be paired at the next tick: each has SHIFT_QPB_SOON, and the list has a reference to it */
static LLIST_HEAD(connected);

static void pair_connected(struct work_struct *work)
{
	struct shift_qp *sqp, *next;

	llist_for_each_entry_safe(sqp, next, llist_del_all(&connected), pend.soon) {
		/* from here on the QP may be put on the list again: @next was read before */
		clear_bit_unlock(SHIFT_QPB_SOON, &sqp->pend.flags);
		shift_qp_kick(sqp, SHIFT_QPB_RETRY_PAIR);
		shift_qp_put(sqp);
	}
}

static DECLARE_DELAYED_WORK(pair_tick, pair_connected);

/**
 * shift_pairing_soon - pair a QP at the next tick
 * @sqp: the QP, locked, in state OFF and not DEAD.
 *
 * The application's own verbs call this: to wake the QP's worker, or to start its timer, would cost
 * them more than everything else.  QPs that are connected within one tick share it.
 *
 * Context: process context.
 */
void shift_pairing_soon(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (test_and_set_bit(SHIFT_QPB_SOON, &sqp->pend.flags))
		return;
	shift_qp_get(sqp);
	llist_add(&sqp->pend.soon, &connected);
	/* each QP does this, as the one that was first may not have come this far yet */
	queue_delayed_work(shift_wq, &pair_tick, 1);
}

/* Take a DEAD QP off the list of QPs to be paired.  Sleeps; sqp->lock is not held. */
void shift_pairing_settle(struct shift_qp *sqp)
{
	if (test_bit(SHIFT_QPB_SOON, &sqp->pend.flags))
		flush_delayed_work(&pair_tick);
}

/* The module is unloaded: no QP is left, but a tick may be. */
void shift_pairing_uninit(void)
{
	cancel_delayed_work_sync(&pair_tick);
	cancel_work_sync(&pd_look);
}
