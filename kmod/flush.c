// SPDX-License-Identifier: GPL-2.0
/*
 * Flushed sends and receives of one CQ, told apart by their wr_ids: see flush.h.
 *
 * A candidate is a number of sends among the completions taken so far; the rest are
 * receives, so it also says which slot of either ring is next.  A completion keeps a
 * candidate if it may be of the next receive, makes it one more if it may be of the
 * next send, both if it may be either, and drops it if it is neither's.  Equal wr_ids
 * on both rings are no harm as long as only one candidate is left in the end.
 */
#include "flush.h"

/* wr_id of the @nth newest that was flushed */
static bool is(const struct shift_flush_queue *q, u32 nth, u64 wr_id)
{
	u32 index = (q->end - 1 - nth) & (q->slots - 1);
	u64 id;

	if (nth >= q->most)
		return false;
	memcpy(&id, q->raw + (size_t)index * q->slot_size, sizeof(id));
	return id == wr_id;
}

static bool *at(struct shift_flush *f, u32 sends)
{
	return &f->possible[sends % SHIFT_FLUSH_WIDTH];
}

/**
 * shift_flush_init() - nothing was taken yet
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
	*at(f, 0) = true;
}

/**
 * shift_flush_take() - one more error completion
 * @f: the state.
 * @wr_id: that of the next older one.
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
	/* from above: each needs what the one below was */
	f->high++;
	*at(f, f->high) = false;
	for (sends = f->high; ; sends--) {
		bool recv = *at(f, sends) && is(&f->recv, f->taken - sends, wr_id);
		bool send = sends > f->low && *at(f, sends - 1) &&
			    is(&f->send, sends - 1, wr_id);

		*at(f, sends) = recv || send;
		if (sends == f->low)
			break;
	}
	f->taken++;
	while (f->low <= f->high && !*at(f, f->low))
		f->low++;
	while (f->high > f->low && !*at(f, f->high))
		f->high--;
}

/**
 * shift_flush_sends() - the answer, once all were taken
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
