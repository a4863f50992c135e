/* SPDX-License-Identifier: GPL-2.0 */
/* This node: its identity, and time as it is scaled for slow machines. */
#ifndef SHIFT_CORE_NODE_H
#define SHIFT_CORE_NODE_H

#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <uapi/linux/shift.h>

extern char shift_node[SHIFT_NODE_MAX];
extern u8 shift_boot_id[16];	/* random per module load */
extern struct workqueue_struct *shift_wq;
extern unsigned int shift_deadline_scale;

/* A time, in any unit, multiplied by the module parameter deadline_scale. */
static inline unsigned int shift_scale(unsigned int time)
{
	return time * max(READ_ONCE(shift_deadline_scale), 1u);
}

static inline u64 shift_scaled_ns(unsigned int ms)
{
	return (u64)shift_scale(ms) * NSEC_PER_MSEC;
}

static inline unsigned long shift_scaled_jiffies(unsigned int ms)
{
	return msecs_to_jiffies(shift_scale(ms));
}

/* The ktime, in ns, that is @ms scaled milliseconds, or @us scaled microseconds, from now. */
static inline u64 shift_from_now(unsigned int ms)
{
	return ktime_get_ns() + shift_scaled_ns(ms);
}

static inline u64 shift_from_now_us(unsigned int us)
{
	return ktime_get_ns() + (u64)shift_scale(us) * NSEC_PER_USEC;
}

#endif /* SHIFT_CORE_NODE_H */
