// SPDX-License-Identifier: GPL-2.0-only
/* shiftd.conf: what is taken and what is refused, with which words. */
#include <stdlib.h>
#include <string.h>

#include "ktap.h"
#include "lib/names.h"
#include "shiftd/config.h"
#include "shiftd/secret.h"

static char err[512];

static struct shift_config *parse(const char *text)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	struct shift_config *config;

	err[0] = '\0';
	config = shift_config_parse(f, "conf", err, sizeof(err));
	fclose(f);
	return config;
}

static void full(void)
{
	struct shift_config *c = parse(
		"# comment\n; comment\n\n"
		"[node]\nname = node-a.rack_1\nauth_file = /etc/keys\nexpelled = b, c\n"
		"[pair]\ndefault=rxe0\nbackup = rxe1, rxe2\npolicy = at-least-once\n"
		" [ pair ] \r\n default = rxe1 \r\n backup=rxe0\r\n"
		"[etcd]\nendpoints=http://h1:1, https://[2001:db8::1]:2/\n"
		"prefix=/a/b/\nlease_ttl=20\nhold=0\nwithdraw=yes\n"
		"ca_file=/ca\ncert_file=/cert\nkey_file=/key\n"
		"user=u\npassword=p = w # 1\n"
		"[failback]\nenabled=no\nhold = 3\nmax_hold=4\nprobe=2\n"
		"[peer b]\nnic=192.0.2.1 backup=192.0.2.2,2001:db8::2\n"
		"nic = 192.0.2.2 backup = 192.0.2.1\n"
		"[peer c]\nnic=192.0.2.3 backup 192.0.2.4");

	CHECK(c);
	if (!c) {
		printf("# %s\n", err);
		return;
	}
	CHECK(!strcmp(c->node, "node-a.rack_1"));
	CHECK(!strcmp(c->auth_file, "/etc/keys"));
	CHECK(shift_config_expels(c, "b") && shift_config_expels(c, "c"));
	CHECK(!shift_config_expels(c, "node-a.rack_1"));
	CHECK(c->n_pairs == 2);
	CHECK(!strcmp(c->pairs[0].dev, "rxe0"));
	CHECK(c->pairs[0].n_backups == 2);
	CHECK(!strcmp(c->pairs[0].backups[1], "rxe2"));
	CHECK(!strcmp(c->pairs[1].backups[0], "rxe0"));
	CHECK(c->pairs[0].policy == SHIFT_POLICY_AT_LEAST_ONCE);
	CHECK(c->pairs[1].policy == SHIFT_POLICY_EXACTLY_ONCE);
	CHECK(c->n_endpoints == 2);
	CHECK(!strcmp(c->endpoints[1], "https://[2001:db8::1]:2"));
	CHECK(!strcmp(c->prefix, "/a/b"));
	CHECK(c->lease_ttl == 20 && c->hold == 0 && c->withdraw);
	CHECK(!strcmp(c->ca_file, "/ca") && !strcmp(c->key_file, "/key"));
	CHECK(!strcmp(c->password, "p = w # 1"));
	CHECK(!c->failback && c->failback_hold == 3 && c->failback_max_hold == 4);
	CHECK(c->failback_probe == 2);
	CHECK(c->n_peers == 2);
	CHECK(c->peers[0]->n_nics == 2);
	CHECK(c->peers[0]->nics[0].n_backups == 2);
	shift_config_free(c);
}

static void defaults(void)
{
	struct shift_config *c = parse("[node]\nname=a\n");

	CHECK(c);
	if (!c)
		return;
	CHECK(!c->n_pairs && !c->n_endpoints && !c->n_peers);
	CHECK(c->lease_ttl == 10 && c->hold == 60 && !c->withdraw);
	CHECK(!strcmp(c->prefix, "/shift/v1"));
	shift_config_free(c);
}

/* The words of files that are older than the present ones. */
static void policies(void)
{
	static const struct { const char *word; int policy; } known[] = {
		{ "exactly-once", SHIFT_POLICY_EXACTLY_ONCE },
		{ "at-least-once", SHIFT_POLICY_AT_LEAST_ONCE },
		{ "strict", SHIFT_POLICY_EXACTLY_ONCE },
		{ "paper", SHIFT_POLICY_AT_LEAST_ONCE },
	};
	struct shift_config *c;
	char text[128];
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		snprintf(text, sizeof(text),
			 "[node]\nname=a\n[pair]\ndefault=b\nbackup=c\npolicy=%s\n",
			 known[i].word);
		c = parse(text);
		CHECK(c && c->pairs[0].policy == known[i].policy);
		shift_config_free(c);
	}
}

