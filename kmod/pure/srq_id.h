/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive ids: numbers by which the receives of an SRQ are known (struct
 * shift_abi_srq_table).  Pure.  The application can write to the table, so that any value has
 * to be expected there.
 */
#ifndef SHIFT_PURE_SRQ_ID_H
#define SHIFT_PURE_SRQ_ID_H

#include "pure/pure.h"

#define SHIFT_RECV_ID_NONE	0u

/** struct shift_srq_id - an entry of the table: receive id @recv_id, posted as number @seq */
struct shift_srq_id {
	u64 seq;
	u32 recv_id;
};

/* The receive id in a wr_id; NONE: it is not of the SRQ of @key with @entries entries. */
u32 shift_srq_id_of(u64 wr_id, u32 key, u32 entries);
/*
 * Finds the outstanding receives, in posting order.  @ids: in: the entries of the table; out:
 * the outstanding ones.  @known: ids, by entry, whose receive was completed or taken over
 * already.  Receives posted as number @posted or later are left out.  Returns their number.
 */
u32 shift_srq_ids_outstanding(struct shift_srq_id *ids, u32 entries, const u32 *known, u64 posted);

#endif /* SHIFT_PURE_SRQ_ID_H */
