// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftctl key: the keys by which nodes prove to each other who they are.
 */
#include <stdio.h>

#include "ctl/ctl.h"
#include "lib/key.h"

static int key_load(struct ctl *ctl, int argc, char **argv)
{
	char err[512];
	int n = shift_keys_load(argv[0], err, sizeof(err));

	(void)ctl;
	(void)argc;
	if (n < 0)
		return ctl_error("key load: %s", err);
	return CTL_OK;
}

static int key_clear(struct ctl *ctl, int argc, char **argv)
{
	char err[512];

	(void)ctl;
	(void)argc;
	(void)argv;
	if (shift_keys_clear(err, sizeof(err)))
		return ctl_error("key clear: %s", err);
	return CTL_OK;
}

static const struct ctl_cmd cmds[] = {
	{ "load", key_load, 1, 1, "FILE" },
	{ "clear", key_clear, 0, 0, "" },
	{}
};

const struct ctl_object ctl_key = {
	"key", cmds, "keys by which nodes prove who they are; how many: node show"
};
