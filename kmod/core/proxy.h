/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of a proxy QP. */
#ifndef SHIFT_CORE_PROXY_H
#define SHIFT_CORE_PROXY_H

#include "core/qp.h"

/**
 * struct shift_proxy - a kernel-owned QP that carries the traffic of an application's QP
 * @sqp: the application's QP; outlives this.
 * @list: in sqp->proxies.retired.
 * @path: the path that it is on; not 0.
 * @qp: the QP.
 * @cq: its CQ, which no other QP uses, with this as context.
 * @pool: the SRQ that it is on; NULL: none.
 * @cqe: handler of every send completion.
 * @recv_cqe: handler of every receive completion.
 * @depth: send WRs that may be outstanding.
 * @recv_depth: receive WRs that may be outstanding.
 * @inflight: send WRs that are outstanding; ledger_lock.
 * @local: the last one that was posted is an operation on an MR; ledger_lock.
 * @receives: receive WRs that are outstanding, not counting those of @pool; ledger_lock.
 * @next_done: ledger sequence of the next completion; ledger_lock.
 * @armed: its completions count; ledger_lock.
 * @live: receives may be posted; ledger_lock.
 * @sends: at RTS; ledger_lock.
 * @open: work may be posted: both sides are ready; ledger_lock.
 * @held: nothing new is posted, as a move waits for what is under way; ledger_lock.
 * @recv_failed: a receive got an error that the application has caused.
 * @error: first error status.
 * @watched: @next_done when shift_proxy_watch() saw it change last; sqp->lock.
 * @since: when that was, ktime ns; 0: nothing was under way.
 * @rung: doorbells that shift_proxy_watch() has rung since.
 * @regions: MRs in place of memory windows: mw/region.c.
 * @reg_qp: the registrar, a QP that registers memory: mw/registrar.c; sqp->lock.
 * @reg_cq: CQ of @reg_qp.
 * @reg_connected: @reg_qp works.
 * @attr: scratch of the fence; sqp->lock.
 * @wr: scratch for posting; ledger_lock.
 * @sge: the same.
 */
struct shift_proxy {
	struct shift_qp *sqp;
	struct list_head list;
	u8 path;
	struct ib_qp *qp;
	struct ib_cq *cq;
	struct shift_srq_pool *pool;
	struct ib_cqe cqe, recv_cqe;
	u32 depth, recv_depth;
	u32 inflight, receives;
	bool local;
	u64 next_done;
	bool armed, live, sends, open, held, recv_failed;
	u32 error;
	u64 watched, since;
	u32 rung;
	struct list_head regions;
	struct ib_qp *reg_qp;
	struct ib_cq *reg_cq;
	bool reg_connected;
	struct ib_qp_attr attr;
	struct shift_wr wr;
	struct ib_sge sge[SHIFT_WR_MAX_SGE];
};

#endif /* SHIFT_CORE_PROXY_H */
