// SPDX-License-Identifier: GPL-2.0
/*
 * The directory of peers: which GIDs the NICs of a node have, and which NICs back up which.  It is
 * set from user space, changed rarely, and looked up under RCU.
 */
#include <linux/ctype.h>
#include <linux/hashtable.h>
#include <linux/inetdevice.h>
#include <linux/jhash.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include "link/link.h"
#include "link/link_priv.h"

#define SHIFT_PEERS_MAX		4096

struct shift_peer_gid {
	struct hlist_node hash;
	union ib_gid gid;
	struct shift_peer *peer;
	int nic;			/* index of the default NIC with it; -1: of a backup only */
};

/**
 * struct shift_peer - one node; never changed once it is in the directory
 * @list: in shift_peers.
 * @rcu: frees it.
 * @node: its name.
 * @n: number of @nics.
 * @num_gids: number of @gids.
 * @nics: as set; behind @gids.
 * @gids: each GID of @nics once.
 */
struct shift_peer {
	struct list_head list;
	struct rcu_head rcu;
	char node[SHIFT_NODE_MAX];
	u32 n, num_gids;
	struct shift_peer_nic *nics;
	struct shift_peer_gid gids[];
};

/* held to change the directory, and to walk it */
static DEFINE_MUTEX(shift_peers_lock);
static LIST_HEAD(shift_peers);
static unsigned int shift_num_peers;
static DEFINE_HASHTABLE(shift_peer_gids, 12);

static u32 peer_hash(const union ib_gid *gid)
{
	return jhash(gid, sizeof(*gid), 0);
}

static struct shift_peer_gid *peer_lookup(const union ib_gid *gid)
{
	struct shift_peer_gid *g;

	hash_for_each_possible_rcu(shift_peer_gids, g, hash, peer_hash(gid),
				   lockdep_is_held(&shift_peers_lock))
		if (!memcmp(&g->gid, gid, sizeof(*gid)))
			return g;
	return NULL;
}

static struct shift_peer *peer_find(const char *node)
{
	struct shift_peer *peer;

	list_for_each_entry(peer, &shift_peers, list)
		if (!strcmp(peer->node, node))
			return peer;
	return NULL;
}

/* Has this host @gid as an IP address? */
static bool peer_is_own(const union ib_gid *gid)
{
	const struct in6_addr *addr = (const struct in6_addr *)gid;
	struct net_device *ndev;

	if (ipv6_addr_v4mapped(addr)) {
		ndev = ip_dev_find(&init_net, addr->s6_addr32[3]);
		dev_put(ndev);
		return ndev;
	}
	return IS_ENABLED(CONFIG_IPV6) && ipv6_chk_addr(&init_net, addr, NULL, 0);
}

static int peer_check_gid(const union ib_gid *gid, struct netlink_ext_ack *extack)
{
	const struct in6_addr *addr = (const struct in6_addr *)gid;

	__be32 v4 = addr->s6_addr32[3];

	if (ipv6_addr_any(addr) || ipv6_addr_is_multicast(addr) ||
	    (ipv6_addr_v4mapped(addr) && (ipv4_is_zeronet(v4) || ipv4_is_multicast(v4) ||
					  ipv4_is_loopback(v4) || ipv4_is_lbcast(v4)))) {
		NL_SET_ERR_MSG(extack, "a GID is not a unicast address");
		return -EINVAL;
	}
	if (peer_is_own(gid)) {
		NL_SET_ERR_MSG(extack, "a GID belongs to this host");
		return -EINVAL;
	}
	return 0;
}

static int peer_check_node(const char *node, struct netlink_ext_ack *extack)
{
	size_t len = strnlen(node, SHIFT_NODE_MAX);
	size_t i;

	if (!len) {
		NL_SET_ERR_MSG(extack, "node name is empty");
		return -EINVAL;
	}
	if (len == SHIFT_NODE_MAX) {
		NL_SET_ERR_MSG(extack, "node name is too long");
		return -EINVAL;
	}
	for (i = 0; i < len; i++) {
		if (!isascii(node[i]) || !isgraph(node[i])) {
			NL_SET_ERR_MSG(extack, "node name has a blank or unprintable character");
			return -EINVAL;
		}
	}
	return 0;
}

static int peer_check(const char *node, const struct shift_peer_nic *nics, u32 n,
		      struct netlink_ext_ack *extack)
{
	u32 i, j, k;
	int err;

