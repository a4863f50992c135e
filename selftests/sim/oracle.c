// SPDX-License-Identifier: GPL-2.0
/* The oracle sees each packet that is executed, and each completion that an application polls. */
#include "pure/wr.h"
#include "world.h"
#include <uapi/linux/shift.h>

/* The operation that a packet belongs to. */
struct op *op_of(const struct sim_wr *wr, u32 packet, struct side **whose)
{
	u32 id = (wr->addr >> 16) - 1, n = id % OPS_MAX;
	struct side *from = side[0] + id / OPS_MAX;
	struct op *op = &from->op[n];

	if (from >= side[plan.qps] || n >= from->posted || packet >= op->packets)
		sim_fail("what nobody has posted is executed: operation %u, packet %u", id, packet);
	if (wr->opcode != op->opcode)
		sim_fail("operation %u of qp %u is another one on the wire", n, from->qpn);
	if (wr->opcode != SHIFT_WR_SEND && wr->opcode != SHIFT_WR_SEND_WITH_IMM &&
	    wr->remote_addr != op->remote_addr + (wr->addr & 0xffff))
		sim_fail("operation %u of qp %u names a wrong place", n, from->qpn);
	*whose = from;
	return op;
}

/* A packet of @from's is executed at an end. */
void is_executed_at(int end, const struct side *from)
{
	if (from->peer->end != end)
		sim_fail("what qp %u has posted is executed at the wrong end", from->qpn);
}

/*
 * May @s' operations be executed twice?  Both of its ends must have the policy for that.  They are
 * one if the QP is connected to itself, whatever the policy of the other node.
 */
bool may_be_twice(const struct side *s)
{
	return plan.policy[s->end] == SHIFT_POLICY_AT_LEAST_ONCE &&
	       plan.policy[s->peer->end] == SHIFT_POLICY_AT_LEAST_ONCE;
}

/* May operations from @n on, which were executed, be executed once more? */
static bool may_repeat(const struct side *from, u32 n)
{
	return may_be_twice(from) && n < from->executed && n >= from->completed &&
	       !op_is_atomic(&from->op[n]);
}

/* Operation @n begins to be executed, or goes on.  It and those with fences are in order. */
void op_is_due(struct side *from, u32 n)
{
	bool answered = true;
	u32 i;

	if (from->peer->error)
		sim_fail("operation %u is executed at qp %u, whose application saw an error", n,
			 from->peer->qpn);
	if (may_repeat(from, n))
		from->executed = n;
	if (n != from->executed)
		sim_fail("operation %u of qp %u is executed when %u is due", n, from->qpn,
			 from->executed);
	for (i = 0; i <= n; i++) {
		if (from->op[i].flags & SHIFT_WR_FENCE && !answered)
			sim_fail("operation %u of qp %u has a fence, and is executed too early", i,
				 from->qpn);
		answered = answered && (!op_has_answer(&from->op[i]) ||
					op_is_answered(&from->op[i]));
	}
}

bool sim_executed(int end, int net, const struct sim_wr *wr, u32 packet, bool last, u64 recv_addr)
{
	struct side *from, *to;
	struct op *op;
	u32 n;

	if (sim_hostile)
		return true;
	op = op_of(wr, packet, &from);
	n = op - from->op;
	to = from->peer;
	is_executed_at(end, from);
	op_is_due(from, n);
	if (wr->opcode == SHIFT_WR_RDMA_WRITE && op->done[packet] && may_be_twice(from))
		op->twice = true;
	else if (wr->opcode == SHIFT_WR_RDMA_WRITE && op->done[packet])
		sim_fail("packet %u of WRITE %u of qp %u is executed twice", packet, n, from->qpn);
	op->done[packet]++;
	memory_write(from, op, packet);
	if (!last)
		return true;
	for (packet = 0; packet < op->packets; packet++)
		if (!op->done[packet])
			sim_fail("packet %u of operation %u of qp %u was left out", packet, n,
				 from->qpn);
	op->twice |= op->executed++;
	from->executed++;
	if (wr->opcode != SHIFT_WR_RDMA_WRITE)
		recvs_used(to, id_of(from, n), recv_addr);
	return true;
}

void saw_error(struct side *s, const char *what, u32 n, u32 status)
{
	sim_log("%c qp %u: application: %s %u: %s", 'a' + s->end, s->qpn, what, n,
		ib_wc_status_msg(status));
	if (!s->error && !may_fail && !(plan.atomics && (harmed || sim_mail.lost)))
		sim_fail("the application of qp %u is shown an error (%s) for nothing", s->qpn,
			 ib_wc_status_msg(status));
	s->error = true;
}

/*
 * May operation @n have an error, though only one thing went wrong?  The answer to an atomic is
 * lost, and @n is that, or a READ before it; or an atomic may not leave its NIC: then the QP stays,
 * too, and so does the peer's, and each has its NIC's error if the outage is long enough.
 */
static bool atomic_may_fail(const struct side *s, u32 n)
{
	bool asks = op_has_answer(&s->op[n]) && !op_is_answered(&s->op[n]);

	for (; n < s->posted; n++)
		if (op_is_atomic(&s->op[n]) && !op_is_answered(&s->op[n]) &&
		    (!plan.global || (asks && s->op[n].executed)))
			return true;
	return (s->stays || s->peer->stays) && !plan.global;
}

