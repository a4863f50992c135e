// SPDX-License-Identifier: GPL-2.0
/*
 * The machine of a QP: its work item turns pending bits and messages into events
 * of the state machine, one at a time, under sqp->lock.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "core/event.h"
#include "core/ib.h"
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/reclaim.h"
#include "core/stat.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "provider/provider.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"
#include "pure/msg.h"

#define PATHLESS_MS	1000	/* for a path of a QP that is broken; scaled */

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
		return m->progress.status == SHIFT_PROGRESS_OK ? SHIFT_EV_RX_PROGRESS :
								 SHIFT_EV_RX_UNKNOWN;
	case SHIFT_MSG_READY:
		return SHIFT_EV_RX_READY;
	default:
		return SHIFT_EV_RX_GONE;
	}
}

/*
 * Does a QP on its default NIC hold work that cannot be moved?  Its protection ends then, and the
 * application sees the QP's own error.  If that cannot be told now, or the QP stays only as long as
 * its own retries last, it is asked again later.
 */
static bool qp_is_immovable(struct shift_qp *sqp, int err)
{
	if (err && err != -EAGAIN)
		shift_failover_unprotect(sqp, SHIFT_REASON_OPERATION);
	else if (err && READ_ONCE(sqp->sdev->port_down))
		shift_qp_arm(sqp, SHIFT_AGAIN_MS);
	return err;
}

/*
 * Is a REQ of the peer refused, because this QP, which is in RUN, cannot follow?  A fault ends the
 * protection of such a QP.  A move changes nothing; it is also refused if an atomic is under way.
 */
static bool req_is_refused(struct shift_qp *sqp, const struct shift_msg *m)
{
	int err;

	if (!shift_move_settles(m->req.cause)) {
		if (sqp->fo.path)
			return false;
		/* if the peer's QP is broken, no retries of this one can bring it back */
		return qp_is_immovable(sqp, shift_qp_stays(sqp, m->req.cause != SHIFT_CAUSE_CQE));
	}
	if (shift_move_stays(sqp))
		return true;
	if (m->req.cause != SHIFT_CAUSE_OPERATOR || !shift_path_healthy(sqp) ||
	    !shift_failover_joins(sqp, m) || shift_target_prepare(sqp, m->req.to))
		return false;
	err = shift_move_settle(sqp, m->req.to);
	if (err == -EIO)
		shift_failover_fail(sqp, sqp->fo.fail_status);
	if (err != -EBUSY)
		return false;
	if (m->req.to == SHIFT_PATH_OWN)
		shift_handback_release(sqp);		/* no event was sent for it */
	else
		shift_failover_abort(sqp);
	return true;
}

/* Does the peer leave a silent path on which this end's own operations go on, or may go on? */
static int req_is_doubted(struct shift_qp *sqp, const struct shift_msg *m)
{
	if (m->req.cause != SHIFT_CAUSE_HEARTBEAT || sqp->fo.state != SHIFT_ST_RUN ||
	    !shift_path_healthy(sqp) || !shift_failover_joins(sqp, m))
		return 0;
	return shift_silence_asked(sqp);
}

