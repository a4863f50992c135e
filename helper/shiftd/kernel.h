/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel has, as last read, and what it can be told.  In a dry run
 * nothing is read or told: commands are printed, as arguments of shiftctl, and
 * what they would do is noted here.
 */
#ifndef SHIFT_KERNEL_H
#define SHIFT_KERNEL_H

#include "lib/netlink.h"
#include "shiftd/directory.h"

struct shift_kernel_pair {
	char dev[SHIFT_DEV_MAX];
	char backups[SHIFT_BACKUPS_MAX][SHIFT_DEV_MAX];	/* in order */
	unsigned int n_backups;
	bool one_only;		/* an older kernel: it takes no further backup */
	bool drained;
	unsigned int qps;	/* of applications */
	int policy;
};

struct shift_kernel {
	bool dry_run;
	struct shift_nl *nl;		/* NULL: the module is not there */

	char node[SHIFT_NODE_MAX];
	unsigned int keys;
	struct shift_kernel_pair *pairs;
	size_t n_pairs;
	struct shift_peers peers;
	struct shift_gid *connected;	/* remote GIDs of links that are up */
	size_t n_connected;
};

int shift_kernel_open(struct shift_kernel *k);
void shift_kernel_close(struct shift_kernel *k);
void shift_kernel_clear(struct shift_kernel *k);
int shift_kernel_read(struct shift_kernel *k);
const char *shift_kernel_error(const struct shift_kernel *k);
bool shift_kernel_is_connected(const struct shift_kernel *k,
			       const struct shift_peer *peer);

struct shift_kernel_pair *shift_kernel_pair(const struct shift_kernel *k,
					    const char *dev);

int shift_kernel_node_set(struct shift_kernel *k, const char *node);
int shift_kernel_pair_add(struct shift_kernel *k, const char *dev,
			  const char *backup, int policy);
int shift_kernel_pair_set(struct shift_kernel *k, const char *dev, int policy);
int shift_kernel_pair_del(struct shift_kernel *k, const char *dev);
int shift_kernel_peer_set(struct shift_kernel *k, const struct shift_peer *peer);
int shift_kernel_peer_del(struct shift_kernel *k, const char *node);

#endif /* SHIFT_KERNEL_H */
