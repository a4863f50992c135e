// SPDX-License-Identifier: GPL-2.0-only
/*
 * Level-triggered: each sync reads what the kernel has and makes the
 * difference up, so that a module loaded again, a command typed by hand or a
 * lost event need no code of their own.  Nothing here is in the failure path:
 * a sync that never comes leaves the kernel protecting what it protects.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "failback_run.h"
#include "kernel.h"
#include "log.h"
#include "names.h"
#include "netlink.h"

/* How soon what is missing is tried again. */
#define RETRY_MS	2000
#define FOREVER_MS	UINT64_MAX

struct known_peer {
	char node[SHIFT_NODE_MAX];
	bool ours;		/* set by this run: no need to ask its age */
	bool seen;		/* by the dump under way */
	bool told_connected;
	uint64_t stale_since;	/* 0: it is wanted */
	uint32_t error;		/* hash of the last refusal told */
};

struct pair {
	char dev[SHIFT_DEV_MAX], backup[SHIFT_DEV_MAX];
	int policy;
};

struct shift_kernel {
	sd_event *event;
	bool dry_run;
	void (*kick)(void *arg);
	void *arg;

	struct shift_nl *nl;
	struct shift_events *events;
	bool told_missing;
	char status[128];

	/* what the kernel has, as last read */
	char node[SHIFT_NODE_MAX];
	struct pair *pairs;
	size_t n_pairs;
	struct shift_peers peers;
	struct shift_gid *connected;	/* remote GIDs of links that are up */
	size_t n_connected;

	struct known_peer *known;
	size_t n_known;
	struct shift_failback *failback;
	uint32_t pair_error[SHIFT_PAIRS_MAX][SHIFT_BACKUPS_MAX];
	uint32_t node_error;
};

static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h ? h : 1;
}

/* A refusal is told once, until its text is another or it went away. */
static void tell_once(uint32_t *told, const char *what, const char *why)
{
	uint32_t h = hash(why);

	if (*told == h)
		return;
	*told = h;
	log_warn("%s: %s", what, why);
}

static void on_node(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		    void *arg)
{
	struct shift_kernel *k = arg;

	(void)cmd;
	(void)nlh;
	if (tb[SHIFT_A_NODE])
		nla_strlcpy(k->node, tb[SHIFT_A_NODE], sizeof(k->node));
}

static void add_pair(struct shift_kernel *k, const char *dev,
		     const char *backup, int policy)
{
	struct pair *grown = reallocarray(k->pairs, k->n_pairs + 1,
					  sizeof(*grown));

	if (!grown)
		return;
	k->pairs = grown;
	snprintf(grown[k->n_pairs].dev, SHIFT_DEV_MAX, "%s", dev);
	snprintf(grown[k->n_pairs].backup, SHIFT_DEV_MAX, "%s", backup);
	grown[k->n_pairs].policy = policy;
	k->n_pairs++;
}

static void on_pair(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		    void *arg)
{
	(void)cmd;
	(void)nlh;
	if (tb[SHIFT_A_DEV] && tb[SHIFT_A_BACKUP_DEV] && tb[SHIFT_A_POLICY])
		add_pair(arg, nla_get_string(tb[SHIFT_A_DEV]),
			 nla_get_string(tb[SHIFT_A_BACKUP_DEV]),
			 (int)nla_get_u32(tb[SHIFT_A_POLICY]));
}

static void on_peer(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		    void *arg)
{
	static struct shift_peer peer;
	struct shift_kernel *k = arg;

	(void)cmd;
	if (!shift_nl_peer_read(nlh, tb, &peer))
		shift_peers_add(&k->peers, &peer);
}

static void on_link(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		    void *arg)
{
	struct shift_kernel *k = arg;
	struct shift_gid *grown;

	(void)cmd;
	(void)nlh;
	if (!tb[SHIFT_A_LINK_STATE] || !tb[SHIFT_A_REMOTE_GID] ||
	    nla_get_u32(tb[SHIFT_A_LINK_STATE]) != SHIFT_LINK_UP)
		return;
	grown = reallocarray(k->connected, k->n_connected + 1, sizeof(*grown));
	if (!grown)
		return;
	k->connected = grown;
	memcpy(grown[k->n_connected++].raw, nla_data(tb[SHIFT_A_REMOTE_GID]),
	       SHIFT_GID_LEN);
}

