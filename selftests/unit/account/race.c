// SPDX-License-Identifier: GPL-2.0
/*
 * Threads of one process at its limit of locked memory, over core/account.c and a pin that counts
 * as ib_umem_get() does.  In each round all register until they are refused: together they must
 * have what the limit says.  Then each registers and deregisters its share a few times, which fits.
 */
#include <stdio.h>
#include "kernel.h"
#include "core/account.h"

#define THREADS 4
#define SHARE 4
#define MOST (2 * SHARE)
#define PAGES 64
#define ROUNDS 300
#define TURNS 3

struct region {
	struct shift_account *account;
	bool mirror;
};

static struct mm_struct mm;
struct task_struct init_task = { &mm };
const struct cred some_cred;
unsigned long memlock_pages = THREADS * SHARE * PAGES;
__thread bool as_kernel_now;

static int total, few, many, refused, unmirrored;
static pthread_barrier_t barrier;

/* Let others run at any place. */
static void dawdle(void)
{
	static __thread unsigned int seed;
	unsigned int i;

	for (i = rand_r(&seed) % 300; i; i--)
		__asm__ __volatile__("" : : : "memory");
	if (!(rand_r(&seed) % 16))
		usleep(1);
}

static int pin(void)
{
	dawdle();
	if (atomic64_add_return(PAGES, &mm.pinned_vm) > (s64)memlock_pages &&
	    !capable(CAP_IPC_LOCK)) {
		dawdle();
		atomic64_sub(PAGES, &mm.pinned_vm);
		return -ENOMEM;
	}
	dawdle();
	return 0;
}

static void unpin(void)
{
	dawdle();
	atomic64_sub(PAGES, &mm.pinned_vm);
}

/* As verbs/mr.c and verbs/mirror.c do it. */
static bool reg(struct region *region)
{
	struct shift_account *account = shift_account_open();
	const struct cred *cred;
	struct shift_lent lent;
	int err;

	shift_account_lend(&lent, false);
	do {
		err = pin();
	} while (err && shift_account_again(&lent));
	shift_account_settled(&lent);
	if (!err) {
		region->account = shift_account_hold(account);
		cred = shift_account_pin_begin(account);
		region->mirror = !pin();
		shift_account_pin_end(account, cred, region->mirror ? PAGES : 0);
		if (!region->mirror)
			__atomic_add_fetch(&unmirrored, 1, __ATOMIC_SEQ_CST);
	}
	shift_account_restore(&lent);
	shift_account_close(account);
	return !err;
}

static void dereg(struct region *region)
{
	if (region->mirror) {
		shift_account_unpin_begin(region->account, PAGES);
		unpin();
		shift_account_unpin_end(region->account, 0);
	}
	unpin();
	shift_account_close(region->account);
}

static int fill(struct region *region, int most)
{
	int n;

	for (n = 0; n < most && reg(region + n); n++)
		;
	return n;
}

static void drop(struct region *region, int n)
{
	while (n--)
		dereg(region + n);
}

static void *race(void *unused)
{
	struct region region[MOST];
	int i, n, turn;

	for (i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&barrier);
		n = fill(region, MOST);
		__atomic_add_fetch(&total, n, __ATOMIC_SEQ_CST);
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
			few += total < THREADS * SHARE;
			many += total > THREADS * SHARE;
			total = 0;
		}
		drop(region, n);
		pthread_barrier_wait(&barrier);
		for (turn = 0; turn < TURNS; turn++) {
			n = fill(region, SHARE);
			if (n < SHARE)
				__atomic_add_fetch(&refused, 1, __ATOMIC_SEQ_CST);
			drop(region, n);
		}
	}
	return unused;
}

int main(void)
{
	pthread_t thread[THREADS];
	int i;

	if (shift_account_init() || pthread_barrier_init(&barrier, NULL, THREADS))
		return 2;
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, race, NULL))
			return 2;
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	shift_account_uninit();
	printf("# memlock race: %d rounds: few %d many %d refused %d unmirrored %d left %lld\n",
	       ROUNDS, few, many, refused, unmirrored, (long long)mm.pinned_vm.counter);
	return few || many || refused || unmirrored || mm.pinned_vm.counter;
}
