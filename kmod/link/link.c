// SPDX-License-Identifier: GPL-2.0
/*
 * The table of links, references to them, and their end with a device or the module.
 * Documentation/internals/links.md.
 */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_addr.h>
#include "link/link.h"
#include "link/link_priv.h"
#include "pure/msg.h"

/* protects the table and lists of lanes, not what is in its links */
DEFINE_MUTEX(shift_links_lock);
LIST_HEAD(shift_links);
static DEFINE_HASHTABLE(shift_link_table, 10);
static u32 shift_link_last_id;
static bool shift_links_closed = true;

static void link_free(struct kref *ref)
{
	struct shift_link *link = container_of(ref, struct shift_link, ref);

	/* a base is no lane, so that this ends */
	if (link->base)
		shift_link_unref(link->base);
	kfree(link);
}

/**
 * shift_link_unref - drop a reference to a link's memory
 * @link: the link.
 *
 * Context: any.
 */
void shift_link_unref(struct shift_link *link)
{
	kref_put(&link->ref, link_free);
}

static u32 link_hash(const union ib_gid *local, const union ib_gid *remote)
{
	return jhash(remote, sizeof(*remote), jhash(local, sizeof(*local), 0));
}

/* The table */

static struct shift_link *link_alloc(struct ib_device *dev, const union ib_gid *local,
				     const union ib_gid *remote)
{
	struct shift_link *link = kzalloc(sizeof(*link), GFP_NOIO);

	if (!link)
		return NULL;
	kref_init(&link->ref);
	INIT_HLIST_NODE(&link->hash);
	INIT_LIST_HEAD(&link->list);
	INIT_LIST_HEAD(&link->lanes);
	INIT_LIST_HEAD(&link->sibling);
	INIT_HLIST_NODE(&link->neigh.hash);
	link->dev = dev;
	link->local = *local;
	link->remote = *remote;
	link->active = memcmp(local, remote, sizeof(*local)) < 0;
	mutex_init(&link->users_lock);
	INIT_LIST_HEAD(&link->user_list);
	spin_lock_init(&link->lock);
	init_waitqueue_head(&link->idle);
	INIT_LIST_HEAD(&link->inbox);
	shift_link_init_work(link);
	return link;
}

static struct shift_link *link_lookup(struct ib_device *dev, const union ib_gid *local,
				      const union ib_gid *remote)
{
	struct shift_link *link;

	lockdep_assert_held(&shift_links_lock);

	hash_for_each_possible(shift_link_table, link, hash, link_hash(local, remote)) {
		/* a link of a removed device has none: it is not found again */
		if (READ_ONCE(link->dev) == dev && !link->base &&
		    !memcmp(&link->local, local, sizeof(*local)) &&
		    !memcmp(&link->remote, remote, sizeof(*remote)))
			return link;
	}
	return NULL;
}

/* Enter a link in the table. */
static void link_add(struct shift_link *link)
{
	lockdep_assert_held(&shift_links_lock);
	link->id = ++shift_link_last_id;
	/* under the lock: a rename before it is seen here, one after it finds the link */
	strscpy(link->name, dev_name(&link->dev->dev), sizeof(link->name));
	link->listed = true;
	list_add_tail(&link->list, &shift_links);
	hash_add(shift_link_table, &link->hash, link_hash(&link->local, &link->remote));
}

/* One user more; @connect: the first one has it connected. */
static void link_hold(struct shift_link *link, bool connect)
{
	lockdep_assert_held(&shift_links_lock);
	kref_get(&link->ref);
	spin_lock_irq(&link->lock);
	/* not after the table's lock: a second user may come between, and nobody would be first */
	if (!link->users++ && connect)
		shift_link_retry_now(link);
	spin_unlock_irq(&link->lock);
}

