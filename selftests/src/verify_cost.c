// SPDX-License-Identifier: GPL-2.0
/*
 * How long a call of ibv_post_send or ibv_modify_qp takes: quantiles of many calls.
 *
 * The time counter is read directly: where the kernel's clock is slow to read, it
 * would be most of what is measured.
 */
#include <stdlib.h>
#include <x86intrin.h>
#include "verify.h"

#define MAX_SAMPLES (1u << 20)

static struct {
	const char *name;
	uint32_t *samples;
	size_t count;
} costs[] = {
	[COST_POST] = { "post" }, [COST_RTR] = { "rtr" }, [COST_RTS] = { "rts" },
};
static uint64_t first_tick;
static double first_second;

uint64_t cost_begin(void)
{
	return __rdtsc();
}

void cost_end(enum cost kind, uint64_t began)
{
	uint64_t took = __rdtsc() - began;

	if (!first_tick) {
		first_tick = began;
		first_second = now();
	}
	if (!costs[kind].samples) {
		costs[kind].samples = malloc(MAX_SAMPLES * sizeof(uint32_t));
		if (!costs[kind].samples)
			die(EXIT_SETUP, "no memory");
	}
	if (costs[kind].count < MAX_SAMPLES)
		costs[kind].samples[costs[kind].count++] =
			took < UINT32_MAX ? took : UINT32_MAX;
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void cost_say(void)
{
	double ticks_per_ns = (__rdtsc() - first_tick) /
			      ((now() - first_second) * 1e9);
	unsigned int i;

	for (i = 0; i < sizeof(costs) / sizeof(*costs); i++) {
		uint32_t *samples = costs[i].samples;
		size_t count = costs[i].count;

		if (!count)
			continue;
		qsort(samples, count, sizeof(*samples), ascending);
		say("%s-cost %zu calls, ns: 10 %% %.0f, 25 %% %.0f, 50 %% %.0f",
		    costs[i].name, count, samples[count / 10] / ticks_per_ns,
		    samples[count / 4] / ticks_per_ns, samples[count / 2] / ticks_per_ns);
	}
}
