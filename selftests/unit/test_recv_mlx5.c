// SPDX-License-Identifier: GPL-2.0
/* Decoding of mlx5's receive rings: what the golden rings do not have, and each refusal. */
#include "provider/mlx5/wqe.h"
#include "ktap.h"

static u8 ring[SHIFT_MLX5_MAX_SLOT];
static struct shift_wr recv;

static void put_recv(u8 *slot, u32 n, u64 addr, u32 length, u32 lkey)
{
	struct shift_mlx5_data data = {
		.byte_count = cpu_to_be32(length), .lkey = cpu_to_be32(lkey),
		.addr = cpu_to_be64(addr),
	};

	memcpy(slot + n * sizeof(data), &data, sizeof(data));
}

static void receives(struct ktap *t)
{
	struct shift_mlx5_rq rq = { .ring = ring, .slots = 4, .slot_size = 1024 };
	u32 i;

	/* 64 entries, of which 32 are one too few */
	for (i = 0; i < 64; i++)
		put_recv(ring + 1024, i, i, 1, i);
	EXPECT_EQ(t, shift_mlx5_decode_recv(&rq, 1, &recv), SHIFT_MLX5_SGES);
	put_recv(ring + 1024, 32, 0, 0, SHIFT_MLX5_END_LKEY);
	EXPECT_EQ(t, shift_mlx5_decode_recv(&rq, 0xfffd, &recv), 0);
	EXPECT(t, recv.num_sge == 32 && recv.length == 32 && recv.sge[31].lkey == 31);
	put_recv(ring + 1024, 3, 0, 0, 5);
	EXPECT_EQ(t, shift_mlx5_decode_recv(&rq, 1, &recv), SHIFT_MLX5_LENGTH);
	put_recv(ring + 1024, 3, 0, 1u << 31, 5);
	EXPECT_EQ(t, shift_mlx5_decode_recv(&rq, 1, &recv), SHIFT_MLX5_LENGTH);
	put_recv(ring + 1024, 3, 0, 0x7fffffff, 5);
	EXPECT_EQ(t, shift_mlx5_decode_recv(&rq, 1, &recv), SHIFT_MLX5_LENGTH);

	rq.slot_size = 16;
	put_recv(ring + 16, 0, 1, 2, 3);
	put_recv(ring + 16, 1, 1, 0, 3);	/* the next slot's */
	EXPECT_EQ(t, shift_mlx5_decode_recv(&rq, 1, &recv), 0);
	EXPECT_EQ(t, recv.num_sge, 1);
	rq.signature = true;
	EXPECT_EQ(t, shift_mlx5_decode_recv(&rq, 1, &recv), SHIFT_MLX5_SIGNED);
	rq.signature = false;

	for (i = 0; i < 5000; i++) {
		rq.slot_size = i;
		rq.slots = 0;
		EXPECT_EQ(t, shift_mlx5_decode_recv(&rq, 0, &recv), SHIFT_MLX5_GEOMETRY);
		rq.slots = 3;
		EXPECT_EQ(t, shift_mlx5_decode_recv(&rq, 0, &recv), SHIFT_MLX5_GEOMETRY);
		rq.slots = 1;
		EXPECT_EQ(t, shift_mlx5_decode_recv(&rq, 0, &recv) == SHIFT_MLX5_GEOMETRY,
			  !i || i % 16 || i > SHIFT_MLX5_MAX_SLOT);
	}
}

static void shared_receives(struct ktap *t)
{
	struct shift_mlx5_rq rq = { .ring = ring, .slots = 5, .slot_size = 32 };
	struct shift_mlx5_srq_next *head = (void *)ring;
	u16 next;

	memset(ring, 0, sizeof(ring));
	put_recv(ring, 1, 1, 2, 3);
	head->next = cpu_to_be16(4);
	EXPECT_EQ(t, shift_mlx5_decode_srq(&rq, 0, &recv, &next), 0);
	EXPECT(t, next == 4 && recv.num_sge == 1 && recv.length == 2);
	put_recv(ring, 1, 1, 0, 3);	/* ibv_post_srq_recv leaves these */
	EXPECT_EQ(t, shift_mlx5_decode_srq(&rq, 0, &recv, &next), SHIFT_MLX5_LENGTH);
	EXPECT_EQ(t, next, 4);
	head->signature = 1;
	EXPECT_EQ(t, shift_mlx5_decode_srq(&rq, 0, &recv, &next), SHIFT_MLX5_SIGNED);
	head->signature = 0;
	head->next = cpu_to_be16(5);
	EXPECT_EQ(t, shift_mlx5_decode_srq(&rq, 0, &recv, &next), SHIFT_MLX5_LINK);
	head->next = 0;
	EXPECT_EQ(t, shift_mlx5_decode_srq(&rq, 5, &recv, &next), SHIFT_MLX5_GEOMETRY);
	rq.slot_size = 16;
	EXPECT_EQ(t, shift_mlx5_decode_srq(&rq, 0, &recv, &next), SHIFT_MLX5_GEOMETRY);
}

/* What the kernel writes is read as what was posted, in slots of all sizes. */
static void written_receives(struct ktap *t)
{
	static const struct shift_sge sge[] = {
		{ 0x1000, 64, 5 }, { 0x2000, 0, 6 }, { 0x3000, 32, 7 }, { 0x4000, 1, 8 },
	};
	struct shift_mlx5_rq rq = { .ring = ring, .slots = 8 };
	u16 next;

	for (rq.slot_size = 32; rq.slot_size <= 128; rq.slot_size *= 2) {
		u32 n, room = rq.slot_size / 16 - 1;

		for (n = 0; n <= 4; n++) {
			u32 has = n < 2 ? n : n - 1, len;

			memset(ring, 0xff, sizeof(ring));
			len = shift_mlx5_encode_srq(ring, rq.slot_size, 5, sge, n);
			if (has > room) {
				EXPECT_EQ(t, len, 0);
				continue;
			}
			EXPECT(t, len && len <= rq.slot_size && ring[len] == 0xff);
			EXPECT_EQ(t, shift_mlx5_decode_srq(&rq, 0, &recv, &next), 0);
			EXPECT(t, next == 5 && recv.num_sge == has);
			EXPECT(t, !has || (recv.sge[0].addr == 0x1000 && recv.sge[0].lkey == 5));
			EXPECT(t, has < 2 || (recv.sge[1].addr == 0x3000 &&
					      recv.sge[1].length == 32));
		}
	}
	EXPECT_EQ(t, shift_mlx5_encode_srq(ring, 8, 0, sge, 0), 0);
}

static const struct ktap_case cases[] = {
	KTAP_CASE(receives),
	KTAP_CASE(shared_receives),
	KTAP_CASE(written_receives),
};

KTAP_SUITE(recv_mlx5, cases);
