// SPDX-License-Identifier: GPL-2.0-only
/*
 * One session is: log in, get a lease, publish under it, list, watch from
 * there.  etcd_advance() always starts the first of these that is not done
 * yet, so there is one order whatever was the cause; anything that fails ends
 * the session, and the next begins at the next endpoint.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "etcd_session.h"
#include "log.h"

#define WITHDRAW_MS	2000
#define BACKOFF_MIN_MS	500
/* Well below the hold of others, which begins when etcd is back. */
#define BACKOFF_MAX_MS	15000
/* A session this old was a good one: only it ends the back-off. */
#define GOOD_SESSION_MS	30000

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

void etcd_arm(sd_event_source *timer, uint64_t ms)
{
	sd_event_source_set_time_relative(timer, ms * 1000);
	sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static void disarm(sd_event_source *timer)
{
	sd_event_source_set_enabled(timer, SD_EVENT_OFF);
}

static void __attribute__((format(printf, 2, 3)))
set_status(struct shift_etcd *e, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(e->status, sizeof(e->status), fmt, args);
	va_end(args);
	e->ops->changed(e->arg);
}

const char *shift_etcd_status(const struct shift_etcd *e)
{
	return e->status;
}

/* Half to all of a delay that doubles with each round over all endpoints. */
static uint64_t backoff_ms(unsigned int round)
{
	uint64_t ms = BACKOFF_MIN_MS;
	uint32_t random = 0;

	while (--round && ms < BACKOFF_MAX_MS)
		ms *= 2;
	if (ms > BACKOFF_MAX_MS)
		ms = BACKOFF_MAX_MS;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = now_ms();
	return ms / 2 + random % (ms / 2 + 1);
}

static void drop_session(struct shift_etcd *e)
{
	size_t i;

	shift_http_cancel(e->op);
	shift_http_cancel(e->keepalive);
	shift_http_cancel(e->watch);
	e->op = NULL;
	e->op_item = NULL;
	e->keepalive = NULL;
	e->watch = NULL;
	disarm(e->retry_timer);
	disarm(e->lease_timer);
	disarm(e->guard_timer);
	disarm(e->reclaim_timer);
	if (e->token)
		explicit_bzero(e->token, strlen(e->token));
	free(e->token);
	e->token = NULL;
	free(e->page_key);
	e->page_key = NULL;
	e->page_size = ETCD_PAGE_MAX;
	e->lease = 0;
	e->revision = 0;
	e->listed = false;
	e->up = false;
	for (i = 0; i < e->n_items; i++)
		e->items[i].published = false;
}

void etcd_fail(struct shift_etcd *e, const char *why)
{
	const char *url = e->urls[e->url];
	bool was_up = e->up;
	char reason[160];

	/* It may point into what goes away with the session. */
	snprintf(reason, sizeof(reason), "%s", why);
	log_debug("etcd: %s: %s", url, reason);
	if (was_up && now_ms() - e->up_since >= GOOD_SESSION_MS)
		e->failures = 0;
	e->failures++;
	drop_session(e);
	if (was_up)
		log_warn("etcd: lost %s: %s; what is known is kept, reconnecting",
			 url, reason);
	else if (!e->told_down && e->failures >= e->n_urls)
		log_warn("etcd: no endpoint can be used, the last, %s: %s; retrying",
			 url, reason);
	if (was_up || e->failures >= e->n_urls)
		e->told_down = true;
	set_status(e, "etcd away (%s: %s)", url, reason);
	e->url = (e->url + 1) % e->n_urls;
	/* The others are tried at once, then all of them ever more rarely. */
	etcd_arm(e->retry_timer, e->failures % e->n_urls && !was_up ? 0 :
	    backoff_ms((e->failures + e->n_urls - 1) / e->n_urls));
}

/*
 * The answer to a unary request, or NULL and the session has ended.
 */
struct json_object *etcd_answer(struct shift_etcd *e, const char *what,
				const struct shift_http_result *result)
{
	struct json_object *obj;
	char why[160], text[128];

	if (result->error) {
		snprintf(why, sizeof(why), "%s: %s", what, result->error);
		etcd_fail(e, why);
		return NULL;
	}
	obj = etcd_json_parse(result->body, result->len);
	if (result->status != 200 || !obj || etcd_json_error(obj)) {
		snprintf(text, sizeof(text), "%s", obj && etcd_json_error(obj) ?
			 etcd_json_error(obj) : "not an answer of etcd");
		json_object_put(obj);
		snprintf(why, sizeof(why), "%s: HTTP %ld: %s", what,
			 result->status, text);
		etcd_fail(e, why);
		return NULL;
	}
	return obj;
}

struct shift_http_req *etcd_post(struct shift_etcd *e, const char *path,
				 struct json_object *body, long timeout_ms,
				 shift_http_line_fn line,
				 shift_http_done_fn done)
{
	struct shift_http_req *req;
	char url[512];

	snprintf(url, sizeof(url), "%s/v3/%s", e->urls[e->url], path);
	req = shift_http_post(e->http, url,
			      json_object_to_json_string_ext(body,
				JSON_C_TO_STRING_PLAIN |
				JSON_C_TO_STRING_NOSLASHESCAPE),
			      e->token, &e->tls, timeout_ms, line, done, e);
	json_object_put(body);
	if (!req)
		etcd_fail(e, "out of memory");
	return req;
}

void etcd_up(struct shift_etcd *e)
{
	disarm(e->guard_timer);
	e->up = true;
	e->up_since = now_ms();
	e->told_down = false;
	log_info("etcd: connected to %s", e->urls[e->url]);
	set_status(e, "etcd %s", e->urls[e->url]);
}

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
		etcd_advance(e);
	else
		etcd_fail(e, "logging in: no token came back");
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
		etcd_fail(e, "lease: none was granted");
		return;
	}
	etcd_arm(e->lease_timer, e->ttl * 1000 / 3);
	etcd_advance(e);
}

