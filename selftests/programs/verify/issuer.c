// SPDX-License-Identifier: GPL-2.0
/* The side that posts: which operation next, and what it must have returned. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

#define READ_KEYS (4 * MAX_QPS)

static uint8_t *local_at(struct rig *rig, struct lane *lane, uint64_t seq)
{
	return lane->local + seq % rig->side.opt.depth * rig->side.stride;
}

static struct issue *issue_at(struct rig *rig, struct lane *lane, uint64_t seq)
{
	return &lane->issue[seq % rig->side.opt.depth];
}

void issuer_start(struct rig *rig, struct lane *lane)
{
	stamp(lane->local, rig->side.stride * (rig->side.opt.depth + 1));
}

/* Results: READs and atomics come back into local memory. */

/* An answer that comes once more would land in memory that is in use again. */
static void check_reuse(struct rig *rig, struct lane *lane, uint64_t seq)
{
	struct issue *issue = issue_at(rig, lane, seq);
	size_t at;

	if (!issue->stamped)
		return;
	issue->stamped = false;
	at = stamp_check(local_at(rig, lane, seq), issue->step.len);
	if (at != issue->step.len)
		die(EXIT_VIOLATION, "qp %u: answer to %" PRIu64
		    " written twice, at byte %zu", lane->out.qp,
		    seq - rig->side.opt.depth, at);
}

static void check_read(struct rig *rig, struct lane *lane, uint64_t seq,
		       const struct step *step)
{
	const uint8_t *at = local_at(rig, lane, seq);
	unsigned int key = READ_KEYS + stream_key(lane->out);
	size_t wrong;

	wrong = step->len ? pattern_check(at, step->len, key, seq) : 0;
	if (wrong != step->len)
		die(EXIT_VIOLATION, "qp %u: READ %" PRIu64 " byte %zu is %02x, not %02x",
		    lane->out.qp, seq, wrong, at[wrong],
		    pattern_byte(wrong, step->len, key, seq));
}

static void heap_push(struct heap *heap, uint64_t old, uint64_t add)
{
	size_t i;

	if (heap->count == heap->size) {
		heap->size = heap->size ? 2 * heap->size : 1024;
		heap->at = realloc(heap->at, heap->size * sizeof(*heap->at));
		if (!heap->at)
			die(EXIT_SETUP, "no memory");
	}
	for (i = heap->count++; i && heap->at[(i - 1) / 2].old > old; i = (i - 1) / 2)
		heap->at[i] = heap->at[(i - 1) / 2];
	heap->at[i].old = old;
	heap->at[i].add = add;
}

static void heap_pop(struct heap *heap)
{
	uint64_t old = heap->at[--heap->count].old, add = heap->at[heap->count].add;
	size_t i = 0, child;

	while ((child = 2 * i + 1) < heap->count) {
		if (child + 1 < heap->count &&
		    heap->at[child + 1].old < heap->at[child].old)
			child++;
		if (heap->at[child].old >= old)
			break;
		heap->at[i] = heap->at[child];
		i = child;
	}
	heap->at[i].old = old;
	heap->at[i].add = add;
}

/* The cell all QPs add to: the values returned must tile it. */
static void shared_add(struct rig *rig, struct lane *lane, uint64_t old, uint64_t add)
{
	struct heap *heap = &rig->heap;

	if (lane->any_shared && old <= lane->last_shared)
		die(EXIT_VIOLATION, "qp %u: FETCH_ADD returned %" PRIu64 " after %" PRIu64,
		    lane->out.qp, old, lane->last_shared);
	lane->any_shared = true;
	lane->last_shared = old;
	heap_push(heap, old, add);
	while (heap->count && heap->at[0].old <= heap->next) {
		if (heap->at[0].old < heap->next)
			die(EXIT_VIOLATION, "qp %u: FETCH_ADD returned %" PRIu64
			    " a second time", lane->out.qp, heap->at[0].old);
		heap->next += heap->at[0].add;
		heap_pop(heap);
	}
}

static void check_atomic(struct rig *rig, struct lane *lane, uint64_t seq,
			 const struct issue *issue)
{
	uint64_t old;

	memcpy(&old, local_at(rig, lane, seq), 8);
	if (issue->step.op == OP_FADD && issue->step.shared)
		shared_add(rig, lane, old, issue->step.add);
	else if (old != issue->expected)
		die(EXIT_VIOLATION, "qp %u: %s %" PRIu64 " returned %#" PRIx64
		    ", not %#" PRIx64, lane->out.qp,
		    issue->step.op == OP_CAS ? "CMP_SWAP" : "FETCH_ADD", seq, old,
		    issue->expected);
}

