/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the decoders of mlx5's rings share: the device's format of work requests
 * and completions, and why one is refused.  Pure.
 *
 * The kernel has these structures too (<linux/mlx5/qp.h>, <linux/mlx5/device.h>),
 * but under names that change between versions, and not where its headers were
 * installed without mlx5.  The unit tests hold the two against each other.
 */
#ifndef SHIFT_PROVIDER_MLX5_FORMAT_H
#define SHIFT_PROVIDER_MLX5_FORMAT_H

#include "pure/pure.h"

#define SHIFT_MLX5_BLOCK	64	/* unit of a send ring ("WQEBB") */
#define SHIFT_MLX5_CHUNK	16	/* unit of a WQE's size ("DS") */
#define SHIFT_MLX5_MAX_CHUNKS	63	/* six bits of the control segment */
#define SHIFT_MLX5_MAX_BLOCKS	16	/* of a WQE with the most chunks */
#define SHIFT_MLX5_MAX_RING	32768	/* blocks or receives: indices have 16 bits */
#define SHIFT_MLX5_QPN_MASK	0xffffffu

enum shift_mlx5_opcode {
	SHIFT_MLX5_OP_NOP		= 0x00,
	SHIFT_MLX5_OP_SEND_INVAL	= 0x01,
	SHIFT_MLX5_OP_RDMA_WRITE	= 0x08,
	SHIFT_MLX5_OP_RDMA_WRITE_IMM	= 0x09,
	SHIFT_MLX5_OP_SEND		= 0x0a,
	SHIFT_MLX5_OP_SEND_IMM		= 0x0b,
	SHIFT_MLX5_OP_RDMA_READ		= 0x10,
	SHIFT_MLX5_OP_ATOMIC_CS		= 0x11,
	SHIFT_MLX5_OP_ATOMIC_FA		= 0x12,
	SHIFT_MLX5_OP_ATOMIC_MASKED_CS	= 0x14,
	SHIFT_MLX5_OP_ATOMIC_MASKED_FA	= 0x15,
	SHIFT_MLX5_OP_UMR		= 0x25,
};

/* masked atomics name the size of their operands: 8 | log2(bytes) - 2 */
#define SHIFT_MLX5_OPMOD_8_BYTES	9

struct shift_mlx5_ctrl {
	__be32 opmod_index_opcode;	/* 8, 16 and 8 bits */
	__be32 qpn_chunks;		/* 24 and 8 bits, of which six */
	u8 signature;
	u8 stream[2];
	u8 flags;			/* fence, completion, solicited */
	__be32 imm;			/* or the key that a local operation works on */
};

#define SHIFT_MLX5_SOLICITED		0x02
#define SHIFT_MLX5_COMPLETION(flags)	(((flags) >> 2) & 3)
#define SHIFT_MLX5_FENCE(flags)		((flags) >> 5)
#define SHIFT_MLX5_UNKNOWN_FLAGS	0x11

enum {
	SHIFT_MLX5_COMPLETION_ON_ERROR	= 0,
	SHIFT_MLX5_COMPLETION_ALWAYS	= 2,
};

enum {
	SHIFT_MLX5_FENCE_NONE		= 0,
	SHIFT_MLX5_FENCE_SMALL		= 1,	/* waits for local operations before it */
	SHIFT_MLX5_FENCE_READS		= 2,
	SHIFT_MLX5_FENCE_BOTH		= 4,
};

struct shift_mlx5_raddr {
	__be64 addr;
	__be32 rkey;
	__be32 reserved;
};

struct shift_mlx5_atomic {
	__be64 swap_add;
	__be64 compare;			/* masked FETCH_ADD: the boundaries of fields */
};

struct shift_mlx5_atomic_mask {
	__be64 swap;
	__be64 compare;
};

struct shift_mlx5_data {
	__be32 byte_count;
	__be32 lkey;
	__be64 addr;
};

/* in a data segment's byte_count: data and not a pointer follows these 4 bytes */
#define SHIFT_MLX5_INLINE		0x80000000u
#define SHIFT_MLX5_INLINE_OFFSET	4
/* a key that ends a scatter list */
#define SHIFT_MLX5_END_LKEY		0x100

