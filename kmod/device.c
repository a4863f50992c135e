// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA devices as they come and go, and their port events.
 *
 * add() and remove() run under the core's devices_rwsem: nothing here looks a
 * device up through the core while holding shift_devices_lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/sch_generic.h>
#include <rdma/ib_cache.h>
#include <rdma/uverbs_types.h>
#include "mw.h"
#include "sysfs.h"

LIST_HEAD(shift_devices);
DEFINE_MUTEX(shift_devices_lock);

/*
 * Clients are removed in the reverse order of their registration.  This symbol
 * of ib_uverbs makes the loader put it before us: user objects outlive our view
 * of their device, and there is one order of teardown.
 */
static const void *const uverbs_first __used = &uverbs_idr_class;

static struct ib_client shift_client;

struct shift_dev *shift_dev_get(struct shift_dev *sdev)
{
	kref_get(&sdev->ref);
	return sdev;
}

static void dev_release(struct kref *ref)
{
	struct shift_dev *sdev = container_of(ref, struct shift_dev, ref);

	xa_destroy(&sdev->qpn);
	xa_destroy(&sdev->mws);
	xa_destroy(&sdev->mrs);
	kfree_rcu(sdev, obj.rcu);
}

void shift_dev_put(struct shift_dev *sdev)
{
	kref_put(&sdev->ref, dev_release);
}

/* One that is there now, by its name; shift_devices_lock. */
struct shift_dev *shift_dev_by_name(const char *name)
{
	struct shift_dev *sdev;

	lockdep_assert_held(&shift_devices_lock);
	list_for_each_entry(sdev, &shift_devices, list)
		if (sdev->ibdev && !strcmp(dev_name(&sdev->ibdev->dev), name))
			return sdev;
	return NULL;
}

/**
 * shift_dev_gid - the address of a device on a path
 * @ibdev: the device; its port 1 is looked at.
 * @gid: filled on success.
 *
 * Context: process context.
 * Return: 0, -ENOENT if it has no RoCE v2 GID of a global address.
 */
int shift_dev_gid(struct ib_device *ibdev, union ib_gid *gid)
{
	const struct ib_gid_attr *attr;
	bool found = false;
	int i, len;

	len = ibdev->port_data[1].immutable.gid_tbl_len;
	for (i = 0; i < len; i++) {
		attr = rdma_get_gid_attr(ibdev, 1, i);
		if (IS_ERR(attr))
			continue;
		if (attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP) {
			bool v4 = ipv6_addr_v4mapped((struct in6_addr *)&attr->gid);
			bool ll = ipv6_addr_type((struct in6_addr *)&attr->gid) &
				  IPV6_ADDR_LINKLOCAL;

			if (v4 || (!found && !ll)) {
				*gid = attr->gid;
				found = true;
			}
			if (v4) {
				rdma_put_gid_attr(attr);
				break;
			}
		}
		rdma_put_gid_attr(attr);
	}
	return found ? 0 : -ENOENT;
}

static bool dev_has_gid(struct shift_dev *sdev, const union ib_gid *gid)
{
	const struct ib_gid_attr *attr;

	if (!sdev || !sdev->ibdev)
		return false;
	attr = rdma_find_gid(sdev->ibdev, gid, IB_GID_TYPE_ROCE_UDP_ENCAP, NULL);
	if (IS_ERR(attr))
		return false;
	rdma_put_gid_attr(attr);
	return true;
}

bool shift_gid_is_local(struct shift_dev *sdev, const union ib_gid *gid)
{
	return dev_has_gid(sdev, gid) || dev_has_gid(sdev->backup, gid);
}

/**
 * shift_gid_has_carrier - is a cable in, where packets from a GID leave?
 * @ibdev: the device.
 * @gid: one of its GIDs.
 *
 * Drivers hear of a lost carrier up to a second later; the netdev knows at once.  One that is
 * back is of use as soon as the netdev's queues are.
 *
 * Context: any that may take a spinlock.
 */
