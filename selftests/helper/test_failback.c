// SPDX-License-Identifier: GPL-2.0-only
/* When queue pairs go back: hold time, canary, the rest, back-off. */
#include <linux/shift.h>
#include <string.h>

#include "ktap.h"
#include "shiftd/failback.h"

#define HOLD 10000

static const struct shift_failback_policy policy = {
	.hold_ms = HOLD, .max_hold_ms = 5 * HOLD, .probe_ms = 2000,
};
static struct shift_failback *fb;
static struct shift_gid remote;
static unsigned int state[4];	/* of queue pairs 1 to 4 */
static unsigned int moves, canaries;
static unsigned int probes;
static uint64_t connects, acked, now, again;
static bool up, deaf, loops;	/* loops: queue pair 4 is connected to itself */

static void moved(const char *dev, uint32_t qpn, bool canary, void *arg)
{
	CHECK(arg == &policy && !strcmp(dev, "rxe0") && qpn >= 1 && qpn <= 4);
	CHECK(state[qpn - 1] == SHIFT_QP_FALLBACK);
	moves++;
	canaries += canary;
	if (up)
		state[qpn - 1] = SHIFT_QP_RETURNED;
}

static bool probed(uint32_t link, void *arg)
{
	CHECK(arg == &policy && link == 7 && up);
	probes++;
	acked += !deaf;
	return true;
}

static void look(uint64_t ms)
{
	static const struct shift_failback_ops ops = { moved, probed };
	struct shift_failback_link link = {
		.dev = "rxe0", .remote = remote, .id = 7,
		.up = up, .connects = connects, .acked = acked,
	};
	struct shift_gid own;
	unsigned int i;

	CHECK(!shift_gid_parse("10.0.0.1", &own));
	now += ms;
	shift_failback_begin(fb);
	CHECK(!shift_failback_link(fb, &link));
	for (i = 0; i < 4; i++)
		if (state[i])
			CHECK(!shift_failback_qp(fb, "rxe0", loops && i == 3 ? &own : &remote,
						 loops && i == 3, i + 1, state[i]));
	again = shift_failback_end(fb, now, &policy, &ops, (void *)&policy);
}

static void all(unsigned int what)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		state[i] = what;
}

static void setup(void)
{
	fb = shift_failback_new();
	CHECK(!shift_gid_parse("10.0.0.2", &remote));
	now = 1000;
	connects = 1;
	moves = canaries = probes = 0;
	up = true;
	deaf = false;
	loops = false;
	all(SHIFT_QP_DEFAULT);
	look(0);
}

static void breaks(void)
{
	up = false;
	all(SHIFT_QP_FALLBACK);
	look(1000);
	up = true;
	connects++;
}

/* Looks until something moves; how many ms that took. */
static uint64_t until_move(void)
{
	unsigned int before = moves;
	uint64_t began = now;

	while (moves == before && now - began < 100 * HOLD)
		look(1000);
	return now - began;
}

static void test_quiet(void)
{
	setup();
	CHECK(again == UINT64_MAX);
	look(100 * HOLD);
	CHECK(again == UINT64_MAX && !moves);
	shift_failback_free(fb);
}

static void test_canary_first(void)
{
	uint64_t took;

	setup();
	breaks();
	look(0);
	CHECK(again <= 1000 && !moves);
	took = until_move();
	CHECK(took >= HOLD && took <= HOLD + 1000);
	CHECK(moves == 1 && canaries == 1);
	look(1000);
	CHECK(moves == 1);
	look(1000);
	CHECK(moves == 4 && canaries == 1);
	look(1000);
	CHECK(moves == 4);
	shift_failback_free(fb);
}

static void test_interrupted(void)
{
	setup();
	breaks();
	look(0);
	look(HOLD - 1000);
	/* down and up between two looks */
	connects++;
	look(900);
	look(HOLD - 1000);
	CHECK(!moves);
	look(1000);
	CHECK(moves == 1);
	shift_failback_free(fb);
}

static void test_back_off(void)
{
	uint64_t took, want = HOLD;
	unsigned int i;

	setup();
	for (i = 0; i < 6; i++) {
		breaks();
		look(0);
		took = until_move();
		CHECK(took >= want && took <= want + 1000);
		while (moves % 4)
			look(1000);
		want = want * 2 < policy.max_hold_ms ? want * 2 :
			policy.max_hold_ms;
	}
	/* one more success is not enough, a long time is */
	breaks();
	look(0);
	CHECK(until_move() >= policy.max_hold_ms);
	while (moves % 4)
		look(1000);
	for (i = 0; i < 11 * 5 * HOLD / 1000; i++)
		look(1000);
	breaks();
	look(0);
	took = until_move();
	CHECK(took >= HOLD && took <= HOLD + 1000);
	shift_failback_free(fb);
}

static void test_canary_fails(void)
{
	setup();
	breaks();
	look(0);
	until_move();
	CHECK(moves == 1);
	/* it did not stay there */
	up = false;
	all(SHIFT_QP_FALLBACK);
	look(1000);
	up = true;
	connects++;
	look(0);
	CHECK(until_move() >= 2 * HOLD);
	CHECK(canaries == 2);
	shift_failback_free(fb);
}

