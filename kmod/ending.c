// SPDX-License-Identifier: GPL-2.0
/*
 * How a switch or a QP's protection ends other than well: called off, failed,
 * taken away, or overtaken by the application.  All under sqp->lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/slab.h>
#include "switch.h"

/*
 * The switch is called off: nothing changed, doorbells that were kept are rung.  An ACK that
 * is late may begin it all the same: for what was asked, so that the cause stays.
 */
void shift_switch_call_off(struct shift_qp *sqp)
{
	sqp->asks = 0;
	if (READ_ONCE(sqp->own_hold) || (sqp->to == SHIFT_PATH_OWN && sqp->path)) {
		/* it stays on a QP of ours; nobody was told otherwise */
		sqp->to = sqp->path;
		shift_own_release(sqp);
	} else {
		memset(&sqp->times, 0, sizeof(sqp->times));
		shift_stat_inc(SHIFT_STAT_ABANDONED);
		shift_notify_qp(sqp, SHIFT_QP_EV_ABANDONED, ktime_get_real_ns());
	}
	if (sqp->move_until)
		shift_switch_later(sqp, SHIFT_AGAIN_MS);
	if (sqp->path) {
		/* it goes on there: what was posted meanwhile lies in the ring */
		shift_standby_hold(sqp, false);
		shift_switch_kick(sqp, SHIFT_QP_KICK);
		shift_switch_watch(sqp);
		return;
	}
	if (READ_ONCE(sqp->sdev->port_down))
		shift_switch_arm(sqp, SHIFT_AGAIN_MS);
	shift_fence_open(sqp);
	if (!test_and_clear_bit(SHIFT_QP_GATED, &sqp->flags))
		return;
	/*
	 * Doorbells that were kept; one that is being kept just now rings by its KICK.  No
	 * other: rxe 6.12 puts its retransmit timer off for each.
	 */
	if (test_and_clear_bit(SHIFT_QP_KEPT, &sqp->flags))
		shift_provider_doorbell(sqp);
}

static void send_gone(struct shift_qp *sqp)
{
	struct shift_msg m = { .type = SHIFT_MSG_GONE, .epoch = sqp->highest };

	if (!sqp->peer_cookie)
		return;
	m.gone.reason = sqp->reason;
	shift_switch_send(sqp, sqp->path, &m);
}

/**
 * shift_switch_owed - an error that was kept back, and had no room until now
 * @sqp: the QP, locked.
 */
void shift_switch_owed(struct shift_qp *sqp)
{
	struct shift_abi_wc wc = { .status = sqp->owed_status, .qp_num = sqp->qpn };

	if (!sqp->owed_status || !sqp->registered)
		return;
	if (shift_cq_push(sqp->scq, &wc, NULL) == -ENOSPC)
		shift_switch_arm(sqp, SHIFT_AGAIN_MS);
	else
		sqp->owed_status = 0;
}

/*
 * The error that was kept back, if there is nothing outstanding to give it to.  One of a
 * QP of the kernel's was nobody's completion yet.
 */
static bool push_kept_error(struct shift_qp *sqp, u32 status)
{
	if (sqp->path || !test_bit(SHIFT_QP_ERRORED, &sqp->flags) || !sqp->registered ||
	    shift_ledger_count(&sqp->ledger))
		return false;
	sqp->owed_status = status;
	shift_switch_owed(sqp);
	return true;
}

/*
 * It can neither be stopped nor be taken over: the driver's own flushes are what the
 * application gets, as without us.
 */
static void fail_unfenced(struct shift_qp *sqp, u32 status, int err)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	pr_warn_ratelimited("%s qp %u: gave up in %s, and could not be stopped (%d): %s\n",
			    sqp->sdev->name, sqp->qpn, shift_state_name(sqp->state), err,
			    ib_wc_status_msg(status));
	shift_stat_inc(SHIFT_STAT_FAILED);
	shift_switch_state(sqp, SHIFT_ST_APP);
	shift_switch_app(sqp);
	sqp->reason = SHIFT_REASON_FAILED;
	sqp->sdev->saved.modify_qp(sqp->qp, &attr, IB_QP_STATE, NULL);
	push_kept_error(sqp, status);
}

