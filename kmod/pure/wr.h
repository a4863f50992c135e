/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A send work request as decoded from a ring: the common form of all providers.
 * Pure.  Numbers of opcodes and flags are those of enum ib_wr_opcode and
 * enum ib_send_flags (user and kernel agree on those used here).
 */
#ifndef SHIFT_PURE_WR_H
#define SHIFT_PURE_WR_H

#include "pure/pure.h"

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
	SHIFT_WR_RDMA_READ_WITH_INV	= 11,
	SHIFT_WR_MASKED_ATOMIC_CMP_AND_SWP	= 12,
	SHIFT_WR_MASKED_ATOMIC_FETCH_AND_ADD	= 13,
	SHIFT_WR_REG_MR			= 0x20,	/* of kernel users only */
};

enum {
	SHIFT_WR_FENCE		= 1 << 0,
	SHIFT_WR_SIGNALED	= 1 << 1,
	SHIFT_WR_SOLICITED	= 1 << 2,
	SHIFT_WR_INLINE		= 1 << 3,
};

/* access to a window that is bound: numbers of enum ib_access_flags */
enum {
	SHIFT_WR_ACCESS_LOCAL_WRITE	= 1 << 0,
	SHIFT_WR_ACCESS_REMOTE_WRITE	= 1 << 1,
	SHIFT_WR_ACCESS_REMOTE_READ	= 1 << 2,
	SHIFT_WR_ACCESS_REMOTE_ATOMIC	= 1 << 3,
	SHIFT_WR_ACCESS_ZERO_BASED	= 1 << 5,
};

/* how it ended: numbers of enum ib_wc_status (user and kernel agree) */
enum {
	SHIFT_WC_SUCCESS		= 0,
	SHIFT_WC_LOC_LEN_ERR		= 1,
	SHIFT_WC_LOC_QP_OP_ERR		= 2,
	SHIFT_WC_LOC_PROT_ERR		= 4,
	SHIFT_WC_WR_FLUSH_ERR		= 5,
	SHIFT_WC_MW_BIND_ERR		= 6,
	SHIFT_WC_BAD_RESP_ERR		= 7,
	SHIFT_WC_LOC_ACCESS_ERR		= 8,
	SHIFT_WC_REM_INV_REQ_ERR	= 9,
	SHIFT_WC_REM_ACCESS_ERR		= 10,
	SHIFT_WC_REM_OP_ERR		= 11,
	SHIFT_WC_RETRY_EXC_ERR		= 12,
	SHIFT_WC_RNR_RETRY_EXC_ERR	= 13,
	SHIFT_WC_REM_ABORT_ERR		= 16,
	SHIFT_WC_GENERAL_ERR		= 21,
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
 * @wr_id: the application's, if the ring has it (mlx5's has not).
 * @opcode: SHIFT_WR_*.
 * @flags: SHIFT_WR_FENCE ...
 * @length: bytes in all; of the window if one is bound.
 * @imm: immediate data (network order as posted), rkey to invalidate, or the
 *	window's rkey once it is bound.
 * @rkey: remote key (default path's); of the window before it is bound.
 * @remote_addr: remote address; where the window begins for the peer.
 * @compare_add: atomics.
 * @swap: atomics.
 * @compare_mask: masked atomics; FETCH_AND_ADD: where no carry goes on.
 * @swap_mask: masked COMPARE_AND_SWAP.
 * @access: SHIFT_WR_ACCESS_* of the window.
 * @mw_type: 1 or 2 if a window is bound.
 * @inline_data: points into the copied slot if SHIFT_WR_INLINE.
 * @num_sge: entries of @sge; 0 for inline.
 * @sge: local buffers (default path's lkeys); what a window is bound to.
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
	u64 compare_mask;
	u64 swap_mask;
	u32 access;
	u32 mw_type;
	const u8 *inline_data;
	u32 num_sge;
	struct shift_sge sge[SHIFT_WR_MAX_SGE];
};

/* can the request be posted on another device? */
bool shift_wr_movable(const struct shift_wr *wr);
int shift_wr_skip(struct shift_wr *wr, u32 bytes);

#endif /* SHIFT_PURE_WR_H */
