// SPDX-License-Identifier: GPL-2.0
/* The record of a kernel user's posted requests: kmod/pure/post_ring.c */
#include "ktap.h"
#include "pure/post_ring.h"
#include "pure/psn.h"

#define SLOTS		8u
#define MAX_SGE		4u
#define MAX_INLINE	100u
#define MTU		1024u

static u64 memory[SLOTS * 256 / 8];
static struct shift_wr wr;

static void start(struct shift_post_ring *r)
{
	memset(memory, 0xaa, sizeof(memory));
	shift_post_ring_init(r, memory, SLOTS, shift_post_slot_size(MAX_SGE, MAX_INLINE));
}

static int post_add(struct shift_post_ring *r, const struct shift_post *post,
		    const struct shift_sge *sge)
{
	struct shift_post *next = shift_post_ring_next(r);

	if (next)
		*next = *post;
	return shift_post_ring_add(r, next, sge);
}

static int post_keep(struct shift_post_ring *r, const struct shift_post *post,
		     const struct shift_sge *sge)
{
	struct shift_post *next = shift_post_ring_next(r);

	if (next)
		*next = *post;
	return shift_post_ring_keep(r, next, sge);
}

static int add(struct shift_post_ring *r, u64 wr_id, u16 opcode, u16 flags, u32 length)
{
	struct shift_post post = {
		.wr_id = wr_id, .opcode = opcode, .flags = flags, .num_sge = 1,
	};
	struct shift_sge sge = { .addr = 0x1000, .length = length, .lkey = 7 };

	return post_add(r, &post, &sge);
}

static int add_send(struct shift_post_ring *r, u64 wr_id, bool signaled)
{
	return add(r, wr_id, SHIFT_WR_SEND, signaled ? SHIFT_WR_SIGNALED : 0, 10);
}

static void slot_size(struct ktap *t)
{
	u32 head = sizeof(struct shift_post);

	EXPECT_EQ(t, head, 80u);
	EXPECT_EQ(t, shift_post_slot_size(0, 0), head);
	EXPECT_EQ(t, shift_post_slot_size(1, 0), head + 16);
	EXPECT_EQ(t, shift_post_slot_size(1, 16), head + 16);
	EXPECT_EQ(t, shift_post_slot_size(1, 17), head + 24);
	EXPECT_EQ(t, shift_post_slot_size(30, 100), head + 480);
}

/* Each field comes back. */
static void copies(struct ktap *t)
{
	struct shift_post post = {
		.wr_id = 0x1122334455667788, .remote_addr = 0x99aabbccddeeff00,
		.compare_add = 1ull << 40, .swap = 2ull << 40,
		.compare_mask = 3ull << 40, .swap_mask = 4ull << 40,
		.imm = 5, .rkey = 6, .access = 7, .num_sge = 3,
		.opcode = SHIFT_WR_MASKED_ATOMIC_CMP_AND_SWP,
		.flags = SHIFT_WR_FENCE | SHIFT_WR_SIGNALED,
	};
	struct shift_sge sge[3] = {
		{ .addr = ~0ull, .length = 8, .lkey = 1 },
		{ .addr = 3, .length = 0, .lkey = ~0u },
		{ .addr = 4, .length = 1000, .lkey = 0x0102 },
	};
	struct shift_post_ring r;

	start(&r);
	EXPECT_EQ(t, post_add(&r, &post, sge), 0);
	memset(&wr, 0xff, sizeof(wr));
	ASSERT(t, !shift_post_decode(shift_post_ring_slot(&r, 0), r.slot_size, &wr));
	EXPECT(t, wr.wr_id == post.wr_id && wr.remote_addr == post.remote_addr);
	EXPECT(t, wr.compare_add == post.compare_add && wr.swap == post.swap);
	EXPECT(t, wr.compare_mask == post.compare_mask && wr.swap_mask == post.swap_mask);
	EXPECT(t, wr.imm == 5 && wr.rkey == 6 && wr.access == 7);
	EXPECT(t, wr.opcode == post.opcode && wr.flags == post.flags);
	EXPECT_EQ(t, wr.length, 1008u);
	EXPECT(t, !wr.inline_data && !wr.mw_type);
	EXPECT_EQ(t, wr.num_sge, 3u);
	EXPECT(t, !memcmp(wr.sge, sge, sizeof(sge)));
}

