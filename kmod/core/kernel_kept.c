// SPDX-License-Identifier: GPL-2.0
/* What a user in the kernel has posted while its QP was gated, and the QP then stays on its NIC. */
#include "core/kernel_mr.h"
#include "core/kernel_qp.h"
#include "core/kernel_wr.h"
#include "core/qp.h"

/* The oldest request that was kept back. */
static u8 *oldest_kept(const struct shift_post_ring *ring)
{
	return shift_post_ring_slot(ring, ring->head - ring->kept);
}

static int post_kept_sends(struct shift_qp *sqp, struct shift_kernel_queue *queue)
{
	const struct ib_send_wr *bad;
	union shift_kernel_wr wr;
	struct ib_sge inlined;
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&queue->lock, flags);
	while (queue->ring.kept && !err) {
		shift_send_of_post(&wr, oldest_kept(&queue->ring), &inlined);
		/* RDS gives up a registration that takes longer than 100 ms, and the MR with it */
		err = wr.send.opcode == IB_WR_REG_MR &&
		      !shift_kernel_mr_is_there(sqp, wr.reg.key, wr.reg.mr) ? -EINVAL :
		      sqp->sdev->saved.post_send(sqp->qp, &wr.send, &bad);
		if (!err)
			queue->ring.kept--;
	}
	spin_unlock_irqrestore(&queue->lock, flags);
	return err;
}

static int post_kept_recvs(struct shift_qp *sqp, struct shift_kernel_queue *queue)
{
	const struct ib_recv_wr *bad;
	struct ib_recv_wr wr;
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&queue->lock, flags);
	while (queue->ring.kept && !err) {
		shift_recv_of_post(&wr, oldest_kept(&queue->ring));
		err = sqp->sdev->saved.post_recv(sqp->qp, &wr, &bad);
		if (!err)
			queue->ring.kept--;
	}
	spin_unlock_irqrestore(&queue->lock, flags);
	return err;
}

/**
 * shift_kernel_post_kept - post what was kept back to the driver, in order
 * @sqp: a kernel user's QP, locked; it exists.
 *
 * The locks of the queues are held, so that what is posted from now on comes behind it.
 *
 * Context: process context.
 * Return: 0, or what the driver has said: shift_kernel_take_kept() has the rest.
 */
int shift_kernel_post_kept(struct shift_qp *sqp)
{
	int err, recv_err;

	lockdep_assert_held(&sqp->lock);
	recv_err = post_kept_recvs(sqp, &sqp->kernel->recv);
	err = post_kept_sends(sqp, &sqp->kernel->send);
	return recv_err ?: err;
}

/* True: @wc names the oldest request of the queue that was kept back; it is not kept any more. */
static bool take_kept(struct shift_kernel_queue *queue, struct shift_abi_wc *wc)
{
	unsigned long flags;
	bool taken;

	spin_lock_irqsave(&queue->lock, flags);
	taken = queue->ring.kept;
	if (taken) {
		wc->wr_id = ((struct shift_post *)oldest_kept(&queue->ring))->wr_id;
		queue->ring.kept--;
		/* what is left is the driver's to complete */
		queue->stopped = true;
	}
	spin_unlock_irqrestore(&queue->lock, flags);
	return taken;
}

/**
 * shift_kernel_take_kept - a request that the driver has refused
 * @sqp: a kernel user's QP, locked.
 * @wc: its wr_id and opcode are set.
 *
 * Context: process context.
 * Return: false: there is none any more.
 */
bool shift_kernel_take_kept(struct shift_qp *sqp, struct shift_abi_wc *wc)
{
	lockdep_assert_held(&sqp->lock);
	wc->opcode = IB_WC_RECV;
	if (take_kept(&sqp->kernel->recv, wc))
		return true;
	wc->opcode = IB_WC_SEND;
	return take_kept(&sqp->kernel->send, wc);
}
