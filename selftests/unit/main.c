// SPDX-License-Identifier: GPL-2.0
/* Runs the unit tests in user space: unit [suite], or prints: unit matrix */
#include "ktap.h"
#include "pure/fsm.h"

/* per state and event: the rules, as action>next, first match first */
static void print_matrix(void)
{
	const struct shift_rule *rules;
	unsigned int n, i;
	int state, event;

	rules = shift_fsm_rules(&n);
	for (state = 0; state < __SHIFT_ST_MAX; state++) {
		printf("%s (deadline %u ms)\n", shift_state_name(state),
		       shift_fsm_deadline_ms(state));
		for (event = 0; event < __SHIFT_EV_MAX; event++) {
			printf("  %-14s", shift_event_name(event));
			for (i = 0; i < n; i++) {
				if (rules[i].event != event ||
				    !(rules[i].from & (1u << state)))
					continue;
				printf(" ");
				if (rules[i].mask)
					printf("[%#x/%#x]", rules[i].want,
					       rules[i].mask);
				printf("%s", shift_action_name(rules[i].action));
				if (rules[i].next != state)
					printf(">%s", shift_state_name(rules[i].next));
				if (!rules[i].mask)
					break;
			}
			printf("\n");
		}
	}
}

int main(int argc, char **argv)
{
	unsigned long checks;
	unsigned int bad;

	if (argc == 2 && !strcmp(argv[1], "matrix")) {
		print_matrix();
		return 0;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	bad = ktap_run(argc > 1 ? argv[1] : NULL, &checks);
	printf("# %lu expectations\n", checks);
	return bad ? 1 : 0;
}
