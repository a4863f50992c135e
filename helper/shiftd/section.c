// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sections of shiftd.conf and what each of their keys takes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/names.h"
#include "shiftd/secret.h"
#include "shiftd/section.h"

#define PREFIX_LEN_MAX	128

int conf_fail(struct conf_parser *p, const char *fmt, ...)
{
	va_list args;
	int n;

	n = snprintf(p->err, p->errlen, "%s:%d: ", p->name, p->line);
	if (n < 0 || (size_t)n >= p->errlen)
		return -EINVAL;
	va_start(args, fmt);
	vsnprintf(p->err + n, p->errlen - n, fmt, args);
	va_end(args);
	return -EINVAL;
}

char *conf_trim(char *s)
{
	char *end;

	s += strspn(s, " \t\r\n");
	end = s + strlen(s);
	while (end > s && strchr(" \t\r\n", end[-1]))
		end--;
	*end = '\0';
	return s;
}

static int set_string(struct conf_parser *p, char **slot, const char *key,
		      const char *value)
{
	if (*slot)
		return conf_fail(p, "'%s' is given twice", key);
	if (!*value)
		return conf_fail(p, "'%s' has no value", key);
	*slot = strdup(value);
	return *slot ? 0 : conf_fail(p, "out of memory");
}

static int set_number(struct conf_parser *p, unsigned int *slot, const char *key,
		      const char *value, unsigned long min, unsigned long max)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || n < min || n > max)
		return conf_fail(p, "'%s' must be a number from %lu to %lu, not '%s'",
				 key, min, max, value);
	*slot = n;
	return 0;
}

static int set_bool(struct conf_parser *p, bool *slot, const char *key,
		    const char *value)
{
	if (strcmp(value, "yes") && strcmp(value, "no"))
		return conf_fail(p, "'%s' must be yes or no, not '%s'", key, value);
	*slot = *value == 'y';
	return 0;
}

static int set_file(struct conf_parser *p, char **slot, const char *key,
		    const char *value)
{
	if (*value != '/')
		return conf_fail(p, "'%s' must be an absolute path", key);
	return set_string(p, slot, key, value);
}

/* A file, or the name of a credential: see secret.c. */
static int set_secret(struct conf_parser *p, char **slot, const char *key,
		      const char *value)
{
	const size_t skip = strlen(SHIFT_CREDENTIAL);

	if (strncmp(value, SHIFT_CREDENTIAL, skip))
		return set_file(p, slot, key, value);
	if (!shift_name_ok(value + skip, SHIFT_NODE_MAX))
		return conf_fail(p, "'%s' is not the name of a credential", value + skip);
	return set_string(p, slot, key, value);
}

static int set_node(struct conf_parser *p, char slot[SHIFT_NODE_MAX], const char *value)
{
	if (!shift_name_ok(value, SHIFT_NODE_MAX))
		return conf_fail(p, "'%s' is not a node name, which has 1 to %d letters, digits, '.', '_' and '-'",
				 value, SHIFT_NODE_MAX - 1);
	strcpy(slot, value);
	return 0;
}

static int add_expelled(struct conf_parser *p, const char *node)
{
	struct shift_config *c = p->config;

	if (c->n_expelled == SHIFT_EXPELLED_MAX)
		return conf_fail(p, "more than %d nodes are expelled", SHIFT_EXPELLED_MAX);
	return set_node(p, c->expelled[c->n_expelled++], node);
}

static int node_key(struct conf_parser *p, const char *key, char *value)
{
	char *one;
	int ret = 0;

	if (!strcmp(key, "auth_file"))
		return set_file(p, &p->config->auth_file, key, value);
	if (!strcmp(key, "name"))
		return set_node(p, p->config->node, value);
	if (strcmp(key, "expelled"))
		return conf_fail(p, "unknown key '%s' in [node] (known: auth_file, expelled, name)",
				 key);
	while (!ret && (one = strsep(&value, ",")))
		ret = add_expelled(p, conf_trim(one));
	return ret;
}

static int set_dev(struct conf_parser *p, char slot[SHIFT_DEV_MAX],
		   const char *value)
{
	if (!shift_name_ok(value, SHIFT_DEV_MAX))
		return conf_fail(p, "'%s' is not the name of an RDMA device", value);
	strcpy(slot, value);
	return 0;
}

