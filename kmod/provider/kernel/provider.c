// SPDX-License-Identifier: GPL-2.0
/*
 * The kind of QPs of users in the kernel, whatever their device.  Their rings are the module's own
 * record of what was posted: the ledger, and the record of receives, have the same numbers modulo
 * 2^32, and read there.
 */
#include "core/dma.h"
#include "core/kernel_cq.h"
#include "core/kernel_qp.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/queue.h"
#include "provider/kernel/kernel.h"
#include "provider/provider.h"
#include "pure/ledger.h"
#include "pure/wr.h"

/* One less than it has: rxe would double a power of two, as a slot of its ring is never used. */
static u32 kernel_send_slots(const struct shift_qp *sqp)
{
	return max(sqp->kernel->send.ring.slots, 2u) - 1;
}

/* The record notes it when the QP is in RTS. */
static void kernel_starts(struct shift_qp *sqp)
{
}

/*
 * A look at what is outstanding, oldest first, while its user posts and polls.  The queue is locked
 * for one request at a time.  False: there is none at @seq, or behind.
 */
static bool record_at(struct shift_kernel_queue *queue, u64 *seq, struct shift_wr *wr, int *err)
{
	struct shift_post_ring *ring = &queue->ring;
	unsigned long flags;
	bool found;

	spin_lock_irqsave(&queue->lock, flags);
	*seq = max(*seq, ring->tail);
	found = *seq < ring->head;
	if (found)
		*err = shift_post_decode(shift_post_ring_slot(ring, *seq), ring->slot_size, wr);
	spin_unlock_irqrestore(&queue->lock, flags);
	return found;
}

static bool all_are(struct shift_qp *sqp,
		    bool (*kind)(const struct shift_qp *sqp, const struct shift_wr *wr))
{
	struct shift_kernel_queue *queue = &sqp->kernel->send;
	struct shift_wr wr;
	u64 seq, most;
	int err = 0;

	most = READ_ONCE(queue->ring.head);
	for (seq = 0; seq < most && record_at(queue, &seq, &wr, &err); seq++)
		if (err || !kind(sqp, &wr))
			return false;
	return true;
}

static bool can_move(const struct shift_qp *sqp, const struct shift_wr *wr)
{
	return shift_qp_can_move(sqp, wr) && shift_dma_of_memory(sqp, wr);
}

/* A PD may be found to have memory that cannot be moved when its QPs are protected. */
static int kernel_movable(struct shift_qp *sqp)
{
	return shift_kernel_qp_is_whole(sqp) && !shift_pd_reason(sqp->spd, sqp->fo.path) &&
	       all_are(sqp, can_move) ? 0 : -EOPNOTSUPP;
}

static bool not_once(const struct shift_qp *sqp, const struct shift_wr *wr)
{
	return !(shift_ledger_kind(wr->opcode) & SHIFT_ENTRY_ONCE);
}

static bool kernel_once(struct shift_qp *sqp)
{
	return !all_are(sqp, not_once);
}

static bool kernel_still(struct shift_qp *sqp, u32 *done)
{
	*done = READ_ONCE(sqp->kernel->send.ring.tail);
	return !shift_kernel_outstanding(&sqp->kernel->send);
}

/**
 * shift_kernel_cause - the op cause
 * @sqp: the QP; ledger_lock.
 *
 * What has failed may be in another CQ than the flush that was polled first: a send, if the path
 * has failed, or a receive that the peer's message does not fit.
 *
 * Flushes that follow from no error count as a fault of the device.  rxe of 6.12 ends a QP so whose
 * first retransmission executes a registration again that was done, or whose packet the interface
 * refuses.  If the responder has ended it instead, the peer has the error: it does not consent, or
 * what it has posted fails on the backup, too.
 *
 * Return: enum ib_wc_status; 0: none.
 */
u32 shift_kernel_cause(struct shift_qp *sqp)
{
	struct shift_kernel_qp *kernel = sqp->kernel;

	lockdep_assert_held(&sqp->ledger_lock);
	if (!READ_ONCE(kernel->cause) && READ_ONCE(kernel->flushed)) {
		shift_kernel_cq_drain(sqp->scq);
		if (sqp->rcq != sqp->scq)
			shift_kernel_cq_drain(sqp->rcq);
	}
	return READ_ONCE(kernel->cause) ?:
	       READ_ONCE(kernel->flushed) ? IB_WC_RETRY_EXC_ERR : 0;
}

static void kernel_first_error(struct shift_qp *sqp, u32 status)
{
	sqp->fo.error_status = status;
}

/*
 * The driver refuses what it has to take: the QP is of no use, and its user is to know.  If an
 * error was kept back, the failover that follows from it has all of this, too.
 */
static void refuse_kept(struct shift_qp *sqp)
{
	struct shift_abi_wc wc = { .status = IB_WC_LOC_QP_OP_ERR, .qp_num = sqp->qpn };
	struct shift_cq_slot slot = { .sqp = sqp };

	/* before the driver flushes what it has, so that none of that is kept back */
	if (shift_qp_is_protected(sqp) && shift_qp_keeps_error(sqp))
		return;
	while (shift_kernel_take_kept(sqp, &wc))
		shift_cq_push(wc.opcode == IB_WC_RECV ? sqp->rcq : sqp->scq, &wc, &slot);
	shift_fence_stop(sqp, IB_QPS_ERR);
	shift_qp_kick(sqp, SHIFT_QPB_APP);
}