static void close_kernel(struct shift_kernel *k)
{
	shift_events_close(k->events);
	shift_nl_close(k->nl);
	k->events = NULL;
	k->nl = NULL;
}

static int open_kernel(struct shift_kernel *k)
{
	int ret;

	if (k->dry_run || k->nl)
		return 0;
	ret = shift_nl_open(&k->nl);
	if (!ret)
		ret = shift_events_open(k->event, k->kick, k->arg, &k->events);
	if (ret) {
		close_kernel(k);
		return ret;
	}
	return 0;
}

static int read_kernel(struct shift_kernel *k)
{
	if (k->dry_run)
		return 0;
	k->node[0] = '\0';
	k->n_pairs = 0;
	k->n_connected = 0;
	shift_peers_clear(&k->peers);
	if (shift_nl_get(k->nl, SHIFT_CMD_NODE_GET, 0, on_node, k) ||
	    shift_nl_get(k->nl, SHIFT_CMD_PAIR_GET, 1, on_pair, k) ||
	    shift_nl_get(k->nl, SHIFT_CMD_PEER_GET, 1, on_peer, k))
		return -EIO;
	/* Nice to have only: without it peers are removed a little early. */
	shift_nl_get(k->nl, SHIFT_CMD_LINK_GET, 1, on_link, k);
	return 0;
}

static int do_node_set(struct shift_kernel *k, const char *node)
{
	if (!k->dry_run)
		return shift_nl_node_set(k->nl, node);
	printf("node set %s\n", node);
	snprintf(k->node, sizeof(k->node), "%s", node);
	return 0;
}

static int do_pair_add(struct shift_kernel *k, const char *dev,
		       const char *backup, int policy)
{
	if (!k->dry_run)
		return shift_nl_pair_add(k->nl, dev, backup, policy);
	printf("pair add %s %s\n", dev, backup);
	add_pair(k, dev, backup, policy);
	return 0;
}

static int do_pair_set(struct shift_kernel *k, struct pair *pair, int policy)
{
	char num[16];

	if (!k->dry_run)
		return shift_nl_pair_set(k->nl, pair->dev, policy);
	printf("pair set %s --policy %s\n", pair->dev,
	       shift_name_of(&shift_policy_names, policy, num));
	pair->policy = policy;
	return 0;
}

static int do_peer_set(struct shift_kernel *k, const struct shift_peer *peer)
{
	char *text;

	if (!k->dry_run)
		return shift_nl_peer_set(k->nl, peer);
	text = shift_peer_format(peer);
	printf("peer set %s %s\n", peer->node, text ? text : "?");
	free(text);
	return shift_peers_add(&k->peers, peer);
}

static int do_peer_del(struct shift_kernel *k, const char *node)
{
	if (!k->dry_run)
		return shift_nl_peer_del(k->nl, node);
	printf("peer del %s\n", node);
	shift_peers_remove(&k->peers, node);
	return 0;
}

static const char *why(const struct shift_kernel *k)
{
	return k->dry_run ? "out of memory" : shift_nl_error(k->nl);
}

static struct pair *find_pair(const struct shift_kernel *k, const char *dev,
			      const char *backup)
{
	size_t i;

	for (i = 0; i < k->n_pairs; i++)
		if (!strcmp(k->pairs[i].dev, dev) &&
		    !strcmp(k->pairs[i].backup, backup))
			return &k->pairs[i];
	return NULL;
}

/*
 * Return: how many pairs are not there; *@again is brought forward if one
 * waits for its device, which no event tells.
 */
