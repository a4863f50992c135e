// SPDX-License-Identifier: GPL-2.0
/*
 * Reading mlx5's completion rings.  Only the device should write there, but the
 * memory is the application's: all values are checked, as in work queues.
 */
#include "provider/mlx5/cqe.h"
#include "provider/mlx5/format.h"
#include "pure/wr.h"

#define MAX_ENTRIES	(1u << 24)	/* the consumer's index has 24 bits */
#define APP_NONE	0
#define HALF		sizeof(struct shift_mlx5_cqe64)

/**
 * shift_mlx5_cqe_ours() - has the device written this entry?
 * @op_own: last byte of the entry.
 * @index: the consumer's, which runs on.
 * @entries: of the ring, a power of two.
 *
 * On a ring that the device writes to, read this byte first, then dma_rmb(), then copy the
 * entry: the device writes it last.
 *
 * Return: true if it has.
 */
bool shift_mlx5_cqe_ours(u8 op_own, u32 index, u32 entries)
{
	return op_own >> 4 != SHIFT_MLX5_CQE_INVALID && (op_own & 1) == !!(index & entries);
}

static u8 status_of(u8 syndrome)
{
	switch (syndrome) {
	case 0x01:
		return SHIFT_WC_LOC_LEN_ERR;
	case 0x02:
		return SHIFT_WC_LOC_QP_OP_ERR;
	case 0x04:
		return SHIFT_WC_LOC_PROT_ERR;
	case 0x05:
		return SHIFT_WC_WR_FLUSH_ERR;
	case 0x06:
		return SHIFT_WC_MW_BIND_ERR;
	case 0x10:
		return SHIFT_WC_BAD_RESP_ERR;
	case 0x11:
		return SHIFT_WC_LOC_ACCESS_ERR;
	case 0x12:
		return SHIFT_WC_REM_INV_REQ_ERR;
	case 0x13:
		return SHIFT_WC_REM_ACCESS_ERR;
	case 0x14:
		return SHIFT_WC_REM_OP_ERR;
	case 0x15:
		return SHIFT_WC_RETRY_EXC_ERR;
	case 0x16:
		return SHIFT_WC_RNR_RETRY_EXC_ERR;
	case 0x22:
		return SHIFT_WC_REM_ABORT_ERR;
	default:
		return SHIFT_WC_GENERAL_ERR;
	}
}

/* Length of what came back, for operations that return data. */
static enum shift_mlx5_refusal decode_request(const struct shift_mlx5_cqe64 *half,
					      struct shift_mlx5_cqe *cqe)
{
	switch (cqe->wqe_opcode) {
	case SHIFT_MLX5_OP_RDMA_READ:
		cqe->byte_len = be32_to_cpu(half->byte_count);
		return SHIFT_MLX5_DECODED;
	case SHIFT_MLX5_OP_ATOMIC_CS:
	case SHIFT_MLX5_OP_ATOMIC_FA:
		cqe->byte_len = sizeof(u64);
		return SHIFT_MLX5_DECODED;
	case SHIFT_MLX5_OP_NOP:		/* canceled before the device took it */
	case SHIFT_MLX5_OP_SEND_INVAL:
	case SHIFT_MLX5_OP_RDMA_WRITE:
	case SHIFT_MLX5_OP_RDMA_WRITE_IMM:
	case SHIFT_MLX5_OP_SEND:
	case SHIFT_MLX5_OP_SEND_IMM:
	case SHIFT_MLX5_OP_UMR:
		return SHIFT_MLX5_DECODED;
	default:
		return SHIFT_MLX5_OPCODE;
	}
}

/* A small message may be in the entry itself.  @before: the 64 bytes before it, or NULL. */
static enum shift_mlx5_refusal decode_inline(const struct shift_mlx5_cqe64 *half,
					     const u8 *before, u32 format,
					     struct shift_mlx5_cqe *cqe)
{
	const u8 *from = (const u8 *)half;
	u32 room = sizeof(half->reserved0);

