/* SPDX-License-Identifier: GPL-2.0 */
/* Interfaces for providers in user space, and for operators. */
#ifndef SHIFT_CTL_CTL_H
#define SHIFT_CTL_CTL_H

#include <linux/sysfs.h>
#include <uapi/linux/shift.h>

struct shift_dev;
struct shift_event_ops;
struct shift_link_info;
struct shift_qp;

/* of the misc device: /sys/class/misc/shift/ */
extern const struct attribute_group *shift_misc_groups[];

/* chardev.c */
int shift_chardev_init(void);
void shift_chardev_uninit(void);

/* netlink.c */
int shift_netlink_init(void);
void shift_netlink_uninit(void);
extern struct genl_family shift_genl_family;

/* netlink_event.c */
extern const struct shift_event_ops shift_ctl_events;

/* sysfs.c */
/* of the misc device: /sys/class/misc/shift/ */
extern const struct attribute_group *shift_misc_groups[];
/* /sys/class/infiniband/<device>/shift/ */
int shift_sysfs_add(struct shift_dev *sdev);
void shift_sysfs_remove(struct shift_dev *sdev);

/* reason.c */
const char *shift_reason_text(enum shift_reason reason);

#endif /* SHIFT_CTL_CTL_H */
