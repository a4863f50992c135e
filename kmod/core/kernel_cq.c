// SPDX-License-Identifier: GPL-2.0
/* The side ring of a kernel user's CQ, and how the user is woken. */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include "core/kernel_cq.h"
#include "core/object.h"
#include "core/qp.h"

/* What does not fit waits in the ledger. */
#define SIDE_MAX	(1u << 16)

static void kernel_cq_wake(struct tasklet_struct *wake)
{
	struct shift_kernel_cq *kernel = from_tasklet(kernel, wake, wake);
	struct ib_cq *cq = kernel->cq;

	if (cq->comp_handler)
		cq->comp_handler(cq, cq->cq_context);
}

/**
 * shift_kernel_cq_new - a side ring, as large as the CQ
 * @cq: the CQ.
 *
 * It may have been armed before, and nobody has seen that.  So it is taken to be armed, unless it
 * never is: the handler of such a CQ only says that it must not be called.
 *
 * Context: process context.
 * Return: the ring, for shift_kernel_cq_free(), or NULL: there is no memory for it.
 */
struct shift_kernel_cq *shift_kernel_cq_new(struct ib_cq *cq)
{
	u32 entries = roundup_pow_of_two(clamp_t(u32, cq->cqe, 1, SIDE_MAX));
	struct shift_kernel_cq *kernel;

	kernel = kvzalloc(struct_size(kernel, wc, entries), GFP_KERNEL | __GFP_NOWARN);
	if (!kernel)
		return NULL;
	kernel->cq = cq;
	kernel->entries = entries;
	kernel->armed = cq->poll_ctx == IB_POLL_DIRECT ? 0 : IB_CQ_NEXT_COMP;
	spin_lock_init(&kernel->poll_lock);
	tasklet_setup(&kernel->wake, kernel_cq_wake);
	return kernel;
}

/**
 * shift_kernel_cq_end - its last tracked QP is gone: the handler is not called any more
 * @kernel: the ring.
 *
 * Who has found the CQ before may still poll and arm it.
 *
 * Context: process context; waits for a call of the handler that is under way.
 */
void shift_kernel_cq_end(struct shift_kernel_cq *kernel)
{
	unsigned long flags;

	spin_lock_irqsave(&kernel->poll_lock, flags);
	kernel->ended = true;
	kernel->armed = 0;
	spin_unlock_irqrestore(&kernel->poll_lock, flags);
	tasklet_kill(&kernel->wake);
}

/* NULL is fine.  Wrappers look it up under RCU. */
void shift_kernel_cq_free(struct shift_kernel_cq *kernel)
{
	if (kernel)
		kvfree_rcu(kernel, rcu);
}

/* Shall the user be told?  poll_lock.  Once for each arming. */
static void kernel_cq_fire(struct shift_kernel_cq *kernel, bool solicited)
{
	lockdep_assert_held(&kernel->poll_lock);
	if (!kernel->armed || (kernel->armed == IB_CQ_SOLICITED && !solicited) || kernel->ended)
		return;
	kernel->armed = 0;
	tasklet_schedule(&kernel->wake);
}

/**
 * shift_kernel_cq_room - the op room: is there room in the side ring?
 * @scq: the CQ, locked: only its user changes the answer, and to the better.
 *
 * Return: 0 or -ENOSPC.
 */
int shift_kernel_cq_room(const struct shift_cq *scq)
{
	const struct shift_kernel_cq *kernel = scq->kernel;

	lockdep_assert_held(&scq->lock);
	return READ_ONCE(kernel->producer) - READ_ONCE(kernel->consumer) < kernel->entries ?
	       0 : -ENOSPC;
}

/**
 * shift_kernel_cq_put - the op put: the user is to poll this completion next
 * @scq: the CQ, locked; there is room.
 * @sqp: the QP that it is of; if it was destroyed the completion is dropped.
 * @wc: the completion.
 *
 * The caller holds ledger_lock, and a handler may poll, arm and post.  So a tasklet calls it.
 */
