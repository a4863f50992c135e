// SPDX-License-Identifier: GPL-2.0
/* A reliable queue pair at work: packets, retries, answers.  A device works in timers. */
#include "pure/psn.h"
#include "pure/wr.h"
#include "qp.h"

#define WINDOW		8		/* packets under way */

static void arrives(struct sim_timer *timer);

/* @length: of the message in it */
static void send_copy(const struct packet *p, u32 length, u64 arrival)
{
	struct packet *copy = sim_alloc(sizeof(*copy) + length, GFP_ATOMIC);

	if (!copy)
		return;
	*copy = *p;
	if (length)
		memcpy(copy->carried, (void *)p->wr.addr, length);
	copy->timer = (struct sim_timer) { .fn = arrives };
	sim_timer_set(&copy->timer, arrival);
}

/* What a device sends to itself needs its port, and no path. */
static bool passes(const struct sim_qp *qp, int to)
{
	return qp->loop ? !qp->dev->down && !qp->dev->dead : net_passes(qp->dev->net, to);
}

void sim_transmit(struct sim_qp *qp, struct packet p)
{
	struct sim_net *net = &sim_net[qp->dev->net];
	u64 *last = qp->carries ? net->last_message : net->last;
	u64 arrival, delay = sim_draw_between(US(2), US(sim_packet_us));
	u32 length = qp->carries && p.kind == DATA ? p.wr.length : 0;

	p.net = qp->dev->net;
	p.to = qp->dev->end ^ !qp->loop;
	p.qpn = qp->dest;
	p.from = qp->ib.qp_num;
	if (!passes(qp, p.to) || qp->mute ||
	    (!qp->loop && sim_upset(net->loss, "a packet is lost")))
		return;
	/* a network keeps the order, mostly */
	if (length && sim_upset(150, "a message takes long"))
		delay += sim_draw_between(MS(1), MS(sim_message_ms));
	arrival = max(last[p.to] + 1, sim_now + delay);
	if (sim_upset(net->delay, "a packet takes long"))
		arrival += sim_draw_between(US(100), sim_draw(8) ? MS(40) : MS(400));
	else
		last[p.to] = arrival;
	send_copy(&p, length, arrival);
	if (sim_upset(net->delay, "a packet comes twice"))
		send_copy(&p, length, arrival + sim_draw_between(US(1), MS(400)));
}

static u64 timeout_ns(const struct sim_qp *qp)
{
	return 4096ull << (qp->timeout ?: 14);
}

void sim_qp_pump(struct sim_qp *qp)
{
	while (qp->state == IB_QPS_RTS && !qp->waits_rnr && qp->cur < qp->head) {
		struct wqe *w = &qp->q[qp->cur % SIM_Q];
		bool asks = sim_has_answer(w->wr.opcode);
		u32 n = asks ? w->arrived : qp->cur_packet;
		u32 psn = shift_psn_add(w->psn, n);

		if (shift_psn_delta(psn, qp->q[qp->tail % SIM_Q].psn) >= WINDOW ||
		    (!n && !sim_may_send(qp, w)))
			break;
		sim_transmit(qp, (struct packet) {
			.kind = DATA, .psn = psn, .number = w->first + n,
			.first = !n, .last = asks || n + 1 == w->packets, .wr = w->wr,
		});
		if (!sim_timer_armed(&qp->retry))
			sim_timer_set(&qp->retry, sim_now + timeout_ns(qp));
		if (asks || ++qp->cur_packet == w->packets) {
			qp->cur_packet = 0;
			qp->cur++;
		}
	}
}

void sim_qp_flush(struct sim_qp *qp, u32 status)
{
	sim_timer_stop(&qp->retry);
	for (; qp->tail < qp->head; qp->tail++, status = IB_WC_WR_FLUSH_ERR)
		sim_cq_complete(qp, qp->scq, (struct ib_wc) {
			.wr_id = qp->q[qp->tail % SIM_Q].id, .status = status,
		});
	qp->cur = qp->tail;
	qp->cur_packet = 0;
	if (qp->holds) {
		sim_cq_complete(qp, qp->rcq, (struct ib_wc) {
			.wr_id = qp->held.id, .status = IB_WC_WR_FLUSH_ERR, .opcode = IB_WC_RECV,
		});
		sim_srq_drop(qp);
	}
	for (; qp->rtail < qp->rhead; qp->rtail++)
		sim_cq_complete(qp, qp->rcq, (struct ib_wc) {
			.wr_id = qp->rq[qp->rtail % SIM_Q].id, .status = IB_WC_WR_FLUSH_ERR,
			.opcode = IB_WC_RECV,
		});
}

