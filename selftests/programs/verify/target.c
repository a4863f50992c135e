// SPDX-License-Identifier: GPL-2.0
/*
 * The side that is written to, read from and added to. It walks the plan: a receive
 * must be of the next message that takes one, and when it comes, or the issuer tells
 * of a completion, everything before must be there at once.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#include "ops.h"

#define READ_KEYS	(4 * MAX_QPS)
#define BEYOND		64	/* bytes looked at behind the end of a message */
#define CERTAIN		32	/* bytes of a pattern that are not there by chance */

static uint8_t *ring_at(struct rig *rig, struct lane *lane, uint64_t seq)
{
	return lane->ring + seq % rig->side.slots * rig->side.stride;
}

/* What the peer will READ as message @seq. */
static void provide(struct rig *rig, struct lane *lane, uint64_t seq)
{
	struct step step;
	uint8_t *at = lane->reads + seq % rig->side.slots * rig->side.stride;

	plan_step(&rig->plan, lane->in, seq, &step);
	if (step.op != OP_READ || !step.len || sabotage(rig, "stale-read", lane, seq))
		return;
	pattern_fill(at, step.len, READ_KEYS + stream_key(lane->in), seq);
}

void target_start(struct rig *rig, struct lane *lane)
{
	uint64_t i;

	lane->cells->swap = plan_swap(&rig->plan, lane->in, 0);
	stamp(lane->ring, rig->side.slots * rig->side.stride);
	if (rig->srq)
		stamp(rig->srq_buffers, rig->side.slots * rig->side.opt.qps *
		      rig->side.stride);
	else
		stamp(lane->receive, rig->side.slots * rig->side.stride);
	for (i = 0; i < rig->side.slots; i++) {
		provide(rig, lane, i);
		receive_post(rig, lane, (uint64_t)lane->in.qp * rig->side.slots + i);
	}
}

/* Memory windows for the peer to invalidate */

static void bind_window(struct rig *rig, struct lane *lane, uint64_t nth)
{
	static struct batch batch;
	struct ibv_mw *mw = lane->bound[nth % WINDOWS];
	struct ibv_send_wr *wr;
	uint32_t key = ibv_inc_rkey(mw->rkey);

	if (lane->failed)
		return;
	wr = batch_add(&batch);
	wr->wr_id = BIND_BIT | (uint64_t)lane->out.qp << 40 | nth;
	wr->opcode = IBV_WR_BIND_MW;
	wr->send_flags = IBV_SEND_SIGNALED;
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = key;
	wr->bind_mw.bind_info.mr = lane->ring_mr;
	wr->bind_mw.bind_info.addr = (uintptr_t)lane->ring;
	wr->bind_mw.bind_info.length = 64;
	wr->bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	note_add(lane, wr, ROLE_BIND, nth);
	batch_post(rig, lane, &batch);
	mw->rkey = key;
}

void target_bind_all(struct rig *rig, struct lane *lane)
{
	unsigned int i;

	for (i = 0; rig->side.receives && rig->plan.has[OP_SEND_INV] && i < WINDOWS; i++)
		bind_window(rig, lane, i);
}

void target_bound(struct rig *rig, struct lane *lane, uint64_t nth)
{
	tell(rig, TELL_KEY, lane->in.qp, nth << 32 | lane->bound[nth % WINDOWS]->rkey);
}

/* Checking */

static void check_data(struct lane *lane, uint64_t seq, const struct step *step,
		       const uint8_t *at)
{
	unsigned int key = stream_key(lane->in);
	size_t wrong;

	if (!step->len)
		return;
	wrong = pattern_check(at, step->len, key, seq);
	if (wrong != step->len)
		die(EXIT_VIOLATION, "qp %u: %s %" PRIu64 " byte %zu is %02x, not %02x",
		    lane->in.qp, op_name(step->op), seq, wrong, at[wrong],
		    pattern_byte(wrong, step->len, key, seq));
}

