// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receives of an SRQ that the rdma_shift module can take over.  See struct
 * shift_abi_srq_table.
 *
 * A receive in the ring has the entry of its WQE's index; so a CQE names the entry as it
 * is. The device keeps what is in the ring. So once the SRQ is away the ring is left as it
 * is, and a receive gets any entry that is free, also one of those behind the ring's:
 * wrid[] and the bitmap have room for all of them.
 *
 * A QP that is to be connected then empties the ring first, for the kernel, which posts
 * there from then on, and says which receive is in which WQE.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "mlx5.h"
#include "mlx5_shift_buf.h"
#include "wqe.h"

#define NO_WQE		0xffff	/* no ring has as many */
#define EMPTY_S		10	/* to empty a ring, at most */
#define LOCK_TRIES	500	/* of 200 us: for another thread to poll */

static bool is_away(const struct mlx5_srq *srq)
{
	return shift_flagged(&srq->shift_flag, SHIFT_SRQ_FLAG_AWAY);
}

/* Arrays that are found by the number of an entry, and the ids of the ring's entries */
static bool make_room(struct mlx5_srq *srq)
{
	struct shift_srq_table *t = &srq->shift.srq.table;
	unsigned long *bitmap;
	uint64_t *wrid;
	int i;

	if (t->entries < 2 * (uint32_t)srq->max)
		return false;
	wrid = realloc(srq->wrid, t->entries * sizeof(*wrid));
	if (!wrid)
		return false;
	srq->wrid = wrid;
	bitmap = bitmap_alloc0(t->entries);
	if (!bitmap)
		return false;
	free(srq->free_wqe_bitmap);
	srq->free_wqe_bitmap = bitmap;
	srq->shift_ids = malloc(srq->max * sizeof(*srq->shift_ids));
	if (!srq->shift_ids)
		return false;
	for (i = 0; i < srq->max; i++)
		srq->shift_ids[i] = i | 1u << SHIFT_RECV_ID_GENERATION;
	/* the last one is used first, and those of the ring are the last ones */
	t->nfree = t->entries - srq->max;
	return true;
}

/* Last in create_srq: nothing was posted */
void mlx5_shift_register_srq(struct mlx5_srq *srq)
{
	struct ibv_srq *ibsrq = &srq->vsrq.srq;
	struct shift_context *ctx = &to_mctx(ibsrq->context)->shift;
	struct shift_abi_reg_srq cmd = {
		.provider = SHIFT_PROVIDER_MLX5,
		.cmd_fd = ibsrq->context->cmd_fd,
		.handle = ibsrq->handle,
		.ring.addr = (uintptr_t)mlx5_buf_addr(&srq->buf),
		.ring.len = srq->max << srq->wqe_shift,
		.flag_addr = (uintptr_t)&srq->shift_flag,
		.db_addr = (uintptr_t)srq->db,
		.slot = 1u << srq->wqe_shift,
	};

	if (srq->wq_sig)
		return;

	shift_register_srq(ctx, &srq->shift.srq, &cmd, srq->max_gs);
	if (srq->shift.srq.obj.registered && !make_room(srq)) {
		shift_unregister(ctx, &srq->shift.srq.obj, SHIFT_ABI_SRQ);
		shift_free_srq(&srq->shift.srq);
	}
}

/* The SRQ is destroyed, and before it its QPs, whose completions are gone */
void mlx5_shift_free_srq(struct mlx5_srq *srq)
{
	shift_unregister(&to_mctx(srq->vsrq.srq.context)->shift, &srq->shift.srq.obj,
			 SHIFT_ABI_SRQ);
	shift_free_srq(&srq->shift.srq);
	free(srq->shift_ids);
}

/*
 * Others write to its ring, or it has receives that are not in the table: as stock from now
 * on. What is away stays away.
 */
void mlx5_shift_leave_srq(struct mlx5_srq *srq)
{
	if (!is_away(srq))
		shift_unregister(&to_mctx(srq->vsrq.srq.context)->shift,
				 &srq->shift.srq.obj, SHIFT_ABI_SRQ);
}

