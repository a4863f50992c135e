// SPDX-License-Identifier: GPL-2.0
/* mlx5: the oldest send without a completion, and its PSN, on rings that go round. */
#include "ktap.h"
#include "pure/psn.h"
#include "provider/mlx5/rewind.h"

#define BLOCKS	32
#define QPN	0x4711
#define MTU	1024
#define START	0xfffff0	/* soon round */

static u8 ring[BLOCKS * SHIFT_MLX5_BLOCK];
static u32 heads[BLOCKS], posted;
static struct shift_mlx5_view v;
static struct shift_mlx5_wqe wqe;
static struct shift_mlx5_rewind r;

static void put(u16 index, u32 chunk, const void *from)
{
	u32 at = (index & (BLOCKS - 1)) * SHIFT_MLX5_BLOCK + chunk * SHIFT_MLX5_CHUNK;

	memcpy(ring + at % sizeof(ring), from, SHIFT_MLX5_CHUNK);
}

/* a WRITE of @num pieces of @bytes each: its blocks */
static u32 post(u32 num, u32 bytes)
{
	struct shift_mlx5_ctrl ctrl = {
		.opmod_index_opcode = cpu_to_be32(v.sq.producer << 8 | SHIFT_MLX5_OP_RDMA_WRITE),
		.qpn_chunks = cpu_to_be32(QPN << 8 | (2 + num)),
	};
	struct shift_mlx5_raddr raddr = { .rkey = cpu_to_be32(1) };
	struct shift_mlx5_data data = { .byte_count = cpu_to_be32(bytes) };
	u32 i, blocks = (2 + num + 3) / 4;

	heads[v.sq.producer & (BLOCKS - 1)] = posted++;
	put(v.sq.producer, 0, &ctrl);
	put(v.sq.producer, 1, &raddr);
	for (i = 0; i < num; i++)
		put(v.sq.producer, 2 + i, &data);
	v.sq.producer += blocks;
	v.packets += shift_wr_packets(SHIFT_WR_RDMA_WRITE, num * bytes, MTU);
	return blocks;
}

static void start(void)
{
	memset(ring, 0, sizeof(ring));
	memset(heads, 0x5a, sizeof(heads));
	posted = 0;
	memset(&v, 0, sizeof(v));
	v.sq.ring = ring;
	v.sq.blocks = BLOCKS;
	v.sq.qpn = QPN;
	v.start_psn = START;
	v.mtu = MTU;
}

static void complete(u16 index)
{
	v.completed = true;
	v.last = index;
}

/* the application has polled so many, and nothing is in the CQ */
static void polled(u32 sends)
{
	v.completed = false;
	v.heads = heads;
	v.tail = sends;
}

/* so many of one packet and one block each */
static void post_small(u32 n)
{
	while (n--)
		post(1, 10);
}

static u32 psn_at(u64 packets)
{
	return (u32)(START + packets) & SHIFT_PSN_MASK;
}

static void nothing_posted(struct ktap *t)
{
	start();
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
	EXPECT_EQ(t, r.first, 0);
	EXPECT_EQ(t, r.first_psn, START);
}

static void nothing_completed(struct ktap *t)
{
	start();
	post(1, 100);
	post(2, 5000);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
	EXPECT_EQ(t, r.first, 0);
	EXPECT_EQ(t, r.first_psn, START);
}

static void all_completed(struct ktap *t)
{
	u16 last;

	start();
	post(1, 100);
	last = v.sq.producer;
	post(9, 3000);
	complete(last);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
	EXPECT_EQ(t, r.first, v.sq.producer);
	EXPECT_EQ(t, r.first_psn, psn_at(v.packets));
}

/*
 * Completions are in the CQ, or were polled, or both; what is older may be there beside.
 */
static void know(struct rnd *rnd, const u16 *index, u32 tail)
{
	u32 older = tail > 40 ? tail - rnd_below(rnd, 40) : tail;

	switch (rnd_below(rnd, 4)) {
	case 0:				/* not polled, or not known */
		polled(older);
		complete(index[(tail - 1) % 64]);
		v.heads = rnd_one_in(rnd, 2) ? heads : NULL;
		break;
	case 1:				/* polled, and an old one in the CQ */
		polled(tail);
		complete(index[(older - 1) % 64]);
		break;
	default:
		polled(tail);
	}
	if (!tail)
		polled(0);
}

