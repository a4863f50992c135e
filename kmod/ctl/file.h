/* SPDX-License-Identifier: GPL-2.0 */
/* Objects registered through an open /dev/shift, by id. */
#ifndef SHIFT_CTL_FILE_H
#define SHIFT_CTL_FILE_H

#include "core/account.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/srq.h"

/**
 * struct shift_file - one open of /dev/shift
 * @mm: the process that may use it; a forked child may not.
 * @account: of that process.
 * @objects: registered CQs, SRQs and QPs by id; each has a reference.
 */
struct shift_file {
	struct mm_struct *mm;
	struct shift_account *account;
	struct xarray objects;
};

static inline struct shift_cq *to_cq(struct shift_obj *obj)
{
	return container_of(obj, struct shift_cq, obj);
}

static inline struct shift_srq *to_srq(struct shift_obj *obj)
{
	return container_of(obj, struct shift_srq, obj);
}

static inline struct shift_qp *to_qp(struct shift_obj *obj)
{
	return container_of(obj, struct shift_qp, obj);
}

/* file.c; a CQ, an SRQ or a QP */
void shift_obj_get(struct shift_obj *obj);
void shift_obj_put(struct shift_obj *obj);
void shift_obj_drop(struct shift_obj *obj);	/* unregisters it; sleeps */
int shift_file_add(struct shift_file *file, struct shift_obj *obj, u32 *id);
struct shift_obj *shift_file_get(struct shift_file *file, u32 id, enum shift_obj_type type);
struct shift_obj *shift_file_take(struct shift_file *file, u32 id, enum shift_obj_type type);

#endif /* SHIFT_CTL_FILE_H */
