// SPDX-License-Identifier: GPL-2.0
/* Rings that the real libmlx5 wrote are decoded as what it was asked for. */
#include "golden_mlx5.h"
#include "ktap.h"

#include "golden_mlx5.inc"

#define MAX_RING_BYTES	1024

static u8 ring[MAX_RING_BYTES];
static struct shift_mlx5_wqe wqe;
static struct shift_wr recv;

static u8 digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

static u32 read_ring(const struct golden_ring *g)
{
	const char *p = g->bytes;
	u32 n;

	for (n = 0; n < sizeof(ring) && p[0] && p[1]; n++, p += 2)
		ring[n] = digit(p[0]) << 4 | digit(p[1]);
	return n;
}

static void same(struct ktap *t, const struct golden_ring *g, const struct shift_wr *want,
		 const struct shift_wr *got)
{
	u32 failed = t->failed, i;

	EXPECT_EQ(t, got->opcode, want->opcode);
	EXPECT_EQ(t, got->flags, want->flags);
	EXPECT_EQ(t, got->length, want->length);
	EXPECT_EQ(t, got->imm, want->imm);
	EXPECT_EQ(t, got->rkey, want->rkey);
	EXPECT_EQ(t, got->remote_addr, want->remote_addr);
	EXPECT_EQ(t, got->compare_add, want->compare_add);
	EXPECT_EQ(t, got->swap, want->swap);
	EXPECT_EQ(t, got->compare_mask, 0);
	EXPECT_EQ(t, got->swap_mask, 0);
	EXPECT_EQ(t, got->access, want->access);
	EXPECT_EQ(t, got->mw_type, want->mw_type);
	EXPECT_EQ(t, got->num_sge, want->num_sge);
	for (i = 0; i < want->num_sge && i < SHIFT_WR_MAX_SGE; i++) {
		EXPECT_EQ(t, got->sge[i].addr, want->sge[i].addr);
		EXPECT_EQ(t, got->sge[i].length, want->sge[i].length);
		EXPECT_EQ(t, got->sge[i].lkey, want->sge[i].lkey);
	}
	if (EXPECT(t, !got->inline_data == !want->inline_data) && got->inline_data)
		EXPECT(t, !memcmp(got->inline_data, want->inline_data, want->length));
	if (t->failed != failed)
		ktap_print("    # in \"%s\" from %u\n", g->name, g->first);
}

static void check_sends(struct ktap *t, const struct golden_ring *g)
{
	struct shift_mlx5_sq sq = {
		.ring = ring, .blocks = g->blocks, .producer = g->producer, .qpn = g->qpn,
	};
	u16 at = g->first;
	u32 i;

	for (i = 0; i < g->num; i++) {
		ASSERT(t, shift_mlx5_decode(&sq, at, &wqe) == SHIFT_MLX5_DECODED);
		same(t, g, &golden_wrs[g->wrs + i], &wqe.wr);
		at += wqe.blocks;
	}
	EXPECT_EQ(t, at, g->producer);
}

static void check_receives(struct ktap *t, const struct golden_ring *g)
{
	struct shift_mlx5_rq rq = {
		.ring = ring, .slots = g->blocks, .slot_size = g->slot_size,
	};
	u16 at = g->first, next = 0;
	u32 i;

	for (i = 0; i < g->num; i++) {
		if (g->kind == GOLDEN_SRQ)
			EXPECT_EQ(t, shift_mlx5_decode_srq(&rq, at, &recv, &next), 0);
		else
			EXPECT_EQ(t, shift_mlx5_decode_recv(&rq, at, &recv), 0);
		same(t, g, &golden_wrs[g->wrs + i], &recv);
		at = g->kind == GOLDEN_SRQ ? next : at + 1;
	}
}

static void check_all(struct ktap *t, bool sends)
{
	u32 i, n = 0;

	for (i = 0; i < ARRAY_SIZE(golden_rings); i++) {
		const struct golden_ring *g = &golden_rings[i];

		if ((g->kind == GOLDEN_SEND) != sends)
			continue;
		ASSERT(t, g->wrs + g->num <= ARRAY_SIZE(golden_wrs));
		ASSERT(t, read_ring(g) == g->blocks * (sends ? SHIFT_MLX5_BLOCK : g->slot_size));
		if (sends)
			check_sends(t, g);
		else
			check_receives(t, g);
		n++;
	}
	EXPECT(t, n >= 2);
}

static void golden_sends(struct ktap *t)
{
	check_all(t, true);
}

static void golden_receives(struct ktap *t)
{
	check_all(t, false);
}

static const struct ktap_case cases[] = {
	KTAP_CASE(golden_sends),
	KTAP_CASE(golden_receives),
};

KTAP_SUITE(golden_mlx5, cases);
