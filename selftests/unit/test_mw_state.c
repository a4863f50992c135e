// SPDX-License-Identifier: GPL-2.0
/* What becomes of a memory window: by hand, and against a device that is too simple to be wrong. */
#include "pure/mw_state.h"
#include "ktap.h"

#define KEY	0x1000107u

static struct shift_mw_op bind(u32 old, u32 key)
{
	return (struct shift_mw_op) {
		.opcode = SHIFT_WR_BIND_MW, .old = old, .key = key, .lkey = 9,
		.access = SHIFT_WR_ACCESS_REMOTE_WRITE, .addr = 0x1000, .length = 64,
	};
}

static struct shift_mw_op local_inv(u32 key)
{
	return (struct shift_mw_op) { .opcode = SHIFT_WR_LOCAL_INV, .key = key };
}

static void was(struct shift_mw_state *w, struct shift_mw_op op)
{
	shift_mw_state_was(w, &op);
}

/* on its own NIC, with what the peer tells afterwards */
static void told(struct ktap *t)
{
	struct shift_mw_state w;

	shift_mw_state_init(&w, KEY);
	EXPECT(t, !shift_mw_state_open(&w, KEY));
	was(&w, bind(KEY, KEY + 1));
	EXPECT(t, shift_mw_state_open(&w, KEY + 1) && !shift_mw_state_open(&w, KEY));
	EXPECT(t, w.addr == 0x1000 && w.length == 64 && w.lkey == 9 &&
		  w.access == SHIFT_WR_ACCESS_REMOTE_WRITE);
	shift_mw_state_told(&w, 0);
	EXPECT(t, shift_mw_state_open(&w, KEY + 1));
	shift_mw_state_told(&w, 1);	/* a second word changes nothing */
	EXPECT(t, shift_mw_state_open(&w, KEY + 1));

	shift_mw_state_init(&w, KEY);
	was(&w, bind(KEY, KEY + 1));
	shift_mw_state_told(&w, 1);
	EXPECT(t, !shift_mw_state_open(&w, KEY + 1));

	/* invalidated by the peer, bound again */
	shift_mw_state_init(&w, KEY);
	was(&w, bind(KEY, KEY + 1));
	was(&w, bind(KEY + 1, KEY + 2));
	shift_mw_state_told(&w, 1);
	EXPECT(t, shift_mw_state_open(&w, KEY + 2) && !shift_mw_state_open(&w, KEY + 1));

	/* one that does not fit is a lie, or a mistake of ours: shut */
	shift_mw_state_init(&w, KEY);
	was(&w, bind(KEY, KEY + 1));
	was(&w, bind(KEY + 1, KEY + 2));
	shift_mw_state_told(&w, 0);
	EXPECT(t, !shift_mw_state_open(&w, KEY + 2));
	shift_mw_state_init(&w, KEY);
	was(&w, bind(KEY, KEY + 1));
	shift_mw_state_told(&w, 0xffffffff);
	EXPECT(t, !shift_mw_state_open(&w, KEY + 1));

	/* here and there */
	shift_mw_state_init(&w, KEY);
	was(&w, bind(KEY, KEY + 1));
	was(&w, local_inv(KEY + 1));
	was(&w, bind(KEY + 1, KEY + 2));
	was(&w, bind(KEY + 2, KEY + 3));
	was(&w, local_inv(KEY + 3));
	shift_mw_state_told(&w, 1);
	EXPECT(t, !shift_mw_state_open(&w, KEY + 3) && !w.bound);
}

/* of a QP that is away */
static void away(struct ktap *t)
{
	struct shift_mw_op op = bind(KEY, 0xffffff55);
	struct shift_mw_state w;

	shift_mw_state_init(&w, KEY);
	EXPECT_EQ(t, shift_mw_state_invalidate(&w, KEY), -EINVAL);
	EXPECT_EQ(t, shift_mw_state_bind(&w, &op), 0);
	EXPECT_EQ(t, w.key, (KEY & ~0xffu) | 0x55);	/* the index is the window's */
	EXPECT_EQ(t, shift_mw_state_bind(&w, &op), -EINVAL);
	op = bind(w.key, KEY + 9);
	EXPECT_EQ(t, shift_mw_state_bind(&w, &op), -EINVAL);	/* bound */
	shift_mw_state_told(&w, 77);	/* of a life in which it was not bound */
	EXPECT(t, shift_mw_state_open(&w, op.old));
	EXPECT_EQ(t, shift_mw_state_invalidate(&w, KEY), -EINVAL);
	EXPECT_EQ(t, shift_mw_state_invalidate(&w, op.old), 0);
	EXPECT_EQ(t, shift_mw_state_invalidate(&w, op.old), -EINVAL);
	EXPECT_EQ(t, shift_mw_state_bind(&w, &op), 0);

	/* the peer has invalidated it, and only the application was told */
	shift_mw_state_init(&w, KEY);
	was(&w, bind(KEY, KEY + 1));
	op = bind(KEY + 1, KEY + 2);
	EXPECT_EQ(t, shift_mw_state_bind(&w, &op), 0);
	shift_mw_state_told(&w, 1);
	EXPECT(t, shift_mw_state_open(&w, KEY + 2));
	EXPECT_EQ(t, shift_mw_state_invalidate(&w, KEY + 2), 0);
	shift_mw_state_told(&w, 0);
	EXPECT(t, !w.bound);
}

