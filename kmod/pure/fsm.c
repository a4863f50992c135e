// SPDX-License-Identifier: GPL-2.0
/*
 * The state machine of a protected QP as one table: see Documentation/internals/protocol.md.
 *
 * Rows are grouped by event and tried in order; the first one whose state and
 * guards match is the rule.  What the network may deliver at any time has a row
 * in every state, so that only a local event in the wrong state finds none.
 */
#include "pure/fsm.h"

#define SHIFT_EPOCH_LEAP	(1u << 24)	/* more than a peer can have asked in years */

#define ST(s)	(1u << SHIFT_ST_##s)
#define G(g)	SHIFT_G_##g

#define RULE(_from, _event, _mask, _want, _action, _next) {	\
	.from = (_from),					\
	.event = SHIFT_EV_##_event,				\
	.mask = (_mask),					\
	.want = (_want),					\
	.action = SHIFT_ACT_##_action,				\
	.next = SHIFT_ST_##_next,				\
}

/* a row that matches: always; if all of these guards hold; if none of them holds */
#define ALWAYS(from, event, action, next) \
	RULE(from, event, 0, 0, action, next)
#define IF(from, event, guards, action, next) \
	RULE(from, event, guards, guards, action, next)
#define UNLESS(from, event, guards, action, next) \
	RULE(from, event, guards, 0, action, next)

/* rows that do not leave their state */
#define STAY(s, event, action)		ALWAYS(ST(s), event, action, s)
#define STAY_IF(s, event, g, action)	IF(ST(s), event, g, action, s)
#define STAY_MOVED(event, action)	/* after the fence */	\
	STAY(FENCE, event, action),				\
	STAY(AGREE, event, action),				\
	STAY(SYNC, event, action)
#define STAY_LIVE(event, action)				\
	STAY(RUN, event, action),				\
	STAY(ASKED, event, action),				\
	STAY_MOVED(event, action)
#define STAY_DEAD(event, action)				\
	STAY(OFF, event, action),				\
	STAY(FAIL, event, action),				\
	STAY(APP, event, action)
#define STAY_ALL(event, action)					\
	STAY_LIVE(event, action),				\
	STAY_DEAD(event, action)

/* any state of a failover, and RUN */
#define LIVE	(ST(RUN) | ST(ASKED) | ST(FENCE) | ST(AGREE) | ST(SYNC))

/* ask for another path; if there is none, an errored or fenced QP fails */
#define ASK_OR_FAIL(from, event)			\
	IF(from, event, G(USABLE), ASK, ASKED),		\
	ALWAYS(from, event, FAIL, FAIL)

