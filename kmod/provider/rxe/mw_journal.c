// SPDX-License-Identifier: GPL-2.0
/*
 * Window operations of a QP on its own NIC, read from its ring at each doorbell.
 *
 * A doorbell is rung before a slot is used again, and a slot is used again only after its
 * operation was completed.  So an operation is copied when it is posted, and is taken as executed
 * when its slot is used again, or when a fence knows that it has a completion.
 */
#include <linux/slab.h>
#include "core/object.h"
#include "core/qp.h"
#include "core/ring.h"
#include "mw/mw.h"
#include "provider/rxe/ring.h"
#include "provider/rxe/rxe.h"
#include "provider/rxe/wqe.h"
#include "pure/ledger.h"
#include "pure/mw_state.h"
#include "pure/wr.h"

#define MOST_WINDOWS	1024	/* of the peer's that one QP may invalidate */

struct shift_mw_entry {
	struct list_head list;
	u64 seq;
	struct shift_mw_op op;
};

struct shift_mw_journal *shift_mw_journal_new(const struct shift_ring *sq)
{
	struct shift_mw_journal *journal = kzalloc(sizeof(*journal), GFP_KERNEL_ACCOUNT);

	if (!journal)
		return NULL;
	journal->slot = kzalloc(shift_rxe_slot_min(), GFP_KERNEL_ACCOUNT);
	if (!journal->slot) {
		kfree(journal);
		return NULL;
	}
	INIT_LIST_HEAD(&journal->ops);
	xa_init_flags(&journal->invs, XA_FLAGS_LOCK_BH | XA_FLAGS_ACCOUNT);
	journal->scanned = shift_rxe_producer(sq);
	return journal;
}

static void journal_forget(struct shift_mw_journal *journal)
{
	struct shift_mw_entry *entry, *next;

	list_for_each_entry_safe(entry, next, &journal->ops, list) {
		list_del(&entry->list);
		kfree(entry);
	}
}

void shift_mw_journal_free(struct shift_mw_journal *journal)
{
	if (!journal)
		return;
	journal_forget(journal);
	xa_destroy(&journal->invs);
	kfree(journal->slot);
	kfree(journal);
}

/* How often this QP has invalidated the peer's window of that key. */
u32 shift_mw_journal_invalidations(struct shift_qp *sqp, u32 key)
{
	struct shift_mw_journal *journal = rxe_journal(sqp);
	void *entry = journal ? xa_load(&journal->invs, shift_mw_state_index(key)) : NULL;

	return entry ? (u32)xa_to_value(entry) : 0;
}

/* A SEND_WITH_INV was executed. */
static void journal_count(struct shift_qp *sqp, u32 key)
{
	struct shift_mw_journal *journal = rxe_journal(sqp);
	u32 n = shift_mw_journal_invalidations(sqp, key) + 1;

	if (n == 1 && ++journal->windows > MOST_WINDOWS) {
		shift_pd_spoil(sqp->spd, SHIFT_REASON_MW);
		return;
	}
	if (xa_err(xa_store_bh(&journal->invs, shift_mw_state_index(key),
			       xa_mk_value(n & 0x7fffffff), GFP_ATOMIC)))
		shift_pd_spoil(sqp->spd, SHIFT_REASON_MW);
}

/* The operation completed: apply it to its window. */
static void entry_apply(struct shift_qp *sqp, const struct shift_mw_op *op)
{
	if (op->opcode == SHIFT_WR_SEND_WITH_INV)
		journal_count(sqp, op->key);
	else
		shift_mw_was(sqp, op);
}

/* Apply operations whose slot was used again: more than @slots were posted since. */
static void journal_apply_older(struct shift_qp *sqp, u64 slots)
{
	struct shift_mw_journal *journal = rxe_journal(sqp);
	struct shift_mw_entry *entry, *next;

	list_for_each_entry_safe(entry, next, &journal->ops, list) {
		if (entry->seq + slots >= journal->seq)
			break;
		entry_apply(sqp, &entry->op);
		list_del(&entry->list);
		kfree(entry);
	}
}

