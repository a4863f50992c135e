// SPDX-License-Identifier: GPL-2.0-only
/* GIDs, names, peers as text, base64. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ktap.h"
#include "lib/peer.h"
#include "shiftd/etcd/base64.h"

static void text(void)
{
	char buf[SHIFT_GID_TEXT];
	struct shift_gid a, b;

	CHECK(!shift_gid_parse("192.0.2.1", &a));
	CHECK(!shift_gid_parse("0000:0000:0000:0000:0000:ffff:c000:0201", &b));
	CHECK(!shift_gid_cmp(&a, &b));
	CHECK(shift_gid_is_mapped(&a));
	CHECK(!strcmp(shift_gid_format(&a, buf), "::ffff:192.0.2.1"));
	CHECK(!strcmp(shift_gid_addr(&a, buf), "192.0.2.1"));
	CHECK(!shift_gid_parse("2001:db8::1", &b));
	CHECK(!strcmp(shift_gid_addr(&b, buf), "2001:db8::1"));
	CHECK(shift_gid_parse("", &a) == -EINVAL);
	CHECK(shift_gid_parse("192.0.2", &a) == -EINVAL);
	CHECK(shift_gid_parse("2001:db8::1%eth0", &a) == -EINVAL);
}

static void believed(void)
{
	static const char * const bad[] = {
		"::", "::1", "ff02::1", "fe80::1", "127.0.0.1", "0.0.0.0",
		"224.0.0.1", "255.255.255.255",
	};
	static const char * const good[] = {
		"192.0.2.1", "2001:db8::1", "fd00::1", "10.0.0.1",
	};
	struct shift_gid gid;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(!shift_gid_parse(bad[i], &gid));
		CHECK(shift_gid_refuse(&gid));
	}
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK(!shift_gid_parse(good[i], &gid));
		CHECK(!shift_gid_refuse(&gid));
	}
}

static void names(void)
{
	CHECK(shift_name_ok("node-1.rack_2", 64));
	CHECK(!shift_name_ok("", 64));
	CHECK(!shift_name_ok("..", 64));
	CHECK(!shift_name_ok("-j", 64));
	CHECK(!shift_name_ok("a/b", 64));
	CHECK(!shift_name_ok("a b", 64));
	CHECK(!shift_name_ok("a\nb", 64));
	CHECK(shift_name_ok("abc", 4));
	CHECK(!shift_name_ok("abcd", 4));
}

static char root[] = "/tmp/shift-gid-XXXXXX";

static void put(const char *dev, const char *what, int i, const char *value)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path),
		 "mkdir -p %s/class/infiniband/%s/ports/1/%s", root, dev, what);
	CHECK(!system(path));
	snprintf(path, sizeof(path), "%s/class/infiniband/%s/ports/1/%s/%d",
		 root, dev, what, i);
	f = fopen(path, "w");
	CHECK(f);
	if (f) {
		fprintf(f, "%s\n", value);
		fclose(f);
	}
}

static void entry(const char *dev, int i, const char *gid, const char *type)
{
	put(dev, "gids", i, gid);
	put(dev, "gid_attrs/types", i, type);
}

static void device(void)
{
	struct shift_gid gids[SHIFT_DEV_GIDS];
	struct shift_gid gid, want;
	char cmd[256];
	int i;

	CHECK(mkdtemp(root));
	entry("v4", 0, "fe80:0000:0000:0000:0000:0000:0000:0001", "IB/RoCE v1");
	entry("v4", 1, "fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2");
	entry("v4", 2, "2001:0db8:0000:0000:0000:0000:0000:0001", "RoCE v2");
	entry("v4", 3, "0000:0000:0000:0000:0000:ffff:c000:0202", "IB/RoCE v1");
	entry("v4", 4, "0000:0000:0000:0000:0000:ffff:c000:0201", "RoCE v2");
	CHECK(!shift_gid_of_device(root, "v4", &gid));
	CHECK(!shift_gid_parse("192.0.2.1", &want));
	CHECK(!shift_gid_cmp(&gid, &want));

	/* an application may use either address */
	CHECK(shift_gids_of_device(root, "v4", gids) == 2);
	CHECK(!shift_gid_cmp(&gids[0], &want));
	CHECK(!shift_gid_parse("2001:db8::1", &want));
	CHECK(!shift_gid_cmp(&gids[1], &want));
	/* but not one of another interface, such as a VLAN */
	put("v4", "gid_attrs/ndevs", 2, "eth0.7");
	put("v4", "gid_attrs/ndevs", 4, "eth0");
	CHECK(shift_gids_of_device(root, "v4", gids) == 1);

	entry("v6", 0, "fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2");
	entry("v6", 1, "0000:0000:0000:0000:0000:0000:0000:0000", "RoCE v2");
	entry("v6", 2, "2001:0db8:0000:0000:0000:0000:0000:0002", "RoCE v2");
	entry("v6", 3, "2001:0db8:0000:0000:0000:0000:0000:0003", "RoCE v2");
	CHECK(!shift_gid_of_device(root, "v6", &gid));
	CHECK(!shift_gid_parse("2001:db8::2", &want));
	CHECK(!shift_gid_cmp(&gid, &want));

	CHECK(shift_gids_of_device(root, "v6", gids) == 1);

	/* free entries are skipped, but not all of a table */
	entry("gap", 0, "0000:0000:0000:0000:0000:0000:0000:0000", "");
	entry("gap", 1, "2001:0db8:0000:0000:0000:0000:0000:0002", "RoCE v2");
	for (i = 2; i < 12; i++)
		entry("gap", i, "0000:0000:0000:0000:0000:0000:0000:0000", "");
	entry("gap", 12, "0000:0000:0000:0000:0000:ffff:c000:0201", "RoCE v2");
	CHECK(shift_gids_of_device(root, "gap", gids) == 1);
	CHECK(!shift_gid_cmp(&gids[0], &want));

	entry("none", 0, "fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2");
	CHECK(shift_gid_of_device(root, "none", &gid) == -EADDRNOTAVAIL);
	CHECK(shift_gid_of_device(root, "absent", &gid) == -ENODEV);
	CHECK(shift_gid_of_device(root, "../v6", &gid) == -ENODEV);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", root);
	CHECK(!system(cmd));
}

