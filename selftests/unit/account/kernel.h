/* SPDX-License-Identifier: GPL-2.0 */
/* What core/account.c needs of the kernel, with threads of POSIX: one process, that has a limit. */
#ifndef ACCOUNT_KERNEL_H
#define ACCOUNT_KERNEL_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t u64;
typedef int64_t s64;

typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t;
#define atomic_read(a) __atomic_load_n(&(a)->counter, __ATOMIC_SEQ_CST)
#define atomic_add(n, a) ((void)__atomic_add_fetch(&(a)->counter, n, __ATOMIC_SEQ_CST))
#define atomic64_read(a) __atomic_load_n(&(a)->counter, __ATOMIC_SEQ_CST)
#define atomic64_add_return(n, a) __atomic_add_fetch(&(a)->counter, n, __ATOMIC_SEQ_CST)
#define atomic64_add(n, a) ((void)atomic64_add_return(n, a))
#define atomic64_sub(n, a) ((void)__atomic_sub_fetch(&(a)->counter, n, __ATOMIC_SEQ_CST))
#define atomic64_try_cmpxchg(a, old, new) __atomic_compare_exchange_n(&(a)->counter, old, new, \
	false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define max(a, b) ((a) > (b) ? (a) : (b))

#define DEFINE_SPINLOCK(name) pthread_mutex_t name = PTHREAD_MUTEX_INITIALIZER
#define spin_lock pthread_mutex_lock
#define spin_unlock pthread_mutex_unlock
#define lockdep_assert_held(lock) ((void)(lock))

/* a table of one entry, as there is one process */
struct hlist_node { int n; };
#define DEFINE_HASHTABLE(name, bits) struct shift_account *name
#define hash_for_each_possible(table, at, member, key) for ((at) = (table); (at); (at) = NULL)
#define hash_add(table, node, key) ((table) = account)
#define hash_del(node) ((void)(accounts = NULL))

struct mm_struct { atomic64_t pinned_vm; };
struct task_struct { struct mm_struct *mm; };
extern struct task_struct init_task;
#define current (&init_task)
#define mmgrab(mm) ((void)(mm))
#define mmdrop(mm) ((void)(mm))
#define GFP_KERNEL_ACCOUNT 0
#define kzalloc(size, flags) calloc(1, size)
#define kfree free

#define PAGE_SHIFT 12
#define RLIMIT_MEMLOCK 8
#define CAP_IPC_LOCK 14
extern unsigned long memlock_pages;
extern __thread bool as_kernel_now;
#define rlimit(which) (memlock_pages << PAGE_SHIFT)
#define capable(cap) as_kernel_now
#define ns_capable_noaudit(ns, cap) as_kernel_now
struct cred { int n; };
extern const struct cred some_cred;
#define prepare_kernel_cred(task) (&some_cred)
#define put_cred(cred) ((void)(cred))
#define override_creds(creds) (as_kernel_now = true, (creds))
#define revert_creds(creds) ((void)(creds), as_kernel_now = false)

typedef struct { int n; } wait_queue_head_t;
#define init_waitqueue_head(q) ((void)(q))
#define wake_up_all(q) ((void)(q))
static inline unsigned long milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ul + t.tv_nsec / 1000000;
}
#define jiffies milliseconds()
#define msecs_to_jiffies(ms) (ms)
#define wait_event_timeout(q, cond, most) ({			\
	unsigned long until_ = jiffies + (most);		\
	bool met_;						\
	while (!(met_ = (cond)) && jiffies < until_)		\
		usleep(5);					\
	(long)met_; })
#define wait_event_killable_timeout wait_event_timeout

#define NSEC_PER_SEC 1000000000ull
#define ktime_get_ns() 0
#define div64_u64(a, b) ((a) / (b))
#define module_param(...)
#define MODULE_PARM_DESC(...)
#define __init

#endif /* ACCOUNT_KERNEL_H */
