// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pairs of shiftd.conf and those of the kernel, which is played here: it answers
 * the messages that it gets as the module does, or as an older one that keeps one
 * backup of each device.  And what other nodes are told of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <netlink/genl/genl.h>

#include "ktap.h"
#include "lib/command.h"
#include "lib/names.h"
#include "shiftd/local.h"
#include "shiftd/log.h"
#include "shiftd/sync_pairs.h"

#define FAMILY	30

struct fake_pair {
	const char *dev;
	char backups[SHIFT_PAIR_BACKUPS_MAX][SHIFT_DEV_MAX];
	unsigned int n, qps, policy;
	bool drained;
};

static struct {
	bool old;
	int refuses;		/* to add whatever it is, with this error */
	const char *devices;	/* those that are there, each between blanks */
	struct fake_pair pairs[2];
	char told[1024];	/* the commands that it got */
} fake;

static struct shift_kernel kernel;
static struct shift_sync_pairs state;
static uint64_t again;

static bool is_there(const char *dev)
{
	char word[SHIFT_DEV_MAX + 2];

	snprintf(word, sizeof(word), " %s ", dev);
	return strstr(fake.devices, word);
}

static void note(const char *what, const char *dev, const char *backup)
{
	size_t len = strlen(fake.told);

	snprintf(fake.told + len, sizeof(fake.told) - len, "%s%s %s%s%s",
		 len ? "; " : "", what, dev, *backup ? " " : "", backup);
}

static struct fake_pair *pair_of(const char *dev)
{
	return &fake.pairs[strcmp(dev, "rxe0") != 0];
}

static int fake_add(const char *dev, const char *backup, unsigned int policy)
{
	struct fake_pair *pair = pair_of(dev);
	unsigned int i;

	note("add", dev, backup);
	if (fake.refuses)
		return fake.refuses;
	if (!is_there(dev) || !is_there(backup))
		return -ENODEV;
	if (fake.old && pair->n)
		return -EEXIST;
	for (i = 0; i < pair->n; i++)
		if (!strcmp(pair->backups[i], backup))
			return -EEXIST;
	if (pair->n == SHIFT_PAIR_BACKUPS_MAX)
		return -ENOSPC;
	pair->dev = dev;
	pair->policy = policy;
	strcpy(pair->backups[pair->n++], backup);
	return 0;
}

/* As the kernel would answer to what lib/command.c has made. */
int shift_nl_request(struct shift_nl *nl, struct nl_msg *msg, shift_nl_fn fn,
		     void *arg)
{
	struct nlmsghdr *nlh = nlmsg_hdr(msg);
	struct nlattr *tb[SHIFT_A_MAX + 1];
	struct fake_pair *pair;
	const char *dev;
	int ret = 0;

	(void)nl;
	(void)fn;
	(void)arg;
	CHECK(!genlmsg_parse(nlh, 0, tb, SHIFT_A_MAX, NULL));
	dev = !strcmp(nla_get_string(tb[SHIFT_A_DEV]), "rxe0") ? "rxe0" : "rxe9";
	pair = pair_of(dev);
	switch (genlmsg_hdr(nlh)->cmd) {
	case SHIFT_CMD_PAIR_ADD:
		ret = fake_add(dev, nla_get_string(tb[SHIFT_A_BACKUP_DEV]),
			       nla_get_u32(tb[SHIFT_A_POLICY]));
		break;
	case SHIFT_CMD_PAIR_SET:
		note("set", dev, "");
		pair->policy = nla_get_u32(tb[SHIFT_A_POLICY]);
		break;
	case SHIFT_CMD_PAIR_DEL:
		note("del", dev, "");
		if (pair->qps)
			ret = -EBUSY;
		else
			pair->n = 0;
		break;
	default:
		CHECK(!"a command that is known");
	}
	nlmsg_free(msg);
	return ret;
}