/* Message @seq was executed, says a completion of it or of a later one. */
void issuer_result(struct rig *rig, struct lane *lane, uint64_t seq)
{
	struct issue *issue = issue_at(rig, lane, seq);
	bool answered = true;

	/* Binds for the peer's SEND_WITH_INV are always signaled. */
	if (seq < lane->completed)
		die(EXIT_VIOLATION, "qp %u: %" PRIu64 " completed twice", lane->out.qp, seq);
	switch (issue->step.op) {
	case OP_READ:
		check_read(rig, lane, seq, &issue->step);
		break;
	case OP_FADD:
	case OP_CAS:
		check_atomic(rig, lane, seq, issue);
		break;
	default:
		answered = false;
	}
	if (answered && rig->side.opt.guard) {
		stamp(local_at(rig, lane, seq), issue->step.len);
		issue->stamped = true;
	}
	rig->side.done_total += seq + 1 - lane->completed;
	lane->completed = seq + 1;
}

/* Posting */

static void describe_atomic(struct rig *rig, struct lane *lane, struct issue *issue,
			    struct ibv_send_wr *wr)
{
	struct step *step = &issue->step;

	wr->wr.atomic.rkey = lane->peer.cells_key;
	if (step->op == OP_CAS) {
		wr->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		wr->wr.atomic.remote_addr = lane->peer.cells + offsetof(struct cells, swap);
		issue->expected = plan_swap(&rig->plan, lane->out, lane->swaps++);
		wr->wr.atomic.compare_add = issue->expected;
		wr->wr.atomic.swap = plan_swap(&rig->plan, lane->out, lane->swaps);
		return;
	}
	wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr->wr.atomic.remote_addr = lane->peer.cells + offsetof(struct cells, sum);
	wr->wr.atomic.compare_add = step->add;
	if (step->shared) {
		wr->wr.atomic.rkey = lane->peer.shared_key;
		wr->wr.atomic.remote_addr = lane->peer.shared;
	} else {
		issue->expected = lane->sum;
		lane->sum += step->add;
	}
}

/* A window of one's own: bound and invalidated in turn. */
static void describe_window(struct lane *lane, struct ibv_send_wr *wr)
{
	if (lane->window_steps++ % 2) {
		wr->opcode = IBV_WR_LOCAL_INV;
		wr->invalidate_rkey = lane->window->rkey;
		return;
	}
	wr->opcode = IBV_WR_BIND_MW;
	wr->bind_mw.mw = lane->window;
	wr->bind_mw.rkey = ibv_inc_rkey(lane->window->rkey);
	wr->bind_mw.bind_info.mr = lane->ring_mr;
	wr->bind_mw.bind_info.addr = (uintptr_t)lane->ring;
	wr->bind_mw.bind_info.length = 64;
	wr->bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
}

static void describe_rdma(struct rig *rig, struct lane *lane, uint64_t seq,
			  enum op op, struct ibv_send_wr *wr)
{
	size_t offset = seq % rig->side.slots * rig->side.stride;

	wr->opcode = op == OP_WRITE ? IBV_WR_RDMA_WRITE :
		     op == OP_WRITE_IMM ? IBV_WR_RDMA_WRITE_WITH_IMM :
		     op == OP_AWRITE ? IBV_WR_ATOMIC_WRITE : IBV_WR_RDMA_READ;
	wr->wr.rdma.remote_addr = (op == OP_READ ? lane->peer.reads : lane->peer.ring) +
				  offset;
	wr->wr.rdma.rkey = op == OP_READ ? lane->peer.reads_key : lane->peer.ring_key;
	if (op == OP_READ && rig->side.opt.keyless && !issue_at(rig, lane, seq)->step.len)
		wr->wr.rdma.rkey = ~(uint32_t)seq;
}

static void describe(struct rig *rig, struct lane *lane, uint64_t seq,
		     struct ibv_send_wr *wr)
{
	struct issue *issue = issue_at(rig, lane, seq);
	struct step *step = &issue->step;

	switch (step->op) {
	case OP_WRITE_IMM:
		wr->imm_data = htonl(step->imm);
		/* fallthrough */
	case OP_WRITE:
	case OP_READ:
	case OP_AWRITE:
		describe_rdma(rig, lane, seq, step->op, wr);
		break;
	case OP_SEND:
		wr->opcode = IBV_WR_SEND;
		break;
	case OP_SEND_IMM:
		wr->opcode = IBV_WR_SEND_WITH_IMM;
		wr->imm_data = htonl(step->imm);
		break;
	case OP_SEND_INV:
		wr->opcode = IBV_WR_SEND_WITH_INV;
		wr->invalidate_rkey = lane->key[lane->keys_used++ % WINDOWS];
		break;
	case OP_MW:
		describe_window(lane, wr);
		break;
	default:
		describe_atomic(rig, lane, issue, wr);
	}
}

