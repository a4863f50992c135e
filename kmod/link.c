// SPDX-License-Identifier: GPL-2.0
/*
 * Links: the table, references, and what the rest of the module does with them.
 * Documentation/links.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": link: " fmt

#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_addr.h>
#include "link_priv.h"
#include "shift.h"

unsigned short shift_link_port = 18999;
module_param_named(port, shift_link_port, ushort, 0444);
MODULE_PARM_DESC(port, "RDMA CM port of links, the same on all nodes");

/* for teardown and setup; deliveries have their own, which nothing slow blocks */
struct workqueue_struct *shift_link_cm_wq;
struct workqueue_struct *shift_link_wq;

/* protects the table, not what is in its links */
static DEFINE_MUTEX(shift_links_lock);
static LIST_HEAD(shift_links);
static DEFINE_HASHTABLE(shift_link_table, 10);
static u32 shift_link_last_id;
static bool shift_links_closed = true;

/**
 * shift_link_free - for kref_put()
 * @ref: of a link.
 *
 * Context: any.
 */
void shift_link_free(struct kref *ref)
{
	kfree(container_of(ref, struct shift_link, ref));
}

static u32 shift_link_hash(const union ib_gid *local, const union ib_gid *remote)
{
	return jhash(remote, sizeof(*remote), jhash(local, sizeof(*local), 0));
}

/* The table */

static struct shift_link *shift_link_alloc(struct ib_device *dev, const union ib_gid *local,
					   const union ib_gid *remote)
{
	struct shift_link *link = kzalloc(sizeof(*link), GFP_NOIO);

	if (!link)
		return NULL;
	kref_init(&link->ref);
	INIT_HLIST_NODE(&link->hash);
	INIT_LIST_HEAD(&link->list);
	strscpy(link->name, dev_name(&dev->dev), sizeof(link->name));
	link->dev = dev;
	link->local = *local;
	link->remote = *remote;
	link->active = memcmp(local, remote, sizeof(*local)) < 0;
	spin_lock_init(&link->lock);
	init_waitqueue_head(&link->idle);
	INIT_LIST_HEAD(&link->inbox);
	shift_link_init_work(link);
	return link;
}

static struct shift_link *shift_link_lookup(struct ib_device *dev, const union ib_gid *local,
					    const union ib_gid *remote)
{
	struct shift_link *link;

	lockdep_assert_held(&shift_links_lock);

	hash_for_each_possible(shift_link_table, link, hash, shift_link_hash(local, remote)) {
		/* only compared; a device that goes must not be found here again */
		if (READ_ONCE(link->dev) == dev && !memcmp(&link->local, local, sizeof(*local)) &&
		    !memcmp(&link->remote, remote, sizeof(*remote)))
			return link;
	}
	return NULL;
}

/**
 * shift_link_find - find or make a link, as a user, without connecting it
 * @dev: RDMA device.
 * @local: GID of it.
 * @remote: GID of the peer.
 *
 * Context: process, may sleep.
 * Return: the link, to be given back with shift_link_put(), or ERR_PTR: -ENOMEM,
 * -ESHUTDOWN.
 */
struct shift_link *shift_link_find(struct ib_device *dev, const union ib_gid *local,
				   const union ib_gid *remote)
{
	struct shift_link *link, *new;

	new = shift_link_alloc(dev, local, remote);
	if (!new)
		return ERR_PTR(-ENOMEM);

	mutex_lock(&shift_links_lock);
	if (shift_links_closed) {
		link = ERR_PTR(-ESHUTDOWN);
		goto out;
	}
	link = shift_link_lookup(dev, local, remote);
	if (!link) {
		link = new;
		new = NULL;
		link->id = ++shift_link_last_id;
		link->listed = true;
		list_add_tail(&link->list, &shift_links);
		hash_add(shift_link_table, &link->hash, shift_link_hash(local, remote));
	}
	kref_get(&link->ref);
	spin_lock_irq(&link->lock);
	link->users++;
	spin_unlock_irq(&link->lock);
out:
	mutex_unlock(&shift_links_lock);
	kfree(new);
	return link;
}

/* take a link that has neither users nor carriers off the table, for good */
static void shift_link_reap(struct shift_link *link)
{
	bool reap;

	mutex_lock(&shift_links_lock);
	spin_lock_irq(&link->lock);
	reap = link->listed && !link->users && !link->carriers;
	/* nobody will find it to stop its timer */
	if (reap)
		shift_link_cut_off(link);
	spin_unlock_irq(&link->lock);
	if (reap) {
		link->listed = false;
		list_del(&link->list);
		hash_del(&link->hash);
	}
	mutex_unlock(&shift_links_lock);
	if (reap)
		kref_put(&link->ref, shift_link_free);
}

/**
 * shift_link_let_go - one of @link->carriers has nothing on the device any more
 * @link: the caller holds a reference.
 *
 * Context: process, may sleep.
 */
