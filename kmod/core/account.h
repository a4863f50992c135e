/* SPDX-License-Identifier: GPL-2.0 */
/* Memory that the module pins for a process counts as locked by the process: account.c. */
#ifndef SHIFT_CORE_ACCOUNT_H
#define SHIFT_CORE_ACCOUNT_H

#include <linux/gfp.h>
#include <linux/types.h>

/*
 * Beside GFP_*, for memory that a work item has for a process (app.memcg).  At the limit of the
 * cgroup there is none then; without the second flag a process of the cgroup would be killed.
 */
#define SHIFT_GFP_PAID	(__GFP_ACCOUNT | __GFP_RETRY_MAYFAIL)

struct cred;
struct shift_account;

/**
 * struct shift_lent - a verb that runs, and may lock memory
 * @account: of its process; NULL: it has none.
 * @mark: of the time when it, or one beside it, began to lock memory.
 * @tries: it may be locking memory.
 * @waits: others wait for it.
 * @until: jiffies; how long it waits for such pages.
 */
struct shift_lent {
	struct shift_account *account;
	unsigned int mark;
	bool tries, waits;
	unsigned long until;
};

int shift_account_charge(unsigned int npages, bool refuse, struct shift_account **account);
void shift_account_uncharge(struct shift_account *account, unsigned int npages);
void shift_account_lend(struct shift_lent *lent, bool once);
bool shift_account_again(struct shift_lent *lent);
void shift_account_settled(struct shift_lent *lent);
void shift_account_restore(struct shift_lent *lent);
const struct cred *shift_account_pin_begin(struct shift_account *account);
void shift_account_pin_end(struct shift_account *account, const struct cred *cred,
			   unsigned long npages);
void shift_account_unpin_begin(struct shift_account *account, unsigned long npages);
void shift_account_unpin_end(struct shift_account *account, unsigned long kept);
struct shift_account *shift_account_hold(struct shift_account *account);
struct shift_account *shift_account_open(void);
void shift_account_close(struct shift_account *account);
void shift_account_objects(struct shift_account *account, int n);
bool shift_account_spend(struct shift_account *account);
int shift_account_init(void);
void shift_account_uninit(void);

#endif /* SHIFT_CORE_ACCOUNT_H */
