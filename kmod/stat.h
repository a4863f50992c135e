/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What can be counted: see shift_stat_*() in shift.h for the counters of the
 * module, and here for the QPs of one device.
 */
#ifndef SHIFT_STAT_H
#define SHIFT_STAT_H

#include <linux/types.h>

struct shift_dev;

/**
 * struct shift_qp_counts - the QPs of one device, by what became of them
 * @tracked: all of them, protected or not.
 * @protected: those with a live mirror, whatever path they run on.
 * @switching: of @protected, in the middle of a switch.
 * @fallback: of @protected, running on a backup.
 */
struct shift_qp_counts {
	u32 tracked;
	u32 protected;
	u32 switching;
	u32 fallback;
};

void shift_stat_count_qps(struct shift_dev *sdev, struct shift_qp_counts *counts);

#endif /* SHIFT_STAT_H */
