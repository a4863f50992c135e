// SPDX-License-Identifier: GPL-2.0
/*
 * Pairs: how operators make and unmake them, and how they end when a device is removed.
 *
 * shift_devices_lock is held only to look things up and to change them.  Whatever has to wait for
 * others does so without it.  Only readers of sysfs files are waited for, who wait for nobody
 * themselves.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/wait_bit.h>
#include "core/event.h"
#include "core/object.h"
#include "core/pair.h"
#include "failover/failover.h"
#include "link/link.h"
#include "provider/provider.h"
#include "verbs/verbs.h"

/* May @backup become the last backup of @sdev? */
static int pair_check(struct shift_dev *sdev, struct shift_dev *backup,
		      struct netlink_ext_ack *extack)
{
	struct shift_pair *pair;
	unsigned int i;

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
	if (!sdev->provider || !backup->provider) {
		NL_SET_ERR_MSG_MOD(extack, "only devices of rxe and mlx5 can be paired");
		return -EOPNOTSUPP;
	}
	if (sdev->driver != backup->driver) {
		NL_SET_ERR_MSG_MOD(extack, "devices of different drivers cannot be paired");
		return -EOPNOTSUPP;
	}
	if (sdev->ibdev->phys_port_cnt != 1 || backup->ibdev->phys_port_cnt != 1) {
		NL_SET_ERR_MSG_MOD(extack, "a device with more than one port cannot be paired");
		return -EOPNOTSUPP;
	}
	pair = shift_pair_locked(sdev);
	for (i = 0; pair && i < pair->num_backups; i++) {
		if (pair->backups[i] == backup) {
			NL_SET_ERR_MSG_MOD(extack, "the device has this backup already");
			return -EEXIST;
		}
	}
	if (pair && pair->num_backups == SHIFT_PAIR_BACKUPS_MAX) {
		NL_SET_ERR_MSG_MOD(extack, "the device has the maximum number of backups");
		return -ENOSPC;
	}
	return 0;
}

/* Add a backup to a pair; shift_devices_lock. */
static void pair_append(struct shift_pair *pair, struct shift_dev *backup)
{
	lockdep_assert_held(&shift_devices_lock);
	pair->backups[pair->num_backups++] = shift_dev_get(backup);
	shift_notify_pair(pair, SHIFT_PAIR_CHANGED);
}

/* From now on @pair is the pair of its default device; shift_devices_lock.  Takes the reference. */
static void pair_publish(struct shift_pair *pair, enum shift_pair_event event)
{
	lockdep_assert_held(&shift_devices_lock);
	list_add_tail(&pair->list, &shift_pairs);
	rcu_assign_pointer(pair->sdev->pair, pair);
	shift_notify_pair(pair, event);
}

/*
 * Let both devices prove what is assumed of them, and wait for that: for seconds at most (scaled).
 * If it shows that they do not, they can be paired all the same; their QPs are unprotected.
 */
static int pair_prove(const char *dev, const char *bdev, struct netlink_ext_ack *extack)
{
	struct shift_dev *sdev, *backup;
	int err;

	mutex_lock(&shift_devices_lock);
	sdev = shift_dev_by_name(dev);
	backup = shift_dev_by_name(bdev);
	err = pair_check(sdev, backup, extack);
	if (!err) {
		shift_dev_get(sdev);
		shift_dev_get(backup);
		shift_proof_begin(sdev);
		shift_proof_begin(backup);
	}
	mutex_unlock(&shift_devices_lock);
	if (err)
		return err;
	shift_proof_wait(sdev);
	shift_proof_wait(backup);
	shift_dev_put(sdev);
	shift_dev_put(backup);
	return 0;
}

/**
 * shift_pair_add - add a backup to a device
 * @dev: name of the default device, which applications open.
 * @bdev: name of the backup, the last in the order of preference.
 * @policy: what to do if a NIC cannot be asked how far it got; used with the first backup only.
 * @extack: where a refusal is explained.
 *
 * Objects that were made before the first backup was added are not protected.
 *
 * Context: process context.
 * Return: 0, -ENODEV, -EINVAL, -EEXIST, -ENOSPC, -EOPNOTSUPP, -ENOMEM, -EBUSY.
 */
int shift_pair_add(const char *dev, const char *bdev, enum shift_policy policy,
		   struct netlink_ext_ack *extack)
{
	struct shift_dev *sdev, *backup;
	struct shift_pair *pair;
	int err = pair_prove(dev, bdev, extack);

