// SPDX-License-Identifier: GPL-2.0
/*
 * Any bytes as an mlx5 queue pair that was stopped: the ring, the numbers of its sends and
 * what is said of its completions.  What comes out lies in the ring and leads to the producer.
 * The input is a head of HEAD bytes and then the ring and the numbers; short input repeats.
 */
#include <stdlib.h>
#include "pure/psn.h"
#include "provider/mlx5/rewind.h"

#define HEAD	20
#define QPN	0x4711

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(cond)	do { if (!(cond)) abort(); } while (0)

static u16 half(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static u32 word(const u8 *p)
{
	return (u32)half(p) << 16 | half(p + 2);
}

/*
 * WQEs whose heads say what they must, one behind the other to the producer, with numbers
 * without a gap: random ones are refused at once.
 */
static void repair(u8 *ring, u32 *heads, u32 blocks, u16 from, u16 producer, u32 number)
{
	u16 at = from, left;
	u8 *ctrl;

	while ((left = producer - at)) {
		ctrl = ring + (at & (blocks - 1)) * SHIFT_MLX5_BLOCK;
		heads[at & (blocks - 1)] = number++;
		ctrl[0] = 0;
		ctrl[1] = at >> 8;
		ctrl[2] = at;
		ctrl[4] = 0;
		ctrl[5] = QPN >> 8;
		ctrl[6] = QPN & 0xff;
		ctrl[7] &= 0x3f;
		if (!ctrl[7] || (ctrl[7] + 3) / 4 > left)
			ctrl[7] = 1;
		memset(ctrl + 8, 0, 3);
		at += (ctrl[7] + 3) / 4;
	}
}

/* from what was found to the producer, as a switch takes it over */
static void leads_to_producer(const struct shift_mlx5_view *v, u16 at)
{
	static struct shift_mlx5_wqe wqe;
	u32 n;

	for (n = 0; at != v->sq.producer; n++) {
		MUST(n < v->sq.blocks);
		MUST(!shift_mlx5_decode(&v->sq, at, &wqe) && wqe.blocks);
		at += wqe.blocks;
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct shift_mlx5_wqe wqe;
	struct shift_mlx5_rewind r;
	struct shift_mlx5_view v;
	const u8 *head = data;
	u32 blocks, bytes, n;
	u32 *heads;
	u8 *ring;
	int ret;

	if (size <= HEAD)
		return 0;
	data += HEAD;
	size -= HEAD;
	blocks = 1u << (head[0] & 7);
	bytes = blocks * SHIFT_MLX5_BLOCK;
	/* their own allocations, so that a byte too far is seen */
	ring = malloc(bytes);
	heads = malloc(blocks * sizeof(*heads));
	if (!ring || !heads) {
		free(ring);
		free(heads);
		return 0;
	}
	for (n = 0; n < bytes; n++)
		ring[n] = data[n % size];
	for (n = 0; n < blocks; n++)
		heads[n] = data[(n * 7 + 3) % size];

	v = (struct shift_mlx5_view) {
		.sq = {
			.ring = ring, .blocks = head[1] & 0x80 ? blocks - 1 : blocks,
			.producer = half(head + 2), .qpn = QPN,
		},
		.packets = head[1] & 0x40 ? word(head + 4) : head[7],
		.completed = head[1] & 1,
		.flushed = head[1] & 2,
		.last = half(head + 8),
		.first_flushed = half(head + 10),
		.heads = head[1] & 4 ? NULL : heads,
		.tail = word(head + 12),
		.start_psn = word(head + 16) & SHIFT_PSN_MASK,
		.mtu = head[1] & 0x20 ? head[16] : 256u << (head[16] & 3),
	};
	if (head[1] & 8)
		repair(ring, heads, blocks, v.sq.producer - head[18] % (blocks + 1),
		       v.sq.producer, v.tail - head[19] % (blocks + 1));

	ret = shift_mlx5_rewind(&v, &wqe, &r);
	MUST(!ret || ret == -ENODATA || ret == -EOPNOTSUPP || ret == -EINVAL);
	if (ret != -EINVAL)
		MUST((u16)(v.sq.producer - r.first) <= blocks);
	if (!ret) {
		MUST(r.first_psn <= SHIFT_PSN_MASK);
		leads_to_producer(&v, r.first);
	}
	free(ring);
	free(heads);
	return 0;
}
