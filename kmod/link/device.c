// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of links as devices and peers come and go.  Documentation/internals/links.md.
 */
#include <linux/mutex.h>
#include "core/node.h"
#include "link/link.h"
#include "link/link_priv.h"

#define LEAVE_MS	200	/* for the answers to the ends of all connections of a device */

/*
 * Cut the links of @dev (NULL: all) off from their devices, all at once, as their connections wait
 * for their peers until @leave, in jiffies; 0: they do not wait.  @who: of link_leaving().
 */
static bool links_cut(struct ib_device *dev, unsigned long leave, const void *who)
{
	struct shift_link *link;
	bool any = false;

	mutex_lock(&shift_links_lock);
	list_for_each_entry(link, &shift_links, list) {
		spin_lock_irq(&link->lock);
		if (dev ? link->dev == dev : (link->dev || link->conns)) {
			any = true;
			shift_link_cut_off(link);
			link->leave = leave;
			link->leaving = who;
			if (link->pending)
				shift_conn_retire(link->pending, "device removed", 0);
			if (link->conn)
				shift_conn_retire(link->conn, "device removed", 0);
		}
		spin_unlock_irq(&link->lock);
	}
	mutex_unlock(&shift_links_lock);
	return any;
}

/* Any of the links that @who has cut off, referenced, each of them once. */
static struct shift_link *link_leaving(const void *who)
{
	struct shift_link *link;

	mutex_lock(&shift_links_lock);
	list_for_each_entry(link, &shift_links, list) {
		if (link->leaving == who) {
			link->leaving = NULL;
			kref_get(&link->ref);
			mutex_unlock(&shift_links_lock);
			return link;
		}
	}
	mutex_unlock(&shift_links_lock);
	return NULL;
}

static bool link_has_conns(struct shift_link *link)
{
	bool has;

	spin_lock_irq(&link->lock);
	has = link->conns;
	spin_unlock_irq(&link->lock);
	return has;
}

/**
 * shift_link_device_gone - end the links of a device
 * @dev: it is not used any more on return; NULL: all devices.
 * @answers: wait for what the peers answer, for 200 ms at most (scaled).
 *
 * Context: process, sleeps; the caller holds no lock that RDMA CM's handlers or
 * the callbacks of links could take.
 */
void shift_link_device_gone(struct ib_device *dev, bool answers)
{
	unsigned long leave = answers ? jiffies + shift_scaled_jiffies(LEAVE_MS) : 0;
	const void *who = dev ?: (void *)&shift_links;
	struct shift_link *link;

	/* a request that was let in just before may have made another one */
	while (links_cut(dev, leave, who)) {
		while ((link = link_leaving(who))) {
			wait_event(link->idle, !link_has_conns(link));
			shift_link_reap(link);
			shift_link_unref(link);
		}
	}
}

/**
 * shift_link_device_up - a port is usable again: try to connect its links now
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
 * shift_link_peer_set - a node is in the directory now, or has other GIDs: connect its links
 * @node: its name.
 *
 * Context: process, may sleep.
 */
void shift_link_peer_set(const char *node)
{
	char name[SHIFT_NODE_MAX];
	struct shift_link *link;

	mutex_lock(&shift_links_lock);
	list_for_each_entry(link, &shift_links, list) {
		if (shift_peer_node(&link->remote, name) || strcmp(name, node))
			continue;
		spin_lock_irq(&link->lock);
		shift_link_retry_now(link);
		spin_unlock_irq(&link->lock);
	}
	mutex_unlock(&shift_links_lock);
}

/**
 * shift_link_peer_del - a node is in the directory no more: end its links
 * @node: its name.
 *
 * Context: process, may sleep.
 */
void shift_link_peer_del(const char *node)
{
	struct shift_link *link;

	mutex_lock(&shift_links_lock);
	list_for_each_entry(link, &shift_links, list) {
		spin_lock_irq(&link->lock);
		if (link->conn && !strcmp(link->conn->node, node))
			shift_conn_retire(link->conn, "its node was removed from the directory", 0);
		spin_unlock_irq(&link->lock);
	}
	mutex_unlock(&shift_links_lock);
}

/**
 * shift_link_device_renamed - show a device's links under its new name
 * @dev: the device; the RDMA core holds a lock, so that the name is stable.
 *
 * Operators, and shiftd, know by the name which device of a pair a link belongs to.
 *
 * Context: process, may sleep.
 */
void shift_link_device_renamed(struct ib_device *dev)
{
	struct shift_link *link;

	mutex_lock(&shift_links_lock);
	list_for_each_entry(link, &shift_links, list) {
		spin_lock_irq(&link->lock);
		if (link->dev == dev)
			strscpy(link->name, dev_name(&dev->dev), sizeof(link->name));
		spin_unlock_irq(&link->lock);
	}
	mutex_unlock(&shift_links_lock);
}
