// SPDX-License-Identifier: GPL-2.0
/*
 * Counters: one set per CPU, monotonic since load.
 */
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include "core/object.h"
#include "core/qp.h"
#include "core/stat.h"
#include "pure/fsm.h"

DEFINE_PER_CPU(struct shift_stats, shift_stats);

static const char * const shift_stat_names[] = {
	[SHIFT_STAT_FAULTS]		= "faults",
	[SHIFT_STAT_SWITCHES]		= "switches",
	[SHIFT_STAT_ABANDONED]		= "abandoned",
	[SHIFT_STAT_FAILED]		= "failed",
	[SHIFT_STAT_REPLAYED]		= "replayed",
	[SHIFT_STAT_RESUMED]		= "resumed",
	[SHIFT_STAT_EXECUTED]		= "executed",
	[SHIFT_STAT_SWALLOWED]		= "swallowed",
	[SHIFT_STAT_SIDE_WC]		= "side_wc",
	[SHIFT_STAT_MIRROR_MR]		= "mirror_mr",
	[SHIFT_STAT_MIRROR_FAILED]	= "mirror_failed",
	[SHIFT_STAT_PAIRED]		= "paired",
	[SHIFT_STAT_ILLEGAL]		= "illegal",
	[SHIFT_STAT_MSG_BAD]		= "msg_bad",
	[SHIFT_STAT_MSG_STALE]		= "msg_stale",
	[SHIFT_STAT_RETURNS]		= "returns",
	[SHIFT_STAT_EVENT_LOST]		= "event_lost",
	[SHIFT_STAT_UNKNOWN]		= "unknown",
	[SHIFT_STAT_DOUBTFUL]		= "doubtful",
	[SHIFT_STAT_STALLED]		= "stalled",
	[SHIFT_STAT_HANDBACKS]		= "handbacks",
	[SHIFT_STAT_KICKS]		= "kicks",
	[SHIFT_STAT_MOVES]		= "moves",
	[SHIFT_STAT_NEIGHBOURS]		= "neighbours",
	[SHIFT_STAT_DISCONNECTS]	= "disconnects",
	[SHIFT_STAT_OUTAGES]		= "outages",
	[SHIFT_STAT_STRANGERS]		= "strangers",
	[SHIFT_STAT_CROWDED]		= "crowded",
	[SHIFT_STAT_PAUSED]		= "paused",
	[SHIFT_STAT_FLOODED]		= "flooded",
	[SHIFT_STAT_DISBELIEVED]	= "disbelieved",
	[SHIFT_STAT_STAYED]		= "stayed",
	[SHIFT_STAT_LANES_SILENT]	= "lanes_silent",
	[SHIFT_STAT_SPARED]		= "spared",
	[SHIFT_STAT_KERNEL_QPS]		= "kernel_qps",
	[SHIFT_STAT_KERNEL_POSTS]	= "kernel_posts",
	[SHIFT_STAT_KERNEL_LOST]	= "kernel_lost",
};

static_assert(ARRAY_SIZE(shift_stat_names) == __SHIFT_STAT_MAX);

/**
 * shift_stat_read - the value of a counter
 * @stat: which.
 *
 * Context: any.
 * Return: the sum over all CPUs, since load.
 */
u64 shift_stat_read(enum shift_stat stat)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(shift_stats, cpu).n[stat]);
	return sum;
}

/**
 * shift_stat_name - the name of a counter, for netlink and sysfs
 * @stat: which.
 *
 * Return: a constant string in lower case.
 */
const char *shift_stat_name(enum shift_stat stat)
{
	return shift_stat_names[stat];
}