/**
 * shift_switch_fail - the end of a failover that cannot be completed
 * @sqp: the QP.
 * @status: what the first unfinished operation gets; the rest is flushed.
 *
 * Default and active QP are reset before the first error is shown: the peer's
 * replay must not write into buffers that the application takes back.
 */
void shift_switch_fail(struct shift_qp *sqp, u32 status)
{
	enum shift_state from = sqp->state;
	bool errored;
	int err;

	if (from == SHIFT_ST_FAIL)
		return;
	if (sqp->path == 0 && !test_bit(SHIFT_QP_FENCED, &sqp->flags)) {
		err = shift_fence(sqp, &errored);
		if (err == -ECANCELED) {
			/* the application's own error lies in its CQ: that is what it gets */
			shift_switch_state(sqp, SHIFT_ST_APP);
			shift_switch_app(sqp);
			return;
		}
		if (!test_bit(SHIFT_QP_FENCED, &sqp->flags)) {
			fail_unfenced(sqp, status, err);
			return;
		}
	}
	/* what was executed still counts */
	shift_standby_fence(sqp);
	shift_standby_stop(sqp);
	shift_srq_ended(sqp);
	set_bit(SHIFT_QP_GATED, &sqp->flags);
	shift_switch_state(sqp, SHIFT_ST_FAIL);
	pr_warn_ratelimited("%s qp %u: gave up in %s on path %u: %s\n", sqp->sdev->name,
			    sqp->qpn, shift_state_name(from), sqp->path,
			    ib_wc_status_msg(status));
	sqp->reason = SHIFT_REASON_FAILED;
	sqp->fail_status = status;
	shift_stat_inc(SHIFT_STAT_FAILED);
	shift_fence_open(sqp);
	push_kept_error(sqp, status);
	shift_replay_flush(sqp);
	shift_notify_qp(sqp, SHIFT_QP_EV_FAILED, ktime_get_real_ns());
	send_gone(sqp);
}

/* Could its own QP still receive?  If that cannot be told, it could. */
static bool receives(struct shift_qp *sqp)
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

/* What was kept back of its own NIC's; one of a QP of ours was nobody's completion yet. */
static u32 kept_status(const struct shift_qp *sqp)
{
	return !sqp->path && test_bit(SHIFT_QP_ERRORED, &sqp->flags) ? sqp->error_status : 0;
}

/* None is kept back from now on, or one was: the verdict looks under the same lock. */
static bool keeps_errors(struct shift_qp *sqp)
{
	bool errored;

	spin_lock_bh(&sqp->inbox_lock);
	errored = test_bit(SHIFT_QP_ERRORED, &sqp->flags);
	if (!errored)
		set_bit(SHIFT_QP_APP, &sqp->flags);
	spin_unlock_bh(&sqp->inbox_lock);
	return errored;
}

/**
 * shift_switch_take_over - the application ends a QP whose errors are kept back
 * @sqp: the QP, locked, on its own NIC.
 *
 * They are ours to show, once the ledger has what was posted.  If that cannot be told, the
 * error is all that it gets.  From now on none is kept back that was not before.
 */
void shift_switch_take_over(struct shift_qp *sqp)
{
	bool errored;
	int err;

	if (sqp->state == SHIFT_ST_OFF || sqp->state == SHIFT_ST_APP || !sqp->registered)
		return;
	if (!keeps_errors(sqp))
		return;
	err = shift_fence(sqp, &errored);
	if (err && err != -EIO && err != -ECANCELED && push_kept_error(sqp, sqp->error_status))
		sqp->error_status = IB_WC_WR_FLUSH_ERR;
}