/* Starts the first step that is not done yet. */
void etcd_advance(struct shift_etcd *e)
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
		if (e->items[i].published)
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
}

/* It ran out, and our keys with it; the watch is still good. */
void etcd_lease_over(struct shift_etcd *e)
{
	size_t i;

	log_warn("etcd: the lease had run out; publishing again");
	/* an answer about the old one must not end the new one */
	shift_http_cancel(e->keepalive);
	e->keepalive = NULL;
	disarm(e->lease_timer);
	e->lease = 0;
	for (i = 0; i < e->n_items; i++)
		e->items[i].published = false;
	e->op_item = NULL;
	etcd_advance(e);
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

static int on_retry_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	etcd_advance(arg);
	return 0;
}

static int on_guard_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	etcd_fail(arg, "watch: no answer");
	return 0;
}

static void on_withdrawn(const struct shift_http_result *result, void *arg)
{
	struct shift_etcd *e = arg;

	e->op = NULL;
	if (result->error || result->status != 200)
		log_warn("etcd: the lease could not be revoked; it runs out in %u s",
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
	disarm(e->lease_timer);
	disarm(e->guard_timer);
	disarm(e->reclaim_timer);
	e->withdrawn = done;
	e->withdrawn_arg = arg;
	body = json_object_new_object();
	etcd_json_add_int(body, "ID", e->lease);
	e->op = etcd_post(e, "lease/revoke", body, WITHDRAW_MS, NULL,
			  on_withdrawn);
	return e->op ? 0 : -ENOTCONN;
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
	e->retry_timer = make_timer(e, on_retry_timer);
	e->lease_timer = make_timer(e, on_lease_timer);
	e->guard_timer = make_timer(e, on_guard_timer);
	e->reclaim_timer = make_timer(e, etcd_on_reclaim);
	if (failed || !e->prefix || !e->prefix_end || !e->retry_timer ||
	    !e->lease_timer || !e->guard_timer || !e->reclaim_timer) {
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
	drop_session(e);
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
