/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module needs of the kernel, for one process: the same names, as little of each as
 * failover/ and its neighbours use.  Every header that they include is a file that includes
 * this one (Makefile).  Time, threads and locks are sched.c's, memory and tables mem.c's.
 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <asm-generic/errno.h>
#include <asm/posix_types.h>

/* types and compiler */
typedef uint8_t u8, __u8;
typedef uint16_t u16, __u16;
typedef uint32_t u32, __u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32, __s32;
typedef int64_t s64;
typedef unsigned long long __u64;
typedef long long __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u64 __be64;
#define __aligned_u64 __u64 __attribute__((aligned(8)))
typedef int pid_t;
typedef long ssize_t;
typedef unsigned int gfp_t;
typedef struct { int counter; } atomic_t;
#define __user
#define __rcu
#define __force
#define __acquires(x)
#define __releases(x)
#define __used __attribute__((used))
#define INT_MIN (-2147483647 - 1)
#define __packed __attribute__((packed))
#define __percpu
#undef __always_inline
#define __always_inline inline
#define noinline
#define likely(x) (x)
#define unlikely(x) (x)
#define fallthrough __attribute__((fallthrough))
#define BIT(n) (1ul << (n))
#define U32_MAX UINT32_MAX
#define ULONG_MAX (~0ul)
#define PAGE_SHIFT 12
#define PAGE_SIZE 4096ul
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define ALIGN_DOWN(x, a) ((x) & ~((a) - 1))
#define PAGE_ALIGN(x) (((x) + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1))
#define BITS_PER_LONG 64
#define ALIGN(x, a) (((x) + (a) - 1) / (a) * (a))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
#define smp_load_acquire(p) READ_ONCE(*(p))
#define smp_store_release(p, v) WRITE_ONCE(*(p), v)
#define smp_mb() do { } while (0)
#define smp_rmb() do { } while (0)
#define dma_wmb() __sync_synchronize()
#define cmpxchg(p, old, new) ({ __typeof__(*(p)) was_ = *(p); if (was_ == (old)) *(p) = (new); was_; })
#define xchg(p, v) ({ __typeof__(*(p)) old_ = *(p); *(p) = (v); old_; })
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
#define BUILD_BUG_ON(c) _Static_assert(!(c), #c)
#define static_assert(c, ...) _Static_assert(c, #c)
#define min_t(t, a, b) ({ t a_ = (a), b_ = (b); a_ < b_ ? a_ : b_; })
#define max_t(t, a, b) ({ t a_ = (a), b_ = (b); a_ > b_ ? a_ : b_; })
#define min(a, b) ({ __typeof__(a) a_ = (a); __typeof__(a) b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ __typeof__(a) a_ = (a); __typeof__(a) b_ = (b); a_ > b_ ? a_ : b_; })
#define clamp_t(t, v, lo, hi) min_t(t, max_t(t, v, lo), hi)
#define div_u64(a, b) ((u64)(a) / (b))
#define cpu_to_be16 __builtin_bswap16
#define cpu_to_be32 __builtin_bswap32
#define cpu_to_be64 __builtin_bswap64
#define be16_to_cpu __builtin_bswap16
#define be32_to_cpu __builtin_bswap32
#define be64_to_cpu __builtin_bswap64
#define MODULE_PARM_DESC(name, text)
#define module_param(name, type, mode)
#define module_param_named(name, var, type, mode)
#define THIS_MODULE NULL
#define KBUILD_MODNAME "rdma_shift"
#define EXPORT_SYMBOL_GPL(x)
static inline void module_put(void *m) { }
static inline void __module_get(void *m) { }
static inline bool try_module_get(void *m) { return true; }
#define IS_ERR(p) ((unsigned long)(p) >= -4095ul)
#define PTR_ERR(p) ((long)(p))
#define ERR_PTR(e) ((void *)(long)(e))
#define U64_MAX UINT64_MAX
static inline u64 hash_64(u64 v, unsigned int bits)
{
	return v * 0x61C8864680B583EBull >> (64 - bits);
}
static inline int order_base_2(unsigned long n)
{
	return n < 2 ? 0 : 64 - __builtin_clzl(n - 1);
}
static inline unsigned long roundup_pow_of_two(unsigned long n)
{
	return 1ul << order_base_2(n);
}
static inline bool is_power_of_2(unsigned long n)
{
	return n && !(n & (n - 1));
}
static inline void *memchr_inv(const void *p, int c, size_t size)
{
	const u8 *at = p;

	for (; size; size--, at++)
		if (*at != (u8)c)
			return (void *)at;
	return NULL;
}
#define isascii(c) (!((c) & ~0x7f))
#define isgraph(c) ((c) > 0x20 && (c) < 0x7f)
static inline ssize_t strscpy(char *to, const char *from, size_t size)
{
	size_t n = strnlen(from, size - 1);

	memcpy(to, from, n);
	to[n] = 0;
	return n;
}