bool shift_gid_has_carrier(struct ib_device *ibdev, const union ib_gid *gid)
{
	const struct ib_gid_attr *attr;
	struct net_device *ndev;
	bool ok;

	attr = rdma_find_gid(ibdev, gid, IB_GID_TYPE_ROCE_UDP_ENCAP, NULL);
	if (IS_ERR(attr))
		return false;
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	ok = !IS_ERR(ndev) && netif_running(ndev) && netif_carrier_ok(ndev) &&
	     !qdisc_tx_is_noop(ndev);
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
	return ok;
}

/* struct shift_dev.carrier, and that it stays while links of it are looked up */
static DECLARE_RWSEM(carrier_sem);

/*
 * Links need RDMA CM.  A device without one has the address of an interface that another
 * device may have, too; NULL: none.
 */
static struct shift_dev *find_carrier(struct shift_dev *sdev)
{
	struct shift_dev *other;
	union ib_gid gid;

	lockdep_assert_held(&shift_devices_lock);
	if (rdma_cap_ib_cm(sdev->ibdev, 1))
		return shift_dev_get(sdev);
	if (shift_dev_gid(sdev->ibdev, &gid))
		return NULL;
	list_for_each_entry(other, &shift_devices, list)
		if (rdma_cap_ib_cm(other->ibdev, 1) && dev_has_gid(other, &gid))
			return shift_dev_get(other);
	return NULL;
}

/* Set or clear it; the one before is let go. */
static void set_carrier(struct shift_dev *sdev, struct shift_dev *carrier)
{
	struct shift_dev *old;

	down_write(&carrier_sem);
	old = sdev->carrier;
	sdev->carrier = carrier;
	up_write(&carrier_sem);
	if (old)
		shift_dev_put(old);
}

/* A pair is made: find out whose RDMA CM it uses; shift_devices_lock. */
void shift_dev_choose_carrier(struct shift_dev *sdev)
{
	set_carrier(sdev, find_carrier(sdev));
}

/* @sdev goes: it is nobody's carrier any more. */
static void drop_carrier(struct shift_dev *sdev)
{
	struct shift_dev *other;

	mutex_lock(&shift_devices_lock);
	list_for_each_entry(other, &shift_devices, list)
		if (other->carrier == sdev)
			set_carrier(other, NULL);
	mutex_unlock(&shift_devices_lock);
	set_carrier(sdev, NULL);
}

/**
 * shift_dev_link - the link of a device of a pair to an address of a peer's
 * @sdev: default or backup.
 * @local: address of it.
 * @remote: the peer's.
 *
 * Context: process context; the pair's mirror_sem.
 * Return: the link, for shift_link_put(), or NULL.
 */
struct shift_link *shift_dev_link(struct shift_dev *sdev, const union ib_gid *local,
				  const union ib_gid *remote)
{
	struct shift_link *link = NULL;

	down_read(&carrier_sem);
	if (sdev->carrier)
		link = shift_link_get(sdev->carrier->ibdev, local, remote);
	up_read(&carrier_sem);
	return IS_ERR(link) ? NULL : link;
}

static void dev_kick(struct shift_dev *sdev)
{
	struct shift_obj *obj;

	mutex_lock(&sdev->list_lock);
	list_for_each_entry(obj, &sdev->qps, list)
		shift_switch_kick(container_of(obj, struct shift_qp, obj), SHIFT_QP_FAULT);
	mutex_unlock(&sdev->list_lock);
}

/*
 * Runs from the core's workqueue.  A trigger only sets a bit and queues the
 * machine of each QP: whether it switches is agreed with the peer.
 */
static void dev_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct shift_dev *sdev = container_of(handler, struct shift_dev, events);
	struct shift_dev *other;

	switch (event->event) {
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_DEVICE_FATAL:
		WRITE_ONCE(sdev->port_down, true);
		break;
	case IB_EVENT_PORT_ACTIVE:
		WRITE_ONCE(sdev->port_down, false);
		return;
	default:
		return;
	}

	dev_kick(sdev);
	/* and those of others that have moved here */
	mutex_lock(&shift_devices_lock);
	list_for_each_entry(other, &shift_devices, list)
		if (other->backup == sdev)
			dev_kick(other);
	mutex_unlock(&shift_devices_lock);
}

