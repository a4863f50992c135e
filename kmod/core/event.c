// SPDX-License-Identifier: GPL-2.0
/* Events of pairs, links and QPs, passed on to the layer that tells operators. */
#include "core/event.h"
#include "core/object.h"
#include "core/qp.h"

static const struct shift_event_ops *event_ops;

/**
 * shift_event_register - register the functions that are called for each event
 * @ops: called until the module is unloaded.
 *
 * Context: while the module is loaded, before anything can happen.
 */
void shift_event_register(const struct shift_event_ops *ops)
{
	event_ops = ops;
}

/**
 * shift_notify_pair - a pair was made or changed, or has gone
 * @pair: the pair.
 * @event: what happened.
 *
 * Context: process context, shift_devices_lock.
 */
void shift_notify_pair(struct shift_pair *pair, enum shift_pair_event event)
{
	lockdep_assert_held(&shift_devices_lock);
	event_ops->pair(pair, event);
}

/**
 * shift_notify_link - a link changed its state
 * @info: the link as it is now.
 *
 * Context: process context.
 */
void shift_notify_link(const struct shift_link_info *info)
{
	event_ops->link(info);
}

/**
 * shift_notify_qp - something happened to a QP
 * @sqp: the QP, locked.
 * @event: what.
 * @time_ns: when, CLOCK_REALTIME.
 *
 * Context: process context, also of a failover.
 */
void shift_notify_qp(struct shift_qp *sqp, enum shift_qp_event event, u64 time_ns)
{
	lockdep_assert_held(&sqp->lock);
	event_ops->qp(sqp, event, time_ns);
}