/* A request of no SGEs: a registration. */
static void registration(struct ktap *t)
{
	struct shift_post post = {
		.wr_id = 9, .rkey = 0x1234ff, .access = SHIFT_WR_ACCESS_REMOTE_READ,
		.opcode = SHIFT_WR_REG_MR, .flags = SHIFT_WR_SIGNALED,
	};
	struct shift_post_ring r;

	start(&r);
	shift_post_ring_count(&r, 100, MTU);
	EXPECT_EQ(t, post_add(&r, &post, NULL), 0);
	ASSERT(t, !shift_post_decode(shift_post_ring_slot(&r, 0), r.slot_size, &wr));
	EXPECT(t, wr.opcode == SHIFT_WR_REG_MR && wr.rkey == 0x1234ff && !wr.num_sge);
	EXPECT(t, !shift_wr_movable(&wr));
	EXPECT_EQ(t, shift_post_ring_done(&r, 9), 0);
	EXPECT_EQ(t, r.psn, 100u);
}

/* Inline data are copied: the user may use its memory again when the post returns. */
static void inline_data(struct ktap *t)
{
	static u8 one[60], two[60];
	struct shift_post post = {
		.wr_id = 1, .num_sge = 2, .opcode = SHIFT_WR_SEND, .flags = SHIFT_WR_INLINE,
	};
	struct shift_sge sge[2] = {
		{ .addr = (uintptr_t)one, .length = 60 },
		{ .addr = (uintptr_t)two, .length = 40 },
	};
	struct shift_post_ring r;

	start(&r);
	memset(one, 1, sizeof(one));
	memset(two, 2, sizeof(two));
	EXPECT_EQ(t, post_add(&r, &post, sge), 0);
	memset(one, 3, sizeof(one));
	ASSERT(t, !shift_post_decode(shift_post_ring_slot(&r, 0), r.slot_size, &wr));
	EXPECT(t, wr.length == 100 && !wr.num_sge && wr.inline_data);
	EXPECT(t, wr.inline_data[0] == 1 && wr.inline_data[59] == 1);
	EXPECT(t, wr.inline_data[60] == 2 && wr.inline_data[99] == 2);
	/* one byte more than fits into the slot, whose size is a multiple of 8 */
	sge[1].length = 45;
	EXPECT_EQ(t, post_add(&r, &post, sge), -EINVAL);
	EXPECT(t, r.lost);
}

/* A signaled request stands for all in front of it; wr_ids need not differ. */
static void completes(struct ktap *t)
{
	struct shift_post_ring r;

	start(&r);
	add_send(&r, 1, false);
	add_send(&r, 1, true);
	add_send(&r, 1, true);
	add_send(&r, 2, false);
	add_send(&r, 3, true);
	add_send(&r, 4, false);
	EXPECT_EQ(t, shift_post_ring_done(&r, 1), 0);
	EXPECT_EQ(t, shift_post_ring_outstanding(&r), 4u);
	EXPECT_EQ(t, shift_post_ring_done(&r, 1), 0);
	EXPECT_EQ(t, shift_post_ring_outstanding(&r), 3u);
	EXPECT_EQ(t, shift_post_ring_done(&r, 3), 0);
	EXPECT_EQ(t, shift_post_ring_outstanding(&r), 1u);
	EXPECT(t, !r.lost);
}

/* A completion that fits nothing is a doubt: the record is lost, and says so from then on. */
static void doubts(struct ktap *t)
{
	struct shift_post_ring r;

	start(&r);
	add_send(&r, 1, true);
	EXPECT_EQ(t, shift_post_ring_done(&r, 2), -EINVAL);
	EXPECT(t, r.lost);
	EXPECT_EQ(t, add_send(&r, 1, true), -ENODATA);
	EXPECT_EQ(t, shift_post_ring_done(&r, 1), -ENODATA);
	shift_post_ring_start(&r);
	EXPECT_EQ(t, shift_post_ring_outstanding(&r), 0u);
	EXPECT_EQ(t, add_send(&r, 1, false), 0);
	EXPECT_EQ(t, shift_post_ring_done(&r, 1), -EINVAL);
	shift_post_ring_start(&r);
	EXPECT_EQ(t, shift_post_ring_done(&r, 1), -EINVAL);
}

static void full(struct ktap *t)
{
	struct shift_post_ring r;
	u32 i;

	start(&r);
	for (i = 0; i < SLOTS; i++)
		EXPECT_EQ(t, add_send(&r, i, true), 0);
	EXPECT_EQ(t, shift_post_ring_done(&r, 0), 0);
	EXPECT_EQ(t, add_send(&r, SLOTS, true), 0);
	EXPECT_EQ(t, add_send(&r, SLOTS + 1, true), -ENOSPC);
	EXPECT(t, r.lost);
}

