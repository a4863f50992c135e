/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of srq/ use of each other. */
#ifndef SHIFT_SRQ_INTERNAL_H
#define SHIFT_SRQ_INTERNAL_H

#include "core/srq.h"

/* recv.c; post_lock */
void shift_srq_take(struct shift_srq *ssrq, u32 recv_id);
int shift_srq_lend(struct shift_srq *ssrq, struct shift_srq_recv *recv);
void shift_srq_ingest(struct shift_srq *ssrq);
void shift_srq_post(struct shift_srq *ssrq);
void shift_srq_tell_limit(struct shift_srq *ssrq);
void shift_srq_look_at_limit(struct shift_srq *ssrq);

#endif /* SHIFT_SRQ_INTERNAL_H */
