// SPDX-License-Identifier: GPL-2.0
/* Completion queues, and what polls those of the kernels. */
#include "qp.h"

static u32 cqs;

void sim_cq_start(void)
{
	cqs = 0;
}

u32 sim_cqs_left(void)
{
	return cqs;
}

static void cq_thread(void *arg)
{
	struct sim_cq *cq = arg;
	struct ib_wc wc[4];
	int i, n;

	if (sim_upset(sim_softirq_odds, "completions are late"))
		sim_sleep(sim_draw_between(US(20), MS(5)));
	while (!cq->disabled && (n = ib_poll_cq(&cq->ib, 4, wc)) > 0)
		for (i = 0; i < n; i++)
			wc[i].wr_cqe->done(&cq->ib, &wc[i]);
	cq->polling = false;
	if (!cq->disabled && ib_req_notify_cq(&cq->ib, IB_CQ_NEXT_COMP) > 0)
		irq_poll_sched(&cq->ib.iop);
}

void irq_poll_sched(struct irq_poll *iop)
{
	struct sim_cq *cq = to_cq(iop->cq);

	if (cq->disabled || cq->polling)
		return;
	cq->polling = true;
	cq->armed = false;
	sim_thread_start(((struct sim_dev *)cq->ib.device)->end, "completions", cq_thread, cq, true);
}

void irq_poll_disable(struct irq_poll *iop)
{
	struct sim_cq *cq = to_cq(iop->cq);

	sim_might_sleep(__func__);
	cq->disabled = true;
	while (cq->polling)
		sim_sleep(US(20));
}

void irq_poll_enable(struct irq_poll *iop)
{
	to_cq(iop->cq)->disabled = false;
}

int ib_poll_cq(struct ib_cq *ib, int n, struct ib_wc *wc)
{
	struct sim_cq *cq = to_cq(ib);
	int i;

	for (i = 0; i < n && cq->tail != cq->head; i++)
		wc[i] = cq->wc[cq->tail++ % SIM_CQ];
	return i;
}

int ib_req_notify_cq(struct ib_cq *ib, int flags)
{
	struct sim_cq *cq = to_cq(ib);

	cq->armed = cq->head == cq->tail;
	return !cq->armed;
}

struct ib_cq *ib_alloc_cq(struct ib_device *dev, void *context, int cqe, int vector, int poll)
{
	struct sim_cq *cq;

	sim_might_sleep(__func__);
	cq = sim_alloc(sizeof(*cq), GFP_NOIO);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->ib = (struct ib_cq) { .device = dev, .cq_context = context, .cqe = cqe };
	cq->ib.iop.cq = &cq->ib;
	cq->kernel = poll == IB_POLL_SOFTIRQ;
	cq->armed = true;
	cqs++;
	return &cq->ib;
}

void ib_free_cq(struct ib_cq *ib)
{
	struct sim_cq *cq = to_cq(ib);

	if (cq->kernel)
		irq_poll_disable(&ib->iop);
	cqs--;
	kfree(cq);
}

void sim_cq_complete(struct sim_qp *qp, struct sim_cq *cq, struct ib_wc wc)
{
	wc.qp = &qp->ib;
	if (cq->head - cq->tail == SIM_CQ)
		sim_fail("a CQ is full");
	cq->wc[cq->head++ % SIM_CQ] = wc;
	if (cq->kernel && cq->armed)
		irq_poll_sched(&cq->ib.iop);
}

void sim_cq_each(struct ib_cq *ib, void (*fn)(void *arg, u64 wr_id, u32 status, u32 qpn), void *arg)
{
	struct sim_cq *cq = to_cq(ib);
	u32 i;

	for (i = cq->tail; i != cq->head; i++) {
		const struct ib_wc *wc = &cq->wc[i % SIM_CQ];

		fn(arg, wc->wr_id, wc->status, wc->qp->qp_num);
	}
}

bool sim_cq_peek(struct ib_cq *ib, struct ib_wc *wc)
{
	struct sim_cq *cq = to_cq(ib);

	*wc = cq->wc[cq->tail % SIM_CQ];
	return cq->tail != cq->head;
}

const u32 *sim_cq_head(struct ib_cq *ib, u32 *tail)
{
	*tail = to_cq(ib)->tail;
	return &to_cq(ib)->head;
}

bool sim_cq_has_success(struct ib_cq *ib, struct ib_qp *qp)
{
	struct sim_cq *cq = to_cq(ib);
	u32 i;

	for (i = cq->tail; i != cq->head; i++)
		if (cq->wc[i % SIM_CQ].qp == qp && !cq->wc[i % SIM_CQ].status)
			return true;
	return false;
}

void sim_cq_forget(struct ib_cq *ib, struct ib_qp *qp)
{
	struct sim_cq *cq = to_cq(ib);
	u32 from = cq->tail, to = cq->tail;

	for (; from != cq->head; from++)
		if (cq->wc[from % SIM_CQ].qp != qp)
			cq->wc[to++ % SIM_CQ] = cq->wc[from % SIM_CQ];
	cq->head = to;
}