static int keep(struct shift_post_ring *r, u64 wr_id, u32 length)
{
	struct shift_post post = { .wr_id = wr_id, .opcode = SHIFT_WR_SEND, .num_sge = 1 };
	struct shift_sge sge = { .length = length };

	return post_keep(r, &post, &sge);
}

/* What is kept back is refused if it does not fit, and nothing is lost. */
static void keeps(struct ktap *t)
{
	struct shift_post post = { .opcode = SHIFT_WR_SEND, .num_sge = 0x10000 };
	struct shift_sge sge = { .length = 1 };
	struct shift_post_ring r;
	u32 i;

	start(&r);
	EXPECT_EQ(t, add_send(&r, 0, true), 0);
	for (i = 1; i < SLOTS; i++)
		EXPECT_EQ(t, keep(&r, i, 10), 0);
	EXPECT_EQ(t, r.kept, SLOTS - 1);
	EXPECT_EQ(t, keep(&r, SLOTS, 10), -ENOMEM);
	EXPECT_EQ(t, shift_post_ring_done(&r, 0), 0);
	EXPECT_EQ(t, post_keep(&r, &post, &sge), -EINVAL);
	EXPECT_EQ(t, r.kept, SLOTS - 1);
	EXPECT(t, !r.lost);
	EXPECT_EQ(t, shift_post_ring_outstanding(&r), SLOTS - 1);
	shift_post_ring_start(&r);
	EXPECT_EQ(t, r.kept, 0u);
}

/* The engine completes up to a number of 32 bits, signaled or not. */
static void completed_up_to(struct ktap *t)
{
	struct shift_post_ring r;
	u32 i;

	start(&r);
	r.head = 0xfffffffe;
	r.tail = r.head;
	shift_post_ring_count(&r, 5, MTU);
	for (i = 0; i < 5; i++)
		EXPECT_EQ(t, add(&r, i, SHIFT_WR_SEND, 0, MTU + 1), 0);
	shift_post_ring_complete(&r, 0xfffffffe);
	EXPECT_EQ(t, shift_post_ring_outstanding(&r), 5u);
	shift_post_ring_complete(&r, 1);
	EXPECT_EQ(t, shift_post_ring_outstanding(&r), 2u);
	EXPECT_EQ(t, r.tail, 0x100000001ull);
	EXPECT_EQ(t, r.psn, 11u);
	/* what was completed before, and what was never posted */
	shift_post_ring_complete(&r, 0);
	shift_post_ring_complete(&r, 4);
	EXPECT_EQ(t, shift_post_ring_outstanding(&r), 2u);
	shift_post_ring_complete(&r, 3);
	EXPECT_EQ(t, shift_post_ring_outstanding(&r), 0u);
}

static void too_much(struct ktap *t)
{
	struct shift_post post = { .opcode = SHIFT_WR_SEND };
	static struct shift_sge sge[MAX_SGE + 4];
	struct shift_post_ring r;

	start(&r);
	/* inline data make room for more SGEs than were asked for */
	post.num_sge = (r.slot_size - sizeof(post)) / sizeof(*sge);
	EXPECT_EQ(t, post_add(&r, &post, sge), 0);
	post.num_sge++;
	EXPECT_EQ(t, post_add(&r, &post, sge), -EINVAL);
	start(&r);
	post.num_sge = 2;
	sge[0].length = 1u << 31;
	sge[1].length = 1;
	EXPECT_EQ(t, post_add(&r, &post, sge), -EINVAL);
	EXPECT(t, r.lost);
	sge[0].length = 0;
	sge[1].length = 0;
}

/* What has more SGEs than the common form is recorded, and cannot be posted elsewhere. */
static void many_sges(struct ktap *t)
{
	static struct shift_sge sge[SHIFT_WR_MAX_SGE + 1];
	struct shift_post post = { .num_sge = ARRAY_SIZE(sge), .flags = SHIFT_WR_SIGNALED };
	struct shift_post_ring r;

	shift_post_ring_init(&r, memory, 2, shift_post_slot_size(ARRAY_SIZE(sge), 0));
	ASSERT(t, 2 * r.slot_size <= sizeof(memory));
	EXPECT_EQ(t, post_add(&r, &post, sge), 0);
	EXPECT_EQ(t, shift_post_decode(shift_post_ring_slot(&r, 0), r.slot_size, &wr), -EINVAL);
	post.num_sge--;
	EXPECT_EQ(t, post_add(&r, &post, sge), 0);
	EXPECT_EQ(t, shift_post_decode(shift_post_ring_slot(&r, 1), r.slot_size, &wr), 0);
	EXPECT(t, !r.lost);
}

