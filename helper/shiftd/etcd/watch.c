// SPDX-License-Identifier: GPL-2.0-only
/*
 * What all nodes have in etcd: listed once, page by page, then watched from
 * the revision of the list.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shiftd/etcd/session.h"

static struct json_object *range_body(struct shift_etcd *e)
{
	struct json_object *body = json_object_new_object();

	etcd_json_add_bytes(body, "key",
			    e->page_key ? e->page_key : e->prefix);
	etcd_json_add_bytes(body, "range_end", e->prefix_end);
	etcd_json_add_int(body, "limit", e->page_size);
	/* Further pages are of the same moment as the first. */
	if (e->revision)
		etcd_json_add_int(body, "revision", e->revision);
	return body;
}

/*
 * Hands one key and value on, without their prefix.  Return: the whole key, to
 * be freed, or NULL if it is none of ours.
 */
static char *hand_on(struct shift_etcd *e, struct json_object *kv, bool deleted)
{
	size_t key_len, value_len, skip = strlen(e->prefix);
	char *key, *value = NULL;

	key = etcd_json_bytes(kv, "key", &key_len);
	if (!key || key_len < skip || memcmp(key, e->prefix, skip)) {
		free(key);
		return NULL;
	}
	if (deleted) {
		e->ops->del(key + skip, key_len - skip, e->arg);
	} else {
		value = etcd_json_bytes(kv, "value", &value_len);
		if (!value) {
			value = calloc(1, 1);
			value_len = 0;
		}
		e->ops->put(key + skip, key_len - skip, value ? value : "",
			    value_len, etcd_json_int(kv, "create_revision"),
			    etcd_json_int(kv, "mod_revision"), e->arg);
	}
	etcd_item_seen(e, key + skip, deleted ? NULL : value ? value : "",
		       etcd_json_int(kv, "lease"));
	free(value);
	return key;
}

static void on_range(const struct shift_http_result *result, void *arg)
{
	struct shift_etcd *e = arg;
	struct json_object *obj, *kvs, *header, *more;
	char *last = NULL, *key;
	size_t i, n = 0;

	e->op = NULL;
	/* Someone wrote huge values: take them one by one. */
	if (result->too_large && e->page_size > 1) {
		e->page_size = 1;
		etcd_step(e);
		return;
	}
	obj = etcd_answer(e, "listing", result);
	if (!obj)
		return;
	if (!e->revision) {
		if (json_object_object_get_ex(obj, "header", &header))
			e->revision = etcd_json_int(header, "revision");
		if (e->revision <= 0) {
			json_object_put(obj);
			etcd_fail(e, "listing: the answer has no revision");
			return;
		}
		e->ops->list_begin(e->arg);
	}
	if (json_object_object_get_ex(obj, "kvs", &kvs) &&
	    json_object_is_type(kvs, json_type_array))
		n = json_object_array_length(kvs);
	for (i = 0; i < n; i++) {
		key = hand_on(e, json_object_array_get_idx(kvs, i), false);
		if (key) {
			free(last);
			last = key;
		}
	}
	if (last && json_object_object_get_ex(obj, "more", &more) &&
	    json_object_get_boolean(more)) {
		/*
		 * The next key is this one and a NUL; "\x01" skips only what
		 * no GID can be, and keeps the key a C string.
		 */
		free(e->page_key);
		if (asprintf(&e->page_key, "%s\x01", last) < 0)
			e->page_key = NULL;
		if (!e->page_key) {
			json_object_put(obj);
			free(last);
			etcd_fail(e, "out of memory");
			return;
		}
	} else {
		e->listed = true;
		e->ops->list_end(e->arg);
	}
	free(last);
	json_object_put(obj);
	etcd_step(e);
}

void etcd_list_start(struct shift_etcd *e)
{
	e->op = etcd_post(e, "kv/range", range_body(e), ETCD_REQUEST_MS, NULL,
			  on_range);
}

static void on_watch_line(const char *line, size_t len, void *arg)
{
	struct shift_etcd *e = arg;
	struct json_object *obj, *result, *events, *event, *kv;
	const char *type;
	char why[160];
	size_t i, n = 0;

	obj = etcd_json_parse(line, len);
	if (!obj || etcd_json_error(obj) ||
	    !json_object_object_get_ex(obj, "result", &result) ||
	    !json_object_is_type(result, json_type_object)) {
		snprintf(why, sizeof(why), "watch: %s",
			 obj && etcd_json_error(obj) ? etcd_json_error(obj) :
			 "this is not an answer from etcd");
		json_object_put(obj);
		etcd_fail(e, why);
		return;
	}
	/* Compaction past our revision, for one: list anew. */
	if (etcd_json_bool(result, "canceled")) {
		json_object_put(obj);
		etcd_fail(e, "watch: cancelled by etcd");
		return;
	}
	if (json_object_object_get_ex(result, "events", &events) &&
	    json_object_is_type(events, json_type_array))
		n = json_object_array_length(events);
	for (i = 0; i < n; i++) {
		event = json_object_array_get_idx(events, i);
		if (!json_object_is_type(event, json_type_object) ||
		    !json_object_object_get_ex(event, "kv", &kv))
			continue;
		type = etcd_json_string(event, "type");
		free(hand_on(e, kv, type && !strcmp(type, "DELETE")));
	}
	if (!e->up && etcd_json_bool(result, "created"))
		etcd_up(e);
	json_object_put(obj);
	etcd_step(e);
}

static void on_watch_done(const struct shift_http_result *result, void *arg)
{
	struct shift_etcd *e = arg;
	char why[160];

	e->watch = NULL;
	if (result->error)
		snprintf(why, sizeof(why), "watch: %s", result->error);
	else
		snprintf(why, sizeof(why), "watch: etcd ended it with HTTP status %ld",
			 result->status);
	etcd_fail(e, why);
}

void etcd_watch_start(struct shift_etcd *e)
{
	struct json_object *body = json_object_new_object();
	struct json_object *create = json_object_new_object();

	etcd_json_add_bytes(create, "key", e->prefix);
	etcd_json_add_bytes(create, "range_end", e->prefix_end);
	etcd_json_add_int(create, "start_revision", e->revision + 1);
	json_object_object_add(create, "fragment", json_object_new_boolean(1));
	json_object_object_add(body, "create_request", create);
	etcd_arm(e->guard_timer, ETCD_REQUEST_MS);
	e->watch = etcd_post(e, "watch", body, 0, on_watch_line, on_watch_done);
}
