// SPDX-License-Identifier: GPL-2.0
/*
 * One event of a QP: finds the rule in fsm.c and does its action.
 *
 * Everything here runs in the QP's work item, or in a control verb of the
 * application, under sqp->lock.  State changes are also under inbox_lock, so
 * that the verdict over an error completion, which must not sleep, sees whole
 * states.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include "mw.h"
#include "trace.h"

#define SHIFT_ASKS_MAX	3	/* SWITCH_REQs of one switch */
#define SHIFT_OWN_MS	300	/* for a provider to change its rings */

/* Consent has to be given over the path it is about; all else may go any way. */
static bool bound_to_path(u8 type)
{
	return type == SHIFT_MSG_PAIR || type == SHIFT_MSG_REQ || type == SHIFT_MSG_ACK;
}

/* The link that shows whether a path works; NULL: there is none. */
struct shift_link *shift_switch_link(const struct shift_qp *sqp, u8 path)
{
	return sqp->link[path == SHIFT_PATH_BACKUP];
}

int shift_switch_send(struct shift_qp *sqp, u8 path, struct shift_msg *m)
{
	struct shift_link *link = shift_switch_link(sqp, path);

	/* the backup may have gone */
	if (!link && !bound_to_path(m->type))
		link = shift_switch_link(sqp, SHIFT_PATH_DEFAULT);
	m->src_cookie = sqp->cookie;
	m->dst_cookie = sqp->peer_cookie;
	if (!link)
		return -ENOTCONN;
	trace_shift_msg_tx(sqp->sdev->name, sqp->qpn, m->type, m->epoch);
	return bound_to_path(m->type) ? shift_link_send(link, m) : shift_session_send(link, m);
}

static bool link_up(const struct shift_qp *sqp, u8 path)
{
	struct shift_link *link = shift_switch_link(sqp, path);

	return link && shift_link_state(link) == SHIFT_LINK_UP;
}

/*
 * Where to: away from what failed, if the other path has a link; the next ask of a
 * switch tries the other one.  0: nowhere.
 */
static u8 choose_path(const struct shift_qp *sqp)
{
	bool must;
	u8 others = shift_srq_path(sqp, &must);
	bool away = sqp->path || test_bit(SHIFT_QP_FENCED, &sqp->flags) || sqp->own_connected;
	bool home = away && link_up(sqp, SHIFT_PATH_HOME) && !READ_ONCE(sqp->sdev->port_down);
	bool backup = link_up(sqp, SHIFT_PATH_BACKUP);

	if (others && (must || link_up(sqp, others)))
		return link_up(sqp, others) ? others : 0;
	if (!home || !backup)
		return home ? SHIFT_PATH_HOME : backup ? SHIFT_PATH_BACKUP : 0;
	if (sqp->to == SHIFT_PATH_OWN && sqp->state != SHIFT_ST_RUN && away)
		return SHIFT_PATH_HOME;		/* that did not come about */
	if (sqp->asks)
		return sqp->to == SHIFT_PATH_BACKUP ? SHIFT_PATH_HOME : SHIFT_PATH_BACKUP;
	return sqp->path == SHIFT_PATH_BACKUP ? SHIFT_PATH_HOME : SHIFT_PATH_BACKUP;
}

/* Could the QP be asked to move right now?  Racy by nature; used as a guard. */
bool shift_switch_usable(const struct shift_qp *sqp)
{
	return sqp->registered && sqp->peer_ok && sqp->asks < SHIFT_ASKS_MAX &&
	       (sqp->path || sqp->active || sqp->spare[SHIFT_PATH_BACKUP]) &&
	       (!sqp->spd || !atomic_read(&sqp->spd->reason)) &&
	       READ_ONCE(sqp->scq->registered) && READ_ONCE(sqp->rcq->registered) &&
	       shift_srq_movable(sqp) && choose_path(sqp);
}

/* No error completion, and not fenced since the last RUN. */
bool shift_switch_healthy(struct shift_qp *sqp)
{
	bool open;

	if (test_bit(SHIFT_QP_ERRORED, &sqp->flags))
		return false;
	if (!sqp->path)
		return !test_bit(SHIFT_QP_FENCED, &sqp->flags) && !sqp->own_connected;
	spin_lock_bh(&sqp->ledger_lock);
	open = shift_standby_is_open(sqp);
	spin_unlock_bh(&sqp->ledger_lock);
	return open && !shift_standby_error(sqp);
}