static void handle_message(struct shift_qp *sqp, const struct shift_msg *m)
{
	bool mine;
	int err;

	if (m->type == SHIFT_MSG_PAIR) {
		shift_pairing_message(sqp, m);
		return;
	}
	/* one of the two QPs was reset after the message was put into the mailbox */
	if (m->src_cookie != sqp->peer.cookie || m->dst_cookie != sqp->cookie)
		return;
	if (m->type == SHIFT_MSG_REQ) {
		/* a path, or a handback; nobody can be asked to go to path 0 */
		if (!m->req.to || m->req.to > SHIFT_PATH_OWN) {
			shift_failover_nack(sqp, m);
			return;
		}
		err = req_is_doubted(sqp, m);
		if (err == -EAGAIN) {
			shift_qp_keep_msg(sqp, m);
			return;
		}
		if (err) {
			shift_failover_nack(sqp, m);	/* busy */
			return;
		}
		if (sqp->fo.state == SHIFT_ST_RUN && req_is_refused(sqp, m)) {
			if (sqp->fo.state == SHIFT_ST_RUN)
				shift_failover_nack(sqp, m);	/* busy */
			return;
		}
	}
	if (m->type == SHIFT_MSG_RESOLVE) {
		shift_rkey_resolve(sqp, m);
		return;
	}
	if (m->type == SHIFT_MSG_GONE) {
		shift_failover_peer_gone(sqp);
		return;
	}
	/* in a handback the peer's READY waits until this end's provider is ready */
	if (m->type == SHIFT_MSG_READY && sqp->fo.state == SHIFT_ST_SYNC &&
	    sqp->fo.to == SHIFT_PATH_OWN && !shift_handback_ready(sqp)) {
		shift_qp_keep_msg(sqp, m);
		return;
	}
	/* the peer's QP has gone: its earlier messages are of no use */
	if (sqp->handback.alone)
		return;
	mine = m->type == SHIFT_MSG_NACK && m->epoch == sqp->fo.highest;
	shift_failover_event(sqp, message_event(m), m);
	/* the QP settled and did not join: it goes on, unless it broke and waits for its fault */
	if (m->type == SHIFT_MSG_REQ && sqp->fo.state == SHIFT_ST_RUN && shift_move_holds(sqp) &&
	    shift_path_healthy(sqp))
		shift_failover_abort(sqp);
	if (mine)
		sqp->fo.highest = shift_epoch_learn(sqp->fo.highest, m->nack.busy_epoch);
}

/*
 * The interface of the QP's address need not be the port's, and a port may have been down before
 * anybody heard its events.  What the RDMA core has noted of the port is known without the driver.
 */
static bool port_active(struct shift_qp *sqp)
{
	return !READ_ONCE(sqp->sdev->port_down) &&
	       shift_gid_has_carrier(sqp->sdev->ibdev, &sqp->app.sgid) &&
	       shift_port_is_active(sqp->sdev->ibdev, !sqp->kernel);
}

/*
 * An error of the default NIC's may be no reason for a failover: then the QP fails.  False if so,
 * or if that is not known yet.
 */
static bool error_is_fault(struct shift_qp *sqp)
{
	enum shift_verdict verdict = SHIFT_VERDICT_FALSE;
	bool own = !sqp->report.open && shift_provider_cause(sqp) == IB_WC_LOC_QP_OP_ERR &&
		   port_active(sqp);

	/* the port is fine: a local error is the application's own mistake after all */
	if (!own) {
		verdict = shift_report_judge(sqp);
		if (verdict == SHIFT_VERDICT_FALSE)
			shift_stat_inc(SHIFT_STAT_DISBELIEVED);
	}
	if (verdict == SHIFT_VERDICT_FALSE)
		shift_failover_fail(sqp, sqp->fo.error_status);
	return verdict == SHIFT_VERDICT_TRUE;
}

/* Why the QP's path is suspected; NONE: it is not. */
static enum shift_cause fault_cause(struct shift_qp *sqp, bool silent)
{
	if (test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags))
		return SHIFT_CAUSE_CQE;
	if (shift_path_port_down(sqp, sqp->fo.path))
		return SHIFT_CAUSE_PORT;
	if (silent)
		return SHIFT_CAUSE_HEARTBEAT;
	/* on a proxy QP, an event of the default NIC's says nothing */
	return sqp->fo.path ? SHIFT_CAUSE_NONE : SHIFT_CAUSE_PORT;
}

static void handle_fault_because(struct shift_qp *sqp, enum shift_cause cause)
{
	if (sqp->fo.state != SHIFT_ST_RUN || !cause)
		return;
	if (sqp->fo.path == 0 && test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags) &&
	    !error_is_fault(sqp))
		return;
	if (sqp->fo.path == 0 && !test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags)) {
		int err = shift_qp_stays(sqp, true);

		/* heartbeats may be lost on a path that works: that does not end the protection */
		if (cause == SHIFT_CAUSE_HEARTBEAT ? err : qp_is_immovable(sqp, err))
			return;
	}
	shift_failover_because(sqp, cause, false);
	shift_failover_event(sqp, SHIFT_EV_TRIGGER, NULL);
	if (sqp->fo.state != SHIFT_ST_RUN)
		return;
	if (test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags)) {
		/* then the QP fails, unless a path works */
		sqp->fo.deadline_ns = shift_from_now(PATHLESS_MS);
		shift_qp_arm(sqp, PATHLESS_MS);
	} else if (shift_path_port_down(sqp, sqp->fo.path)) {
		shift_qp_arm(sqp, SHIFT_AGAIN_MS);
	}
}