static void prepare_memory(struct rig *rig, struct lane *lane, uint64_t seq,
			   const struct step *step)
{
	uint8_t *at = local_at(rig, lane, seq);

	check_reuse(rig, lane, seq);
	if (!step->len)
		return;
	if (step->op == OP_READ || step->op == OP_FADD || step->op == OP_CAS)
		stamp(at, step->len);
	else
		pattern_fill(at, step->len, stream_key(lane->out), seq);
	if (step->op != OP_READ && sabotage(rig, "corrupt", lane, seq))
		at[step->len / 2] ^= 0x10;
}

/* What --sabotage does to a WR that is right; true: it is not to be posted at all. */
static bool spoil(struct rig *rig, struct lane *lane, uint64_t seq, const struct step *step,
		  struct batch *batch, struct ibv_send_wr *wr)
{
	bool imm = wr->opcode == IBV_WR_SEND_WITH_IMM ||
		   wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	/* A READ of no bytes needs no valid rkey (IB spec, C9-88). */
	bool remote = (wr->opcode == IBV_WR_RDMA_READ && step->len) ||
		      wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	/* all from here on, the first one twice: something has to be behind it */
	bool revive = remote && seq >= 60 && rig->side.opt.sabotage &&
		      !strcmp(rig->side.opt.sabotage, "revive");

	if (imm && sabotage(rig, "imm", lane, seq))
		wr->imm_data ^= htonl(1);
	if (step->len > 1 && wr->num_sge == 1 && op_receives(step->op) &&
	    sabotage(rig, "length", lane, seq))
		wr->sg_list->length--;
	if (!(wr->send_flags & IBV_SEND_SIGNALED) && sabotage(rig, "signal", lane, seq))
		wr->send_flags |= IBV_SEND_SIGNALED;
	else if ((wr->send_flags & IBV_SEND_SIGNALED) &&
		 sabotage(rig, "unsignal", lane, seq))
		wr->send_flags &= ~IBV_SEND_SIGNALED;
	if (revive || (remote && sabotage(rig, "rkey", lane, seq))) {
		if (wr->opcode == IBV_WR_RDMA_READ)
			wr->wr.rdma.rkey ^= 0xff;
		else
			wr->wr.atomic.rkey ^= 0xff;
	}
	if ((revive && !lane->spoilt) ||
	    (step->op == OP_SEND && sabotage(rig, "double-send", lane, seq)) ||
	    (step->op == OP_FADD && sabotage(rig, "double-add", lane, seq)) ||
	    (step->op == OP_CAS && sabotage(rig, "double-swap", lane, seq))) {
		struct ibv_send_wr *again = batch_add(batch), *next = again->next;
		struct ibv_sge *sge = again->sg_list;

		memcpy(sge, wr->sg_list, sizeof(*sge) * wr->num_sge);
		*again = *wr;
		again->next = next;
		again->sg_list = sge;
		again->send_flags &= ~IBV_SEND_SIGNALED;
		lane->spoilt = true;
	}
	return op_receives(step->op) && sabotage(rig, "skip", lane, seq);
}

/*
 * Once more a WRITE that was delivered, as a wrong replay would do it. The slot must be
 * stamped (when one was given back, half a ring behind it was) and not given back before
 * this arrives (for that, half a ring behind it must have been posted).
 */
static void late_write(struct rig *rig, struct lane *lane, struct batch *batch)
{
	unsigned int half = rig->side.slots / 2;
	uint64_t seq = lane->returned + half;
	struct ibv_send_wr *wr;
	struct step step;
	uint8_t *at;

	do {
		if (seq-- + half <= lane->posted)
			return;
		plan_step(&rig->plan, lane->out, seq, &step);
	} while (step.op != OP_WRITE || !step.len);
	if (!sabotage(rig, "late-write", lane, lane->posted))
		return;
	at = lane->local + rig->side.opt.depth * rig->side.stride;
	pattern_fill(at, step.len, stream_key(lane->out), seq);
	wr = batch_add(batch);
	wr->num_sge = cut_pieces(at, step.len, 1, lane->local_mr, true, wr->sg_list);
	describe_rdma(rig, lane, seq, OP_WRITE, wr);
}

