/* SPDX-License-Identifier: GPL-2.0 */
/*
 * QPs of users in the kernel, and the record of what they have posted:
 * Documentation/internals/kernel-users.md.
 */
#ifndef SHIFT_CORE_KERNEL_QP_H
#define SHIFT_CORE_KERNEL_QP_H

#include <linux/completion.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include "pure/flushes.h"
#include "pure/post_ring.h"
#include "pure/ulp.h"

struct shift_abi_wc;
struct shift_cq;
struct shift_kernel_mr_op;
struct shift_qp;

/**
 * struct shift_kernel_queue - one queue of the QP
 * @lock: protects the rest; held across the driver's post, so that the record has the order of the
 *	device.  Innermost, any context.
 * @ring: the record; no slots: the QP has no such queue.
 * @stopped: what is posted and completed is not recorded: the QP is in error.
 * @taken: what is in the record is in the QP's ledger, too: the driver's completions do not count.
 */
struct shift_kernel_queue {
	spinlock_t lock;
	struct shift_post_ring ring;
	bool stopped;
	bool taken;
};

/** struct shift_kernel_room - entries reserved in the CQs of a QP for what ERR flushes */
struct shift_kernel_room {
	u32 send, recv;
};

/**
 * struct shift_kernel_drain - who drains a queue waits for its last request
 * @cqe: that one's.
 * @done: it is completed.
 */
struct shift_kernel_drain {
	struct ib_cqe cqe;
	struct completion done;
};

/**
 * struct shift_kernel_qp - what only the shadow of a kernel user's QP has
 * @ulp: whose it is.
 * @unrecorded: nothing is recorded, as the record would be too large: it is never protected.
 * @cause: enum ib_wc_status: the first error that was polled and is no flush; 0: none.
 * @flushed: a flush was polled.
 * @over: it is in ERR for good: the driver's errors are dropped, as its work is, or will be, in the
 *	ledger.
 * @watched: tail of @send when shift_kernel_qp_mute() saw it change last; U64_MAX: no completion
 *	was due.
 * @since: when that was, ktime ns.
 * @send, @recv: its queues; of a QP on a shared receive queue the second one has no slots.
 * @flushes: the driver's errors: how many receives have none yet; the lock of @recv.
 * @drain: the last request, and receive, of one that is drained; verbs/drain.c.
 */
struct shift_kernel_qp {
	enum shift_ulp ulp;
	bool unrecorded;
	u32 cause;
	bool flushed, over;
	u64 watched, since;
	struct shift_kernel_queue send, recv;
	struct shift_flushes flushes;
	struct shift_kernel_drain drain[2];
};

void *shift_kernel_zalloc(size_t size);
struct shift_kernel_qp *shift_kernel_qp_new(enum shift_ulp ulp, const struct ib_qp_init_attr *attr);
void shift_kernel_qp_free(struct shift_kernel_qp *kernel);
int shift_kernel_post_send(struct shift_qp *sqp, struct ib_qp *qp, const struct ib_send_wr *wr,
			   const struct ib_send_wr **bad_wr, bool *kept);
int shift_kernel_post_recv(struct shift_qp *sqp, struct ib_qp *qp, const struct ib_recv_wr *wr,
			   const struct ib_recv_wr **bad_wr, bool *kept);
bool shift_kernel_qp_mute(struct shift_qp *sqp, bool anew);
bool shift_kernel_polled(struct shift_qp *sqp, const struct shift_cq *scq, const struct ib_wc *wc);
struct shift_kernel_mr_op shift_kernel_qp_op(const struct shift_qp *sqp, u64 seq);

/* kernel_gate.c */
u32 shift_kernel_queue_take(struct shift_kernel_queue *queue, u32 *first, u32 *psn);
void shift_kernel_qp_stop(struct shift_qp *sqp);
bool shift_kernel_qp_stop_unless_fenced(struct shift_qp *sqp);
bool shift_kernel_qp_is_whole(struct shift_qp *sqp);
bool shift_kernel_qp_begin_fence(struct shift_qp *sqp);
void shift_kernel_qp_hold(struct shift_qp *sqp);
void shift_kernel_qp_start(struct shift_qp *sqp);
void shift_kernel_qp_state(struct shift_qp *sqp, enum ib_qp_state state);

/* kernel_flush.c */
void shift_kernel_flushed(struct shift_qp *sqp, const struct shift_cq *scq, const struct ib_wc *wc);
u32 shift_kernel_outstanding(struct shift_kernel_queue *queue);
u32 shift_kernel_recvs_left(struct shift_qp *sqp);
u32 shift_kernel_flushes_seen(struct shift_qp *sqp);
int shift_kernel_flushes_reserve(struct shift_qp *sqp, struct shift_kernel_room *room);
void shift_kernel_flushes_unreserve(struct shift_qp *sqp, const struct shift_kernel_room *room);

/* kernel_kept.c */
int shift_kernel_post_kept(struct shift_qp *sqp);
bool shift_kernel_take_kept(struct shift_qp *sqp, struct shift_abi_wc *wc);

#endif /* SHIFT_CORE_KERNEL_QP_H */
