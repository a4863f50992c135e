// SPDX-License-Identifier: GPL-2.0-only
/*
 * May this node write what other nodes have in etcd?  One whose role is of its own may
 * not: then a node that is taken over can give false backups for itself alone.
 *
 * etcd is asked by a transaction that would write such a key if a version were below
 * zero.  It is never executed, but etcd refuses it whole if the user may not write.
 */
#include <stdio.h>
#include <stdlib.h>

#include "shiftd/etcd/session.h"
#include "shiftd/log.h"

/* No node has this name, and no device this GID, so that the key is nobody's. */
#define NOBODY	"/::"

static void on_answer(const struct shift_http_result *result, void *arg)
{
	enum shift_etcd_rights before;
	struct shift_etcd *e = arg;

	e->op = NULL;
	before = e->rights;
	e->rights = SHIFT_RIGHTS_UNKNOWN;
	if (!result->error && result->status == 200)
		e->rights = SHIFT_RIGHTS_ALL;
	else if (!result->error && result->status == ETCD_DENIED)
		e->rights = SHIFT_RIGHTS_OWN;
	if (e->rights == SHIFT_RIGHTS_ALL && before != SHIFT_RIGHTS_ALL)
		log_info("etcd: this node may write keys of other nodes; see \"Securing the directory\" in operations.md");
	e->ops->changed(e->arg);
	etcd_step(e);
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
