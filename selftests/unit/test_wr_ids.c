// SPDX-License-Identifier: GPL-2.0
/* Which slot has a wr_id: kmod/pure/wr_ids.c */
#include "ktap.h"
#include "pure/wr_ids.h"

#define SLOTS	8u

struct fixture {
	struct shift_wr_ids ids;
	u64 mem[SLOTS * 4];
};

static void start(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	shift_wr_ids_init(&f->ids, f->mem, SLOTS);
}

static u32 post(struct fixture *f, u64 wr_id)
{
	u32 index = shift_wr_ids_take(&f->ids, wr_id);

	if (index != SHIFT_WR_NONE)
		shift_wr_ids_list(&f->ids, index);
	return index;
}

static void room(struct ktap *t)
{
	struct fixture f;
	u32 i, used = 0;

	start(&f);
	EXPECT(t, shift_wr_ids_size(SLOTS) <= sizeof(f.mem));
	for (i = 0; i < SLOTS; i++)
		used |= 1u << post(&f, 100 + i);
	EXPECT_EQ(t, used, (1u << SLOTS) - 1);
	EXPECT_EQ(t, f.ids.listed, SLOTS);
	EXPECT_EQ(t, post(&f, 7), SHIFT_WR_NONE);
	shift_wr_ids_free(&f.ids, 3);
	EXPECT_EQ(t, post(&f, 7), 3u);
	EXPECT_EQ(t, shift_wr_ids_find(&f.ids, 7), 3u);
}

/* Completions come in any order, whatever the wr_ids are. */
static void any_order(struct ktap *t)
{
	static const u32 order[SLOTS] = { 5, 0, 7, 2, 6, 1, 4, 3 };
	u64 steps[] = { 1, 64, 4096, 1ull << 32, 1ull << 40 };
	u32 at[SLOTS], i, s;
	struct fixture f;

	for (s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		start(&f);
		for (i = 0; i < SLOTS; i++)
			at[i] = post(&f, 0xffff888000000000ull + i * steps[s]);
		for (i = 0; i < SLOTS; i++) {
			u64 wr_id = 0xffff888000000000ull + order[i] * steps[s];

			EXPECT_EQ(t, shift_wr_ids_find(&f.ids, wr_id), at[order[i]]);
			shift_wr_ids_free(&f.ids, at[order[i]]);
			EXPECT_EQ(t, shift_wr_ids_find(&f.ids, wr_id), SHIFT_WR_NONE);
		}
		EXPECT_EQ(t, f.ids.listed, 0u);
	}
}

/* What is used and not listed keeps its slot, and is not found. */
static void unlisted(struct ktap *t)
{
	struct fixture f;
	u32 a, b;

	start(&f);
	a = post(&f, 1);
	b = post(&f, 2);
	shift_wr_ids_unlist(&f.ids, a);
	shift_wr_ids_unlist(&f.ids, a);
	EXPECT_EQ(t, f.ids.listed, 1u);
	EXPECT_EQ(t, shift_wr_ids_find(&f.ids, 1), SHIFT_WR_NONE);
	EXPECT_EQ(t, shift_wr_ids_find(&f.ids, 2), b);
	EXPECT(t, post(&f, 3) != a);
	shift_wr_ids_list(&f.ids, a);
	shift_wr_ids_list(&f.ids, a);
	EXPECT_EQ(t, shift_wr_ids_find(&f.ids, 1), a);
	EXPECT_EQ(t, f.ids.listed, 3u);
	shift_wr_ids_free(&f.ids, a);
	shift_wr_ids_free(&f.ids, a);
	EXPECT_EQ(t, post(&f, 4), a);
	EXPECT(t, post(&f, 5) != a);
}

/* A slot that is used again is told from what it was. */
static void generations(struct ktap *t)
{
	struct fixture f;
	u32 i, index;
	u16 was;

	start(&f);
	index = post(&f, 1);
	for (i = 0; i < 0x20000; i++) {
		was = f.ids.slot[index].generation;
		EXPECT(t, was);
		shift_wr_ids_free(&f.ids, index);
		if (post(&f, 1) != index || f.ids.slot[index].generation == was)
			break;
	}
	EXPECT_EQ(t, i, 0x20000u);
}

static const struct ktap_case cases[] = {
	KTAP_CASE(room),
	KTAP_CASE(any_order),
	KTAP_CASE(unlisted),
	KTAP_CASE(generations),
};

KTAP_SUITE(wr_ids, cases);
