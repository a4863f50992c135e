// SPDX-License-Identifier: GPL-2.0
/*
 * Any bytes as mlx5's rings: what comes out stays inside of them.  The input is a head of
 * HEAD bytes (which ring, geometry, index) and then the ring; short input repeats.
 * seeds_mlx5.c makes inputs of the golden rings.
 */
#include <stdlib.h>
#include "provider/mlx5/wqe.h"

#define HEAD	12

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(cond)	do { if (!(cond)) abort(); } while (0)

static u16 half(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static void check_wr(const struct shift_wr *wr, const u8 *bytes, u32 room, u32 skip)
{
	struct shift_wr rest = *wr;
	u64 sum = 0;
	u32 i;

	MUST(wr->num_sge <= SHIFT_WR_MAX_SGE && wr->length <= SHIFT_WR_MAX_LENGTH);
	MUST(!(wr->flags & ~(SHIFT_WR_FENCE | SHIFT_WR_SIGNALED | SHIFT_WR_SOLICITED |
			     SHIFT_WR_INLINE)));
	MUST(!wr->inline_data == !(wr->flags & SHIFT_WR_INLINE));
	if (wr->inline_data) {
		MUST(wr->length && !wr->num_sge && wr->length <= room);
		MUST(wr->inline_data >= bytes && wr->inline_data + wr->length <= bytes + room);
	} else {
		for (i = 0; i < wr->num_sge; i++) {
			MUST(wr->sge[i].length);
			sum += wr->sge[i].length;
		}
		MUST(sum == wr->length);
	}
	if (shift_wr_movable(wr) && !shift_wr_skip(&rest, skip))
		MUST(rest.length == wr->length - skip);
}

/* all that was posted, as a switch would walk it */
static void sends(const u8 *head, const u8 *ring, u32 blocks, bool repair)
{
	struct shift_mlx5_sq sq = {
		.ring = ring, .blocks = blocks, .producer = half(head + 2),
		.qpn = head[6] << 16 | half(head + 9), .signature = head[1] & 0x80,
	};
	static struct shift_mlx5_wqe wqe;
	u16 at = sq.producer - half(head + 4) % (2 * blocks + 1);
	enum shift_mlx5_refusal why;
	u32 n;

	for (n = 0; n <= blocks; n++) {
		if (repair && blocks) {	/* a head that says what it must, so that what is behind counts */
			u8 *ctrl = (u8 *)ring + (at & (blocks - 1)) * SHIFT_MLX5_BLOCK;

			ctrl[1] = at >> 8;
			ctrl[2] = at;
			ctrl[4] = sq.qpn >> 16;
			ctrl[5] = sq.qpn >> 8;
			ctrl[6] = sq.qpn;
			ctrl[7] &= 0x3f;
			if (head[1] & 0x40)
				memset(ctrl + 8, 0, 3);
		}
		why = shift_mlx5_decode(&sq, at, &wqe);
		MUST(why < __SHIFT_MLX5_REFUSALS);
		MUST(shift_mlx5_refusal_errno(why) != -EINVAL || !wqe.blocks);
		if (!why)
			check_wr(&wqe.wr, wqe.bytes, sizeof(wqe.bytes), half(head + 7));
		if (!wqe.blocks)
			return;
		MUST(wqe.blocks <= SHIFT_MLX5_MAX_BLOCKS &&
		     wqe.blocks <= (u16)(sq.producer - at));
		at += wqe.blocks;
	}
	MUST(0);	/* more WQEs than blocks */
}

static void receives(const u8 *head, const struct shift_mlx5_rq *rq)
{
	static struct shift_wr wr;
	enum shift_mlx5_refusal why;
	u16 at = half(head + 2), next;
	u32 n;

	for (n = 0; n < rq->slots; n++) {
		why = shift_mlx5_decode_recv(rq, at + n, &wr);
		MUST(why < __SHIFT_MLX5_REFUSALS);
		if (!why)
			check_wr(&wr, NULL, 0, half(head + 7));
	}
	for (n = 0; n < rq->slots; n++, at = next) {
		why = shift_mlx5_decode_srq(rq, at, &wr, &next);
		MUST(why < __SHIFT_MLX5_REFUSALS);
		if (!why)
			check_wr(&wr, NULL, 0, half(head + 7));
		if (shift_mlx5_refusal_errno(why) == -EINVAL)
			return;
		MUST(next < rq->slots);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct shift_mlx5_rq rq = { 0 };
	const u8 *head = data;
	u32 blocks, bytes, n;
	u8 *ring;

	if (size <= HEAD)
		return 0;
	data += HEAD;
	size -= HEAD;
	blocks = head[1] & 0x08 ? head[11] & 31 : 1u << (head[0] & 7);
	rq.slots = head[1] & 0x20 ? 1 + (head[9] & 31) : blocks;
	rq.slot_size = head[1] & 0x10 ? head[10] : SHIFT_MLX5_CHUNK * (1 + (head[10] & 63));
	rq.signature = head[1] & 0x80;
	bytes = head[0] & 0x80 ? rq.slots * rq.slot_size : blocks * SHIFT_MLX5_BLOCK;

	/* its own allocation, so that a byte too far is seen */
	ring = malloc(bytes ? bytes : 1);
	if (!ring)
		return 0;
	for (n = 0; n < bytes; n++)
		ring[n] = data[n % size];
	if (head[0] & 0x80) {
		rq.ring = ring;
		receives(head, &rq);
	} else {
		sends(head, ring, blocks, head[0] & 0x40);
	}
	free(ring);
	return 0;
}