/* Nothing outstanding that the peer's progress matters to. */
static bool idle(struct shift_qp *sqp)
{
	bool idle, once;

	spin_lock_bh(&sqp->ledger_lock);
	idle = !shift_replay_doubtful(sqp, &once);
	spin_unlock_bh(&sqp->ledger_lock);
	return idle;
}

/* The epoch that messages of the state at hand carry. */
static u32 current_epoch(const struct shift_qp *sqp)
{
	return sqp->state == SHIFT_ST_ASKED ? sqp->highest : sqp->epoch;
}

static u8 message_target(const struct shift_msg *m)
{
	switch (m->type) {
	case SHIFT_MSG_REQ:
		return m->req.to;
	case SHIFT_MSG_ACK:
		return m->ack.to;
	default:
		return m->progress.to;
	}
}

/* Can the SRQ that it is on, if any, go there? */
static bool srq_joins(struct shift_qp *sqp, u8 path)
{
	bool must;
	u8 others = shift_srq_path(sqp, &must);

	return shift_srq_movable(sqp) && (!must || others == path);
}

/* May the message's epoch be joined?  Then there is a QP for its target, too.  sqp->lock */
bool shift_switch_joins(struct shift_qp *sqp, const struct shift_msg *m)
{
	if (sqp->state == SHIFT_ST_OFF || sqp->state == SHIFT_ST_FAIL ||
	    sqp->state == SHIFT_ST_APP)
		return false;
	return (m->type == SHIFT_MSG_REQ || m->type == SHIFT_MSG_ACK ||
		m->type == SHIFT_MSG_PROGRESS) &&
	       m->epoch > sqp->epoch && m->epoch >= sqp->highest &&
	       sqp->peer_ok && sqp->registered &&
	       READ_ONCE(sqp->scq->registered) && READ_ONCE(sqp->rcq->registered) &&
	       srq_joins(sqp, message_target(m)) &&
	       !shift_standby_prepare(sqp, message_target(m));
}

/*
 * The consent to go where others of its SRQ do not go any more: as if it had not come.  It
 * is asked again, for where they go, at the deadline.
 */
static bool awaits_srq(struct shift_qp *sqp, const struct shift_msg *m)
{
	return m->type == SHIFT_MSG_ACK && sqp->state == SHIFT_ST_ASKED &&
	       !srq_joins(sqp, m->ack.to);
}

/* Both ends have to accept that something may be executed twice. */
static bool paper(const struct shift_qp *sqp, const struct shift_msg *m)
{
	return m->type == SHIFT_MSG_PROGRESS && m->progress.flags & SHIFT_PROGRESS_PAPER &&
	       READ_ONCE(sqp->sdev->policy) == SHIFT_POLICY_PAPER;
}

static u32 guards(struct shift_qp *sqp, const struct shift_msg *m)
{
	u32 g = 0;

	if (shift_switch_healthy(sqp))
		g |= SHIFT_G_HEALTHY;
	if (shift_switch_usable(sqp))
		g |= SHIFT_G_USABLE;
	if (idle(sqp))
		g |= SHIFT_G_IDLE;
	if (!m)
		return g;
	if (shift_switch_joins(sqp, m))
		g |= SHIFT_G_JOINS;
	if (m->epoch == current_epoch(sqp) && !awaits_srq(sqp, m))
		g |= SHIFT_G_CURRENT;
	if (paper(sqp, m))
		g |= SHIFT_G_PAPER;
	if (m->type == SHIFT_MSG_NACK && m->nack.code == SHIFT_NACK_GONE)
		g |= SHIFT_G_NACK_GONE;
	return g;
}

static void start_deadline(struct shift_qp *sqp, enum shift_state state)
{
	unsigned int ms = shift_fsm_deadline_ms(state);

	if (!ms)
		return;
	/* posts wait, and an application that does not poll any more */
	if (state == SHIFT_ST_SYNC && sqp->to == SHIFT_PATH_OWN)
		ms = SHIFT_OWN_MS;
	sqp->deadline_ns = ktime_get_ns() + (u64)ms * NSEC_PER_MSEC *
			   max(READ_ONCE(shift_deadline_scale), 1u);
	shift_switch_arm(sqp, min_t(unsigned int, ms, SHIFT_RESEND_MS));
}

