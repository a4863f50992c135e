/* SPDX-License-Identifier: GPL-2.0 */
/* What /dev/shift needs of the kernel beyond the simulator's kernel.h; included before all else. */
#ifndef REGISTER_USER_H
#define REGISTER_USER_H

#include "kernel.h"

#define CONFIG_64BIT 1
#define IS_ENABLED(option) (option)
#define SMP_CACHE_BYTES 64
#define MSEC_PER_SEC 1000
#define XA_LIMIT(low, high) (high)
#define RDMA_DRIVER_MLX5 ((enum rdma_driver_id)7)
#define RDMA_DRIVER_RXE ((enum rdma_driver_id)13)
#define __aligned(n) __attribute__((aligned(n)))
#define barrier() __asm__ __volatile__("" : : : "memory")
#define offset_in_page(p) ((unsigned long)(p) & (PAGE_SIZE - 1))
#define PAGE_MASK (~(PAGE_SIZE - 1))
#define DECLARE_FLEX_ARRAY(type, name) struct { struct { } empty_##name; type name[]; }
#define div64_u64(a, b) ((u64)(a) / (b))
#define atomic64_read(a) ((a)->counter)
#define atomic64_add_return(n, a) ((a)->counter += (n))
static inline bool atomic64_try_cmpxchg(atomic64_t *a, s64 *old, s64 new)
{
	bool same = a->counter == *old;

	if (same)
		a->counter = new;
	else
		*old = a->counter;
	return same;
}

/* processes: one, which has a limit */
#define RLIMIT_MEMLOCK 8
#define CAP_IPC_LOCK 14
unsigned long rlimit(int which);
extern bool fuzz_unlimited;
#define capable(cap) (fuzz_unlimited)
#define ns_capable_noaudit(ns, cap) (fuzz_unlimited)
struct cred;
#define prepare_kernel_cred(task) ((struct cred *)1)
#define put_cred(c) ((void)(c))
#define override_creds(c) (c)
#define revert_creds(c) ((void)(c))
#define __init
#define compat_ptr_ioctl NULL
#define noop_llseek NULL

/* files: one open fd leads to the uverbs file */
struct inode { int n; };
struct file { void *private_data; };
struct fd { struct file *file; };
struct fd fdget(int fd);
static inline void fdput(struct fd fd) { }
#define fd_file(fd) ((fd).file)
static inline int nonseekable_open(struct inode *inode, struct file *filp) { return 0; }
struct vm_area_struct { unsigned long vm_start, vm_end, vm_pgoff, vm_flags; };
#define VM_SHARED 8
#define VM_DONTEXPAND 1
#define VM_DONTDUMP 2
#define shift_vm_flags_set(vma, flags) ((vma)->vm_flags |= (flags))
struct page;
struct page *vmalloc_to_page(const void *addr);
int vm_insert_page(struct vm_area_struct *vma, unsigned long addr, struct page *page);
struct file_operations {
	void *owner, *compat_ioctl, *llseek;
	int (*open)(struct inode *inode, struct file *filp);
	int (*release)(struct inode *inode, struct file *filp);
	long (*unlocked_ioctl)(struct file *filp, unsigned int cmd, unsigned long arg);
	int (*mmap)(struct file *filp, struct vm_area_struct *vma);
};
struct attribute_group;
struct miscdevice {
	int minor, mode;
	const char *name;
	const struct file_operations *fops;
	const struct attribute_group **groups;
};
#define MISC_DYNAMIC_MINOR 255
int misc_register(struct miscdevice *misc);
void misc_deregister(struct miscdevice *misc);

/* user memory */
#define FOLL_WRITE 1
#define FOLL_LONGTERM 2
int copy_struct_from_user(void *to, size_t ksize, const void *from, size_t usize);
unsigned long copy_to_user(void *to, const void *from, size_t size);
int pin_user_pages_fast(unsigned long addr, int n, unsigned int flags, struct page **pages);
void unpin_user_pages(struct page **pages, unsigned long n);
void unpin_user_pages_dirty_lock(struct page **pages, unsigned long n, bool dirty);
static inline void *kmap_local_page(struct page *page) { return page; }
static inline void kunmap_local(const void *p) { }
#define smp_call_function(fn, arg, wait) do { } while (0)

#endif /* REGISTER_USER_H */
