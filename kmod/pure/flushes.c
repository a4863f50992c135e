// SPDX-License-Identifier: GPL-2.0
/*
 * What a device completes in error when a kernel user's QP goes to ERR.
 *
 * Each queue is flushed in order, and behind what it has completed with success.  If both have one
 * CQ, an error is of a receive if it has the wr_id of the next one, and the next send cannot have
 * it.  If both have it nobody can tell; then only their number does: no more errors are of sends
 * than sends are outstanding.
 */
#include "pure/flushes.h"

/* How much the device has of a queue. */
static u32 posted(const struct shift_post_ring *ring)
{
	u32 n = shift_post_ring_outstanding(ring);

	return n - min(n, ring->kept);
}

static const struct shift_post *post_at(const struct shift_post_ring *ring, u32 i)
{
	return (struct shift_post *)shift_post_ring_slot(ring, ring->tail + i);
}

/**
 * shift_flushes_next_is() - has the next receive without a completion of any kind this wr_id?
 * @recv: the record of receives.
 * @recvs: so many of the oldest have been flushed.
 * @wr_id: of an error.
 */
bool shift_flushes_next_is(const struct shift_post_ring *recv, u32 recvs, u64 wr_id)
{
	return recvs < posted(recv) && post_at(recv, recvs)->wr_id == wr_id;
}

/**
 * shift_flushes_may_be() - could the next send that ends in an error have this wr_id?
 * @send: the record of sends.
 * @sends: so many have ended in an error.
 * @wr_id: of an error.
 *
 * Sends that were executed without a signal are in the record, and do not complete.  But the first
 * that fails is not behind the oldest signaled one.  All behind it are flushed, in turn.
 */
bool shift_flushes_may_be(const struct shift_post_ring *send, u32 sends, u64 wr_id)
{
	u32 n = posted(send), i;

	for (i = sends; i < n; i++) {
		if (post_at(send, i)->wr_id == wr_id)
			return true;
		if (post_at(send, i - sends)->flags & SHIFT_WR_SIGNALED)
			break;
	}
	return false;
}

/**
 * shift_flushes_add() - an error was polled
 * @f: the errors of its QP.
 * @recv: it may be of the next receive.
 * @send: it may be of the next send.
 */
void shift_flushes_add(struct shift_flushes *f, bool recv, bool send)
{
	f->errors++;
	if (f->unsure || !recv)
		return;
	if (send)
		f->unsure = true;
	else
		f->recvs++;
}

/**
 * shift_flushes_recvs() - how many errors are of receives, for certain?
 * @f: the errors of a QP.
 * @sends: so many sends the device has at most.
 */
u32 shift_flushes_recvs(const struct shift_flushes *f, u32 sends)
{
	if (!f->unsure || f->errors < sends)
		return f->recvs;
	return max(f->recvs, f->errors - sends);
}

/**
 * shift_flushes_reserve() - reserve entries of a CQ, all of which is polled, for what is flushed
 * @reserved: entries that are reserved for QPs that are flushed just now.
 * @entries: of the CQ.
 * @need: entries that are needed.
 *
 * Return: false: they are not there, and none is reserved.
 */
bool shift_flushes_reserve(u32 *reserved, u32 entries, u64 need)
{
	if (*reserved > entries || need > entries - *reserved)
		return false;
	*reserved += need;
	return true;
}
