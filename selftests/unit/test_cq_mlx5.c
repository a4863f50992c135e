// SPDX-License-Identifier: GPL-2.0
/* Looking into a CQ of mlx5 that stands still. */
#include "cq_device.h"

/* 0, where an owner bit changes, where a doorbell record's index comes round, all 32 bits */
static const u32 starts[] = { 0, SLOTS - 3, 0xfffffa, 0xfffffffa };

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

/* Those of a QP that are not polled, of whichever queue; what ends a ring is no request's. */
static void own_are_counted(struct ktap *t)
{
	u32 own, i, n;

	for (i = 0; i < ARRAY_SIZE(starts) * 2; i++) {
		fresh(SLOTS, strides[i & 1], starts[i / 2]);
		for (n = 0; n < 3; n++) {
			sent(n);
			hand_over(OTHER, SHIFT_MLX5_CQE_REQ, n, 0);
			hand_over(MINE, SHIFT_MLX5_CQE_RECV, n, 0);
			send_error(n, FLUSH);
			hand_over(OTHER, SHIFT_MLX5_CQE_REQ_ERR, n, ACCESS);
			EXPECT_EQ(t, room_own(t, &own), SLOTS - 5);
			EXPECT_EQ(t, own, 3);
			polled++;
			EXPECT_EQ(t, room_own(t, &own), SLOTS - 4);
			EXPECT_EQ(t, own, 2);
			polled = produced;
			EXPECT_EQ(t, room_own(t, &own), SLOTS);
			EXPECT_EQ(t, own, 0);
		}
	}
	hand_over(MINE, SHIFT_MLX5_CQE_RESIZE, 9, 0);
	EXPECT_EQ(t, room_own(t, &own), SLOTS - 1);
	EXPECT_EQ(t, own, 0);
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
				hand_over(OTHER, SHIFT_MLX5_CQE_REQ_ERR, 99, ACCESS);
			else
				hand_over(OTHER, SHIFT_MLX5_CQE_REQ, 98, 0);
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
		hand_over(MINE, kinds[i], 200 + i, 0);
		if (i & 1)
			polled = produced;
		find(t);
		EXPECT(t, found.success && found.last == 100 + i);
		find_most(t, MINE, true, ALL);
		EXPECT(t, found.success && found.last == 200 + i);
	}
	hand_over(MINE, SHIFT_MLX5_CQE_RECV_ERR, 300, FLUSH);
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
	e = hand_over(MINE, SHIFT_MLX5_CQE_RECV, 13, 0);
	e->app = 1;
	find_most(t, MINE, true, ALL);
	EXPECT(t, found.success && found.last == 13);
	/* these say nothing of a request */
	e = sent(14);
	e->op_own |= SHIFT_MLX5_CQE_COMPRESSED << 2;
	for (i = SHIFT_MLX5_CQE_RESIZE; i < SHIFT_MLX5_CQE_REQ_ERR; i++)
		hand_over(MINE, i, 15, 0);
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
	hand_over(MINE, SHIFT_MLX5_CQE_RESIZE, 9, 0);
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
	u16 wqe = 0;

	for (round = 0; round < 300; round++) {
		fresh(2 << rnd_below(&r, 4), strides[round & 1], rnd32(&r));
		for (n = 0; n < 200; n++) {
			u32 qpn = MINE + rnd_below(&r, 3), most = rnd_below(&r, 2 * SLOTS);
			u8 op = opcodes[rnd_below(&r, ARRAY_SIZE(opcodes))];
			bool recvs = rnd_one_in(&r, 2);

			if (produced - polled < ring.slots)
				hand_over(qpn, op, wqe++, op < SHIFT_MLX5_CQE_REQ_ERR ? 0 :
					  syndromes[rnd_below(&r, ARRAY_SIZE(syndromes))]);
			if (rnd_one_in(&r, 2))
				polled += rnd_below(&r, produced - polled + 1);
			want = expected(MINE, recvs, most);
			find_most(t, MINE, recvs, most);
			EXPECT(t, same(&found, &want));
		}
	}
}

/* Receives as they are told of, oldest first. */
static struct told {
	u32 n, status[SLOTS + 1], qpn[SLOTS + 1];
	u64 index[SLOTS + 1];
} told;

static void tell(void *arg, u64 index, u32 status, u32 qpn)
{
	struct told *to = arg;

	if (to->n > SLOTS)
		return;
	to->index[to->n] = index;
	to->status[to->n] = status;
	to->qpn[to->n++] = qpn;
}

/* All receives that are not polled, of any QP, in order, and neither sends nor what was polled. */
static void shared_recvs(struct ktap *t)
{
	static const u8 opcodes[] = {
		SHIFT_MLX5_CQE_RECV_WRITE_IMM, SHIFT_MLX5_CQE_RECV, SHIFT_MLX5_CQE_RECV_IMM,
		SHIFT_MLX5_CQE_RECV_INV, SHIFT_MLX5_CQE_RECV_ERR, SHIFT_MLX5_CQE_REQ,
		SHIFT_MLX5_CQE_REQ_ERR, SHIFT_MLX5_CQE_RESIZE,
	};
	struct rnd r = { .state = 21 };
	u32 round, n, seq, i;

	for (round = 0; round < 300; round++) {
		fresh(2 << rnd_below(&r, 4), strides[round & 1], rnd32(&r));
		for (n = 0; n < 100; n++) {
			u8 op = opcodes[rnd_below(&r, ARRAY_SIZE(opcodes))];
			bool error = op == SHIFT_MLX5_CQE_RECV_ERR || op == SHIFT_MLX5_CQE_REQ_ERR;

			if (produced - polled < ring.slots)
				hand_over(MINE + rnd_below(&r, 3), op, rnd32(&r),
					  error ? FLUSH : 0);
			if (rnd_one_in(&r, 2))
				polled += rnd_below(&r, produced - polled + 1);
			memset(&told, 0, sizeof(told));
			ring_mem.words = ring_mem.copies = 0;
			shift_mlx5_cq_recvs(&ring, record(), tell, &told);
			EXPECT(t, ring_mem.copies <= produced - polled + 1);
			for (seq = polled, i = 0; seq != produced; seq++) {
				const struct note *of = &notes[seq & (ring.slots - 1)];

				if (of->opcode > SHIFT_MLX5_CQE_RECV_INV &&
				    of->opcode != SHIFT_MLX5_CQE_RECV_ERR)
					continue;
				if (of->opcode == SHIFT_MLX5_CQE_REQ)
					continue;
				EXPECT(t, i < told.n && told.index[i] == of->wqe &&
					  told.qpn[i] == of->qpn &&
					  !told.status[i] == !of->syndrome);
				i++;
			}
			EXPECT_EQ(t, told.n, i);
		}
	}
}

static const struct ktap_case cases[] = {
	KTAP_CASE(room_is_exact),
	KTAP_CASE(own_are_counted),
	KTAP_CASE(goes_round),
	KTAP_CASE(others),
	KTAP_CASE(queues),
	KTAP_CASE(errors),
	KTAP_CASE(not_covered),
	KTAP_CASE(resized),
	KTAP_CASE(no_more_than_asked),
	KTAP_CASE(at_random),
	KTAP_CASE(shared_recvs),
};

KTAP_SUITE(cq_mlx5, cases);
