// SPDX-License-Identifier: GPL-2.0
/* The world of one run: two applications with a connection, and the course of what happens. */
#include "core/stat.h"
#include "world.h"
#include <uapi/linux/shift.h>

#define PROTECTED_NS	MS(25000)	/* links take 15 s, and PAIR is repeated after 5 s */
#define SETTLED_NS	MS(27000)	/* after the last fault, and a verb, everything is over by then */

const struct sim_kernel *const kernel[SIM_ENDS] = { &a_sim_kernel, &b_sim_kernel };
struct sim_dev dev[SIM_ENDS][SIM_NETS];
struct side side[QPS_MAX][SIM_ENDS];
struct shared shared[SIM_ENDS];
struct plan plan;
bool stopping, over, may_fail, harmed, unpaired;
bool sim_hostile;
u64 sim_lies;
u32 phase, helpers;
struct sim_mail sim_mail;

void call_start(int end, const char *name, sim_fn *fn, const struct call *what)
{
	struct call *call = sim_alloc(sizeof(*call), SIM_GFP_WORLD);

	*call = *what;
	helpers++;
	sim_thread_start(end, name, fn, call, false);
}

/* Has @test a side of which it is true? */
static bool any_side(bool (*test)(const struct side *s))
{
	struct side *s;

	for_each_side(s)
		if (test(s))
			return true;
	return false;
}

static bool is_busy(const struct side *s) { return !at_rest(s); }
static bool goes_on(const struct side *s) { return !s->over; }

/* All faults are over: so must everything be, after a while. */
static void ends(void)
{
	u32 calm = 0;
	u64 end_ns;

	end_ns = sim_now + SETTLED_NS + MS(sim_verb_ms);
	/* a liar may say for so long that its QP waits for its turn: SHIFT_QUEUED_MS */
	if (sim_hostile)
		end_ns += MS(120000);
	/* a wanted move may be tried again: at rest is who stays so */
	for (;; sim_sleep(MS(20))) {
		calm = any_side(is_busy) || app_is_put_off() ? 0 : calm + 1;
		if (calm == 75 || sim_now >= end_ns)
			break;
	}
	oracle_check();
	stopping = true;
	while (any_side(goes_on))
		sim_sleep(MS(1));
	net_mended();
	/* a QP whose work item is in such a verb hears later of a peer that restarted */
	if (sim_now < sim_verbs_end_ns)
		sim_sleep(sim_verbs_end_ns - sim_now + MS(20));
	nodes_check();
}

/* One that has failed meanwhile, as an atomic may not leave its NIC, was protected before. */
static bool is_unprotected(const struct side *s)
{
	bool rest, failed;
	u8 path;

	return !s->error && !s->peer->error &&
	       strcmp(kernel[s->end]->shows(&s->app, &rest, &failed, &path), "RUN");
}

/* The same nodes, with other connections: nothing that was before may be in their way. */
static void act_again(void)
{
	u64 end_ns;
	int end;

	sides_destroy(-1);
	while (helpers)
		sim_sleep(MS(1));
	for (end = 0; end < SIM_ENDS; end++)
		if (sim_draw(2) && sim_upset(1, "a pair is made anew"))
			pair_anew(end);
	plan.late = false;
	plan.ends = false;
	may_fail = false;
	stopping = false;
	harmed = true;
	unpaired = false;
	memory_start();
	phase = plan.faults - 1;
	sides_draw();
	sides_begin(false);
	for (end_ns = sim_now + PROTECTED_NS; any_side(is_unprotected); sim_sleep(MS(20)))
		if (sim_now >= end_ns)
			sim_fail("a QP is not protected long after it was connected");
	if (sim_upset(1, "both default paths are dark for a second")) {
		/* the backup is their only path: it answers before a deadline is over */
		sim_message_ms = min(sim_message_ms, 30);
		sim_net[0].dark[0] = sim_net[0].dark[1] = sim_now + MS(1000);
	}
	phase = plan.faults;
	ends();
}

