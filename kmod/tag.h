/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tags: names of the receives of an SRQ (struct shift_abi_srq_table).  Pure; what
 * is read from the table is the user's and may say anything.
 */
#ifndef SHIFT_TAG_H
#define SHIFT_TAG_H

#include "pure.h"

#define SHIFT_TAG_NONE	0u

/** struct shift_tag - what an entry of the table says: @tag, and its @seq */
struct shift_tag {
	u64 seq;
	u32 tag;
};

/* the tag in a wr_id; NONE: it is not of the SRQ of @key with @entries entries */
u32 shift_tag_of(u64 wr_id, u32 key, u32 entries);
/*
 * Which receives are outstanding, in posting order: @tags, one of each entry, are
 * replaced by them.  @known: tags by entry that are accounted for; those posted
 * as number @posted or later are left out.  Returns how many there are.
 */
u32 shift_tags_outstanding(struct shift_tag *tags, u32 entries, const u32 *known, u64 posted);

#endif /* SHIFT_TAG_H */
