// SPDX-License-Identifier: GPL-2.0
/*
 * --sabotage KIND does one thing wrong, once, on the client's first QP: proves that
 * the checks can fail. READ sources and receives are spoilt by the server, who owns them.
 */
#include <string.h>

#include "ops.h"

#define FIRST_SEQ 40

static const char * const kinds[] = {
	"corrupt", "double-send", "skip", "late-write", "double-add", "double-swap",
	"imm", "signal", "unsignal", "stale-read", "rkey", "revive", "length",
	"receive",
};

void sabotage_check(const char *kind)
{
	unsigned int i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kind, kinds[i]))
			return;
	die(EXIT_SETUP, "no such --sabotage");
}

/* True once, where it is to be done. */
bool sabotage(struct rig *rig, const char *kind, const struct lane *lane, uint64_t seq)
{
	const struct options *opt = &rig->side.opt;
	bool at_server = !strcmp(kind, "stale-read") || !strcmp(kind, "receive");

	if (!opt->sabotage || rig->sabotaged || strcmp(opt->sabotage, kind) ||
	    !opt->server != at_server || lane->out.qp || seq < FIRST_SEQ)
		return false;
	rig->sabotaged = true;
	say("sabotage %s at %llu", kind, (unsigned long long)seq);
	return true;
}
