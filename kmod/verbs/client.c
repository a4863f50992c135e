// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA devices as they come and go, and their port events.
 *
 * The core calls add() and remove() with its devices_rwsem held.  So nothing here looks a device
 * up through the core while it holds shift_devices_lock.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/sch_generic.h>
#include <rdma/ib_cache.h>
#include <rdma/uverbs_types.h>
#include "core/event.h"
#include "core/ib.h"
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/pair.h"
#include "core/qp.h"
#include "link/link.h"
#include "mw/mw.h"
#include "provider/provider.h"
#include "verbs/verbs.h"

/*
 * The core removes clients in the reverse order of their registration.  This symbol of ib_uverbs
 * makes the loader load ib_uverbs first.  So the module lets go of a device before the objects of
 * applications are destroyed, and there is one order of teardown.
 */
static const void *const uverbs_first __used = &uverbs_idr_class;

static struct ib_client shift_client;

static void dev_kick(struct shift_dev *sdev, unsigned int bit)
{
	struct shift_obj *obj;

	mutex_lock(&sdev->list_lock);
	list_for_each_entry(obj, &sdev->qps, list)
		shift_qp_kick(container_of(obj, struct shift_qp, obj), bit);
	mutex_unlock(&sdev->list_lock);
}

/*
 * Runs in the core's workqueue.  It only sets a bit of each QP and queues its work item.  Whether
 * the QP changes its path is agreed with the peer.
 */
static void dev_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct shift_dev *sdev = container_of(handler, struct shift_dev, events);
	unsigned int bit = SHIFT_QPB_TRIGGER;
	struct shift_pair *pair;

	/* a device with more ports cannot be paired */
	if ((event->event == IB_EVENT_PORT_ERR || event->event == IB_EVENT_PORT_ACTIVE) &&
	    event->element.port_num != 1)
		return;
	switch (event->event) {
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_DEVICE_FATAL:
		WRITE_ONCE(sdev->port_down, true);
		break;
	case IB_EVENT_PORT_ACTIVE:
		WRITE_ONCE(sdev->port_down, false);
		shift_dev_links_up(sdev);
		shift_proof_again(sdev);
		bit = SHIFT_QPB_PATH_UP;
		break;
	case IB_EVENT_GID_CHANGE:
		shift_proof_again(sdev);
		return;
	default:
		return;
	}

	dev_kick(sdev, bit);
	/* QPs of the devices that this one is the backup of may run here */
	mutex_lock(&shift_devices_lock);
	list_for_each_entry(pair, &shift_pairs, list)
		if (pair->backup == sdev)
			dev_kick(pair->sdev, bit);
	mutex_unlock(&shift_devices_lock);
}

/*
 * The MTU of an interface has changed.  QPs whose backup has that interface look at it.  To tell
 * which, the MTU of every pair is compared with what it was; the first time it is not known.
 */
static void look_at_mtus(struct work_struct *work)
{
	struct shift_pair *pair;
	union ib_gid gid;
	u32 mtu;

	mutex_lock(&shift_devices_lock);
	list_for_each_entry(pair, &shift_pairs, list) {
		if (!shift_pair_use(pair))
			continue;
		mtu = shift_dev_gid(pair->backup->ibdev, SHIFT_VLAN_ANY, &gid) ? 0 :
		      shift_gid_mtu(pair->backup->ibdev, &gid);
		if (mtu != pair->mtu)
			dev_kick(pair->sdev, SHIFT_QPB_MTU);
		pair->mtu = mtu;
		shift_pair_unuse(pair);
	}
	mutex_unlock(&shift_devices_lock);
}

static DECLARE_WORK(mtu_work, look_at_mtus);

/* The caller has the lock of network devices, so what is to be done is left to a work item. */
static int netdev_event(struct notifier_block *nb, unsigned long event, void *info)
{
	if (event == NETDEV_CHANGEMTU)
		queue_work(shift_wq, &mtu_work);
	return NOTIFY_DONE;
}

static struct notifier_block netdev_notifier = { .notifier_call = netdev_event };

static int dev_add(struct ib_device *ibdev)
{
	struct shift_dev *sdev;

	/* RoCE only, for now */
	if (!rdma_is_port_valid(ibdev, 1) || !rdma_protocol_roce(ibdev, 1))
		return -EOPNOTSUPP;
	/* a device that is given to another namespace is removed first, and then added again */
	if (!rdma_dev_access_netns(ibdev, &init_net))
		return -EOPNOTSUPP;

	sdev = shift_dev_new(ibdev);
	if (!sdev)
		return -ENOMEM;
	sdev->provider = shift_provider_of_driver(sdev->driver);
	shift_proof_init(sdev);
	shift_mw_init(sdev);
	INIT_IB_EVENT_HANDLER(&sdev->events, ibdev, dev_event);
	ib_register_event_handler(&sdev->events);
	ib_set_client_data(ibdev, &shift_client, sdev);

	mutex_lock(&shift_devices_lock);
	list_add_tail_rcu(&sdev->list, &shift_devices);
	mutex_unlock(&shift_devices_lock);
	return 0;
}

/* The devices are removed because the module is unloaded: see shift_ops_device_gone(). */
static bool dev_unloading;

/*
 * Several devices may be removed at the same time.  Each removal waits until no pair has anything
 * on its device, also while the removal of another device is ending such a pair.
 */
static void dev_remove(struct ib_device *ibdev, void *client_data)
{
	struct shift_dev *sdev = client_data;

	ib_unregister_event_handler(&sdev->events);

	mutex_lock(&shift_devices_lock);
	list_del_rcu(&sdev->list);
	mutex_unlock(&shift_devices_lock);

	shift_proof_end(sdev);
	shift_pair_device_gone(sdev);
	shift_ops_device_gone(sdev, dev_unloading);
	shift_charge_device_gone(sdev);
	shift_dev_drop_cm(sdev);
	shift_link_device_gone(ibdev, !dev_unloading);
	sdev->ibdev = NULL;
	shift_dev_put(sdev);
}

static void dev_rename(struct ib_device *ibdev, void *client_data)
{
	shift_dev_rename(client_data);
	shift_link_device_renamed(ibdev);
}

static struct ib_client shift_client = {
	.name = "shift",
	.add = dev_add,
	.remove = dev_remove,
	.rename = dev_rename,
};

int shift_device_init(void)
{
	int err = register_netdevice_notifier(&netdev_notifier);

	if (err)
		return err;
	err = ib_register_client(&shift_client);
	if (err) {
		unregister_netdevice_notifier(&netdev_notifier);
		cancel_work_sync(&mtu_work);
	}
	return err;
}

/* Calls dev_remove() for every device: it ends the pairs and restores the operations. */
void shift_device_uninit(void)
{
	unregister_netdevice_notifier(&netdev_notifier);
	cancel_work_sync(&mtu_work);
	dev_unloading = true;
	ib_unregister_client(&shift_client);
}
