// SPDX-License-Identifier: GPL-2.0
/*
 * What a user in the kernel has posted to its QP, recorded from the QP's creation on.
 *
 * The record is never a reason to refuse anything.  If it does not agree with what completes it is
 * lost, which is counted, and the user does not notice.
 */
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "core/kernel_mr.h"
#include "core/kernel_qp.h"
#include "core/kernel_srq.h"
#include "core/kernel_wr.h"
#include "core/kick.h"
#include "core/node.h"
#include "core/qp.h"
#include "core/srq.h"
#include "core/stat.h"
#include "pure/post_ring.h"

/*
 * A record of one queue may be so large.  That of NFS takes 1.5 MiB on rxe for its usual 128
 * requests at a time, and grows with them.
 */
#define QUEUE_MEMORY_MAX	(32u << 20)

/**
 * shift_kernel_zalloc - memory of a kernel user's QP or CQ, which may be large
 * @size: bytes.
 *
 * kvzalloc() would round it up to a power of two as long as there are such pieces.
 *
 * Context: process context.
 * Return: zeroed memory, for kvfree(), or NULL.
 */
void *shift_kernel_zalloc(size_t size)
{
	if (size <= PAGE_SIZE)
		return kzalloc(size, GFP_KERNEL);
	return __vmalloc(size, GFP_KERNEL | __GFP_NOWARN | __GFP_ZERO);
}

static int queue_init(struct shift_kernel_queue *queue, u32 max_wr, u32 max_sge, u32 max_inline)
{
	u32 slot_size = shift_post_slot_size(min(max_sge, 0xffffu), min(max_inline, 0xffffu));
	void *mem = NULL;
	u64 slots = 0;

	spin_lock_init(&queue->lock);
	if (max_wr) {
		slots = roundup_pow_of_two((u64)max_wr);
		if (slots * slot_size > QUEUE_MEMORY_MAX)
			return -E2BIG;
		mem = shift_kernel_zalloc(slots * slot_size);
		if (!mem)
			return -ENOMEM;
	}
	shift_post_ring_init(&queue->ring, mem, (u32)slots, slot_size);
	queue->stopped = !slots;
	return 0;
}

/**
 * shift_kernel_qp_new - the record of a QP
 * @ulp: whose it is.
 * @attr: its attributes, as the driver has returned them.
 *
 * If there is no memory for it, or it would be too large, nothing is recorded.
 *
 * Context: process context.
 * Return: the record, for shift_kernel_qp_free(), or NULL: there is no memory at all.
 */
struct shift_kernel_qp *shift_kernel_qp_new(enum shift_ulp ulp, const struct ib_qp_init_attr *attr)
{
	struct shift_kernel_qp *kernel = kzalloc(sizeof(*kernel), GFP_KERNEL);
	const struct ib_qp_cap *cap = &attr->cap;

	if (!kernel)
		return NULL;
	kernel->ulp = ulp;
	kernel->watched = U64_MAX;
	if (queue_init(&kernel->send, cap->max_send_wr, cap->max_send_sge, cap->max_inline_data) ||
	    queue_init(&kernel->recv, attr->srq ? 0 : cap->max_recv_wr, cap->max_recv_sge, 0)) {
		kvfree(kernel->send.ring.mem);
		queue_init(&kernel->send, 0, 0, 0);
		queue_init(&kernel->recv, 0, 0, 0);
		kernel->unrecorded = true;
	}
	return kernel;
}

/* NULL is fine.  From an RCU callback, too. */
void shift_kernel_qp_free(struct shift_kernel_qp *kernel)
{
	if (!kernel)
		return;
	kvfree(kernel->send.ring.mem);
	kvfree(kernel->recv.ring.mem);
	kfree(kernel);
}

/*
 * The driver has answered a post that was recorded behind @head.  A request that it has taken may
 * be completed and freed by now, so it is not asked which ones they were: if it has taken a part
 * of them, the record is lost.
 */
static void queue_posted(struct shift_kernel_queue *queue, u64 head, bool lost, bool refused,
			 bool none)
{
	struct shift_post_ring *ring = &queue->ring;

	lockdep_assert_held(&queue->lock);
	if (unlikely(none)) {
		ring->head = head;
		ring->lost = lost;
	} else if (unlikely(refused)) {
		ring->lost = true;
	}
	shift_stat_add(SHIFT_STAT_KERNEL_POSTS, ring->head - head);
	if (unlikely(ring->lost && !lost))
		shift_stat_inc(SHIFT_STAT_KERNEL_LOST);
}

/*
 * Is what is posted kept back from the driver?  While the QP is gated, and after that as long as
 * something is left that was posted meanwhile.  A record that is lost is never a reason to.
 */
static bool queue_keeps(const struct shift_qp *sqp, const struct shift_kernel_queue *queue)
{
	lockdep_assert_held(&queue->lock);
	return (queue->ring.kept || test_bit(SHIFT_QPB_GATED, &sqp->pend.flags)) &&
	       !queue->stopped && !queue->ring.lost;
}