/* The application's own error or teardown: it sees what it would have seen. */
void shift_switch_app(struct shift_qp *sqp)
{
	bool away = sqp->path || test_bit(SHIFT_QP_FENCED, &sqp->flags);

	sqp->reason = SHIFT_REASON_APP_ERROR;
	send_gone(sqp);
	if (away) {
		/* the hardware cannot flush what it no longer has */
		shift_standby_fence(sqp);
		shift_standby_stop(sqp);
		shift_srq_ended(sqp);
		sqp->fail_status = kept_status(sqp) ?: IB_WC_WR_FLUSH_ERR;
		shift_replay_flush(sqp);
	} else {
		if (sqp->ssrq && !receives(sqp))
			shift_srq_ended(sqp);
		if (test_and_clear_bit(SHIFT_QP_GATED, &sqp->flags) && sqp->qp &&
		    !test_bit(SHIFT_QP_DEAD, &sqp->flags))
			shift_provider_doorbell(sqp);
	}
	shift_fence_open(sqp);
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
}

/**
 * shift_switch_unprotect - from now on the QP is as without the module
 * @sqp: the QP.
 * @reason: what operators are told.
 *
 * One that has already left its default NIC, or whose error was kept back, cannot
 * be: it fails.
 */
void shift_switch_unprotect(struct shift_qp *sqp, enum shift_reason reason)
{
	bool was = sqp->state == SHIFT_ST_RUN;

	if (sqp->state == SHIFT_ST_APP || sqp->state == SHIFT_ST_FAIL) {
		shift_switch_state(sqp, SHIFT_ST_OFF);
		shift_pairing_drop(sqp);
		sqp->owed_status = 0;
		sqp->reason = reason;
		return;
	}
	if (sqp->path || test_bit(SHIFT_QP_FENCED, &sqp->flags) ||
	    (sqp->state != SHIFT_ST_OFF && keeps_errors(sqp))) {
		shift_switch_fail(sqp, IB_WC_RETRY_EXC_ERR);
		return;
	}
	if (sqp->state != SHIFT_ST_OFF) {
		sqp->reason = reason;
		send_gone(sqp);
		shift_switch_state(sqp, SHIFT_ST_OFF);
		clear_bit(SHIFT_QP_APP, &sqp->flags);
		if (test_bit(SHIFT_QP_GATED, &sqp->flags))
			shift_switch_call_off(sqp);
	}
	shift_pairing_drop(sqp);
	sqp->reason = reason;
	sqp->asks = 0;
	if (was)
		shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
}

/**
 * shift_switch_backup_gone - the backup device is being removed
 * @sqp: the QP, locked.
 *
 * One that is home again, by a QP of ours, goes on there.  Its peer finds out when it
 * asks for the backup.
 */
void shift_switch_backup_gone(struct shift_qp *sqp)
{
	struct shift_link *link = sqp->link[1];

	if (sqp->state == SHIFT_ST_FAIL || sqp->state == SHIFT_ST_APP) {
		/* it is over, but what is posted to it is flushed until the end */
		shift_pairing_drop(sqp);
		shift_standby_destroy(sqp);
		return;
	}
	if (sqp->path == SHIFT_PATH_HOME && sqp->state == SHIFT_ST_ASKED &&
	    shift_switch_healthy(sqp)) {
		shift_switch_state(sqp, SHIFT_ST_RUN);
		shift_switch_call_off(sqp);
	}
	if (sqp->path != SHIFT_PATH_HOME || sqp->state != SHIFT_ST_RUN) {
		shift_switch_unprotect(sqp, SHIFT_REASON_DEVICE_GONE);
		shift_standby_destroy(sqp);
		return;
	}
	shift_standby_drop(sqp, SHIFT_PATH_BACKUP);
	sqp->link[1] = NULL;
	if (link) {
		shift_link_guard(link, false);
		shift_link_put(link);
	}
	sqp->reason = SHIFT_REASON_DEVICE_GONE;
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
}

/**
 * shift_switch_peer_gone - the peer's QP is no more
 * @sqp: the QP, locked.
 */
void shift_switch_peer_gone(struct shift_qp *sqp)
{
	if (shift_own_alone(sqp))
		return;
	if (sqp->path && (sqp->state == SHIFT_ST_RUN || shift_switch_healthy(sqp)))
		sqp->peer_ok = false;	/* our sends will find out; nothing to go back to */
	else
		shift_switch_event(sqp, SHIFT_EV_RX_GONE, NULL);
}
