// SPDX-License-Identifier: GPL-2.0
/* Options and main loop of shift_verify; what it checks stands in verify.h. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "verify.h"
#include "ops.h"

enum oob_type { OOB_TOTAL = 1, OOB_DONE, OOB_ERROR };

struct oob_message {
	uint32_t type;
	uint32_t index;
	uint64_t value;
};

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* 50 us, and up to 1.6 ms while nothing comes: emulated nodes share processors with others. */
void rest(unsigned int idle)
{
	usleep(50u << (idle < 5 ? idle : 5));
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	flockfile(stdout);
	vprintf(format, args);
	putchar('\n');
	funlockfile(stdout);
	va_end(args);
	fflush(stdout);
}

void die(int code, const char *format, ...)
{
	static const char * const what[] = {
		[EXIT_VIOLATION] = "VIOLATION", [EXIT_SETUP] = "setup",
		[EXIT_ERROR] = "ended", [EXIT_HANG] = "HANG",
	};
	va_list args;

	va_start(args, format);
	printf("%s: ", what[code]);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
	fflush(stdout);
	exit(code);
}

enum long_only { OPT_OPS = 256, OPT_MIX, OPT_SEED, OPT_POLL, OPT_SRQ, OPT_SHARED_CQ,
		 OPT_RESIZE_CQ, OPT_SMALL_CQ, OPT_GUARD, OPT_ALLOW_ERROR, OPT_SOLICITED,
		 OPT_MORE_EVENTS, OPT_RD_ATOMIC, OPT_FENCE, OPT_SABOTAGE, OPT_COST, OPT_KEYLESS,
		 OPT_ALARM, OPT_TOS, OPT_FLOW_LABEL, OPT_PROTOCOL, OPT_FLUSH, OPT_PACE };

static const struct option long_options[] = {
	{ "device", 1, NULL, 'd' }, { "gid-index", 1, NULL, 'x' },
	{ "port", 1, NULL, 'p' }, { "qps", 1, NULL, 'q' },
	{ "size", 1, NULL, 's' }, { "iters", 1, NULL, 'n' },
	{ "depth", 1, NULL, 't' }, { "chain", 1, NULL, 'l' },
	{ "sge", 1, NULL, 'g' }, { "signal-every", 1, NULL, 'k' },
	{ "progress", 1, NULL, 'r' }, { "timeout", 1, NULL, 'T' },
	{ "qp-timeout", 1, NULL, 'u' }, { "post", 1, NULL, 'P' },
	{ "retry", 1, NULL, 'R' },
	{ "inline", 0, NULL, 'i' }, { "bidir", 0, NULL, 'b' },
	{ "hold", 0, NULL, 'H' }, { "events", 0, NULL, 'e' },
	{ "ops", 1, NULL, OPT_OPS }, { "mix", 0, NULL, OPT_MIX },
	{ "seed", 1, NULL, OPT_SEED }, { "poll", 1, NULL, OPT_POLL },
	{ "srq", 0, NULL, OPT_SRQ }, { "shared-cq", 0, NULL, OPT_SHARED_CQ },
	{ "resize-cq", 0, NULL, OPT_RESIZE_CQ }, { "guard", 0, NULL, OPT_GUARD },
	{ "allow-error", 0, NULL, OPT_ALLOW_ERROR },
	{ "solicited", 0, NULL, OPT_SOLICITED },
	{ "more-events", 0, NULL, OPT_MORE_EVENTS },
	{ "rd-atomic", 1, NULL, OPT_RD_ATOMIC }, { "fence", 1, NULL, OPT_FENCE },
	{ "small-cq", 0, NULL, OPT_SMALL_CQ },
	{ "sabotage", 1, NULL, OPT_SABOTAGE },
	{ "cost", 0, NULL, OPT_COST }, { "keyless", 0, NULL, OPT_KEYLESS },
	{ "alarm", 1, NULL, OPT_ALARM },
	{ "tos", 1, NULL, OPT_TOS }, { "flow-label", 1, NULL, OPT_FLOW_LABEL },
	{ "protocol", 1, NULL, OPT_PROTOCOL }, { "flush", 0, NULL, OPT_FLUSH },
	{ "pace", 1, NULL, OPT_PACE },
	{ "help", 0, NULL, 'h' }, { }
};

