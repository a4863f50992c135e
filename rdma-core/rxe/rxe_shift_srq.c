// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receives of rxe's SRQs have receive ids: posting them, and the CQs to which they complete. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "rxe.h"
#include "rxe_queue.h"
#include "rxe_shift.h"

void rxe_shift_register_srq(struct rxe_srq *srq)
{
	struct ibv_srq *ibsrq = &srq->vsrq.srq;
	struct shift_abi_reg_srq cmd = {
		.provider = SHIFT_PROVIDER_RXE,
		.cmd_fd = ibsrq->context->cmd_fd,
		.handle = ibsrq->handle,
		.ring = rxe_shift_ring(srq->rq.queue, &srq->mmap_info),
		.flag_addr = (uintptr_t)&srq->shift.flag,
	};

	shift_register_srq(&to_rctx(ibsrq->context)->shift, &srq->shift.srq, &cmd,
			   srq->rq.max_sge);
}

void rxe_shift_unregister_srq(struct rxe_srq *srq)
{
	shift_unregister(&to_rctx(srq->vsrq.srq.context)->shift, &srq->shift.srq.obj,
			 SHIFT_ABI_SRQ);
}

/* Completions of a QP on this SRQ may come to this CQ from now on */
bool rxe_shift_attach_srq(struct ibv_srq *ibsrq, struct ibv_cq *ibcq)
{
	struct shift_context *ctx;
	struct rxe_shift_srq_cq *link;
	struct rxe_srq *srq;
	struct rxe_cq *cq;
	bool ok = true;

	if (!ibsrq || !ibcq || !to_rsrq(ibsrq)->shift.srq.table.map)
		return true;

	srq = to_rsrq(ibsrq);
	cq = to_rcq(ibcq);
	ctx = &to_rctx(ibcq->context)->shift;
	pthread_mutex_lock(&ctx->lock);
	for (link = srq->shift.cqs; link; link = link->next_cq)
		if (link->cq == cq)
			goto out;
	link = malloc(sizeof(*link));
	if (!link) {
		errno = ENOMEM;
		ok = false;
		goto out;
	}
	link->srq = srq;
	link->cq = cq;
	link->next_cq = srq->shift.cqs;
	srq->shift.cqs = link;
	pthread_spin_lock(&cq->lock);
	link->next_srq = cq->shift.srqs;
	cq->shift.srqs = link;
	shift_side_store(&cq->shift.flag, SHIFT_CQ_FLAG_SIDE, memory_order_relaxed);
	pthread_spin_unlock(&cq->lock);
out:
	pthread_mutex_unlock(&ctx->lock);
	return ok;
}

/*
 * The application's name of what was completed. A completion in error does not say
 * whether it is of a receive: an id does.
 */
uint64_t rxe_shift_wr_id(struct rxe_cq *cq, uint64_t wr_id)
{
	struct rxe_shift_srq_cq *link;

	for (link = cq->shift.srqs; link; link = link->next_srq)
		if (shift_srq_is_live(&link->srq->shift.srq.table, wr_id))
			return shift_srq_complete(&link->srq->shift.srq.table, wr_id);
	return wr_id;
}

/*
 * Completions that lie in the CQ get the application's wr_ids; holds cq->lock.
 * An error may be one that is not for the application, its receive still posted.
 */
static void untag(struct rxe_cq *cq, bool errors)
{
	struct shift_abi_side *side = cq->shift.cq.side.ring;
	struct rxe_queue_buf *q = cq->queue;
	struct ib_uverbs_wc *wc;
	uint32_t i, prod;

	for (i = load_consumer_index(q); i != load_producer_index(q);
	     i = (i + 1) & q->index_mask) {
		wc = addr_from_index(q, i);
		if (errors || !wc->status)
			wc->wr_id = rxe_shift_wr_id(cq, wc->wr_id);
	}
	if (!side)
		return;
	prod = shift_side_load(&side->producer, memory_order_acquire);
	for (i = side->consumer; i != prod; i++) {
		struct shift_abi_wc *entry = &side->wc[i & cq->shift.cq.side.mask];

		entry->wr_id = rxe_shift_wr_id(cq, entry->wr_id);
	}
}

/* Must hold the context's lock and cq->lock */
static void forget(struct rxe_cq *cq, const struct rxe_shift_srq_cq *link)
{
	struct rxe_shift_srq_cq **at = &cq->shift.srqs;

	while (*at != link)
		at = &(*at)->next_srq;
	*at = link->next_srq;
}

