/* SPDX-License-Identifier: GPL-2.0 */
/* Packet sequence number arithmetic (IBA 9.7.2): 24 bits, pure. */
#ifndef SHIFT_PURE_PSN_H
#define SHIFT_PURE_PSN_H

#include "pure/pure.h"
#include "pure/wr.h"

#define SHIFT_PSN_MASK	0xffffffu

/* packets from @from to @to, going forward: 0 .. 2^24 - 1 */
static inline u32 shift_psn_delta(u32 to, u32 from)
{
	return (to - from) & SHIFT_PSN_MASK;
}

static inline u32 shift_psn_add(u32 psn, u32 n)
{
	return (psn + n) & SHIFT_PSN_MASK;
}

/* request PSNs that an operation takes; see psn.c */
u32 shift_wr_packets(u32 opcode, u32 length, u32 mtu);

/* @psn + 2^16 in 24 bits: a later arming begins there, so that old packets are not in its window */
static inline u32 shift_psn_rearm(u32 psn)
{
	return shift_psn_add(psn, 1u << 16);
}

#endif /* SHIFT_PURE_PSN_H */