static void usage(int status)
{
	printf("usage: shift_verify [OPTION] [SERVER]\n"
	       "Without SERVER it is one. Both sides need the same options.\n"
	       "  --device NAME       (rxe0)      --gid-index N   (first IPv4 one)\n"
	       "  --port N            (18600)     --qps N         (1)\n"
	       "  --size BYTES        (4096)      --depth N       (16)\n"
	       "  --iters N           per QP; 0 (default): until \"stop\" on stdin\n"
	       "  --chain N           WRs per post (1)\n"
	       "  --post send|wr      ibv_post_send (default) or ibv_wr_*\n"
	       "  --sge N             pieces of each message (1)\n"
	       "  --inline            --bidir     --events (sleep for completions)\n"
	       "  --signal-every N    (1)\n"
	       "  --progress N        print \"progress COUNT\" every N messages\n"
	       "  --pace N            after DEPTH messages per QP rest N times as long as they\n"
	       "                      took, or for a quarter of a second (0)\n"
	       "  --timeout S         give up after S seconds without progress (60)\n"
	       "  --qp-timeout N      local ACK timeout of the QPs (18: 1.07 s; an\n"
	       "                      emulated processor may be late by 100 ms)\n"
	       "  --retry N           retries after that (3)\n"
	       "  --cost              print what calls of ibv_post_send took, and those of\n"
	       "                      ibv_modify_qp to RTR and to RTS\n"
	       "  --alarm US          a signal again and again, which ends system calls\n"
	       "  --small-cq          room for what is signaled, no more\n"
	       "  --tos N  --flow-label N  of the QPs' packets (0)\n"
	       "  --hold              connect, then wait for \"go\" on stdin\n"
	       "  --protocol P        simple, ll or ll128: as NCCL does it\n"
	       "  --flush             with simple: READ of one's own memory by a QP that is\n"
	       "                      connected to itself, before a message is used\n"
	       "Other operations than RDMA WRITE:\n"
	       "  --ops LIST          of write write_imm send send_imm send_inv read\n"
	       "                      fadd cas mw (BIND_MW, LOCAL_INV) awrite, or all\n"
	       "                      (but awrite), in turn; a name may come twice\n"
	       "  --mix               drawn at random from --seed N (printed)\n"
	       "  --fence N           with --mix: one of N is fenced (8); 0: none\n"
	       "  --size MIN-MAX      lengths from this range; 0 is one\n"
	       "  --poll cq|start     ibv_poll_cq (default) or ibv_start_poll\n"
	       "  --srq  --shared-cq  one for all QPs\n"
	       "  --resize-cq         again and again under traffic\n"
	       "  --solicited         with --events: receives only wake by such\n"
	       "  --more-events       with --solicited: an event too many is nobody's fault\n"
	       "  --keyless           a READ of no bytes has a key that is none\n"
	       "  --rd-atomic N       READs and atomics in flight (4)\n"
	       "  --guard             stamp what was delivered; nobody may change it\n"
	       "  --allow-error       a QP may end in an error that is right in every\n"
	       "                      respect: the others go on, and the end is good\n"
	       "Exit: 0 all right, 1 violation, 2 set-up failed, 3 error completion,\n"
	       "4 no progress\n");
	exit(status);
}

static unsigned long number(const char *text, unsigned long low,
			    unsigned long high)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 0);
	if (errno || *end || end == text || value < low || value > high)
		die(EXIT_SETUP, "'%s' is not a number from %lu to %lu", text, low,
		    high);
	return value;
}

/* N or MIN-MAX */
static void parse_size(struct options *opt, char *text)
{
	char *dash = strchr(text, '-');

	if (dash) {
		*dash = 0;
		opt->size_min = number(text, 0, 1 << 30);
		text = dash + 1;
	}
	opt->size = number(text, 1, 1 << 30);
	if (!dash)
		opt->size_min = opt->size;
	if (opt->size_min > opt->size)
		die(EXIT_SETUP, "--size: from %zu to %zu?", opt->size_min, opt->size);
}

