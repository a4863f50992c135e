// SPDX-License-Identifier: GPL-2.0
/*
 * Reclaim may wait for a write over a QP of a user in the kernel, while all memory is used up.  So
 * what moves such a QP waits for no memory, and for nobody who does.
 */
#include <linux/lockdep.h>
#include <linux/sched/mm.h>
#include "core/reclaim.h"

#ifdef CONFIG_LOCKDEP
/*
 * "Is a QP being moved that reclaim may wait for?"  Held by whoever moves it, so that lockdep knows
 * all that is waited for meanwhile, and reports a lock under which somebody else waits for reclaim.
 */
static struct lockdep_map moving = STATIC_LOCKDEP_MAP_INIT("shift_reclaim", &moving);
#endif

/**
 * shift_reclaim_init - tell lockdep that reclaim waits for QPs that are moved
 *
 * Context: process context.
 */
void shift_reclaim_init(void)
{
	fs_reclaim_acquire(GFP_KERNEL);
	shift_reclaim_waits();
	shift_reclaim_waited();
	fs_reclaim_release(GFP_KERNEL);
}

/**
 * shift_reclaim_waits - reclaim may wait for what follows, and for all that this waits for
 *
 * It is lockdep that is told; nothing is allocated in another way.
 *
 * Context: any but interrupts; until shift_reclaim_waited().
 */
void shift_reclaim_waits(void)
{
	lock_map_acquire(&moving);
}

/**
 * shift_reclaim_waited - it is over
 *
 * Context: the same thread.
 */
void shift_reclaim_waited(void)
{
	lock_map_release(&moving);
}

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
	shift_reclaim_waits();
	return memalloc_noreclaim_save();
}

/**
 * shift_reclaim_end - it is over
 * @saved: what shift_reclaim_begin() has returned, in the same thread.
 */
void shift_reclaim_end(unsigned int saved)
{
	memalloc_noreclaim_restore(saved);
	shift_reclaim_waited();
}
