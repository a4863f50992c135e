// SPDX-License-Identifier: GPL-2.0
/*
 * Ends of a failover other than success, and ends of a QP's protection: a failover is called off
 * or fails, the protection is taken away, or the application ends the QP.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/module.h>
#include "core/event.h"
#include "core/kick.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/stat.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "link/link.h"
#include "provider/provider.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"
#include "pure/ledger.h"
#include "pure/msg.h"
#include "srq/srq.h"

/**
 * shift_failover_abort - call a failover off
 * @sqp: the QP, locked, not fenced by that failover.
 *
 * Doorbells that were kept back are rung.  A late ACK may begin the failover all the same, so
 * fo.cause stays.
 *
 * Context: process context.
 */
void shift_failover_abort(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	sqp->fo.asks = 0;
	if (READ_ONCE(sqp->handback.hold) || (sqp->fo.to == SHIFT_PATH_OWN && sqp->fo.path)) {
		/* a handback, of which no event was sent: the QP stays on its proxy QP */
		sqp->fo.to = sqp->fo.path;
		shift_handback_release(sqp);
	} else {
		memset(&sqp->fo.times, 0, sizeof(sqp->fo.times));
		shift_stat_inc(SHIFT_STAT_ABANDONED);
		shift_notify_qp(sqp, SHIFT_QP_EV_ABANDONED, ktime_get_real_ns());
	}
	if (sqp->move.until)
		shift_qp_arm_unless_set(sqp, SHIFT_AGAIN_MS);
	if (sqp->fo.path) {
		/* the QP goes on there: posts of the meantime lie in the ring */
		shift_proxy_hold(sqp, false);
		shift_qp_kick(sqp, SHIFT_QPB_KICK);
		shift_qp_watch(sqp);
		return;
	}
	if (READ_ONCE(sqp->sdev->port_down))
		shift_qp_arm(sqp, SHIFT_AGAIN_MS);
	/* its PD may have got a reason meanwhile */
	set_bit(SHIFT_QPB_RETRY_PAIR, &sqp->pend.flags);
	shift_fence_open(sqp);
	if (!test_and_clear_bit(SHIFT_QPB_GATED, &sqp->pend.flags))
		return;
	/*
	 * A doorbell that is kept back just now is rung by its KICK.  None is rung without need,
	 * because rxe 6.12 puts its retransmit timer off for each.
	 */
	if (test_and_clear_bit(SHIFT_QPB_KEPT, &sqp->pend.flags))
		shift_provider_doorbell(sqp);
}

static void qp_send_gone(struct shift_qp *sqp)
{
	struct shift_msg m = { .type = SHIFT_MSG_GONE, .epoch = sqp->fo.highest };

	if (!sqp->peer.cookie)
		return;
	shift_path_send(sqp, sqp->fo.path, &m);
}

/**
 * shift_failover_push_pending_error - show an error for which the CQ had no room before
 * @sqp: the QP, locked.
 *
 * Context: process context.
 */
void shift_failover_push_pending_error(struct shift_qp *sqp)
{
	struct shift_abi_wc wc = { .status = sqp->fo.pending_status, .qp_num = sqp->qpn };
	struct shift_cq_slot slot = { .sqp = sqp };

	lockdep_assert_held(&sqp->lock);
	if (!sqp->fo.pending_status || !sqp->rings.usable)
		return;
	if (shift_cq_push(sqp->scq, &wc, &slot) == -ENOSPC)
		shift_qp_arm(sqp, SHIFT_AGAIN_MS);
	else
		sqp->fo.pending_status = 0;
}

/*
 * Show the error that was kept back, if no operation is outstanding that could be completed with
 * it.  An error of a proxy QP never was a completion of the application's.
 */
static bool push_kept_error(struct shift_qp *sqp, u32 status)
{
	if (sqp->fo.path || !test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags) ||
	    !sqp->rings.usable ||
	    sqp->rings.provider->flags & SHIFT_PROVIDES_OWN_RECORD ||
	    shift_ledger_count(&sqp->rec.ledger))
		return false;
	sqp->fo.pending_status = status;
	shift_failover_push_pending_error(sqp);
	return true;
}

