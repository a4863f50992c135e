// SPDX-License-Identifier: GPL-2.0
/* The table of the state machine, row by row and as a whole. */
#include "pure/fsm.h"
#include "ktap.h"

#define ALL_GUARDS	0xffu
#define FRESH		(SHIFT_G_JOINS | SHIFT_G_CURRENT)
#define LIVE		(1u << SHIFT_ST_RUN | 1u << SHIFT_ST_ASKED | 1u << SHIFT_ST_FENCE | \
			 1u << SHIFT_ST_AGREE | 1u << SHIFT_ST_SYNC)

#define for_each_state(s)	for ((s) = 0; (s) < __SHIFT_ST_MAX; (s)++)
#define for_each_event(e)	for ((e) = 0; (e) < __SHIFT_EV_MAX; (e)++)
#define for_each_guards(g)	for ((g) = 0; (g) <= ALL_GUARDS; (g)++)

struct asked {
	u32 guards;	/* that hold */
	u32 seen;	/* were asked for */
	bool twice;
};

static bool holds(void *arg, u32 guard)
{
	struct asked *a = arg;

	a->twice |= a->seen & guard;
	a->seen |= guard;
	return a->guards & guard;
}

static const struct shift_rule *find(int state, int event, u32 guards)
{
	struct asked a = { .guards = guards };

	return shift_fsm_find(state, event, holds, &a);
}

static bool is_dead(int state)
{
	return state == SHIFT_ST_OFF || state == SHIFT_ST_FAIL ||
	       state == SHIFT_ST_APP;
}

static bool is_message(int event)
{
	switch (event) {
	case SHIFT_EV_RX_REQ:
	case SHIFT_EV_RX_ACK:
	case SHIFT_EV_RX_NACK:
	case SHIFT_EV_RX_PROGRESS:
	case SHIFT_EV_RX_UNKNOWN:
	case SHIFT_EV_RX_READY:
	case SHIFT_EV_RX_GONE:
		return true;
	default:
		return false;
	}
}

/* local steps that exist in some states only */
static u32 states_of(int event)
{
	switch (event) {
	case SHIFT_EV_FENCED:
	case SHIFT_EV_UNFENCED:
		return 1u << SHIFT_ST_FENCE;
	case SHIFT_EV_UNSTOPPED:
	case SHIFT_EV_NO_QP:
		return LIVE;
	case SHIFT_EV_ALONE:
		return 1u << SHIFT_ST_AGREE | 1u << SHIFT_ST_SYNC;
	case SHIFT_EV_RETURNED:
		return 1u << SHIFT_ST_SYNC;
	default:
		return (1u << __SHIFT_ST_MAX) - 1;
	}
}

static void rows_are_sane(struct ktap *t)
{
	const struct shift_rule *rules;
	unsigned int n, i;

	rules = shift_fsm_rules(&n);
	EXPECT(t, n > 100);
	for (i = 0; i < n; i++) {
		EXPECT(t, rules[i].from && rules[i].from < 1u << __SHIFT_ST_MAX);
		EXPECT(t, rules[i].event < __SHIFT_EV_MAX);
		EXPECT(t, rules[i].action < __SHIFT_ACT_MAX);
		EXPECT(t, rules[i].next < __SHIFT_ST_MAX);
		EXPECT(t, !(rules[i].mask & ~ALL_GUARDS));
		EXPECT(t, !(rules[i].want & ~rules[i].mask));
	}
}

