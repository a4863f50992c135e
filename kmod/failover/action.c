// SPDX-License-Identifier: GPL-2.0
/*
 * The actions of the rules in fsm.c.  Some have a step that is taken before the current state is
 * left; the action itself runs in the next state.
 *
 * Everything here runs in the QP's work item, or in a control verb of the application, under
 * sqp->lock.  Nothing here writes the state: an action returns the event that follows from it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include "core/event.h"
#include "core/kick.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/stat.h"
#include "core/trace.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "mw/mw.h"
#include "provider/provider.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"
#include "pure/ledger.h"
#include "pure/msg.h"
#include "srq/srq.h"

/* Ask for the consent to the epoch and target that were chosen. */
static void send_req(struct shift_qp *sqp)
{
	struct shift_msg m = { .type = SHIFT_MSG_REQ, .epoch = sqp->fo.highest };

	m.req.to = sqp->fo.to;
	m.req.kind = sqp->fo.to == SHIFT_PATH_OWN || sqp->fo.moves ? SHIFT_KIND_MOVE :
								     SHIFT_KIND_FAULT;
	/* operators go on being shown why a QP came home that is handed back, so fo.cause stays */
	m.req.cause = sqp->fo.to == SHIFT_PATH_OWN ? SHIFT_CAUSE_OPERATOR : sqp->fo.cause;
	m.req.t_detect = sqp->fo.times.fault;
	shift_path_send(sqp, sqp->fo.to, &m);
}

/*
 * Choose a path and ask the peer for its consent.  A move that would risk an error is called off
 * before the peer is asked.
 */
static enum shift_event act_ask(struct shift_qp *sqp)
{
	enum shift_cause cause = sqp->handback.ask ? SHIFT_CAUSE_OPERATOR : sqp->fo.cause;
	int err;

	sqp->fo.highest = shift_epoch_next(sqp->fo.highest, sqp->cookie > sqp->peer.cookie);
	if (shift_handback_is_under_way(sqp) && !sqp->handback.ask) {
		/* the handback has failed: as after a fault, no end refuses or settles */
		sqp->handback.aborted = true;
		cause = SHIFT_CAUSE_HEARTBEAT;
		sqp->fo.asks = 0;
	}
	sqp->fo.to = sqp->handback.ask ? SHIFT_PATH_OWN : shift_path_choose(sqp);
	/* to go back to the proxy QP at home is a part of the move; to the backup is for a fault */
	if (sqp->handback.aborted)
		shift_failover_because(sqp, cause, sqp->fo.to == SHIFT_PATH_HOME);
	sqp->handback.ask = false;
	if (!sqp->fo.asks++ && sqp->fo.to != SHIFT_PATH_OWN && !sqp->handback.aborted) {
		memset(&sqp->fo.times, 0, sizeof(sqp->fo.times));
		sqp->fo.times.fault = ktime_get_real_ns();
		shift_stat_inc(sqp->fo.moves ? SHIFT_STAT_MOVES : SHIFT_STAT_FAULTS);
		shift_notify_qp(sqp, sqp->fo.moves ? SHIFT_QP_EV_MOVE : SHIFT_QP_EV_FAULT,
				sqp->fo.times.fault);
	}
	if (shift_target_prepare(sqp, sqp->fo.to))
		return __SHIFT_EV_MAX;	/* the deadline tries again, or ends the failover */
	if (shift_move_settles(cause)) {
		err = shift_move_settle(sqp, sqp->fo.to);
		if (err == -EIO)
			return SHIFT_EV_FAIL;
		if (err && cause == SHIFT_CAUSE_OPERATOR && shift_path_healthy(sqp))
			return SHIFT_EV_DEADLINE;
		shift_deadline_start(sqp, SHIFT_ST_ASKED);
	}
	send_req(sqp);
	return __SHIFT_EV_MAX;
}

/**
 * shift_failover_nack - refuse what the peer asks for, and say why
 * @sqp: the QP, locked.
 * @m: a REQ; any other message is not answered.
 *
 * Context: process context.
 */
void shift_failover_nack(struct shift_qp *sqp, const struct shift_msg *m)
{
	struct shift_msg nack = { .type = SHIFT_MSG_NACK, .epoch = m->epoch };

	lockdep_assert_held(&sqp->lock);
	if (m->type != SHIFT_MSG_REQ)
		return;
	if (!shift_qp_is_protected(sqp))
		nack.nack.code = SHIFT_NACK_GONE;
	else if (!sqp->peer.ok || !shift_target_qpn(sqp, m->req.to))
		nack.nack.code = SHIFT_NACK_NO_MIRROR;
	else
		nack.nack.code = SHIFT_NACK_BUSY;
	nack.nack.busy_epoch = sqp->fo.highest;
	shift_path_send(sqp, SHIFT_PATH_BACKUP, &nack);
}

