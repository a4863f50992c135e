// SPDX-License-Identifier: GPL-2.0
/*
 * --protocol: what NCCL posts, and how its receivers learn that data are there.
 *
 *	simple	WRITEs without a signal, and a WRITE_WITH_IMM that tells of them.  The
 *		receives have no memory.  A message has a part on each QP, as a connection of
 *		NCCL has several QPs, and is there when all parts are told of.
 *	ll	lines of 8 bytes: 4 of data, 4 of a flag that tells which message they are of.
 *	ll128	lines of 128 bytes: 120 of data, 8 of the flag.
 *
 * With ll and ll128 the receiver looks at memory only.  It takes a line as soon as its flag is
 * there, long before the message is whole, and overwrites it: the line is its own again.  So a
 * packet of a WRITE that comes once more is seen.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "verify.h"

#define LL_LINE		8
#define LL128_LINE	128
/* A poisoned line has another flag: it ends in POISON, or in 0 and POISON. */
#define LL_FLAG		0x80000000u
#define LL128_WORDS	(LL128_LINE / 8 - 1)

static const char * const names[] = {
	[PROTOCOL_SIMPLE] = "simple", [PROTOCOL_LL] = "ll", [PROTOCOL_LL128] = "ll128",
};

enum protocol protocol_named(const char *name)
{
	unsigned int i;

	for (i = PROTOCOL_SIMPLE; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return i;
	die(EXIT_SETUP, "--protocol: no '%s'", name);
}

static size_t line_size(const struct side *side)
{
	return side->opt.protocol == PROTOCOL_LL ? LL_LINE : LL128_LINE;
}

void protocol_check(const struct options *opt)
{
	size_t line = opt->protocol == PROTOCOL_LL ? LL_LINE :
		      opt->protocol == PROTOCOL_LL128 ? LL128_LINE : MAX_PARTS - 1;

	if (opt->ops || opt->wr_api || opt->use_inline || opt->sge > 1)
		die(EXIT_SETUP, "--protocol does not go with --ops, --post wr, --inline, --sge");
	if (opt->size % line || opt->size_min != opt->size)
		die(EXIT_SETUP, "--size is not a multiple of %zu", line);
	if (opt->flush && opt->protocol != PROTOCOL_SIMPLE)
		die(EXIT_SETUP, "--flush needs --protocol simple");
	if (opt->sabotage && strcmp(opt->sabotage, "late-write"))
		die(EXIT_SETUP, "--protocol has --sabotage late-write only");
}

static uint8_t *slot_of(const struct side *side, const struct flow *flow, uint64_t seq)
{
	return flow->ring + seq % side->slots * side->stride;
}

/* Lines */

static void line_fill(const struct side *side, uint8_t *at, uint64_t key, uint64_t seq,
		      size_t line)
{
	uint64_t words[LL128_WORDS + 1];
	size_t i;

	if (side->opt.protocol == PROTOCOL_LL) {
		words[0] = (uint32_t)pattern_word(key, line) |
			   (uint64_t)(LL_FLAG | (uint32_t)(seq + 1)) << 32;
	} else {
		for (i = 0; i < LL128_WORDS; i++)
			words[i] = pattern_word(key, line * LL128_WORDS + i);
		words[LL128_WORDS] = seq + 1;
	}
	memcpy(at, words, line_size(side));
}

static bool line_is_there(const struct side *side, const uint8_t *at, uint64_t seq)
{
	const uint64_t *last = (const uint64_t *)(at + line_size(side)) - 1;
	uint64_t word = __atomic_load_n(last, __ATOMIC_ACQUIRE);

	if (side->opt.protocol == PROTOCOL_LL)
		return word >> 32 == (LL_FLAG | (uint32_t)(seq + 1));
	return word == seq + 1;
}

/* The flag is there, so the data are: but a soft NIC may copy backwards, and be interrupted. */
static void line_check(const struct side *side, const struct flow *flow, const uint8_t *at,
		       uint64_t key, size_t line)
{
	double end = now() + SETTLE_SECONDS;
	uint8_t want[LL128_LINE];
	size_t i, len = line_size(side);

	line_fill(side, want, key, flow->verified, line);
	while (memcmp(at, want, len))
		if (now() > end)
			break;
	for (i = 0; i < len; i++)
		if (at[i] != want[i])
			die(EXIT_VIOLATION, "qp %u: message %" PRIu64 " line %zu byte %zu is "
			    "%02x, not %02x", flow->index, flow->verified, line, i, at[i],
			    want[i]);
}

/* Take what is there of the next message; true: all of it was taken. */
static bool take_lines(struct side *side, struct flow *flow, bool *any)
{
	uint64_t key = pattern_key(flow->index, flow->verified);
	size_t len = line_size(side), lines = side->opt.size / len;
	uint8_t *slot = slot_of(side, flow, flow->verified);
	const uint8_t *next = slot_of(side, flow, flow->verified + 1);

	for (; flow->lines < lines; flow->lines++) {
		uint8_t *at = slot + flow->lines * len;

		if (!line_is_there(side, at, flow->verified)) {
			if (line_is_there(side, next, flow->verified + 1) &&
			    !line_is_there(side, at, flow->verified))
				die(EXIT_VIOLATION, "qp %u: message %" PRIu64 " arrived before "
				    "line %zu of %" PRIu64, flow->index, flow->verified + 1,
				    flow->lines, flow->verified);
			return false;
		}
		line_check(side, flow, at, key, flow->lines);
		memset(at, POISON, len);
		*any = true;
	}
	flow->lines = 0;
	return true;
}

/* Simple */

void protocol_receive_post(struct flow *flow)
{
	struct ibv_recv_wr *bad, wr = {
		.wr_id = WR_RECEIVE_BIT | (flow->receives_posted++ & WR_SEQ_MASK),
	};

	if (ibv_post_recv(flow->qp, &wr, &bad))
		die(EXIT_VIOLATION, "qp %u: ibv_post_recv: %s", flow->index, strerror(errno));
}

/* A receive has completed: the data were written before. */
void protocol_told(struct flow *flow, const struct ibv_wc *wc)
{
	uint64_t which = flow->told++;

	if (wc->wr_id != (WR_RECEIVE_BIT | (which & WR_SEQ_MASK)))
		die(EXIT_VIOLATION, "qp %u: receive %#" PRIx64 " completed, not %" PRIu64,
		    flow->index, wc->wr_id, which);
	if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM || !(wc->wc_flags & IBV_WC_WITH_IMM))
		die(EXIT_VIOLATION, "qp %u: receive %" PRIu64 " has opcode %d, flags %#x",
		    flow->index, which, wc->opcode, wc->wc_flags);
	if (ntohl(wc->imm_data) != (uint32_t)which)
		die(EXIT_VIOLATION, "qp %u: told of message %u, not %" PRIu64, flow->index,
		    ntohl(wc->imm_data), which);
	protocol_receive_post(flow);
}

