/* SPDX-License-Identifier: GPL-2.0 */
/* Events of pairs, links and QPs, for the layer that tells operators: netlink and sysfs. */
#ifndef SHIFT_CORE_EVENT_H
#define SHIFT_CORE_EVENT_H

#include <linux/types.h>
#include <uapi/linux/shift.h>

struct shift_link_info;
struct shift_pair;
struct shift_qp;

enum shift_pair_event { SHIFT_PAIR_ADDED, SHIFT_PAIR_CHANGED, SHIFT_PAIR_REMOVED };

/**
 * struct shift_event_ops - what is called for each event
 * @pair: a pair was made or changed, or has gone; process context, shift_devices_lock.
 * @link: a link changed its state; process context.
 * @qp: something happened to a QP at @time_ns, CLOCK_REALTIME; sqp->lock.  It must not sleep on
 *	user space.
 */
struct shift_event_ops {
	void (*pair)(struct shift_pair *pair, enum shift_pair_event event);
	void (*link)(const struct shift_link_info *info);
	void (*qp)(struct shift_qp *sqp, enum shift_qp_event event, u64 time_ns);
};

void shift_event_register(const struct shift_event_ops *ops);
void shift_notify_pair(struct shift_pair *pair, enum shift_pair_event event);
void shift_notify_link(const struct shift_link_info *info);
void shift_notify_qp(struct shift_qp *sqp, enum shift_qp_event event, u64 time_ns);

#endif /* SHIFT_CORE_EVENT_H */