static void fill_entry(struct mlx5_srq *srq, uint32_t recv_id, const struct ibv_recv_wr *wr)
{
	struct shift_srq_table *t = &srq->shift.srq.table;
	struct shift_abi_srq_entry *e = shift_srq_entry(t, recv_id);
	int i;

	e->num_sge = wr->num_sge > 0 ? wr->num_sge : 0;
	for (i = 0; i < wr->num_sge; i++)
		e->sge[i] = (struct shift_abi_sge) {
			.addr = wr->sg_list[i].addr,
			.length = wr->sg_list[i].length,
			.lkey = wr->sg_list[i].lkey,
		};
	shift_srq_posted(t, recv_id);
}

/* Holds srq->lock; the WQE of this index is not posted yet */
void mlx5_shift_record_recv(struct mlx5_srq *srq, int ind, const struct ibv_recv_wr *wr)
{
	if (srq->shift.srq.obj.registered)
		fill_entry(srq, srq->shift_ids[ind], wr);
}

void mlx5_shift_kick_srq(struct mlx5_srq *srq)
{
	shift_kick(&to_mctx(srq->vsrq.srq.context)->shift, &srq->shift.srq.obj,
		   SHIFT_ABI_SRQ);
}

/* mlx5_post_srq_recv of an SRQ that is away; holds srq->lock, and gives it back */
int mlx5_shift_post_srq_recv(struct mlx5_srq *srq, struct ibv_recv_wr *wr,
			     struct ibv_recv_wr **bad_wr)
{
	uint32_t recv_id;
	int err = 0;

	for (; wr; wr = wr->next) {
		recv_id = 0;
		if (wr->num_sge > srq->max_gs)
			err = EINVAL;
		else
			recv_id = shift_srq_take(&srq->shift.srq.table);
		if (!recv_id) {
			*bad_wr = wr;
			err = err ? err : ENOMEM;
			break;
		}
		srq->wrid[recv_id & SHIFT_RECV_ID_INDEX] = wr->wr_id;
		fill_entry(srq, recv_id, wr);
	}
	mlx5_spin_unlock(&srq->lock);
	mlx5_shift_kick_srq(srq);
	return err;
}

/*
 * The receive is complete: its entry is free, and then its WQE. Holds srq->lock, so that
 * what is freed once the SRQ is away is not posted in the ring any more.
 */
static void free_entry(struct mlx5_srq *srq, uint32_t ind)
{
	struct shift_srq_table *t = &srq->shift.srq.table;
	struct shift_abi_srq_entry *e;
	uint32_t recv_id;

	if (ind >= t->entries)
		return;
	e = shift_srq_entry(t, ind);
	recv_id = shift_srq_recv_id(e);
	if (!recv_id)
		return;
	atomic_store_explicit((_Atomic(uint32_t) *)&e->recv_id, 0, memory_order_release);
	if (is_away(srq) || ind >= (uint32_t)srq->max)
		shift_srq_give(t, recv_id);
	else
		srq->shift_ids[ind] = shift_srq_next_id(recv_id);
}

/* The entry of the receive that a CQE of the device's names */
uint16_t mlx5_shift_srq_entry(const struct mlx5_srq *srq, const struct mlx5_cqe64 *cqe64)
{
	uint16_t wqe = be16toh(cqe64->wqe_counter);
	uint32_t recv_id = 0;

	if (srq->shift.srq.table.wqe_offset && wqe < srq->max)
		recv_id = shift_srq_lent_id(&srq->shift.srq.table, wqe);
	return recv_id ? recv_id & (srq->shift.srq.table.entries - 1) : wqe;
}

/*
 * mlx5_free_srq_wqe of an SRQ with a table; ind: the entry. The kernel looks at the CQ: while
 * a CQE names the WQE, that is of the same receive.
 */
void mlx5_shift_free_srq_wqe(struct mlx5_srq *srq, struct mlx5_cqe64 *cqe64, uint16_t ind)
{
	mlx5_spin_lock(&srq->lock);
	free_entry(srq, ind);
	cqe64->wqe_counter = htobe16(NO_WQE);
	/* before it is used again, and before the CQ's consumer index moves */
	atomic_thread_fence(memory_order_release);
	if (ind < srq->shift.srq.table.entries)
		bitmap_set_bit(srq->free_wqe_bitmap, ind);
	mlx5_spin_unlock(&srq->lock);
}

