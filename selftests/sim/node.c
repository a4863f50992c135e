// SPDX-License-Identifier: GPL-2.0
/* Nodes: how they boot, crash and come back, and how their applications begin and end. */
#include "world.h"
#include <uapi/linux/shift.h>

#define DEAD_MAX	8u

static u64 dead_cookie[DEAD_MAX];	/* of QPs that a crash has ended */
static u32 n_dead;
static bool knows[SIM_ENDS][SIM_NETS];	/* it has met the kernel that came after a crash */
static u32 incarnation[SIM_ENDS];

void node_start(void)
{
	n_dead = 0;
	memset(knows, 0, sizeof(knows));
	memset(incarnation, 0, sizeof(incarnation));
}

static void boot(int end)
{
	u32 odds = sim_memory_upsets(0);

	sim_become(end);
	kernel[end]->start(end, &dev[end][0], &dev[end][1], &dev[!end][0].gid.gid,
			   &dev[!end][1].gid.gid, plan.policy[end]);
	sim_become(-1);
	sim_memory_upsets(odds);
}

static void connect_thread(void *arg)
{
	struct call *call = arg;
	struct side *s = call->side;
	int err;

	err = kernel[s->end]->connect(&s->app, s->peer->qpn, 1000 + 777 * s->qpn,
				      1000 + 777 * s->peer->qpn, &plan.shape);
	if (err)
		sim_fail("a QP cannot be connected (%d)", err);
	kfree(call);
	app_start(s);
	helpers--;
}

static void create(struct side *s)
{
	sim_become(s->end);
	if (s->srq && !s->srq->made)
		lib_srq_start(s->end);
	kernel[s->end]->create(&s->app, s->cq, s->srq ? &s->srq->app : NULL, &plan.shape);
	lib_start(s);
	sim_become(-1);
	s->qpn = s->app.qp->qp_num;
	s->alive = true;
}

void sides_draw(void)
{
	struct side *s;
	int end, srqs;	/* a bit for each end whose QPs share receives */

	memset(side, 0, sizeof(side));
	srqs = plan.qps > 1 && !plan.forgets ? sim_draw(4) : 0;
	/* one SRQ waits for the other: late work items may take it more time than it has */
	if (plan.mild && plan.storm)
		srqs &= 1;
	srqs = plan.srqs ?: srqs;
	for (end = 0; end < SIM_ENDS; end++)
		shared[end].there = srqs >> end & 1;
	for_each_side(s) {
		s->end = (s - side[0]) % SIM_ENDS;
		s->app.loop = plan.loops && s >= side[plan.qps - 1];
		s->peer = s->app.loop ? s : s->end ? s - 1 : s + 1;
		s->own.number = 1 + s - side[0];
		s->srq = shared[s->end].there && !s->app.loop ? &shared[s->end] : NULL;
		s->recvs = s->srq ? &s->srq->recvs : &s->own;
		s->late = plan.late && s >= side[plan.qps - 1];
		s->ops = 4 + sim_draw(OPS_MAX / plan.qps - 4);
		if (s->end && (!sim_draw(4) || plan.idle))
			s->ops = 0;
	}
}

/* Connections begin, the late ones or all others. */
void sides_begin(bool late)
{
	struct side *s;

	for_each_side(s)
		if (s->late == late && !s->alive)
			create(s);
	for_each_side(s)
		if (s->late == late)
			call_start(s->end, "connect", connect_thread, &(struct call) { .side = s });
}

void nodes_boot(void)
{
	int end, net;

	for (end = 0; end < SIM_ENDS; end++)
		for (net = 0; net < SIM_NETS; net++)
			sim_dev_init(&dev[end][net], end, net, plan.forgets, plan.lower[net],
				     plan.global);
	for (end = 0; end < SIM_ENDS; end++)
		boot(end);
	sides_begin(false);
}

static void destroy_thread(void *arg)
{
	struct call *call = arg;
	struct side *s = call->side;

	kernel[s->end]->destroy(&s->app, s->cq);
	s->alive = false;
	kfree(call);
	helpers--;
}

static void srq_destroy(int end)
{
	if (!shared[end].made)
		return;
	sim_become(end);
	lib_srq_stop(end);
	sim_become(-1);
}

