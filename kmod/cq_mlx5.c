// SPDX-License-Identifier: GPL-2.0
/*
 * Looking into a user's CQ that an mlx5 device writes: pure but for how the ring is read.
 *
 * Entries stay where they are until the device comes round to them: those that the
 * application has polled are still there, and tell what was completed last.  The
 * device's own index is not to be had; the owner bits behind the consumer's lead to it.
 */
#include "cq_mlx5.h"

#define STRIDE_MAX	128

/* A word of an entry, from its end: 1, index of the WQE and owner bit; 2, the QP. */
static u32 word(const struct shift_ring *ring, u32 index, u32 from_end)
{
	u32 value = shift_ring_slot_u32(ring, index, ring->slot_size - from_end * sizeof(value));

	return be32_to_cpu((__force __be32)value);
}

static bool ours(const struct shift_ring *ring, u32 index)
{
	return shift_mlx5_cqe_ours(word(ring, index, 1), index, ring->slots);
}

/*
 * Where the device writes next, as the consumer's index counts.  What it has written lies in
 * one piece behind that: halving finds its end in four dozen looks at most, so that no
 * application keeps softirqs waiting by a large CQ, or by what it writes there.
 *
 * An entry that is moved up (see shift_mlx5_cq_find()) has the owner bit of its old place for a
 * moment.  That is no end: hence the look at the next one, if it is not known.  Of the last
 * entry nothing tells: the end may be one too low, while that many and more are about to be free.
 */
static u32 producer(const struct shift_ring *ring, u32 index)
{
	u32 middle, left = ring->slots;

	/* all before @index are written, of @left from there on it is not known */
	while (left) {
		middle = index + left / 2;
		if (ours(ring, middle) || (left > 2 && ours(ring, middle + 1))) {
			left -= left / 2 + 1;
			index = middle + 1;
		} else {
			left /= 2;
		}
	}
	return index;
}

/* Is it known what was completed, if perhaps not what came with it? */
static bool names(enum shift_mlx5_refusal why)
{
	return why == SHIFT_MLX5_DECODED || why == SHIFT_MLX5_OPCODE ||
	       why == SHIFT_MLX5_INLINE_SIZE || why == SHIFT_MLX5_APP;
}

/*
 * One entry, copied and decoded; false: it is none, or is being replaced, by one that is
 * another QP's, another request's or another lap's.
 */
static bool read_entry(const struct shift_ring *ring, u32 index, struct shift_mlx5_cqe *cqe)
{
	u8 bytes[STRIDE_MAX] __aligned(8);
	struct shift_mlx5_cq one = { .ring = bytes, .entries = 1, .stride = ring->slot_size };
	u32 last = word(ring, index, 1), qpn = word(ring, index, 2);

	if (!shift_mlx5_cqe_ours(last, index, ring->slots))
		return false;
	shift_ring_copy_slot(ring, index, bytes);
	/* what was copied is that entry as a whole */
	smp_rmb();
	if (word(ring, index, 1) != last || word(ring, index, 2) != qpn)
		return false;
	return names(shift_mlx5_decode_cqe(&one, !!(index & ring->slots), cqe));
}

static bool is_error(const struct shift_mlx5_cqe *cqe)
{
	return cqe->opcode == SHIFT_MLX5_CQE_REQ_ERR || cqe->opcode == SHIFT_MLX5_CQE_RECV_ERR;
}

/* Of one queue of a QP?  Other opcodes are of neither. */
static bool is_of(const struct shift_mlx5_cqe *cqe, u32 qpn, bool recvs)
{
	if (cqe->qpn != qpn)
		return false;
	switch (cqe->opcode) {
	case SHIFT_MLX5_CQE_REQ:
	case SHIFT_MLX5_CQE_REQ_ERR:
		return !recvs;
	case SHIFT_MLX5_CQE_RECV_WRITE_IMM:
	case SHIFT_MLX5_CQE_RECV:
	case SHIFT_MLX5_CQE_RECV_IMM:
	case SHIFT_MLX5_CQE_RECV_INV:
	case SHIFT_MLX5_CQE_RECV_ERR:
		return recvs;
	default:
		return false;
	}
}

