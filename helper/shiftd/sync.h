/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the kernel as the configuration and the directory want it.
 */
#ifndef SHIFT_SYNC_H
#define SHIFT_SYNC_H

#include <systemd/sd-event.h>

#include "shiftd/config.h"
#include "shiftd/directory.h"
#include "shiftd/kernel.h"

/* How soon what is missing is tried again. */
#define SHIFT_SYNC_RETRY_MS	2000
#define SHIFT_SYNC_NEVER	UINT64_MAX

struct shift_sync;

struct shift_sync_want {
	const struct shift_config *config;
	const struct shift_peers *peers;
	/* the directory was read: a peer it does not have is one too many */
	bool complete;
	uint64_t now_ms, hold_ms;
};

struct shift_sync *shift_sync_new(sd_event *event, bool dry_run,
				  void (*kick)(void *arg), void *arg);
void shift_sync_free(struct shift_sync *sync);
uint64_t shift_sync_run(struct shift_sync *sync,
			const struct shift_sync_want *want);
void shift_sync_pair_del(struct shift_sync *sync, const char *dev);
const struct shift_kernel *shift_sync_kernel(const struct shift_sync *sync);
const char *shift_sync_status(const struct shift_sync *sync);

#endif /* SHIFT_SYNC_H */
