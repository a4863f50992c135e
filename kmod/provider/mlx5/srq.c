// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues of mlx5, and the completions in their CQs: Documentation/internals/srq.md.
 *
 * What a ring has once had cannot be taken back: the device reads it at any time, and no command
 * empties it.  So the kernel leaves it as it is, until a QP has emptied it (drain.c).  From then on
 * only the kernel posts there.  It chooses the WQEs: any that no completion can name.
 */
#include <linux/log2.h>
#include "core/object.h"
#include "core/ring.h"
#include "core/srq.h"
#include "provider/mlx5/cq.h"
#include "provider/mlx5/mlx5.h"
#include "provider/mlx5/wqe.h"
#include "pure/wr.h"

#define LOOKS	64	/* at WQEs, for each receive that is lent */

/* As many WQEs as the driver's ring has. */
static int mlx5_srq_pin(const struct shift_srq *ssrq, struct shift_srq_rings *rings,
			const struct shift_abi_reg_srq *reg)
{
	u32 slots = ssrq->max_wr + 1;
	int err;

	/* a provider that cannot empty the ring would leave applications worse off */
	if (!reg->db_addr)
		return -EOPNOTSUPP;
	if (!is_power_of_2(slots) || slots > SHIFT_MLX5_MAX_RING || !reg->slot ||
	    reg->slot > SHIFT_MLX5_MAX_SLOT || reg->slot < SHIFT_MLX5_SRQ_SLOT(ssrq->max_sge) ||
	    reg->ring.len != (u64)slots * reg->slot)
		return -EINVAL;
	err = shift_ring_pin(&rings->ring, reg->ring.addr, reg->ring.len, reg->slot, true);
	return err ?: shift_word_pin(&rings->db, reg->db_addr);
}

static void mlx5_cq_unpolled(const struct shift_cq *scq, shift_cqe_fn *fn, void *arg)
{
	u32 consumer = shift_mlx5_consumer(scq);

	/* what was polled before that is free in the table, or is another receive by now */
	smp_rmb();
	shift_mlx5_cq_recvs(&scq->pins.ring, consumer, fn, arg);
}

static bool is_in_use(const struct shift_srq *ssrq, u32 recv_id)
{
	return READ_ONCE(shift_srq_entry(ssrq, recv_id)->recv_id) == recv_id;
}

/*
 * May it be written?  Not if the device has it, or a completion that was not polled names it.  Then
 * its receive is in use, and was not taken over.
 */
static bool wqe_is_free(const struct shift_srq *ssrq, u16 wqe)
{
	u32 recv_id = ssrq->rec.lent.ids[wqe];
	u32 entry = recv_id ? recv_id & SHIFT_RECV_ID_INDEX : wqe;

	return ssrq->rec.recv[entry].state != SHIFT_SRQ_RECV_FREE ||
	       !(recv_id ? is_in_use(ssrq, recv_id) :
			   READ_ONCE(shift_srq_entry(ssrq, entry)->recv_id));
}

/* How many WQEs are looked at, to find one that may be written. */
static u32 looks(struct shift_srq *ssrq, u32 posted)
{
	struct shift_srq_lent *lent = &ssrq->rec.lent;

	/* an empty ring is worth a look at all of them, once for all that was posted meanwhile */
	if (posted || lent->looked == ssrq->rec.seen + 1)
		return LOOKS;
	lent->looked = ssrq->rec.seen + 1;
	return ssrq->rings.ring.slots;
}

/*
 * One that may be written, but for the one that is written next; that one: none was found.  They
 * are looked at in turn: where this look ends the next one goes on.
 */
static u16 next_free(struct shift_srq *ssrq, u32 posted)
{
	struct shift_srq_lent *lent = &ssrq->rec.lent;
	u32 left, mask = ssrq->rings.ring.slots - 1;

	for (left = looks(ssrq, posted); left; left--) {
		lent->look = (lent->look + 1) & mask;
		if (lent->look != lent->wqe && wqe_is_free(ssrq, lent->look))
			return lent->look;
	}
	return lent->wqe;
}

static void note_wqe(struct shift_srq *ssrq, u16 wqe, u32 recv_id)
{
	u32 *theirs = ssrq->rings.table + ssrq->rings.wqe_offset;

	ssrq->rec.lent.ids[wqe] = recv_id;
	WRITE_ONCE(theirs[wqe], recv_id);
}

/* Those that are complete and polled are counted off, in the order in which they were posted. */
static u32 mlx5_srq_posted(struct shift_srq *ssrq)
{
	struct shift_srq_lent *lent = &ssrq->rec.lent;
	u32 mask = ssrq->rings.ring.slots - 1;

	lockdep_assert_held(&ssrq->post_lock);
	while (lent->tail != lent->head &&
	       !is_in_use(ssrq, lent->ids[lent->order[lent->tail & mask]]))
		lent->tail++;
	return lent->head - lent->tail;
}

/* The WQE that the device takes next names the one behind it, which has to be known by now. */
static int mlx5_srq_post(struct shift_srq *ssrq, u64 wr_id, const struct shift_sge *sge,
			 u32 num_sge)
{
	const struct shift_ring *ring = &ssrq->rings.ring;
	u8 bytes[SHIFT_MLX5_SRQ_SLOT(SHIFT_WR_MAX_SGE + 1)];
	struct shift_srq_lent *lent = &ssrq->rec.lent;
	u32 len, posted = mlx5_srq_posted(ssrq);
	u16 next, wqe = lent->wqe;

	lockdep_assert_held(&ssrq->post_lock);
	if (posted >= ring->slots - 1)
		return -ENOSPC;
	next = next_free(ssrq, posted);
	len = shift_mlx5_encode_srq(bytes, min_t(u32, sizeof(bytes), ring->slot_size), next, sge,
				    num_sge);
	if (!len || next == wqe)
		return -ENOSPC;
	note_wqe(ssrq, wqe, wr_id);
	lent->order[lent->head++ & (ring->slots - 1)] = wqe;
	lent->wqe = next;
	shift_ring_write_slot(ring, wqe, 0, bytes, len);
	/* before the device is told of it */
	dma_wmb();
	shift_word_write(&ssrq->rings.db, (__force u32)cpu_to_be32(++lent->counter));
	return 0;
}

const struct shift_srq_ops shift_mlx5_srq_ops = {
	.by_entry = true,
	.protects_if = SHIFT_MLX5_PROTECTS_SRQ_IF,
	.pin = mlx5_srq_pin,
	.unpolled = mlx5_cq_unpolled,
	.drain = shift_mlx5_drain,
	.post = mlx5_srq_post,
	.posted = mlx5_srq_posted,
};
