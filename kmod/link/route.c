// SPDX-License-Identifier: GPL-2.0
/* Which device's RDMA CM connects the links of a device (struct shift_dev.cm_dev). */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/sch_generic.h>
#include <rdma/ib_cache.h>
#include <rdma/uverbs_types.h>
#include "core/ib.h"
#include "core/object.h"
#include "link/link.h"
#include "link/link_priv.h"

/* read while cm_dev is used, written to change it */
static DECLARE_RWSEM(cm_sem);

/*
 * Links need RDMA CM.  For a device without it, find one that has it and is on the same interface,
 * so that it has the same GID; NULL: there is none.
 */
static struct shift_dev *find_cm_dev(struct shift_dev *sdev)
{
	struct shift_dev *other;
	union ib_gid gid;

	lockdep_assert_held(&shift_devices_lock);
	if (rdma_cap_ib_cm(sdev->ibdev, 1))
		return shift_dev_get(sdev);
	if (shift_dev_gid(sdev->ibdev, SHIFT_VLAN_ANY, &gid))
		return NULL;
	list_for_each_entry(other, &shift_devices, list)
		if (rdma_cap_ib_cm(other->ibdev, 1) && shift_dev_has_gid(other, &gid))
			return shift_dev_get(other);
	return NULL;
}

/* Set or clear cm_dev, and drop the reference to the one before. */
static void set_cm_dev(struct shift_dev *sdev, struct shift_dev *cm_dev)
{
	struct shift_dev *old;

	down_write(&cm_sem);
	old = sdev->cm_dev;
	sdev->cm_dev = cm_dev;
	up_write(&cm_sem);
	if (old)
		shift_dev_put(old);
}

/* A pair with @sdev is made: find out whose RDMA CM its links use; shift_devices_lock. */
void shift_dev_choose_cm(struct shift_dev *sdev)
{
	lockdep_assert_held(&shift_devices_lock);
	set_cm_dev(sdev, find_cm_dev(sdev));
}

/* @sdev is removed: no device uses its RDMA CM any more. */
void shift_dev_drop_cm(struct shift_dev *sdev)
{
	struct shift_dev *other;

	mutex_lock(&shift_devices_lock);
	list_for_each_entry(other, &shift_devices, list)
		if (other->cm_dev == sdev)
			set_cm_dev(other, NULL);
	mutex_unlock(&shift_devices_lock);
	set_cm_dev(sdev, NULL);
}

/**
 * shift_dev_link - the link of a pair's device to an address of a peer
 * @sdev: default device or backup.
 * @local: GID of it.
 * @remote: GID of the peer.
 *
 * Context: process context, between shift_pair_use() and shift_pair_unuse().
 * Return: the link, for shift_link_put(), or NULL.
 */
struct shift_link *shift_dev_link(struct shift_dev *sdev, const union ib_gid *local,
				  const union ib_gid *remote)
{
	struct shift_link *link = NULL;

	down_read(&cm_sem);
	if (sdev->cm_dev)
		link = shift_link_get(sdev->cm_dev->ibdev, local, remote);
	up_read(&cm_sem);
	return IS_ERR(link) ? NULL : link;
}

/**
 * shift_dev_links_up - a port is active again: try to connect the device's links now
 * @sdev: the device; its links may be those of another device (cm_dev).
 *
 * Context: process context, before remove() of @sdev.
 */
void shift_dev_links_up(struct shift_dev *sdev)
{
	shift_link_device_up(sdev->ibdev);
	down_read(&cm_sem);
	if (sdev->cm_dev && sdev->cm_dev != sdev)
		shift_link_device_up(sdev->cm_dev->ibdev);
	up_read(&cm_sem);
}
