// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What rxe's CQs and QPs tell the rdma_shift module, and the paths that are not fast. */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "rxe.h"
#include "rxe_queue.h"
#include "rxe_shift.h"

/* For so long a post waits; of a second each, scaled: no fence lasts that long */
#define MAX_WAITS	60

static_assert(sizeof(pthread_spinlock_t) == sizeof(uint32_t),
	      "the ABI wants the lock as one 32-bit word");

static struct shift_context *shift_ctx(struct ibv_context *ibctx)
{
	return &to_rctx(ibctx)->shift;
}

/* Must hold cq->lock, unless no one can be polling yet */
void rxe_shift_register_cq(struct rxe_cq *cq)
{
	struct ibv_cq *ibcq = &cq->vcq.cq;
	struct shift_abi_reg_cq cmd = {
		.provider = SHIFT_PROVIDER_RXE,
		.cmd_fd = ibcq->context->cmd_fd,
		.handle = ibcq->handle,
		.ring = rxe_shift_ring(cq->queue, &cq->mmap_info),
		.flag_addr = (uintptr_t)&cq->shift.flag,
	};

	shift_register_cq(shift_ctx(ibcq->context), &cq->shift.cq, &cmd);
}

void rxe_shift_unregister_cq(struct rxe_cq *cq)
{
	shift_unregister(shift_ctx(cq->vcq.cq.context), &cq->shift.cq.obj, SHIFT_ABI_CQ);
}

void rxe_shift_free_cq(struct rxe_cq *cq)
{
	shift_free_cq(&cq->shift.cq);
}

void rxe_shift_register_qp(struct rxe_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	struct shift_abi_reg_qp cmd = {
		.provider = SHIFT_PROVIDER_RXE,
		.cmd_fd = ibqp->context->cmd_fd,
		.handle = ibqp->handle,
		.sq = rxe_shift_ring(qp->sq.queue, &qp->sq_mmap_info),
		.sq_lock_addr = (uintptr_t)&qp->sq.lock,
		.flag_addr = (uintptr_t)&qp->shift.flag,
		.lock_free = qp->sq.lock,
	};

	if (qp_type(qp) != IBV_QPT_RC || !ibqp->send_cq || !ibqp->recv_cq ||
	    !to_rcq(ibqp->send_cq)->shift.cq.obj.registered ||
	    !to_rcq(ibqp->recv_cq)->shift.cq.obj.registered)
		return;

	if (qp->rq.queue) {
		cmd.rq = rxe_shift_ring(qp->rq.queue, &qp->rq_mmap_info);
		cmd.rq_lock_addr = (uintptr_t)&qp->rq.lock;
	}

	shift_register_qp(shift_ctx(ibqp->context), &qp->shift.obj, &cmd);
}

void rxe_shift_unregister_qp(struct rxe_qp *qp)
{
	shift_unregister(shift_ctx(qp->vqp.qp.context), &qp->shift.obj, SHIFT_ABI_QP);
	qp->shift.flag = 0;
}

static bool gate_is_shut(struct rxe_qp *qp)
{
	return qp->shift.obj.registered &&
	       shift_side_load(&qp->shift.flag, memory_order_relaxed) & SHIFT_QP_FLAG_GATE;
}

/*
 * Sleep until the gate opens. It is looked at again with the lock held: a fence that
 * has begun meanwhile may have copied the rings, and would not see what is posted.
 */
static void gate_wait(struct rxe_qp *qp, pthread_spinlock_t *lock)
{
	unsigned int waits;
	bool again = true;

	for (waits = 0; again && waits < MAX_WAITS && gate_is_shut(qp); waits++) {
		pthread_spin_unlock(lock);
		again = shift_wait(shift_ctx(qp->vqp.qp.context), &qp->shift.obj);
		pthread_spin_lock(lock);
	}
}

void rxe_shift_wait_sq(struct rxe_qp *qp)
{
	gate_wait(qp, &qp->sq.lock);
}

/* Whether to KICK after the post: while the QP is away nobody looks at the ring */
bool rxe_shift_wait_rq(struct rxe_qp *qp)
{
	gate_wait(qp, &qp->rq.lock);
	return qp->shift.obj.registered &&
	       shift_side_load(&qp->shift.flag, memory_order_relaxed);
}

void rxe_shift_kick(struct rxe_qp *qp)
{
	shift_kick(shift_ctx(qp->vqp.qp.context), &qp->shift.obj, SHIFT_ABI_QP);
}