static void broken(struct sim_qp *qp, u32 status)
{
	if (qp->state != IB_QPS_RTS && qp->state != IB_QPS_RTR)
		return;
	sim_log("      end %d qp %u breaks: %s", qp->dev->end, qp->ib.qp_num,
		ib_wc_status_msg(status));
	qp->state = IB_QPS_ERR;
	qp->error = status;
	sim_qp_flush(qp, status);
}

void sim_qp_broken(struct sim_qp *qp, u32 status)
{
	broken(qp, status);
}

/* Back to packet @psn, which is under way. */
static void go_back(struct sim_qp *qp, u32 psn)
{
	u64 i;

	for (i = qp->tail; i < qp->head; i++) {
		struct wqe *w = &qp->q[i % SIM_Q];
		u32 delta = shift_psn_delta(psn, w->psn);

		if (delta < w->packets) {
			qp->cur = i;
			qp->cur_packet = sim_has_answer(w->wr.opcode) ? 0 : delta;
			return;
		}
	}
}

void sim_qp_retries(struct sim_timer *timer)
{
	struct sim_qp *qp = container_of(timer, struct sim_qp, retry);

	if (qp->state != IB_QPS_RTS || qp->tail == qp->head)
		return;
	if (!qp->waits_rnr && qp->tries++ >= qp->retry_cnt) {
		broken(qp, IB_WC_RETRY_EXC_ERR);
		return;
	}
	if (!qp->waits_rnr)
		go_back(qp, qp->q[qp->tail % SIM_Q].psn);
	qp->waits_rnr = qp->asked_again = false;
	sim_qp_pump(qp);
}

/* An answer that was due before something else is lost: ask for it again, once. */
static void ask_again(struct sim_qp *qp)
{
	if (qp->cur == qp->tail || qp->asked_again)
		return;
	qp->asked_again = true;
	go_back(qp, qp->q[qp->tail % SIM_Q].psn);
}

/* Everything before @psn was executed. */
static void acknowledged(struct sim_qp *qp, u32 psn)
{
	while (qp->tail < qp->head) {
		struct wqe *w = &qp->q[qp->tail % SIM_Q];
		u32 delta = shift_psn_delta(psn, w->psn);

		if (delta < w->packets || delta > 1 << 23)
			break;
		if (sim_has_answer(w->wr.opcode) && w->arrived < w->packets) {
			ask_again(qp);
			break;
		}
		if (qp->cur == qp->tail) {
			qp->cur++;
			qp->cur_packet = 0;
		}
		qp->tail++;
		qp->tries = 0;
		qp->asked_again = false;
		if (qp->ring) {
			qp->ring->acked++;
			qp->ring->acked_psn = shift_psn_add(w->psn, w->packets);
		}
		if (w->signaled)
			sim_cq_complete(qp, qp->scq, (struct ib_wc) {
				.wr_id = w->id, .byte_len = w->wr.length,
			});
	}
	sim_timer_stop(&qp->retry);
	if (qp->tail < qp->head)
		sim_timer_set(&qp->retry, sim_now + timeout_ns(qp));
}

static void answered(struct sim_qp *qp, const struct packet *p)
{
	if (qp->state != IB_QPS_RTS || p->from != qp->dest)
		return;
	/* of what is under way, or just behind it */
	if (qp->tail == qp->head ||
	    shift_psn_delta(p->psn, qp->q[qp->tail % SIM_Q].psn) > 4 * SIM_Q)
		return;
	acknowledged(qp, p->psn);
	switch (p->kind) {
	case NAK:
		go_back(qp, p->psn);
		break;
	case RNR:
		if (qp->tail == qp->head)
			break;
		go_back(qp, p->psn);
		if (qp->rnr_retry != 7 && qp->rnr_tries++ >= qp->rnr_retry) {
			broken(qp, IB_WC_RNR_RETRY_EXC_ERR);
			return;
		}
		qp->waits_rnr = true;
		sim_timer_set(&qp->retry, sim_now + US(600));
		return;
	case REFUSED:
		broken(qp, IB_WC_REM_ACCESS_ERR);
		return;
	case ANSWER:
		if (sim_answer_arrives(qp, p))
			acknowledged(qp, shift_psn_add(p->psn, 1));
		else if (qp->tail < qp->head)
			ask_again(qp);
		break;
	default:
		qp->rnr_tries = 0;
	}
	qp->waits_rnr = false;
	sim_qp_pump(qp);
}

