// SPDX-License-Identifier: GPL-2.0
/*
 * Flushed sends and receives of one CQ, told apart by their wr_ids: see flush.h.
 *
 * A candidate is a possible number of sends among the completions taken so far.  The rest are
 * receives, so that a candidate also says which slot of either ring comes next.  A completion
 * keeps a candidate if it has the wr_id of the next receive, and adds one to it if it has that of
 * the next send; it does both if both have that wr_id, and drops the candidate if neither has.
 * Equal wr_ids in both rings do no harm as long as only one candidate is left in the end.
 */
#include "provider/rxe/flush.h"

/* Does the @nth newest flushed request of a ring have this wr_id? */
static bool flush_is(const struct shift_flush_queue *q, u32 nth, u64 wr_id)
{
	u32 index = (q->end - 1 - nth) & (q->slots - 1);
	u64 id;

	if (nth >= q->most)
		return false;
	memcpy(&id, q->raw + (size_t)index * q->slot_size, sizeof(id));
	return id == wr_id;
}

static bool *flush_at(struct shift_flush *f, u32 sends)
{
	return &f->possible[sends % SHIFT_FLUSH_WIDTH];
}

/**
 * shift_flush_init() - begin, with no completion taken
 * @f: the state.
 * @send: the send ring.
 * @recv: the receive ring.
 */
void shift_flush_init(struct shift_flush *f, const struct shift_flush_queue *send,
		      const struct shift_flush_queue *recv)
{
	memset(f, 0, sizeof(*f));
	f->send = *send;
	f->recv = *recv;
	*flush_at(f, 0) = true;
}

/**
 * shift_flush_take() - take one more error completion
 * @f: the state.
 * @wr_id: of the completion, which is the next older one.
 *
 * At most SHIFT_FLUSH_WIDTH candidates are looked at, whatever the wr_ids are.
 */
void shift_flush_take(struct shift_flush *f, u64 wr_id)
{
	u32 sends;

	if (f->lost || f->low > f->high)
		return;
	if (f->high - f->low + 1 >= SHIFT_FLUSH_WIDTH) {
		f->lost = true;
		return;
	}
	/* downwards, as each depends on the old value of the one below */
	f->high++;
	*flush_at(f, f->high) = false;
	for (sends = f->high; ; sends--) {
		bool recv = *flush_at(f, sends) && flush_is(&f->recv, f->taken - sends, wr_id);
		bool send = sends > f->low && *flush_at(f, sends - 1) &&
			    flush_is(&f->send, sends - 1, wr_id);

		*flush_at(f, sends) = recv || send;
		if (sends == f->low)
			break;
	}
	f->taken++;
	while (f->low <= f->high && !*flush_at(f, f->low))
		f->low++;
	while (f->high > f->low && !*flush_at(f, f->high))
		f->high--;
}

/**
 * shift_flush_sends() - number of sends among the completions, once all were taken
 * @f: the state.
 * @least: sends that are known to have been flushed.
 *
 * Return: the number of sends; -ENODATA: there is none that fits, or more than one.
 */
int shift_flush_sends(const struct shift_flush *f, u32 least)
{
	u32 sends, found = 0, n = 0;

	if (f->lost)
		return -ENODATA;
	for (sends = f->low; sends <= f->high; sends++) {
		if (sends < least || !f->possible[sends % SHIFT_FLUSH_WIDTH])
			continue;
		found = sends;
		n++;
	}
	return n == 1 ? (int)found : -ENODATA;
}
