// SPDX-License-Identifier: GPL-2.0
/*
 * The patched provider in an application: it posts, polls, and has its rings begin anew.  One lock
 * is for both queues of a QP and another one for its CQs; a thread may be put off while it holds
 * them.
 */
#include <stdlib.h>
#include <uapi/rdma/shift-abi.h>
#include "world.h"

#define AGAIN_US	200	/* to the next try, if a lock was taken */

static u32 cqs_of(const struct side *s)
{
	return s->cq[1].cq ? 2 : 1;
}

void lib_start(struct side *s)
{
	struct shift_abi_side *ring;
	u32 i, len;

	for (i = 0; i < cqs_of(s); i++) {
		ring = kernel[s->end]->side(&s->cq[i], &len);
		if (!shift_side_attach(&s->ring[i], ring, len))
			sim_fail("a side ring makes no sense");
	}
}

/* where posts can be held: the flag word is looked at under the lock, before the rings are */
static void gate_enter(struct side *s)
{
	struct sim_app_qp *app = &s->app;
	int tries = 0;

	for (;;) {
		while (app->gate.word & SHIFT_QP_FLAG_GATE && tries++ < 50)
			kernel[s->end]->wait(app);
		app->posting = true;
		sim_point();
		if (!(app->gate.word & SHIFT_QP_FLAG_GATE) || tries >= 50)
			return;
		app->posting = false;
	}
}

static void queue_lock(struct side *s)
{
	if (!plan.forgets) {
		gate_enter(s);
		return;
	}
	while (s->app.posting)
		sim_sleep(US(1));
	s->app.posting = true;
	sim_point();
}

/* What was at @first is the beginning, and what was before it the end. */
static void rotate(struct sim_ring *ring, u32 first)
{
	struct sim_wr was[SIM_RING];
	u32 i;

	memcpy(was, ring->slot, sizeof(was));
	for (i = 0; i < ring->slots; i++)
		ring->slot[i] = was[(first + i) % ring->slots];
	ring->producer -= first;
}

/* What was executed is to be shown, and the side rings have to go before what is to come. */
static bool all_shown(const struct side *s)
{
	u32 i, tail, left;

	for (i = 0; i < cqs_of(s); i++) {
		left = *sim_cq_head(s->cq[i].cq, &tail) - tail;
		if (left > shift_side_ahead(&s->ring[i], tail, left) ||
		    sim_cq_has_success(s->cq[i].cq, s->app.qp))
			return false;
	}
	return true;
}

static void restart_cq(struct side *s, u32 i)
{
	struct shift_side *side = &s->ring[i];
	u32 tail, left;

	sim_cq_forget(s->cq[i].cq, s->app.qp);
	side->batch_end = side->ring->producer;
	left = *sim_cq_head(s->cq[i].cq, &tail) - tail;
	shift_side_follow(side, tail, left);
}

/* Both locks are held. */
static bool rebase(struct side *s)
{
	struct shift_abi_rebase base = { .step = SHIFT_REBASE_BEGIN };
	u32 i;

	if (!all_shown(s)) {
		base.step = SHIFT_REBASE_LATER;
		kernel[s->end]->rebase(&s->app, &base);
		return false;
	}
	if (kernel[s->end]->rebase(&s->app, &base))
		return false;
	sim_log("%c qp %u: application: its rings begin anew", 'a' + s->end, s->qpn);
	/* longer than the retries of a QP may take, and not longer than a handback */
	if (sim_upset(plan.odds.rebase, "a provider takes its time to begin its rings anew"))
		sim_sleep(sim_draw_between(MS(5), MS(250)));
	sim_point();
	rotate(&s->app.sq, base.sq_base);
	rotate(&s->app.rq, base.rq_base);
	for (i = 0; i < cqs_of(s); i++)
		restart_cq(s, i);
	sim_point();
	base.step = SHIFT_REBASE_DONE;
	kernel[s->end]->rebase(&s->app, &base);
	return true;
}

/*
 * The kernel takes in what was posted, or the device does.  The QP may be on its way back: if the
 * CQ's lock is free this thread makes the rings ready.
 */