static const struct shift_rule rules[] = {
	/* the protection begins and ends */
	ALWAYS(ST(OFF), PAIRED, PROTECT, RUN),
	STAY_LIVE(PAIRED, NONE),
	STAY(FAIL, PAIRED, NONE),
	STAY(APP, PAIRED, NONE),

	IF(LIVE, UNPROTECT, G(OWN), UNPROTECT, OFF),
	ALWAYS(LIVE, UNPROTECT, FAIL, FAIL),	/* its own QP does not work */
	STAY(OFF, UNPROTECT, FORGET),
	ALWAYS(ST(FAIL) | ST(APP), UNPROTECT, FORGET, OFF),

	/* faults, and failovers that are wanted */
	IF(ST(RUN), TRIGGER, G(USABLE), ASK, ASKED),
	STAY_ALL(TRIGGER, NONE),

	/* what the peer asks for */
	IF(LIVE, RX_REQ, G(JOINS), JOIN, FENCE),
	STAY_IF(RUN, RX_REQ, G(CURRENT), NONE),	/* a late copy: that failover is done */
	STAY_IF(FENCE, RX_REQ, G(CURRENT), KEEP),
	STAY_IF(AGREE, RX_REQ, G(CURRENT), REACK),
	STAY_IF(SYNC, RX_REQ, G(CURRENT), REACK),
	STAY_ALL(RX_REQ, NACK),

	/* a message could be joined, but there is no QP for its target */
	STAY_LIVE(NO_QP, NACK),

	/* answers */
	IF(LIVE, RX_ACK, G(JOINS), JOIN, FENCE),
	IF(ST(ASKED), RX_ACK, G(CURRENT), JOIN, FENCE),
	STAY_IF(AGREE, RX_ACK, G(CURRENT), REACK),
	STAY_IF(SYNC, RX_ACK, G(CURRENT), REACK),
	STAY_ALL(RX_ACK, NONE),

	IF(ST(ASKED), RX_NACK, G(CURRENT) | G(HEALTHY), UNGATE, RUN),
	IF(ST(ASKED), RX_NACK, G(CURRENT) | G(NACK_GONE), FAIL, FAIL),
	STAY_ALL(RX_NACK, NONE),	/* at the deadline an errored or fenced QP asks again */

	/* the fence */
	ALWAYS(ST(FENCE), FENCED, PROGRESS, AGREE),
	ALWAYS(ST(FENCE), UNFENCED, PROGRESS, AGREE),

	/* agreement */
	IF(LIVE, RX_PROGRESS, G(JOINS), JOIN, FENCE),
	STAY_IF(ASKED, RX_PROGRESS, G(CURRENT), KEEP),
	STAY_IF(FENCE, RX_PROGRESS, G(CURRENT), KEEP),
	IF(ST(AGREE), RX_PROGRESS, G(CURRENT), READY, SYNC),
	/* the peer asks again, as our answer was lost */
	STAY_IF(SYNC, RX_PROGRESS, G(CURRENT), REACK),
	STAY_IF(RUN, RX_PROGRESS, G(CURRENT), REACK),
	STAY_ALL(RX_PROGRESS, NONE),

	IF(LIVE, RX_UNKNOWN, G(JOINS), JOIN, FENCE),
	STAY_IF(ASKED, RX_UNKNOWN, G(CURRENT), KEEP),
	STAY_IF(FENCE, RX_UNKNOWN, G(CURRENT), KEEP),
	IF(ST(AGREE), RX_UNKNOWN, G(CURRENT) | G(AT_LEAST_ONCE), READY, SYNC),
	IF(ST(AGREE), RX_UNKNOWN, G(CURRENT) | G(IDLE), READY, SYNC),
	IF(ST(AGREE), RX_UNKNOWN, G(CURRENT), FAIL, FAIL),
	STAY_ALL(RX_UNKNOWN, NONE),

	STAY_IF(ASKED, RX_READY, G(CURRENT), KEEP),
	STAY_IF(FENCE, RX_READY, G(CURRENT), KEEP),
	STAY_IF(AGREE, RX_READY, G(CURRENT), KEEP),
	IF(ST(SYNC), RX_READY, G(CURRENT), REPLAY, RUN),
	STAY_ALL(RX_READY, NONE),

	/* the peer's QP has ended: its cookie, not the epoch, tells that it is this one's */
	IF(ST(RUN) | ST(ASKED), RX_GONE, G(HEALTHY) | G(OWN), UNPROTECT, OFF),
	ALWAYS(LIVE, RX_GONE, FAIL, FAIL),
	STAY_DEAD(RX_GONE, NONE),

	/* the peer's QP has ended during a handback: the remaining steps are local */
	ALWAYS(ST(AGREE) | ST(SYNC), ALONE, ALONE, SYNC),
	ALWAYS(ST(SYNC), RETURNED, REPLAY, RUN),

	/* deadlines: every state that waits has one */
	STAY_IF(RUN, DEADLINE, G(HEALTHY), NONE),
	ASK_OR_FAIL(ST(RUN), DEADLINE),
	IF(ST(ASKED), DEADLINE, G(HEALTHY), UNGATE, RUN),
	ASK_OR_FAIL(ST(ASKED), DEADLINE),
	ALWAYS(ST(FENCE), DEADLINE, PROGRESS, AGREE),	/* as UNFENCED */
	ASK_OR_FAIL(ST(AGREE) | ST(SYNC), DEADLINE),
	STAY_DEAD(DEADLINE, NONE),

	/* the QP fails, or the application ends it */
	ALWAYS(LIVE, FAIL, FAIL, FAIL),
	STAY_DEAD(FAIL, NONE),
	ALWAYS(LIVE, UNSTOPPED, LEAVE, APP),
	/* shown before there was a peer: a QP that is broken is not to be protected */
	ALWAYS(LIVE | ST(OFF), APP_ERROR, APP, APP),
	STAY(FAIL, APP_ERROR, NONE),
	STAY(APP, APP_ERROR, NONE),
};

