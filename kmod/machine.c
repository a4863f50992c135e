// SPDX-License-Identifier: GPL-2.0
/*
 * The machine of a QP: its work item turns pending bits and messages into events
 * of the state machine, one at a time, under sqp->lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/sched/mm.h>
#include "switch.h"
#include "trace.h"

static enum shift_event message_event(const struct shift_msg *m)
{
	switch (m->type) {
	case SHIFT_MSG_REQ:
		return SHIFT_EV_RX_REQ;
	case SHIFT_MSG_ACK:
		return SHIFT_EV_RX_ACK;
	case SHIFT_MSG_NACK:
		return SHIFT_EV_RX_NACK;
	case SHIFT_MSG_PROGRESS:
		switch (m->progress.status) {
		case SHIFT_PROGRESS_OK:
			return SHIFT_EV_RX_PROGRESS;
		case SHIFT_PROGRESS_UNKNOWN:
			return SHIFT_EV_RX_UNKNOWN;
		default:
			return SHIFT_EV_RX_APP_ERR;
		}
	case SHIFT_MSG_READY:
		return SHIFT_EV_RX_READY;
	default:
		return SHIFT_EV_RX_GONE;
	}
}

/*
 * A QP on its own device that cannot be moved as it is will see its own error; one of
 * which that cannot be told now is looked at again, and when it has broken.
 */
static bool immovable(struct shift_qp *sqp)
{
	int err = shift_provider_movable(sqp);

	if (err && err != -EAGAIN)
		shift_switch_unprotect(sqp, SHIFT_REASON_OPERATION);
	else if (err && READ_ONCE(sqp->sdev->port_down))
		shift_switch_arm(sqp, SHIFT_AGAIN_MS);
	return err;
}

/*
 * The peer asks a QP in RUN that cannot follow.  A move that is only wanted changes nothing
 * then; nor does it if an atomic would have to be stopped.
 */
static bool refuses(struct shift_qp *sqp, const struct shift_msg *m)
{
	if (!shift_move_settles(m->req.cause))
		return !sqp->path && immovable(sqp);
	if (shift_move_stays(sqp))
		return true;
	if (m->req.cause != SHIFT_CAUSE_OPERATOR || !shift_switch_healthy(sqp) ||
	    !shift_switch_joins(sqp, m) || shift_move_settle(sqp, m->req.to))
		return false;
	if (m->req.to == SHIFT_PATH_OWN)
		shift_own_release(sqp);		/* nobody was told of it */
	else
		shift_switch_call_off(sqp);
	return true;
}

static void handle_message(struct shift_qp *sqp, const struct shift_msg *m)
{
	bool mine;

	trace_shift_msg_rx(sqp->sdev->name, sqp->qpn, m->type, m->epoch);
	if (m->type == SHIFT_MSG_PAIR) {
		shift_pairing_message(sqp, m);
		return;
	}
	/* looked up before its QP, or ours, began another life */
	if (m->src_cookie != sqp->peer_cookie || m->dst_cookie != sqp->cookie)
		return;
	if (m->type == SHIFT_MSG_REQ) {
		/* one backup; and its own QP is given back as target 3 */
		if (!m->req.to || m->req.to > SHIFT_PATH_OWN) {
			shift_switch_nack(sqp, m);
			return;
		}
		if (sqp->state == SHIFT_ST_RUN && refuses(sqp, m)) {
			if (sqp->state == SHIFT_ST_RUN)
				shift_switch_nack(sqp, m);	/* busy */
			return;
		}
	}
	if (m->type == SHIFT_MSG_RESOLVE) {
		shift_pairing_resolve(sqp, m);
		return;
	}
	if (m->type == SHIFT_MSG_GONE) {
		shift_switch_peer_gone(sqp);
		return;
	}
	/* its own QP does not work before its provider is ready: the peer's READY waits */
	if (m->type == SHIFT_MSG_READY && sqp->state == SHIFT_ST_SYNC &&
	    sqp->to == SHIFT_PATH_OWN && !shift_own_ready(sqp)) {
		shift_inbox_keep(sqp, m);
		return;
	}
	/* what it said before its end is of no use then */
	if ((sqp->own_alone || message_event(m) == SHIFT_EV_RX_APP_ERR) && shift_own_alone(sqp))
		return;
	mine = m->type == SHIFT_MSG_NACK && m->epoch == sqp->highest;
	shift_switch_event(sqp, message_event(m), m);
	/* settled for it, and not joined after all; one that broke is held for its fault */
	if (m->type == SHIFT_MSG_REQ && sqp->state == SHIFT_ST_RUN && shift_move_holds(sqp) &&
	    shift_switch_healthy(sqp))
		shift_switch_call_off(sqp);
	if (mine)
		sqp->highest = shift_epoch_learn(sqp->highest, m->nack.busy_epoch);
}

