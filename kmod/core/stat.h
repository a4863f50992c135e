/* SPDX-License-Identifier: GPL-2.0 */
/* Counters of the module, and of the QPs of one device. */
#ifndef SHIFT_CORE_STAT_H
#define SHIFT_CORE_STAT_H

#include <linux/percpu.h>
#include <linux/types.h>

struct shift_dev;

/**
 * struct shift_qp_counts - the QPs of one device, by what became of them
 * @tracked: all of them, protected or not.
 * @protected: those that are protected, whatever path they run on.
 * @switching: of @protected, in the middle of a failover.
 * @fallback: of @protected, running on a backup.
 */
struct shift_qp_counts {
	u32 tracked;
	u32 protected;
	u32 switching;
	u32 fallback;
};

/* counters (stat.c): monotonic */
enum shift_stat {
	SHIFT_STAT_FAULTS,		/* faults for which a peer was asked to leave the path */
	SHIFT_STAT_SWITCHES,		/* failovers and moves completed */
	SHIFT_STAT_ABANDONED,		/* failovers called off, with nothing changed */
	SHIFT_STAT_FAILED,		/* failovers that ended in an error to the application */
	SHIFT_STAT_REPLAYED,		/* operations posted again */
	SHIFT_STAT_RESUMED,		/* of SHIFT_STAT_REPLAYED, WRITEs resumed in the middle */
	SHIFT_STAT_EXECUTED,		/* operations found executed, not replayed */
	SHIFT_STAT_SWALLOWED,		/* error completions kept from applications */
	SHIFT_STAT_SIDE_WC,		/* completions delivered through side rings */
	SHIFT_STAT_MIRROR_MR,		/* MR mirrors made */
	SHIFT_STAT_MIRROR_FAILED,
	SHIFT_STAT_PAIRED,		/* QPs that became protected */
	SHIFT_STAT_ILLEGAL,		/* transitions refused */
	SHIFT_STAT_MSG_BAD,		/* malformed messages dropped */
	SHIFT_STAT_MSG_STALE,		/* messages for no QP, or as it was before */
	SHIFT_STAT_RETURNS,		/* of SHIFT_STAT_SWITCHES, those back to the default NIC */
	SHIFT_STAT_EVENT_LOST,		/* netlink events dropped for want of memory */
	SHIFT_STAT_UNKNOWN,		/* QPs whose NIC could not be asked how far it got */
	SHIFT_STAT_DOUBTFUL,		/* operations posted again that may be executed twice */
	SHIFT_STAT_STALLED,		/* proxy QPs that completed nothing for too long */
	SHIFT_STAT_HANDBACKS,		/* handbacks to the application's own QP */
	SHIFT_STAT_KICKS,		/* posts that a provider announced by a system call */
	SHIFT_STAT_MOVES,		/* moves begun for operators or daemons */
	SHIFT_STAT_NEIGHBOURS,		/* lost neighbours whose MAC address was kept */
	SHIFT_STAT_DISCONNECTS,		/* RDMA CM's DREQs sent over another path */
	SHIFT_STAT_OUTAGES,		/* deadlines begun anew, as no path to the peer works */
	SHIFT_STAT_STRANGERS,		/* refused: not from the kernel of a peer */
	SHIFT_STAT_CROWDED,		/* connections not made, as too many are not gone */
	SHIFT_STAT_PAUSED,		/* pauses of links whose peers send much */
	SHIFT_STAT_FLOODED,		/* messages dropped, as a peer sent too many */
	SHIFT_STAT_DISBELIEVED,		/* errors of processes that began no failover */
	SHIFT_STAT_STAYED,		/* QPs that went on while heartbeats were lost */
	SHIFT_STAT_LANES_SILENT,	/* classes of links in which the path went silent */
	SHIFT_STAT_SPARED,		/* QPs that heard of no silence, as their class works */
	SHIFT_STAT_KERNEL_QPS,		/* QPs of users in the kernel that were tracked */
	SHIFT_STAT_KERNEL_POSTS,	/* what such users have posted, and was recorded */
	SHIFT_STAT_KERNEL_LOST,		/* queues of such users whose record was lost */
	__SHIFT_STAT_MAX
};

struct shift_stats {
	unsigned long n[__SHIFT_STAT_MAX];
};

/* stat.c */
DECLARE_PER_CPU(struct shift_stats, shift_stats);
u64 shift_stat_read(enum shift_stat stat);
const char *shift_stat_name(enum shift_stat stat);

/**
 * shift_stat_add - count
 * @stat: what.
 * @n: how many.
 *
 * Context: any.
 */
static inline void shift_stat_add(enum shift_stat stat, unsigned long n)
{
	this_cpu_add(shift_stats.n[stat], n);
}

static inline void shift_stat_inc(enum shift_stat stat)
{
	shift_stat_add(stat, 1);
}

#endif /* SHIFT_CORE_STAT_H */