static bool needs_recv(const struct packet *p)
{
	if (p->wr.opcode == SHIFT_WR_SEND || p->wr.opcode == SHIFT_WR_SEND_WITH_IMM)
		return true;
	return p->wr.opcode == SHIFT_WR_RDMA_WRITE_WITH_IMM && p->last;
}

/* The receive for a message; NULL: there is none. */
static const struct rqe *recv_for(struct sim_qp *qp)
{
	if (qp->srq)
		return qp->holds || sim_srq_take(qp) ? &qp->held : NULL;
	return qp->rtail == qp->rhead ? NULL : &qp->rq[qp->rtail % SIM_Q];
}

static void requested(struct sim_qp *qp, const struct packet *p)
{
	const struct rqe *r = NULL;
	bool sends = p->wr.opcode == SHIFT_WR_SEND || p->wr.opcode == SHIFT_WR_SEND_WITH_IMM;
	struct packet answer = { .kind = ACK };

	if ((qp->state != IB_QPS_RTR && qp->state != IB_QPS_RTS) || p->from != qp->dest)
		return;
	answer.psn = qp->expected;
	if (p->psn != qp->expected) {
		if (shift_psn_delta(p->psn, qp->expected) < 1 << 23) {
			if (qp->naked)
				return;
			qp->naked = true;
			answer.kind = NAK;
		} else if (sim_has_answer(p->wr.opcode)) {
			sim_answer_again(qp, p);
			return;
		}
	} else if (needs_recv(p) && !(r = recv_for(qp))) {
		qp->naked = true;
		answer.kind = RNR;
	} else if ((!sends && p->wr.length && p->wr.rkey != qp->dev->mr.rkey) ||
		   (sim_has_answer(p->wr.opcode) && !qp->max_dest_rd_atomic)) {
		sim_refused(qp->dev->end, p->wr.rkey);
		answer.kind = REFUSED;
		sim_transmit(qp, answer);
		broken(qp, IB_WC_REM_ACCESS_ERR);
		return;
	} else if (sim_has_answer(p->wr.opcode)) {
		qp->naked = false;
		sim_answer(qp, p);
		return;
	} else {
		if (qp->carries)
			memcpy((void *)r->addr, p->carried, p->wr.length);
		else
			sim_executed(qp->dev->end, qp->dev->net, &p->wr, p->number, p->last,
				     r ? r->addr : 0);
		qp->naked = false;
		qp->expected = shift_psn_add(qp->expected, 1);
		answer.psn = qp->expected;
		if (p->last && needs_recv(p)) {
			bool imm = p->wr.opcode != SHIFT_WR_SEND;

			u64 id = r->id;

			if (qp->srq)
				qp->holds = false;
			else
				qp->rtail++;
			qp->received++;
			sim_cq_complete(qp, qp->rcq, (struct ib_wc) {
				.wr_id = id, .byte_len = p->wr.length,
				.opcode = sends ? IB_WC_RECV : IB_WC_RECV_RDMA_WITH_IMM,
				.ex.imm_data = imm ? p->wr.imm : 0,
				.wc_flags = imm ? IB_WC_WITH_IMM : 0,
			});
		}
	}
	sim_transmit(qp, answer);
}

static void arrives(struct sim_timer *timer)
{
	struct packet *p = container_of(timer, struct packet, timer);
	struct sim_qp *qp = sim_qp_find(p->to, p->net, p->qpn);

	if (qp && passes(qp, p->to)) {
		if (p->kind == DATA)
			requested(qp, p);
		else
			answered(qp, p);
	}
	kfree(p);
}

static int post(struct sim_qp *qp, const struct sim_wr *wr, u64 id, bool signaled)
{
	struct wqe *w = &qp->q[qp->head % SIM_Q];
	u32 offset = wr->addr & 0xffff;

	if (qp->state == IB_QPS_RESET || qp->state == IB_QPS_INIT)
		return -EINVAL;
	if (qp->head - qp->tail >= SIM_Q - 1)
		return -ENOMEM;
	if (wr->length && wr->lkey != (qp->carries ? SIM_DMA_KEY : qp->dev->mr.lkey))
		sim_fail("a WR has the local key of another path");
	*w = (struct wqe) {
		.wr = *wr, .id = id, .signaled = signaled, .psn = qp->psn,
		.first = offset / SIM_MTU,
		.packets = sim_packets(wr->length),
	};
	qp->psn = shift_psn_add(qp->psn, w->packets);
	qp->head++;
	if (qp->state == IB_QPS_ERR)
		sim_qp_flush(qp, IB_WC_WR_FLUSH_ERR);
	else
		sim_qp_pump(qp);
	return 0;
}

