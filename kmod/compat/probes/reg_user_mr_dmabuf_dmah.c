// SPDX-License-Identifier: GPL-2.0
#include "probe.h"

struct ib_dmah;
#ifndef SHIFT_MUST_FAIL
typedef struct ib_mr *fn(struct ib_pd *, u64, u64, u64, int, int, struct ib_dmah *,
			 struct uverbs_attr_bundle *);
#else
typedef struct ib_mr *fn(struct ib_pd *, u64, u64, u64, int, struct ib_dmah *,
			 struct uverbs_attr_bundle *);
#endif
SHIFT_OP_IS(reg_user_mr_dmabuf, fn);
