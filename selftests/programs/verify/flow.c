// SPDX-License-Identifier: GPL-2.0
/* Posting, completing and checking. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "verify.h"

static uint64_t make_wr_id(enum wr_kind kind, unsigned int qp, uint64_t seq)
{
	return (kind == WR_ACK ? WR_ACK_BIT : 0) | (uint64_t)qp << 40 |
	       (seq & WR_SEQ_MASK);
}

/* Posting */

static void expect(struct flow *flow, uint64_t wr_id, uint64_t seq)
{
	struct expected *e = &flow->fifo[flow->fifo_tail++ % flow->fifo_size];

	e->wr_id = wr_id;
	e->seq = seq;
}

/* Pieces of unequal length, from two registrations in turn. */
static unsigned int cut(const struct side *side, const struct flow *flow,
			uint8_t *at, struct ibv_sge *sge)
{
	size_t left = side->opt.size;
	unsigned int i, n = side->opt.sge;

	if (n > left)
		n = left;
	for (i = 0; i < n; i++) {
		size_t len = i == n - 1 ? left : left / (n - i + 1);

		if (!len)
			len = 1;
		sge[i].addr = (uintptr_t)at;
		sge[i].length = len;
		sge[i].lkey = flow->source_mr[i % 2]->lkey;
		at += len;
		left -= len;
	}
	return n;
}

static void post_list(struct flow *flow, struct ibv_send_wr *wr, bool measure)
{
	uint64_t began = measure ? cost_begin(COST_POST) : 0;
	struct ibv_send_wr *bad;
	int ret = ibv_post_send(flow->qp, wr, &bad);

	if (measure)
		cost_end(COST_POST, began);
	if (ret)
		die(EXIT_VIOLATION, "qp %u: ibv_post_send: %s", flow->index,
		    strerror(ret));
}

static void post_ex(struct flow *flow, const struct ibv_send_wr *wr)
{
	int ret;

	ibv_wr_start(flow->qpx);
	for (; wr; wr = wr->next) {
		flow->qpx->wr_id = wr->wr_id;
		/* The rxe provider needs INLINE said here, too. */
		flow->qpx->wr_flags = wr->send_flags;
		ibv_wr_rdma_write(flow->qpx, wr->wr.rdma.rkey,
				  wr->wr.rdma.remote_addr);
		if (wr->send_flags & IBV_SEND_INLINE)
			ibv_wr_set_inline_data(flow->qpx,
					       (void *)(uintptr_t)wr->sg_list->addr,
					       wr->sg_list->length);
		else
			ibv_wr_set_sge_list(flow->qpx, wr->num_sge, wr->sg_list);
	}
	ret = ibv_wr_complete(flow->qpx);
	if (ret)
		die(EXIT_VIOLATION, "qp %u: ibv_wr_complete: %s", flow->index,
		    strerror(ret));
}

static void post(struct side *side, struct flow *flow, struct ibv_send_wr *wr)
{
	if (side->opt.wr_api)
		post_ex(flow, wr);
	else
		post_list(flow, wr, side->opt.cost);
}

static bool must_signal(const struct side *side, const struct flow *flow,
			uint64_t seq)
{
	return seq % side->opt.signal_every == side->opt.signal_every - 1 ||
	       seq + 1 == flow->target;
}

/* Describe the WRITE of a message, from @at; return: how many requests it became. */
static unsigned int describe(struct side *side, struct flow *flow, uint64_t seq, uint8_t *at,
			     struct ibv_send_wr *wr, struct ibv_sge (*sge)[MAX_SGE])
{
	memset(wr, 0, sizeof(*wr));
	wr->wr_id = make_wr_id(WR_DATA, flow->index, seq);
	wr->sg_list = sge[0];
	wr->num_sge = cut(side, flow, at, sge[0]);
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->wr.rdma.rkey = flow->peer.rkey;
	wr->wr.rdma.remote_addr = flow->peer.ring + seq % side->slots * side->stride;
	if (side->opt.use_inline)
		wr->send_flags |= IBV_SEND_INLINE;
	return side->opt.protocol ? protocol_split(side, wr, sge, seq) : 1;
}

