// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers that are to be new: epochs, of what either end asks for, and start PSNs.  They are those
 * of two cookies: a message names both.
 */
#include "world.h"

#define KEPT	128u

struct number { u64 from, to, fault; u32 epoch, psn; u8 path; };

static struct number ask[KEPT], ready[KEPT];
static u32 asks, readies;

void asks_start(void)
{
	asks = readies = 0;
}

static bool of_one_connection(const struct number *a, const struct number *b)
{
	return (a->from == b->from && a->to == b->to) || (a->from == b->to && a->to == b->from);
}

/* A copy of an ask is for the same path, because of the same fault. */
void sim_asked(u64 from, u64 to, u32 epoch, u8 path, u64 fault)
{
	const struct number new = {
		.from = from, .to = to, .epoch = epoch, .path = path, .fault = fault,
	};
	u32 i;

	for (i = 0; i < min(asks, KEPT) && !sim_hostile; i++)
		if (of_one_connection(&ask[i], &new) && ask[i].epoch == epoch &&
		    (ask[i].from != from || ask[i].path != path || ask[i].fault != fault))
			sim_fail("epoch %u is asked for twice", epoch);
	ask[asks++ % KEPT] = new;
}

/* The PSN at which an end begins for an epoch; they go round after 256 epochs. */
void sim_begins(u64 from, u64 to, u32 epoch, u32 psn)
{
	const struct number new = { .from = from, .to = to, .epoch = epoch, .psn = psn };
	u32 i;

	for (i = 0; i < min(readies, KEPT) && !sim_hostile; i++)
		if (ready[i].from == from && ready[i].to == to && ready[i].psn == psn &&
		    (ready[i].epoch ^ epoch) & 0xff)
			sim_fail("epochs %u and %u have the same PSNs", ready[i].epoch, epoch);
	ready[readies++ % KEPT] = new;
}