/* Who only wants to move, and cannot without the risk of an error, has asked nobody. */
static enum shift_event act_ask(struct shift_qp *sqp)
{
	struct shift_msg m = { .type = SHIFT_MSG_REQ };
	/* why it came home is what operators go on being shown */
	enum shift_cause cause = sqp->own_ask ? SHIFT_CAUSE_OPERATOR : sqp->cause;

	sqp->highest = shift_epoch_next(sqp->highest, sqp->cookie > sqp->peer_cookie);
	if (shift_own_is_under_way(sqp) && !sqp->own_ask) {
		/* a switch as for a fault: nobody refuses it, or settles for it */
		sqp->own_aborted = true;
		cause = SHIFT_CAUSE_HEARTBEAT;
		sqp->cause = cause;
		sqp->asks = 0;
	}
	sqp->to = sqp->own_ask ? SHIFT_PATH_OWN : choose_path(sqp);
	sqp->own_ask = false;
	if (!sqp->asks++ && sqp->to != SHIFT_PATH_OWN && !sqp->own_aborted) {
		memset(&sqp->times, 0, sizeof(sqp->times));
		sqp->times.fault = ktime_get_real_ns();
		shift_stat_inc(SHIFT_STAT_FAULTS);
		shift_notify_qp(sqp, SHIFT_QP_EV_FAULT, sqp->times.fault);
	}
	if (shift_standby_prepare(sqp, sqp->to))
		return __SHIFT_EV_MAX;	/* the deadline tries again, or ends it */
	if (shift_move_settles(cause)) {
		if (!shift_move_settle(sqp, sqp->to) && cause == SHIFT_CAUSE_OPERATOR &&
		    shift_switch_healthy(sqp))
			return SHIFT_EV_DEADLINE;
		if (sqp->state != SHIFT_ST_ASKED)
			return __SHIFT_EV_MAX;	/* it has failed meanwhile */
		start_deadline(sqp, SHIFT_ST_ASKED);
	}
	m.epoch = sqp->highest;
	m.req.from = sqp->path;
	m.req.to = sqp->to;
	m.req.kind = sqp->asks > 1 ? SHIFT_KIND_NEXT : SHIFT_KIND_FAULT;
	m.req.cause = cause;
	m.req.t_detect = sqp->times.fault;
	shift_switch_send(sqp, sqp->to, &m);
	return __SHIFT_EV_MAX;
}

void shift_switch_nack(struct shift_qp *sqp, const struct shift_msg *m)
{
	struct shift_msg nack = { .type = SHIFT_MSG_NACK, .epoch = m->epoch };

	if (sqp->state == SHIFT_ST_FAIL || sqp->state == SHIFT_ST_APP ||
	    sqp->state == SHIFT_ST_OFF)
		nack.nack.code = SHIFT_NACK_GONE;
	else if (!sqp->peer_ok ||
		 (m->type == SHIFT_MSG_REQ && !shift_standby_qpn(sqp, m->req.to)))
		nack.nack.code = SHIFT_NACK_NO_MIRROR;
	else
		nack.nack.code = SHIFT_NACK_BUSY;
	nack.nack.busy_epoch = sqp->highest;
	shift_switch_send(sqp, SHIFT_PATH_BACKUP, &nack);
}

static void act_progress(struct shift_qp *sqp)
{
	struct shift_msg m = { .type = SHIFT_MSG_PROGRESS, .epoch = sqp->epoch };

	m.progress.to = sqp->to;
	m.progress.status = sqp->unfenced ? SHIFT_PROGRESS_UNKNOWN : SHIFT_PROGRESS_OK;
	if (sqp->unfenced && READ_ONCE(sqp->sdev->policy) == SHIFT_POLICY_PAPER)
		m.progress.flags = SHIFT_PROGRESS_PAPER;
	m.progress.path = sqp->heard.path;
	m.progress.arm_epoch = sqp->heard.epoch;
	m.progress.expected_psn = sqp->heard.psn;
	m.progress.qpn = sqp->qpn_here;
	shift_switch_send(sqp, sqp->to, &m);
}

