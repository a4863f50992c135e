// SPDX-License-Identifier: GPL-2.0-only
/* Sets of peers, sorted by name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shiftd/directory.h"

/* Where @node is, or would be inserted. */
static size_t find_index(const struct shift_peers *peers, const char *node,
			 bool *found)
{
	size_t low = 0, high = peers->n, mid;
	int cmp;

	*found = false;
	while (low < high) {
		mid = (low + high) / 2;
		cmp = strcmp(peers->peer[mid]->node, node);
		if (!cmp) {
			*found = true;
			return mid;
		}
		if (cmp < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Copies @peer in; one of the same name is replaced. */
int shift_peers_add(struct shift_peers *peers, const struct shift_peer *peer)
{
	struct shift_peer **grown, *copy;
	bool found;
	size_t i;

	i = find_index(peers, peer->node, &found);
	if (found) {
		*peers->peer[i] = *peer;
		return 0;
	}
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	grown = reallocarray(peers->peer, peers->n + 1, sizeof(*grown));
	if (!grown) {
		free(copy);
		return -ENOMEM;
	}
	*copy = *peer;
	peers->peer = grown;
	memmove(grown + i + 1, grown + i, (peers->n - i) * sizeof(*grown));
	grown[i] = copy;
	peers->n++;
	return 0;
}

struct shift_peer *shift_peers_find(const struct shift_peers *peers,
				    const char *node)
{
	bool found;
	size_t i = find_index(peers, node, &found);

	return found ? peers->peer[i] : NULL;
}

void shift_peers_remove(struct shift_peers *peers, const char *node)
{
	bool found;
	size_t i = find_index(peers, node, &found);

	if (!found)
		return;
	free(peers->peer[i]);
	peers->n--;
	memmove(peers->peer + i, peers->peer + i + 1,
		(peers->n - i) * sizeof(*peers->peer));
}

void shift_peers_clear(struct shift_peers *peers)
{
	size_t i;

	for (i = 0; i < peers->n; i++)
		free(peers->peer[i]);
	free(peers->peer);
	peers->peer = NULL;
	peers->n = 0;
}