/* --sabotage: once more, without a signal, a message that was delivered. */
static void late_write(struct side *side, struct flow *flow)
{
	uint8_t *at = flow->source + side->opt.depth * side->stride;
	struct ibv_sge sge[MAX_PARTS][MAX_SGE];
	struct ibv_send_wr wr[MAX_PARTS];
	int64_t seq = protocol_late(side, flow);

	if (seq < 0)
		return;
	protocol_fill(side, flow, at, seq);
	describe(side, flow, seq, at, wr, sge);
	/* the first of its requests writes, and tells of nothing */
	wr[0].opcode = IBV_WR_RDMA_WRITE;
	wr[0].next = NULL;
	post(side, flow, wr);
}

/* Fill, describe and post the next @count messages. */
static void send_some(struct side *side, struct flow *flow, unsigned int count)
{
	static struct ibv_send_wr wr[MAX_CHAIN * MAX_PARTS];
	static struct ibv_sge sge[MAX_CHAIN * MAX_PARTS][MAX_SGE];
	unsigned int i, n = 0;

	for (i = 0; i < count; i++) {
		uint64_t seq = flow->posted + i;
		uint8_t *at = flow->source + seq % side->opt.depth * side->stride;

		if (side->opt.protocol)
			protocol_fill(side, flow, at, seq);
		else
			pattern_fill(at, side->opt.size, flow->index, seq);
		n += describe(side, flow, seq, at, &wr[n], &sge[n]);
		if (must_signal(side, flow, seq)) {
			wr[n - 1].send_flags |= IBV_SEND_SIGNALED;
			expect(flow, wr[n - 1].wr_id, seq);
		}
	}
	for (i = 0; i + 1 < n; i++)
		wr[i].next = &wr[i + 1];
	post(side, flow, wr);
	/* Inline data was taken at the post: the buffer is ours again. */
	for (i = 0; side->opt.use_inline && i < count; i++)
		memset((void *)(uintptr_t)sge[i][0].addr, 0xee, side->opt.size);
	flow->posted += count;
	if (side->opt.protocol)
		late_write(side, flow);
}

static void take_ack(struct flow *flow)
{
	uint64_t count = flow->acked->count, inverse = flow->acked->inverse;

	if (count != ~inverse || count == flow->returned)
		return;
	if (count < flow->returned || count > flow->posted)
		die(EXIT_VIOLATION, "qp %u: ack went from %" PRIu64 " to %" PRIu64
		    " (posted %" PRIu64 ")", flow->index, flow->returned, count,
		    flow->posted);
	flow->returned = count;
}

bool flow_send(struct side *side, struct flow *flow)
{
	uint64_t window, room, left;

	take_ack(flow);
	if (flow->posted == flow->target)
		return false;
	window = side->opt.depth - (flow->posted - flow->completed);
	room = flow->returned + side->slots - flow->posted;
	left = flow->target - flow->posted;
	if (window > room)
		window = room;
	if (window > side->opt.chain)
		window = side->opt.chain;
	if (window > left)
		window = left;
	if (!window || (window < side->opt.chain && window < left))
		return false;
	send_some(side, flow, window);
	return true;
}

/* "stop": one more message on each QP, so that the last one is signaled. */
void side_no_more(struct side *side)
{
	unsigned int i;

	for (i = 0; i < side->opt.qps; i++)
		if (side->flow[i].target == UINT64_MAX)
			side->flow[i].target = side->flow[i].posted + 1;
}

/* Receiving */

static void post_ack(struct side *side, struct flow *flow, uint64_t count)
{
	struct ack *ack = &flow->ack_source[flow->acks_posted % side->ack_slots];
	struct ibv_sge sge = {
		.addr = (uintptr_t)ack, .length = sizeof(*ack),
		.lkey = flow->ack_mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = make_wr_id(WR_ACK, flow->index, flow->acks_posted),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = flow->peer.ack,
			     .rkey = flow->peer.rkey },
	};

	ack->count = count;
	ack->inverse = ~count;
	expect(flow, wr.wr_id, flow->acks_posted++);
	post(side, flow, &wr);
}

