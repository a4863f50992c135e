// SPDX-License-Identifier: GPL-2.0
/* Errors of a kernel user's QP, and room for them: kmod/pure/flushes.c */
#include "ktap.h"
#include "pure/flushes.h"

#define SLOTS	16u
#define RANDOM	20000

static u64 send_mem[SLOTS * sizeof(struct shift_post) / 8];
static u64 recv_mem[SLOTS * sizeof(struct shift_post) / 8];
static struct shift_post_ring send, recv;
static struct shift_flushes flushes;
static struct rnd rnd = { .state = 1 };

static void start(void)
{
	shift_post_ring_init(&send, (u8 *)send_mem, SLOTS, sizeof(struct shift_post));
	shift_post_ring_init(&recv, (u8 *)recv_mem, SLOTS, sizeof(struct shift_post));
	memset(&flushes, 0, sizeof(flushes));
}

static void post(struct shift_post_ring *ring, u64 wr_id, bool signaled)
{
	struct shift_post *next = shift_post_ring_next(ring);

	*next = (struct shift_post) {
		.wr_id = wr_id, .flags = signaled ? SHIFT_WR_SIGNALED : 0,
	};
	shift_post_ring_add(ring, next, NULL);
}

/* An error in a CQ for both queues. */
static void error(u64 wr_id)
{
	u32 sends = flushes.errors - flushes.recvs;

	shift_flushes_add(&flushes, shift_flushes_next_is(&recv, flushes.recvs, wr_id),
			  shift_flushes_may_be(&send, sends, wr_id));
}

static u64 wr_id(const struct shift_post_ring *ring, u32 seq)
{
	return ((struct shift_post *)shift_post_ring_slot(ring, seq))->wr_id;
}

static u32 recvs(void)
{
	return shift_flushes_recvs(&flushes, shift_post_ring_outstanding(&send));
}

/* Other numbers on each queue. */
static void apart(struct ktap *t)
{
	u32 i;

	start();
	for (i = 0; i < 4; i++) {
		post(&send, 100 + i, i & 1);
		post(&recv, 200 + i, true);
	}
	/* the first send was executed, without a signal */
	error(101);
	error(200);
	error(102);
	error(201);
	EXPECT_EQ(t, recvs(), 2u);
	error(103);
	error(202);
	error(203);
	EXPECT_EQ(t, recvs(), 4u);
	EXPECT(t, !flushes.unsure);
}

/* A send that fails has the wr_id of the next receive, which may have been executed. */
static void equal(struct ktap *t)
{
	start();
	post(&send, 7, true);
	post(&recv, 7, true);
	error(7);
	EXPECT_EQ(t, recvs(), 0u);
	/* both are flushed: then one of the two was the receive */
	error(7);
	EXPECT_EQ(t, recvs(), 1u);

	/* a send behind it has it: of that it is not, but in its turn */
	start();
	post(&send, 1, true);
	post(&send, 7, true);
	post(&recv, 7, true);
	post(&recv, 8, true);
	error(7);
	EXPECT_EQ(t, recvs(), 1u);
	error(1);
	error(7);
	EXPECT_EQ(t, recvs(), 1u);
	error(8);
	EXPECT_EQ(t, recvs(), 2u);

	/* without a signal what is in front of it may have been executed */
	start();
	post(&send, 1, false);
	post(&send, 7, true);
	post(&recv, 7, true);
	error(7);
	EXPECT_EQ(t, recvs(), 0u);
	/* what is behind it by more than that has its turn later */
	start();
	post(&send, 1, false);
	post(&send, 2, true);
	post(&send, 3, false);
	post(&send, 4, false);
	post(&send, 7, true);
	post(&recv, 7, true);
	error(1);
	error(2);
	error(7);
	EXPECT_EQ(t, recvs(), 1u);
}

/* What was kept back from the device does not complete, and what has gone is not looked at. */
static void kept(struct ktap *t)
{
	start();
	post(&recv, 5, true);
	EXPECT_EQ(t, shift_post_ring_done(&recv, 5), 0);
	post(&recv, 6, true);
	EXPECT(t, shift_flushes_next_is(&recv, 0, 6) && !shift_flushes_next_is(&recv, 0, 5));
	EXPECT(t, !shift_flushes_next_is(&recv, 1, 6));
	recv.kept = 1;
	EXPECT(t, !shift_flushes_next_is(&recv, 0, 6));
	post(&send, 6, true);
	EXPECT(t, shift_flushes_may_be(&send, 0, 6));
	send.kept = 1;
	EXPECT(t, !shift_flushes_may_be(&send, 0, 6));
}

/*
 * Whatever the wr_ids are, no receive is counted that was not flushed; and all are, if all requests
 * are flushed.
 */
static void any(struct ktap *t)
{
	u32 n, i, nsend, nrecv, s, r, first, ids, whole = 0, sure = 0;

	for (n = 0; n < RANDOM; n++) {
		start();
		ids = 1 + rnd_below(&rnd, 12);
		nsend = rnd_below(&rnd, SLOTS + 1);
		nrecv = rnd_below(&rnd, SLOTS + 1);
		first = nsend;
		for (i = 0; i < nsend; i++) {
			bool signaled = !rnd_below(&rnd, 3);

			post(&send, rnd_below(&rnd, ids), signaled);
			if (signaled && first == nsend)
				first = i;
		}
		for (i = 0; i < nrecv; i++)
			post(&recv, rnd_below(&rnd, ids) + rnd_below(&rnd, 2) * ids, true);
		/* what was executed without a signal is not flushed */
		s = rnd_below(&rnd, 2) || !nsend ? 0 : rnd_below(&rnd, min(first, nsend - 1) + 1);
		whole += !s;
		for (r = 0; s < nsend || r < nrecv; ) {
			if (r == nrecv || (s < nsend && rnd_below(&rnd, 2)))
				error(wr_id(&send, s++));
			else
				error(wr_id(&recv, r++));
			if (!EXPECT(t, recvs() <= r))
				return;
		}
		if (flushes.errors == nsend + nrecv)
			EXPECT_EQ(t, recvs(), nrecv);
		if (!flushes.unsure)
			EXPECT_EQ(t, recvs(), nrecv);
		sure += !flushes.unsure;
	}
	EXPECT(t, whole > RANDOM / 4 && sure > RANDOM / 8);
}

/* QPs of one CQ that are flushed at the same time do not get the same entries. */
static void reserve(struct ktap *t)
{
	u32 reserved = 0;

	EXPECT(t, shift_flushes_reserve(&reserved, 100, 60));
	EXPECT(t, !shift_flushes_reserve(&reserved, 100, 41));
	EXPECT_EQ(t, reserved, 60u);
	EXPECT(t, shift_flushes_reserve(&reserved, 100, 40));
	EXPECT(t, shift_flushes_reserve(&reserved, 100, 0));
	EXPECT(t, !shift_flushes_reserve(&reserved, 100, 1));
	EXPECT(t, !shift_flushes_reserve(&reserved, 100, 1ull << 32));
	EXPECT_EQ(t, reserved, 100u);
	/* it is smaller than it was */
	EXPECT(t, !shift_flushes_reserve(&reserved, 99, 1));
}

static const struct ktap_case cases[] = {
	KTAP_CASE(apart),
	KTAP_CASE(equal),
	KTAP_CASE(kept),
	KTAP_CASE(any),
	KTAP_CASE(reserve),
};

KTAP_SUITE(flushes, cases);