/**
 * shift_failover_stop - before FAIL: stop the QP, so that none of its work is executed any more
 * @sqp: the QP, locked, in the state in which it gives up.
 *
 * Default and active QP are reset before the first error is shown: the peer's replay must not
 * write into buffers that the application takes back.  sqp->fo.fail_status is set if it was not.
 *
 * Context: process context; sleeps as a fence does.
 * Return: __SHIFT_EV_MAX; SHIFT_EV_APP_ERROR: the application's own error lies in its CQ, and is
 * shown instead; SHIFT_EV_UNSTOPPED: the default QP could not be stopped.
 */
enum shift_event shift_failover_stop(struct shift_qp *sqp)
{
	const char *state = shift_state_name(sqp->fo.state);
	bool errored;
	int err;

	lockdep_assert_held(&sqp->lock);
	if (!sqp->fo.fail_status)
		sqp->fo.fail_status = shift_proxy_own_error(sqp) ?: IB_WC_RETRY_EXC_ERR;
	if (!shift_qp_is_moved(sqp)) {
		err = shift_fence(sqp, &errored);
		if (err == -ECANCELED)
			return SHIFT_EV_APP_ERROR;
		if (!test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags)) {
			pr_warn_ratelimited("%s qp %u: gave up in %s, and could not be stopped (%d): %s\n",
					    sqp->sdev->name, sqp->qpn, state, err,
					    ib_wc_status_msg(sqp->fo.fail_status));
			return SHIFT_EV_UNSTOPPED;
		}
	}
	/* operations that were executed are completed as such */
	shift_proxy_fence(sqp);
	shift_proxy_stop(sqp);
	shift_srq_ended(sqp);
	set_bit(SHIFT_QPB_GATED, &sqp->pend.flags);
	pr_warn_ratelimited("%s qp %u: gave up in %s on path %u: %s\n", sqp->sdev->name, sqp->qpn,
			    state, sqp->fo.path, ib_wc_status_msg(sqp->fo.fail_status));
	return __SHIFT_EV_MAX;
}

/**
 * shift_failover_show_error - show the application that its QP has failed
 * @sqp: the QP, locked, in FAIL, and stopped.
 *
 * The first unfinished operation gets sqp->fo.fail_status, the others are flushed.
 *
 * Context: process context.
 */
void shift_failover_show_error(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	sqp->fo.reason = SHIFT_REASON_FAILED;
	shift_stat_inc(SHIFT_STAT_FAILED);
	shift_fence_open(sqp);
	push_kept_error(sqp, sqp->fo.fail_status);
	shift_replay_flush(sqp);
	shift_notify_qp(sqp, SHIFT_QP_EV_FAILED, ktime_get_real_ns());
	qp_send_gone(sqp);
}

/* Could the application's own QP still receive?  True if that cannot be told. */
static bool qp_receives(struct shift_qp *sqp)
{
	struct ib_qp_attr *attr;
	bool yes = true;

	if (!sqp->qp)
		return false;
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	if (attr && !shift_fence_query(sqp, attr))
		yes = attr->qp_state != IB_QPS_ERR && attr->qp_state != IB_QPS_RESET;
	kfree(attr);
	return yes;
}

/* The status of the error of its own QP that was kept back; 0: there is none. */
static u32 qp_kept_status(const struct shift_qp *sqp)
{
	return !sqp->fo.path && test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags) ?
	       sqp->fo.error_status : 0;
}

/**
 * shift_failover_claim_errors - the application ends a QP: take over errors that are kept back
 * @sqp: the QP, locked, on its own NIC.
 *
 * If an error is kept back, the module shows it and the flushes, once the ledger has the work
 * that was posted.  If that work cannot be told, the application gets the error alone.  If none
 * is kept back, none is from now on.
 *
 * Context: process context; sleeps as a fence does.
 */
void shift_failover_claim_errors(struct shift_qp *sqp)
{
	bool errored;
	int err;

	lockdep_assert_held(&sqp->lock);
	if (!shift_qp_is_protected(sqp) || !sqp->rings.usable ||
	    !shift_qp_keeps_error(sqp))
		return;
	err = shift_fence(sqp, &errored);
	if (err && err != -EIO && err != -ECANCELED && push_kept_error(sqp, sqp->fo.error_status))
		sqp->fo.error_status = IB_WC_WR_FLUSH_ERR;
}

