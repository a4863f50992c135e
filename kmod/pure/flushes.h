/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Errors that a device has completed of a kernel user's QP in ERR.  They do not say of which queue
 * they are.  And the room that they take in a CQ.  Pure; the caller serializes.
 *
 * Of rxe's rings in user space only the ends are known: provider/rxe/flush.h.
 */
#ifndef SHIFT_PURE_FLUSHES_H
#define SHIFT_PURE_FLUSHES_H

#include "pure/post_ring.h"

/**
 * struct shift_flushes - errors of a QP whose queues have one CQ, or those of its receives
 * @errors: all that were polled.
 * @recvs: so many of them are of receives, for certain.
 * @unsure: one of them may be of either queue.  So it is not known which receive is the next.
 */
struct shift_flushes {
	u32 errors, recvs;
	bool unsure;
};

bool shift_flushes_next_is(const struct shift_post_ring *recv, u32 recvs, u64 wr_id);
bool shift_flushes_may_be(const struct shift_post_ring *send, u32 sends, u64 wr_id);
void shift_flushes_add(struct shift_flushes *f, bool recv, bool send);
u32 shift_flushes_recvs(const struct shift_flushes *f, u32 sends);
bool shift_flushes_reserve(u32 *reserved, u32 entries, u64 need);

#endif /* SHIFT_PURE_FLUSHES_H */
