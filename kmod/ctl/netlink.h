/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by netlink.c (requests), netlink_event.c and netlink_dump.c (what objects look
 * like in messages).
 */
#ifndef SHIFT_CTL_NETLINK_H
#define SHIFT_CTL_NETLINK_H

#include <net/genetlink.h>

struct shift_link_info;
struct shift_pair;
struct shift_qp;

enum shift_mcgrp {
	SHIFT_MCGRP_EVENTS,
};

extern struct genl_family shift_genl_family;

/* netlink_dump.c */
/* 0 or -EMSGSIZE */
int shift_nl_put_pair(struct sk_buff *skb, const struct shift_pair *pair);
int shift_nl_put_link(struct sk_buff *skb, const struct shift_link_info *info, bool admin);
int shift_nl_put_qp(struct sk_buff *skb, const struct shift_qp *sqp);
int shift_nl_pair_start(struct netlink_callback *cb);
int shift_nl_peer_start(struct netlink_callback *cb);
int shift_nl_link_start(struct netlink_callback *cb);
int shift_nl_qp_start(struct netlink_callback *cb);
int shift_nl_dump(struct sk_buff *skb, struct netlink_callback *cb);
int shift_nl_done(struct netlink_callback *cb);

#endif /* SHIFT_CTL_NETLINK_H */
