// SPDX-License-Identifier: GPL-2.0
/* The kernel's tables, as sorted lists.  The simulator and the fuzzer of /dev/shift use them. */
#include "sim.h"

struct sim_slot { struct sim_slot *next; unsigned long index; void *p; };

void sim_xa_init(struct xarray *xa, const char *name)
{
	memset(xa, 0, sizeof(*xa));
	sim_lock_init(&xa->lock, name, true);
}

void xa_lock(struct xarray *xa)
{
	sim_lock(&xa->lock, false);
}

void xa_unlock(struct xarray *xa)
{
	sim_unlock(&xa->lock, false);
}

static struct sim_slot **find(struct xarray *xa, unsigned long index)
{
	struct sim_slot **s = &xa->first;

	while (*s && (*s)->index < index)
		s = &(*s)->next;
	return s;
}

void *xa_load(struct xarray *xa, unsigned long index)
{
	struct sim_slot *s = *find(xa, index);

	return s && s->index == index ? s->p : NULL;
}

void *xa_find(struct xarray *xa, unsigned long *index, unsigned long most, int filter)
{
	return xa_load(xa, *index) ?: xa_find_after(xa, index, most, filter);
}

void *xa_find_after(struct xarray *xa, unsigned long *index, unsigned long most, int filter)
{
	struct sim_slot *s = *find(xa, *index + 1);

	if (!s || s->index > most)
		return NULL;
	*index = s->index;
	return s->p;
}

/* What was there, or ERR_PTR(-ENOMEM). */
static void *put(struct xarray *xa, unsigned long index, void *p)
{
	struct sim_slot **at = find(xa, index), *s = *at;
	void *old = NULL;

	if (s && s->index == index) {
		old = s->p;
		s->p = p;
		if (!p) {
			*at = s->next;
			kfree(s);
		}
	} else if (p) {
		s = sim_alloc(sizeof(*s), SIM_GFP_WORLD);
		if (!s)
			return ERR_PTR(-ENOMEM);
		*s = (struct sim_slot) { *at, index, p };
		*at = s;
	}
	return old;
}

/* Into a place that is free. */
static int add(struct xarray *xa, unsigned long index, void *p)
{
	void *none = put(xa, index, p);

	return none ? PTR_ERR(none) : 0;
}

void *xa_store(struct xarray *xa, unsigned long index, void *p, gfp_t gfp)
{
	return put(xa, index, p);
}

int xa_insert(struct xarray *xa, unsigned long index, void *p, gfp_t gfp)
{
	if (xa_load(xa, index))
		return -EBUSY;
	return add(xa, index, p);
}

void *xa_erase(struct xarray *xa, unsigned long index)
{
	return put(xa, index, NULL);
}

void *__xa_erase(struct xarray *xa, unsigned long index)
{
	return put(xa, index, NULL);
}

void *xa_cmpxchg(struct xarray *xa, unsigned long index, void *old, void *p, gfp_t gfp)
{
	void *was = xa_load(xa, index);

	if (was == old)
		put(xa, index, p);
	return was;
}

int xa_alloc(struct xarray *xa, u32 *id, void *p, int limit, gfp_t gfp)
{
	for (*id = 1; xa_load(xa, *id); ++*id)
		;
	return add(xa, *id, p);
}

void xa_destroy(struct xarray *xa)
{
	while (xa->first)
		put(xa, xa->first->index, NULL);
}
