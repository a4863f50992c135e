// SPDX-License-Identifier: GPL-2.0
#include "probe.h"

#ifndef SHIFT_MUST_FAIL
typedef struct ib_mr *fn(struct ib_pd *, u64, u64, u64, int, int, struct ib_udata *);
#else
typedef struct ib_mr *fn(struct ib_pd *, u64, u64, u64, int, struct ib_udata *);
#endif
SHIFT_OP_IS(reg_user_mr_dmabuf, fn);