/*
 * A CQE is dropped that was not shown. The receive of an error that was not for the
 * application is posted elsewhere if the SRQ is away.
 */
void mlx5_shift_drop_srq_cqe(struct mlx5_srq *srq, struct mlx5_cqe64 *cqe64)
{
	if (mlx5dv_get_cqe_opcode(cqe64) != MLX5_CQE_RESP_ERR || !is_away(srq))
		mlx5_shift_free_srq_wqe(srq, cqe64, mlx5_shift_srq_entry(srq, cqe64));
}

/* Which entry a side ring's completion is of; -1: of none, or not any more */
int mlx5_shift_side_entry(const struct mlx5_srq *srq, const struct shift_abi_wc *wc)
{
	if (!srq->shift_ids || !shift_srq_is_live(&srq->shift.srq.table, wc->wr_id))
		return -1;
	return wc->wr_id & SHIFT_RECV_ID_INDEX;
}

/* A side ring's completion is dropped, as its QP is in RESET */
void mlx5_shift_drop_side(struct mlx5_srq *srq, const struct shift_abi_wc *wc)
{
	int ind = mlx5_shift_side_entry(srq, wc);

	if (ind < 0)
		return;
	mlx5_spin_lock(&srq->lock);
	free_entry(srq, ind);
	mlx5_spin_unlock(&srq->lock);
}

/* Holds cq->lock. A CQE of a QP that empties a ring: what it received was taken over before */
bool mlx5_shift_drained(struct mlx5_cq *cq, const struct mlx5_cqe64 *cqe64)
{
	struct mlx5_qp *qp = mlx5_find_qp(to_mctx(cq->verbs_cq.cq.context),
					  be32toh(cqe64->sop_drop_qpn) & 0xffffff);

	return qp && qp->shift.drains;
}

/*
 * From now on the CQ shows nothing of the QP: all polls look at each CQE. The lock may be
 * held by ourselves, between ibv_start_poll() and ibv_end_poll().
 */
static bool hide(struct mlx5_cq *cq, struct mlx5_qp *qp)
{
	int tries;

	for (tries = 0; cq->lock.need_lock && pthread_spin_trylock(&cq->lock.lock); tries++) {
		if (tries == LOCK_TRIES)
			return false;
		usleep(200);
	}
	qp->shift.drains = true;
	cq->shift.drains++;
	shift_side_store(&cq->shift_flag, SHIFT_CQ_FLAG_SIDE, memory_order_relaxed);
	if (cq->lock.need_lock)
		pthread_spin_unlock(&cq->lock.lock);
	return true;
}

/* What it has received so far is dropped, and what it receives is shown again */
static void drop(struct mlx5_cq *cq, struct mlx5_qp *qp)
{
	mlx5_spin_lock(&cq->lock);
	__mlx5_cq_clean(cq, qp->rsc.rsn, NULL);
	cq->shift.drains--;
	qp->shift.drains = false;
	mlx5_spin_unlock(&cq->lock);
}

/*
 * A QP in INIT was not connected, as its SRQ's ring has receives that were taken over: may
 * that be tried again?
 */
bool mlx5_shift_empty(struct mlx5_qp *qp)
{
	struct shift_context *ctx = &to_mctx(qp->ibv_qp->context)->shift;
	struct mlx5_cq *cq = to_mcq(qp->ibv_qp->recv_cq);
	struct mlx5_srq *srq = to_msrq(qp->ibv_qp->srq);
	struct timespec now, end;
	int err;

	if (!qp->ibv_qp->srq || !srq->shift_ids || !qp->shift.obj.registered ||
	    !cq->shift.cq.side.ring)
		return false;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += EMPTY_S;
	do {
		struct shift_abi_empty cmd = {};

		/* who posts after this sees AWAY, too */
		mlx5_spin_lock(&srq->lock);
		if (is_away(srq)) {
			cmd.handed = 1;
			cmd.head = srq->head;
			cmd.counter = srq->counter;
		}
		mlx5_spin_unlock(&srq->lock);
		if (!hide(cq, qp))
			return false;
		err = shift_empty(ctx, &qp->shift.obj, &cmd);
		drop(cq, qp);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (err == EAGAIN && now.tv_sec < end.tv_sec);
	return !err;
}
