// SPDX-License-Identifier: GPL-2.0
/*
 * sysfs, one value per file: the state of a pair beside its default device, the
 * node and its counters beside /dev/shift.
 */
#include <linux/capability.h>
#include <linux/device.h>
#include <linux/kernel.h>
#include "core/node.h"
#include "core/object.h"
#include "core/pair.h"
#include "core/stat.h"
#include "ctl/ctl.h"
#include "failover/failover.h"

/*
 * Removal of the files waits for readers and may itself run under
 * shift_devices_lock.  So a reader never waits for that lock: if it is held, the system call is
 * restarted, and fails if the file was removed meanwhile.
 */
static int sysfs_lock(struct device *dev, struct shift_pair **found)
{
	struct ib_device *ibdev = container_of(dev, struct ib_device, dev);
	struct shift_dev *sdev;

	if (!mutex_trylock(&shift_devices_lock))
		return restart_syscall();
	list_for_each_entry(sdev, &shift_devices, list) {
		if (sdev->ibdev != ibdev)
			continue;
		/* the files go before the lock is let go under which a device loses its pair */
		*found = shift_pair_locked(sdev);
		return 0;
	}
	mutex_unlock(&shift_devices_lock);
	return -ENODEV;
}

static int sysfs_count(struct device *dev, struct shift_qp_counts *counts)
{
	struct shift_pair *pair;
	int err;

	if (capable(CAP_NET_ADMIN))
		shift_look_all();
	err = sysfs_lock(dev, &pair);
	if (err)
		return err;
	shift_qp_count(pair->sdev, counts);
	mutex_unlock(&shift_devices_lock);
	return 0;
}

static ssize_t backup_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct shift_pair *pair;
	ssize_t len;

	len = sysfs_lock(dev, &pair);
	if (len)
		return len;
	len = sysfs_emit(buf, "%s\n", pair->backup->name);
	mutex_unlock(&shift_devices_lock);
	return len;
}
static DEVICE_ATTR_RO(backup);

static ssize_t policy_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct shift_pair *pair;
	ssize_t len;

	len = sysfs_lock(dev, &pair);
	if (len)
		return len;
	len = sysfs_emit(buf, "%s\n",
			 pair->policy == SHIFT_POLICY_AT_LEAST_ONCE ?
			 "at-least-once" : "exactly-once");
	mutex_unlock(&shift_devices_lock);
	return len;
}
static DEVICE_ATTR_RO(policy);

static ssize_t tracked_qps_show(struct device *dev, struct device_attribute *attr,
				char *buf)
{
	struct shift_qp_counts counts;
	int err;

	err = sysfs_count(dev, &counts);
	return err ?: sysfs_emit(buf, "%u\n", counts.tracked);
}
static DEVICE_ATTR_RO(tracked_qps);

static ssize_t protected_qps_show(struct device *dev, struct device_attribute *attr,
				  char *buf)
{
	struct shift_qp_counts counts;
	int err;

	err = sysfs_count(dev, &counts);
	return err ?: sysfs_emit(buf, "%u\n", counts.protected);
}
static DEVICE_ATTR_RO(protected_qps);

static const char *sysfs_state(const struct shift_qp_counts *counts)
{
	if (counts->switching)
		return "switching";
	if (counts->fallback)
		return "fallback";
	return "default";
}

static ssize_t state_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct shift_qp_counts counts;
	int err;

	err = sysfs_count(dev, &counts);
	return err ?: sysfs_emit(buf, "%s\n", sysfs_state(&counts));
}
static DEVICE_ATTR_RO(state);

static struct attribute *shift_dev_attrs[] = {
	&dev_attr_backup.attr,
	&dev_attr_policy.attr,
	&dev_attr_protected_qps.attr,
	&dev_attr_state.attr,
	&dev_attr_tracked_qps.attr,
	NULL
};

static const struct attribute_group shift_dev_group = {
	.name = "shift",
	.attrs = shift_dev_attrs,
};

/**
 * shift_sysfs_add - show the state of a pair beside its default device
 * @sdev: the default device.
 *
 * Context: process context; shift_devices_lock may be held.
 * Return: 0 or a negative errno; protection does not depend on it.
 */
