// SPDX-License-Identifier: GPL-2.0
/*
 * Reclaim may wait for a write over a QP of a user in the kernel, while all memory is used up.  So
 * what moves such a QP waits for no memory.
 */
#include <linux/sched/mm.h>
#include "core/reclaim.h"

/**
 * shift_reclaim_begin - what follows moves a QP that reclaim may wait for
 *
 * Allocations fail rather than wait, and the little that is needed may come from the reserves.
 *
 * Context: any but interrupts.
 * Return: for shift_reclaim_end().
 */
unsigned int shift_reclaim_begin(void)
{
	return memalloc_noreclaim_save();
}

/**
 * shift_reclaim_end - it is over
 * @saved: what shift_reclaim_begin() has returned, in the same thread.
 */
void shift_reclaim_end(unsigned int saved)
{
	memalloc_noreclaim_restore(saved);
}