/* what ends a run with a complaint; sched.c */
void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void sim_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_warns(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define WARN_ON_ONCE(c) ({ bool c_ = (c); if (c_) sim_fail("WARN_ON(%s)", #c); c_; })
#define WARN_ON WARN_ON_ONCE
#define pr_warn(f, ...) sim_warns("      warns: " f, ##__VA_ARGS__)
#define pr_warn_ratelimited pr_warn
#define pr_info pr_warn
#define pr_info_ratelimited pr_warn
#define pr_debug pr_warn
#define pr_err pr_warn

/* single words: each is a place where another thread may come between */
void sim_point(void);
static inline bool test_bit(unsigned int n, const unsigned long *w) { return *w >> n & 1; }
static inline void set_bit(unsigned int n, unsigned long *w) { *w |= BIT(n); }
static inline void clear_bit(unsigned int n, unsigned long *w) { *w &= ~BIT(n); }
#define clear_bit_unlock clear_bit
static inline bool test_and_set_bit(unsigned int n, unsigned long *w)
{
	bool was = test_bit(n, w);

	set_bit(n, w);
	return was;
}
static inline bool test_and_clear_bit(unsigned int n, unsigned long *w)
{
	bool was = test_bit(n, w);

	clear_bit(n, w);
	return was;
}
static inline int atomic_read(const atomic_t *a) { return a->counter; }
static inline void atomic_set(atomic_t *a, int v) { a->counter = v; }
static inline void atomic_inc(atomic_t *a) { a->counter++; }
static inline int atomic_inc_return(atomic_t *a) { return ++a->counter; }
static inline void atomic_add(int n, atomic_t *a) { a->counter += n; }
static inline bool atomic_inc_unless_negative(atomic_t *a)
{
	return a->counter < 0 ? false : (a->counter++, true);
}
static inline void atomic_dec(atomic_t *a) { a->counter--; }
static inline bool atomic_dec_and_test(atomic_t *a) { return !--a->counter; }
static inline int atomic_cmpxchg(atomic_t *a, int old, int new)
{
	int was = a->counter;

	if (was == old)
		a->counter = new;
	return was;
}

struct kref { int n; };
typedef struct { int n; } refcount_t;
static inline void kref_init(struct kref *k) { k->n = 1; }
static inline void kref_get(struct kref *k)
{
	if (k->n <= 0)
		sim_fail("kref_get() of what is released");
	k->n++;
}
static inline bool kref_get_unless_zero(struct kref *k) { return k->n ? k->n++, true : false; }
static inline int kref_put(struct kref *k, void (*release)(struct kref *k))
{
	if (k->n <= 0)
		sim_fail("kref_put() of what is released");
	if (--k->n)
		return 0;
	release(k);
	return 1;
}
static inline void refcount_set(refcount_t *r, int n) { r->n = n; }
static inline int refcount_read(const refcount_t *r) { return r->n; }
static inline bool refcount_inc_not_zero(refcount_t *r) { return r->n ? r->n++, true : false; }
static inline bool refcount_dec_and_test(refcount_t *r) { return !--r->n; }

/* lists */
struct list_head { struct list_head *next, *prev; };
struct hlist_node { struct hlist_node *next, **pprev; };
#define LIST_HEAD_INIT(name) { &(name), &(name) }
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)
static inline void INIT_LIST_HEAD(struct list_head *l) { l->next = l->prev = l; }
static inline bool list_empty(const struct list_head *l) { return l->next == l; }
static inline void list_add(struct list_head *e, struct list_head *l)
{
	e->next = l->next;
	e->prev = l;
	l->next->prev = e;
	l->next = e;
}
static inline void list_add_tail(struct list_head *e, struct list_head *l)
{
	e->next = l;
	e->prev = l->prev;
	l->prev->next = e;
	l->prev = e;
}
#define list_add_tail_rcu list_add_tail
static inline void list_del(struct list_head *e)
{
	e->next->prev = e->prev;
	e->prev->next = e->next;
	e->next = e->prev = NULL;
}
static inline void list_move_tail(struct list_head *e, struct list_head *l)
{
	list_del(e);
	list_add_tail(e, l);
}
static inline void list_splice_init(struct list_head *from, struct list_head *to)
{
	struct list_head *first = from->next, *last = from->prev;

	if (first == from)
		return;
	first->prev = to;
	last->next = to->next;
	to->next->prev = last;
	to->next = first;
	INIT_LIST_HEAD(from);
}
#define list_del_rcu list_del
static inline void list_del_init(struct list_head *e)
{
	list_del(e);
	INIT_LIST_HEAD(e);
}
#define list_entry(p, type, m) container_of(p, type, m)
#define list_first_entry(l, type, m) list_entry((l)->next, type, m)
#define list_first_entry_or_null(l, type, m) \
	(list_empty(l) ? NULL : list_entry((l)->next, type, m))
#define list_for_each_entry(p, l, m) \
	for (p = list_entry((l)->next, __typeof__(*p), m); &p->m != (l); \
	     p = list_entry(p->m.next, __typeof__(*p), m))
#define list_for_each_entry_rcu list_for_each_entry
#define list_for_each_entry_safe(p, n, l, m) \
	for (p = list_entry((l)->next, __typeof__(*p), m), \
	     n = list_entry(p->m.next, __typeof__(*p), m); &p->m != (l); \
	     p = n, n = list_entry(n->m.next, __typeof__(*n), m))
struct llist_node { struct llist_node *next; };
struct llist_head { struct llist_node *first; };
#define LLIST_HEAD(name) struct llist_head name
static inline bool llist_add(struct llist_node *n, struct llist_head *l)
{
	n->next = l->first;
	l->first = n;
	return !n->next;
}
static inline struct llist_node *llist_del_all(struct llist_head *l) { return xchg(&l->first, NULL); }
#define llist_entry_or_null(p, type, m) ({ struct llist_node *p_ = (p); \
	p_ ? container_of(p_, type, m) : NULL; })
#define llist_for_each_entry_safe(p, n, node, m) \
	for (p = llist_entry_or_null(node, __typeof__(*p), m); \
	     p && (n = llist_entry_or_null(p->m.next, __typeof__(*p), m), true); p = n)
#include "hash.h"
#include "netstack.h"

/* locks: each knows who holds it; sched.c checks order and context */
struct sim_thread;
struct sim_lock {
	struct sim_thread *owner;
	const char *name;
	int class, readers;
	bool spins;
};
struct mutex { struct sim_lock lock; };
typedef struct spinlock { struct sim_lock lock; } spinlock_t;
struct rw_semaphore { struct sim_lock lock; };
void sim_lock_init(struct sim_lock *lock, const char *name, bool spins);
void sim_lock(struct sim_lock *lock, bool read);
void sim_unlock(struct sim_lock *lock, bool read);
bool sim_trylock(struct sim_lock *lock);
bool sim_is_held(const struct sim_lock *lock);
#define mutex_init(m) sim_lock_init(&(m)->lock, #m, false)
#define spin_lock_init(m) sim_lock_init(&(m)->lock, #m, true)
#define init_rwsem(m) sim_lock_init(&(m)->lock, #m, false)
#define DEFINE_MUTEX(n) struct mutex n = { .lock = { .name = #n, .class = -1 } }
#define DECLARE_RWSEM(n) struct rw_semaphore n = { .lock = { .name = #n, .class = -1 } }
#define DEFINE_SPINLOCK(n) spinlock_t n = { .lock = { .name = #n, .class = -1, .spins = true } }
static inline void mutex_lock(struct mutex *m) { sim_lock(&m->lock, false); }
static inline void mutex_unlock(struct mutex *m) { sim_unlock(&m->lock, false); }
static inline bool mutex_trylock(struct mutex *m) { return sim_trylock(&m->lock); }
static inline void spin_lock_bh(spinlock_t *l) { sim_lock(&l->lock, false); }
static inline void spin_unlock_bh(spinlock_t *l) { sim_unlock(&l->lock, false); }
#define spin_lock spin_lock_bh
#define spin_unlock spin_unlock_bh
#define spin_lock_irq spin_lock_bh
#define spin_unlock_irq spin_unlock_bh
#define spin_lock_irqsave(l, flags) do { (void)(flags); spin_lock_bh(l); } while (0)
#define spin_unlock_irqrestore(l, flags) do { (void)(flags); spin_unlock_bh(l); } while (0)
static inline void down_read(struct rw_semaphore *s) { sim_lock(&s->lock, true); }
static inline void up_read(struct rw_semaphore *s) { sim_unlock(&s->lock, true); }
static inline void down_write(struct rw_semaphore *s) { sim_lock(&s->lock, false); }
static inline void up_write(struct rw_semaphore *s) { sim_unlock(&s->lock, false); }
#define irqs_disabled()	false
#define lockdep_assert_held(l) do { if (!sim_is_held(&(l)->lock)) \
	sim_fail("%s() without %s", __func__, #l); } while (0)
#define lockdep_assert_held_read lockdep_assert_held
#define lockdep_assert(condition) do { if (!(condition)) \
	sim_fail("%s() without %s", __func__, #condition); } while (0)
#define lockdep_is_held(l) sim_is_held(&(l)->lock)
struct lock_class_key { char unused; };
#define lockdep_set_class(l, key) ((void)(l), (void)(key))
void sim_might_sleep(const char *what);
#define might_sleep() sim_might_sleep(__func__)

/* RCU */
struct rcu_head { struct rcu_head *next; void (*fn)(struct rcu_head *rcu); };
struct srcu_struct { int n; };
void rcu_read_lock(void);
void rcu_read_unlock(void);
void call_rcu(struct rcu_head *rcu, void (*fn)(struct rcu_head *rcu));
void synchronize_rcu(void);
#define synchronize_rcu_expedited synchronize_rcu
static inline int init_srcu_struct(struct srcu_struct *s) { s->n = 0; return 0; }
#define cleanup_srcu_struct(s) WARN_ON((s)->n)
void synchronize_srcu(struct srcu_struct *s);
#define synchronize_rcu_tasks synchronize_rcu
int srcu_read_lock(struct srcu_struct *s);
void srcu_read_unlock(struct srcu_struct *s, int idx);
#define rcu_dereference(p) (p)
#define rcu_dereference_protected(p, c) (p)
#define rcu_assign_pointer(p, v) ((p) = (v))
void sim_kfree_rcu(void *p);
#define kfree_rcu(p, member) sim_kfree_rcu(p)

/* time */
#define HZ 250
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_USEC 1000ull
#define NSEC_PER_SEC 1000000000ull
#define USEC_PER_MSEC 1000
u64 ktime_get_ns(void);
static inline u64 ktime_get_real_ns(void) { return ktime_get_ns() + 1; }
#define jiffies ((unsigned long)(ktime_get_ns() / (NSEC_PER_SEC / HZ)))
#define MAX_JIFFY_OFFSET ((long)(~0ul >> 2) - 1)
static inline unsigned long msecs_to_jiffies(unsigned int ms) { return (ms * HZ + 999) / 1000; }
static inline unsigned int jiffies_to_msecs(unsigned long j) { return j * 1000 / HZ; }
static inline unsigned long nsecs_to_jiffies(u64 ns) { return ns / (NSEC_PER_SEC / HZ); }
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
static inline void cond_resched(void) { }
void usleep_range(unsigned long least, unsigned long most);

/* work */
struct work_struct {
	void (*func)(struct work_struct *work);
	bool pending;
	int end;		/* on whose processors */
	struct workqueue_struct *wq;	/* that it was queued on */
};
struct sim_timer { struct sim_timer *next, *prev; u64 at, seq; void (*fn)(struct sim_timer *t); };
/* of users in the kernel, which a world has none of */
struct tasklet_struct { int none; };

struct delayed_work { struct work_struct work; struct sim_timer timer; };
struct workqueue_struct;
#define DECLARE_WORK(n, f) struct work_struct n = { .func = (f), .end = -1 }
typedef void (*work_func_t)(struct work_struct *work);
#define INIT_WORK(w, f) (*(w) = (struct work_struct) { .func = (f), .end = -1 })
#define INIT_DELAYED_WORK(w, f) (*(w) = (struct delayed_work) { .work = { .func = (f), .end = -1 } })
#define DECLARE_DELAYED_WORK(n, f) struct delayed_work n = { .work = { .func = f, .end = -1 } }
#define to_delayed_work(w) container_of(w, struct delayed_work, work)
#define WQ_MEM_RECLAIM 0
#define WQ_UNBOUND 0
#define WQ_HIGHPRI 0
struct workqueue_struct *alloc_workqueue(const char *name, int flags, int most);
void destroy_workqueue(struct workqueue_struct *wq);
bool delayed_work_pending(const struct delayed_work *work);
bool cancel_delayed_work(struct delayed_work *work);
#define work_pending(w) ((w)->pending)
bool queue_work(struct workqueue_struct *wq, struct work_struct *work);
bool queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *work, unsigned long delay);
bool mod_delayed_work(struct workqueue_struct *wq, struct delayed_work *work, unsigned long delay);
bool cancel_work_sync(struct work_struct *work);
bool cancel_delayed_work_sync(struct delayed_work *work);
bool flush_delayed_work(struct delayed_work *work);
static inline unsigned int memalloc_noio_save(void) { return 0; }
static inline void memalloc_noio_restore(unsigned int flags) { }
static inline unsigned int memalloc_noreclaim_save(void) { return 0; }
static inline void memalloc_noreclaim_restore(unsigned int flags) { }

/* waiting */
typedef struct wait_queue_head { int n; } wait_queue_head_t;
struct completion { bool done; };
static inline void init_waitqueue_head(wait_queue_head_t *q) { q->n = 0; }
static inline void wake_up_all(wait_queue_head_t *q) { q->n++; }
static inline void wake_up_var(void *p) { }
static inline void init_completion(struct completion *c) { c->done = false; }
static inline void complete_all(struct completion *c) { c->done = true; }
void wait_for_completion(struct completion *c);
#define wait_var_event(var, cond) wait_event(var, cond)
#define msleep(ms) usleep_range((ms) * 1000ul, (ms) * 1000ul)
#define wait_event(q, cond) do { \
	u64 end_ = ktime_get_ns() + 100 * NSEC_PER_SEC; \
	while (!(cond)) { \
		if (ktime_get_ns() > end_) \
			sim_fail("%s() waits for ever", __func__); \
		usleep_range(20, 100); \
	} \
} while (0)
#define DECLARE_WAIT_QUEUE_HEAD(name) wait_queue_head_t name
#define wait_event_timeout wait_event_killable_timeout
#define wait_event_killable_timeout(q, cond, most) ({ \
	u64 end_ = ktime_get_ns() + (most) * (NSEC_PER_SEC / HZ); \
	while (!(cond) && ktime_get_ns() < end_) \
		usleep_range(20, 100); \
	(cond) ? 1l : 0l; })