int shift_sysfs_add(struct shift_dev *sdev)
{
	int err;

	err = sysfs_create_group(&sdev->ibdev->dev.kobj, &shift_dev_group);
	if (err)
		ibdev_warn(sdev->ibdev, "no sysfs files: %d\n", err);
	return err;
}

/**
 * shift_sysfs_remove - take the files away and wait for their readers
 * @sdev: the default device.  Nothing happens if shift_sysfs_add() failed.
 *
 * Context: process context; shift_devices_lock may be held, sdev->list_lock
 * not.
 */
void shift_sysfs_remove(struct shift_dev *sdev)
{
	struct kobject *kobj = &sdev->ibdev->dev.kobj;
	struct kernfs_node *kn = sysfs_get_dirent(kobj->sd, shift_dev_group.name);

	if (!kn)
		return;
	sysfs_put(kn);
	sysfs_remove_group(kobj, &shift_dev_group);
}

static ssize_t node_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", shift_node);
}
static DEVICE_ATTR_RO(node);

static ssize_t boot_id_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%*phN\n", (int)sizeof(shift_boot_id), shift_boot_id);
}
static DEVICE_ATTR_ADMIN_RO(boot_id);

static struct attribute *shift_misc_attrs[] = {
	&dev_attr_boot_id.attr,
	&dev_attr_node.attr,
	NULL
};

static const struct attribute_group shift_misc_group = {
	.attrs = shift_misc_attrs,
};

struct shift_stat_attribute {
	struct device_attribute attr;
	enum shift_stat stat;
};

static ssize_t stat_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct shift_stat_attribute *sa =
		container_of(attr, struct shift_stat_attribute, attr);

	return sysfs_emit(buf, "%llu\n", shift_stat_read(sa->stat));
}

#define SHIFT_STAT_ATTR(_name, _stat)					\
	static struct shift_stat_attribute shift_stat_attr_##_name = {	\
		.attr = __ATTR(_name, 0444, stat_show, NULL),	\
		.stat = (_stat),					\
	}

SHIFT_STAT_ATTR(faults, SHIFT_STAT_FAULTS);
SHIFT_STAT_ATTR(switches, SHIFT_STAT_SWITCHES);
SHIFT_STAT_ATTR(abandoned, SHIFT_STAT_ABANDONED);
SHIFT_STAT_ATTR(failed, SHIFT_STAT_FAILED);
SHIFT_STAT_ATTR(replayed, SHIFT_STAT_REPLAYED);
SHIFT_STAT_ATTR(resumed, SHIFT_STAT_RESUMED);
SHIFT_STAT_ATTR(executed, SHIFT_STAT_EXECUTED);
SHIFT_STAT_ATTR(swallowed, SHIFT_STAT_SWALLOWED);
SHIFT_STAT_ATTR(side_wc, SHIFT_STAT_SIDE_WC);
SHIFT_STAT_ATTR(mirror_mr, SHIFT_STAT_MIRROR_MR);
SHIFT_STAT_ATTR(mirror_failed, SHIFT_STAT_MIRROR_FAILED);
SHIFT_STAT_ATTR(paired, SHIFT_STAT_PAIRED);
SHIFT_STAT_ATTR(illegal, SHIFT_STAT_ILLEGAL);
SHIFT_STAT_ATTR(msg_bad, SHIFT_STAT_MSG_BAD);
SHIFT_STAT_ATTR(msg_stale, SHIFT_STAT_MSG_STALE);
SHIFT_STAT_ATTR(returns, SHIFT_STAT_RETURNS);
SHIFT_STAT_ATTR(event_lost, SHIFT_STAT_EVENT_LOST);
SHIFT_STAT_ATTR(unknown, SHIFT_STAT_UNKNOWN);
SHIFT_STAT_ATTR(doubtful, SHIFT_STAT_DOUBTFUL);
SHIFT_STAT_ATTR(stalled, SHIFT_STAT_STALLED);
SHIFT_STAT_ATTR(handbacks, SHIFT_STAT_HANDBACKS);
SHIFT_STAT_ATTR(kicks, SHIFT_STAT_KICKS);
SHIFT_STAT_ATTR(moves, SHIFT_STAT_MOVES);
SHIFT_STAT_ATTR(neighbours, SHIFT_STAT_NEIGHBOURS);
SHIFT_STAT_ATTR(disconnects, SHIFT_STAT_DISCONNECTS);
SHIFT_STAT_ATTR(outages, SHIFT_STAT_OUTAGES);
SHIFT_STAT_ATTR(strangers, SHIFT_STAT_STRANGERS);
SHIFT_STAT_ATTR(crowded, SHIFT_STAT_CROWDED);
SHIFT_STAT_ATTR(paused, SHIFT_STAT_PAUSED);
SHIFT_STAT_ATTR(flooded, SHIFT_STAT_FLOODED);
SHIFT_STAT_ATTR(disbelieved, SHIFT_STAT_DISBELIEVED);
SHIFT_STAT_ATTR(stayed, SHIFT_STAT_STAYED);
SHIFT_STAT_ATTR(lanes_silent, SHIFT_STAT_LANES_SILENT);
SHIFT_STAT_ATTR(spared, SHIFT_STAT_SPARED);
SHIFT_STAT_ATTR(kernel_qps, SHIFT_STAT_KERNEL_QPS);
SHIFT_STAT_ATTR(kernel_posts, SHIFT_STAT_KERNEL_POSTS);
SHIFT_STAT_ATTR(kernel_lost, SHIFT_STAT_KERNEL_LOST);