static void peers(void)
{
	static struct shift_peer a, b;
	char err[128], *s;
	unsigned int i;
	char gid[32];

	CHECK(!shift_peer_add_nic(&a, "192.0.2.1", "192.0.2.2, 192.0.2.3", err,
				  sizeof(err)));
	CHECK(!shift_peer_add_nic(&a, "192.0.2.2", "192.0.2.1", err,
				  sizeof(err)));
	s = shift_peer_format(&a);
	CHECK(s && !strcmp(s, "nic ::ffff:192.0.2.1 backup ::ffff:192.0.2.2,::ffff:192.0.2.3 nic ::ffff:192.0.2.2 backup ::ffff:192.0.2.1"));
	free(s);
	b = a;
	CHECK(shift_peer_equal(&a, &b));
	b.nics[1].backups[0].raw[15]++;
	CHECK(!shift_peer_equal(&a, &b));
	CHECK(shift_peer_has_gid(&a, &a.nics[0].backups[1]));
	CHECK(!shift_peer_has_gid(&a, &b.nics[1].backups[0]) ||
	      b.nics[1].backups[0].raw[15] <= 3);
	CHECK(shift_peer_add_nic(&a, "192.0.2.1", "192.0.2.9", err,
				 sizeof(err)) == -EINVAL);
	CHECK(shift_peer_add_nic(&a, "192.0.2.8", "192.0.2.9,192.0.2.9", err,
				 sizeof(err)) == -EINVAL);
	CHECK(shift_peer_add_nic(&a, "192.0.2.8", "10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5,10.0.0.6,10.0.0.7,10.0.0.8,10.0.0.9",
				 err, sizeof(err)) == -E2BIG);
	CHECK(a.n_nics == 2);
	for (i = 2; i < SHIFT_PEER_NICS_MAX; i++) {
		snprintf(gid, sizeof(gid), "10.0.1.%u", i);
		CHECK(!shift_peer_add_nic(&a, gid, "10.0.2.1", err,
					  sizeof(err)));
	}
	CHECK(shift_peer_add_nic(&a, "10.0.3.1", "10.0.2.1", err,
				 sizeof(err)) == -E2BIG);
}

static void base64(void)
{
	static const struct { const char *plain, *coded; } same[] = {
		{ "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" },
		{ "\xff\xfe\xfd", "//79" },
	};
	static const char * const bad[] = {
		"Z", "Zg=", "Zg", "=g==", "Z===", "Zm9v!mFy", "Zg==Zg==",
		"====", "Zm9-",
	};
	char *coded, *plain;
	size_t i, len;

	for (i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		coded = shift_base64_encode(same[i].plain,
					    strlen(same[i].plain));
		CHECK(coded && !strcmp(coded, same[i].coded));
		free(coded);
		plain = shift_base64_decode(same[i].coded,
					    strlen(same[i].coded), &len);
		CHECK(plain && len == strlen(same[i].plain) &&
		      !memcmp(plain, same[i].plain, len + 1));
		free(plain);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		plain = shift_base64_decode(bad[i], strlen(bad[i]), &len);
		if (plain)
			printf("# taken: %s\n", bad[i]);
		CHECK(!plain);
		free(plain);
	}
}

static const struct ktap_test tests[] = {
	{ "GIDs as text", text },
	{ "GIDs that name no NIC are refused", believed },
	{ "names", names },
	{ "the GID of a device", device },
	{ "peers as text", peers },
	{ "base64", base64 },
};
KTAP_MAIN(tests)
