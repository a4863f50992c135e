// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftctl peer: what this node knows of other nodes' NICs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "lib/command.h"
#include "lib/peer.h"

static struct shift_peer peer;

static int check_node(const char *name)
{
	if (shift_name_ok(name, SHIFT_NODE_MAX))
		return CTL_OK;
	return ctl_usage("'%s' is not a node name, which has 1 to %d letters, digits, '.', '_' and '-'",
			 name, SHIFT_NODE_MAX - 1);
}

/*
 * `peer set b $(cat nics)` and `peer set b "$(cat nics)"` both come up in
 * scripts: words are split wherever they are.
 */
static int parse_nics(char *text, char *err, size_t errlen)
{
	char *save, *word = strtok_r(text, " \t\n", &save);
	const char *gid;

	while (word) {
		if (strcmp(word, "nic")) {
			snprintf(err, errlen, "expected 'nic', not '%s'", word);
			return -1;
		}
		gid = strtok_r(NULL, " \t\n", &save);
		word = strtok_r(NULL, " \t\n", &save);
		if (!gid || !word || strcmp(word, "backup")) {
			snprintf(err, errlen, "'nic GID' is not followed by 'backup'");
			return -1;
		}
		word = strtok_r(NULL, " \t\n", &save);
		if (!word) {
			snprintf(err, errlen, "'backup' is not followed by a GID");
			return -1;
		}
		if (shift_peer_add_nic(&peer, gid, word, err, errlen))
			return -1;
		word = strtok_r(NULL, " \t\n", &save);
	}
	if (!peer.n_nics) {
		snprintf(err, errlen, "no NIC is given");
		return -1;
	}
	return 0;
}

static int peer_set(struct ctl *ctl, int argc, char **argv)
{
	char err[256], *text = NULL;
	size_t size;
	FILE *f;
	int i, ret;

	ret = check_node(argv[0]);
	if (ret)
		return ret;
	f = open_memstream(&text, &size);
	if (!f)
		return ctl_error("out of memory");
	for (i = 1; i < argc; i++)
		fprintf(f, "%s ", argv[i]);
	fclose(f);
	strcpy(peer.node, argv[0]);
	ret = parse_nics(text, err, sizeof(err));
	free(text);
	if (ret)
		return ctl_usage("peer set %s: %s", argv[0], err);
	ret = ctl_connect(ctl);
	if (ret)
		return ret;
	if (shift_nl_peer_set(ctl->nl, &peer))
		return ctl_refused(ctl, "peer set");
	return CTL_OK;
}

static int peer_del(struct ctl *ctl, int argc, char **argv)
{
	int ret;

	(void)argc;
	ret = check_node(argv[0]);
	if (!ret)
		ret = ctl_connect(ctl);
	if (ret)
		return ret;
	if (shift_nl_peer_del(ctl->nl, argv[0]))
		return ctl_refused(ctl, "peer del");
	return CTL_OK;
}

/* One line per NIC: that is what an operator compares. */
static struct json_object *flatten(struct json_object *peers)
{
	struct json_object *rows = json_object_new_array();
	struct json_object *nics, *nic, *row, *backups;
	char text[SHIFT_BACKUPS_MAX * SHIFT_GID_TEXT];
	size_t i, j, k, len;

	for (i = 0; i < json_object_array_length(peers); i++) {
		struct json_object *p = json_object_array_get_idx(peers, i);

		if (!json_object_object_get_ex(p, "nics", &nics)) {
			row = json_object_new_object();
			ctl_put(row, "node", ctl_str(p, "node", ""));
			ctl_put(row, "gid", CTL_HIDDEN);
			ctl_put(row, "backups", CTL_HIDDEN);
			json_object_array_add(rows, row);
			continue;
		}
		for (j = 0; j < json_object_array_length(nics); j++) {
			nic = json_object_array_get_idx(nics, j);
			row = json_object_new_object();
			ctl_put(row, "node", ctl_str(p, "node", ""));
			ctl_put(row, "gid", ctl_str(nic, "gid", ""));
			json_object_object_get_ex(nic, "backups", &backups);
			text[0] = '\0';
			for (k = len = 0;
			     k < json_object_array_length(backups); k++)
				len += snprintf(text + len, sizeof(text) - len,
						"%s%s", k ? "," : "",
						json_object_get_string(
						json_object_array_get_idx(
							backups, k)));
			ctl_put(row, "backups", text);
			json_object_array_add(rows, row);
		}
	}
	return rows;
}

static int peer_show(struct ctl *ctl, int argc, char **argv)
{
	static const struct ctl_column columns[] = {
		{ "node", "NODE" }, { "gid", "NIC" }, { "backups", "BACKUPS" },
		{}
	};
	struct json_object *all, *rows, *row;
	size_t i;
	int ret;

	ret = argc ? check_node(argv[0]) : CTL_OK;
	if (!ret)
		ret = ctl_dump(ctl, SHIFT_CMD_PEER_GET, &all);
	if (ret)
		return ret;
	rows = json_object_new_array();
	for (i = 0; i < json_object_array_length(all); i++) {
		row = json_object_array_get_idx(all, i);
		if (!argc || !strcmp(ctl_str(row, "node", ""), argv[0]))
			json_object_array_add(rows, json_object_get(row));
	}
	if (argc && !json_object_array_length(rows)) {
		ret = ctl_error("peer '%s' is not known", argv[0]);
	} else if (ctl->json) {
		ret = ctl_print_json(ctl, rows);
	} else {
		row = flatten(rows);
		ret = ctl_print_table(ctl, row, columns);
		json_object_put(row);
	}
	json_object_put(rows);
	json_object_put(all);
	return ret;
}

static const struct ctl_cmd cmds[] = {
	{ "show", peer_show, 0, 1, "[NODE]" },
	{ "set", peer_set, 2, -1,
	  "NODE nic GID backup GID[,GID...] [nic ...]" },
	{ "del", peer_del, 1, 1, "NODE" },
	{}
};

const struct ctl_object ctl_peer = {
	"peer", cmds, "NICs of other nodes and their backups"
};
