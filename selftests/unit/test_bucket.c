// SPDX-License-Identifier: GPL-2.0
/* Allowances: kmod/pure/bucket.h */
#include "ktap.h"
#include "pure/bucket.h"

#define EVERY	100u
#define MOST	4u

/* How many can be taken at a time? */
static u32 drain(struct shift_bucket *b, u64 now)
{
	u32 n = 0;

	while (n < 1000 && shift_bucket_take(b, now, EVERY, MOST))
		n++;
	return n;
}

static void at_once(struct ktap *t)
{
	struct shift_bucket b = { 0 };

	EXPECT_EQ(t, drain(&b, 5000), MOST);
	EXPECT(t, !shift_bucket_has(&b, 5000, EVERY, MOST));
	EXPECT_EQ(t, drain(&b, 5000), 0u);
}

static void refilled(struct ktap *t)
{
	struct shift_bucket b = { 0 };

	drain(&b, 5000);
	EXPECT_EQ(t, drain(&b, 5000 + EVERY - 1), 0u);
	EXPECT(t, shift_bucket_has(&b, 5000 + EVERY, EVERY, MOST));
	EXPECT_EQ(t, drain(&b, 5000 + EVERY), 1u);
	EXPECT_EQ(t, drain(&b, 5000 + 3 * EVERY), 2u);
	/* never more than there is room for */
	EXPECT_EQ(t, drain(&b, 1000000), MOST);
}

/* In the long run one each interval, however often it is asked for. */
static void rate(struct ktap *t)
{
	struct shift_bucket b = { 0 };
	u32 n = 0;
	u64 now;

	for (now = 0; now < 100 * EVERY; now += 7)
		n += drain(&b, now);
	EXPECT(t, n >= 99 && n <= 100 + MOST);
}

/* Who takes one at a time, no faster than it is refilled, is never refused. */
static void patient(struct ktap *t)
{
	struct shift_bucket b = { 0 };
	u64 now;

	for (now = 1; now < 1000 * EVERY; now += EVERY)
		EXPECT(t, shift_bucket_take(&b, now, EVERY, 1));
}

/* A node and its QPs: kmod/link/link_priv.h */
#define NODE_EVERY	125000000u
#define NODE_MOST	256u
#define MS		1000000ull

static u32 drain_of(struct shift_bucket *b, u64 now, u32 num)
{
	u32 n = 0;

	while (n < 10000000 && shift_bucket_take_of(b, now, NODE_EVERY, NODE_MOST, num))
		n++;
	return n;
}

/* Each of several adds its own, at once and in the long run. */
static void several(struct ktap *t)
{
	static const u32 nums[] = { 1, 17, 1000, 20000 };
	struct shift_bucket b;
	u32 i, n;

	for (i = 0; i < sizeof(nums) / sizeof(nums[0]); i++) {
		b.full_ns = 0;
		EXPECT_EQ(t, drain_of(&b, 1000 * MS, nums[i]), NODE_MOST * nums[i]);
		EXPECT_EQ(t, drain_of(&b, 1000 * MS, nums[i]), 0u);
		n = drain_of(&b, 2000 * MS, nums[i]);
		/* an interval is rounded down to ns */
		EXPECT(t, n >= 8 * nums[i] && n <= 8 * nums[i] + nums[i] / 100 + 1);
	}
}

/* If some go, or others come, the same part of the allowance is left. */
static void another_number(struct ktap *t)
{
	struct shift_bucket b = { 0 };
	u32 i, n;

	for (i = 0; i < NODE_MOST * 1000 / 2; i++)
		EXPECT(t, shift_bucket_take_of(&b, 1000 * MS, NODE_EVERY, NODE_MOST, 1000));
	n = drain_of(&b, 1000 * MS, 20);
	EXPECT(t, n >= NODE_MOST * 20 / 2 && n <= NODE_MOST * 20 / 2 + 1);
	b.full_ns = 0;
	for (i = 0; i < NODE_MOST * 20 / 2; i++)
		EXPECT(t, shift_bucket_take_of(&b, 1000 * MS, NODE_EVERY, NODE_MOST, 20));
	n = drain_of(&b, 1000 * MS, 1000);
	EXPECT(t, n >= NODE_MOST * 1000 / 2 && n <= NODE_MOST * 1000 / 2 + 1);
}

/* One that comes brings its own, also if nothing is left for the others. */
static void joins(struct ktap *t)
{
	struct shift_bucket b = { 0 };

	shift_bucket_join(&b, NODE_EVERY, NODE_MOST, 1);
	EXPECT(t, !b.full_ns);
	EXPECT_EQ(t, drain_of(&b, 1000 * MS, 20), NODE_MOST * 20);
	shift_bucket_join(&b, NODE_EVERY, NODE_MOST, 20);
	EXPECT_EQ(t, drain_of(&b, 1000 * MS, 20), NODE_MOST);
	EXPECT_EQ(t, drain_of(&b, 1000 * MS, 20), 0u);
}

/*
 * Thousands of QPs fail over, with all that it takes, and a copy of something every 100 ms for as
 * long as a fence may wait for the slowest driver.
 */
static void storm(struct ktap *t)
{
	const u32 num = 5000;
	struct shift_bucket b = { 0 };
	u32 round, qp;
	u64 now = 1000 * MS;

	for (qp = 0; qp < 4 * num; qp++)
		EXPECT(t, shift_bucket_take_of(&b, now, NODE_EVERY, NODE_MOST, num));
	for (round = 0; round < 600; round++, now += 100 * MS)
		for (qp = 0; qp < num; qp++)
			EXPECT(t, shift_bucket_take_of(&b, now, NODE_EVERY, NODE_MOST, num));
}

/* Connections that come and go without an end send a few messages each. */
static void churn(struct ktap *t)
{
	struct shift_bucket b = { 0 };
	u64 now = 1000 * MS;
	u32 i, m;

	for (i = 0; i < 100000; i++, now += MS / 4) {
		shift_bucket_join(&b, NODE_EVERY, NODE_MOST, 17);
		for (m = 0; m < 8; m++)
			EXPECT(t, shift_bucket_take_of(&b, now, NODE_EVERY, NODE_MOST, 17));
	}
}

static const struct ktap_case cases[] = {
	KTAP_CASE(at_once),
	KTAP_CASE(refilled),
	KTAP_CASE(rate),
	KTAP_CASE(patient),
	KTAP_CASE(several),
	KTAP_CASE(another_number),
	KTAP_CASE(joins),
	KTAP_CASE(storm),
	KTAP_CASE(churn),
};

KTAP_SUITE(bucket, cases);