static void handle_fault(struct shift_qp *sqp)
{
	bool silent = test_and_clear_bit(SHIFT_QPB_SILENT, &sqp->pend.flags);

	handle_fault_because(sqp, fault_cause(sqp, silent));
}

/* Does the QP wait for its NIC to say whether it has the error that was reported? */
static bool report_is_open(const struct shift_qp *sqp)
{
	return sqp->report.open && test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags);
}

static void handle_report(struct shift_qp *sqp)
{
	if (report_is_open(sqp))
		handle_fault(sqp);
}

static void handle_proxy_error(struct shift_qp *sqp)
{
	u32 own = shift_proxy_own_error(sqp);

	if (!shift_proxy_error(sqp) || sqp->fo.state != SHIFT_ST_RUN || !sqp->fo.path)
		return;
	/* one that waits for a path is not counted again for each of its flushes */
	if (!own && !test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags) && shift_qp_breaks_again(sqp))
		own = IB_WC_LOC_QP_OP_ERR;
	if (own) {
		shift_failover_fail(sqp, own);
		return;
	}
	set_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags);
	handle_fault(sqp);
}

static void handle_kick(struct shift_qp *sqp)
{
	if (sqp->fo.path && (sqp->fo.state == SHIFT_ST_RUN || sqp->fo.state == SHIFT_ST_ASKED)) {
		shift_recv_pump(sqp);
		if (shift_replay_pump(sqp))
			shift_failover_fail(sqp, sqp->fo.stop_status);
	} else if (sqp->fo.state == SHIFT_ST_FAIL || sqp->fo.state == SHIFT_ST_APP) {
		/* a user in the kernel has found a gate shut that was opened before the QP ended */
		if (sqp->kernel && sqp->fo.state == SHIFT_ST_APP && sqp->qp &&
		    !shift_qp_is_moved(sqp) && !test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags))
			shift_provider_doorbell(sqp);
		shift_replay_flush(sqp);
	} else if (!test_bit(SHIFT_QPB_GATED, &sqp->pend.flags) &&
		   !test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags)) {
		/* this doorbell was kept back by a gate that has opened since */
		shift_provider_doorbell(sqp);
	}
}

/* Does a fault wait for a path to come back? */
static bool fault_waits(const struct shift_qp *sqp)
{
	return sqp->fo.state == SHIFT_ST_RUN &&
	       (sqp->fo.path || shift_path_port_down(sqp, sqp->fo.path) ||
		test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags));
}

/* Work on a proxy QP that makes no progress for too long is a fault of its path. */
static void qp_watch(struct shift_qp *sqp)
{
	handle_kick(sqp);
	if (shift_proxy_watch(sqp)) {
		set_bit(SHIFT_QPB_SILENT, &sqp->pend.flags);
		handle_fault(sqp);
	}
	shift_qp_watch(sqp);
}

/*
 * The time to the next copy, or to the deadline; ms.  Copies become rarer, because a peer that is
 * late for having much to do gets later with each.
 */
static unsigned int resend_pause(const struct shift_qp *sqp)
{
	unsigned int copies = clamp_t(unsigned int, sqp->fo.resends, 1, SHIFT_RESENDS_SPREAD);
	s64 left = sqp->fo.deadline_ns - ktime_get_ns();

	if (left <= 0)
		return SHIFT_RESEND_MS;
	return min_t(u64, SHIFT_RESEND_MS << (copies - 1), div_u64(left, NSEC_PER_MSEC) + 1);
}

