// SPDX-License-Identifier: GPL-2.0
/* The head of rxe's rings.  The application has it mapped and may write anything there. */
#include <linux/cache.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <rdma/rdma_user_rxe.h>
#include "core/ring.h"
#include "provider/rxe/ring.h"

static int ring_check(struct shift_ring *ring, u32 len)
{
	u32 log2 = shift_ring_read_u32(ring, offsetof(struct rxe_queue_buf, log2_elem_size));
	u32 mask = shift_ring_read_u32(ring, offsetof(struct rxe_queue_buf, index_mask));

	if (log2 >= 32)
		return -EINVAL;
	return shift_ring_set_slots(ring, sizeof(struct rxe_queue_buf), mask + 1, 1u << log2, len);
}

/**
 * shift_rxe_ring_pin - pin a ring that rxe made and the caller has mapped
 * @ring: filled on success.
 * @addr: first byte of the mapping, page aligned.
 * @len: bytes of the mapping.
 * @entries: how many entries the object was made for.
 * @size: bytes of an entry.
 *
 * rxe rounds both up, and one slot stays free.  A ring that is larger is none of rxe's, and nobody
 * would be charged for the memory that the kernel takes for it.
 *
 * Context: process context of the owner; takes mmap_lock.
 * Return: 0, -EINVAL (address or geometry), -EFAULT (not mapped), -ENOMEM.
 */
int shift_rxe_ring_pin(struct shift_ring *ring, u64 addr, u32 len, u32 entries, u32 size)
{
	u64 slots = roundup_pow_of_two((u64)entries + 1);
	int err;

	size = roundup_pow_of_two(max_t(u32, size, SMP_CACHE_BYTES));
	if (len < sizeof(struct rxe_queue_buf) ||
	    len > PAGE_ALIGN(sizeof(struct rxe_queue_buf) + slots * size))
		return -EINVAL;
	err = shift_ring_pin_mapping(ring, addr, len);
	if (err)
		return err;
	err = ring_check(ring, len);
	if (!err && (ring->slots > slots || ring->slot_size > size))
		err = -EINVAL;
	if (err)
		shift_ring_unpin(ring);
	return err;
}

u32 shift_rxe_producer(const struct shift_ring *ring)
{
	return shift_ring_read_u32(ring, offsetof(struct rxe_queue_buf, producer_index)) &
	       (ring->slots - 1);
}

u32 shift_rxe_consumer(const struct shift_ring *ring)
{
	return shift_ring_read_u32(ring, offsetof(struct rxe_queue_buf, consumer_index)) &
	       (ring->slots - 1);
}

void shift_rxe_set_producer(const struct shift_ring *ring, u32 index)
{
	shift_ring_write_u32(ring, offsetof(struct rxe_queue_buf, producer_index),
			     index & (ring->slots - 1));
}

void shift_rxe_set_consumer(const struct shift_ring *ring, u32 index)
{
	shift_ring_write_u32(ring, offsetof(struct rxe_queue_buf, consumer_index),
			     index & (ring->slots - 1));
}
