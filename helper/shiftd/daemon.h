/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_DAEMON_H
#define SHIFT_DAEMON_H

#include <stdbool.h>

#include "shiftd/config.h"

struct shift_daemon_options {
	const char *config_path;
	const char *sysfs;
	bool dry_run;
	bool withdraw;
};

int shift_daemon_run(const struct shift_daemon_options *options,
		     struct shift_config *config);

#endif /* SHIFT_DAEMON_H */
