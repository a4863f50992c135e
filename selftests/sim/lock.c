// SPDX-License-Identifier: GPL-2.0
/* Locks that know who holds them, and in which order they are taken. */
#include "thread.h"

#define CLASSES_MAX	64

static const char *class_name[CLASSES_MAX];
static bool after[CLASSES_MAX][CLASSES_MAX];	/* [a][b]: b was taken while a was held */
static int n_classes;

void sim_lock_init(struct sim_lock *lock, const char *name, bool spins)
{
	*lock = (struct sim_lock) { .name = name, .class = -1, .spins = spins };
}

static int class_of(struct sim_lock *lock)
{
	int i;

	if (lock->class >= 0)
		return lock->class;
	for (i = 0; i < n_classes && strcmp(class_name[i], lock->name); i++)
		;
	if (i == n_classes) {
		if (n_classes == CLASSES_MAX)
			sim_fail("too many kinds of locks");
		class_name[n_classes++] = lock->name;
	}
	return lock->class = i;
}

static bool leads_to(int from, int to, u64 *seen)
{
	int i;

	*seen |= BIT(from);
	for (i = 0; i < n_classes; i++)
		if (after[from][i] && (i == to || (!(*seen >> i & 1) && leads_to(i, to, seen))))
			return true;
	return false;
}

static void check_order(struct sim_lock *lock)
{
	int i, class = class_of(lock);

	for (i = 0; i < sim_self->n_held; i++) {
		int held = class_of(sim_self->held[i]);
		u64 seen = 0;

		if (held == class)
			sim_fail("%s is taken while another %s is held", lock->name, lock->name);
		if (after[held][class])
			continue;
		if (leads_to(class, held, &seen))
			sim_fail("%s is taken inside %s, and elsewhere the other way round",
				 lock->name, sim_self->held[i]->name);
		after[held][class] = true;
	}
}

static void hold(struct sim_lock *lock, bool read)
{
	if (sim_self->n_held == HELD_MAX)
		sim_fail("too many locks");
	sim_self->held[sim_self->n_held++] = lock;
	sim_self->spins += lock->spins;
	if (read)
		lock->readers++;
	else
		lock->owner = sim_self;
}

void sim_lock(struct sim_lock *lock, bool read)
{
	if (!sim_self)
		sim_fail("%s outside of a thread", lock->name);
	if (!lock->name)
		sim_fail("a lock was not initialised");
	if (!lock->spins)
		sim_might_sleep(lock->name);
	if (lock->owner == sim_self)
		sim_fail("%s is taken twice", lock->name);
	check_order(lock);
	sim_point();
	while (lock->owner || (!read && lock->readers)) {
		sim_self->wants = lock;
		sim_self->state = BLOCKED;
		sim_give_way();
	}
	hold(lock, read);
}

bool sim_trylock(struct sim_lock *lock)
{
	sim_point();
	if (lock->owner || lock->readers)
		return false;
	hold(lock, false);
	return true;
}

void sim_unlock(struct sim_lock *lock, bool read)
{
	struct sim_thread *t;
	int i;

	for (i = sim_self->n_held - 1; i >= 0 && sim_self->held[i] != lock; i--)
		;
	if (i < 0)
		sim_fail("%s is released and not held", lock->name);
	for (sim_self->n_held--; i < sim_self->n_held; i++)
		sim_self->held[i] = sim_self->held[i + 1];
	sim_self->spins -= lock->spins;
	if (read)
		lock->readers--;
	else
		lock->owner = NULL;
	for (t = sim_thread; t < sim_thread + sim_top; t++)
		if (t->state == BLOCKED && t->wants == lock)
			t->state = RUNNABLE;
	sim_point();
}

bool sim_is_held(const struct sim_lock *lock)
{
	int i;

	for (i = 0; sim_self && i < sim_self->n_held; i++)
		if (sim_self->held[i] == lock)
			return true;
	return false;
}
