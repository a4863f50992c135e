// SPDX-License-Identifier: GPL-2.0
/*
 * The MAC addresses of peers outlive a fault: RDMA CM ends no connection whose QP is protected.
 * Documentation/internals/links.md, "Neighbours".
 */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include <net/neighbour.h>
#include <net/netevent.h>
#include <net/net_namespace.h>
#include <rdma/ib_addr.h>
#include "core/stat.h"
#include "link/link.h"
#include "link/link_priv.h"

/* protects the table, and the fields of struct shift_neigh */
static DEFINE_SPINLOCK(neigh_lock);
static DEFINE_HASHTABLE(neigh_table, 10);

static u32 neigh_hash(const union ib_gid *gid)
{
	return jhash(gid, sizeof(*gid), 0);
}

/**
 * shift_neigh_note - a link's connection is established: the interface leads to the peer
 * @link: its next hop (shift_link_dmac()) is known.
 * @addr: addresses that RDMA CM has found for the connection.
 *
 * Context: process.
 */
void shift_neigh_note(struct shift_link *link, const struct rdma_dev_addr *addr)
{
	struct shift_neigh *n = &link->neigh;

	spin_lock_bh(&neigh_lock);
	n->net = addr->net->net_cookie;
	n->ifindex = addr->bound_dev_if;
	if (hlist_unhashed(&n->hash))
		hash_add(neigh_table, &n->hash, neigh_hash(&link->remote));
	spin_unlock_bh(&neigh_lock);
}

/**
 * shift_neigh_forget - a link leaves the table of links
 * @link: referenced.
 *
 * Context: process.
 */
void shift_neigh_forget(struct shift_link *link)
{
	spin_lock_bh(&neigh_lock);
	hash_del(&link->neigh.hash);
	spin_unlock_bh(&neigh_lock);
}

/* The address of a neighbour as a GID; false: it is not of IP. */
static bool neigh_gid(const struct neighbour *neigh, union ib_gid *gid)
{
	struct in6_addr *addr = (struct in6_addr *)gid;

	switch (neigh->tbl->family) {
	case AF_INET:
		ipv6_addr_set_v4mapped(*(const __be32 *)neigh->primary_key, addr);
		return true;
	case AF_INET6:
		*addr = *(const struct in6_addr *)neigh->primary_key;
		return true;
	default:
		return false;
	}
}

/* The MAC address of a neighbour that protected QPs run to, or ran to before a fault. */
static bool neigh_find(const struct neighbour *neigh, u8 *mac)
{
	struct shift_link *link;
	union ib_gid gid;
	bool found = false;

	if (!neigh_gid(neigh, &gid))
		return false;
	spin_lock_bh(&neigh_lock);
	hash_for_each_possible(neigh_table, link, neigh.hash, neigh_hash(&gid)) {
		if (!READ_ONCE(link->guarded) || link->neigh.ifindex != neigh->dev->ifindex ||
		    link->neigh.net != dev_net(neigh->dev)->net_cookie ||
		    memcmp(&link->remote, &gid, sizeof(gid)))
			continue;
		shift_link_dmac(link, mac);
		found = true;
		break;
	}
	spin_unlock_bh(&neigh_lock);
	return found;
}

/*
 * A neighbour that nobody answers for has no MAC address.  RDMA CM compares its field with the
 * address to which each connection was made, whatever the neighbour's state is, and ends those that
 * differ (UNREACHABLE).  The network stack does not read the field in such a state.
 */
static void neigh_keep(struct neighbour *neigh, const u8 *mac)
{
	bool kept = false;

	write_lock_bh(&neigh->lock);
	if (!(neigh->nud_state & NUD_VALID) && memcmp(neigh->ha, mac, ETH_ALEN)) {
		write_seqlock(&neigh->ha_lock);
		memcpy(neigh->ha, mac, ETH_ALEN);
		write_sequnlock(&neigh->ha_lock);
		kept = true;
	}
	write_unlock_bh(&neigh->lock);
	if (kept)
		shift_stat_inc(SHIFT_STAT_NEIGHBOURS);
}

/* Context: softirq or process. */
static int neigh_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct neighbour *neigh = ptr;
	u8 mac[ETH_ALEN];

	/* one that answers with another address has really changed it: RDMA CM is to know */
	if (event == NETEVENT_NEIGH_UPDATE && !(READ_ONCE(neigh->nud_state) & NUD_VALID) &&
	    neigh->dev->addr_len == ETH_ALEN && neigh_find(neigh, mac))
		neigh_keep(neigh, mac);
	return NOTIFY_DONE;
}

static struct notifier_block neigh_notifier = {
	.notifier_call = neigh_event,
	/* before RDMA CM's, which has 0 */
	.priority = 1,
};

void shift_neigh_init(void)
{
	register_netevent_notifier(&neigh_notifier);
}

void shift_neigh_uninit(void)
{
	unregister_netevent_notifier(&neigh_notifier);
}
