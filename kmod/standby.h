/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of a kernel-owned QP: for standby.c (its life) and standby_post.c. */
#ifndef SHIFT_STANDBY_H
#define SHIFT_STANDBY_H

#include <rdma/ib_verbs.h>
#include "switch.h"
#include "wr.h"

/**
 * struct shift_standby - a kernel-owned QP that carries an application's QP
 * @sqp: whose it is; outlives this.
 * @list: in sqp->retired.
 * @path: where; not 0.
 * @qp: the QP.
 * @cq: its CQ, of its own, with this as context.
 * @pool: the SRQ that it is on; NULL: none.
 * @cqe: handler of every send completion.
 * @recv_cqe: handler of every receive completion.
 * @depth: send WRs that may be outstanding.
 * @recv_depth: receive WRs that may be.
 * @inflight: WRs that are; ledger_lock.
 * @receives: posted to it, and no completion of any kind yet; ledger_lock.  Not those of @pool.
 * @next_done: ledger sequence of the next completion; ledger_lock.
 * @armed: its completions count; ledger_lock.
 * @live: receives may be posted; ledger_lock.
 * @sends: at RTS; ledger_lock.
 * @open: work may be posted: both sides are ready; ledger_lock.
 * @held: but not now, a move waits for what is under way; ledger_lock.
 * @recv_failed: a receive got an error of its own: the application's.
 * @error: first error status.
 * @watched: @next_done when the watch saw it change last; sqp->lock.
 * @since: when that was, ktime ns; 0: nothing was under way.
 * @rung: doorbells that were rung since.
 * @regions: in place of memory windows: standby_region.c.
 * @reg_qp: what registers them; sqp->lock.
 * @reg_cq: its CQ.
 * @attr: scratch of the fence; sqp->lock.
 * @wr: scratch for posting; ledger_lock.
 * @sge: the same.
 */
struct shift_standby {
	struct shift_qp *sqp;
	struct list_head list;
	u8 path;
	struct ib_qp *qp;
	struct ib_cq *cq;
	struct shift_srq_pool *pool;
	struct ib_cqe cqe, recv_cqe;
	u32 depth, recv_depth;
	u32 inflight, receives;
	u64 next_done;
	bool armed, live, sends, open, held, recv_failed;
	u32 error;
	u64 watched, since;
	u32 rung;
	struct list_head regions;
	struct ib_qp *reg_qp;
	struct ib_cq *reg_cq;
	struct ib_qp_attr attr;
	struct shift_wr wr;
	struct ib_sge sge[SHIFT_WR_MAX_SGE];
};

/* standby_connect.c: sqp->lock */
int shift_standby_connect(struct shift_standby *b, u32 epoch, u32 qpn);

/* standby_post.c: handlers of completions; softirq, or the fence */
void shift_standby_done(struct ib_cq *cq, struct ib_wc *wc);
void shift_standby_recv_done(struct ib_cq *cq, struct ib_wc *wc);
bool shift_standby_flushed(const struct shift_standby *b, const struct ib_wc *wc);

#endif /* SHIFT_STANDBY_H */