	if (format == SHIFT_MLX5_CQE_DATA_64) {
		from = before;
		room = HALF;
	} else if (before && cqe->opcode == SHIFT_MLX5_CQE_REQ) {
		return SHIFT_MLX5_INLINE_SIZE;	/* may be in either half */
	}
	if (!from || cqe->byte_len > room ||
	    (cqe->opcode == SHIFT_MLX5_CQE_REQ && !cqe->byte_len))
		return SHIFT_MLX5_INLINE_SIZE;
	cqe->data_len = cqe->byte_len;
	memcpy(cqe->data, from, cqe->data_len);
	return SHIFT_MLX5_DECODED;
}

/**
 * shift_mlx5_decode_cqe() - an entry of a completion ring
 * @cq: the ring.
 * @index: the consumer's, which runs on; masked here.
 * @cqe: the result.
 *
 * Return: SHIFT_MLX5_DECODED or why not; SHIFT_MLX5_EMPTY if the device has not written
 * it yet.
 */
enum shift_mlx5_refusal
shift_mlx5_decode_cqe(const struct shift_mlx5_cq *cq, u32 index, struct shift_mlx5_cqe *cqe)
{
	struct shift_mlx5_cqe64 half;
	const u8 *before = NULL;
	enum shift_mlx5_refusal why = SHIFT_MLX5_DECODED;
	u8 first[HALF];
	const u8 *entry;
	u32 format;

	memset(cqe, 0, sizeof(*cqe));
	if (!cq->ring || !cq->entries || cq->entries > MAX_ENTRIES ||
	    (cq->entries & (cq->entries - 1)) || (cq->stride != HALF && cq->stride != 2 * HALF))
		return SHIFT_MLX5_GEOMETRY;

	entry = (const u8 *)cq->ring + (size_t)(index & (cq->entries - 1)) * cq->stride;
	if (cq->stride != HALF) {
		memcpy(first, entry, sizeof(first));
		before = first;
		entry += HALF;
	}
	memcpy(&half, entry, sizeof(half));
	barrier();
	if (!shift_mlx5_cqe_ours(half.op_own, index, cq->entries))
		return SHIFT_MLX5_EMPTY;

	cqe->opcode = half.op_own >> 4;
	format = (half.op_own >> 2) & 3;
	if (format == SHIFT_MLX5_CQE_COMPRESSED)
		return SHIFT_MLX5_COMPRESSED;
	cqe->solicited = half.op_own & 2;
	cqe->wqe_index = be16_to_cpu(half.wqe_index);
	cqe->qpn = be32_to_cpu(half.opcode_qpn) & SHIFT_MLX5_QPN_MASK;
	cqe->user_index = be32_to_cpu(half.user_index) & SHIFT_MLX5_QPN_MASK;

	switch (cqe->opcode) {
	case SHIFT_MLX5_CQE_REQ:
		cqe->wqe_opcode = be32_to_cpu(half.opcode_qpn) >> 24;
		why = decode_request(&half, cqe);
		break;
	case SHIFT_MLX5_CQE_RECV_WRITE_IMM:
	case SHIFT_MLX5_CQE_RECV_IMM:
		cqe->imm = (__force u32)half.imm;
		cqe->byte_len = be32_to_cpu(half.byte_count);
		break;
	case SHIFT_MLX5_CQE_RECV_INV:
		cqe->imm = be32_to_cpu(half.imm);
		fallthrough;
	case SHIFT_MLX5_CQE_RECV:
		cqe->byte_len = be32_to_cpu(half.byte_count);
		break;
	case SHIFT_MLX5_CQE_RESIZE:
		return SHIFT_MLX5_DECODED;
	case SHIFT_MLX5_CQE_REQ_ERR:
		cqe->wqe_opcode = be32_to_cpu(half.opcode_qpn) >> 24;
		fallthrough;
	case SHIFT_MLX5_CQE_RECV_ERR:
		cqe->status = status_of(half.syndrome);
		cqe->vendor = half.vendor_syndrome;
		return SHIFT_MLX5_DECODED;
	default:
		return SHIFT_MLX5_OPCODE;
	}
	if (why)
		return why;
	if (cqe->opcode != SHIFT_MLX5_CQE_REQ && half.app != APP_NONE)
		return SHIFT_MLX5_APP;
	return format == SHIFT_MLX5_CQE_PLAIN ? SHIFT_MLX5_DECODED :
						decode_inline(&half, before, format, cqe);
}
