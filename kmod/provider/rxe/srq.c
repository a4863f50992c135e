// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues of rxe, and the completions in their CQs. */
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include "core/object.h"
#include "core/ring.h"
#include "core/srq.h"
#include "provider/rxe/ring.h"
#include "provider/rxe/rxe.h"
#include "provider/rxe/wqe.h"

static int rxe_srq_pin(const struct shift_srq *ssrq, struct shift_srq_rings *rings,
		       const struct shift_abi_reg_srq *reg)
{
	if (reg->db_addr || reg->slot)
		return -EINVAL;
	return shift_rxe_ring_pin(&rings->ring, reg->ring.addr, reg->ring.len, ssrq->max_wr,
				  shift_rxe_recv_slot_size(ssrq->max_sge));
}

/* Drop all receives in the ring, so that QPs that draw from it later do not get them. */
static void rxe_srq_empty(struct shift_srq *ssrq)
{
	lockdep_assert_held(&ssrq->lock);
	shift_rxe_set_producer(&ssrq->rings.ring, shift_rxe_consumer(&ssrq->rings.ring));
}

/* Full is what the provider takes for full: one slot stays free. */
static u32 rxe_srq_posted(struct shift_srq *ssrq)
{
	const struct shift_ring *ring = &ssrq->rings.ring;

	return (shift_rxe_producer(ring) - shift_rxe_consumer(ring)) & (ring->slots - 1);
}

static int rxe_srq_post(struct shift_srq *ssrq, u64 wr_id, const struct shift_sge *sge,
			u32 num_sge)
{
	const struct shift_ring *ring = &ssrq->rings.ring;
	u32 len, producer = shift_rxe_producer(ring);
	union {
		struct rxe_recv_wqe wqe;
		u8 bytes[offsetof(struct rxe_recv_wqe, dma.sge) +
			 SHIFT_WR_MAX_SGE * sizeof(struct rxe_sge)];
	} slot;

	lockdep_assert_held(&ssrq->post_lock);
	len = shift_rxe_encode_recv(&slot, min_t(u32, sizeof(slot), ring->slot_size), wr_id, sge,
				    num_sge);
	if (!len || rxe_srq_posted(ssrq) == ring->slots - 1)
		return -ENOSPC;
	shift_ring_write_slot(ring, producer, 0, &slot, len);
	shift_rxe_set_producer(ring, producer + 1);
	return 0;
}

/* The user may write any index: no more entries are looked at than the ring has slots. */
static void rxe_cq_unpolled(const struct shift_cq *scq, shift_cqe_fn *fn, void *arg)
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

const struct shift_srq_ops shift_rxe_srq_ops = {
	.pin = rxe_srq_pin,
	.unpolled = rxe_cq_unpolled,
	.empty = rxe_srq_empty,
	.post = rxe_srq_post,
	.posted = rxe_srq_posted,
};
