/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A user's CQ: what was completed, and the room that there is.  Total: any ring and any index
 * give a result, in a number of looks that the ring's size bounds.  What is read is memory of
 * the application's, through ring.h; the caller sees to it that the ring stays.
 */
#ifndef SHIFT_CQ_MLX5_H
#define SHIFT_CQ_MLX5_H

#include "cqe_mlx5.h"
#include "ring.h"

#define SHIFT_MLX5_CI_MASK	0xffffffu	/* consumer's index, in a doorbell record */

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

u32 shift_mlx5_cq_room(const struct shift_ring *ring, u32 consumer, u32 qpn, u32 *own);
void shift_mlx5_cq_find(const struct shift_ring *ring, u32 consumer, u32 qpn, bool recvs,
			u32 most, struct shift_mlx5_found *found);

#endif /* SHIFT_CQ_MLX5_H */
