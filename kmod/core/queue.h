/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's copy of the queues of a QP that is away from its own device. */
#ifndef SHIFT_CORE_QUEUE_H
#define SHIFT_CORE_QUEUE_H

#include <linux/types.h>
#include "pure/wr.h"

struct shift_qp;
struct shift_ring;

/** struct shift_recv - completion of a receive, as in struct ib_wc */
struct shift_recv {
	u32 status, opcode, byte_len, ex, wc_flags;
};

/**
 * struct shift_recvs - receives of a QP that is away from its default NIC
 * @entry: per slot.
 * @raw: kernel copy of the user's ring, slot for slot; NULL: the ring is the kernel's own.
 * @slots: power of two; 0: no receive queue.
 * @most: receives that can be outstanding.
 * @slot_size: bytes of one slot.
 * @tail: oldest receive that the application was not shown.
 * @done: oldest receive without a completion.
 * @post: next receive to post to the proxy QP.
 * @head: next receive to take from the ring.
 *
 * tail <= done <= post <= head, under ledger_lock; slot of sequence s: s % slots.
 */
struct shift_recvs {
	struct shift_recv *entry;
	u8 *raw;
	u32 slots, most, slot_size;
	u64 tail, done, post, head;
};

static inline u32 shift_recv_slot(const struct shift_recvs *r, u64 seq)
{
	return (u32)seq & (r->slots - 1);
}

static inline u8 *shift_recv_raw(const struct shift_recvs *r, u64 seq)
{
	return r->raw + (size_t)((u32)seq & (r->slots - 1)) * r->slot_size;
}

/* queue.c */
int shift_replay_enter(struct shift_qp *sqp, const struct shift_wr *wr);	/* ledger_lock */
int shift_recv_init(struct shift_recvs *r, const struct shift_ring *ring);
void shift_recv_free(struct shift_recvs *r);
void shift_recv_copy(struct shift_qp *sqp, u64 seq);	/* ledger_lock, or sqp->lock */
void shift_recv_capture(struct shift_qp *sqp);		/* sqp->lock; before RESET */
void shift_recv_start(struct shift_qp *sqp, u32 first, u32 count, u32 most); /* ledger_lock */
void shift_recv_rewind(struct shift_qp *sqp);		/* ledger_lock */
bool shift_qp_can_move(const struct shift_qp *sqp, const struct shift_wr *wr);

#endif /* SHIFT_CORE_QUEUE_H */
