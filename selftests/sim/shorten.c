// SPDX-License-Identifier: GPL-2.0
/*
 * Shows a run that has failed: it is repeated with less and less going wrong, as long as it fails
 * in the same way.
 */
#include <stdio.h>
#include "child.h"

#define TRIES_MAX	600

static struct report *again;		/* of the repeated runs */

/* the same words; numbers may differ */
static bool same_words(const char *a, const char *b)
{
	for (;;) {
		a += strspn(a, "0123456789");
		b += strspn(b, "0123456789");
		if (*a != *b)
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

/* Does the run fail in the same way with only these upsets? */
static bool fails_with(const struct report *failed, const u32 *keep, u32 n)
{
	sim_upsets_keep(keep, n);
	return !child_run(again, failed->seed, 1, false) &&
	       same_words(again->message, failed->message);
}

/* Leave out what can be left out: halves first, then smaller parts. */
static u32 shorten(const struct report *failed, u32 *keep, u32 n)
{
	static u32 less[KEEP_MAX];
	u32 part, from, i, m, tries = 0;

	for (part = n; part; part /= 2) {
		for (from = 0; from < n && tries < TRIES_MAX;) {
			for (i = 0, m = 0; i < n; i++)
				if (i < from || i >= from + part)
					less[m++] = keep[i];
			tries++;
			if (fails_with(failed, less, m)) {
				memcpy(keep, less, m * sizeof(*keep));
				n = m;
			} else {
				from += part;
			}
		}
	}
	return n;
}

void failure_show(const struct report *failed, bool brief)
{
	unsigned long long seed = failed->seed;
	static u32 keep[KEEP_MAX];
	u32 i, n = failed->n_made;

	printf("seed %llu: %s\n", seed, failed->message);
	if (brief)
		return;
	again = again ?: report_new();
	memcpy(keep, failed->made, n * sizeof(*keep));
	if (!fails_with(failed, keep, n)) {
		/* the order of locks is known from earlier runs, too */
		printf("  it does not fail alone: --seed %llu --runs %llu --jobs 1\n",
		       (unsigned long long)failed->first, seed - failed->first + 1);
		sim_upsets_all();
		return;
	}
	n = shorten(failed, keep, n);
	printf("  %u of %u upsets are needed: --seed %llu --runs 1 --keep ", n, failed->n_made,
	       seed);
	for (i = 0; i < n; i++)
		printf("%s%u", i ? "," : "", keep[i]);
	printf("%s --trace\n", n ? "" : "none");
	sim_upsets_keep(keep, n);
	child_run(again, seed, 1, true);
	sim_upsets_all();
}