/* Where the next request goes, written there; NULL: there is no room. */
static struct shift_post *write_send(struct shift_post_ring *ring, const struct ib_send_wr *wr,
				     bool sig_all)
{
	struct shift_post *post = shift_post_ring_next(ring);

	if (post)
		shift_post_of_send(post, wr, sig_all);
	return post;
}

static struct shift_post *write_recv(struct shift_post_ring *ring, const struct ib_recv_wr *wr)
{
	struct shift_post *post = shift_post_ring_next(ring);

	if (post)
		shift_post_of_recv(post, wr);
	return post;
}

static noinline int keep_sends(struct shift_post_ring *ring, const struct ib_send_wr *wr,
			       const struct ib_send_wr **bad_wr, bool sig_all)
{
	int err;

	for (; wr; wr = wr->next) {
		err = shift_post_ring_keep(ring, write_send(ring, wr, sig_all),
					   shift_post_sges(wr->sg_list));
		if (err) {
			*bad_wr = wr;
			return err;
		}
	}
	return 0;
}

static noinline int keep_recvs(struct shift_post_ring *ring, const struct ib_recv_wr *wr,
			       const struct ib_recv_wr **bad_wr)
{
	int err;

	for (; wr; wr = wr->next) {
		err = shift_post_ring_keep(ring, write_recv(ring, wr),
					   shift_post_sges(wr->sg_list));
		if (err) {
			*bad_wr = wr;
			return err;
		}
	}
	return 0;
}

/**
 * shift_kernel_post_send - record requests, and post them to the driver
 * @sqp: the shadow of a kernel user's QP.
 * @qp: the QP.
 * @wr: as the op post_send.
 * @bad_wr: the same.
 * @kept: out: they were recorded only: the caller has to tell the engine.
 *
 * They are read before the driver has them, as their memory is the user's again when they complete,
 * which may be before the driver returns.  Who polls a completion waits for the lock.
 *
 * Context: any; RCU.
 * Return: as the op post_send.
 */
int shift_kernel_post_send(struct shift_qp *sqp, struct ib_qp *qp, const struct ib_send_wr *wr,
			   const struct ib_send_wr **bad_wr, bool *kept)
{
	struct shift_kernel_queue *queue = &sqp->kernel->send;
	struct shift_post_ring *ring = &queue->ring;
	const struct ib_send_wr *each;
	unsigned long flags;
	bool lost;
	u64 head;
	int err;

	spin_lock_irqsave(&queue->lock, flags);
	/* the first one since RTS, which has set both */
	if (unlikely(!ring->mtu))
		shift_post_ring_count(ring, sqp->app.sq_psn, sqp->app.mtu);
	*kept = queue_keeps(sqp, queue);
	if (unlikely(*kept)) {
		err = keep_sends(ring, wr, bad_wr, sqp->app.sig_all);
		goto out;
	}
	head = ring->head;
	lost = ring->lost;
	for (each = queue->stopped ? NULL : wr; each; each = each->next)
		shift_post_ring_add(ring, write_send(ring, each, sqp->app.sig_all),
				    shift_post_sges(each->sg_list));
	*bad_wr = wr;
	err = sqp->sdev->saved.post_send(qp, wr, bad_wr);
	queue_posted(queue, head, lost, err, err && *bad_wr == wr);
out:
	spin_unlock_irqrestore(&queue->lock, flags);
	return err;
}

/**
 * shift_kernel_post_recv - the same of receives
 * @sqp: the QP's shadow.
 * @qp: the QP.
 * @wr: as the op post_recv.
 * @bad_wr: the same.
 * @kept: as shift_kernel_post_send().
 *
 * Context: any; RCU.
 * Return: as the op post_recv.
 */
int shift_kernel_post_recv(struct shift_qp *sqp, struct ib_qp *qp, const struct ib_recv_wr *wr,
			   const struct ib_recv_wr **bad_wr, bool *kept)
{
	struct shift_kernel_queue *queue = &sqp->kernel->recv;
	struct shift_post_ring *ring = &queue->ring;
	const struct ib_recv_wr *each;
	unsigned long flags;
	bool lost;
	u64 head;
	int err;

	spin_lock_irqsave(&queue->lock, flags);
	*kept = queue_keeps(sqp, queue);
	if (unlikely(*kept)) {
		err = keep_recvs(ring, wr, bad_wr);
		goto out;
	}
	head = ring->head;
	lost = ring->lost;
	for (each = queue->stopped ? NULL : wr; each; each = each->next)
		shift_post_ring_add(ring, write_recv(ring, each), shift_post_sges(each->sg_list));
	*bad_wr = wr;
	err = sqp->sdev->saved.post_recv(qp, wr, bad_wr);
	queue_posted(queue, head, lost, err, err && *bad_wr == wr);
out:
	spin_unlock_irqrestore(&queue->lock, flags);
	return err;
}

static const struct shift_post *post_at(const struct shift_kernel_queue *queue, u64 seq)
{
	return (struct shift_post *)shift_post_ring_slot(&queue->ring, seq);
}

/**
 * shift_kernel_qp_op - a send request, if it is an operation on an MR
 * @sqp: a kernel user's QP.
 * @seq: the request's number in the record.
 *
 * Context: any; the request is in the record.
 */
