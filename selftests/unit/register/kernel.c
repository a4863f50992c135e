// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel, for one thread: locks that know whether they are taken, memory that is counted and
 * may be short, pages of a process.  Each page is a piece of memory of its own, so that a step over
 * its end is seen.
 */
#include <stdio.h>
#include <stdlib.h>
#include "fuzz.h"

struct task_struct sim_task;
long fuzz_pins, fuzz_memory;
void *fuzz_ufile;
struct file_operations fuzz_fops;

static int taken;
static u8 *user_page[USER_PAGES];
static u32 page_pins[USER_PAGES];

void sim_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	abort();
}

void sim_warns(const char *format, ...) { }
void sim_might_sleep(const char *what) { }

void sim_lock_init(struct sim_lock *lock, const char *name, bool spins)
{
	memset(lock, 0, sizeof(*lock));
	lock->name = name;
}

void sim_lock(struct sim_lock *lock, bool read)
{
	if (lock->readers)
		sim_fail("%s is taken twice", lock->name);
	/* one thread: who reads may not take it again either */
	lock->readers = 1;
	taken++;
}

void sim_unlock(struct sim_lock *lock, bool read)
{
	if (!lock->readers)
		sim_fail("%s is not taken", lock->name);
	lock->readers = 0;
	taken--;
}

bool sim_is_held(const struct sim_lock *lock)
{
	return lock->readers;
}

void fuzz_locks_are_free(void)
{
	if (taken)
		sim_fail("%d locks are still taken", taken);
}

void *sim_alloc(size_t size, gfp_t gfp)
{
	void *p;

	if (size > 1u << 30)
		sim_fail("%zu bytes are wanted", size);
	p = fuzz_refuses() ? NULL : calloc(1, size);
	fuzz_memory += !!p;
	return p;
}

void kfree(const void *p)
{
	fuzz_memory -= !!p;
	free((void *)p);
}

void sim_kfree_rcu(void *p) { kfree(p); }

/* time, chance */
u64 ktime_get_ns(void) { return 1; }
u32 get_random_u32(void) { return 4; }
void usleep_range(unsigned long least, unsigned long most) { sim_fail("it waits"); }

void sort(void *base, size_t num, size_t size, int (*cmp)(const void *a, const void *b),
	  void (*swap)(void *a, void *b, int size))
{
	qsort(base, num, size, cmp);
}

/* files */
struct fd fdget(int fd)
{
	static struct file uverbs;

	uverbs.private_data = fuzz_ufile;
	return (struct fd) { fd == FUZZ_FD ? &uverbs : NULL };
}

int misc_register(struct miscdevice *misc)
{
	fuzz_fops = *misc->fops;
	return 0;
}

void misc_deregister(struct miscdevice *misc) { }
unsigned long rlimit(int which) { return 64 * PAGE_SIZE; }
struct page *vmalloc_to_page(const void *addr) { return (struct page *)addr; }

int vm_insert_page(struct vm_area_struct *vma, unsigned long addr, struct page *page)
{
	u8 sum = ((volatile u8 *)page)[0] + ((volatile u8 *)page)[PAGE_SIZE - 1];

	if (addr < vma->vm_start || addr + PAGE_SIZE > vma->vm_end)
		sim_fail("a page is mapped outside of the mapping");
	return sum && fuzz_refuses() ? -ENOMEM : 0;
}

/* user memory */
void fuzz_user_reset(void)
{
	u32 i;

	for (i = 0; i < USER_PAGES; i++) {
		if (!user_page[i])
			user_page[i] = malloc(PAGE_SIZE);
		memset(user_page[i], 0, PAGE_SIZE);
		page_pins[i] = 0;
	}
	fuzz_pins = 0;
}

u8 *fuzz_user(u32 page)
{
	return user_page[page % USER_PAGES];
}

int copy_struct_from_user(void *to, size_t ksize, const void *from, size_t usize)
{
	size_t size = min(ksize, usize);

	if (fuzz_refuses())
		return -EFAULT;
	if (usize > ksize && memchr_inv((const u8 *)from + size, 0, usize - size))
		return -E2BIG;
	memset((u8 *)to + size, 0, ksize - size);
	memcpy(to, from, size);
	return 0;
}

unsigned long copy_to_user(void *to, const void *from, size_t size)
{
	if (fuzz_refuses())
		return size;
	memcpy(to, from, size);
	return 0;
}

/* A hole behind the last page; as many as there are before it. */
int pin_user_pages_fast(unsigned long addr, int n, unsigned int flags, struct page **pages)
{
	unsigned long page = (addr - USER_FIRST) >> PAGE_SHIFT;
	int i;

	if (addr & (PAGE_SIZE - 1) || n <= 0)
		sim_fail("%d pages are pinned at %#lx", n, addr);
	if (addr < USER_FIRST || page >= USER_PAGES || fuzz_refuses())
		return -EFAULT;
	for (i = 0; i < n && page < USER_PAGES; i++, page++) {
		pages[i] = (struct page *)user_page[page];
		page_pins[page]++;
		fuzz_pins++;
	}
	return i;
}

void unpin_user_pages(struct page **pages, unsigned long n)
{
	u32 i;

	for (; n; n--, pages++) {
		for (i = 0; user_page[i] != (u8 *)*pages; i++)
			if (i == USER_PAGES - 1)
				sim_fail("what is unpinned is no page");
		if (!page_pins[i]--)
			sim_fail("a page is unpinned that was not pinned");
		fuzz_pins--;
	}
}

void unpin_user_pages_dirty_lock(struct page **pages, unsigned long n, bool dirty)
{
	unpin_user_pages(pages, n);
}
