// SPDX-License-Identifier: GPL-2.0
/* The side ring of a kernel user's CQ, and how the user is woken. */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include "core/kernel_cq.h"
#include "core/kernel_qp.h"
#include "core/object.h"
#include "core/qp.h"

/* What does not fit waits in the ledger.  CQs of the core's pools have twice as many on rxe. */
#define SIDE_MAX	(1u << 12)

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

	kernel = shift_kernel_zalloc(struct_size(kernel, side, entries));
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

static u32 side_room(const struct shift_kernel_cq *kernel)
{
	return kernel->entries - (READ_ONCE(kernel->producer) - READ_ONCE(kernel->consumer));
}

/* There is room; poll_lock. */
static void side_add(struct shift_kernel_cq *kernel, const struct ib_wc *wc, bool raw)
{
	lockdep_assert_held(&kernel->poll_lock);
	kernel->side[kernel->producer & (kernel->entries - 1)] = (struct shift_kernel_wc) {
		.wc = *wc, .raw = raw,
	};
	WRITE_ONCE(kernel->producer, kernel->producer + 1);
	kernel_cq_fire(kernel, wc->status || wc->opcode & IB_WC_RECV);
}

/* A completion that only has to be taken out of the ring. */
static bool side_is_of(const struct shift_kernel_wc *side, const struct ib_qp *qp, bool raw)
{
	return side->wc.qp == qp && (side->raw || !raw);
}

/* Take completions of @qp out of the side ring; @raw: only those that are. */
static void side_drop(struct shift_kernel_cq *kernel, const struct ib_qp *qp, bool raw)
{
	u32 mask = kernel->entries - 1, from, to;
	unsigned long flags;

	spin_lock_irqsave(&kernel->poll_lock, flags);
	for (from = to = kernel->consumer; from != kernel->producer; from++)
		if (!side_is_of(&kernel->side[from & mask], qp, raw))
			kernel->side[to++ & mask] = kernel->side[from & mask];
	WRITE_ONCE(kernel->producer, to);
	spin_unlock_irqrestore(&kernel->poll_lock, flags);
}

/**
 * shift_kernel_cq_room - the op room: is there room in the side ring?
 * @scq: the CQ, locked: only its user changes the answer, and to the better, as who drains the
 * driver's CQ has the lock, too.
 *
 * Return: 0 or -ENOSPC.
 */
int shift_kernel_cq_room(const struct shift_cq *scq)
{
	lockdep_assert_held(&scq->lock);
	return side_room(scq->kernel) ? 0 : -ENOSPC;
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
	if (qp)
		side_add(kernel, &(struct ib_wc) {
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
		}, false);
	spin_unlock_irqrestore(&kernel->poll_lock, flags);
}

/**
 * shift_kernel_cq_take - poll the side ring
 * @kernel: the ring; poll_lock.
 * @num: at most so many.
 * @wc: filled in.
 * @raw: out: the CQE filter has to be asked about these.
 *
 * Return: their number.  There may be more, of the other sort.
 */
int shift_kernel_cq_take(struct shift_kernel_cq *kernel, int num, struct ib_wc *wc, bool *raw)
{
	const struct shift_kernel_wc *next;
	int n;

	lockdep_assert_held(&kernel->poll_lock);
	for (n = 0; n < num && kernel->consumer != kernel->producer; n++) {
		next = &kernel->side[kernel->consumer & (kernel->entries - 1)];
		if (n && next->raw != *raw)
			break;
		*raw = next->raw;
		wc[n] = next->wc;
		WRITE_ONCE(kernel->consumer, kernel->consumer + 1);
	}
	return n;
}

/* The shadow of a tracked QP, or NULL; RCU, poll_lock.  @qp may be destroyed: only compared. */
static struct shift_qp *qp_of(struct shift_kernel_cq *kernel, const struct ib_qp *qp)
{
	struct shift_qp *sqp;

	if (qp == kernel->last_qp)
		return kernel->last;
	sqp = shift_qp_find_rcu(qp);
	if (!sqp || !sqp->kernel)
		return NULL;
	kernel->last_qp = qp;
	kernel->last = sqp;
	return sqp;
}

/**
 * shift_kernel_cq_lose - a QP is not found any more
 * @kernel: the ring of one of its CQs.
 * @qp: the QP, whose shadow was taken out of the table.
 *
 * Context: process context.
 */
void shift_kernel_cq_lose(struct shift_kernel_cq *kernel, const struct ib_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&kernel->poll_lock, flags);
	if (kernel->last_qp == qp) {
		kernel->last_qp = NULL;
		kernel->last = NULL;
	}
	spin_unlock_irqrestore(&kernel->poll_lock, flags);
}

