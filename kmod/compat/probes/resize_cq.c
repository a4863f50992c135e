// SPDX-License-Identifier: GPL-2.0
#include "probe.h"

#ifndef SHIFT_MUST_FAIL
typedef int fn(struct ib_cq *, int, struct ib_udata *);
#else
typedef int fn(struct ib_cq *, long, struct ib_udata *);
#endif
SHIFT_OP_IS(resize_cq, fn);
