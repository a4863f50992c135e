/* SPDX-License-Identifier: GPL-2.0 */
/* Memory that the module pins for a process counts as locked by the process: account.c. */
#ifndef SHIFT_CORE_ACCOUNT_H
#define SHIFT_CORE_ACCOUNT_H

#include <linux/types.h>

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
