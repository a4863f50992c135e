// SPDX-License-Identifier: GPL-2.0
/* Which rules of pure/fsm.c are taken, and what their guards answer.  The linker puts it before. */
#include <stdio.h>
#include "end/inside.h"
#include "pure/fsm.h"

const struct shift_rule *__real_shift_fsm_find(enum shift_state state, enum shift_event event,
					       bool (*holds)(void *arg, u32 guard), void *arg);
const struct shift_rule *__wrap_shift_fsm_find(enum shift_state state, enum shift_event event,
					       bool (*holds)(void *arg, u32 guard), void *arg);

struct question {
	enum shift_state state;
	enum shift_event event;
	bool (*holds)(void *arg, u32 guard);
	void *arg;
};

static bool ask(void *arg, u32 guard)
{
	const struct question *q = arg;
	bool holds = q->holds(q->arg, guard);

	sim_rules->answer[q->state][q->event][__builtin_ctz(guard)][holds] = 1;
	return holds;
}

const struct shift_rule *__wrap_shift_fsm_find(enum shift_state state, enum shift_event event,
					       bool (*holds)(void *arg, u32 guard), void *arg)
{
	struct question q = { .state = state, .event = event, .holds = holds, .arg = arg };
	const struct shift_rule *rule = __real_shift_fsm_find(state, event, ask, &q);
	unsigned int n;

	if (rule)
		sim_rules->taken[rule - shift_fsm_rules(&n)][state] = 1;
	return rule;
}

static const char *guard_name(u32 i)
{
	static const char *const names[] = {
		"HEALTHY", "USABLE", "JOINS", "CURRENT", "AT_LEAST_ONCE", "IDLE", "NACK_GONE",
		"OWN",
	};

	return names[i];
}

static void print_rule(const struct shift_rule *r, u32 state)
{
	u32 i;

	printf("  %s, %s", shift_state_name(state), shift_event_name(r->event));
	for (i = 0; i < SIM_GUARDS; i++)
		if (r->mask >> i & 1)
			printf(", %s%s", r->want >> i & 1 ? "" : "not ", guard_name(i));
	printf(" -> %s: %s\n", shift_state_name(r->next), shift_action_name(r->action));
}

void sim_rules_print(void)
{
	u32 n, i, state, event, all = 0, taken = 0;
	const struct shift_rule *r = shift_fsm_rules(&n);

	for (i = 0; i < n; i++)
		for (state = 0; state < __SHIFT_ST_MAX; state++)
			if (r[i].from >> state & 1) {
				all++;
				taken += sim_rules->taken[i][state];
			}
	printf("%u of %u rules are taken (a rule counts for each state it is for); not these:\n",
	       taken, all);
	for (i = 0; i < n; i++)
		for (state = 0; state < __SHIFT_ST_MAX; state++)
			if (r[i].from >> state & 1 && !sim_rules->taken[i][state])
				print_rule(&r[i], state);
	printf("guards that have only one answer:\n");
	for (state = 0; state < __SHIFT_ST_MAX; state++)
		for (event = 0; event < __SHIFT_EV_MAX; event++)
			for (i = 0; i < SIM_GUARDS; i++) {
				const u8 *answer = sim_rules->answer[state][event][i];

				if (answer[0] != answer[1])
					printf("  %s, %s: %s %s holds\n", shift_state_name(state),
					       shift_event_name(event), guard_name(i),
					       answer[1] ? "always" : "never");
			}
}