static void give_back(struct side *side, struct flow *flow)
{
	uint64_t count, seq;

	/* The sender of the last message waits for no slot any more. */
	if (flow->verified < side->slots / 2 ||
	    flow->verified >= flow->expect_total)
		return;
	count = flow->verified - side->slots / 2;
	if (count - flow->given_back < side->slots / 8 ||
	    flow->acks_posted - flow->acks_completed == side->ack_slots)
		return;
	for (seq = flow->given_back; seq < count; seq++) {
		const uint8_t *slot = flow->ring + seq % side->slots * side->stride;
		size_t at = poison_check(slot, side->opt.size);

		if (at != side->opt.size)
			die(EXIT_VIOLATION, "qp %u: message %" PRIu64
			    " was written again (byte %zu is %02x)",
			    flow->index, seq, at, slot[at]);
	}
	flow->given_back = count;
	post_ack(side, flow, count);
}

static bool arrived(struct side *side, struct flow *flow, uint64_t seq)
{
	const uint8_t *last = flow->ring + seq % side->slots * side->stride +
			      side->opt.size - 1;

	return __atomic_load_n(last, __ATOMIC_ACQUIRE) != 0;
}

static void check_order(struct side *side, struct flow *flow)
{
	if (arrived(side, flow, flow->verified + 1) &&
	    !arrived(side, flow, flow->verified))
		die(EXIT_VIOLATION, "qp %u: message %" PRIu64
		    " arrived before %" PRIu64, flow->index,
		    flow->verified + 1, flow->verified);
}

static void check_message(struct side *side, struct flow *flow, uint8_t *slot)
{
	double end = now() + SETTLE_SECONDS;
	size_t at;

	do {
		at = pattern_check(slot, side->opt.size, flow->index,
				   flow->verified);
		if (at == side->opt.size)
			return;
	} while (now() < end);
	die(EXIT_VIOLATION, "qp %u: message %" PRIu64 " byte %zu is %02x, not %02x",
	    flow->index, flow->verified, at, slot[at],
	    pattern_byte(at, side->opt.size, flow->index, flow->verified));
}

static void verified(struct side *side, struct flow *flow)
{
	flow->verified++;
	side->seen_total++;
}

bool flow_receive(struct side *side, struct flow *flow)
{
	uint8_t *slot = flow->ring + flow->verified % side->slots * side->stride;
	bool any = false;

	give_back(side, flow);
	if (side->opt.protocol) {
		if (!protocol_take(side, flow, &any))
			return any;
		verified(side, flow);
		return true;
	}
	if (!arrived(side, flow, flow->verified)) {
		check_order(side, flow);
		return false;
	}
	if (flow->verified >= flow->expect_total)
		die(EXIT_VIOLATION, "qp %u: a message beyond the last, %" PRIu64,
		    flow->index, flow->expect_total);
	check_message(side, flow, slot);
	poison(slot, side->opt.size);
	verified(side, flow);
	return true;
}

void flow_start(struct side *side, struct flow *flow)
{
	unsigned int i;

	for (i = 0; i < side->slots; i++)
		poison(flow->ring + i * side->stride, side->opt.size);
	for (i = 0; side->opt.protocol == PROTOCOL_SIMPLE && i < side->slots; i++)
		protocol_receive_post(flow);
}

/* All is received: nothing may be left in any slot. */
void flow_final(struct side *side, struct flow *flow)
{
	unsigned int i;

	if (!side->receives)
		return;
	for (i = 0; i < side->slots; i++) {
		const uint8_t *slot = flow->ring + i * side->stride;
		size_t at = poison_check(slot, side->opt.size);

		if (at != side->opt.size)
			die(EXIT_VIOLATION, "qp %u: slot %u byte %zu is %02x at "
			    "the end: something was written twice", flow->index,
			    i, at, slot[at]);
	}
}

/* Completing */