static void refused(void)
{
	static const struct { const char *text, *says; } bad[] = {
		{ "name=a\n", "conf:1: 'name' comes before" },
		{ "[node]\nnme=a\n", "conf:2: unknown key 'nme'" },
		{ "[node]\nexpelled=a,,b\n", "conf:2: '' is not a node name" },
		{ "[node]\nauth_file=keys\n", "conf:2: 'auth_file' must be an absolute path" },
		{ "[node]\nauth_file=/a\nauth_file=/b\n", "conf:3: 'auth_file' is given twice" },
		{ "[node]\nname=a/b\n", "conf:2: 'a/b' is not a node name" },
		{ "[node]\nname=\n", "not a node name" },
		{ "[node]\n[node]\n", "conf:2: section [node] is given twice" },
		{ "[nodes]\n", "unknown section [nodes]" },
		{ "[node\n", "expected a section as" },
		{ "[node]\nfoo\n", "expected 'key = value'" },
		{ "[pair]\nbackup=b\n", "conf:1: this [pair] has no 'default'" },
		{ "[pair]\ndefault=a\n", "no 'backup'" },
		{ "[pair]\ndefault=a\nbackup=a\n", "cannot be its own backup" },
		{ "[pair]\ndefault=a\nbackup=b,b\n", "given twice" },
		{ "[pair]\ndefault=a\nbackup=b,,c\n", "not the name of an RDMA" },
		{ "[pair]\ndefault=../a\nbackup=b\n", "not the name of an RDMA" },
		{ "[pair]\ndefault=a\ndefault=b\n", "conf:3: 'default' is given twice" },
		{ "[pair]\npolicy=lax\n", "exactly-once or at-least-once, not 'lax'" },
		{ "[pair]\ndefault=a\nbackup=1,2,3,4,5\n", "at most 4" },
		{ "[pair]\ndefault=a\nbackup=b\n[pair]\ndefault=a\nbackup=c\n",
		  "conf:4: a is the default of another" },
		{ "[etcd]\n", "no 'endpoints'" },
		{ "[etcd]\nendpoints=h:1\n", "not an endpoint" },
		{ "[etcd]\nendpoints=http://\n", "not an endpoint" },
		{ "[etcd]\nendpoints=http://u:p@h:1\n", "not an endpoint" },
		{ "[etcd]\nendpoints=http://h:1/v3\n", "not an endpoint" },
		{ "[etcd]\nendpoints=http://h:1,\n", "not an endpoint" },
		{ "[etcd]\nlease_ttl=4\n", "from 5 to 3600" },
		{ "[etcd]\nlease_ttl=10s\n", "must be a number" },
		{ "[etcd]\nhold=-1\n", "must be a number" },
		{ "[etcd]\nhold=99999999999999999999\n", "must be a number" },
		{ "[etcd]\nwithdraw=true\n", "yes or no" },
		{ "[etcd]\nprefix=shift\n", "must start with '/'" },
		{ "[etcd]\nprefix=/\n", "must start with '/'" },
		{ "[etcd]\nprefix=/a b\n", "must not contain" },
		{ "[etcd]\nca_file=ca.pem\n", "absolute path" },
		{ "[etcd]\nendpoints=http://h:1\ncert_file=/c\n", "must be given together" },
		{ "[etcd]\nendpoints=http://h:1\nuser=u\n", "must be given together" },
		{ "[etcd]\nendpoints=http://h:1\nuser=u\npassword=p\npassword_file=/p\n",
		  "only one of" },
		{ "[etcd]\nendpoints=http://h:1\npassword_file=/p\n", "must be given together" },
		{ "[etcd]\npassword_file=p\n", "absolute path" },
		{ "[etcd]\nkey_file=credential:\n", "not the name of a credential" },
		{ "[etcd]\nkey_file=credential:../k\n", "not the name of a credential" },
		{ "[node]\nauth_file=credential:k\n", "absolute path" },
		{ "[peer]\n", "needs a node name" },
		{ "[peer a b]\n", "needs a node name" },
		{ "[peer b]\n", "[peer b] has no 'nic'" },
		{ "[node]\nname=b\n[peer b]\nnic=192.0.2.1 backup=192.0.2.2\n",
		  "has the name of this node" },
		{ "[peer b]\nnic=192.0.2.1\n", "expected nic=GID backup=" },
		{ "[peer b]\nnic=192.0.2.1 backup=192.0.2.1\n", "own backup" },
		{ "[peer b]\nnic=fe80::1 backup=192.0.2.1\n", "is link-local" },
		{ "[peer b]\nnic=127.0.0.1 backup=192.0.2.1\n", "loopback" },
		{ "[peer b]\nnic=192.0.2.1 backup=1.2.3\n", "neither a GID" },
		{ "[peer b]\nnic=192.0.2.1 backup=192.0.2.2,\n", "is empty" },
	};
	struct shift_config *c;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		c = parse(bad[i].text);
		CHECK(!c);
		if (!c && !strstr(err, bad[i].says)) {
			printf("# case %zu: '%s' is not in '%s'\n", i,
			       bad[i].says, err);
			CHECK(!"the message");
		}
		shift_config_free(c);
	}
}

