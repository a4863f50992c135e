// SPDX-License-Identifier: GPL-2.0
/* Memory that is counted, and sorting. */
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

void sort(void *base, size_t num, size_t size, int (*cmp)(const void *a, const void *b),
	  void (*swap)(void *a, void *b, int size))
{
	qsort(base, num, size, cmp);
}
