// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that the module pins for a process counts as memory that the process has locked, as
 * the RDMA core counts what drivers pin: mm->pinned_vm, RLIMIT_MEMLOCK, CAP_IPC_LOCK.
 *
 * The driver has pinned and charged the same pages before.  So that an application can lock as
 * much as without the module, the module's charge is taken off while a verb of the application
 * runs: what the application locks itself stays within its limit, and the module pins nothing
 * while both together are above the limit.
 */
#include <linux/capability.h>
#include <linux/hashtable.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "core/account.h"

/**
 * struct shift_account - what is pinned for one process
 * @node: in the table, by @mm.
 * @mm: of that process, grabbed: it may end before we have unpinned all.
 * @users: pinned rings, and verbs that run.
 * @pages: charged to it.
 * @verbs: verbs of the process that run; unless 0, @pages are not in mm->pinned_vm.
 */
struct shift_account {
	struct hlist_node node;
	struct mm_struct *mm;
	unsigned int users;
	unsigned long pages;
	unsigned int verbs;
};

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
