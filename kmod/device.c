// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA devices as they come and go, pairs of them, and their port events.
 *
 * add() and remove() run under the core's devices_rwsem: nothing here looks a
 * device up through the core while holding shift_devices_lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/uverbs_types.h>
#include "shift.h"
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
	xa_destroy(&sdev->mrs);
	kfree_rcu(sdev, obj.rcu);
}

void shift_dev_put(struct shift_dev *sdev)
{
	kref_put(&sdev->ref, dev_release);
}

static struct shift_dev *dev_by_name(const char *name)
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
	init_rwsem(&sdev->mirror_sem);
	init_rwsem(&sdev->ring_sem);
	mutex_init(&sdev->list_lock);
	INIT_LIST_HEAD(&sdev->pds);
	INIT_LIST_HEAD(&sdev->cqs);
	INIT_LIST_HEAD(&sdev->qps);
	xa_init(&sdev->qpn);
	xa_init(&sdev->mrs);
	INIT_IB_EVENT_HANDLER(&sdev->events, ibdev, dev_event);
	ib_register_event_handler(&sdev->events);
	ib_set_client_data(ibdev, &shift_client, sdev);

	mutex_lock(&shift_devices_lock);
	list_add_tail(&sdev->list, &shift_devices);
	mutex_unlock(&shift_devices_lock);
	return 0;
}

/* Everything that lives on @sdev's backup goes, before that device does. */
static void dev_drop_backup(struct shift_dev *sdev)
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
	shift_qp_device_gone(sdev);
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

static void dev_remove(struct ib_device *ibdev, void *client_data)
{
	struct shift_dev *sdev = client_data, *other;

	ib_unregister_event_handler(&sdev->events);

	mutex_lock(&shift_devices_lock);
	list_del(&sdev->list);
	mutex_unlock(&shift_devices_lock);

	while ((other = dev_backed_by(sdev))) {
		dev_drop_backup(other);
		shift_dev_put(other);
	}
	dev_drop_backup(sdev);
	if (sdev->attached)
		shift_ops_detach(sdev, true);
	shift_link_device_gone(ibdev);
	sdev->ibdev = NULL;
	shift_dev_put(sdev);
}

static struct ib_client shift_client = {
	.name = "shift",
	.add = dev_add,
	.remove = dev_remove,
};

static int pair_check(struct shift_dev *sdev, struct shift_dev *backup,
		      struct netlink_ext_ack *extack)
{
	if (!sdev) {
		NL_SET_ERR_MSG_MOD(extack, "no such RDMA device (default)");
		return -ENODEV;
	}
	if (!backup) {
		NL_SET_ERR_MSG_MOD(extack, "no such RDMA device (backup)");
		return -ENODEV;
	}
	if (sdev == backup) {
		NL_SET_ERR_MSG_MOD(extack, "a device cannot be its own backup");
		return -EINVAL;
	}
	if (sdev->backup) {
		NL_SET_ERR_MSG_MOD(extack, "device has a backup already");
		return -EEXIST;
	}
	if (sdev->ibdev->ops.driver_id != backup->ibdev->ops.driver_id) {
		NL_SET_ERR_MSG_MOD(extack, "devices of different drivers cannot be paired");
		return -EOPNOTSUPP;
	}
	return 0;
}

/**
 * shift_pair_add - let one device stand in for another
 * @dev: name of the device that applications open.
 * @bdev: name of the device that stands in for it.
 * @extack: where a refusal is explained.
 *
 * Objects made before are not protected.
 *
 * Context: process context.
 * Return: 0, -ENODEV, -EINVAL, -EEXIST, -EOPNOTSUPP, -ENOMEM, -EBUSY.
 */