	if (err)
		return err;
	mutex_lock(&shift_devices_lock);
	/* either may have been removed meanwhile */
	sdev = shift_dev_by_name(dev);
	backup = shift_dev_by_name(bdev);
	err = pair_check(sdev, backup, extack);
	if (err)
		goto unlock;
	if (!mutex_trylock(&sdev->ops_mutex)) {
		NL_SET_ERR_MSG_MOD(extack, "the device's last pair is still being taken apart");
		err = -EBUSY;
		goto unlock;
	}
	if (shift_pair_locked(sdev)) {
		pair_append(shift_pair_locked(sdev), backup);
		goto unlock_ops;
	}
	pair = shift_pair_new(sdev, &backup, 1);
	if (!pair) {
		NL_SET_ERR_MSG_MOD(extack, "out of memory");
		err = -ENOMEM;
		goto unlock_ops;
	}
	pair->policy = policy;
	err = shift_ops_attach(sdev);
	if (err) {
		NL_SET_ERR_MSG_MOD(extack, "device operations could not be interposed");
		shift_pair_put(pair);
		if (sdev->attached)
			goto detach;
		goto unlock_ops;
	}
	shift_dev_choose_cm(sdev);
	shift_dev_choose_cm(backup);
	pair_publish(pair, SHIFT_PAIR_ADDED);
unlock_ops:
	mutex_unlock(&sdev->ops_mutex);
	if (!err)
		pr_info("%s is backed by %s\n", dev, bdev);
unlock:
	mutex_unlock(&shift_devices_lock);
	return err;

detach:
	shift_dev_get(sdev);
	mutex_unlock(&shift_devices_lock);
	shift_ops_detached(sdev);
	mutex_unlock(&sdev->ops_mutex);
	shift_dev_put(sdev);
	return err;
}

/* The pair of a default device, or NULL; shift_devices_lock. */
static struct shift_pair *pair_by_name(const char *dev, struct netlink_ext_ack *extack)
{
	struct shift_dev *sdev = shift_dev_by_name(dev);
	struct shift_pair *pair = sdev ? shift_pair_locked(sdev) : NULL;

	lockdep_assert_held(&shift_devices_lock);
	if (!pair)
		NL_SET_ERR_MSG_MOD(extack, "no such RDMA device, or it has no backup");
	return pair;
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
	struct shift_pair *pair;

	mutex_lock(&shift_devices_lock);
	pair = pair_by_name(dev, extack);
	if (pair) {
		WRITE_ONCE(pair->policy, policy);
		shift_notify_pair(pair, SHIFT_PAIR_CHANGED);
	}
	mutex_unlock(&shift_devices_lock);
	return pair ? 0 : -ENODEV;
}

/* Remove everything of a pair from the backup; no lock is held. */
static void pair_end(struct shift_pair *pair)
{
	/* another caller is at it */
	if (!shift_pair_die(pair)) {
		wait_for_completion(&pair->empty);
		return;
	}
	shift_qp_pair_gone(pair);
	shift_srq_pair_gone(pair);
	shift_mr_pair_gone(pair);
	/* applications that deregister memory may be destroying mirrors at this moment */
	wait_var_event(&pair->mirrors, !atomic_read(&pair->mirrors));
	shift_pd_pair_gone(pair);
	mutex_lock(&shift_devices_lock);
	list_del_init(&pair->list);
	mutex_unlock(&shift_devices_lock);
	complete_all(&pair->empty);
}

/**
 * shift_pair_del - take a pair apart
 * @dev: name of the default device.
 * @extack: where a refusal is explained.
 *
 * A refusal comes at once, before anything is waited for, and changes nothing.
 *
 * Context: process context.
 * Return: 0, -ENODEV, -ENOENT (not paired), -EBUSY (objects are tracked, memory is being
 * registered, the pair is being changed, or another module has changed the operations).
 */
int shift_pair_del(const char *dev, struct netlink_ext_ack *extack)
{
	struct shift_pair *pair;
	struct shift_dev *sdev;
	int err = -ENOENT;

	mutex_lock(&shift_devices_lock);
	sdev = shift_dev_by_name(dev);
	if (!sdev) {
		NL_SET_ERR_MSG_MOD(extack, "no such RDMA device");
		err = -ENODEV;
		goto unlock;
	}
	pair = shift_pair_locked(sdev);
	if (!pair) {
		NL_SET_ERR_MSG_MOD(extack, "device has no backup");
		goto unlock;
	}
	if (!mutex_trylock(&sdev->ops_mutex)) {
		NL_SET_ERR_MSG_MOD(extack, "the pair is being changed by somebody else");
		err = -EBUSY;
		goto unlock;
	}
	err = shift_ops_swap_out(sdev, extack);
	if (err) {
		mutex_unlock(&sdev->ops_mutex);
		goto unlock;
	}
	shift_dev_get(sdev);
	rcu_assign_pointer(sdev->pair, NULL);
	shift_notify_pair(pair, SHIFT_PAIR_REMOVED);
	mutex_unlock(&shift_devices_lock);

	pair_end(pair);
	shift_pair_put(pair);
	shift_ops_detached(sdev);
	mutex_unlock(&sdev->ops_mutex);
	pr_info("%s has no backup any more\n", dev);
	shift_dev_put(sdev);
	return 0;

unlock:
	mutex_unlock(&shift_devices_lock);
	return err;
}

