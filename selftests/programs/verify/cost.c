// SPDX-License-Identifier: GPL-2.0
/*
 * How long a call of ibv_post_send or ibv_modify_qp takes: quantiles of many calls.
 *
 * The time counter is read directly: where the kernel's clock is slow to read, it
 * would be most of what is measured. What a call to ibv_modify_qp leaves to others is
 * not its cost, so that is the thread's own time.
 */
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>
#include "verify.h"

#define MAX_SAMPLES (1u << 20)

static struct {
	const char *name;
	bool own;		/* samples are ns of the thread */
	uint32_t *samples;
	size_t count;
} costs[] = {
	[COST_POST] = { "post" }, [COST_RTR] = { "rtr", true }, [COST_RTS] = { "rts", true },
};
static uint64_t first_tick;
static double first_second;

uint64_t cost_begin(enum cost kind)
{
	struct timespec own;

	if (!costs[kind].own)
		return __rdtsc();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
	return own.tv_sec * 1000000000ull + own.tv_nsec;
}

void cost_end(enum cost kind, uint64_t began)
{
	uint64_t took = cost_begin(kind) - began;

	if (!first_tick) {
		first_tick = __rdtsc();
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
		double per_ns = costs[i].own ? 1 : ticks_per_ns;

		if (!count)
			continue;
		qsort(samples, count, sizeof(*samples), ascending);
		say("%s-cost %zu calls, ns: 10 %% %.0f, 25 %% %.0f, 50 %% %.0f",
		    costs[i].name, count, samples[count / 10] / per_ns,
		    samples[count / 4] / per_ns, samples[count / 2] / per_ns);
	}
}
