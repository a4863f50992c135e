/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * This node's NICs as other nodes need them: GIDs of the configured pairs, with
 * the backup that the kernel uses first.
 */
#ifndef SHIFT_LOCAL_H
#define SHIFT_LOCAL_H

#include "shiftd/config.h"
#include "shiftd/entry.h"
#include "shiftd/kernel.h"

/* a peer has no more NICs, and each GID counts as one */
#define SHIFT_ENTRIES_MAX	SHIFT_PEER_NICS_MAX

struct shift_local;

struct shift_local *shift_local_new(const char *sysfs);
void shift_local_free(struct shift_local *local);
const char *shift_local_boot_id(const struct shift_local *local);
bool shift_local_refresh(struct shift_local *local,
			 const struct shift_config *config);
bool shift_local_in_use(struct shift_local *local,
			const struct shift_config *config,
			const struct shift_kernel *k);
size_t shift_local_entries(const struct shift_local *local,
			   const struct shift_config *config,
			   struct shift_entry entries[SHIFT_ENTRIES_MAX]);
size_t shift_local_gids(const struct shift_local *local,
			struct shift_gid **gids);

#endif /* SHIFT_LOCAL_H */
