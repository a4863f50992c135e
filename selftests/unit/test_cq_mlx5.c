// SPDX-License-Identifier: GPL-2.0
/* Looking into a CQ of mlx5, against a device that is too simple to be wrong. */
#include "cq_mlx5.h"
#include "ktap.h"
#include "ring_mem.h"

#define SLOTS	16	/* at most */
#define MINE	0x12345u
#define OTHER	0x54321u
#define ALL	0xffffffffu
#define FLUSH	0x05	/* syndromes */
#define RETRIES	0x15
#define ACCESS	0x13

/* what the device wrote, by slot; seq: its index, as it runs on */
struct note {
	bool there;
	u32 seq, qpn;
	u16 wqe;
	u8 opcode, syndrome;
};

static u8 bytes[SLOTS * 128] __aligned(8);
static struct note notes[SLOTS];
static struct shift_ring ring;
static struct shift_mlx5_found found;
static u32 produced, polled;

static const u32 strides[] = { 64, 128 };
/* 0, where an owner bit changes, where a doorbell record's index comes round, all 32 bits */
static const u32 starts[] = { 0, SLOTS - 3, 0xfffffa, 0xfffffffa };

static struct shift_mlx5_cqe64 *entry(u32 index)
{
	return (void *)(bytes + ((index & (ring.slots - 1)) + 1) * ring.slot_size - 64);
}

/* As a library fills a new ring: no entry is anybody's. */
static void fresh(u32 slots, u32 stride, u32 start)
{
	u32 i;

	ring = (struct shift_ring) { .slots = slots, .slot_size = stride };
	ring_mem = (struct ring_mem) { .bytes = bytes };
	memset(bytes, 0, sizeof(bytes));
	memset(notes, 0, sizeof(notes));
	produced = polled = start;
	for (i = 0; i < slots; i++)
		entry(i)->op_own = SHIFT_MLX5_CQE_INVALID << 4;
}

/* The next entry, if there is room: as a device does, the last byte last. */
static struct shift_mlx5_cqe64 *complete(u32 qpn, u8 opcode, u16 wqe, u8 syndrome)
{
	struct shift_mlx5_cqe64 *e = entry(produced);

	e->user_index = cpu_to_be32(qpn);
	e->opcode_qpn = cpu_to_be32(SHIFT_MLX5_OP_SEND << 24 | qpn);
	e->wqe_index = cpu_to_be16(wqe);
	e->syndrome = syndrome;
	barrier();
	e->op_own = opcode << 4 | !!(produced & ring.slots);
	notes[produced & (ring.slots - 1)] = (struct note) {
		.there = true, .seq = produced, .qpn = qpn, .wqe = wqe, .opcode = opcode,
		.syndrome = syndrome,
	};
	produced++;
	return e;
}

static struct shift_mlx5_cqe64 *sent(u16 wqe)
{
	return complete(MINE, SHIFT_MLX5_CQE_REQ, wqe, 0);
}

static void send_error(u16 wqe, u8 syndrome)
{
	complete(MINE, SHIFT_MLX5_CQE_REQ_ERR, wqe, syndrome);
}

/* The consumer's index as the doorbell record has it. */
static u32 record(void)
{
	return polled & SHIFT_MLX5_CI_MASK;
}

/* Looks that it takes to find the end, at most. */
static u32 to_end(void)
{
	u32 n = 1;

	while (ring.slots >> n)
		n++;
	return 2 * n;
}

static u32 room(struct ktap *t)
{
	u32 n;

	ring_mem.words = ring_mem.copies = 0;
	n = shift_mlx5_cq_room(&ring, record());
	EXPECT(t, n <= ring.slots && !ring_mem.copies && ring_mem.words <= to_end());
	return n;
}

static void find_most(struct ktap *t, u32 qpn, bool recvs, u32 most)
{
	ring_mem.words = ring_mem.copies = 0;
	shift_mlx5_cq_find(&ring, record(), qpn, recvs, most, &found);
	most = min(most, ring.slots);
	EXPECT(t, ring_mem.copies <= most + 1 && ring_mem.words <= to_end() + 4 * (most + 1));
}

static void find(struct ktap *t)
{
	find_most(t, MINE, false, ALL);
}