static int pair_key(struct conf_parser *p, const char *key, char *value)
{
	struct shift_config_pair *pair;
	char *one;
	int ret;

	pair = &p->config->pairs[p->config->n_pairs - 1];
	if (!strcmp(key, "default")) {
		if (*pair->dev)
			return conf_fail(p, "'default' is given twice; start a new [pair] section for another device");
		return set_dev(p, pair->dev, value);
	}
	if (!strcmp(key, "policy")) {
		pair->policy = shift_policy_find(value);
		if (pair->policy < 0)
			return conf_fail(p, "'policy' must be exactly-once or at-least-once, not '%s'",
					 value);
		return 0;
	}
	if (strcmp(key, "backup"))
		return conf_fail(p, "unknown key '%s' in [pair] (known: default, backup, policy)",
				 key);
	if (pair->n_backups)
		return conf_fail(p, "'backup' is given twice; several backups are separated by commas");
	while ((one = strsep(&value, ","))) {
		if (pair->n_backups == SHIFT_PAIR_BACKUPS_MAX)
			return conf_fail(p, "a device has at most %d backups",
					 SHIFT_PAIR_BACKUPS_MAX);
		ret = set_dev(p, pair->backups[pair->n_backups], conf_trim(one));
		if (ret)
			return ret;
		pair->n_backups++;
	}
	return 0;
}

static int add_endpoint(struct conf_parser *p, char *value)
{
	struct shift_config *c = p->config;
	size_t len = strlen(value);
	const char *host;

	while (len && value[len - 1] == '/')
		value[--len] = '\0';
	host = !strncmp(value, "http://", 7) ? value + 7 :
		!strncmp(value, "https://", 8) ? value + 8 : "";
	/* Nothing but host and port: what follows is ours to say. */
	if (!*host || strpbrk(host, "/@?# \t"))
		return conf_fail(p, "'%s' is not an endpoint; expected http://HOST:PORT or https://HOST:PORT",
				 value);
	if (c->n_endpoints == SHIFT_ENDPOINTS_MAX)
		return conf_fail(p, "there are more than %d endpoints", SHIFT_ENDPOINTS_MAX);
	c->endpoints[c->n_endpoints] = strdup(value);
	if (!c->endpoints[c->n_endpoints])
		return conf_fail(p, "out of memory");
	c->n_endpoints++;
	return 0;
}

