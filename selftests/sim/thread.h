/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of the scheduler: threads and what they hold. */
#ifndef SIM_THREAD_H
#define SIM_THREAD_H

#include "sim.h"

#define THREADS_MAX	256
#define HELD_MAX	16

enum state { FREE, RUNNABLE, SLEEPS, BLOCKED };

struct sim_thread {
	enum state state;
	void *stack, *sp, *fake;
	int end;
	const char *name;
	sim_fn *fn;
	void *arg;
	bool softirq, begun, dead;
	bool put_off;
	struct sim_timer wake;
	struct sim_lock *wants;
	struct sim_lock *held[HELD_MAX];
	int n_held, spins;
	int rcu;
	u64 section;
	struct work_struct *work;	/* that it runs; it may be freed */
	struct workqueue_struct *wq;
	bool again;			/* the work item was queued while it ran */
};

extern struct sim_thread sim_thread[THREADS_MAX];
extern u32 sim_top;			/* threads from here on were never used */
extern struct sim_thread *sim_self;	/* NULL: none runs */

/* sched.c: until its state is RUNNABLE and it is drawn */
void sim_give_way(void);

/* clock.c */
void sim_clock_start(void);
struct sim_timer *sim_timer_first(void);	/* NULL: there is none */

/* rcu.c */
void sim_rcu_start(void);

#endif /* SIM_THREAD_H */