#define wait_for_completion_timeout(c, most) wait_event_timeout(c, (c)->done, most)

/* users */
typedef struct { u32 val; } kuid_t;
#define current_uid() ((kuid_t) { 0 })
#define GLOBAL_ROOT_UID ((kuid_t) { 0 })

/* memory */
#define GFP_KERNEL 1u
#define GFP_NOIO 2u
#define GFP_ATOMIC 4u
#define GFP_KERNEL_ACCOUNT GFP_KERNEL
#define __GFP_ZERO 0u
#define __GFP_ACCOUNT 0u
#define __GFP_RETRY_MAYFAIL 0u
struct mem_cgroup;
static inline struct mem_cgroup *set_active_memcg(struct mem_cgroup *memcg) { return NULL; }
static inline void mem_cgroup_put(struct mem_cgroup *memcg) { }
void *sim_alloc(size_t size, gfp_t gfp);
void kfree(const void *p);
#define kzalloc(size, gfp) sim_alloc(size, gfp)
#define kmalloc(size, gfp) sim_alloc(size, gfp)
#define kvzalloc(size, gfp) sim_alloc(size, gfp)
#define kcalloc(n, size, gfp) sim_alloc((size_t)(n) * (size), gfp)
#define kvcalloc(n, size, gfp) sim_alloc((size_t)(n) * (size), gfp)
#define __vmalloc(size, gfp) sim_alloc(size, gfp)
#define kvfree kfree
#define kvfree_rcu kfree_rcu
#define vfree kfree