/**
 * shift_switch_ready - tell the peer READY (again), if it may need that
 * @sqp: the QP, locked.
 *
 * Not before the receives of its SRQ have come, if it is on one: then it is called again.
 */
void shift_switch_ready(struct shift_qp *sqp)
{
	struct shift_msg m = { .type = SHIFT_MSG_READY, .epoch = sqp->epoch };

	if (sqp->own_alone && shift_own_alone(sqp))
		return;
	if (sqp->state != SHIFT_ST_SYNC &&
	    (sqp->state != SHIFT_ST_RUN || (!sqp->path && sqp->to != SHIFT_PATH_OWN)))
		return;
	if (sqp->to == SHIFT_PATH_OWN ? !shift_own_ready(sqp) : !shift_standby_ready(sqp))
		return;
	m.ready.to = sqp->to;
	m.ready.qpn = sqp->qpn_here;
	m.ready.start_psn = shift_start_psn(sqp->cookie, sqp->epoch);
	shift_switch_send(sqp, sqp->to, &m);
}

/*
 * What the peer may not have got.  PROGRESS asks for an answer and READY does
 * not, so two sides that have both arrived do not keep each other busy.
 */
void shift_switch_resend(struct shift_qp *sqp)
{
	if (sqp->state != SHIFT_ST_RUN)
		act_progress(sqp);
	shift_switch_ready(sqp);
}

/*
 * It asked again, what we answered may be lost.  Or was not: two in SYNC that wait for the
 * receives of an SRQ would answer each other as fast as the link is.
 */
static void act_reack(struct shift_qp *sqp)
{
	u64 now = ktime_get_ns();

	if (sqp->state == SHIFT_ST_SYNC &&
	    now - sqp->reacked_ns < SHIFT_RESEND_MS * NSEC_PER_MSEC / 2)
		return;
	sqp->reacked_ns = now;
	shift_switch_resend(sqp);
}

/* Consent was given: fence, and say how far our responder got. */
static enum shift_event act_join(struct shift_qp *sqp, const struct shift_msg *m)
{
	bool away = test_bit(SHIFT_QP_FENCED, &sqp->flags);
	bool errored = false;
	int err;

	sqp->epoch = m->epoch;
	sqp->highest = m->epoch;
	sqp->own_aborted |= shift_own_is_under_way(sqp) && message_target(m) != SHIFT_PATH_OWN;
	sqp->to = message_target(m);
	sqp->qpn_here = shift_standby_qpn(sqp, sqp->to);
	if (!sqp->asks) {
		memset(&sqp->times, 0, sizeof(sqp->times));
		sqp->times.fault = m->type == SHIFT_MSG_REQ && m->req.t_detect ?
				   m->req.t_detect : ktime_get_real_ns();
	}
	if (m->type == SHIFT_MSG_REQ) {
		struct shift_msg ack = { .type = SHIFT_MSG_ACK, .epoch = m->epoch };

		/* what is there, if we did not ask, is that of an earlier switch */
		if (!sqp->asks && sqp->to != SHIFT_PATH_OWN)
			sqp->cause = SHIFT_CAUSE_PEER;
		/* with the consent the peer is fenced */
		if (shift_move_settles(m->req.cause))
			shift_move_settle(sqp, sqp->to);
		ack.ack.to = sqp->to;
		shift_switch_send(sqp, sqp->to, &ack);
	}
	sqp->times.agreed = ktime_get_real_ns();
	if (sqp->to != SHIFT_PATH_OWN)
		shift_notify_qp(sqp, SHIFT_QP_EV_AGREED, sqp->times.agreed);
	shift_own_forget(sqp);
	if (sqp->to == SHIFT_PATH_OWN)
		shift_own_hold(sqp);