/* Find or make a link, with one user more; @connect: the first one has it connected. */
static struct shift_link *link_find(struct ib_device *dev, const union ib_gid *local,
				    const union ib_gid *remote, bool connect)
{
	struct shift_link *link, *new;

	new = link_alloc(dev, local, remote);
	if (!new)
		return ERR_PTR(-ENOMEM);

	mutex_lock(&shift_links_lock);
	if (shift_links_closed) {
		link = ERR_PTR(-ESHUTDOWN);
		goto out;
	}
	link = link_lookup(dev, local, remote);
	if (!link) {
		link = new;
		new = NULL;
		link_add(link);
	}
	link_hold(link, connect);
out:
	mutex_unlock(&shift_links_lock);
	kfree(new);
	return link;
}

/**
 * shift_link_find - find or make a link, as a user, without connecting it
 * @dev: RDMA device.
 * @local: GID of it.
 * @remote: GID of the peer.
 *
 * Context: process, may sleep.
 * Return: the link, for shift_link_put(), or ERR_PTR: -ENOMEM, -ESHUTDOWN.
 */
struct shift_link *shift_link_find(struct ib_device *dev, const union ib_gid *local,
				   const union ib_gid *remote)
{
	return link_find(dev, local, remote, false);
}

/* The lane of a class; NULL: there is none.  @used, @all: how many others are used, and there. */
static struct shift_link *lane_lookup(struct shift_link *base, u8 tclass, unsigned int *used,
				      unsigned int *all)
{
	struct shift_link *lane;

	lockdep_assert_held(&shift_links_lock);
	*used = 0;
	*all = 0;
	list_for_each_entry(lane, &base->lanes, sibling) {
		if (lane->tclass == tclass)
			return lane;
		*used += !!READ_ONCE(lane->users);
		(*all)++;
	}
	return NULL;
}

/* Enter a new lane in the table. */
static void lane_add(struct shift_link *lane, struct shift_link *base, struct ib_device *dev,
		     u8 tclass)
{
	lockdep_assert_held(&shift_links_lock);
	/* the module's removal of the device comes after this, and finds the lane, too */
	lane->dev = dev;
	lane->tclass = tclass;
	kref_get(&base->ref);
	lane->base = base;
	list_add_tail(&lane->sibling, &base->lanes);
	link_add(lane);
}

/**
 * shift_link_lane - find or make the lane of a link in a traffic class, as a user
 * @base: the link, no lane; referenced.
 * @tclass: the class; its ECN bits are ignored.
 * @connect: have it connected in the background, if this side is the one to connect.
 *
 * SHIFT_LINK_LANES classes may be used at a time.  One that was used before goes with its next
 * heartbeat; what a peer asks for has to wait until it has.
 *
 * Context: process, may sleep, allocates with GFP_NOIO.
 * Return: the lane, for shift_link_put(), or ERR_PTR: -ENOMEM, -ESHUTDOWN, -ENODEV, -EBUSY (too
 * many classes).
 */
struct shift_link *shift_link_lane(struct shift_link *base, u8 tclass, bool connect)
{
	struct shift_link *lane, *new = link_alloc(NULL, &base->local, &base->remote);
	struct ib_device *dev;
	unsigned int used, all;

	if (!new)
		return ERR_PTR(-ENOMEM);
	tclass &= SHIFT_LINK_CLASS;
	mutex_lock(&shift_links_lock);
	lane = lane_lookup(base, tclass, &used, &all);
	dev = READ_ONCE(base->dev);
	if (shift_links_closed) {
		lane = ERR_PTR(-ESHUTDOWN);
	} else if (!dev) {
		lane = ERR_PTR(-ENODEV);
	} else if (!lane && (connect ? used : all) >= SHIFT_LINK_LANES) {
		lane = ERR_PTR(-EBUSY);
	} else if (!lane) {
		lane = new;
		new = NULL;
		lane_add(lane, base, dev, tclass);
	}
	if (!IS_ERR(lane))
		link_hold(lane, connect);
	mutex_unlock(&shift_links_lock);
	kfree(new);
	return lane;
}

/**
 * shift_link_reap - take a link off the table for good, if it has neither users nor connections
 * @link: referenced.
 *
 * Context: process, may sleep.
 */
