// SPDX-License-Identifier: GPL-2.0
/* Applications: they post, poll, and pause as chance has it. */
#include "pure/wr.h"
#include "world.h"

static bool polls(struct side *s)
{
	struct sim_wc wc;

	if (sim_upset(plan.naps, "an application does not poll"))
		s->asleep = sim_now + (sim_draw(3) ? sim_draw_between(MS(1), MS(300)) :
						     sim_draw_between(MS(300), MS(4000)));
	while (sim_now < s->asleep && !stopping && !s->crashed)
		sim_sleep(MS(1));
	if (!lib_poll(s, &wc))
		return false;
	if (wc.recv)
		saw_recv(s, &wc);
	else
		saw_send(s, &wc);
	return true;
}

static const char *opcode_name(u32 opcode)
{
	static const char *const names[] = {
		"WRITE", "WRITE_IMM", "SEND", "SEND_IMM", "READ", "CMP_SWAP", "FETCH_ADD",
	};

	return names[opcode];
}

static u32 pick_opcode(void)
{
	static const u32 opcodes[] = {
		SHIFT_WR_RDMA_WRITE, SHIFT_WR_RDMA_WRITE, SHIFT_WR_RDMA_WRITE_WITH_IMM,
		SHIFT_WR_SEND, SHIFT_WR_SEND_WITH_IMM,
		SHIFT_WR_RDMA_READ, SHIFT_WR_RDMA_READ,
		SHIFT_WR_ATOMIC_CMP_AND_SWP, SHIFT_WR_ATOMIC_FETCH_AND_ADD,
	};

	return opcodes[sim_draw(plan.atomics ? 9 : plan.reads ? 7 : 5)];
}

/* What the operation is, and what it names at the peer. */
static struct sim_wr make_op(const struct side *s, u32 n, struct op *op)
{
	u32 id = id_of(s, n);
	struct sim_wr wr = {};

	op->opcode = pick_opcode();
	op->packets = op_is_atomic(op) ? 1 : 1 + sim_draw(PACKETS_MAX);
	op->length = op_is_atomic(op) ? 8 : (op->packets - 1) * SIM_MTU + 1 + id % 1000;
	if (plan.shape.sig_all || n + 1 == s->ops || n % 8 == 7 || plan.shape.sends < 8 ||
	    sim_draw(4))
		op->flags = SHIFT_WR_SIGNALED;
	if (plan.reads && !sim_draw(8))
		op->flags |= SHIFT_WR_FENCE;
	op->cell = op_has_answer(op) || (op->opcode == SHIFT_WR_RDMA_WRITE && sim_draw(2)) ?
		   sim_draw(CELLS) : NO_CELL;
	op->remote_addr = (u64)(op->cell == NO_CELL ? id + 1 : 0x1000 + op->cell) << 16;
	op->posted_at = sim_now;
	if (op->opcode == SHIFT_WR_ATOMIC_CMP_AND_SWP) {
		wr.compare_add = memory_counter(s->peer->end, op->cell) + !sim_draw(3);
		wr.swap = sim_draw(1000);
	} else if (op_is_atomic(op)) {
		wr.compare_add = 1 + sim_draw(9);
	}
	return wr;
}

static void post_send(struct side *s)
{
	struct sim_wr wr;
	struct op *op;
	u32 n, id;

	if (s->posted >= s->ops * (phase + 1) / (plan.faults + 1) ||
	    s->posted - s->completed >= plan.shape.sends)
		return;
	n = s->posted++;
	id = id_of(s, n);
	op = &s->op[n];
	wr = make_op(s, n, op);
	wr.wr_id = n + 1;
	wr.opcode = op->opcode;
	wr.flags = plan.shape.sig_all ? op->flags & ~SHIFT_WR_SIGNALED : op->flags;
	wr.length = op->length;
	if (op->opcode == SHIFT_WR_SEND_WITH_IMM || op->opcode == SHIFT_WR_RDMA_WRITE_WITH_IMM)
		wr.imm = id;
	wr.lkey = dev[s->end][0].mr.lkey;
	wr.rkey = dev[s->peer->end][0].mr.rkey;
	wr.addr = (u64)(id + 1) << 16;
	wr.remote_addr = op->remote_addr;
	sim_log("%c qp %u: application: posts %u (%s, %u packets%s)", 'a' + s->end, s->qpn, n,
		opcode_name(op->opcode), op->packets,
		op->flags & SHIFT_WR_FENCE ? ", fence" : "");
	lib_post_send(s, &wr);
}

