// SPDX-License-Identifier: GPL-2.0
/*
 * Many runs by several children.  A child runs a block of seeds, the rest of it by another one if
 * a run fails.  Which seeds a block has does not depend on the number of children, nor does any
 * result.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include "child.h"

#define BLOCK		250u
#define JOBS_MAX	64u

struct job {
	pid_t pid;			/* 0: none */
	u64 end;			/* of its block */
	struct report *report;
};

static struct job job[JOBS_MAX];

static void add_figures(struct results *to, const struct report *from)
{
	const u64 *f = (const u64 *)&from->figures;
	u64 *t = (u64 *)&to->figures;
	u32 i;

	for (i = 0; i < sizeof(from->figures) / sizeof(*f); i++)
		t[i] += f[i];
	to->passed += from->runs;
	to->mark += from->mark;
}

/* Keep those with the lowest seeds. */
static void add_failure(struct results *to, const struct report *from)
{
	struct report *copy = malloc(sizeof(*copy)), *other;
	u32 i;

	if (!copy)
		abort();
	*copy = *from;
	to->failed++;
	for (i = 0; i < ARRAY_SIZE(to->failure); i++) {
		other = to->failure[i];
		if (other && other->seed < copy->seed)
			continue;
		to->failure[i] = copy;
		copy = other;
		if (!copy)
			return;
	}
	free(copy);
}

static void start(struct job *j, u64 seed, u64 end)
{
	j->end = end;
	j->pid = child_start(j->report, seed, end - seed, false);
}

/* The first failing seed is wanted: blocks behind it need not be run. */
static void stop_behind(u64 seed, u32 jobs)
{
	u32 i;

	for (i = 0; i < jobs; i++)
		if (job[i].pid && job[i].report->first > seed)
			kill(job[i].pid, SIGKILL);
}

static struct job *wait_for_one(u32 jobs, int *status)
{
	pid_t pid = wait(status);
	u32 i;

	for (i = 0; i < jobs; i++)
		if (job[i].pid == pid) {
			job[i].pid = 0;
			return &job[i];
		}
	abort();
}

void crew_run(u64 seed, u64 runs, u32 jobs, bool stop, struct results *results)
{
	u64 next = seed, end = seed + runs;
	u32 i, busy = 0;
	int status;

	jobs = clamp_t(u32, jobs, 1, JOBS_MAX);
	for (i = 0; i < jobs; i++)
		job[i].report = job[i].report ?: report_new();
	for (;;) {
		struct job *j;

		for (i = 0; i < jobs && next < end; i++) {
			if (job[i].pid)
				continue;
			start(&job[i], next, min(next + BLOCK, end));
			next = job[i].end;
			busy++;
		}
		if (!busy)
			return;
		j = wait_for_one(jobs, &status);
		busy--;
		if (stop && results->failed && j->report->first > results->failure[0]->seed)
			continue;
		add_figures(results, j->report);
		if (child_passed(j->report, status))
			continue;
		add_failure(results, j->report);
		if (stop) {
			next = end;
			stop_behind(j->report->seed, jobs);
			continue;
		}
		printf("seed %llu: %s\n", (unsigned long long)j->report->seed, j->report->message);
		if (j->report->seed + 1 < j->end) {
			start(j, j->report->seed + 1, j->end);
			busy++;
		}
	}
}
