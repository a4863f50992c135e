/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A send work request as decoded from a ring: the common form of all providers.
 * Pure.  Numbers of opcodes and flags are those of enum ib_wr_opcode and
 * enum ib_send_flags (user and kernel agree on those used here).
 */
#ifndef SHIFT_WR_H
#define SHIFT_WR_H

#include "pure.h"

enum {
	SHIFT_WR_RDMA_WRITE		= 0,
	SHIFT_WR_RDMA_WRITE_WITH_IMM	= 1,
	SHIFT_WR_SEND			= 2,
	SHIFT_WR_SEND_WITH_IMM		= 3,
	SHIFT_WR_RDMA_READ		= 4,
	SHIFT_WR_ATOMIC_CMP_AND_SWP	= 5,
	SHIFT_WR_ATOMIC_FETCH_AND_ADD	= 6,
	SHIFT_WR_LOCAL_INV		= 7,	/* as rxe's provider writes it */
	SHIFT_WR_BIND_MW		= 8,
	SHIFT_WR_SEND_WITH_INV		= 9,
};

enum {
	SHIFT_WR_FENCE		= 1 << 0,
	SHIFT_WR_SIGNALED	= 1 << 1,
	SHIFT_WR_SOLICITED	= 1 << 2,
	SHIFT_WR_INLINE		= 1 << 3,
};

#define SHIFT_WR_MAX_SGE	32
#define SHIFT_WR_MAX_LENGTH	(1u << 31)

struct shift_sge {
	u64 addr;
	u32 length;
	u32 lkey;
};

/**
 * struct shift_wr - one decoded send work request
 * @wr_id: the application's.
 * @opcode: SHIFT_WR_*.
 * @flags: SHIFT_WR_FENCE ...
 * @length: bytes in all.
 * @imm: immediate data (network order as posted) or rkey to invalidate.
 * @rkey: remote key (default path's).
 * @remote_addr: remote address.
 * @compare_add: atomics.
 * @swap: atomics.
 * @inline_data: points into the copied slot if SHIFT_WR_INLINE.
 * @num_sge: entries of @sge; 0 for inline.
 * @sge: local buffers (default path's lkeys).
 */
struct shift_wr {
	u64 wr_id;
	u32 opcode;
	u32 flags;
	u32 length;
	u32 imm;
	u32 rkey;
	u64 remote_addr;
	u64 compare_add;
	u64 swap;
	const u8 *inline_data;
	u32 num_sge;
	struct shift_sge sge[SHIFT_WR_MAX_SGE];
};

/* can it be moved to another device? */
bool shift_wr_movable(const struct shift_wr *wr);
int shift_wr_skip(struct shift_wr *wr, u32 bytes);

#endif /* SHIFT_WR_H */
