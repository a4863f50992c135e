// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftctl qp: QPs of applications, and moving them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "lib/command.h"

struct filter {
	const char *dev;
	const char *pid;
	const char *qpn;
};

static int parse_filter(int argc, char **argv, struct filter *filter)
{
	const char **slot;
	uint32_t number;
	int ret;

	for (; argc; argc -= 2, argv += 2) {
		if (!strcmp(argv[0], "dev"))
			slot = &filter->dev;
		else if (!strcmp(argv[0], "pid"))
			slot = &filter->pid;
		else if (!strcmp(argv[0], "qpn"))
			slot = &filter->qpn;
		else
			return ctl_usage("qp show: expected dev, pid or qpn, not '%s'",
					 argv[0]);
		if (argc < 2)
			return ctl_usage("qp show: no value is given for '%s'",
					 argv[0]);
		if (slot != &filter->dev) {
			ret = ctl_number(argv[1], &number);
			if (ret)
				return ret;
		}
		*slot = argv[1];
	}
	return CTL_OK;
}

static bool matches(struct json_object *row, const struct filter *filter)
{
	if (filter->dev && strcmp(ctl_str(row, "dev", ""), filter->dev))
		return false;
	if (filter->pid && strtoul(ctl_str(row, "pid", "0"), NULL, 10) !=
			   strtoul(filter->pid, NULL, 10))
		return false;
	if (filter->qpn && strtoul(ctl_str(row, "qpn", "0"), NULL, 10) !=
			   strtoul(filter->qpn, NULL, 10))
		return false;
	return true;
}

/* What the text table shows and a program would work out for itself. */
static void add_text(struct json_object *row)
{
	const char *path = ctl_str(row, "path", NULL);
	const char *node = ctl_str(row, "node", NULL);
	const char *gid = ctl_str(row, "remote_gid", NULL);
	char text[128];

	/* 0 and 2 are both on the default NIC. */
	if (path)
		ctl_put(row, "path_text",
			strcmp(path, "1") ? "default" : "backup");
	/* Not connected yet: there is no peer. */
	if ((node || gid) && strcmp(ctl_str(row, "remote_qpn", "0"), "0")) {
		snprintf(text, sizeof(text), "%s/%s", node ? node : gid,
			 ctl_str(row, "remote_qpn", "?"));
		ctl_put(row, "peer_text", text);
	}
	if (ctl_str(row, "reason", NULL))
		ctl_put(row, "why", ctl_str(row, "reason_text",
					    ctl_str(row, "reason", "")));
}

/* The node that has @gid, as default NIC or as backup, or NULL. */
static const char *node_of(struct json_object *peers, const char *gid)
{
	struct json_object *peer, *nics, *nic, *backups;
	size_t i, j, k;

	for (i = 0; i < json_object_array_length(peers); i++) {
		peer = json_object_array_get_idx(peers, i);
		if (!json_object_object_get_ex(peer, "nics", &nics))
			continue;
		for (j = 0; j < json_object_array_length(nics); j++) {
			nic = json_object_array_get_idx(nics, j);
			if (!strcmp(ctl_str(nic, "gid", ""), gid))
				return ctl_str(peer, "node", NULL);
			json_object_object_get_ex(nic, "backups", &backups);
			for (k = 0; k < json_object_array_length(backups); k++)
				if (!strcmp(json_object_get_string(
					    json_object_array_get_idx(backups,
								      k)), gid))
					return ctl_str(peer, "node", NULL);
		}
	}
	return NULL;
}

/* A QP knows its peer's GID; whose that is is in the table of peers. */
static int add_nodes(struct ctl *ctl, struct json_object *rows)
{
	struct json_object *peers, *row;
	const char *gid, *node;
	size_t i;
	int ret;

	ret = ctl_dump(ctl, SHIFT_CMD_PEER_GET, &peers);
	if (ret)
		return ret;
	for (i = 0; i < json_object_array_length(rows); i++) {
		row = json_object_array_get_idx(rows, i);
		gid = ctl_str(row, "remote_gid", NULL);
		node = gid ? node_of(peers, gid) : NULL;
		if (node && !ctl_str(row, "node", NULL))
			ctl_put(row, "node", node);
	}
	json_object_put(peers);
	return CTL_OK;
}

static int qp_show(struct ctl *ctl, int argc, char **argv)
{
	static const struct ctl_column columns[] = {
		{ "dev", "DEV" }, { "qpn", "QPN" }, { "pid", "PID" },
		{ "comm", "COMM" }, { "state", "STATE" },
		{ "path_text", "PATH" }, { "epoch", "EPOCH" },
		{ "peer_text", "PEER" }, { "why", "REASON" }, {}
	};
	struct json_object *all, *rows, *row;
	struct filter filter = {};
	size_t i;
	int ret;

	ret = parse_filter(argc, argv, &filter);
	if (!ret)
		ret = ctl_dump(ctl, SHIFT_CMD_QP_GET, &all);
	if (ret)
		return ret;
	ret = add_nodes(ctl, all);
	if (ret) {
		json_object_put(all);
		return ret;
	}
	rows = json_object_new_array();
	for (i = 0; i < json_object_array_length(all); i++) {
		row = json_object_array_get_idx(all, i);
		if (!matches(row, &filter))
			continue;
		if (!ctl->json)
			add_text(row);
		json_object_array_add(rows, json_object_get(row));
	}
	ret = ctl_print_table(ctl, rows, columns);
	json_object_put(rows);
	json_object_put(all);
	return ret;
}

static int qp_move(struct ctl *ctl, int argc, char **argv)
{
	char what[128];
	uint32_t qpn;
	int ret;

	(void)argc;
	if (strcmp(argv[2], "default") && strcmp(argv[2], "backup"))
		return ctl_usage("qp move: expected default or backup, not '%s'",
				 argv[2]);
	ret = ctl_number(argv[1], &qpn);
	if (!ret)
		ret = ctl_connect(ctl);
	if (ret)
		return ret;
	snprintf(what, sizeof(what), "qp move %.63s %u", argv[0], qpn);
	if (shift_nl_move(ctl->nl, argv[0], qpn, *argv[2] == 'b', false))
		return ctl_refused(ctl, what);
	return CTL_OK;
}

static const struct ctl_cmd cmds[] = {
	{ "show", qp_show, 0, -1, "[dev DEV] [pid PID] [qpn QPN]" },
	{ "move", qp_move, 3, 3, "DEV QPN { default | backup }" },
	{}
};

const struct ctl_object ctl_qp = {
	"qp", cmds, "QPs of applications and of kernel users: protected, or why not"
};
