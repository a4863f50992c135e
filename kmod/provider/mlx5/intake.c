// SPDX-License-Identifier: GPL-2.0
/* Work that an application posts to an mlx5 QP is copied from the ring into the ledger. */
#include <linux/moduleparam.h>
#include "core/qp.h"
#include "core/ring.h"
#include "provider/mlx5/format.h"
#include "provider/mlx5/mlx5.h"
#include "provider/mlx5/wqe.h"
#include "pure/ledger.h"
#include "pure/wr.h"

u16 *shift_mlx5_index_at(const struct shift_qp *sqp, u64 seq)
{
	lockdep_assert_held(&sqp->ledger_lock);
	return &mlx5_qp(sqp)->at[shift_ledger_slot(&sqp->rec.ledger, seq)];
}

/* The kernel's copy of the send ring, with @producer as the producer's index. */
struct shift_mlx5_sq shift_mlx5_copied(const struct shift_qp *sqp, u16 producer)
{
	return (struct shift_mlx5_sq) {
		.ring = sqp->rec.ledger.raw,
		.blocks = sqp->rec.ledger.slots / 2,
		.producer = producer,
		.qpn = sqp->qpn,
	};
}

void shift_mlx5_copy_block(struct shift_qp *sqp, u16 index)
{
	u32 block = index & (sqp->rings.pins.sq.slots - 1);

	shift_ring_copy_slot(&sqp->rings.pins.sq, block,
			     sqp->rec.ledger.raw + (size_t)block * SHIFT_MLX5_BLOCK);
}

/* Number of blocks of a WQE whose first block was copied; at least 1. */
static u32 blocks_of(const struct shift_qp *sqp, u16 index)
{
	u32 block = index & (sqp->rings.pins.sq.slots - 1);
	struct shift_mlx5_ctrl ctrl;

	memcpy(&ctrl, sqp->rec.ledger.raw + (size_t)block * SHIFT_MLX5_BLOCK, sizeof(ctrl));
	return clamp_t(u32, DIV_ROUND_UP((be32_to_cpu(ctrl.qpn_chunks) & 0xff) * SHIFT_MLX5_CHUNK,
					 SHIFT_MLX5_BLOCK), 1, SHIFT_MLX5_MAX_BLOCKS);
}

/*
 * The size of a malformed WQE is not known, so that nothing can be found behind it.  It becomes one
 * operation with all that was posted by then.
 */
int shift_mlx5_take(struct shift_qp *sqp, struct shift_wr *wr)
{
	u16 i, index = *shift_mlx5_index_at(sqp, sqp->rec.ledger.head);
	struct shift_mlx5_wqe *wqe = &mlx5_qp(sqp)->wqe;
	u16 producer = shift_mlx5_counter(sqp, SHIFT_MLX5_SQ_COUNTER);
	u16 posted = producer - index;
	enum shift_mlx5_refusal why;
	struct shift_mlx5_sq sq;
	u32 blocks;

	if (!posted) {
		mlx5_qp(sqp)->anchor = shift_word_read64(mlx5_word(sqp, SHIFT_MLX5_ANCHOR));
		return 0;
	}
	shift_mlx5_copy_block(sqp, index);
	blocks = min_t(u32, blocks_of(sqp, index), posted);
	for (i = 1; i < blocks; i++)
		shift_mlx5_copy_block(sqp, index + i);
	sq = shift_mlx5_copied(sqp, producer);
	why = shift_mlx5_decode(&sq, index, wqe);
	*shift_mlx5_index_at(sqp, sqp->rec.ledger.head + 1) = index + (wqe->blocks ?: posted);
	if (why)
		return shift_mlx5_refusal_errno(why);
	*wr = wqe->wr;
	return 1;
}
