// SPDX-License-Identifier: GPL-2.0
/*
 * Errors that the device of a kernel user's QP has completed.  They do not say of which queue they
 * are.  If each queue has a CQ of its own, that tells.  Else it is the wr_id: users that have one
 * CQ for both have to tell by it themselves.
 */
#include "core/kernel_qp.h"
#include "core/object.h"
#include "core/qp.h"

/* Has the next receive in the record without a completion of any kind this wr_id? */
static bool recv_is_next(const struct shift_kernel_queue *queue, u64 wr_id)
{
	const struct shift_post_ring *ring = &queue->ring;
	u64 seq = ring->tail + queue->flushed;
	const struct shift_post *post;

	lockdep_assert_held(&queue->lock);
	if (seq + ring->kept >= ring->head)
		return false;
	post = (struct shift_post *)shift_post_ring_slot(ring, seq);
	return post->wr_id == wr_id;
}

/**
 * shift_kernel_flushed - a completion in error was polled from the driver
 * @sqp: a kernel user's QP.
 * @scq: the CQ.
 * @wc: the completion.
 *
 * Context: any; poll_lock of the CQ.
 */
void shift_kernel_flushed(struct shift_qp *sqp, const struct shift_cq *scq, const struct ib_wc *wc)
{
	struct shift_kernel_queue *queue = &sqp->kernel->recv;
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	if (sqp->scq == sqp->rcq ? recv_is_next(queue, wc->wr_id) : scq == sqp->rcq)
		queue->flushed++;
	spin_unlock_irqrestore(&queue->lock, flags);
}

/**
 * shift_kernel_outstanding - how much the driver has of a queue, as far as is known
 * @queue: the queue.
 *
 * Context: any.
 */
u32 shift_kernel_outstanding(struct shift_kernel_queue *queue)
{
	unsigned long flags;
	u32 n;

	spin_lock_irqsave(&queue->lock, flags);
	n = shift_post_ring_outstanding(&queue->ring) - queue->ring.kept;
	spin_unlock_irqrestore(&queue->lock, flags);
	return n;
}

/**
 * shift_kernel_recvs_left - receives that the driver has completed in no way yet
 * @sqp: a kernel user's QP.
 *
 * Context: any.
 */
u32 shift_kernel_recvs_left(struct shift_qp *sqp)
{
	struct shift_kernel_queue *queue = &sqp->kernel->recv;
	unsigned long flags;
	u32 n;

	spin_lock_irqsave(&queue->lock, flags);
	n = shift_post_ring_outstanding(&queue->ring) - queue->ring.kept;
	n -= min(n, queue->flushed);
	spin_unlock_irqrestore(&queue->lock, flags);
	return n;
}
