// SPDX-License-Identifier: GPL-2.0
/* Which receives of an SRQ are outstanding: see srq_id.h. */
#include "pure/srq_id.h"

#define INDEX		0xffffu
#define GENERATION	16

u32 shift_srq_id_of(u64 wr_id, u32 key, u32 entries)
{
	u32 recv_id = (u32)wr_id;

	if (wr_id >> 32 != key || !(recv_id >> GENERATION) || (recv_id & INDEX) >= entries)
		return SHIFT_RECV_ID_NONE;
	return recv_id;
}

static int id_by_seq(const void *a, const void *b)
{
	const struct shift_srq_id *x = a, *y = b;
	s64 d = (s64)(x->seq - y->seq);

	return d < 0 ? -1 : d > 0;
}

u32 shift_srq_ids_outstanding(struct shift_srq_id *ids, u32 entries, const u32 *known, u64 posted)
{
	u32 i, n = 0;

	for (i = 0; i < entries; i++) {
		struct shift_srq_id t = ids[i];

		if (!(t.recv_id >> GENERATION) || (t.recv_id & INDEX) != i ||
		    t.recv_id == known[i] || (s64)(posted - t.seq) <= 0)
			continue;
		ids[n++] = t;
	}
	sort(ids, n, sizeof(*ids), id_by_seq, NULL);
	return n;
}