void shift_link_reap(struct shift_link *link)
{
	bool reap;

	mutex_lock(&shift_links_lock);
	spin_lock_irq(&link->lock);
	reap = link->listed && !link->users && !link->conns;
	/* nothing can stop its timer later, as nothing finds the link */
	if (reap)
		shift_link_cut_off(link);
	spin_unlock_irq(&link->lock);
	if (reap) {
		link->listed = false;
		list_del(&link->list);
		list_del(&link->sibling);
		hash_del(&link->hash);
	}
	mutex_unlock(&shift_links_lock);
	if (reap) {
		shift_neigh_forget(link);
		shift_link_unref(link);
	}
}

/**
 * shift_link_let_go - one of @link->conns has nothing on the device any more
 * @link: the caller holds a reference.
 *
 * Context: process, may sleep.
 */
void shift_link_let_go(struct shift_link *link)
{
	spin_lock_irq(&link->lock);
	if (!--link->conns)
		wake_up_all(&link->idle);
	spin_unlock_irq(&link->lock);
	shift_link_reap(link);
}

static bool link_usable(const union ib_gid *gid)
{
	const struct in6_addr *addr = (const struct in6_addr *)gid;

	return !ipv6_addr_any(addr) && !ipv6_addr_is_multicast(addr) &&
	       !(ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL);
}

/**
 * shift_link_get - find or make a link, and have it connected in the background
 * @dev: RDMA device, not yet given to shift_link_device_gone().
 * @local: GID of @dev.
 * @remote: GID of the peer.
 *
 * Context: process, may sleep, allocates with GFP_NOIO.
 * Return: the link, for shift_link_put(), or ERR_PTR: -EINVAL (both GIDs are the same),
 * -EAFNOSUPPORT (a GID that is no IP address RDMA CM can use), -ENOMEM, -ESHUTDOWN (the module is
 * being unloaded).
 */
struct shift_link *shift_link_get(struct ib_device *dev, const union ib_gid *local,
				  const union ib_gid *remote)
{
	if (!memcmp(local, remote, sizeof(*local)))
		return ERR_PTR(-EINVAL);
	if (!link_usable(local) || !link_usable(remote))
		return ERR_PTR(-EAFNOSUPPORT);
	return link_find(dev, local, remote, true);
}

/**
 * shift_link_put - drop a reference of shift_link_get()
 * @link: a link that is connected stays so, even if this was the last reference.
 *
 * Context: process, may sleep.
 */
void shift_link_put(struct shift_link *link)
{
	spin_lock_irq(&link->lock);
	link->users--;
	spin_unlock_irq(&link->lock);
	shift_link_reap(link);
	shift_link_unref(link);
}

/**
 * shift_link_send - queue one message
 * @link: referenced.
 * @m: in host order; not needed after the call.
 *
 * Context: any, does not sleep and does not allocate.
 * Return: 0: it arrives, unless the link goes down; -ENOTCONN; -EAGAIN: all
 * buffers are in use, try again later; -EINVAL: cannot be encoded.
 */
int shift_link_send(struct shift_link *link, const struct shift_msg *m)
{
	unsigned long flags;
	int err = -ENOTCONN;

	spin_lock_irqsave(&link->lock, flags);
	if (link->up)
		err = shift_conn_post_send(link->conn, m);
	spin_unlock_irqrestore(&link->lock, flags);
	return err;
}

/**
 * shift_link_probe - send a heartbeat over a link, and over its lanes, now
 * @id: of the link.
 *
 * Does not wait for the result: the link's @acked grows, or the link goes down.
 *
 * Context: process, may sleep.
 * Return: 0; -ENOENT: there is no such link; -ENOTCONN: it is not up.
 */
int shift_link_probe(u32 id)
{
	struct shift_link *link;
	int sent, err = -ENOENT;

	mutex_lock(&shift_links_lock);
	list_for_each_entry(link, &shift_links, list) {
		if (link->id != id && !(link->base && link->base->id == id))
			continue;
		spin_lock_irq(&link->lock);
		sent = link->up ? shift_link_beat(link) : -ENOTCONN;
		spin_unlock_irq(&link->lock);
		if (link->id == id)
			err = sent;
	}
	mutex_unlock(&shift_links_lock);
	return err;
}

