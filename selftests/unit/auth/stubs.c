// SPDX-License-Identifier: GPL-2.0
/* The rest of the module: one link, and a directory that has its peer or not. */
#include "core/ib.h"
#include "core/node.h"
#include "core/stat.h"
#include "fuzz.h"

const struct in6_addr in6addr_any;
struct workqueue_struct *shift_link_cm_wq, *shift_link_beat_wq, *shift_link_wq;
unsigned short shift_link_port = 899;
unsigned int shift_deadline_scale = 1;
u8 shift_boot_id[16] = "this kernel";
bool fuzz_known;

DEFINE_PER_CPU(struct shift_stats, shift_stats);
bool shift_peer_knows(const union ib_gid *gid) { return fuzz_known; }
bool shift_dev_is_known(const struct ib_device *dev) { return !fuzz_refuses(); }

int shift_peer_node(const union ib_gid *gid, char *node)
{
	if (!fuzz_known)
		return -ENOENT;
	strscpy(node, "peer", SHIFT_NODE_MAX);
	return 0;
}

const struct ib_gid_attr *shift_gid_find(struct ib_device *dev, const union ib_gid *gid, u32 vlan)
{
	static struct ib_gid_attr attr;

	return fuzz_refuses() ? ERR_PTR(-ENOENT) : &attr;
}

bool shift_gid_has_carrier(struct ib_device *dev, const union ib_gid *gid)
{
	return !fuzz_refuses();
}

void shift_neigh_note(struct shift_link *link, const struct rdma_dev_addr *addr) { }

struct shift_link *shift_link_find(struct ib_device *dev, const union ib_gid *local,
				   const union ib_gid *remote)
{
	/* a request may come on another path, which has another link */
	if (fuzz_refuses() || memcmp(local, &fuzz_link.local, sizeof(*local)) ||
	    memcmp(remote, &fuzz_link.remote, sizeof(*remote)))
		return ERR_PTR(-ENOMEM);
	kref_get(&fuzz_link.ref);
	return &fuzz_link;
}

/* the link has no lanes */
bool shift_lane_welcome(struct shift_link *link, const u8 *boot_id)
{
	return false;
}

struct shift_link *shift_link_lane(struct shift_link *base, u8 tclass, bool connect)
{
	sim_fail("a lane is made for a peer that is not welcome");
	return ERR_PTR(-EBUSY);
}

void shift_lane_absolve(struct shift_link *lane)
{
	sim_fail("the link is taken for a lane");
}

void shift_link_put(struct shift_link *link) { shift_link_unref(link); }

static void never(struct kref *ref)
{
	sim_fail("the last reference to the link is dropped");
}

void shift_link_unref(struct shift_link *link) { kref_put(&link->ref, never); }

void shift_link_let_go(struct shift_link *link)
{
	if (!link->conns--)
		sim_fail("a connection lets go of its link twice");
}

void shift_link_retry(struct shift_link *link) { lockdep_assert_held(&link->lock); }

void shift_link_arm(struct shift_link *link, struct delayed_work *work, unsigned long delay)
{
	lockdep_assert_held(&link->lock);
}

void shift_link_cut_off(struct shift_link *link)
{
	lockdep_assert_held(&link->lock);
	link->dev = NULL;
}

void shift_link_queue(struct shift_link *link, struct shift_link_item *item)
{
	lockdep_assert_held(&link->lock);
	fuzz_check_item(item);
	kref_get(&item->conn->ref);
	list_add_tail(&item->entry, &link->inbox);
}
