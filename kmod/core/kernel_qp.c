// SPDX-License-Identifier: GPL-2.0
/*
 * What a user in the kernel has posted to its QP, recorded from the QP's creation on.
 *
 * The record is never a reason to refuse anything.  If it does not agree with what completes it is
 * lost, which is counted, and the user does not notice.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "core/kernel_qp.h"
#include "core/kernel_wr.h"
#include "core/qp.h"
#include "core/stat.h"
#include "pure/post_ring.h"

/* A record of one queue may be so large; no user that is known comes near. */
#define QUEUE_MEMORY_MAX	(4u << 20)

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
		mem = kvcalloc(slots, slot_size, GFP_KERNEL | __GFP_NOWARN);
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
 * Context: process context.
 * Return: the record, for shift_kernel_qp_free(), or NULL: there is no memory for it.
 */
struct shift_kernel_qp *shift_kernel_qp_new(enum shift_ulp ulp, const struct ib_qp_init_attr *attr)
{
	struct shift_kernel_qp *kernel = kzalloc(sizeof(*kernel), GFP_KERNEL);
	const struct ib_qp_cap *cap = &attr->cap;

	if (!kernel)
		return NULL;
	kernel->ulp = ulp;
	if (queue_init(&kernel->send, cap->max_send_wr, cap->max_send_sge, cap->max_inline_data) ||
	    queue_init(&kernel->recv, attr->srq ? 0 : cap->max_recv_wr, cap->max_recv_sge, 0)) {
		shift_kernel_qp_free(kernel);
		return NULL;
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
 * The driver has answered a post that was recorded when the record was as @before.  A request that
 * it has taken may be completed and freed by now, so it is not asked which ones they were: if it
 * has taken a part of them, the record is lost.
 */
static void queue_posted(struct shift_kernel_queue *queue, const struct shift_post_ring *before,
			 bool all, bool none)
{
	lockdep_assert_held(&queue->lock);
	if (none)
		queue->ring = *before;
	else if (!all)
		queue->ring.lost = true;
	shift_stat_add(SHIFT_STAT_KERNEL_POSTS, queue->ring.head - before->head);
	if (queue->ring.lost && !before->lost)
		shift_stat_inc(SHIFT_STAT_KERNEL_LOST);
}

/**
 * shift_kernel_post_send - record requests, and post them to the driver
 * @sqp: the shadow of a kernel user's QP.
 * @qp: the QP.
 * @wr: as the op post_send.
 * @bad_wr: the same.
 *
 * They are read before the driver has them, as their memory is the user's again when they complete,
 * which may be before the driver returns.  Who polls a completion waits for the lock.
 *
 * Context: any; RCU.
 * Return: as the op post_send.
 */
int shift_kernel_post_send(struct shift_qp *sqp, struct ib_qp *qp, const struct ib_send_wr *wr,
			   const struct ib_send_wr **bad_wr)
{
	struct shift_kernel_queue *queue = &sqp->kernel->send;
	const struct ib_send_wr *bad = wr, *each;
	struct shift_post_ring before;
	struct shift_post post;
	unsigned long flags;
	int err;

	spin_lock_irqsave(&queue->lock, flags);
	/* the first one since RTS, which has set both */
	if (unlikely(!queue->ring.mtu))
		shift_post_ring_count(&queue->ring, sqp->app.sq_psn, sqp->app.mtu);
	before = queue->ring;
	for (each = wr; each && !queue->stopped; each = each->next) {
		shift_post_of_send(&post, each, sqp->app.sig_all);
		shift_post_ring_add(&queue->ring, &post, shift_post_sges(each->sg_list));
	}
	err = sqp->sdev->saved.post_send(qp, wr, &bad);
	queue_posted(queue, &before, !err, err && bad == wr);
	spin_unlock_irqrestore(&queue->lock, flags);
	if (err)
		*bad_wr = bad;
	return err;
}

/**
 * shift_kernel_post_recv - the same of receives
 * @sqp: the shadow of a kernel user's QP.
 * @qp: the QP.
 * @wr: as the op post_recv.
 * @bad_wr: the same.
 *
 * Context: any; RCU.
 * Return: as the op post_recv.
 */
int shift_kernel_post_recv(struct shift_qp *sqp, struct ib_qp *qp, const struct ib_recv_wr *wr,
			   const struct ib_recv_wr **bad_wr)
{
	struct shift_kernel_queue *queue = &sqp->kernel->recv;
	const struct ib_recv_wr *bad = wr, *each;
	struct shift_post_ring before;
	struct shift_post post;
	unsigned long flags;
	int err;

	spin_lock_irqsave(&queue->lock, flags);
	before = queue->ring;
	for (each = wr; each && !queue->stopped; each = each->next) {
		shift_post_of_recv(&post, each);
		shift_post_ring_add(&queue->ring, &post, shift_post_sges(each->sg_list));
	}
	err = sqp->sdev->saved.post_recv(qp, wr, &bad);
	queue_posted(queue, &before, !err, err && bad == wr);
	spin_unlock_irqrestore(&queue->lock, flags);
	if (err)
		*bad_wr = bad;
	return err;
}

static void queue_stop(struct shift_kernel_queue *queue)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	queue->stopped = true;
	spin_unlock_irqrestore(&queue->lock, flags);
}

/**
 * shift_kernel_polled - the user is about to see a completion
 * @sqp: a kernel user's QP.
 * @wc: its completion.
 *
 * One in error does not say of which queue it is.  The QP is in error, and takes nothing more.
 *
 * Context: any; poll_lock of the CQ.
 */
void shift_kernel_polled(struct shift_qp *sqp, const struct ib_wc *wc)
{
	struct shift_kernel_queue *queue;
	unsigned long flags;
	int err;

	if (wc->status) {
		queue_stop(&sqp->kernel->send);
		queue_stop(&sqp->kernel->recv);
		return;
	}
	queue = wc->opcode & IB_WC_RECV ? &sqp->kernel->recv : &sqp->kernel->send;
	spin_lock_irqsave(&queue->lock, flags);
	if (!queue->stopped) {
		err = shift_post_ring_done(&queue->ring, wc->wr_id);
		if (err && err != -ENODATA)
			shift_stat_inc(SHIFT_STAT_KERNEL_LOST);
	}
	spin_unlock_irqrestore(&queue->lock, flags);
}

static void queue_start(struct shift_kernel_queue *queue)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	shift_post_ring_start(&queue->ring);
	queue->stopped = !queue->ring.slots;
	spin_unlock_irqrestore(&queue->lock, flags);
}

/**
 * shift_kernel_qp_state - the user has brought its QP to another state
 * @sqp: a kernel user's QP, locked.
 * @state: the state; neither RTR nor RTS.
 */
void shift_kernel_qp_state(struct shift_qp *sqp, enum ib_qp_state state)
{
	struct shift_kernel_qp *kernel = sqp->kernel;

	lockdep_assert_held(&sqp->lock);
	if (state == IB_QPS_RESET) {
		queue_start(&kernel->send);
		queue_start(&kernel->recv);
	} else if (state == IB_QPS_ERR) {
		queue_stop(&kernel->send);
		queue_stop(&kernel->recv);
	}
}
