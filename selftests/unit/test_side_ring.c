// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The merge of a CQ's ring with its side ring (rdma-core/shift/shift_side.h).
 *
 * cc -O1 -g -fsanitize=address,undefined -Irdma-core/shift -Iuapi -pthread \
 *	-o test_side_ring selftests/unit/test_side_ring.c
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shift_side.h"

#define CQ_SIZE		8		/* a ring holds one less */
#define CQ_MASK		(CQ_SIZE - 1)
#define SIDE_SIZE	4
#define SIDE_LEN	(sizeof(struct shift_abi_side) + \
			 SIDE_SIZE * sizeof(struct shift_abi_wc))

static int test_nr;
static int failures;
static int test_failures;

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("# %s:%d: %s\n", __func__, __LINE__, #cond);	\
		test_failures++;					\
	}								\
} while (0)

/* A CQ as the provider sees it; the tests play the kernel */
struct cq {
	uint64_t		ring[CQ_SIZE];
	uint32_t		prod;
	uint32_t		cons;
	uint32_t		flag;
	struct shift_side		side;
	struct shift_abi_side	*mem;
};

static void cq_init(struct cq *cq, uint32_t cq_index, uint32_t side_index)
{
	memset(cq, 0, sizeof(*cq));
	cq->mem = calloc(1, SIDE_LEN);
	cq->mem->entries = SIDE_SIZE;
	cq->mem->producer = side_index;
	cq->mem->consumer = side_index;
	cq->prod = cq_index;
	cq->cons = cq_index;
	CHECK(shift_side_attach(&cq->side, cq->mem, SIDE_LEN));
}

static void cq_exit(struct cq *cq)
{
	free(cq->mem);
}

static bool put_cq(struct cq *cq, uint64_t id)
{
	uint32_t next = (cq->prod + 1) & CQ_MASK;

	if (next == shift_side_load(&cq->cons, memory_order_acquire))
		return false;
	cq->ring[cq->prod] = id;
	shift_side_store(&cq->prod, next, memory_order_release);
	return true;
}

static bool put_side(struct cq *cq, uint64_t id)
{
	uint32_t prod = cq->mem->producer;

	if (prod - shift_side_load(&cq->mem->consumer, memory_order_acquire) ==
	    SIDE_SIZE)
		return false;
	cq->mem->wc[prod & (SIDE_SIZE - 1)].wr_id = id;
	shift_side_store(&cq->mem->producer, prod + 1, memory_order_release);
	shift_side_store(&cq->flag, SHIFT_CQ_FLAG_SIDE, memory_order_release);
	return true;
}

static uint64_t take_cq(struct cq *cq)
{
	uint64_t id = cq->ring[cq->cons];

	shift_side_store(&cq->cons, (cq->cons + 1) & CQ_MASK,
		       memory_order_release);
	return id;
}

/* One completion, or 0 */
static uint64_t get(struct cq *cq)
{
	struct shift_abi_wc wc;

	switch (shift_side_pick(&cq->side, &cq->prod, cq->cons, CQ_MASK)) {
	case SHIFT_PICK_CQ:
		return take_cq(cq);
	case SHIFT_PICK_SIDE:
		shift_side_take(&cq->side, &wc);
		return wc.wr_id;
	case SHIFT_PICK_NONE:
		break;
	}
	return 0;
}

static void test_attach(void)
{
	struct shift_abi_side *mem = calloc(1, SIDE_LEN);
	struct shift_side side = {};

	mem->entries = SIDE_SIZE;
	CHECK(!shift_side_attach(&side, mem, 0));
	CHECK(!shift_side_attach(&side, mem, sizeof(*mem) - 1));
	CHECK(!shift_side_attach(&side, mem, SIDE_LEN - 1));
	mem->entries = 0;
	CHECK(!shift_side_attach(&side, mem, SIDE_LEN));
	mem->entries = 3;
	CHECK(!shift_side_attach(&side, mem, SIDE_LEN));
	mem->entries = 0x80000000;
	CHECK(!shift_side_attach(&side, mem, SIDE_LEN));
	CHECK(!side.ring);
	mem->entries = SIDE_SIZE;
	CHECK(shift_side_attach(&side, mem, SIDE_LEN));
	CHECK(side.ring == mem && side.mask == SIDE_SIZE - 1);
	free(mem);
}

static void test_no_ring(void)
{
	struct cq cq = {};

	CHECK(!shift_side_pending(&cq.side));
	CHECK(get(&cq) == 0);
	put_cq(&cq, 1);
	CHECK(get(&cq) == 1);
	CHECK(get(&cq) == 0);
	cq.flag = 1;
	shift_side_settle(&cq.side, &cq.flag);
	CHECK(cq.flag == 0);
}

static void test_side_only(void)
{
	struct cq cq;
	int i;

	cq_init(&cq, 0, 0);
	CHECK(!shift_side_pending(&cq.side));
	CHECK(get(&cq) == 0);
	for (i = 1; i <= SIDE_SIZE; i++)
		CHECK(put_side(&cq, i));
	CHECK(!put_side(&cq, 99));
	CHECK(shift_side_pending(&cq.side));
	for (i = 1; i <= SIDE_SIZE; i++)
		CHECK(get(&cq) == (uint64_t)i);
	CHECK(get(&cq) == 0);
	cq_exit(&cq);
}

