/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Merging the two sources of completions of one CQ: its own ring, and the side
 * ring in which the kernel module puts completions of replayed work.
 *
 * Whatever was in the CQ ring before a side entry must be shown before it, and
 * a busy CQ ring must not starve the side ring.  So at first sight of side
 * entries those that are there become a batch, and the completions that lie in
 * the CQ ring at that moment are counted; these go first, then the batch.
 *
 * No I/O and no libibverbs here: selftests/unit/test_side_ring.c runs this file
 * in user space.  All of it runs under the CQ's lock.
 */
#ifndef SHIFT_SIDE_H
#define SHIFT_SIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <rdma/shift-abi.h>

/* The part of struct shift_abi_wc that struct ib_uverbs_wc also has */
#define SHIFT_SIDE_WC_SIZE	offsetof(struct shift_abi_wc, reserved2)

struct shift_side {
	struct shift_abi_side	*ring;		/* NULL: none */
	uint32_t		mask;		/* entries - 1 */
	uint32_t		batch_end;	/* == consumer: no batch */
	uint32_t		cq_ahead;	/* still to go before the batch */
	uint32_t		cq_seen;	/* CQ consumer after the last pick */
};

enum shift_side_pick {
	SHIFT_PICK_NONE,
	SHIFT_PICK_CQ,
	SHIFT_PICK_SIDE,
};

static inline uint32_t shift_side_load(const uint32_t *word, memory_order order)
{
	return atomic_load_explicit((const _Atomic(uint32_t) *)word, order);
}

static inline void shift_side_store(uint32_t *word, uint32_t val,
				  memory_order order)
{
	atomic_store_explicit((_Atomic(uint32_t) *)word, val, order);
}

static inline bool shift_side_pending(const struct shift_side *side)
{
	const struct shift_abi_side *ring = side->ring;

	return ring &&
	       shift_side_load(&ring->producer, memory_order_acquire) !=
	       ring->consumer;
}

/*
 * shift_side_attach - take over a freshly mapped side ring of len bytes
 * Return: false if it is not what the ABI says, then nothing is attached.
 */
static inline bool shift_side_attach(struct shift_side *side,
				   struct shift_abi_side *ring, size_t len)
{
	uint32_t entries;

	if (len < sizeof(*ring))
		return false;

	entries = ring->entries;
	if (!entries || entries & (entries - 1) ||
	    (len - sizeof(*ring)) / sizeof(ring->wc[0]) < entries)
		return false;

	side->mask = entries - 1;
	side->batch_end = ring->consumer;
	side->cq_ahead = 0;
	side->ring = ring;
	return true;
}

/*
 * shift_side_sight - did entries come? Then they are a batch from now on
 *
 * If so, shift_side_follow() with what lies in the CQ ring: looked up afterwards.
 */
static inline bool shift_side_sight(struct shift_side *side)
{
	struct shift_abi_side *ring = side->ring;

	if (!ring || side->batch_end != ring->consumer)
		return false;
	side->batch_end = shift_side_load(&ring->producer, memory_order_acquire);
	return side->batch_end != ring->consumer;
}

static inline void shift_side_follow(struct shift_side *side, uint32_t cq_cons,
				     uint32_t cq_ahead)
{
	side->cq_ahead = cq_ahead;
	side->cq_seen = cq_cons;
}

/*
 * shift_side_next - which ring has the next completion
 * @cq_empty: the CQ ring is
 * @cq_cons: index of the first completion in the CQ ring that was not shown
 * @cq_mask: the CQ ring's index mask
 *
 * The caller must consume what is picked before it asks again.  It may also
 * consume from the CQ ring without asking, if it asks at least once a lap.
 */
static inline enum shift_side_pick shift_side_next(struct shift_side *side,
						   bool cq_empty,
						   uint32_t cq_cons,
						   uint32_t cq_mask)
{
	struct shift_abi_side *ring = side->ring;
	uint32_t gone;

	gone = (cq_cons - side->cq_seen) & cq_mask;
	side->cq_ahead -= gone < side->cq_ahead ? gone : side->cq_ahead;
	side->cq_seen = cq_cons;

	if (!ring || side->batch_end == ring->consumer)
		return cq_empty ? SHIFT_PICK_NONE : SHIFT_PICK_CQ;

	if (!side->cq_ahead || cq_empty) {
		side->cq_ahead = 0;
		return SHIFT_PICK_SIDE;
	}

	side->cq_ahead--;
	side->cq_seen = (cq_cons + 1) & cq_mask;
	return SHIFT_PICK_CQ;
}

/* Of those that lie in the CQ ring, how many go before what is in the side ring? */
static inline uint32_t shift_side_ahead(const struct shift_side *side, uint32_t cq_cons,
					uint32_t cq_all)
{
	uint32_t gone = cq_cons - side->cq_seen;

	if (!side->ring || side->batch_end == side->ring->consumer)
		return cq_all;
	return gone < side->cq_ahead ? side->cq_ahead - gone : 0;
}

/*
 * Entries are taken out of a CQ ring whose indices run freely, those before them moved up:
 * freed of them, of which ahead went before the batch
 */
static inline bool shift_side_is_ahead(const struct shift_side *side, uint32_t cq_index)
{
	return (int32_t)(cq_index - side->cq_seen - side->cq_ahead) < 0;
}

static inline void shift_side_removed(struct shift_side *side, uint32_t freed, uint32_t ahead)
{
	side->cq_seen += freed;
	side->cq_ahead -= ahead < side->cq_ahead ? ahead : side->cq_ahead;
}

/* The same for a CQ ring that has a producer index, in shared memory */
static inline enum shift_side_pick shift_side_pick(struct shift_side *side,
						   const uint32_t *cq_prod,
						   uint32_t cq_cons,
						   uint32_t cq_mask)
{
	uint32_t prod;

	if (shift_side_sight(side)) {
		prod = shift_side_load(cq_prod, memory_order_acquire);
		shift_side_follow(side, cq_cons, (prod - cq_cons) & cq_mask);
	}
	prod = shift_side_load(cq_prod, memory_order_acquire);
	return shift_side_next(side, prod == cq_cons, cq_cons, cq_mask);
}

/* After SHIFT_PICK_SIDE; wc is a struct ib_uverbs_wc or a struct ibv_wc */
static inline void shift_side_take(struct shift_side *side, void *wc)
{
	struct shift_abi_side *ring = side->ring;
	uint32_t cons = ring->consumer;

	memcpy(wc, &ring->wc[cons & side->mask], SHIFT_SIDE_WC_SIZE);

	/* complete reads from the side ring before moving the index */
	shift_side_store(&ring->consumer, cons + 1, memory_order_release);
}

/*
 * Clear the flag word once the side ring is empty.  The kernel moves the
 * producer before it sets the flag: an entry that came in between is seen
 * either by the second look or by the flag.
 */
static inline void shift_side_settle(struct shift_side *side, uint32_t *flag)
{
	if (!shift_side_load(flag, memory_order_relaxed) ||
	    shift_side_pending(side))
		return;

	shift_side_store(flag, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (shift_side_pending(side))
		shift_side_store(flag, SHIFT_CQ_FLAG_SIDE, memory_order_relaxed);
}

#endif /* SHIFT_SIDE_H */
