/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is known of a memory window of type 2, and what its operations make of it: see
 * Documentation/windows.md.  Pure; the caller serializes.
 */
#ifndef SHIFT_WINDOW_H
#define SHIFT_WINDOW_H

#include "wr.h"

#define SHIFT_WINDOW_ACCESS	(SHIFT_WR_ACCESS_REMOTE_WRITE | SHIFT_WR_ACCESS_REMOTE_READ | \
				 SHIFT_WR_ACCESS_REMOTE_ATOMIC)
#define SHIFT_WR_ACCESS_MW_BIND	(1 << 4)

/**
 * struct shift_window_op - a BIND_MW, LOCAL_INV or SEND_WITH_INV
 * @opcode: SHIFT_WR_*.
 * @key: the window's key once it is bound; the one that is invalidated.
 * @old: BIND_MW: its key before.
 * @lkey: BIND_MW: of the memory.
 * @access: BIND_MW: SHIFT_WR_ACCESS_*.
 * @addr: BIND_MW: where it begins.
 * @length: BIND_MW: its bytes.
 */
struct shift_window_op {
	u32 opcode;
	u32 key, old, lkey, access;
	u64 addr, length;
};

/**
 * struct shift_window - one window
 * @key: the present one.
 * @bound: as far as is known here.
 * @sure: the peer has nothing to add: it was bound since the QP left its own NIC, or
 *	the peer has told.
 * @balance: binds less local invalidations, on the own NIC.
 * @lkey: of the memory that it is bound to.
 * @access: SHIFT_WR_ACCESS_*.
 * @addr: where it begins.
 * @length: its bytes.
 */
struct shift_window {
	u32 key;
	bool bound, sure;
	u32 balance;
	u32 lkey, access;
	u64 addr, length;
};

static inline u32 shift_window_index(u32 key)
{
	return key >> 8;
}

/* does the operation work on a window, and is nothing for its QP to send? */
static inline bool shift_window_local(u32 opcode)
{
	return opcode == SHIFT_WR_BIND_MW || opcode == SHIFT_WR_LOCAL_INV;
}

static inline bool shift_window_uses(u32 opcode)
{
	return shift_window_local(opcode) || opcode == SHIFT_WR_SEND_WITH_INV;
}

/* false: it is none of the three, or has what regions cannot have */
bool shift_window_op(const struct shift_wr *wr, struct shift_window_op *op);
void shift_window_init(struct shift_window *w, u32 key);
/* it completed on the QP's own NIC */
void shift_window_was(struct shift_window *w, const struct shift_window_op *op);
/* of a QP that is away: 0, -EINVAL */
int shift_window_bind(struct shift_window *w, const struct shift_window_op *op);
int shift_window_invalidate(struct shift_window *w, u32 key);
/* the peer invalidated it @n times while the QP was on its own NIC */
void shift_window_told(struct shift_window *w, u32 n);
bool shift_window_open(const struct shift_window *w, u32 key);
/* may it be bound to that memory?  @access: enum ib_access_flags of the MR */
bool shift_window_fits(const struct shift_window_op *op, u64 iova, u64 length, u32 access);

#endif /* SHIFT_WINDOW_H */
