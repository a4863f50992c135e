// SPDX-License-Identifier: GPL-2.0
/*
 * The table of receives of a kernel user's SRQ.  What a provider in user space does with such a
 * table is done here, as each post and each poll passes the module.
 *
 * A completion names its receive by the user's own wr_id, which the driver has as it is: a
 * completion that is polled without the module seeing it is as without the module.  Users have no
 * other means to tell their receives apart, so that no two outstanding ones have the same wr_id.
 * If two have, or if a completion names none, the table is of no use: it is lost, which is counted,
 * and the QPs on the SRQ are not protected.  The user does not notice.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include "core/kernel_srq.h"
#include "core/kernel_wr.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/srq.h"
#include "core/stat.h"

#define GENERATION	16		/* a receive id: struct shift_abi_srq_table */

/**
 * shift_kernel_srq_new - the SRQ is one of a user in the kernel
 * @ssrq: its shadow, with a table.
 * @work: of struct shift_kernel_srq.
 *
 * Context: process context.
 * Return: 0, -ENOMEM.
 */
int shift_kernel_srq_new(struct shift_srq *ssrq, work_func_t work)
{
	struct shift_kernel_srq *kernel;
	u32 entries = ssrq->rings.entries;

	/* what follows is aligned: it begins with 64-bit numbers */
	kernel = kvzalloc(sizeof(*kernel) + shift_wr_ids_size(entries), GFP_KERNEL | __GFP_NOWARN);
	if (!kernel)
		return -ENOMEM;
	kernel->ssrq = ssrq;
	spin_lock_init(&kernel->lock);
	INIT_WORK(&kernel->work, work);
	shift_wr_ids_init(&kernel->ids, kernel + 1, entries);
	ssrq->kernel = kernel;
	return 0;
}

/* NULL is fine. */
void shift_kernel_srq_free(struct shift_kernel_srq *kernel)
{
	kvfree(kernel);
}

static u32 recv_id_of(const struct shift_kernel_srq *kernel, u32 index)
{
	return (u32)kernel->ids.slot[index].generation << GENERATION | index;
}

/* It is not known any more what the driver has.  While the SRQ is away the kernel knows. */
static void srq_lose(struct shift_srq *ssrq)
{
	struct shift_kernel_srq *kernel = ssrq->kernel;

	lockdep_assert_held(&kernel->lock);
	if (kernel->lost)
		return;
	kernel->lost = true;
	if (!kernel->held)
		WRITE_ONCE(ssrq->spoiled, true);
	shift_stat_inc(SHIFT_STAT_KERNEL_LOST);
}

/* Note a receive as the next one that was posted.  Its entry, or SHIFT_WR_NONE: none is free. */
static u32 table_add(struct shift_srq *ssrq, const struct ib_recv_wr *wr)
{
	struct shift_abi_srq_table *table = shift_srq_table(ssrq);
	struct shift_kernel_srq *kernel = ssrq->kernel;
	struct shift_abi_srq_entry *e;
	u32 i, index, recv_id;

	lockdep_assert_held(&kernel->lock);
	index = shift_wr_ids_take(&kernel->ids, wr->wr_id);
	if (index == SHIFT_WR_NONE)
		return index;
	recv_id = recv_id_of(kernel, index);
	e = shift_srq_entry(ssrq, index);
	e->wr_id = wr->wr_id;
	e->seq = table->posted;
	e->num_sge = min_t(u32, wr->num_sge, ssrq->max_sge);
	for (i = 0; i < e->num_sge; i++)
		e->sge[i] = (struct shift_abi_sge) {
			.addr = wr->sg_list[i].addr,
			.length = wr->sg_list[i].length,
			.lkey = wr->sg_list[i].lkey,
		};
	/* as a provider does: the entry is there before its id */
	smp_store_release(&e->recv_id, recv_id);
	table->order[table->posted & (ssrq->rings.entries - 1)] = recv_id;
	/* and both before its number */
	smp_store_release(&table->posted, table->posted + 1);
	return index;
}

/* The entry is free. */
static void table_free(struct shift_srq *ssrq, u32 index)
{
	lockdep_assert_held(&ssrq->kernel->lock);
	/* before it is filled in anew */
	smp_store_release(&shift_srq_entry(ssrq, index)->recv_id, 0);
	shift_wr_ids_free(&ssrq->kernel->ids, index);
}

/* The driver has taken none of what was noted since @posted. */
static void table_undo(struct shift_srq *ssrq, u64 posted)
{
	struct shift_abi_srq_table *table = shift_srq_table(ssrq);
	u32 mask = ssrq->rings.entries - 1;

	while (table->posted != posted) {
		table->posted--;
		table_free(ssrq, table->order[table->posted & mask] & mask);
	}
}