static int set_prefix(struct conf_parser *p, char *value)
{
	size_t len = strlen(value);
	const char *c;

	while (len > 1 && value[len - 1] == '/')
		value[--len] = '\0';
	if (value[0] != '/' || len < 2 || len > PREFIX_LEN_MAX)
		return conf_fail(p, "'prefix' must start with '/' and have 2 to %d characters",
				 PREFIX_LEN_MAX);
	for (c = value; *c; c++)
		if (!strchr("/._-", *c) && !(*c >= '0' && *c <= '9') &&
		    !(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z'))
			return conf_fail(p, "'prefix' must not contain '%c'; letters, digits, '/', '.', '_' and '-' are allowed", *c);
	return set_string(p, &p->config->prefix, "prefix", value);
}

static int etcd_key(struct conf_parser *p, const char *key, char *value)
{
	struct shift_config *c = p->config;
	char *one;
	int ret;

	if (!strcmp(key, "endpoints")) {
		while ((one = strsep(&value, ","))) {
			ret = add_endpoint(p, conf_trim(one));
			if (ret)
				return ret;
		}
		return 0;
	}
	if (!strcmp(key, "prefix"))
		return set_prefix(p, value);
	if (!strcmp(key, "lease_ttl"))
		return set_number(p, &c->lease_ttl, key, value, 5, 3600);
	if (!strcmp(key, "hold"))
		return set_number(p, &c->hold, key, value, 0, 86400);
	if (!strcmp(key, "withdraw"))
		return set_bool(p, &c->withdraw, key, value);
	if (!strcmp(key, "ca_file"))
		return set_secret(p, &c->ca_file, key, value);
	if (!strcmp(key, "cert_file"))
		return set_secret(p, &c->cert_file, key, value);
	if (!strcmp(key, "key_file"))
		return set_secret(p, &c->key_file, key, value);
	if (!strcmp(key, "user"))
		return set_string(p, &c->user, key, value);
	if (!strcmp(key, "password"))
		return set_string(p, &c->password, key, value);
	if (!strcmp(key, "password_file"))
		return set_secret(p, &c->password_file, key, value);
	return conf_fail(p, "unknown key '%s' in [etcd]; see shiftd.conf(5)", key);
}

static int failback_key(struct conf_parser *p, const char *key, char *value)
{
	struct shift_config *c = p->config;

	if (!strcmp(key, "enabled"))
		return set_bool(p, &c->failback, key, value);
	if (!strcmp(key, "hold"))
		return set_number(p, &c->failback_hold, key, value, 1, 86400);
	if (!strcmp(key, "max_hold"))
		return set_number(p, &c->failback_max_hold, key, value, 1,
				  86400);
	if (!strcmp(key, "probe"))
		return set_number(p, &c->failback_probe, key, value, 0, 3600);
	return conf_fail(p, "unknown key '%s' in [failback] (known: enabled, hold, max_hold, probe)",
			 key);
}

static int peer_key(struct conf_parser *p, const char *key, char *value)
{
	struct shift_peer *peer = p->config->peers[p->config->n_peers - 1];
	char *gid, *rest, err[256];

	if (strcmp(key, "nic"))
		return conf_fail(p, "unknown key '%s' in [peer] (known: nic)", key);
	gid = strsep(&value, " \t");
	rest = value ? conf_trim(value) : "";
	if (strncmp(rest, "backup", 6))
		return conf_fail(p, "expected nic=GID backup=GID[,GID...]");
	rest = conf_trim(rest + 6);
	if (*rest == '=')
		rest = conf_trim(rest + 1);
	if (shift_peer_add_nic(peer, gid, rest, err, sizeof(err)))
		return conf_fail(p, "%s", err);
	return 0;
}

static int begin_peer(struct conf_parser *p, const char *name)
{
	struct shift_config *c = p->config;
	struct shift_peer **grown;
	unsigned int i;

	if (!shift_name_ok(name, SHIFT_NODE_MAX))
		return conf_fail(p, "[peer NODE] needs a node name, not '%s'", name);
	for (i = 0; i < c->n_peers; i++)
		if (!strcmp(c->peers[i]->node, name))
			return conf_fail(p, "[peer %s] is given twice", name);
	if (c->n_peers == SHIFT_STATIC_PEERS_MAX)
		return conf_fail(p, "there are more than %d peers", SHIFT_STATIC_PEERS_MAX);
	grown = reallocarray(c->peers, c->n_peers + 1, sizeof(*grown));
	if (!grown)
		return conf_fail(p, "out of memory");
	c->peers = grown;
	c->peers[c->n_peers] = calloc(1, sizeof(struct shift_peer));
	if (!c->peers[c->n_peers])
		return conf_fail(p, "out of memory");
	strcpy(c->peers[c->n_peers++]->node, name);
	return 0;
}

/* A line that begins with '['; @text is changed. */
int conf_section(struct conf_parser *p, char *text)
{
	char *end = strchr(text, ']');

	if (!end || end[1])
		return conf_fail(p, "expected a section as [name]");
	*end = '\0';
	text = conf_trim(text + 1);
	if (!strncmp(text, "peer", 4) && strchr(" \t", text[4])) {
		p->section = PEER;
		return begin_peer(p, conf_trim(text + 4));
	}
	if (!strcmp(text, "pair")) {
		if (p->config->n_pairs == SHIFT_PAIRS_MAX)
			return conf_fail(p, "there are more than %d pairs", SHIFT_PAIRS_MAX);
		p->config->pairs[p->config->n_pairs++].line = p->line;
		p->section = PAIR;
		return 0;
	}
	if (!strcmp(text, "node"))
		p->section = NODE;
	else if (!strcmp(text, "etcd"))
		p->section = ETCD;
	else if (!strcmp(text, "failback"))
		p->section = FAILBACK;
	else
		return conf_fail(p, "unknown section [%s] (known: node, pair, etcd, failback, peer NODE)",
				 text);
	if (p->seen[p->section])
		return conf_fail(p, "section [%s] is given twice", text);
	p->seen[p->section] = true;
	return 0;
}

/* A line of the section that began last; @value is changed. */
int conf_key(struct conf_parser *p, const char *key, char *value)
{
	switch (p->section) {
	case NODE:
		return node_key(p, key, value);
	case PAIR:
		return pair_key(p, key, value);
	case ETCD:
		return etcd_key(p, key, value);
	case FAILBACK:
		return failback_key(p, key, value);
	case PEER:
		return peer_key(p, key, value);
	case NONE:
		break;
	}
	return conf_fail(p, "'%s' comes before the first section", key);
}