static void act_progress(struct shift_qp *sqp)
{
	struct shift_msg m = { .type = SHIFT_MSG_PROGRESS, .epoch = sqp->fo.epoch };

	m.progress.to = sqp->fo.to;
	m.progress.status = sqp->fo.unfenced ? SHIFT_PROGRESS_UNKNOWN : SHIFT_PROGRESS_OK;
	if (sqp->fo.unfenced && shift_qp_policy(sqp) == SHIFT_POLICY_AT_LEAST_ONCE)
		m.progress.flags = SHIFT_PROGRESS_AT_LEAST_ONCE;
	m.progress.path = sqp->fo.resp.path;
	m.progress.arm_epoch = sqp->fo.resp.epoch;
	m.progress.expected_psn = sqp->fo.resp.psn;
	m.progress.qpn = sqp->fo.qpn_here;
	shift_path_send(sqp, sqp->fo.to, &m);
}

/**
 * shift_failover_ready - send READY (again), if this end is ready and the peer may wait for it
 * @sqp: the QP, locked.
 *
 * A QP on an SRQ is ready when the SRQ's receives are on the new path: this is called again then.
 *
 * Context: process context; a handback sleeps, as it connects the application's own QP.
 */
void shift_failover_ready(struct shift_qp *sqp)
{
	struct shift_msg m = { .type = SHIFT_MSG_READY, .epoch = sqp->fo.epoch };

	lockdep_assert_held(&sqp->lock);
	if (sqp->fo.state != SHIFT_ST_SYNC &&
	    (sqp->fo.state != SHIFT_ST_RUN || (!sqp->fo.path && sqp->fo.to != SHIFT_PATH_OWN)))
		return;
	if (!shift_target_ready(sqp))
		return;
	shift_path_send(sqp, sqp->fo.to, &m);
}

/**
 * shift_failover_resend - send once more what the peer may not have got
 * @sqp: the QP, locked, in ASKED, AGREE, SYNC or RUN.
 *
 * A REQ that comes once more is a copy: the peer consents to an epoch once.  PROGRESS asks for an
 * answer and READY does not, so two ends that are both in RUN do not answer each other without end.
 *
 * Context: as shift_failover_ready().
 */
void shift_failover_resend(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (sqp->fo.state == SHIFT_ST_ASKED) {
		/* a handback has little time; and without a QP for the target nobody was asked */
		if (sqp->fo.to == SHIFT_PATH_OWN || !shift_target_qpn(sqp, sqp->fo.to))
			return;
		/* refused: the epoch that was learned is the peer's, who may ask with it itself */
		sqp->fo.highest = shift_epoch_next(sqp->fo.highest - 1,
						   sqp->cookie > sqp->peer.cookie);
		send_req(sqp);
		return;
	}
	if (sqp->fo.state != SHIFT_ST_RUN)
		act_progress(sqp);
	shift_failover_ready(sqp);
}

/*
 * The peer asked again, as our answer may be lost: send it again.  But two ends in SYNC that wait
 * for the receives of an SRQ would answer each other as fast as the link is, hence the limit.
 */
static void act_reack(struct shift_qp *sqp, const struct shift_msg *m)
{
	struct shift_msg queued = {
		.type = SHIFT_MSG_NACK, .epoch = m->epoch, .nack.code = SHIFT_NACK_QUEUED,
	};
	u64 now = ktime_get_ns();

	if (sqp->fo.state == SHIFT_ST_SYNC &&
	    now - sqp->fo.reacked_ns < SHIFT_RESEND_MS * NSEC_PER_MSEC / 2)
		return;
	sqp->fo.reacked_ns = now;
	shift_failover_resend(sqp);
	/* our READY waits for other QPs: the peer is to wait for as long as these are waited for */
	if (m->type == SHIFT_MSG_PROGRESS && shift_srq_awaits(sqp))
		shift_path_send(sqp, sqp->fo.to, &queued);
}

/*
 * The peer has consented, and there is a QP for the target: fence.  If @m is the peer's PROGRESS
 * it goes back to the mailbox, because AGREE needs it.
 */
