/* SPDX-License-Identifier: GPL-2.0 */
/* Packet sequence number arithmetic (IBA 9.7.2): 24 bits, pure. */
#ifndef SHIFT_PSN_H
#define SHIFT_PSN_H

#include "pure.h"
#include "wr.h"

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

/* 24-bit PSN after @psn + 2^16, for a re-arm that must not meet old packets */
static inline u32 shift_psn_rearm(u32 psn)
{
	return shift_psn_add(psn, 1u << 16);
}

#endif /* SHIFT_PSN_H */