/* many laps, also of the 16 bits; completions lag by up to a ring */
static void laps(struct ktap *t)
{
	u16 index[64];		/* of what is outstanding, and the one before */
	u64 psn[64];
	struct rnd rnd = { 7 };
	u32 i, n = 0, tail = 0, used = 0, blocks[64];

	start();
	for (i = 0; i < 200000; i++) {
		u32 num = 1 + rnd_below(&rnd, 20);
		u32 need = (2 + num + 3) / 4;

		while (used + need > BLOCKS || (n > tail && rnd_one_in(&rnd, 3))) {
			used -= blocks[tail % 64];
			tail++;
		}
		index[n % 64] = v.sq.producer;
		psn[n % 64] = v.packets;
		blocks[n % 64] = post(num, 1 + rnd_below(&rnd, 3000));
		used += need;
		n++;
		if (!rnd_one_in(&rnd, 8))
			continue;
		know(&rnd, index, tail);
		ASSERT(t, !shift_mlx5_rewind(&v, &wqe, &r));
		ASSERT(t, r.first == index[tail % 64]);
		ASSERT(t, r.first_psn == psn_at(psn[tail % 64]));
	}
}

/* what was completed last is overwritten already: the ring is full to its last block */
static void full(struct ktap *t)
{
	u32 i;

	start();
	post(2, 10);
	for (i = 0; i < BLOCKS; i++)
		post(1 + i % 2, 10);
	complete(0);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
	EXPECT_EQ(t, r.first, 1);
	EXPECT_EQ(t, r.first_psn, psn_at(1));
}

/* its completion was overwritten by others' */
static void completion_lost(struct ktap *t)
{
	u32 i;

	start();
	for (i = 0; i < 3 * BLOCKS; i++)
		post(1, 10);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), -ENODATA);
	EXPECT_EQ(t, r.first, (u16)(v.sq.producer - 1));
	/* also where the indices are those of the first lap again */
	for (; v.sq.producer != BLOCKS / 2; )
		post(1, 10);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), -ENODATA);
	EXPECT_EQ(t, r.first, BLOCKS / 2 - 1);
}

/* the same, but what is outstanding was flushed into it */
static void flushed(struct ktap *t)
{
	u32 i;

	start();
	for (i = 0; i < 3 * BLOCKS; i++)
		post(1, 10);
	v.flushed = true;
	v.first_flushed = v.sq.producer - 5;
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
	EXPECT_EQ(t, r.first, v.first_flushed);
	EXPECT_EQ(t, r.first_psn, psn_at(v.packets - 5));
}

/* its completion was overwritten by others', but it was polled before */
static void tail_knows(struct ktap *t)
{
	u32 i;

	start();
	post_small(3 * BLOCKS);
	for (i = 0; i <= BLOCKS; i++) {
		polled(posted - i);
		EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
		EXPECT_EQ(t, r.first, (u16)(v.sq.producer - i));
		EXPECT_EQ(t, r.first_psn, psn_at(v.packets - i));
	}
	/* in the CQ is one that is newer: not polled yet */
	complete(v.sq.producer - 2);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
	EXPECT_EQ(t, r.first, (u16)(v.sq.producer - 1));
	/* one that is older, and one that was overwritten */
	polled(posted);
	complete(v.sq.producer - 9);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
	EXPECT_EQ(t, r.first, v.sq.producer);
	complete(v.sq.producer - BLOCKS - 20);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
	EXPECT_EQ(t, r.first, v.sq.producer);
	/* nothing was polled, and nothing posted */
	start();
	polled(0);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
	EXPECT_EQ(t, r.first, 0);
	post_small(BLOCKS);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
	EXPECT_EQ(t, r.first, 0);
	EXPECT_EQ(t, r.first_psn, START);
}

/* a tail that none of the ring's has; what else there is tells, or nothing */
static void tail_wrong(struct ktap *t)
{
	static const u32 wrong[] = { 1, 2, 100, 0x7fffffff, 0xffffff00 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		start();
		post_small(3 * BLOCKS);
		polled(posted + wrong[i]);
		EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), -ENODATA);
		EXPECT_EQ(t, r.first, (u16)(v.sq.producer - 1));
		complete(v.sq.producer - 4);
		EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
		EXPECT_EQ(t, r.first, (u16)(v.sq.producer - 3));
		v.completed = false;
		v.flushed = true;
		v.first_flushed = v.sq.producer - 2;
		EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
		EXPECT_EQ(t, r.first, v.first_flushed);
	}
	/* numbers with a gap behind it, and all the same */
	start();
	post_small(2 * BLOCKS);
	polled(posted - 5);
	heads[(v.sq.producer - 3) & (BLOCKS - 1)]++;
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), -ENODATA);
	for (i = 0; i < BLOCKS; i++)
		heads[i] = 7;
	polled(7);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
	EXPECT_EQ(t, r.first, (u16)(v.sq.producer - 1));	/* its own harm */
	polled(9);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), -ENODATA);
}

