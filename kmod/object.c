// SPDX-License-Identifier: GPL-2.0
/* Shadows by the pointer of the core object that they belong to. */

#include <linux/hash.h>
#include <linux/rhashtable.h>
#include "shift.h"

static struct rhashtable shift_objects;

/*
 * Every doorbell looks up: a pointer of the allocator's needs no more than this, and
 * jhash of a fixed key would be half of what the module costs there.
 */
static u32 key_hash(const void *data, u32 len, u32 seed)
{
	return hash_ptr(*(const void *const *)data, 32) ^ seed;
}

static int key_differs(struct rhashtable_compare_arg *arg, const void *obj)
{
	return ((const struct shift_obj *)obj)->key != *(const void *const *)arg->key;
}

static const struct rhashtable_params object_params = {
	.head_offset = offsetof(struct shift_obj, node),
	.key_offset = offsetof(struct shift_obj, key),
	.key_len = sizeof(void *),
	.hashfn = key_hash,
	.obj_cmpfn = key_differs,
	.automatic_shrinking = true,
};

int shift_object_init(void)
{
	return rhashtable_init(&shift_objects, &object_params);
}

void shift_object_uninit(void)
{
	rhashtable_destroy(&shift_objects);
}

/**
 * shift_object_insert - make a shadow findable
 * @obj: head of the shadow.
 * @key: the core object.
 * @type: what @key is.
 *
 * Context: process context.
 * Return: 0, -EEXIST, -ENOMEM.
 */
int shift_object_insert(struct shift_obj *obj, const void *key, enum shift_obj_type type)
{
	obj->key = key;
	obj->type = type;
	return rhashtable_lookup_insert_fast(&shift_objects, &obj->node, object_params);
}

/**
 * shift_object_remove - no new lookup finds it from here on
 * @obj: head of the shadow.
 *
 * Return: true for the one caller that removed it: who owns the teardown.
 */
bool shift_object_remove(struct shift_obj *obj)
{
	return !rhashtable_remove_fast(&shift_objects, &obj->node, object_params);
}

/**
 * shift_object_find - the shadow of a core object
 * @key: the core object.
 * @type: what it is.
 *
 * Context: any; the caller is in an RCU (fast wrappers) or shift_srcu (slow
 * ones) read section, or holds the core object.
 * Return: its head or NULL.
 */
struct shift_obj *shift_object_find(const void *key, enum shift_obj_type type)
{
	struct shift_obj *obj;

	rcu_read_lock();
	obj = rhashtable_lookup(&shift_objects, &key, object_params);
	rcu_read_unlock();
	return obj && obj->type == type ? obj : NULL;
}
