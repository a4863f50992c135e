/* SPDX-License-Identifier: GPL-2.0 */
/* What provider_mlx5.c, fence_mlx5.c and cq_mlx5.c share: Documentation/mlx5.md. */
#ifndef SHIFT_PROVIDER_MLX5_H
#define SHIFT_PROVIDER_MLX5_H

#include "cqe_mlx5.h"
#include "provider.h"
#include "rewind_mlx5.h"

/**
 * struct shift_mlx5_qp - what the ledger of an mlx5 QP needs beside itself
 * @wqe: the WQE that was decoded last.
 * @at: index of the WQE of each entry, by ledger slot; of the head: where the next one
 *	will be.
 * @anchor: the provider's, when all that was posted was taken in last.
 * @sends_again: the QP was given back, and what was polled of its sends may be from before ...
 * @recvs_again: ... or of its receives.
 * @number: sends that were posted before.
 * @heads: before there is a ledger: a copy of struct shift_qp_pins' sq_heads, of one
 *	word for each two slots.
 *
 * All under ledger_lock, or sqp->lock while there is no ledger.
 */
struct shift_mlx5_qp {
	struct shift_mlx5_wqe wqe;
	u64 anchor;
	bool sends_again, recvs_again;
	u32 number;
	union {
		DECLARE_FLEX_ARRAY(u16, at);
		DECLARE_FLEX_ARRAY(u32, heads);
	};
};

/* cq_mlx5.c: a user's CQ; its ring stays meanwhile (ring_sem, or scq->lock) */

/**
 * struct shift_mlx5_found - completions of one queue of a QP
 * @success: there is one with success ...
 * @last: ... of this WQE or receive, and none is newer.
 * @error: there are some in error, newer than that ...
 * @first_error: ... the oldest of them of this one ...
 * @last_error: ... and the newest of this one.
 * @begins: the oldest of them is no flush, so that none was before it.
 * @cause: status of the newest that is no flush; 0: none.
 */
struct shift_mlx5_found {
	bool success, error, begins;
	u16 last, first_error, last_error;
	u32 cause;
};

u32 shift_mlx5_cq_room(struct shift_cq *scq);
void shift_mlx5_cq_find(struct shift_cq *scq, u32 qpn, bool recvs, u32 most,
			struct shift_mlx5_found *found);
bool shift_mlx5_cq_armed(struct shift_cq *scq, bool solicited);	/* scq->lock */
bool shift_mlx5_cq_sleeps(const struct shift_cq *scq);		/* the same */

/* fence_mlx5.c */
int shift_mlx5_fence(struct shift_qp *sqp, bool *errored);
int shift_mlx5_movable(struct shift_qp *sqp);
bool shift_mlx5_still(struct shift_qp *sqp);

/* provider_mlx5.c: the doorbell record, and the intake */
static inline u16 shift_mlx5_counter(const struct shift_word *word)
{
	return be32_to_cpu((__force __be32)shift_word_read(word));
}

int shift_mlx5_take(struct shift_qp *sqp, struct shift_wr *wr);

#endif /* SHIFT_PROVIDER_MLX5_H */
