// SPDX-License-Identifier: GPL-2.0
/*
 * Handback: the application's own QP works again, and the application posts to it as without the
 * module.  The provider library has to be able to rebase its rings for that.
 *
 * A handback is a failover from a proxy QP on the default NIC to SHIFT_PATH_OWN: both ends settle,
 * fence, and send PROGRESS.  Nothing is outstanding then.  Each end's provider rebases its rings,
 * that is, it moves what lies in them to index 0; the own QPs are connected to each other, and
 * READY is sent.  See Documentation/internals/protocol.md.
 *
 * Posts wait in KICK meanwhile, so a handback is only tried when nothing is outstanding and both
 * applications are seen to poll.  If it fails, the QP goes on with a proxy QP.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include "core/event.h"
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/ring.h"
#include "core/stat.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "link/link.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"

/* May be changed at any time. */
static bool handback = true;
module_param(handback, bool, 0644);
MODULE_PARM_DESC(handback, "let a QP that is home again run on its application's own rings, if its provider can");

/* Has the application polled just now?  One that sleeps or computes would make the peer wait. */
bool shift_handback_awake(const struct shift_qp *sqp)
{
	return ktime_get_ns() - READ_ONCE(sqp->handback.awake_ns) < shift_scaled_ns(SHIFT_AWAKE_MS);
}

/*
 * Has a CQ of its own device no room for what that flushes?  If the QP broke by itself, the device
 * may have overrun it then, and never writes to it again.
 */
static bool cq_may_be_dead(struct shift_qp *sqp)
{
	const struct shift_provider *provider = sqp->rings.provider;

	return !provider->holds_flushes || !provider->holds_flushes(sqp);
}

static bool fits_here(struct shift_qp *sqp)
{
	return READ_ONCE(handback) && sqp->rings.rebases && sqp->rings.usable && sqp->qp &&
	       sqp->fo.path == SHIFT_PATH_HOME && sqp->app.state == IB_QPS_RTS &&
	       !sqp->srqm.ssrq && !sqp->rings.tracks_mws && !sqp->fo.stop_status &&
	       !sqp->move.until &&
	       !shift_qp_is_drained(sqp) && !READ_ONCE(sqp->sdev->port_down) &&
	       READ_ONCE(sqp->handback.rebase) != SHIFT_REBASE_BUSY && !cq_may_be_dead(sqp) &&
	       shift_path_healthy(sqp);
}

/*
 * Is a handback possible here, and wanted?  Both links have to be up, so that the QP can leave its
 * path again on either side.  sqp->lock.
 */
bool shift_handback_fits(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	return sqp->proxies.spare[SHIFT_PATH_BACKUP] &&
	       shift_path_link_up(sqp, SHIFT_PATH_DEFAULT) &&
	       shift_path_link_up(sqp, SHIFT_PATH_BACKUP) &&
	       fits_here(sqp);
}

/**
 * shift_handback_able - can this end take part in a handback now?
 * @sqp: the QP, locked.
 *
 * Context: process context.
 */
bool shift_handback_able(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	/* after a handback that failed, a proxy QP has to take in the posts that waited */
	return (sqp->fo.state == SHIFT_ST_RUN || sqp->fo.state == SHIFT_ST_ASKED) &&
	       !sqp->handback.aborted && shift_handback_fits(sqp);
}

/*
 * Is it this end that asks for handbacks?  If both did, for two QPs of one process, they would
 * refuse each other.
 */
bool shift_handback_asks(const struct shift_qp *sqp)
{
	return shift_qp_is_loop(sqp) ||
	       memcmp(shift_boot_id, sqp->peer.boot, sizeof(sqp->peer.boot)) > 0;
}

/*
 * Put a message for the provider into the CQs that the application polls.  The poll that meets it
 * tells the kernel that the application polls, or rebases the rings.  sqp->lock.
 */
bool shift_handback_tell(struct shift_qp *sqp)
{
	const struct shift_abi_wc wc = { .opcode = SHIFT_WC_REBASE, .qp_num = sqp->qpn };

	lockdep_assert_held(&sqp->lock);
	if (READ_ONCE(sqp->handback.nudged))
		return true;
	sqp->handback.nudged_ns = ktime_get_ns();
	WRITE_ONCE(sqp->handback.nudged, true);
	if (shift_cq_tell(sqp->rcq, &wc) ||
	    (sqp->scq != sqp->rcq && shift_cq_tell(sqp->scq, &wc))) {
		WRITE_ONCE(sqp->handback.nudged, false);
		return false;
	}
	return true;
}

/**
 * shift_handback_wish - the QP has come home: have a handback tried
 * @sqp: the QP, locked.
 *
 * It is tried when the application polls next.
 *
 * Context: process context.
 */
void shift_handback_wish(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	sqp->handback.next_ns = 0;
	sqp->handback.tries = 0;
	if (shift_handback_asks(sqp) && shift_handback_fits(sqp))
		shift_handback_tell(sqp);
}

/* Have posts wait from here on; sqp->lock. */
void shift_handback_hold(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	spin_lock_bh(&sqp->ledger_lock);
	if (!sqp->handback.hold)
		sqp->handback.tired = false;
	sqp->handback.hold = true;
	spin_unlock_bh(&sqp->ledger_lock);
}

/* The protection has ended, during a handback or not; sqp->lock. */
void shift_handback_over(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	/* after a fence posts have to go on calling KICK, as the ledger flushes them */
	if (sqp->handback.connected && !test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags))
		shift_gate_write(sqp, 0);
	shift_handback_forget(sqp);
	shift_handback_release(sqp);
}