/* 0: the first word, 1: the second */
static bool either(const char *text, const char *first, const char *second)
{
	if (strcmp(text, first) && strcmp(text, second))
		usage(EXIT_SETUP);
	return !strcmp(text, second);
}

static bool parse_ops(struct options *opt, int c)
{
	switch (c) {
	case OPT_OPS: opt->ops = optarg; break;
	case OPT_MIX: opt->mix = true; break;
	case OPT_SEED: opt->seed = number(optarg, 1, ~0ul); break;
	case OPT_POLL: opt->poll_ex = either(optarg, "cq", "start"); break;
	case OPT_SRQ: opt->srq = true; break;
	case OPT_SHARED_CQ: opt->shared_cq = true; break;
	case OPT_RESIZE_CQ: opt->resize_cq = true; break;
	case OPT_SMALL_CQ: opt->small_cq = true; break;
	case OPT_GUARD: opt->guard = true; break;
	case OPT_ALLOW_ERROR: opt->allow_error = true; break;
	case OPT_SOLICITED: opt->solicited = true; break;
	case OPT_MORE_EVENTS: opt->more_events = true; break;
	case OPT_RD_ATOMIC: opt->rd_atomic = number(optarg, 1, 128); break;
	case OPT_FENCE: opt->fence = number(optarg, 0, 1000); break;
	case OPT_SABOTAGE: opt->sabotage = optarg; break;
	case OPT_COST: opt->cost = true; break;
	case OPT_KEYLESS: opt->keyless = true; break;
	case OPT_ALARM: opt->alarm = number(optarg, 100, 999999); break;
	case OPT_TOS: opt->tos = number(optarg, 0, 255); break;
	case OPT_FLOW_LABEL: opt->flow_label = number(optarg, 0, 0xfffff); break;
	case OPT_PROTOCOL: opt->protocol = protocol_named(optarg); break;
	case OPT_FLUSH: opt->flush = true; break;
	case OPT_PACE: opt->pace = number(optarg, 0, 100); break;
	default: return false;
	}
	return true;
}

static void check_options(const struct options *opt)
{
	if (opt->chain > opt->depth || opt->signal_every > opt->depth)
		die(EXIT_SETUP, "--chain and --signal-every must not exceed --depth");
	if (opt->use_inline && opt->sge > 1 && !opt->ops)
		die(EXIT_SETUP, "--inline takes one piece");
	if (opt->solicited && (!opt->events || opt->shared_cq))
		die(EXIT_SETUP, "--solicited needs --events and receive CQs");
	if (opt->sabotage)
		sabotage_check(opt->sabotage);
	if (!opt->ops && (opt->size_min != opt->size || opt->mix || opt->srq ||
			  opt->poll_ex || opt->shared_cq || opt->resize_cq || opt->guard ||
			  opt->allow_error || opt->solicited || opt->more_events ||
			  (opt->sabotage && !opt->protocol)))
		die(EXIT_SETUP, "an option that needs --ops");
	if (opt->flush && !opt->protocol)
		die(EXIT_SETUP, "--flush needs --protocol");
	if (opt->protocol)
		protocol_check(opt);
}