static void room_is_exact(struct ktap *t)
{
	u32 slots, s, i, n;

	for (slots = 1; slots <= SLOTS; slots *= 2) {
		for (i = 0; i < ARRAY_SIZE(starts) * 2; i++) {
			fresh(slots, strides[i & 1], starts[i / 2]);
			for (s = 0; s < 3 * slots; s++) {
				EXPECT_EQ(t, room(t), slots);
				for (n = 1; n <= slots; n++) {
					sent(n);
					EXPECT_EQ(t, room(t), slots - n);
				}
				for (; n > 1; n--) {
					polled++;
					EXPECT_EQ(t, room(t), slots - n + 2);
				}
				sent(0);
				polled++;
			}
		}
	}
}

/* The newest one is found, polled or not, wherever in the ring, and none of a lap before. */
static void goes_round(struct ktap *t)
{
	u32 i, n, lag;

	for (i = 0; i < ARRAY_SIZE(starts) * 2; i++) {
		for (lag = 0; lag <= SLOTS; lag++) {
			fresh(SLOTS, strides[i & 1], starts[i / 2]);
			find(t);
			EXPECT(t, !found.success && !found.error);
			for (n = 0; n < 5 * SLOTS; n++) {
				sent(1000 + n);
				if (produced - polled > lag)
					polled++;
				find(t);
				EXPECT(t, found.success && !found.error && !found.cause);
				EXPECT_EQ(t, found.last, 1000 + n);
			}
		}
	}
}

/* Of a QP whose neighbors are busier, until its last entry is overwritten. */
static void others(struct ktap *t)
{
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(starts) * 2; i++) {
		fresh(SLOTS, strides[i & 1], starts[i / 2]);
		sent(7);
		for (n = 0; n <= SLOTS; n++) {
			find(t);
			EXPECT_EQ(t, found.success, n < SLOTS);
			EXPECT_EQ(t, found.last, n < SLOTS ? 7 : 0);
			if (n & 1)
				complete(OTHER, SHIFT_MLX5_CQE_REQ_ERR, 99, ACCESS);
			else
				complete(OTHER, SHIFT_MLX5_CQE_REQ, 98, 0);
			polled = produced;
		}
	}
}

static void queues(struct ktap *t)
{
	static const u8 kinds[] = {
		SHIFT_MLX5_CQE_RECV, SHIFT_MLX5_CQE_RECV_IMM, SHIFT_MLX5_CQE_RECV_INV,
		SHIFT_MLX5_CQE_RECV_WRITE_IMM,
	};
	u32 i;

	fresh(SLOTS, 64, 3);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		sent(100 + i);
		complete(MINE, kinds[i], 200 + i, 0);
		if (i & 1)
			polled = produced;
		find(t);
		EXPECT(t, found.success && found.last == 100 + i);
		find_most(t, MINE, true, ALL);
		EXPECT(t, found.success && found.last == 200 + i);
	}
	complete(MINE, SHIFT_MLX5_CQE_RECV_ERR, 300, FLUSH);
	find(t);
	EXPECT(t, found.success && !found.error);
	find_most(t, MINE, true, ALL);
	EXPECT(t, found.success && found.error && found.last == 203 && found.last_error == 300);
}

/* All that is said of errors, with each number of them polled. */
static void errors(struct ktap *t)
{
	u32 done;

	for (done = 0; done <= 4; done++) {
		fresh(SLOTS, 64, 0);
		sent(1);
		send_error(2, RETRIES);
		send_error(3, FLUSH);
		send_error(4, FLUSH);
		polled += done;
		find(t);
		EXPECT(t, found.success && found.last == 1 && found.error && found.begins &&
			  found.first_error == 2 && found.last_error == 4 &&
			  found.cause == SHIFT_WC_RETRY_EXC_ERR);
	}
	for (done = 0; done <= 3; done++) {
		fresh(SLOTS, 128, SLOTS - 2);
		send_error(5, FLUSH);
		send_error(6, ACCESS);
		send_error(7, RETRIES);
		polled += done;
		find(t);
		EXPECT(t, !found.success && found.error && !found.begins &&
			  found.first_error == 5 && found.last_error == 7 &&
			  found.cause == SHIFT_WC_RETRY_EXC_ERR);
	}
	/* what was before a success is over */
	for (done = 0; done <= 3; done++) {
		fresh(SLOTS, 64, 0);
		send_error(5, ACCESS);
		sent(6);
		send_error(7, FLUSH);
		polled += done;
		find(t);
		EXPECT(t, found.success && found.last == 6 && found.error && !found.begins &&
			  found.first_error == 7 && found.last_error == 7 && !found.cause);
	}
}

