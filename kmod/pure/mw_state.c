// SPDX-License-Identifier: GPL-2.0
/*
 * The state of one memory window.  Nothing here allocates, sleeps or locks.
 *
 * While the QP runs on its own NIC, invalidations by the peer are not seen here.  A window is
 * bound and invalidated in turn, so the number of binds less the number of invalidations, by
 * both ends together, is 1 or 0.
 */
#include "pure/mw_state.h"
#include "pure/wr.h"

/**
 * shift_mw_op() - what a request does to a window
 * @wr: the request.
 * @op: the result.
 *
 * Return: false if it does nothing to a window, or is a bind that a region cannot stand in
 * for: zero-based, of no bytes, or with access of an unknown kind.
 */
bool shift_mw_op(const struct shift_wr *wr, struct shift_mw_op *op)
{
	if (!shift_window_uses(wr->opcode))
		return false;
	*op = (struct shift_mw_op) { .opcode = wr->opcode, .key = wr->imm };
	if (wr->opcode != SHIFT_WR_BIND_MW)
		return true;
	op->old = wr->rkey;
	op->addr = wr->remote_addr;
	op->length = wr->length;
	op->access = wr->access;
	op->lkey = wr->num_sge ? wr->sge[0].lkey : 0;
	return wr->num_sge == 1 && wr->mw_type == 2 && wr->length &&
	       !(wr->access & ~SHIFT_WINDOW_ACCESS);
}

/**
 * shift_mw_state_init() - a window that was just allocated
 * @w: the window.
 * @key: its key.
 */
void shift_mw_state_init(struct shift_mw_state *w, u32 key)
{
	memset(w, 0, sizeof(*w));
	w->key = key;
}

/* The driver puts the low byte of the new key into the old one. */
static void set_bound(struct shift_mw_state *w, const struct shift_mw_op *op)
{
	w->key = (w->key & ~0xffu) | (op->key & 0xff);
	w->addr = op->addr;
	w->length = op->length;
	w->access = op->access;
	w->lkey = op->lkey;
	w->bound = true;
}

/**
 * shift_mw_state_was() - an operation completed on the QP's own NIC
 * @w: the window that it names, by the index of its key.
 * @op: the operation; not a SEND_WITH_INV, which invalidates a window of the peer's.
 *
 * It was valid, as the device has executed it.
 */
void shift_mw_state_was(struct shift_mw_state *w, const struct shift_mw_op *op)
{
	w->sure = false;
	if (op->opcode == SHIFT_WR_BIND_MW) {
		w->balance++;
		set_bound(w, op);
	} else if (op->opcode == SHIFT_WR_LOCAL_INV) {
		w->balance--;
		w->bound = false;
	}
}

/**
 * shift_mw_state_bind() - bind a window of a QP that runs on a proxy QP
 * @w: the window.
 * @op: a BIND_MW that fits its memory.
 *
 * If it was bound on the own NIC, the peer may have invalidated it there, which is not known
 * here yet.  The bind is accepted then.
 *
 * Return: 0; -EINVAL: the key is not its key, or it is bound.
 */
int shift_mw_state_bind(struct shift_mw_state *w, const struct shift_mw_op *op)
{
	if (op->old != w->key || (w->bound && w->sure))
		return -EINVAL;
	set_bound(w, op);
	w->sure = true;
	return 0;
}

/**
 * shift_mw_state_invalidate() - invalidate a window of a QP that runs on a proxy QP
 * @w: the window.
 * @key: the key to invalidate.
 *
 * Return: 0; -EINVAL: the window is not bound with that key.
 */
int shift_mw_state_invalidate(struct shift_mw_state *w, u32 key)
{
	if (!shift_mw_state_open(w, key))
		return -EINVAL;
	w->bound = false;
	w->sure = true;
	return 0;
}

/**
 * shift_mw_state_told() - the peer says how often it invalidated a window on the QP's own NIC
 * @w: the window.
 * @n: how many of the peer's SEND_WITH_INVs for it were executed.
 *
 * From then on the state of the window is known for sure: what is done to it on a proxy QP is
 * seen here.
 */
void shift_mw_state_told(struct shift_mw_state *w, u32 n)
{
	if (w->sure)
		return;
	w->bound = w->bound && w->balance - n == 1;
	w->sure = true;
}

/* Is it bound, and is that its key? */
bool shift_mw_state_open(const struct shift_mw_state *w, u32 key)
{
	return w->bound && w->key == key;
}

/**
 * shift_mw_state_fits() - may a window be bound to that memory?
 * @op: the BIND_MW.
 * @iova: of the memory region.
 * @length: its bytes.
 * @access: its access: SHIFT_WR_ACCESS_*.
 */
bool shift_mw_state_fits(const struct shift_mw_op *op, u64 iova, u64 length, u32 access)
{
	if (!(access & SHIFT_WR_ACCESS_MW_BIND))
		return false;
	if (op->access & (SHIFT_WR_ACCESS_REMOTE_WRITE | SHIFT_WR_ACCESS_REMOTE_ATOMIC) &&
	    !(access & SHIFT_WR_ACCESS_LOCAL_WRITE))
		return false;
	return op->length && op->addr >= iova && op->length <= length &&
	       op->addr - iova <= length - op->length;
}
