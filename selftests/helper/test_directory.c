// SPDX-License-Identifier: GPL-2.0-only
/* Entries of the directory, and the peers made of them. */
#include <stdlib.h>
#include <string.h>

#include "ktap.h"
#include "shiftd/directory.h"
#include "shiftd/log.h"

#define BOOT1 "11111111-1111-1111-1111-111111111111"
#define BOOT2 "22222222-2222-2222-2222-222222222222"
#define HOLD 1000

static struct shift_dir *dir;
static struct shift_peers peers;

static void setup(void)
{
	struct shift_gid own;

	dir = shift_dir_new();
	CHECK(!shift_gid_parse("10.0.0.1", &own));
	CHECK(!shift_dir_self(dir, "self", BOOT1, &own, 1));
}

static void teardown(void)
{
	shift_peers_clear(&peers);
	shift_dir_free(dir);
}

static size_t build(void)
{
	shift_peers_clear(&peers);
	CHECK(!shift_dir_peers(dir, &peers));
	return peers.n;
}

static void put_raw(const char *key, const char *value, int64_t rev,
		    uint64_t now)
{
	/* An exact copy, so that a read past its end is seen. */
	size_t len = strlen(value);
	char *copy = malloc(len ? len : 1);

	memcpy(copy, value, len);
	shift_dir_put(dir, key, strlen(key), copy, len, rev, rev, now);
	free(copy);
}

static void put(const char *node, const char *boot, const char *gid,
		const char *backup, int64_t rev, uint64_t now)
{
	char value[512], key[128], *text;

	text = key + snprintf(key, sizeof(key), "%s/", node);
	snprintf(text, 64, "::ffff:%s", gid);
	snprintf(value, sizeof(value),
		 "{\"version\":1,\"node\":\"%s\",\"boot_id\":\"%s\",\"dev\":\"rxe0\",\"gid\":\"%s\",\"backups\":[{\"dev\":\"rxe1\",\"gid\":\"%s\",\"addr\":\"x\"}],\"later\":{}}",
		 node, boot, text, backup);
	put_raw(key, value, rev, now);
}

static void del(const char *node, const char *gid, uint64_t now)
{
	char key[128];

	snprintf(key, sizeof(key), "%s/::ffff:%s", node, gid);
	shift_dir_delete(dir, key, strlen(key), now);
}

static void round_trip(void)
{
	struct shift_entry a = {}, b;
	char why[128], *text;

	shift_gid_parse("10.0.0.2", &a.gid);
	strcpy(a.node, "b");
	strcpy(a.dev, "rxe0");
	strcpy(a.boot_id, BOOT1);
	a.n_backups = 2;
	strcpy(a.backups[0].dev, "rxe1");
	shift_gid_parse("10.0.1.2", &a.backups[0].gid);
	strcpy(a.backups[1].dev, "rxe2");
	shift_gid_parse("2001:db8::2", &a.backups[1].gid);
	text = shift_entry_encode(&a);
	CHECK(text && strstr(text, "\"addr\":\"10.0.1.2\""));
	CHECK(!shift_entry_decode(text, strlen(text), &b, why, sizeof(why)));
	CHECK(!memcmp(&a, &b, sizeof(a)));
	free(text);
}

static void grouped(void)
{
	setup();
	put("c", BOOT1, "10.0.0.5", "10.0.1.5", 9, 0);
	put("b", BOOT1, "10.0.0.2", "10.0.1.2", 3, 0);
	put("b", BOOT1, "10.0.1.2", "10.0.0.2", 4, 0);
	put("self", BOOT1, "10.0.0.1", "10.0.1.1", 5, 0);
	CHECK(build() == 2);
	CHECK(peers.n == 2 && !strcmp(peers.peer[0]->node, "b"));
	CHECK(peers.n == 2 && peers.peer[0]->n_nics == 2);
	teardown();
}

static void held(void)
{
	setup();
	put("b", BOOT1, "10.0.0.2", "10.0.1.2", 3, 0);
	del("b", "10.0.0.2", 5000);
	del("b", "10.0.0.2", 5900);	/* told twice: the first counts */
	CHECK(shift_dir_expire(dir, 5000, HOLD) == 6000);
	CHECK(shift_dir_expire(dir, 5999, HOLD) == 6000);
	CHECK(build() == 1);
	CHECK(shift_dir_expire(dir, 6000, HOLD) == UINT64_MAX);
	CHECK(build() == 0);
	/* and back within the hold */
	put("b", BOOT1, "10.0.0.2", "10.0.1.2", 7, 7000);
	del("b", "10.0.0.2", 7000);
	put("b", BOOT1, "10.0.0.2", "10.0.1.2", 8, 7500);
	CHECK(shift_dir_expire(dir, 9000, HOLD) == UINT64_MAX);
	CHECK(build() == 1);
	teardown();
}

