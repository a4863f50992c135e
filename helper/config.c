// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftd.conf.  Whatever is not understood is an error with its line: a typo
 * in a file that decides about failover must not wait for the failure.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "log.h"
#include "names.h"

#define DEFAULT_PREFIX	"/shift/v1"
#define PREFIX_LEN_MAX	128

enum section { NONE, NODE, PAIR, ETCD, FAILBACK, PEER };

struct parser {
	struct shift_config *config;
	const char *name;
	int line;
	enum section section;
	bool seen[PEER];	/* sections that may come once */
	char *err;
	size_t errlen;
};

static int __attribute__((format(printf, 2, 3)))
fail(struct parser *p, const char *fmt, ...)
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

static char *trim(char *s)
{
	char *end;

	s += strspn(s, " \t\r\n");
	end = s + strlen(s);
	while (end > s && strchr(" \t\r\n", end[-1]))
		end--;
	*end = '\0';
	return s;
}

static int set_string(struct parser *p, char **slot, const char *key,
		      const char *value)
{
	if (*slot)
		return fail(p, "'%s' is given twice", key);
	if (!*value)
		return fail(p, "'%s' has no value", key);
	*slot = strdup(value);
	return *slot ? 0 : fail(p, "out of memory");
}

static int set_number(struct parser *p, unsigned int *slot, const char *key,
		      const char *value, unsigned long min, unsigned long max)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || n < min || n > max)
		return fail(p, "'%s' must be a number from %lu to %lu, not '%s'",
			    key, min, max, value);
	*slot = n;
	return 0;
}

static int set_bool(struct parser *p, bool *slot, const char *key,
		    const char *value)
{
	if (strcmp(value, "yes") && strcmp(value, "no"))
		return fail(p, "'%s' must be yes or no, not '%s'", key, value);
	*slot = *value == 'y';
	return 0;
}

static int set_file(struct parser *p, char **slot, const char *key,
		    const char *value)
{
	if (*value != '/')
		return fail(p, "'%s' must be an absolute path", key);
	return set_string(p, slot, key, value);
}

static int node_key(struct parser *p, const char *key, const char *value)
{
	if (strcmp(key, "name"))
		return fail(p, "unknown key '%s' in [node] (known: name)", key);
	if (!shift_name_ok(value, SHIFT_NODE_MAX))
		return fail(p, "'%s' is no node name: 1 to %d letters, digits, '.', '_' and '-'",
			    value, SHIFT_NODE_MAX - 1);
	strcpy(p->config->node, value);
	return 0;
}

static int set_dev(struct parser *p, char slot[SHIFT_DEV_MAX],
		   const char *value)
{
	if (!shift_name_ok(value, SHIFT_DEV_MAX))
		return fail(p, "'%s' is no name of an RDMA device", value);
	strcpy(slot, value);
	return 0;
}

static int pair_key(struct parser *p, const char *key, char *value)
{
	struct shift_config_pair *pair;
	char *one;
	int ret;

	pair = &p->config->pairs[p->config->n_pairs - 1];
	if (!strcmp(key, "default")) {
		if (*pair->dev)
			return fail(p, "'default' is given twice; each pair has a [pair] of its own");
		return set_dev(p, pair->dev, value);
	}
	if (!strcmp(key, "policy")) {
		pair->policy = shift_name_find(&shift_policy_names, value);
		if (pair->policy < 0)
			return fail(p, "'policy' is strict or paper, not '%s'",
				    value);
		return 0;
	}
	if (strcmp(key, "backup"))
		return fail(p, "unknown key '%s' in [pair] (known: default, backup, policy)",
			    key);
	if (pair->n_backups)
		return fail(p, "'backup' is given twice; several backups are separated by commas");
	while ((one = strsep(&value, ","))) {
		if (pair->n_backups == SHIFT_BACKUPS_MAX)
			return fail(p, "more than %d backups",
				    SHIFT_BACKUPS_MAX);
		ret = set_dev(p, pair->backups[pair->n_backups], trim(one));
		if (ret)
			return ret;
		pair->n_backups++;
	}
	return 0;
}

static int add_endpoint(struct parser *p, char *value)
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
		return fail(p, "'%s' is no endpoint; expected http://HOST:PORT or https://HOST:PORT",
			    value);
	if (c->n_endpoints == SHIFT_ENDPOINTS_MAX)
		return fail(p, "more than %d endpoints", SHIFT_ENDPOINTS_MAX);
	c->endpoints[c->n_endpoints] = strdup(value);
	if (!c->endpoints[c->n_endpoints])
		return fail(p, "out of memory");
	c->n_endpoints++;
	return 0;
}

