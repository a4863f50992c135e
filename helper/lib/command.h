/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The commands of the netlink family.  Those that tell the kernel something
 * return 0 or -errno, and shift_nl_error() has the text.
 */
#ifndef SHIFT_COMMAND_H
#define SHIFT_COMMAND_H

#include <stdbool.h>

#include "lib/netlink.h"

struct shift_peer;

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
unsigned int shift_nl_backups_read(struct nlmsghdr *nlh,
				   void (*fn)(const char *backup, void *arg),
				   void *arg);

#endif /* SHIFT_COMMAND_H */
