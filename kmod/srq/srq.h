/* SPDX-License-Identifier: GPL-2.0 */
/* QPs on a shared receive queue, and its receives while it is away: internals/srq.md. */
#ifndef SHIFT_SRQ_SRQ_H
#define SHIFT_SRQ_SRQ_H

#include "core/srq.h"

/* empty.c; no lock */
int shift_srq_empty(struct shift_qp *sqp, const struct shift_abi_empty *cmd);

/* follow.c; ssrq->lock, if nothing else is said */
bool shift_srq_stays(const struct shift_qp *sqp);	/* or ssrq->look */
bool shift_srq_is_behind(const struct shift_qp *sqp);
bool shift_srq_is_stuck(const struct shift_qp *sqp);	/* any */
bool shift_srq_can_follow(const struct shift_qp *sqp);
void shift_srq_arm(struct shift_srq *ssrq);
void shift_srq_tell(struct shift_srq *ssrq);
void shift_srq_tell_late(struct shift_srq *ssrq);
void shift_srq_follow_start(struct shift_srq *ssrq);
void shift_srq_limit_set(struct shift_srq *ssrq);
bool shift_srq_is_overdue(struct shift_qp *sqp);	/* sqp->lock */
void shift_srq_timer(struct work_struct *work);

/* join.c; false: unprotected; it may not draw from the SRQ */
bool shift_srq_join(struct shift_qp *sqp, struct ib_srq *srq, struct shift_cq **held);
bool shift_srq_spoil(struct ib_srq *srq);

/* members.c */
void shift_srq_come_home(struct shift_srq *ssrq);		/* ssrq->lock */
void shift_srq_leave(struct shift_qp *sqp);
bool shift_srq_connected(struct shift_qp *sqp);
void shift_srq_ended(struct shift_qp *sqp);
bool shift_srq_movable(const struct shift_qp *sqp);
u8 shift_srq_path(const struct shift_qp *sqp, bool *must);
u8 shift_srq_wanted(const struct shift_qp *sqp, bool *broken, bool *moves);
int shift_srq_claim(struct shift_qp *sqp, struct shift_srq_pool *pool);
void shift_srq_fenced(struct shift_qp *sqp);
bool shift_srq_ready(struct shift_qp *sqp, struct shift_srq_pool *pool);
bool shift_srq_awaits(const struct shift_qp *sqp);

/* pool.c */
void shift_srq_drop_pools(struct shift_srq *ssrq, u8 path);	/* ssrq->lock; 0: all */
struct shift_srq_pool *shift_srq_pool_get(struct shift_qp *sqp, u8 path, struct ib_pd *pd);
void shift_srq_pool_put(struct shift_srq_pool *pool);
bool shift_srq_is_pool(const struct ib_srq *srq);		/* any */
bool shift_srq_pool_fits(struct shift_qp *sqp, u8 path, const struct shift_srq_pool *pool);

/* recv.c */
void shift_srq_got(struct shift_qp *sqp, struct shift_srq_recv *recv,
		   const struct shift_recv *got);	/* ledger_lock */
int shift_srq_deliver(struct shift_qp *sqp, bool all);		/* ledger_lock */
void shift_srq_doorbell(struct shift_srq *ssrq);
bool shift_srq_watch_limit(struct shift_srq *ssrq);
void shift_srq_drop_done(struct shift_qp *sqp);
void shift_srq_work(struct work_struct *work);

/* reg.c */
bool shift_srq_is_enabled(void);
int shift_srq_make_table(struct shift_srq *ssrq, u32 slots, gfp_t gfp);
int shift_srq_register(struct shift_srq *ssrq, const struct shift_abi_reg_srq *reg);
void shift_srq_unregister(struct shift_srq *ssrq);

/* takeover.c; ssrq->lock */
int shift_srq_take_over(struct shift_srq *ssrq);
void shift_srq_pool_lost(struct shift_srq *ssrq);
void shift_srq_lends(struct shift_srq *ssrq, bool lends);
bool shift_srq_give_back(struct shift_srq *ssrq);

#endif /* SHIFT_SRQ_SRQ_H */