static void parse(struct options *opt, int argc, char **argv)
{
	int c;

	*opt = (struct options) {
		.device = "rxe0", .gid_index = -1, .port = 18600, .qps = 1,
		.size = 4096, .size_min = 4096, .depth = 16, .chain = 1, .sge = 1,
		.signal_every = 1, .timeout = 60, .qp_timeout = 18,
		.retry = 3, .rd_atomic = 4, .fence = 8,
	};
	while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		switch (c) {
		case 'd': opt->device = optarg; break;
		case 'x': opt->gid_index = number(optarg, 0, 1023); break;
		case 'p': opt->port = number(optarg, 1, 65535); break;
		case 'q': opt->qps = number(optarg, 1, MAX_QPS); break;
		case 's': parse_size(opt, optarg); break;
		case 'n': opt->iters = number(optarg, 0, 1ul << 39); break;
		case 't': opt->depth = number(optarg, 1, 4096); break;
		case 'l': opt->chain = number(optarg, 1, MAX_CHAIN); break;
		case 'g': opt->sge = number(optarg, 1, MAX_SGE); break;
		case 'k': opt->signal_every = number(optarg, 1, 4096); break;
		case 'r': opt->progress = number(optarg, 1, 1ul << 31); break;
		case 'T': opt->timeout = number(optarg, 1, 3600); break;
		case 'u': opt->qp_timeout = number(optarg, 1, 31); break;
		case 'R': opt->retry = number(optarg, 0, 7); break;
		case 'P': opt->wr_api = either(optarg, "send", "wr"); break;
		case 'i': opt->use_inline = true; break;
		case 'b': opt->bidir = true; break;
		case 'H': opt->hold = true; break;
		case 'e': opt->events = true; break;
		case 'h': usage(EXIT_OK); break;
		default:
			if (!parse_ops(opt, c))
				usage(EXIT_SETUP);
		}
	}
	if (optind < argc)
		opt->server = argv[optind++];
	if (optind < argc)
		usage(EXIT_SETUP);
	check_options(opt);
}

static void oob_tell(struct side *side, enum oob_type type, unsigned int index,
		 uint64_t value)
{
	struct oob_message m = { type, index, value };

	oob_send(side->oob, &m, sizeof(m));
}

/* Returns true once the peer said that it is done. */
static bool listen_to_peer(struct side *side)
{
	struct oob_message m;
	int got;

	while ((got = oob_try(side->oob, &m, sizeof(m))) > 0) {
		switch (m.type) {
		case OOB_TOTAL:
			side->flow[m.index].expect_total = m.value;
			side->peer_stopped = true;
			break;
		case OOB_DONE:
			return true;
		default:
			die(EXIT_ERROR, "the peer got an error completion");
		}
	}
	if (got < 0)
		die(EXIT_ERROR, "the peer went away");
	return false;
}

static bool all_sent(const struct side *side)
{
	unsigned int i;

	for (i = 0; i < side->opt.qps; i++) {
		const struct flow *flow = &side->flow[i];

		if (flow->fifo_head != flow->fifo_tail ||
		    (side->sends && flow->completed != flow->target))
			return false;
	}
	return true;
}

static bool all_received(const struct side *side)
{
	unsigned int i;

	for (i = 0; side->receives && i < side->opt.qps; i++)
		if (side->flow[i].verified != side->flow[i].expect_total)
			return false;
	return true;
}

static void report_hang(struct side *side)
{
	unsigned int i;

	for (i = 0; i < side->opt.qps; i++) {
		const struct flow *f = &side->flow[i];

		say("qp %u: posted %" PRIu64 " completed %" PRIu64 " acked %" PRIu64
		    " verified %" PRIu64 " acks %" PRIu64 "/%" PRIu64, i,
		    f->posted, f->completed, f->returned, f->verified,
		    f->acks_completed, f->acks_posted);
	}
	die(EXIT_HANG, "no progress for %u seconds", side->opt.timeout);
}

/* The textbook use of a channel: the CQ is only looked at after an event. */
static bool complete_by_event(struct side *side)
{
	struct pollfd p = { side->channel->fd, POLLIN, 0 };
	bool any = false;
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, 1) <= 0)
		return false;
	if (ibv_get_cq_event(side->channel, &cq, &context))
		die(EXIT_VIOLATION, "ibv_get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		die(EXIT_VIOLATION, "ibv_req_notify_cq");
	while (!side->in_error && side_complete(side))
		any = true;
	return any;
}

static bool turn(struct side *side)
{
	bool did = false;
	unsigned int i;

	for (i = 0; i < side->opt.qps; i++) {
		if (side->sends)
			did |= flow_send(side, &side->flow[i]);
		if (side->receives)
			did |= flow_receive(side, &side->flow[i]);
	}
	did |= side->channel ? complete_by_event(side) : side_complete(side);
	return did;
}

