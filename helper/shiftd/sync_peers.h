/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_SYNC_PEERS_H
#define SHIFT_SYNC_PEERS_H

#include "shiftd/kernel.h"
#include "shiftd/sync.h"

struct shift_known_peer;

struct shift_sync_peers {
	struct shift_known_peer *known;
	size_t n_known;
};

uint64_t shift_sync_peers(struct shift_sync_peers *s, struct shift_kernel *k,
			  const struct shift_sync_want *want);
void shift_sync_peers_clear(struct shift_sync_peers *s);

#endif /* SHIFT_SYNC_PEERS_H */
