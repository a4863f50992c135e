// SPDX-License-Identifier: GPL-2.0
/* What completions and PSNs of a QP under trial say: pure and total. */
#include "provider/mlx5/judge.h"
#include "pure/psn.h"

/**
 * shift_trial_judge - are these the completions of a queue that has ended in order?
 * @log: the completions.
 * @posted: number of requests that were posted, at most 32.
 * @silent: bits of those that have no completion if they succeed.
 * @end: filled if so.
 *
 * Successes come first.  From the first request in error on, each has one completion: that one's
 * may be any error, all others are flushes.  All come in the order in which they were posted.
 *
 * Context: any.
 * Return: true if so.
 */
bool shift_trial_judge(const struct shift_trial_log *log, u32 posted, u32 silent,
		       struct shift_trial_end *end)
{
	bool erred = false;
	u32 i, next = 0;

	*end = (struct shift_trial_end) {};
	if (log->n > SHIFT_TRIAL_MOST || posted > 32)
		return false;
	for (i = 0; i < log->n; i++) {
		const struct shift_trial_seen *seen = &log->seen[i];

		while (!erred && next < posted && next != seen->id && silent & 1u << next)
			next++;
		if (next >= posted || seen->id != next)
			return false;
		if (erred && seen->status != SHIFT_TRIAL_FLUSHED)
			return false;
		if (!erred && seen->status != SHIFT_TRIAL_OK) {
			erred = true;
			end->ok = next;
			end->broke = seen->status == SHIFT_TRIAL_ERROR;
		}
		next++;
	}
	while (!erred && next < posted && silent & 1u << next)
		next++;
	if (!erred)
		end->ok = next;
	return next == posted;
}

/**
 * shift_trial_judge_srq - are these the completions of receives of an SRQ, in order?
 * @log: the completions.
 * @first: number of the receive that is the first one.
 * @ok: filled if so: how many were executed.
 * @flushed: filled if so: the one behind them has a completion in error.
 *
 * Others than that one have no completion: they stay in the SRQ.
 *
 * Context: any.
 * Return: true if so.
 */
bool shift_trial_judge_srq(const struct shift_trial_log *log, u32 first, u32 *ok, bool *flushed)
{
	u32 i;

	*ok = 0;
	*flushed = false;
	if (log->n > SHIFT_TRIAL_MOST)
		return false;
	for (i = 0; i < log->n; i++) {
		if (*flushed || log->seen[i].id != first + i)
			return false;
		*flushed = log->seen[i].status != SHIFT_TRIAL_OK;
		*ok += !*flushed;
	}
	return true;
}

/* Packets of @n messages. */
u32 shift_trial_packets(const u32 *len, u32 n, u32 mtu)
{
	u32 i, packets = 0;

	for (i = 0; i < n; i++)
		packets += shift_wr_packets(SHIFT_WR_SEND, len[i], mtu);
	return packets;
}

/**
 * shift_trial_psn_fits - do a responder's PSN and its completions say the same?
 * @len: lengths of the messages that were sent to it.
 * @receives: number of receives that it had; that many messages were sent, or more.
 * @received: how many of its receives have a completion with success.
 * @mtu: path MTU, bytes.
 * @packets: expected PSN less the first one.
 *
 * Context: any.
 * Return: true if the last packet of message number @received was executed, and that of the next
 * one was not.
 */
bool shift_trial_psn_fits(const u32 *len, u32 receives, u32 received, u32 mtu, u32 packets)
{
	if (received > receives || packets < shift_trial_packets(len, received, mtu))
		return false;
	return received == receives ? packets == shift_trial_packets(len, receives, mtu) :
	       packets < shift_trial_packets(len, received + 1, mtu);
}