static void kick(struct side *s)
{
	long err;

	while ((err = kernel[s->end]->kick_send(&s->app))) {
		if (err == -ENOTCONN) {
			sim_qp_bell(s->app.qp);
			return;
		}
		if (!s->polling) {
			bool done;

			s->polling = true;
			done = rebase(s);
			s->polling = false;
			if (done)
				continue;
		}
		sim_sleep(US(AGAIN_US));
	}
}

void lib_post_send(struct side *s, const struct sim_wr *wr)
{
	struct sim_ring *ring = &s->app.sq;

	queue_lock(s);
	*sim_slot(ring, ring->producer) = *wr;
	ring->producer++;
	sim_point();
	if (!plan.forgets) {
		s->app.posting = false;
		kernel[s->end]->doorbell(&s->app);
		return;
	}
	if (s->app.gate.word & SHIFT_QP_FLAG_KICK) {
		kick(s);
	} else {
		sim_point();
		sim_qp_bell(s->app.qp);
	}
	s->app.posting = false;
}

void lib_srq_start(int end)
{
	struct ib_srq_init_attr init = {
		.event_handler = saw_limit, .srq_context = &shared[end],
		.attr = { .max_wr = SIM_RING - 1, .max_sge = 1 },
	};
	struct shift_abi_reg_srq reg = {};
	struct shared *q = &shared[end];

	*q = (struct shared) {
		.there = true, .made = true, .recvs = { .number = 100 + end, .shared = true },
	};
	q->app.ring[0].slots = SIM_RING;
	kernel[end]->srq_create(&q->app, &init, &reg);
	if (!shift_srq_attach(&q->table, q->app.table, &reg))
		sim_fail("the table of an SRQ makes no sense");
}

void lib_srq_stop(int end)
{
	kernel[end]->srq_destroy(&shared[end].app);
	free(shared[end].table.free);
	shared[end].made = false;
}

static void shared_lock(struct shared *q)
{
	while (q->locked)
		sim_sleep(US(1));
	q->locked = true;
	sim_point();
}

static bool shared_away(const struct shared *q)
{
	return q->app.flag.word & SHIFT_SRQ_FLAG_AWAY;
}

bool lib_srq_is_away(int end)
{
	return shared[end].made && shared_away(&shared[end]);
}

/* A receive has a receive id in the place of its wr_id until its completion is polled. */
static u32 record(struct shift_srq_table *t, const struct sim_wr *wr)
{
	u32 recv_id = shift_srq_take(t);
	struct shift_abi_srq_entry *e;

	if (!recv_id)
		sim_fail("the table of an SRQ is full");
	e = shift_srq_entry(t, recv_id);
	e->wr_id = wr->wr_id;
	e->num_sge = 1;
	e->sge[0] = (struct shift_abi_sge) {
		.addr = wr->addr, .length = wr->length, .lkey = wr->lkey,
	};
	return recv_id;
}

static void post_shared(struct side *s, void (*fill)(struct side *s, struct sim_wr *wr))
{
	struct shared *q = s->srq;
	struct sim_ring *ring;
	struct sim_wr wr;
	bool away, posted;
	u32 recv_id;

	shared_lock(q);
	ring = &q->app.ring[q->at];
	fill(s, &wr);
	away = shared_away(q);
	recv_id = record(&q->table, &wr);
	sim_point();
	shift_srq_posted(&q->table, recv_id);
	if (!away) {
		sim_point();
		wr.wr_id = shift_srq_wr_id(&q->table, recv_id);
		*sim_slot(ring, ring->producer++) = wr;
		/* no put-off here: what is not looked at soon may be received into */
	}
	posted = !away;
	away = shared_away(q);
	if (away && posted)
		ring->producer = ring->consumer;
	q->locked = false;
	if (away)
		kernel[s->end]->srq_kick(&q->app);
}

int lib_srq_resize(int end)
{
	struct shared *q = &shared[end];
	bool away;
	int err;

	shared_lock(q);
	if (!q->made) {
		q->locked = false;
		return -ENOENT;
	}
	away = shared_away(q);
	err = q->at ? 0 : kernel[end]->srq_modify(&q->app, IB_SRQ_MAX_WR, SIM_RING);
	if (!err)
		q->at = 1;
	if (away && !shared_away(q))
		recvs_home(end);
	q->locked = false;
	return err;
}