/* Is each QP's part of the next message told of? */
static bool is_told(const struct side *side, const struct flow *flow)
{
	unsigned int i;

	for (i = 0; i < side->opt.qps; i++) {
		const struct flow *other = &side->flow[i];

		if (other->told <= flow->verified && flow->verified < other->expect_total)
			return false;
	}
	return flow->told > flow->verified;
}

/* What was told of must be there: nobody waits for it. */
static bool take_told(struct side *side, struct flow *flow)
{
	uint8_t *slot = slot_of(side, flow, flow->verified);
	size_t at;

	if (!is_told(side, flow) || (side->opt.flush && !flush_done(side, flow)))
		return false;
	at = pattern_check(slot, side->opt.size, flow->index, flow->verified);
	if (at != side->opt.size)
		die(EXIT_VIOLATION, "qp %u: message %" PRIu64 " was told of, and byte %zu is "
		    "%02x, not %02x", flow->index, flow->verified, at, slot[at],
		    pattern_byte(at, side->opt.size, flow->index, flow->verified));
	return true;
}

/* Both */

/* Take what is there of the next message; true: all of it was taken. */
bool protocol_take(struct side *side, struct flow *flow, bool *any)
{
	bool whole = side->opt.protocol == PROTOCOL_SIMPLE ? take_told(side, flow) :
							     take_lines(side, flow, any);

	if (!whole)
		return false;
	if (flow->verified >= flow->expect_total)
		die(EXIT_VIOLATION, "qp %u: a message beyond the last, %" PRIu64, flow->index,
		    flow->expect_total);
	poison(slot_of(side, flow, flow->verified), side->opt.size);
	return true;
}

void protocol_fill(const struct side *side, const struct flow *flow, uint8_t *at, uint64_t seq)
{
	size_t i, len = line_size(side);

	if (side->opt.protocol == PROTOCOL_SIMPLE) {
		pattern_fill(at, side->opt.size, flow->index, seq);
		return;
	}
	for (i = 0; i < side->opt.size / len; i++)
		line_fill(side, at + i * len, pattern_key(flow->index, seq), seq, i);
}

/*
 * @wr is the WRITE of a whole message, whose number is @seq.  NCCL tells of the data by a request
 * of its own, or by that which has them.  Return: how many requests it became.
 */
unsigned int protocol_split(const struct side *side, struct ibv_send_wr *wr,
			    struct ibv_sge (*sge)[MAX_SGE], uint64_t seq)
{
	unsigned int i, data = seq % 3 ? MAX_PARTS - 1 : 0;
	struct ibv_send_wr whole = *wr, *tells = &wr[data];
	struct ibv_sge all = sge[0][0];

	if (side->opt.protocol != PROTOCOL_SIMPLE)
		return 1;
	*tells = whole;
	for (i = 0; i < data; i++) {
		wr[i] = whole;
		wr[i].wr_id |= WR_PART_BIT;
		wr[i].sg_list = sge[i];
		wr[i].wr.rdma.remote_addr += i * (all.length / data);
		sge[i][0] = all;
		sge[i][0].addr += i * (all.length / data);
		sge[i][0].length = all.length / data;
	}
	if (data)
		tells->num_sge = 0;
	tells->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	tells->imm_data = htonl((uint32_t)seq);
	return data + 1;
}

/*
 * --sabotage late-write: which message to write once more, as a wrong replay would do it, or -1.
 * It must have been taken (when a slot was given back, half a ring behind it was) and not be given
 * back before this arrives (for that, half a ring behind it must have been posted).
 */
int64_t protocol_late(struct side *side, const struct flow *flow)
{
	unsigned int half = side->slots / 2;
	uint64_t seq = flow->returned + half - 1;

	if (!side->opt.sabotage || !side->opt.server || side->sabotaged || flow->index ||
	    flow->returned < 2 || seq + half <= flow->posted)
		return -1;
	side->sabotaged = true;
	say("sabotage late-write of %" PRIu64, seq);
	return seq;
}
