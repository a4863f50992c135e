// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A QP that was away comes back to its device, which begins to count anew: so do its
 * rings. What was not posted there, sends and receives, moves to index 0 and what
 * follows; what was completed, but not shown yet, to the places before that. Completions
 * in side rings change with it. Counters of work requests (head, tail of sends) stay.
 *
 * Whoever does it holds all locks of both queues and CQs: none is waited for, as it may be
 * held by ourselves, between ibv_start_poll() and ibv_end_poll().
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mlx5.h"
#include "mlx5_shift_buf.h"
#include "wqe.h"

#define AGAIN_US	200	/* to the next try, if a lock was taken */

static bool is_lock(const struct mlx5_spinlock *lock)
{
	return lock->need_lock;
}

/* In a thread domain, or with one thread only, nobody else can tell that it is posting */
bool mlx5_shift_can_rebase(struct mlx5_qp *qp)
{
	struct mlx5_cq *scq = to_mcq(qp->ibv_qp->send_cq);
	struct mlx5_cq *rcq = to_mcq(qp->ibv_qp->recv_cq);

	return is_lock(&qp->sq.lock) && is_lock(&qp->rq.lock) && is_lock(&scq->lock) &&
	       is_lock(&rcq->lock) && !(scq->flags & MLX5_CQ_FLAGS_SINGLE_THREADED) &&
	       !(rcq->flags & MLX5_CQ_FLAGS_SINGLE_THREADED);
}

/* All locks of a QP but those in held; the number of those that were taken */
struct locks {
	struct mlx5_spinlock *lock[4];
	int taken;
};

static bool take_all(struct locks *l, struct mlx5_qp *qp, const struct mlx5_spinlock *held)
{
	struct mlx5_cq *scq = to_mcq(qp->ibv_qp->send_cq);
	struct mlx5_cq *rcq = to_mcq(qp->ibv_qp->recv_cq);
	struct mlx5_spinlock *all[] = {
		&qp->sq.lock, &qp->rq.lock, &scq->lock, scq == rcq ? NULL : &rcq->lock,
	};
	int i;

	l->taken = 0;
	for (i = 0; i < 4; i++) {
		if (!all[i] || all[i] == held)
			continue;
		if (pthread_spin_trylock(&all[i]->lock))
			return false;
		l->lock[l->taken++] = all[i];
	}
	return true;
}

static void drop_all(struct locks *l)
{
	while (l->taken)
		pthread_spin_unlock(&l->lock[--l->taken]->lock);
}

/* What was at first is the beginning, and what was before it the end */
static void rotate(void *ring, size_t size, unsigned int entries, unsigned int first, void *tmp)
{
	size_t front;

	first &= entries - 1;
	front = first * size;
	memcpy(tmp, ring, front);
	memmove(ring, ring + front, entries * size - front);
	memcpy(ring + entries * size - front, tmp, front);
}

static void rebase_sq(struct mlx5_qp *qp, struct shift_abi_rebase *base, void *tmp)
{
	struct mlx5_wq *sq = &qp->sq;
	struct mlx5_wqe_ctrl_seg *ctrl;
	uint32_t word, blocks;
	unsigned int i;

	if (!sq->wqe_cnt)
		return;

	rotate(qp->sq_start, MLX5_SEND_WQE_BB, sq->wqe_cnt, base->sq_base, tmp);
	rotate(sq->wrid, sizeof(*sq->wrid), sq->wqe_cnt, base->sq_base, tmp);
	rotate(sq->wqe_head, sizeof(*sq->wqe_head), sq->wqe_cnt, base->sq_base, tmp);
	rotate(sq->wr_data, sizeof(*sq->wr_data), sq->wqe_cnt, base->sq_base, tmp);
	sq->cur_post = (uint16_t)(sq->cur_post - base->sq_base);
	base->sq_number = sq->cur_post ? sq->wqe_head[0] : sq->head;

	for (i = 0; i < sq->cur_post; i += blocks) {
		ctrl = mlx5_get_send_wqe(qp, i & (sq->wqe_cnt - 1));
		word = be32toh(ctrl->opmod_idx_opcode);
		ctrl->opmod_idx_opcode = htobe32((word & 0xff0000ff) | i << 8);
		blocks = DIV_ROUND_UP((be32toh(ctrl->qpn_ds) & 0x3f) * 16, MLX5_SEND_WQE_BB);
		if (!blocks)
			break;
	}
	qp->shift_psn -= base->packets;
	qp->shift_anchor = (qp->shift_psn & ~0xffffULL) | (sq->cur_post & 0xffff);
	qp->db[MLX5_SND_DBR] = htobe32(sq->cur_post & 0xffff);
}

static void rebase_rq(struct mlx5_qp *qp, const struct shift_abi_rebase *base, void *tmp)
{
	uint16_t unshown = base->rq_base - qp->rq.tail;
	struct mlx5_wq *rq = &qp->rq;

	rotate(mlx5_buf_addr(&qp->buf) + rq->offset, 1U << rq->wqe_shift, rq->wqe_cnt,
	       base->rq_base, tmp);
	rotate(rq->wrid, sizeof(*rq->wrid), rq->wqe_cnt, base->rq_base, tmp);
	rq->head = (uint16_t)(rq->head - base->rq_base);
	rq->tail = -(unsigned int)unshown;
	qp->db[MLX5_RCV_DBR] = htobe32(rq->head & 0xffff);
}