	if (shift_standby_claim(sqp, sqp->to)) {
		shift_switch_fail(sqp, IB_WC_RETRY_EXC_ERR);
		return __SHIFT_EV_MAX;
	}
	err = shift_fence(sqp, &errored);
	sqp->times.fenced = ktime_get_real_ns();
	trace_shift_fence(sqp->sdev->name, sqp->qpn, sqp->epoch, sqp->heard.psn, err);
	if (err == -ECANCELED)
		return SHIFT_EV_APP_ERROR;
	if (shift_standby_recv_error(sqp)) {
		/* met before the peer was heard: no path helps */
		shift_switch_fail(sqp, shift_standby_recv_error(sqp));
		return __SHIFT_EV_MAX;
	}
	if (err == -EIO) {
		pr_warn_ratelimited("%s qp %u: the NIC of path %u cannot be asked how far it got\n",
				    sqp->sdev->name, sqp->qpn, sqp->path);
		shift_stat_inc(SHIFT_STAT_UNKNOWN);
		sqp->unfenced = true;	/* and stays so: it was stopped and is not asked again */
	} else if (err) {
		shift_switch_fail(sqp, IB_WC_RETRY_EXC_ERR);
		return __SHIFT_EV_MAX;
	}
	shift_srq_fenced(sqp);
	if (!away)
		shift_mw_recycle(sqp);
	if (sqp->to != SHIFT_PATH_OWN)
		shift_notify_qp(sqp, SHIFT_QP_EV_FENCED, sqp->times.fenced);
	return sqp->unfenced ? SHIFT_EV_UNFENCED : SHIFT_EV_FENCED;
}

/* The peer's responder got to @m: what is left is ours to post again. */
static void act_ready(struct shift_qp *sqp, const struct shift_msg *m)
{
	int err;

	/* not stopped, so not in the ledger: it cannot go on elsewhere */
	if (!test_bit(SHIFT_QP_FENCED, &sqp->flags)) {
		shift_switch_fail(sqp, IB_WC_RETRY_EXC_ERR);
		return;
	}
	err = shift_replay_progress(sqp, m);
	if (err == -ERANGE)
		pr_warn_ratelimited("%s qp %u: peer expects psn %u of epoch %u, ours begin at %u of %u: progress unknown\n",
				    sqp->sdev->name, sqp->qpn, m->progress.expected_psn,
				    m->progress.arm_epoch, sqp->sent.psn, sqp->sent.epoch);
	if (!err) {
		shift_notes_executed(sqp);
		shift_pairing_forget_keys(sqp);
	}
	/* or an atomic was executed, what it returned is lost: say so */
	if (!err)
		err = shift_standby_arm(sqp, sqp->to, sqp->epoch, m->progress.qpn);
	if (err) {
		shift_switch_fail(sqp, IB_WC_RETRY_EXC_ERR);
		return;
	}
	shift_recv_pump(sqp);
	shift_switch_ready(sqp);
}