/* What the application calls a receive; its id is free from then on. */
static u64 name_of(struct side *s, u64 wr_id)
{
	if (s->srq && shift_srq_is_live(&s->srq->table, wr_id))
		return shift_srq_complete(&s->srq->table, wr_id);
	return wr_id;
}

void lib_post_recv(struct side *s, void (*fill)(struct side *s, struct sim_wr *wr))
{
	struct sim_ring *ring = &s->app.rq;

	if (s->srq) {
		post_shared(s, fill);
		return;
	}
	queue_lock(s);
	fill(s, sim_slot(ring, ring->producer));
	ring->producer++;
	/* no put-off here: a device without a doorbell for receives sees the index at once */
	sim_qp_recv_bell(s->app.qp);
	if (plan.forgets)
		sim_point();
	else
		s->app.posting = false;
	if (s->app.gate.word & SHIFT_QP_FLAG_KICK)
		kernel[s->end]->kick(&s->app);
	s->app.posting = false;
}

/* A word from the kernel: the rings may be made ready, or it only asks whether there are polls. */
static void told(struct side *s)
{
	struct shift_abi_rebase later = { .step = SHIFT_REBASE_LATER };

	if (s->app.posting) {
		kernel[s->end]->rebase(&s->app, &later);
		return;
	}
	s->app.posting = true;
	rebase(s);
	s->app.posting = false;
}

static bool poll_device(struct side *s, struct sim_app_cq *cq, struct sim_wc *wc)
{
	struct ib_wc hw;
	bool hide;

	if (!sim_cq_peek(cq->cq, &hw))
		return false;
	hide = hw.status && kernel[s->end]->swallow(&s->app, cq, hw.status);
	if (!hide)
		hw.wr_id = name_of(s, hw.wr_id);
	sim_point();
	ib_poll_cq(cq->cq, 1, &(struct ib_wc) {});
	*wc = (struct sim_wc) {
		.wr_id = hw.wr_id, .status = hw.status, .byte_len = hw.byte_len,
		.imm = hw.ex.imm_data, .recv = hw.opcode & IB_WC_RECV,
	};
	return !hide;
}

static bool poll_side(struct side *s, struct shift_side *side, struct sim_wc *wc)
{
	struct shift_abi_wc from;

	shift_side_take(side, &from);
	if (from.opcode & SHIFT_WC_REBASE) {
		told(s);
		return false;
	}
	*wc = (struct sim_wc) {
		.wr_id = name_of(s, from.wr_id), .status = from.status, .byte_len = from.byte_len,
		.imm = from.ex, .recv = from.opcode & SHIFT_WC_RECV,
	};
	return true;
}

static bool poll_cq(struct side *s, u32 i, struct sim_wc *wc)
{
	struct sim_app_cq *cq = &s->cq[i];
	enum shift_side_pick pick;
	const u32 *head;
	bool got = false;
	u32 tail;

	while (!got) {
		head = sim_cq_head(cq->cq, &tail);
		pick = *head == tail ? SHIFT_PICK_NONE : SHIFT_PICK_CQ;
		if (s->srq || cq->flag.word & SHIFT_CQ_FLAG_SIDE)
			pick = shift_side_pick(&s->ring[i], head, tail, SIM_CQ - 1);
		if (pick == SHIFT_PICK_NONE)
			break;
		got = pick == SHIFT_PICK_CQ ? poll_device(s, cq, wc) :
					      poll_side(s, &s->ring[i], wc);
	}
	if (!s->srq)
		shift_side_settle(&s->ring[i], &cq->flag.word);
	return got;
}

bool lib_poll(struct side *s, struct sim_wc *wc)
{
	u32 first = sim_draw(cqs_of(s));
	bool got;

	while (s->polling)
		sim_sleep(US(1));
	s->polling = true;
	got = poll_cq(s, first, wc) || (cqs_of(s) == 2 && poll_cq(s, !first, wc));
	s->polling = false;
	return got;
}
