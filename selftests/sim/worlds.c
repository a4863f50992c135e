// SPDX-License-Identifier: GPL-2.0
/*
 * Worlds: each has more of one kind of trouble than the ordinary one, in which what needs three
 * rare things at a time is hardly ever met.  What a world draws, the ordinary one does not.
 */
#include "world.h"
#include <uapi/linux/shift.h>

struct world {
	const char *name;
	void (*weigh)(void);		/* the plan, when it is drawn */
	void (*begin)(void);		/* what else goes wrong from the first fault on */
};

static const struct world *world;	/* NULL: the ordinary one */

static void all_rough(void)
{
	plan.mild = false;
	plan.patient = false;
	plan.anew = false;
	plan.again = false;
	plan.nomem = false;
	plan.stuck = false;
	plan.loops = false;
	plan.restarts = false;
	plan.removes = false;
	plan.late = false;
	plan.ends = false;
	plan.storm = false;
	plan.faults = 2 + sim_draw(4);
	plan.shape.timeout = 10 + sim_draw(6);
	plan.shape.retries = 1 + sim_draw(7);
	plan.mail = 0;
	sim_mail.calm = 0;
	sim_message_ms = 20;
	may_fail = true;
}

/*
 * Shared receives that have left: QPs are connected late, or end, or cannot follow as their pair
 * has gone, and the queue is resized meanwhile.
 */
static void weigh_srq(void)
{
	all_rough();
	plan.forgets = false;
	plan.shape.rebases = false;
	plan.qps = 2 + !sim_draw(3);
	/* at one end: two that go different ways wait for each other for two minutes */
	plan.srqs = 1 + sim_draw(2);
	plan.late = sim_draw(4);
	plan.joins = 1 + sim_draw(plan.faults);
	plan.ends = sim_draw(2);
	plan.removes = sim_draw(2);
	plan.storm = !sim_draw(3);
	plan.homes = 2;
	plan.dry = (u32[]) { 0, 300, 30 }[sim_draw(3)];
	plan.odds.end = 3;
	plan.odds.resize = 4;
	plan.odds.limit = 3;
}

static void begin_srq(void)
{
	sim_verb_odds = (u32[]) { 0, 0, 40, 8 }[sim_draw(4)];
}

/* QPs come home and are handed back, and something goes wrong just then. */
static void weigh_handback(void)
{
	all_rough();
	plan.forgets = true;
	plan.shape.rebases = true;
	plan.shape.timeout = 10;
	plan.shape.retries = 1 + sim_draw(2);
	plan.naps = 0;
	plan.homes = 4;
	plan.restarts = !sim_draw(3);
	plan.odds.restart = 2;
	plan.odds.rebase = 3;
	plan.refuses = 2;
	plan.qps = plan.restarts ? 2 : 1;
	plan.late = plan.restarts;
}

static void begin_handback(void)
{
	sim_verb_odds = (u32[]) { 0, 0, 40 }[sim_draw(3)];
	sim_rts_odds = 2;
	sim_weather((u32[]) { 4000, 500, 120 }[sim_draw(3)]);
}

/* QPs come home and are handed back while their backup is dark, which must not matter. */
static void weigh_home(void)
{
	all_rough();
	plan.mild = true;
	plan.forgets = true;
	plan.shape.rebases = true;
	plan.shape.timeout = 10;
	plan.shape.retries = 5 + sim_draw(3);
	plan.naps = 0;
	plan.dry = 0;
	plan.homes = 4;
	plan.qps = 1;
	plan.odds.rebase = 2;
	sim_mail.calm = MS(3000);
	may_fail = false;
}

/* A kernel crashes and the next one is there at once, while work items are late. */
static void weigh_restart(void)
{
	all_rough();
	plan.restarts = true;
	plan.late = true;
	plan.qps = 2;
	plan.early = true;
	plan.idle = sim_draw(4);
	plan.storm = sim_draw(2);
	plan.odds.restart = 1;
	if (plan.storm)
		return;
	/* the links of the default path come up late, to the next kernel first */
	sim_net[0].dark[0] = sim_net[0].dark[1] = sim_now + sim_draw_between(0, MS(2000));
	plan.shape.timeout = 15;
	plan.shape.retries = 7;
	plan.removes = true;
	plan.odds.remove = 1;
}

/*
 * Operators move QPs back and forth, whose atomics and READs are under way; there is no fault.  With
 * devices that forget, an application can post an atomic between the look and the fence.
 */
static void weigh_moves(void)
{
	all_rough();
	plan.mild = true;
	plan.forgets = false;
	plan.only_moves = true;
	plan.reads = true;
	plan.atomics = true;
	plan.shape.rebases = false;
	plan.shape.sends = SIM_RING - 1;
	plan.shape.retries = 5 + sim_draw(3);
	plan.naps = 0;
	plan.dry = 0;
	plan.qps = 1;
	plan.faults = 3 + sim_draw(4);
	sim_packet_us = 150;
	may_fail = false;
}

/* Drivers whose verbs take up to a minute, as firmware that resets itself. */
static void weigh_slow(void)
{
	all_rough();
	plan.qps = 1 + sim_draw(2);
	plan.homes = 4;
	plan.removes = !sim_draw(3);
}

static void begin_slow(void)
{
	sim_verb_odds = (u32[]) { 100, 30 }[sim_draw(2)];
	sim_verb_ms = 60000;
}

/* NICs that do nothing their drivers want, for a while: QPs can neither be stopped nor asked. */
static void weigh_refusal(void)
{
	all_rough();
	/* enough for a fence, and not for what stops a QP for good after it */
	plan.refuses = 3;
	/* one whose own QP can be neither started nor stopped has no end */
	plan.shape.rebases = false;
	plan.homes = 2;
	plan.shape.timeout = 10 + sim_draw(3);
	plan.shape.retries = 1 + sim_draw(3);
	plan.storm = !sim_draw(3);
	plan.mail = (u32[]) { 0, 30, 10 }[sim_draw(3)];
	sim_message_ms = 250;
	if (sim_draw(2))
		plan.policy[0] = plan.policy[1] = SHIFT_POLICY_AT_LEAST_ONCE;
}

static void begin_refusal(void)
{
	sim_verb_odds = 0;
}

static const struct world worlds[] = {
	{ "srq", weigh_srq, begin_srq },
	{ "handback", weigh_handback, begin_handback },
	{ "home", weigh_home, NULL },
	{ "restart", weigh_restart, NULL },
	{ "refusal", weigh_refusal, begin_refusal },
	{ "moves", weigh_moves, NULL },
	{ "slow", weigh_slow, begin_slow },
};

bool world_pick(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(worlds); i++)
		if (!strcmp(worlds[i].name, name))
			world = &worlds[i];
	return world;
}

void world_weigh(void)
{
	if (world)
		world->weigh();
}

void world_begin(void)
{
	if (world && world->begin)
		world->begin();
}
