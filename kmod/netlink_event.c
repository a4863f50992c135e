// SPDX-License-Identifier: GPL-2.0
/* Generic netlink family "shift": events. */
#include <linux/ktime.h>
#include "shift.h"
#include "netlink.h"

/*
 * Events are sent by the work that moves traffic, so memory for them must not
 * wait for a disk that may be behind that traffic.  An event that finds no
 * memory is dropped and counted; state can always be asked for again.
 */
static struct sk_buff *shift_event_new(u8 cmd, void **hdr)
{
	struct sk_buff *skb;

	if (!genl_has_listeners(&shift_genl_family, &init_net, SHIFT_MCGRP_EVENTS))
		return NULL;
	skb = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_NOIO | __GFP_NOWARN);
	if (!skb) {
		shift_stat_inc(SHIFT_STAT_EVENT_LOST);
		return NULL;
	}
	*hdr = genlmsg_put(skb, 0, 0, &shift_genl_family, 0, cmd);
	return skb;
}

/* Takes over @skb.  @err: of the attributes before. */
static void shift_event_send(struct sk_buff *skb, void *hdr, int err)
{
	if (err) {
		WARN_ON_ONCE(err == -EMSGSIZE);
		nlmsg_free(skb);
		shift_stat_inc(SHIFT_STAT_EVENT_LOST);
		return;
	}
	genlmsg_end(skb, hdr);
	err = genlmsg_multicast(&shift_genl_family, skb, 0, SHIFT_MCGRP_EVENTS,
				GFP_NOIO | __GFP_NOWARN);
	if (err && err != -ESRCH)
		shift_stat_inc(SHIFT_STAT_EVENT_LOST);
}

static int shift_event_put_time(struct sk_buff *skb, u64 time_ns)
{
	return nla_put_u64_64bit(skb, SHIFT_A_TIME_NS, time_ns, SHIFT_A_PAD);
}

/**
 * shift_notify_pair - tell listeners that a pair was added, changed or removed
 * @sdev: the default device.
 * @backup: who stands, or stood, in for it.
 * @added: or changed; else removed.
 *
 * Context: process context; the caller holds references on both.
 */
void shift_notify_pair(struct shift_dev *sdev, struct shift_dev *backup, bool added)
{
	struct sk_buff *skb;
	void *hdr;
	int err;

	skb = shift_event_new(SHIFT_CMD_PAIR_NTF, &hdr);
	if (!skb)
		return;
	err = shift_nl_put_pair(skb, sdev, backup);
	if (!err && added)
		err = nla_put_flag(skb, SHIFT_A_ADDED);
	if (!err)
		err = shift_event_put_time(skb, ktime_get_real_ns());
	shift_event_send(skb, hdr, err);
}

/**
 * shift_notify_link - tell listeners that a link changed its state
 * @info: the link as it is now.
 *
 * Context: process context.
 */
void shift_notify_link(const struct shift_link_info *info)
{
	struct sk_buff *skb;
	void *hdr;
	int err;

	skb = shift_event_new(SHIFT_CMD_LINK_NTF, &hdr);
	if (!skb)
		return;
	err = shift_nl_put_link(skb, info);
	if (!err)
		err = shift_event_put_time(skb, ktime_get_real_ns());
	shift_event_send(skb, hdr, err);
}

/**
 * shift_notify_qp - tell listeners what happened to a QP
 * @sqp: the QP, with its lock held or before anybody else can see it.
 * @event: what happened.
 * @time_ns: when, CLOCK_REALTIME.
 *
 * Context: process context, also of a failover.
 */
void shift_notify_qp(struct shift_qp *sqp, enum shift_qp_event event, u64 time_ns)
{
	struct sk_buff *skb;
	void *hdr;
	int err;

	skb = shift_event_new(SHIFT_CMD_QP_NTF, &hdr);
	if (!skb)
		return;
	err = shift_nl_put_qp(skb, sqp);
	if (!err)
		err = nla_put_u32(skb, SHIFT_A_QP_EVENT, event);
	if (!err)
		err = shift_event_put_time(skb, time_ns);
	shift_event_send(skb, hdr, err);
}
