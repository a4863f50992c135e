// SPDX-License-Identifier: GPL-2.0
/* What goes wrong in a run, and its repair. */
#include <stdio.h>
#include "world.h"
#include <uapi/linux/shift.h>

static u64 fault_length(void)
{
	switch (sim_draw(6)) {
	case 0:
		return sim_draw_between(MS(1), MS(50));
	case 1 ... 2:
		return sim_draw_between(MS(50), MS(500));
	default:
		return sim_draw_between(MS(500), MS(4000));
	}
}

/* Is a QP being handed back? */
static bool any_returns(void)
{
	struct side *s;

	for_each_side(s)
		if (s->alive && kernel[s->end]->returns(&s->app))
			return true;
	return false;
}

static void port_thread(void *arg)
{
	struct call *call = arg;

	sim_sleep(sim_draw(4) ? sim_draw_between(US(10), MS(5)) : sim_draw_between(MS(5), MS(900)));
	/* the last one tells what is so */
	if (!over)
		kernel[call->end]->port(call->net, dev[call->end][call->net].down);
	kfree(call);
	helpers--;
}

static void port_set(int end, int net, bool down)
{
	if (dev[end][net].down == down)
		return;
	dev[end][net].down = down;
	call_start(end, "port event", port_thread,
	      &(struct call) { .end = end, .net = net, .down = down });
}

static void move_thread(void *arg)
{
	struct call *call = arg;

	kernel[call->end]->move(call->to, call->down);
	kfree(call);
	helpers--;
}

static void ask_to_move(int end, int to)
{
	call_start(end, "operator", move_thread,
		   &(struct call) { .end = end, .to = to, .down = sim_draw(2) });
}

static void end_thread(void *arg)
{
	struct call *call = arg;
	struct side *s = call->side;
	bool reset = call->up;

	/* it may have ended before: ERR shows nothing more of a QP that was reset */
	s->flushed = !reset && (!s->ended || s->flushed);
	s->ended = true;
	/* if the driver fails, try again: who cannot end a QP leaves its peer waiting */
	while (kernel[s->end]->modify(&s->app, reset ? IB_QPS_RESET : IB_QPS_ERR) == -EIO)
		sim_sleep(MS(1));
	kfree(call);
	helpers--;
}

/* Mostly the network that is in use. */
static int fault_net(void)
{
	struct side *s = side[0];
	bool rest, failed;
	u8 path;

	if (!sim_draw(3))
		return sim_draw(SIM_NETS);
	if (!s->alive)
		s = s->peer;
	if (!s->alive)
		return 0;
	kernel[s->end]->shows(&s->app, &rest, &failed, &path);
	return path == 1;
}

/* The other end's NIC stops with it, and cannot be asked what it has executed of @end's. */
static void nic_stops(int end, int net)
{
	char text[100];

	if (plan.mild || plan.policy[end] != SHIFT_POLICY_AT_LEAST_ONCE || sim_draw(3))
		return;
	snprintf(text, sizeof(text), "device %c%d cannot be asked", 'a' + !end, net);
	if (sim_upset(1, text))
		dev[!end][net].dumb = true;
}

/* Its driver can neither stop a QP nor ask one. */
static void nic_refuses(int end, int net)
{
	u32 verbs = 1 + sim_draw(plan.refuses);
	char text[100];

	snprintf(text, sizeof(text), "device %c%d refuses the next %u verbs", 'a' + end, net, verbs);
	if (sim_upset(1, text))
		dev[end][net].refuses = verbs;
}

/* The QPs' own retries bridge that. */
static void all_dark(void)
{
	u64 length = sim_draw_between(MS(1100), MS(2500));
	char text[100];
	int net;

	snprintf(text, sizeof(text), "all is dark for %llu ms",
		 (unsigned long long)(length / MS(1)));
	if (!sim_upset(1, text))
		return;
	harmed = true;
	for (net = 0; net < SIM_NETS; net++)
		sim_net[net].dark[0] = sim_net[net].dark[1] = sim_now + length;
	sim_sleep(length);
}

/* The next kernel is there before anybody has noticed, and its backup is not reached at first. */
static void restarts_soon(int end)
{
	u64 pause = sim_draw_between(MS(1), MS(300));

	if (!plan.storm && sim_draw(2))
		sim_net[1].dark[0] = sim_net[1].dark[1] =
			sim_now + pause + sim_draw_between(0, MS(2000));
	node_restarts(end, pause);
}

