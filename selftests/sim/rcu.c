// SPDX-License-Identifier: GPL-2.0
/* RCU: who was inside at the call is waited for. */
#include "thread.h"

static u64 sections;

void sim_rcu_start(void)
{
	sections = 0;
}

void rcu_read_lock(void)
{
	if (!sim_self->rcu++)
		sim_self->section = ++sections;
}

void rcu_read_unlock(void)
{
	sim_self->rcu--;
}

static bool reader_left(u64 until)
{
	u32 i;

	for (i = 0; i < sim_top; i++)
		if (sim_thread[i].state != FREE && sim_thread[i].rcu && sim_thread[i].section <= until)
			return false;
	return true;
}

void synchronize_rcu(void)
{
	u64 until = sections;

	sim_might_sleep(__func__);
	do
		sim_sleep(sim_draw_between(US(5), US(100)));
	while (!reader_left(until));
}

static void rcu_thread(void *arg)
{
	struct rcu_head *rcu = arg;

	synchronize_rcu();
	rcu->fn(rcu);
}

void call_rcu(struct rcu_head *rcu, void (*fn)(struct rcu_head *rcu))
{
	rcu->fn = fn;
	sim_thread_start(sim_end_now, "rcu", rcu_thread, rcu, false);
}

static void free_thread(void *arg)
{
	synchronize_rcu();
	kfree(arg);
}

void sim_kfree_rcu(void *p)
{
	sim_thread_start(sim_end_now, "rcu", free_thread, p, false);
}

void synchronize_srcu(struct srcu_struct *s)
{
	sim_might_sleep(__func__);
	do
		sim_sleep(sim_draw_between(US(5), US(100)));
	while (s->n);
}

int srcu_read_lock(struct srcu_struct *s)
{
	s->n++;
	return 0;
}

void srcu_read_unlock(struct srcu_struct *s, int idx)
{
	if (s->n-- <= 0)
		sim_fail("srcu_read_unlock() of what is not held");
}
