// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues of devices, as of rxe: a message takes a receive with its first packet. */
#include "qp.h"

#define SRQS_MAX	32

static struct sim_srq *all[SRQS_MAX];
static u32 next_number;

void sim_srq_start(void)
{
	memset(all, 0, sizeof(all));
	next_number = 0;
}

u32 sim_srqs_left(void)
{
	u32 i, n = 0;

	for (i = 0; i < SRQS_MAX; i++)
		n += !!all[i];
	return n;
}

static u32 posted(const struct sim_srq *srq)
{
	return srq->ring ? srq->ring->producer - srq->ring->consumer : srq->head - srq->tail;
}

static void limit_event(struct sim_srq *srq)
{
	struct ib_event event = {
		.device = srq->ib.device, .event = IB_EVENT_SRQ_LIMIT_REACHED,
		.element.srq = &srq->ib,
	};

	if (!srq->limit || posted(srq) >= srq->limit)
		return;
	srq->limit = 0;
	if (srq->ib.event_handler)
		srq->ib.event_handler(&event, srq->ib.srq_context);
}

bool sim_srq_take(struct sim_qp *qp)
{
	struct sim_srq *srq = qp->srq;

	if (!posted(srq))
		return false;
	if (srq->ring) {
		const struct sim_wr *slot = &srq->ring->slot[srq->ring->consumer++ % SIM_RING];

		qp->held = (struct rqe) {
			.id = slot->wr_id, .addr = slot->addr, .length = slot->length,
		};
	} else {
		qp->held = srq->rq[srq->tail++ % SIM_Q];
	}
	qp->holds = true;
	sim_recv_taken(qp->dev->end, qp->held.addr, srq->number, srq->ring);
	limit_event(srq);
	return true;
}

void sim_srq_drop(struct sim_qp *qp)
{
	if (qp->holds)
		sim_recv_dropped(qp->dev->end, qp->held.addr);
	qp->holds = false;
}

bool sim_srq_has(int end, u64 addr)
{
	const struct sim_srq *srq;
	u64 n;
	u32 i;

	for (i = 0; i < SRQS_MAX; i++) {
		srq = all[i];
		if (!srq || srq->dev->end != end)
			continue;
		for (n = srq->tail; n < srq->head; n++)
			if (srq->rq[n % SIM_Q].addr == addr)
				return true;
		for (n = srq->ring ? srq->ring->consumer : 0;
		     srq->ring && n < srq->ring->producer; n++)
			if (srq->ring->slot[n % SIM_RING].addr == addr)
				return true;
	}
	return false;
}

int ib_post_srq_recv(struct ib_srq *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct sim_srq *srq = to_srq(ib);

	if (wr->num_sge != 1 || wr->sg_list[0].lkey != srq->dev->mr.lkey)
		sim_fail("a receive has the local key of another path");
	if (posted(srq) >= srq->max)
		return -ENOMEM;
	srq->rq[srq->head++ % SIM_Q] = (struct rqe) {
		.id = wr->wr_id, .addr = wr->sg_list[0].addr, .length = wr->sg_list[0].length,
	};
	return 0;
}

struct ib_srq *sim_srq_alloc(struct sim_dev *dev, struct ib_pd *pd, struct sim_ring *ring)
{
	struct sim_srq *srq = sim_alloc(sizeof(*srq), GFP_NOIO);

	if (!srq)
		return NULL;
	srq->ib = (struct ib_srq) { .device = &dev->ib, .pd = pd };
	srq->dev = dev;
	srq->ring = ring;
	srq->number = ++next_number;
	return &srq->ib;
}

void sim_srq_free(struct ib_srq *ib)
{
	kfree(to_srq(ib));
}

int sim_srq_create(struct ib_srq *ib, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct sim_srq *srq = to_srq(ib);
	u32 i = 0;

	while (all[i])
		if (++i == SRQS_MAX)
			sim_fail("too many SRQs");
	all[i] = srq;
	srq->max = min_t(u32, init->attr.max_wr, SIM_Q);
	ib->event_handler = init->event_handler;
	ib->srq_context = init->srq_context;
	return 0;
}

int sim_srq_destroy(struct ib_srq *ib, struct ib_udata *udata)
{
	u32 i;

	sim_might_sleep(__func__);
	for (i = 0; i < SRQS_MAX; i++)
		if (all[i] == to_srq(ib))
			all[i] = NULL;
	return 0;
}

/* A resize copies what is posted to another ring, of which nobody but the application knows. */
int sim_srq_modify(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata)
{
	struct sim_srq *srq = to_srq(ib);
	int err = sim_verb(srq->dev, "modify SRQ");

	if (err && mask & IB_SRQ_LIMIT)
		sim_limit_again(srq->dev->end);
	if (err)
		return err;
	if (mask & IB_SRQ_MAX_WR) {
		struct sim_ring *from = srq->ring++;

		*srq->ring = *from;
	}
	if (mask & IB_SRQ_LIMIT)
		srq->limit = attr->srq_limit;
	return 0;
}

int sim_srq_query(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	int err = sim_verb(to_srq(ib)->dev, "query SRQ");

	if (err)
		sim_limit_again(to_srq(ib)->dev->end);
	attr->max_wr = to_srq(ib)->max;
	attr->max_sge = 1;
	attr->srq_limit = to_srq(ib)->limit;
	return err;
}

struct ib_srq *ib_create_srq(struct ib_pd *pd, struct ib_srq_init_attr *init)
{
	int err = sim_verb((struct sim_dev *)pd->device, "create SRQ");
	struct ib_srq *srq = err ? NULL : sim_srq_alloc((struct sim_dev *)pd->device, pd, NULL);

	if (!srq)
		return ERR_PTR(err ?: -ENOMEM);
	sim_srq_create(srq, init, NULL);
	return srq;
}

int ib_destroy_srq(struct ib_srq *srq)
{
	sim_srq_destroy(srq, NULL);
	sim_srq_free(srq);
	return 0;
}