/**
 * shift_kernel_cq_poll - poll the driver
 * @scq: the shadow of the CQ.
 * @cq: the CQ.
 * @num: as the op poll_cq.
 * @wc: the same.
 *
 * What is polled leaves the records while poll_lock is held.  So this happens in the order of the
 * device, also if two threads poll the CQ.
 *
 * Context: any; RCU; poll_lock.
 * Return: as the op poll_cq.  Completions of QPs that were fenced are not among them.
 */
int shift_kernel_cq_poll(struct shift_cq *scq, struct ib_cq *cq, int num, struct ib_wc *wc)
{
	struct shift_kernel_cq *kernel = scq->kernel;
	struct shift_qp *sqp;
	int i, n, shown;

	lockdep_assert_held(&kernel->poll_lock);
	do {
		n = scq->sdev->saved.poll_cq(cq, num, wc);
		for (i = 0, shown = 0; i < n; i++) {
			sqp = qp_of(kernel, wc[i].qp);
			if (sqp && !shift_kernel_polled(sqp, scq, &wc[i]))
				continue;
			if (shown != i)
				wc[shown] = wc[i];
			shown++;
		}
	} while (n > 0 && !shown);
	return n > 0 ? shown : n;
}

/* So many are polled from the driver at once, and so often before others may poll. */
#define DRAIN_WCS	4
#define DRAIN_PASSES	32

/* True: there may be more. */
static bool drain_some(struct shift_cq *scq)
{
	struct shift_kernel_cq *kernel = scq->kernel;
	int passes = DRAIN_PASSES, want, i, n = 0;
	struct ib_wc wc[DRAIN_WCS];
	unsigned long flags;

	rcu_read_lock();
	/* who pushes a completion has looked for room before */
	spin_lock_bh(&scq->lock);
	spin_lock_irqsave(&kernel->poll_lock, flags);
	do {
		/* once it has ended the CQ may be gone */
		want = kernel->ended ? 0 : min_t(u32, DRAIN_WCS, side_room(kernel));
		n = want ? shift_kernel_cq_poll(scq, kernel->cq, want, wc) : 0;
		for (i = 0; i < n; i++)
			side_add(kernel, &wc[i], wc[i].status);
	} while (n == DRAIN_WCS && --passes);
	spin_unlock_irqrestore(&kernel->poll_lock, flags);
	spin_unlock_bh(&scq->lock);
	rcu_read_unlock();
	return n > 0 || (!want && !READ_ONCE(kernel->ended));
}

/**
 * shift_kernel_cq_drain - move what the driver has completed into the side ring
 * @scq: the CQ.
 *
 * Context: process or softirq context, without scq->lock.
 * Return: 0: the driver has nothing more; -ENOSPC: the side ring has no room until its user polls.
 */
int shift_kernel_cq_drain(struct shift_cq *scq)
{
	u32 most = scq->kernel->entries;

	while (side_room(scq->kernel)) {
		if (!drain_some(scq))
			return 0;
		/* other QPs may go on completing, but as many were there as the CQ has entries */
		if (!most--)
			return 0;
	}
	return -ENOSPC;
}

/**
 * shift_kernel_cq_each_raw - look at the driver's errors in the side ring
 * @kernel: the ring.
 * @fn: called for each, under poll_lock, with its wr_id, status and QP number.
 * @arg: for @fn.
 *
 * Context: any.
 */
void shift_kernel_cq_each_raw(struct shift_kernel_cq *kernel,
			      void (*fn)(void *arg, u64 wr_id, u32 status, u32 qpn), void *arg)
{
	const struct shift_kernel_wc *side;
	const struct shift_qp *sqp;
	unsigned long flags;
	u32 i;

	rcu_read_lock();
	spin_lock_irqsave(&kernel->poll_lock, flags);
	for (i = kernel->consumer; i != kernel->producer; i++) {
		side = &kernel->side[i & (kernel->entries - 1)];
		sqp = side->raw ? shift_qp_find_rcu(side->wc.qp) : NULL;
		if (sqp)
			fn(arg, side->wc.wr_id, side->wc.status, sqp->qpn);
	}
	spin_unlock_irqrestore(&kernel->poll_lock, flags);
	rcu_read_unlock();
}

/**
 * shift_kernel_cq_drop_raw - a QP was fenced: drop its errors, as its work is in its ledger
 * @kernel: the ring of one of its CQs.
 * @qp: the QP.
 *
 * Context: any.
 */
void shift_kernel_cq_drop_raw(struct shift_kernel_cq *kernel, const struct ib_qp *qp)
{
	side_drop(kernel, qp, true);
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
	side_drop(kernel, qp, false);
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
