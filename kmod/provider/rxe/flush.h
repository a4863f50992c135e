/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many of the error completions that one CQ got for both queues of a QP are
 * of sends: pure and total.
 *
 * rxe flushes both queues at the same time, each from its oldest work request to its
 * newest, and the completions do not tell which queue they are of.
 * But each has the wr_id of its work request: the completions are an interleaving of
 * the last s wr_ids of one ring and the last r of the other.  They are looked at from
 * the newest on, as it is known where both rings end, not where they begin.
 */
#ifndef SHIFT_PROVIDER_RXE_FLUSH_H
#define SHIFT_PROVIDER_RXE_FLUSH_H

#include "pure/pure.h"

/* most candidates at a time; there is only one if wr_ids tell the queues apart */
#define SHIFT_FLUSH_WIDTH	256

/**
 * struct shift_flush_queue - a send or receive ring after the flush
 * @raw: copy of all slots, each with its wr_id in front.
 * @slots: power of two.
 * @slot_size: bytes of one.
 * @end: index behind the newest request that was flushed.
 * @most: most requests that can have been flushed; below @slots.
 */
struct shift_flush_queue {
	const u8 *raw;
	u32 slots, slot_size;
	u32 end;
	u32 most;
};

/**
 * struct shift_flush - what is known after some completions
 * @send: the send ring.
 * @recv: the receive ring.
 * @taken: completions so far.
 * @low: the least number of sends that may be among them.
 * @high: the greatest; if below @low, no candidate is left.
 * @lost: there were more than SHIFT_FLUSH_WIDTH candidates.
 * @possible: whether n sends may be among them, at n % SHIFT_FLUSH_WIDTH.
 */
struct shift_flush {
	struct shift_flush_queue send, recv;
	u32 taken;
	u32 low, high;
	bool lost;
	bool possible[SHIFT_FLUSH_WIDTH];
};

void shift_flush_init(struct shift_flush *f, const struct shift_flush_queue *send,
		      const struct shift_flush_queue *recv);
/* the next older error completion */
void shift_flush_take(struct shift_flush *f, u64 wr_id);
/* sends among all that were taken, @least at least; -ENODATA: that cannot be told */
int shift_flush_sends(const struct shift_flush *f, u32 least);

#endif /* SHIFT_PROVIDER_RXE_FLUSH_H */
