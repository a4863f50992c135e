// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftctl pair with a kernel that is played here: backups are sent in order,
 * and all of them are shown.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <netlink/genl/genl.h>

#include "ctl/ctl.h"
#include "ktap.h"
#include "lib/command.h"

static char told[512];		/* the commands that the kernel got */
static const char *refuses;	/* this backup */
static char complaint[512];

/* What the commands want of main.c. */
int ctl_connect(struct ctl *ctl)
{
	(void)ctl;
	return CTL_OK;
}

int ctl_refused(struct ctl *ctl, const char *what)
{
	(void)ctl;
	return ctl_error("%s: refused", what);
}

int ctl_usage(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(complaint, sizeof(complaint), fmt, args);
	va_end(args);
	return CTL_USAGE;
}

int ctl_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(complaint, sizeof(complaint), fmt, args);
	va_end(args);
	return CTL_FAIL;
}

struct nl_msg *shift_nl_msg(struct shift_nl *nl, int cmd, int flags, size_t size)
{
	struct nl_msg *msg = nlmsg_alloc_size(size);

	(void)nl;
	genlmsg_put(msg, 0, 0, 30, 0, flags, cmd, SHIFT_GENL_VERSION);
	return msg;
}

int shift_nl_no_memory(struct shift_nl *nl, struct nl_msg *msg)
{
	(void)nl;
	nlmsg_free(msg);
	return -ENOMEM;
}

int shift_nl_request(struct shift_nl *nl, struct nl_msg *msg, shift_nl_fn fn,
		     void *arg)
{
	struct nlattr *tb[SHIFT_A_MAX + 1];
	const char *dev, *backup;
	size_t len = strlen(told);

	(void)nl;
	(void)fn;
	(void)arg;
	CHECK(!genlmsg_parse(nlmsg_hdr(msg), 0, tb, SHIFT_A_MAX, NULL));
	dev = nla_get_string(tb[SHIFT_A_DEV]);
	backup = nla_get_string(tb[SHIFT_A_BACKUP_DEV]);
	snprintf(told + len, sizeof(told) - len, "%s%s+%s/%u", len ? " " : "",
		 dev, backup, nla_get_u32(tb[SHIFT_A_POLICY]));
	len = refuses && !strcmp(backup, refuses);
	nlmsg_free(msg);
	return len ? -EEXIST : 0;
}

/* What the devices of a pair have shown; NULL: nothing is assumed. */
struct proof {
	unsigned int held, failed, backup_held, backup_failed;
};

static void send_pair(const char *dev, const char *used, const char *names,
		      const struct proof *proof, shift_nl_fn fn, void *arg)
{
	struct nl_msg *msg = shift_nl_msg(NULL, SHIFT_CMD_PAIR_GET, 0, 4096);
	char list[64], *next = list, *name;
	struct nlattr *tb[SHIFT_A_MAX + 1];

	nla_put_string(msg, SHIFT_A_DEV, dev);
	nla_put_string(msg, SHIFT_A_BACKUP_DEV, used);
	nla_put_u32(msg, SHIFT_A_POLICY, 1);
	nla_put_u32(msg, SHIFT_A_TRACKED_QPS, 3);
	nla_put_u32(msg, SHIFT_A_PROTECTED_QPS, 2);
	/* an older kernel does not say that */
	if (*names)
		nla_put_string(msg, SHIFT_A_USED_BY, "applications,nvme");
	if (proof) {
		nla_put_u32(msg, SHIFT_A_PROOF_HELD, proof->held);
		nla_put_u32(msg, SHIFT_A_PROOF_FAILED, proof->failed);
		nla_put_u32(msg, SHIFT_A_BACKUP_PROOF_HELD, proof->backup_held);
		nla_put_u32(msg, SHIFT_A_BACKUP_PROOF_FAILED, proof->backup_failed);
	}
	snprintf(list, sizeof(list), "%s", names);
	while (*names && (name = strsep(&next, ",")))
		nla_put_string(msg, SHIFT_A_PAIR_BACKUP_NAME, name);
	CHECK(!genlmsg_parse(nlmsg_hdr(msg), 0, tb, SHIFT_A_MAX, NULL));
	fn(SHIFT_CMD_PAIR_GET, nlmsg_hdr(msg), tb, arg);
	nlmsg_free(msg);
}

/* Four pairs: several backups, one, one of an older kernel; devices that prove themselves. */
int shift_nl_get(struct shift_nl *nl, int cmd, int dump, shift_nl_fn fn,
		 void *arg)
{
	(void)nl;
	(void)cmd;
	(void)dump;
	send_pair("rxe0", "rxe2", "rxe1,rxe2,rxe3", NULL, fn, arg);
	send_pair("rxe1", "rxe0", "rxe0", &(struct proof) {}, fn, arg);
	send_pair("rxe9", "rxe8", "", NULL, fn, arg);
	send_pair("mlx5_0", "mlx5_1", "mlx5_1",
		  &(struct proof) { 0x10c, 0, 0x100, 0x1000c }, fn, arg);
	return 0;
}