/* What is not covered otherwise was completed all the same. */
static void not_covered(struct ktap *t)
{
	struct shift_mlx5_cqe64 *e;
	u32 i;

	fresh(SLOTS, 128, 5);
	e = sent(11);
	e->opcode_qpn = cpu_to_be32(SHIFT_MLX5_OP_ATOMIC_MASKED_CS << 24 | MINE);
	find(t);
	EXPECT(t, found.success && found.last == 11);
	e = sent(12);
	e->opcode_qpn = cpu_to_be32(SHIFT_MLX5_OP_RDMA_READ << 24 | MINE);
	e->op_own |= SHIFT_MLX5_CQE_DATA_32 << 2;
	find(t);
	EXPECT(t, found.success && found.last == 12);
	e = complete(MINE, SHIFT_MLX5_CQE_RECV, 13, 0);
	e->app = 1;
	find_most(t, MINE, true, ALL);
	EXPECT(t, found.success && found.last == 13);
	/* these say nothing of a request */
	e = sent(14);
	e->op_own |= SHIFT_MLX5_CQE_COMPRESSED << 2;
	for (i = SHIFT_MLX5_CQE_RESIZE; i < SHIFT_MLX5_CQE_REQ_ERR; i++)
		complete(MINE, i, 15, 0);
	find(t);
	EXPECT(t, found.success && found.last == 12);
	find_most(t, MINE, true, ALL);
	EXPECT(t, found.success && found.last == 13);
}

/* The entry that ends a ring, and the hole with which the next one begins. */
static void resized(struct ktap *t)
{
	u32 slots, n;

	fresh(SLOTS, 64, 0);
	sent(1);
	complete(MINE, SHIFT_MLX5_CQE_RESIZE, 9, 0);
	EXPECT_EQ(t, room(t), SLOTS - 2);
	find(t);
	EXPECT(t, found.success && found.last == 1);
	find_most(t, MINE, true, ALL);
	EXPECT(t, !found.success && !found.error);

	/* copied behind the ending entry's place, and the index not written yet */
	for (slots = 2; slots <= SLOTS; slots *= 2) {
		for (n = 0; n < slots; n++) {
			fresh(slots, 128, slots - 1);
			produced++;
			while (produced - polled <= n)
				sent(produced - polled);
			EXPECT_EQ(t, room(t), slots - (n ? n + 1 : 0));
			find(t);
			EXPECT_EQ(t, found.success, n > 0);
			EXPECT_EQ(t, found.last, n);
		}
	}
}

static void no_more_than_asked(struct ktap *t)
{
	u32 n;

	fresh(SLOTS, 64, 0);
	sent(1);
	for (n = 1; n < SLOTS; n++)
		send_error(1 + n, n == 1 ? ACCESS : FLUSH);
	for (polled = 0; polled <= SLOTS; polled++) {
		for (n = 0; n <= SLOTS; n++) {
			find_most(t, MINE, false, n);
			EXPECT_EQ(t, found.success, n == SLOTS);
			EXPECT_EQ(t, found.error, n > 0);
			EXPECT_EQ(t, found.first_error, n < SLOTS ? n ? SLOTS + 1 - n : 0 : 2);
			EXPECT_EQ(t, found.cause, n + 1 < SLOTS ? 0 : SHIFT_WC_REM_ACCESS_ERR);
		}
	}
}

/* What is to be found in the newest @most notes. */
static struct shift_mlx5_found expected(u32 qpn, bool recvs, u32 most)
{
	struct shift_mlx5_found want = { };
	u32 seq;

