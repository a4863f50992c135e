// SPDX-License-Identifier: GPL-2.0
/*
 * The record of a kernel user's QP: when it is stopped, held back from the driver, taken over by a
 * fence, and begun anew.
 */
#include "core/kernel_qp.h"
#include "core/kernel_srq.h"
#include "core/qp.h"
#include "core/srq.h"
#include "pure/post_ring.h"

static void queue_stop(struct shift_kernel_queue *queue)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	queue->stopped = true;
	spin_unlock_irqrestore(&queue->lock, flags);
}

/**
 * shift_kernel_qp_stop - record no more: the user is shown an error, or ends the QP
 * @sqp: a kernel user's QP.
 *
 * Its driver completes what is outstanding.
 *
 * Context: any.
 */
void shift_kernel_qp_stop(struct shift_qp *sqp)
{
	queue_stop(&sqp->kernel->send);
	queue_stop(&sqp->kernel->recv);
}

/**
 * shift_kernel_qp_stop_unless_fenced - the same, if its work is not being taken over
 * @sqp: a kernel user's QP.
 *
 * Context: any.
 * Return: false: it is fenced.
 */
bool shift_kernel_qp_stop_unless_fenced(struct shift_qp *sqp)
{
	struct shift_kernel_queue *queue = &sqp->kernel->send;
	unsigned long flags;
	bool fenced;

	spin_lock_irqsave(&queue->lock, flags);
	fenced = test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
	queue->stopped |= !fenced;
	spin_unlock_irqrestore(&queue->lock, flags);
	if (!fenced)
		queue_stop(&sqp->kernel->recv);
	return !fenced;
}

/**
 * shift_kernel_queue_take - the QP was fenced: its record becomes its ledger
 * @queue: a queue of it.
 * @first: out: number of the oldest request, modulo 2^32.
 * @psn: out: its first PSN.
 *
 * Context: any.
 * Return: number of requests that the driver had.  Those behind were kept back.
 */
u32 shift_kernel_queue_take(struct shift_kernel_queue *queue, u32 *first, u32 *psn)
{
	unsigned long flags;
	u32 n;

	spin_lock_irqsave(&queue->lock, flags);
	queue->taken = true;
	*first = queue->ring.tail;
	*psn = queue->ring.psn;
	n = shift_post_ring_outstanding(&queue->ring) - queue->ring.kept;
	spin_unlock_irqrestore(&queue->lock, flags);
	return n;
}

static bool queue_is_whole_locked(const struct shift_kernel_queue *queue)
{
	lockdep_assert_held(&queue->lock);
	return !queue->ring.lost && (!queue->stopped || !queue->ring.slots);
}

static bool queue_is_whole(struct shift_kernel_queue *queue)
{
	unsigned long flags;
	bool whole;

	spin_lock_irqsave(&queue->lock, flags);
	whole = queue_is_whole_locked(queue);
	spin_unlock_irqrestore(&queue->lock, flags);
	return whole;
}

/**
 * shift_kernel_qp_is_whole - does the record have all that is outstanding?
 * @sqp: a kernel user's QP.
 *
 * Context: any.
 */
bool shift_kernel_qp_is_whole(struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;

	return queue_is_whole(&sqp->kernel->send) && queue_is_whole(&sqp->kernel->recv) &&
	       (!ssrq || !ssrq->kernel || shift_kernel_srq_is_whole(ssrq));
}

/**
 * shift_kernel_qp_begin_fence - the QP is fenced, unless its record is not whole
 * @sqp: a kernel user's QP.
 *
 * Who stops the record because of an error that is shown looks for the fence under the same lock.
 *
 * Context: any.
 * Return: false: it is not whole.
 */
bool shift_kernel_qp_begin_fence(struct shift_qp *sqp)
{
	struct shift_kernel_queue *queue = &sqp->kernel->send;
	bool whole = shift_kernel_qp_is_whole(sqp);
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	whole = whole && queue_is_whole_locked(queue);
	if (whole)
		set_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
	spin_unlock_irqrestore(&queue->lock, flags);
	return whole;
}

static void queue_settle(struct shift_kernel_queue *queue)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	spin_unlock_irqrestore(&queue->lock, flags);
}

/**
 * shift_kernel_qp_hold - from now on what is posted is kept back from the driver
 * @sqp: a kernel user's QP.
 *
 * Posts that have seen the gate open are over when this returns.
 *
 * Context: any.
 */
void shift_kernel_qp_hold(struct shift_qp *sqp)
{
	set_bit(SHIFT_QPB_GATED, &sqp->pend.flags);
	queue_settle(&sqp->kernel->send);
	queue_settle(&sqp->kernel->recv);
}

static void queue_start(struct shift_kernel_queue *queue)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	shift_post_ring_start(&queue->ring);
	queue->stopped = !queue->ring.slots;
	queue->taken = false;
	spin_unlock_irqrestore(&queue->lock, flags);
}

/**
 * shift_kernel_qp_start - the QP was reset: nothing is outstanding
 * @sqp: a kernel user's QP, locked.
 */
void shift_kernel_qp_start(struct shift_qp *sqp)
{
	struct shift_kernel_qp *kernel = sqp->kernel;
	unsigned long flags;

	lockdep_assert_held(&sqp->lock);
	WRITE_ONCE(kernel->cause, 0);
	WRITE_ONCE(kernel->flushed, false);
	WRITE_ONCE(kernel->over, false);
	kernel->watched = U64_MAX;
	queue_start(&kernel->send);
	queue_start(&kernel->recv);
	spin_lock_irqsave(&kernel->recv.lock, flags);
	kernel->flushes = (struct shift_flushes) {};
	spin_unlock_irqrestore(&kernel->recv.lock, flags);
}

/**
 * shift_kernel_qp_state - the user has brought its QP to another state
 * @sqp: a kernel user's QP, locked.
 * @state: the state; neither RTR nor RTS.
 */
void shift_kernel_qp_state(struct shift_qp *sqp, enum ib_qp_state state)
{
	lockdep_assert_held(&sqp->lock);
	if (state == IB_QPS_RESET)
		shift_kernel_qp_start(sqp);
	else if (state == IB_QPS_ERR)
		shift_kernel_qp_stop(sqp);
}