static void check_stamped(struct lane *lane, uint64_t seq, const struct step *step,
			  const uint8_t *at)
{
	size_t wrong = stamp_check(at, step->len);

	if (wrong != step->len)
		die(EXIT_VIOLATION, "qp %u: byte %zu of %s %" PRIu64
		    " was written again after it was delivered: %02x", lane->in.qp, wrong,
		    op_name(step->op), seq, at[wrong]);
}

/* Message @seq is a WRITE that must be in its slot now, or was there before. */
static void check_written(struct rig *rig, struct lane *lane, uint64_t seq,
			  const struct step *step)
{
	bool *early = &lane->early[seq % rig->side.slots];
	uint8_t *at = ring_at(rig, lane, seq);

	if (*early)
		check_stamped(lane, seq, step, at);
	else
		check_data(lane, seq, step, at);
	*early = false;
	if (rig->side.opt.guard)
		stamp(at, step->len);
}

/*
 * WRITEs are stamped as soon as their last byte is there, whatever the issuer knows: if its
 * ACK is lost and it is written once more, that is seen. Short ones, and those that a
 * receive tells of, are not looked for.
 */
static void look_ahead(struct rig *rig, struct lane *lane)
{
	struct step step;
	uint8_t *at;

	if (lane->arrived < lane->verified)
		lane->arrived = lane->verified;
	for (; lane->arrived < lane->recycled + rig->side.slots; lane->arrived++) {
		plan_step(&rig->plan, lane->in, lane->arrived, &step);
		if (step.op != OP_WRITE || step.len < CERTAIN)
			continue;
		at = ring_at(rig, lane, lane->arrived);
		if (pattern_check(at, step.len, stream_key(lane->in), lane->arrived) !=
		    step.len)
			return;
		stamp(at, step.len);
		lane->early[lane->arrived % rig->side.slots] = true;
	}
}

static void verified(struct rig *rig, struct lane *lane)
{
	if (lane->verified == lane->expect_total)
		die(EXIT_VIOLATION, "qp %u: a message beyond the last, %" PRIu64,
		    lane->in.qp, lane->expect_total);
	lane->verified++;
	rig->side.seen_total++;
	lane->waiting = 0;
}

/* A message without a receive was executed. */
static void settle(struct rig *rig, struct lane *lane, const struct step *step)
{
	switch (step->op) {
	case OP_WRITE:
	case OP_AWRITE:
		check_written(rig, lane, lane->verified, step);
		break;
	case OP_FADD:
		if (step->shared)
			lane->in_shared += step->add;
		else
			lane->in_sum += step->add;
		break;
	case OP_CAS:
		lane->in_swaps++;
		break;
	default:
		break;
	}
	verified(rig, lane);
}

/* The next message that takes a receive; all before it must have been executed. */
static void next_receiving(struct rig *rig, struct lane *lane, struct step *step)
{
	for (;;) {
		if (lane->verified >= lane->expect_total ||
		    lane->verified >= lane->recycled + rig->side.slots)
			die(EXIT_VIOLATION, "qp %u: a receive completed that no message "
			    "asks for", lane->in.qp);
		plan_step(&rig->plan, lane->in, lane->verified, step);
		if (op_receives(step->op))
			break;
		settle(rig, lane, step);
	}
	if (lane->cells->sum < lane->in_sum)
		die(EXIT_VIOLATION, "qp %u: a FETCH_ADD before %" PRIu64 " is missing",
		    lane->in.qp, lane->verified);
}

