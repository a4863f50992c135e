/* SPDX-License-Identifier: GPL-2.0 */
/* What provider_mlx5.c and fence_mlx5.c share: Documentation/mlx5.md. */
#ifndef SHIFT_PROVIDER_MLX5_H
#define SHIFT_PROVIDER_MLX5_H

#include "cq_mlx5.h"
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
 * @flush_send: entries of its CQ of sends that were promised to a fence ...
 * @flush_recv: ... and of that of receives, if it is another: promise_lock in fence_mlx5.c.
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
	u32 flush_send, flush_recv;
	union {
		DECLARE_FLEX_ARRAY(u16, at);
		DECLARE_FLEX_ARRAY(u32, heads);
	};
};

/* fence_mlx5.c */
int shift_mlx5_fence(struct shift_qp *sqp, bool *errored);
int shift_mlx5_movable(struct shift_qp *sqp);
bool shift_mlx5_still(struct shift_qp *sqp);

/* provider_mlx5.c: doorbell records, and the intake */
static inline u16 shift_mlx5_counter(const struct shift_word *word)
{
	return be32_to_cpu((__force __be32)shift_word_read(word));
}

/* What the application has polled of a CQ; it stays meanwhile (ring_sem, or scq->lock). */
static inline u32 shift_mlx5_consumer(const struct shift_cq *scq)
{
	return be32_to_cpu((__force __be32)shift_word_read(&scq->db)) & SHIFT_MLX5_CI_MASK;
}

int shift_mlx5_take(struct shift_qp *sqp, struct shift_wr *wr);

#endif /* SHIFT_PROVIDER_MLX5_H */
