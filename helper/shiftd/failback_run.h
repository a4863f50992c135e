/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIFT_FAILBACK_RUN_H
#define SHIFT_FAILBACK_RUN_H

#include "lib/netlink.h"
#include "shiftd/failback.h"

#define SHIFT_FAILBACK_RETRY_MS	2000

uint64_t shift_failback_run(struct shift_failback *fb, struct shift_nl *nl,
			    const struct shift_failback_policy *policy,
			    uint64_t now);

#endif /* SHIFT_FAILBACK_RUN_H */
