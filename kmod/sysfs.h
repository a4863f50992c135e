/* SPDX-License-Identifier: GPL-2.0 */
/* What is shown in sysfs; see Documentation/ABI/testing/. */
#ifndef SHIFT_SYSFS_H
#define SHIFT_SYSFS_H

#include <linux/sysfs.h>

struct shift_dev;

/* of the misc device: /sys/class/misc/shift/ */
extern const struct attribute_group *shift_misc_groups[];

/* /sys/class/infiniband/<device>/shift/ */
int shift_sysfs_add(struct shift_dev *sdev);
void shift_sysfs_remove(struct shift_dev *sdev);

#endif /* SHIFT_SYSFS_H */