int shift_pair_add(const char *dev, const char *bdev, struct netlink_ext_ack *extack)
{
	struct shift_dev *sdev, *backup;
	int err;

	mutex_lock(&shift_devices_lock);
	sdev = dev_by_name(dev);
	backup = dev_by_name(bdev);
	err = pair_check(sdev, backup, extack);
	if (err)
		goto out;

	down_write(&sdev->mirror_sem);
	sdev->backup = shift_dev_get(backup);
	up_write(&sdev->mirror_sem);

	err = shift_ops_attach(sdev);
	if (err) {
		NL_SET_ERR_MSG_MOD(extack, "device operations could not be interposed");
		down_write(&sdev->mirror_sem);
		sdev->backup = NULL;
		up_write(&sdev->mirror_sem);
		shift_dev_put(backup);
		goto out;
	}
	shift_notify_pair(sdev, backup, true);
	pr_info("%s is backed by %s\n", dev, bdev);
out:
	mutex_unlock(&shift_devices_lock);
	return err;
}

/**
 * shift_pair_del - take a pair apart
 * @dev: name of the default device.
 * @extack: where a refusal is explained.
 *
 * Context: process context.
 * Return: 0, -ENODEV, -ENOENT (not paired), -EBUSY (objects are tracked).
 */
int shift_pair_del(const char *dev, struct netlink_ext_ack *extack)
{
	struct shift_dev *sdev;
	int err;

	mutex_lock(&shift_devices_lock);
	sdev = dev_by_name(dev);
	if (!sdev) {
		NL_SET_ERR_MSG_MOD(extack, "no such RDMA device");
		err = -ENODEV;
		goto out;
	}
	if (!sdev->backup) {
		NL_SET_ERR_MSG_MOD(extack, "device has no backup");
		err = -ENOENT;
		goto out;
	}
	err = shift_ops_detach(sdev, false);
	if (err) {
		NL_SET_ERR_MSG_MOD(extack, "applications use the device: stop them first");
		goto out;
	}
	dev_drop_backup(sdev);
	pr_info("%s has no backup any more\n", dev);
out:
	mutex_unlock(&shift_devices_lock);
	return err;
}

/**
 * shift_pair_move - move QPs of a device
 * @dev: name of the default device.
 * @qpn: the one to move; 0: all.
 * @path: 0 default, 1 backup.
 * @keep: those that become protected later move too, until told otherwise.
 * @extack: where a refusal is explained.
 *
 * What becomes of it shows in their states: nobody is waited for.
 *
 * Context: process context.
 * Return: 0, -ENODEV, -ENOENT.
 */
int shift_pair_move(const char *dev, u32 qpn, u8 path, bool keep,
		    struct netlink_ext_ack *extack)
{
	struct shift_dev *sdev;
	int err = -ENODEV;

	mutex_lock(&shift_devices_lock);
	sdev = dev_by_name(dev);
	if (sdev && sdev->backup)
		shift_dev_get(sdev);
	else
		sdev = NULL;
	mutex_unlock(&shift_devices_lock);
	if (!sdev) {
		NL_SET_ERR_MSG_MOD(extack, "no such RDMA device, or it has no backup");
		return err;
	}
	if (keep)
		WRITE_ONCE(sdev->drained, path);
	err = shift_move_ask(sdev, 0, qpn, path) || keep ? 0 : -ENOENT;
	if (err)
		NL_SET_ERR_MSG_MOD(extack, "no protected QP of that number on this device");
	shift_dev_put(sdev);
	return err;
}

int shift_pair_walk(int (*fn)(struct shift_dev *sdev, struct shift_dev *backup,
			      void *arg), void *arg)
{
	struct shift_dev *sdev;
	int err = 0;

	mutex_lock(&shift_devices_lock);
	list_for_each_entry(sdev, &shift_devices, list) {
		if (!sdev->backup)
			continue;
		err = fn(sdev, sdev->backup, arg);
		if (err)
			break;
	}
	mutex_unlock(&shift_devices_lock);
	return err;
}

int shift_device_init(void)
{
	return ib_register_client(&shift_client);
}

/* remove() runs for every device: pairs go, ops are restored. */
void shift_device_uninit(void)
{
	ib_unregister_client(&shift_client);
}
