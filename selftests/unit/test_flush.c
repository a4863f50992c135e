// SPDX-License-Identifier: GPL-2.0
/* Flushes of sends and receives that share a CQ, told apart by their wr_ids. */
#include "provider/rxe/flush.h"
#include "ktap.h"

#define SLOTS	16
#define MANY	1024	/* slots of a big ring */

static u64 send_ring[MANY], recv_ring[MANY];
static struct shift_flush_queue sends, recvs;
static u64 cqe[2 * MANY];	/* oldest first */
static u32 cqes;
static struct rnd rnd = { 20261121 };

static void rings(u32 send_slots, u32 recv_slots)
{
	sends = (struct shift_flush_queue) {
		.raw = (u8 *)send_ring, .slots = send_slots, .slot_size = sizeof(u64),
		.end = rnd_below(&rnd, send_slots), .most = send_slots - 1,
	};
	recvs = (struct shift_flush_queue) {
		.raw = (u8 *)recv_ring, .slots = recv_slots, .slot_size = sizeof(u64),
		.end = rnd_below(&rnd, recv_slots), .most = recv_slots - 1,
	};
	cqes = 0;
}

/* the @nth newest */
static u64 *slot(const struct shift_flush_queue *q, u32 nth)
{
	return (u64 *)q->raw + ((q->end - 1 - nth) & (q->slots - 1));
}

/* rxe flushes the last @s and the last @r, in any order of the two */
static void flush(u32 s, u32 r)
{
	while (s || r) {
		bool send = r ? s && rnd_one_in(&rnd, 2) : true;

		cqe[cqes++] = send ? *slot(&sends, --s) : *slot(&recvs, --r);
	}
}

static int answer(u32 least)
{
	struct shift_flush f;
	u32 n;

	shift_flush_init(&f, &sends, &recvs);
	for (n = cqes; n; n--)
		shift_flush_take(&f, cqe[n - 1]);
	return shift_flush_sends(&f, least);
}

/* are the completions an interleaving of the last @s and the last @r? */
static bool fits(u32 s, u32 r)
{
	static bool ok[SLOTS + 1][SLOTS + 1];
	u32 i, j;

	if (s + r != cqes || s > sends.most || r > recvs.most)
		return false;
	for (i = 0; i <= s; i++)
		for (j = 0; j <= r; j++)
			ok[i][j] = (!i && !j) ||
				   (i && ok[i - 1][j] &&
				    cqe[i + j - 1] == *slot(&sends, s - i)) ||
				   (j && ok[i][j - 1] &&
				    cqe[i + j - 1] == *slot(&recvs, r - j));
	return ok[s][r];
}

/* wr_ids that tell them apart: as in ibv_rc_pingpong, or counted */
static void apart(struct ktap *t)
{
	u32 n, i, s, r;

	for (n = 0; n < 2000; n++) {
		rings(64, MANY);
		for (i = 0; i < MANY; i++) {
			send_ring[i] = n & 1 ? 2 : 1000000 + i;
			recv_ring[i] = n & 1 ? 1 : i;
		}
		s = rnd_below(&rnd, 64);
		r = rnd_below(&rnd, MANY);
		flush(s, r);
		EXPECT_EQ(t, answer(0), s);
		if (s)
			EXPECT_EQ(t, answer(s), s);
		EXPECT_EQ(t, answer(s + 1), -ENODATA);
	}
}

/* both count from the same number: equal wr_ids on both rings, and no doubt */
static void equal_counters(struct ktap *t)
{
	u32 n, i, s, r;

	for (n = 0; n < 2000; n++) {
		rings(64, 64);
		for (i = 0; i < 64; i++) {
			*slot(&sends, i) = 1000 - i;
			*slot(&recvs, i) = 1000 - i;
		}
		s = 1 + rnd_below(&rnd, 63);
		r = 1 + rnd_below(&rnd, 63);
		flush(s, r);
		EXPECT(t, answer(0) == (int)s || answer(0) == -ENODATA);
		if (s == r)
			EXPECT_EQ(t, answer(0), s);
	}
}

