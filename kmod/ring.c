// SPDX-License-Identifier: GPL-2.0
/* Pinned rings and words of user memory: see ring.h for the rules. */

#include <linux/highmem.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <rdma/rdma_user_rxe.h>
#include "account.h"
#include "ring.h"

#define SHIFT_RING_MAX_BYTES	(64u << 20)
#define SHIFT_RING_MAX_SLOT	8192u
#define SHIFT_RING_MAX_SLOTS	(1u << 20)

/* One 32-bit word at byte @offset of the pinned range; offsets are aligned. */
static u32 ring_read_u32(const struct shift_ring *ring, u32 offset)
{
	u8 *base = kmap_local_page(ring->pages[offset >> PAGE_SHIFT]);
	/* what the index covers was written before it */
	u32 value = smp_load_acquire((u32 *)(base + offset_in_page(offset)));

	kunmap_local(base);
	return value;
}

static void ring_copy(const struct shift_ring *ring, u32 offset, void *to,
		      const void *from, u32 len)
{
	while (len) {
		u32 part = min_t(u32, len, PAGE_SIZE - offset_in_page(offset));
		u8 *base = kmap_local_page(ring->pages[offset >> PAGE_SHIFT]);

		if (to) {
			memcpy(to, base + offset_in_page(offset), part);
			to += part;
		} else {
			memcpy(base + offset_in_page(offset), from, part);
			from += part;
		}
		kunmap_local(base);
		offset += part;
		len -= part;
	}
}

static int ring_check_rxe(struct shift_ring *ring, u32 len)
{
	u32 log2 = ring_read_u32(ring, offsetof(struct rxe_queue_buf, log2_elem_size));
	u32 mask = ring_read_u32(ring, offsetof(struct rxe_queue_buf, index_mask));

	if (log2 < 4 || log2 > ilog2(SHIFT_RING_MAX_SLOT))
		return -EINVAL;
	if (mask >= SHIFT_RING_MAX_SLOTS || !is_power_of_2(mask + 1))
		return -EINVAL;
	ring->slot_size = 1u << log2;
	ring->slots = mask + 1;
	ring->data = sizeof(struct rxe_queue_buf);
	if ((u64)ring->data + (u64)ring->slots * ring->slot_size > len)
		return -EINVAL;
	return 0;
}

static bool range_ok(u64 addr, u32 len)
{
	return addr && len && len <= SHIFT_RING_MAX_BYTES && addr + len >= addr;
}

static unsigned int pages_of(u64 addr, u32 len)
{
	return DIV_ROUND_UP(offset_in_page(addr) + len, PAGE_SIZE);
}

static int pin_pages(struct shift_ring *ring, u64 addr, u32 len)
{
	unsigned int n = pages_of(addr, len);
	int got, err;

	memset(ring, 0, sizeof(*ring));
	ring->pages = kvcalloc(n, sizeof(*ring->pages), GFP_KERNEL);
	if (!ring->pages)
		return -ENOMEM;
	got = pin_user_pages_fast(addr & PAGE_MASK, n, FOLL_WRITE | FOLL_LONGTERM, ring->pages);
	if (got < 0) {
		err = got;
		goto err_free;
	}
	ring->npages = got;
	if (got != n) {
		unpin_user_pages(ring->pages, got);
		err = -EFAULT;
		goto err_free;
	}
	return 0;

err_free:
	kvfree(ring->pages);
	memset(ring, 0, sizeof(*ring));
	return err;
}

/* The same of the caller's own memory, which begins with slot 0, charged to it. */
static int pin_charged(struct shift_ring *ring, u64 addr, u32 len, bool refuse)
{
	struct shift_account *account;
	int err;

	err = shift_account_charge(pages_of(addr, len), refuse, &account);
	if (err)
		return err;
	err = pin_pages(ring, addr, len);
	if (err) {
		shift_account_uncharge(account, pages_of(addr, len));
		return err;
	}
	ring->account = account;
	ring->data = offset_in_page(addr);
	return 0;
}

/**
 * shift_ring_pin_rxe - pin a ring that rxe made and the caller has mapped
 * @ring: filled on success.
 * @addr: first byte of the mapping, page aligned.
 * @len: bytes of the mapping.
 *
 * It is the driver's memory: nothing is charged to the caller.
 *
 * Context: process context of the owner; takes mmap_lock.
 * Return: 0, -EINVAL (address or geometry), -EFAULT (not mapped), -ENOMEM.
 */
int shift_ring_pin_rxe(struct shift_ring *ring, u64 addr, u32 len)
{
	int err;

	if (offset_in_page(addr) || len < sizeof(struct rxe_queue_buf) || !range_ok(addr, len))
		return -EINVAL;
	err = pin_pages(ring, addr, len);
	if (err)
		return err;
	err = ring_check_rxe(ring, len);
	if (err)
		shift_ring_unpin(ring);
	return err;
}

/**
 * shift_ring_pin - pin a ring that is slots and nothing else
 * @ring: filled on success.
 * @addr: first slot, 64-byte aligned.
 * @len: bytes, a multiple of @slot_size.
 * @slot_size: bytes, a power of two.
 * @refuse: if it is more than the caller may lock.
 *
 * It is the caller's memory, and charged to it.
 *
 * Context: process context of the owner; takes mmap_lock.
 * Return: 0, -EINVAL (address or geometry), -EFAULT (not mapped), -ENOMEM.
 */
int shift_ring_pin(struct shift_ring *ring, u64 addr, u32 len, u32 slot_size, bool refuse)
{
	int err;

	if (!range_ok(addr, len) || addr & 63 ||
	    slot_size < 16 || slot_size > SHIFT_RING_MAX_SLOT ||
	    !is_power_of_2(slot_size) || len % slot_size || !is_power_of_2(len / slot_size) ||
	    len / slot_size > SHIFT_RING_MAX_SLOTS)
		return -EINVAL;
	err = pin_charged(ring, addr, len, refuse);
	if (err)
		return err;
	ring->slots = len / slot_size;
	ring->slot_size = slot_size;
	return 0;
}

