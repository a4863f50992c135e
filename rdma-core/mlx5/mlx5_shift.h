/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The provider's side of rdma/shift-abi.h.  In the fast paths only shift_flagged();
 * all else is out of line in mlx5_shift*.c and ../shift.
 */
#ifndef MLX5_SHIFT_H
#define MLX5_SHIFT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <infiniband/driver.h>
#include <util/compiler.h>
#include "mlx5dv.h"
#include "../shift/shift.h"

struct mlx5_cq;
struct mlx5_qp;
struct mlx5_srq;
struct mlx5_wqe_ctrl_seg;

struct mlx5_shift_cq {
	struct shift_cq		cq;
	bool			off;		/* not to be registered */
	bool			keep_side;	/* __mlx5_cq_clean() is for the ring only */
	bool			asked;		/* of the error that is being shown */
	unsigned int		drains;		/* of its QPs so many empty their SRQ's ring */
	struct mlx5_cqe64	cqe;		/* a side entry, as the device would say it */
};

struct mlx5_shift_qp {
	struct shift_object	obj;
	bool			off;		/* not to be registered */
	bool			stored;		/* to be found by its number */
	bool			drains;		/* empties its SRQ's ring: nothing is shown */
	uint32_t		create_flags;
	uint8_t			no_sends[127];	/* has the block that no_sends() looks for */
	uint32_t		no_heads[1];
};

struct mlx5_shift_srq {
	struct shift_srq	srq;
};

void mlx5_shift_register_cq(struct mlx5_cq *cq);
void mlx5_shift_unregister_cq(struct mlx5_cq *cq);
void mlx5_shift_register_qp(struct mlx5_qp *qp);
void mlx5_shift_unregister_qp(struct mlx5_qp *qp);
void mlx5_shift_forget_qp(struct mlx5_qp *qp);
void mlx5_shift_clean_cq(struct mlx5_cq *cq, uint32_t rsn);

/* The end of a CQE: QP, counter, opcode and owner; before all else that is read of it */
static inline uint64_t mlx5_shift_cqe_end(struct mlx5_cqe64 *cqe64)
{
	return atomic_load_explicit((_Atomic(uint64_t) *)&cqe64->sop_drop_qpn,
				    memory_order_acquire);
}

void mlx5_shift_cqe_forget(struct mlx5_cqe64 *cqe64, uint64_t end);
__shift_cold struct mlx5_wqe_ctrl_seg *mlx5_shift_kick(struct mlx5_qp *qp,
						       struct mlx5_wqe_ctrl_seg *ctrl);
__shift_cold void mlx5_shift_kick_recv(struct mlx5_qp *qp);
bool mlx5_shift_can_rebase(struct mlx5_qp *qp);
void mlx5_shift_rebase(struct mlx5_qp *qp, struct mlx5_cq *held);
bool mlx5_shift_cq_shown(struct mlx5_cq *cq, uint32_t rsn);
void mlx5_shift_cq_restart(struct mlx5_cq *cq, uint32_t rsn);
bool mlx5_shift_swallow(struct mlx5_cq *cq, const struct mlx5_cqe64 *cqe64,
			enum ibv_wc_status status);
__shift_cold bool mlx5_shift_take(struct mlx5_cq *cq);

void mlx5_shift_register_srq(struct mlx5_srq *srq);
void mlx5_shift_free_srq(struct mlx5_srq *srq);
void mlx5_shift_leave_srq(struct mlx5_srq *srq);
void mlx5_shift_record_recv(struct mlx5_srq *srq, int ind, const struct ibv_recv_wr *wr);
__shift_cold void mlx5_shift_kick_srq(struct mlx5_srq *srq);
__shift_cold int mlx5_shift_post_srq_recv(struct mlx5_srq *srq, struct ibv_recv_wr *wr,
					  struct ibv_recv_wr **bad_wr);
uint16_t mlx5_shift_srq_entry(const struct mlx5_srq *srq, const struct mlx5_cqe64 *cqe64);
void mlx5_shift_free_srq_wqe(struct mlx5_srq *srq, struct mlx5_cqe64 *cqe64, uint16_t ind);
void mlx5_shift_drop_srq_cqe(struct mlx5_srq *srq, struct mlx5_cqe64 *cqe64);
int mlx5_shift_side_entry(const struct mlx5_srq *srq, const struct shift_abi_wc *wc);
void mlx5_shift_drop_side(struct mlx5_srq *srq, const struct shift_abi_wc *wc);
bool mlx5_shift_drained(struct mlx5_cq *cq, const struct mlx5_cqe64 *cqe64);
__shift_cold bool mlx5_shift_empty(struct mlx5_qp *qp);

/* To connect a QP: others may lend receives to the ring and take them back meanwhile */
#define MLX5_SHIFT_TRIES	8

#endif /* MLX5_SHIFT_H */
