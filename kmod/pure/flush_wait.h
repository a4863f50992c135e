/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long is waited for what a stopped QP flushes.  Pure.
 *
 * As long as flushes come.  There is an end to that all the same: what tells that they come may be
 * memory of an application.
 */
#ifndef SHIFT_PURE_FLUSH_WAIT_H
#define SHIFT_PURE_FLUSH_WAIT_H

#include "pure/pure.h"

#define SHIFT_FLUSH_US		20000	/* for the next flush */
#define SHIFT_FLUSHES_US	500000	/* for all of them, and for each of them: */
#define SHIFT_FLUSH_EACH_US	40	/* four times what a ConnectX-6 was seen to take */

/**
 * struct shift_flush_wait - one such wait
 * @scale: by which all times are multiplied.
 * @end: when the next flush is overdue; ns.
 * @last: when it ends, whatever comes; ns.
 * @seen: what was seen last.
 */
struct shift_flush_wait {
	u64 scale;
	u64 end, last;
	u32 seen;
};

/* Times of the wait, in us, as ns. */
static inline u64 shift_flush_ns(const struct shift_flush_wait *w, u64 us)
{
	return us * w->scale * 1000;
}

/* @requests: so many may be flushed. */
static inline void shift_flush_wait_begin(struct shift_flush_wait *w, u64 now, u32 scale,
					  u64 requests)
{
	w->scale = scale;
	w->end = now + shift_flush_ns(w, SHIFT_FLUSH_US);
	w->last = now + shift_flush_ns(w, SHIFT_FLUSHES_US + requests * SHIFT_FLUSH_EACH_US);
	w->seen = ~0u;
}

/* @seen: a number that changes when a flush comes.  True: the wait is over, without all of them. */
static inline bool shift_flush_wait_is_over(struct shift_flush_wait *w, u64 now, u32 seen)
{
	if (seen != w->seen)
		w->end = now + shift_flush_ns(w, SHIFT_FLUSH_US);
	w->seen = seen;
	return now > w->end || now > w->last;
}

#endif /* SHIFT_PURE_FLUSH_WAIT_H */
