// SPDX-License-Identifier: GPL-2.0-only
/*
 * One session with one endpoint: requests and their answers, and how it ends.
 * Anything that fails ends the session, and the next begins at the next
 * endpoint.  Whoever has finished a step calls etcd_step(); which step is next
 * is decided in etcd.c, later and from the event loop, so that nothing here,
 * in publish.c or in watch.c calls back into what has called it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "shiftd/etcd/session.h"
#include "shiftd/log.h"

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

void etcd_disarm(sd_event_source *timer)
{
	sd_event_source_set_enabled(timer, SD_EVENT_OFF);
}

/* Has the first step that is not done yet started, from the event loop. */
void etcd_step(struct shift_etcd *e)
{
	sd_event_source_set_enabled(e->step, SD_EVENT_ONESHOT);
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

bool shift_etcd_is_up(const struct shift_etcd *e)
{
	return e->up;
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

/* Ends the session without a word and without a next one. */
void etcd_drop(struct shift_etcd *e)
{
	size_t i;

	shift_http_cancel(e->op);
	shift_http_cancel(e->keepalive);
	shift_http_cancel(e->watch);
	e->op = NULL;
	e->op_item = NULL;
	e->keepalive = NULL;
	e->watch = NULL;
	etcd_disarm(e->step);
	etcd_disarm(e->retry_timer);
	etcd_disarm(e->lease_timer);
	etcd_disarm(e->guard_timer);
	etcd_disarm(e->reclaim_timer);
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
	e->asked = false;
	json_object_put(e->roles);
	e->roles = NULL;
	for (i = 0; i < e->n_items; i++)
		e->items[i].published = e->items[i].refused = false;
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
	etcd_drop(e);
	if (was_up)
		log_warn("etcd: lost %s: %s; reconnecting, what is known is kept",
			 url, reason);
	else if (!e->told_down && e->failures >= e->n_urls)
		log_warn("etcd: no endpoint can be used; the last one tried was %s: %s; retrying",
			 url, reason);
	if (was_up || e->failures >= e->n_urls)
		e->told_down = true;
	set_status(e, "etcd not reachable (%s: %s)", url, reason);
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
			 etcd_json_error(obj) : "this is not an answer from etcd");
		json_object_put(obj);
		snprintf(why, sizeof(why), "%s: HTTP status %ld: %s", what,
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
	etcd_disarm(e->guard_timer);
	e->up = true;
	e->up_since = now_ms();
	e->told_down = false;
	log_info("etcd: connected to %s", e->urls[e->url]);
	set_status(e, "etcd %s", e->urls[e->url]);
}

/* It ran out, and our keys with it; the watch is still good. */
void etcd_lease_over(struct shift_etcd *e)
{
	size_t i;

	log_warn("etcd: the lease has expired; publishing again");
	/* an answer about the old one must not end the new one */
	shift_http_cancel(e->keepalive);
	e->keepalive = NULL;
	etcd_disarm(e->lease_timer);
	e->lease = 0;
	for (i = 0; i < e->n_items; i++)
		e->items[i].published = false;
	e->op_item = NULL;
	etcd_step(e);
}
