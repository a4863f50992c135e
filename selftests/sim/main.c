// SPDX-License-Identifier: GPL-2.0
/* The program: runs seeds, shows those that fail, and counts. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "child.h"
#include "world.h"

struct sim_rules *sim_rules;

static u32 parse_keep(char *text, u32 *keep)
{
	u32 n = 0;
	char *p;

	for (p = strtok(text, ","); p && n < KEEP_MAX; p = strtok(NULL, ","))
		if (strcmp(p, "none"))
			keep[n++] = strtoul(p, NULL, 0);
	return n;
}

static void usage(void)
{
	puts("sim [--runs N] [--seed S] [--only I] [--world W] [--trace] [--keep A,B,...] [--stop]\n"
	     "  --runs N    seeds S to S + N - 1 (1000)\n"
	     "  --only I    the run with that number alone: seed S + I\n"
	     "  --world W   one that has more of one kind of trouble: srq, handback,\n"
	     "              home, restart, refusal, moves, slow\n"
	     "  --jobs N    child processes (the number of processors); no result depends on it\n"
	     "  --trace     show each run\n"
	     "  --keep      only these upsets, as a shortened run names them\n"
	     "  --stop      at the failure with the lowest seed\n"
	     "  --brief     do not shorten failing runs\n"
	     "  --twice     each run twice: the two must be the same\n"
	     "  --rules     rules of pure/fsm.c that were not taken\n"
	     "  --loud      let sanitizers write\n"
	     "  --hostile   the kernel of end b tells lies to that of end a");
}

static u64 trace_runs(u64 seed, u64 runs)
{
	struct report *report = report_new();
	u64 failures = 0;

	for (; runs; runs--, seed++)
		failures += !child_run(report, seed, 1, true);
	return failures;
}

static u64 run_twice(u64 seed, u64 runs)
{
	struct report *report = report_new();
	u64 at, mark, differ = 0;

	for (at = seed; at < seed + runs; at++) {
		child_run(report, at, 1, false);
		mark = report->mark;
		child_run(report, at, 1, false);
		if (mark != report->mark) {
			printf("seed %llu is not the same twice\n", (unsigned long long)at);
			differ++;
		}
	}
	printf("%llu seeds, %llu not the same twice\n", (unsigned long long)runs,
	       (unsigned long long)differ);
	return differ;
}

static void print_results(const struct results *r, double seconds)
{
	const struct sim_figures *f = &r->figures;

	printf("%llu schedules passed, %llu failed; %.0f a second; mark %016llx\n",
	       (unsigned long long)r->passed, (unsigned long long)r->failed,
	       (r->passed + r->failed) / seconds, (unsigned long long)r->mark);
	printf("%llu failovers, %llu moves, %llu handbacks, %llu QPs failed, ",
	       (unsigned long long)f->failovers, (unsigned long long)f->moves,
	       (unsigned long long)f->handbacks, (unsigned long long)f->failed);
	printf("%llu operations, %llu replayed, %llu resumed\n", (unsigned long long)f->operations,
	       (unsigned long long)f->replayed, (unsigned long long)f->resumed);
	if (sim_hostile)
		printf("%llu messages to a\n", (unsigned long long)f->lies);
}

static u64 run_many(u64 seed, u64 runs, u32 jobs, bool stop, bool brief)
{
	struct results results = {};
	struct timespec t0, t1;
	u32 i;

	clock_gettime(CLOCK_MONOTONIC, &t0);
	crew_run(seed, runs, jobs, stop, &results);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	for (i = 0; i < ARRAY_SIZE(results.failure) && results.failure[i]; i++)
		failure_show(results.failure[i], brief);
	print_results(&results, t1.tv_sec - t0.tv_sec + (t1.tv_nsec - t0.tv_nsec) / 1e9);
	return results.failed;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "runs", 1, NULL, 'n' }, { "seed", 1, NULL, 's' }, { "only", 1, NULL, 'o' },
		{ "trace", 0, NULL, 't' }, { "keep", 1, NULL, 'k' }, { "stop", 0, NULL, 'x' },
		{ "brief", 0, NULL, 'b' }, { "loud", 0, NULL, 'l' }, { "twice", 0, NULL, 'w' },
		{ "jobs", 1, NULL, 'j' }, { "rules", 0, NULL, 'r' }, { "world", 1, NULL, 'W' },
		{ "hostile", 0, NULL, 'e' }, { "help", 0, NULL, 'h' }, {},
	};
	static u32 keep[KEEP_MAX];
	bool trace = false, stop = false, brief = false, twice = false, rules = false;
	u32 jobs = sysconf(_SC_NPROCESSORS_ONLN);
	u64 runs = 1000, seed = 1, bad;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'n': runs = strtoull(optarg, NULL, 0); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'o': seed += strtoull(optarg, NULL, 0); runs = 1; break;
		case 'j': jobs = strtoul(optarg, NULL, 0); break;
		case 't': trace = true; break;
		case 'k': sim_upsets_keep(keep, parse_keep(optarg, keep)); break;
		case 'x': stop = true; break;
		case 'b': brief = true; break;
		case 'l': sim_loud = true; break;
		case 'w': twice = true; break;
		case 'r': rules = true; break;
		case 'e': sim_hostile = true; break;
		case 'W':
			if (world_pick(optarg))
				break;
			fallthrough;
		default: usage(); return c != 'h';
		}
	}
	sim_rules = shared_new(sizeof(*sim_rules));
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (trace)
		bad = trace_runs(seed, runs);
	else if (twice)
		bad = run_twice(seed, runs);
	else
		bad = run_many(seed, runs, jobs, stop, brief);
	if (rules)
		a_sim_kernel.rules();
	return bad ? 1 : 0;
}