static bool read_of(const struct shift_ring *ring, u32 index, u32 qpn, bool recvs,
		    struct shift_mlx5_cqe *cqe)
{
	return read_entry(ring, index, cqe) && is_of(cqe, qpn, recvs);
}

/**
 * shift_mlx5_cq_room - entries that the device may write before the application has to poll
 * @ring: of the CQ.
 * @consumer: the application's index.
 * @qpn: a QP.
 * @own: out: those of its that are not polled yet, as its queues have no place for so many
 *	more requests, each of which could be flushed.
 *
 * Both are of one moment.  Entries that are being moved up may be counted twice, while as many
 * places are about to be free.
 *
 * Return: @ring->slots or less.
 */
u32 shift_mlx5_cq_room(const struct shift_ring *ring, u32 consumer, u32 qpn, u32 *own)
{
	u32 index, end = producer(ring, consumer);
	struct shift_mlx5_cqe cqe;

	*own = 0;
	for (index = consumer; index != end; index++)
		*own += read_of(ring, index, qpn, false, &cqe) ||
			read_of(ring, index, qpn, true, &cqe);
	return ring->slots - (end - consumer);
}

/* One that is newer than all before. */
static void found_newer(struct shift_mlx5_found *found, const struct shift_mlx5_cqe *cqe)
{
	bool flush = cqe->status == SHIFT_WC_WR_FLUSH_ERR;

	if (!is_error(cqe)) {
		*found = (struct shift_mlx5_found){ .success = true, .last = cqe->wqe_index };
		return;
	}
	if (!found->error) {
		found->first_error = cqe->wqe_index;
		found->begins = !flush;
	}
	found->error = true;
	found->last_error = cqe->wqe_index;
	if (!flush)
		found->cause = cqe->status;
}

/* One that is older than all before, of which none was a success. */
static void found_older(struct shift_mlx5_found *found, const struct shift_mlx5_cqe *cqe)
{
	bool flush = cqe->status == SHIFT_WC_WR_FLUSH_ERR;

	if (!is_error(cqe)) {
		found->success = true;
		found->last = cqe->wqe_index;
		return;
	}
	/* moved up at a neighbor's RESET, it is where it was, too */
	if (found->error && (u16)(cqe->wqe_index - found->first_error) <=
			    (u16)(found->last_error - found->first_error))
		return;
	if (!found->error)
		found->last_error = cqe->wqe_index;
	found->error = true;
	found->first_error = cqe->wqe_index;
	found->begins = !flush;
	if (!found->cause && !flush)
		found->cause = cqe->status;
}

/**
 * shift_mlx5_cq_find - the newest completions of one queue of a QP
 * @ring: of the CQ.
 * @consumer: the application's index.
 * @qpn: the QP.
 * @recvs: of receives, else of sends.
 * @most: entries to look at, and one more.
 * @found: the result.
 *
 * On a QP that works it is a look at a moving target.  So it is if another one with this CQ is
 * reset or destroyed: its provider takes that one's entries out of those that are not polled
 * yet, from the newest to the oldest, by moving others' up; each is copied to where it goes
 * before its place is taken.  Hence upwards through these, and one further: what was not met in
 * its old place is met in the new one, or in both, and the last one met is the newest.
 */
void shift_mlx5_cq_find(const struct shift_ring *ring, u32 consumer, u32 qpn, bool recvs,
			u32 most, struct shift_mlx5_found *found)
{
	u32 index, end = producer(ring, consumer);
	struct shift_mlx5_cqe cqe;

	memset(found, 0, sizeof(*found));
	most = min(most, ring->slots);
	for (index = end - min(most, end - consumer); index != end + 1; index++)
		if (read_of(ring, index, qpn, recvs, &cqe))
			found_newer(found, &cqe);
	most -= min(most, end - consumer);
	/* what was polled stays where it is */
	for (index = consumer; most && !found->success; most--)
		if (read_of(ring, --index, qpn, recvs, &cqe))
			found_older(found, &cqe);
}