	for (seq = produced - min(most, ring.slots); seq != produced; seq++) {
		const struct note *n = &notes[seq & (ring.slots - 1)];
		bool recv = n->opcode != SHIFT_MLX5_CQE_REQ && n->opcode != SHIFT_MLX5_CQE_REQ_ERR;

		if (!n->there || n->seq != seq || n->qpn != qpn || recv != recvs)
			continue;
		if (!n->syndrome) {
			want = (struct shift_mlx5_found){ .success = true, .last = n->wqe };
			continue;
		}
		if (!want.error)
			want.first_error = n->wqe;
		if (!want.error)
			want.begins = n->syndrome != FLUSH;
		want.error = true;
		want.last_error = n->wqe;
		if (n->syndrome != FLUSH)
			want.cause = n->syndrome == ACCESS ? SHIFT_WC_REM_ACCESS_ERR :
							     SHIFT_WC_RETRY_EXC_ERR;
	}
	return want;
}

static bool same(const struct shift_mlx5_found *a, const struct shift_mlx5_found *b)
{
	return a->success == b->success && a->error == b->error && a->begins == b->begins &&
	       a->last == b->last && a->first_error == b->first_error &&
	       a->last_error == b->last_error && a->cause == b->cause;
}

static void at_random(struct ktap *t)
{
	static const u8 opcodes[] = {
		SHIFT_MLX5_CQE_REQ, SHIFT_MLX5_CQE_RECV, SHIFT_MLX5_CQE_REQ_ERR,
		SHIFT_MLX5_CQE_RECV_ERR,
	};
	static const u8 syndromes[] = { FLUSH, FLUSH, FLUSH, RETRIES, ACCESS };
	struct rnd r = { .state = 20 };
	struct shift_mlx5_found want;
	u32 round, n;

	for (round = 0; round < 300; round++) {
		fresh(2 << rnd_below(&r, 4), strides[round & 1], rnd32(&r));
		for (n = 0; n < 200; n++) {
			u32 qpn = MINE + rnd_below(&r, 3), most = rnd_below(&r, 2 * SLOTS);
			u8 op = opcodes[rnd_below(&r, ARRAY_SIZE(opcodes))];
			bool recvs = rnd_one_in(&r, 2);

			if (produced - polled < ring.slots)
				complete(qpn, op, rnd32(&r), op < SHIFT_MLX5_CQE_REQ_ERR ? 0 :
					 syndromes[rnd_below(&r, ARRAY_SIZE(syndromes))]);
			if (rnd_one_in(&r, 2))
				polled += rnd_below(&r, produced - polled + 1);
			want = expected(MINE, recvs, most);
			find_most(t, MINE, recvs, most);
			EXPECT(t, same(&found, &want));
		}
	}
}

/* A neighbor's RESET: a step of the library's each time that somebody looks. */
static struct {
	struct rnd r;
	u32 at, freed;
	bool half;
	u8 owner;
	u16 wqe;
} clean;

static void clean_step(void)
{
	struct shift_mlx5_cqe64 *from = entry(clean.at - 1);
	struct shift_mlx5_cqe64 *to = entry(clean.at - 1 + clean.freed);

	if (clean.at == polled || !rnd_one_in(&clean.r, 4))
		return;
	if ((be32_to_cpu(from->opcode_qpn) & SHIFT_MLX5_QPN_MASK) == OTHER) {
		clean.freed++;
	} else if (clean.freed && !clean.half) {
		/* with the owner bit of where it was, at first */
		clean.owner = to->op_own & 1;
		memcpy(to, from, sizeof(*to));
		clean.half = true;
		return;
	} else if (clean.freed) {
		to->op_own = (to->op_own & 0xfe) | clean.owner;
		clean.half = false;
	}
	clean.at--;
}

/* Three QPs that go on side by side: successes, or errors. */
static void three(u32 n, bool errors)
{
	static const u32 qpns[] = { MINE, OTHER, MINE + 1 };
	u32 i;

	while (n--) {
		i = rnd_below(&clean.r, 3);
		if (errors)
			complete(qpns[i], SHIFT_MLX5_CQE_REQ_ERR, clean.wqe, i ? ACCESS :
				 rnd_one_in(&clean.r, 3) ? RETRIES : FLUSH);
		else
			complete(qpns[i], SHIFT_MLX5_CQE_REQ, clean.wqe, 0);
		clean.wqe += !i;	/* those before one of MINE have its index */
	}
}

