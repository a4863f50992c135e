/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_SYNC_KEYS_H
#define SHIFT_SYNC_KEYS_H

#include <time.h>

#include "shiftd/config.h"
#include "shiftd/kernel.h"

/* What was loaded last, and what was said of it. */
struct shift_sync_keys {
	struct timespec changed;	/* the file, when it was loaded */
	unsigned int n;
	uint32_t told;
};

bool shift_sync_keys(struct shift_sync_keys *s, struct shift_kernel *k,
		     const struct shift_config *config);

#endif /* SHIFT_SYNC_KEYS_H */