static unsigned int sync_pairs(struct shift_kernel *k,
			       const struct shift_config *config,
			       uint64_t *again)
{
	unsigned int i, j, missing = 0;
	char what[192], num[16];
	int ret;

	for (i = 0; i < config->n_pairs; i++) {
		const struct shift_config_pair *pair = &config->pairs[i];

		for (j = 0; j < pair->n_backups; j++) {
			uint32_t *told = &k->pair_error[i][j];
			struct pair *have;

			have = find_pair(k, pair->dev, pair->backups[j]);
			if (have && have->policy == pair->policy) {
				*told = 0;
				continue;
			}
			snprintf(what, sizeof(what), "pair %s %s", pair->dev,
				 pair->backups[j]);
			if (have)
				ret = do_pair_set(k, have, pair->policy);
			else
				ret = do_pair_add(k, pair->dev,
						  pair->backups[j],
						  pair->policy);
			if (ret) {
				tell_once(told, what, why(k));
				missing++;
				if (ret == -ENODEV && *again > RETRY_MS)
					*again = RETRY_MS;
				/* The order of backups is one of preference. */
				break;
			}
			log_info("pair: %s stands in for %s, policy %s",
				 pair->backups[j], pair->dev,
				 shift_name_of(&shift_policy_names,
					       pair->policy, num));
			*told = 0;
		}
	}
	return missing;
}

static struct known_peer *know(struct shift_kernel *k, const char *node)
{
	struct known_peer *grown;
	size_t i;

	for (i = 0; i < k->n_known; i++)
		if (!strcmp(k->known[i].node, node))
			return &k->known[i];
	grown = reallocarray(k->known, k->n_known + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	k->known = grown;
	grown += k->n_known++;
	memset(grown, 0, sizeof(*grown));
	snprintf(grown->node, sizeof(grown->node), "%s", node);
	return grown;
}

static bool is_connected(const struct shift_kernel *k,
			 const struct shift_peer *peer)
{
	size_t i;

	for (i = 0; i < k->n_connected; i++)
		if (shift_peer_has_gid(peer, &k->connected[i]))
			return true;
	return false;
}

/* Return: when to look again, in ms from now. */
static uint64_t set_peers(struct shift_kernel *k,
			  const struct shift_kernel_want *want)
{
	uint64_t again = FOREVER_MS;
	char what[128];
	size_t i;

	for (i = 0; i < want->peers->n; i++) {
		const struct shift_peer *peer = want->peers->peer[i];
		const struct shift_peer *has;
		struct known_peer *known = know(k, peer->node);

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
		if (do_peer_set(k, peer)) {
			snprintf(what, sizeof(what), "peer %s", peer->node);
			tell_once(&known->error, what, why(k));
			again = RETRY_MS;
			continue;
		}
		log_info("peer %s: %u NIC(s) %s", peer->node, peer->n_nics,
			 has ? "changed" : "known");
		known->ours = true;
		known->error = 0;
	}
	return again;
}

/*
 * A peer nobody wants: one this run had set was held by the directory; one
 * found in the kernel is held here.  While a link to it is up it stays in any
 * case: that a daemon or etcd is away must not cost anyone a failover.
 */
static uint64_t del_peer(struct shift_kernel *k,
			 const struct shift_kernel_want *want,
			 const struct shift_peer *peer,
			 struct known_peer *known)
{
	uint64_t due;

