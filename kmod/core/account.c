// SPDX-License-Identifier: GPL-2.0
/*
 * What the module does for a process, the process pays for.
 *
 * Memory that the module pins for a process counts as memory that the process has locked, as
 * the RDMA core counts what drivers pin: mm->pinned_vm, RLIMIT_MEMLOCK, CAP_IPC_LOCK.
 *
 * The driver has pinned and charged the same pages before.  So that an application can lock as
 * much as without the module, the module's charge is taken off while a verb of the application
 * runs: what the application locks itself stays within its limit, and the module pins nothing
 * while both together are above the limit.
 *
 * A failover costs everybody on the node a moment, and a process can cause one by saying that a
 * path is broken.  It can do so for all of its QPs at once, and for each of them a few times a
 * minute, but not without end.
 */
#include <linux/capability.h>
#include <linux/hashtable.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "core/account.h"

/**
 * struct shift_account - what one process has of the module, and pays for
 * @node: in the table, by @mm.
 * @mm: of that process, grabbed: it may end before we have unpinned all.
 * @users: pinned rings, open files, and verbs that run.
 * @pages: charged to it.
 * @verbs: verbs of the process that run; unless 0, @pages are not in mm->pinned_vm.
 * @objects: registered ones; any context.
 * @spent_ns: ktime until which its failovers have used up what it may cause; any context.
 */
struct shift_account {
	struct hlist_node node;
	struct mm_struct *mm;
	unsigned int users;
	unsigned long pages;
	unsigned int verbs;
	atomic_t objects;
	atomic64_t spent_ns;
};

#define SPEND_NS	(60ull * NSEC_PER_SEC)	/* after that it is all there again */

/* May be changed at any time. */
static unsigned int claims = 4;
module_param(claims, uint, 0644);
MODULE_PARM_DESC(claims, "failovers a minute that a process may cause for each of its registered objects, if nothing but the process says that there is a fault");

/* The table, and all that is in it. */
static DEFINE_SPINLOCK(accounts_lock);
static DEFINE_HASHTABLE(accounts, 6);

static struct shift_account *account_find(const struct mm_struct *mm)
{
	struct shift_account *account;

	lockdep_assert_held(&accounts_lock);
	hash_for_each_possible(accounts, account, node, (unsigned long)mm)
		if (account->mm == mm)
			return account;
	return NULL;
}

static struct shift_account *account_get(struct mm_struct *mm)
{
	struct shift_account *account, *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);

	spin_lock(&accounts_lock);
	account = account_find(mm);
	if (!account && fresh) {
		account = fresh;
		fresh = NULL;
		account->mm = mm;
		mmgrab(mm);
		hash_add(accounts, &account->node, (unsigned long)mm);
	}
	if (account)
		account->users++;
	spin_unlock(&accounts_lock);
	kfree(fresh);
	return account;
}

static void account_put(struct shift_account *account)
{
	bool last;

	spin_lock(&accounts_lock);
	last = !--account->users;
	if (last)
		hash_del(&account->node);
	spin_unlock(&accounts_lock);
	if (!last)
		return;
	mmdrop(account->mm);
	kfree(account);
}

/**
 * shift_account_charge - pages are about to be pinned for the calling process
 * @npages: their number.
 * @refuse: fail if the process may not lock so many; else they are charged all the same.
 * @account: out: for shift_account_uncharge(), once they are unpinned.
 *
 * Context: process context of the owner.
 * Return: 0, -ENOMEM.
 */
int shift_account_charge(unsigned int npages, bool refuse, struct shift_account **account)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct shift_account *own = account_get(current->mm);
	unsigned long locked;

	if (!own)
		return -ENOMEM;
	spin_lock(&accounts_lock);
	own->pages += npages;
	if (own->verbs)
		locked = atomic64_read(&own->mm->pinned_vm) + own->pages;
	else
		locked = atomic64_add_return(npages, &own->mm->pinned_vm);
	spin_unlock(&accounts_lock);
	if (refuse && locked > limit && !capable(CAP_IPC_LOCK)) {
		shift_account_uncharge(own, npages);
		return -ENOMEM;
	}
	*account = own;
	return 0;
}

/**
 * shift_account_uncharge - pages were unpinned
 * @account: where they were charged; not valid after this.
 * @npages: as many as were charged at once.
 *
 * Context: process context of any process.
 */
void shift_account_uncharge(struct shift_account *account, unsigned int npages)
{
	spin_lock(&accounts_lock);
	account->pages -= npages;
	if (!account->verbs)
		atomic64_sub(npages, &account->mm->pinned_vm);
	spin_unlock(&accounts_lock);
	account_put(account);
}

/**
 * shift_account_lend - take the module's charge off while a verb of the process runs
 *
 * Context: process context.
 * Return: for shift_account_restore() after the verb; NULL: nothing is charged.
 */
struct shift_account *shift_account_lend(void)
{
	struct shift_account *account;

	spin_lock(&accounts_lock);
	account = account_find(current->mm);
	if (account) {
		account->users++;
		if (!account->verbs++)
			atomic64_sub(account->pages, &account->mm->pinned_vm);
	}
	spin_unlock(&accounts_lock);
	return account;
}

/* The verb has ended: charge again what shift_account_lend() took off. */
void shift_account_restore(struct shift_account *account)
{
	if (!account)
		return;
	spin_lock(&accounts_lock);
	if (!--account->verbs)
		atomic64_add(account->pages, &account->mm->pinned_vm);
	spin_unlock(&accounts_lock);
	account_put(account);
}

/**
 * shift_account_open - the calling process has opened /dev/shift
 *
 * Context: process context.
 * Return: for shift_account_close(); NULL: no memory.
 */
struct shift_account *shift_account_open(void)
{
	return account_get(current->mm);
}

/* The file was closed, by any process; process context. */
void shift_account_close(struct shift_account *account)
{
	account_put(account);
}

/* @n objects more, or fewer, are registered; any context. */
void shift_account_objects(struct shift_account *account, int n)
{
	atomic_add(n, &account->objects);
}

/**
 * shift_account_spend - may the process cause one more failover now?
 * @account: of the process.
 *
 * Each one costs a share of SPEND_NS.  What a process has spent is the time until which it has to
 * wait for its whole allowance; it may be in debt for SPEND_NS at most.
 *
 * Context: any.
 */
bool shift_account_spend(struct shift_account *account)
{
	u64 most = (u64)READ_ONCE(claims) * max(atomic_read(&account->objects), 0);
	s64 next, spent = atomic64_read(&account->spent_ns);
	s64 now = ktime_get_ns();

	if (!most)
		return false;
	do {
		next = max(spent, now) + div64_u64(SPEND_NS, most);
		if (next > now + (s64)SPEND_NS)
			return false;
	} while (!atomic64_try_cmpxchg(&account->spent_ns, &spent, next));
	return true;
}