static void one_fault(void)
{
	int net = fault_net(), end = sim_draw(SIM_ENDS), kind = sim_draw(plan.mild ? 8 : 11);
	u64 length = fault_length();
	struct side *ends = &side[sim_draw(plan.qps)][end];
	char text[100];

	if (plan.restarts && !sim_draw(plan.odds.restart)) {
		snprintf(text, sizeof(text), "node %c restarts", 'a' + end);
		if (!sim_upset(1, text))
			return;
		plan.restarts = false;
		if (plan.early) {
			restarts_soon(end);
			return;
		}
		node_restarts(end, sim_draw_between(MS(1), 2 * length));
		return;
	}
	if (plan.removes && !sim_draw(plan.odds.remove)) {
		net = !!sim_draw(3);
		snprintf(text, sizeof(text), "device %c%d is removed", 'a' + end, net);
		if (!sim_upset(1, text))
			return;
		device_goes(end, net);
		sim_sleep(length);
		if (sim_draw(2))
			devices_return();
		return;
	}
	if (!sim_draw(12)) {
		if (sim_upset(1, "an operator deletes a pair that is in use"))
			pair_is_kept(end);
		return;
	}
	if (plan.ends && ends->alive && !sim_draw(plan.odds.end)) {
		if (!sim_upset(1, "an application ends its QP"))
			return;
		may_fail = true;
		call_start(end, "application", end_thread,
			   &(struct call) { .side = ends, .up = sim_draw(2) });
		return;
	}
	if (plan.patient && !sim_draw(2)) {
		snprintf(text, sizeof(text), "connection %d is silent", net);
		if (sim_upset(1, text)) {
			harmed = true;
			net_break(net, true);
		}
		sim_sleep(sim_draw_between(US(20), MS(2)));
		all_dark();
		return;
	}
	if (!plan.mild && shared[end].made && !sim_draw(plan.odds.resize)) {
		if (sim_upset(1, "a shared queue is resized"))
			resize_start(end);
		return;
	}
	if (plan.refuses && sim_draw(2)) {
		nic_refuses(sim_draw(SIM_ENDS), net);
		/* one that sends breaks in the dark; if only the link is mute its peer goes on sending */
		kind = (int[]) { kind, 0, 5, 5 }[sim_draw(4)];
	}
	if (plan.only_moves)
		kind = 7;
	harmed |= kind < 7;
	switch (kind) {
	case 0 ... 2:
		snprintf(text, sizeof(text), "path %d is dark for %llu ms", net,
			 (unsigned long long)(length / MS(1)));
		if (!sim_upset(1, text))
			return;
		sim_net[net].dark[0] = sim_net[net].dark[1] = sim_now + length;
		nic_stops(end, net);
		break;
	case 3:
		snprintf(text, sizeof(text), "path %d is dark towards end %d for %llu ms", net, end,
			 (unsigned long long)(length / MS(1)));
		if (!sim_upset(1, text))
			return;
		sim_net[net].dark[end] = sim_now + length;
		nic_stops(end, net);
		break;
	case 4:
		snprintf(text, sizeof(text), "port %c%d is down for %llu ms", 'a' + end, net,
			 (unsigned long long)(length / MS(1)));
		if (!sim_upset(1, text))
			return;
		port_set(end, net, true);
		sim_sleep(length);
		port_set(end, net, false);
		return;
	case 5 ... 6:
		/* silent: what beats for the path is lost, and the path works */
		snprintf(text, sizeof(text), "connection %d %s", net, end ? "breaks" : "is silent");
		if (sim_upset(1, text))
			net_break(net, !end);
		return;
	case 7 ... 8:
		snprintf(text, sizeof(text), "end %d is asked to move to path %d", end, net);
		if (sim_upset(1, text))
			ask_to_move(end, net);
		/* and the other one, to the same path or to the other one */
		snprintf(text, sizeof(text), "end %d is asked to move, too", !end);
		if (!sim_draw(3) && sim_upset(1, text))
			ask_to_move(!end, sim_draw(SIM_NETS));
		return;
	default:
		snprintf(text, sizeof(text), "path %d loses and delays packets", net);
		if (!sim_upset(1, text))
			return;
		sim_net[net].loss = 15;
		sim_net[net].delay = 10;
	}
	if (plan.mild)
		sim_sleep(length);
}

static bool work_is_under_way(void)
{
	const struct side *s;

	for_each_side(s)
		if (s->posted > s->completed)
			return true;
	return false;
}

/* It is the path that a QP is not on, nor comes home on. */
static void backup_dark(void)
{
	u64 length = sim_draw_between(MS(500), MS(4000));

	if (!sim_upset(1, "the backup is dark"))
		return;
	harmed = true;
	sim_net[1].dark[0] = sim_net[1].dark[1] = sim_now + length;
	sim_sleep(length);
}

/* Most faults of QPs that come home are to meet them there: an operator moves them away before. */
static void strikes(void)
{
	if (!plan.homes || !sim_draw(plan.homes))
		one_fault();
	else if (sim_upset(1, "end 0 is asked to move to path 1"))
		ask_to_move(0, 1);
}

