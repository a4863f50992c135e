/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A peer as the kernel is told of it: a node and, per default NIC, the NICs
 * that stand in for it, in order.
 */
#ifndef SHIFT_PEER_H
#define SHIFT_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/shift.h>

#include "lib/gid.h"

struct shift_nic {
	struct shift_gid gid;
	unsigned int n_backups;
	struct shift_gid backups[SHIFT_BACKUPS_MAX];
};

struct shift_peer {
	char node[SHIFT_NODE_MAX];
	unsigned int n_nics;
	struct shift_nic nics[SHIFT_PEER_NICS_MAX];
};

int shift_peer_add_nic(struct shift_peer *peer, const char *gid,
		       const char *backups, char *err, size_t errlen);
bool shift_peer_equal(const struct shift_peer *a, const struct shift_peer *b);
bool shift_peer_has_gid(const struct shift_peer *peer,
			const struct shift_gid *gid);
char *shift_peer_format(const struct shift_peer *peer);

#endif /* SHIFT_PEER_H */
