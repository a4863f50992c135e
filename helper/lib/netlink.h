/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A connection to the generic netlink family "shift".
 */
#ifndef SHIFT_NETLINK_H
#define SHIFT_NETLINK_H

#include <stdint.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include <linux/shift.h>

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
struct nl_msg *shift_nl_msg(struct shift_nl *nl, int cmd, int flags,
			    size_t size);
int shift_nl_request(struct shift_nl *nl, struct nl_msg *msg, shift_nl_fn fn,
		     void *arg);
int shift_nl_no_memory(struct shift_nl *nl, struct nl_msg *msg);

int shift_nl_subscribe(struct shift_nl *nl);
int shift_nl_fd(const struct shift_nl *nl);
int shift_nl_receive(struct shift_nl *nl, shift_nl_fn fn, void *arg);

#endif /* SHIFT_NETLINK_H */
