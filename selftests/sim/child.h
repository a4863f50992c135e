/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of the program: runs in child processes, as one that fails ends its process. */
#ifndef SIM_CHILD_H
#define SIM_CHILD_H

#include <sys/types.h>
#include "sim.h"

#define KEEP_MAX	65536

/* what a child leaves for its parent; in memory that both have */
struct report {
	u64 first, seed, runs, mark;	/* where it began, where it is; what was done, as a sum */
	char message[512];
	u32 made[KEEP_MAX], n_made;
	struct sim_figures figures;
};

/* child.c */
extern bool sim_loud;			/* sanitizers may write */
void *shared_new(size_t size);
struct report *report_new(void);
pid_t child_start(struct report *report, u64 seed, u64 n, bool trace);
bool child_passed(struct report *report, int status);	/* false: report->seed has failed */
bool child_run(struct report *report, u64 seed, u64 n, bool trace);

/* shorten.c: what a failed run says, and the shortest one like it with its trace */
void failure_show(const struct report *failed, bool brief);

/* crew.c */
struct results {
	u64 passed, failed, mark;
	struct sim_figures figures;
	struct report *failure[3];	/* those with the lowest seeds */
};

void crew_run(u64 seed, u64 runs, u32 jobs, bool stop, struct results *results);

#endif /* SIM_CHILD_H */
