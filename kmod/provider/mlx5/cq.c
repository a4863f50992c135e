// SPDX-License-Identifier: GPL-2.0
/*
 * Looking into a user's CQ that an mlx5 device writes: pure but for how the ring is read.
 *
 * Entries stay in place until the device has gone round the ring: those that the application has
 * polled are still there, and tell what was completed last.  The device's own index cannot be
 * read.  It is found by the owner bits of the entries behind the consumer's index.
 */
#include "core/ring.h"
#include "provider/mlx5/cq.h"
#include "provider/mlx5/cqe.h"
#include "provider/mlx5/format.h"
#include "pure/wr.h"

#define STRIDE_MAX	128

/* A word of an entry, counted from its end.  1: index of the WQE, and owner bit; 2: the QP. */
static u32 cq_word(const struct shift_ring *ring, u32 index, u32 from_end)
{
	u32 value = shift_ring_slot_u32(ring, index, ring->slot_size - from_end * sizeof(value));

	return be32_to_cpu((__force __be32)value);
}

static bool cqe_is_ours(const struct shift_ring *ring, u32 index)
{
	return shift_mlx5_cqe_ours(cq_word(ring, index, 1), index, ring->slots);
}

/*
 * The index at which the device writes next, counted as the consumer's index.  The entries that
 * the device has written lie in one piece behind the consumer's index.  Bisection finds their end
 * with 48 reads at most, so that an application cannot make a softirq last long by a large CQ or
 * by what it writes there.
 *
 * An entry that user space moves (see shift_mlx5_cq_find()) has the owner bit of its old place for
 * a moment, and looks like the end.  So the next entry is read, too.  For the last entry there is
 * no next one: the result may then be one too low, while at least as many entries are about to
 * become free.
 */
static u32 cq_producer(const struct shift_ring *ring, u32 index)
{
	u32 middle, left = ring->slots;

	/* entries before @index are written; it is not known which of the @left behind it are */
	while (left) {
		middle = index + left / 2;
		if (cqe_is_ours(ring, middle) || (left > 2 && cqe_is_ours(ring, middle + 1))) {
			left -= left / 2 + 1;
			index = middle + 1;
		} else {
			left /= 2;
		}
	}
	return index;
}

/* Does the entry say what was completed?  Data that came with it may be unknown. */
static bool cqe_names(enum shift_mlx5_refusal why)
{
	return why == SHIFT_MLX5_DECODED || why == SHIFT_MLX5_OPCODE ||
	       why == SHIFT_MLX5_INLINE_SIZE || why == SHIFT_MLX5_APP;
}

/*
 * Copy and decode one entry.  False: it is not written, or was overwritten meanwhile by an entry
 * of another QP, of another request or of the next round of the ring.
 */
static bool cqe_read(const struct shift_ring *ring, u32 index, struct shift_mlx5_cqe *cqe)
{
	u8 bytes[STRIDE_MAX] __aligned(8);
	struct shift_mlx5_cq one = { .ring = bytes, .entries = 1, .stride = ring->slot_size };
	u32 last = cq_word(ring, index, 1), qpn = cq_word(ring, index, 2);

	if (!shift_mlx5_cqe_ours(last, index, ring->slots))
		return false;
	shift_ring_copy_slot(ring, index, bytes);
	/* the copy is made before the second look: if nothing has changed, it is one whole entry */
	smp_rmb();
	if (cq_word(ring, index, 1) != last || cq_word(ring, index, 2) != qpn)
		return false;
	return cqe_names(shift_mlx5_decode_cqe(&one, !!(index & ring->slots), cqe));
}

static bool cqe_is_error(const struct shift_mlx5_cqe *cqe)
{
	return cqe->opcode == SHIFT_MLX5_CQE_REQ_ERR || cqe->opcode == SHIFT_MLX5_CQE_RECV_ERR;
}

static bool cqe_is_send(const struct shift_mlx5_cqe *cqe)
{
	return cqe->opcode == SHIFT_MLX5_CQE_REQ || cqe->opcode == SHIFT_MLX5_CQE_REQ_ERR;
}

static bool cqe_is_recv(const struct shift_mlx5_cqe *cqe)
{
	switch (cqe->opcode) {
	case SHIFT_MLX5_CQE_RECV_WRITE_IMM:
	case SHIFT_MLX5_CQE_RECV:
	case SHIFT_MLX5_CQE_RECV_IMM:
	case SHIFT_MLX5_CQE_RECV_INV:
	case SHIFT_MLX5_CQE_RECV_ERR:
		return true;
	default:
		return false;
	}
}

