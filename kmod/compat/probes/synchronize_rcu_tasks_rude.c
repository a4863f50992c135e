// SPDX-License-Identifier: GPL-2.0
#include <linux/rcupdate.h>

void probe(void);
void probe(void)
{
#ifndef SHIFT_MUST_FAIL
	synchronize_rcu_tasks_rude();
#else
	synchronize_rcu_tasks_rude(1);
#endif
}
