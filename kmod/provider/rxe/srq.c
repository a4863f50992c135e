// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues of rxe, and the completions in their CQs. */
#include <rdma/ib_user_verbs.h>
#include "core/object.h"
#include "core/ring.h"
#include "core/srq.h"
#include "provider/rxe/ring.h"
#include "provider/rxe/rxe.h"

int shift_rxe_pin_srq(struct shift_ring *ring, const struct shift_abi_reg_srq *reg)
{
	return shift_rxe_ring_pin(ring, reg->ring.addr, reg->ring.len);
}

/* Drop all receives in the ring, so that QPs that draw from it later do not get them. */
void shift_rxe_srq_empty(struct shift_srq *ssrq)
{
	lockdep_assert_held(&ssrq->lock);
	shift_rxe_set_producer(&ssrq->rings.ring, shift_rxe_consumer(&ssrq->rings.ring));
}

/* The user may write any index: no more entries are looked at than the ring has slots. */
void shift_rxe_cq_unpolled(const struct shift_cq *scq, shift_cqe_fn *fn, void *arg)
{
	const struct shift_ring *ring = &scq->pins.ring;
	u32 i, left = ring->slots, end = shift_rxe_producer(ring);
	struct ib_uverbs_wc wc;

	lockdep_assert_held_read(&scq->sdev->ring_sem);
	for (i = shift_rxe_consumer(ring); i != end && left--; i = (i + 1) & (ring->slots - 1)) {
		shift_ring_read_slot(ring, i, &wc, sizeof(wc));
		fn(arg, wc.wr_id, wc.status, wc.qp_num);
	}
}