/**
 * shift_pair_move - ask QPs of a device to move
 * @dev: name of the default device.
 * @qpn: number of the one QP to move; 0: all.
 * @path: 0 default, 1 backup.
 * @keep: QPs that become protected later move too, until @path is set again.
 * @extack: where a refusal is explained.
 *
 * Does not wait for the QPs: their states show when they have moved.
 *
 * Context: process context.
 * Return: 0, -ENODEV, -ENOENT, -ENETUNREACH.
 */
int shift_pair_move(const char *dev, u32 qpn, u8 path, bool keep,
		    struct netlink_ext_ack *extack)
{
	struct shift_pair *pair;
	int err = -ENODEV;

	mutex_lock(&shift_devices_lock);
	pair = pair_by_name(dev, extack);
	if (pair) {
		shift_pair_get(pair);
		if (keep)
			WRITE_ONCE(pair->drained, path);
	}
	mutex_unlock(&shift_devices_lock);
	if (!pair)
		return err;
	err = shift_move_ask(pair->sdev, 0, qpn, path, keep);
	if (keep)
		err = 0;
	else if (err == -ENOENT)
		NL_SET_ERR_MSG_MOD(extack, "the device has no protected QP with this number");
	else if (err)
		NL_SET_ERR_MSG_MOD(extack, "that path does not work now");
	shift_pair_put(pair);
	return err;
}

/* Take @sdev out of the backups of @pair; shift_devices_lock. */
static void pair_forget_backup(struct shift_pair *pair, struct shift_dev *sdev)
{
	unsigned int i;

	lockdep_assert_held(&shift_devices_lock);
	for (i = 0; i < pair->num_backups && pair->backups[i] != sdev; i++)
		;
	if (i == pair->num_backups)
		return;
	pair->num_backups--;
	for (; i < pair->num_backups; i++)
		pair->backups[i] = pair->backups[i + 1];
	shift_dev_put(sdev);
	if (pair->num_backups && shift_pair_locked(pair->sdev) == pair && pair->backup != sdev)
		shift_notify_pair(pair, SHIFT_PAIR_CHANGED);
}

/*
 * @sdev, a device of @pair, is removed: @pair is not the pair of its default device any more.
 * With the next backup, if there is one, a new pair is made for objects that are created from now
 * on.  shift_devices_lock
 */
static void pair_unpublish(struct shift_pair *pair, struct shift_dev *sdev)
{
	struct shift_pair *next = NULL;

	lockdep_assert_held(&shift_devices_lock);
	if (shift_pair_locked(pair->sdev) != pair)
		return;
	if (pair->sdev != sdev && pair->num_backups)
		next = shift_pair_new(pair->sdev, pair->backups, pair->num_backups);
	if (next) {
		next->policy = pair->policy;
		next->drained = pair->drained;
		shift_dev_choose_cm(next->backup);
		pair_publish(next, SHIFT_PAIR_CHANGED);
		pr_info("%s is backed by %s from now on\n", next->sdev->name, next->backup->name);
	} else {
		rcu_assign_pointer(pair->sdev->pair, NULL);
		shift_notify_pair(pair, SHIFT_PAIR_REMOVED);
	}
	shift_pair_put(pair);
}

/* A pair that has @sdev as default or backup, dying or not, with a reference; or NULL. */
static struct shift_pair *pair_take(struct shift_dev *sdev)
{
	struct shift_pair *pair, *found = NULL;

	mutex_lock(&shift_devices_lock);
	list_for_each_entry(pair, &shift_pairs, list) {
		if (pair->sdev != sdev && pair->backup != sdev)
			continue;
		shift_pair_get(pair);
		pair_unpublish(pair, sdev);
		found = pair;
		break;
	}
	mutex_unlock(&shift_devices_lock);
	return found;
}

/**
 * shift_pair_device_gone - a device goes: end all pairs that it belongs to
 * @sdev: the device; shift_dev_by_name() does not find it any more.
 *
 * Context: process context; waits for registrations that pin memory for it.
 */
void shift_pair_device_gone(struct shift_dev *sdev)
{
	struct shift_pair *pair;

	mutex_lock(&shift_devices_lock);
	list_for_each_entry(pair, &shift_pairs, list)
		pair_forget_backup(pair, sdev);
	mutex_unlock(&shift_devices_lock);

	while ((pair = pair_take(sdev))) {
		pair_end(pair);
		shift_pair_put(pair);
	}
}
