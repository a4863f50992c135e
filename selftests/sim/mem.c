// SPDX-License-Identifier: GPL-2.0
/* Memory that is counted, and tables. */
#include <stdlib.h>
#include "sim.h"

struct piece {
	struct piece *next, *prev;
	u64 pad[2];		/* what follows is aligned as malloc() does it */
};

static struct piece pieces = { &pieces, &pieces };
static u32 n_pieces;
static u32 odds;

u32 sim_memory_upsets(u32 new_odds)
{
	u32 was = odds;

	odds = new_odds;
	return was;
}

void *sim_alloc(size_t size, gfp_t gfp)
{
	struct piece *p;

	if (gfp != GFP_ATOMIC && gfp != SIM_GFP_WORLD)
		sim_might_sleep("allocation");
	if (odds && gfp != SIM_GFP_WORLD && sim_upset(odds, "no memory"))
		return NULL;
	p = calloc(1, sizeof(*p) + size);
	if (!p)
		abort();
	p->next = &pieces;
	p->prev = pieces.prev;
	p->prev->next = p;
	pieces.prev = p;
	n_pieces++;
	return p + 1;
}

void kfree(const void *q)
{
	struct piece *p;

	if (!q)
		return;
	p = (struct piece *)q - 1;
	p->next->prev = p->prev;
	p->prev->next = p->next;
	n_pieces--;
	free(p);
}

u32 sim_memory(void)
{
	return n_pieces;
}

/* A run that has failed leaves what it had. */
void sim_memory_drop(void)
{
	while (n_pieces)
		kfree(pieces.next + 1);
}

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

void *xa_find_after(struct xarray *xa, unsigned long *index, unsigned long most, int filter)
{
	struct sim_slot *s = *find(xa, *index + 1);

	if (!s || s->index > most)
		return NULL;
	*index = s->index;
	return s->p;
}

static void *put(struct xarray *xa, unsigned long index, void *p)
{
	struct sim_slot **at = find(xa, index), *s = *at;
	void *old = NULL;

	if (s && s->index == index) {
		old = s->p;
		s->p = p;
		if (!p) {
			*at = s->next;
			free(s);
		}
	} else if (p) {
		s = malloc(sizeof(*s));
		*s = (struct sim_slot) { *at, index, p };
		*at = s;
	}
	return old;
}

void *xa_store(struct xarray *xa, unsigned long index, void *p, gfp_t gfp)
{
	return put(xa, index, p);
}

int xa_insert(struct xarray *xa, unsigned long index, void *p, gfp_t gfp)
{
	if (xa_load(xa, index))
		return -EBUSY;
	put(xa, index, p);
	return 0;
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
	put(xa, *id, p);
	return 0;
}

void xa_destroy(struct xarray *xa)
{
	while (xa->first)
		put(xa, xa->first->index, NULL);
}

void sort(void *base, size_t num, size_t size, int (*cmp)(const void *a, const void *b),
	  void (*swap)(void *a, void *b, int size))
{
	qsort(base, num, size, cmp);
}
