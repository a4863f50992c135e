// SPDX-License-Identifier: GPL-2.0
/* Which receives of an SRQ are outstanding: see srq_id.h. */
#include "pure/srq_id.h"

#define INDEX		0xffffu
#define GENERATION	16

u32 shift_srq_id_of(u64 wr_id, u32 key, u32 entries)
{
	u32 tag = (u32)wr_id;

	if (wr_id >> 32 != key || !(tag >> GENERATION) || (tag & INDEX) >= entries)
		return SHIFT_TAG_NONE;
	return tag;
}

static int id_by_seq(const void *a, const void *b)
{
	const struct shift_srq_id *x = a, *y = b;
	s64 d = (s64)(x->seq - y->seq);

	return d < 0 ? -1 : d > 0;
}

u32 shift_srq_ids_outstanding(struct shift_srq_id *tags, u32 entries, const u32 *known, u64 posted)
{
	u32 i, n = 0;

	for (i = 0; i < entries; i++) {
		struct shift_srq_id t = tags[i];

		if (!(t.tag >> GENERATION) || (t.tag & INDEX) != i || t.tag == known[i] ||
		    (s64)(posted - t.seq) <= 0)
			continue;
		tags[n++] = t;
	}
	sort(tags, n, sizeof(*tags), id_by_seq, NULL);
	return n;
}
