// SPDX-License-Identifier: GPL-2.0
/*
 * The work items of QPs wait for their turn, as they do where thousands of QPs leave one path.  The
 * linker puts this before the module's work item.
 */
#include "end/inside.h"

void __real_shift_failover_work(struct work_struct *work);
void __wrap_shift_failover_work(struct work_struct *work);

static u64 most_ns;			/* that one waits */

void sim_storm(u64 ns)
{
	most_ns = ns;
}

void __wrap_shift_failover_work(struct work_struct *work)
{
	u64 end_ns = most_ns ? sim_now + sim_draw_between(0, most_ns) : 0;

	/* not beyond the storm: who is judged after it has had its turn */
	while (most_ns && sim_now < end_ns)
		sim_sleep(min_t(u64, end_ns - sim_now, MS(100)));
	__real_shift_failover_work(work);
}
