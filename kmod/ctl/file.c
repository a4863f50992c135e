// SPDX-License-Identifier: GPL-2.0
/* Objects registered through an open /dev/shift.  Ids are local to the open file. */
#include <linux/xarray.h>
#include "core/object.h"
#include "core/qp.h"
#include "core/srq.h"
#include "ctl/file.h"
#include "srq/srq.h"
#include "verbs/verbs.h"

#define SHIFT_FILE_IDS	65535

void shift_obj_get(struct shift_obj *obj)
{
	if (obj->type == SHIFT_OBJ_CQ)
		shift_cq_get(to_cq(obj));
	else if (obj->type == SHIFT_OBJ_SRQ)
		shift_srq_get(to_srq(obj));
	else
		shift_qp_get(to_qp(obj));
}

void shift_obj_put(struct shift_obj *obj)
{
	if (obj->type == SHIFT_OBJ_CQ)
		shift_cq_put(to_cq(obj));
	else if (obj->type == SHIFT_OBJ_SRQ)
		shift_srq_put(to_srq(obj));
	else
		shift_qp_put(to_qp(obj));
}

void shift_obj_drop(struct shift_obj *obj)
{
	if (obj->type == SHIFT_OBJ_CQ)
		shift_cq_unregister(to_cq(obj));
	else if (obj->type == SHIFT_OBJ_SRQ)
		shift_srq_unregister(to_srq(obj));
	else
		shift_qp_unregister(to_qp(obj));
	shift_obj_put(obj);
}

/**
 * shift_file_add - give what was registered an id
 * @file: the file.
 * @obj: the object; the caller's reference goes over.  Without an id it is unregistered.
 * @id: filled in.
 *
 * Another thread may unregister it as soon as it has an id.
 *
 * Context: process context.
 * Return: 0, -EBUSY (all ids are in use), -ENOMEM.
 */
int shift_file_add(struct shift_file *file, struct shift_obj *obj, u32 *id)
{
	int err = xa_alloc(&file->objects, id, obj, XA_LIMIT(1, SHIFT_FILE_IDS), GFP_KERNEL);

	if (err)
		shift_obj_drop(obj);
	else
		shift_account_objects(file->account, 1);
	return err;
}

/**
 * shift_file_get - the object that is registered under an id
 * @file: the file.
 * @id: as the caller gave it.
 * @type: type that the object must have; 0: any.
 *
 * Context: any that may take a spinlock; mmap() comes here with mmap_lock.
 * Return: the object, with a reference, or NULL.
 */
struct shift_obj *shift_file_get(struct shift_file *file, u32 id, enum shift_obj_type type)
{
	struct shift_obj *obj;

	xa_lock(&file->objects);
	obj = xa_load(&file->objects, id);
	if (obj && type && obj->type != type)
		obj = NULL;
	if (obj)
		shift_obj_get(obj);
	xa_unlock(&file->objects);
	return obj;
}

/*
 * Take an object out, with the file's reference.  If two threads unregister the same one, one of
 * them gets NULL.
 */
struct shift_obj *shift_file_take(struct shift_file *file, u32 id, enum shift_obj_type type)
{
	struct shift_obj *obj;

	xa_lock(&file->objects);
	obj = xa_load(&file->objects, id);
	if (obj && obj->type == type)
		__xa_erase(&file->objects, id);
	else
		obj = NULL;
	xa_unlock(&file->objects);
	if (obj)
		shift_account_objects(file->account, -1);
	return obj;
}