static void director(void *arg)
{
	sim_verbs_end_ns = 0;
	nodes_boot();
	/* mostly faults meet a QP that is protected */
	sim_sleep(plan.early || (!plan.mild && !sim_draw(plan.nomem ? 2 : 10)) ? MS(1) : MS(400));
	sim_memory_upsets(plan.nomem ? 60 : 0);
	if (!plan.mild) {
		sim_verb_odds = (u32[]) { 0, 0, 200, 40 }[sim_draw(4)];
		sim_cm_odds = (u32[]) { 0, 0, 30, 4 }[sim_draw(4)];
	}
	/* only then something may be executed twice */
	if (!plan.mild && sim_draw(2) && (plan.policy[0] == SHIFT_POLICY_AT_LEAST_ONCE ||
					  plan.policy[1] == SHIFT_POLICY_AT_LEAST_ONCE))
		sim_verb_odds = 15;
	sim_weather(plan.mild ? 0 : (u32[]) { 100000000, 4000, 500, 120 }[sim_draw(4)]);
	sim_mail.odds = plan.mail;
	sim_softirq_odds = plan.mild ? 0 : (u32[]) { 0, 0, 100, 10 }[sim_draw(4)];
	sim_stuck_odds = plan.stuck ? 3 : 0;
	world_begin();
	may_fail |= sim_verb_odds;
	faults();
	nodes_late();
	if (sim_draw(4))
		sim_sleep(sim_draw_between(MS(1), MS(3000)));
	repair();
	ends();
	if (plan.again)
		act_again();
	nodes_halt();
}

static void draw_plan(void)
{
	int end;

	plan.mild = !sim_draw(3);
	plan.forgets = sim_draw(2);
	plan.pollers = sim_draw(2);
	plan.ends = !plan.mild && !sim_draw(4);
	plan.nomem = !plan.mild && !sim_draw(6);
	plan.stuck = !plan.mild && !sim_draw(4);
	plan.patient = plan.mild && !sim_draw(3);
	plan.reads = sim_draw(3);
	plan.atomics = plan.reads && !sim_draw(3);
	plan.global = sim_draw(2);
	for (end = 0; end < SIM_ENDS; end++)
		plan.policy[end] = sim_draw(3) ? SHIFT_POLICY_EXACTLY_ONCE :
						 SHIFT_POLICY_AT_LEAST_ONCE;
	plan.storm = !sim_draw(plan.mild ? 4 : 6);
	if (sim_draw(2))
		plan.policy[1] = plan.policy[0];
	plan.shape = (struct sim_shape) {
		.timeout = plan.patient ? 17 : 10 + sim_draw(6),
		.retries = plan.patient ? 7 : plan.mild ? 5 + sim_draw(3) : 1 + sim_draw(7),
		.rd_atomic = 1 + sim_draw(4),
		.sends = sim_draw(4) ? SIM_RING - 1 : (u32[]) { 1, 2, 5 }[sim_draw(3)],
		.sig_all = !sim_draw(4), .two_cqs = sim_draw(2), .tight_cqs = sim_draw(2),
		.rebases = plan.forgets && sim_draw(4),
	};
	plan.lower[0] = sim_draw(2);
	plan.lower[1] = sim_draw(2);
	sim_message_ms = plan.mild ? 20 : 250;
	sim_packet_us = (u32[]) { 12, 40, 150 }[sim_draw(3)];
	plan.naps = (u32[]) { 0, 0, 20000, 1000 }[sim_draw(4)];
	plan.dry = plan.mild ? 0 : (u32[]) { 0, 300 }[sim_draw(2)];
	plan.faults = 1 + sim_draw(plan.mild ? 3 : 5);
	plan.pace = sim_draw(3) ? US(500) : MS(20);
	may_fail = !plan.mild;
	/* one that is lost is sent again soon: a QP survives one at a time */
	plan.mail = (u32[]) { 0, 0, 0, 300, 100, 30 }[sim_draw(6)];
	sim_mail = (struct sim_mail) { .calm = plan.mild ? MS(3000) : 0 };
	sim_qpns_again = sim_draw(2);
	harmed = false;
	unpaired = false;
	plan.restarts = !plan.mild && !sim_draw(5);
	plan.qps = !plan.restarts && sim_draw(3) ? 1 : 2 + sim_draw(QPS_MAX - 1);
	plan.loops = plan.qps > 1 && !plan.restarts && !sim_draw(3);
	plan.late = plan.restarts;
	plan.removes = !plan.mild && !sim_draw(5);
	plan.again = !sim_draw(6);
	/* of what a link delivers nothing may be lost then */
	plan.anew = plan.mild && !plan.mail && sim_draw(2);
	plan.odds.restart = plan.odds.remove = 3;
	plan.odds.end = 4;
	plan.odds.resize = 8;
	plan.odds.limit = 20;
	plan.odds.rebase = 8;
	plan.srqs = plan.joins = plan.homes = plan.refuses = 0;
	plan.early = plan.idle = plan.only_moves = false;
	world_weigh();
	if (sim_hostile) {
		plan.mild = plan.again = plan.anew = false;
		may_fail = true;
	}
	sides_draw();
}

