// SPDX-License-Identifier: GPL-2.0
/*
 * Handles one event of a QP: finds the rule in fsm.c, takes over its next state and calls its
 * action.  Only this file writes the state, and only this file evaluates the guards.
 *
 * Everything here runs in the QP's work item, or in a control verb of the application, under
 * sqp->lock.  The state is also written under inbox_lock, so that the CQE filter, which must
 * not sleep, sees it together with the pending bits.
 */
#include <linux/ktime.h>
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/stat.h"
#include "core/trace.h"
#include "failover/internal.h"
#include "link/link.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"
#include "pure/msg.h"
#include "srq/srq.h"

/* A link sends heartbeats while a QP that uses it is protected, and only then. */
static void set_state(struct shift_qp *sqp, enum shift_state state)
{
	bool was = shift_state_is_protected(sqp->fo.state), is = shift_state_is_protected(state);
	int i;

	spin_lock_bh(&sqp->inbox_lock);
	if (sqp->fo.state == SHIFT_ST_RUN)
		sqp->fo.began_ns = ktime_get_ns();
	WRITE_ONCE(sqp->fo.state, state);
	spin_unlock_bh(&sqp->inbox_lock);
	sqp->move.waits = 0;
	if (state != SHIFT_ST_RUN) {
		shift_silence_over(sqp);
		/* what the NIC answers now is of no use for a later error */
		sqp->report.open = false;
	}
	if (!is)
		shift_handback_over(sqp);
	for (i = 0; i < ARRAY_SIZE(sqp->peer.link) && was != is; i++)
		if (sqp->peer.link[i])
			shift_link_guard(sqp->peer.link[i], &sqp->peer.use[i], is);
}

/* Is no operation outstanding for which the peer's progress has to be known? */
static bool qp_is_idle(struct shift_qp *sqp)
{
	bool idle, once;

	spin_lock_bh(&sqp->ledger_lock);
	idle = !shift_replay_doubtful(sqp, &once);
	spin_unlock_bh(&sqp->ledger_lock);
	return idle;
}

/* If the QP is on an SRQ: can the SRQ's other QPs go to that path, too? */
static bool srq_can_join(struct shift_qp *sqp, u8 path)
{
	bool must;
	u8 others = shift_srq_path(sqp, &must);

	return shift_srq_movable(sqp) && (!must || others == path);
}

/**
 * shift_failover_joins - may the epoch of a message be joined?
 * @sqp: the QP, locked.
 * @m: the message.
 *
 * Whether there is a QP for its target is not asked here: shift_failover_prepare() makes one.
 *
 * Return: true if the QP may leave its path for the epoch of @m.
 */
bool shift_failover_joins(struct shift_qp *sqp, const struct shift_msg *m)
{
	u8 to = shift_msg_target(m);

	lockdep_assert_held(&sqp->lock);
	return shift_qp_is_protected(sqp) &&
	       (m->type == SHIFT_MSG_REQ || m->type == SHIFT_MSG_ACK ||
		m->type == SHIFT_MSG_PROGRESS) &&
	       m->epoch > sqp->fo.epoch && m->epoch >= sqp->fo.highest &&
	       sqp->peer.ok && sqp->rings.usable &&
	       shift_qp_cqs_registered(sqp) &&
	       srq_can_join(sqp, to) &&
	       (to != SHIFT_PATH_OWN || shift_handback_able(sqp));
}

/*
 * Is this the consent to a path to which the other QPs of the SRQ do not go any more?  The ACK is
 * ignored then; at the deadline the QP asks for the path to which they go.
 */
static bool ack_awaits_srq(struct shift_qp *sqp, const struct shift_msg *m)
{
	return m->type == SHIFT_MSG_ACK && sqp->fo.state == SHIFT_ST_ASKED &&
	       !srq_can_join(sqp, m->ack.to);
}

/* Do both ends accept that an operation may be executed twice? */
static bool both_accept_twice(const struct shift_qp *sqp, const struct shift_msg *m)
{
	return m->type == SHIFT_MSG_PROGRESS && m->progress.flags & SHIFT_PROGRESS_AT_LEAST_ONCE &&
	       shift_qp_policy(sqp) == SHIFT_POLICY_AT_LEAST_ONCE;
}

