/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many of the error completions that one CQ got for both queues of a QP are
 * of sends: pure and total.
 *
 * rxe flushes each queue from its oldest work request to its newest, the two at
 * the same time, and its completions do not tell which of the two they are of.
 * But each has the wr_id of its work request: the completions are an interleaving of
 * the last s wr_ids of one ring and the last r of the other.  They are looked at from
 * the newest on, as that is where both rings are known to end.
 */
#ifndef SHIFT_FLUSH_H
#define SHIFT_FLUSH_H

#include "pure.h"

/* candidates at a time; wr_ids that tell the queues apart make one of them */
#define SHIFT_FLUSH_WIDTH	256

/**
 * struct shift_flush_queue - one of the rings as it was after the flush
 * @raw: copy of all slots, each with its wr_id in front.
 * @slots: power of two.
 * @slot_size: bytes of one.
 * @end: index behind the newest that was flushed.
 * @most: no more than that many were flushed; below @slots.
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
 * @low: the least number of sends that may be among them ...
 * @high: ... and the greatest; below @low: it cannot be at all.
 * @lost: more candidates than can be followed.
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

#endif /* SHIFT_FLUSH_H */