/* The queue's lock is held: receives are posted in the order of their numbers. */
static void fill_recv(struct side *s, struct sim_wr *wr)
{
	u32 r = s->recvs->posted++;

	*wr = (struct sim_wr) {
		.wr_id = 1000 + r, .addr = recvs_addr(s->recvs, r),
		.length = PACKETS_MAX * SIM_MTU, .lkey = dev[s->end][0].mr.lkey,
	};
}

static void set_limit(struct shared *q, int end)
{
	q->limit = 1 + sim_draw(SIM_RECVS / 2);
	q->limits++;
	q->unseen = 0;
	q->asking = true;
	/* a device looks when a receive is taken next */
	if (kernel[end]->srq_modify(&q->app, IB_SRQ_LIMIT, q->limit))
		q->unsure = true;
	q->asking = false;
}

static void post_recv(struct side *s)
{
	struct recvs *q = s->recvs;

	if (s->srq && sim_upset(plan.dry, "nobody posts to a shared queue"))
		s->srq->dry = sim_now + sim_draw_between(US(10), MS(1000));
	if (s->srq && sim_now < s->srq->dry)
		return;
	if (q->posted - q->shown >= SIM_RECVS || q->posted >= RECVS_MAX - QPS_MAX)
		return;
	lib_post_recv(s, fill_recv);
	if (s->srq && s == side[0] + s->end && !s->srq->limit &&
	    !sim_draw(plan.odds.limit))
		set_limit(s->srq, s->end);
}

static void end(struct side *s)
{
	s->over = !--s->threads;
}

static void app_thread(void *arg)
{
	struct side *s = arg;
	u32 idle = 0, before;

	while (!stopping && !s->crashed) {
		before = s->posted + s->completed + s->recvs->posted + s->shown;
		switch (sim_draw(8)) {
		case 0 ... 1:
			if (!s->error && !s->ended)
				post_send(s);
			break;
		case 2 ... 3:
			if (!s->error && !s->ended)
				post_recv(s);
			break;
		case 4 ... 6:
			while (!plan.pollers && polls(s))
				;
			break;
		default:
			if (plan.reads)
				memory_touch(s->end);
			sim_sleep(sim_draw_between(US(5), plan.pace));
		}
		if (before != s->posted + s->completed + s->recvs->posted + s->shown)
			idle = 0;
		else if (idle < 11)
			idle++;
		/* who has nothing to do looks less often */
		sim_sleep(sim_draw_between(US(1), US(20) << idle));
	}
	while (!plan.pollers && polls(s))
		;
	end(s);
}

/* An application that polls in a thread of its own. */
static void poll_thread(void *arg)
{
	struct side *s = arg;
	u32 idle = 0;

	while ((!stopping && !s->crashed) || s->threads > 1) {
		if (polls(s))
			idle = 0;
		else if (idle < 11)
			idle++;
		sim_sleep(sim_draw_between(US(1), sim_draw(30) ? US(20) << idle : plan.pace));
	}
	while (polls(s))
		;
	end(s);
}

bool app_is_put_off(void)
{
	return sim_is_put_off(app_thread) || sim_is_put_off(poll_thread);
}

void app_start(struct side *s)
{
	s->threads = 1 + plan.pollers;
	sim_thread_start(s->end, "application", app_thread, s, false);
	if (plan.pollers)
		sim_thread_start(s->end, "poller", poll_thread, s, false);
}
