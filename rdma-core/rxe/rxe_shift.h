/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The provider's side of rdma/shift-abi.h.  In the fast paths only the inline
 * functions here; all else is out of line in rxe_shift.c, rxe_shift_srq.c and ../shift.
 */
#ifndef RXE_SHIFT_H
#define RXE_SHIFT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <infiniband/driver.h>
#include <util/compiler.h>
#include <rdma/rdma_user_rxe.h>
#include "../shift/shift.h"

/* No PSN has more than 24 bits */
#define RXE_PSN_UNSENT	0xffffffffU

struct rxe_cq;
struct rxe_qp;
struct rxe_srq;

/* That completions of an SRQ come to a CQ; in both lists */
struct rxe_shift_srq_cq {
	struct rxe_shift_srq_cq	*next_srq;	/* of the CQ, under its lock */
	struct rxe_shift_srq_cq	*next_cq;	/* of the SRQ, under the context's lock */
	struct rxe_srq		*srq;
	struct rxe_cq		*cq;
};

struct rxe_shift_srq {
	uint32_t		flag;		/* written by the kernel */
	struct shift_srq	srq;
	struct rxe_shift_srq_cq	*cqs;
};

/*
 * The flag is looked at once per call of poll, and an error's status. It is always set
 * while wr_ids may be receive ids, that is, before the first QP on an SRQ is connected.
 */
struct rxe_shift_cq {
	uint32_t		flag;		/* written by the kernel too */
	struct rxe_shift_srq_cq	*srqs;		/* whose completions come here */
	struct shift_cq		cq;
	struct ib_uverbs_wc	wc;		/* cq_ex: a side entry on show */
};

struct rxe_shift_qp {
	uint32_t		flag;		/* written by the kernel */
	struct shift_object	obj;
};

void rxe_shift_register_cq(struct rxe_cq *cq);
void rxe_shift_unregister_cq(struct rxe_cq *cq);
void rxe_shift_free_cq(struct rxe_cq *cq);
void rxe_shift_detach_cq(struct rxe_cq *cq);
void rxe_shift_register_srq(struct rxe_srq *srq);
void rxe_shift_unregister_srq(struct rxe_srq *srq);
void rxe_shift_free_srq(struct rxe_srq *srq);
bool rxe_shift_attach_srq(struct ibv_srq *ibsrq, struct ibv_cq *ibcq);
uint64_t rxe_shift_wr_id(struct rxe_cq *cq, uint64_t wr_id);
void rxe_shift_register_qp(struct rxe_qp *qp);
void rxe_shift_unregister_qp(struct rxe_qp *qp);

__shift_cold void rxe_shift_wait_sq(struct rxe_qp *qp);
__shift_cold bool rxe_shift_wait_rq(struct rxe_qp *qp);
__shift_cold void rxe_shift_kick(struct rxe_qp *qp);
__shift_cold int rxe_shift_post_srq_recv(struct rxe_srq *srq, struct ibv_recv_wr *wr,
					 struct ibv_recv_wr **bad_wr);
__shift_cold int rxe_shift_poll_cq(struct rxe_cq *cq, int ne, struct ibv_wc *wc);
__shift_cold int rxe_shift_start_poll(struct rxe_cq *cq);
__shift_cold int rxe_shift_poll_cq_flagged(struct rxe_cq *cq, int ne, struct ibv_wc *wc);
__shift_cold int rxe_shift_start_poll_flagged(struct rxe_cq *cq);
__shift_cold int rxe_shift_next_poll(struct rxe_cq *cq);

/* Must hold the queue's lock: while it is held the kernel leaves the ring be */
static inline bool rxe_shift_gated(const struct rxe_shift_qp *shift)
{
	return shift_flagged(&shift->flag, SHIFT_QP_FLAG_GATE | SHIFT_QP_FLAG_KICK);
}

/*
 * The kernel writes a WQE's PSNs when it sends it.  Mark the first at post, or
 * those of the ring's last lap would pass for this WQE's.
 */
static inline void rxe_mark_unsent(struct rxe_send_wqe *wqe)
{
	wqe->first_psn = RXE_PSN_UNSENT;
}

static inline struct shift_abi_ring rxe_shift_ring(void *queue, const struct mminfo *mi)
{
	struct shift_abi_ring ring = {
		.addr = (uintptr_t)queue,
		.len = mi->size,
	};

	return ring;
}

#endif /* RXE_SHIFT_H */