static void handle_deadline(struct shift_qp *sqp)
{
	if (sqp->handback.alone) {
		shift_failover_event(sqp, SHIFT_EV_ALONE, NULL);
		return;
	}
	/* if this end is late itself, the peer gets some copies before it is taken for mute */
	if (shift_fsm_deadline_ms(sqp->fo.state) &&
	    (ktime_get_ns() < sqp->fo.deadline_ns ||
	     (sqp->fo.resends < SHIFT_RESENDS_MIN && shift_deadline_is_patient(sqp)))) {
		sqp->fo.resends++;
		shift_failover_resend(sqp);
		shift_qp_arm(sqp, resend_pause(sqp));
		if (sqp->fo.path)
			handle_kick(sqp);
		return;
	}
	if (shift_path_outage(sqp)) {
		/* no question has arrived while no path worked */
		sqp->fo.asks = min_t(u8, sqp->fo.asks, 1);
		shift_stat_inc(SHIFT_STAT_OUTAGES);
		shift_deadline_start(sqp, sqp->fo.state);
		return;
	}
	if (shift_deadline_peer_is_slow(sqp)) {
		shift_deadline_start(sqp, sqp->fo.state);
		return;
	}
	switch (sqp->fo.state) {
	case SHIFT_ST_OFF:
		set_bit(SHIFT_QPB_RETRY_PAIR, &sqp->pend.flags);
		break;
	case SHIFT_ST_APP:
	case SHIFT_ST_FAIL:
		shift_failover_push_pending_error(sqp);
		shift_replay_flush(sqp);
		break;
	case SHIFT_ST_RUN:
		if (report_is_open(sqp)) {
			handle_fault(sqp);	/* the NIC may be late */
			break;
		}
		if (!test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags)) {
			if (sqp->fo.path)
				qp_watch(sqp);
			else if (sqp->fo.stuck)
				shift_qp_look(sqp);
			if (shift_qp_is_mute(sqp, false))
				handle_fault_because(sqp, SHIFT_CAUSE_CQE);
			if (shift_silence_look(sqp)) {
				set_bit(SHIFT_QPB_SILENT, &sqp->pend.flags);
				handle_fault(sqp);
			}
			if (shift_path_port_down(sqp, sqp->fo.path))
				handle_fault(sqp);
			shift_move_again(sqp);
			shift_handback_run(sqp);
			break;
		}
		/* the timer is also that of other things */
		if (ktime_get_ns() < sqp->fo.deadline_ns) {
			handle_kick(sqp);
			shift_qp_arm(sqp, SHIFT_AGAIN_MS);
			break;
		}
		fallthrough;
	default:
		shift_failover_event(sqp, SHIFT_EV_DEADLINE, NULL);
	}
}

/*
 * The application was shown an error, or ends the QP.  Until the state says so, it is the pending
 * bit that tells the CQE filter to show what follows, so that it is cleared only then.
 */
static bool take_app_error(struct shift_qp *sqp)
{
	if (!test_bit(SHIFT_QPB_APP, &sqp->pend.flags))
		return false;
	shift_failover_event(sqp, SHIFT_EV_APP_ERROR, NULL);
	clear_bit(SHIFT_QPB_APP, &sqp->pend.flags);
	return true;
}

static void handle_ready(struct shift_qp *sqp)
{
	if (sqp->handback.alone)
		shift_failover_event(sqp, SHIFT_EV_ALONE, NULL);
	else
		shift_failover_ready(sqp);
}

/*
 * A post waits for long, as a move has stopped posts and the peer does not answer.  It may go on:
 * no fence is under way here, and one that comes stops posts anew before it looks at the rings.
 */
static void handle_tired(struct shift_qp *sqp)
{
	shift_fence_open(sqp);
}

static void handle_first(struct shift_qp *sqp)
{
	shift_notify_qp(sqp, SHIFT_QP_EV_COMPLETION, sqp->fo.times.completion);
}

/* What comes now needs memory reserves, which are chosen for a round: machine_round_reserved(). */
static bool leaves_off(const struct shift_qp *sqp, enum shift_state from)
{
	return sqp->kernel && from == SHIFT_ST_OFF && sqp->fo.state != SHIFT_ST_OFF;
}

/* Handle all messages that the state at hand can use.  False when there was none. */
static bool handle_messages(struct shift_qp *sqp)
{
	struct shift_msg m;
	bool any = false;
	u32 kept = 0;	/* kinds that wait for a later state */

	while (shift_qp_take_msg(sqp, &m, kept)) {
		enum shift_state from = sqp->fo.state;

		handle_message(sqp, &m);
		/* it was put back; or a newer one has come, which has queued the work item again */
		if (sqp->fo.state == from && READ_ONCE(sqp->pend.mailbox.valid) & BIT(m.type)) {
			kept |= BIT(m.type);
			continue;
		}
		any = true;
		if (sqp->fo.state != from)
			kept = 0;
		if (leaves_off(sqp, from))
			break;
	}
	return any;
}