/* Do the row's guards have the values that it wants?  @known and @set keep the answers. */
static bool row_matches(const struct shift_rule *r, u32 *known, u32 *set,
			bool (*holds)(void *arg, u32 guard), void *arg)
{
	u32 ask;

	for (ask = r->mask; ask; ask &= ask - 1) {
		u32 guard = ask & -ask;

		if (!(*known & guard)) {
			*known |= guard;
			if (holds(arg, guard))
				*set |= guard;
		}
		if ((*set ^ r->want) & guard)
			return false;
	}
	return true;
}

/**
 * shift_fsm_find() - the rule for an event
 * @state: state of the QP.
 * @event: what happened.
 * @holds: does one guard, SHIFT_G_*, hold?  Must not change anything.
 * @arg: for @holds.
 *
 * A guard is asked for when a row needs it, and at most once.
 *
 * Context: that of @holds.
 * Return: the first row that matches, or NULL if the event is illegal in @state
 * (the caller counts it and does nothing).
 */
const struct shift_rule *shift_fsm_find(enum shift_state state, enum shift_event event,
					bool (*holds)(void *arg, u32 guard), void *arg)
{
	u32 known = 0, set = 0;
	unsigned int i;

	BUILD_BUG_ON(__SHIFT_ST_MAX > 16);	/* width of shift_rule.from */

	if ((unsigned int)state >= __SHIFT_ST_MAX)
		return NULL;

	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		const struct shift_rule *r = &rules[i];

		if (r->event == event && (r->from & (1u << state)) &&
		    row_matches(r, &known, &set, holds, arg))
			return r;
	}
	return NULL;
}

/**
 * shift_fsm_rules() - the whole table, for tests and documentation
 * @n: number of rows.
 *
 * Return: the first row.
 */
const struct shift_rule *shift_fsm_rules(unsigned int *n)
{
	*n = ARRAY_SIZE(rules);
	return rules;
}

static const char *const state_names[] = {
	[SHIFT_ST_OFF]		= "OFF",
	[SHIFT_ST_RUN]		= "RUN",
	[SHIFT_ST_ASKED]	= "ASKED",
	[SHIFT_ST_FENCE]	= "FENCE",
	[SHIFT_ST_AGREE]	= "AGREE",
	[SHIFT_ST_SYNC]		= "SYNC",
	[SHIFT_ST_FAIL]		= "FAIL",
	[SHIFT_ST_APP]		= "APP",
};

static const char *const event_names[] = {
	[SHIFT_EV_PAIRED]	= "PAIRED",
	[SHIFT_EV_TRIGGER]	= "TRIGGER",
	[SHIFT_EV_RX_REQ]	= "RX_REQ",
	[SHIFT_EV_RX_ACK]	= "RX_ACK",
	[SHIFT_EV_RX_NACK]	= "RX_NACK",
	[SHIFT_EV_FENCED]	= "FENCED",
	[SHIFT_EV_UNFENCED]	= "UNFENCED",
	[SHIFT_EV_RX_PROGRESS]	= "RX_PROGRESS",
	[SHIFT_EV_RX_UNKNOWN]	= "RX_UNKNOWN",
	[SHIFT_EV_RX_READY]	= "RX_READY",
	[SHIFT_EV_RX_GONE]	= "RX_GONE",
	[SHIFT_EV_DEADLINE]	= "DEADLINE",
	[SHIFT_EV_APP_ERROR]	= "APP_ERROR",
	[SHIFT_EV_FAIL]		= "FAIL",
	[SHIFT_EV_UNSTOPPED]	= "UNSTOPPED",
	[SHIFT_EV_UNPROTECT]	= "UNPROTECT",
	[SHIFT_EV_NO_QP]	= "NO_QP",
	[SHIFT_EV_ALONE]	= "ALONE",
	[SHIFT_EV_RETURNED]	= "RETURNED",
};

