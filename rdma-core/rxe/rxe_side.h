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
#ifndef RXE_SIDE_H
#define RXE_SIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <rdma/shift-abi.h>

/* The part of struct shift_abi_wc that struct ib_uverbs_wc also has */
#define RXE_SIDE_WC_SIZE	offsetof(struct shift_abi_wc, reserved2)

struct rxe_side {
	struct shift_abi_side	*ring;		/* NULL: none */
	uint32_t		mask;		/* entries - 1 */
	uint32_t		batch_end;	/* == consumer: no batch */
	uint32_t		cq_ahead;	/* still to go before the batch */
	uint32_t		cq_seen;	/* CQ consumer after the last pick */
};

enum rxe_side_pick {
	RXE_PICK_NONE,
	RXE_PICK_CQ,
	RXE_PICK_SIDE,
};

static inline uint32_t rxe_side_load(const uint32_t *word, memory_order order)
{
	return atomic_load_explicit((const _Atomic(uint32_t) *)word, order);
}

static inline void rxe_side_store(uint32_t *word, uint32_t val,
				  memory_order order)
{
	atomic_store_explicit((_Atomic(uint32_t) *)word, val, order);
}

static inline bool rxe_side_pending(const struct rxe_side *side)
{
	const struct shift_abi_side *ring = side->ring;

	return ring &&
	       rxe_side_load(&ring->producer, memory_order_acquire) !=
	       ring->consumer;
}

/*
 * rxe_side_attach - take over a freshly mapped side ring of len bytes
 * Return: false if it is not what the ABI says, then nothing is attached.
 */
static inline bool rxe_side_attach(struct rxe_side *side,
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
 * rxe_side_pick - which ring has the next completion
 * @cq_prod: the CQ ring's producer index, in shared memory
 * @cq_cons: index of the first completion in the CQ ring that was not shown
 * @cq_mask: the CQ ring's index mask
 *
 * The caller must consume what is picked before it asks again.  It may also
 * consume from the CQ ring without asking, if it asks at least once a lap.
 */
static inline enum rxe_side_pick rxe_side_pick(struct rxe_side *side,
					       const uint32_t *cq_prod,
					       uint32_t cq_cons,
					       uint32_t cq_mask)
{
	struct shift_abi_side *ring = side->ring;
	uint32_t side_prod;
	uint32_t prod;
	uint32_t gone;

	if (ring && side->batch_end == ring->consumer) {
		side_prod = rxe_side_load(&ring->producer,
					  memory_order_acquire);
		if (side_prod != ring->consumer) {
			/* not before the side producer was read */
			prod = rxe_side_load(cq_prod, memory_order_acquire);
			side->batch_end = side_prod;
			side->cq_ahead = (prod - cq_cons) & cq_mask;
			side->cq_seen = cq_cons;
		}
	}

	gone = (cq_cons - side->cq_seen) & cq_mask;
	side->cq_ahead -= gone < side->cq_ahead ? gone : side->cq_ahead;
	side->cq_seen = cq_cons;

	prod = rxe_side_load(cq_prod, memory_order_acquire);

	if (!ring || side->batch_end == ring->consumer)
		return prod == cq_cons ? RXE_PICK_NONE : RXE_PICK_CQ;

	if (!side->cq_ahead || prod == cq_cons) {
		side->cq_ahead = 0;
		return RXE_PICK_SIDE;
	}

	side->cq_ahead--;
	side->cq_seen = (cq_cons + 1) & cq_mask;
	return RXE_PICK_CQ;
}

/* After RXE_PICK_SIDE; wc is a struct ib_uverbs_wc or a struct ibv_wc */
static inline void rxe_side_take(struct rxe_side *side, void *wc)
{
	struct shift_abi_side *ring = side->ring;
	uint32_t cons = ring->consumer;

	memcpy(wc, &ring->wc[cons & side->mask], RXE_SIDE_WC_SIZE);

	/* complete reads from the side ring before moving the index */
	rxe_side_store(&ring->consumer, cons + 1, memory_order_release);
}

/*
 * Clear the flag word once the side ring is empty.  The kernel moves the
 * producer before it sets the flag: an entry that came in between is seen
 * either by the second look or by the flag.
 */
static inline void rxe_side_settle(struct rxe_side *side, uint32_t *flag)
{
	if (!rxe_side_load(flag, memory_order_relaxed) ||
	    rxe_side_pending(side))
		return;

	rxe_side_store(flag, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (rxe_side_pending(side))
		rxe_side_store(flag, SHIFT_CQ_FLAG_SIDE, memory_order_relaxed);
}

#endif /* RXE_SIDE_H */
