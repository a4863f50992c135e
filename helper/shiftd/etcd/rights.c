// SPDX-License-Identifier: GPL-2.0-only
/*
 * May this node write what other nodes have in etcd?  One whose role is of its own may
 * not: then a node that is taken over can give false backups for itself alone.
 *
 * etcd is asked by a transaction that would write a key of nobody's if a version were
 * below zero.  It is never executed, but etcd refuses it whole if the user may not write.
 * That tells of an etcd without users, and of the user root.  Else the roles of the user
 * say what he may write: etcd lets each user read his own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shiftd/etcd/session.h"
#include "shiftd/log.h"

/* No node has this name, and no device this GID, so that the key is nobody's. */
#define NOBODY	"/::"

static void rights_found(struct shift_etcd *e, enum shift_etcd_rights found)
{
	enum shift_etcd_rights before = e->rights_before;

	json_object_put(e->roles);
	e->roles = NULL;
	e->rights = found;
	if (found == SHIFT_RIGHTS_ALL && before != SHIFT_RIGHTS_ALL)
		log_info("etcd: this node may write keys of other nodes; see \"Securing the directory\" in operations.md");
	e->ops->changed(e->arg);
	etcd_step(e);
}

/* Bytes as etcd sorts them.  No @at: behind all others. */
struct bytes {
	const char *at;
	size_t len;
};