void shift_link_let_go(struct shift_link *link)
{
	spin_lock_irq(&link->lock);
	if (!--link->carriers)
		wake_up_all(&link->idle);
	spin_unlock_irq(&link->lock);
	shift_link_reap(link);
}

static bool shift_link_usable(const union ib_gid *gid)
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
 * Return: the link, to be given back with shift_link_put(), or ERR_PTR: -EINVAL
 * (one GID, twice), -EAFNOSUPPORT (a GID that is no IP address RDMA CM can use),
 * -ENOMEM, -ESHUTDOWN (module is going).
 */
struct shift_link *shift_link_get(struct ib_device *dev, const union ib_gid *local,
				  const union ib_gid *remote)
{
	struct shift_link *link;

	if (!memcmp(local, remote, sizeof(*local)))
		return ERR_PTR(-EINVAL);
	if (!shift_link_usable(local) || !shift_link_usable(remote))
		return ERR_PTR(-EAFNOSUPPORT);

	link = shift_link_find(dev, local, remote);
	if (IS_ERR(link))
		return link;

	spin_lock_irq(&link->lock);
	if (link->users == 1)
		shift_link_retry_now(link);
	spin_unlock_irq(&link->lock);
	return link;
}

/**
 * shift_link_put - give back a reference of shift_link_get()
 * @link: stays connected if it is, even if this was the last one.
 *
 * Context: process, may sleep.
 */
void shift_link_put(struct shift_link *link)
{
	spin_lock_irq(&link->lock);
	link->users--;
	spin_unlock_irq(&link->lock);
	shift_link_reap(link);
	kref_put(&link->ref, shift_link_free);
}

/**
 * shift_link_guard - a QP is protected from now on, or not any more
 * @link: referenced.
 * @on: one more that wants heartbeats, or one less.
 *
 * Context: process, or with spinlocks.
 */
void shift_link_guard(struct shift_link *link, bool on)
{
	unsigned long flags;

	spin_lock_irqsave(&link->lock, flags);
	link->guarded += on ? 1 : -1;
	spin_unlock_irqrestore(&link->lock, flags);
}

u32 shift_link_id(const struct shift_link *link)
{
	return link->id;
}

/**
 * shift_link_state - what a link is at the moment
 * @link: referenced.
 *
 * Context: any.
 * Return: UP only between the two calls of shift_link_changed(); never older than
 * them.
 */
enum shift_link_state shift_link_state(const struct shift_link *link)
{
	if (READ_ONCE(link->up))
		return SHIFT_LINK_UP;
	if (READ_ONCE(link->pending) || READ_ONCE(link->carrier))
		return SHIFT_LINK_CONNECTING;
	return SHIFT_LINK_DOWN;
}

/**
 * shift_link_generation - how often a link has come up
 * @link: referenced.
 *
 * Context: any.
 * Return: the number; messages sent in one generation do not arrive in another.
 */
u64 shift_link_generation(const struct shift_link *link)
{
	return READ_ONCE(link->connects);
}

/**
 * shift_link_dmac - the next hop of a path, as RDMA CM found it
 * @link: referenced.
 * @dmac: filled: ETH_ALEN bytes; zeroes before the link's first connection.
 *
 * Verbs resolve it for user space only (ib_modify_qp()): who connects a QP in the
 * kernel has to know it.
 *
 * Context: any.
 */
void shift_link_dmac(struct shift_link *link, u8 *dmac)
{
	unsigned long flags;

	spin_lock_irqsave(&link->lock, flags);
	memcpy(dmac, link->dmac, ETH_ALEN);
	spin_unlock_irqrestore(&link->lock, flags);
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
		err = shift_carrier_post_send(link->carrier, m);
	spin_unlock_irqrestore(&link->lock, flags);
	return err;
}

/**
 * shift_link_probe - try a link now, whether or not heartbeats flow
 * @id: of the link.
 *
 * What becomes of it shows in the link: @acked grows, or it goes down.
 *
 * Context: process, may sleep.
 * Return: 0; -ENOENT: there is no such link; -ENOTCONN: it is not up.
 */
int shift_link_probe(u32 id)
{
	struct shift_link *link;
	int err = -ENOENT;

	mutex_lock(&shift_links_lock);
	list_for_each_entry(link, &shift_links, list) {
		if (link->id != id)
			continue;
		spin_lock_irq(&link->lock);
		err = link->up ? shift_link_beat(link) : -ENOTCONN;
		spin_unlock_irq(&link->lock);
		break;
	}
	mutex_unlock(&shift_links_lock);
	return err;
}

/**
 * shift_link_fill_info - what operators see of a link
 * @link: referenced.
 * @info: filled in.
 *
 * Context: any.
 */
