// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peers: the kernel gets those that are wanted, and keeps what it must not lose.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shiftd/log.h"
#include "shiftd/sync_peers.h"

struct shift_known_peer {
	char node[SHIFT_NODE_MAX];
	bool ours;		/* set by this run: no need to ask its age */
	bool seen;		/* by the dump under way */
	bool told_connected;
	uint64_t stale_since;	/* 0: it is wanted */
	uint32_t error;		/* the last refusal told */
};

static struct shift_known_peer *know(struct shift_sync_peers *s,
				     const char *node)
{
	struct shift_known_peer *grown;
	size_t i;

	for (i = 0; i < s->n_known; i++)
		if (!strcmp(s->known[i].node, node))
			return &s->known[i];
	grown = reallocarray(s->known, s->n_known + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	s->known = grown;
	grown += s->n_known++;
	memset(grown, 0, sizeof(*grown));
	snprintf(grown->node, sizeof(grown->node), "%s", node);
	return grown;
}

/* Return: when to look again, in ms from now. */
static uint64_t set_peers(struct shift_sync_peers *s, struct shift_kernel *k,
			  const struct shift_sync_want *want)
{
	uint64_t again = SHIFT_SYNC_NEVER;
	size_t i;

	for (i = 0; i < want->peers->n; i++) {
		const struct shift_peer *peer = want->peers->peer[i];
		const struct shift_peer *has;
		struct shift_known_peer *known = know(s, peer->node);

		if (!known)
			continue;
		known->seen = true;
		known->stale_since = 0;
		known->told_connected = false;
		has = shift_peers_find(&k->peers, peer->node);
		if (has && shift_peer_equal(has, peer)) {
			known->ours = true;
			known->error = 0;
			continue;
		}
		if (shift_kernel_peer_set(k, peer)) {
			log_warn_once(&known->error, "peer %s: %s", peer->node,
				      shift_kernel_error(k));
			again = SHIFT_SYNC_RETRY_MS;
			continue;
		}
		log_info("peer %s: %u NIC(s) %s", peer->node, peer->n_nics,
			 has ? "changed" : "added");
		known->ours = true;
		known->error = 0;
	}
	return again;
}

/*
 * A peer nobody wants: one this run had set was held by the directory; one
 * found in the kernel is held here.  While a link to it is up it stays in any
 * case: that a daemon or etcd is away must not cost anyone a failover.  One that
 * is expelled goes at once, and the kernel ends its links.
 */
static uint64_t del_peer(struct shift_kernel *k,
			 const struct shift_sync_want *want,
			 const struct shift_peer *peer,
			 struct shift_known_peer *known)
{
	bool expelled = shift_config_expels(want->config, peer->node);
	uint64_t due;

	known->seen = true;
	if (!known->stale_since)
		known->stale_since = want->now_ms ? want->now_ms : 1;
	if (!known->ours && !expelled) {
		if (!want->complete)
			return SHIFT_SYNC_NEVER;
		due = known->stale_since + want->hold_ms;
		if (want->now_ms < due)
			return due - want->now_ms;
	}
	if (!expelled && shift_kernel_is_connected(k, peer)) {
		if (!known->told_connected)
			log_info("peer %s: gone from the directory, kept while a link to it is up",
				 peer->node);
		known->told_connected = true;
		return SHIFT_SYNC_NEVER;
	}
	/* @peer goes away with this in a dry run; its name is in @known. */
	if (shift_kernel_peer_del(k, known->node)) {
		log_warn_once(&known->error, "peer %s: %s", known->node,
			      shift_kernel_error(k));
		return SHIFT_SYNC_RETRY_MS;
	}
	log_info("peer %s: %s", known->node, expelled ? "expelled" : "removed");
	known->seen = false;
	return SHIFT_SYNC_NEVER;
}

uint64_t shift_sync_peers(struct shift_sync_peers *s, struct shift_kernel *k,
			  const struct shift_sync_want *want)
{
	uint64_t again = SHIFT_SYNC_NEVER, one;
	size_t i, kept = 0;

	for (i = 0; i < s->n_known; i++)
		s->known[i].seen = false;
	/* First: a GID that moved to another node must be free for it. */
	for (i = k->peers.n; i-- > 0;) {
		const struct shift_peer *peer = k->peers.peer[i];
		struct shift_known_peer *known;

		if (shift_peers_find(want->peers, peer->node))
			continue;
		known = know(s, peer->node);
		if (!known)
			continue;
		one = del_peer(k, want, peer, known);
		if (one < again)
			again = one;
	}
	one = set_peers(s, k, want);
	if (one < again)
		again = one;
	for (i = 0; i < s->n_known; i++)
		if (s->known[i].seen)
			s->known[kept++] = s->known[i];
	s->n_known = kept;
	return again;
}

void shift_sync_peers_clear(struct shift_sync_peers *s)
{
	free(s->known);
	s->known = NULL;
	s->n_known = 0;
}
