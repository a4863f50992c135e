// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftctl pair: which device stands in for which.
 */
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"
#include "lib/command.h"
#include "lib/gid.h"
#include "lib/names.h"

static int check_dev(const char *name)
{
	if (shift_name_ok(name, SHIFT_DEV_MAX))
		return CTL_OK;
	return ctl_usage("'%s' is not the name of an RDMA device (see: rdma dev)",
			 name);
}

/* "--policy WORD", if that is what is left. */
static int take_policy(int argc, char **argv, enum shift_policy *policy)
{
	int value;

	*policy = SHIFT_POLICY_EXACTLY_ONCE;
	if (!argc)
		return CTL_OK;
	if (strcmp(argv[0], "--policy"))
		return ctl_usage("expected --policy, not '%s'", argv[0]);
	if (argc > 2)
		return ctl_usage("unexpected argument '%s'", argv[2]);
	value = argc > 1 ? shift_policy_find(argv[1]) : -1;
	if (value < 0)
		return ctl_usage("--policy must be exactly-once or at-least-once");
	*policy = value;
	return CTL_OK;
}

/* The backups that words name; those of one word are separated by commas. */
struct backup_list {
	char names[SHIFT_PAIR_BACKUPS_MAX][SHIFT_DEV_MAX];
	unsigned int n;
};

static int take_backups(struct backup_list *list, const char *word)
{
	char name[SHIFT_DEV_MAX];
	size_t len;
	int ret;

	for (;; word += len + 1) {
		len = strcspn(word, ",");
		snprintf(name, sizeof(name), "%.*s", (int)len, word);
		ret = check_dev(len < sizeof(name) ? name : word);
		if (ret)
			return ret;
		if (list->n == SHIFT_PAIR_BACKUPS_MAX)
			return ctl_usage("pair add: a device has at most %d backups",
					 SHIFT_PAIR_BACKUPS_MAX);
		strcpy(list->names[list->n++], name);
		if (!word[len])
			return CTL_OK;
	}
}

static int pair_add(struct ctl *ctl, int argc, char **argv)
{
	struct backup_list list = {};
	const char *dev = argv[0];
	enum shift_policy policy;
	unsigned int i;
	char what[256];
	int ret;

	/* All names are looked at before the first is sent. */
	ret = check_dev(dev);
	for (argc--, argv++; !ret && argc && strncmp(*argv, "--", 2);
	     argc--, argv++)
		ret = take_backups(&list, *argv);
	if (!ret && !list.n)
		ret = ctl_usage("pair add: no backup is given");
	if (!ret)
		ret = take_policy(argc, argv, &policy);
	if (!ret)
		ret = ctl_connect(ctl);
	if (ret)
		return ret;
	for (i = 0; i < list.n; i++) {
		snprintf(what, sizeof(what), "pair add %.63s %.63s", dev,
			 list.names[i]);
		if (shift_nl_pair_add(ctl->nl, dev, list.names[i], policy))
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

/* All backups in order of preference, that in use marked if there are several. */
static void add_text(struct json_object *row)
{
	char text[SHIFT_BACKUPS_MAX * (SHIFT_DEV_MAX + 1)] = "";
	const char *used = ctl_str(row, "backup", "");
	const char *backup;
	size_t i, len = 0;

	for (i = 0; (backup = ctl_backup(row, i)) && len < sizeof(text); i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%s%s",
				i ? "," : "", backup, ctl_backup(row, 1) &&
				!strcmp(backup, used) ? "*" : "");
	ctl_put(row, "backups_text", text);
}

/* What a device was seen to do of what is assumed: "holds", "untried", or "fails 3,16"; "-". */
static const char *proof_of(struct json_object *row, const char *held, const char *failed,
			    char *text, size_t size)
{
	struct json_object *good, *bad;
	size_t i, len;

	if (!json_object_object_get_ex(row, held, &good) ||
	    !json_object_object_get_ex(row, failed, &bad))
		return "-";
	if (!json_object_array_length(bad))
		return json_object_array_length(good) ? "holds" : "untried";
	len = snprintf(text, size, "fails ");
	for (i = 0; i < json_object_array_length(bad) && len < size; i++)
		len += snprintf(text + len, size - len, "%s%d", i ? "," : "",
				json_object_get_int(json_object_array_get_idx(bad, i)));
	return text;
}

/* Of the default device and its backup; once if it is the same. */
static void add_proof(struct json_object *row)
{
	char one[128], two[128], both[sizeof(one) + sizeof(two) + 2];
	const char *dev = proof_of(row, "proof_held", "proof_failed", one, sizeof(one));
	const char *backup = proof_of(row, "backup_proof_held", "backup_proof_failed", two,
				      sizeof(two));

	snprintf(both, sizeof(both), "%s; %s", dev, backup);
	ctl_put(row, "proof_text", strcmp(dev, backup) ? both : dev);
}

static int pair_show(struct ctl *ctl, int argc, char **argv)
{
	static const struct ctl_column columns[] = {
		{ "dev", "DEV" }, { "port_state", "PORT" },
		{ "backups_text", "BACKUP" }, { "backup_port_state", "PORT" },
		{ "policy", "POLICY" }, { "proof_text", "PROOF" },
		{ "tracked_qps", "QPS" }, { "protected_qps", "PROTECTED" },
		{ "used_by", "USED BY" }, {}
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
		if (argc && strcmp(ctl_str(row, "dev", ""), argv[0]))
			continue;
		if (!ctl->json) {
			add_text(row);
			add_proof(row);
		}
		json_object_array_add(rows, json_object_get(row));
	}
	/* Asked for by name and not there: a script must not take it for ok. */
	if (argc && !json_object_array_length(rows))
		ret = ctl_error("%s has no backup; add one with: shiftctl pair add %s BACKUP",
				argv[0], argv[0]);
	else
		ret = ctl_print_table(ctl, rows, columns);
	json_object_put(rows);
	json_object_put(all);
	return ret;
}

static const struct ctl_cmd cmds[] = {
	{ "show", pair_show, 0, 1, "[DEV]" },
	{ "add", pair_add, 2, -1, "DEV BACKUP [BACKUP...] [--policy exactly-once|at-least-once]" },
	{ "set", pair_set, 3, 3, "DEV --policy exactly-once|at-least-once" },
	{ "del", pair_del, 1, 1, "DEV" },
	{ "drain", pair_drain, 1, 1, "DEV" },
	{ "undrain", pair_undrain, 1, 1, "DEV" },
	{}
};

const struct ctl_object ctl_pair = {
	"pair", cmds, "RDMA devices of this node and their backups"
};