	err = peer_check_node(node, extack);
	if (err)
		return err;
	if (!n) {
		NL_SET_ERR_MSG(extack, "a peer needs a NIC");
		return -EINVAL;
	}
	if (n > SHIFT_PEER_NICS_MAX) {
		NL_SET_ERR_MSG(extack, "too many NICs");
		return -E2BIG;
	}
	for (i = 0; i < n; i++) {
		const struct shift_peer_nic *nic = &nics[i];

		err = peer_check_gid(&nic->gid, extack);
		if (err)
			return err;
		if (nic->num_backups > SHIFT_BACKUPS_MAX) {
			NL_SET_ERR_MSG(extack, "too many backups of one NIC");
			return -E2BIG;
		}
		for (j = 0; j < i; j++) {
			if (!memcmp(&nics[j].gid, &nic->gid, sizeof(nic->gid))) {
				NL_SET_ERR_MSG(extack, "two NICs have the same GID");
				return -EEXIST;
			}
		}
		for (j = 0; j < nic->num_backups; j++) {
			err = peer_check_gid(&nic->backup[j], extack);
			if (err)
				return err;
			if (!memcmp(&nic->backup[j], &nic->gid, sizeof(nic->gid))) {
				NL_SET_ERR_MSG(extack, "a NIC is its own backup");
				return -EINVAL;
			}
			for (k = 0; k < j; k++) {
				if (!memcmp(&nic->backup[k], &nic->backup[j],
					    sizeof(nic->gid))) {
					NL_SET_ERR_MSG(extack, "a NIC has a backup twice");
					return -EEXIST;
				}
			}
		}
	}
	return 0;
}

static void peer_add_gid(struct shift_peer *peer, const union ib_gid *gid, int nic)
{
	struct shift_peer_gid *g;
	u32 i;

	for (i = 0; i < peer->num_gids; i++) {
		g = &peer->gids[i];
		if (!memcmp(&g->gid, gid, sizeof(*gid))) {
			if (nic >= 0)
				g->nic = nic;
			return;
		}
	}
	g = &peer->gids[peer->num_gids++];
	g->gid = *gid;
	g->peer = peer;
	g->nic = nic;
}

static struct shift_peer *peer_alloc(const char *node, const struct shift_peer_nic *nics,
				     u32 n)
{
	struct shift_peer *peer;
	u32 i, j, gids = n;

	for (i = 0; i < n; i++)
		gids += nics[i].num_backups;
	peer = kvzalloc(struct_size(peer, gids, gids) + n * sizeof(*nics), GFP_KERNEL);
	if (!peer)
		return NULL;
	INIT_LIST_HEAD(&peer->list);
	strscpy(peer->node, node, sizeof(peer->node));
	peer->n = n;
	peer->nics = (void *)&peer->gids[gids];
	memcpy(peer->nics, nics, n * sizeof(*nics));
	for (i = 0; i < n; i++) {
		peer_add_gid(peer, &nics[i].gid, i);
		for (j = 0; j < nics[i].num_backups; j++)
			peer_add_gid(peer, &nics[i].backup[j], -1);
	}
	return peer;
}

static void peer_remove(struct shift_peer *peer)
{
	u32 i;

	lockdep_assert_held(&shift_peers_lock);

	for (i = 0; i < peer->num_gids; i++)
		hash_del_rcu(&peer->gids[i].hash);
	list_del(&peer->list);
	shift_num_peers--;
	kvfree_rcu(peer, rcu);
}

/**
 * shift_peer_set - add a node, or replace what is known of it
 * @node: its name.
 * @nics: its default NICs with their backups, in order of preference.
 * @n: how many.
 * @extack: gets the reason of a refusal; may be NULL.
 *
 * Context: process, may sleep.
 * Return: 0, -EINVAL, -EEXIST (a GID twice, or of another node), -E2BIG, -ENOSPC,
 * -ENOMEM.
 */
int shift_peer_set(const char *node, const struct shift_peer_nic *nics, u32 n,
		   struct netlink_ext_ack *extack)
{
	struct shift_peer *peer, *old;
	struct shift_peer_gid *g;
	u32 i;
	int err;

	err = peer_check(node, nics, n, extack);
	if (err)
		return err;
	peer = peer_alloc(node, nics, n);
	if (!peer) {
		NL_SET_ERR_MSG(extack, "no memory for the peer");
		return -ENOMEM;
	}