static void check_wc(struct lane *lane, const struct step *step, const struct ibv_wc *wc)
{
	enum ibv_wc_opcode opcode = step->op == OP_WRITE_IMM ?
				    IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	unsigned int flags = step->op == OP_SEND_INV ? IBV_WC_WITH_INV :
			     step->op == OP_SEND ? 0 : IBV_WC_WITH_IMM;
	unsigned int got = (wc->wc_flags & WC_INVALIDATED ? IBV_WC_WITH_INV : 0) |
			   (wc->wc_flags & IBV_WC_WITH_IMM);
	uint64_t seq = lane->verified;

	if (wc->opcode != opcode)
		die(EXIT_VIOLATION, "qp %u: %s %" PRIu64 " arrived with opcode %d",
		    lane->in.qp, op_name(step->op), seq, wc->opcode);
	if (wc->byte_len != step->len)
		die(EXIT_VIOLATION, "qp %u: %s %" PRIu64 " has length %u, not %u",
		    lane->in.qp, op_name(step->op), seq, wc->byte_len, step->len);
	if (got != flags)
		die(EXIT_VIOLATION, "qp %u: %s %" PRIu64 " has flags %#x, not %#x",
		    lane->in.qp, op_name(step->op), seq, got, flags);
	if (flags == IBV_WC_WITH_IMM && ntohl(wc->imm_data) != step->imm)
		die(EXIT_VIOLATION, "qp %u: %s %" PRIu64 " has imm %#x, not %#x",
		    lane->in.qp, op_name(step->op), seq, ntohl(wc->imm_data), step->imm);
	if (flags == IBV_WC_WITH_INV &&
	    wc->invalidated_rkey != lane->bound[lane->in_invs % WINDOWS]->rkey)
		die(EXIT_VIOLATION, "qp %u: send_inv %" PRIu64 " invalidated %#x, not %#x",
		    lane->in.qp, seq, wc->invalidated_rkey,
		    lane->bound[lane->in_invs % WINDOWS]->rkey);
}

static void check_buffer(struct rig *rig, struct lane *lane, const struct step *step,
			 uint8_t *at)
{
	uint64_t seq = lane->verified;
	size_t used = step->op == OP_WRITE_IMM ? 0 : step->len;
	size_t rest = rig->side.stride - used, wrong;

	if (rest > BEYOND)
		rest = BEYOND;
	if (used)
		check_data(lane, seq, step, at);
	else if (step->op == OP_WRITE_IMM)
		check_written(rig, lane, seq, step);
	/* a receive of an SRQ may have held part of a SEND that another one took */
	wrong = rig->srq ? rest : stamp_check(at + used, rest);
	if (wrong != rest)
		die(EXIT_VIOLATION, "qp %u: %s %" PRIu64 " changed byte %zu behind its end",
		    lane->in.qp, op_name(step->op), seq, wrong);
	stamp(at, used);
}

/* A receive in error tells that the QP is, but not why: that a send may say. */
static void flushed(struct rig *rig, struct lane *lane, const struct ibv_wc *wc)
{
	if (!lane->failed) {
		lane->flushed_receive = *wc;
		lane_fail(rig, lane);
	}
	lane->receives->solicited++;
}

void target_receive(struct rig *rig, struct lane *lane, const struct ibv_wc *wc)
{
	uint64_t which;
	struct step step;
	uint8_t *at;

	if (wc->status != IBV_WC_SUCCESS) {
		flushed(rig, lane, wc);
		return;
	}
	which = receive_take(rig, lane, wc, &at);
	next_receiving(rig, lane, &step);
	check_wc(lane, &step, wc);
	check_buffer(rig, lane, &step, at);
	lane->receives->solicited += step.solicited;
	receive_post(rig, lane, which);
	if (step.op == OP_SEND_INV)
		/* Only a window that was invalidated can be bound again. */
		bind_window(rig, lane, WINDOWS + lane->in_invs++);
	verified(rig, lane);
	target_completed(rig, lane, lane->peer_completed);
}

/* The issuer has completions of all messages below @value. */
void target_completed(struct rig *rig, struct lane *lane, uint64_t value)
{
	struct step step;

	if (value < lane->peer_completed)
		die(EXIT_VIOLATION, "qp %u: the peer's completions went back", lane->in.qp);
	lane->peer_completed = value;
	while (lane->verified < value) {
		plan_step(&rig->plan, lane->in, lane->verified, &step);
		if (op_receives(step.op)) {
			if (!lane->waiting)
				lane->waiting = rig->clock;
			return;
		}
		settle(rig, lane, &step);
	}
}