/* The applications of an end are over: their QPs go. */
void sides_destroy(int end)
{
	struct side *s;
	bool left;
	int i;

	for_each_side(s)
		if (s->alive && (end < 0 || s->end == end))
			call_start(s->end, "destroy", destroy_thread, &(struct call) { .side = s });
	do {
		sim_sleep(MS(1));
		left = false;
		for_each_side(s)
			left |= s->alive && (end < 0 || s->end == end);
	} while (left);
	for (i = 0; i < SIM_ENDS; i++)
		if (end < 0 || i == end)
			srq_destroy(i);
}

static void halt(int end)
{
	sim_become(end);
	kernel[end]->stop();
	sim_become(-1);
}

void nodes_halt(void)
{
	u64 end_ns;

	sides_destroy(-1);
	over = true;
	for (end_ns = sim_now + MS(5000); helpers && sim_now < end_ns;)
		sim_sleep(MS(1));
	halt(0);
	halt(1);
}

/*
 * A kernel crashes, and another one boots in its place.  From the first moment on nothing goes in
 * or out.  What the old kernel does in its grave is the end of its module: nobody sees it.
 */
void node_restarts(int end, u64 pause_ns)
{
	struct side *s;
	int net;

	may_fail = true;
	for (net = 0; net < SIM_NETS; net++)
		dev[end][net].dead = true;
	for_each_side(s) {
		if (s->end != end || !s->alive)
			continue;
		s->crashed = true;
		s->rebooted = true;
		dead_cookie[n_dead++ % DEAD_MAX] = kernel[end]->cookie(&s->app);
		while (!s->over)
			sim_sleep(MS(1));
	}
	/* among them may be one that still does something there */
	while (helpers)
		sim_sleep(MS(1));
	sides_destroy(end);
	halt(end);
	sim_sleep(pause_ns);
	sim_log("%c boots", 'a' + end);
	incarnation[end]++;
	for (net = 0; net < SIM_NETS; net++) {
		dev[end][net].dead = false;
		dev[end][net].gone = false;
	}
	boot(end);
	nodes_late();
}

/* The connections that come late come now. */
void nodes_late(void)
{
	u32 odds = sim_verb_odds, memory;
	int end, net;

	if (!plan.late || side[plan.qps - 1][0].qpn)
		return;
	devices_return();
	memory = sim_memory_upsets(0);
	sim_verb_odds = 0;
	for (end = 0; end < SIM_ENDS; end++)
		for (net = 0; net < SIM_NETS; net++)
			dev[end][net].refuses = 0;
	sides_begin(true);
	while (helpers)
		sim_sleep(MS(1));
	sim_verb_odds = odds;
	sim_memory_upsets(memory);
}

/* A link has come up: who has met the new kernel never meets the old one again. */
void sim_session(int end, int net, const u8 *boot_id)
{
	bool present = !memcmp(boot_id, kernel[!end]->boot_id, 16);

	if (!present && knows[end][net] && !sim_hostile)
		sim_fail("end %d has a link to a kernel that has crashed, after one to the next",
			 end);
	knows[end][net] |= present && incarnation[!end];
}

/* A message is heeded. */
void sim_message(int end, const u8 *boot_id, u64 cookie)
{
	u32 i;

	/* before the next kernel boots, what was under way still comes */
	if (!incarnation[!end] || memcmp(boot_id, kernel[!end]->boot_id, 16))
		return;
	for (i = 0; i < n_dead && i < DEAD_MAX; i++)
		if (dead_cookie[i] == cookie && !sim_hostile)
			sim_fail("a message of a QP that has crashed comes from the next kernel");
}

/* Everything is over, and links are up: is a QP still protected by a kernel that has crashed? */
void nodes_check(void)
{
	bool rest, failed, *met;
	struct side *s;
	u8 path;

	if (sim_hostile)
		return;
	for_each_side(s) {
		met = knows[s->end];
		/* one that is away stays there, as it has no path to go back to */
		if (s->alive && s->peer->rebooted && (met[0] || met[1]) &&
		    !strcmp(kernel[s->end]->shows(&s->app, &rest, &failed, &path), "RUN") && !path)
			sim_fail("qp %u is protected by a kernel that has crashed", s->qpn);
	}
}
