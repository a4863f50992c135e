// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftctl stat: counters.
 */
#include <stdio.h>

#include "ctl/ctl.h"

static void merge(int cmd, struct nlmsghdr *nlh, struct nlattr **tb, void *arg)
{
	struct json_object *row = ctl_attrs(nlh, tb);

	(void)cmd;
	json_object_object_foreach(row, key, value)
		json_object_object_add(arg, key, json_object_get(value));
	json_object_put(row);
}

static int stat_show(struct ctl *ctl, int argc, char **argv)
{
	struct json_object *stats;
	int ret = ctl_connect(ctl);

	if (ret)
		return ret;
	stats = json_object_new_object();
	if (shift_nl_get(ctl->nl, SHIFT_CMD_STAT_GET, 0, merge, stats)) {
		ret = ctl_refused(ctl, "stat show");
	} else if (argc) {
		/* One counter by name: a script wants the bare number. */
		const char *value = ctl_str(stats, argv[0], NULL);

		if (value)
			puts(value);
		else
			ret = ctl_error("there is no counter '%s'", argv[0]);
	} else if (ctl->json) {
		ret = ctl_print_json(ctl, stats);
	} else {
		json_object_object_foreach(stats, key, value)
			printf("%s %s\n", key, json_object_get_string(value));
	}
	json_object_put(stats);
	return ret;
}

static const struct ctl_cmd cmds[] = {
	{ "show", stat_show, 0, 1, "[NAME]" },
	{}
};

const struct ctl_object ctl_stat = {
	"stat", cmds, "counters since the module was loaded"
};