static void entries_move_up(struct ktap *t)
{
	struct shift_mlx5_found want;
	u32 round;

	clean.r.state = 30;
	for (round = 0; round < 50000; round++) {
		fresh(SLOTS, 64, round);
		three(rnd_below(&clean.r, SLOTS), false);
		polled += rnd_below(&clean.r, produced - polled + 1);
		three(rnd_below(&clean.r, SLOTS + 1 - (produced - polled)), false);
		three(rnd_below(&clean.r, SLOTS + 1 - (produced - polled)), true);
		want = expected(MINE, false, ALL);
		clean.at = produced;
		clean.freed = 0;
		clean.half = false;
		ring_mem.meanwhile = clean_step;
		if (round & 1)
			EXPECT(t, room(t) - (SLOTS - (produced - polled)) <= 1);
		find(t);
		ring_mem.meanwhile = NULL;
		/* nothing is lost, and nothing is in another order */
		EXPECT(t, same(&found, &want));
	}
}

/* The device goes on while somebody looks at what was polled. */
static struct rnd device;

static void device_step(void)
{
	if (rnd_one_in(&device, 4))
		complete(OTHER, SHIFT_MLX5_CQE_REQ_ERR, 0xdead, ACCESS);
}

static void some_of_others(void)
{
	u32 n;

	for (n = rnd_below(&device, SLOTS / 2); n; n--)
		complete(OTHER, SHIFT_MLX5_CQE_REQ_ERR, 0xdead, ACCESS);
}

static void replaced_meanwhile(struct ktap *t)
{
	u32 round;

	device.state = 40;
	for (round = 0; round < 20000; round++) {
		fresh(SLOTS, strides[round & 1], round);
		some_of_others();
		send_error(1, RETRIES);
		some_of_others();
		send_error(2, FLUSH);
		some_of_others();
		polled = produced;
		ring_mem.meanwhile = device_step;
		find(t);
		ring_mem.meanwhile = NULL;
		/* both, or those that were not gone by then: what is older goes first */
		EXPECT(t, !found.success && found.last_error == (found.error ? 2 : 0));
		EXPECT_EQ(t, found.cause, found.begins ? SHIFT_WC_RETRY_EXC_ERR : 0);
		EXPECT_EQ(t, found.first_error, found.error ? found.begins ? 1 : 2 : 0);
	}
}

static struct rnd noise;

static void noise_step(void)
{
	rnd_fill(&noise, bytes + rnd_below(&noise, sizeof(bytes) - 8), 8);
}

static void garbage(struct ktap *t)
{
	u32 round, i;

	noise.state = 50;
	for (round = 0; round < 4000; round++) {
		fresh(1 << rnd_below(&noise, 5), strides[round & 1], rnd32(&noise));
		rnd_fill(&noise, bytes, sizeof(bytes));
		/* some that are nearly right, else all are somebody else's */
		for (i = 0; i < ring.slots; i++)
			if (rnd_one_in(&noise, 2))
				entry(i)->opcode_qpn = cpu_to_be32(MINE);
		ring_mem.meanwhile = round & 2 ? noise_step : NULL;
		room(t);
		find_most(t, MINE, round & 4, rnd_below(&noise, 2 * SLOTS));
		EXPECT(t, found.error || (!found.begins && !found.cause && !found.first_error &&
					  !found.last_error));
		EXPECT(t, found.success || !found.last);
		EXPECT(t, found.cause != SHIFT_WC_WR_FLUSH_ERR &&
			  found.cause <= SHIFT_WC_GENERAL_ERR);
		EXPECT(t, !found.begins || found.cause);
	}
	ring_mem.meanwhile = NULL;
}

static const struct ktap_case cases[] = {
	KTAP_CASE(room_is_exact),
	KTAP_CASE(goes_round),
	KTAP_CASE(others),
	KTAP_CASE(queues),
	KTAP_CASE(errors),
	KTAP_CASE(not_covered),
	KTAP_CASE(resized),
	KTAP_CASE(no_more_than_asked),
	KTAP_CASE(at_random),
	KTAP_CASE(entries_move_up),
	KTAP_CASE(replaced_meanwhile),
	KTAP_CASE(garbage),
};

KTAP_SUITE(cq_mlx5, cases);
