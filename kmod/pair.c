// SPDX-License-Identifier: GPL-2.0
/*
 * Pairs: which device stands in for which.  All under shift_devices_lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "switch.h"

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
 * @policy: what to do if a NIC cannot be asked how far it got.
 * @extack: where a refusal is explained.
 *
 * Objects made before are not protected.
 *
 * Context: process context.
 * Return: 0, -ENODEV, -EINVAL, -EEXIST, -EOPNOTSUPP, -ENOMEM, -EBUSY.
 */
int shift_pair_add(const char *dev, const char *bdev, enum shift_policy policy,
		   struct netlink_ext_ack *extack)
{
	struct shift_dev *sdev, *backup;
	int err;

	mutex_lock(&shift_devices_lock);
	sdev = shift_dev_by_name(dev);
	backup = shift_dev_by_name(bdev);
	err = pair_check(sdev, backup, extack);
	if (err)
		goto out;

	WRITE_ONCE(sdev->policy, policy);
	shift_dev_choose_carrier(sdev);
	shift_dev_choose_carrier(backup);
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

/* A default device of a pair, or NULL. */
static struct shift_dev *dev_paired(const char *dev, struct netlink_ext_ack *extack)
{
	struct shift_dev *sdev = shift_dev_by_name(dev);

	if (sdev && sdev->backup)
		return sdev;
	NL_SET_ERR_MSG_MOD(extack, "no such RDMA device, or it has no backup");
	return NULL;
}

/**
 * shift_pair_set - change the policy of a pair
 * @dev: name of the default device.
 * @policy: holds for all its QPs, from now on.
 * @extack: where a refusal is explained.
 *
 * Context: process context.
 * Return: 0, -ENODEV.
 */
int shift_pair_set(const char *dev, enum shift_policy policy, struct netlink_ext_ack *extack)
{
	struct shift_dev *sdev;

	mutex_lock(&shift_devices_lock);
	sdev = dev_paired(dev, extack);
	if (sdev) {
		WRITE_ONCE(sdev->policy, policy);
		shift_notify_pair(sdev, sdev->backup, true);
	}
	mutex_unlock(&shift_devices_lock);
	return sdev ? 0 : -ENODEV;
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
	sdev = shift_dev_by_name(dev);
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
	shift_dev_drop_backup(sdev);
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
	sdev = dev_paired(dev, extack);
	if (sdev)
		shift_dev_get(sdev);
	mutex_unlock(&shift_devices_lock);
	if (!sdev)
		return err;
	if (keep)
		WRITE_ONCE(sdev->drained, path);
	err = shift_move_ask(sdev, 0, qpn, path, keep) || keep ? 0 : -ENOENT;
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
