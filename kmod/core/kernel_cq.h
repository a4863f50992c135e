/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CQs of users in the kernel, and the side ring from which such a user polls first: completions of
 * work that was replayed, and what the driver had completed before.
 * Documentation/internals/kernel-users.md.
 */
#ifndef SHIFT_CORE_KERNEL_CQ_H
#define SHIFT_CORE_KERNEL_CQ_H

#include <linux/interrupt.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

struct shift_abi_wc;
struct shift_cq;
struct shift_qp;

/**
 * struct shift_kernel_wc - a completion in the side ring
 * @wc: as the user is to poll it.
 * @raw: the driver has made it, and it is an error that the CQE filter was not asked about.
 */
struct shift_kernel_wc {
	struct ib_wc wc;
	bool raw;
};

/**
 * struct shift_kernel_cq - what only the shadow of a kernel user's CQ has
 * @users: queues of tracked QPs that complete into it; verbs/kernel.c.
 * @cq: the CQ; not touched once @ended is set and @wake is over.
 * @poll_lock: held while the CQ is polled; protects the rest.  Any context; innermost but for the
 *	locks of queues.
 * @armed: IB_CQ_SOLICITED, IB_CQ_NEXT_COMP; 0: its user waits for no event.
 * @ended: its handler is not called any more.
 * @wake: calls the handler.
 * @entries: of @side, a power of two.
 * @reserved: entries of the CQ, for what is flushed of QPs that are being fenced; kernel_flush.c.
 * @producer, @consumer: free-running.
 * @last_qp, @last: the QP of the last completion that was polled, and its shadow.
 * @side: the side ring.
 */
struct shift_kernel_cq {
	struct rcu_head rcu;
	unsigned int users;
	struct ib_cq *cq;

	spinlock_t poll_lock;
	u8 armed;
	bool ended;
	struct tasklet_struct wake;
	u32 entries;
	u32 reserved;
	u32 producer, consumer;
	const struct ib_qp *last_qp;
	struct shift_qp *last;
	struct shift_kernel_wc side[];
};

struct shift_kernel_cq *shift_kernel_cq_new(struct ib_cq *cq);
void shift_kernel_cq_end(struct shift_kernel_cq *kernel);
void shift_kernel_cq_free(struct shift_kernel_cq *kernel);
void shift_kernel_cq_lose(struct shift_kernel_cq *kernel, const struct ib_qp *qp);
int shift_kernel_cq_room(const struct shift_cq *scq);
void shift_kernel_cq_put(struct shift_cq *scq, struct shift_qp *sqp, const struct shift_abi_wc *wc);
int shift_kernel_cq_take(struct shift_kernel_cq *kernel, int num, struct ib_wc *wc, bool *raw);
int shift_kernel_cq_poll(struct shift_cq *scq, struct ib_cq *cq, int num, struct ib_wc *wc);
int shift_kernel_cq_drain(struct shift_cq *scq);
void shift_kernel_cq_each_raw(struct shift_kernel_cq *kernel,
			      void (*fn)(void *arg, u64 wr_id, u32 status, u32 qpn), void *arg);
void shift_kernel_cq_drop_raw(struct shift_kernel_cq *kernel, const struct ib_qp *qp);
void shift_kernel_cq_forget(struct shift_kernel_cq *kernel, const struct ib_qp *qp);
int shift_kernel_cq_arm(struct shift_cq *scq, struct ib_cq *cq, enum ib_cq_notify_flags flags);

#endif /* SHIFT_CORE_KERNEL_CQ_H */