static int dev_add(struct ib_device *ibdev)
{
	struct shift_dev *sdev;

	/* only what can carry RC over Ethernet for now */
	if (!rdma_is_port_valid(ibdev, 1) || !rdma_protocol_roce(ibdev, 1))
		return -EOPNOTSUPP;

	sdev = kzalloc(sizeof(*sdev), GFP_KERNEL);
	if (!sdev)
		return -ENOMEM;
	kref_init(&sdev->ref);
	sdev->ibdev = ibdev;
	strscpy(sdev->name, dev_name(&ibdev->dev), sizeof(sdev->name));
	sdev->guid = be64_to_cpu(ibdev->node_guid);
	sdev->driver = ibdev->ops.driver_id;
	init_rwsem(&sdev->mirror_sem);
	init_rwsem(&sdev->ring_sem);
	mutex_init(&sdev->list_lock);
	INIT_LIST_HEAD(&sdev->pds);
	INIT_LIST_HEAD(&sdev->old_pds);
	INIT_LIST_HEAD(&sdev->cqs);
	INIT_LIST_HEAD(&sdev->qps);
	INIT_LIST_HEAD(&sdev->srqs);
	xa_init(&sdev->qpn);
	xa_init(&sdev->mrs);
	shift_mw_init(sdev);
	INIT_IB_EVENT_HANDLER(&sdev->events, ibdev, dev_event);
	ib_register_event_handler(&sdev->events);
	ib_set_client_data(ibdev, &shift_client, sdev);

	mutex_lock(&shift_devices_lock);
	list_add_tail(&sdev->list, &shift_devices);
	mutex_unlock(&shift_devices_lock);
	return 0;
}

/* Everything that lives on @sdev's backup goes, before that device does. */
void shift_dev_drop_backup(struct shift_dev *sdev)
{
	struct shift_dev *backup;

	down_write(&sdev->mirror_sem);
	backup = sdev->backup;
	sdev->backup = NULL;
	up_write(&sdev->mirror_sem);
	if (!backup)
		return;
	/* a pair made later is a new one */
	WRITE_ONCE(sdev->drained, false);
	WRITE_ONCE(sdev->policy, SHIFT_POLICY_STRICT);
	shift_qp_device_gone(sdev);
	shift_srq_device_gone(sdev, true);
	shift_mr_device_gone(sdev, true);
	shift_notify_pair(sdev, backup, false);
	shift_dev_put(backup);
}

/* A device that @sdev backs, with a reference; or NULL. */
static struct shift_dev *dev_backed_by(struct shift_dev *sdev)
{
	struct shift_dev *other, *found = NULL;

	mutex_lock(&shift_devices_lock);
	list_for_each_entry(other, &shift_devices, list) {
		if (other->backup == sdev) {
			found = shift_dev_get(other);
			break;
		}
	}
	mutex_unlock(&shift_devices_lock);
	return found;
}

/*
 * One at a time: what the first lets go of on its backup must be gone before that device
 * may go as well.
 */
static DEFINE_MUTEX(dev_remove_lock);

static void dev_remove(struct ib_device *ibdev, void *client_data)
{
	struct shift_dev *sdev = client_data, *other;

	ib_unregister_event_handler(&sdev->events);

	mutex_lock(&dev_remove_lock);
	mutex_lock(&shift_devices_lock);
	list_del(&sdev->list);
	mutex_unlock(&shift_devices_lock);

	while ((other = dev_backed_by(sdev))) {
		shift_dev_drop_backup(other);
		shift_dev_put(other);
	}
	shift_dev_drop_backup(sdev);
	if (sdev->attached)
		shift_ops_detach(sdev, true);
	drop_carrier(sdev);
	shift_link_device_gone(ibdev);
	sdev->ibdev = NULL;
	mutex_unlock(&dev_remove_lock);
	shift_dev_put(sdev);
}

static struct ib_client shift_client = {
	.name = "shift",
	.add = dev_add,
	.remove = dev_remove,
};

int shift_device_init(void)
{
	return ib_register_client(&shift_client);
}

/* remove() runs for every device: pairs go, ops are restored. */
void shift_device_uninit(void)
{
	ib_unregister_client(&shift_client);
}
