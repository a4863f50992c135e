// SPDX-License-Identifier: GPL-2.0
/* Which receives of an SRQ are outstanding: kmod/id.c */
#include "ktap.h"
#include "pure/srq_id.h"

#define KEY		0x87654321u
#define ENTRIES		8u

static u32 recv_id(u32 index, u32 generation)
{
	return index | generation << 16;
}

static void of(struct ktap *t)
{
	u64 key = (u64)KEY << 32;

	EXPECT_EQ(t, shift_srq_id_of(key | recv_id(3, 1), KEY, ENTRIES), recv_id(3, 1));
	EXPECT_EQ(t, shift_srq_id_of(key | recv_id(7, 0xffff), KEY, ENTRIES), recv_id(7, 0xffff));
	EXPECT_EQ(t, shift_srq_id_of(key | recv_id(8, 1), KEY, ENTRIES), SHIFT_RECV_ID_NONE);
	EXPECT_EQ(t, shift_srq_id_of(key | recv_id(3, 0), KEY, ENTRIES), SHIFT_RECV_ID_NONE);
	EXPECT_EQ(t, shift_srq_id_of(recv_id(3, 1), KEY, ENTRIES), SHIFT_RECV_ID_NONE);
	EXPECT_EQ(t, shift_srq_id_of((key + (1ull << 32)) | recv_id(3, 1), KEY, ENTRIES),
		  SHIFT_RECV_ID_NONE);
}

/* Fills one entry as a provider does. */
static void put(struct shift_srq_id *ids, u32 index, u32 generation, u64 seq)
{
	ids[index] = (struct shift_srq_id) { .seq = seq, .recv_id = recv_id(index, generation) };
}

static void order(struct ktap *t)
{
	struct shift_srq_id ids[ENTRIES] = { { 0 } };
	u32 known[ENTRIES] = { 0 };

	put(ids, 1, 1, 12);
	put(ids, 5, 3, 10);
	put(ids, 7, 1, 11);
	EXPECT_EQ(t, shift_srq_ids_outstanding(ids, ENTRIES, known, 13), 3u);
	EXPECT_EQ(t, ids[0].recv_id, recv_id(5, 3));
	EXPECT_EQ(t, ids[1].recv_id, recv_id(7, 1));
	EXPECT_EQ(t, ids[2].recv_id, recv_id(1, 1));
}

/* A completion that lies in a CQ counts for the generation that it names. */
static void known_ones(struct ktap *t)
{
	struct shift_srq_id ids[ENTRIES] = { { 0 } };
	u32 known[ENTRIES] = { 0 };

	put(ids, 0, 1, 5);
	put(ids, 1, 2, 6);
	put(ids, 2, 4, 7);
	known[0] = recv_id(0, 1);
	known[1] = recv_id(1, 1);		/* it was posted again since */
	EXPECT_EQ(t, shift_srq_ids_outstanding(ids, ENTRIES, known, 8), 2u);
	EXPECT_EQ(t, ids[0].recv_id, recv_id(1, 2));
	EXPECT_EQ(t, ids[1].recv_id, recv_id(2, 4));
}

/* What is posted behind the look is left to the next one; numbers may wrap. */
static void posted(struct ktap *t)
{
	struct shift_srq_id ids[ENTRIES] = { { 0 } };
	u32 known[ENTRIES] = { 0 };

	put(ids, 0, 1, (u64)-1);
	put(ids, 1, 1, 0);
	put(ids, 2, 1, 1);
	EXPECT_EQ(t, shift_srq_ids_outstanding(ids, ENTRIES, known, 1), 2u);
	EXPECT_EQ(t, ids[0].recv_id, recv_id(0, 1));
	EXPECT_EQ(t, ids[1].recv_id, recv_id(1, 1));
}

/* The table is the user's: whatever it says, each entry counts at most once. */
static void garbage(struct ktap *t)
{
	struct shift_srq_id ids[ENTRIES];
	u32 known[ENTRIES] = { 0 }, seed = 1, i, n, round;

	for (i = 0; i < ENTRIES; i++)
		put(ids, i, 0, i);
	EXPECT_EQ(t, shift_srq_ids_outstanding(ids, ENTRIES, known, 100), 0u);
	for (i = 0; i < ENTRIES; i++)
		ids[i] = (struct shift_srq_id) { .seq = i, .recv_id = recv_id(2, 1) };
	EXPECT_EQ(t, shift_srq_ids_outstanding(ids, ENTRIES, known, 100), 1u);
	for (round = 0; round < 10000; round++) {
		u32 mask = 0;

		for (i = 0; i < ENTRIES; i++) {
			seed = seed * 1664525 + 1013904223;
			ids[i].recv_id = seed & 0x8000 ? seed : recv_id(i, seed >> 24 & 0xff);
			ids[i].seq = seed >> 16;
		}
		n = shift_srq_ids_outstanding(ids, ENTRIES, known, 1 << 15);
		EXPECT(t, n <= ENTRIES);
		for (i = 0; i < n; i++) {
			u32 index = ids[i].recv_id & 0xffff;

			EXPECT(t, index < ENTRIES && !(mask & 1u << index));
			EXPECT(t, !i || ids[i].seq >= ids[i - 1].seq);
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

KTAP_SUITE(srq_id, cases);
