/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The provider's side of rdma/shift-abi.h.  In the fast paths only the inline
 * functions here; all else is out of line in rxe_shift.c.
 */
#ifndef RXE_SHIFT_H
#define RXE_SHIFT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <infiniband/driver.h>
#include <util/compiler.h>
#include <rdma/rdma_user_rxe.h>
#include "rxe_side.h"

/* No PSN has more than 24 bits */
#define RXE_PSN_UNSENT	0xffffffffU

#define __rxe_cold __attribute__((cold, noinline))

struct rxe_cq;
struct rxe_qp;

struct rxe_shift_context {
	pthread_mutex_t		lock;
	bool			tried;
	int			fd;		/* -1: off */
};

struct rxe_shift_cq {
	uint32_t		flag;		/* written by the kernel too */
	bool			registered;
	uint32_t		id;
	struct rxe_side		side;
	size_t			side_len;
	struct ib_uverbs_wc	wc;		/* cq_ex: a side entry on show */
};

struct rxe_shift_qp {
	uint32_t		flag;		/* written by the kernel */
	bool			registered;
	uint32_t		id;
};

void rxe_shift_init(struct rxe_shift_context *shift);
void rxe_shift_uninit(struct rxe_shift_context *shift);

void rxe_shift_register_cq(struct rxe_cq *cq);
void rxe_shift_unregister_cq(struct rxe_cq *cq);
void rxe_shift_free_cq(struct rxe_cq *cq);
void rxe_shift_register_qp(struct rxe_qp *qp);
void rxe_shift_unregister_qp(struct rxe_qp *qp);

__rxe_cold void rxe_shift_wait_sq(struct rxe_qp *qp);
__rxe_cold bool rxe_shift_wait_rq(struct rxe_qp *qp);
__rxe_cold void rxe_shift_kick(struct rxe_qp *qp);
__rxe_cold int rxe_shift_poll_cq(struct rxe_cq *cq, int ne, struct ibv_wc *wc);
__rxe_cold int rxe_shift_start_poll(struct rxe_cq *cq);
__rxe_cold int rxe_shift_next_poll(struct rxe_cq *cq);

/* Must hold the queue's lock: while it is held the kernel leaves the ring be */
static inline bool rxe_shift_gated(const struct rxe_shift_qp *shift)
{
	return unlikely(rxe_side_load(&shift->flag, memory_order_relaxed));
}

/*
 * Must hold cq->lock. Looked at only when the CQ ring is empty or at its first
 * slot: that is often enough, as whatever lies in it goes first anyway.
 */
static inline bool rxe_shift_flagged(const struct rxe_shift_cq *shift)
{
	return unlikely(rxe_side_load(&shift->flag, memory_order_relaxed));
}

/*
 * Not for the fast path: an error, or the first slot while the flag is set. One
 * load and one branch for all others.
 */
static inline bool rxe_shift_special(const struct rxe_shift_cq *shift,
				     const struct rxe_queue_buf *q,
				     const void *wc)
{
	uint32_t status = ((const struct ib_uverbs_wc *)wc)->status;

	return unlikely((status != 0) | (wc == (const void *)q->data)) &&
	       (status || rxe_shift_flagged(shift));
}

/*
 * The kernel writes a WQE's PSNs when it sends it.  Mark the first at post, or
 * those of the ring's last lap would pass for this WQE's.
 */
static inline void rxe_mark_unsent(struct rxe_send_wqe *wqe)
{
	wqe->first_psn = RXE_PSN_UNSENT;
}

#endif /* RXE_SHIFT_H */
