// SPDX-License-Identifier: GPL-2.0
/* Any bytes as mlx5's completion ring: a head of HEAD bytes (geometry), then the ring. */
#include <stdlib.h>
#include "provider/mlx5/cqe.h"

#define HEAD	6

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(cond)	do { if (!(cond)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct shift_mlx5_cq cq = { 0 };
	enum shift_mlx5_refusal why;
	struct shift_mlx5_cqe cqe;
	const u8 *head = data;
	u32 index, n, bytes;
	u8 *ring;

	if (size <= HEAD)
		return 0;
	data += HEAD;
	size -= HEAD;
	memcpy(&index, head, sizeof(index));
	cq.entries = head[4] & 0x80 ? head[4] & 15 : 1u << (head[4] & 3);
	cq.stride = head[5] & 0x80 ? head[5] & 0x7f : head[5] & 1 ? 128 : 64;
	bytes = cq.entries * cq.stride;
	ring = malloc(bytes ? bytes : 1);
	if (!ring)
		return 0;
	for (n = 0; n < bytes; n++)
		ring[n] = data[n % size];
	cq.ring = ring;

	for (n = 0; n <= 2 * cq.entries; n++) {
		why = shift_mlx5_decode_cqe(&cq, index + n, &cqe);
		MUST(why < __SHIFT_MLX5_REFUSALS);
		MUST(cqe.qpn <= SHIFT_MLX5_QPN_MASK && cqe.user_index <= SHIFT_MLX5_QPN_MASK);
		MUST(cqe.opcode < SHIFT_MLX5_CQE_INVALID && cqe.data_len <= sizeof(cqe.data));
		MUST(cqe.status <= SHIFT_WC_GENERAL_ERR);
		if (!why && cqe.data_len)
			MUST(cqe.data_len == cqe.byte_len);
		if (why)
			MUST(!cqe.data_len);
	}
	free(ring);
	return 0;
}
