// SPDX-License-Identifier: GPL-2.0
/*
 * What a QP on its own NIC does to windows, read from its ring at each doorbell.
 *
 * The doorbell comes before a slot is used again, and a slot is used again only when its
 * operation has completed.  So an operation is copied when it is posted, and counts when
 * the ring came round to its slot, or a fence knows what has no completion.
 */
#include <linux/slab.h>
#include "mw.h"
#include "provider.h"

#define MOST_WINDOWS	1024	/* of the peer's that one QP may invalidate */

struct shift_note {
	struct list_head list;
	u64 seq;
	struct shift_window_op op;
};

struct shift_notes *shift_notes_new(const struct shift_ring *sq)
{
	struct shift_notes *notes = kzalloc(sizeof(*notes), GFP_KERNEL);

	if (!notes)
		return NULL;
	notes->slot = kzalloc(shift_rxe_slot_min(), GFP_KERNEL);
	if (!notes->slot) {
		kfree(notes);
		return NULL;
	}
	INIT_LIST_HEAD(&notes->ops);
	xa_init_flags(&notes->invs, XA_FLAGS_LOCK_BH);
	notes->scanned = shift_ring_producer(sq);
	return notes;
}

static void forget(struct shift_notes *notes)
{
	struct shift_note *note, *next;

	list_for_each_entry_safe(note, next, &notes->ops, list) {
		list_del(&note->list);
		kfree(note);
	}
}

void shift_notes_free(struct shift_notes *notes)
{
	if (!notes)
		return;
	forget(notes);
	xa_destroy(&notes->invs);
	kfree(notes->slot);
	kfree(notes);
}

/* How often the peer's window of that key was invalidated from here. */
u32 shift_notes_invs(struct shift_qp *sqp, u32 key)
{
	void *entry = sqp->notes ? xa_load(&sqp->notes->invs, shift_window_index(key)) : NULL;

	return entry ? (u32)xa_to_value(entry) : 0;
}

/* A SEND_WITH_INV was executed. */
static void count(struct shift_qp *sqp, u32 key)
{
	struct shift_notes *notes = sqp->notes;
	u32 n = shift_notes_invs(sqp, key) + 1;

	if (n == 1 && ++notes->windows > MOST_WINDOWS) {
		shift_pd_spoil(sqp->spd, SHIFT_REASON_MW);
		return;
	}
	if (xa_err(xa_store_bh(&notes->invs, shift_window_index(key),
			       xa_mk_value(n & 0x7fffffff), GFP_ATOMIC)))
		shift_pd_spoil(sqp->spd, SHIFT_REASON_MW);
}

/* It completed. */
static void apply(struct shift_qp *sqp, const struct shift_window_op *op)
{
	if (op->opcode == SHIFT_WR_SEND_WITH_INV)
		count(sqp, op->key);
	else
		shift_mw_was(sqp, op);
}

/* Operations of which more than @slots were posted since. */
static void apply_older(struct shift_qp *sqp, u64 slots)
{
	struct shift_notes *notes = sqp->notes;
	struct shift_note *note, *next;

	list_for_each_entry_safe(note, next, &notes->ops, list) {
		if (note->seq + slots >= notes->seq)
			break;
		apply(sqp, &note->op);
		list_del(&note->list);
		kfree(note);
	}
}

static void look(struct shift_qp *sqp, u32 index)
{
	struct shift_notes *notes = sqp->notes;
	struct shift_window_op op;
	struct shift_note *note;
	int ret;

	if (!shift_window_uses(shift_ring_slot_u32(&sqp->sq, index, shift_rxe_opcode_offset())))
		return;
	shift_ring_read_slot(&sqp->sq, index, notes->slot, shift_rxe_slot_min());
	ret = shift_rxe_window(notes->slot, &op);
	note = ret > 0 ? kmalloc(sizeof(*note), GFP_ATOMIC) : NULL;
	if (!note) {
		/* another opcode by now is nobody's but the application's doing */
		shift_pd_spoil(sqp->spd, SHIFT_REASON_MW);
		return;
	}
	note->seq = notes->seq;
	note->op = op;
	list_add_tail(&note->list, &notes->ops);
	if (op.opcode == SHIFT_WR_BIND_MW)
		shift_mw_claim(sqp, &op);
}

/**
 * shift_notes_scan - look at what was posted since
 * @sqp: the QP, on its own NIC.
 *
 * Context: ledger_lock.
 */
void shift_notes_scan(struct shift_qp *sqp)
{
	struct shift_notes *notes = sqp->notes;
	u32 end;

	if (!notes || !sqp->registered)
		return;
	end = shift_ring_producer(&sqp->sq);
	for (; notes->scanned != end; notes->seq++) {
		look(sqp, notes->scanned);
		notes->scanned = (notes->scanned + 1) & (sqp->sq.slots - 1);
	}
	if (!list_empty(&notes->ops))
		apply_older(sqp, sqp->sq.slots);
}

/* A doorbell, before the driver hears of it; any context that may take a spinlock. */
void shift_notes_doorbell(struct shift_qp *sqp)
{
	spin_lock_bh(&sqp->ledger_lock);
	if (!sqp->ledger_live)
		shift_notes_scan(sqp);
	spin_unlock_bh(&sqp->ledger_lock);
}

/**
 * shift_notes_settle - the QP was fenced: what is not in the ledger completed
 * @sqp: the QP.
 * @outstanding: operations in the ledger, the last ones that were posted.
 *
 * Context: ledger_lock; all was scanned before the ring was lost.
 */
void shift_notes_settle(struct shift_qp *sqp, u32 outstanding)
{
	if (!sqp->notes)
		return;
	apply_older(sqp, outstanding);
	forget(sqp->notes);
}

/**
 * shift_notes_executed - PROGRESS told what of the ledger was executed on the own NIC
 * @sqp: the QP, locked; it has not run anywhere else yet.
 */
void shift_notes_executed(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->ledger;
	struct shift_window_op op;
	struct shift_wr wr;
	u64 seq;

	lockdep_assert_held(&sqp->lock);
	if (!sqp->notes || sqp->path)
		return;
	spin_lock_bh(&sqp->ledger_lock);
	for (seq = l->tail; seq < l->head; seq++) {
		struct shift_entry *e = shift_ledger_at(l, seq);

		if (e->state != SHIFT_ENTRY_EXECUTED || e->flags & SHIFT_ENTRY_APPLIED)
			continue;
		e->flags |= SHIFT_ENTRY_APPLIED;
		if (!sqp->provider->decode(sqp, seq, &wr) && shift_window_op(&wr, &op))
			apply(sqp, &op);
	}
	spin_unlock_bh(&sqp->ledger_lock);
}

/**
 * shift_notes_restart - the application has reset the QP: a new life of its ring
 * @sqp: the QP, locked.
 *
 * What had no completion was dropped, or not.  Windows that it has bound are not known
 * any more.
 */
void shift_notes_restart(struct shift_qp *sqp)
{
	struct shift_notes *notes = sqp->notes;

	lockdep_assert_held(&sqp->lock);
	if (!notes)
		return;
	if (shift_mw_owns(sqp))
		shift_pd_spoil(sqp->spd, SHIFT_REASON_MW);
	spin_lock_bh(&sqp->ledger_lock);
	forget(notes);
	xa_destroy(&notes->invs);
	notes->windows = 0;
	notes->seq = 0;
	notes->scanned = sqp->registered ? shift_ring_producer(&sqp->sq) : 0;
	spin_unlock_bh(&sqp->ledger_lock);
}