void sim_stays(int end, u32 qpn, bool stays)
{
	struct side *s;

	for_each_side(s)
		if (s->end == end && s->qpn == qpn && (stays || !s->error))
			s->stays = stays;
}

/* Who is lied to may see anything. */
static void saw_anything(struct side *s, const struct sim_wc *wc, u32 n)
{
	if (n >= s->completed && n < s->posted)
		s->completed = n + 1;
	s->error |= wc->status;
}

void saw_send(struct side *s, const struct sim_wc *wc)
{
	u32 n = wc->wr_id - 1;

	if (sim_hostile) {
		saw_anything(s, wc, n);
		return;
	}
	if (!wc->wr_id && wc->status && may_fail) {
		/* an error that was kept back, and that no operation is known to have */
		s->send_error = true;
		saw_error(s, "no operation", 0, wc->status);
		s->vague = true;
		return;
	}
	if (n < s->completed || n >= s->posted)
		sim_fail("qp %u has a completion of operation %u when %u is due", s->qpn, n,
			 s->completed);
	for (; s->completed < n; s->completed++)
		if (s->op[s->completed].flags & SHIFT_WR_SIGNALED && !wc->status)
			sim_fail("qp %u has no completion of operation %u", s->qpn, s->completed);
	s->completed = n + 1;
	if (wc->status) {
		if (!s->send_error)
			s->lost = atomic_may_fail(s, n);
		s->send_error = true;
		saw_error(s, "operation", n, wc->status);
		return;
	}
	if (s->send_error && !s->ended)
		sim_fail("operation %u of qp %u succeeds behind an error", n, s->qpn);
	if (!s->op[n].executed || (s->op[n].executed > 1 && !may_be_twice(s)))
		sim_fail("operation %u of qp %u completes, and was executed %u times", n, s->qpn,
			 s->op[n].executed);
	memory_check(s, n);
	sim_log("%c qp %u: application: operation %u is done", 'a' + s->end, s->qpn, n);
}

/* All that was posted is completed, but for unsignaled operations that were executed. */
static bool all_completed(const struct side *s)
{
	u32 n;

	for (n = s->completed; n < s->posted && !s->vague; n++)
		if (s->op[n].flags & SHIFT_WR_SIGNALED || !s->op[n].executed)
			return false;
	return true;
}

u32 oracle_twice(int end)
{
	struct side *s;
	u32 i, n = 0;

	for_each_side(s)
		for (i = 0; i < s->posted && s->end == end; i++)
			n += s->op[i].twice;
	return n;
}

/* Is a connection that works not protected?  (Who shares receives need not be shown a failure.) */
static bool is_bare(const struct side *s, const char *state)
{
	bool rest, failed;
	u8 path;

	if (s->peer->crashed || unpaired)
		return false;
	kernel[s->peer->end]->shows(&s->peer->app, &rest, &failed, &path);
	return !failed && !s->error && !s->ended && !s->peer->error && !s->peer->ended &&
	       !strcmp(state, "OFF");
}

/* Whose kernel has told so much that is not true that its peer may refuse it for good. */
static bool is_liar(const struct side *s)
{
	return sim_hostile && s->end;
}

bool at_rest(const struct side *s)
{
	bool rest, failed;
	u8 path;

	if (s->crashed)
		return true;
	if (sim_hostile) {
		kernel[s->end]->shows(&s->app, &rest, &failed, &path);
		return rest || is_liar(s);
	}
	if (is_bare(s, kernel[s->end]->shows(&s->app, &rest, &failed, &path)) || !rest)
		return false;
	if (s->ended)
		return !s->flushed || all_completed(s);
	/* its application may be put off for longer than it takes to call this rest */
	return all_completed(s) && recvs_shown(s) && (s->error || s->posted == s->ops);
}

void oracle_check(void)
{
	const struct side *s;
	int end;

	for_each_side(s) {
		bool rest, failed;
		const char *state;
		u8 path;

		if (s->crashed)
			continue;
		state = kernel[s->end]->shows(&s->app, &rest, &failed, &path);
		if (!rest && !is_liar(s))
			sim_fail("qp %u is in %s long after the last fault", s->qpn, state);
		if (sim_hostile)
			continue;
		if (is_bare(s, state))
			sim_fail("qp %u is not protected long after the last fault", s->qpn);
		recvs_check(s);
		if (!at_rest(s))
			sim_fail("qp %u (%s, path %u) has %u operations of %u without a completion",
				 s->qpn, state, path, s->posted - s->completed, s->posted);
		if (s->error && !may_fail && !s->lost && !s->peer->lost)
			sim_fail("the application of qp %u was shown an error for nothing", s->qpn);
		if (!s->error && !s->peer->error && s->executed != s->posted && !may_fail)
			sim_fail("%u operations of qp %u of %u were executed", s->executed, s->qpn,
				 s->posted);
	}
	for (end = 0; end < SIM_ENDS && !sim_hostile; end++)
		shared_check(end);
}
