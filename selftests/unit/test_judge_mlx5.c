// SPDX-License-Identifier: GPL-2.0
/* mlx5: what completions and PSNs of a QP under trial say. */
#include "ktap.h"
#include "provider/mlx5/judge.h"

static struct shift_trial_log seen;
static struct shift_trial_end end;

static void start(void)
{
	memset(&seen, 0, sizeof(seen));
}

static void add(u32 from, u32 to, enum shift_trial_status status)
{
	for (; from < to; from++)
		seen.seen[seen.n++] = (struct shift_trial_seen) { .id = from, .status = status };
}

static void in_order(struct ktap *t)
{
	start();
	EXPECT(t, shift_trial_judge(&seen, 0, 0, &end));
	EXPECT_EQ(t, end.ok, 0);
	add(0, 5, SHIFT_TRIAL_OK);
	EXPECT(t, shift_trial_judge(&seen, 5, 0, &end));
	EXPECT_EQ(t, end.ok, 5);
	EXPECT(t, !end.broke);
	EXPECT(t, !shift_trial_judge(&seen, 6, 0, &end));
	EXPECT(t, !shift_trial_judge(&seen, 4, 0, &end));
}

static void unsignaled(struct ktap *t)
{
	start();
	add(1, 2, SHIFT_TRIAL_OK);
	add(4, 5, SHIFT_TRIAL_OK);
	EXPECT(t, shift_trial_judge(&seen, 5, 0x0d, &end));
	EXPECT_EQ(t, end.ok, 5);
	/* those behind the last completion are not known, and counted as executed */
	EXPECT(t, shift_trial_judge(&seen, 7, 0x6d, &end));
	EXPECT_EQ(t, end.ok, 7);
	EXPECT(t, !shift_trial_judge(&seen, 5, 0x05, &end));
	/* one more that is complete is no mistake */
	start();
	add(0, 5, SHIFT_TRIAL_OK);
	EXPECT(t, shift_trial_judge(&seen, 5, 0x0d, &end));
}

static void flushed(struct ktap *t)
{
	start();
	add(0, 2, SHIFT_TRIAL_OK);
	add(2, 6, SHIFT_TRIAL_FLUSHED);
	EXPECT(t, shift_trial_judge(&seen, 6, 0x08, &end));
	EXPECT_EQ(t, end.ok, 2);
	EXPECT(t, !end.broke);
	/* also the unsignaled one has to be */
	seen.seen[3] = seen.seen[4];
	seen.seen[4] = seen.seen[5];
	seen.n--;
	EXPECT(t, !shift_trial_judge(&seen, 6, 0x08, &end));
	/* twice, or with a success behind */
	start();
	add(0, 2, SHIFT_TRIAL_FLUSHED);
	add(1, 3, SHIFT_TRIAL_FLUSHED);
	EXPECT(t, !shift_trial_judge(&seen, 3, 0, &end));
	start();
	add(0, 1, SHIFT_TRIAL_FLUSHED);
	add(1, 2, SHIFT_TRIAL_OK);
	EXPECT(t, !shift_trial_judge(&seen, 2, 0, &end));
}

static void broke(struct ktap *t)
{
	start();
	add(0, 2, SHIFT_TRIAL_OK);
	add(2, 3, SHIFT_TRIAL_ERROR);
	add(3, 6, SHIFT_TRIAL_FLUSHED);
	EXPECT(t, shift_trial_judge(&seen, 6, 0, &end));
	EXPECT_EQ(t, end.ok, 2);
	EXPECT(t, end.broke);
	/* one error that is no flush, and it is the first */
	seen.seen[4].status = SHIFT_TRIAL_ERROR;
	EXPECT(t, !shift_trial_judge(&seen, 6, 0, &end));
	seen.seen[2].status = SHIFT_TRIAL_FLUSHED;
	EXPECT(t, !shift_trial_judge(&seen, 6, 0, &end));
}

static void bounds(struct ktap *t)
{
	start();
	seen.n = SHIFT_TRIAL_MOST + 1;
	EXPECT(t, !shift_trial_judge(&seen, 6, 0, &end));
	start();
	EXPECT(t, !shift_trial_judge(&seen, 33, ~0u, &end));
	EXPECT(t, shift_trial_judge(&seen, 32, ~0u, &end));
	start();
	add(40, 41, SHIFT_TRIAL_OK);
	EXPECT(t, !shift_trial_judge(&seen, 6, ~0u, &end));
}

static void of_srq(struct ktap *t)
{
	bool more;
	u32 ok;

	start();
	EXPECT(t, shift_trial_judge_srq(&seen, 4, &ok, &more));
	EXPECT_EQ(t, ok, 0);
	EXPECT(t, !more);
	add(4, 7, SHIFT_TRIAL_OK);
	EXPECT(t, shift_trial_judge_srq(&seen, 4, &ok, &more));
	EXPECT_EQ(t, ok, 3);
	EXPECT(t, !more);
	EXPECT(t, !shift_trial_judge_srq(&seen, 3, &ok, &more));
	/* what was under way, and no more */
	add(7, 8, SHIFT_TRIAL_FLUSHED);
	EXPECT(t, shift_trial_judge_srq(&seen, 4, &ok, &more));
	EXPECT_EQ(t, ok, 3);
	EXPECT(t, more);
	add(8, 9, SHIFT_TRIAL_FLUSHED);
	EXPECT(t, !shift_trial_judge_srq(&seen, 4, &ok, &more));
	seen.seen[4].status = SHIFT_TRIAL_OK;
	EXPECT(t, !shift_trial_judge_srq(&seen, 4, &ok, &more));
	/* another one than the next */
	seen.n--;
	seen.seen[3].id = 9;
	EXPECT(t, !shift_trial_judge_srq(&seen, 4, &ok, &more));
	seen.n = SHIFT_TRIAL_MOST + 1;
	EXPECT(t, !shift_trial_judge_srq(&seen, 4, &ok, &more));
}

static void psns(struct ktap *t)
{
	static const u32 len[] = { 0, 1, 256, 257, 512 };

	EXPECT_EQ(t, shift_trial_packets(len, 0, 256), 0);
	EXPECT_EQ(t, shift_trial_packets(len, 5, 256), 7);
	/* five messages, three receives */
	EXPECT(t, shift_trial_psn_fits(len, 3, 3, 256, 3));
	EXPECT(t, !shift_trial_psn_fits(len, 3, 3, 256, 4));
	EXPECT(t, !shift_trial_psn_fits(len, 3, 3, 256, 2));
	EXPECT(t, !shift_trial_psn_fits(len, 3, 4, 256, 5));
	/* in the middle of the fourth */
	EXPECT(t, shift_trial_psn_fits(len, 5, 3, 256, 3));
	EXPECT(t, shift_trial_psn_fits(len, 5, 3, 256, 4));
	EXPECT(t, !shift_trial_psn_fits(len, 5, 3, 256, 5));
	EXPECT(t, shift_trial_psn_fits(len, 5, 0, 256, 0));
}

static const struct ktap_case cases[] = {
	KTAP_CASE(in_order), KTAP_CASE(unsignaled), KTAP_CASE(flushed), KTAP_CASE(broke),
	KTAP_CASE(bounds), KTAP_CASE(of_srq), KTAP_CASE(psns),
};

KTAP_SUITE(judge_mlx5, cases);
