// SPDX-License-Identifier: GPL-2.0
/* The kernel's copy of the queues of a QP. */
#include <linux/slab.h>
#include <linux/ktime.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <rdma/ib_umem.h>
#include "compat/compat.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/ring.h"
#include "pure/ledger.h"
#include "pure/psn.h"
#include "pure/mw_state.h"
#include "pure/wr.h"

/**
 * shift_recv_init - memory for the receives of a QP
 * @r: filled in.
 * @ring: its receive ring; not pinned: it has none.
 *
 * Return: 0, -ENOMEM.
 */
int shift_recv_init(struct shift_recvs *r, const struct shift_ring *ring)
{
	memset(r, 0, sizeof(*r));
	if (!ring->npages)
		return 0;
	r->entry = kvcalloc(ring->slots, sizeof(*r->entry), GFP_KERNEL_ACCOUNT);
	r->raw = kvcalloc(ring->slots, ring->slot_size, GFP_KERNEL_ACCOUNT);
	if (!r->entry || !r->raw) {
		shift_recv_free(r);
		return -ENOMEM;
	}
	r->slots = ring->slots;
	r->slot_size = ring->slot_size;
	return 0;
}

void shift_recv_free(struct shift_recvs *r)
{
	kvfree(r->entry);
	kvfree(r->raw);
	memset(r, 0, sizeof(*r));
}

/* Copy the receive @seq from the user's ring, of a provider whose slots hold one receive each. */
void shift_recv_copy(struct shift_qp *sqp, u64 seq)
{
	struct shift_recvs *r = &sqp->rec.recvs;

	/* the provider decodes them where they are */
	if (!r->raw)
		return;
	lockdep_assert(lockdep_is_held(&sqp->lock) || lockdep_is_held(&sqp->ledger_lock));
	shift_ring_copy_slot(&sqp->rings.pins.rq, shift_recv_slot(r, seq), shift_recv_raw(r, seq));
}

/* Copy the whole receive ring, before RESET zeroes it. */
void shift_recv_capture(struct shift_qp *sqp)
{
	u32 i;

	lockdep_assert_held(&sqp->lock);
	for (i = 0; i < sqp->rec.recvs.slots; i++)
		shift_recv_copy(sqp, i);
}

/**
 * shift_recv_start - the fenced QP has @count receives without a completion
 * @sqp: the QP; ledger_lock.
 * @first: index of the oldest.
 * @count: their number.
 * @most: the number that can be outstanding.
 */
void shift_recv_start(struct shift_qp *sqp, u32 first, u32 count, u32 most)
{
	struct shift_recvs *r = &sqp->rec.recvs;

	lockdep_assert_held(&sqp->ledger_lock);
	if (!r->slots)
		return;
	r->tail = first;
	r->done = r->tail;
	r->post = r->tail;
	r->head = r->tail + count;
	r->most = most;
	sqp->rings.provider->recvs_completed(sqp, r->tail);
}

/* What was posted and has no completion is to be posted again; ledger_lock. */
void shift_recv_rewind(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->ledger_lock);
	sqp->rec.recvs.post = sqp->rec.recvs.done;
}

/**
 * shift_replay_enter - the operation at the ledger's head becomes its newest entry
 * @sqp: the QP.
 * @wr: the operation, decoded; NULL: that was not possible.
 *
 * An operation that cannot be moved becomes an entry, too, so that it can be completed in error.
 *
 * Context: ledger_lock; there is room.
 * Return: 0; -EOPNOTSUPP: it cannot be moved.
 */
int shift_replay_enter(struct shift_qp *sqp, const struct shift_wr *wr)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	u16 flags;

	lockdep_assert_held(&sqp->ledger_lock);
	if (!wr || !shift_qp_can_move(sqp, wr)) {
		shift_ledger_append(l, 0, 0);
		return -EOPNOTSUPP;
	}
	flags = shift_ledger_kind(wr->opcode);
	if (!sqp->app.sig_all && !(wr->flags & SHIFT_WR_SIGNALED))
		flags |= SHIFT_ENTRY_SILENT;
	if (wr->flags & SHIFT_WR_FENCE)
		flags |= SHIFT_ENTRY_FENCED;
	shift_ledger_append(l, shift_wr_packets(wr->opcode, wr->length, sqp->app.mtu), flags);
	return 0;
}

/**
 * shift_qp_can_move - can the operation be posted on another device?
 * @sqp: the QP.
 * @wr: the operation.
 */
bool shift_qp_can_move(const struct shift_qp *sqp, const struct shift_wr *wr)
{
	struct shift_mw_op op;

	if (sqp->rings.provider->mrs)
		return shift_wr_movable(wr) || wr->opcode == SHIFT_WR_SEND_WITH_INV ||
		       sqp->rings.provider->mrs->local(wr->opcode);
	return shift_wr_movable(wr) || (sqp->peer.windows && shift_mw_op(wr, &op));
}