/* The next completion, from the batch polled last or a new one. */
static bool next_wc(struct side *side, struct ibv_wc *wc)
{
	if (side->wc_next == side->wc_count) {
		int n = ibv_poll_cq(side->cq, WC_BATCH, side->wc);

		if (n < 0)
			die(EXIT_VIOLATION, "ibv_poll_cq failed");
		side->wc_next = 0;
		side->wc_count = n;
		if (!n)
			return false;
	}
	*wc = side->wc[side->wc_next++];
	return true;
}

static struct flow *find_flow(struct side *side, uint32_t qpn)
{
	unsigned int i;

	for (i = 0; i < side->opt.qps; i++)
		if (side->flow[i].qp->qp_num == qpn)
			return &side->flow[i];
	if (side->flush.qp && side->flush.qp->qp_num == qpn)
		return &side->flush;
	die(EXIT_VIOLATION, "completion for an unknown QP %u", qpn);
}

/* After the first error: everything else of that QP must be flushed, in order. */
static void collect_flushes(struct side *side, struct flow *flow)
{
	uint64_t outstanding = flow->fifo_tail - flow->fifo_head, flushed = 0;
	double end = now() + 20;
	struct ibv_wc wc;
	uint64_t left = outstanding;

	while (left && now() < end) {
		const struct expected *e =
			&flow->fifo[flow->fifo_head % flow->fifo_size];

		if (!next_wc(side, &wc) || wc.qp_num != flow->qp->qp_num)
			continue;
		if (wc.status != IBV_WC_WR_FLUSH_ERR)
			die(EXIT_VIOLATION, "qp %u: %s after an error",
			    flow->index, ibv_wc_status_str(wc.status));
		flushed++;
		/* Unsignaled ones are flushed too. */
		if (wc.wr_id == e->wr_id) {
			flow->fifo_head++;
			left--;
		}
	}
	say("flushed %" PRIu64, flushed);
	if (left)
		die(EXIT_VIOLATION, "qp %u: %" PRIu64 " of %" PRIu64
		    " were not flushed", flow->index, left, outstanding);
}

static void error_completion(struct side *side, struct flow *flow,
			     const struct ibv_wc *wc)
{
	say("error qp %u wr %#" PRIx64 ": %s", flow->index, wc->wr_id,
	    ibv_wc_status_str(wc->status));
	/* One without a signal may be the one in error. */
	if (flow->fifo_head != flow->fifo_tail &&
	    wc->wr_id == flow->fifo[flow->fifo_head % flow->fifo_size].wr_id)
		flow->fifo_head++;
	collect_flushes(side, flow);
	side->in_error = true;
}

static void complete_one(struct side *side, const struct ibv_wc *wc)
{
	struct flow *flow = find_flow(side, wc->qp_num);
	const struct expected *e;

	if (wc->status != IBV_WC_SUCCESS) {
		error_completion(side, flow, wc);
		return;
	}
	if (flow == &side->flush) {
		flush_completed(side, wc);
		return;
	}
	if (wc->wr_id & WR_RECEIVE_BIT) {
		protocol_told(flow, wc);
		return;
	}
	e = &flow->fifo[flow->fifo_head % flow->fifo_size];
	if (flow->fifo_head == flow->fifo_tail)
		die(EXIT_VIOLATION, "qp %u: completion %#" PRIx64
		    " where none is due", flow->index, wc->wr_id);
	if (wc->wr_id != e->wr_id)
		die(EXIT_VIOLATION, "qp %u: completion %#" PRIx64
		    ", expected %#" PRIx64, flow->index, wc->wr_id, e->wr_id);
	if (wc->opcode != IBV_WC_RDMA_WRITE)
		die(EXIT_VIOLATION, "qp %u: completion %#" PRIx64
		    " has opcode %d", flow->index, wc->wr_id, wc->opcode);
	flow->fifo_head++;
	if (wc->wr_id & WR_ACK_BIT) {
		flow->acks_completed = e->seq + 1;
	} else {
		side->done_total += e->seq + 1 - flow->completed;
		flow->completed = e->seq + 1;
	}
}

bool side_complete(struct side *side)
{
	unsigned int n = 0;
	struct ibv_wc wc;

	while (n < WC_BATCH && !side->in_error && next_wc(side, &wc)) {
		complete_one(side, &wc);
		n++;
	}
	return n > 0;
}