static enum shift_event act_join(struct shift_qp *sqp, const struct shift_msg *m)
{
	bool away = test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
	bool errored = false;
	u32 own;
	int err;

	if (m->type == SHIFT_MSG_PROGRESS)
		shift_qp_post_msg(sqp, m);
	sqp->fo.epoch = m->epoch;
	sqp->fo.highest = m->epoch;
	sqp->handback.aborted |= shift_handback_is_under_way(sqp) &&
				 shift_msg_target(m) != SHIFT_PATH_OWN;
	sqp->fo.to = shift_msg_target(m);
	if (!sqp->fo.asks) {
		memset(&sqp->fo.times, 0, sizeof(sqp->fo.times));
		sqp->fo.times.fault = m->type == SHIFT_MSG_REQ && m->req.t_detect ?
				   m->req.t_detect : ktime_get_real_ns();
	}
	if (m->type == SHIFT_MSG_REQ) {
		struct shift_msg ack = { .type = SHIFT_MSG_ACK, .epoch = m->epoch };

		/* this end did not ask, so fo.cause is that of an earlier failover */
		if (!sqp->fo.asks && sqp->fo.to != SHIFT_PATH_OWN)
			shift_failover_because(sqp, SHIFT_CAUSE_PEER,
					       m->req.kind == SHIFT_KIND_MOVE);
		/* settle before the ACK is sent, because the peer fences when it gets it */
		if (shift_move_settles(m->req.cause) &&
		    shift_move_settle(sqp, sqp->fo.to) == -EIO)
			return SHIFT_EV_FAIL;
		ack.ack.to = sqp->fo.to;
		shift_path_send(sqp, sqp->fo.to, &ack);
	}
	sqp->fo.times.agreed = ktime_get_real_ns();
	if (sqp->fo.to != SHIFT_PATH_OWN)
		shift_notify_qp(sqp, SHIFT_QP_EV_AGREED, sqp->fo.times.agreed);
	shift_handback_forget(sqp);
	if (sqp->fo.to == SHIFT_PATH_OWN)
		shift_handback_hold(sqp);

	/* while it settled, others on its SRQ may have begun to leave the pool: then once more */
	if (shift_proxy_claim(sqp, sqp->fo.to) &&
	    (shift_target_prepare(sqp, sqp->fo.to) || shift_proxy_claim(sqp, sqp->fo.to)))
		return SHIFT_EV_FAIL;
	sqp->fo.qpn_here = shift_target_qpn(sqp, sqp->fo.to);
	err = shift_fence(sqp, &errored);
	sqp->fo.times.fenced = ktime_get_real_ns();
	trace_shift_fence(sqp->sdev->name, sqp->qpn, sqp->fo.epoch, sqp->fo.resp.psn, err);
	if (err == -ECANCELED)
		return SHIFT_EV_APP_ERROR;
	own = shift_proxy_recv_error(sqp);
	if (own) {
		/* a receive failed for the application's own reasons: no path helps */
		sqp->fo.fail_status = own;
		return SHIFT_EV_FAIL;
	}
	if (err == -EIO) {
		pr_warn_ratelimited("%s qp %u: the NIC of path %u cannot be asked how far it got\n",
				    sqp->sdev->name, sqp->qpn, sqp->fo.path);
		shift_stat_inc(SHIFT_STAT_UNKNOWN);
		/* this stays so until RUN, because the NIC is asked only once */
		sqp->fo.unfenced = true;
	} else if (err) {
		return SHIFT_EV_FAIL;
	}
	shift_srq_fenced(sqp);
	if (!away)
		shift_mw_recycle(sqp);
	if (sqp->fo.to != SHIFT_PATH_OWN)
		shift_notify_qp(sqp, SHIFT_QP_EV_FENCED, sqp->fo.times.fenced);
	return sqp->fo.unfenced ? SHIFT_EV_UNFENCED : SHIFT_EV_FENCED;
}

/* The peer's responder got as far as @m says: connect, and post receives. */
static enum shift_event act_ready(struct shift_qp *sqp, const struct shift_msg *m)
{
	int err;