void shift_link_fill_info(const struct shift_link *link, struct shift_link_info *info)
{
	struct shift_link *l = (struct shift_link *)link;	/* for its lock */
	unsigned long flags;

	memset(info, 0, sizeof(*info));
	info->id = link->id;
	strscpy(info->dev, link->name, sizeof(info->dev));
	info->local = link->local;
	info->remote = link->remote;
	shift_peer_node(&link->remote, info->node);

	spin_lock_irqsave(&l->lock, flags);
	info->state = shift_link_state(link);
	memcpy(info->peer_boot_id, link->peer_boot_id, sizeof(info->peer_boot_id));
	info->tx = link->tx;
	info->rx = link->rx;
	info->connects = link->connects;
	info->acked = link->acked;
	spin_unlock_irqrestore(&l->lock, flags);
}

/**
 * shift_link_walk - call a function for every link
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
		shift_link_fill_info(link, &info);
		ret = fn(&info, arg);
		if (ret)
			break;
	}
	memalloc_noio_restore(noio);
	mutex_unlock(&shift_links_lock);
	return ret;
}

/* The life of devices and of the module */

/* any link of @dev (NULL: of any device), cut off from its device, referenced */
static struct shift_link *shift_link_cut(struct ib_device *dev)
{
	struct shift_link *link;

	mutex_lock(&shift_links_lock);
	list_for_each_entry(link, &shift_links, list) {
		spin_lock_irq(&link->lock);
		if (dev ? link->dev == dev : (link->dev || link->carriers)) {
			kref_get(&link->ref);
			shift_link_cut_off(link);
			if (link->pending)
				shift_carrier_retire(link->pending, "device gone", 0);
			if (link->carrier)
				shift_carrier_retire(link->carrier, "device gone", 0);
			spin_unlock_irq(&link->lock);
			mutex_unlock(&shift_links_lock);
			return link;
		}
		spin_unlock_irq(&link->lock);
	}
	mutex_unlock(&shift_links_lock);
	return NULL;
}

static bool shift_link_has_carriers(struct shift_link *link)
{
	bool has;

	spin_lock_irq(&link->lock);
	has = link->carriers;
	spin_unlock_irq(&link->lock);
	return has;
}

/**
 * shift_link_device_gone - let go of a device
 * @dev: not used any more on return; NULL: all devices.
 *
 * Context: process, sleeps; the caller holds no lock that RDMA CM's handlers or
 * the callbacks of links could take.
 */
void shift_link_device_gone(struct ib_device *dev)
{
	struct shift_link *link;

	while ((link = shift_link_cut(dev))) {
		wait_event(link->idle, !shift_link_has_carriers(link));
		shift_link_reap(link);
		kref_put(&link->ref, shift_link_free);
	}
}

/**
 * shift_link_device_up - a port is usable again: do not wait with the next attempt
 * @dev: its device.
 *
 * Context: process, may sleep.
 */
void shift_link_device_up(struct ib_device *dev)
{
	struct shift_link *link;

	mutex_lock(&shift_links_lock);
	list_for_each_entry(link, &shift_links, list) {
		spin_lock_irq(&link->lock);
		if (link->dev == dev)
			shift_link_retry_now(link);
		spin_unlock_irq(&link->lock);
	}
	mutex_unlock(&shift_links_lock);
}

/**
 * shift_link_init - get ready to make links and to be connected
 *
 * Context: process.
 * Return: 0, -ENOMEM, or why the port cannot be listened on (-EADDRINUSE).
 */
int shift_link_init(void)
{
	int err = -ENOMEM;

	shift_link_wq = alloc_workqueue("shift_link", WQ_MEM_RECLAIM | WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!shift_link_wq)
		return err;
	shift_link_cm_wq = alloc_workqueue("shift_link_cm", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!shift_link_cm_wq)
		goto err_wq;

	mutex_lock(&shift_links_lock);
	shift_links_closed = false;
	mutex_unlock(&shift_links_lock);

	err = shift_listener_start();
	if (err) {
		pr_err("cannot listen on port %u (%d)\n", shift_link_port, err);
		goto err_cm_wq;
	}
	return 0;

err_cm_wq:
	mutex_lock(&shift_links_lock);
	shift_links_closed = true;
	mutex_unlock(&shift_links_lock);
	destroy_workqueue(shift_link_cm_wq);
err_wq:
	destroy_workqueue(shift_link_wq);
	return err;
}

/**
 * shift_link_uninit - end all links; afterwards nothing is called back any more
 *
 * References that are still held stay valid, and DOWN.  Forgets the peers, too.
 *
 * Context: process, sleeps; see shift_link_device_gone().
 */
void shift_link_uninit(void)
{
	mutex_lock(&shift_links_lock);
	shift_links_closed = true;
	mutex_unlock(&shift_links_lock);

	shift_listener_stop();
	shift_link_device_gone(NULL);
	/* teardowns have been waited for, but not their last steps */
	destroy_workqueue(shift_link_cm_wq);
	destroy_workqueue(shift_link_wq);
	shift_peer_clear();
}
