/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_SYNC_PAIRS_H
#define SHIFT_SYNC_PAIRS_H

#include "shiftd/kernel.h"
#include "shiftd/sync.h"

/* What was said of each pair of the configuration and of its backups. */
struct shift_sync_pairs {
	uint32_t backup_told[SHIFT_PAIRS_MAX][SHIFT_PAIR_BACKUPS_MAX];
	uint32_t told[SHIFT_PAIRS_MAX];
};

unsigned int shift_sync_pairs(struct shift_sync_pairs *s,
			      struct shift_kernel *k,
			      const struct shift_config *config,
			      uint64_t *again);

#endif /* SHIFT_SYNC_PAIRS_H */
