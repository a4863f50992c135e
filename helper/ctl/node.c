// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftctl node: this node's name, and its NICs as another node needs them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "lib/command.h"
#include "lib/gid.h"
#include "lib/peer.h"

static void collect(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		    void *arg)
{
	struct json_object **row = arg;

	(void)cmd;
	json_object_put(*row);
	*row = ctl_attrs(nlh, tb);
}

static int node_show(struct ctl *ctl, int argc, char **argv)
{
	struct json_object *row = NULL;
	int ret = ctl_connect(ctl);

	(void)argc;
	(void)argv;
	if (ret)
		return ret;
	if (shift_nl_get(ctl->nl, SHIFT_CMD_NODE_GET, 0, collect, &row)) {
		json_object_put(row);
		return ctl_refused(ctl, "node show");
	}
	if (!row)
		return ctl_error("node show: the kernel sent no answer");
	if (ctl->json) {
		ctl_print_json(ctl, row);
	} else {
		printf("node %s boot_id %s abi_version %s keys %s kernel_users %s\n",
		       ctl_str(row, "node", "-"), ctl_str(row, "boot_id", "-"),
		       ctl_str(row, "abi_version", "-"),
		       ctl_str(row, "keys", "-"), ctl_str(row, "kernel_users", "-"));
	}
	json_object_put(row);
	return CTL_OK;
}

static int node_set(struct ctl *ctl, int argc, char **argv)
{
	int ret;

	/* `node set name NAME` is what iproute2's users type. */
	if (argc == 2) {
		if (strcmp(argv[0], "name"))
			return ctl_usage("node set: expected 'name', not '%s'",
					 argv[0]);
		argv++;
	}
	if (!shift_name_ok(argv[0], SHIFT_NODE_MAX))
		return ctl_usage("'%s' is not a node name, which has 1 to %d letters, digits, '.', '_' and '-'",
				 argv[0], SHIFT_NODE_MAX - 1);
	ret = ctl_connect(ctl);
	if (ret)
		return ret;
	if (shift_nl_node_set(ctl->nl, argv[0]))
		return ctl_refused(ctl, "node set");
	return CTL_OK;
}

static struct json_object *find_nic(struct json_object *nics, const char *gid)
{
	size_t i;

	for (i = 0; i < json_object_array_length(nics); i++) {
		struct json_object *nic = json_object_array_get_idx(nics, i);

		if (!strcmp(ctl_str(nic, "gid", ""), gid))
			return nic;
	}
	return NULL;
}

/*
 * The GIDs of a device, or the reason why it has none that others could use.
 * Return: their number; 0: the reason was told, in *@status.
 */
static int gids_of(const char *dev, struct shift_gid gids[SHIFT_DEV_GIDS], int *status)
{
	int n = shift_gids_of_device("/sys", dev, gids);

	if (n > 0)
		return n;
	if (n == -EADDRNOTAVAIL)
		*status = ctl_error("%s has no RoCE v2 GID that other nodes could use; give its network interface an IP address",
				    dev);
	else
		*status = ctl_error("cannot read the GIDs of %s: %s", dev,
				    strerror(-n));
	return 0;
}

/*
 * The NIC with a GID, in a list of them.  Others know it by its GID: of two
 * devices with one GID (one is software on top of the other) the first is it.
 */
static struct json_object *add_nic(struct json_object *nics, const char *dev,
				   const struct shift_gid *gid)
{
	char text[SHIFT_GID_TEXT];
	struct json_object *nic;

	shift_gid_format(gid, text);
	nic = find_nic(nics, text);
	if (!nic) {
		nic = json_object_new_object();
		ctl_put(nic, "dev", dev);
		ctl_put(nic, "gid", text);
		json_object_array_add(nics, nic);
	}
	return nic;
}

static void print_nics(struct json_object *nics)
{
	struct json_object *nic, *backups;
	size_t i, j;

	for (i = 0; i < json_object_array_length(nics); i++) {
		nic = json_object_array_get_idx(nics, i);
		json_object_object_get_ex(nic, "backups", &backups);
		printf("%snic %s backup", i ? " " : "",
		       ctl_str(nic, "gid", ""));
		for (j = 0; j < json_object_array_length(backups); j++)
			printf("%s%s", j ? "," : " ",
			       ctl_str(json_object_array_get_idx(backups, j),
				       "gid", ""));
	}
	putchar('\n');
}

/* Each GID of a pair's default device, with its backups. */
static int add_pair(struct json_object *nics, struct json_object *pair)
{
	struct shift_gid gids[SHIFT_DEV_GIDS], backup[SHIFT_DEV_GIDS];
	const char *name, *dev = ctl_str(pair, "dev", "");
	struct json_object *nic, *backups;
	int i, n, status = CTL_OK;
	size_t j;

	n = gids_of(dev, gids, &status);
	for (i = 0; i < n; i++) {
		nic = add_nic(nics, dev, &gids[i]);
		if (!json_object_object_get_ex(nic, "backups", &backups)) {
			backups = json_object_new_array();
			json_object_object_add(nic, "backups", backups);
		}
		for (j = 0; (name = ctl_backup(pair, j)); j++) {
			if (!gids_of(name, backup, &status))
				return status;
			add_nic(backups, name, &backup[0]);
		}
	}
	return status;
}

/* From the pairs the kernel has, not from a config: what really holds. */
static int node_nics(struct ctl *ctl, int argc, char **argv)
{
	struct json_object *pairs, *nics;
	size_t i;
	int ret;

	(void)argc;
	(void)argv;
	ret = ctl_dump(ctl, SHIFT_CMD_PAIR_GET, &pairs);
	if (ret)
		return ret;
	nics = json_object_new_array();
	for (i = 0; !ret && i < json_object_array_length(pairs); i++)
		ret = add_pair(nics, json_object_array_get_idx(pairs, i));
	if (!ret && !json_object_array_length(nics))
		ret = ctl_error("this node has no pair yet; add one with: shiftctl pair add DEV BACKUP");
	if (!ret && ctl->json)
		ctl_print_json(ctl, nics);
	else if (!ret)
		print_nics(nics);
	json_object_put(nics);
	json_object_put(pairs);
	return ret;
}

static const struct ctl_cmd cmds[] = {
	{ "show", node_show, 0, 0, "" },
	{ "set", node_set, 1, 2, "[name] NAME" },
	{ "nics", node_nics, 0, 0, "" },
	{}
};

const struct ctl_object ctl_node = {
	"node", cmds, "name of this node, and its NICs as other nodes need them"
};