/* a row that can never match is a mistake in the order */
static void no_row_is_hidden(struct ktap *t)
{
	const struct shift_rule *rules, *r;
	static bool used[512];
	unsigned int n, i;
	int state, event;
	u32 g;

	rules = shift_fsm_rules(&n);
	ASSERT(t, n <= ARRAY_SIZE(used));
	memset(used, 0, sizeof(used));
	for_each_state(state) {
		for_each_event(event) {
			for_each_guards(g) {
				r = find(state, event, g);
				if (r)
					used[r - rules] = true;
			}
		}
		ktap_breathe();
	}
	/* the general row of a group may have every state taken by special ones */
	for (i = 0; i < n; i++) {
		bool whole = !rules[i].mask && !used[i];
		int s, covered = 0;

		if (used[i])
			continue;
		for_each_state(s) {
			if (rules[i].from & (1u << s)) {
				r = find(s, rules[i].event, 0);
				covered += r && r < &rules[i] && !r->mask;
			}
		}
		if (!EXPECT(t, whole && covered))
			ktap_print("    # row %u: %s\n", i,
				   shift_event_name(rules[i].event));
	}
}

static void every_event_has_its_states(struct ktap *t)
{
	int state, event;
	u32 g;

	for_each_state(state) {
		for_each_event(event) {
			bool legal = states_of(event) & (1u << state);

			for_each_guards(g)
				EXPECT(t, !!find(state, event, g) == legal);
		}
		ktap_breathe();
	}
	EXPECT(t, !find(__SHIFT_ST_MAX, SHIFT_EV_DEADLINE, 0));
	EXPECT(t, !find(SHIFT_ST_RUN, __SHIFT_EV_MAX, 0));
}

/* properties that the protocol owes its correctness to */
static void no_rule_breaks_the_protocol(struct ktap *t)
{
	const struct shift_rule *r;
	int state, event;
	u32 g;

	for_each_state(state) for_each_event(event) for_each_guards(g) {
		bool moves;

		r = find(state, event, g);
		if (!r)
			continue;
		moves = r->next != state;

		/* the end of an incarnation is final, until the application resets the QP */
		if (state == SHIFT_ST_FAIL || state == SHIFT_ST_APP)
			EXPECT(t, !moves || (event == SHIFT_EV_UNPROTECT &&
					     r->next == SHIFT_ST_OFF &&
					     r->action == SHIFT_ACT_FORGET));
		if (state == SHIFT_ST_OFF)
			EXPECT(t, !moves || event == SHIFT_EV_PAIRED ||
				  event == SHIFT_EV_APP_ERROR);
		/* nothing is called off once an error was seen or a QP fenced */
		if (r->action == SHIFT_ACT_UNGATE)
			EXPECT(t, g & SHIFT_G_HEALTHY);
		if (r->action == SHIFT_ACT_UNPROTECT)
			EXPECT(t, g & SHIFT_G_OWN);
		/* consent before fence: by a message of the failover */
		if (r->action == SHIFT_ACT_JOIN)
			EXPECT(t, r->next == SHIFT_ST_FENCE && (g & FRESH));
		if (moves && r->next == SHIFT_ST_FENCE)
			EXPECT(t, r->action == SHIFT_ACT_JOIN);
		/* agreement needs both fences: no way round FENCE and AGREE */
		if (moves && r->next == SHIFT_ST_AGREE)
			EXPECT(t, state == SHIFT_ST_FENCE &&
				  r->action == SHIFT_ACT_PROGRESS);
		if (moves && r->next == SHIFT_ST_SYNC)
			EXPECT(t, state == SHIFT_ST_AGREE &&
				  ((r->action == SHIFT_ACT_READY &&
				    (g & SHIFT_G_CURRENT)) ||
				   event == SHIFT_EV_ALONE));
		if (r->action == SHIFT_ACT_REPLAY)
			EXPECT(t, state == SHIFT_ST_SYNC &&
				  r->next == SHIFT_ST_RUN &&
				  ((g & SHIFT_G_CURRENT) || event == SHIFT_EV_RETURNED));
		/* unknown progress is only gone on with by policy, or if nothing is outstanding */
		if (event == SHIFT_EV_RX_UNKNOWN && r->action == SHIFT_ACT_READY)
			EXPECT(t, g & (SHIFT_G_AT_LEAST_ONCE | SHIFT_G_IDLE));
		/* FAIL, APP and ASKED come with their action */
		if (moves && r->next == SHIFT_ST_FAIL)
			EXPECT(t, r->action == SHIFT_ACT_FAIL);
		if (moves && r->next == SHIFT_ST_APP)
			EXPECT(t, (r->action == SHIFT_ACT_APP &&
				   event == SHIFT_EV_APP_ERROR) ||
				  (r->action == SHIFT_ACT_LEAVE &&
				   event == SHIFT_EV_UNSTOPPED));
		if (r->action == SHIFT_ACT_ASK)
			EXPECT(t, r->next == SHIFT_ST_ASKED && (g & SHIFT_G_USABLE));
		/* an old message moves nothing, but the peer's end is its end */
		if (is_message(event) && !(g & FRESH) &&
		    event != SHIFT_EV_RX_GONE)
			EXPECT(t, !moves && (r->action == SHIFT_ACT_NONE ||
					     r->action == SHIFT_ACT_NACK));
		/* a message that is kept is for a later state of this failover */
		if (r->action == SHIFT_ACT_KEEP)
			EXPECT(t, !moves && (g & SHIFT_G_CURRENT) && is_message(event));
		/* an application's own error is never held up */
		if (event == SHIFT_EV_APP_ERROR)
			EXPECT(t, is_dead(state) && state != SHIFT_ST_OFF ?
				  !moves : r->next == SHIFT_ST_APP);
	}
}

