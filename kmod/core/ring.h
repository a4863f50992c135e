/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pinned user memory: work and completion rings, and single words.
 *
 * Everything read here is untrusted and may change under the reader: copy
 * first, then look at the copy.  Access is by kmap_local_page(), in any
 * context; pinning in process context of the owner, unpinning in that of anybody.
 */
#ifndef SHIFT_CORE_RING_H
#define SHIFT_CORE_RING_H

#include "pure/pure.h"

struct page;
struct shift_account;

/**
 * struct shift_ring - a ring of a provider, geometry as validated at pin time
 * @pages: pinned pages of [head, slots).
 * @npages: number of pages; 0: not pinned.
 * @account: whose locked memory they are charged to; NULL: nobody's.
 * @slots: power of two.
 * @slot_size: bytes, power of two.
 * @data: offset of slot 0 in the first page.
 */
struct shift_ring {
	struct page **pages;
	unsigned int npages;
	struct shift_account *account;
	u32 slots;
	u32 slot_size;
	u32 data;
};

/** struct shift_word - a pinned, aligned 32-bit word of user memory */
struct shift_word {
	struct page *page;
	u32 offset;
};

int shift_ring_pin_mapping(struct shift_ring *ring, u64 addr, u32 len);
int shift_ring_set_slots(struct shift_ring *ring, u32 data, u32 slots, u32 slot_size, u32 len);
int shift_ring_pin(struct shift_ring *ring, u64 addr, u32 len, u32 slot_size, bool refuse);
int shift_ring_pin_words(struct shift_ring *ring, u64 addr, u32 count, bool refuse);
void shift_ring_unpin(struct shift_ring *ring);
u32 shift_ring_read_u32(const struct shift_ring *ring, u32 offset);	/* acquire */
void shift_ring_write_u32(const struct shift_ring *ring, u32 offset, u32 value); /* release */
u32 shift_ring_slot_u32(const struct shift_ring *ring, u32 index, u32 offset);
void shift_ring_read_slot(const struct shift_ring *ring, u32 index, void *to, u32 len);
void shift_ring_copy_slot(const struct shift_ring *ring, u32 index, void *to);
void shift_ring_copy(const struct shift_ring *ring, void *to);
void shift_ring_write_slot(const struct shift_ring *ring, u32 index, u32 offset,
			   const void *from, u32 len);

int shift_word_pin(struct shift_word *word, u64 addr);
void shift_word_unpin(struct shift_word *word);
u32 shift_word_read(const struct shift_word *word);
u64 shift_word_read64(const struct shift_word *word);
void shift_word_write(const struct shift_word *word, u32 value);
void shift_fence_barrier(void);

#endif /* SHIFT_CORE_RING_H */
