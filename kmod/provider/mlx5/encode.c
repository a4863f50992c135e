// SPDX-License-Identifier: GPL-2.0
/* Writing a shared receive as libmlx5 does: pure. */
#include "provider/mlx5/format.h"
#include "provider/mlx5/wqe.h"
#include "pure/wr.h"

/**
 * shift_mlx5_encode_srq() - a shared receive as a WQE
 * @to: memory for it.
 * @size: bytes of a slot of the ring.
 * @next: index of the WQE that is posted next.
 * @sge: buffers; those of no bytes are left out, as their length would mean 2 GiB.
 * @num_sge: their number.
 *
 * Return: number of bytes to be written into the slot; 0: they do not fit.
 */
u32 shift_mlx5_encode_srq(void *to, u32 size, u16 next, const struct shift_sge *sge, u32 num_sge)
{
	struct shift_mlx5_srq_next head = { .next = cpu_to_be16(next) };
	struct shift_mlx5_data data;
	u32 i, len = sizeof(head);

	if (size < sizeof(head))
		return 0;
	memcpy(to, &head, sizeof(head));
	for (i = 0; i < num_sge; i++) {
		if (!sge[i].length)
			continue;
		if (len + sizeof(data) > size)
			return 0;
		data.byte_count = cpu_to_be32(sge[i].length);
		data.lkey = cpu_to_be32(sge[i].lkey);
		data.addr = cpu_to_be64(sge[i].addr);
		memcpy((u8 *)to + len, &data, sizeof(data));
		len += sizeof(data);
	}
	if (len + sizeof(data) > size)
		return len;
	memset(&data, 0, sizeof(data));
	data.lkey = cpu_to_be32(SHIFT_MLX5_END_LKEY);
	memcpy((u8 *)to + len, &data, sizeof(data));
	return len + sizeof(data);
}
