/* SPDX-License-Identifier: GPL-2.0 */
/* Requests of users in the kernel, as the record of them has them. */
#ifndef SHIFT_CORE_KERNEL_WR_H
#define SHIFT_CORE_KERNEL_WR_H

#include <rdma/ib_verbs.h>
#include "pure/post_ring.h"

/** union shift_kernel_wr - a send request of any kind that is recorded */
union shift_kernel_wr {
	struct ib_send_wr send;
	struct ib_rdma_wr rdma;
	struct ib_atomic_wr atomic;
	struct ib_reg_wr reg;
};

void shift_post_of_send(struct shift_post *post, const struct ib_send_wr *wr, bool sig_all);
void shift_post_of_recv(struct shift_post *post, const struct ib_recv_wr *wr);
void shift_send_of_post(union shift_kernel_wr *wr, u8 *slot, struct ib_sge *inlined);
void shift_recv_of_post(struct ib_recv_wr *wr, u8 *slot);

/* Both have the same layout: core/kernel_wr.c */
static inline const struct shift_sge *shift_post_sges(const struct ib_sge *sge)
{
	return (const struct shift_sge *)sge;
}

#endif /* SHIFT_CORE_KERNEL_WR_H */
