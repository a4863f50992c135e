/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of the mlx5 provider: Documentation/internals/mlx5.md. */
#ifndef SHIFT_PROVIDER_MLX5_MLX5_H
#define SHIFT_PROVIDER_MLX5_MLX5_H

#include "core/provider.h"
#include "provider/provider.h"
#include "provider/mlx5/cq.h"
#include "provider/mlx5/rewind.h"

/**
 * struct shift_mlx5_qp - what the ledger of an mlx5 QP needs beside itself
 * @wqe: the WQE that was decoded last.
 * @at: index of the WQE of each entry, by ledger slot; for the ledger's head: the index at which
 *	the next WQE will be.
 * @anchor: the anchor word when all that was posted had been taken in last.
 * @sends_again: after a handback: the provider's word SQ_TAIL may still be from before it.
 * @recvs_again: after a handback: the provider's word RQ_TAIL may still be from before it.
 * @number: number of sends that were posted before the handback.
 * @flush_send: entries of its send CQ that are reserved for its fence.
 * @flush_recv: entries of its receive CQ that are reserved for its fence, if it is another CQ.
 * @heads: before there is a ledger, this memory is a copy of the provider's numbers of sends: one
 *	word for each two slots.
 *
 * All under ledger_lock, or sqp->lock while there is no ledger.
 */
struct shift_mlx5_qp {
	struct shift_mlx5_wqe wqe;
	u64 anchor;
	bool sends_again, recvs_again;
	u32 number;
	u32 flush_send, flush_recv;
	union {
		DECLARE_FLEX_ARRAY(u16, at);
		DECLARE_FLEX_ARRAY(u32, heads);
	};
};

/* Words of struct shift_qp_pins that user space writes.  Its ring @more: numbers of the sends. */
enum {
	SHIFT_MLX5_SQ_COUNTER,		/* doorbell record */
	SHIFT_MLX5_RQ_COUNTER,
	SHIFT_MLX5_ANCHOR,		/* see SHIFT_MLX5_ANCHOR_INDEX() */
	SHIFT_MLX5_SQ_TAIL,		/* sends that were polled */
	SHIFT_MLX5_RQ_TAIL,
};

static_assert(SHIFT_MLX5_RQ_TAIL < SHIFT_PIN_WORDS);

/**
 * struct shift_mlx5_cq_state - what is kept of a CQ that was registered
 * @fired: 1 + the arm word for which an event was raised last; scq->lock.
 * @lock: protects @reserved; inside ring_sem.
 * @reserved: entries that are reserved for what the kernel makes the device complete (room.c).
 */
struct shift_mlx5_cq_state {
	u64 fired;
	struct mutex lock;
	u32 reserved;
};

static inline struct shift_mlx5_qp *mlx5_qp(const struct shift_qp *sqp)
{
	return sqp->rings.priv;
}

static inline const struct shift_word *mlx5_word(const struct shift_qp *sqp, int i)
{
	return &sqp->rings.pins.word[i];
}

/* Doorbell records. */
static inline u16 shift_mlx5_counter(const struct shift_qp *sqp, int i)
{
	return be32_to_cpu((__force __be32)shift_word_read(mlx5_word(sqp, i)));
}

/* The consumer's index of a CQ.  Caller holds ring_sem or scq->lock, so that it stays pinned. */
static inline u32 shift_mlx5_consumer(const struct shift_cq *scq)
{
	lockdep_assert(lockdep_is_held(&scq->sdev->ring_sem) || lockdep_is_held(&scq->lock));
	return be32_to_cpu((__force __be32)shift_word_read(&scq->pins.word)) & SHIFT_MLX5_CI_MASK;
}

/* fence.c */
int shift_mlx5_fence(struct shift_qp *sqp, bool *errored);
int shift_mlx5_movable(struct shift_qp *sqp);
bool shift_mlx5_holds_flushes(struct shift_qp *sqp);
bool shift_mlx5_still(struct shift_qp *sqp, u32 *done);

/*
 * What a device has to do, by the numbers of mlx5.md: for a failover, for a handback, and for QPs
 * on SRQs.  These are the assumptions that kernel QPs can try, and what a register tells.
 */
#define SHIFT_MLX5_PROTECTS_IF	(SHIFT_CLAIM(1) | SHIFT_CLAIM(2) | SHIFT_CLAIM(3) | \
				 SHIFT_CLAIM(4) | SHIFT_CLAIM(5) | SHIFT_CLAIM(7) | \
				 SHIFT_CLAIM(10) | SHIFT_CLAIM(11) | SHIFT_CLAIM(20))
#define SHIFT_MLX5_HANDS_BACK_IF	SHIFT_CLAIM(16)
#define SHIFT_MLX5_PROTECTS_SRQ_IF	(SHIFT_CLAIM(17) | SHIFT_CLAIM(18) | SHIFT_CLAIM(21))

/* trial.c */
int shift_mlx5_prove(struct ib_device *ibdev, u32 *held, u32 *failed);

/* room.c */
bool shift_mlx5_reserve(const struct shift_qp *sqp, struct shift_cq *scq, u64 most, u32 *reserved);
u32 shift_mlx5_reserve_part(const struct shift_qp *sqp);
void shift_mlx5_unreserve(struct shift_cq *scq, u32 reserved);

/* drain.c */
int shift_mlx5_drain(struct shift_qp *sqp);

/* srq.c */
extern const struct shift_srq_ops shift_mlx5_srq_ops;

/* provider.c */
extern const struct shift_provider shift_provider_mlx5;

/* intake.c */
u16 *shift_mlx5_index_at(const struct shift_qp *sqp, u64 seq);	/* ledger_lock */
struct shift_mlx5_sq shift_mlx5_copied(const struct shift_qp *sqp, u16 producer);
void shift_mlx5_copy_block(struct shift_qp *sqp, u16 index);
int shift_mlx5_take(struct shift_qp *sqp, struct shift_wr *wr);

#endif /* SHIFT_PROVIDER_MLX5_MLX5_H */