struct nl_msg *shift_nl_msg(struct shift_nl *nl, int cmd, int flags, size_t size)
{
	struct nl_msg *msg = nlmsg_alloc_size(size);

	(void)nl;
	genlmsg_put(msg, 0, 0, FAMILY, 0, flags, cmd, SHIFT_GENL_VERSION);
	return msg;
}

static void send_pair(const struct fake_pair *pair, shift_nl_fn fn, void *arg)
{
	struct nl_msg *msg = shift_nl_msg(NULL, SHIFT_CMD_PAIR_GET, 0, 4096);
	struct nlattr *tb[SHIFT_A_MAX + 1];
	unsigned int i;

	nla_put_string(msg, SHIFT_A_DEV, pair->dev);
	nla_put_string(msg, SHIFT_A_BACKUP_DEV, pair->backups[0]);
	nla_put_u32(msg, SHIFT_A_POLICY, pair->policy);
	nla_put_u32(msg, SHIFT_A_TRACKED_QPS, pair->qps);
	if (pair->drained)
		nla_put_flag(msg, SHIFT_A_DRAINED);
	for (i = 0; i < pair->n && !fake.old; i++)
		nla_put_string(msg, SHIFT_A_PAIR_BACKUP_NAME, pair->backups[i]);
	CHECK(!genlmsg_parse(nlmsg_hdr(msg), 0, tb, SHIFT_A_MAX, NULL));
	fn(SHIFT_CMD_PAIR_GET, nlmsg_hdr(msg), tb, arg);
	nlmsg_free(msg);
}

int shift_nl_get(struct shift_nl *nl, int cmd, int dump, shift_nl_fn fn,
		 void *arg)
{
	int i;

	(void)nl;
	(void)dump;
	for (i = 0; i < 2 && cmd == SHIFT_CMD_PAIR_GET; i++)
		if (fake.pairs[i].n)
			send_pair(&fake.pairs[i], fn, arg);
	return 0;
}

int shift_nl_no_memory(struct shift_nl *nl, struct nl_msg *msg)
{
	(void)nl;
	nlmsg_free(msg);
	return -ENOMEM;
}

int shift_nl_open(struct shift_nl **nlp)
{
	*nlp = NULL;
	return 0;
}

void shift_nl_close(struct shift_nl *nl)
{
	(void)nl;
}

const char *shift_nl_error(const struct shift_nl *nl)
{
	(void)nl;
	return "refused";
}

static void restart(void)
{
	memset(&state, 0, sizeof(state));
}

static void begin(const char *devices)
{
	memset(&fake, 0, sizeof(fake));
	fake.devices = devices;
	fake.pairs[0].dev = "rxe0";
	restart();
}

/* The backups that other nodes are told of, if there is a local; "-": no entry. */
static struct shift_local *local;
static char published[256];

static void publish(const struct shift_config *c)
{
	static struct shift_entry entries[SHIFT_ENTRIES_MAX];
	unsigned int i;

	if (!local)
		return;
	shift_local_in_use(local, c, &kernel);
	CHECK(!shift_local_in_use(local, c, &kernel));
	shift_local_refresh(local, c);
	strcpy(published, "-");
	if (!shift_local_entries(local, c, entries))
		return;
	published[0] = '\0';
	for (i = 0; i < entries[0].n_backups; i++) {
		strcat(published, i ? "," : "");
		strcat(published, entries[0].backups[i].dev);
	}
}

static unsigned int warnings;