static bool port_active(struct shift_qp *sqp)
{
	struct ib_port_attr attr;

	if (READ_ONCE(sqp->sdev->port_down) ||
	    !shift_gid_has_carrier(sqp->sdev->ibdev, &sqp->sgid))
		return false;
	return !ib_query_port(sqp->sdev->ibdev, 1, &attr) && attr.state == IB_PORT_ACTIVE;
}

/* Is the NIC that the QP runs on without a port? */
static bool port_lost(struct shift_qp *sqp)
{
	bool lost;

	if (sqp->path != SHIFT_PATH_BACKUP)
		return READ_ONCE(sqp->sdev->port_down);
	down_read(&sqp->sdev->mirror_sem);
	lost = sqp->sdev->backup && READ_ONCE(sqp->sdev->backup->port_down);
	up_read(&sqp->sdev->mirror_sem);
	return lost;
}

/* Why the path that it is on is suspected; NONE: it is not. */
static enum shift_cause fault_cause(struct shift_qp *sqp, bool silent)
{
	if (test_bit(SHIFT_QP_ERRORED, &sqp->flags))
		return SHIFT_CAUSE_CQE;
	if (port_lost(sqp))
		return SHIFT_CAUSE_PORT;
	if (silent)
		return SHIFT_CAUSE_HEARTBEAT;
	/* an event of the NIC that it is not on says nothing */
	return sqp->path ? SHIFT_CAUSE_NONE : SHIFT_CAUSE_PORT;
}

static void handle_fault(struct shift_qp *sqp)
{
	bool silent = test_and_clear_bit(SHIFT_QP_SILENT, &sqp->flags);
	enum shift_cause cause = fault_cause(sqp, silent);

	if (sqp->state != SHIFT_ST_RUN || !cause)
		return;
	if (sqp->path == 0 && test_bit(SHIFT_QP_ERRORED, &sqp->flags) &&
	    shift_provider_cause(sqp) == IB_WC_LOC_QP_OP_ERR && port_active(sqp)) {
		/* the port is fine: the application's own mistake after all */
		shift_switch_fail(sqp, sqp->error_status);
		return;
	}
	if (sqp->path == 0 && !test_bit(SHIFT_QP_ERRORED, &sqp->flags)) {
		/* a suspicion may be wrong */
		if (cause == SHIFT_CAUSE_HEARTBEAT ? shift_provider_movable(sqp) : immovable(sqp))
			return;
	}
	sqp->cause = cause;
	shift_switch_event(sqp, SHIFT_EV_FAULT, NULL);
	if (sqp->state != SHIFT_ST_RUN)
		return;
	if (test_bit(SHIFT_QP_ERRORED, &sqp->flags))
		shift_switch_arm(sqp, 1000);	/* then it fails, unless a path appears */
	else if (port_lost(sqp))
		shift_switch_arm(sqp, SHIFT_AGAIN_MS);
}

static void handle_standby_error(struct shift_qp *sqp)
{
	u32 own = shift_standby_own_error(sqp);

	if (!shift_standby_error(sqp) || sqp->state != SHIFT_ST_RUN || !sqp->path)
		return;
	if (own) {
		shift_switch_fail(sqp, own);
		return;
	}
	set_bit(SHIFT_QP_ERRORED, &sqp->flags);
	handle_fault(sqp);
}

static void handle_kick(struct shift_qp *sqp)
{
	if (sqp->path && (sqp->state == SHIFT_ST_RUN || sqp->state == SHIFT_ST_ASKED)) {
		shift_recv_pump(sqp);
		shift_replay_pump(sqp);
	} else if (sqp->state == SHIFT_ST_FAIL || sqp->state == SHIFT_ST_APP) {
		shift_replay_flush(sqp);
	} else if (!test_bit(SHIFT_QP_GATED, &sqp->flags) &&
		   !test_bit(SHIFT_QP_FENCED, &sqp->flags)) {
		/* kept by a gate that opened meanwhile */
		shift_provider_doorbell(sqp);
	}
}

/* Nothing that waits on a QP of the kernel's does so without a deadline. */
static void watch(struct shift_qp *sqp)
{
	handle_kick(sqp);
	if (shift_standby_watch(sqp)) {
		set_bit(SHIFT_QP_SILENT, &sqp->flags);
		handle_fault(sqp);
	}
	shift_switch_watch(sqp);
}