	/* a QP that was not stopped is not in the ledger: it cannot go on elsewhere */
	if (!test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags))
		return SHIFT_EV_FAIL;
	err = shift_replay_progress(sqp, m);
	if (err == -ERANGE)
		pr_warn_ratelimited("%s qp %u: peer expects psn %u of epoch %u, ours begin at %u of %u: progress unknown\n",
				    sqp->sdev->name, sqp->qpn, m->progress.expected_psn,
				    m->progress.arm_epoch, sqp->rec.outstanding.psn,
				    sqp->rec.outstanding.epoch);
	if (err == -EOVERFLOW)
		pr_warn_ratelimited("%s qp %u: more than 2^24 packets are outstanding: progress unknown\n",
				    sqp->sdev->name, sqp->qpn);
	if (!err) {
		shift_provider_executed(sqp);
		/* windows have other keys on each path */
		if (sqp->peer.windows)
			shift_rkey_forget_all(sqp);
	}
	/* an error may mean that an atomic was executed and its result is lost */
	if (!err)
		err = shift_target_arm(sqp, sqp->fo.to, sqp->fo.epoch, m->progress.qpn);
	/* the peer may use them as soon as both ends are ready */
	if (!err && sqp->rings.provider->mrs)
		err = sqp->rings.provider->mrs->follow(sqp);
	if (err)
		return SHIFT_EV_FAIL;
	shift_recv_pump(sqp);
	shift_failover_ready(sqp);
	return __SHIFT_EV_MAX;
}

/* The new QPs of both ends work, or the application's own ones do: go on there. */
static void act_replay(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	u32 executed = 0, replayed = 0, resumed = 0;
	u8 from = sqp->fo.path;
	u64 seq;

	if (sqp->fo.to == SHIFT_PATH_OWN) {
		shift_handback_returned(sqp);
		return;
	}
	spin_lock_bh(&sqp->ledger_lock);
	for (seq = l->tail; seq < l->head; seq++) {
		struct shift_entry *e = shift_ledger_at(l, seq);

		if (e->state == SHIFT_ENTRY_EXECUTED) {
			executed++;
			continue;
		}
		replayed++;
		resumed += e->done > 0;
	}
	/* what could not be posted on the path before may be possible on this one */
	sqp->fo.stop_status = 0;
	spin_unlock_bh(&sqp->ledger_lock);

	sqp->fo.path = sqp->fo.to;
	sqp->fo.resp = sqp->fo.armed[sqp->fo.path];	/* all earlier work is accounted for */
	sqp->fo.unfenced = false;
	sqp->fo.reason = SHIFT_REASON_NONE;
	sqp->fo.asks = 0;
	sqp->fo.executed = executed;
	sqp->fo.replayed = replayed;
	sqp->fo.first_done = false;
	clear_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags);
	/* FENCED stays: the default QP is in RESET for good */
	/* after a handback that failed, the QP has not changed its path */
	if (!sqp->handback.aborted || sqp->fo.path != SHIFT_PATH_HOME) {
		sqp->fo.switches++;
		shift_stat_inc(SHIFT_STAT_SWITCHES);
		if (sqp->fo.path == SHIFT_PATH_HOME)
			shift_stat_inc(SHIFT_STAT_RETURNS);
	}
	shift_stat_add(SHIFT_STAT_EXECUTED, executed);
	shift_stat_add(SHIFT_STAT_REPLAYED, replayed);
	shift_stat_add(SHIFT_STAT_RESUMED, resumed);
	trace_shift_replay(sqp->sdev->name, sqp->qpn, sqp->fo.epoch, executed, replayed);
	sqp->fo.times.replayed = ktime_get_real_ns();
	shift_notify_qp(sqp, SHIFT_QP_EV_REPLAYED, sqp->fo.times.replayed);
	shift_proxy_open(sqp);
	shift_recv_deliver(sqp);
	/* a receive may have broken the proxy QP already: errors are handled in RUN */
	if (shift_proxy_error(sqp))
		set_bit(SHIFT_QPB_PROXY_ERR, &sqp->pend.flags);
	set_bit(SHIFT_QPB_KICK, &sqp->pend.flags);
	set_bit(SHIFT_QPB_TIDY, &sqp->pend.flags);
	shift_handback_release(sqp);
	shift_move_done(sqp);
	shift_qp_watch(sqp);
	if (sqp->fo.path == SHIFT_PATH_HOME && from == SHIFT_PATH_BACKUP)
		shift_handback_wish(sqp);
}

static void act_protect(struct shift_qp *sqp)
{
	sqp->fo.reason = SHIFT_REASON_NONE;
	sqp->fo.fail_status = 0;
	sqp->fo.path = 0;
	if (sqp->srqm.ssrq)
		shift_qp_kick(sqp, SHIFT_QPB_FOLLOW);
	shift_stat_inc(SHIFT_STAT_PAIRED);
	if (shift_qp_is_drained(sqp))
		shift_move_want(sqp, SHIFT_PATH_BACKUP, true);
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
}

