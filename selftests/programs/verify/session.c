// SPDX-License-Identifier: GPL-2.0
/* shift_verify --ops from beginning to end, and what the sides tell each other. */
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ops.h"

#define GRACE_SECONDS	1	/* for an error of a QP whose peer tells of its own */

void tell(struct rig *rig, enum tell type, unsigned int index, uint64_t value)
{
	struct tell_message m = { type, index, value };

	if (!rig->quiet)
		oob_send(rig->side.oob, &m, sizeof(m));
}

/* The peer's end of a QP is in error: ours cannot go on. */
static void peer_failed(struct rig *rig, struct lane *lane, uint64_t posted)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	double end = now() + GRACE_SECONDS;

	lane->peer_failed = true;
	lane->peer_posted = posted;
	/* its own error may be on its way */
	while (!lane->failed && now() < end)
		if (!queues_work(rig))
			usleep(50);
	if (lane->failed)
		return;
	lane_fail(rig, lane);
	if (ibv_modify_qp(lane->qp, &attr, IBV_QP_STATE))
		die(EXIT_VIOLATION, "qp %u: to ERR", lane->in.qp);
}

/* The peer is about to end with an error; ours, if there is one, tells why. */
static void __attribute__((noreturn)) peer_ends(struct rig *rig)
{
	double end = now() + GRACE_SECONDS;

	rig->quiet = true;
	while (!rig->failures && now() < end)
		if (!queues_work(rig))
			usleep(50);
	die(EXIT_ERROR, "the peer got an error completion");
}

/* One message of the peer's; true once it said that it is done. */
static bool take_message(struct rig *rig, const struct tell_message *m)
{
	struct lane *lane;

	if (m->type == TELL_DONE)
		return true;
	if (m->type == TELL_ERROR)
		peer_ends(rig);
	if (m->index >= rig->side.opt.qps)
		die(EXIT_SETUP, "the peer speaks of QP %u", m->index);
	lane = &rig->lane[m->index];
	switch (m->type) {
	case TELL_TOTAL:
		lane->expect_total = m->value;
		rig->side.peer_stopped = true;
		break;
	case TELL_COMPLETED:
		target_completed(rig, lane, m->value);
		break;
	case TELL_CREDIT:
		issuer_credit(lane, m->value);
		break;
	case TELL_KEY:
		issuer_key(lane, m->value);
		break;
	default:
		peer_failed(rig, lane, m->value);
	}
	return false;
}

static bool hear(struct rig *rig, bool *peer_done)
{
	struct tell_message m;
	bool any = false;
	int got;

	while ((got = oob_try(rig->side.oob, &m, sizeof(m))) > 0) {
		*peer_done |= take_message(rig, &m);
		any = true;
	}
	if (got < 0)
		die(EXIT_ERROR, "the peer went away");
	return any;
}

static bool lane_turn(struct rig *rig, struct lane *lane)
{
	bool did = false;

	if (rig->side.sends)
		did |= issuer_send(rig, lane);
	if (lane->told != lane->completed) {
		lane->told = lane->completed;
		tell(rig, TELL_COMPLETED, lane->out.qp, lane->told);
	}
	if (rig->side.receives) {
		did |= target_recycle(rig, lane);
		target_overdue(rig, lane);
	}
	return did | lane_drain(rig, lane);
}

static bool lane_over(const struct lane *lane)
{
	if (!lane->drained && (lane->failed || lane->told != lane->target ||
			       lane->note_head != lane->note_tail))
		return false;
	return lane->peer_failed || lane->verified == lane->expect_total;
}

static bool all_over(const struct rig *rig)
{
	unsigned int i;

	for (i = 0; i < rig->side.opt.qps; i++)
		if (!lane_over(&rig->lane[i]))
			return false;
	return true;
}

/* No more than what was posted, and one, so that the last is signaled. */
static void no_more(struct rig *rig)
{
	unsigned int i;

	for (i = 0; i < rig->side.opt.qps; i++) {
		struct lane *lane = &rig->lane[i];

		if (lane->target == UINT64_MAX)
			lane->target = lane->posted + 1;
		tell(rig, TELL_TOTAL, i, lane->target);
	}
}

static void report_hang(const struct rig *rig)
{
	unsigned int i;

	for (i = 0; i < rig->side.opt.qps; i++) {
		const struct lane *l = &rig->lane[i];

		say("qp %u: posted %" PRIu64 " completed %" PRIu64 " returned %" PRIu64
		    " of %" PRIu64 ", keys %" PRIu64 "/%" PRIu64 ", on the send queue %"
		    PRIu64 "; verified %" PRIu64 " recycled %" PRIu64 " of %" PRIu64
		    ", peer completed %" PRIu64, i, l->posted, l->completed, l->returned,
		    l->target, l->keys_used, l->keys_got, l->note_tail - l->note_head,
		    l->verified, l->recycled, l->expect_total, l->peer_completed);
	}
	die(EXIT_HANG, "no progress for %u seconds", rig->side.opt.timeout);
}

