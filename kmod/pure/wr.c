// SPDX-License-Identifier: GPL-2.0
/* Work requests in their common form. */
#include "pure/wr.h"

/**
 * shift_wr_movable() - can the operation be posted on another device?
 * @wr: the request.
 *
 * Operations on memory keys (windows, registrations and invalidations) cannot yet.
 */
bool shift_wr_movable(const struct shift_wr *wr)
{
	switch (wr->opcode) {
	case SHIFT_WR_RDMA_WRITE:
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
	case SHIFT_WR_SEND:
	case SHIFT_WR_SEND_WITH_IMM:
	case SHIFT_WR_RDMA_READ:
	case SHIFT_WR_ATOMIC_CMP_AND_SWP:
	case SHIFT_WR_ATOMIC_FETCH_AND_ADD:
		return true;
	default:
		return false;
	}
}

/**
 * shift_wr_skip() - resume a transfer behind what was delivered
 * @wr: the request; changed in place, only on success.
 * @bytes: bytes from its beginning that need not be transferred again.
 *
 * Only an RDMA WRITE or READ can be resumed: a SEND begins a new receive.
 *
 * Return: 0, or -EINVAL if @bytes is more than the request has, the operation
 * cannot be resumed, or @wr does not hold @bytes in its buffers.
 */
int shift_wr_skip(struct shift_wr *wr, u32 bytes)
{
	u32 left = bytes;
	u32 i, n;

	if (!bytes)
		return 0;
	if (bytes > wr->length)
		return -EINVAL;

	switch (wr->opcode) {
	case SHIFT_WR_RDMA_WRITE:
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
	case SHIFT_WR_RDMA_READ:
		break;
	default:
		return -EINVAL;
	}

	if (wr->flags & SHIFT_WR_INLINE) {
		wr->inline_data += bytes;
	} else {
		if (wr->num_sge > SHIFT_WR_MAX_SGE)
			return -EINVAL;

		for (i = 0; i < wr->num_sge && left >= wr->sge[i].length; i++)
			left -= wr->sge[i].length;
		if (i == wr->num_sge && left)
			return -EINVAL;

		for (n = 0; i < wr->num_sge; i++, n++)
			wr->sge[n] = wr->sge[i];
		wr->num_sge = n;
		if (left) {
			wr->sge[0].addr += left;
			wr->sge[0].length -= left;
		}
	}

	wr->remote_addr += bytes;
	wr->length -= bytes;
	return 0;
}
