// SPDX-License-Identifier: GPL-2.0
/* Pinned rings and words of user memory: see ring.h for the rules. */
#include <linux/highmem.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/smp.h>
#include "core/account.h"
#include "core/ring.h"

#define SHIFT_RING_MAX_BYTES	(64u << 20)
#define SHIFT_RING_MAX_SLOT	8192u
#define SHIFT_RING_MAX_SLOTS	(1u << 20)

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
	ring->pages = kvcalloc(n, sizeof(*ring->pages), GFP_KERNEL_ACCOUNT);
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

/* Pin the caller's own memory, which begins with slot 0, and charge it to the caller. */
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
 * shift_ring_pin_mapping - pin memory of the driver that the caller has mapped
 * @ring: filled on success, without slots: shift_ring_set_slots().
 * @addr: first byte of the mapping, page aligned.
 * @len: bytes of the mapping.
 *
 * Nothing is charged to the caller, as it is the driver's memory.
 *
 * Context: process context of the owner; takes mmap_lock.
 * Return: 0, -EINVAL (address), -EFAULT (not mapped), -ENOMEM.
 */
int shift_ring_pin_mapping(struct shift_ring *ring, u64 addr, u32 len)
{
	if (offset_in_page(addr) || !range_ok(addr, len))
		return -EINVAL;
	return pin_pages(ring, addr, len);
}

/**
 * shift_ring_set_slots - where a ring that was pinned has its slots
 * @ring: the ring.
 * @data: bytes before slot 0.
 * @slots: their number, a power of two.
 * @slot_size: bytes of one, a power of two.
 * @len: bytes that were pinned.
 *
 * Return: 0, -EINVAL if the numbers are not valid or do not fit @len.
 */
int shift_ring_set_slots(struct shift_ring *ring, u32 data, u32 slots, u32 slot_size, u32 len)
{
	if (slot_size < 16 || slot_size > SHIFT_RING_MAX_SLOT || !is_power_of_2(slot_size) ||
	    slots > SHIFT_RING_MAX_SLOTS || !is_power_of_2(slots) ||
	    (u64)data + (u64)slots * slot_size > len)
		return -EINVAL;
	ring->data = data;
	ring->slots = slots;
	ring->slot_size = slot_size;
	return 0;
}

/**
 * shift_ring_pin - pin a ring that consists of slots only
 * @ring: filled on success.
 * @addr: first slot, 64-byte aligned.
 * @len: bytes, a multiple of @slot_size.
 * @slot_size: bytes, a power of two.
 * @refuse: fail if the caller may not lock so much.
 *
 * It is the caller's memory, and charged to the caller.
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
 * @refuse: fail if the caller may not lock so much.
 *
 * It is the caller's memory, and charged to the caller.
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

/* Process context of any process; does nothing to a ring that is not pinned. */
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

/* Read the aligned 32-bit word at byte @offset of the pinned memory. */
u32 shift_ring_read_u32(const struct shift_ring *ring, u32 offset)
{
	u8 *base = kmap_local_page(ring->pages[offset >> PAGE_SHIFT]);
	/* acquire: the word is an index, and the slots that it covers were written before it */
	u32 value = smp_load_acquire((u32 *)(base + offset_in_page(offset)));

	kunmap_local(base);
	return value;
}

void shift_ring_write_u32(const struct shift_ring *ring, u32 offset, u32 value)
{
	u8 *base = kmap_local_page(ring->pages[offset >> PAGE_SHIFT]);

	/* release: the word is an index that frees slots, which were read before */
	smp_store_release((u32 *)(base + offset_in_page(offset)), value);
	kunmap_local(base);
}

/* Read one aligned word of a slot; @offset must be within the slot. */
u32 shift_ring_slot_u32(const struct shift_ring *ring, u32 index, u32 offset)
{
	index &= ring->slots - 1;
	return shift_ring_read_u32(ring, ring->data + index * ring->slot_size + offset);
}

/* Copy the first @len bytes of a slot, or all of it if @len is more. */
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

/* Copy all slots. */
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
	/* acquire: the word may be a lock, and what was done under it is to be seen */
	u32 value = smp_load_acquire((u32 *)(base + word->offset));

	kunmap_local(base);
	return value;
}

/* Read 64 bits at once from a word at an address that is a multiple of 8. */
u64 shift_word_read64(const struct shift_word *word)
{
	u8 *base = kmap_local_page(word->page);
	/* acquire: work that was posted before the word was written is to be seen */
	u64 value = smp_load_acquire((u64 *)(base + word->offset));

	kunmap_local(base);
	return value;
}

void shift_word_write(const struct shift_word *word, u32 value)
{
	u8 *base = kmap_local_page(word->page);

	/* release: what the word says was done before */
	smp_store_release((u32 *)(base + word->offset), value);
	kunmap_local(base);
}

static void cpu_barrier(void *unused)
{
	/* Between a thread's writes to its lock word and its reads of the flag word. */
	smp_mb();
}

/**
 * shift_fence_barrier - order a store to a provider's flag word before our loads
 *
 * If a thread of the application has not seen the new flag, then all that the thread wrote before
 * it looked at the flag is visible here afterwards.
 *
 * Context: process context.
 */
void shift_fence_barrier(void)
{
	/* pairs with cpu_barrier() on every other CPU */
	smp_mb();
	smp_call_function(cpu_barrier, NULL, 1);
}
