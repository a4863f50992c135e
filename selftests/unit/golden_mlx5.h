/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rings that the real libmlx5 wrote, and what it was asked for; the data is in
 * golden_mlx5.inc, which rdma-core/golden makes.
 */
#ifndef GOLDEN_MLX5_DATA_H
#define GOLDEN_MLX5_DATA_H

#include "provider/mlx5/wqe.h"

enum golden_kind { GOLDEN_SEND, GOLDEN_RECV, GOLDEN_SRQ };

/**
 * struct golden_ring - a ring as it was left
 * @name: what is in it.
 * @kind: which ring.
 * @blocks: its size in blocks, or in slots of @slot_size bytes.
 * @slot_size: of receives.
 * @first: index of what was posted first.
 * @producer: index behind what was posted last.
 * @qpn: number of the queue pair.
 * @wrs: what was asked for is here in golden_wrs.
 * @num: so many.
 * @bytes: all of it, in hexadecimal digits.
 */
struct golden_ring {
	const char *name;
	enum golden_kind kind;
	u32 blocks;
	u32 slot_size;
	u16 first;
	u16 producer;
	u32 qpn;
	u32 wrs;
	u32 num;
	const char *bytes;
};

#endif /* GOLDEN_MLX5_DATA_H */