/**
 * shift_ring_pin_words - pin an array of aligned 32-bit words, as a ring of them
 * @ring: filled on success.
 * @addr: the first of them.
 * @count: their number, a power of two.
 * @refuse: if it is more than the caller may lock.
 *
 * It is the caller's memory, and charged to it.
 *
 * Context: process context of the owner; takes mmap_lock.
 * Return: as shift_ring_pin().
 */
int shift_ring_pin_words(struct shift_ring *ring, u64 addr, u32 count, bool refuse)
{
	int err;

	if (count > SHIFT_RING_MAX_SLOTS || !is_power_of_2(count) || addr & 3 ||
	    !range_ok(addr, count * sizeof(u32)))
		return -EINVAL;
	err = pin_charged(ring, addr, count * sizeof(u32), refuse);
	if (err)
		return err;
	ring->slots = count;
	ring->slot_size = sizeof(u32);
	return 0;
}

/* Process context, any process; a ring that is not pinned is fine. */
void shift_ring_unpin(struct shift_ring *ring)
{
	if (!ring->npages)
		return;
	unpin_user_pages_dirty_lock(ring->pages, ring->npages, true);
	kvfree(ring->pages);
	if (ring->account)
		shift_account_uncharge(ring->account, ring->npages);
	memset(ring, 0, sizeof(*ring));
}

u32 shift_ring_producer(const struct shift_ring *ring)
{
	return ring_read_u32(ring, offsetof(struct rxe_queue_buf, producer_index)) &
	       (ring->slots - 1);
}

u32 shift_ring_consumer(const struct shift_ring *ring)
{
	return ring_read_u32(ring, offsetof(struct rxe_queue_buf, consumer_index)) &
	       (ring->slots - 1);
}

static void set_index(const struct shift_ring *ring, u32 offset, u32 index)
{
	u8 *base = kmap_local_page(ring->pages[offset >> PAGE_SHIFT]);

	/* the slots were read before they are free */
	smp_store_release((u32 *)(base + offset_in_page(offset)),
			  index & (ring->slots - 1));
	kunmap_local(base);
}

void shift_ring_set_consumer(const struct shift_ring *ring, u32 index)
{
	set_index(ring, offsetof(struct rxe_queue_buf, consumer_index), index);
}

void shift_ring_set_producer(const struct shift_ring *ring, u32 index)
{
	set_index(ring, offsetof(struct rxe_queue_buf, producer_index), index);
}

/* one aligned word of a slot; @offset lies in it */
u32 shift_ring_slot_u32(const struct shift_ring *ring, u32 index, u32 offset)
{
	index &= ring->slots - 1;
	return ring_read_u32(ring, ring->data + index * ring->slot_size + offset);
}

/* the first @len bytes of a slot, not more than it has */
void shift_ring_read_slot(const struct shift_ring *ring, u32 index, void *to, u32 len)
{
	index &= ring->slots - 1;
	ring_copy(ring, ring->data + index * ring->slot_size, to, NULL,
		  min(len, ring->slot_size));
}

void shift_ring_copy_slot(const struct shift_ring *ring, u32 index, void *to)
{
	shift_ring_read_slot(ring, index, to, ring->slot_size);
}

/* all of them */
void shift_ring_copy(const struct shift_ring *ring, void *to)
{
	ring_copy(ring, ring->data, to, NULL, ring->slots * ring->slot_size);
}

void shift_ring_write_slot(const struct shift_ring *ring, u32 index, u32 offset,
			   const void *from, u32 len)
{
	index &= ring->slots - 1;
	if (WARN_ON_ONCE(offset + len > ring->slot_size))
		return;
	ring_copy(ring, ring->data + index * ring->slot_size + offset, NULL, from, len);
}

/**
 * shift_word_pin - pin one aligned 32-bit word of the caller's memory
 * @word: filled on success.
 * @addr: its address.
 *
 * Context: process context of the owner; takes mmap_lock.
 * Return: 0, -EINVAL (misaligned), -EFAULT.
 */
int shift_word_pin(struct shift_word *word, u64 addr)
{
	struct page *page;
	int got;

	if (!addr || addr & 3)
		return -EINVAL;
	got = pin_user_pages_fast(addr & PAGE_MASK, 1, FOLL_WRITE | FOLL_LONGTERM, &page);
	if (got != 1)
		return got < 0 ? got : -EFAULT;
	word->page = page;
	word->offset = offset_in_page(addr);
	return 0;
}

void shift_word_unpin(struct shift_word *word)
{
	if (!word->page)
		return;
	unpin_user_pages_dirty_lock(&word->page, 1, true);
	word->page = NULL;
}

u32 shift_word_read(const struct shift_word *word)
{
	u8 *base = kmap_local_page(word->page);
	/* a lock word: what was done under the lock is seen */
	u32 value = smp_load_acquire((u32 *)(base + word->offset));

	kunmap_local(base);
	return value;
}

/* 64 bits at once, of a word at an address that is a multiple of 8. */
u64 shift_word_read64(const struct shift_word *word)
{
	u8 *base = kmap_local_page(word->page);
	/* what was posted before it was written is seen */
	u64 value = smp_load_acquire((u64 *)(base + word->offset));

	kunmap_local(base);
	return value;
}

void shift_word_write(const struct shift_word *word, u32 value)
{
	u8 *base = kmap_local_page(word->page);

	/* what it tells of was done before */
	smp_store_release((u32 *)(base + word->offset), value);
	kunmap_local(base);
}
