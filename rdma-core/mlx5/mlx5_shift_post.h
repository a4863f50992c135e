/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Counting request packets as they are posted. WQEs carry no PSN, and the ring goes
 * round unseen by the kernel; so it gets an anchor with each post: the packets of all
 * WQEs so far, and the index behind them. All of it holds sq.lock.
 *
 * Each WQE counts as one packet when it is posted; only what is larger than the path
 * MTU, or has no packet at all, is looked at before. Without a path MTU, as on all that
 * are not RC, nothing is.
 */
#ifndef MLX5_SHIFT_POST_H
#define MLX5_SHIFT_POST_H

#include "mlx5.h"

#define MLX5_SHIFT_PACKET	(1ULL << 16)	/* behind the index */

__shift_cold void mlx5_shift_count_large(struct mlx5_qp *qp, uint32_t bytes);
__shift_cold void mlx5_shift_count_wr(struct mlx5_qp *qp, const struct ibv_send_wr *wr);

/* After the WQEs are written, before the doorbell record is */
static inline void mlx5_shift_anchor(struct mlx5_qp *qp, int nreq)
{
	qp->shift_psn += (uint64_t)nreq * MLX5_SHIFT_PACKET;
	atomic_store_explicit((_Atomic(uint64_t) *)&qp->shift_anchor,
			      qp->shift_psn | (qp->sq.cur_post & 0xffff),
			      memory_order_relaxed);
}

/* WQEs that were built are not posted */
static inline void mlx5_shift_rollback(struct mlx5_qp *qp)
{
	qp->shift_psn = qp->shift_anchor & ~(MLX5_SHIFT_PACKET - 1);
}

/* Data of a WQE that is being built */
static inline void mlx5_shift_count(struct mlx5_qp *qp, uint32_t bytes)
{
	if (unlikely(bytes > qp->shift_mtu))
		mlx5_shift_count_large(qp, bytes);
}

/* The WQE that is being built has no packet */
static inline void mlx5_shift_count_local(struct mlx5_qp *qp)
{
	qp->shift_psn -= MLX5_SHIFT_PACKET;
}

#endif /* MLX5_SHIFT_POST_H */
