// SPDX-License-Identifier: GPL-2.0
/*
 * READs and atomics: requests that have an answer.  A READ that is repeated is executed again.  An
 * atomic is not: the responder keeps the last results, until RESET.
 */
#include "pure/psn.h"
#include "pure/wr.h"
#include "qp.h"

static bool is_atomic(u32 opcode)
{
	return opcode == SHIFT_WR_ATOMIC_CMP_AND_SWP || opcode == SHIFT_WR_ATOMIC_FETCH_AND_ADD;
}

bool sim_has_answer(u32 opcode)
{
	return opcode == SHIFT_WR_RDMA_READ || is_atomic(opcode);
}

/* Not more requests than the other end can answer, and none with a fence before all answers. */
bool sim_may_send(const struct sim_qp *qp, const struct wqe *w)
{
	u32 n = 0;
	u64 i;

	for (i = qp->tail; i < qp->cur; i++)
		n += sim_has_answer(qp->q[i % SIM_Q].wr.opcode);
	if (w->wr.flags & SHIFT_WR_FENCE && n)
		return false;
	return !sim_has_answer(w->wr.opcode) || n < qp->max_rd_atomic;
}

static void send_answer(struct sim_qp *qp, const struct packet *p, u32 n, u64 data)
{
	sim_transmit(qp, (struct packet) {
		.kind = ANSWER, .psn = shift_psn_add(p->psn, n), .data = data,
	});
}

/* A READ from packet @p->number on. */
static u32 send_data(struct sim_qp *qp, const struct packet *p, bool again)
{
	u32 first = (p->wr.addr & 0xffff) / SIM_MTU;
	u32 i, n = sim_packets(p->wr.length) - (p->number - first);

	for (i = 0; i < n; i++)
		send_answer(qp, p, i, sim_read(qp->dev->end, &p->wr,
							       p->number + i, again));
	return n;
}

void sim_answer(struct sim_qp *qp, const struct packet *p)
{
	u32 n = 1;
	u64 data;

	if (is_atomic(p->wr.opcode)) {
		data = sim_atomic(qp->dev->end, qp->dev->net, &p->wr);
		qp->result[qp->n_results % qp->max_dest_rd_atomic].psn = p->psn;
		qp->result[qp->n_results++ % qp->max_dest_rd_atomic].data = data;
		send_answer(qp, p, 0, data);
	} else {
		n = send_data(qp, p, false);
	}
	qp->expected = shift_psn_add(qp->expected, n);
}

void sim_answer_again(struct sim_qp *qp, const struct packet *p)
{
	u32 i;

	if (!is_atomic(p->wr.opcode)) {
		send_data(qp, p, true);
		return;
	}
	for (i = 0; i < min_t(u32, qp->n_results, qp->max_dest_rd_atomic); i++)
		if (qp->result[i].psn == p->psn) {
			send_answer(qp, p, 0, qp->result[i].data);
			return;
		}
}

/* Everything before it was acknowledged by the same packet. */
bool sim_answer_arrives(struct sim_qp *qp, const struct packet *p)
{
	struct wqe *w = &qp->q[qp->tail % SIM_Q];

	if (qp->tail == qp->head || !sim_has_answer(w->wr.opcode) ||
	    p->psn != shift_psn_add(w->psn, w->arrived))
		return false;
	sim_landed(qp->dev->end, &w->wr, w->first + w->arrived++, p->data);
	qp->tries = 0;
	return true;
}