int ib_post_send(struct ib_qp *ib, const struct ib_send_wr *send, const struct ib_send_wr **bad)
{
	const struct ib_atomic_wr *atomic = (const void *)send;
	const struct ib_rdma_wr *rdma = (const void *)send;
	struct sim_qp *qp = to_qp(ib);
	struct sim_wr wr = {};

	if (!send) {
		sim_qp_pump(qp);
		return 0;
	}
	wr.opcode = send->opcode;
	wr.imm = send->ex.imm_data;
	if (send->send_flags & IB_SEND_FENCE)
		sim_fail("a proxy QP is left to keep a fence");
	if (send->num_sge > 1)
		sim_fail("more pieces than the application posted");
	if (send->num_sge) {
		wr.addr = send->sg_list[0].addr;
		wr.length = send->sg_list[0].length;
		wr.lkey = send->sg_list[0].lkey;
	}
	switch (wr.opcode) {
	case SHIFT_WR_RDMA_WRITE:
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
	case SHIFT_WR_RDMA_READ:
		wr.remote_addr = rdma->remote_addr;
		wr.rkey = rdma->rkey;
		break;
	case SHIFT_WR_ATOMIC_CMP_AND_SWP:
	case SHIFT_WR_ATOMIC_FETCH_AND_ADD:
		wr.remote_addr = atomic->remote_addr;
		wr.rkey = atomic->rkey;
		wr.compare_add = atomic->compare_add;
		wr.swap = atomic->swap;
	}
	return post(qp, &wr, send->wr_id, send->send_flags & IB_SEND_SIGNALED);
}

/* The application's doorbell: the device reads its ring. */
int sim_qp_post_own(struct ib_qp *ib, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct sim_qp *qp = to_qp(ib);
	int err = 0;

	while (!err && qp->fetched < qp->ring->producer) {
		const struct sim_wr *slot = sim_slot(qp->ring, qp->fetched);

		err = post(qp, slot, slot->wr_id,
			   qp->sig_all || slot->flags & SHIFT_WR_SIGNALED);
		if (!err)
			qp->fetched++;
	}
	return err;
}

void sim_qp_bell(struct ib_qp *ib)
{
	sim_qp_post_own(ib, NULL, NULL);
}

static int post_recv(struct sim_qp *qp, u64 id, u64 addr, u32 length)
{
	if (qp->state == IB_QPS_RESET)
		return -EINVAL;
	if (qp->rhead - qp->rtail >= SIM_Q)
		return -ENOMEM;
	qp->rq[qp->rhead++ % SIM_Q] = (struct rqe) { .id = id, .addr = addr, .length = length };
	if (qp->state == IB_QPS_ERR)
		sim_qp_flush(qp, IB_WC_WR_FLUSH_ERR);
	return 0;
}

int ib_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct sim_qp *qp = to_qp(ib);

	if (wr->num_sge != 1 || wr->sg_list[0].lkey != (qp->carries ? SIM_DMA_KEY : qp->dev->mr.lkey))
		sim_fail("a receive has the local key of another path");
	return post_recv(qp, wr->wr_id, wr->sg_list[0].addr, wr->sg_list[0].length);
}

void sim_qp_recv_bell(struct ib_qp *ib)
{
	struct sim_qp *qp = to_qp(ib);

	while (qp->rfetched < qp->rring->producer) {
		const struct sim_wr *slot = sim_slot(qp->rring, qp->rfetched);

		if (post_recv(qp, slot->wr_id, slot->addr, slot->length))
			return;
		qp->rfetched++;
	}
}

void sim_qp_restart(struct sim_qp *qp)
{
	qp->expected = 0;
	if (!qp->ring)
		return;
	qp->fetched = 0;
	qp->rfetched = 0;
	qp->received = 0;
	qp->ring->acked = 0;
}

u64 sim_qp_receives(struct ib_qp *ib) { return to_qp(ib)->received; }
enum ib_qp_state sim_qp_state(struct ib_qp *ib) { return to_qp(ib)->state; }
u32 sim_qp_error(struct ib_qp *ib) { return to_qp(ib)->error; }

void sim_qp_ring(struct ib_qp *ib, struct sim_ring *sq, struct sim_ring *rq)
{
	to_qp(ib)->ring = sq;
	to_qp(ib)->rring = rq;
}