/* A password that leaves the host unencrypted. */
static void clear(void)
{
	static const struct { const char *urls; bool clear; } cases[] = {
		{ "https://h:1,https://[2001:db8::1]:1", false },
		{ "https://h:1,http://h:1", true },
		{ "http://127.0.0.1:1,http://[::1]:1,http://localhost:1,http://localhost", false },
		{ "http://localhost.example:1", true },
		{ "http://[::11]:1", true },
	};
	struct shift_config *c;
	char text[256];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text),
			 "[node]\nname=a\n[etcd]\nendpoints=%s\nuser=u\npassword=p\n",
			 cases[i].urls);
		c = parse(text);
		CHECK(c && !!shift_config_clear_endpoint(c) == cases[i].clear);
		shift_config_free(c);
	}
	c = parse("[node]\nname=a\n[etcd]\nendpoints=http://h:1\n");
	CHECK(c && !shift_config_clear_endpoint(c));
	shift_config_free(c);
}

/* Names of credentials become paths, if there are any. */
static void credentials(void)
{
	const char *text = "[node]\nname=a\n[etcd]\nendpoints=https://h:1\n"
			   "cert_file=/c\nkey_file=credential:k.1\n";
	struct shift_config *c = parse(text);

	CHECK(c && shift_secrets_load(c, NULL, err, sizeof(err)) && strstr(err, "'key_file'"));
	CHECK(c && shift_secrets_load(c, "/nowhere", err, sizeof(err)) &&
	      strstr(err, "LoadCredential"));
	shift_config_free(c);
}

static void not_text(void)
{
	char text[] = "[node]\nna\0me=a\n";
	FILE *f = fmemopen(text, sizeof(text), "r");

	CHECK(!shift_config_parse(f, "conf", err, sizeof(err)));
	CHECK(strstr(err, "not a text file"));
	fclose(f);
}

static void same_etcd(void)
{
	const char *a = "[node]\nname=a\n[etcd]\nendpoints=http://h:1\n";
	const char *b = "[node]\nname=b\n[etcd]\nendpoints=http://h:1\nhold=5\n";
	const char *c = "[node]\nname=a\n[etcd]\nendpoints=http://h:2\n";
	struct shift_config *x = parse(a), *y = parse(b), *z = parse(c);

	CHECK(x && y && z);
	if (x && y && z) {
		CHECK(shift_config_same_etcd(x, y));
		CHECK(!shift_config_same_etcd(x, z));
	}
	shift_config_free(x);
	shift_config_free(y);
	shift_config_free(z);
}

/* Every prefix of a good file, and each of its bytes broken: no crash. */
static void mangled(void)
{
	const char good[] =
		"[node]\nname=a\n[pair]\ndefault=rxe0\nbackup=rxe1,rxe2\n"
		"[etcd]\nendpoints=http://h:1\nlease_ttl=10\n"
		"[peer b]\nnic=192.0.2.1 backup=192.0.2.2,192.0.2.3\n";
	char text[sizeof(good)];
	size_t i;
	int c;

	for (i = 1; i < sizeof(good); i++) {
		memcpy(text, good, i);
		text[i] = '\0';
		shift_config_free(parse(text));
	}
	for (i = 0; i + 1 < sizeof(good); i++) {
		for (c = 1; c < 256; c += 5) {
			strcpy(text, good);
			text[i] = c;
			shift_config_free(parse(text));
		}
	}
}

static const struct ktap_test tests[] = {
	{ "every key is taken", full },
	{ "defaults", defaults },
	{ "policies, by their old words too", policies },
	{ "errors are refused with line and reason", refused },
	{ "a password that is sent in the clear is found", clear },
	{ "a credential that is not there is told", credentials },
	{ "a binary file is refused", not_text },
	{ "a reload tells whether etcd changed", same_etcd },
	{ "mangled files do no harm", mangled },
};
KTAP_MAIN(tests)