/* Note what the driver is about to get.  Nobody else reads the table as long as it is home. */
static void note_posts(struct shift_srq *ssrq, const struct ib_recv_wr *wr)
{
	struct shift_kernel_srq *kernel = ssrq->kernel;
	u32 index;

	for (; wr && !kernel->lost; wr = wr->next) {
		index = shift_wr_ids_find(&kernel->ids, wr->wr_id) == SHIFT_WR_NONE ?
			table_add(ssrq, wr) : SHIFT_WR_NONE;
		if (index == SHIFT_WR_NONE)
			srq_lose(ssrq);
		else
			shift_wr_ids_list(&kernel->ids, index);
	}
}

static int keep_posts(struct shift_srq *ssrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr)
{
	for (; wr; wr = wr->next) {
		*bad_wr = wr;
		if (wr->num_sge > ssrq->max_sge)
			return -EINVAL;
		if (table_add(ssrq, wr) == SHIFT_WR_NONE)
			return -ENOMEM;
	}
	return 0;
}

/**
 * shift_kernel_srq_post - the op post_srq_recv of a kernel user's SRQ
 * @ssrq: its shadow.
 * @wr: as the op.
 * @bad_wr: the same.
 * @kept: out: they were noted only: the caller has them posted elsewhere.
 *
 * They are noted before the driver has them, as they may complete before it returns.  Who polls a
 * completion waits for the lock.
 *
 * Context: any; RCU.
 * Return: as the op.
 */
int shift_kernel_srq_post(struct shift_srq *ssrq, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad_wr, bool *kept)
{
	struct shift_kernel_srq *kernel = ssrq->kernel;
	const struct ib_recv_wr *bad = wr;
	unsigned long flags;
	u64 posted;
	int err;

	spin_lock_irqsave(&kernel->lock, flags);
	posted = shift_srq_table(ssrq)->posted;
	*kept = kernel->held;
	if (*kept) {
		err = keep_posts(ssrq, wr, &bad);
	} else {
		note_posts(ssrq, wr);
		err = ssrq->sdev->saved.post_srq_recv(ssrq->srq, wr, &bad);
		/* one that it has taken may be completed and freed: they are not asked which */
		if (err && bad == wr)
			table_undo(ssrq, posted);
		else if (err)
			srq_lose(ssrq);
	}
	shift_stat_add(SHIFT_STAT_KERNEL_POSTS, shift_srq_table(ssrq)->posted - posted);
	spin_unlock_irqrestore(&kernel->lock, flags);
	if (err)
		*bad_wr = bad;
	return err;
}

/* The user is about to see a completion.  False: it is of no receive that the driver has. */
static bool table_shown(struct shift_srq *ssrq, u64 wr_id)
{
	u32 index = shift_wr_ids_find(&ssrq->kernel->ids, wr_id);

	if (index != SHIFT_WR_NONE)
		table_free(ssrq, index);
	return index != SHIFT_WR_NONE;
}

/**
 * shift_kernel_srq_polled - a successful completion of a receive was polled from the driver
 * @ssrq: its SRQ.
 * @wr_id: what it names.
 *
 * Context: any; poll_lock of the CQ.
 */
void shift_kernel_srq_polled(struct shift_srq *ssrq, u64 wr_id)
{
	unsigned long flags;

	spin_lock_irqsave(&ssrq->kernel->lock, flags);
	if (!table_shown(ssrq, wr_id))
		srq_lose(ssrq);
	spin_unlock_irqrestore(&ssrq->kernel->lock, flags);
}

/**
 * shift_kernel_srq_errored - the user is shown an error of the driver's
 * @ssrq: the SRQ of the QP that it is of.
 * @wr_id: what it names: perhaps a receive.
 *
 * Context: any.
 */
void shift_kernel_srq_errored(struct shift_srq *ssrq, u64 wr_id)
{
	unsigned long flags;

	spin_lock_irqsave(&ssrq->kernel->lock, flags);
	table_shown(ssrq, wr_id);
	spin_unlock_irqrestore(&ssrq->kernel->lock, flags);
}

/* Is it known what is outstanding?  Any context. */
bool shift_kernel_srq_is_whole(struct shift_srq *ssrq)
{
	return !READ_ONCE(ssrq->kernel->lost);
}

/**
 * shift_kernel_srq_hold - from now on what is posted is noted only
 * @ssrq: the SRQ, locked.
 *
 * Posts that have reached the driver are in the table when this returns.
 *
 * Context: process context.
 * Return: 0; -ENODATA: it is not known what the driver has.
 */