static void listed(void)
{
	setup();
	put("b", BOOT1, "10.0.0.2", "10.0.1.2", 3, 0);
	put("c", BOOT1, "10.0.0.3", "10.0.1.3", 4, 0);
	shift_dir_list_begin(dir);
	put("b", BOOT1, "10.0.0.2", "10.0.1.2", 3, 100);
	/* peers are asked for in the middle of a listing, too */
	CHECK(build() == 2);
	shift_dir_list_end(dir, 100);
	CHECK(build() == 2);
	CHECK(shift_dir_expire(dir, 1100, HOLD) == UINT64_MAX);
	CHECK(build() == 1 && !strcmp(peers.peer[0]->node, "b"));
	teardown();
}

static void rebooted(void)
{
	setup();
	put("b", BOOT1, "10.0.0.2", "10.0.1.2", 3, 0);
	put("b", BOOT1, "10.0.0.3", "10.0.1.2", 4, 0);
	CHECK(build() == 1 && peers.peer[0]->n_nics == 2);
	put("b", BOOT2, "10.0.0.2", "10.0.1.2", 9, 0);
	CHECK(build() == 1 && peers.peer[0]->n_nics == 1);
	teardown();
}

static void conflicting(void)
{
	setup();
	put("b", BOOT1, "10.0.0.2", "10.0.1.2", 3, 0);
	put("evil", BOOT1, "10.0.0.9", "10.0.1.2", 4, 0);
	CHECK(build() == 1 && !strcmp(peers.peer[0]->node, "b"));
	/* ours is nobody's, neither as default nor as backup */
	put("evil", BOOT1, "10.0.0.9", "10.0.0.1", 5, 0);
	CHECK(build() == 1);
	put("evil", BOOT1, "10.0.0.1", "10.0.0.9", 5, 0);
	CHECK(build() == 1);
	/* it says that b's address is its backup, and said so before b did */
	put("evil", BOOT1, "10.0.0.9", "10.0.0.2", 2, 0);
	CHECK(build() == 1 && !strcmp(peers.peer[0]->node, "b"));
	/* b's address under two names: the older one stands */
	put("evil", BOOT1, "10.0.0.2", "10.0.0.9", 5, 0);
	CHECK(build() == 1 && !strcmp(peers.peer[0]->node, "b"));
	/* our name with another boot id */
	put("self", BOOT2, "10.0.0.7", "10.0.1.7", 6, 0);
	CHECK(build() == 1);
	teardown();
}

static void garbage(void)
{
	static const char * const bad[] = {
		"", "x", "1", "\"x\"", "[]", "{}", "null", "{\"version\":1}",
		"{\"version\":2,\"node\":\"b\"}",
		"{\"version\":\"1\"}",
		"[[[[[[[[[[[[[[[[[[[[[[[[",
		"{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}}}}}",
	};
	static const char *fields[][2] = {
		{ "\"b\"", "\"\"" }, { "\"b\"", "\"a b\"" }, { "\"b\"", "7" },
		{ "\"b\"", "\"b\\u0000c\"" }, { "\"b\"", "\"../b\"" },
		{ "\"" BOOT1 "\"", "\"1\"" }, { "\"" BOOT1 "\"", "[]" },
		{ "\"" BOOT1 "\"", "\"11111111-1111-1111-1111-11111111111G\"" },
		{ "::ffff:10.0.0.2", "::ffff:10.0.0.3" },
		{ "::ffff:10.0.1.2", "::ffff:10.0.0.2" },
		{ "::ffff:10.0.1.2", "fe80::1" }, { "::ffff:10.0.1.2", "" },
		{ "[{", "[7,{" }, { "\"rxe0\"", "null" }, { "}]", "}],," },
		{ "}]}", "}]}x" }, { "}]}", "}]" },
	};
	const char good[] =
		"{\"version\":1,\"node\":\"b\",\"boot_id\":\"" BOOT1 "\",\"dev\":\"rxe0\",\"gid\":\"::ffff:10.0.0.2\",\"backups\":[{\"dev\":\"rxe1\",\"gid\":\"::ffff:10.0.1.2\"}]}";
	char text[1024], *at;
	size_t i;

	setup();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		put_raw("b/::ffff:10.0.0.2", bad[i], 1, 0);
	CHECK(build() == 0 && shift_dir_count(dir) == 0);
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		at = strstr(good, fields[i][0]);
		CHECK(at);
		if (!at)
			continue;
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good),
			 good, fields[i][1], at + strlen(fields[i][0]));
		put_raw("b/::ffff:10.0.0.2", text, 1, 0);
		if (shift_dir_count(dir))
			printf("# taken: %s\n", text);
		CHECK(shift_dir_count(dir) == 0);
	}
	/* keys: not canonical, no GID, far too long, empty */
	put_raw("b/0:0:0:0:0:ffff:10.0.0.2", good, 1, 0);
	put_raw("b/10.0.0.2", good, 1, 0);
	put_raw("::ffff:10.0.0.2", good, 1, 0);
	put_raw("/::ffff:10.0.0.2", good, 1, 0);
	put_raw("b//::ffff:10.0.0.2", good, 1, 0);
	put_raw("b/", good, 1, 0);
	put_raw("", good, 1, 0);
	/* another node's */
	put_raw("c/::ffff:10.0.0.2", good, 1, 0);
	put_raw("\n\x1b[2Jfoo", good, 1, 0);
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	put_raw(text, good, 1, 0);
	CHECK(shift_dir_count(dir) == 0);
	/* and the good one is good */
	put_raw("b/::ffff:10.0.0.2", good, 1, 0);
	CHECK(build() == 1);
	/* overwritten by garbage: held, then gone */
	put_raw("b/::ffff:10.0.0.2", "garbage", 2, 100);
	CHECK(build() == 1);
	shift_dir_expire(dir, 100 + HOLD, HOLD);
	CHECK(build() == 0);
	teardown();
}