struct shift_kernel_mr_op shift_kernel_qp_op(const struct shift_qp *sqp, u64 seq)
{
	const struct shift_post *post = post_at(&sqp->kernel->send, seq);

	return (struct shift_kernel_mr_op) {
		.opcode = post->opcode,
		.key = post->opcode == SHIFT_WR_REG_MR ? post->rkey : post->imm,
		.access = post->access,
	};
}

/*
 * Is a completion due of what is in the record, and (@local) is an operation on an MR behind
 * another request?  Its user may leave requests there that are not signaled for as long as it is
 * idle.
 */
static bool queue_is_due(const struct shift_qp *sqp, bool *local)
{
	const struct shift_kernel_queue *queue = &sqp->kernel->send;
	const struct shift_post_ring *ring = &queue->ring;
	bool due = false;
	u64 seq;

	lockdep_assert_held(&queue->lock);
	*local = false;
	if (queue->stopped || queue->taken || ring->lost)
		return false;
	for (seq = ring->tail; seq < ring->head && !(due && *local); seq++) {
		const struct shift_post *post = post_at(queue, seq);

		due |= post->flags & SHIFT_WR_SIGNALED;
		*local |= seq > ring->tail && shift_kernel_mr_local(post->opcode);
	}
	return due;
}

/**
 * shift_kernel_qp_mute - the op mute of struct shift_mr_ops
 * @sqp: a kernel user's QP, locked, on its own NIC.
 * @anew: the time begins now.
 *
 * Context: process context.
 */
bool shift_kernel_qp_mute(struct shift_qp *sqp, bool anew)
{
	struct shift_kernel_queue *queue = &sqp->kernel->send;
	u64 tail, now = ktime_get_ns();
	bool local, mute = false;
	unsigned long flags;

	lockdep_assert_held(&sqp->lock);
	spin_lock_irqsave(&queue->lock, flags);
	tail = queue_is_due(sqp, &local) ? queue->ring.tail : U64_MAX;
	spin_unlock_irqrestore(&queue->lock, flags);
	if (!anew && tail == sqp->kernel->watched)
		mute = local && tail != U64_MAX &&
		       now - sqp->kernel->since >= shift_scaled_ns(SHIFT_WATCH_MS);
	if (anew || mute || tail != sqp->kernel->watched) {
		sqp->kernel->watched = tail;
		sqp->kernel->since = now;
	}
	return mute;
}

/* A completion of the oldest signaled request: what it stands for was executed. */
static void queue_done(struct shift_qp *sqp, struct shift_kernel_queue *queue, u64 wr_id)
{
	u64 seq = queue->ring.tail;
	int err;

	lockdep_assert_held(&queue->lock);
	err = shift_post_ring_done(&queue->ring, wr_id);
	if (err && err != -ENODATA)
		shift_stat_inc(SHIFT_STAT_KERNEL_LOST);
	for (; queue == &sqp->kernel->send && seq != queue->ring.tail; seq++)
		if (shift_kernel_mr_local(post_at(queue, seq)->opcode))
			shift_kernel_mr_executed(sqp, shift_kernel_qp_op(sqp, seq),
						 SHIFT_PATH_DEFAULT);
}

/* An error stays in the record: it may be that the user is not shown it. */
static void error_polled(struct shift_kernel_qp *kernel, u32 status)
{
	if (status == IB_WC_WR_FLUSH_ERR)
		WRITE_ONCE(kernel->flushed, true);
	else if (!READ_ONCE(kernel->cause))
		WRITE_ONCE(kernel->cause, status);
}

/**
 * shift_kernel_polled - a completion was polled from the driver
 * @sqp: a kernel user's QP.
 * @scq: the CQ.
 * @wc: its completion.
 *
 * Context: RCU; interrupts are disabled; poll_lock of the CQ.
 * Return: false: it is to be dropped, as the request is in the ledger, or will be in a moment.
 */
bool shift_kernel_polled(struct shift_qp *sqp, const struct shift_cq *scq, const struct ib_wc *wc)
{
	struct shift_kernel_qp *kernel = sqp->kernel;
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	struct shift_kernel_queue *queue;
	bool shown;

	if (unlikely(wc->status)) {
		error_polled(kernel, wc->status);
		shift_kernel_flushed(sqp, scq, wc);
		return !READ_ONCE(kernel->over);
	}
	queue = wc->opcode & IB_WC_RECV ? &kernel->recv : &kernel->send;
	spin_lock(&queue->lock);
	shown = !queue->taken;
	if (shown && !queue->stopped)
		queue_done(sqp, queue, wc->wr_id);
	spin_unlock(&queue->lock);
	if (shown && queue == &kernel->recv && ssrq && ssrq->kernel)
		shift_kernel_srq_polled(ssrq, wc->wr_id);
	if (shown && wc->wc_flags & IB_WC_WITH_INVALIDATE)
		shift_kernel_mr_invalidated(sqp, wc->ex.invalidate_rkey, SHIFT_PATH_DEFAULT);
	return shown;
}
