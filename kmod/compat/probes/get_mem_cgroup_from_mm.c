// SPDX-License-Identifier: GPL-2.0
#include <linux/memcontrol.h>

void probe(void);
void probe(void)
{
#ifndef SHIFT_MUST_FAIL
	mem_cgroup_put(get_mem_cgroup_from_mm(NULL));
#else
	mem_cgroup_put(get_mem_cgroup_from_mm());
#endif
}
