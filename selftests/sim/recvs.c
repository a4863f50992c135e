// SPDX-License-Identifier: GPL-2.0
/*
 * The oracle of receives.  Those of a QP's own queue are used and shown in posting order.  Those of
 * a shared queue are taken in that order, each by whichever QP, and a QP shows what it has used in
 * the order of its messages.
 */
#include "pure/wr.h"
#include "world.h"

#define ADDR(q, r)	((u64)(q)->number << 32 | (u64)(r) << 16)

u64 recvs_addr(const struct recvs *q, u32 r)
{
	return ADDR(q, r);
}

static struct recvs *shared_of(int end, u64 addr)
{
	struct recvs *q = &shared[end].recvs;

	if (addr >> 32 != q->number || (addr >> 16 & 0xffff) >= q->posted)
		sim_fail("a receive is taken that nobody has posted");
	return q;
}

/* A receive is lent to the application's ring: from now on two places have some. */
void sim_recv_lent(int end, u64 addr)
{
	struct recvs *q;

	if (sim_hostile)
		return;
	q = shared_of(end, addr);
	q->lent = true;
	q->recv[addr >> 16 & 0xffff].lent = true;
}

static bool ring_has(const struct sim_ring *ring, u64 addr)
{
	u32 i;

	for (i = ring->consumer; i != ring->producer; i++)
		if (ring->slot[i % SIM_RING].addr == addr)
			return true;
	return false;
}

/* The application posts to its ring again, while nobody posts: all receives are there. */
void recvs_home(int end)
{
	const struct sim_ring *ring = &shared[end].app.ring[shared[end].at];
	struct recvs *q = &shared[end].recvs;
	u32 r;

	sim_log("%c application: its receives are in the ring again", 'a' + end);
	for (r = 0; r < q->posted && !sim_hostile; r++) {
		if (q->recv[r].state == RECV_POSTED && !ring_has(ring, ADDR(q, r)))
			sim_fail("receive %u of a shared queue is not in the ring again", r);
		q->recv[r].lent = false;
	}
	/* as if all had been lent */
	q->lent = true;
}

/* All receives are in one SRQ, at a time: what is taken is the oldest. */
static void taken_in_order(struct recvs *q, u32 r, u32 srq)
{
	u32 i;

	if (q->left[srq % SRQ_NUMBERS])
		sim_fail("receive %u is taken from where the receives have left", r);
	if (q->from != srq)
		q->left[q->from % SRQ_NUMBERS] = true;
	q->from = srq;
	/* of two that are lent, or that come back, any may be the next */
	if (q->lent)
		return;
	/* what a QP had begun to write when it was stopped is posted again elsewhere only */
	for (i = 0; i < r; i++)
		if (q->recv[i].state == RECV_POSTED ||
		    (q->recv[i].state == RECV_DROPPED && q->recv[i].srq != srq))
			sim_fail("receive %u of a shared queue is taken when %u is due", r, i);
	if (q->recv[r].state == RECV_DROPPED && q->recv[r].srq == srq)
		sim_fail("receive %u of a shared queue is taken again", r);
}

/*
 * A message begins to be received: by a QP on the SRQ with that number, of a device.  @ring: that
 * is the application's own, to which a part is lent when the receives have left it.
 */
void sim_recv_taken(int end, u64 addr, u32 srq, bool ring)
{
	u32 r = addr >> 16 & 0xffff;
	struct recvs *q;
	bool lent;

	if (sim_hostile)
		return;
	q = shared_of(end, addr);
	lent = ring && q->from && q->from != srq;
	if (q->recv[r].state != RECV_POSTED && q->recv[r].state != RECV_DROPPED)
		sim_fail("receive %u of a shared queue is taken twice", r);
	if (lent && !q->lent)
		sim_fail("receive %u is taken from the ring that the receives have left", r);
	if (!lent)
		taken_in_order(q, r, srq);
	q->recv[r].state = RECV_TAKEN;
	q->recv[r].srq = srq;
	/* the kernel is not told at once of what is taken from the ring */
	lent |= ring && q->recv[r].lent;
	shared[end].unseen += lent;
	q->recv[r].limits = shared[end].asking || lent ? 0 : shared[end].limits;
}

void sim_recv_dropped(int end, u64 addr)
{
	if (!sim_hostile)
		shared_of(end, addr)->recv[addr >> 16 & 0xffff].state = RECV_DROPPED;
}

