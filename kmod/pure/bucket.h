/* SPDX-License-Identifier: GPL-2.0 */
/* An allowance: so many at once, and then one each time an interval has passed.  Pure. */
#ifndef SHIFT_PURE_BUCKET_H
#define SHIFT_PURE_BUCKET_H

#include "pure/pure.h"

/**
 * struct shift_bucket - what is left of an allowance; zeros: all of it
 * @full_ns: ktime at which all of it will be there again.
 */
struct shift_bucket {
	u64 full_ns;
};

/* Is anything left?  @now and @every in ns; @most at once, at least 1. */
static inline bool shift_bucket_has(const struct shift_bucket *b, u64 now, u64 every, u32 most)
{
	return b->full_ns <= now + every * (most - 1);
}

/* Take one.  False: nothing is left, and nothing was taken. */
static inline bool shift_bucket_take(struct shift_bucket *b, u64 now, u64 every, u32 most)
{
	if (!shift_bucket_has(b, now, every, most))
		return false;
	b->full_ns = (b->full_ns > now ? b->full_ns : now) + every;
	return true;
}

/*
 * The same of an allowance that several share: each adds @most at once, and one each time @every
 * has passed.  @num of them, at least one, and less than @every and than 2^32 / @most.  If their
 * number changes, the part of the allowance that is used stays what it was.
 */
static inline bool shift_bucket_take_of(struct shift_bucket *b, u64 now, u32 every, u32 most,
					u32 num)
{
	return shift_bucket_take(b, now, every / num, most * num);
}

/* One of @num has just come: it brings what it adds at once. */
static inline void shift_bucket_join(struct shift_bucket *b, u32 every, u32 most, u32 num)
{
	u64 brings = (u64)(every / num) * most;

	b->full_ns -= b->full_ns < brings ? b->full_ns : brings;
}

#endif /* SHIFT_PURE_BUCKET_H */
