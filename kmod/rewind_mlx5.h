/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which sends of an mlx5 queue pair have no completion yet, and at which PSN the oldest
 * of them begins: pure and total.
 *
 * WQEs carry no PSN, and the ring goes round unseen.  So the provider counts packets
 * as it posts (the anchor, behind what was posted last), and from there the way back is
 * the sum of what is in the ring.
 */
#ifndef SHIFT_REWIND_MLX5_H
#define SHIFT_REWIND_MLX5_H

#include "wq_mlx5.h"

/* the anchor word: packets << 16 | index behind the last WQE */
#define SHIFT_MLX5_ANCHOR_INDEX(word)	((u16)(word))
#define SHIFT_MLX5_ANCHOR_PACKETS(word)	((word) >> 16)

/**
 * struct shift_mlx5_view - a queue pair, best one that stands still
 * @sq: copy of its ring; producer: of the anchor.
 * @packets: of the anchor: of all WQEs since RESET.
 * @completed: the CQ has a completion with success of one of its sends;
 * @last: index of the newest.
 * @heads: copy of the provider's numbers of sends, counted since RESET: for each block that
 *	of the WQE that begins there, or anything.  NULL: not known.
 * @tail: number behind the newest send whose completion was polled.
 * @flushed: if neither tells, the CQ has all in error that there were;
 * @first_flushed: index of the oldest.
 * @start_psn: PSN of its first packet.
 * @mtu: path MTU, bytes.
 */
struct shift_mlx5_view {
	struct shift_mlx5_sq sq;
	u64 packets;
	bool completed, flushed;
	u16 last, first_flushed;
	const u32 *heads;
	u32 tail;
	u32 start_psn;
	u32 mtu;
};

/**
 * struct shift_mlx5_rewind - what shift_mlx5_rewind() found
 * @first: index of the oldest send without a completion, or the producer.
 * @first_psn: PSN of its first packet.
 */
struct shift_mlx5_rewind {
	u16 first;
	u32 first_psn;
};

/*
 * 0; -ENODATA: it cannot be told, and @first is the WQE that was posted last;
 * -EOPNOTSUPP: among them is one that cannot be moved, only @first is valid;
 * -EINVAL: the ring is malformed, nothing is valid.
 */
int shift_mlx5_rewind(const struct shift_mlx5_view *v, struct shift_mlx5_wqe *wqe,
		      struct shift_mlx5_rewind *r);

/* Which of two places is nearer to the producer? */
static inline u16 shift_mlx5_later(u16 a, u16 b, u16 producer)
{
	return (u16)(producer - a) < (u16)(producer - b) ? a : b;
}

#endif /* SHIFT_REWIND_MLX5_H */
