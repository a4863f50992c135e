// SPDX-License-Identifier: GPL-2.0-only
/*
 * The steps of a session: log in, get a lease, publish under it, list, watch
 * from there, ask what else could be written.  etcd_advance() always starts the
 * first of these that is not done yet, so there is one order whatever was the cause.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shiftd/etcd/session.h"
#include "shiftd/log.h"

#define WITHDRAW_MS	2000

static void on_auth(const struct shift_http_result *result, void *arg)
{
	struct shift_etcd *e = arg;
	struct json_object *obj;
	const char *token;

	e->op = NULL;
	obj = etcd_answer(e, "logging in", result);
	if (!obj)
		return;
	token = etcd_json_string(obj, "token");
	/* It becomes a header line. */
	if (token && strlen(token) < 400 && !strpbrk(token, "\r\n"))
		e->token = strdup(token);
	json_object_put(obj);
	if (e->token)
		etcd_step(e);
	else
		etcd_fail(e, "logging in: the answer has no token");
}

static void on_grant(const struct shift_http_result *result, void *arg)
{
	struct shift_etcd *e = arg;
	struct json_object *obj;

	e->op = NULL;
	obj = etcd_answer(e, "lease", result);
	if (!obj)
		return;
	e->lease = etcd_json_int(obj, "ID");
	json_object_put(obj);
	if (!e->lease) {
		etcd_fail(e, "lease: etcd granted none");
		return;
	}
	etcd_arm(e->lease_timer, e->ttl * 1000 / 3);
	etcd_step(e);
}

/* Starts the first step that is not done yet; on_step() alone calls it. */
static void etcd_advance(struct shift_etcd *e)
{
	struct json_object *body;
	size_t i;

	if (e->op || e->withdrawn ||
	    sd_event_source_get_enabled(e->retry_timer, NULL) > 0)
		return;
	body = json_object_new_object();
	if (e->user && !e->token) {
		json_object_object_add(body, "name",
				       json_object_new_string(e->user));
		json_object_object_add(body, "password",
				       json_object_new_string(e->password));
		e->op = etcd_post(e, "auth/authenticate", body, ETCD_REQUEST_MS, NULL,
				  on_auth);
		return;
	}
	if (!e->lease) {
		etcd_json_add_int(body, "TTL", e->ttl);
		e->op = etcd_post(e, "lease/grant", body, ETCD_REQUEST_MS, NULL,
				  on_grant);
		return;
	}
	for (i = 0; i < e->n_items; i++) {
		if (e->items[i].published || e->items[i].refused)
			continue;
		json_object_put(body);
		etcd_put_start(e, &e->items[i]);
		return;
	}
	json_object_put(body);
	if (!e->listed)
		etcd_list_start(e);
	else if (!e->watch)
		etcd_watch_start(e);
	else if (e->up && !e->asked)
		etcd_rights_start(e);
}

static void on_keepalive(const struct shift_http_result *result, void *arg)
{
	struct shift_etcd *e = arg;
	struct json_object *obj, *inner;
	int64_t ttl = 0;

	e->keepalive = NULL;
	obj = etcd_answer(e, "keeping the lease", result);
	if (!obj)
		return;
	if (json_object_object_get_ex(obj, "result", &inner))
		ttl = etcd_json_int(inner, "TTL");
	json_object_put(obj);
	if (ttl > 0) {
		etcd_arm(e->lease_timer, e->ttl * 1000 / 3);
		return;
	}
	etcd_lease_over(e);
}

static int on_lease_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct json_object *body = json_object_new_object();
	long timeout_ms = ETCD_REQUEST_MS;
	struct shift_etcd *e = arg;

	(void)source;
	(void)usec;
	if (timeout_ms > e->ttl * 1000L / 3)
		timeout_ms = e->ttl * 1000L / 3;
	etcd_json_add_int(body, "ID", e->lease);
	e->keepalive = etcd_post(e, "lease/keepalive", body, timeout_ms, NULL,
				 on_keepalive);
	return 0;
}

static int on_step(sd_event_source *source, void *arg)
{
	(void)source;
	etcd_advance(arg);
	return 0;
}

static int on_retry_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	etcd_step(arg);
	return 0;
}

static int on_guard_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	etcd_fail(arg, "watch: etcd did not answer");
	return 0;
}

static void on_withdrawn(const struct shift_http_result *result, void *arg)
{
	struct shift_etcd *e = arg;

	e->op = NULL;
	if (result->error || result->status != 200)
		log_warn("etcd: the lease could not be revoked; it expires in %u s",
			 e->ttl);
	e->withdrawn(e->withdrawn_arg);
}

/**
 * shift_etcd_withdraw() - take back what was published, for good
 * @e: from shift_etcd_new()
 * @done: called when that is done or has failed
 * @arg: passed to @done
 *
 * Return: 0 if @done will be called, -ENOTCONN if there is nothing to wait for.
 */