static void kernel_doorbell(struct shift_qp *sqp)
{
	if (shift_kernel_post_kept(sqp))
		refuse_kept(sqp);
}

/* What was executed on the path that the QP leaves, and had no completion, counts for its MRs. */
static void kernel_executed(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	u64 seq;

	spin_lock_bh(&sqp->ledger_lock);
	for (seq = l->tail; seq < l->head; seq++) {
		struct shift_entry *e = shift_ledger_at(l, seq);

		if (e->state == SHIFT_ENTRY_EXECUTED && !(e->flags & SHIFT_ENTRY_APPLIED))
			shift_kernel_mr_provider.executed(sqp, seq, sqp->fo.path);
	}
	spin_unlock_bh(&sqp->ledger_lock);
}

static u32 kernel_away_flags(const struct shift_qp *sqp)
{
	return 0;
}

static u8 *send_slot(const struct shift_qp *sqp, u64 seq)
{
	return shift_post_ring_slot(&sqp->kernel->send.ring, seq);
}

static u8 *recv_slot(const struct shift_qp *sqp, u64 seq)
{
	return shift_post_ring_slot(&sqp->kernel->recv.ring, seq);
}

static u64 slot_wr_id(const u8 *slot)
{
	return ((const struct shift_post *)slot)->wr_id;
}

/* Number of the next request modulo 2^32; what is before it was written. */
static u32 queue_head(struct shift_kernel_queue *queue)
{
	unsigned long flags;
	u32 head;

	spin_lock_irqsave(&queue->lock, flags);
	head = queue->ring.head;
	spin_unlock_irqrestore(&queue->lock, flags);
	return head;
}

static void queue_complete(struct shift_kernel_queue *queue, u32 seq)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	shift_post_ring_complete(&queue->ring, seq);
	spin_unlock_irqrestore(&queue->lock, flags);
}

/**
 * shift_kernel_decode - the op decode
 * @sqp: the QP; ledger_lock.
 * @seq: an operation of the ledger.
 * @wr: filled in.
 *
 * Return: 0, -EINVAL, -EOPNOTSUPP: it has memory of another device.
 */
int shift_kernel_decode(struct shift_qp *sqp, u64 seq, struct shift_wr *wr)
{
	int err;

	lockdep_assert_held(&sqp->ledger_lock);
	err = shift_post_decode(send_slot(sqp, seq), sqp->kernel->send.ring.slot_size, wr);
	return err ?: shift_dma_of_memory(sqp, wr) ? 0 : -EOPNOTSUPP;
}

static int kernel_take(struct shift_qp *sqp, struct shift_wr *wr)
{
	struct shift_kernel_queue *queue = &sqp->kernel->send;
	u64 seq = sqp->rec.ledger.head;
	u32 n = queue_head(queue) - (u32)seq;

	/* if the two did not agree what was executed long ago would be executed again */
	if (!n || WARN_ON_ONCE(n > queue->ring.slots))
		return 0;
	return shift_kernel_decode(sqp, seq, wr) ?: 1;
}

static u64 kernel_wr_id(const struct shift_qp *sqp, u64 seq)
{
	return slot_wr_id(send_slot(sqp, seq));
}

static void kernel_completed(struct shift_qp *sqp, u64 seq)
{
	queue_complete(&sqp->kernel->send, seq);
}

static u32 kernel_recvs_posted(const struct shift_qp *sqp)
{
	return queue_head(&sqp->kernel->recv) - (u32)sqp->rec.recvs.head;
}

static int kernel_decode_recv(const struct shift_qp *sqp, u64 seq, struct shift_wr *wr)
{
	int err = shift_post_decode(recv_slot(sqp, seq), sqp->kernel->recv.ring.slot_size, wr);

	return err ?: shift_dma_of_memory(sqp, wr) ? 0 : -EOPNOTSUPP;
}

static u64 kernel_recv_wr_id(const struct shift_qp *sqp, u64 seq)
{
	return slot_wr_id(recv_slot(sqp, seq));
}

static void kernel_recvs_completed(struct shift_qp *sqp, u64 seq)
{
	queue_complete(&sqp->kernel->recv, seq);
}

static const struct shift_cq_ops kernel_cq_ops = {
	.room = shift_kernel_cq_room,
	.put = shift_kernel_cq_put,
};

const struct shift_provider shift_provider_kernel = {
	.flags = SHIFT_PROVIDES_OWN_RECORD,
	.cq = &kernel_cq_ops,
	.mrs = &shift_kernel_mr_provider,
	.send_slots = kernel_send_slots,
	.restarts = shift_kernel_qp_start,
	.executed = kernel_executed,
	.starts = kernel_starts,
	.movable = kernel_movable,
	.once = kernel_once,
	.cause = shift_kernel_cause,
	.first_error = kernel_first_error,
	.hold = shift_kernel_hold,
	.still = kernel_still,
	.doorbell = kernel_doorbell,
	.fence = shift_kernel_fence,
	.away_flags = kernel_away_flags,
	.take = kernel_take,
	.decode = shift_kernel_decode,
	.wr_id = kernel_wr_id,
	.completed = kernel_completed,
	.recvs_posted = kernel_recvs_posted,
	.decode_recv = kernel_decode_recv,
	.recv_wr_id = kernel_recv_wr_id,
	.recvs_completed = kernel_recvs_completed,
};
