// SPDX-License-Identifier: GPL-2.0
/* Generic netlink family "shift": events. */
#include <linux/ktime.h>
#include "core/event.h"
#include "core/object.h"
#include "core/pair.h"
#include "core/qp.h"
#include "core/stat.h"
#include "ctl/ctl.h"
#include "ctl/netlink.h"
#include "link/link.h"

/*
 * Events are sent by the work that moves traffic, so memory for them must not wait for a disk that
 * may be behind that traffic, nor be of the reserves, which that work needs itself.  Without
 * NORETRY the allocator would not fail, but try until others have freed memory.  An event that
 * finds none is dropped and counted; state can always be asked for again.
 */
#define GFP_EVENT	(GFP_NOIO | __GFP_NORETRY | __GFP_NOMEMALLOC | __GFP_NOWARN)

static struct sk_buff *event_new(u8 cmd, void **hdr)
{
	struct sk_buff *skb;

	if (!genl_has_listeners(&shift_genl_family, &init_net, SHIFT_MCGRP_EVENTS))
		return NULL;
	skb = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_EVENT);
	if (!skb) {
		shift_stat_inc(SHIFT_STAT_EVENT_LOST);
		return NULL;
	}
	*hdr = genlmsg_put(skb, 0, 0, &shift_genl_family, 0, cmd);
	return skb;
}

/* Send an event, or drop it if @err, the result of filling it in, is not 0.  Consumes @skb. */
static void event_send(struct sk_buff *skb, void *hdr, int err)
{
	if (err) {
		WARN_ON_ONCE(err == -EMSGSIZE);
		nlmsg_free(skb);
		shift_stat_inc(SHIFT_STAT_EVENT_LOST);
		return;
	}
	genlmsg_end(skb, hdr);
	err = genlmsg_multicast(&shift_genl_family, skb, 0, SHIFT_MCGRP_EVENTS,
				GFP_EVENT);
	if (err && err != -ESRCH)
		shift_stat_inc(SHIFT_STAT_EVENT_LOST);
}

static int event_put_time(struct sk_buff *skb, u64 time_ns)
{
	return nla_put_u64_64bit(skb, SHIFT_A_TIME_NS, time_ns, SHIFT_A_PAD);
}

static void notify_pair(struct shift_pair *pair, enum shift_pair_event event)
{
	struct sk_buff *skb;
	void *hdr;
	int err;

	if (event == SHIFT_PAIR_ADDED)
		shift_sysfs_add(pair->sdev);
	else if (event == SHIFT_PAIR_REMOVED)
		shift_sysfs_remove(pair->sdev);
	skb = event_new(SHIFT_CMD_PAIR_NTF, &hdr);
	if (!skb)
		return;
	err = shift_nl_put_pair(skb, pair);
	if (!err && event != SHIFT_PAIR_REMOVED)
		err = nla_put_flag(skb, SHIFT_A_ADDED);
	if (!err && event == SHIFT_PAIR_CHANGED)
		err = nla_put_flag(skb, SHIFT_A_CHANGED);
	if (!err)
		err = event_put_time(skb, ktime_get_real_ns());
	event_send(skb, hdr, err);
}

static void notify_link(const struct shift_link_info *info)
{
	struct sk_buff *skb;
	void *hdr;
	int err;

	skb = event_new(SHIFT_CMD_LINK_NTF, &hdr);
	if (!skb)
		return;
	err = shift_nl_put_link(skb, info, true);
	if (!err)
		err = event_put_time(skb, ktime_get_real_ns());
	event_send(skb, hdr, err);
}

static void notify_qp(struct shift_qp *sqp, enum shift_qp_event event, u64 time_ns)
{
	struct sk_buff *skb;
	void *hdr;
	int err;

	skb = event_new(SHIFT_CMD_QP_NTF, &hdr);
	if (!skb)
		return;
	err = shift_nl_put_qp(skb, sqp);
	if (!err)
		err = nla_put_u32(skb, SHIFT_A_QP_EVENT, event);
	if (!err)
		err = event_put_time(skb, time_ns);
	event_send(skb, hdr, err);
}

const struct shift_event_ops shift_ctl_events = {
	.pair = notify_pair,
	.link = notify_link,
	.qp = notify_qp,
};
