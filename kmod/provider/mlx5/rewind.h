/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which sends of an mlx5 queue pair have no completion yet, and at which PSN the oldest
 * of them begins: pure and total.
 *
 * WQEs carry no PSN, and the kernel does not see how often the ring goes round.  So the provider
 * counts packets as it posts: the anchor holds their number up to what was posted last.  The PSN of
 * an older WQE follows by subtracting the packets of the WQEs from there on.
 */
#ifndef SHIFT_PROVIDER_MLX5_REWIND_H
#define SHIFT_PROVIDER_MLX5_REWIND_H

#include "provider/mlx5/wqe.h"

/* the anchor word: packets << 16 | index behind the last WQE */
#define SHIFT_MLX5_ANCHOR_INDEX(word)	((u16)(word))
#define SHIFT_MLX5_ANCHOR_PACKETS(word)	((word) >> 16)

/**
 * struct shift_mlx5_view - what is known of a queue pair at one moment
 * @sq: copy of its ring; its producer is that of the anchor.
 * @packets: from the anchor: packets of all WQEs since RESET.
 * @completed: the CQ has a completion with success of one of its sends.
 * @last: index of the newest of those.
 * @heads: copy of the provider's numbers of sends, counted since RESET.  For each block: the number
 *	of the WQE that begins there, else any value.  NULL: not known.
 * @tail: number behind the newest send whose completion was polled.
 * @flushed: there is no completion with success, and the CQ has all completions in error.
 * @first_flushed: index of the oldest of those.
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
 * -EOPNOTSUPP: one of them cannot be moved, and only @first is valid;
 * -EINVAL: the ring is malformed, and nothing is valid.
 */
int shift_mlx5_rewind(const struct shift_mlx5_view *v, struct shift_mlx5_wqe *wqe,
		      struct shift_mlx5_rewind *r);

/* Which of two places is nearer to the producer? */
static inline u16 shift_mlx5_later(u16 a, u16 b, u16 producer)
{
	return (u16)(producer - a) < (u16)(producer - b) ? a : b;
}

#endif /* SHIFT_PROVIDER_MLX5_REWIND_H */
