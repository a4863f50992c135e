// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel has, as last read, and what it can be told.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/command.h"
#include "lib/names.h"
#include "shiftd/kernel.h"

static void on_node(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		    void *arg)
{
	struct shift_kernel *k = arg;

	(void)cmd;
	(void)nlh;
	if (tb[SHIFT_A_NODE])
		nla_strlcpy(k->node, tb[SHIFT_A_NODE], sizeof(k->node));
	k->keys = tb[SHIFT_A_KEYS] ? nla_get_u32(tb[SHIFT_A_KEYS]) : 0;
}

struct shift_kernel_pair *shift_kernel_pair(const struct shift_kernel *k,
					    const char *dev)
{
	size_t i;

	for (i = 0; i < k->n_pairs; i++)
		if (!strcmp(k->pairs[i].dev, dev))
			return &k->pairs[i];
	return NULL;
}

/* Notes a pair that the kernel has, without its backups. */
static struct shift_kernel_pair *note_pair(struct shift_kernel *k,
					   const char *dev, int policy)
{
	struct shift_kernel_pair *grown;

	grown = reallocarray(k->pairs, k->n_pairs + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	k->pairs = grown;
	grown += k->n_pairs++;
	memset(grown, 0, sizeof(*grown));
	snprintf(grown->dev, sizeof(grown->dev), "%s", dev);
	grown->policy = policy;
	return grown;
}

static void note_backup(const char *backup, void *arg)
{
	struct shift_kernel_pair *pair = arg;

	if (pair->n_backups < SHIFT_BACKUPS_MAX)
		snprintf(pair->backups[pair->n_backups++], SHIFT_DEV_MAX, "%s",
			 backup);
}

static void on_pair(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		    void *arg)
{
	struct shift_kernel_pair *pair;

	(void)cmd;
	if (!tb[SHIFT_A_DEV] || !tb[SHIFT_A_BACKUP_DEV] || !tb[SHIFT_A_POLICY])
		return;
	pair = note_pair(arg, nla_get_string(tb[SHIFT_A_DEV]),
			 (int)nla_get_u32(tb[SHIFT_A_POLICY]));
	if (!pair)
		return;
	pair->drained = tb[SHIFT_A_DRAINED];
	if (tb[SHIFT_A_TRACKED_QPS])
		pair->qps = nla_get_u32(tb[SHIFT_A_TRACKED_QPS]);
	if (!shift_nl_backups_read(nlh, note_backup, pair)) {
		pair->one_only = true;
		note_backup(nla_get_string(tb[SHIFT_A_BACKUP_DEV]), pair);
	}
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

int shift_kernel_open(struct shift_kernel *k)
{
	return k->dry_run || k->nl ? 0 : shift_nl_open(&k->nl);
}

void shift_kernel_close(struct shift_kernel *k)
{
	shift_nl_close(k->nl);
	k->nl = NULL;
}

/* Forgets what was read; what is in the kernel stays there. */
void shift_kernel_clear(struct shift_kernel *k)
{
	shift_peers_clear(&k->peers);
	free(k->pairs);
	free(k->connected);
	k->pairs = NULL;
	k->connected = NULL;
	k->n_pairs = 0;
	k->n_connected = 0;
}

/* Return: 0, or -EIO and it is not known what the kernel has. */
int shift_kernel_read(struct shift_kernel *k)
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

const char *shift_kernel_error(const struct shift_kernel *k)
{
	return k->dry_run ? "out of memory" : shift_nl_error(k->nl);
}

bool shift_kernel_is_connected(const struct shift_kernel *k,
			       const struct shift_peer *peer)
{
	size_t i;

	for (i = 0; i < k->n_connected; i++)
		if (shift_peer_has_gid(peer, &k->connected[i]))
			return true;
	return false;
}

int shift_kernel_node_set(struct shift_kernel *k, const char *node)
{
	if (!k->dry_run)
		return shift_nl_node_set(k->nl, node);
	printf("node set %s\n", node);
	snprintf(k->node, sizeof(k->node), "%s", node);
	return 0;
}

int shift_kernel_pair_add(struct shift_kernel *k, const char *dev,
			  const char *backup, int policy)
{
	struct shift_kernel_pair *pair = shift_kernel_pair(k, dev);
	char num[SHIFT_NAME_NUMBER];
	int ret;

	if (!k->dry_run) {
		ret = shift_nl_pair_add(k->nl, dev, backup, policy);
		if (ret)
			return ret;
	} else {
		printf("pair add %s %s", dev, backup);
		if (policy != SHIFT_POLICY_EXACTLY_ONCE)
			printf(" --policy %s",
			       shift_name_of(&shift_policy_names, policy, num));
		putchar('\n');
	}
	if (!pair)
		pair = note_pair(k, dev, policy);
	if (pair)
		note_backup(backup, pair);
	return 0;
}

int shift_kernel_pair_set(struct shift_kernel *k, const char *dev, int policy)
{
	struct shift_kernel_pair *pair = shift_kernel_pair(k, dev);
	char num[SHIFT_NAME_NUMBER];
	int ret;

	if (!k->dry_run) {
		ret = shift_nl_pair_set(k->nl, dev, policy);
		if (ret)
			return ret;
	} else {
		printf("pair set %s --policy %s\n", dev,
		       shift_name_of(&shift_policy_names, policy, num));
	}
	if (pair)
		pair->policy = policy;
	return 0;
}

int shift_kernel_pair_del(struct shift_kernel *k, const char *dev)
{
	struct shift_kernel_pair *pair = shift_kernel_pair(k, dev);
	int ret;

	if (!k->dry_run) {
		ret = shift_nl_pair_del(k->nl, dev);
		if (ret)
			return ret;
	} else {
		printf("pair del %s\n", dev);
	}
	if (pair)
		*pair = k->pairs[--k->n_pairs];
	return 0;
}

int shift_kernel_peer_set(struct shift_kernel *k, const struct shift_peer *peer)
{
	char *text;

	if (!k->dry_run)
		return shift_nl_peer_set(k->nl, peer);
	text = shift_peer_format(peer);
	printf("peer set %s %s\n", peer->node, text ? text : "?");
	free(text);
	return shift_peers_add(&k->peers, peer);
}

int shift_kernel_peer_del(struct shift_kernel *k, const char *node)
{
	if (!k->dry_run)
		return shift_nl_peer_del(k->nl, node);
	printf("peer del %s\n", node);
	shift_peers_remove(&k->peers, node);
	return 0;
}
