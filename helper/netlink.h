/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generic netlink family "shift", for shiftd and shiftctl.
 */
#ifndef SHIFT_NETLINK_H
#define SHIFT_NETLINK_H

#include <stdbool.h>
#include <stdint.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include <linux/shift.h>

struct shift_peer;
struct shift_nl;

/*
 * Called for each message of a reply, a dump or an event.  @tb holds the last
 * of each attribute; walk @nlh with shift_nl_for_each() for repeated ones.
 */
typedef void (*shift_nl_fn)(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
			    void *arg);

#define shift_nl_for_each(attr, nlh, rem) \
	nlmsg_for_each_attr(attr, nlh, GENL_HDRLEN, rem)

int shift_nl_open(struct shift_nl **nlp);
void shift_nl_close(struct shift_nl *nl);
const char *shift_nl_error(const struct shift_nl *nl);

int shift_nl_get(struct shift_nl *nl, int cmd, int dump, shift_nl_fn fn,
		 void *arg);
int shift_nl_node_set(struct shift_nl *nl, const char *node);
int shift_nl_pair_add(struct shift_nl *nl, const char *dev, const char *backup,
		      enum shift_policy policy);
int shift_nl_pair_set(struct shift_nl *nl, const char *dev,
		      enum shift_policy policy);
int shift_nl_pair_del(struct shift_nl *nl, const char *dev);
int shift_nl_move(struct shift_nl *nl, const char *dev, uint32_t qpn,
		  uint32_t path, bool keep);
int shift_nl_link_switch(struct shift_nl *nl, uint32_t id);
int shift_nl_link_probe(struct shift_nl *nl, uint32_t id);
int shift_nl_peer_set(struct shift_nl *nl, const struct shift_peer *peer);
int shift_nl_peer_del(struct shift_nl *nl, const char *node);

int shift_nl_peer_read(struct nlmsghdr *nlh, struct nlattr **tb,
		       struct shift_peer *peer);

int shift_nl_subscribe(struct shift_nl *nl);
int shift_nl_fd(const struct shift_nl *nl);
int shift_nl_receive(struct shift_nl *nl, shift_nl_fn fn, void *arg);

#endif /* SHIFT_NETLINK_H */