static bool turn(struct rig *rig, bool *peer_done)
{
	bool did = false;
	unsigned int i;

	for (i = 0; i < rig->side.opt.qps; i++)
		did |= lane_turn(rig, &rig->lane[i]);
	did |= queues_work(rig);
	did |= hear(rig, peer_done);
	return did;
}

/* Time in which this program ran: an emulated machine may stand still or leap. */
static void tick(struct rig *rig)
{
	static double last;
	double t = now();

	if (last)
		rig->clock += t - last < 0.1 ? t - last : 0.1;
	last = t;
}

static void run(struct rig *rig)
{
	const struct options *opt = &rig->side.opt;
	bool told = false, peer_done = false;
	double last = rig->clock;
	unsigned int i, idle = 0;

	for (i = 0; i < opt->qps; i++) {
		if (rig->side.sends && opt->iters)
			rig->lane[i].target = opt->iters;
		target_bind_all(rig, &rig->lane[i]);
	}
	while (!rig->quiet || !peer_done) {
		/* The client's stdin decides for both. */
		if (rig->side.sends && !told &&
		    (opt->iters || input_stop() || rig->side.peer_stopped)) {
			no_more(rig);
			told = true;
		}
		tick(rig);
		if (turn(rig, &peer_done)) {
			idle = 0;
			last = rig->clock;
			went_on(&rig->side);
		} else {
			rest(idle++);
		}
		if (!rig->quiet && all_over(rig)) {
			tell(rig, TELL_DONE, 0, 0);
			rig->quiet = true;
		}
		if (rig->clock - last > opt->timeout)
			report_hang(rig);
	}
}

/* The client's seed is the one that counts. */
static void agree(struct rig *rig)
{
	struct options *opt = &rig->side.opt;
	uint64_t theirs;

	if (!opt->seed)
		opt->seed = (uint64_t)time(NULL) << 16 ^ getpid();
	oob_exchange(rig->side.oob, &opt->seed, &theirs, sizeof(theirs));
	if (!opt->server)
		opt->seed = theirs;
	rig->plan.seed = opt->seed;
	say("seed %" PRIu64, opt->seed);
}

static void finish(struct rig *rig)
{
	unsigned int i, resized = 0;
	char mine = 'x', theirs;

	/* Both are done: no completion may come any more, no byte change. */
	oob_exchange(rig->side.oob, &mine, &theirs, 1);
	sleeper_stop(rig);
	if (queues_left(rig))
		die(EXIT_VIOLATION, "a completion after the last");
	issuer_final(rig);
	target_final(rig);
	oob_exchange(rig->side.oob, &mine, &theirs, 1);
	for (i = 0; i < rig->queues; i++)
		resized += rig->queue[i].resized;
	if (rig->side.opt.resize_cq)
		say("resized %u", resized);
	rig_close(rig);
	if (rig->side.opt.allow_error)
		say("failed %" PRIu64, rig->failures);
	say("done %" PRIu64 " sent %" PRIu64 " verified", rig->side.done_total,
	    rig->side.seen_total);
}

int ops_main(const struct options *opt)
{
	static struct rig rig;
	struct side *side = &rig.side;
	char mine = 'x', theirs;
	unsigned int i;

	side->opt = *opt;
	side->sends = opt->server || opt->bidir;
	side->receives = !opt->server || opt->bidir;
	side->slots = opt->depth < 2 ? 8 : 4 * opt->depth;
	side->stride = ((opt->size < 64 ? 64 : opt->size) + 63) & ~63ul;
	rig.clock = 1;
	plan_open(&rig.plan, &side->opt);

	input_start();
	rig_open(&rig);
	side->oob = oob_open(opt);
	agree(&rig);
	for (i = 0; i < opt->qps; i++) {
		issuer_start(&rig, &rig.lane[i]);
		target_start(&rig, &rig.lane[i]);
	}
	rig_connect(&rig);
	oob_exchange(side->oob, &mine, &theirs, 1);
	sleeper_start(&rig);
	say("connected");
	while (opt->hold && opt->server && !input_go())
		usleep(1000);
	oob_exchange(side->oob, &mine, &theirs, 1);
	say("started");
	run(&rig);
	finish(&rig);
	return EXIT_OK;
}
