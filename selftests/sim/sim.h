/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of the simulator: what its parts, which are no part of either kernel, share. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "kernel.h"

#define US(n) ((u64)(n) * NSEC_PER_USEC)
#define MS(n) ((u64)(n) * NSEC_PER_MSEC)

/* draw.c: all that is left to chance; one seed gives one run */
void sim_draw_start(u64 seed);
u32 sim_draw(u32 n);			/* 0 .. n - 1 */
u64 sim_draw_between(u64 least, u64 most);
/*
 * Shall something go wrong, at odds of one to @odds?  Each that does has a number in its run,
 * so that a run can be repeated with some of them left out.
 */
bool sim_upset(u32 odds, const char *what);
void sim_upsets_keep(const u32 *numbers, u32 n);	/* leave out all others */
void sim_upsets_all(void);
u32 sim_upsets_made(const u32 **numbers);

/* clock.c */
extern u64 sim_now;
void sim_timer_set(struct sim_timer *t, u64 at);
bool sim_timer_stop(struct sim_timer *t);
bool sim_timer_armed(const struct sim_timer *t);

/* log.c */
extern bool sim_tracing;
void sim_log_start(void);
u64 sim_hash(void);			/* of all that was done, to compare two runs */

/* sched.c: threads */
extern int sim_end_now;		/* which end's code runs; -1: neither's */
typedef void sim_fn(void *arg);
struct sim_thread *sim_thread_start(int end, const char *name, sim_fn *fn, void *arg, bool softirq);
void sim_sleep(u64 ns);			/* in a thread */
void sim_become(int end);		/* the thread runs at that end from here on */
void sim_start(void);
bool sim_step(void);			/* false: nothing will ever happen */
u32 sim_threads(void);			/* those that are not over */
bool sim_is_put_off(sim_fn *fn);	/* a thread that runs @fn */
void sim_weather(u32 put_off_odds);	/* how often a thread is put off; 0: never */

/* mem.c */
#define SIM_GFP_WORLD	8u		/* the world's own memory: there is always enough */
u32 sim_memory(void);			/* pieces that were not freed */
const char *sim_memory_whose(void);
void sim_memory_drop(void);
u32 sim_memory_upsets(u32 odds);	/* returns what they were */

/* world.c: one run, by the seed that was drawn from */
struct sim_figures {
	u64 failovers, moves, handbacks, failed, replayed, resumed, protected, operations, lies;
};
void sim_run(struct sim_figures *figures);

/*
 * world.c: the kernel of end b lies to that of end a, in all that it says of QPs.  Then data, order
 * and completions are as they may be; what is looked at is the kernels themselves.
 */
extern bool sim_hostile;
extern u64 sim_lies;		/* messages that were told in this run */

/* child.c: a message of sim_fail() ends the run here */
void sim_failed(const char *message) __attribute__((noreturn));

#endif /* SIM_SIM_H */