/* without any message, time alone leads out of every state */
static void every_state_has_a_way_out(struct ktap *t)
{
	const struct shift_rule *r;
	int start, state, i;
	u32 g;

	for_each_state(start) {
		if (is_dead(start) || start == SHIFT_ST_RUN)
			continue;
		EXPECT(t, shift_fsm_deadline_ms(start) > 0);
		for (g = 0; g < 4; g++) {	/* HEALTHY, USABLE */
			state = start;
			for (i = 0; i < 6 && state != SHIFT_ST_RUN &&
			     !is_dead(state); i++) {
				u32 now = g;

				/* paths to ask for come to an end */
				if (i > 2)
					now &= ~SHIFT_G_USABLE;
				r = find(state, SHIFT_EV_DEADLINE, now);
				ASSERT(t, r);
				state = r->next;
			}
			if (g & SHIFT_G_HEALTHY)
				EXPECT(t, state == SHIFT_ST_RUN ||
					  state == SHIFT_ST_FAIL);
			else
				EXPECT_EQ(t, state, SHIFT_ST_FAIL);
		}
	}
	/* an errored QP does not stay in RUN for ever */
	r = find(SHIFT_ST_RUN, SHIFT_EV_DEADLINE, 0);
	ASSERT(t, r);
	EXPECT_EQ(t, r->next, SHIFT_ST_FAIL);
}