void sim_run(struct sim_figures *f)
{
	u64 before[SIM_ENDS][__SHIFT_STAT_MAX], steps = 0;
	struct side *s;
	int end, i;

	memory_start();
	memset(shared, 0, sizeof(shared));
	asks_start();
	stopping = over = false;
	sim_lies = 0;
	phase = 0;
	helpers = 0;
	sim_verb_odds = 0;
	sim_verb_ms = 3000;
	sim_cm_odds = 0;
	sim_rts_odds = 0;
	sim_weather(2000000000);
	sim_start();
	sim_nic_start();
	sim_cm_start();
	node_start();
	draw_plan();
	for (end = 0; end < SIM_ENDS; end++)
		for (i = 0; i < __SHIFT_STAT_MAX; i++)
			before[end][i] = kernel[end]->stat(i);
	sim_log("%s run, %s, %u QPs of each end%s, %u faults", plan.mild ? "mild" : "rough",
		plan.forgets ? "devices that forget" : "devices that remember", plan.qps,
		plan.loops ? " (one connected to itself)" : "", plan.faults);
	sim_thread_start(-1, "director", director, NULL, false);
	while (sim_step())
		if (++steps > 20000000ull * (sim_verb_ms / 3000))
			sim_fail("the run does not end");
	for (end = 0; end < SIM_ENDS; end++)
		if (kernel[end]->stat(SHIFT_STAT_ILLEGAL) != before[end][SHIFT_STAT_ILLEGAL])
			sim_fail("an event at end %d has no rule", end);
	if (sim_threads())
		sim_fail("%u threads wait for what will never happen", sim_threads());
	if (sim_cms_left())
		sim_fail("%u cm_ids are left", sim_cms_left());
	if (sim_nic_left())
		sim_fail("%u QPs or CQs are left", sim_nic_left());
	if (sim_memory())
		sim_fail("%u pieces of memory are left", sim_memory());
	for (end = 0; end < SIM_ENDS; end++) {
		u64 n[__SHIFT_STAT_MAX];

		for (i = 0; i < __SHIFT_STAT_MAX; i++)
			n[i] = kernel[end]->stat(i) - before[end][i];
		if (oracle_twice(end) > n[SHIFT_STAT_DOUBTFUL] && !sim_hostile)
			sim_fail("%u operations of end %d were executed twice, %llu are called doubtful",
				 oracle_twice(end), end,
				 (unsigned long long)n[SHIFT_STAT_DOUBTFUL]);
		f->failovers += n[SHIFT_STAT_SWITCHES];
		f->moves += n[SHIFT_STAT_MOVES];
		f->failed += n[SHIFT_STAT_FAILED];
		f->replayed += n[SHIFT_STAT_REPLAYED];
		f->handbacks += n[SHIFT_STAT_HANDBACKS];
		f->resumed += n[SHIFT_STAT_RESUMED];
		f->protected += n[SHIFT_STAT_PAIRED];
	}
	for_each_side(s)
		f->operations += s->completed;
	f->lies += sim_lies;
}
