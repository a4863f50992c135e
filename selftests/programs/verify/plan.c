// SPDX-License-Identifier: GPL-2.0
/* What each message is: drawn from the seed, the same on both sides. */
#include <stdlib.h>
#include <string.h>

#include "ops.h"

static const char * const names[OP_COUNT] = {
	[OP_WRITE] = "write", [OP_WRITE_IMM] = "write_imm", [OP_SEND] = "send",
	[OP_SEND_IMM] = "send_imm", [OP_SEND_INV] = "send_inv", [OP_READ] = "read",
	[OP_FADD] = "fadd", [OP_CAS] = "cas", [OP_MW] = "mw", [OP_AWRITE] = "awrite",
};

const char *op_name(enum op op)
{
	return names[op];
}

bool op_receives(enum op op)
{
	return op == OP_SEND || op == OP_SEND_IMM || op == OP_SEND_INV ||
	       op == OP_WRITE_IMM;
}

static void add_op(struct plan *plan, enum op op)
{
	if (plan->count == sizeof(plan->ops) / sizeof(plan->ops[0]))
		die(EXIT_SETUP, "--ops: too many");
	plan->ops[plan->count++] = op;
	plan->has[op] = true;
}

static void add_name(struct plan *plan, const char *name)
{
	unsigned int op;

	if (!strcmp(name, "all")) {
		/* ATOMIC_WRITE is not in every kernel and API. */
		for (op = 0; op < OP_AWRITE; op++)
			add_op(plan, op);
		return;
	}
	for (op = 0; op < OP_COUNT; op++) {
		if (!strcmp(name, names[op])) {
			add_op(plan, op);
			return;
		}
	}
	die(EXIT_SETUP, "--ops: no operation '%s'", name);
}

void plan_open(struct plan *plan, const struct options *opt)
{
	char *list = strdup(opt->ops), *rest = list, *name;

	if (!list)
		die(EXIT_SETUP, "no memory");
	while ((name = strsep(&rest, ",")))
		add_name(plan, name);
	free(list);
	plan->opt = opt;
	plan->mix = opt->mix;
	plan->seed = opt->seed;
	/* ibv_wr_set_sge_list of rxe takes all pieces to be as long as the first. */
	plan->equal_pieces = opt->wr_api;
	if (plan->has[OP_AWRITE] && !opt->wr_api)
		die(EXIT_SETUP, "awrite needs --post wr");
}

static uint64_t scramble(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

unsigned int stream_key(struct stream s)
{
	return 2 * s.qp + s.dir;
}

static uint64_t draw(const struct plan *plan, struct stream s, uint64_t seq,
		     unsigned int what)
{
	return scramble(scramble(scramble(plan->seed + what) + stream_key(s)) + seq);
}

static uint32_t draw_len(const struct plan *plan, struct stream s, uint64_t seq)
{
	const struct options *opt = plan->opt;
	uint64_t r = draw(plan, s, seq, 2);
	size_t range = opt->size - opt->size_min;

	if (!range)
		return opt->size;
	/* Short ones as often as long ones, and the ends now and then. */
	if (r % 16 == 0)
		return r & 16 ? opt->size : opt->size_min;
	while (range > 64 && r & 32) {
		range /= 4;
		r = scramble(r);
	}
	return opt->size_min + (r >> 8) % (range + 1);
}

static unsigned int draw_pieces(const struct plan *plan, uint32_t len, uint64_t r)
{
	unsigned int n = 1 + r % plan->opt->sge;

	if (n > len)
		n = len;
	while (plan->equal_pieces && n > 1 && len % n)
		n--;
	return n;
}

void plan_step(const struct plan *plan, struct stream s, uint64_t seq, struct step *step)
{
	const struct options *opt = plan->opt;
	uint64_t r = draw(plan, s, seq, 1);

	memset(step, 0, sizeof(*step));
	step->op = plan->ops[(plan->mix ? r : seq) % plan->count];
	step->imm = r >> 16;
	step->add = 1 + (r >> 40) % 1000;
	step->shared = r >> 32 & 1;
	step->drawn_signal = plan->mix && (r >> 33) % 4 == 0;
	step->solicited = opt->solicited && (r >> 35) % 4 == 0;
	step->fenced = plan->mix && opt->fence && (r >> 37) % opt->fence == 0;
	switch (step->op) {
	case OP_FADD:
	case OP_CAS:
	case OP_AWRITE:
		step->len = 8;
		step->pieces = 1;
		break;
	case OP_MW:
		step->fenced = false;
		break;
	default:
		step->len = draw_len(plan, s, seq);
		step->inlined = opt->use_inline && step->len <= INLINE_MAX &&
				step->op != OP_READ;
		step->pieces = draw_pieces(plan, step->len, r >> 50);
		if (step->inlined && step->pieces > 1)
			step->pieces = 1;
	}
	if (!op_receives(step->op))
		step->solicited = false;
}

/* The values a compare-and-swap cell takes, one after the other; none comes twice. */
uint64_t plan_swap(const struct plan *plan, struct stream s, uint64_t nth)
{
	return scramble(scramble(plan->seed + 3) + stream_key(s)) + nth * 3;
}