/* Completed at its sender, so executed here: its receive must have completed. */
void target_overdue(struct rig *rig, struct lane *lane)
{
	if (lane->waiting && !lane->failed && rig->clock - lane->waiting > LOST_SECONDS)
		die(EXIT_VIOLATION, "qp %u: message %" PRIu64 " was completed at its "
		    "sender and did not arrive within %.0f s (of %" PRIu64 ")",
		    lane->in.qp, lane->verified, LOST_SECONDS, rig->side.seen_total);
}

static void check_guard(struct rig *rig, struct lane *lane, uint64_t seq)
{
	struct step step;

	plan_step(&rig->plan, lane->in, seq, &step);
	if (step.op == OP_WRITE || step.op == OP_WRITE_IMM || step.op == OP_AWRITE)
		check_stamped(lane, seq, &step, ring_at(rig, lane, seq));
}

/* Give slots back, half a ring late. */
bool target_recycle(struct rig *rig, struct lane *lane)
{
	uint64_t end = lane->verified < lane->peer_completed ? lane->verified :
							       lane->peer_completed;

	if (rig->side.opt.guard)
		look_ahead(rig, lane);
	while (lane->recycled < end && lane->verified - lane->recycled > rig->side.slots / 2) {
		if (rig->side.opt.guard)
			check_guard(rig, lane, lane->recycled);
		provide(rig, lane, lane->recycled + rig->side.slots);
		lane->recycled++;
	}
	if (lane->credited == lane->recycled)
		return false;
	lane->credited = lane->recycled;
	tell(rig, TELL_CREDIT, lane->in.qp, lane->recycled);
	return true;
}

/* The end */

/*
 * How many of a failed QP's messages were executed: any number from what completed
 * to what was posted, but one that explains both cells. Returns what may have been
 * added to the shared cell, as a range.
 */
static void check_executed(struct rig *rig, struct lane *lane, uint64_t *low,
			   uint64_t *high)
{
	uint64_t sum = lane->in_sum, swaps = lane->in_swaps, shared = lane->in_shared, seq;
	bool possible = false;
	struct step step;

	for (seq = lane->verified; seq <= lane->peer_posted; seq++) {
		if (lane->cells->sum == sum &&
		    lane->cells->swap == plan_swap(&rig->plan, lane->in, swaps)) {
			if (!possible)
				*low = shared;
			*high = shared;
			possible = true;
		}
		plan_step(&rig->plan, lane->in, seq, &step);
		if (step.op == OP_FADD && step.shared)
			shared += step.add;
		else if (step.op == OP_FADD)
			sum += step.add;
		else if (step.op == OP_CAS)
			swaps++;
	}
	if (!possible)
		die(EXIT_VIOLATION, "qp %u: sum %" PRIu64 " and swap %#" PRIx64
		    " are not those of any number of messages from %" PRIu64 " to %" PRIu64,
		    lane->in.qp, lane->cells->sum, lane->cells->swap, lane->verified,
		    lane->peer_posted);
}

static void check_rings(struct rig *rig, struct lane *lane)
{
	uint64_t seq;

	/* What a failed QP executed at last is not known. */
	if (lane->peer_failed || lane->failed || !rig->side.opt.guard)
		return;
	for (seq = lane->recycled; seq < lane->verified; seq++)
		check_guard(rig, lane, seq);
}

void target_final(struct rig *rig)
{
	uint64_t low = 0, high = 0;
	unsigned int i;

	if (!rig->side.receives)
		return;
	for (i = 0; i < rig->side.opt.qps; i++) {
		struct lane *lane = &rig->lane[i];
		uint64_t from = 0, to = 0;

		check_rings(rig, lane);
		if (!lane->peer_failed)
			lane->peer_posted = lane->verified;
		check_executed(rig, lane, &from, &to);
		low += from;
		high += to;
	}
	if (*rig->shared < low || *rig->shared > high)
		die(EXIT_VIOLATION, "shared cell: the sum is %" PRIu64 ", not %" PRIu64
		    "..%" PRIu64, *rig->shared, low, high);
}