static void announce_totals(struct side *side)
{
	unsigned int i;

	for (i = 0; i < side->opt.qps; i++)
		oob_tell(side, OOB_TOTAL, i, side->flow[i].target);
}

static void pace(const struct options *opt, uint64_t total)
{
	static uint64_t last;
	static double since;
	double took = now() - since;

	if (!since) {
		since = now();
	} else if (total - last >= (uint64_t)opt->depth * opt->qps) {
		usleep((took * opt->pace < .25 ? took * opt->pace : .25) * 1e6);
		since = now();
		last = total;
	}
}

void went_on(const struct side *side)
{
	static uint64_t next;
	uint64_t total = side->done_total + side->seen_total;

	if (side->opt.progress && total >= next) {
		say("progress %" PRIu64, total);
		next = total - total % side->opt.progress + side->opt.progress;
	}
	if (side->opt.pace && side->sends)
		pace(&side->opt, total);
}

static void run(struct side *side)
{
	bool told = false, done = false, peer_done = false;
	unsigned int idle = 0;
	double last = now();

	if (side->opt.iters) {
		unsigned int i;

		for (i = 0; i < side->opt.qps; i++)
			side->flow[i].target = side->opt.iters;
	}
	while (!done || !peer_done) {
		/* The client's stdin decides for both. */
		if (side->sends && !told &&
		    (side->opt.iters || input_stop() || side->peer_stopped)) {
			side_no_more(side);
			announce_totals(side);
			told = true;
		}
		if (turn(side)) {
			idle = 0;
			last = now();
			went_on(side);
		} else {
			rest(idle++);
		}
		if (side->in_error) {
			oob_tell(side, OOB_ERROR, 0, 0);
			die(EXIT_ERROR, "error completion");
		}
		peer_done |= listen_to_peer(side);
		if (!done && (told || !side->sends) && all_sent(side) &&
		    all_received(side)) {
			oob_tell(side, OOB_DONE, 0, 0);
			done = true;
		}
		if (now() - last > side->opt.timeout)
			report_hang(side);
	}
}

int main(int argc, char **argv)
{
	struct side side = { };
	char mine = 'x', theirs;
	unsigned int i;

	parse(&side.opt, argc, argv);
	if (side.opt.ops)
		return ops_main(&side.opt);
	side.sends = side.opt.server || side.opt.bidir;
	side.receives = !side.opt.server || side.opt.bidir;
	side.slots = side.opt.depth < 2 ? 8 : 4 * side.opt.depth;
	side.ack_slots = 16;
	side.stride = (side.opt.size + 63) & ~63ul;

	alarm_block(true);
	input_start();
	alarm_block(false);
	side_open(&side);
	for (i = 0; i < side.opt.qps; i++)
		flow_start(&side, &side.flow[i]);
	side.oob = oob_open(&side.opt);
	side_connect(&side);
	oob_exchange(side.oob, &mine, &theirs, 1);
	if (side.channel && ibv_req_notify_cq(side.cq, 0))
		die(EXIT_SETUP, "ibv_req_notify_cq");
	say("connected");
	while (side.opt.hold && side.opt.server && !input_go())
		usleep(1000);
	oob_exchange(side.oob, &mine, &theirs, 1);
	say("started");
	alarm_every(side.opt.alarm);
	run(&side);
	alarm_every(0);

	/* Both are done: no completion may come any more, no byte change. */
	oob_exchange(side.oob, &mine, &theirs, 1);
	if (side_complete(&side))
		die(EXIT_VIOLATION, "a completion after the last");
	for (i = 0; i < side.opt.qps; i++)
		flow_final(&side, &side.flow[i]);
	oob_exchange(side.oob, &mine, &theirs, 1);
	side_close(&side);
	cost_say();
	say("done %" PRIu64 " sent %" PRIu64 " verified", side.done_total,
	    side.seen_total);
	return EXIT_OK;
}