/* One sync with rxe0's backups so: how many are missing, told and warned of. */
static unsigned int sync_backups(const char *backups)
{
	char err[256], conf[256], *text = NULL;
	FILE *f, *real = stderr;
	struct shift_config *c;
	unsigned int missing;
	const char *at;
	size_t size;

	snprintf(conf, sizeof(conf),
		 "[node]\nname=a\n[pair]\ndefault=rxe0\nbackup=%s\n", backups);
	f = fmemopen(conf, strlen(conf), "r");
	c = shift_config_parse(f, "conf", err, sizeof(err));
	fclose(f);
	CHECK(c);
	if (!c)
		return 0;
	fake.told[0] = '\0';
	again = SHIFT_SYNC_NEVER;
	stderr = open_memstream(&text, &size);
	shift_kernel_read(&kernel);
	missing = shift_sync_pairs(&state, &kernel, c, &again);
	fclose(stderr);
	stderr = real;
	for (warnings = 0, at = text; (at = strstr(at, "warning:")); at++)
		warnings++;
	fputs(text, stderr);
	free(text);
	publish(c);
	shift_config_free(c);
	shift_kernel_clear(&kernel);
	return missing;
}

/* What the kernel has of rxe0 now, in order. */
static bool has(const char *list)
{
	char text[256] = "";
	unsigned int i;

	for (i = 0; i < fake.pairs[0].n; i++) {
		if (i)
			strcat(text, ",");
		strcat(text, fake.pairs[0].backups[i]);
	}
	if (strcmp(text, list))
		printf("# the kernel has '%s', not '%s'\n", text, list);
	return !strcmp(text, list);
}

static bool told(const char *commands)
{
	if (strcmp(fake.told, commands))
		printf("# told '%s', not '%s'\n", fake.told, commands);
	return !strcmp(fake.told, commands);
}

static void ordered(void)
{
	begin(" rxe0 rxe1 rxe2 ");
	CHECK(sync_backups("rxe1,rxe2") == 0);
	CHECK(told("add rxe0 rxe1; add rxe0 rxe2") && has("rxe1,rxe2"));
	CHECK(sync_backups("rxe1,rxe2") == 0);
	CHECK(told("") && !warnings && again == SHIFT_SYNC_NEVER);
	/* one more, at the end */
	fake.devices = " rxe0 rxe1 rxe2 rxe3 ";
	fake.pairs[0].qps = 5;
	CHECK(sync_backups("rxe1,rxe2,rxe3") == 0);
	CHECK(told("add rxe0 rxe3") && has("rxe1,rxe2,rxe3") && !warnings);
}

static void old_kernel(void)
{
	unsigned int i;

	begin(" rxe0 rxe1 rxe2 ");
	fake.old = true;
	CHECK(sync_backups("rxe1,rxe2") == 1);
	CHECK(told("add rxe0 rxe1; add rxe0 rxe2") && warnings == 1);
	for (i = 0; i < 3; i++) {
		CHECK(sync_backups("rxe1,rxe2") == 1);
		CHECK(told("") && !warnings && again == SHIFT_SYNC_NEVER);
	}
	restart();
	CHECK(sync_backups("rxe1,rxe2") == 1);
	CHECK(told("") && warnings == 1 && has("rxe1"));
	/* nor is the one that works taken away for another */
	CHECK(sync_backups("rxe2") == 1);
	CHECK(told("") && has("rxe1"));
	CHECK(sync_backups("rxe1") == 0 && !warnings);
}

static void first_is_late(void)
{
	begin(" rxe0 rxe2 rxe3 ");
	CHECK(sync_backups("rxe1,rxe2,rxe3") == 1);
	CHECK(has("rxe2,rxe3") && warnings == 1 && again == SHIFT_SYNC_RETRY_MS);
	CHECK(sync_backups("rxe1,rxe2,rxe3") == 1);
	CHECK(told("add rxe0 rxe1") && !warnings && has("rxe2,rxe3"));
	/* it comes while applications run: nothing is taken from them */
	fake.devices = " rxe0 rxe1 rxe2 rxe3 ";
	fake.pairs[0].qps = 1;
	CHECK(sync_backups("rxe1,rxe2,rxe3") == 0);
	CHECK(told("add rxe0 rxe1") && has("rxe2,rxe3,rxe1") && warnings == 1);
	CHECK(sync_backups("rxe1,rxe2,rxe3") == 0 && told("") && !warnings);
	/* and when they have ended the order is put right */
	fake.pairs[0].qps = 0;
	CHECK(sync_backups("rxe1,rxe2,rxe3") == 0);
	CHECK(has("rxe1,rxe2,rxe3"));
	CHECK(sync_backups("rxe1,rxe2,rxe3") == 0 && told("") && !warnings);
}