/* the send side table, line by line */
static const struct {
	u8 state, event;
	u16 guards;
	u8 action, next;
} lines[] = {
#define L(s, e, g, a, n) \
	{ SHIFT_ST_##s, SHIFT_EV_##e, g, SHIFT_ACT_##a, SHIFT_ST_##n }
#define H	SHIFT_G_HEALTHY
#define U	SHIFT_G_USABLE
#define J	SHIFT_G_JOINS
#define C	SHIFT_G_CURRENT
#define O	SHIFT_G_OWN
	L(OFF, PAIRED, 0, PROTECT, RUN),
	L(RUN, UNPROTECT, O, UNPROTECT, OFF),
	L(RUN, UNPROTECT, H, FAIL, FAIL),	/* the QP works, but on a proxy QP */
	L(ASKED, UNPROTECT, O, UNPROTECT, OFF),
	L(SYNC, UNPROTECT, 0, FAIL, FAIL),
	L(OFF, UNPROTECT, 0, FORGET, OFF),
	L(FAIL, UNPROTECT, 0, FORGET, OFF),
	L(APP, UNPROTECT, 0, FORGET, OFF),
	/* joins */
	L(RUN, RX_REQ, H | J, JOIN, FENCE),
	L(ASKED, RX_REQ, J, JOIN, FENCE),
	L(FENCE, RX_REQ, J, JOIN, FENCE),
	L(AGREE, RX_REQ, J, JOIN, FENCE),
	L(SYNC, RX_REQ, J, JOIN, FENCE),
	L(RUN, RX_ACK, H | J, JOIN, FENCE),	/* late: we had called it off */
	L(RUN, RX_PROGRESS, H | J, JOIN, FENCE),
	L(RUN, RX_UNKNOWN, H | J, JOIN, FENCE),
	L(SYNC, RX_PROGRESS, J, JOIN, FENCE),
	/* refusals */
	L(OFF, RX_REQ, J | U, NACK, OFF),
	L(FAIL, RX_REQ, J, NACK, FAIL),
	L(APP, RX_REQ, J, NACK, APP),
	L(RUN, RX_REQ, H, NACK, RUN),
	L(ASKED, RX_REQ, H, NACK, ASKED),
	L(RUN, NO_QP, H | J, NACK, RUN),
	L(AGREE, NO_QP, J, NACK, AGREE),
	/* RUN */
	L(RUN, TRIGGER, H | U, ASK, ASKED),
	L(RUN, TRIGGER, U, ASK, ASKED),
	L(RUN, TRIGGER, H, NONE, RUN),
	L(RUN, TRIGGER, 0, NONE, RUN),
	L(RUN, DEADLINE, H, NONE, RUN),
	L(RUN, DEADLINE, U, ASK, ASKED),
	L(RUN, DEADLINE, 0, FAIL, FAIL),
	L(RUN, RX_READY, H | C, NONE, RUN),
	L(RUN, RX_GONE, H | O, UNPROTECT, OFF),
	L(RUN, RX_GONE, H, FAIL, FAIL),
	L(ASKED, RX_GONE, H | O, UNPROTECT, OFF),
	L(RUN, RX_GONE, 0, FAIL, FAIL),
	/* ASKED */
	L(ASKED, RX_ACK, C, JOIN, FENCE),
	L(ASKED, RX_ACK, 0, NONE, ASKED),
	L(ASKED, RX_NACK, C | H, UNGATE, RUN),
	L(ASKED, RX_NACK, C | H | SHIFT_G_NACK_GONE, UNGATE, RUN),
	L(ASKED, RX_NACK, C | SHIFT_G_NACK_GONE, FAIL, FAIL),
	L(ASKED, RX_NACK, C, NONE, ASKED),
	L(ASKED, RX_NACK, H, NONE, ASKED),
	L(ASKED, DEADLINE, H | U, UNGATE, RUN),
	L(ASKED, DEADLINE, U, ASK, ASKED),
	L(ASKED, DEADLINE, 0, FAIL, FAIL),
	L(ASKED, RX_PROGRESS, C, KEEP, ASKED),
	L(ASKED, RX_READY, C, KEEP, ASKED),
	L(ASKED, TRIGGER, U, NONE, ASKED),
	L(ASKED, RX_GONE, 0, FAIL, FAIL),
	/* FENCE */
	L(FENCE, FENCED, 0, PROGRESS, AGREE),
	L(FENCE, UNFENCED, 0, PROGRESS, AGREE),
	L(FENCE, DEADLINE, 0, PROGRESS, AGREE),
	L(FENCE, RX_PROGRESS, C, KEEP, FENCE),
	L(FENCE, RX_READY, C, KEEP, FENCE),
	L(FENCE, RX_PROGRESS, 0, NONE, FENCE),
	/* AGREE */
	L(AGREE, RX_PROGRESS, C, READY, SYNC),
	L(AGREE, RX_PROGRESS, 0, NONE, AGREE),
	L(AGREE, RX_UNKNOWN, C, FAIL, FAIL),
	L(AGREE, RX_UNKNOWN, C | SHIFT_G_AT_LEAST_ONCE, READY, SYNC),
	L(AGREE, RX_UNKNOWN, C | SHIFT_G_IDLE, READY, SYNC),
	L(AGREE, RX_REQ, C, REACK, AGREE),
	L(AGREE, RX_ACK, C, REACK, AGREE),
	L(AGREE, RX_READY, C, KEEP, AGREE),
	L(AGREE, ALONE, 0, ALONE, SYNC),
	L(AGREE, RX_GONE, 0, FAIL, FAIL),
	L(AGREE, DEADLINE, U, ASK, ASKED),
	L(AGREE, DEADLINE, 0, FAIL, FAIL),
	/* SYNC */
	L(SYNC, RX_READY, C, REPLAY, RUN),
	L(SYNC, RX_READY, 0, NONE, SYNC),
	L(SYNC, RX_REQ, C, REACK, SYNC),
	L(SYNC, RX_PROGRESS, C, REACK, SYNC),
	L(RUN, RX_PROGRESS, H | C, REACK, RUN),
	L(SYNC, RX_GONE, 0, FAIL, FAIL),
	L(SYNC, ALONE, 0, ALONE, SYNC),
	L(SYNC, RETURNED, 0, REPLAY, RUN),
	L(SYNC, DEADLINE, U, ASK, ASKED),
	L(SYNC, DEADLINE, 0, FAIL, FAIL),
	/* ends */
	L(RUN, APP_ERROR, H, APP, APP),
	L(FENCE, APP_ERROR, 0, APP, APP),
	L(SYNC, UNSTOPPED, 0, LEAVE, APP),
	L(RUN, FAIL, H | U, FAIL, FAIL),
	L(SYNC, FAIL, 0, FAIL, FAIL),
	L(APP, FAIL, 0, NONE, APP),
	L(OFF, FAIL, 0, NONE, OFF),
	L(OFF, APP_ERROR, 0, APP, APP),
	L(FAIL, APP_ERROR, 0, NONE, FAIL),
	L(APP, APP_ERROR, 0, NONE, APP),
	L(FAIL, PAIRED, H | U, NONE, FAIL),
};

static void the_table_says_what_the_protocol_says(struct ktap *t)
{
	const struct shift_rule *r;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		r = find(lines[i].state, lines[i].event, lines[i].guards);
		if (EXPECT(t, r && r->action == lines[i].action &&
			      r->next == lines[i].next))
			continue;
		ktap_print("    # %s + %s [%#x]: %s > %s\n",
			   shift_state_name(lines[i].state),
			   shift_event_name(lines[i].event), lines[i].guards,
			   r ? shift_action_name(r->action) : "none",
			   r ? shift_state_name(r->next) : "none");
	}
}

