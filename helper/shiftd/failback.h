/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When queue pairs go back to their own NIC: policy, without I/O.
 */
#ifndef SHIFT_FAILBACK_H
#define SHIFT_FAILBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/gid.h"
#include "lib/peer.h"

struct shift_failback;

struct shift_failback_policy {
	uint64_t hold_ms;	/* a path has to be good for so long */
	uint64_t max_hold_ms;	/* ... and at most so long after failures */
	uint64_t probe_ms;	/* and is probed so often meanwhile, 0: not */
};

/* A link of the kernel's. */
struct shift_failback_link {
	const char *dev;
	struct shift_gid remote;	/* the peer's device */
	uint32_t id;
	bool up;
	uint64_t connects;	/* how often it has come up */
	uint64_t acked;		/* what the peer's NIC has acknowledged on it */
};

struct shift_failback_ops {
	/* Moves a queue pair to its own device; what becomes of it is seen later. */
	void (*move)(const char *dev, uint32_t qpn, bool canary, void *arg);
	/* Has a link probed: whether that could be begun. */
	bool (*probe)(uint32_t link, void *arg);
};

struct shift_failback *shift_failback_new(void);
void shift_failback_free(struct shift_failback *fb);

/* One look at the kernel: begin, what it has, end. */
void shift_failback_begin(struct shift_failback *fb);
int shift_failback_link(struct shift_failback *fb,
			const struct shift_failback_link *link);
int shift_failback_qp(struct shift_failback *fb, const char *dev,
		      const struct shift_gid *remote, bool loop, uint32_t qpn,
		      unsigned int state);
uint64_t shift_failback_end(struct shift_failback *fb, uint64_t now,
			    const struct shift_failback_policy *policy,
			    const struct shift_failback_ops *ops, void *arg);

#endif /* SHIFT_FAILBACK_H */
