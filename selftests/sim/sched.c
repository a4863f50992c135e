// SPDX-License-Identifier: GPL-2.0
/*
 * Threads and their scheduler.  One thread runs at a time, on a stack of its own, until it sleeps,
 * waits, or is put off; which one is next is drawn.
 */
#include <stdlib.h>
#include <sanitizer/common_interface_defs.h>
#include "thread.h"

#define STACK		(256 * 1024)

int sim_end_now = -1;
struct task_struct sim_task;
struct sim_thread sim_thread[THREADS_MAX];
u32 sim_top;
struct sim_thread *sim_self;

static void *main_sp, *main_fake;
static const void *main_stack;
static size_t main_size;
static u32 put_off_odds;

void sim_start(void)
{
	sim_log_start();
	sim_clock_start();
	sim_rcu_start();
}

void sim_weather(u32 odds)
{
	put_off_odds = odds;
}

/*
 * Go on with the stack that was left at @to, and leave this one at *@from: what swapcontext() does,
 * without its two system calls.
 */
void sim_stack_switch(void **from, void *to);
asm(".text\n"
    "sim_stack_switch:\n"
    "	push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
    "	mov %rsp, (%rdi)\n"
    "	mov %rsi, %rsp\n"
    "	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
    "	ret\n");

/* A stack that begins with @fn, which does not return. */
static void *stack_new(void *stack, void (*fn)(void))
{
	void **sp = (void **)((char *)stack + STACK);

	*--sp = NULL;			/* to where @fn does not return */
	*--sp = fn;
	return memset(sp - 6, 0, 6 * sizeof(*sp));
}

/* the sanitizers are told of each change of the stack, if they are there */
#pragma weak __sanitizer_start_switch_fiber
#pragma weak __sanitizer_finish_switch_fiber

static void leave_stack(void **fake, const void *stack, size_t size)
{
	if (__sanitizer_start_switch_fiber)
		__sanitizer_start_switch_fiber(fake, stack, size);
}

static void enter_stack(void *fake, const void **from, size_t *size)
{
	if (__sanitizer_finish_switch_fiber)
		__sanitizer_finish_switch_fiber(fake, from, size);
}

/* threads */
void sim_give_way(void)
{
	struct sim_thread *t = sim_self;
	bool over = t->state == FREE;

	leave_stack(over ? NULL : &t->fake, main_stack, main_size);
	sim_stack_switch(&t->sp, main_sp);
	enter_stack(t->fake, &main_stack, &main_size);
}

static void to_thread(struct sim_thread *t)
{
	sim_self = t;
	sim_end_now = t->end;
	leave_stack(&main_fake, t->stack, STACK);
	sim_stack_switch(&main_sp, t->sp);
	enter_stack(main_fake, NULL, NULL);
	sim_self = NULL;
	sim_end_now = -1;
}

static void thread_main(void)
{
	enter_stack(NULL, &main_stack, &main_size);
	for (;;) {
		sim_self->begun = true;
		if (!sim_self->dead)
			sim_self->fn(sim_self->arg);
		if (sim_self->n_held || sim_self->rcu)
			sim_fail("%s ends with %s held", sim_self->name,
				 sim_self->n_held ? sim_self->held[0]->name : "RCU");
		sim_self->state = FREE;
		sim_self->fn = NULL;
		sim_self->fake = NULL;
		sim_give_way();
	}
}

static void awake(struct sim_timer *timer)
{
	struct sim_thread *t = container_of(timer, struct sim_thread, wake);

	t->state = RUNNABLE;
}

struct sim_thread *sim_thread_start(int end, const char *name, sim_fn *fn, void *arg, bool softirq)
{
	struct sim_thread *t = sim_thread;

	while (t->state != FREE)
		if (++t == sim_thread + THREADS_MAX)
			sim_fail("too many threads");
	if (!t->stack) {
		t->stack = malloc(STACK);
		t->sp = stack_new(t->stack, thread_main);
	}
	if (t - sim_thread >= sim_top)
		sim_top = t - sim_thread + 1;
	t->state = RUNNABLE;
	t->end = end;
	t->name = name;
	t->fn = fn;
	t->arg = arg;
	t->softirq = softirq;
	t->begun = false;
	t->dead = false;
	t->put_off = false;
	t->work = NULL;
	t->wq = NULL;
	t->wake.fn = awake;
	return t;
}

u32 sim_threads(void)
{
	u32 i, n = 0;

	for (i = 0; i < sim_top; i++)
		n += sim_thread[i].state != FREE;
	return n;
}

bool sim_is_put_off(sim_fn *fn)
{
	u32 i;

	for (i = 0; i < sim_top; i++)
		if (sim_thread[i].state != FREE && sim_thread[i].fn == fn && sim_thread[i].put_off)
			return true;
	return false;
}

void sim_might_sleep(const char *what)
{
	if (!sim_self)
		return;
	if (sim_self->spins || sim_self->rcu || sim_self->softirq)
		sim_fail("%s sleeps in %s", what, sim_self->softirq ? "softirq" :
			 sim_self->rcu ? "an RCU section" : sim_self->held[sim_self->n_held - 1]->name);
}

void sim_sleep(u64 ns)
{
	sim_timer_set(&sim_self->wake, sim_now + ns);
	sim_self->state = SLEEPS;
	sim_give_way();
}

void sim_become(int end)
{
	sim_self->end = end;
	sim_end_now = end;
}

void usleep_range(unsigned long least, unsigned long most)
{
	sim_might_sleep(__func__);
	sim_sleep(sim_draw_between(US(least), US(most) + US(20)));
}

static void yield(void)
{
	sim_self->state = RUNNABLE;
	sim_give_way();
}

/* How long a thread is put off: mostly a moment, sometimes beyond all deadlines. */
static u64 put_off_ns(void)
{
	switch (sim_draw(40)) {
	case 0:
		return sim_draw_between(MS(300), MS(2500));
	case 1 ... 5:
		return sim_draw_between(MS(10), MS(400));
	default:
		return sim_draw_between(US(20), MS(5));
	}
}

/* A place where others may come between. */
void sim_point(void)
{
	if (!sim_self || !put_off_odds)
		return;
	if (!sim_self->spins && !sim_self->rcu && !sim_self->softirq &&
	    sim_upset(put_off_odds, "a thread is put off")) {
		u64 ns = put_off_ns();

		sim_log("      %s, for %llu us", sim_self->name, (unsigned long long)(ns / 1000));
		sim_self->put_off = true;
		sim_sleep(ns);
		sim_self->put_off = false;
	} else if (!sim_draw(sim_self->spins ? 16 : 3)) {
		yield();
	}
}

static struct sim_thread *draw_thread(void)
{
	struct sim_thread *may[THREADS_MAX];
	u32 i, n = 0;

	for (i = 0; i < sim_top; i++)
		if (sim_thread[i].state == RUNNABLE)
			may[n++] = &sim_thread[i];
	return n ? may[sim_draw(n)] : NULL;
}

bool sim_step(void)
{
	struct sim_timer *first = sim_timer_first();
	struct sim_thread *t;

	if (first && first->at <= sim_now) {
		sim_timer_stop(first);
		first->fn(first);
		return true;
	}
	t = draw_thread();
	if (t) {
		sim_now += sim_draw_between(200, US(4));
		to_thread(t);
		return true;
	}
	if (!first)
		return false;
	sim_now = first->at;
	return true;
}
