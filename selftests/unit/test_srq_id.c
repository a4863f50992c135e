// SPDX-License-Identifier: GPL-2.0
/* Which receives of an SRQ are outstanding: kmod/tag.c */
#include "ktap.h"
#include "pure/srq_id.h"

#define KEY		0x87654321u
#define ENTRIES		8u

static u32 tag(u32 index, u32 generation)
{
	return index | generation << 16;
}

static void of(struct ktap *t)
{
	u64 key = (u64)KEY << 32;

	EXPECT_EQ(t, shift_srq_id_of(key | tag(3, 1), KEY, ENTRIES), tag(3, 1));
	EXPECT_EQ(t, shift_srq_id_of(key | tag(7, 0xffff), KEY, ENTRIES), tag(7, 0xffff));
	EXPECT_EQ(t, shift_srq_id_of(key | tag(8, 1), KEY, ENTRIES), SHIFT_TAG_NONE);
	EXPECT_EQ(t, shift_srq_id_of(key | tag(3, 0), KEY, ENTRIES), SHIFT_TAG_NONE);
	EXPECT_EQ(t, shift_srq_id_of(tag(3, 1), KEY, ENTRIES), SHIFT_TAG_NONE);
	EXPECT_EQ(t, shift_srq_id_of((key + (1ull << 32)) | tag(3, 1), KEY, ENTRIES), SHIFT_TAG_NONE);
}

/* Fills one entry as a provider does. */
static void put(struct shift_srq_id *tags, u32 index, u32 generation, u64 seq)
{
	tags[index] = (struct shift_srq_id) { .seq = seq, .tag = tag(index, generation) };
}

static void order(struct ktap *t)
{
	struct shift_srq_id tags[ENTRIES] = { { 0 } };
	u32 known[ENTRIES] = { 0 };

	put(tags, 1, 1, 12);
	put(tags, 5, 3, 10);
	put(tags, 7, 1, 11);
	EXPECT_EQ(t, shift_srq_ids_outstanding(tags, ENTRIES, known, 13), 3u);
	EXPECT_EQ(t, tags[0].tag, tag(5, 3));
	EXPECT_EQ(t, tags[1].tag, tag(7, 1));
	EXPECT_EQ(t, tags[2].tag, tag(1, 1));
}

/* A completion that lies in a CQ counts for the generation that it names. */
static void known_ones(struct ktap *t)
{
	struct shift_srq_id tags[ENTRIES] = { { 0 } };
	u32 known[ENTRIES] = { 0 };

	put(tags, 0, 1, 5);
	put(tags, 1, 2, 6);
	put(tags, 2, 4, 7);
	known[0] = tag(0, 1);
	known[1] = tag(1, 1);		/* it was posted again since */
	EXPECT_EQ(t, shift_srq_ids_outstanding(tags, ENTRIES, known, 8), 2u);
	EXPECT_EQ(t, tags[0].tag, tag(1, 2));
	EXPECT_EQ(t, tags[1].tag, tag(2, 4));
}

/* What is posted behind the look is left to the next one; numbers may wrap. */
static void posted(struct ktap *t)
{
	struct shift_srq_id tags[ENTRIES] = { { 0 } };
	u32 known[ENTRIES] = { 0 };

	put(tags, 0, 1, (u64)-1);
	put(tags, 1, 1, 0);
	put(tags, 2, 1, 1);
	EXPECT_EQ(t, shift_srq_ids_outstanding(tags, ENTRIES, known, 1), 2u);
	EXPECT_EQ(t, tags[0].tag, tag(0, 1));
	EXPECT_EQ(t, tags[1].tag, tag(1, 1));
}

/* The table is the user's: whatever it says, each entry counts at most once. */
static void garbage(struct ktap *t)
{
	struct shift_srq_id tags[ENTRIES];
	u32 known[ENTRIES] = { 0 }, seed = 1, i, n, round;

	for (i = 0; i < ENTRIES; i++)
		put(tags, i, 0, i);
	EXPECT_EQ(t, shift_srq_ids_outstanding(tags, ENTRIES, known, 100), 0u);
	for (i = 0; i < ENTRIES; i++)
		tags[i] = (struct shift_srq_id) { .seq = i, .tag = tag(2, 1) };
	EXPECT_EQ(t, shift_srq_ids_outstanding(tags, ENTRIES, known, 100), 1u);
	for (round = 0; round < 10000; round++) {
		u32 mask = 0;

		for (i = 0; i < ENTRIES; i++) {
			seed = seed * 1664525 + 1013904223;
			tags[i].tag = seed & 0x8000 ? seed : tag(i, seed >> 24 & 0xff);
			tags[i].seq = seed >> 16;
		}
		n = shift_srq_ids_outstanding(tags, ENTRIES, known, 1 << 15);
		EXPECT(t, n <= ENTRIES);
		for (i = 0; i < n; i++) {
			u32 index = tags[i].tag & 0xffff;

			EXPECT(t, index < ENTRIES && !(mask & 1u << index));
			EXPECT(t, !i || tags[i].seq >= tags[i - 1].seq);
			mask |= 1u << index;
		}
	}
}

static const struct ktap_case cases[] = {
	KTAP_CASE(of),
	KTAP_CASE(order),
	KTAP_CASE(known_ones),
	KTAP_CASE(posted),
	KTAP_CASE(garbage),
};

KTAP_SUITE(tag, cases);