/**
 * shift_failover_app - the application has caused an error, or ends the QP
 * @sqp: the QP, locked, in APP.
 *
 * The application sees what it would have seen without the module.
 *
 * Context: process context; sleeps as a fence of the proxy QP does.
 */
void shift_failover_app(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	sqp->fo.reason = SHIFT_REASON_APP_ERROR;
	qp_send_gone(sqp);
	if (shift_qp_is_moved(sqp)) {
		/* the NIC no longer has the work, so the module flushes it */
		shift_proxy_fence(sqp);
		shift_proxy_stop(sqp);
		shift_srq_ended(sqp);
		sqp->fo.fail_status = qp_kept_status(sqp) ?: IB_WC_WR_FLUSH_ERR;
		shift_replay_flush(sqp);
	} else {
		if (sqp->srqm.ssrq && !qp_receives(sqp))
			shift_srq_ended(sqp);
		/* a user in the kernel may have something kept back that was not told of yet */
		if ((test_and_clear_bit(SHIFT_QPB_GATED, &sqp->pend.flags) ||
		     (sqp->rings.usable &&
		      sqp->rings.provider->flags & SHIFT_PROVIDES_OWN_RECORD)) &&
		    sqp->qp && !test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags))
			shift_provider_doorbell(sqp);
	}
	shift_fence_open(sqp);
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
}

/**
 * shift_failover_leave_to_driver - end a QP that could not be stopped
 * @sqp: the QP, locked, in APP, on its own NIC.
 *
 * Its work cannot be taken over, so its driver flushes it, as without the module.
 *
 * Context: process context; may sleep on the device.
 */
void shift_failover_leave_to_driver(struct shift_qp *sqp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	lockdep_assert_held(&sqp->lock);
	shift_stat_inc(SHIFT_STAT_FAILED);
	shift_failover_app(sqp);
	sqp->fo.reason = SHIFT_REASON_FAILED;
	sqp->sdev->saved.modify_qp(sqp->qp, &attr, IB_QP_STATE, NULL);
	push_kept_error(sqp, sqp->fo.fail_status);
}

/**
 * shift_failover_leave_protection - let the QP go on as without the module
 * @sqp: the QP, locked, in OFF; its own QP works, and none of its errors is kept back.
 *
 * Context: process context; may sleep.
 */
void shift_failover_leave_protection(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	qp_send_gone(sqp);
	/*
	 * shift_qp_keeps_error() has set it, to have errors shown.  If one was, the QP is
	 * broken, and APP_ERROR has to follow, so that it is not paired again.
	 */
	spin_lock_bh(&sqp->inbox_lock);
	if (!test_bit(SHIFT_QPB_SHOWN, &sqp->pend.flags))
		clear_bit(SHIFT_QPB_APP, &sqp->pend.flags);
	spin_unlock_bh(&sqp->inbox_lock);
	if (test_bit(SHIFT_QPB_GATED, &sqp->pend.flags))
		shift_failover_abort(sqp);
	shift_pairing_drop(sqp);
	/* what stands against it may pass: pair again, if it is still registered and connected */
	shift_qp_arm(sqp, SHIFT_AGAIN_MS);
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
}

/**
 * shift_pairing_drop - forget the peer
 * @sqp: the QP, locked, in any state without protection.
 *
 * Its epochs stay, as it may be paired again with the cookies that both ends have.
 *
 * Context: process context; may sleep.
 */
void shift_pairing_drop(struct shift_qp *sqp)
{
	int i;

	lockdep_assert_held(&sqp->lock);
	sqp->peer.ok = false;
	sqp->peer.told = false;
	sqp->peer.cookie = 0;
	sqp->peer.tries = 0;
	sqp->fo.asks = 0;
	sqp->move.until = 0;
	sqp->fo.error_status = 0;
	clear_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags);
	sqp->fo.unfenced = false;
	WRITE_ONCE(sqp->peer.resolved, false);
	WRITE_ONCE(sqp->peer.mute, false);
	xa_destroy(&sqp->peer.rkeys);
	for (i = 0; i < ARRAY_SIZE(sqp->peer.link); i++)
		shift_path_drop_link(sqp, i);
}
