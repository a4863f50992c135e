// SPDX-License-Identifier: GPL-2.0
/*
 * User memory of rings and doorbell records.  It changes under our eyes: each
 * access is bounded by what was pinned, and what is read is copied first.
 */
#include <linux/highmem.h>
#include <linux/slab.h>
#include <linux/version.h>
#include "mlx5_soft.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#define ib_umem_get_va ib_umem_get
#endif

#define MLS_PIN_MAX	(256UL << 20)

/**
 * mls_pin_init() - pin user memory of the calling process
 * @pin: what to fill
 * @ibdev: our device
 * @addr: first byte
 * @size: bytes
 * @access: IB_ACCESS_LOCAL_WRITE if we are going to write
 *
 * Return: 0 or -errno.
 */
int mls_pin_init(struct mls_pin *pin, struct ib_device *ibdev, u64 addr, size_t size,
		 int access)
{
	struct sg_page_iter it;
	unsigned int i = 0;

	if (!size || size > MLS_PIN_MAX)
		return -EINVAL;
	pin->umem = ib_umem_get_va(ibdev, addr, size, access);
	if (IS_ERR(pin->umem))
		return PTR_ERR(pin->umem);
	pin->npages = ib_umem_num_pages(pin->umem);
	pin->offset = ib_umem_offset(pin->umem);
	pin->size = size;
	pin->pages = kvcalloc(pin->npages, sizeof(*pin->pages), GFP_KERNEL);
	if (!pin->pages) {
		ib_umem_release(pin->umem);
		return -ENOMEM;
	}
	for_each_sgtable_page(&pin->umem->sgt_append.sgt, &it, 0)
		if (i < pin->npages)
			pin->pages[i++] = sg_page_iter_page(&it);
	pin->npages = i;
	return 0;
}

/* A doorbell record: naturally aligned, so in one page. */
int mls_pin_record(struct mls_pin *pin, struct ib_device *ibdev, u64 addr, size_t size)
{
	if (!IS_ALIGNED(addr, size))
		return -EINVAL;
	return mls_pin_init(pin, ibdev, addr, size, 0);
}

void mls_pin_release(struct mls_pin *pin)
{
	if (!pin->pages)
		return;
	kvfree(pin->pages);
	pin->pages = NULL;
	ib_umem_release(pin->umem);
}

/* The pinned page of a byte, mapped; NULL beyond the end. */
static void *pin_map(const struct mls_pin *pin, size_t at, size_t *left)
{
	size_t where = pin->offset + at;
	struct page *page;

	if (at >= pin->size || where >> PAGE_SHIFT >= pin->npages)
		return NULL;
	page = pin->pages[where >> PAGE_SHIFT];
	*left = min_t(size_t, PAGE_SIZE - offset_in_page(where), pin->size - at);
	return kmap_local_page(page) + offset_in_page(where);
}

static void pin_copy(const struct mls_pin *pin, size_t at, void *to, const void *from,
		     size_t size)
{
	size_t left;
	void *mapped;

	while (size) {
		mapped = pin_map(pin, at, &left);
		if (WARN_ON_ONCE(!mapped))
			return;
		left = min(left, size);
		if (to) {
			memcpy(to, mapped, left);
			to += left;
		} else {
			memcpy(mapped, from, left);
			from += left;
		}
		kunmap_local(mapped);
		at += left;
		size -= left;
	}
}

void mls_pin_read(const struct mls_pin *pin, size_t at, void *to, size_t size)
{
	memset(to, 0, size);
	pin_copy(pin, at, to, NULL, size);
}

void mls_pin_write(const struct mls_pin *pin, size_t at, const void *from, size_t size)
{
	pin_copy(pin, at, NULL, from, size);
}

/* One big-endian word of a doorbell record; what it tells of can be read after it. */
u32 mls_pin_word(const struct mls_pin *pin, size_t at)
{
	__be32 *word;
	size_t left;
	u32 value;

	word = pin_map(pin, at, &left);
	if (WARN_ON_ONCE(!word))
		return 0;
	value = be32_to_cpu(smp_load_acquire(word));
	kunmap_local(word);
	return value;
}

/* One byte, seen after all that was written before. */
void mls_pin_publish(const struct mls_pin *pin, size_t at, u8 value)
{
	size_t left;
	u8 *byte;

	byte = pin_map(pin, at, &left);
	if (WARN_ON_ONCE(!byte))
		return;
	smp_store_release(byte, value);
	kunmap_local(byte);
}