/* The PSN of the oldest outstanding request, over the end of 24 bits. */
static void packets(struct ktap *t)
{
	struct shift_post_ring r;

	start(&r);
	shift_post_ring_count(&r, 0xfffffe, MTU);
	add(&r, 1, SHIFT_WR_RDMA_WRITE, 0, 3 * MTU);
	add(&r, 2, SHIFT_WR_REG_MR, 0, 0);
	add(&r, 3, SHIFT_WR_RDMA_READ, SHIFT_WR_SIGNALED, MTU + 1);
	add(&r, 4, SHIFT_WR_SEND, SHIFT_WR_SIGNALED, 0);
	EXPECT_EQ(t, r.psn, 0xfffffeu);
	EXPECT_EQ(t, shift_post_ring_done(&r, 3), 0);
	EXPECT_EQ(t, r.psn, 3u);
	EXPECT_EQ(t, shift_post_ring_done(&r, 4), 0);
	EXPECT_EQ(t, r.psn, 4u);
	shift_post_ring_start(&r);
	EXPECT(t, !r.psn && !r.mtu);
}

/* Against a list that is kept in the plainest way. */
static void at_random(struct ktap *t)
{
	static struct { u64 wr_id; bool signaled; u32 length; } list[SLOTS];
	struct rnd rnd = { 0x5eed };
	struct shift_post_ring r;
	u32 n = 0, psn = 7, round, i, k;

	start(&r);
	r.head = 0xfffffffa;		/* the number of a slot has 32 bits */
	r.tail = r.head;
	shift_post_ring_count(&r, psn, MTU);
	for (round = 0; round < 100000; round++) {
		if (n < SLOTS && rnd_one_in(&rnd, 2)) {
			list[n].wr_id = rnd_below(&rnd, 3);
			/* the newest of a full record is signaled, as users see to */
			list[n].signaled = n == SLOTS - 1 || rnd_one_in(&rnd, 3);
			list[n].length = rnd_below(&rnd, 4 * MTU);
			if (!EXPECT_EQ(t, add(&r, list[n].wr_id, SHIFT_WR_SEND,
					      list[n].signaled ? SHIFT_WR_SIGNALED : 0,
					      list[n].length), 0))
				return;
			n++;
			continue;
		}
		for (i = 0; i < n && !list[i].signaled; i++)
			;
		if (i == n)
			continue;
		if (!EXPECT_EQ(t, shift_post_ring_done(&r, list[i].wr_id), 0))
			return;
		for (k = 0; k <= i; k++)
			psn = (psn + shift_wr_packets(SHIFT_WR_SEND, list[k].length, MTU)) &
			      SHIFT_PSN_MASK;
		n -= i + 1;
		memmove(list, list + i + 1, n * sizeof(*list));
		EXPECT_EQ(t, shift_post_ring_outstanding(&r), n);
		EXPECT_EQ(t, r.psn, psn);
		for (k = 0; k < n; k++) {
			EXPECT(t, !shift_post_decode(shift_post_ring_slot(&r, r.tail + k),
						     r.slot_size, &wr));
			EXPECT(t, wr.wr_id == list[k].wr_id && wr.length == list[k].length);
		}
	}
}

/* What a slot holds may be anything: nothing behind its end is read. */
static void garbage(struct ktap *t)
{
	struct rnd rnd = { 0xbad };
	u32 round, size;

	for (round = 0; round < 20000; round++) {
		size = shift_post_slot_size(rnd_below(&rnd, 8), rnd_below(&rnd, 64));
		rnd_fill(&rnd, memory, size);
		if (rnd_one_in(&rnd, 2))
			((struct shift_post *)memory)->num_sge = rnd_below(&rnd, 40);
		if (rnd_one_in(&rnd, 2))
			((struct shift_post *)memory)->length = rnd_below(&rnd, 200);
		if (shift_post_decode(memory, size, &wr))
			continue;
		EXPECT(t, wr.num_sge <= (size - sizeof(struct shift_post)) / 16);
		EXPECT(t, !wr.inline_data || wr.length <= size - sizeof(struct shift_post));
	}
}

static const struct ktap_case cases[] = {
	KTAP_CASE(slot_size),
	KTAP_CASE(copies),
	KTAP_CASE(registration),
	KTAP_CASE(inline_data),
	KTAP_CASE(completes),
	KTAP_CASE(doubts),
	KTAP_CASE(full),
	KTAP_CASE(keeps),
	KTAP_CASE(completed_up_to),
	KTAP_CASE(too_much),
	KTAP_CASE(many_sges),
	KTAP_CASE(packets),
	KTAP_CASE(at_random),
	KTAP_CASE(garbage),
};
KTAP_SUITE(post_ring, cases);
