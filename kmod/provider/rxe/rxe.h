/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of the rxe provider. */
#ifndef SHIFT_PROVIDER_RXE_RXE_H
#define SHIFT_PROVIDER_RXE_RXE_H

#include "core/provider.h"
#include "provider/provider.h"

struct shift_flush;

/**
 * struct shift_mw_journal - operations on windows that were posted to a QP on its own NIC
 * @scanned: index in its ring of the first slot that was not looked at.
 * @seq: number of slots that were looked at.
 * @ops: struct shift_mw_entry of operations that may not have completed yet, oldest first.
 * @invs: by index of a key: how many SEND_WITH_INVs for that window were executed.
 * @windows: number of entries in @invs.
 * @slot: scratch for the head of a slot.
 *
 * All under ledger_lock.
 */
struct shift_mw_journal {
	u32 scanned;
	u64 seq;
	struct list_head ops;
	struct xarray invs;
	u32 windows;
	u8 *slot;
};

/**
 * struct shift_rxe_qp - what is kept of a QP that was registered
 * @lock_free: value of both lock words when nobody is posting.
 * @journal: NULL if windows are not enabled, or there was no memory for it.
 */
struct shift_rxe_qp {
	u32 lock_free;
	struct shift_mw_journal *journal;
};

/* Words of struct shift_qp_pins: the locks that threads of the application hold to post. */
enum { SHIFT_RXE_SQ_LOCK, SHIFT_RXE_RQ_LOCK };

static inline struct shift_mw_journal *rxe_journal(const struct shift_qp *sqp)
{
	return ((const struct shift_rxe_qp *)sqp->rings.priv)->journal;
}

/* fence.c */
bool shift_rxe_hold(struct shift_qp *sqp);
void shift_rxe_quiet(struct shift_qp *sqp);
u32 shift_rxe_cause(struct shift_qp *sqp);
int shift_rxe_fence(struct shift_qp *sqp, bool *errored);

/* cq_count.c */
u32 shift_cq_count_begin(struct shift_cq *scq);
int shift_cq_count_done(struct shift_qp *sqp, struct shift_cq *scq, u32 from, bool recvs, u8 *slot);
void shift_cq_count_mark_error(struct shift_qp *sqp, u32 status);	/* any context */
int shift_cq_count_errors(struct shift_qp *sqp, struct shift_cq *scq, u32 pos, u32 end, u32 least,
			  struct shift_flush *flush, u8 *slot);
void shift_cq_count_settle(const struct shift_cq *scq);		/* sleeps */

/* srq.c */
extern const struct shift_srq_ops shift_rxe_srq_ops;

/* mw_journal.c */
struct shift_mw_journal *shift_mw_journal_new(const struct shift_ring *sq);
void shift_mw_journal_free(struct shift_mw_journal *notes);
void shift_mw_journal_doorbell(struct shift_qp *sqp);	/* no lock */
void shift_mw_journal_restart(struct shift_qp *sqp);		/* sqp->lock */
void shift_mw_journal_scan(struct shift_qp *sqp);
void shift_mw_journal_settle(struct shift_qp *sqp, u32 outstanding);
void shift_mw_journal_executed(struct shift_qp *sqp);	/* sqp->lock */
u32 shift_mw_journal_invalidations(struct shift_qp *sqp, u32 key);	/* any context */

#endif /* SHIFT_PROVIDER_RXE_RXE_H */