/* few different wr_ids, by comparison with trying all */
static void few_ids(struct ktap *t)
{
	u32 n, i, s, r, least, said = 0, doubt = 0;

	for (n = 0; n < 40000; n++) {
		u32 found = 0, count = 0, ids = 1 + rnd_below(&rnd, 5);
		int got;

		rings(SLOTS, SLOTS);
		sends.most = rnd_below(&rnd, SLOTS);
		recvs.most = rnd_below(&rnd, SLOTS);
		for (i = 0; i < SLOTS; i++) {
			send_ring[i] = rnd_below(&rnd, ids);
			recv_ring[i] = rnd_below(&rnd, ids) + rnd_below(&rnd, 2);
		}
		s = rnd_below(&rnd, sends.most + 1);
		r = rnd_below(&rnd, recvs.most + 1);
		flush(s, r);
		least = rnd_below(&rnd, s + 1);
		for (i = least; i <= cqes; i++)
			if (fits(i, cqes - i)) {
				found = i;
				count++;
			}
		got = answer(least);
		ASSERT(t, count);
		if (!EXPECT_EQ(t, got, count == 1 ? (int)found : -ENODATA))
			return;
		if (got >= 0)
			EXPECT_EQ(t, got, s);
		said += got >= 0;
		doubt += got < 0;
	}
	EXPECT(t, said > 1000 && doubt > 1000);
}

/* all wr_ids are 0: the totals may tell */
static void no_ids(struct ktap *t)
{
	rings(SLOTS, MANY);
	memset(send_ring, 0, sizeof(send_ring));
	memset(recv_ring, 0, sizeof(recv_ring));
	flush(5, 600);
	EXPECT_EQ(t, answer(0), -ENODATA);
	EXPECT_EQ(t, answer(5), -ENODATA);
	recvs.most = 600;
	EXPECT_EQ(t, answer(0), -ENODATA);
	EXPECT_EQ(t, answer(1), -ENODATA);
	sends.most = 5;
	EXPECT_EQ(t, answer(0), 5);
	sends.most = SLOTS - 1;
	recvs.most = 591;
	EXPECT_EQ(t, answer(0), -ENODATA);
	recvs.most = 590;
	EXPECT_EQ(t, answer(0), 15);
	recvs.most = 589;
	EXPECT_EQ(t, answer(0), -ENODATA);
}

/* nothing is decided by what is not followed */
static void too_many(struct ktap *t)
{
	u32 i;

	rings(MANY, MANY);
	memset(send_ring, 0, sizeof(send_ring));
	memset(recv_ring, 0, sizeof(recv_ring));
	flush(SHIFT_FLUSH_WIDTH, SHIFT_FLUSH_WIDTH);
	EXPECT_EQ(t, answer(0), -ENODATA);
	EXPECT_EQ(t, answer(2 * SHIFT_FLUSH_WIDTH), -ENODATA);
	/* the same number of equal ones, and then others that tell */
	for (i = 0; i < MANY; i++) {
		*slot(&sends, i) = i < SHIFT_FLUSH_WIDTH / 2 - 1 ? 0 : 1;
		*slot(&recvs, i) = i < SHIFT_FLUSH_WIDTH / 2 - 1 ? 0 : 2;
	}
	cqes = 0;
	flush(MANY - 1, 300);
	EXPECT_EQ(t, answer(0), MANY - 1);
}

/* what no flush of these rings can have left */
static void nonsense(struct ktap *t)
{
	u32 n, i;

	rings(SLOTS, SLOTS);
	EXPECT_EQ(t, answer(0), 0);
	EXPECT_EQ(t, answer(1), -ENODATA);
	for (i = 0; i < SLOTS; i++) {
		send_ring[i] = 1;
		recv_ring[i] = 2;
	}
	flush(3, 3);
	cqe[2] = 7;
	EXPECT_EQ(t, answer(0), -ENODATA);
	/* more than there can be */
	cqes = 0;
	for (n = 0; n < 40; n++)
		cqe[cqes++] = 1;
	EXPECT_EQ(t, answer(0), -ENODATA);
	for (n = 0; n < 2000; n++) {
		rnd_fill(&rnd, cqe, sizeof(cqe));
		rnd_fill(&rnd, send_ring, sizeof(send_ring));
		rings(SLOTS, SLOTS);
		cqes = rnd_below(&rnd, 2 * MANY);
		EXPECT(t, answer(1) < (int)SLOTS);
	}
}

static const struct ktap_case cases[] = {
	KTAP_CASE(apart),
	KTAP_CASE(equal_counters),
	KTAP_CASE(few_ids),
	KTAP_CASE(no_ids),
	KTAP_CASE(too_many),
	KTAP_CASE(nonsense),
};

KTAP_SUITE(flush, cases);
