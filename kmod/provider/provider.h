/* SPDX-License-Identifier: GPL-2.0 */
/* Operations that depend on the kind of a QP's device. */
#ifndef SHIFT_PROVIDER_PROVIDER_H
#define SHIFT_PROVIDER_PROVIDER_H

#include "core/provider.h"

extern const struct shift_provider shift_provider_rxe, shift_provider_mlx5;
extern const struct shift_provider shift_provider_kernel;	/* of QPs, not of devices */
extern const struct shift_srq_ops shift_kernel_srq_provider;	/* of their SRQs */

/* proof.c */
void shift_proof_init(struct shift_dev *sdev);
void shift_proof_begin(struct shift_dev *sdev);
void shift_proof_again(struct shift_dev *sdev);
void shift_proof_wait(struct shift_dev *sdev);
void shift_proof_end(struct shift_dev *sdev);
bool shift_proof_holds(const struct shift_dev *sdev, u32 claims);

/* provider.c */
void shift_provider_register(const struct shift_provider *provider);
const struct shift_provider *shift_provider_of_driver(enum rdma_driver_id driver);
void shift_provider_restarts(struct shift_qp *sqp);
void shift_provider_executed(struct shift_qp *sqp);
u32 shift_provider_invalidations(struct shift_qp *sqp, u32 key);
int shift_fence_query(struct shift_qp *sqp, struct ib_qp_attr *attr);
void shift_fence_heard(struct shift_qp *sqp, u8 path, u32 expected);
void shift_fence_open(struct shift_qp *sqp);	/* let waiting posts go on */
int shift_provider_movable(struct shift_qp *sqp);	/* 0, -EOPNOTSUPP; sqp->lock */
u32 shift_provider_cause(struct shift_qp *sqp);		/* enum ib_wc_status; any context */
void shift_provider_doorbell(struct shift_qp *sqp);	/* if any was kept back; sqp->lock */
int shift_fence_stop(struct shift_qp *sqp, enum ib_qp_state state);

#endif /* SHIFT_PROVIDER_PROVIDER_H */
