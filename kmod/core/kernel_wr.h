/* SPDX-License-Identifier: GPL-2.0 */
/* Requests of users in the kernel, as the record of them has them. */
#ifndef SHIFT_CORE_KERNEL_WR_H
#define SHIFT_CORE_KERNEL_WR_H

#include <rdma/ib_verbs.h>
#include "pure/post_ring.h"

void shift_post_of_send(struct shift_post *post, const struct ib_send_wr *wr, bool sig_all);
void shift_post_of_recv(struct shift_post *post, const struct ib_recv_wr *wr);

/* Both have the same layout: core/kernel_wr.c */
static inline const struct shift_sge *shift_post_sges(const struct ib_sge *sge)
{
	return (const struct shift_sge *)sge;
}

#endif /* SHIFT_CORE_KERNEL_WR_H */
