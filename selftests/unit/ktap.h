/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A very small KTAP test runner that works in the kernel and in user space.
 *
 * A test file defines cases and one suite; main.c (user space) and
 * kmod/shift_unit_main.c run them.  Tests use static memory only, and run one
 * at a time.
 */
#ifndef KTAP_H
#define KTAP_H

#include "pure/pure.h"

#ifdef __KERNEL__
#include <linux/printk.h>
#include <linux/sched.h>
#define ktap_print(fmt, ...)	printk(KERN_INFO fmt, ##__VA_ARGS__)
#define ktap_breathe()		cond_resched()
#else
#define ktap_print(fmt, ...)	printf(fmt, ##__VA_ARGS__)
#define ktap_breathe()		do { } while (0)
#endif

#define KTAP_MAX_REPORTS	5	/* failures shown per case */

struct ktap {
	unsigned int failed;	/* expectations, in this case */
	unsigned long checks;	/* expectations, in all */
};

struct ktap_case {
	const char *name;
	void (*run)(struct ktap *t);
};

struct ktap_suite {
	const char *name;
	const struct ktap_case *cases;
	unsigned int num;
};

#define KTAP_CASE(fn)	{ .name = #fn, .run = fn }
#define KTAP_SUITE(_name, _cases)			\
	const struct ktap_suite _name##_suite = {	\
		.name = #_name,				\
		.cases = _cases,			\
		.num = ARRAY_SIZE(_cases),		\
	}

extern const struct ktap_suite fsm_suite;
extern const struct ktap_suite fsm_pair_suite;
extern const struct ktap_suite psn_suite;
extern const struct ktap_suite wq_rxe_suite;
extern const struct ktap_suite rewind_suite;
extern const struct ktap_suite flush_suite;
extern const struct ktap_suite wq_mlx5_suite;
extern const struct ktap_suite recv_mlx5_suite;
extern const struct ktap_suite golden_mlx5_suite;
extern const struct ktap_suite cqe_mlx5_suite;
extern const struct ktap_suite cq_mlx5_suite;
extern const struct ktap_suite cq_moves_mlx5_suite;
extern const struct ktap_suite rewind_mlx5_suite;
extern const struct ktap_suite judge_mlx5_suite;
extern const struct ktap_suite ledger_suite;
extern const struct ktap_suite msg_suite;
extern const struct ktap_suite srq_id_suite;
extern const struct ktap_suite window_suite;
extern const struct ktap_suite post_ring_suite;
extern const struct ktap_suite ulp_suite;
extern const struct ktap_suite dma_suite;
extern const struct ktap_suite wr_ids_suite;
extern const struct ktap_suite bucket_suite;
extern const struct ktap_suite flushes_suite;
extern const struct ktap_suite flush_wait_suite;
#ifdef __KERNEL__
extern const struct ktap_suite kernel_wr_suite;
#endif

static const struct ktap_suite *const ktap_suites[] = {
	&fsm_suite, &fsm_pair_suite, &psn_suite, &wq_rxe_suite, &rewind_suite,
	&flush_suite, &wq_mlx5_suite, &recv_mlx5_suite, &golden_mlx5_suite, &cqe_mlx5_suite,
	&cq_mlx5_suite, &cq_moves_mlx5_suite, &rewind_mlx5_suite, &judge_mlx5_suite,
	&ledger_suite, &msg_suite, &srq_id_suite, &window_suite,
	&post_ring_suite, &ulp_suite, &dma_suite, &wr_ids_suite, &bucket_suite,
	&flushes_suite,
	&post_ring_suite, &ulp_suite, &dma_suite, &wr_ids_suite, &bucket_suite, &flush_wait_suite,
#ifdef __KERNEL__
	&kernel_wr_suite,
#endif
};

static inline bool ktap_check(struct ktap *t, bool ok, const char *func,
			      int line, const char *what)
{
	t->checks++;
	if (ok)
		return true;
	if (t->failed++ < KTAP_MAX_REPORTS)
		ktap_print("    # %s:%d: %s\n", func, line, what);
	return false;
}

/* go on in any case; leave the test function if it does not hold */
#define EXPECT(t, cond)	ktap_check(t, cond, __func__, __LINE__, #cond)
#define ASSERT(t, cond)	do { if (!EXPECT(t, cond)) return; } while (0)

/* also says which numbers differ */
#define EXPECT_EQ(t, a, b) ({						\
	long long _a = (long long)(a), _b = (long long)(b);		\
	bool _ok = EXPECT(t, _a == _b && #a " == " #b);			\
	if (!_ok && (t)->failed <= KTAP_MAX_REPORTS)			\
		ktap_print("    # ... %lld, not %lld\n", _a, _b);	\
	_ok; })

/* Return: number of suites that failed */
static inline unsigned int ktap_run(const char *only, unsigned long *checks)
{
	unsigned int bad = 0, n, i, j, suite = 0;
	struct ktap t = { 0 };

	for (n = 0, i = 0; i < ARRAY_SIZE(ktap_suites); i++)
		n += !only || !strcmp(only, ktap_suites[i]->name);

	ktap_print("KTAP version 1\n");
	ktap_print("1..%u\n", n);
	for (i = 0; i < ARRAY_SIZE(ktap_suites); i++) {
		const struct ktap_suite *s = ktap_suites[i];
		unsigned int lost = 0;

		if (only && strcmp(only, s->name))
			continue;
		ktap_print("    KTAP version 1\n");
		ktap_print("    # Subtest: %s\n", s->name);
		ktap_print("    1..%u\n", s->num);
		for (j = 0; j < s->num; j++) {
			t.failed = 0;
			s->cases[j].run(&t);
			lost += !!t.failed;
			ktap_print("    %sok %u %s\n", t.failed ? "not " : "",
				   j + 1, s->cases[j].name);
			ktap_breathe();
		}
		bad += !!lost;
		ktap_print("%sok %u %s\n", lost ? "not " : "", ++suite, s->name);
	}
	*checks = t.checks;
	return bad;
}

/* xorshift64*: the same numbers everywhere */
struct rnd {
	u64 state;
};

static inline u64 rnd64(struct rnd *r)
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return r->state * 0x2545f4914f6cdd1dull;
}

static inline u32 rnd32(struct rnd *r)
{
	return (u32)(rnd64(r) >> 32);
}

/* 0 .. n - 1 */
static inline u32 rnd_below(struct rnd *r, u32 n)
{
	return (u32)(((u64)rnd32(r) * n) >> 32);
}

static inline bool rnd_one_in(struct rnd *r, u32 n)
{
	return !rnd_below(r, n);
}

static inline void rnd_fill(struct rnd *r, void *buf, size_t n)
{
	u8 *p = buf;

	while (n--)
		*p++ = (u8)rnd32(r);
}

#endif /* KTAP_H */