struct shift_mlx5_umr {
	u8 flags;
	u8 reserved0[3];
	__be16 klm_octowords;
	__be16 offset;
	__be64 mask;			/* which fields of the key are changed */
	u8 reserved1[32];
};

enum {
	SHIFT_MLX5_UMR_CHECK_QPN	= 1 << 3,
	SHIFT_MLX5_UMR_OFFSET		= 1 << 4,
	SHIFT_MLX5_UMR_CHECK_FREE	= 1 << 5,
	SHIFT_MLX5_UMR_INLINE		= 1 << 7,
};

enum {
	SHIFT_MLX5_MASK_LEN		= 1 << 0,
	SHIFT_MLX5_MASK_START		= 1 << 6,
	SHIFT_MLX5_MASK_KEY		= 1 << 13,
	SHIFT_MLX5_MASK_QPN		= 1 << 14,
	SHIFT_MLX5_MASK_LOCAL_WRITE	= 1 << 18,
	SHIFT_MLX5_MASK_REMOTE_READ	= 1 << 19,
	SHIFT_MLX5_MASK_REMOTE_WRITE	= 1 << 20,
	SHIFT_MLX5_MASK_ATOMIC		= 1 << 21,
	SHIFT_MLX5_MASK_FREE		= 1 << 29,
};

struct shift_mlx5_mkey {
	u8 status;
	u8 reserved0;
	u8 access;
	u8 reserved1;
	__be32 qpn_key;			/* 24 and 8 bits */
	u8 reserved2[8];
	__be64 start;
	__be64 len;
	u8 reserved3[32];
};

#define SHIFT_MLX5_MKEY_FREE		0x40
#define SHIFT_MLX5_ANY_QPN		0xffffffu

enum {
	SHIFT_MLX5_ACCESS_LOCAL_WRITE	= 1 << 3,
	SHIFT_MLX5_ACCESS_REMOTE_READ	= 1 << 4,
	SHIFT_MLX5_ACCESS_REMOTE_WRITE	= 1 << 5,
	SHIFT_MLX5_ACCESS_ATOMIC	= 1 << 6,
};

/* head of a shared receive: free and posted receives are each in a list, linked by index */
struct shift_mlx5_srq_next {
	u8 reserved0[2];
	__be16 next;
	u8 signature;
	u8 reserved1[11];
};

/* bytes of a shared receive with so many entries */
#define SHIFT_MLX5_SRQ_SLOT(sges) \
	(sizeof(struct shift_mlx5_srq_next) + (sges) * sizeof(struct shift_mlx5_data))

static_assert(sizeof(struct shift_mlx5_ctrl) == SHIFT_MLX5_CHUNK);
static_assert(sizeof(struct shift_mlx5_raddr) == SHIFT_MLX5_CHUNK);
static_assert(sizeof(struct shift_mlx5_atomic) == SHIFT_MLX5_CHUNK);
static_assert(sizeof(struct shift_mlx5_atomic_mask) == SHIFT_MLX5_CHUNK);
static_assert(sizeof(struct shift_mlx5_data) == SHIFT_MLX5_CHUNK);
static_assert(sizeof(struct shift_mlx5_srq_next) == SHIFT_MLX5_CHUNK);
static_assert(sizeof(struct shift_mlx5_umr) == 3 * SHIFT_MLX5_CHUNK);
static_assert(sizeof(struct shift_mlx5_mkey) == 4 * SHIFT_MLX5_CHUNK);

/* a completion; where the ring's stride is 128 bytes, the second half of it */
struct shift_mlx5_cqe64 {
	u8 reserved0[32];		/* or up to 32 bytes of data */
	__be32 user_index;		/* 24 bits: of the QP, or the number of an SRQ */
	__be32 imm;			/* or the key that was invalidated */
	u8 app;
	u8 app_op;
	__be16 app_info;
	__be32 byte_count;
	u8 reserved1[6];
	u8 vendor_syndrome;		/* these two in errors only */
	u8 syndrome;
	__be32 opcode_qpn;		/* 8 and 24 bits; the WQE's opcode if it is a send */
	__be16 wqe_index;
	u8 signature;
	u8 op_own;			/* opcode, format, solicited, owner: 4, 2, 1, 1 bits */
};