static const char *const action_names[] = {
	[SHIFT_ACT_NONE]	= "NONE",
	[SHIFT_ACT_PROTECT]	= "PROTECT",
	[SHIFT_ACT_UNPROTECT]	= "UNPROTECT",
	[SHIFT_ACT_FORGET]	= "FORGET",
	[SHIFT_ACT_ASK]		= "ASK",
	[SHIFT_ACT_NACK]	= "NACK",
	[SHIFT_ACT_REACK]	= "REACK",
	[SHIFT_ACT_JOIN]	= "JOIN",
	[SHIFT_ACT_UNGATE]	= "UNGATE",
	[SHIFT_ACT_PROGRESS]	= "PROGRESS",
	[SHIFT_ACT_READY]	= "READY",
	[SHIFT_ACT_REPLAY]	= "REPLAY",
	[SHIFT_ACT_KEEP]	= "KEEP",
	[SHIFT_ACT_FAIL]	= "FAIL",
	[SHIFT_ACT_APP]		= "APP",
	[SHIFT_ACT_LEAVE]	= "LEAVE",
	[SHIFT_ACT_ALONE]	= "ALONE",
};

/**
 * shift_state_name() - name of a state
 * @state: any value.
 *
 * Return: the name, "?" for a value that is no state.
 */
const char *shift_state_name(enum shift_state state)
{
	BUILD_BUG_ON(ARRAY_SIZE(state_names) != __SHIFT_ST_MAX);
	return (unsigned int)state < __SHIFT_ST_MAX ? state_names[state] : "?";
}

/**
 * shift_event_name() - name of an event
 * @event: any value.
 *
 * Return: the name, "?" for a value that is no event.
 */
const char *shift_event_name(enum shift_event event)
{
	BUILD_BUG_ON(ARRAY_SIZE(event_names) != __SHIFT_EV_MAX);
	return (unsigned int)event < __SHIFT_EV_MAX ? event_names[event] : "?";
}

/**
 * shift_action_name() - name of an action
 * @action: any value.
 *
 * Return: the name, "?" for a value that is no action.
 */
const char *shift_action_name(enum shift_action action)
{
	BUILD_BUG_ON(ARRAY_SIZE(action_names) != __SHIFT_ACT_MAX);
	return (unsigned int)action < __SHIFT_ACT_MAX ? action_names[action] : "?";
}

/**
 * shift_fsm_deadline_ms() - how long a QP may stay in a state
 * @state: the state.
 *
 * The time is counted from the entry; a rule that does not leave the state must not start it
 * anew, unless it asks again.  It begins anew if no path to the peer works, and if the peer says
 * that its QP waits for its turn.  RUN has none in the table: an errored QP that found no usable
 * path gets SHIFT_EV_DEADLINE a second after the fault.
 *
 * Return: milliseconds, 0 for a state without a deadline.
 */
unsigned int shift_fsm_deadline_ms(enum shift_state state)
{
	switch (state) {
	case SHIFT_ST_ASKED:
		return 300;
	case SHIFT_ST_FENCE:
		return 2000;
	case SHIFT_ST_AGREE:
	case SHIFT_ST_SYNC:
		return 1000;
	default:
		return 0;
	}
}

/**
 * shift_epoch_next() - the epoch of a new REQ
 * @highest: highest epoch ever sent or joined.
 * @odd: our parity; the peer has the other one, so that two REQs never have the same epoch.
 *
 * Return: the smallest epoch above @highest with our parity; 0, which is no
 * epoch, when there is none left.
 */
u32 shift_epoch_next(u32 highest, bool odd)
{
	u32 next = highest + 1;

	if (!next)
		return 0;
	if ((next & 1) != (odd ? 1u : 0u))
		next++;
	return next;
}

/**
 * shift_epoch_learn() - take over the epoch of a peer that sends a NACK or a PAIR
 * @highest: highest epoch ever sent or joined.
 * @busy: that of the peer; 0: it has none.
 *
 * A peer whose REQs got no answer has a higher epoch, and would refuse ours until we have asked as
 * often.  A leap that is too large for that is not believed, because epochs can run out.
 *
 * Return: the epoch that the next REQ has to exceed.
 */
u32 shift_epoch_learn(u32 highest, u32 busy)
{
	return busy > highest && busy - highest <= SHIFT_EPOCH_LEAP ? busy : highest;
}