static int order_of(struct bytes a, struct bytes b)
{
	int order;

	if (!a.at || !b.at)
		return !a.at - !b.at;
	order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
	return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Have two ranges a key in common?  Their ends are exclusive. */
static bool overlap(struct bytes first, struct bytes end, struct bytes from, struct bytes to)
{
	struct bytes low = order_of(first, from) > 0 ? first : from;
	struct bytes high = order_of(end, to) < 0 ? end : to;

	return order_of(low, high) < 0;
}

static struct bytes text(const char *at)
{
	return (struct bytes){ at, strlen(at) };
}

/* Is there a key of another node's in this range?  @own: PREFIX/nics/NODE/ of this one. */
static bool has_others(const struct shift_etcd *e, struct bytes first, struct bytes end, char *own)
{
	size_t last = strlen(own) - 1;
	bool has = overlap(first, end, text(e->prefix), text(own));

	own[last]++;
	has = has || overlap(first, end, text(own), text(e->prefix_end));
	own[last]--;
	return has;
}

/* May this user write a key of another node's, by one line of a role? */
static bool allows_others(const struct shift_etcd *e, struct json_object *perm, char *own)
{
	const char *type = etcd_json_string(perm, "permType");
	struct bytes first = {}, end = {};
	char *key, *range_end;
	bool others;

	if (!type || !strcmp(type, "READ"))
		return false;
	key = etcd_json_bytes(perm, "key", &first.len);
	range_end = etcd_json_bytes(perm, "range_end", &end.len);
	first.at = key ? key : "";
	if (!range_end || !end.len)	/* one key: the next one has a NUL more */
		end = (struct bytes){ first.at, first.len + 1 };
	else if (end.len > 1 || *range_end)
		end.at = range_end;
	others = has_others(e, first, end, own);
	free(key);
	free(range_end);
	return others;
}

/* What this node publishes tells how its keys begin. */
static char *own_prefix(const struct shift_etcd *e)
{
	const char *slash = e->n_items ? strrchr(e->items[0].key, '/') : NULL;
	char *own;

	if (!slash || asprintf(&own, "%s%.*s", e->prefix, (int)(slash + 1 - e->items[0].key),
			       e->items[0].key) < 0)
		return NULL;
	return own;
}

static bool role_allows_others(const struct shift_etcd *e, struct json_object *role)
{
	struct json_object *perms;
	char *own = own_prefix(e);
	bool others = false;
	size_t i;

	if (own && json_object_object_get_ex(role, "perm", &perms) &&
	    json_object_is_type(perms, json_type_array))
		for (i = 0; !others && i < json_object_array_length(perms); i++)
			others = allows_others(e, json_object_array_get_idx(perms, i), own);
	free(own);
	return others;
}

static struct json_object *answer_of(const struct shift_http_result *result)
{
	return result->error || result->status != 200 ? NULL :
	       etcd_json_parse(result->body, result->len);
}

static void next_role(struct shift_etcd *e);

static void on_role(const struct shift_http_result *result, void *arg)
{
	struct json_object *role = answer_of(result);
	struct shift_etcd *e = arg;
	bool others = role_allows_others(e, role);

	e->op = NULL;
	if (!role)
		rights_found(e, SHIFT_RIGHTS_UNKNOWN);
	else if (others)
		rights_found(e, SHIFT_RIGHTS_ALL);
	else
		next_role(e);
	json_object_put(role);
}

static void next_role(struct shift_etcd *e)
{
	size_t left = json_object_array_length(e->roles);
	struct json_object *body;

	if (!left) {
		rights_found(e, SHIFT_RIGHTS_OWN);
		return;
	}
	body = json_object_new_object();
	json_object_object_add(body, "role",
			       json_object_get(json_object_array_get_idx(e->roles, left - 1)));
	json_object_array_del_idx(e->roles, left - 1, 1);
	e->op = etcd_post(e, "auth/role/get", body, ETCD_REQUEST_MS, NULL, on_role);
}

static void on_user(const struct shift_http_result *result, void *arg)
{
	struct json_object *user = answer_of(result), *roles;
	struct shift_etcd *e = arg;

	e->op = NULL;
	if (!user) {
		rights_found(e, SHIFT_RIGHTS_UNKNOWN);
		return;
	}
	if (json_object_object_get_ex(user, "roles", &roles) &&
	    json_object_is_type(roles, json_type_array))
		e->roles = json_object_get(roles);
	else
		e->roles = json_object_new_array();
	json_object_put(user);
	next_role(e);
}

static void on_answer(const struct shift_http_result *result, void *arg)
{
	struct shift_etcd *e = arg;
	struct json_object *body;

	e->op = NULL;
	e->rights_before = e->rights;
	if (!result->error && result->status == 200) {
		rights_found(e, SHIFT_RIGHTS_ALL);
	} else if (result->error || result->status != ETCD_DENIED || !e->user) {
		rights_found(e, SHIFT_RIGHTS_UNKNOWN);
	} else {
		body = json_object_new_object();
		json_object_object_add(body, "name", json_object_new_string(e->user));
		e->op = etcd_post(e, "auth/user/get", body, ETCD_REQUEST_MS, NULL, on_user);
	}
}

static struct json_object *array_of(struct json_object *one)
{
	struct json_object *array = json_object_new_array();

	json_object_array_add(array, one);
	return array;
}

/* Once in each session, when there is nothing else to do. */
void etcd_rights_start(struct shift_etcd *e)
{
	struct json_object *compare = json_object_new_object();
	struct json_object *body = json_object_new_object();
	struct json_object *put = json_object_new_object();
	struct json_object *op = json_object_new_object();
	char *key;

	e->asked = true;
	if (asprintf(&key, "%s" NOBODY, e->prefix) < 0)
		key = NULL;
	etcd_json_add_bytes(compare, "key", key ? key : "");
	json_object_object_add(compare, "target", json_object_new_string("VERSION"));
	json_object_object_add(compare, "result", json_object_new_string("LESS"));
	etcd_json_add_int(compare, "version", 0);
	etcd_json_add_bytes(put, "key", key ? key : "");
	json_object_object_add(op, "requestPut", put);
	json_object_object_add(body, "compare", array_of(compare));
	json_object_object_add(body, "success", array_of(op));
	free(key);
	e->op = etcd_post(e, "kv/txn", body, ETCD_REQUEST_MS, NULL, on_answer);
}

enum shift_etcd_rights shift_etcd_rights(const struct shift_etcd *e)
{
	return e->rights;
}