static bool swallow(struct rxe_cq *cq, const struct ib_uverbs_wc *wc)
{
	return wc->status && shift_swallow(shift_ctx(cq->vcq.cq.context), &cq->shift.cq,
					   wc->qp_num, wc->status);
}

static enum shift_side_pick pick(struct rxe_cq *cq, uint32_t cq_cons)
{
	struct rxe_queue_buf *q = cq->queue;

	return shift_side_pick(&cq->shift.cq.side, &q->producer_index, cq_cons,
			       q->index_mask);
}

/* The flag of a CQ of an SRQ's stays */
static void settle(struct rxe_cq *cq)
{
	if (!cq->shift.srqs)
		shift_side_settle(&cq->shift.cq.side, &cq->shift.flag);
}

/* rxe_poll_cq with all that a CQ of protected QPs may hold; holds cq->lock */
int rxe_shift_poll_cq(struct rxe_cq *cq, int ne, struct ibv_wc *wc)
{
	struct rxe_queue_buf *q = cq->queue;
	int npolled = 0;
	bool hide;
	void *src;

	while (npolled < ne) {
		switch (pick(cq, load_consumer_index(q))) {
		case SHIFT_PICK_CQ:
			src = consumer_addr(q);
			hide = swallow(cq, src);
			if (!hide) {
				memcpy(wc, src, sizeof(*wc));
				wc->wr_id = rxe_shift_wr_id(cq, wc->wr_id);
			}
			advance_consumer(q);
			if (hide)
				continue;
			break;
		case SHIFT_PICK_SIDE:
			shift_side_take(&cq->shift.cq.side, wc);
			wc->wr_id = rxe_shift_wr_id(cq, wc->wr_id);
			break;
		case SHIFT_PICK_NONE:
			goto out;
		}

		++npolled;
		++wc;
	}

out:
	settle(cq);
	return npolled;
}

/*
 * Show the next completion.  cur_index is the last one shown (or swallowed) of
 * the CQ ring, so that end_poll moves the consumer index rightly also while a
 * side entry is on show.
 */
static bool show_next(struct rxe_cq *cq)
{
	struct rxe_queue_buf *q = cq->queue;
	struct ib_uverbs_wc *wc;
	uint32_t next;

	for (;;) {
		next = (cq->cur_index + 1) & q->index_mask;

		switch (pick(cq, next)) {
		case SHIFT_PICK_CQ:
			cq->cur_index = next;
			wc = addr_from_index(q, next);
			if (swallow(cq, wc))
				continue;
			break;
		case SHIFT_PICK_SIDE:
			wc = &cq->shift.wc;
			shift_side_take(&cq->shift.cq.side, wc);
			break;
		case SHIFT_PICK_NONE:
		default:
			settle(cq);
			return false;
		}

		cq->wc = wc;
		cq->vcq.cq_ex.status = wc->status;
		cq->vcq.cq_ex.wr_id = rxe_shift_wr_id(cq, wc->wr_id);
		return true;
	}
}

/* Holds cq->lock, and gives it back if there is nothing to show */
int rxe_shift_start_poll(struct rxe_cq *cq)
{
	struct rxe_queue_buf *q = cq->queue;

	cq->cur_index = (load_consumer_index(q) - 1) & q->index_mask;

	if (show_next(cq))
		return 0;

	/* some may have been swallowed */
	advance_cq_cur_index(cq);
	store_consumer_index(q, cq->cur_index);
	pthread_spin_unlock(&cq->lock);
	errno = ENOENT;
	return errno;
}

/* The two, from the beginning: without the lock */
int rxe_shift_poll_cq_flagged(struct rxe_cq *cq, int ne, struct ibv_wc *wc)
{
	int npolled;

	pthread_spin_lock(&cq->lock);
	npolled = rxe_shift_poll_cq(cq, ne, wc);
	pthread_spin_unlock(&cq->lock);
	return npolled;
}

int rxe_shift_start_poll_flagged(struct rxe_cq *cq)
{
	pthread_spin_lock(&cq->lock);
	return rxe_shift_start_poll(cq);
}

/* Holds cq->lock, and keeps it for end_poll */
int rxe_shift_next_poll(struct rxe_cq *cq)
{
	if (show_next(cq))
		return 0;

	errno = ENOENT;
	return errno;
}
