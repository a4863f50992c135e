// SPDX-License-Identifier: GPL-2.0
/* Simulated time, and timers in its order. */
#include "thread.h"

u64 sim_now;
static struct sim_timer timers = { &timers, &timers };
static u64 timer_seq;

u64 ktime_get_ns(void)
{
	return sim_now;
}

void sim_clock_start(void)
{
	sim_now = NSEC_PER_SEC;
	timer_seq = 0;
}

struct sim_timer *sim_timer_first(void)
{
	return timers.next == &timers ? NULL : timers.next;
}

void sim_timer_set(struct sim_timer *t, u64 at)
{
	struct sim_timer *after_this;

	sim_timer_stop(t);
	after_this = timers.prev;
	t->at = at;
	t->seq = ++timer_seq;
	while (after_this != &timers && after_this->at > at)
		after_this = after_this->prev;
	t->prev = after_this;
	t->next = after_this->next;
	t->prev->next = t;
	t->next->prev = t;
}

bool sim_timer_armed(const struct sim_timer *t)
{
	return t->next;
}

bool sim_timer_stop(struct sim_timer *t)
{
	if (!t->next)
		return false;
	t->prev->next = t->next;
	t->next->prev = t->prev;
	t->next = NULL;
	t->prev = NULL;
	return true;
}
