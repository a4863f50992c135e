// SPDX-License-Identifier: GPL-2.0
/* How many packet sequence numbers an operation takes (IBA 9.7.2, 9.4.4). */
#include "pure/psn.h"
#include "pure/wr.h"

/**
 * shift_wr_packets() - request PSNs that an operation takes
 * @opcode: SHIFT_WR_*; one that is not covered counts as one packet.
 * @length: bytes in all.
 * @mtu: path MTU in bytes; 0 is taken as "fits".
 *
 * A READ takes the PSNs of its responses.  Local operations take none.
 *
 * Return: number of PSNs, 1 at least for anything that goes over the wire.
 */
u32 shift_wr_packets(u32 opcode, u32 length, u32 mtu)
{
	switch (opcode) {
	case SHIFT_WR_LOCAL_INV:
	case SHIFT_WR_BIND_MW:
	case SHIFT_WR_REG_MR:
		return 0;
	case SHIFT_WR_RDMA_WRITE:
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
	case SHIFT_WR_SEND:
	case SHIFT_WR_SEND_WITH_IMM:
	case SHIFT_WR_SEND_WITH_INV:
	case SHIFT_WR_RDMA_READ:
	case SHIFT_WR_RDMA_READ_WITH_INV:
		if (!length || !mtu)
			return 1;
		return length / mtu + !!(length % mtu);
	default:
		return 1;
	}
}
