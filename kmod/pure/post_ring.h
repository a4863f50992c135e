/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The record of what a kernel user has posted to a queue of its QP and what is not known to be
 * completed: a copy of each request, in a ring of fixed size.  Pure; the caller serializes.
 *
 * The record never refuses anything.  What does not fit, or does not agree with what completes,
 * makes it lost: it is of no use then, until it is started anew.
 */
#ifndef SHIFT_PURE_POST_RING_H
#define SHIFT_PURE_POST_RING_H

#include "pure/wr.h"

/**
 * struct shift_post - a request, as it begins a slot
 * @wr_id: the user's.
 * @remote_addr: remote address.
 * @compare_add, @swap, @compare_mask, @swap_mask: of atomics; anything else of others.
 * @mr: what is registered: struct ib_mr.
 * @length: bytes in all; set by shift_post_ring_add().
 * @imm: immediate data (network order), or the key to invalidate.
 * @rkey: remote key, or the key that is registered.
 * @access: SHIFT_WR_ACCESS_*, of what is registered.
 * @num_sge: SGEs; with SHIFT_WR_INLINE: pieces of the data.
 * @opcode: SHIFT_WR_*; of no meaning for a receive.
 * @flags: SHIFT_WR_*.  A receive is signaled, as is each send of a QP that signals all.
 *
 * Behind it in the slot are the SGEs, or inline data.
 */
struct shift_post {
	u64 wr_id;
	u64 remote_addr;
	u64 compare_add, swap;
	u64 compare_mask, swap_mask;
	void *mr;
	u32 length;
	u32 imm;
	u32 rkey;
	u32 access;
	u32 num_sge;
	u16 opcode;
	u16 flags;
};

/**
 * struct shift_post_ring - the record of one queue
 * @mem: @slots * @slot_size bytes, aligned for u64.
 * @slots: a power of two; as many requests fit.
 * @slot_size: bytes of one.
 * @mtu: path MTU in bytes; 0: packets are not counted.
 * @psn: of the first packet of the request at @tail; 24 bits.
 * @kept: so many of the newest requests were kept back from the driver.
 * @lost: it is not known what is outstanding.
 * @tail: the oldest request that is outstanding; its slot: @tail % @slots.
 * @head: the next request.
 */
struct shift_post_ring {
	u8 *mem;
	u32 slots, slot_size;
	u32 mtu, psn;
	u32 kept;
	bool lost;
	u64 tail, head;
};

u32 shift_post_slot_size(u32 max_sge, u32 max_inline);
void shift_post_ring_init(struct shift_post_ring *r, void *mem, u32 slots, u32 slot_size);
void shift_post_ring_start(struct shift_post_ring *r);
void shift_post_ring_count(struct shift_post_ring *r, u32 psn, u32 mtu);
int shift_post_ring_add(struct shift_post_ring *r, struct shift_post *post,
			const struct shift_sge *sge);
int shift_post_ring_keep(struct shift_post_ring *r, struct shift_post *post,
			 const struct shift_sge *sge);
int shift_post_ring_done(struct shift_post_ring *r, u64 wr_id);
void shift_post_ring_complete(struct shift_post_ring *r, u32 seq);
int shift_post_decode(const void *slot, u32 slot_size, struct shift_wr *wr);

static inline u8 *shift_post_ring_slot(const struct shift_post_ring *r, u64 seq)
{
	return r->mem + (size_t)((u32)seq & (r->slots - 1)) * r->slot_size;
}

static inline u32 shift_post_ring_outstanding(const struct shift_post_ring *r)
{
	return (u32)(r->head - r->tail);
}

/**
 * shift_post_ring_next() - where the next request is to be written before it is added or kept
 * @r: the record.
 *
 * Return: a slot that holds nothing of value, or NULL: there is no room.
 */
static inline struct shift_post *shift_post_ring_next(const struct shift_post_ring *r)
{
	return shift_post_ring_outstanding(r) < r->slots ?
	       (struct shift_post *)shift_post_ring_slot(r, r->head) : NULL;
}

#endif /* SHIFT_PURE_POST_RING_H */