/* a guard may cost something: only what the rows before the answer need is asked, once */
static void guards_are_asked_for_on_demand(struct ktap *t)
{
	int state, event;
	u32 g;

	for_each_state(state) for_each_event(event) for_each_guards(g) {
		struct asked a = { .guards = g };
		const struct shift_rule *r = shift_fsm_find(state, event, holds, &a);

		EXPECT(t, !a.twice);
		if (r)
			EXPECT(t, (r->mask & a.seen) == r->mask);
		/* a local event looks at no message */
		if (!is_message(event))
			EXPECT(t, !(a.seen & FRESH));
		/* what is over is asked nothing */
		if (is_dead(state))
			EXPECT(t, !a.seen);
	}
}

static void deadlines(struct ktap *t)
{
	static const u16 want[__SHIFT_ST_MAX] = {
		[SHIFT_ST_ASKED] = 300,
		[SHIFT_ST_FENCE] = 2000,
		[SHIFT_ST_AGREE] = 1000,
		[SHIFT_ST_SYNC] = 1000,
	};
	int state;

	for_each_state(state)
		EXPECT_EQ(t, shift_fsm_deadline_ms(state), want[state]);
	EXPECT_EQ(t, shift_fsm_deadline_ms(__SHIFT_ST_MAX), 0);
}