int shift_etcd_withdraw(struct shift_etcd *e, void (*done)(void *arg),
			void *arg)
{
	struct json_object *body;

	if (!e->lease)
		return -ENOTCONN;
	shift_http_cancel(e->op);
	shift_http_cancel(e->keepalive);
	shift_http_cancel(e->watch);
	e->op = e->keepalive = e->watch = NULL;
	etcd_disarm(e->lease_timer);
	etcd_disarm(e->guard_timer);
	etcd_disarm(e->reclaim_timer);
	e->withdrawn = done;
	e->withdrawn_arg = arg;
	body = json_object_new_object();
	etcd_json_add_int(body, "ID", e->lease);
	e->op = etcd_post(e, "lease/revoke", body, WITHDRAW_MS, NULL,
			  on_withdrawn);
	return e->op ? 0 : -ENOTCONN;
}

static sd_event_source *make_step(struct shift_etcd *e)
{
	sd_event_source *step = NULL;

	if (sd_event_add_defer(e->event, &step, on_step, e) >= 0)
		sd_event_source_set_enabled(step, SD_EVENT_OFF);
	return step;
}

static sd_event_source *make_timer(struct shift_etcd *e,
				   sd_event_time_handler_t fn)
{
	sd_event_source *timer = NULL;

	if (sd_event_add_time(e->event, &timer, CLOCK_MONOTONIC, 0, 10000, fn,
			      e) >= 0)
		sd_event_source_set_enabled(timer, SD_EVENT_OFF);
	return timer;
}

static char *copy(const char *s, bool *failed)
{
	char *dup = s ? strdup(s) : NULL;

	if (s && !dup)
		*failed = true;
	return dup;
}

struct shift_etcd *shift_etcd_new(sd_event *event, struct shift_http *http,
				  const struct shift_config *config,
				  const struct shift_etcd_ops *ops, void *arg)
{
	struct shift_etcd *e = calloc(1, sizeof(*e));
	bool failed = false;
	unsigned int i;

	if (!e)
		return NULL;
	e->event = sd_event_ref(event);
	e->http = http;
	e->ops = ops;
	e->arg = arg;
	e->n_urls = config->n_endpoints;
	for (i = 0; i < e->n_urls; i++)
		e->urls[i] = copy(config->endpoints[i], &failed);
	e->user = copy(config->user, &failed);
	e->password = copy(config->password, &failed);
	e->tls.ca_file = copy(config->ca_file, &failed);
	e->tls.cert_file = copy(config->cert_file, &failed);
	e->tls.key_file = copy(config->key_file, &failed);
	e->ttl = config->lease_ttl;
	e->page_size = ETCD_PAGE_MAX;
	/* '0' is what follows '/': the end of all that begins with it. */
	if (asprintf(&e->prefix, "%s/nics/", config->prefix) < 0)
		e->prefix = NULL;
	if (asprintf(&e->prefix_end, "%s/nics0", config->prefix) < 0)
		e->prefix_end = NULL;
	e->step = make_step(e);
	e->retry_timer = make_timer(e, on_retry_timer);
	e->lease_timer = make_timer(e, on_lease_timer);
	e->guard_timer = make_timer(e, on_guard_timer);
	e->reclaim_timer = make_timer(e, etcd_on_reclaim);
	if (failed || !e->prefix || !e->prefix_end || !e->step ||
	    !e->retry_timer || !e->lease_timer || !e->guard_timer || !e->reclaim_timer) {
		shift_etcd_free(e);
		return NULL;
	}
	snprintf(e->status, sizeof(e->status), "etcd not reached yet");
	etcd_arm(e->retry_timer, 0);
	return e;
}

void shift_etcd_free(struct shift_etcd *e)
{
	unsigned int i;
	size_t j;

	if (!e)
		return;
	etcd_drop(e);
	sd_event_source_disable_unref(e->step);
	sd_event_source_disable_unref(e->retry_timer);
	sd_event_source_disable_unref(e->lease_timer);
	sd_event_source_disable_unref(e->guard_timer);
	sd_event_source_disable_unref(e->reclaim_timer);
	for (i = 0; i < e->n_urls; i++)
		free(e->urls[i]);
	for (j = 0; j < e->n_items; j++) {
		free(e->items[j].key);
		free(e->items[j].value);
	}
	free(e->items);
	free(e->prefix);
	free(e->prefix_end);
	free(e->user);
	if (e->password)
		explicit_bzero(e->password, strlen(e->password));
	free(e->password);
	free((char *)e->tls.ca_file);
	free((char *)e->tls.cert_file);
	free((char *)e->tls.key_file);
	sd_event_unref(e->event);
	free(e);
}