/* Operation @id was executed with the receive. */
void recvs_used(struct side *to, u32 id, u64 addr)
{
	struct recvs *q = to->recvs;
	u32 r = addr >> 16 & 0xffff;

	if (addr >> 32 != q->number)
		sim_fail("operation %u takes a receive of another queue", id);
	if (!q->shared && r != to->used)
		sim_fail("operation %u takes receive %u of qp %u when %u is due", id, r, to->qpn,
			 to->used);
	if (q->shared && q->recv[r].state != RECV_TAKEN)
		sim_fail("receive %u of a shared queue is used, and was not taken", r);
	q->recv[r].state = RECV_USED;
	q->recv[r].id = id;
	to->recv[to->used++] = r;
}

/*
 * A receive is shown that was taken under a limit.  Who watches the limit knows at most what is
 * posted by now, and has counted this receive: there was an event, or enough are left.  What was
 * lent may be thought to be there still.
 */
static void limit_check(const struct shared *srq, u32 r)
{
	const struct recvs *q = &srq->recvs;

	if (srq->limit && !srq->unsure && !srq->asking && q->recv[r].limits == srq->limits &&
	    q->posted - q->shown + srq->unseen < srq->limit)
		sim_fail("few receives are left in an SRQ, and no event has told so");
}

/*
 * A kernel that begins to watch a limit cannot ask whether its event has come, or the device goes
 * on watching, too: the event may come once too often, which is better than never.
 */
void sim_limit_again(int end)
{
	shared[end].again = shared[end].limits;
}

/* The event of an SRQ whose receives get few. */
void saw_limit(struct ib_event *event, void *context)
{
	struct shared *srq = context;

	sim_log("%c application: few receives are left", 'a' + (int)(srq - shared));
	if (!srq->limit && !srq->unsure && !srq->asking && !srq->again && !sim_hostile)
		sim_fail("an SRQ has an event that nobody has asked for");
	if (!srq->limit)
		srq->again = false;
	srq->limit = 0;
}

static void saw_flushed(struct side *s, u32 r, u32 status)
{
	struct recvs *q = s->recvs;

	/* errors before it may have been kept back by a failover whose fence has failed */
	if (!q->shared && sim_verb_failed && r > q->shown)
		q->shown = r;
	if (q->shared ? q->recv[r].state != RECV_DROPPED : r != q->shown)
		sim_fail("receive %u of qp %u ends in an error when %u is due", r, s->qpn,
			 q->shown);
	q->recv[r].state = RECV_SHOWN;
	q->shown++;
	saw_error(s, "receive", r, status);
}

void saw_recv(struct side *s, const struct sim_wc *wc)
{
	u32 r = wc->wr_id - 1000, n;
	struct recvs *q = s->recvs;
	const struct op *op;

	if (sim_hostile) {
		q->shown += q->shown < q->posted;
		s->error |= wc->status;
		return;
	}
	if (r >= q->posted)
		sim_fail("qp %u has a completion of receive %u, which nobody has posted", s->qpn,
			 r);
	if (wc->status) {
		saw_flushed(s, r, wc->status);
		return;
	}
	if (s->shown == s->used || r != s->recv[s->shown] || (!q->shared && r != q->shown))
		sim_fail("qp %u has a completion of receive %u when %u is due", s->qpn, r,
			 s->shown < s->used ? s->recv[s->shown] : q->shown);
	s->shown++;
	q->shown++;
	q->recv[r].state = RECV_SHOWN;
	if (s->srq)
		limit_check(s->srq, r);
	n = q->recv[r].id % OPS_MAX;
	op = &s->peer->op[n];
	if (wc->byte_len != op->length)
		sim_fail("receive %u of qp %u has %u bytes of operation %u, which has %u", r,
			 s->qpn, wc->byte_len, n, op->length);
	if (op->opcode != SHIFT_WR_SEND && wc->imm != q->recv[r].id)
		sim_fail("receive %u of qp %u has the immediate data of another", r, s->qpn);
	sim_log("%c qp %u: application: receive %u is done", 'a' + s->end, s->qpn, r);
}

/* Has its application polled all that this QP has received? */
bool recvs_shown(const struct side *s)
{
	return s->shown == s->used || s->error || s->ended;
}

/* None is lost: what was used was shown, and the rest is posted. */
void recvs_check(const struct side *s)
{
	if (!recvs_shown(s))
		sim_fail("qp %u has used %u receives, and shown %u", s->qpn, s->used, s->shown);
}

void shared_check(int end)
{
	struct recvs *q = &shared[end].recvs;
	u32 r;

	for (r = 0; r < q->posted; r++)
		if (q->recv[r].state == RECV_POSTED && shared[end].made && !shared[end].gone &&
		    !sim_srq_has(end, ADDR(q, r)) &&
		    !kernel[end]->srq_keeps(&shared[end].app, ADDR(q, r)))
			sim_fail("receive %u of a shared queue is lost", r);
}
