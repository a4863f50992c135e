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
 * Pages of a mirror are counted already, for the MR that is mirrored.  The backup's driver counts
 * them once more when it pins or unpins them, which cannot be prevented.  So they count twice for
 * a while, but always at least once: nobody can lock more than his limit.  A verb that is refused
 * meanwhile is tried again alone, when no page counts twice.  So is one that was refused beside
 * another verb, because ib_umem_get() counts even what it refuses for a moment.
 *
 * A failover costs everybody on the node a moment, and a process can cause one by saying that a
 * path is broken.  It can do so for all of its QPs at once, and for each of them a few times a
 * minute, but not without end.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include <linux/wait.h>
#include "core/account.h"

/**
 * struct shift_account - what one process has of the module, and pays for
 * @node: in the table, by @mm.
 * @mm: of that process, grabbed: it may end before we have unpinned all.
 * @users: pinned rings, open files, MRs, and verbs that run.
 * @pages: charged to it.
 * @verbs: verbs of the process that run; unless 0, @pages are not in mm->pinned_vm.
 * @twice: times that pages are being pinned or unpinned which count twice meanwhile.
 * @ended: how often that has ended.
 * @trying: verbs that may be locking memory.
 * @mark: what account_mark() said when @trying was 0 last.
 * @waiting: verbs that lock memory once @twice and @trying are 0; these are kept so for them.
 * @wait: for @twice, @trying and @waiting.
 * @objects: registered ones; any context.
 * @spent_ns: ktime until which its failovers have used up what it may cause; any context.
 */
struct shift_account {
	struct hlist_node node;
	struct mm_struct *mm;
	unsigned int users;
	unsigned long pages;
	unsigned int verbs;
	unsigned int twice, ended;
	unsigned int trying, mark, waiting;
	wait_queue_head_t wait;
	atomic_t objects;
	atomic64_t spent_ns;
};

#define AGAIN_MS	30000	/* a verb waits for so long for pages that count twice */
#define YIELD_MS	100	/* a mirror for so long for such verbs */
/* No verb but one that registers memory locks more pages at once. */
#define RINGS_MAX	((256ul << 20) >> PAGE_SHIFT)
#define SPEND_NS	(60ull * NSEC_PER_SEC)	/* a spent allowance is whole again after it */

/* May be changed at any time. */
static unsigned int claims = 4;
module_param(claims, uint, 0644);
MODULE_PARM_DESC(claims, "failovers a minute that a process may cause for each of its registered objects, if nothing but the process says that there is a fault");

/* As whom pages are pinned that count already. */
static const struct cred *as_kernel;

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
	struct shift_account *account, *fresh;

	spin_lock(&accounts_lock);
	account = account_find(mm);
	if (account)
		account->users++;
	spin_unlock(&accounts_lock);
	if (account)
		return account;
	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	spin_lock(&accounts_lock);
	account = account_find(mm);
	if (!account && fresh) {
		account = fresh;
		fresh = NULL;
		account->mm = mm;
		init_waitqueue_head(&account->wait);
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

/* What tells whether pages count twice from now on: see account_was_exact(). */
static unsigned int account_mark(const struct shift_account *account)
{
	lockdep_assert_held(&accounts_lock);
	return account->twice ? account->ended - 1 : account->ended;
}

/* Has no page counted twice since the mark was taken? */
static bool account_was_exact(const struct shift_account *account, unsigned int mark)
{
	lockdep_assert_held(&accounts_lock);
	return !account->twice && account->ended == mark;
}

/* The verb begins to lock memory. */
static void account_try(struct shift_lent *lent)
{
	struct shift_account *account = lent->account;

	lockdep_assert_held(&accounts_lock);
	if (!account->trying++)
		account->mark = account_mark(account);
	lent->mark = account->mark;
	lent->tries = true;
}

/* It has locked memory, or was refused. */
static void account_tried(struct shift_lent *lent)
{
	lockdep_assert_held(&accounts_lock);
	lent->account->trying -= lent->tries;
	lent->tries = false;
}

/* Begin anew, alone, if no page counts twice. */
static bool account_try_alone(struct shift_lent *lent)
{
	struct shift_account *account = lent->account;
	bool alone;

	spin_lock(&accounts_lock);
	alone = !account->twice && !account->trying;
	if (alone)
		account_try(lent);
	spin_unlock(&accounts_lock);
	return alone;
}

/* Wait until no page counts twice and no other verb tries.  False: it takes too long. */
static bool account_settle(struct shift_lent *lent)
{
	struct shift_account *account = lent->account;
	long left;

	spin_lock(&accounts_lock);
	account_tried(lent);
	if (!lent->waits) {
		account->waiting++;
		lent->waits = true;
		lent->until = jiffies + msecs_to_jiffies(AGAIN_MS);
	}
	spin_unlock(&accounts_lock);
	wake_up_all(&account->wait);
	left = lent->until - jiffies;
	return left > 0 &&
	       wait_event_killable_timeout(account->wait, account_try_alone(lent), left) > 0;
}

/* Let those go first that wait to be alone. */
static void account_yield(struct shift_account *account)
{
	if (READ_ONCE(account->waiting))
		wait_event_timeout(account->wait, !READ_ONCE(account->waiting),
				   msecs_to_jiffies(YIELD_MS));
}

/* May a verb that locks rings have been refused only because pages of mirrors count twice? */
static bool account_is_near(const struct shift_account *account)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	return READ_ONCE(account->twice) &&
	       atomic64_read(&account->mm->pinned_vm) + RINGS_MAX > limit &&
	       !ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK);
}