static void fits(struct ktap *t)
{
	const u32 all = SHIFT_WR_ACCESS_MW_BIND | SHIFT_WR_ACCESS_LOCAL_WRITE;
	struct shift_mw_op op = bind(1, 2);

	EXPECT(t, shift_mw_state_fits(&op, 0x1000, 64, all));
	EXPECT(t, !shift_mw_state_fits(&op, 0x1000, 63, all));
	EXPECT(t, !shift_mw_state_fits(&op, 0x1001, 64, all));
	EXPECT(t, shift_mw_state_fits(&op, 0xfff, 65, all));
	EXPECT(t, !shift_mw_state_fits(&op, 0x1000, 64, SHIFT_WR_ACCESS_LOCAL_WRITE));
	EXPECT(t, !shift_mw_state_fits(&op, 0x1000, 64, SHIFT_WR_ACCESS_MW_BIND));
	op.access = SHIFT_WR_ACCESS_REMOTE_READ;
	EXPECT(t, shift_mw_state_fits(&op, 0x1000, 64, SHIFT_WR_ACCESS_MW_BIND));
	op.addr = ~0ull - 3;	/* its end is not above its beginning */
	EXPECT(t, !shift_mw_state_fits(&op, 0, ~0ull, all));
	op.length = ~0ull;
	op.addr = 0x1000;
	EXPECT(t, !shift_mw_state_fits(&op, 0x1000, 64, all));
	op.length = 0;
	EXPECT(t, !shift_mw_state_fits(&op, 0x1000, 64, all));
}

static void operations(struct ktap *t)
{
	struct shift_mw_op op;
	struct shift_wr wr = {
		.opcode = SHIFT_WR_BIND_MW, .imm = 2, .rkey = 1, .remote_addr = 0x5000,
		.length = 10, .access = SHIFT_WR_ACCESS_REMOTE_READ, .mw_type = 2, .num_sge = 1,
		.sge = { { .addr = 0x5000, .length = 10, .lkey = 3 } },
	};

	EXPECT(t, shift_mw_op(&wr, &op));
	EXPECT(t, op.key == 2 && op.old == 1 && op.lkey == 3 && op.addr == 0x5000 &&
		  op.length == 10 && op.access == SHIFT_WR_ACCESS_REMOTE_READ);
	wr.access |= SHIFT_WR_ACCESS_ZERO_BASED;
	EXPECT(t, !shift_mw_op(&wr, &op));
	wr.access = SHIFT_WR_ACCESS_LOCAL_WRITE;
	EXPECT(t, !shift_mw_op(&wr, &op));
	wr.access = 0;
	EXPECT(t, shift_mw_op(&wr, &op));
	wr.length = 0;
	EXPECT(t, !shift_mw_op(&wr, &op));
	wr.length = 10;
	wr.mw_type = 1;
	EXPECT(t, !shift_mw_op(&wr, &op));
	wr.opcode = SHIFT_WR_SEND_WITH_INV;
	EXPECT(t, shift_mw_op(&wr, &op) && op.key == 2);
	wr.opcode = SHIFT_WR_LOCAL_INV;
	EXPECT(t, shift_mw_op(&wr, &op) && op.key == 2);
	wr.opcode = SHIFT_WR_SEND;
	EXPECT(t, !shift_mw_op(&wr, &op));
}

/* any right application, and a switch at any time: open here is bound at the device */
static void random_life(struct ktap *t)
{
	u32 seed = 1, i, round, peers, key;
	struct shift_mw_op op;
	struct shift_mw_state w;
	bool bound;

	for (round = 0; round < 2000; round++) {
		shift_mw_state_init(&w, KEY);
		bound = false;
		peers = 0;
		key = KEY;
		for (i = 0; i < round % 23; i++) {
			seed = seed * 1664525 + 1013904223;
			if (!bound) {
				op = bind(key, (key & ~0xffu) | ((key + 1) & 0xff));
				key = op.key;
				was(&w, op);
				bound = true;
			} else if (seed & 0x10000) {
				was(&w, local_inv(key));
				bound = false;
			} else {
				peers++;
				bound = false;
			}
		}
		if (seed & 0x20000 && !bound) {
			op = bind(key, key + 0x80);
			EXPECT_EQ(t, shift_mw_state_bind(&w, &op), 0);
			key = w.key;
			bound = true;
		}
		shift_mw_state_told(&w, peers);
		EXPECT_EQ(t, shift_mw_state_open(&w, key), bound);
		EXPECT_EQ(t, shift_mw_state_invalidate(&w, key), bound ? 0 : -EINVAL);
	}
}

static const struct ktap_case cases[] = {
	KTAP_CASE(told),
	KTAP_CASE(away),
	KTAP_CASE(fits),
	KTAP_CASE(operations),
	KTAP_CASE(random_life),
};

KTAP_SUITE(window, cases);
