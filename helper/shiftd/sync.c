// SPDX-License-Identifier: GPL-2.0-only
/*
 * Level-triggered: each sync reads what the kernel has and makes the
 * difference up, so that a module loaded again, a command typed by hand or a
 * lost event need no code of their own.  Nothing here is in the failure path:
 * a sync that never comes leaves the kernel protecting what it protects.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shiftd/events.h"
#include "shiftd/failback_run.h"
#include "shiftd/log.h"
#include "shiftd/sync.h"
#include "shiftd/sync_keys.h"
#include "shiftd/sync_pairs.h"
#include "shiftd/sync_peers.h"

struct shift_sync {
	sd_event *event;
	void (*kick)(void *arg);
	void *arg;

	struct shift_kernel kernel;
	struct shift_events *events;
	struct shift_sync_keys keys;
	struct shift_sync_pairs pairs;
	struct shift_sync_peers peers;
	struct shift_failback *failback;
	uint32_t node_told;
	bool told_missing;
	bool known;		/* @kernel was read by the last sync */
	char status[128];
};

static void close_kernel(struct shift_sync *s)
{
	shift_events_close(s->events);
	s->events = NULL;
	shift_kernel_close(&s->kernel);
}

static int open_kernel(struct shift_sync *s)
{
	int ret = shift_kernel_open(&s->kernel);

	if (!ret && !s->kernel.dry_run && !s->events)
		ret = shift_events_open(s->event, s->kick, s->arg, &s->events);
	if (ret)
		close_kernel(s);
	return ret;
}

/* Return: 0 and it is known what the kernel has, or -errno. */
static int look_at_kernel(struct shift_sync *s)
{
	int ret = open_kernel(s);

	if (ret || !shift_kernel_read(&s->kernel))
		return ret;
	/* Unloaded, and maybe loaded again since: once more. */
	close_kernel(s);
	ret = open_kernel(s);
	return ret ? ret : shift_kernel_read(&s->kernel);
}

static void tell_missing(struct shift_sync *s, int ret)
{
	if (!s->told_missing)
		log_warn("%s; waiting for it", ret == -ENOENT ?
			 "kernel module rdma_shift is not loaded (modprobe rdma_shift)" :
			 s->kernel.nl ? shift_kernel_error(&s->kernel) :
			 strerror(-ret));
	s->told_missing = true;
	snprintf(s->status, sizeof(s->status), "kernel module not loaded");
}

static void sync_node(struct shift_sync *s, const char *node)
{
	if (!strcmp(s->kernel.node, node) ||
	    !shift_kernel_node_set(&s->kernel, node))
		s->node_told = 0;
	else
		log_warn_once(&s->node_told, "node name: %s",
			      shift_kernel_error(&s->kernel));
}

static uint64_t sync_failback(struct shift_sync *s,
			      const struct shift_sync_want *want)
{
	const struct shift_failback_policy policy = {
		.hold_ms = want->config->failback_hold * 1000ULL,
		.max_hold_ms = want->config->failback_max_hold * 1000ULL,
		.probe_ms = want->config->failback_probe * 1000ULL,
	};

	if (s->kernel.dry_run || !want->config->failback)
		return SHIFT_SYNC_NEVER;
	return shift_failback_run(s->failback, s->kernel.nl, &policy,
				  want->now_ms);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/**
 * shift_sync_run() - make the kernel as it should be
 * @s: from shift_sync_new()
 * @want: how it should be
 *
 * Return: in how many ms it must be called again for what is not done yet;
 * SHIFT_SYNC_NEVER if all is done.
 */
uint64_t shift_sync_run(struct shift_sync *s, const struct shift_sync_want *want)
{
	uint64_t again = SHIFT_SYNC_NEVER;
	unsigned int missing;
	int ret;

	ret = look_at_kernel(s);
	s->known = !ret;
	if (ret) {
		tell_missing(s, ret);
		close_kernel(s);
		return SHIFT_SYNC_RETRY_MS;
	}
	if (s->told_missing)
		log_info("kernel module rdma_shift is loaded");
	s->told_missing = false;
	sync_node(s, want->config->node);
	if (!shift_sync_keys(&s->keys, &s->kernel, want->config)) {
		snprintf(s->status, sizeof(s->status), "no key could be loaded");
		return SHIFT_SYNC_RETRY_MS;
	}
	missing = shift_sync_pairs(&s->pairs, &s->kernel, want->config, &again);
	again = sooner(again, shift_sync_peers(&s->peers, &s->kernel, want));
	again = sooner(again, sync_failback(s, want));
	snprintf(s->status, sizeof(s->status), "%zu pair(s)%s, %zu peer(s)",
		 s->kernel.n_pairs, missing ? ", some missing" : "",
		 want->peers->n);
	if (s->kernel.dry_run)
		fflush(stdout);
	return again;
}

/* A pair that a reload took out of the configuration. */
void shift_sync_pair_del(struct shift_sync *s, const char *dev)
{
	memset(&s->pairs, 0, sizeof(s->pairs));
	if (!s->kernel.dry_run && !s->kernel.nl)
		return;
	if (shift_kernel_pair_del(&s->kernel, dev))
		log_warn("pair %s was not removed: %s", dev,
			 shift_kernel_error(&s->kernel));
	else
		log_info("pair: %s has no backup any more", dev);
	if (s->kernel.dry_run)
		fflush(stdout);
}

/* What the kernel has since the last sync; NULL: that is not known. */
const struct shift_kernel *shift_sync_kernel(const struct shift_sync *s)
{
	return s->known ? &s->kernel : NULL;
}

const char *shift_sync_status(const struct shift_sync *s)
{
	return s->status;
}

struct shift_sync *shift_sync_new(sd_event *event, bool dry_run,
				  void (*kick)(void *arg), void *arg)
{
	struct shift_sync *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->failback = shift_failback_new();
	if (!s->failback) {
		free(s);
		return NULL;
	}
	s->event = sd_event_ref(event);
	s->kernel.dry_run = dry_run;
	s->kick = kick;
	s->arg = arg;
	return s;
}

/* What is in the kernel stays there. */
void shift_sync_free(struct shift_sync *s)
{
	if (!s)
		return;
	close_kernel(s);
	shift_kernel_clear(&s->kernel);
	shift_sync_peers_clear(&s->peers);
	shift_failback_free(s->failback);
	sd_event_unref(s->event);
	free(s);
}
