/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mlx5's send, receive and shared receive rings as libmlx5 writes them for RC
 * queue pairs: pure and total.  Any bytes give a work request or a refusal.
 */
#ifndef SHIFT_PROVIDER_MLX5_WQE_H
#define SHIFT_PROVIDER_MLX5_WQE_H

#include "provider/mlx5/format.h"
#include "pure/wr.h"

/**
 * struct shift_mlx5_sq - a send ring
 * @ring: its first block; a copy, or memory that others write meanwhile.
 * @blocks: its size in blocks of 64 bytes, a power of two.
 * @producer: blocks posted, modulo 2^16, as in the doorbell record.
 * @qpn: of the queue pair.
 * @signature: the queue pair was created with signatures.
 */
struct shift_mlx5_sq {
	const void *ring;
	u32 blocks;
	u16 producer;
	u32 qpn;
	bool signature;
};

/**
 * struct shift_mlx5_wqe - a send WQE
 * @wr: the work request, without wr_id (the provider has it, not the ring).
 * @blocks: how many it takes, also of one that is refused as not covered; else 0.
 * @bytes: copy of it in one piece; @wr.inline_data points into it.
 */
struct shift_mlx5_wqe {
	struct shift_wr wr;
	u32 blocks;
	u8 bytes[SHIFT_MLX5_MAX_BLOCKS * SHIFT_MLX5_BLOCK] __aligned(8);
};

enum shift_mlx5_refusal
shift_mlx5_decode(const struct shift_mlx5_sq *sq, u16 index, struct shift_mlx5_wqe *wqe);

/**
 * struct shift_mlx5_rq - a ring of receives, or of shared receives
 * @ring: its first slot; a copy, or memory that others write meanwhile.
 * @slots: their number; a power of two unless shared.
 * @slot_size: bytes, a multiple of 16.
 * @signature: it was created with signatures.
 */
struct shift_mlx5_rq {
	const void *ring;
	u32 slots;
	u32 slot_size;
	bool signature;
};

#define SHIFT_MLX5_MAX_SLOT	4096

/* length and scatter list; index modulo the number of slots */
enum shift_mlx5_refusal
shift_mlx5_decode_recv(const struct shift_mlx5_rq *rq, u16 index, struct shift_wr *wr);
/* the same, and the next receive of the list, which may be circular */
enum shift_mlx5_refusal
shift_mlx5_decode_srq(const struct shift_mlx5_rq *rq, u16 index, struct shift_wr *wr,
		      u16 *next);

/* encode.c */
u32 shift_mlx5_encode_srq(void *to, u32 size, u16 next, const struct shift_sge *sge, u32 num_sge);

#endif /* SHIFT_PROVIDER_MLX5_WQE_H */