/* Is the entry of the send queue, or else (@recvs) of the receive queue, of a QP? */
static bool cqe_is_of(const struct shift_mlx5_cqe *cqe, u32 qpn, bool recvs)
{
	return cqe->qpn == qpn && (recvs ? cqe_is_recv(cqe) : cqe_is_send(cqe));
}

static bool cqe_read_of(const struct shift_ring *ring, u32 index, u32 qpn, bool recvs,
			struct shift_mlx5_cqe *cqe)
{
	return cqe_read(ring, index, cqe) && cqe_is_of(cqe, qpn, recvs);
}

/**
 * shift_mlx5_cq_room - entries that the device may write before the application has to poll
 * @ring: of the CQ.
 * @consumer: the application's index.
 * @qpn: a QP.
 * @own: out: entries of that QP that are not polled yet.  Each has a request that still takes a
 *	place in the QP's queues, so that as many fewer can be flushed.
 *
 * Both numbers are of the same moment.  Entries that user space is moving may be counted twice,
 * while as many places are about to become free.
 *
 * Return: @ring->slots or less.
 */
u32 shift_mlx5_cq_room(const struct shift_ring *ring, u32 consumer, u32 qpn, u32 *own)
{
	u32 index, end = cq_producer(ring, consumer);
	struct shift_mlx5_cqe cqe;

	*own = 0;
	for (index = consumer; index != end; index++)
		*own += cqe_read_of(ring, index, qpn, false, &cqe) ||
			cqe_read_of(ring, index, qpn, true, &cqe);
	return ring->slots - (end - consumer);
}

/* Take in an entry that is newer than all before. */
static void cq_found_newer(struct shift_mlx5_found *found, const struct shift_mlx5_cqe *cqe)
{
	bool flush = cqe->status == SHIFT_WC_WR_FLUSH_ERR;

	if (!cqe_is_error(cqe)) {
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

/* Take in an entry that is older than all before, of which none was a success. */
static void cq_found_older(struct shift_mlx5_found *found, const struct shift_mlx5_cqe *cqe)
{
	bool flush = cqe->status == SHIFT_WC_WR_FLUSH_ERR;

	if (!cqe_is_error(cqe)) {
		found->success = true;
		found->last = cqe->wqe_index;
		return;
	}
	/* an entry that was moved at the RESET of another QP is in its old place, too */
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
 * @recvs: the receive queue, else the send queue.
 * @most: number of entries to look at, plus one.
 * @found: the result.
 *
 * The ring may change meanwhile.  The device adds entries if the QP works.  And if another QP with
 * this CQ is reset or destroyed, user space removes the entries of that one which were not polled
 * yet: from the newest to the oldest, it moves the entries of other QPs up, and copies each to its
 * new place before its old place is overwritten.  So this looks from the oldest entry upwards, and
 * one further: an entry is then met in its old place, in its new one or in both, and the last one
 * that is met is the newest.
 */
void shift_mlx5_cq_find(const struct shift_ring *ring, u32 consumer, u32 qpn, bool recvs,
			u32 most, struct shift_mlx5_found *found)
{
	u32 index, end = cq_producer(ring, consumer);
	struct shift_mlx5_cqe cqe;

	memset(found, 0, sizeof(*found));
	most = min(most, ring->slots);
	for (index = end - min(most, end - consumer); index != end + 1; index++)
		if (cqe_read_of(ring, index, qpn, recvs, &cqe))
			cq_found_newer(found, &cqe);
	most -= min(most, end - consumer);
	/* entries that were polled do not move */
	for (index = consumer; most && !found->success; most--)
		if (cqe_read_of(ring, --index, qpn, recvs, &cqe))
			cq_found_older(found, &cqe);
}

/**
 * shift_mlx5_cq_recvs - the completions of receives, of any QP, that were not polled
 * @ring: of the CQ.
 * @consumer: the application's index.
 * @fn: called for each, with the index of its receive, its status, and its QP.
 * @arg: for @fn.
 *
 * From the oldest upwards and one further, as in shift_mlx5_cq_find(): one that user space is
 * moving may be met twice, but is not missed.
 */
void shift_mlx5_cq_recvs(const struct shift_ring *ring, u32 consumer,
			 void (*fn)(void *arg, u64 index, u32 status, u32 qpn), void *arg)
{
	u32 index, end = cq_producer(ring, consumer);
	struct shift_mlx5_cqe cqe;

	for (index = consumer; index != end + 1; index++)
		if (cqe_read(ring, index, &cqe) && cqe_is_recv(&cqe))
			fn(arg, cqe.wqe_index, cqe.status, cqe.qpn);
}