	mutex_lock(&shift_peers_lock);
	old = peer_find(node);
	if (!old && shift_num_peers >= SHIFT_PEERS_MAX) {
		NL_SET_ERR_MSG(extack, "too many peers");
		err = -ENOSPC;
		goto err;
	}
	for (i = 0; i < peer->num_gids; i++) {
		g = peer_lookup(&peer->gids[i].gid);
		if (g && g->peer != old) {
			NL_SET_ERR_MSG(extack, "a GID belongs to another node");
			err = -EEXIST;
			goto err;
		}
	}
	/* the new one is added first: a look-up in between finds either */
	for (i = 0; i < peer->num_gids; i++)
		hash_add_rcu(shift_peer_gids, &peer->gids[i].hash,
			     peer_hash(&peer->gids[i].gid));
	list_add_tail(&peer->list, old ? &old->list : &shift_peers);
	shift_num_peers++;
	if (old)
		peer_remove(old);
	mutex_unlock(&shift_peers_lock);
	return 0;

err:
	mutex_unlock(&shift_peers_lock);
	kvfree(peer);
	return err;
}

/**
 * shift_peer_del - forget a node; shift_link_peer_del() ends its links
 * @node: its name.
 * @extack: gets the reason of a refusal; may be NULL.
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOENT.
 */
int shift_peer_del(const char *node, struct netlink_ext_ack *extack)
{
	struct shift_peer *peer;

	mutex_lock(&shift_peers_lock);
	peer = peer_find(node);
	if (peer)
		peer_remove(peer);
	mutex_unlock(&shift_peers_lock);
	if (!peer) {
		NL_SET_ERR_MSG(extack, "no such peer");
		return -ENOENT;
	}
	return 0;
}

/**
 * shift_peer_backup - the first backup of a NIC
 * @gid: of the NIC.
 * @backup: gets the GID of its first backup.
 *
 * Context: any.
 * Return: 0, -ENOENT (not the GID of any default NIC), -ENODATA (no backup).
 */
int shift_peer_backup(const union ib_gid *gid, union ib_gid *backup)
{
	const struct shift_peer_nic *nic;
	struct shift_peer_gid *g;
	int err = -ENOENT;

	rcu_read_lock();
	g = peer_lookup(gid);
	if (g && g->nic >= 0) {
		nic = &g->peer->nics[g->nic];
		err = nic->num_backups ? 0 : -ENODATA;
		if (!err)
			*backup = nic->backup[0];
	}
	rcu_read_unlock();
	return err;
}

/**
 * shift_peer_node - the node that a GID belongs to
 * @gid: of a default NIC or of a backup.
 * @node: gets the name of the node, SHIFT_NODE_MAX bytes; unchanged on error.
 *
 * Context: any.
 * Return: 0 or -ENOENT.
 */
int shift_peer_node(const union ib_gid *gid, char *node)
{
	struct shift_peer_gid *g;

	rcu_read_lock();
	g = peer_lookup(gid);
	if (g)
		strscpy(node, g->peer->node, SHIFT_NODE_MAX);
	rcu_read_unlock();
	return g ? 0 : -ENOENT;
}

/**
 * shift_peer_knows - is a GID in the directory?
 * @gid: of a default NIC or of a backup.
 *
 * Context: any.
 * Return: true if it is.
 */
bool shift_peer_knows(const union ib_gid *gid)
{
	bool known;

	rcu_read_lock();
	known = peer_lookup(gid);
	rcu_read_unlock();
	return known;
}

/**
 * shift_peer_is_same - do two GIDs belong to the same peer?
 * @gid: any GID.
 * @other: any other.
 *
 * Context: any.
 * Return: true if the directory says so.
 */
bool shift_peer_is_same(const union ib_gid *gid, const union ib_gid *other)
{
	struct shift_peer_gid *a, *b;
	bool same;

	rcu_read_lock();
	a = peer_lookup(gid);
	b = peer_lookup(other);
	same = a && b && a->peer == b->peer;
	rcu_read_unlock();
	return same;
}

/**
 * shift_peer_walk - call a function for every peer
 * @fn: must not change the directory.
 * @arg: for @fn.
 *
 * Context: process, may sleep; so may @fn.
 * Return: what @fn returned last; it stops at non-zero.
 */
int shift_peer_walk(int (*fn)(const char *node, const struct shift_peer_nic *nics, u32 n,
			      void *arg), void *arg)
{
	struct shift_peer *peer;
	int ret = 0;

	mutex_lock(&shift_peers_lock);
	list_for_each_entry(peer, &shift_peers, list) {
		ret = fn(peer->node, peer->nics, peer->n, arg);
		if (ret)
			break;
	}
	mutex_unlock(&shift_peers_lock);
	return ret;
}

/**
 * shift_peer_clear - forget all peers
 *
 * Context: process, may sleep.
 */
void shift_peer_clear(void)
{
	struct shift_peer *peer, *next;

	mutex_lock(&shift_peers_lock);
	list_for_each_entry_safe(peer, next, &shift_peers, list)
		peer_remove(peer);
	mutex_unlock(&shift_peers_lock);
}
