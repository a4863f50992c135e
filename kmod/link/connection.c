// SPDX-License-Identifier: GPL-2.0
/*
 * Connections of RDMA CM's whose QP is tracked: the numbers by which the peer's RDMA CM knows them.
 * They are needed if RDMA CM here cannot say the end of one.
 * Documentation/internals/links.md, "Ends of connections".
 */
#include <linux/hashtable.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include "core/node.h"
#include "link/link.h"
#include "link/link_priv.h"

/**
 * struct connection - what RDMA CM has told the peer of one
 * @by_id: in the table by @local_id.
 * @by_qpn: in the table by @qpn.
 * @dev: the device that it was said on; only compared.
 * @remote: GID that it was said to.
 * @local_id: its number of RDMA CM here.
 * @remote_id: the same of the peer's, if @made.
 * @made: @remote_id is known: the connection was accepted.
 * @qpn: the QP's number.
 */
struct connection {
	struct hlist_node by_id, by_qpn;
	const struct ib_device *dev;
	union ib_gid remote;
	u32 local_id, remote_id;
	bool made;
	u32 qpn;
};

/* There are no more than QPs that are tracked. */
static DEFINE_HASHTABLE(ids, 10);
static DEFINE_HASHTABLE(qpns, 10);
static DEFINE_SPINLOCK(lock);

static struct connection *find_id(const struct ib_device *dev, u32 id)
{
	struct connection *c;

	lockdep_assert_held(&lock);
	hash_for_each_possible(ids, c, by_id, id)
		if (c->local_id == id && c->dev == dev)
			return c;
	return NULL;
}

static struct connection *find_qpn(const struct ib_device *dev, u32 qpn)
{
	struct connection *c;

	lockdep_assert_held(&lock);
	hash_for_each_possible(qpns, c, by_qpn, qpn)
		if (c->qpn == qpn && c->dev == dev)
			return c;
	return NULL;
}

static void forget(struct connection *c)
{
	lockdep_assert_held(&lock);
	hash_del(&c->by_id);
	hash_del(&c->by_qpn);
	kfree(c);
}

/**
 * shift_connection_note - RDMA CM asks for a connection (REQ), or accepts one (REP)
 * @dev: device that it says so on.
 * @tracked: its QPs that are tracked, by number.
 * @remote: GID of the peer.
 * @said: the numbers; a @said->remote_id only in REP.
 *
 * A program may give its connection the number of another one's QP.  Then the first one that was
 * made keeps its place, and nobody else's end is said.
 *
 * Context: any; RCU.
 */
void shift_connection_note(const struct ib_device *dev, struct xarray *tracked,
			   const union ib_gid *remote, const struct shift_cm_said *said)
{
	struct connection *c, *old;
	unsigned long flags;

	if (!shift_peer_knows(remote))
		return;
	c = kzalloc(sizeof(*c), GFP_ATOMIC);
	if (!c)
		return;
	c->dev = dev;
	c->remote = *remote;
	c->local_id = said->local_id;
	c->remote_id = said->remote_id;
	c->made = said->rep;
	c->qpn = said->qpn;

	spin_lock_irqsave(&lock, flags);
	old = find_qpn(dev, said->qpn);
	/* who takes a QP out of the table calls shift_connection_ends() after that */
	if (xa_load(tracked, said->qpn) && !(old && old->made)) {
		if (old)
			forget(old);
		hash_add(ids, &c->by_id, c->local_id);
		hash_add(qpns, &c->by_qpn, c->qpn);
		c = NULL;
	}
	spin_unlock_irqrestore(&lock, flags);
	kfree(c);
}

/**
 * shift_connection_made - RDMA CM confirms a connection (RTU)
 * @dev: device that it says so on.
 * @said: the numbers.
 *
 * Context: any.
 */
void shift_connection_made(const struct ib_device *dev, const struct shift_cm_said *said)
{
	struct connection *c;
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	c = find_id(dev, said->local_id);
	if (c) {
		c->remote_id = said->remote_id;
		c->made = true;
	}
	spin_unlock_irqrestore(&lock, flags);
}

/**
 * shift_connection_said - RDMA CM says the end of a connection itself (DREQ, DREP)
 * @dev: device that it says so on.
 * @said: the numbers.
 *
 * Context: any.
 */
void shift_connection_said(const struct ib_device *dev, const struct shift_cm_said *said)
{
	struct connection *c;
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	c = find_id(dev, said->local_id);
	if (c)
		forget(c);
	spin_unlock_irqrestore(&lock, flags);
}

/**
 * shift_connection_ends - a QP is destroyed: so is its connection, if it has one
 * @dev: its device.
 * @qpn: its number, which is not in the table of tracked QPs any more.
 * @remote_qpn: number of the peer's QP.
 * @mute: RDMA CM cannot say so, as the address that the connection was made with has gone.
 *
 * Context: process context.
 */
void shift_connection_ends(const struct ib_device *dev, u32 qpn, u32 remote_qpn, bool mute)
{
	struct connection *c, ended = {};

	spin_lock_irq(&lock);
	c = find_qpn(dev, qpn);
	if (c) {
		ended = *c;
		forget(c);
	}
	spin_unlock_irq(&lock);
	if (ended.made && mute)
		shift_dreq_make(dev, &ended.remote, ended.local_id, ended.remote_id, remote_qpn);
}