/* Bytes of a good value changed, cut and doubled at random: no crash. */
static void mangled(void)
{
	const char good[] =
		"{\"version\":1,\"node\":\"b\",\"boot_id\":\"" BOOT1 "\",\"dev\":\"rxe0\",\"gid\":\"::ffff:10.0.0.2\",\"backups\":[{\"dev\":\"rxe1\",\"gid\":\"::ffff:10.0.1.2\"}]}";
	const char special[] = "{}[]\",:\\0nutf-1e9 ";
	char text[sizeof(good)], why[128];
	struct shift_entry entry;
	unsigned int seed = 1;
	size_t len, n;
	char *copy;
	int i;

	for (i = 0; i < 30000; i++) {
		memcpy(text, good, sizeof(good));
		for (n = rand_r(&seed) % 4; n; n--)
			text[rand_r(&seed) % (sizeof(good) - 1)] =
				rand_r(&seed) % 2 ? rand_r(&seed) :
				special[rand_r(&seed) % (sizeof(special) - 1)];
		len = rand_r(&seed) % 3 ? sizeof(good) - 1 :
			rand_r(&seed) % sizeof(good);
		copy = malloc(len ? len : 1);
		memcpy(copy, text, len);
		shift_entry_decode(copy, len, &entry, why, sizeof(why));
		free(copy);
	}
}

static void many(void)
{
	char gid[32], backup[32], node[16];
	int i;

	setup();
	for (i = 0; i < SHIFT_DIR_ENTRIES_MAX + 10; i++) {
		snprintf(gid, sizeof(gid), "10.1.%d.%d", i >> 8, i & 255);
		snprintf(backup, sizeof(backup), "10.128.%d.%d", i >> 8,
			 i & 255);
		/* the first 100 are of one node, more than a peer may have */
		snprintf(node, sizeof(node), "n%d", i < 100 ? 0 : i / 8);
		if (i >> 8 > 255)
			break;
		put(node, BOOT1, gid, backup, i + 1, 0);
	}
	CHECK(shift_dir_count(dir) == SHIFT_DIR_ENTRIES_MAX);
	CHECK(build() <= SHIFT_DIR_PEERS_MAX);
	CHECK(peers.n > 2000);
	CHECK(shift_peers_find(&peers, "n0"));
	CHECK(shift_peers_find(&peers, "n0")->n_nics == SHIFT_PEER_NICS_MAX);
	teardown();
}

static void sets(void)
{
	static struct shift_peer p;
	struct shift_peers set = {};
	int i;

	for (i = 0; i < 100; i++) {
		snprintf(p.node, sizeof(p.node), "n%d", i * 37 % 100);
		CHECK(!shift_peers_add(&set, &p));
	}
	CHECK(set.n == 100);
	for (i = 1; i < 100; i++)
		CHECK(strcmp(set.peer[i - 1]->node, set.peer[i]->node) < 0);
	p.n_nics = 1;
	CHECK(!shift_peers_add(&set, &p));
	CHECK(set.n == 100 && shift_peers_find(&set, p.node)->n_nics == 1);
	shift_peers_remove(&set, "n50");
	shift_peers_remove(&set, "absent");
	CHECK(set.n == 99 && !shift_peers_find(&set, "n50"));
	shift_peers_clear(&set);
}

static const struct ktap_test tests[] = {
	{ "an entry survives JSON", round_trip },
	{ "entries make peers", grouped },
	{ "what vanished is held", held },
	{ "a new listing tells what vanished", listed },
	{ "a reboot makes old entries void at once", rebooted },
	{ "a GID belongs to one node", conflicting },
	{ "garbage is left out", garbage },
	{ "mangled values do no harm", mangled },
	{ "there is an end to everything", many },
	{ "sets of peers", sets },
};
KTAP_MAIN(tests)
