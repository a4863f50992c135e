/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mlx5's completion ring, with entries of 64 or 128 bytes: pure and total.  Any bytes
 * give a completion or a refusal.
 */
#ifndef SHIFT_PROVIDER_MLX5_CQE_H
#define SHIFT_PROVIDER_MLX5_CQE_H

#include "provider/mlx5/format.h"
#include "pure/wr.h"

/**
 * struct shift_mlx5_cqe - one decoded completion
 * @opcode: SHIFT_MLX5_CQE_*.  Valid also if the entry was refused for any reason but GEOMETRY and
 *	EMPTY.  The same is true of @wqe_index and @qpn, unless it was refused as COMPRESSED.
 * @wqe_opcode: of a send, SHIFT_MLX5_OP_*.
 * @status: SHIFT_WC_*.
 * @vendor: syndrome of the vendor's, of an error.
 * @solicited: the peer asked for an event.
 * @wqe_index: of the send's first block, or of the receive, modulo 2^16; a shared
 *	receive's number.
 * @qpn: queue pair, 24 bits.
 * @user_index: 24 bits; what the queue pair was given at creation (or an SRQ).
 * @byte_len: what was received or read; 8 of an atomic.
 * @imm: as it came (network order), or the key that was invalidated.
 * @data_len: bytes of @data, which still have to be scattered: the device did not.
 * @data: what came with it.
 */
struct shift_mlx5_cqe {
	u8 opcode;
	u8 wqe_opcode;
	u8 status;
	u8 vendor;
	bool solicited;
	u16 wqe_index;
	u32 qpn;
	u32 user_index;
	u32 byte_len;
	u32 imm;
	u32 data_len;
	u8 data[64];
};

/**
 * struct shift_mlx5_cq - a completion ring
 * @ring: its first entry; a copy, see shift_mlx5_cqe_ours().
 * @entries: a power of two.
 * @stride: 64 or 128 bytes.
 */
struct shift_mlx5_cq {
	const void *ring;
	u32 entries;
	u32 stride;
};

/* @index is not masked: the bit above the ring's size is compared with the owner bit */
bool shift_mlx5_cqe_ours(u8 op_own, u32 index, u32 entries);
enum shift_mlx5_refusal
shift_mlx5_decode_cqe(const struct shift_mlx5_cq *cq, u32 index, struct shift_mlx5_cqe *cqe);

#endif /* SHIFT_PROVIDER_MLX5_CQE_H */
