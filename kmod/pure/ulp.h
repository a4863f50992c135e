/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Users of RDMA in the kernel (upper-layer protocols), as an operator names them and as the kernel
 * names their modules.  Pure.
 */
#ifndef SHIFT_PURE_ULP_H
#define SHIFT_PURE_ULP_H

#include "pure/pure.h"

enum shift_ulp {
	SHIFT_ULP_NONE,		/* not one that can be named */
	SHIFT_ULP_NVME,
	SHIFT_ULP_NFS,
	SHIFT_ULP_RDS,
	SHIFT_ULP_ISER,
	SHIFT_ULP_SRP,
	__SHIFT_ULP_MAX
};

enum shift_ulp shift_ulp_of_module(const char *module);
const char *shift_ulp_name(enum shift_ulp ulp);
int shift_ulp_parse(const char *list, u32 *set);

#endif /* SHIFT_PURE_ULP_H */