/* As an operator or shiftd does after a fault; a QP that is home may be handed back. */
static void fail_back(void)
{
	int end = sim_draw(SIM_ENDS);
	u64 end_ns;

	/* where work items are late a handback is not over by the next fault */
	if (!(plan.shape.rebases || plan.homes) || (plan.mild && plan.storm) ||
	    (!plan.homes && !sim_draw(3)))
		return;
	sim_sleep(sim_draw_between(MS(1), MS(3000)));
	if (sim_upset(1, "failback"))
		call_start(end, "operator", move_thread,
			   &(struct call) { .end = end, .down = true });
	if ((plan.mild && !plan.patient && !plan.homes) || !sim_draw(3))
		return;
	/* the next fault comes into the middle of it, if it is soon */
	for (end_ns = sim_now + MS(400); !any_returns() && sim_now < end_ns; )
		sim_sleep(sim_draw_between(US(10), MS(1)));
	if (plan.homes)
		phase++;	/* work is posted, and waits */
	if (any_returns() && sim_draw(3)) {
		sim_sleep(sim_draw_between(US(1), MS(2)));
		if (plan.mild && plan.homes) {
			backup_dark();
			return;
		}
		if (!plan.patient) {
			one_fault();
			return;
		}
		all_dark();
		sim_sleep(MS(plan.calm_ms));
		net_mended();
	}
}

static void registers_anew(void)
{
	int end = sim_draw(SIM_ENDS);
	bool breaks = sim_draw(2);
	char text[100];

	snprintf(text, sizeof(text), "end %d registers its memory anew%s", end,
		 breaks ? " while links break" : "");
	if (sim_upset(1, text))
		memory_anew(end, breaks);
}

/* Late work items of peers do not count for an SRQ, which gives its QPs three seconds. */
static void storm(void)
{
	u32 ends = 1 + sim_draw(3), ms;
	char text[100];
	int end;

	for (end = 0; end < SIM_ENDS; end++) {
		ms = sim_draw_between(300, sim_draw(2) ? 3000 : 6000);
		snprintf(text, sizeof(text), "work items of end %d are late, by up to %u ms", end, ms);
		if (ends >> end & 1 && sim_upset(1, text))
			kernel[end]->storm(MS(ms));
		plan.calm_ms = max(plan.calm_ms, 8 * ms);
	}
}

static void lead_thread(void *arg)
{
	struct call *call = arg;

	kernel[call->end]->lead(&call->side->app, 2 * (2 + sim_draw(8)));
	kfree(call);
	helpers--;
}

/* Asks of a QP that worked were called off, and the peer has heard of none. */
static void vain_asks(void)
{
	struct side *s = &side[sim_draw(plan.qps)][sim_draw(SIM_ENDS)];

	if (s->alive && sim_upset(plan.mild ? 6 : 12, "an end has asked in vain before"))
		call_start(s->end, "asks", lead_thread,
			   &(struct call) { .end = s->end, .side = s });
}

void faults(void)
{
	u32 i, ms;

	plan.calm_ms = 5000;
	if (plan.storm)
		storm();
	if (plan.early)
		sim_sleep(sim_draw_between(0, MS(2000)));
	for (i = 0; i < plan.faults; i++) {
		phase = i;
		sim_sleep(sim_draw(3) ? sim_draw_between(US(50), MS(20)) :
					sim_draw_between(MS(20), MS(1500)));
		if (!plan.homes && sim_draw(4)) {
			phase = i + 1;	/* into the middle of work */
			for (ms = 0; ms < 30 && !work_is_under_way(); ms++)
				sim_sleep(MS(1));
			sim_sleep(sim_draw_between(US(5), sim_draw(2) ? US(200) : MS(3)));
		}
		if (!i)
			vain_asks();
		strikes();
		if (i + 1 == plan.joins)
			nodes_late();
		/* one at a time: by then both ends are back at rest */
		if (plan.mild) {
			sim_sleep(MS(plan.calm_ms));
			net_mended();
		}
		fail_back();
		if (plan.mild)
			sim_sleep(MS(plan.calm_ms));
		if (plan.anew && sim_draw(2))
			registers_anew();
	}
	phase = plan.faults;
}

void repair(void)
{
	struct side *s;
	int net, end;

	devices_return();
	for (net = 0; net < SIM_NETS; net++) {
		sim_net[net].dark[0] = sim_net[net].dark[1] = 0;
		sim_net[net].loss = sim_net[net].delay = 0;
		for (end = 0; end < SIM_ENDS; end++) {
			port_set(end, net, false);
			dev[end][net].dumb = false;
			dev[end][net].refuses = 0;
		}
	}
	for (end = 0; end < SIM_ENDS; end++)
		kernel[end]->storm(0);
	for_each_side(s)
		s->asleep = 0;
	shared[0].dry = 0;
	shared[1].dry = 0;
	plan.dry = 0;
	plan.naps = 0;
	sim_verb_odds = 0;
	sim_cm_odds = 0;
	sim_weather(2000000000);
	sim_memory_upsets(0);
	sim_mail.odds = 0;
	sim_softirq_odds = 0;
	sim_rts_odds = 0;
	sim_stuck_odds = 0;
}
