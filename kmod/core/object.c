// SPDX-License-Identifier: GPL-2.0
/* Shadows: the table by the RDMA core's object, and the lists of each device. */
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include "compat/compat.h"
#include "core/object.h"

DEFINE_HASHTABLE(shift_objects, SHIFT_OBJECT_BITS);
static DEFINE_SPINLOCK(objects_lock);	/* held to change it */

/**
 * shift_object_insert - make a shadow findable
 * @obj: head of the shadow.
 * @key: the core object.
 * @type: what @key is.
 *
 * Context: process context.
 * Return: 0, -EEXIST.
 */
int shift_object_insert(struct shift_obj *obj, const void *key, enum shift_obj_type type)
{
	int err = -EEXIST;

	obj->key = key;
	obj->type = type;
	rcu_read_lock();
	spin_lock(&objects_lock);
	if (!shift_object_any_rcu(key)) {
		hash_add_rcu(shift_objects, &obj->node, (unsigned long)key);
		err = 0;
	}
	spin_unlock(&objects_lock);
	rcu_read_unlock();
	return err;
}

/**
 * shift_object_remove - no new lookup finds it from here on
 * @obj: head of the shadow.
 *
 * Context: process context.
 * Return: true for the one caller that removed it, and that then owns the teardown.
 */
bool shift_object_remove(struct shift_obj *obj)
{
	bool found;

	spin_lock(&objects_lock);
	found = hash_hashed(&obj->node);
	hash_del_rcu(&obj->node);
	spin_unlock(&objects_lock);
	return found;
}

/**
 * shift_object_find - the shadow of a core object
 * @key: the core object.
 * @type: what it is.
 *
 * Context: any; the caller is in a read section of RCU (wrappers that do not sleep) or of the
 * device's SRCU (wrappers that may sleep), or keeps the core object from being destroyed.
 * Return: its head or NULL.
 */
struct shift_obj *shift_object_find(const void *key, enum shift_obj_type type)
{
	struct shift_obj *obj;

	rcu_read_lock();
	obj = shift_object_find_rcu(key, type);
	rcu_read_unlock();
	return obj;
}

/**
 * shift_track - the shadow of a new object is found, and listed, from here on
 * @sdev: its device.
 * @obj: head of the shadow.
 * @key: the core object.
 * @type: what @key is.
 * @list: of @sdev: shadows of that type.
 *
 * Context: process context.
 * Return: 0, -EEXIST, -ENOMEM.
 */
int shift_track(struct shift_dev *sdev, struct shift_obj *obj, const void *key,
		enum shift_obj_type type, struct list_head *list)
{
	int err;

	/* Whoever finds the shadow and calls shift_untrack() waits until it is in the list. */
	mutex_lock(&sdev->list_lock);
	err = shift_object_insert(obj, key, type);
	if (!err)
		list_add_tail(&obj->list, list);
	mutex_unlock(&sdev->list_lock);
	return err;
}

/**
 * shift_untrack - no new lookup finds the shadow from here on, and no list has it
 * @sdev: its device.
 * @obj: head of the shadow.
 *
 * Context: process context.
 * Return: true for the one caller that is to take it apart.
 */
bool shift_untrack(struct shift_dev *sdev, struct shift_obj *obj)
{
	if (!shift_object_remove(obj))
		return false;
	mutex_lock(&sdev->list_lock);
	list_del_init(&obj->list);
	mutex_unlock(&sdev->list_lock);
	return true;
}

/**
 * shift_untrack_all - take apart all shadows of one type
 * @sdev: their device, which does not track new objects.
 * @list: of @sdev: shadows of that type.
 * @drop: calls shift_untrack().
 *
 * Context: process context.
 */
void shift_untrack_all(struct shift_dev *sdev, struct list_head *list,
		       void (*drop)(struct shift_obj *obj))
{
	struct shift_obj *obj;

	while (true) {
		mutex_lock(&sdev->list_lock);
		obj = list_first_entry_or_null(list, struct shift_obj, list);
		mutex_unlock(&sdev->list_lock);
		if (!obj)
			return;
		drop(obj);
	}
}
