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

static const struct ktap_case cases[] = {
	KTAP_CASE(at_once),
	KTAP_CASE(refilled),
	KTAP_CASE(rate),
	KTAP_CASE(patient),
};

KTAP_SUITE(bucket, cases);