int shift_kernel_srq_hold(struct shift_srq *ssrq)
{
	struct shift_kernel_srq *kernel = ssrq->kernel;
	unsigned long flags;
	int err;

	lockdep_assert_held(&ssrq->lock);
	spin_lock_irqsave(&kernel->lock, flags);
	err = kernel->lost ? -ENODATA : 0;
	if (!err && !kernel->held) {
		kernel->held = true;
		kernel->held_at = shift_srq_table(ssrq)->posted;
	}
	spin_unlock_irqrestore(&kernel->lock, flags);
	return err;
}

/**
 * shift_kernel_srq_recv_id - the receive of a completion that was not polled
 * @ssrq: the SRQ.
 * @wr_id: what it names.
 *
 * Context: any.
 * Return: its id, or SHIFT_RECV_ID_NONE: it is none that the driver has.
 */
u32 shift_kernel_srq_recv_id(struct shift_srq *ssrq, u64 wr_id)
{
	struct shift_kernel_srq *kernel = ssrq->kernel;
	u32 index, recv_id = SHIFT_RECV_ID_NONE;
	unsigned long flags;

	spin_lock_irqsave(&kernel->lock, flags);
	index = shift_wr_ids_find(&kernel->ids, wr_id);
	if (index != SHIFT_WR_NONE)
		recv_id = recv_id_of(kernel, index);
	spin_unlock_irqrestore(&kernel->lock, flags);
	return recv_id;
}

/**
 * shift_kernel_srq_taken - the kernel has taken over a receive
 * @ssrq: the SRQ.
 * @recv_id: its id.  The driver's completions do not count for it any more.
 *
 * Context: any.
 */
void shift_kernel_srq_taken(struct shift_srq *ssrq, u32 recv_id)
{
	struct shift_kernel_srq *kernel = ssrq->kernel;
	unsigned long flags;

	spin_lock_irqsave(&kernel->lock, flags);
	shift_wr_ids_unlist(&kernel->ids, recv_id & SHIFT_RECV_ID_INDEX);
	spin_unlock_irqrestore(&kernel->lock, flags);
}

/* The user's wr_id of a receive that was taken over. */
u64 shift_kernel_srq_wr_id(const struct shift_srq *ssrq, u32 recv_id)
{
	return ssrq->kernel->ids.slot[recv_id & SHIFT_RECV_ID_INDEX].wr_id;
}

/**
 * shift_kernel_srq_completed - a receive that was taken over is about to be shown
 * @sqp: the QP that it is a completion of.
 * @next: its id, and 1: see struct shift_cq_slot.
 *
 * The user may post it again as soon as it is shown.
 *
 * Context: any that may take a spinlock; post_lock.
 */
void shift_kernel_srq_completed(struct shift_qp *sqp, u64 next)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	u32 index = (next - 1) & SHIFT_RECV_ID_INDEX;
	unsigned long flags;

	lockdep_assert_held(&ssrq->post_lock);
	spin_lock_irqsave(&ssrq->kernel->lock, flags);
	ssrq->rec.known[index] = SHIFT_RECV_ID_NONE;
	table_free(ssrq, index);
	spin_unlock_irqrestore(&ssrq->kernel->lock, flags);
}

/**
 * shift_kernel_srq_lend - give a receive that was taken over to the driver
 * @ssrq: the SRQ.
 * @recv_id: its id.
 * @sge: its buffers.
 * @num_sge: their number.
 *
 * Context: any that may take a spinlock; post_lock.
 * Return: 0, or what the driver says.
 */
int shift_kernel_srq_lend(struct shift_srq *ssrq, u32 recv_id, const struct shift_sge *sge,
			  u32 num_sge)
{
	struct shift_kernel_srq *kernel = ssrq->kernel;
	u32 index = recv_id & SHIFT_RECV_ID_INDEX;
	struct ib_recv_wr wr = {
		.wr_id = shift_kernel_srq_wr_id(ssrq, recv_id),
		.sg_list = (struct ib_sge *)sge,
		.num_sge = num_sge,
	};
	const struct ib_recv_wr *bad;
	unsigned long flags;
	int err;

	lockdep_assert_held(&ssrq->post_lock);
	if (!ssrq->srq)
		return -ENOENT;
	spin_lock_irqsave(&kernel->lock, flags);
	/* before it can be completed */
	shift_wr_ids_list(&kernel->ids, index);
	err = ssrq->sdev->saved.post_srq_recv(ssrq->srq, &wr, &bad);
	if (err)
		shift_wr_ids_unlist(&kernel->ids, index);
	spin_unlock_irqrestore(&kernel->lock, flags);
	return err;
}