static void test_older_first(void)
{
	struct cq cq;

	cq_init(&cq, CQ_MASK - 1, UINT32_MAX);	/* both wrap on the way */
	put_cq(&cq, 1);
	put_cq(&cq, 2);
	put_cq(&cq, 3);
	put_side(&cq, 100);
	put_side(&cq, 101);
	CHECK(get(&cq) == 1);
	put_cq(&cq, 4);		/* after the batch was seen: behind it */
	CHECK(get(&cq) == 2);
	CHECK(get(&cq) == 3);
	CHECK(get(&cq) == 100);
	put_side(&cq, 102);	/* not in the batch, and behind 4 */
	CHECK(get(&cq) == 101);
	CHECK(get(&cq) == 4);
	CHECK(get(&cq) == 102);
	CHECK(get(&cq) == 0);
	cq_exit(&cq);
}

/* How many go first, as entries are taken out of a ring whose indices run freely */
static void test_removed(void)
{
	struct shift_side *side;
	struct cq cq;

	cq_init(&cq, 0, UINT32_MAX);
	side = &cq.side;
	CHECK(shift_side_ahead(side, 0, 5) == 5);	/* no batch: all of them will */
	put_side(&cq, 100);
	CHECK(shift_side_sight(side));
	shift_side_follow(side, UINT32_MAX - 1, 4);	/* its indices wrap on the way */
	CHECK(shift_side_ahead(side, UINT32_MAX - 1, 6) == 4);
	CHECK(shift_side_ahead(side, 1, 6) == 1);
	CHECK(shift_side_ahead(side, 7, 6) == 0);
	CHECK(shift_side_is_ahead(side, UINT32_MAX) && shift_side_is_ahead(side, 1));
	CHECK(!shift_side_is_ahead(side, 2) && !shift_side_is_ahead(side, 3));
	shift_side_removed(side, 3, 2);		/* and one behind them */
	CHECK(shift_side_ahead(side, 1, 3) == 2);
	CHECK(shift_side_next(side, false, 1, UINT32_MAX) == SHIFT_PICK_CQ);
	CHECK(shift_side_next(side, false, 2, UINT32_MAX) == SHIFT_PICK_CQ);
	CHECK(shift_side_next(side, false, 3, UINT32_MAX) == SHIFT_PICK_SIDE);
	shift_side_removed(side, 1, 9);		/* never less than none */
	CHECK(shift_side_ahead(side, 4, 1) == 0);
	cq_exit(&cq);
}

static void test_no_starvation(void)
{
	uint64_t id, seen = 0;
	struct cq cq;
	int i;

	cq_init(&cq, 0, 0);
	for (i = 1; put_cq(&cq, i); i++)
		;
	put_side(&cq, 100);
	for (i = 0; i < CQ_SIZE && !seen; i++) {
		id = get(&cq);
		if (id == 100)
			seen = i + 1;
		put_cq(&cq, 50 + i);	/* never empty */
	}
	CHECK(seen == CQ_SIZE);		/* all that were before, then it */
	cq_exit(&cq);
}

/* The fast path may consume from the CQ ring without asking */
static void test_fast_path_behind(void)
{
	struct cq cq;
	int i;

	cq_init(&cq, 3, 7);
	for (i = 1; i <= 5; i++)
		put_cq(&cq, i);
	put_side(&cq, 100);
	CHECK(get(&cq) == 1);
	CHECK(take_cq(&cq) == 2);
	CHECK(take_cq(&cq) == 3);
	CHECK(take_cq(&cq) == 4);
	CHECK(take_cq(&cq) == 5);
	CHECK(get(&cq) == 100);		/* empty: no waiting for the count */
	CHECK(get(&cq) == 0);
	put_cq(&cq, 6);
	CHECK(get(&cq) == 6);
	cq_exit(&cq);
}

/*
 * As the provider does it: asks only when the ring is empty or at its first slot.
 * On a CQ that is never empty a side entry waits for a lap, in its order.
 */
static void test_fast_path_laps(void)
{
	uint64_t id, last = 0, next = 1;
	int ahead, polls;
	struct cq cq;

	for (ahead = 1; ahead < CQ_SIZE; ahead++) {
		cq_init(&cq, 5, 0);
		last = 0;
		next = 1;
		while (next <= (uint64_t)ahead)
			put_cq(&cq, next++);
		put_side(&cq, 1000);
		for (polls = 0; polls < 4 * CQ_SIZE; polls++) {
			id = cq.cons && cq.cons != cq.prod ? take_cq(&cq) : get(&cq);
			if (id == 1000)
				break;
			CHECK(id == last + 1);
			last = id;
			put_cq(&cq, next++);	/* never empty */
		}
		CHECK(id == 1000);
		CHECK(last >= (uint64_t)ahead);
		CHECK(polls <= 2 * CQ_SIZE);
		cq_exit(&cq);
	}
}

