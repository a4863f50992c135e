// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows: what is known of one.  Nothing here allocates, sleeps or locks.
 *
 * The peer's invalidations on the QP's own NIC are not seen here.  A window is bound and
 * invalidated in turn, so binds less invalidations, of whomever, are 1 or 0.
 */
#include "window.h"

/**
 * shift_window_op() - what a request does to a window
 * @wr: it.
 * @op: the result.
 *
 * Return: false if it does nothing to one, or is a bind that a region cannot stand in
 * for: a zero-based one, of no bytes, or with access of an unknown kind.
 */
bool shift_window_op(const struct shift_wr *wr, struct shift_window_op *op)
{
	if (!shift_window_uses(wr->opcode))
		return false;
	*op = (struct shift_window_op) { .opcode = wr->opcode, .key = wr->imm };
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
 * shift_window_init() - a window that was just allocated
 * @w: it.
 * @key: its key.
 */
void shift_window_init(struct shift_window *w, u32 key)
{
	memset(w, 0, sizeof(*w));
	w->key = key;
}

/* The driver puts the low byte of the new key into the old one. */
static void set_bound(struct shift_window *w, const struct shift_window_op *op)
{
	w->key = (w->key & ~0xffu) | (op->key & 0xff);
	w->addr = op->addr;
	w->length = op->length;
	w->access = op->access;
	w->lkey = op->lkey;
	w->bound = true;
}

/**
 * shift_window_was() - an operation completed on the QP's own NIC
 * @w: the window it names, by the index of its key.
 * @op: it.  A SEND_WITH_INV is of somebody else's window.
 *
 * It was right, the device has executed it.
 */
void shift_window_was(struct shift_window *w, const struct shift_window_op *op)
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
 * shift_window_bind() - bind one of a QP that is away
 * @w: the window.
 * @op: a BIND_MW that fits its memory.
 *
 * One that was bound on the own NIC may have been invalidated by the peer, nobody has
 * told: it is bound all the same.
 *
 * Return: 0; -EINVAL: the key is not its key, or it is bound.
 */
int shift_window_bind(struct shift_window *w, const struct shift_window_op *op)
{
	if (op->old != w->key || (w->bound && w->sure))
		return -EINVAL;
	set_bound(w, op);
	w->sure = true;
	return 0;
}

/**
 * shift_window_invalidate() - end it, for a QP that is away
 * @w: the window.
 * @key: which is meant.
 *
 * Return: 0; -EINVAL: that is not bound.
 */
int shift_window_invalidate(struct shift_window *w, u32 key)
{
	if (!shift_window_open(w, key))
		return -EINVAL;
	w->bound = false;
	w->sure = true;
	return 0;
}

/**
 * shift_window_told() - the peer says what it did to it on the QP's own NIC
 * @w: the window.
 * @n: how many of its SEND_WITH_INVs were executed.
 *
 * What was done since then is known here.
 */
void shift_window_told(struct shift_window *w, u32 n)
{
	if (w->sure)
		return;
	w->bound = w->bound && w->balance - n == 1;
	w->sure = true;
}

/* Is it bound, and is that its key? */
bool shift_window_open(const struct shift_window *w, u32 key)
{
	return w->bound && w->key == key;
}

/**
 * shift_window_fits() - may a window be bound to that memory?
 * @op: the BIND_MW.
 * @iova: of the memory region.
 * @length: its bytes.
 * @access: its access: SHIFT_WR_ACCESS_*.
 */
bool shift_window_fits(const struct shift_window_op *op, u64 iova, u64 length, u32 access)
{
	if (!(access & SHIFT_WR_ACCESS_MW_BIND))
		return false;
	if (op->access & (SHIFT_WR_ACCESS_REMOTE_WRITE | SHIFT_WR_ACCESS_REMOTE_ATOMIC) &&
	    !(access & SHIFT_WR_ACCESS_LOCAL_WRITE))
		return false;
	return op->length && op->addr >= iova && op->length <= length &&
	       op->addr - iova <= length - op->length;
}
