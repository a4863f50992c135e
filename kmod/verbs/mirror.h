/* SPDX-License-Identifier: GPL-2.0 */
/* Mirrors of memory regions; between shift_pair_use() and shift_pair_unuse(). */
#ifndef SHIFT_VERBS_MIRROR_H
#define SHIFT_VERBS_MIRROR_H

#include "compat/compat.h"
#include "core/object.h"

int shift_mirror_user(struct shift_mr *smr, u64 start);
int shift_mirror_dmabuf(struct shift_mr *smr, u64 offset, int fd, SHIFT_DMABUF_UDATA *udata);
int shift_mirror_keep(struct shift_mr *smr, struct shift_mr *old, int flags);

#endif /* SHIFT_VERBS_MIRROR_H */
