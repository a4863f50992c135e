// SPDX-License-Identifier: GPL-2.0
/*
 * What a device completes in error of a kernel user's QP, and room for it.  An error does not say
 * of which queue it is.  If each queue has a CQ of its own, that tells.  Else it is told by the
 * wr_id and by the number of errors: pure/flushes.c.
 */
#include "core/kernel_cq.h"
#include "core/kernel_qp.h"
#include "core/object.h"
#include "core/qp.h"

/* In a CQ for both queues: may the error be of the next receive, or of the next send? */
static void flushed_of_either(struct shift_kernel_qp *kernel, u64 wr_id)
{
	struct shift_kernel_queue *queue = &kernel->recv;
	bool recv, send = false;
	unsigned long flags;
	u32 sends;

	spin_lock_irqsave(&queue->lock, flags);
	sends = kernel->flushes.errors - kernel->flushes.recvs;
	recv = !kernel->flushes.unsure &&
	       shift_flushes_next_is(&queue->ring, kernel->flushes.recvs, wr_id);
	spin_unlock_irqrestore(&queue->lock, flags);
	if (recv) {
		spin_lock_irqsave(&kernel->send.lock, flags);
		send = shift_flushes_may_be(&kernel->send.ring, sends, wr_id);
		spin_unlock_irqrestore(&kernel->send.lock, flags);
	}
	spin_lock_irqsave(&queue->lock, flags);
	shift_flushes_add(&kernel->flushes, recv, send);
	spin_unlock_irqrestore(&queue->lock, flags);
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

	if (sqp->scq == sqp->rcq) {
		flushed_of_either(sqp->kernel, wc->wr_id);
	} else {
		spin_lock_irqsave(&queue->lock, flags);
		shift_flushes_add(&sqp->kernel->flushes, scq == sqp->rcq, false);
		spin_unlock_irqrestore(&queue->lock, flags);
	}
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
 * shift_kernel_recvs_left - receives that the driver has not completed for certain yet
 * @sqp: a kernel user's QP, gated.
 *
 * Context: any.
 */
u32 shift_kernel_recvs_left(struct shift_qp *sqp)
{
	struct shift_kernel_queue *queue = &sqp->kernel->recv;
	u32 sends = shift_kernel_outstanding(&sqp->kernel->send), n;
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	n = shift_post_ring_outstanding(&queue->ring) - queue->ring.kept;
	n -= min(n, shift_flushes_recvs(&sqp->kernel->flushes, sends));
	spin_unlock_irqrestore(&queue->lock, flags);
	return n;
}

/**
 * shift_kernel_flushes_seen - a number that changes when a flush, or a receive, was polled
 * @sqp: a kernel user's QP.
 *
 * Context: any.
 */
u32 shift_kernel_flushes_seen(struct shift_qp *sqp)
{
	struct shift_kernel_queue *queue = &sqp->kernel->recv;
	unsigned long flags;
	u32 n;

	spin_lock_irqsave(&queue->lock, flags);
	n = sqp->kernel->flushes.errors + (u32)queue->ring.tail;
	spin_unlock_irqrestore(&queue->lock, flags);
	return n;
}

static bool cq_reserve(struct shift_kernel_cq *kernel, u64 need)
{
	unsigned long flags;
	bool fits;

	spin_lock_irqsave(&kernel->poll_lock, flags);
	fits = shift_flushes_reserve(&kernel->reserved, kernel->cq->cqe, need);
	spin_unlock_irqrestore(&kernel->poll_lock, flags);
	return fits;
}

static void cq_unreserve(struct shift_kernel_cq *kernel, u32 reserved)
{
	unsigned long flags;

	spin_lock_irqsave(&kernel->poll_lock, flags);
	kernel->reserved -= reserved;
	spin_unlock_irqrestore(&kernel->poll_lock, flags);
}

/**
 * shift_kernel_flushes_reserve - reserve room in its CQs for all of a QP that may be flushed
 * @sqp: a kernel user's QP, gated; its CQs, which exist, were polled just now.
 * @room: out: what is reserved, for shift_kernel_flushes_unreserve(); nothing after an error.
 *
 * QPs that are fenced at the same time do not get the same entries.
 *
 * Context: any.
 * Return: 0; -EAGAIN: other QPs are being flushed, and it may fit when that is over; -ENOSPC: it
 * does not fit.
 */
int shift_kernel_flushes_reserve(struct shift_qp *sqp, struct shift_kernel_room *room)
{
	struct shift_kernel_cq *scq = sqp->scq->kernel, *rcq = sqp->rcq->kernel;
	int err = -ENOSPC;

	room->send = shift_kernel_outstanding(&sqp->kernel->send);
	room->recv = shift_kernel_outstanding(&sqp->kernel->recv);
	if (scq == rcq ? (u64)room->send + room->recv > scq->cq->cqe :
			 room->send > scq->cq->cqe || room->recv > rcq->cq->cqe)
		goto none;
	err = -EAGAIN;
	if (!cq_reserve(scq, room->send))
		goto none;
	if (cq_reserve(rcq, room->recv))
		return 0;
	cq_unreserve(scq, room->send);
none:
	*room = (struct shift_kernel_room) {};
	return err;
}

/**
 * shift_kernel_flushes_unreserve - what was flushed was polled, or is not in the CQs any more
 * @sqp: a kernel user's QP.
 * @room: what was reserved.
 *
 * Context: any.
 */
void shift_kernel_flushes_unreserve(struct shift_qp *sqp, const struct shift_kernel_room *room)
{
	cq_unreserve(sqp->scq->kernel, room->send);
	cq_unreserve(sqp->rcq->kernel, room->recv);
}