static struct attribute *shift_stat_attrs[] = {
	&shift_stat_attr_faults.attr.attr,
	&shift_stat_attr_switches.attr.attr,
	&shift_stat_attr_abandoned.attr.attr,
	&shift_stat_attr_failed.attr.attr,
	&shift_stat_attr_replayed.attr.attr,
	&shift_stat_attr_resumed.attr.attr,
	&shift_stat_attr_executed.attr.attr,
	&shift_stat_attr_swallowed.attr.attr,
	&shift_stat_attr_side_wc.attr.attr,
	&shift_stat_attr_mirror_mr.attr.attr,
	&shift_stat_attr_mirror_failed.attr.attr,
	&shift_stat_attr_paired.attr.attr,
	&shift_stat_attr_illegal.attr.attr,
	&shift_stat_attr_msg_bad.attr.attr,
	&shift_stat_attr_msg_stale.attr.attr,
	&shift_stat_attr_returns.attr.attr,
	&shift_stat_attr_event_lost.attr.attr,
	&shift_stat_attr_unknown.attr.attr,
	&shift_stat_attr_doubtful.attr.attr,
	&shift_stat_attr_stalled.attr.attr,
	&shift_stat_attr_handbacks.attr.attr,
	&shift_stat_attr_kicks.attr.attr,
	&shift_stat_attr_moves.attr.attr,
	&shift_stat_attr_neighbours.attr.attr,
	&shift_stat_attr_disconnects.attr.attr,
	&shift_stat_attr_outages.attr.attr,
	&shift_stat_attr_strangers.attr.attr,
	&shift_stat_attr_crowded.attr.attr,
	&shift_stat_attr_paused.attr.attr,
	&shift_stat_attr_flooded.attr.attr,
	&shift_stat_attr_disbelieved.attr.attr,
	&shift_stat_attr_stayed.attr.attr,
	&shift_stat_attr_lanes_silent.attr.attr,
	&shift_stat_attr_spared.attr.attr,
	&shift_stat_attr_kernel_qps.attr.attr,
	&shift_stat_attr_kernel_posts.attr.attr,
	&shift_stat_attr_kernel_lost.attr.attr,
	NULL
};

static_assert(ARRAY_SIZE(shift_stat_attrs) == __SHIFT_STAT_MAX + 1);

static const struct attribute_group shift_stat_group = {
	.name = "stats",
	.attrs = shift_stat_attrs,
};

const struct attribute_group *shift_misc_groups[] = {
	&shift_misc_group,
	&shift_stat_group,
	NULL
};