static int set_prefix(struct parser *p, char *value)
{
	size_t len = strlen(value);
	const char *c;

	while (len > 1 && value[len - 1] == '/')
		value[--len] = '\0';
	if (value[0] != '/' || len < 2 || len > PREFIX_LEN_MAX)
		return fail(p, "'prefix' must start with '/' and have 2 to %d characters",
			    PREFIX_LEN_MAX);
	for (c = value; *c; c++)
		if (!strchr("/._-", *c) && !(*c >= '0' && *c <= '9') &&
		    !(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z'))
			return fail(p, "'prefix' has the character '%c'", *c);
	return set_string(p, &p->config->prefix, "prefix", value);
}

static int etcd_key(struct parser *p, const char *key, char *value)
{
	struct shift_config *c = p->config;
	char *one;
	int ret;

	if (!strcmp(key, "endpoints")) {
		while ((one = strsep(&value, ","))) {
			ret = add_endpoint(p, trim(one));
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
		return set_file(p, &c->ca_file, key, value);
	if (!strcmp(key, "cert_file"))
		return set_file(p, &c->cert_file, key, value);
	if (!strcmp(key, "key_file"))
		return set_file(p, &c->key_file, key, value);
	if (!strcmp(key, "user"))
		return set_string(p, &c->user, key, value);
	if (!strcmp(key, "password"))
		return set_string(p, &c->password, key, value);
	return fail(p, "unknown key '%s' in [etcd]", key);
}

static int failback_key(struct parser *p, const char *key, char *value)
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
	return fail(p, "unknown key '%s' in [failback] (known: enabled, hold, max_hold, probe)",
		    key);
}

static int peer_key(struct parser *p, const char *key, char *value)
{
	struct shift_peer *peer = p->config->peers[p->config->n_peers - 1];
	char *gid, *rest, err[256];

	if (strcmp(key, "nic"))
		return fail(p, "unknown key '%s' in [peer] (known: nic)", key);
	gid = strsep(&value, " \t");
	rest = value ? trim(value) : "";
	if (strncmp(rest, "backup", 6))
		return fail(p, "expected nic=GID backup=GID[,GID...]");
	rest = trim(rest + 6);
	if (*rest == '=')
		rest = trim(rest + 1);
	if (shift_peer_add_nic(peer, gid, rest, err, sizeof(err)))
		return fail(p, "%s", err);
	return 0;
}

static int begin_peer(struct parser *p, const char *name)
{
	struct shift_config *c = p->config;
	struct shift_peer **grown;
	unsigned int i;

	if (!shift_name_ok(name, SHIFT_NODE_MAX))
		return fail(p, "[peer NODE] needs a node name, not '%s'", name);
	for (i = 0; i < c->n_peers; i++)
		if (!strcmp(c->peers[i]->node, name))
			return fail(p, "[peer %s] is given twice", name);
	if (c->n_peers == SHIFT_STATIC_PEERS_MAX)
		return fail(p, "more than %d peers", SHIFT_STATIC_PEERS_MAX);
	grown = reallocarray(c->peers, c->n_peers + 1, sizeof(*grown));
	if (!grown)
		return fail(p, "out of memory");
	c->peers = grown;
	c->peers[c->n_peers] = calloc(1, sizeof(struct shift_peer));
	if (!c->peers[c->n_peers])
		return fail(p, "out of memory");
	strcpy(c->peers[c->n_peers++]->node, name);
	return 0;
}

static int begin_section(struct parser *p, char *text)
{
	char *end = strchr(text, ']');

	if (!end || end[1])
		return fail(p, "a section is written [name]");
	*end = '\0';
	text = trim(text + 1);
	if (!strncmp(text, "peer", 4) && strchr(" \t", text[4])) {
		p->section = PEER;
		return begin_peer(p, trim(text + 4));
	}
	if (!strcmp(text, "pair")) {
		if (p->config->n_pairs == SHIFT_PAIRS_MAX)
			return fail(p, "more than %d pairs", SHIFT_PAIRS_MAX);
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
		return fail(p, "unknown section [%s] (known: node, pair, etcd, failback, peer NODE)",
			    text);
	if (p->seen[p->section])
		return fail(p, "section [%s] is given twice", text);
	p->seen[p->section] = true;
	return 0;
}

static int parse_line(struct parser *p, char *text)
{
	char *key, *value;

	text = trim(text);
	if (!*text || *text == '#' || *text == ';')
		return 0;
	if (*text == '[')
		return begin_section(p, text);
	value = strchr(text, '=');
	if (!value)
		return fail(p, "expected 'key = value'");
	*value++ = '\0';
	key = trim(text);
	value = trim(value);
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
	return fail(p, "'%s' stands before any section", key);
}

/* What can be said only when all of it was read. */
static int check_pairs(struct parser *p)
{
	struct shift_config *c = p->config;
	unsigned int i, j, k;

	for (i = 0; i < c->n_pairs; i++) {
		struct shift_config_pair *pair = &c->pairs[i];

		p->line = pair->line;
		if (!*pair->dev)
			return fail(p, "this [pair] has no 'default'");
		if (!pair->n_backups)
			return fail(p, "this [pair] has no 'backup'");
		for (j = 0; j < pair->n_backups; j++) {
			if (!strcmp(pair->backups[j], pair->dev))
				return fail(p, "%s cannot be its own backup",
					    pair->dev);
			for (k = 0; k < j; k++)
				if (!strcmp(pair->backups[j], pair->backups[k]))
					return fail(p, "backup %s is given twice",
						    pair->backups[j]);
		}
		for (j = 0; j < i; j++)
			if (!strcmp(pair->dev, c->pairs[j].dev))
				return fail(p, "%s is the default of another [pair]; list all its backups there",
					    pair->dev);
	}
	return 0;
}

static int finish(struct parser *p)
{
	struct shift_config *c = p->config;
	unsigned int i;
	int ret;

	ret = check_pairs(p);
	if (ret)
		return ret;
	p->line = 0;
	if (p->seen[ETCD] && !c->n_endpoints)
		return fail(p, "[etcd] has no 'endpoints'");
	if (!c->cert_file != !c->key_file)
		return fail(p, "'cert_file' and 'key_file' belong together");
	if (!c->user != !c->password)
		return fail(p, "'user' and 'password' belong together");
	if (c->failback_max_hold < c->failback_hold)
		return fail(p, "[failback] 'max_hold' is below 'hold'");
	for (i = 0; i < c->n_peers; i++)
		if (!c->peers[i]->n_nics)
			return fail(p, "[peer %s] has no 'nic'",
				    c->peers[i]->node);
	if (!*c->node) {
		char host[HOST_NAME_MAX + 1] = "";

		gethostname(host, sizeof(host) - 1);
		host[strcspn(host, ".")] = '\0';
		if (!shift_name_ok(host, SHIFT_NODE_MAX) ||
		    !strcmp(host, "localhost"))
			return fail(p, "host name '%s' cannot name a node; set 'name' in [node]",
				    host);
		strcpy(c->node, host);
	}
	for (i = 0; i < c->n_peers; i++)
		if (!strcmp(c->peers[i]->node, c->node))
			return fail(p, "[peer %s] is this node itself",
				    c->node);
	if (!c->prefix)
		c->prefix = strdup(DEFAULT_PREFIX);
	return c->prefix ? 0 : fail(p, "out of memory");
}

/**
 * shift_config_parse() - read a configuration
 * @f: where from
 * @name: name of it in messages
 * @err: gets "NAME:LINE: what is wrong"
 * @errlen: size of @err
 *
 * Return: the configuration, to be freed, or NULL.
 */
struct shift_config *shift_config_parse(FILE *f, const char *name, char *err,
					size_t errlen)
{
	struct parser p = { .name = name, .err = err, .errlen = errlen };
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int ret = 0;

	p.config = calloc(1, sizeof(*p.config));
	if (!p.config) {
		fail(&p, "out of memory");
		return NULL;
	}
	p.config->lease_ttl = 10;
	p.config->hold = 60;
	p.config->failback = true;
	p.config->failback_hold = 10;
	p.config->failback_max_hold = 600;
	p.config->failback_probe = 1;
	while (!ret && (len = getline(&line, &size, f)) >= 0) {
		p.line++;
		if ((size_t)len != strlen(line) || len > 16384)
			ret = fail(&p, "this is not a text file");
		else
			ret = parse_line(&p, line);
	}
	if (!ret && ferror(f))
		ret = fail(&p, "cannot be read: %s", strerror(errno));
	if (!ret)
		ret = finish(&p);
	free(line);
	if (ret) {
		shift_config_free(p.config);
		return NULL;
	}
	return p.config;
}

struct shift_config *shift_config_load(const char *path, char *err,
				       size_t errlen)
{
	struct shift_config *config;
	struct stat st;
	FILE *f = fopen(path, "re");

	if (!f) {
		snprintf(err, errlen, "%s: %s", path, strerror(errno));
		return NULL;
	}
	config = shift_config_parse(f, path, err, errlen);
	if (config && config->password && !fstat(fileno(f), &st) &&
	    (st.st_mode & 07))
		log_warn("%s holds a password and every user can read it (chmod 600)",
			 path);
	fclose(f);
	return config;
}

void shift_config_free(struct shift_config *c)
{
	unsigned int i;

	if (!c)
		return;
	for (i = 0; i < c->n_endpoints; i++)
		free(c->endpoints[i]);
	for (i = 0; i < c->n_peers; i++)
		free(c->peers[i]);
	free(c->peers);
	free(c->prefix);
	free(c->ca_file);
	free(c->cert_file);
	free(c->key_file);
	free(c->user);
	if (c->password)
		explicit_bzero(c->password, strlen(c->password));
	free(c->password);
	free(c);
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Would the connection to etcd be the same?  Else a reload makes it anew. */
bool shift_config_same_etcd(const struct shift_config *a,
			    const struct shift_config *b)
{
	unsigned int i;

	if (a->n_endpoints != b->n_endpoints || a->lease_ttl != b->lease_ttl)
		return false;
	for (i = 0; i < a->n_endpoints; i++)
		if (strcmp(a->endpoints[i], b->endpoints[i]))
			return false;
	return same(a->prefix, b->prefix) && same(a->ca_file, b->ca_file) &&
	       same(a->cert_file, b->cert_file) &&
	       same(a->key_file, b->key_file) && same(a->user, b->user) &&
	       same(a->password, b->password);
}
