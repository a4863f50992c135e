// SPDX-License-Identifier: GPL-2.0
/* All that is left to chance. */
#include <stdlib.h>
#include "sim.h"

#define UPSETS_MAX	65536

static u64 state;
static u32 asked;			/* upsets that chance wanted in this run */
static u32 made[UPSETS_MAX], n_made;
static const u32 *kept;
static u32 n_kept;
static bool keep_all = true;

static u64 next64(void)
{
	u64 z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void sim_draw_start(u64 seed)
{
	state = seed * 0x2545f4914f6cdd1dull + 1;
	asked = 0;
	n_made = 0;
}

u32 sim_draw(u32 n)
{
	return n ? (next64() >> 32) * n >> 32 : 0;
}

u64 sim_draw_between(u64 least, u64 most)
{
	return least + (most > least ? next64() % (most - least + 1) : 0);
}

static bool is_kept(u32 number)
{
	u32 i;

	for (i = 0; i < n_kept; i++)
		if (kept[i] == number)
			return true;
	return keep_all;
}

bool sim_upset(u32 odds, const char *what)
{
	u32 number;

	if (!odds || sim_draw(odds))
		return false;
	number = ++asked;
	if (!is_kept(number) || n_made == UPSETS_MAX)
		return false;
	made[n_made++] = number;
	sim_log("  [%u] %s", number, what);
	return true;
}

void sim_upsets_keep(const u32 *numbers, u32 n)
{
	kept = numbers;
	n_kept = n;
	keep_all = false;
}

void sim_upsets_all(void)
{
	keep_all = true;
	n_kept = 0;
}

u32 sim_upsets_made(const u32 **numbers)
{
	*numbers = made;
	return n_made;
}

u32 get_random_u32(void)
{
	return next64();
}

void get_random_bytes(void *buf, size_t len)
{
	u8 *byte = buf;

	while (len--)
		*byte++ = next64();
}
