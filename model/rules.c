// SPDX-License-Identifier: GPL-2.0
/*
 * What the model takes from the code: linked with kmod/pure/fsm.c.
 *
 *	rules names	names.h: numbers of states, events, actions, guards
 *	rules list	every transition that the table can take, one per line:
 *			state event action next
 */
#include <stdlib.h>
#include "pure/fsm.h"

#define NUM_GUARDS	8

static const struct {
	const char *name;
	unsigned int bit;
} guards[NUM_GUARDS] = {
#define G(g)	{ #g, SHIFT_G_##g }
	G(HEALTHY), G(USABLE), G(JOINS), G(CURRENT), G(AT_LEAST_ONCE), G(IDLE),
	G(NACK_GONE), G(OWN),
};

static bool is_set(void *arg, u32 guard)
{
	return *(const unsigned int *)arg & guard;
}

static int names(void)
{
	unsigned int known = 0, n, i;
	const struct shift_rule *rules = shift_fsm_rules(&n);

	for (i = 0; i < __SHIFT_ST_MAX; i++)
		printf("#define %s %u\n", shift_state_name(i), i);
	for (i = 0; i < __SHIFT_EV_MAX; i++)
		printf("#define EV_%s %u\n", shift_event_name(i), i);
	printf("#define NO_EVENT %u\n", __SHIFT_EV_MAX);
	for (i = 0; i < __SHIFT_ACT_MAX; i++)
		printf("#define ACT_%s %u\n", shift_action_name(i), i);
	for (i = 0; i < NUM_GUARDS; i++) {
		printf("#define G_%s %u\n", guards[i].name, guards[i].bit);
		known |= guards[i].bit;
	}
	printf("#define NO_RULE %u\n", __SHIFT_ACT_MAX);
	printf("#define HAS_DEADLINE(s) (false");
	for (i = 0; i < __SHIFT_ST_MAX; i++)
		if (shift_fsm_deadline_ms(i))
			printf(" || (s) == %s", shift_state_name(i));
	printf(")\n");
	for (i = 0; i < n; i++) {
		if (rules[i].mask & ~known) {
			fprintf(stderr, "a rule for %s has a guard that the model does not know\n",
				shift_event_name(rules[i].event));
			return 1;
		}
	}
	return 0;
}

static void list_one(unsigned int state, unsigned int event)
{
	static bool seen[__SHIFT_ACT_MAX][__SHIFT_ST_MAX];
	const struct shift_rule *r;
	unsigned int g;

	memset(seen, 0, sizeof(seen));
	for (g = 0; g < 1u << NUM_GUARDS; g++) {
		r = shift_fsm_find(state, event, is_set, &g);
		if (!r || seen[r->action][r->next])
			continue;
		seen[r->action][r->next] = true;
		printf("%s %s %s %s\n", shift_state_name(state),
		       shift_event_name(event), shift_action_name(r->action),
		       shift_state_name(r->next));
	}
}

int main(int argc, char **argv)
{
	unsigned int state, event;

	if (argc == 2 && !strcmp(argv[1], "names"))
		return names();
	if (argc != 2 || strcmp(argv[1], "list")) {
		fprintf(stderr, "usage: rules names|list\n");
		return 2;
	}
	for (state = 0; state < __SHIFT_ST_MAX; state++)
		for (event = 0; event < __SHIFT_EV_MAX; event++)
			list_one(state, event);
	return 0;
}
