// SPDX-License-Identifier: GPL-2.0
#include "probe.h"

#ifndef SHIFT_MUST_FAIL
typedef int fn(struct ib_cq *, const struct ib_cq_init_attr *, struct uverbs_attr_bundle *);
#else
typedef int fn(struct ib_cq *, struct ib_cq_init_attr *, struct uverbs_attr_bundle *);
#endif
SHIFT_OP_IS(create_cq, fn);
