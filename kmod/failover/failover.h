/* SPDX-License-Identifier: GPL-2.0 */
/* What the verbs and the operators' interfaces call in failover/. */
#ifndef SHIFT_FAILOVER_FAILOVER_H
#define SHIFT_FAILOVER_FAILOVER_H

#include "core/qp.h"

struct shift_qp_counts;

/* handback.c */
bool shift_handback_able(struct shift_qp *sqp);
void shift_handback_forget(struct shift_qp *sqp);
int shift_handback_start(struct shift_qp *sqp);		/* sqp->lock */
int shift_handback_arm(struct shift_qp *sqp, u32 epoch, u32 qpn);

/* fence.c */
int shift_fence(struct shift_qp *sqp, bool *errored);

/* cqe_filter.c */
struct shift_account;
enum shift_abi_cqe_answer shift_cqe_filter(struct shift_qp *sqp, const struct shift_cq *scq,
					   u32 status, struct shift_account *account);
enum shift_qp_state shift_qp_shown(const struct shift_qp *sqp, enum shift_reason *reason);
enum shift_cause shift_qp_shown_cause(const struct shift_qp *sqp);

/* look.c */
void shift_look_all(void);
void shift_qp_look_drop(struct shift_qp *sqp);

/* report.c */
int shift_report_init(void);
void shift_report_uninit(void);
void shift_report_work(struct work_struct *work);

/* count.c */
void shift_qp_count(struct shift_dev *sdev, struct shift_qp_counts *counts);

/* ending.c */
void shift_pairing_drop(struct shift_qp *sqp);		/* sqp->lock */
void shift_failover_claim_errors(struct shift_qp *sqp);

/* revoke.c */
void shift_rkey_revoke(struct shift_mr *smr);

/* state.c; sqp->lock */
void shift_failover_event(struct shift_qp *sqp, enum shift_event event,
			  const struct shift_msg *m);
void shift_failover_fail(struct shift_qp *sqp, u32 status);
void shift_failover_unprotect(struct shift_qp *sqp, enum shift_reason reason);

/* triggers.c */
void shift_failover_backup_gone(struct shift_qp *sqp);		/* sqp->lock */
/* process context, no lock */
int shift_move_ask(struct shift_dev *sdev, u32 link_id, u32 qpn, u8 to, bool keep);

/* pairing.c */
void shift_pairing_look(const struct shift_pd *spd);	/* process context */
void shift_pairing_look_soon(void);	/* any context */
void shift_pairing_soon(struct shift_qp *sqp);	/* sqp->lock */
void shift_pairing_settle(struct shift_qp *sqp);
void shift_pairing_uninit(void);

/* receive.c */
extern const struct shift_link_ops shift_receive_link_ops;

/* work.c */
void shift_failover_work(struct work_struct *work);

#endif /* SHIFT_FAILOVER_FAILOVER_H */