/* What guards are evaluated on. */
struct occasion {
	struct shift_qp *sqp;
	const struct shift_msg *m;
};

static bool guard_holds(void *arg, u32 guard)
{
	const struct occasion *on = arg;
	struct shift_qp *sqp = on->sqp;
	const struct shift_msg *m = on->m;

	switch (guard) {
	case SHIFT_G_HEALTHY:
		return shift_path_healthy(sqp);
	case SHIFT_G_USABLE:
		return shift_path_usable(sqp);
	case SHIFT_G_IDLE:
		return qp_is_idle(sqp);
	case SHIFT_G_OWN:
		return !shift_qp_is_moved(sqp) && !test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags);
	case SHIFT_G_JOINS:
		return m && shift_failover_joins(sqp, m);
	case SHIFT_G_CURRENT:
		return m && m->epoch == shift_epoch_current(sqp) && !ack_awaits_srq(sqp, m);
	case SHIFT_G_AT_LEAST_ONCE:
		return m && both_accept_twice(sqp, m);
	case SHIFT_G_NACK_GONE:
		return m && m->type == SHIFT_MSG_NACK && m->nack.code == SHIFT_NACK_GONE;
	default:
		return false;
	}
}

/**
 * shift_failover_event - handle one event, and those that follow from it at once
 * @sqp: the QP, locked.
 * @event: what happened.
 * @m: the message, for RX events.
 *
 * Context: process context; sleeps if the rule's action does.
 */
void shift_failover_event(struct shift_qp *sqp, enum shift_event event,
			  const struct shift_msg *m)
{
	struct occasion on = { .sqp = sqp, .m = m };
	bool runs = false;

	lockdep_assert_held(&sqp->lock);
	while (event != __SHIFT_EV_MAX) {
		enum shift_state from = sqp->fo.state;
		const struct shift_rule *rule = shift_fsm_find(from, event, guard_holds, &on);
		enum shift_event instead;

		if (!rule) {
			shift_stat_inc(SHIFT_STAT_ILLEGAL);
			return;
		}
		instead = shift_failover_prepare(sqp, rule, m);
		if (instead != __SHIFT_EV_MAX) {
			event = instead;
			continue;
		}
		trace_shift_qp_transition(sqp->sdev->name, sqp->qpn, from, event, rule->next,
					  rule->action, sqp->fo.epoch);
		if (rule->next != from)
			set_state(sqp, rule->next);
		runs = rule->next != from && rule->next == SHIFT_ST_RUN;
		/* a new REQ has a new deadline, also if it is sent in ASKED */
		if (rule->next != from || rule->action == SHIFT_ACT_ASK)
			shift_deadline_start(sqp, rule->next);
		event = shift_failover_act(sqp, rule, m);
	}
	if (runs)
		shift_qp_is_mute(sqp, true);
}

/**
 * shift_failover_fail - the QP cannot go on: show its application an error
 * @sqp: the QP, locked; nothing happens if it is not protected.
 * @status: of the first unfinished operation; the others are flushed.
 *
 * Context: process context; sleeps as a fence does.
 */
void shift_failover_fail(struct shift_qp *sqp, u32 status)
{
	lockdep_assert_held(&sqp->lock);
	if (shift_qp_is_protected(sqp))
		sqp->fo.fail_status = status;
	shift_failover_event(sqp, SHIFT_EV_FAIL, NULL);
}

/**
 * shift_failover_unprotect - end the protection: the QP goes on as without the module
 * @sqp: the QP, locked.
 * @reason: what operators are told.
 *
 * A QP that has left its default NIC, or whose error was kept back, cannot go on: it fails.
 *
 * Context: process context; sleeps as a fence does.
 */
void shift_failover_unprotect(struct shift_qp *sqp, enum shift_reason reason)
{
	lockdep_assert_held(&sqp->lock);
	sqp->fo.reason = reason;
	shift_failover_event(sqp, SHIFT_EV_UNPROTECT, NULL);
}