/* numbers that were left over are not those of a WQE of the ring */
static void tail_stale(struct ktap *t)
{
	u32 i;

	/* the last lap's, inside of a large WQE, and of one that was not posted */
	start();
	post_small(BLOCKS);
	post(30, 10);
	post_small(2);
	heads[(BLOCKS + 3) & (BLOCKS - 1)] = BLOCKS + 1;
	heads[(BLOCKS + 4) & (BLOCKS - 1)] = BLOCKS + 2;
	heads[(v.sq.producer + 2) & (BLOCKS - 1)] = posted;
	for (i = 0; i < 4; i++) {
		polled(BLOCKS + i);
		EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
		EXPECT_EQ(t, r.first, i ? v.sq.producer - 3 + i : BLOCKS);
		EXPECT_EQ(t, r.first_psn, psn_at(BLOCKS + i));
	}
	/* a life before RESET, which ended where the indices go round */
	start();
	post_small(0x10000);
	v.packets = 0;
	posted = 0;
	post_small(4);
	for (i = 0; i <= 4; i++) {
		polled(i);
		EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
		EXPECT_EQ(t, r.first, i);
		EXPECT_EQ(t, r.first_psn, psn_at(i));
	}
	polled(0xffff);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
	EXPECT_EQ(t, r.first, 0);		/* no better than without it */
}

static void later(struct ktap *t)
{
	EXPECT_EQ(t, shift_mlx5_later(3, 5, 9), 5);
	EXPECT_EQ(t, shift_mlx5_later(5, 3, 9), 5);
	EXPECT_EQ(t, shift_mlx5_later(0xfffe, 1, 2), 1);
	EXPECT_EQ(t, shift_mlx5_later(0xfffe, 0xfff0, 2), 0xfffe);
	/* beyond the producer is far behind it */
	EXPECT_EQ(t, shift_mlx5_later(10, 7, 9), 7);
	EXPECT_EQ(t, shift_mlx5_later(9, 7, 9), 9);
}

static void not_covered(struct ktap *t)
{
	struct shift_mlx5_ctrl nop = { 0 };

	start();
	post(1, 10);
	nop.opmod_index_opcode = cpu_to_be32(v.sq.producer << 8 | SHIFT_MLX5_OP_NOP);
	nop.qpn_chunks = cpu_to_be32(QPN << 8 | 1);
	put(v.sq.producer, 0, &nop);
	v.sq.producer++;
	post(1, 10);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), -EOPNOTSUPP);
	EXPECT_EQ(t, r.first, 0);
	complete(1);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), 0);
	EXPECT_EQ(t, r.first, 2);
	EXPECT_EQ(t, r.first_psn, psn_at(1));
}

/* an anchor that counts less than there is */
static void wrong_anchor(struct ktap *t)
{
	start();
	post(1, 10);
	post(1, 5000);
	v.packets = 3;
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), -ENODATA);
	complete(0);
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), -ENODATA);
}

static void any_bytes(struct ktap *t)
{
	struct rnd rnd = { 11 };
	u32 i;

	start();
	for (i = 0; i < 3000; i++) {
		u32 blocks = 1u << rnd_below(&rnd, 6);

		rnd_fill(&rnd, ring, sizeof(ring));
		v.sq.blocks = blocks;
		v.sq.producer = rnd32(&rnd);
		v.packets = rnd64(&rnd) >> 16;
		v.completed = rnd_one_in(&rnd, 2);
		v.last = rnd_one_in(&rnd, 2) ? v.sq.producer - 1u : rnd32(&rnd);
		v.heads = rnd_one_in(&rnd, 4) ? NULL : heads;
		rnd_fill(&rnd, heads, sizeof(heads));
		v.tail = rnd_one_in(&rnd, 2) ? heads[0] : rnd32(&rnd);
		if (shift_mlx5_rewind(&v, &wqe, &r) != -EINVAL)
			EXPECT(t, (u16)(v.sq.producer - r.first) <= blocks);
	}
	v.sq.blocks = 3;
	EXPECT_EQ(t, shift_mlx5_rewind(&v, &wqe, &r), -EINVAL);
}

static const struct ktap_case cases[] = {
	KTAP_CASE(nothing_posted), KTAP_CASE(nothing_completed), KTAP_CASE(all_completed),
	KTAP_CASE(laps), KTAP_CASE(full), KTAP_CASE(completion_lost), KTAP_CASE(flushed),
	KTAP_CASE(tail_knows), KTAP_CASE(tail_wrong), KTAP_CASE(tail_stale), KTAP_CASE(later),
	KTAP_CASE(not_covered), KTAP_CASE(wrong_anchor), KTAP_CASE(any_bytes),
};

KTAP_SUITE(rewind_mlx5, cases);