static void names(struct ktap *t)
{
	int i, j;

	for_each_state(i) {
		EXPECT(t, shift_state_name(i)[0] != '?');
		for (j = 0; j < i; j++)
			EXPECT(t, strcmp(shift_state_name(i), shift_state_name(j)));
	}
	for_each_event(i)
		EXPECT(t, shift_event_name(i)[0] != '?');
	for (i = 0; i < __SHIFT_ACT_MAX; i++)
		EXPECT(t, shift_action_name(i)[0] != '?');
	EXPECT(t, !strcmp(shift_state_name(__SHIFT_ST_MAX), "?"));
	EXPECT(t, !strcmp(shift_event_name(__SHIFT_EV_MAX), "?"));
	EXPECT(t, !strcmp(shift_action_name(__SHIFT_ACT_MAX), "?"));
	EXPECT(t, !strcmp(shift_state_name((enum shift_state)-1), "?"));
}

static void epochs(struct ktap *t)
{
	struct rnd r = { .state = 1 };
	int i;

	EXPECT_EQ(t, shift_epoch_next(0, true), 1);
	EXPECT_EQ(t, shift_epoch_next(0, false), 2);
	EXPECT_EQ(t, shift_epoch_next(1, true), 3);
	EXPECT_EQ(t, shift_epoch_next(1, false), 2);
	EXPECT_EQ(t, shift_epoch_next(0xfffffffeu, true), 0xffffffffu);
	EXPECT_EQ(t, shift_epoch_next(0xfffffffeu, false), 0);
	EXPECT_EQ(t, shift_epoch_next(0xffffffffu, true), 0);
	EXPECT_EQ(t, shift_epoch_next(0xffffffffu, false), 0);
	for (i = 0; i < 1000; i++) {
		u32 highest = rnd32(&r) >> 1;
		u32 odd = shift_epoch_next(highest, true);
		u32 even = shift_epoch_next(highest, false);

		EXPECT(t, odd > highest && odd - highest <= 2 && (odd & 1));
		EXPECT(t, even > highest && even - highest <= 2 && !(even & 1));
	}
}

static void a_refused_ask_learns_the_peers_epoch(struct ktap *t)
{
	EXPECT_EQ(t, shift_epoch_learn(4, 9), 9);
	EXPECT_EQ(t, shift_epoch_learn(9, 4), 9);
	EXPECT_EQ(t, shift_epoch_learn(9, 9), 9);
	EXPECT_EQ(t, shift_epoch_learn(9, 0), 9);
	EXPECT_EQ(t, shift_epoch_learn(0xfffffff0u, 0xfffffffeu), 0xfffffffeu);
	/* not to the end of all epochs at once */
	EXPECT_EQ(t, shift_epoch_learn(9, 0xffffffffu), 9);
	EXPECT_EQ(t, shift_epoch_learn(9, 9 + (1u << 24)), 9 + (1u << 24));
	EXPECT_EQ(t, shift_epoch_learn(9, 10 + (1u << 24)), 9);
}

static const struct ktap_case cases[] = {
	KTAP_CASE(rows_are_sane),
	KTAP_CASE(no_row_is_hidden),
	KTAP_CASE(every_event_has_its_states),
	KTAP_CASE(no_rule_breaks_the_protocol),
	KTAP_CASE(every_state_has_a_way_out),
	KTAP_CASE(the_table_says_what_the_protocol_says),
	KTAP_CASE(guards_are_asked_for_on_demand),
	KTAP_CASE(deadlines),
	KTAP_CASE(names),
	KTAP_CASE(epochs),
	KTAP_CASE(a_refused_ask_learns_the_peers_epoch),
};

KTAP_SUITE(fsm, cases);