static void act_replay(struct shift_qp *sqp, const struct shift_msg *m)
{
	struct shift_ledger *l = &sqp->ledger;
	u32 executed = 0, replayed = 0, resumed = 0;
	u8 from = sqp->path;
	u64 seq;

	if (sqp->to == SHIFT_PATH_OWN) {
		shift_own_returned(sqp);
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
	spin_unlock_bh(&sqp->ledger_lock);

	sqp->path = sqp->to;
	sqp->heard = sqp->armed[sqp->path];	/* it knows all that was before */
	sqp->unfenced = false;
	sqp->reason = SHIFT_REASON_NONE;
	sqp->asks = 0;
	sqp->executed = executed;
	sqp->replayed = replayed;
	sqp->first_done = false;
	clear_bit(SHIFT_QP_ERRORED, &sqp->flags);
	/* FENCED stays: the default QP is in RESET for good */
	/* where it was before it could not be given back, after all: that is no switch */
	if (!sqp->own_aborted || sqp->path != SHIFT_PATH_HOME) {
		sqp->switches++;
		shift_stat_inc(SHIFT_STAT_SWITCHES);
		if (sqp->path == SHIFT_PATH_HOME)
			shift_stat_inc(SHIFT_STAT_RETURNS);
	}
	shift_stat_add(SHIFT_STAT_EXECUTED, executed);
	shift_stat_add(SHIFT_STAT_REPLAYED, replayed);
	shift_stat_add(SHIFT_STAT_RESUMED, resumed);
	trace_shift_replay(sqp->sdev->name, sqp->qpn, sqp->epoch, executed, replayed);
	sqp->times.replayed = ktime_get_real_ns();
	shift_notify_qp(sqp, SHIFT_QP_EV_REPLAYED, sqp->times.replayed);
	shift_standby_open(sqp);
	shift_recv_deliver(sqp);
	/* a receive may have broken it already: that was left for RUN */
	if (shift_standby_error(sqp))
		set_bit(SHIFT_QP_STANDBY_ERR, &sqp->flags);
	set_bit(SHIFT_QP_KICK, &sqp->flags);
	set_bit(SHIFT_QP_TIDY, &sqp->flags);
	shift_own_release(sqp);
	shift_move_done(sqp);
	shift_switch_watch(sqp);
	if (sqp->path == SHIFT_PATH_HOME && from == SHIFT_PATH_BACKUP)
		shift_own_wish(sqp);
}

/* The action of a rule; returns an event that follows from it at once, or MAX. */
static enum shift_event act(struct shift_qp *sqp, const struct shift_rule *rule,
			    const struct shift_msg *m)
{
	switch (rule->action) {
	case SHIFT_ACT_PROTECT:
		sqp->reason = SHIFT_REASON_NONE;
		sqp->path = 0;
		shift_qp_note_links(sqp);
		if (sqp->ssrq)
			shift_switch_kick(sqp, SHIFT_QP_FOLLOW);
		shift_stat_inc(SHIFT_STAT_PAIRED);
		if (READ_ONCE(sqp->sdev->drained))
			shift_move_want(sqp, SHIFT_PATH_BACKUP, true);
		shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
		break;
	case SHIFT_ACT_UNPROTECT:
		shift_switch_unprotect(sqp, SHIFT_REASON_PEER_UNPROTECTED);
		break;
	case SHIFT_ACT_ASK:
		return act_ask(sqp);
	case SHIFT_ACT_NACK:
		shift_switch_nack(sqp, m);
		break;
	case SHIFT_ACT_REACK:
		act_reack(sqp);
		break;
	case SHIFT_ACT_JOIN:
		return act_join(sqp, m);
	case SHIFT_ACT_UNGATE:
		shift_switch_call_off(sqp);
		break;
	case SHIFT_ACT_PROGRESS:
		act_progress(sqp);
		break;
	case SHIFT_ACT_READY:
		act_ready(sqp, m);
		break;
	case SHIFT_ACT_REPLAY:
		act_replay(sqp, m);
		break;
	case SHIFT_ACT_FAIL:
		if (rule->event == SHIFT_EV_RX_UNKNOWN)
			pr_warn_ratelimited("%s qp %u: what the peer's NIC executed is unknown: policy strict\n",
					    sqp->sdev->name, sqp->qpn);
		/* the state is FAIL already: let the common path enter it */
		shift_switch_state(sqp, SHIFT_ST_RUN);
		shift_switch_fail(sqp, shift_standby_own_error(sqp) ?: IB_WC_RETRY_EXC_ERR);
		break;
	case SHIFT_ACT_APP:
		shift_switch_app(sqp);
		break;
	default:
		break;
	}
	return __SHIFT_EV_MAX;
}

/**
 * shift_switch_event - handle one event
 * @sqp: the QP, locked.
 * @event: what happened.
 * @m: the message, for RX events.
 */
void shift_switch_event(struct shift_qp *sqp, enum shift_event event,
			const struct shift_msg *m)
{
	lockdep_assert_held(&sqp->lock);

	while (event != __SHIFT_EV_MAX) {
		enum shift_state from = sqp->state;
		const struct shift_rule *rule = shift_fsm_find(from, event, guards(sqp, m));

		if (!rule) {
			shift_stat_inc(SHIFT_STAT_ILLEGAL);
			return;
		}
		trace_shift_qp_transition(sqp->sdev->name, sqp->qpn, from, event, rule->next,
					  rule->action, sqp->epoch);
		if (rule->action == SHIFT_ACT_KEEP) {
			if (m)
				shift_inbox_keep(sqp, m);
			return;
		}
		if (rule->action == SHIFT_ACT_JOIN && m->type == SHIFT_MSG_PROGRESS)
			shift_switch_deliver(sqp, m);
		if (rule->next != from && rule->action != SHIFT_ACT_UNPROTECT) {
			shift_switch_state(sqp, rule->next);
			start_deadline(sqp, rule->next);
		} else if (rule->action == SHIFT_ACT_ASK) {
			start_deadline(sqp, rule->next);
		}
		event = act(sqp, rule, m);
	}
}