static void test_canary_stays(void)
{
	unsigned int i;

	setup();
	breaks();
	look(0);
	until_move();
	/* the peer does not want to */
	for (i = 0; i < 10; i++) {
		all(SHIFT_QP_FALLBACK);
		look(1000);
	}
	CHECK(moves == 1);
	CHECK(until_move() >= 2 * HOLD - 1000);
	shift_failback_free(fb);
}

static void test_canary_ends(void)
{
	setup();
	breaks();
	look(0);
	until_move();
	state[0] = 0;
	look(1000);
	look(1000);
	CHECK(moves == 2 && canaries == 2 && state[1] == SHIFT_QP_RETURNED);
	shift_failback_free(fb);
}

static void test_canary_slow(void)
{
	unsigned int i;

	setup();
	breaks();
	look(0);
	until_move();
	for (i = 0; i < 30; i++) {
		state[0] = SHIFT_QP_SWITCHING;
		look(1000);
	}
	CHECK(moves == 1);
	state[0] = SHIFT_QP_RETURNED;
	look(1000);
	CHECK(moves == 4 && canaries == 1);
	/* nobody else: it is waited for all the same */
	breaks();
	for (i = 1; i < 4; i++)
		state[i] = SHIFT_QP_DEFAULT;
	until_move();
	state[0] = SHIFT_QP_SWITCHING;
	look(1000);
	for (i = 0; i < 10; i++) {
		state[0] = SHIFT_QP_FALLBACK;
		look(1000);
	}
	CHECK(moves == 5 && canaries == 2);
	shift_failback_free(fb);
}

static void test_rest_stays(void)
{
	unsigned int i;

	setup();
	breaks();
	look(0);
	until_move();
	for (i = 0; i < 15; i++) {
		look(1000);
		state[3] = SHIFT_QP_FALLBACK;
	}
	i = moves;
	CHECK(i > 4 && i <= 4 + 10);
	/* then it has to hold again */
	CHECK(until_move() >= HOLD / 2 && canaries == 2);
	CHECK(moves == i + 1 && state[3] == SHIFT_QP_RETURNED);
	shift_failback_free(fb);
}

static void test_probes(void)
{
	uint64_t took;

	setup();
	look(100 * HOLD);
	CHECK(!probes);		/* nobody is away */
	breaks();
	look(0);
	until_move();
	CHECK(probes >= HOLD / 2000 && probes <= HOLD / 2000 + 1);
	while (moves % 4)
		look(1000);
	/* twice the time, as many probes */
	probes = 0;
	breaks();
	look(0);
	took = until_move();
	CHECK(took >= 2 * HOLD);
	CHECK(probes >= HOLD / 2000 && probes <= HOLD / 2000 + 1);
	shift_failback_free(fb);
}

static void test_unanswered(void)
{
	unsigned int i;

	setup();
	breaks();
	look(0);
	look(HOLD - 3000);
	deaf = true;
	for (i = 0; i < 30; i++)
		look(1000);
	CHECK(!moves && probes);
	/* the kernel takes the link down, and it is good again */
	deaf = false;
	breaks();
	look(0);
	CHECK(until_move() >= HOLD);
	shift_failback_free(fb);
	/* answered late, but answered */
	setup();
	breaks();
	look(0);
	look(HOLD - 3000);
	deaf = true;
	for (i = 0; i < 5; i++)
		look(1000);
	CHECK(!moves);
	acked++;
	look(1000);
	CHECK(moves == 1);
	shift_failback_free(fb);
}

/* A queue pair that is connected to itself has no link: its device's other ones tell. */
static void test_loop(void)
{
	uint64_t took;

	setup();
	loops = true;
	breaks();
	up = false;
	all(0);
	state[3] = SHIFT_QP_FALLBACK;
	look(100 * HOLD);
	CHECK(!moves && again <= 1000);
	up = true;
	look(0);
	took = until_move();
	CHECK(took >= HOLD && took <= HOLD + 1000 && moves == 1 && !probes);
	look(1000);
	look(1000);
	look(1000);
	CHECK(moves == 1 && state[3] == SHIFT_QP_RETURNED);
	shift_failback_free(fb);
}

static const struct ktap_test tests[] = {
	{ "nothing to do: no looks", test_quiet },
	{ "one queue pair first, then the rest", test_canary_first },
	{ "an interruption between two looks starts the time anew", test_interrupted },
	{ "back-off, not forgotten by one success", test_back_off },
	{ "a canary that falls back", test_canary_fails },
	{ "a canary that cannot move", test_canary_stays },
	{ "a canary whose application ends", test_canary_ends },
	{ "a canary that takes its time", test_canary_slow },
	{ "one of the rest that does not stay", test_rest_stays },
	{ "probes only while somebody is away, in proportion", test_probes },
	{ "nothing goes back while a probe is not answered", test_unanswered },
	{ "one that is connected to itself", test_loop },
};
KTAP_MAIN(tests)