void shift_kernel_cq_put(struct shift_cq *scq, struct shift_qp *sqp, const struct shift_abi_wc *wc)
{
	struct shift_kernel_cq *kernel = scq->kernel;
	unsigned long flags;
	struct ib_qp *qp;

	lockdep_assert_held(&scq->lock);
	spin_lock_irqsave(&kernel->poll_lock, flags);
	qp = READ_ONCE(sqp->qp);
	if (qp) {
		kernel->wc[kernel->producer & (kernel->entries - 1)] = (struct ib_wc) {
			.wr_id = wc->wr_id,
			.status = wc->status,
			.opcode = wc->opcode,
			.vendor_err = wc->vendor_err,
			.byte_len = wc->byte_len,
			.qp = qp,
			.ex.imm_data = (__force __be32)wc->ex,
			.src_qp = wc->src_qp,
			.wc_flags = wc->wc_flags,
			.port_num = wc->port_num,
		};
		WRITE_ONCE(kernel->producer, kernel->producer + 1);
		kernel_cq_fire(kernel, wc->status || wc->opcode & IB_WC_RECV);
	}
	spin_unlock_irqrestore(&kernel->poll_lock, flags);
}

/**
 * shift_kernel_cq_take - poll the side ring
 * @kernel: the ring; poll_lock.
 * @num: at most so many.
 * @wc: filled in.
 *
 * Return: their number.
 */
int shift_kernel_cq_take(struct shift_kernel_cq *kernel, int num, struct ib_wc *wc)
{
	int n;

	lockdep_assert_held(&kernel->poll_lock);
	for (n = 0; n < num && kernel->consumer != kernel->producer; n++) {
		wc[n] = kernel->wc[kernel->consumer & (kernel->entries - 1)];
		WRITE_ONCE(kernel->consumer, kernel->consumer + 1);
	}
	return n;
}

/**
 * shift_kernel_cq_forget - a QP goes: its completions leave the side ring
 * @kernel: the ring of one of its CQs.
 * @qp: the QP; sqp->qp is NULL, so that nothing more is put.
 *
 * Context: process context.
 */
void shift_kernel_cq_forget(struct shift_kernel_cq *kernel, const struct ib_qp *qp)
{
	u32 mask = kernel->entries - 1, from, to;
	unsigned long flags;

	spin_lock_irqsave(&kernel->poll_lock, flags);
	for (from = to = kernel->consumer; from != kernel->producer; from++)
		if (kernel->wc[from & mask].qp != qp)
			kernel->wc[to++ & mask] = kernel->wc[from & mask];
	WRITE_ONCE(kernel->producer, to);
	spin_unlock_irqrestore(&kernel->poll_lock, flags);
}

/**
 * shift_kernel_cq_arm - the op req_notify_cq of a kernel user's CQ
 * @scq: its shadow.
 * @cq: the CQ.
 * @flags: as the op has them.
 *
 * The driver does not know of the side ring.  If that holds something the user is told so: by the
 * return value if it asks for that, else by its handler.
 *
 * Context: any; RCU.
 * Return: as the op.
 */
int shift_kernel_cq_arm(struct shift_cq *scq, struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	int ret = scq->sdev->saved.req_notify_cq(cq, flags);
	struct shift_kernel_cq *kernel = scq->kernel;
	unsigned long irq;

	if (ret < 0)
		return ret;
	spin_lock_irqsave(&kernel->poll_lock, irq);
	kernel->armed |= flags & IB_CQ_SOLICITED_MASK;
	if (kernel->consumer != kernel->producer) {
		if (flags & IB_CQ_REPORT_MISSED_EVENTS)
			ret = 1;
		else
			kernel_cq_fire(kernel, true);
	}
	spin_unlock_irqrestore(&kernel->poll_lock, irq);
	return ret;
}