/* Let posts go on, whether the handback has succeeded or not; sqp->lock. */
void shift_handback_release(struct shift_qp *sqp)
{
	bool held;

	lockdep_assert_held(&sqp->lock);
	spin_lock_bh(&sqp->ledger_lock);
	held = sqp->handback.hold;
	sqp->handback.hold = false;
	sqp->handback.aborted = false;
	spin_unlock_bh(&sqp->ledger_lock);
	shift_handback_drop(sqp);
	if (!held)
		return;
	wake_up_all(&sqp->rings.gate_wait);
	shift_qp_kick(sqp, SHIFT_QPB_KICK);
}

/*
 * Another failover begins, or the last one has ended: the provider need not rebase any more.
 * sqp->lock.
 */
void shift_handback_forget(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	spin_lock_bh(&sqp->ledger_lock);
	/* a provider that has begun to rebase its rings goes on */
	if (sqp->handback.rebase != SHIFT_REBASE_BUSY)
		sqp->handback.rebase = SHIFT_REBASE_NONE;
	spin_unlock_bh(&sqp->ledger_lock);
	/* the application's RESET may have lost the message; a second one does no harm */
	WRITE_ONCE(sqp->handback.nudged, false);
	sqp->handback.connected = false;
	sqp->handback.quiet = false;
	sqp->handback.alone = false;
}

/**
 * shift_handback_arm - both ends are stopped: ask the provider to rebase its rings
 * @sqp: the QP, locked; its own QP is in RESET.
 * @epoch: of the failover that was agreed on.
 * @qpn: the number of the peer's own QP.
 *
 * Context: process context.
 * Return: 0.
 */
int shift_handback_arm(struct shift_qp *sqp, u32 epoch, u32 qpn)
{
	lockdep_assert_held(&sqp->lock);
	sqp->fo.armed[0] = (struct shift_arming) {
		.epoch = epoch, .psn = shift_start_psn(sqp->peer.cookie, epoch),
	};
	sqp->handback.peer_qpn = qpn;
	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->handback.rebase != SHIFT_REBASE_BUSY)
		sqp->handback.rebase = SHIFT_REBASE_WANTED;
	spin_unlock_bh(&sqp->ledger_lock);
	wake_up_all(&sqp->rings.gate_wait);
	/* receives that the fence found completed */
	shift_recv_deliver(sqp);
	shift_handback_tell(sqp);
	return 0;
}

/**
 * shift_handback_ready - may the peer send to the application's own QP?
 * @sqp: the QP, locked, in SYNC or RUN.
 *
 * Connects that QP as soon as the provider has rebased its rings.  From then on a fence is that of
 * a QP on its default NIC.  If it cannot be connected, the deadline ends the handback.
 *
 * Context: process context; may sleep on the device.
 */
bool shift_handback_ready(struct shift_qp *sqp)
{
	int err;

	lockdep_assert_held(&sqp->lock);
	if (sqp->fo.state == SHIFT_ST_RUN || sqp->handback.connected)
		return true;
	if (READ_ONCE(sqp->handback.rebase) != SHIFT_REBASED) {
		/* the provider could not take a lock, or the message was lost: tell it again */
		shift_handback_tell(sqp);
		return false;
	}
	err = shift_qp_reconnect(sqp);
	if (err) {
		pr_warn_ratelimited("%s qp %u: cannot be connected again (%d)\n",
				    sqp->sdev->name, sqp->qpn, err);
		shift_handback_forget(sqp);
		return false;
	}
	sqp->app.sq_psn = shift_start_psn(sqp->cookie, sqp->fo.armed[0].epoch);
	sqp->app.rq_psn = sqp->fo.armed[0].psn;
	sqp->handback.connected = true;
	sqp->handback.quiet = true;
	sqp->fo.path = 0;
	/* from here on the driver flushes, not the ledger */
	spin_lock_bh(&sqp->ledger_lock);
	sqp->rec.live = false;
	sqp->rec.any_outstanding = false;
	spin_unlock_bh(&sqp->ledger_lock);
	clear_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
	return true;
}

/**
 * shift_handback_start - let the application's own QP send, because the peer's is connected
 * @sqp: the QP, locked.
 *
 * Before, what the application has posted would be repeated in vain, until the QP breaks: the
 * peer's provider may take longer than the retries of the QP.
 *
 * Context: process context; may sleep on the device.
 * Return: 0, also if it sends already; or a negative errno.
 */
int shift_handback_start(struct shift_qp *sqp)
{
	int err;

	lockdep_assert_held(&sqp->lock);
	if (!sqp->handback.quiet)
		return 0;
	err = shift_qp_restart(sqp);
	if (err)
		pr_warn_ratelimited("%s qp %u: cannot send again (%d)\n",
				    sqp->sdev->name, sqp->qpn, err);
	else
		sqp->handback.quiet = false;
	return err;
}

/**
 * shift_handback_returned - both ends' own QPs work: the handback has succeeded
 * @sqp: the QP, locked.
 *
 * Context: process context.
 */
void shift_handback_returned(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	sqp->fo.resp = sqp->fo.armed[0];
	sqp->fo.unfenced = false;
	sqp->fo.reason = SHIFT_REASON_NONE;
	sqp->fo.asks = 0;
	if (test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags)) {
		/* it broke before the peer was ready: no other completion may tell of that */
		shift_qp_kick(sqp, SHIFT_QPB_TRIGGER);
	} else {
		clear_bit(SHIFT_QPB_GATED, &sqp->pend.flags);
		clear_bit(SHIFT_QPB_KEPT, &sqp->pend.flags);
	}
	shift_handback_forget(sqp);
	shift_gate_write(sqp, 0);
	shift_handback_release(sqp);
	shift_stat_inc(SHIFT_STAT_HANDBACKS);
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
	set_bit(SHIFT_QPB_TIDY, &sqp->pend.flags);
	shift_move_done(sqp);
}
