/* SPDX-License-Identifier: GPL-2.0 */
/* The kind of QPs of users in the kernel. */
#ifndef SHIFT_PROVIDER_KERNEL_KERNEL_H
#define SHIFT_PROVIDER_KERNEL_KERNEL_H

#include <linux/types.h>

struct shift_qp;
struct shift_wr;

/* provider.c */
int shift_kernel_decode(struct shift_qp *sqp, u64 seq, struct shift_wr *wr);
u32 shift_kernel_cause(struct shift_qp *sqp);

/* reopen.c */
int shift_kernel_srq_reopen(struct shift_qp *sqp);

/* mrs.c */
extern const struct shift_mr_ops shift_kernel_mr_provider;

/* fence.c */
bool shift_kernel_hold(struct shift_qp *sqp);
int shift_kernel_fence(struct shift_qp *sqp, bool *errored);

#endif /* SHIFT_PROVIDER_KERNEL_KERNEL_H */