/* The SRQ is destroyed; what its QPs have completed may still be polled */
void rxe_shift_free_srq(struct rxe_srq *srq)
{
	struct shift_context *ctx = &to_rctx(srq->vsrq.srq.context)->shift;
	struct rxe_shift_srq_cq *link;

	if (!srq->shift.srq.table.map)
		return;

	pthread_mutex_lock(&ctx->lock);
	while ((link = srq->shift.cqs)) {
		srq->shift.cqs = link->next_cq;
		pthread_spin_lock(&link->cq->lock);
		untag(link->cq, true);
		forget(link->cq, link);
		pthread_spin_unlock(&link->cq->lock);
		free(link);
	}
	pthread_mutex_unlock(&ctx->lock);
	shift_free_srq(&srq->shift.srq);
}

/* The CQ is destroyed: completions that lie in it are lost, their ids are free */
void rxe_shift_detach_cq(struct rxe_cq *cq)
{
	struct shift_context *ctx = &to_rctx(cq->vcq.cq.context)->shift;
	struct rxe_shift_srq_cq *link, **at;

	if (!cq->shift.srqs)
		return;

	pthread_mutex_lock(&ctx->lock);
	untag(cq, false);
	while ((link = cq->shift.srqs)) {
		cq->shift.srqs = link->next_srq;
		for (at = &link->srq->shift.cqs; *at != link;)
			at = &(*at)->next_cq;
		*at = link->next_cq;
		free(link);
	}
	pthread_mutex_unlock(&ctx->lock);
}

static bool srq_away(const struct rxe_srq *srq)
{
	return shift_side_load(&srq->shift.flag, memory_order_relaxed) & SHIFT_SRQ_FLAG_AWAY;
}

/*
 * Nothing may be received into what the kernel has taken over. From then on the ring
 * is the kernel's, so only who has just posted there may do this.
 */
static void srq_empty_ring(struct rxe_srq *srq)
{
	struct rxe_queue_buf *q = srq->rq.queue;

	store_producer_index(q, load_consumer_index(q));
}

static uint32_t srq_record(struct rxe_srq *srq, const struct ibv_recv_wr *wr)
{
	struct shift_srq_table *t = &srq->shift.srq.table;
	struct shift_abi_srq_entry *e;
	uint32_t recv_id;
	int i;

	recv_id = shift_srq_take(t);
	if (!recv_id)
		return 0;
	e = shift_srq_entry(t, recv_id);
	e->wr_id = wr->wr_id;
	e->num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++)
		e->sge[i] = (struct shift_abi_sge) {
			.addr = wr->sg_list[i].addr,
			.length = wr->sg_list[i].length,
			.lkey = wr->sg_list[i].lkey,
		};
	return recv_id;
}

/* @ring: out: it was posted in the ring */
static int srq_post_one(struct rxe_srq *srq, struct ibv_recv_wr *wr, bool *ring)
{
	struct ibv_recv_wr tagged = *wr;
	uint32_t recv_id;
	int rc;

	if (wr->num_sge > (int)srq->rq.max_sge || wr->num_sge < 0)
		return EINVAL;

	if (srq_away(srq)) {
		recv_id = srq_record(srq, wr);
		if (!recv_id)
			return ENOMEM;
		shift_srq_posted(&srq->shift.srq.table, recv_id);
		return 0;
	}

	*ring = true;
	if (!srq->shift.srq.obj.registered)
		return rxe_post_one_recv(&srq->rq, wr);
	if (queue_full(srq->rq.queue))
		return ENOMEM;
	recv_id = srq_record(srq, wr);
	if (!recv_id) {
		/* more completions wait than the table has room for: as stock */
		rxe_shift_unregister_srq(srq);
		return rxe_post_one_recv(&srq->rq, wr);
	}
	tagged.wr_id = shift_srq_wr_id(&srq->shift.srq.table, recv_id);
	/* in the table before it can be completed */
	shift_srq_posted(&srq->shift.srq.table, recv_id);
	rc = rxe_post_one_recv(&srq->rq, &tagged);
	return rc;
}

/* rxe_post_srq_recv of an SRQ with a table; holds srq->rq.lock, and gives it back */
int rxe_shift_post_srq_recv(struct rxe_srq *srq, struct ibv_recv_wr *wr,
			    struct ibv_recv_wr **bad_wr)
{
	bool kick, ring = false;
	int rc = 0;

	for (; wr; wr = wr->next) {
		rc = srq_post_one(srq, wr, &ring);
		if (rc) {
			*bad_wr = wr;
			break;
		}
	}

	kick = srq_away(srq);
	if (kick && ring)
		srq_empty_ring(srq);
	pthread_spin_unlock(&srq->rq.lock);
	if (kick)
		shift_kick(&to_rctx(srq->vsrq.srq.context)->shift, &srq->shift.srq.obj,
			   SHIFT_ABI_SRQ);
	return rc;
}
