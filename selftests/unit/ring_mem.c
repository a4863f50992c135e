// SPDX-License-Identifier: GPL-2.0
/* See ring_mem.h; reading is all that the pure parts do. */
#include "ring_mem.h"

struct ring_mem ring_mem;

static const u8 *slot(const struct shift_ring *ring, u32 index)
{
	return ring_mem.bytes + (size_t)(index & (ring->slots - 1)) * ring->slot_size;
}

static void meanwhile(void)
{
	if (ring_mem.meanwhile)
		ring_mem.meanwhile();
}

u32 shift_ring_slot_u32(const struct shift_ring *ring, u32 index, u32 offset)
{
	u32 value;

	ring_mem.words++;
	meanwhile();
	memcpy(&value, slot(ring, index) + offset, sizeof(value));
	return value;
}

/* In pieces that others write in one; nobody promises that the first is the first. */
void shift_ring_copy_slot(const struct shift_ring *ring, u32 index, void *to)
{
	const u8 *from = slot(ring, index);
	u32 at = ring->slot_size;

	ring_mem.copies++;
	while (at) {
		at -= sizeof(u64);
		meanwhile();
		memcpy(to + at, from + at, sizeof(u64));
	}
}
