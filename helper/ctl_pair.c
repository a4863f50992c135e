// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftctl pair: which device stands in for which.
 */
#include <stdio.h>
#include <string.h>

#include "ctl.h"
#include "gid.h"
#include "names.h"

static int check_dev(const char *name)
{
	if (shift_name_ok(name, SHIFT_DEV_MAX))
		return CTL_OK;
	return ctl_usage("'%s' is no name of an RDMA device (see: rdma dev)",
			 name);
}

/* "--policy WORD", if that is what is left. */
static int take_policy(int argc, char **argv, enum shift_policy *policy)
{
	int value;

	*policy = SHIFT_POLICY_STRICT;
	if (!argc)
		return CTL_OK;
	if (strcmp(argv[0], "--policy"))
		return ctl_usage("'%s': expected --policy", argv[0]);
	value = argc > 1 ? shift_name_find(&shift_policy_names, argv[1]) : -1;
	if (value < 0)
		return ctl_usage("--policy is strict or paper");
	*policy = value;
	return CTL_OK;
}

static int pair_add(struct ctl *ctl, int argc, char **argv)
{
	char list[SHIFT_BACKUPS_MAX * SHIFT_DEV_MAX];
	enum shift_policy policy;
	char *one, *next = list;
	char what[256];
	int ret, n = 0;

	ret = check_dev(argv[0]);
	if (!ret)
		ret = take_policy(argc - 2, argv + 2, &policy);
	if (ret)
		return ret;
	/* All names are looked at before the first is sent. */
	if (strlen(argv[1]) >= sizeof(list))
		return ctl_usage("pair add: the list of backups is too long");
	strcpy(list, argv[1]);
	while ((one = strsep(&next, ","))) {
		ret = check_dev(one);
		if (ret)
			return ret;
		if (++n > SHIFT_BACKUPS_MAX)
			return ctl_usage("pair add: more than %d backups",
					 SHIFT_BACKUPS_MAX);
	}
	ret = ctl_connect(ctl);
	if (ret)
		return ret;
	for (one = list; n; n--, one += strlen(one) + 1) {
		snprintf(what, sizeof(what), "pair add %.63s %.63s",
			 argv[0], one);
		if (shift_nl_pair_add(ctl->nl, argv[0], one, policy))
			return ctl_refused(ctl, what);
	}
	return CTL_OK;
}

static int pair_set(struct ctl *ctl, int argc, char **argv)
{
	enum shift_policy policy;
	char what[128];
	int ret;

	ret = check_dev(argv[0]);
	if (!ret)
		ret = take_policy(argc - 1, argv + 1, &policy);
	if (!ret)
		ret = ctl_connect(ctl);
	if (ret)
		return ret;
	snprintf(what, sizeof(what), "pair set %.63s", argv[0]);
	if (shift_nl_pair_set(ctl->nl, argv[0], policy))
		return ctl_refused(ctl, what);
	return CTL_OK;
}

static int pair_del(struct ctl *ctl, int argc, char **argv)
{
	char what[128];
	int ret;

	(void)argc;
	ret = check_dev(argv[0]);
	if (!ret)
		ret = ctl_connect(ctl);
	if (ret)
		return ret;
	snprintf(what, sizeof(what), "pair del %.63s", argv[0]);
	if (shift_nl_pair_del(ctl->nl, argv[0]))
		return ctl_refused(ctl, what);
	return CTL_OK;
}

static int pair_move(struct ctl *ctl, char **argv, const char *verb,
		     unsigned int path)
{
	char what[128];
	int ret;

	ret = check_dev(argv[0]);
	if (!ret)
		ret = ctl_connect(ctl);
	if (ret)
		return ret;
	snprintf(what, sizeof(what), "pair %s %.63s", verb, argv[0]);
	if (shift_nl_move(ctl->nl, argv[0], 0, path, true))
		return ctl_refused(ctl, what);
	return CTL_OK;
}

static int pair_drain(struct ctl *ctl, int argc, char **argv)
{
	(void)argc;
	return pair_move(ctl, argv, "drain", 1);
}

static int pair_undrain(struct ctl *ctl, int argc, char **argv)
{
	(void)argc;
	return pair_move(ctl, argv, "undrain", 0);
}

static int pair_show(struct ctl *ctl, int argc, char **argv)
{
	static const struct ctl_column columns[] = {
		{ "dev", "DEV" }, { "port_state", "PORT" },
		{ "backup", "BACKUP" }, { "backup_port_state", "PORT" },
		{ "policy", "POLICY" },
		{ "tracked_qps", "QPS" }, { "protected_qps", "PROTECTED" }, {}
	};
	struct json_object *all, *rows, *row;
	size_t i;
	int ret;

	ret = argc ? check_dev(argv[0]) : CTL_OK;
	if (!ret)
		ret = ctl_dump(ctl, SHIFT_CMD_PAIR_GET, &all);
	if (ret)
		return ret;
	rows = json_object_new_array();
	for (i = 0; i < json_object_array_length(all); i++) {
		row = json_object_array_get_idx(all, i);
		if (!argc || !strcmp(ctl_str(row, "dev", ""), argv[0]))
			json_object_array_add(rows, json_object_get(row));
	}
	/* Asked for by name and not there: a script must not take it for ok. */
	if (argc && !json_object_array_length(rows))
		ret = ctl_error("%s has no backup (shiftctl pair add %s BACKUP)",
				argv[0], argv[0]);
	else
		ret = ctl_print_table(ctl, rows, columns);
	json_object_put(rows);
	json_object_put(all);
	return ret;
}

static const struct ctl_cmd cmds[] = {
	{ "show", pair_show, 0, 1, "[DEV]" },
	{ "add", pair_add, 2, 4, "DEV BACKUP[,BACKUP...] [--policy strict|paper]" },
	{ "set", pair_set, 3, 3, "DEV --policy strict|paper" },
	{ "del", pair_del, 1, 1, "DEV" },
	{ "drain", pair_drain, 1, 1, "DEV" },
	{ "undrain", pair_undrain, 1, 1, "DEV" },
	{}
};

const struct ctl_object ctl_pair = {
	"pair", cmds, "which local RDMA device stands in for which"
};
