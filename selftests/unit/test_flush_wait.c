// SPDX-License-Identifier: GPL-2.0
/* How long flushes are waited for: kmod/pure/flush_wait.h */
#include "ktap.h"
#include "pure/flush_wait.h"

#define MS		1000000ull
#define LOOK		100000u		/* ns between two looks */
#define DEEPEST		(2 * 32768u)	/* requests of both queues of a QP on mlx5 */
#define CX6		9350u		/* ns from flush to flush, as seen on a ConnectX-6 */
#define FIRST		59500u		/* ... and to the first */

/* A device that flushes @n requests, one each @every ns; how many were when the wait was over. */
static u32 waited(u32 scale, u32 n, u64 every, u64 look)
{
	u64 now, begin = 5000 * MS;
	struct shift_flush_wait w;
	u32 done = 0;

	shift_flush_wait_begin(&w, begin, scale, n);
	for (now = begin; done < n; now += look) {
		if (now >= begin + FIRST)
			done = (now - begin - FIRST) / every;
		if (done < n && shift_flush_wait_is_over(&w, now, done))
			break;
	}
	return done < n ? done : n;
}

static void deepest(struct ktap *t)
{
	EXPECT_EQ(t, waited(1, DEEPEST, CX6, LOOK), DEEPEST);
	EXPECT_EQ(t, waited(1, DEEPEST, 3 * CX6, LOOK), DEEPEST);
	EXPECT_EQ(t, waited(20, DEEPEST, 20 * 3 * CX6, LOOK), DEEPEST);
	/* the looks take long themselves, as they go through a large CQ */
	EXPECT_EQ(t, waited(1, DEEPEST, CX6, 15 * MS), DEEPEST);
}

/* A few requests of a slow device */
static void slow(struct ktap *t)
{
	EXPECT_EQ(t, waited(1, 16, 10 * MS, LOOK), 16u);
	EXPECT(t, waited(1, 16, 25 * MS, LOOK) < 2);
	EXPECT_EQ(t, waited(2, 16, 20 * MS, LOOK), 16u);
}

/* What none tells of any more is waited for as long as for the next. */
static void overdue(struct ktap *t)
{
	struct shift_flush_wait w;

	shift_flush_wait_begin(&w, MS, 1, DEEPEST);
	EXPECT(t, !shift_flush_wait_is_over(&w, MS, 7));
	EXPECT(t, !shift_flush_wait_is_over(&w, 21 * MS, 7));
	EXPECT(t, shift_flush_wait_is_over(&w, 21 * MS + 1, 7));
	/* the thread was kept from looking, and some have come */
	EXPECT(t, !shift_flush_wait_is_over(&w, 100 * MS, 8));
}

/* An application writes what looks like flushes, for as long as one looks. */
static void for_ever(struct ktap *t)
{
	struct shift_flush_wait w;
	u64 now = 0;
	u32 n = 0;

	shift_flush_wait_begin(&w, now, 1, 1000);
	while (now < 5000 * MS && !shift_flush_wait_is_over(&w, now, n++))
		now += LOOK;
	EXPECT(t, now > 540 * MS && now < 541 * MS);
}

static const struct ktap_case cases[] = {
	KTAP_CASE(deepest),
	KTAP_CASE(slow),
	KTAP_CASE(overdue),
	KTAP_CASE(for_ever),
};

KTAP_SUITE(flush_wait, cases);