	known->seen = true;
	if (!known->stale_since)
		known->stale_since = want->now_ms ? want->now_ms : 1;
	if (!known->ours) {
		if (!want->complete)
			return FOREVER_MS;
		due = known->stale_since + want->hold_ms;
		if (want->now_ms < due)
			return due - want->now_ms;
	}
	if (is_connected(k, peer)) {
		if (!known->told_connected)
			log_info("peer %s: gone from the directory, kept while a link to it is up",
				 peer->node);
		known->told_connected = true;
		return FOREVER_MS;
	}
	/* @peer goes away with this in a dry run; its name is in @known. */
	if (do_peer_del(k, known->node)) {
		tell_once(&known->error, known->node, why(k));
		return RETRY_MS;
	}
	log_info("peer %s: removed", known->node);
	known->seen = false;
	return FOREVER_MS;
}

static uint64_t sync_peers(struct shift_kernel *k,
			   const struct shift_kernel_want *want)
{
	uint64_t again = FOREVER_MS, one;
	size_t i, kept = 0;

	for (i = 0; i < k->n_known; i++)
		k->known[i].seen = false;
	/* First: a GID that moved to another node must be free for it. */
	for (i = k->peers.n; i-- > 0;) {
		const struct shift_peer *peer = k->peers.peer[i];
		struct known_peer *known;

		if (shift_peers_find(want->peers, peer->node))
			continue;
		known = know(k, peer->node);
		if (!known)
			continue;
		one = del_peer(k, want, peer, known);
		if (one < again)
			again = one;
	}
	one = set_peers(k, want);
	if (one < again)
		again = one;
	for (i = 0; i < k->n_known; i++)
		if (k->known[i].seen)
			k->known[kept++] = k->known[i];
	k->n_known = kept;
	return again;
}

static uint64_t sync_failback(struct shift_kernel *k,
			      const struct shift_kernel_want *want)
{
	const struct shift_failback_policy policy = {
		.hold_ms = want->config->failback_hold * 1000ULL,
		.max_hold_ms = want->config->failback_max_hold * 1000ULL,
		.probe_ms = want->config->failback_probe * 1000ULL,
	};

	if (k->dry_run || !want->config->failback)
		return FOREVER_MS;
	return shift_failback_run(k->failback, k->nl, &policy, want->now_ms);
}

/**
 * shift_kernel_sync() - make the kernel as it should be
 * @k: from shift_kernel_new()
 * @want: how it should be
 *
 * Return: in how many ms it must be called again for what is not done yet;
 * UINT64_MAX if all is done.
 */
uint64_t shift_kernel_sync(struct shift_kernel *k,
			   const struct shift_kernel_want *want)
{
	uint64_t again = FOREVER_MS, one;
	unsigned int missing;
	int ret;

	ret = open_kernel(k);
	if (!ret && read_kernel(k)) {
		/* Unloaded, and maybe loaded again since: once more. */
		close_kernel(k);
		ret = open_kernel(k);
		if (!ret)
			ret = read_kernel(k);
	}
	if (ret) {
		if (!k->told_missing)
			log_warn("%s; waiting for it", ret == -ENOENT ?
				 "kernel module rdma_shift is not loaded (modprobe rdma_shift)" :
				 k->nl ? shift_nl_error(k->nl) :
				 strerror(-ret));
		k->told_missing = true;
		close_kernel(k);
		snprintf(k->status, sizeof(k->status), "module not there");
		return RETRY_MS;
	}
	if (k->told_missing)
		log_info("kernel module rdma_shift is there");
	k->told_missing = false;
	if (!strcmp(k->node, want->config->node) ||
	    !do_node_set(k, want->config->node))
		k->node_error = 0;
	else
		tell_once(&k->node_error, "node name", why(k));
	missing = sync_pairs(k, want->config, &again);
	one = sync_peers(k, want);
	if (one < again)
		again = one;
	one = sync_failback(k, want);
	if (one < again)
		again = one;
	snprintf(k->status, sizeof(k->status), "%zu pair(s)%s, %zu peer(s)",
		 k->n_pairs, missing ? ", some missing" : "", want->peers->n);
	if (k->dry_run)
		fflush(stdout);
	return again;
}

/* A pair that a reload took out of the configuration. */
void shift_kernel_pair_del(struct shift_kernel *k, const char *dev)
{
	size_t i, kept = 0;

	memset(k->pair_error, 0, sizeof(k->pair_error));
	if (k->dry_run) {
		printf("pair del %s\n", dev);
		fflush(stdout);
		for (i = 0; i < k->n_pairs; i++)
			if (strcmp(k->pairs[i].dev, dev))
				k->pairs[kept++] = k->pairs[i];
		k->n_pairs = kept;
		return;
	}
	if (!k->nl)
		return;
	if (shift_nl_pair_del(k->nl, dev))
		log_warn("pair %s stays: %s", dev, why(k));
	else
		log_info("pair: %s has no backup any more", dev);
}

const char *shift_kernel_status(const struct shift_kernel *k)
{
	return k->status;
}

struct shift_kernel *shift_kernel_new(sd_event *event, bool dry_run,
				      void (*kick)(void *arg), void *arg)
{
	struct shift_kernel *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->failback = shift_failback_new();
	if (!k->failback) {
		free(k);
		return NULL;
	}
	k->event = sd_event_ref(event);
	k->dry_run = dry_run;
	k->kick = kick;
	k->arg = arg;
	return k;
}

/* What is in the kernel stays there. */
void shift_kernel_free(struct shift_kernel *k)
{
	if (!k)
		return;
	close_kernel(k);
	shift_peers_clear(&k->peers);
	free(k->pairs);
	free(k->connected);
	free(k->known);
	shift_failback_free(k->failback);
	sd_event_unref(k->event);
	free(k);
}
