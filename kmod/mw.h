/* SPDX-License-Identifier: GPL-2.0 */
/* Memory windows of user space, and regions that stand in for them: Documentation/windows.md. */
#ifndef SHIFT_MW_H
#define SHIFT_MW_H

#include "switch.h"
#include "window.h"

struct shift_standby;

/**
 * struct shift_mw - a window of type 2 in sdev->mws, by the index of its key
 * @spd: its PD.
 * @mw: the driver's; sdev->mw_mutex.
 * @gone: the driver's could not be made anew: there is none; sdev->mw_mutex.
 * @owner: the QP that binds it; to compare.  sdev->mw_lock.
 * @win: what is known of it.  sdev->mw_lock.
 */
struct shift_mw {
	struct shift_pd *spd;
	struct ib_mw *mw;
	bool gone;
	const struct shift_qp *owner;
	struct shift_window win;
};

/**
 * struct shift_notes - operations on windows that a QP on its own NIC was given
 * @scanned: index in its ring of the first slot that was not looked at.
 * @seq: how many slots were.
 * @ops: struct shift_note, oldest first: not known yet whether they completed.
 * @invs: by index of a key: how many SEND_WITH_INVs for that window were executed.
 * @windows: entries in @invs.
 * @slot: head of a slot.
 *
 * All under ledger_lock.
 */
struct shift_notes {
	u32 scanned;
	u64 seq;
	struct list_head ops;
	struct xarray invs;
	u32 windows;
	u8 *slot;
};

/* mw.c: windows, by the keys that their application has */
extern const struct ib_device_ops shift_mw_ops;
bool shift_windows_enabled(const struct shift_dev *sdev);
bool shift_qp_can_move(const struct shift_qp *sqp, const struct shift_wr *wr);
void shift_mw_init(struct shift_dev *sdev);
void shift_mw_claim(struct shift_qp *sqp, const struct shift_window_op *op);
void shift_mw_was(struct shift_qp *sqp, const struct shift_window_op *op);
int shift_mw_perform(struct shift_qp *sqp, const struct shift_window_op *op);
int shift_mw_find(struct shift_qp *sqp, u32 key, struct shift_window *win);
void shift_mw_told(struct shift_qp *sqp, u32 key, u32 n);
void shift_mw_invalidated(struct shift_qp *sqp, u32 key);
bool shift_mw_owns(struct shift_qp *sqp);
void shift_mw_recycle(struct shift_qp *sqp);		/* sqp->lock; sleeps */
void shift_mw_disown(struct shift_qp *sqp);
void shift_mw_device_gone(struct shift_dev *sdev);
struct ib_umem *shift_mw_pin(struct ib_device *ibdev, u64 start, u64 length, int access);

/* mw_notes.c; ledger_lock, but for the first two */
struct shift_notes *shift_notes_new(const struct shift_ring *sq);
void shift_notes_free(struct shift_notes *notes);
void shift_notes_doorbell(struct shift_qp *sqp);	/* no lock */
void shift_notes_restart(struct shift_qp *sqp);		/* sqp->lock */
void shift_notes_scan(struct shift_qp *sqp);
void shift_notes_settle(struct shift_qp *sqp, u32 outstanding);
void shift_notes_executed(struct shift_qp *sqp);	/* sqp->lock */
u32 shift_notes_invs(struct shift_qp *sqp, u32 key);	/* sqp->lock */

/* standby_region.c; sqp->lock, sleep */
int shift_region_get(struct shift_qp *sqp, u32 key, u32 *wire);
bool shift_region_drop(struct shift_qp *sqp, u32 key);
void shift_region_reap(struct shift_qp *sqp);
void shift_regions_free(struct shift_standby *b);
/* no lock: of that memory (or NULL), or the window of that index in @spd */
void shift_region_revoke(struct shift_pd *spd, const struct shift_mr *smr, u32 index);
void shift_mr_unpin(struct shift_mr *smr);
/* softirq, ledger_lock: the application's key of a region's that was invalidated */
u32 shift_region_invalidated(struct shift_qp *sqp, u32 wire);
bool shift_region_is_there(const struct shift_qp *sqp, u32 key);	/* ledger_lock */

#endif /* SHIFT_MW_H */