static void test_settle(void)
{
	struct cq cq;

	cq_init(&cq, 0, 0);
	put_side(&cq, 100);
	shift_side_settle(&cq.side, &cq.flag);
	CHECK(cq.flag);
	CHECK(get(&cq) == 100);
	CHECK(cq.flag);
	shift_side_settle(&cq.side, &cq.flag);
	CHECK(!cq.flag);
	cq_exit(&cq);
}

/*
 * Random posts and polls. Ids grow with the time of posting, so an entry of the
 * side ring must come after all CQ entries with lower ids; and each ring is in
 * its own order, without loss or doubles.
 */
static void test_random(void)
{
	uint64_t id = 0, got, last_cq = 0, last_side = 0;
	uint64_t posted = 0, taken = 0;
	uint64_t is_side[4096] = {};
	struct cq cq;
	int round, i;

	srand(1);
	for (round = 0; round < 200; round++) {
		cq_init(&cq, rand() & CQ_MASK, rand());
		id = last_cq = last_side = posted = taken = 0;
		for (i = 0; i < 4000; i++) {
			switch (rand() % 5) {
			case 0:
				is_side[id + 1] = 1;
				if (put_side(&cq, id + 1)) {
					id++;
					posted++;
				}
				break;
			case 1:
			case 2:
				is_side[id + 1] = 0;
				if (put_cq(&cq, id + 1)) {
					id++;
					posted++;
				}
				break;
			case 3:
				/* as the fast path: the flag was not seen yet */
				if (cq.prod != cq.cons && rand() % 2) {
					got = take_cq(&cq);
					CHECK(got > last_cq);
					last_cq = got;
					taken++;
					break;
				}
				/* fall through */
			default:
				got = get(&cq);
				if (!got)
					break;
				taken++;
				if (is_side[got]) {
					CHECK(got > last_side);
					last_side = got;
					/* no older one is still in the CQ */
					CHECK(cq.prod == cq.cons ||
					      cq.ring[cq.cons] > got);
				} else {
					CHECK(got > last_cq);
					last_cq = got;
				}
			}
		}
		while (get(&cq))
			taken++;
		CHECK(posted == taken);
		cq_exit(&cq);
	}
}

#define THREAD_ENTRIES	200000

static void *kernel_thread(void *arg)
{
	struct cq *cq = arg;
	uint64_t side = 1, ring = 1;

	while (side <= THREAD_ENTRIES || ring <= THREAD_ENTRIES) {
		/* one at a time: no later one sets the flag again */
		if (side <= THREAD_ENTRIES &&
		    shift_side_load(&cq->mem->consumer, memory_order_acquire) ==
		    cq->mem->producer && put_side(cq, side << 32))
			side++;
		if (ring <= THREAD_ENTRIES && put_cq(cq, ring))
			ring++;
	}
	return NULL;
}

/*
 * The provider asks for side entries only when the flag is set, as on the hit
 * path: one that is cleared at the wrong moment loses entries and hangs here.
 */
static void test_threads(void)
{
	uint64_t got, side = 0, ring = 0;
	pthread_t thread;
	struct cq cq;

	cq_init(&cq, 0, UINT32_MAX - 10);
	alarm(60);	/* a lost entry hangs */
	pthread_create(&thread, NULL, kernel_thread, &cq);
	while (side < THREAD_ENTRIES || ring < THREAD_ENTRIES) {
		if (shift_side_load(&cq.flag, memory_order_relaxed)) {
			got = get(&cq);
			shift_side_settle(&cq.side, &cq.flag);
		} else if (shift_side_load(&cq.prod, memory_order_acquire) !=
			   cq.cons) {
			got = take_cq(&cq);
		} else {
			continue;
		}
		if (!got)
			continue;
		if (got >> 32)
			CHECK(got >> 32 == ++side);
		else
			CHECK(got == ++ring);
		if (test_failures)
			break;
	}
	if (test_failures)
		exit(1);
	pthread_join(thread, NULL);
	alarm(0);
	CHECK(get(&cq) == 0);
	cq_exit(&cq);
}

static void run(const char *name, void (*fn)(void))
{
	test_failures = 0;
	fn();
	printf("%sok %d %s\n", test_failures ? "not " : "", ++test_nr, name);
	failures += !!test_failures;
}

int main(void)
{
	printf("KTAP version 1\n1..10\n");
	run("side_ring_attach", test_attach);
	run("side_ring_none", test_no_ring);
	run("side_ring_alone", test_side_only);
	run("side_ring_older_cqes_first", test_older_first);
	run("side_ring_removed", test_removed);
	run("side_ring_not_starved", test_no_starvation);
	run("side_ring_fast_path_behind", test_fast_path_behind);
	run("side_ring_fast_path_laps", test_fast_path_laps);
	run("side_ring_flag", test_settle);
	run("side_ring_random", test_random);
	run("side_ring_threads", test_threads);
	return !!failures;
}