/* Whatever the reason is, no event will tell that it is over. */
static void refused(void)
{
	static const int errors[] = { -EBUSY, -ENOMEM, -EOPNOTSUPP };
	unsigned int i;

	for (i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		begin(" rxe0 rxe1 rxe2 ");
		fake.refuses = errors[i];
		CHECK(sync_backups("rxe1,rxe2") == 2 && warnings == 2 &&
		      again == SHIFT_SYNC_RETRY_MS);
		fake.refuses = 0;
		CHECK(sync_backups("rxe1,rxe2") == 0 && has("rxe1,rxe2") &&
		      again == SHIFT_SYNC_NEVER);
	}
}

static void reloaded(void)
{
	begin(" rxe0 rxe1 rxe2 rxe3 ");
	CHECK(sync_backups("rxe1,rxe2") == 0);
	CHECK(sync_backups("rxe2,rxe1") == 0 && has("rxe2,rxe1"));
	CHECK(sync_backups("rxe3") == 0 && has("rxe3"));
	CHECK(!warnings);
	/* while a drained device is left as it is */
	fake.pairs[0].drained = true;
	CHECK(sync_backups("rxe1") == 0 && has("rxe3,rxe1") && warnings == 1);
	fake.pairs[0].drained = false;
	CHECK(sync_backups("rxe1") == 0 && has("rxe1"));
}

/* What works is not taken away for what is not there. */
static void nothing_better(void)
{
	begin(" rxe0 rxe1 ");
	CHECK(sync_backups("rxe1") == 0);
	CHECK(sync_backups("rxe2") == 1 && told("add rxe0 rxe2") && has("rxe1"));
	CHECK(sync_backups("rxe2") == 1 && has("rxe1") && !warnings);
}

static void full(void)
{
	begin(" rxe0 a b c d e f g h ");
	CHECK(sync_backups("a,b,c,d") == 0);
	CHECK(sync_backups("e,f,g,h") == 0 && has("e,f,g,h"));
	CHECK(sync_backups("e,f,g,h") == 0 && told("") && !warnings);
}

static void others(void)
{
	begin(" rxe0 rxe1 rxe9 ");
	CHECK(!fake_add("rxe9", "rxe1", 0));
	fake.pairs[1].dev = "rxe9";
	CHECK(sync_backups("rxe1") == 0 && told("add rxe0 rxe1"));
	CHECK(fake.pairs[1].n == 1);
}

static void policy(void)
{
	begin(" rxe0 rxe1 ");
	CHECK(sync_backups("rxe1") == 0);
	CHECK(sync_backups("rxe1\npolicy=at-least-once") == 0);
	CHECK(told("set rxe0") && fake.pairs[0].policy == SHIFT_POLICY_AT_LEAST_ONCE);
	CHECK(sync_backups("rxe1\npolicy=at-least-once") == 0 && told(""));
}

static char sysfs[] = "/tmp/shift-test_sync-XXXXXX";

static void write_file(const char *dev, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/class/infiniband/%s/ports/1/%s/0", sysfs,
		 dev, name);
	f = fopen(path, "w");
	CHECK(f);
	if (!f)
		return;
	fputs(text, f);
	fclose(f);
}

/* Makes folders that are missing, each but the last with others below. */
static void make_folders(const char *dev, const char *below)
{
	char path[256], *at;

	snprintf(path, sizeof(path), "%s/class/infiniband/%s/ports/1/%s/", sysfs,
		 dev, below);
	for (at = path + strlen(sysfs) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		mkdir(path, 0700);
	}
}