/**
 * shift_link_try - is the link to a GID up?  If so, send something over it
 * @dev: its device; only compared.
 * @remote: GID of the peer.
 *
 * If the path is dead, the link goes down by that, once the retries of its conn have run out.
 *
 * Context: process, may sleep.
 * Return: true: it is up, or was until now; false: it is down, or there is none.
 */
bool shift_link_try(const struct ib_device *dev, const union ib_gid *remote)
{
	struct shift_link *link;
	bool up = false;

	mutex_lock(&shift_links_lock);
	list_for_each_entry(link, &shift_links, list) {
		if (link->base || memcmp(&link->remote, remote, sizeof(*remote)))
			continue;
		spin_lock_irq(&link->lock);
		if (link->dev == dev && link->up) {
			up = true;
			shift_link_beat(link);
		}
		spin_unlock_irq(&link->lock);
	}
	mutex_unlock(&shift_links_lock);
	return up;
}

/**
 * shift_link_leads_to - is a GID one of the node at the other end of a link?
 * @link: referenced.
 * @gid: any.
 *
 * Context: any.
 * Return: true if it is the link's own, or if the directory says so.
 */
bool shift_link_leads_to(const struct shift_link *link, const union ib_gid *gid)
{
	return !memcmp(&link->remote, gid, sizeof(*gid)) ||
	       shift_peer_is_same(&link->remote, gid);
}

/**
 * shift_link_beside - a link that is up, and leads to another NIC of the same node
 * @remote: GID of that node.
 *
 * Context: process, may sleep.
 * Return: the link, whose device stays until shift_link_let_go(); after that shift_link_unref() is
 * called.  NULL: there is none.
 */
struct shift_link *shift_link_beside(const union ib_gid *remote)
{
	struct shift_link *link, *found = NULL;

	mutex_lock(&shift_links_lock);
	list_for_each_entry(link, &shift_links, list) {
		if (link->base || !memcmp(&link->remote, remote, sizeof(*remote)) ||
		    !shift_peer_is_same(&link->remote, remote))
			continue;
		spin_lock_irq(&link->lock);
		if (link->dev && link->up) {
			link->conns++;
			kref_get(&link->ref);
			found = link;
		}
		spin_unlock_irq(&link->lock);
		if (found)
			break;
	}
	mutex_unlock(&shift_links_lock);
	return found;
}

/* Does nobody use it, while what is left of its connections waits to be torn down? */
static bool link_is_over(struct shift_link *link)
{
	bool over;

	spin_lock_irq(&link->lock);
	over = !link->users && shift_link_state(link) == SHIFT_LINK_DOWN;
	spin_unlock_irq(&link->lock);
	return over;
}

/**
 * shift_link_walk - call a function for every link that is used or connected
 * @fn: must neither get nor put links; its allocations become GFP_NOIO.
 * @arg: for @fn.
 *
 * Context: process, may sleep; so may @fn.
 * Return: what @fn returned last; it stops at non-zero.
 */
int shift_link_walk(int (*fn)(const struct shift_link_info *info, void *arg), void *arg)
{
	struct shift_link_info info;
	struct shift_link *link;
	unsigned int noio;
	int ret = 0;

	mutex_lock(&shift_links_lock);
	noio = memalloc_noio_save();
	list_for_each_entry(link, &shift_links, list) {
		if (link->base || link_is_over(link))
			continue;
		shift_link_fill_info(link, &info);
		ret = fn(&info, arg);
		if (ret)
			break;
	}
	memalloc_noio_restore(noio);
	mutex_unlock(&shift_links_lock);
	return ret;
}

/**
 * shift_links_allow - may links be made?
 * @allowed: whether they may.
 *
 * Context: process.
 */
void shift_links_allow(bool allowed)
{
	mutex_lock(&shift_links_lock);
	shift_links_closed = !allowed;
	mutex_unlock(&shift_links_lock);
}