/* tables: few entries, in order of their index */
struct xarray { struct sim_lock lock; struct sim_slot *first; };
#define XA_FLAGS_LOCK_BH 0
#define XA_FLAGS_ALLOC1 0
#define XA_FLAGS_ACCOUNT 0
#define XA_PRESENT 0
#define xa_limit_32b 0
#define xa_mk_value(v) ((void *)((unsigned long)(v) << 1 | 1))
#define xa_to_value(p) ((unsigned long)(p) >> 1)
#define xa_err(p) (IS_ERR(p) ? (int)PTR_ERR(p) : 0)
#define DEFINE_XARRAY_FLAGS(n, flags) struct xarray n = { .lock = { .name = #n, .class = -1, .spins = true } }
#define xa_init_flags(xa, f) sim_xa_init(xa, #xa)
#define xa_init(xa) sim_xa_init(xa, #xa)
void sim_xa_init(struct xarray *xa, const char *name);
void xa_lock(struct xarray *xa);
void xa_unlock(struct xarray *xa);
void *xa_load(struct xarray *xa, unsigned long index);
void *xa_find(struct xarray *xa, unsigned long *index, unsigned long max, int filter);
void *xa_find_after(struct xarray *xa, unsigned long *index, unsigned long max, int filter);
void *xa_store(struct xarray *xa, unsigned long index, void *p, gfp_t gfp);
int xa_insert(struct xarray *xa, unsigned long index, void *p, gfp_t gfp);
void *xa_erase(struct xarray *xa, unsigned long index);
void *__xa_erase(struct xarray *xa, unsigned long index);
#define xa_for_each_range(xa, index, entry, first, last) \
	for (index = first, entry = xa_find(xa, &index, last, XA_PRESENT); \
	     entry; entry = xa_find_after(xa, &index, last, XA_PRESENT))
