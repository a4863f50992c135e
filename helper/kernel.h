/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the kernel as the configuration and the directory want it.
 */
#ifndef SHIFT_KERNEL_H
#define SHIFT_KERNEL_H

#include <systemd/sd-event.h>

#include "config.h"
#include "directory.h"

struct shift_kernel;

struct shift_kernel_want {
	const struct shift_config *config;
	const struct shift_peers *peers;
	/* the directory was read: a peer it does not have is one too many */
	bool complete;
	uint64_t now_ms, hold_ms;
};

struct shift_kernel *shift_kernel_new(sd_event *event, bool dry_run,
				      void (*kick)(void *arg), void *arg);
void shift_kernel_free(struct shift_kernel *kernel);
uint64_t shift_kernel_sync(struct shift_kernel *kernel,
			   const struct shift_kernel_want *want);
void shift_kernel_pair_del(struct shift_kernel *kernel, const char *dev);
const char *shift_kernel_status(const struct shift_kernel *kernel);

#endif /* SHIFT_KERNEL_H */