static void handle_deadline(struct shift_qp *sqp)
{
	if (sqp->own_alone && shift_own_alone(sqp))
		return;
	if (shift_fsm_deadline_ms(sqp->state) && ktime_get_ns() < sqp->deadline_ns) {
		if (sqp->state == SHIFT_ST_AGREE || sqp->state == SHIFT_ST_SYNC)
			shift_switch_resend(sqp);
		shift_switch_arm(sqp, SHIFT_RESEND_MS);
		if (sqp->path)
			handle_kick(sqp);
		return;
	}
	switch (sqp->state) {
	case SHIFT_ST_OFF:
		set_bit(SHIFT_QP_RETRY_PAIR, &sqp->flags);
		break;
	case SHIFT_ST_APP:
	case SHIFT_ST_FAIL:
		shift_switch_owed(sqp);
		shift_replay_flush(sqp);
		break;
	case SHIFT_ST_RUN:
		if (!test_bit(SHIFT_QP_ERRORED, &sqp->flags)) {
			if (sqp->path)
				watch(sqp);
			if (port_lost(sqp))
				handle_fault(sqp);
			shift_move_again(sqp);
			shift_own_run(sqp);
			break;
		}
		fallthrough;
	default:
		shift_switch_event(sqp, SHIFT_EV_DEADLINE, NULL);
	}
}

/* One round: everything that is pending now.  False when nothing was. */
static bool machine_round(struct shift_qp *sqp)
{
	struct shift_msg m;
	bool any = false;
	u32 kept = 0;	/* for a later state */

	if (test_and_clear_bit(SHIFT_QP_APP, &sqp->flags)) {
		shift_switch_event(sqp, SHIFT_EV_APP_ERROR, NULL);
		any = true;
	}
	while (shift_inbox_take(sqp, &m, kept)) {
		enum shift_state from = sqp->state;

		handle_message(sqp, &m);
		/* or a new one has come, and with it this work once more */
		if (sqp->state == from && READ_ONCE(sqp->inbox.valid) & BIT(m.type)) {
			kept |= BIT(m.type);
			continue;
		}
		any = true;
		if (sqp->state != from)
			kept = 0;
	}
	if (test_and_clear_bit(SHIFT_QP_STANDBY_ERR, &sqp->flags)) {
		handle_standby_error(sqp);
		any = true;
	}
	if (test_and_clear_bit(SHIFT_QP_FAULT, &sqp->flags)) {
		handle_fault(sqp);
		any = true;
	}
	if (test_and_clear_bit(SHIFT_QP_DEADLINE, &sqp->flags)) {
		handle_deadline(sqp);
		any = true;
	}
	if (test_and_clear_bit(SHIFT_QP_MOVE, &sqp->flags)) {
		shift_move_run(sqp);
		any = true;
	}
	if (test_and_clear_bit(SHIFT_QP_OWN, &sqp->flags)) {
		shift_own_run(sqp);
		any = true;
	}
	if (test_and_clear_bit(SHIFT_QP_FOLLOW, &sqp->flags)) {
		shift_move_follow(sqp);
		any = true;
	}
	if (test_and_clear_bit(SHIFT_QP_READY, &sqp->flags)) {
		shift_switch_ready(sqp);
		any = true;
	}
	if (test_and_clear_bit(SHIFT_QP_RETRY_PAIR, &sqp->flags)) {
		if (sqp->state == SHIFT_ST_OFF)
			shift_pairing_run(sqp);
		any = true;
	}
	if (test_and_clear_bit(SHIFT_QP_FIRST, &sqp->flags)) {
		shift_notify_qp(sqp, SHIFT_QP_EV_COMPLETION, sqp->times.completion);
		any = true;
	}
	if (test_and_clear_bit(SHIFT_QP_KICK, &sqp->flags)) {
		handle_kick(sqp);
		any = true;
	}
	if (sqp->state == SHIFT_ST_RUN && test_and_clear_bit(SHIFT_QP_TIDY, &sqp->flags)) {
		shift_standby_tidy(sqp);
		any = true;
	}
	return any;
}

/* The QP's work item: WQ_MEM_RECLAIM, and nothing here may wait for I/O. */
void shift_switch_work(struct work_struct *work)
{
	struct shift_qp *sqp = container_of(work, struct shift_qp, work);
	unsigned int noio = memalloc_noio_save();
	int rounds = 8;

	mutex_lock(&sqp->lock);
	while (sqp->qp && !test_bit(SHIFT_QP_DEAD, &sqp->flags) && rounds--)
		if (!machine_round(sqp))
			break;
	if (sqp->state == SHIFT_ST_OFF)
		shift_inbox_clear(sqp);
	mutex_unlock(&sqp->lock);
	memalloc_noio_restore(noio);
}