static void journal_look(struct shift_qp *sqp, u32 index)
{
	struct shift_mw_journal *journal = rxe_journal(sqp);
	struct shift_mw_op op;
	struct shift_mw_entry *entry;
	int ret;

	if (!shift_window_uses(shift_ring_slot_u32(&sqp->rings.pins.sq, index,
						   shift_rxe_opcode_offset())))
		return;
	shift_ring_read_slot(&sqp->rings.pins.sq, index, journal->slot, shift_rxe_slot_min());
	ret = shift_rxe_mw_op(journal->slot, &op);
	entry = ret > 0 ? kmalloc(sizeof(*entry), GFP_ATOMIC | __GFP_ACCOUNT) : NULL;
	if (!entry) {
		/* not supported, no memory, or the opcode was changed between the two reads */
		shift_pd_spoil(sqp->spd, SHIFT_REASON_MW);
		return;
	}
	entry->seq = journal->seq;
	entry->op = op;
	list_add_tail(&entry->list, &journal->ops);
	if (op.opcode == SHIFT_WR_BIND_MW)
		shift_mw_claim(sqp, &op);
}

/**
 * shift_mw_journal_scan - read window operations that were posted since the last scan
 * @sqp: the QP, on its own NIC.
 *
 * Context: ledger_lock.
 */
void shift_mw_journal_scan(struct shift_qp *sqp)
{
	struct shift_mw_journal *journal = rxe_journal(sqp);
	u32 end;

	lockdep_assert_held(&sqp->ledger_lock);
	if (!journal || !sqp->rings.registered)
		return;
	end = shift_rxe_producer(&sqp->rings.pins.sq);
	for (; journal->scanned != end; journal->seq++) {
		journal_look(sqp, journal->scanned);
		journal->scanned = (journal->scanned + 1) & (sqp->rings.pins.sq.slots - 1);
	}
	if (!list_empty(&journal->ops))
		journal_apply_older(sqp, sqp->rings.pins.sq.slots);
}

/* A doorbell was rung, and is passed to the driver next.  Any context that may take a spinlock. */
void shift_mw_journal_doorbell(struct shift_qp *sqp)
{
	spin_lock_bh(&sqp->ledger_lock);
	if (!sqp->rec.live)
		shift_mw_journal_scan(sqp);
	spin_unlock_bh(&sqp->ledger_lock);
}

/**
 * shift_mw_journal_settle - the QP was fenced: operations that are not in the ledger completed
 * @sqp: the QP.
 * @outstanding: number of operations in the ledger; they were posted last.
 *
 * Context: ledger_lock; the ring was scanned before RESET zeroed it.
 */
void shift_mw_journal_settle(struct shift_qp *sqp, u32 outstanding)
{
	lockdep_assert_held(&sqp->ledger_lock);
	if (!rxe_journal(sqp))
		return;
	journal_apply_older(sqp, outstanding);
	journal_forget(rxe_journal(sqp));
}

/**
 * shift_mw_journal_executed - the ledger knows what the peer executed on the own NIC
 * @sqp: the QP, locked; it has not run on another path yet.
 */
void shift_mw_journal_executed(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	struct shift_mw_op op;
	struct shift_wr wr;
	u64 seq;

	lockdep_assert_held(&sqp->lock);
	if (!rxe_journal(sqp) || sqp->fo.path)
		return;
	spin_lock_bh(&sqp->ledger_lock);
	for (seq = l->tail; seq < l->head; seq++) {
		struct shift_entry *e = shift_ledger_at(l, seq);

		if (e->state != SHIFT_ENTRY_EXECUTED || e->flags & SHIFT_ENTRY_APPLIED)
			continue;
		e->flags |= SHIFT_ENTRY_APPLIED;
		if (!sqp->rings.provider->decode(sqp, seq, &wr) && shift_mw_op(&wr, &op))
			entry_apply(sqp, &op);
	}
	spin_unlock_bh(&sqp->ledger_lock);
}

/**
 * shift_mw_journal_restart - the application has reset the QP, which empties its ring
 * @sqp: the QP, locked.
 *
 * It is not known whether operations without a completion were executed.  So the state of windows
 * that they have bound is not known either.
 */
void shift_mw_journal_restart(struct shift_qp *sqp)
{
	struct shift_mw_journal *journal = rxe_journal(sqp);

	lockdep_assert_held(&sqp->lock);
	if (!journal)
		return;
	if (shift_mw_owns(sqp))
		shift_pd_spoil(sqp->spd, SHIFT_REASON_MW);
	spin_lock_bh(&sqp->ledger_lock);
	journal_forget(journal);
	xa_destroy(&journal->invs);
	journal->windows = 0;
	journal->seq = 0;
	journal->scanned = sqp->rings.registered ? shift_rxe_producer(&sqp->rings.pins.sq) : 0;
	spin_unlock_bh(&sqp->ledger_lock);
}
