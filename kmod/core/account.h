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

struct shift_account;

int shift_account_charge(unsigned int npages, bool refuse, struct shift_account **account);
void shift_account_uncharge(struct shift_account *account, unsigned int npages);
struct shift_account *shift_account_lend(void);
void shift_account_restore(struct shift_account *account);
struct shift_account *shift_account_open(void);
void shift_account_close(struct shift_account *account);
void shift_account_objects(struct shift_account *account, int n);
bool shift_account_spend(struct shift_account *account);

#endif /* SHIFT_CORE_ACCOUNT_H */
