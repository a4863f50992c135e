// SPDX-License-Identifier: GPL-2.0-only
/* What this node has in etcd, and keeping it there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shiftd/etcd/session.h"
#include "shiftd/log.h"

/* Someone else wrote our key, or we may not write it: how soon it is tried again. */
#define RECLAIM_MS	10000

static struct etcd_item *find_item(struct shift_etcd *e, const char *key)
{
	size_t i;

	for (i = 0; i < e->n_items; i++)
		if (!strcmp(e->items[i].key, key))
			return &e->items[i];
	return NULL;
}

static void forget_item(struct shift_etcd *e, struct etcd_item *item)
{
	free(item->key);
	free(item->value);
	e->n_items--;
	memmove(item, item + 1,
		(char *)(e->items + e->n_items) - (char *)item);
}

/*
 * The role of this user is too narrow for a key, maybe since an address has changed.
 * Other keys and what other nodes have are of use all the same.
 */
static void refuse_item(struct shift_etcd *e, struct etcd_item *item)
{
	if (!item->told)
		log_warn("etcd: the user '%s' may not write %s%s; let its role do that",
			 e->user ? e->user : "", e->prefix, item->key);
	item->told = true;
	item->refused = true;
	etcd_arm(e->reclaim_timer, RECLAIM_MS);
	e->ops->changed(e->arg);
	etcd_step(e);
}

static void on_put(const struct shift_http_result *result, void *arg)
{
	struct shift_etcd *e = arg;
	struct etcd_item *item = e->op_item;
	struct json_object *obj;

	e->op = NULL;
	e->op_item = NULL;
	/*
	 * "Lease not found", before its keepalive could tell: a new one. But a
	 * second time with nothing published between is an etcd out of its mind.
	 */
	if (!result->error && result->status == 404 && e->lease && !e->lease_lost) {
		e->lease_lost = true;
		etcd_lease_over(e);
		return;
	}
	if (!result->error && result->status == ETCD_DENIED && item) {
		refuse_item(e, item);
		return;
	}
	obj = etcd_answer(e, "publishing", result);
	if (!obj)
		return;
	e->lease_lost = false;
	json_object_put(obj);
	/* Changed by shift_etcd_publish() in the meantime: NULL, again. */
	if (item && item->removed) {
		forget_item(e, item);
	} else if (item) {
		item->published = true;
		item->told = false;
	}
	etcd_step(e);
}

void etcd_put_start(struct shift_etcd *e, struct etcd_item *item)
{
	struct json_object *body = json_object_new_object();
	char *key;

	if (asprintf(&key, "%s%s", e->prefix, item->key) < 0) {
		json_object_put(body);
		etcd_fail(e, "out of memory");
		return;
	}
	etcd_json_add_bytes(body, "key", key);
	free(key);
	e->op_item = item;
	if (item->removed) {
		e->op = etcd_post(e, "kv/deleterange", body, ETCD_REQUEST_MS,
				  NULL, on_put);
		return;
	}
	etcd_json_add_bytes(body, "value", item->value);
	etcd_json_add_int(body, "lease", e->lease);
	e->op = etcd_post(e, "kv/put", body, ETCD_REQUEST_MS, NULL, on_put);
}

/**
 * etcd_item_seen() - a key is there, or was deleted, says etcd
 * @e: the client
 * @key: below PREFIX/nics/; maybe one of ours
 * @value: what it is, NULL if it was deleted
 * @lease: that it is under
 *
 * Ours are written again if they are no longer what we made them: at once if
 * deleted, later if overwritten, lest two who think it theirs chase each other.
 */
void etcd_item_seen(struct shift_etcd *e, const char *key, const char *value,
		    int64_t lease)
{
	struct etcd_item *item = find_item(e, key);

	if (!item || !item->published || item->removed)
		return;
	item->foreign = false;
	if (!value) {
		item->published = false;
	} else if (strcmp(item->value, value) || lease != e->lease) {
		item->foreign = true;
		etcd_arm(e->reclaim_timer, RECLAIM_MS);
	}
}

int etcd_on_reclaim(sd_event_source *source, uint64_t usec, void *arg)
{
	struct shift_etcd *e = arg;
	size_t i;

	(void)source;
	(void)usec;
	for (i = 0; i < e->n_items; i++) {
		e->items[i].refused = false;
		if (!e->items[i].foreign)
			continue;
		log_warn("etcd: someone else wrote %s%s; writing it again",
			 e->prefix, e->items[i].key);
		e->items[i].foreign = false;
		e->items[i].published = false;
	}
	etcd_step(e);
	return 0;
}

/* A key of this node that its user may not write, below PREFIX/nics/, or NULL. */
const char *shift_etcd_refused(const struct shift_etcd *e)
{
	size_t i;

	for (i = 0; i < e->n_items; i++)
		if (e->items[i].told && !e->items[i].published)
			return e->items[i].key;
	return NULL;
}

/**
 * shift_etcd_publish() - set what is to be published
 * @e: from shift_etcd_new()
 * @items: all of it; copied
 * @n: how many
 *
 * Keys published before and not in @items are deleted.
 *
 * Return: 0 or -ENOMEM.
 */
int shift_etcd_publish(struct shift_etcd *e,
		       const struct shift_etcd_item *items, size_t n)
{
	struct etcd_item *grown, *item;
	char *key, *value;
	size_t i, j;

	/* Room first: op_item points into the array and must not move. */
	shift_http_cancel(e->op_item ? e->op : NULL);
	if (e->op_item)
		e->op = NULL;
	e->op_item = NULL;
	grown = reallocarray(e->items, e->n_items + n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	e->items = grown;
	for (i = 0; i < e->n_items; i++) {
		for (j = 0; j < n; j++)
			if (!strcmp(e->items[i].key, items[j].key))
				break;
		if (j == n && !e->items[i].removed) {
			e->items[i].removed = true;
			e->items[i].published = false;
		}
	}
	for (j = 0; j < n; j++) {
		item = find_item(e, items[j].key);
		if (item && !item->removed &&
		    !strcmp(item->value, items[j].value))
			continue;
		key = strdup(items[j].key);
		value = strdup(items[j].value);
		if (!key || !value) {
			free(key);
			free(value);
			return -ENOMEM;
		}
		if (item) {
			free(item->key);
			free(item->value);
		} else {
			item = &e->items[e->n_items++];
		}
		*item = (struct etcd_item){ .key = key, .value = value };
	}
	etcd_step(e);
	return 0;
}
