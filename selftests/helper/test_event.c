// SPDX-License-Identifier: GPL-2.0-only
/* Lines of shiftctl monitor, of a newer kernel's events too. */
#include <stdlib.h>
#include <string.h>
#include <netlink/genl/genl.h>

#include "ctl/ctl.h"
#include "ktap.h"

/* What print.c wants of main.c. */
int ctl_connect(struct ctl *ctl)
{
	(void)ctl;
	return CTL_FAIL;
}

int ctl_refused(struct ctl *ctl, const char *what)
{
	(void)ctl;
	(void)what;
	return CTL_FAIL;
}

static struct nl_msg *message(int cmd)
{
	struct nl_msg *msg = nlmsg_alloc_size(4096);

	genlmsg_put(msg, 0, 0, 30, 0, 0, cmd, SHIFT_GENL_VERSION);
	nla_put_u64(msg, SHIFT_A_TIME_NS, 5);
	nla_put_string(msg, SHIFT_A_DEV, "rxe0");
	return msg;
}

/* As a line of text and as JSON; @msg is freed. */
static bool says(struct nl_msg *msg, const char *text, const char *json)
{
	struct nlattr *tb[SHIFT_A_MAX + 1];
	struct json_object *line;
	FILE *real = stdout;
	char *printed = NULL;
	const char *as_json;
	size_t size;
	bool same;

	/* as lib/netlink.c does: what is newer than this program is passed over */
	if (genlmsg_parse(nlmsg_hdr(msg), 0, tb, SHIFT_A_MAX, NULL))
		return false;
	line = ctl_event(genlmsg_hdr(nlmsg_hdr(msg))->cmd, nlmsg_hdr(msg), tb);
	stdout = open_memstream(&printed, &size);
	ctl_print_fields(line);
	fclose(stdout);
	stdout = real;
	as_json = json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN);
	same = !strcmp(printed, text) && (!json || !strcmp(as_json, json));
	if (!same)
		printf("# '%s' and '%s'\n", printed, as_json);
	free(printed);
	json_object_put(line);
	nlmsg_free(msg);
	return same;
}

static struct nl_msg *qp_event(unsigned int event, unsigned int cause)
{
	struct nl_msg *msg = message(SHIFT_CMD_QP_NTF);

	nla_put_u32(msg, SHIFT_A_QP_EVENT, event);
	nla_put_u32(msg, SHIFT_A_CAUSE, cause);
	return msg;
}

static void qps(void)
{
	CHECK(says(qp_event(SHIFT_QP_EV_FAULT, SHIFT_CAUSE_PORT),
		   "time_ns=5 object=qp event=fault dev=rxe0 cause=port", NULL));
	CHECK(says(qp_event(SHIFT_QP_EV_FAULT, SHIFT_CAUSE_OPERATOR),
		   "time_ns=5 object=qp event=move dev=rxe0 cause=operator",
		   NULL));
	CHECK(says(qp_event(SHIFT_QP_EV_REPLAYED, SHIFT_CAUSE_OPERATOR),
		   "time_ns=5 object=qp event=replayed dev=rxe0 cause=operator",
		   NULL));
}

static void newer(void)
{
	struct nl_msg *msg;

	CHECK(says(qp_event(99, SHIFT_CAUSE_PORT),
		   "time_ns=5 object=qp event=event-99 dev=rxe0 cause=port",
		   "{\"time_ns\":5,\"object\":\"qp\",\"event\":\"event-99\","
		   "\"dev\":\"rxe0\",\"cause\":\"port\"}"));
	CHECK(says(qp_event(SHIFT_QP_EV_AGREED, 77),
		   "time_ns=5 object=qp event=agreed dev=rxe0 cause=77", NULL));
	CHECK(says(message(SHIFT_CMD_QP_NTF),
		   "time_ns=5 object=qp event=unknown dev=rxe0", NULL));
	msg = message(200);
	nla_put_u32(msg, SHIFT_A_MAX + 3, 1);
	CHECK(says(msg, "time_ns=5 object=unknown event=event-200 dev=rxe0", NULL));
}

static void pairs(void)
{
	struct nl_msg *msg = message(SHIFT_CMD_PAIR_NTF);

	nla_put_string(msg, SHIFT_A_BACKUP_DEV, "rxe2");
	nla_put_flag(msg, SHIFT_A_ADDED);
	nla_put_string(msg, SHIFT_A_PAIR_BACKUP_NAME, "rxe1");
	nla_put_string(msg, SHIFT_A_PAIR_BACKUP_NAME, "rxe2");
	CHECK(says(msg, "time_ns=5 object=pair event=added dev=rxe0 backup=rxe2 backups=rxe1,rxe2",
		   "{\"time_ns\":5,\"object\":\"pair\",\"event\":\"added\","
		   "\"dev\":\"rxe0\",\"backup\":\"rxe2\","
		   "\"backups\":[\"rxe1\",\"rxe2\"]}"));
	msg = message(SHIFT_CMD_PAIR_NTF);
	nla_put_flag(msg, SHIFT_A_ADDED);
	nla_put_flag(msg, SHIFT_A_CHANGED);
	CHECK(says(msg, "time_ns=5 object=pair event=changed dev=rxe0", NULL));
	/* an older kernel's, of one backup */
	msg = message(SHIFT_CMD_PAIR_NTF);
	nla_put_string(msg, SHIFT_A_BACKUP_DEV, "rxe1");
	CHECK(says(msg, "time_ns=5 object=pair event=removed dev=rxe0 backup=rxe1",
		   NULL));
}

static const struct ktap_test tests[] = {
	{ "QPs: a fault, and an operator's move", qps },
	{ "events of a newer kernel", newer },
	{ "pairs with all their backups", pairs },
};
KTAP_MAIN(tests)
