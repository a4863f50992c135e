// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftctl link: the paths to other nodes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/ctl.h"
#include "lib/command.h"

#define PROBE_MS	30000	/* longer than the kernel's own retries take */
#define PROBE_LOOK_MS	5

static int link_show(struct ctl *ctl, int argc, char **argv)
{
	static const struct ctl_column columns[] = {
		{ "link", "LINK" }, { "node", "NODE" }, { "dev", "DEV" },
		{ "local_gid", "LOCAL" }, { "remote_gid", "REMOTE" },
		{ "state", "STATE" }, { "proven_text", "PROVEN" },
		{ "msg_version", "VERSION" }, {}
	};
	struct json_object *rows, *row;
	size_t i;
	int ret;

	(void)argc;
	(void)argv;
	ret = ctl_dump(ctl, SHIFT_CMD_LINK_GET, &rows);
	if (ret)
		return ret;
	for (i = 0; !ctl->json && i < json_object_array_length(rows); i++) {
		row = json_object_array_get_idx(rows, i);
		ctl_put(row, "proven_text",
			json_object_object_get_ex(row, "proven", NULL) ? "yes" : "no");
		if (!json_object_object_get_ex(row, "remote_gid", NULL)) {
			ctl_put(row, "local_gid", CTL_HIDDEN);
			ctl_put(row, "remote_gid", CTL_HIDDEN);
		}
	}
	ret = ctl_print_table(ctl, rows, columns);
	json_object_put(rows);
	return ret;
}

static int link_switch(struct ctl *ctl, int argc, char **argv)
{
	char what[64];
	uint32_t id;
	int ret;

	(void)argc;
	ret = ctl_number(argv[0], &id);
	if (!ret)
		ret = ctl_connect(ctl);
	if (ret)
		return ret;
	snprintf(what, sizeof(what), "link switch %u", id);
	if (shift_nl_link_switch(ctl->nl, id))
		return ctl_refused(ctl, what);
	return CTL_OK;
}

/* One link as the kernel has it. */
struct seen {
	uint32_t id;
	bool found, up;
	uint64_t connects, acked;
};

static void on_link(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		    void *arg)
{
	struct seen *seen = arg;

	(void)cmd;
	(void)nlh;
	if (!tb[SHIFT_A_LINK_ID] || nla_get_u32(tb[SHIFT_A_LINK_ID]) != seen->id ||
	    !tb[SHIFT_A_LINK_STATE] || !tb[SHIFT_A_CONNECTS] ||
	    !tb[SHIFT_A_ACKED])
		return;
	seen->found = true;
	seen->up = nla_get_u32(tb[SHIFT_A_LINK_STATE]) == SHIFT_LINK_UP;
	seen->connects = nla_get_u64(tb[SHIFT_A_CONNECTS]);
	seen->acked = nla_get_u64(tb[SHIFT_A_ACKED]);
}

static bool look(struct ctl *ctl, struct seen *seen)
{
	seen->found = false;
	return !shift_nl_get(ctl->nl, SHIFT_CMD_LINK_GET, 1, on_link, seen);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

/* The kernel asks and does not wait; the link tells what came of it. */
static int link_probe(struct ctl *ctl, int argc, char **argv)
{
	static const struct timespec pause = { 0, PROBE_LOOK_MS * 1000000 };
	struct seen before = {}, after;
	uint64_t began;
	char what[64];
	int ret;

	(void)argc;
	ret = ctl_number(argv[0], &before.id);
	if (!ret)
		ret = ctl_connect(ctl);
	if (ret)
		return ret;
	snprintf(what, sizeof(what), "link probe %u", before.id);
	if (!look(ctl, &before))
		return ctl_refused(ctl, what);
	began = now_ms();
	if (shift_nl_link_probe(ctl->nl, before.id))
		return ctl_refused(ctl, what);
	for (after = before; now_ms() - began < PROBE_MS;
	     nanosleep(&pause, NULL)) {
		if (!look(ctl, &after))
			return ctl_refused(ctl, what);
		if (!after.found || !after.up || after.connects != before.connects)
			return ctl_error("%s: no answer came and the link went down", what);
		if (after.acked != before.acked) {
			printf("link %u: answered in %" PRIu64 " ms\n", before.id,
			       now_ms() - began);
			return CTL_OK;
		}
	}
	return ctl_error("%s: no answer came within %d s", what, PROBE_MS / 1000);
}

static const struct ctl_cmd cmds[] = {
	{ "show", link_show, 0, 0, "" },
	{ "switch", link_switch, 1, 1, "LINK" },
	{ "probe", link_probe, 1, 1, "LINK" },
	{}
};

const struct ctl_object ctl_link = {
	"link", cmds, "network paths to other nodes"
};