/* Completions that are not shown yet say where their WQEs are by now */
static void rebase_side(struct mlx5_cq *cq, uint32_t qpn, const struct shift_abi_rebase *base)
{
	struct shift_side *side = &cq->shift.cq.side;
	struct shift_abi_wc *wc;
	uint32_t prod, i;

	prod = shift_side_load(&side->ring->producer, memory_order_acquire);
	for (i = side->ring->consumer; i != prod; i++) {
		wc = &side->ring->wc[i & side->mask];
		if (wc->qp_num == qpn && !(wc->opcode & SHIFT_WC_REBASE))
			wc->wr_id = (uint16_t)(wc->wr_id - (wc->opcode & SHIFT_WC_RECV ?
							    base->rq_base : base->sq_base));
	}
}

static size_t tmp_size(const struct mlx5_qp *qp)
{
	size_t sq = (size_t)qp->sq.wqe_cnt * MLX5_SEND_WQE_BB;
	size_t rq = (size_t)qp->rq.wqe_cnt << qp->rq.wqe_shift;
	size_t wrids = (size_t)qp->rq.wqe_cnt * sizeof(*qp->rq.wrid);

	if (rq < wrids)
		rq = wrids;
	return max(sq, rq);
}

static bool rebase(struct mlx5_qp *qp, struct shift_abi_rebase *base)
{
	struct shift_context *ctx = &to_mctx(qp->ibv_qp->context)->shift;
	struct mlx5_cq *scq = to_mcq(qp->ibv_qp->send_cq);
	struct mlx5_cq *rcq = to_mcq(qp->ibv_qp->recv_cq);
	bool able = scq->shift.cq.side.ring && rcq->shift.cq.side.ring &&
		    mlx5_shift_cq_shown(scq, qp->rsc.rsn) && mlx5_shift_cq_shown(rcq, qp->rsc.rsn);
	void *tmp = able ? malloc(tmp_size(qp)) : NULL;

	if (!tmp) {
		shift_rebase(ctx, &qp->shift.obj, SHIFT_REBASE_LATER, base);
		return false;
	}
	if (!shift_rebase(ctx, &qp->shift.obj, SHIFT_REBASE_BEGIN, base)) {
		free(tmp);
		return false;
	}
	rebase_sq(qp, base, tmp);
	if (qp->rq.wqe_cnt)
		rebase_rq(qp, base, tmp);
	rebase_side(scq, qp->ibv_qp->qp_num, base);
	mlx5_shift_cq_restart(scq, qp->rsc.rsn);
	if (rcq != scq) {
		rebase_side(rcq, qp->ibv_qp->qp_num, base);
		mlx5_shift_cq_restart(rcq, qp->rsc.rsn);
	}
	/* the rings, before the device may read them */
	udma_to_device_barrier();
	shift_rebase(ctx, &qp->shift.obj, SHIFT_REBASE_DONE, base);
	free(tmp);
	return true;
}

/* A word from the kernel: that it may be done, or only whether we poll */
void mlx5_shift_rebase(struct mlx5_qp *qp, struct mlx5_cq *held)
{
	struct shift_abi_rebase base = {};
	struct locks locks;

	if (take_all(&locks, qp, &held->lock))
		rebase(qp, &base);
	else
		shift_rebase(&to_mctx(qp->ibv_qp->context)->shift, &qp->shift.obj,
			     SHIFT_REBASE_LATER, &base);
	drop_all(&locks);
}

/*
 * Holds sq.lock, as for the doorbell, which is rung with what is returned; NULL: the kernel
 * has taken in what was posted. It may make us wait: the QP is on its way back then, and
 * if all locks are free we are the one who makes its rings ready.
 */
struct mlx5_wqe_ctrl_seg *mlx5_shift_kick(struct mlx5_qp *qp, struct mlx5_wqe_ctrl_seg *ctrl)
{
	struct shift_context *ctx = &to_mctx(qp->ibv_qp->context)->shift;
	size_t block = ((char *)ctrl - (char *)qp->sq_start) / MLX5_SEND_WQE_BB;
	struct shift_abi_rebase base = {};
	bool rebased = false;
	struct locks locks;

	while (!shift_kick(ctx, &qp->shift.obj, SHIFT_ABI_QP)) {
		if (errno != EAGAIN) {
			if (!rebased)
				return ctrl;
			/* it was all taken in just before the QP was on its way back */
			if (!qp->sq.cur_post)
				return NULL;
			return mlx5_get_send_wqe(qp, block);
		}
		if (take_all(&locks, qp, &qp->sq.lock) && rebase(qp, &base)) {
			drop_all(&locks);
			block = (block - base.sq_base) & (qp->sq.wqe_cnt - 1);
			rebased = true;
		} else {
			drop_all(&locks);
			usleep(AGAIN_US);
		}
	}
	return NULL;
}
