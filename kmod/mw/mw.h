/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory windows of user space, and regions that stand in for them:
 * Documentation/internals/windows.md.
 */
#ifndef SHIFT_MW_MW_H
#define SHIFT_MW_MW_H

#include "core/qp.h"
#include "pure/mw_state.h"

struct shift_proxy;

/**
 * struct shift_mw - a window of type 2 in sdev->mws, by the index of its key
 * @spd: its PD.
 * @mw: the driver's window; sdev->mw_mutex.
 * @gone: the driver has no window any more, as it could not be allocated again; sdev->mw_mutex.
 * @owner: the QP that binds it; only compared.  sdev->mw_lock.
 * @win: its state.  sdev->mw_lock.
 * @charge: for its regions, and the QP that registers them.
 */
struct shift_mw {
	struct shift_pd *spd;
	struct ib_mw *mw;
	bool gone;
	const struct shift_qp *owner;
	struct shift_mw_state win;
	struct shift_charge charge;
};

/* mw.c */
bool shift_mw_enabled(const struct shift_dev *sdev);
void shift_mw_init(struct shift_dev *sdev);
void shift_mw_claim(struct shift_qp *sqp, const struct shift_mw_op *op);
void shift_mw_was(struct shift_qp *sqp, const struct shift_mw_op *op);
int shift_mw_perform(struct shift_qp *sqp, const struct shift_mw_op *op);
int shift_mw_find(struct shift_qp *sqp, u32 key, struct shift_mw_state *win);
void shift_mw_told(struct shift_qp *sqp, u32 key, u32 n);
void shift_mw_invalidated(struct shift_qp *sqp, u32 key);
bool shift_mw_owns(struct shift_qp *sqp);
void shift_mw_recycle(struct shift_qp *sqp);		/* sqp->lock; sleeps */
void shift_mw_disown(struct shift_qp *sqp);
struct ib_umem *shift_mw_pin(struct ib_device *ibdev, u64 start, u64 length, int access);

/* registrar.c */
int shift_registrar_make(struct shift_proxy *b);
int shift_registrar_register(struct shift_qp *sqp, struct shift_proxy *b, struct ib_mr *mr,
			     u32 key, int access);
int shift_registrar_invalidate(struct shift_qp *sqp, struct shift_proxy *b, u32 key);
void shift_registrar_free(struct shift_proxy *b);

/* kernel_mr.c */
int shift_kernel_mrs_follow(struct shift_qp *sqp);
void shift_kernel_mr_settle(struct shift_mr *smr);

/* region.c */
int shift_region_get(struct shift_qp *sqp, u32 key, u32 *wire);
bool shift_region_drop(struct shift_qp *sqp, u32 key);
void shift_region_reap(struct shift_qp *sqp);
void shift_regions_free(struct shift_proxy *b);
/* no lock: ends the regions of @smr, or if that is NULL, of the window with that index in @spd */
void shift_region_revoke(struct shift_pd *spd, const struct shift_mr *smr, u32 index);
void shift_mr_unpin(struct shift_mr *smr);
/* softirq, ledger_lock: from the key of a region that was invalidated to the window's key */
u32 shift_region_invalidated(struct shift_qp *sqp, u32 wire);
bool shift_region_is_there(const struct shift_qp *sqp, u32 key);	/* ledger_lock */

#endif /* SHIFT_MW_MW_H */