#define xa_for_each(xa, index, entry) xa_for_each_range(xa, index, entry, 0, ULONG_MAX)
void *xa_cmpxchg(struct xarray *xa, unsigned long index, void *old, void *p, gfp_t gfp);
int xa_alloc(struct xarray *xa, u32 *id, void *p, int limit, gfp_t gfp);
void xa_destroy(struct xarray *xa);
#define xa_empty(xa) (!(xa)->first)
#define xa_store_bh xa_store
#define xa_erase_bh xa_erase
#define xa_cmpxchg_bh xa_cmpxchg

/* processes, odds and ends */
#define TASK_COMM_LEN 16
typedef struct { long counter; } atomic64_t;
struct mm_struct { atomic64_t pinned_vm; };
static inline void atomic64_add(long n, atomic64_t *a) { a->counter += n; }
static inline void atomic64_sub(long n, atomic64_t *a) { a->counter -= n; }
static inline void mmgrab(struct mm_struct *mm) { }
static inline void mmdrop(struct mm_struct *mm) { }
#define struct_size(p, member, n) (sizeof(*(p)) + (size_t)(n) * sizeof(*(p)->member))
#define PF_EXITING 4u
struct task_struct { struct mm_struct *mm; unsigned int flags; };
extern struct task_struct sim_task;
#define current (&sim_task)
#define fatal_signal_pending(task) false
#define swap(a, b) do { typeof(a) swap_ = (a); (a) = (b); (b) = swap_; } while (0)
static inline int task_tgid_nr(struct task_struct *t) { return 1; }
static inline void get_task_comm(char *to, struct task_struct *t) { strcpy(to, "sim"); }
#define CAP_NET_ADMIN 12
static inline bool capable(int cap) { return true; }
u32 get_random_u32(void);
void get_random_bytes(void *buf, size_t len);
struct scatterlist { u64 dma_address; unsigned int dma_length; };
#define DEFINE_PER_CPU(type, name) __typeof__(type) name
#define DECLARE_PER_CPU(type, name) extern __typeof__(type) name
#define this_cpu_add(v, n) ((v) += (n))
#define for_each_possible_cpu(c) for (c = 0; c < 1; c++)
#define per_cpu_ptr(p, c) (p)
#define per_cpu(v, c) (v)
#define ETH_ALEN 6
void sort(void *base, size_t num, size_t size, int (*cmp)(const void *a, const void *b),
	  void (*swap)(void *a, void *b, int size));

#endif /* SIM_KERNEL_H */