/* A device with one GID. */
static void make_device(const char *dev, unsigned int number)
{
	char gid[64];

	make_folders(dev, "gids");
	make_folders(dev, "gid_attrs/types");
	snprintf(gid, sizeof(gid), "0000:0000:0000:0000:0000:ffff:0a0%u:0001\n",
		 number);
	write_file(dev, "gids", gid);
	write_file(dev, "gid_attrs/types", "RoCE v2\n");
}

/* rxe0 to rxe3. */
static void make_sysfs(void)
{
	char dev[] = "rxe0";
	unsigned int i;

	CHECK(mkdtemp(sysfs));
	for (i = 0; i < 4; i++, dev[3]++)
		make_device(dev, i);
}

static void remove_sysfs(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", sysfs);
	CHECK(!system(command));
}

static bool tells(const char *backups)
{
	if (strcmp(published, backups))
		printf("# published '%s', not '%s'\n", published, backups);
	return !strcmp(published, backups);
}

/* The kernel removes a device from its list when it is gone. */
static void fake_remove(const char *devices, unsigned int at)
{
	struct fake_pair *pair = &fake.pairs[0];

	fake.devices = devices;
	pair->n--;
	memmove(pair->backups[at], pair->backups[at + 1],
		(pair->n - at) * sizeof(pair->backups[0]));
}

/* Peers take the first backup that they are told of: it is the one in use. */
static void told_to_peers(void)
{
	make_sysfs();
	local = shift_local_new(sysfs);
	begin(" rxe0 rxe1 rxe2 rxe3 ");
	CHECK(sync_backups("rxe1,rxe2") == 0 && tells("rxe1,rxe2"));
	fake.pairs[0].qps = 1;
	/* the one in use goes, and stays known */
	fake_remove(" rxe0 rxe2 rxe3 ", 0);
	CHECK(sync_backups("rxe1,rxe2") == 1 && has("rxe2"));
	CHECK(tells("rxe2,rxe1"));
	/* it comes back as the last, until the list can be made anew */
	fake.devices = " rxe0 rxe1 rxe2 rxe3 ";
	CHECK(sync_backups("rxe1,rxe2") == 0 && has("rxe2,rxe1"));
	CHECK(tells("rxe2,rxe1"));
	fake.pairs[0].qps = 0;
	CHECK(sync_backups("rxe1,rxe2") == 0 && has("rxe1,rxe2"));
	CHECK(tells("rxe1,rxe2"));
	/* another configuration, and applications stay with what is there */
	fake.pairs[0].qps = 1;
	CHECK(sync_backups("rxe3") == 0 && has("rxe1,rxe2,rxe3"));
	CHECK(tells("rxe1,rxe2,rxe3"));
	fake.pairs[0].qps = 0;
	CHECK(sync_backups("rxe3") == 0 && tells("rxe3"));
	/* renamed while applications run: one GID, one backup */
	fake.pairs[0].qps = 1;
	strcpy(fake.pairs[0].backups[0], "new3");
	fake.devices = " rxe0 new3 ";
	make_device("new3", 3);
	CHECK(sync_backups("rxe3") == 1 && tells("new3"));
	/* no pair: as configured */
	fake_remove(" rxe0 ", 0);
	CHECK(sync_backups("rxe2,rxe1") == 2 && has("") && tells("rxe2,rxe1"));
	shift_local_free(local);
	local = NULL;
	remove_sysfs();
}

static const struct ktap_test tests[] = {
	{ "backups in order, once", ordered },
	{ "an older kernel keeps one, and that is told once", old_kernel },
	{ "the first comes late", first_is_late },
	{ "refused, and tried again", refused },
	{ "another list in the configuration", reloaded },
	{ "what works stays while nothing else does", nothing_better },
	{ "a full list is replaced", full },
	{ "pairs that the configuration does not name", others },
	{ "the policy is set", policy },
	{ "peers are told of the backup in use first", told_to_peers },
};
KTAP_MAIN(tests)