/* Call @handle if @bit is pending.  False when it was not. */
static bool take(struct shift_qp *sqp, unsigned int bit, void (*handle)(struct shift_qp *sqp))
{
	if (!test_and_clear_bit(bit, &sqp->pend.flags))
		return false;
	handle(sqp);
	return true;
}

/*
 * One round: everything that is pending now, in this order.  False when nothing was.
 *
 * The application's own error comes first, because it ends the protection; news of the links come
 * before messages, because a peer that restarted has sent them afterwards.
 */
static bool machine_round(struct shift_qp *sqp)
{
	bool any = take_app_error(sqp);
	enum shift_state from = sqp->fo.state;

	any |= take(sqp, SHIFT_QPB_LINKS, shift_pairing_links);
	any |= handle_messages(sqp);
	if (leaves_off(sqp, from))
		return true;
	any |= take(sqp, SHIFT_QPB_PROXY_ERR, handle_proxy_error);
	if (test_and_clear_bit(SHIFT_QPB_PATH_UP, &sqp->pend.flags) && fault_waits(sqp))
		set_bit(SHIFT_QPB_TRIGGER, &sqp->pend.flags);
	any |= take(sqp, SHIFT_QPB_TRIGGER, handle_fault);
	any |= take(sqp, SHIFT_QPB_REPORT, handle_report);
	any |= take(sqp, SHIFT_QPB_DEADLINE, handle_deadline);
	any |= take(sqp, SHIFT_QPB_MOVE, shift_move_run);
	any |= take(sqp, SHIFT_QPB_HANDBACK, shift_handback_run);
	any |= take(sqp, SHIFT_QPB_FOLLOW, shift_move_follow);
	any |= take(sqp, SHIFT_QPB_READY, handle_ready);
	any |= take(sqp, SHIFT_QPB_MTU, shift_pairing_mtu);
	any |= take(sqp, SHIFT_QPB_RETRY_PAIR, shift_pairing_run);
	any |= take(sqp, SHIFT_QPB_TIRED, handle_tired);
	any |= take(sqp, SHIFT_QPB_FIRST, handle_first);
	any |= take(sqp, SHIFT_QPB_KICK, handle_kick);
	any |= take(sqp, SHIFT_QPB_LOOK, shift_qp_look_asked);
	/* during a failover they are still needed: the bit waits for RUN */
	if (sqp->fo.state == SHIFT_ST_RUN)
		any |= take(sqp, SHIFT_QPB_TIDY, shift_proxy_tidy);
	return any;
}

/* Its queue has WQ_MEM_RECLAIM, so no allocation may wait for I/O; and here for nothing at all. */
static bool machine_round_reserved(struct shift_qp *sqp)
{
	unsigned int saved;
	bool any;

	/* the memory for its protection can wait; later nothing can, as posts wait for this */
	if (sqp->kernel && sqp->fo.state != SHIFT_ST_OFF) {
		saved = memalloc_noreclaim_save();
		any = machine_round(sqp);
		memalloc_noreclaim_restore(saved);
	} else {
		saved = memalloc_noio_save();
		any = machine_round(sqp);
		memalloc_noio_restore(saved);
	}
	return any;
}

/* The QP's work item. */
void shift_failover_work(struct work_struct *work)
{
	struct shift_qp *sqp = container_of(work, struct shift_qp, pend.work);
	/* memory that outlives this work is charged to the process */
	struct mem_cgroup *old = set_active_memcg(sqp->app.memcg);
	int rounds = 8;

	if (sqp->kernel)
		shift_reclaim_waits();
	mutex_lock(&sqp->lock);
	while (sqp->qp && !test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags) && rounds--)
		if (!machine_round_reserved(sqp))
			break;
	if (sqp->fo.state == SHIFT_ST_OFF)
		shift_qp_clear_msgs(sqp, true);
	mutex_unlock(&sqp->lock);
	if (sqp->kernel)
		shift_reclaim_waited();
	set_active_memcg(old);
}