static_assert(sizeof(struct shift_mlx5_cqe64) == 64);

enum shift_mlx5_cqe_opcode {
	SHIFT_MLX5_CQE_REQ		= 0,
	SHIFT_MLX5_CQE_RECV_WRITE_IMM	= 1,
	SHIFT_MLX5_CQE_RECV		= 2,
	SHIFT_MLX5_CQE_RECV_IMM		= 3,
	SHIFT_MLX5_CQE_RECV_INV		= 4,
	SHIFT_MLX5_CQE_RESIZE		= 5,
	SHIFT_MLX5_CQE_REQ_ERR		= 13,
	SHIFT_MLX5_CQE_RECV_ERR		= 14,
	SHIFT_MLX5_CQE_INVALID		= 15,
};

enum {
	SHIFT_MLX5_CQE_PLAIN		= 0,
	SHIFT_MLX5_CQE_DATA_32		= 1,	/* in the CQE's own first bytes */
	SHIFT_MLX5_CQE_DATA_64		= 2,	/* in the 64 bytes before the CQE */
	SHIFT_MLX5_CQE_COMPRESSED	= 3,
};

/**
 * enum shift_mlx5_refusal - why a work request or a completion is not decoded
 * @SHIFT_MLX5_DECODED: it was decoded.
 * @SHIFT_MLX5_GEOMETRY: size or alignment of the ring is not valid.
 * @SHIFT_MLX5_EMPTY: nothing was posted there, or the device owns it still.
 * @SHIFT_MLX5_INDEX: the WQE was written for another index.
 * @SHIFT_MLX5_QPN: the WQE is another queue pair's.
 * @SHIFT_MLX5_SIZE: the WQE has no size, or is longer than what was posted.
 * @SHIFT_MLX5_SEGMENTS: its size and its operation contradict one another.
 * @SHIFT_MLX5_INLINE_SIZE: inline data that does not fit what holds it.
 * @SHIFT_MLX5_LINK: the next shared receive is outside of the ring.
 * @SHIFT_MLX5_SIGNED: signatures are on.
 * @SHIFT_MLX5_FLAGS: a fence, completion or stream that verbs cannot ask for.
 * @SHIFT_MLX5_OPCODE: an operation that is not covered.
 * @SHIFT_MLX5_OPMOD: a variant of an operation that is not covered.
 * @SHIFT_MLX5_MIXED: inline data and pointers, or several pieces of inline data.
 * @SHIFT_MLX5_LENGTH: an entry without length, or more than 2 GiB in all.
 * @SHIFT_MLX5_SGES: more entries than struct shift_wr has.
 * @SHIFT_MLX5_UMR: changes a memory key other than by bind or invalidate.
 * @SHIFT_MLX5_COMPRESSED: a compressed completion.
 * @SHIFT_MLX5_APP: a completion of tag matching.
 */
enum shift_mlx5_refusal {
	SHIFT_MLX5_DECODED,
	/* malformed */
	SHIFT_MLX5_GEOMETRY,
	SHIFT_MLX5_EMPTY,
	SHIFT_MLX5_INDEX,
	SHIFT_MLX5_QPN,
	SHIFT_MLX5_SIZE,
	SHIFT_MLX5_SEGMENTS,
	SHIFT_MLX5_INLINE_SIZE,
	SHIFT_MLX5_LINK,
	/* not covered */
	SHIFT_MLX5_SIGNED,
	SHIFT_MLX5_FLAGS,
	SHIFT_MLX5_OPCODE,
	SHIFT_MLX5_OPMOD,
	SHIFT_MLX5_MIXED,
	SHIFT_MLX5_LENGTH,
	SHIFT_MLX5_SGES,
	SHIFT_MLX5_UMR,
	SHIFT_MLX5_COMPRESSED,
	SHIFT_MLX5_APP,
	__SHIFT_MLX5_REFUSALS,
};

/* 0, -EINVAL (malformed), -EOPNOTSUPP (not covered) */
int shift_mlx5_refusal_errno(enum shift_mlx5_refusal why);
const char *shift_mlx5_refusal_name(enum shift_mlx5_refusal why);

#endif /* SHIFT_PROVIDER_MLX5_FORMAT_H */
