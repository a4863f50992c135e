/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A user's CQ: what was completed, and how much room there is.  Total: any ring and any index give
 * a result, and the ring's size bounds the number of reads.  The ring is the application's memory,
 * read through ring.h; the caller makes sure that it stays pinned.
 */
#ifndef SHIFT_PROVIDER_MLX5_CQ_H
#define SHIFT_PROVIDER_MLX5_CQ_H

#include "provider/mlx5/cqe.h"
#include "core/ring.h"

#define SHIFT_MLX5_CI_MASK	0xffffffu	/* consumer's index, in a doorbell record */

/**
 * struct shift_mlx5_found - completions of one queue of a QP
 * @success: there is a completion with success.
 * @last: WQE or receive of the newest completion with success.
 * @error: there are completions in error that are newer than that.
 * @first_error: WQE or receive of the oldest of these.
 * @last_error: WQE or receive of the newest of these.
 * @begins: the oldest of these is not a flush, so that it is the QP's first error.
 * @cause: status of the newest error that is not a flush; 0: none.
 */
struct shift_mlx5_found {
	bool success, error, begins;
	u16 last, first_error, last_error;
	u32 cause;
};

u32 shift_mlx5_cq_room(const struct shift_ring *ring, u32 consumer, u32 qpn, u32 *own);
void shift_mlx5_cq_find(const struct shift_ring *ring, u32 consumer, u32 qpn, bool recvs,
			u32 most, struct shift_mlx5_found *found);
void shift_mlx5_cq_recvs(const struct shift_ring *ring, u32 consumer,
			 void (*fn)(void *arg, u64 index, u32 status, u32 qpn), void *arg);

#endif /* SHIFT_PROVIDER_MLX5_CQ_H */