/* Runs a command of shiftctl pair; what it prints, to be freed. */
static char *pair(int want, struct ctl *ctl, const char *words)
{
	char text[256], *argv[16], *next = text, *printed = NULL;
	const struct ctl_cmd *cmd = ctl_pair.cmds;
	FILE *real = stdout;
	int argc = 0, ret;
	size_t size;

	told[0] = '\0';
	complaint[0] = '\0';
	snprintf(text, sizeof(text), "%s", words);
	while ((argv[argc] = strsep(&next, " ")))
		argc++;
	while (strcmp(cmd->name, argv[0]))
		cmd++;
	stdout = open_memstream(&printed, &size);
	ret = cmd->run(ctl, argc - 1, argv + 1);
	fclose(stdout);
	stdout = real;
	if (ret != want)
		printf("# %s: %d, not %d: %s\n", words, ret, want, complaint);
	CHECK(ret == want);
	return printed;
}

static bool adds(int want, const char *words, const char *commands)
{
	struct ctl ctl = {};

	free(pair(want, &ctl, words));
	if (strcmp(told, commands))
		printf("# told '%s', not '%s'\n", told, commands);
	return !strcmp(told, commands);
}

static void add(void)
{
	CHECK(adds(CTL_OK, "add rxe0 rxe1", "rxe0+rxe1/0"));
	CHECK(adds(CTL_OK, "add rxe0 rxe1 rxe2 rxe3 --policy at-least-once",
		   "rxe0+rxe1/1 rxe0+rxe2/1 rxe0+rxe3/1"));
	CHECK(adds(CTL_OK, "add rxe0 rxe1,rxe2 rxe3 --policy strict",
		   "rxe0+rxe1/0 rxe0+rxe2/0 rxe0+rxe3/0"));
	/* all is looked at before the first is sent */
	CHECK(adds(CTL_USAGE, "add rxe0 rxe1 a/b", ""));
	CHECK(adds(CTL_USAGE, "add rxe0 rxe1 --policy lax", ""));
	refuses = "rxe2";
	CHECK(adds(CTL_FAIL, "add rxe0 rxe1 rxe2 rxe3", "rxe0+rxe1/0 rxe0+rxe2/0"));
	CHECK(!strcmp(complaint, "pair add rxe0 rxe2: refused"));
	refuses = NULL;
}

static bool shows(struct ctl *ctl, const char *words, const char *what)
{
	char *printed = pair(CTL_OK, ctl, words);
	bool same = !strcmp(printed, what);

	if (!same)
		printf("# printed '%s'\n", printed);
	free(printed);
	return same;
}

static void show(void)
{
	struct ctl text = {}, json = { .json = true };

	CHECK(shows(&text, "show",
		"DEV     PORT  BACKUP           PORT  POLICY         PROOF                QPS  PROTECTED  USED BY\n"
		"rxe0    -     rxe1,rxe2*,rxe3  -     at-least-once  -                    3    2          applications,nvme\n"
		"rxe1    -     rxe0             -     at-least-once  untried              3    2          applications,nvme\n"
		"rxe9    -     rxe8             -     at-least-once  -                    3    2          -\n"
		"mlx5_0  -     mlx5_1           -     at-least-once  holds; fails 2,3,16  3    2          applications,nvme\n"));
	CHECK(shows(&json, "show rxe0",
		"[{\"dev\":\"rxe0\",\"backup\":\"rxe2\",\"protected_qps\":2,"
		"\"policy\":\"at-least-once\",\"tracked_qps\":3,"
		"\"used_by\":\"applications,nvme\","
		"\"backups\":[\"rxe1\",\"rxe2\",\"rxe3\"]}]\n"));
	CHECK(shows(&json, "show rxe9",
		"[{\"dev\":\"rxe9\",\"backup\":\"rxe8\",\"protected_qps\":2,"
		"\"policy\":\"at-least-once\",\"tracked_qps\":3}]\n"));
	CHECK(shows(&json, "show mlx5_0",
		"[{\"dev\":\"mlx5_0\",\"backup\":\"mlx5_1\",\"protected_qps\":2,"
		"\"policy\":\"at-least-once\",\"tracked_qps\":3,"
		"\"used_by\":\"applications,nvme\","
		"\"proof_held\":[2,3,8],\"proof_failed\":[],"
		"\"backup_proof_held\":[8],\"backup_proof_failed\":[2,3,16],"
		"\"backups\":[\"mlx5_1\"]}]\n"));
	free(pair(CTL_FAIL, &text, "show rxe5"));
	CHECK(strstr(complaint, "rxe5 has no backup"));
}

static const struct ktap_test tests[] = {
	{ "pair add sends each backup, in order", add },
	{ "pair show prints all backups", show },
};
KTAP_MAIN(tests)
