// SPDX-License-Identifier: GPL-2.0
/* The RDMA devices, and how they are found. */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/sch_generic.h>
#include <rdma/ib_cache.h>
#include <rdma/uverbs_types.h>
#include "core/ib.h"
#include "core/object.h"
#include "core/pair.h"

LIST_HEAD(shift_devices);	/* changed under the lock, read under RCU or the lock */
DEFINE_MUTEX(shift_devices_lock);
static DEFINE_SPINLOCK(shift_name_lock);

/**
 * shift_dev_new - make the shadow of a device that was added
 * @ibdev: the device.
 *
 * Context: process context.
 * Return: the shadow, with a reference, or NULL: no memory.
 */
struct shift_dev *shift_dev_new(struct ib_device *ibdev)
{
	struct shift_dev *sdev = kzalloc(sizeof(*sdev), GFP_KERNEL);

	if (!sdev)
		return NULL;
	if (init_srcu_struct(&sdev->srcu)) {
		kfree(sdev);
		return NULL;
	}
	kref_init(&sdev->ref);
	INIT_LIST_HEAD(&sdev->list);
	sdev->ibdev = ibdev;
	strscpy(sdev->name, dev_name(&ibdev->dev), sizeof(sdev->name));
	sdev->guid = be64_to_cpu(ibdev->node_guid);
	sdev->driver = ibdev->ops.driver_id;
	mutex_init(&sdev->ops_mutex);
	init_rwsem(&sdev->ring_sem);
	mutex_init(&sdev->list_lock);
	INIT_LIST_HEAD(&sdev->pds);
	INIT_LIST_HEAD(&sdev->old_pds);
	INIT_LIST_HEAD(&sdev->cqs);
	INIT_LIST_HEAD(&sdev->qps);
	INIT_LIST_HEAD(&sdev->srqs);
	xa_init_flags(&sdev->qpn, XA_FLAGS_ACCOUNT);
	xa_init(&sdev->unlisted);
	xa_init_flags(&sdev->mrs, XA_FLAGS_ACCOUNT);
	return sdev;
}

struct shift_dev *shift_dev_get(struct shift_dev *sdev)
{
	kref_get(&sdev->ref);
	return sdev;
}

static void dev_release(struct kref *ref)
{
	struct shift_dev *sdev = container_of(ref, struct shift_dev, ref);

	/* No wrapper runs: while one may come, the table of objects holds a reference. */
	cleanup_srcu_struct(&sdev->srcu);
	xa_destroy(&sdev->qpn);
	xa_destroy(&sdev->unlisted);
	xa_destroy(&sdev->mws);
	xa_destroy(&sdev->mrs);
	kfree_rcu(sdev, obj.rcu);
}

void shift_dev_put(struct shift_dev *sdev)
{
	kref_put(&sdev->ref, dev_release);
}

/* The device was renamed; the RDMA core holds a lock, so that the name is stable here. */
void shift_dev_rename(struct shift_dev *sdev)
{
	mutex_lock(&shift_devices_lock);
	spin_lock(&shift_name_lock);
	strscpy(sdev->name, dev_name(&sdev->ibdev->dev), sizeof(sdev->name));
	spin_unlock(&shift_name_lock);
	mutex_unlock(&shift_devices_lock);
}

/* Copies the device's name to @name, and returns @name.  Process context. */
const char *shift_dev_name(const struct shift_dev *sdev, char name[IB_DEVICE_NAME_MAX])
{
	spin_lock(&shift_name_lock);
	strscpy(name, sdev->name, IB_DEVICE_NAME_MAX);
	spin_unlock(&shift_name_lock);
	return name;
}

/**
 * shift_dev_count - count a new object, before its shadow is made
 * @sdev: its device.
 *
 * Context: a wrapper.
 * Return: true if it is to be tracked: then shift_dev_uncount() is called when its shadow has been
 * taken apart, or could not be made.
 */
bool shift_dev_count(struct shift_dev *sdev)
{
	return atomic_inc_unless_negative(&sdev->objects);
}

void shift_dev_uncount(struct shift_dev *sdev)
{
	atomic_dec(&sdev->objects);
}

bool shift_dev_tracks(const struct shift_dev *sdev)
{
	return atomic_read(&sdev->objects) >= 0;
}

/**
 * shift_verb_begin - a wrapper that may sleep is entered
 * @ibdev: the device.
 * @idx: for shift_verb_end().
 *
 * Context: process context.
 * Return: the device's shadow, valid until shift_verb_end().  Whoever takes the wrappers out of the
 * device's ops waits until then.
 */
struct shift_dev *shift_verb_begin(struct ib_device *ibdev, int *idx) __acquires(SRCU)
{
	struct shift_dev *sdev;

	/* shift_verbs_wait() waits for RCU, then for SRCU: a verb is never between the two. */
	rcu_read_lock();
	sdev = shift_ops_dev(ibdev);
	*idx = srcu_read_lock(&sdev->srcu);
	rcu_read_unlock();
	return sdev;
}

void shift_verb_end(struct shift_dev *sdev, int idx) __releases(SRCU)
{
	srcu_read_unlock(&sdev->srcu, idx);
}

/**
 * shift_verbs_wait - wait for verbs that may have looked up what was just made unfindable
 * @sdev: the device.
 *
 * Context: process context.  A process can make its registration of memory last for as long as it
 * likes, and so can the wait.
 */
void shift_verbs_wait(struct shift_dev *sdev)
{
	synchronize_rcu();
	synchronize_srcu(&sdev->srcu);
}

/* The present device of that name, or NULL; shift_devices_lock. */
struct shift_dev *shift_dev_by_name(const char *name)
{
	struct shift_dev *sdev;

	lockdep_assert_held(&shift_devices_lock);
	list_for_each_entry(sdev, &shift_devices, list)
		if (!strcmp(sdev->name, name))
			return sdev;
	return NULL;
}

/* Is @gid one of the device's, in the initial network namespace?  Process context. */
bool shift_dev_has_gid(struct shift_dev *sdev, const union ib_gid *gid)
{
	const struct ib_gid_attr *attr;

	if (!sdev || !sdev->ibdev)
		return false;
	attr = shift_gid_find(sdev->ibdev, gid, SHIFT_VLAN_ANY);
	if (IS_ERR(attr))
		return false;
	rdma_put_gid_attr(attr);
	return true;
}

bool shift_gid_is_local(struct shift_pair *pair, const union ib_gid *gid)
{
	return shift_dev_has_gid(pair->sdev, gid) || shift_dev_has_gid(pair->backup, gid);
}

/* Is the device in the list, which it leaves when it is being removed?  Context: any. */
bool shift_dev_is_known(const struct ib_device *ibdev)
{
	const struct shift_dev *sdev;
	bool found = false;

	rcu_read_lock();
	list_for_each_entry_rcu(sdev, &shift_devices, list)
		found |= sdev->ibdev == ibdev;
	rcu_read_unlock();
	return found;
}