/**
 * shift_account_lend - take the module's charge off while a verb of the process runs
 * @lent: for shift_account_restore() after the verb.
 * @once: the verb cannot be tried again: first wait until no page counts twice.
 *
 * Context: process context; with @once it may sleep for up to 30 s, but only near the limit.
 */
void shift_account_lend(struct shift_lent *lent, bool once)
{
	struct shift_account *account;

	memset(lent, 0, sizeof(*lent));
	spin_lock(&accounts_lock);
	account = account_find(current->mm);
	if (account) {
		account->users++;
		if (!account->verbs++)
			atomic64_sub(account->pages, &account->mm->pinned_vm);
	}
	spin_unlock(&accounts_lock);
	lent->account = account;
	if (!account)
		return;
	account_yield(account);
	if (once && account_is_near(account) && account_settle(lent))
		return;
	spin_lock(&accounts_lock);
	account_try(lent);
	spin_unlock(&accounts_lock);
}

/**
 * shift_account_again - the verb had no memory: is that to be tried once more?
 * @lent: of shift_account_lend().
 *
 * If pages counted twice meanwhile, that may be why.  Then this waits until none do, and until no
 * other verb of the process tries.
 *
 * Context: process context; may sleep for up to 30 s in all.
 */
bool shift_account_again(struct shift_lent *lent)
{
	bool exact;

	if (!lent->account)
		return false;
	spin_lock(&accounts_lock);
	exact = account_was_exact(lent->account, lent->mark);
	spin_unlock(&accounts_lock);
	return !exact && account_settle(lent);
}

/* The verb has ended: charge again what shift_account_lend() took off. */
void shift_account_restore(struct shift_lent *lent)
{
	struct shift_account *account = lent->account;

	if (!account)
		return;
	spin_lock(&accounts_lock);
	if (!--account->verbs)
		atomic64_add(account->pages, &account->mm->pinned_vm);
	spin_unlock(&accounts_lock);
	shift_account_settled(lent);
	account_put(account);
}

/* The verb has locked what it wanted, or failed: others need not wait for it any more. */
void shift_account_settled(struct shift_lent *lent)
{
	struct shift_account *account = lent->account;
	bool tell;

	if (!account)
		return;
	spin_lock(&accounts_lock);
	account_tried(lent);
	account->waiting -= lent->waits;
	lent->waits = false;
	tell = !account->trying || !account->waiting;
	spin_unlock(&accounts_lock);
	if (tell)
		wake_up_all(&account->wait);
}

static void account_twice(struct shift_account *account)
{
	spin_lock(&accounts_lock);
	account->twice++;
	spin_unlock(&accounts_lock);
}

static void account_twice_end(struct shift_account *account)
{
	bool none;

	spin_lock(&accounts_lock);
	none = !--account->twice;
	account->ended++;
	spin_unlock(&accounts_lock);
	if (none)
		wake_up_all(&account->wait);
}

/**
 * shift_account_pin_begin - pages of the caller are about to be pinned that count already
 * @account: of the caller.
 *
 * Until the end the caller acts as the kernel, so that its limit is no reason to refuse them.
 *
 * Context: process context of the owner; sleeps for 100 ms at most.
 * Return: for shift_account_pin_end().
 */
const struct cred *shift_account_pin_begin(struct shift_account *account)
{
	account_yield(account);
	account_twice(account);
	return override_creds(as_kernel);
}

/**
 * shift_account_pin_end - they were pinned, or not
 * @account: as at the beginning.
 * @cred: what shift_account_pin_begin() has returned.
 * @npages: pages that were counted once more; 0: it has failed.
 *
 * Context: process context.
 */
void shift_account_pin_end(struct shift_account *account, const struct cred *cred,
			   unsigned long npages)
{
	revert_creds(cred);
	atomic64_sub(npages, &account->mm->pinned_vm);
	account_twice_end(account);
}

/**
 * shift_account_unpin_begin - pages are about to be unpinned that count on for something else
 * @account: as when they were pinned.
 * @npages: their number.
 *
 * Context: process context of any process.
 */
void shift_account_unpin_begin(struct shift_account *account, unsigned long npages)
{
	account_twice(account);
	atomic64_add(npages, &account->mm->pinned_vm);
}

/**
 * shift_account_unpin_end - they were unpinned, or not
 * @account: as at the beginning.
 * @kept: pages that could not be unpinned.
 *
 * Context: process context of any process.
 */
void shift_account_unpin_end(struct shift_account *account, unsigned long kept)
{
	atomic64_sub(kept, &account->mm->pinned_vm);
	account_twice_end(account);
}

/* Have an account once more; process context. */
struct shift_account *shift_account_hold(struct shift_account *account)
{
	spin_lock(&accounts_lock);
	account->users++;
	spin_unlock(&accounts_lock);
	return account;
}

/**
 * shift_account_open - the calling process has opened /dev/shift, or registers memory
 *
 * Context: process context.
 * Return: for shift_account_close(); NULL: no memory.
 */
struct shift_account *shift_account_open(void)
{
	return account_get(current->mm);
}

/* The file was closed, or the MR has gone, by any process; process context. */
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
 * Each one costs a share of SPEND_NS.  What a process has spent is noted as the time at which its
 * allowance is whole again; that is SPEND_NS ahead at most.
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

int __init shift_account_init(void)
{
	as_kernel = prepare_kernel_cred(&init_task);
	return as_kernel ? 0 : -ENOMEM;
}

void shift_account_uninit(void)
{
	put_cred(as_kernel);
}
