// SPDX-License-Identifier: GPL-2.0
/* Looking into a CQ of mlx5 while others write there, and into what is none. */
#include "cq_device.h"

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
			hand_over(qpns[i], SHIFT_MLX5_CQE_REQ_ERR, clean.wqe, i ? ACCESS :
				  rnd_one_in(&clean.r, 3) ? RETRIES : FLUSH);
		else
			hand_over(qpns[i], SHIFT_MLX5_CQE_REQ, clean.wqe, 0);
		clean.wqe += !i;	/* those before one of MINE have its index */
	}
}

static void begin_to_clean(void)
{
	clean.at = produced;
	clean.freed = 0;
	clean.half = false;
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
		begin_to_clean();
		ring_mem.meanwhile = clean_step;
		if (round & 1)
			EXPECT(t, room(t) - (SLOTS - (produced - polled)) <= 1);
		find(t);
		ring_mem.meanwhile = NULL;
		/* nothing is lost, and nothing is in another order */
		EXPECT(t, same(&found, &want));
	}
}

/* The old places of these are nobody's, until the device comes round to them. */
static void moved_and_left(struct ktap *t)
{
	u32 slots, i;

	clean.r.state = 35;
	for (slots = 4; slots <= SLOTS; slots *= 2) {
		fresh(slots, 64, slots - 2);
		send_error(1, RETRIES);
		send_error(2, FLUSH);
		for (i = 0; i < 2; i++)
			hand_over(OTHER, SHIFT_MLX5_CQE_REQ, 0, 0);
		begin_to_clean();
		while (clean.at != polled)
			clean_step();
		polled += clean.freed;
		for (i = 0; i < slots - 2; i++) {
			find(t);
			EXPECT(t, !found.success && found.error && found.begins &&
				  found.first_error == 1 && found.last_error == 2 &&
				  found.cause == SHIFT_WC_RETRY_EXC_ERR);
			hand_over(OTHER, SHIFT_MLX5_CQE_REQ, 0, 0);
		}
	}
}

/* The device goes on while somebody looks at what was polled. */
static struct rnd device;

static void device_step(void)
{
	if (rnd_one_in(&device, 4))
		hand_over(OTHER, SHIFT_MLX5_CQE_REQ_ERR, 0xdead, ACCESS);
}

static void some_of_others(void)
{
	u32 n;

	for (n = rnd_below(&device, SLOTS / 2); n; n--)
		hand_over(OTHER, SHIFT_MLX5_CQE_REQ_ERR, 0xdead, ACCESS);
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
	KTAP_CASE(entries_move_up),
	KTAP_CASE(moved_and_left),
	KTAP_CASE(replaced_meanwhile),
	KTAP_CASE(garbage),
};

KTAP_SUITE(cq_moves_mlx5, cases);
