// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftd.conf.  Whatever is not understood is an error with its line: a typo
 * in a file that decides about failover must not wait for the failure.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shiftd/config.h"
#include "shiftd/log.h"
#include "shiftd/section.h"

#define DEFAULT_PREFIX	"/shift/v1"

static int parse_line(struct conf_parser *p, char *text)
{
	char *key, *value;

	text = conf_trim(text);
	if (!*text || *text == '#' || *text == ';')
		return 0;
	if (*text == '[')
		return conf_section(p, text);
	value = strchr(text, '=');
	if (!value)
		return conf_fail(p, "expected 'key = value'");
	*value++ = '\0';
	key = conf_trim(text);
	value = conf_trim(value);
	return conf_key(p, key, value);
}

/* What can be said only when all of it was read. */
static int check_pairs(struct conf_parser *p)
{
	struct shift_config *c = p->config;
	unsigned int i, j, k;

	for (i = 0; i < c->n_pairs; i++) {
		struct shift_config_pair *pair = &c->pairs[i];

		p->line = pair->line;
		if (!*pair->dev)
			return conf_fail(p, "this [pair] has no 'default'");
		if (!pair->n_backups)
			return conf_fail(p, "this [pair] has no 'backup'");
		for (j = 0; j < pair->n_backups; j++) {
			if (!strcmp(pair->backups[j], pair->dev))
				return conf_fail(p, "%s cannot be its own backup",
						 pair->dev);
			for (k = 0; k < j; k++)
				if (!strcmp(pair->backups[j], pair->backups[k]))
					return conf_fail(p, "backup %s is given twice",
							 pair->backups[j]);
		}
		for (j = 0; j < i; j++)
			if (!strcmp(pair->dev, c->pairs[j].dev))
				return conf_fail(p, "%s is the default of another [pair]; list all its backups there",
						 pair->dev);
	}
	return 0;
}

static int finish(struct conf_parser *p)
{
	struct shift_config *c = p->config;
	unsigned int i;
	int ret;

	ret = check_pairs(p);
	if (ret)
		return ret;
	p->line = 0;
	if (p->seen[ETCD] && !c->n_endpoints)
		return conf_fail(p, "[etcd] has no 'endpoints'");
	if (!c->cert_file != !c->key_file)
		return conf_fail(p, "'cert_file' and 'key_file' must be given together");
	if (c->password && c->password_file)
		return conf_fail(p, "only one of 'password' and 'password_file' can be given");
	if (!c->user != (!c->password && !c->password_file))
		return conf_fail(p, "'user' and 'password' (or 'password_file') must be given together");
	if (c->failback_max_hold < c->failback_hold)
		return conf_fail(p, "'max_hold' in [failback] must not be less than 'hold'");
	for (i = 0; i < c->n_peers; i++)
		if (!c->peers[i]->n_nics)
			return conf_fail(p, "[peer %s] has no 'nic'",
					 c->peers[i]->node);
	if (!*c->node) {
		char host[HOST_NAME_MAX + 1] = "";

		gethostname(host, sizeof(host) - 1);
		host[strcspn(host, ".")] = '\0';
		if (!shift_name_ok(host, SHIFT_NODE_MAX) ||
		    !strcmp(host, "localhost"))
			return conf_fail(p, "the host name '%s' cannot be used as a node name; set 'name' in [node]",
					 host);
		strcpy(c->node, host);
	}
	for (i = 0; i < c->n_peers; i++)
		if (!strcmp(c->peers[i]->node, c->node))
			return conf_fail(p, "[peer %s] has the name of this node",
					 c->node);
	if (!c->prefix)
		c->prefix = strdup(DEFAULT_PREFIX);
	return c->prefix ? 0 : conf_fail(p, "out of memory");
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
	struct conf_parser p = { .name = name, .err = err, .errlen = errlen };
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int ret = 0;

	p.config = calloc(1, sizeof(*p.config));
	if (!p.config) {
		conf_fail(&p, "out of memory");
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
			ret = conf_fail(&p, "this is not a text file");
		else
			ret = parse_line(&p, line);
	}
	if (!ret && ferror(f))
		ret = conf_fail(&p, "cannot be read: %s", strerror(errno));
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
		log_warn("every user can read the password in %s; chmod 600 it",
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
	free(c->auth_file);
	free(c->ca_file);
	free(c->cert_file);
	free(c->key_file);
	free(c->user);
	free(c->password_file);
	if (c->password)
		explicit_bzero(c->password, strlen(c->password));
	free(c->password);
	free(c);
}

/* Does what is sent there leave this host for anybody to read? */
static bool is_clear(const char *endpoint)
{
	const char *host = endpoint + strlen("http://");

	return !strncmp(endpoint, "http://", strlen("http://")) &&
	       strncmp(host, "127.", 4) && strncmp(host, "[::1]", 5) &&
	       (strncmp(host, "localhost", 9) || (host[9] && host[9] != ':'));
}

/* An endpoint that a password is sent to unencrypted, or NULL. */
const char *shift_config_clear_endpoint(const struct shift_config *config)
{
	unsigned int i;

	for (i = 0; config->user && i < config->n_endpoints; i++)
		if (is_clear(config->endpoints[i]))
			return config->endpoints[i];
	return NULL;
}

/* Is a node no peer, whatever the directory says of it? */
bool shift_config_expels(const struct shift_config *config, const char *node)
{
	unsigned int i;

	for (i = 0; i < config->n_expelled; i++)
		if (!strcmp(config->expelled[i], node))
			return true;
	return false;
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