static bool must_signal(const struct rig *rig, const struct lane *lane, uint64_t seq,
			const struct step *step)
{
	unsigned int every = rig->side.opt.signal_every;

	return seq % every == every - 1 || seq + 1 == lane->target || step->drawn_signal;
}

static void add_message(struct rig *rig, struct lane *lane, struct batch *batch,
			const struct step *step)
{
	uint64_t seq = lane->posted++;
	struct ibv_send_wr *wr = batch_add(batch);

	prepare_memory(rig, lane, seq, step);
	issue_at(rig, lane, seq)->step = *step;
	wr->wr_id = (uint64_t)lane->out.qp << 40 | seq;
	wr->num_sge = cut_pieces(local_at(rig, lane, seq), step->len, step->pieces,
				 lane->local_mr, rig->plan.equal_pieces, wr->sg_list);
	describe(rig, lane, seq, wr);
	if (must_signal(rig, lane, seq, step))
		wr->send_flags |= IBV_SEND_SIGNALED;
	if (step->solicited)
		wr->send_flags |= IBV_SEND_SOLICITED;
	if (step->fenced)
		wr->send_flags |= IBV_SEND_FENCE;
	if (step->inlined)
		wr->send_flags |= IBV_SEND_INLINE;
	note_add(lane, wr, ROLE_DATA, seq);
	if (spoil(rig, lane, seq, step, batch, wr)) {
		/* It is the last of the list. */
		batch->count--;
		if (batch->count)
			batch->wr[batch->count - 1].next = NULL;
		lane->note[(lane->note_tail - 1) % lane->note_size].signaled = false;
	}
	if (lane->returned > 1 && rig->side.opt.sabotage)
		late_write(rig, lane, batch);
}

/* Whether there is room for one more on both sides. */
static bool may_post(const struct rig *rig, const struct lane *lane)
{
	return lane->posted < lane->target &&
	       lane->posted - lane->completed < rig->side.opt.depth &&
	       lane->posted < lane->returned + rig->side.slots;
}

/* Inline data was taken at the post: the buffer is ours again. */
static void reuse_inlined(struct rig *rig, struct lane *lane, uint64_t from)
{
	uint64_t seq;

	for (seq = from; seq < lane->posted; seq++) {
		const struct step *step = &issue_at(rig, lane, seq)->step;

		if (step->inlined)
			memset(local_at(rig, lane, seq), 0xee, step->len);
	}
}

bool issuer_send(struct rig *rig, struct lane *lane)
{
	static struct batch batch;
	uint64_t from = lane->posted;
	bool binds = false;
	struct step step;

	if (lane->failed)
		return false;
	while (lane->posted - from < rig->side.opt.chain && may_post(rig, lane)) {
		plan_step(&rig->plan, lane->out, lane->posted, &step);
		if (step.op == OP_SEND_INV && lane->keys_used == lane->keys_got)
			break;
		add_message(rig, lane, &batch, &step);
		/* The window's key is only known to the next list. */
		binds = step.op == OP_MW;
		if (binds)
			break;
	}
	if (lane->posted == from)
		return false;
	if (binds) {
		struct ibv_send_wr *wr = &batch.wr[batch.count - 1];
		bool bound = wr->opcode == IBV_WR_BIND_MW;
		uint32_t key = wr->bind_mw.rkey;

		batch_post(rig, lane, &batch);
		if (bound)
			lane->window->rkey = key;
	} else {
		batch_post(rig, lane, &batch);
	}
	reuse_inlined(rig, lane, from);
	if (sabotage(rig, "claim", lane, lane->posted))
		sabotage_claim(lane->qp->qp_num);
	return true;
}

void issuer_key(struct lane *lane, uint64_t value)
{
	if (value >> 32 != (uint32_t)lane->keys_got)
		die(EXIT_VIOLATION, "qp %u: keys in the wrong order", lane->out.qp);
	lane->key[lane->keys_got++ % WINDOWS] = value;
}

void issuer_credit(struct lane *lane, uint64_t value)
{
	if (value < lane->returned || value > lane->posted)
		die(EXIT_VIOLATION, "qp %u: credit went from %" PRIu64 " to %" PRIu64
		    " (posted %" PRIu64 ")", lane->out.qp, lane->returned, value,
		    lane->posted);
	lane->returned = value;
}

/* All returned values of the shared cell are there, unless a QP has failed. */
void issuer_final(struct rig *rig)
{
	if (rig->heap.count && !rig->failures)
		die(EXIT_VIOLATION, "shared cell: something was added to %" PRIu64
		    " that nobody posted", rig->heap.next);
}
