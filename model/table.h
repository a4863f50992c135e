/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The verifier's way to kmod/pure/fsm.c, which it is linked with: it finds a rule,
 * and remembers which transitions were taken.  At its end it appends those to
 * the file that MODEL_TAKEN names.
 */
#ifndef MODEL_TABLE_H
#define MODEL_TABLE_H

#include <stdio.h>
#include <stdlib.h>
#include "pure/fsm.h"

#define TABLE_GUARDS	256

static const struct shift_rule *table[__SHIFT_ST_MAX][__SHIFT_EV_MAX][TABLE_GUARDS];
static bool taken[__SHIFT_ST_MAX][__SHIFT_EV_MAX][TABLE_GUARDS];

static bool is_set(void *arg, u32 guard)
{
	return *(const unsigned int *)arg & guard;
}

static void __attribute__((constructor)) table_fill(void)
{
	unsigned int s, e, g;

	for (s = 0; s < __SHIFT_ST_MAX; s++)
		for (e = 0; e < __SHIFT_EV_MAX; e++)
			for (g = 0; g < TABLE_GUARDS; g++)
				table[s][e][g] = shift_fsm_find(s, e, is_set, &g);
}

static void __attribute__((destructor)) table_write(void)
{
	const char *name = getenv("MODEL_TAKEN");
	FILE *out = name ? fopen(name, "a") : NULL;
	unsigned int s, e, g;

	if (!out)
		return;
	for (s = 0; s < __SHIFT_ST_MAX; s++)
		for (e = 0; e < __SHIFT_EV_MAX; e++)
			for (g = 0; g < TABLE_GUARDS; g++)
				if (taken[s][e][g])
					fprintf(out, "%s %s %s %s\n", shift_state_name(s),
						shift_event_name(e),
						shift_action_name(table[s][e][g]->action),
						shift_state_name(table[s][e][g]->next));
	fclose(out);
}

/* Return: NULL if the table has no rule */
static const struct shift_rule *table_find(unsigned int s, unsigned int e, unsigned int g)
{
	if (table[s][e][g])
		taken[s][e][g] = true;
	return table[s][e][g];
}

#endif /* MODEL_TABLE_H */