/**
 * shift_failover_prepare - the step of a rule before the current state is left
 * @sqp: the QP, locked.
 * @rule: the rule that was found.
 * @m: the message, for RX events.
 *
 * Context: process context; may sleep.
 * Return: __SHIFT_EV_MAX; or another event, to be handled instead, if the rule cannot be followed.
 */
enum shift_event shift_failover_prepare(struct shift_qp *sqp, const struct shift_rule *rule,
					const struct shift_msg *m)
{
	int err;

	lockdep_assert_held(&sqp->lock);
	switch (rule->action) {
	case SHIFT_ACT_JOIN:
		/* a peer that follows the others of its SRQ has settled */
		sqp->srqm.keeps = m->type == SHIFT_MSG_REQ && m->req.cause == SHIFT_CAUSE_SRQ;
		err = shift_target_prepare(sqp, shift_msg_target(m));
		sqp->srqm.keeps = false;
		if (err)
			return SHIFT_EV_NO_QP;
		break;
	case SHIFT_ACT_UNPROTECT:
		/* from the middle of a handback, too: nobody else would let its own QP send */
		if (shift_handback_start(sqp) || shift_qp_keeps_error(sqp))
			return SHIFT_EV_FAIL;
		break;
	case SHIFT_ACT_REPLAY:
		if (shift_handback_start(sqp))
			return SHIFT_EV_DEADLINE;
		break;
	case SHIFT_ACT_FAIL:
		if (rule->event == SHIFT_EV_RX_UNKNOWN)
			pr_warn_ratelimited("%s qp %u: it is unknown what the peer's NIC executed, and the policy is exactly-once\n",
					    sqp->sdev->name, sqp->qpn);
		return shift_failover_stop(sqp);
	default:
		break;
	}
	return __SHIFT_EV_MAX;
}

/**
 * shift_failover_act - do the action of a rule
 * @sqp: the QP, locked, in the rule's next state.
 * @rule: the rule.
 * @m: the message, for RX events.
 *
 * Context: process context; a fence and settling sleep.
 * Return: the event that follows from it, or __SHIFT_EV_MAX.
 */
enum shift_event shift_failover_act(struct shift_qp *sqp, const struct shift_rule *rule,
				    const struct shift_msg *m)
{
	lockdep_assert_held(&sqp->lock);
	switch (rule->action) {
	case SHIFT_ACT_PROTECT:
		act_protect(sqp);
		break;
	case SHIFT_ACT_UNPROTECT:
		if (rule->event == SHIFT_EV_RX_GONE)
			sqp->fo.reason = SHIFT_REASON_PEER_UNPROTECTED;
		shift_failover_leave_protection(sqp);
		break;
	case SHIFT_ACT_FORGET:
		shift_pairing_drop(sqp);
		sqp->fo.pending_status = 0;
		break;
	case SHIFT_ACT_ASK:
		return act_ask(sqp);
	case SHIFT_ACT_NACK:
		shift_failover_nack(sqp, m);
		break;
	case SHIFT_ACT_REACK:
		act_reack(sqp, m);
		break;
	case SHIFT_ACT_JOIN:
		return act_join(sqp, m);
	case SHIFT_ACT_UNGATE:
		shift_failover_abort(sqp);
		break;
	case SHIFT_ACT_PROGRESS:
		act_progress(sqp);
		break;
	case SHIFT_ACT_READY:
		return act_ready(sqp, m);
	case SHIFT_ACT_REPLAY:
		act_replay(sqp);
		/* the peer's QP has gone meanwhile */
		if (rule->event == SHIFT_EV_RETURNED)
			return SHIFT_EV_RX_GONE;
		break;
	case SHIFT_ACT_KEEP:
		shift_qp_keep_msg(sqp, m);
		break;
	case SHIFT_ACT_FAIL:
		shift_failover_show_error(sqp);
		break;
	case SHIFT_ACT_APP:
		shift_failover_app(sqp);
		break;
	case SHIFT_ACT_LEAVE:
		shift_failover_leave_to_driver(sqp);
		break;
	case SHIFT_ACT_ALONE:
		return shift_handback_alone(sqp);
	default:
		break;
	}
	return __SHIFT_EV_MAX;
}
