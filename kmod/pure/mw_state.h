/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of a memory window of type 2, and how operations change it: see
 * Documentation/internals/windows.md.  Pure; the caller serializes.
 */
#ifndef SHIFT_PURE_MW_STATE_H
#define SHIFT_PURE_MW_STATE_H

#include "pure/wr.h"

#define SHIFT_WINDOW_ACCESS	(SHIFT_WR_ACCESS_REMOTE_WRITE | SHIFT_WR_ACCESS_REMOTE_READ | \
				 SHIFT_WR_ACCESS_REMOTE_ATOMIC)
#define SHIFT_WR_ACCESS_MW_BIND	(1 << 4)

/**
 * struct shift_mw_op - a BIND_MW, LOCAL_INV or SEND_WITH_INV
 * @opcode: SHIFT_WR_*.
 * @key: the window's key once it is bound; the one that is invalidated.
 * @old: BIND_MW: its key before.
 * @lkey: BIND_MW: of the memory.
 * @access: BIND_MW: SHIFT_WR_ACCESS_*.
 * @addr: BIND_MW: where it begins.
 * @length: BIND_MW: its bytes.
 */
struct shift_mw_op {
	u32 opcode;
	u32 key, old, lkey, access;
	u64 addr, length;
};

/**
 * struct shift_mw_state - one window
 * @key: the present one.
 * @bound: as far as is known here.
 * @sure: @bound is certain: the window was bound since the QP left its own NIC, or the peer has
 *	told how often it invalidated it.
 * @balance: binds less local invalidations, on the own NIC.
 * @lkey: of the memory that it is bound to.
 * @access: SHIFT_WR_ACCESS_*.
 * @addr: where it begins.
 * @length: its bytes.
 */
struct shift_mw_state {
	u32 key;
	bool bound, sure;
	u32 balance;
	u32 lkey, access;
	u64 addr, length;
};

static inline u32 shift_mw_state_index(u32 key)
{
	return key >> 8;
}

/* Does the operation work on a window of the QP's own, without sending anything? */
static inline bool shift_window_local(u32 opcode)
{
	return opcode == SHIFT_WR_BIND_MW || opcode == SHIFT_WR_LOCAL_INV;
}

static inline bool shift_window_uses(u32 opcode)
{
	return shift_window_local(opcode) || opcode == SHIFT_WR_SEND_WITH_INV;
}

/* false: it is no operation on windows, or a bind that a region cannot stand in for */
bool shift_mw_op(const struct shift_wr *wr, struct shift_mw_op *op);
void shift_mw_state_init(struct shift_mw_state *w, u32 key);
/* the operation completed on the QP's own NIC */
void shift_mw_state_was(struct shift_mw_state *w, const struct shift_mw_op *op);
/* of a QP that runs on a proxy QP: 0, -EINVAL */
int shift_mw_state_bind(struct shift_mw_state *w, const struct shift_mw_op *op);
int shift_mw_state_invalidate(struct shift_mw_state *w, u32 key);
/* the peer invalidated it @n times while the QP was on its own NIC */
void shift_mw_state_told(struct shift_mw_state *w, u32 n);
bool shift_mw_state_open(const struct shift_mw_state *w, u32 key);
/* may it be bound to that memory?  @access: enum ib_access_flags of the MR */
bool shift_mw_state_fits(const struct shift_mw_op *op, u64 iova, u64 length, u32 access);

#endif /* SHIFT_PURE_MW_STATE_H */
