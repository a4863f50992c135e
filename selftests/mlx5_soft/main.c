// SPDX-License-Identifier: GPL-2.0
/*
 * Init and exit: which rxe devices there are, and which of them carry one of ours.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "mlx5_soft.h"

static char *on[8];
static int on_count;
module_param_array(on, charp, &on_count, 0444);
MODULE_PARM_DESC(on, "rxe devices that get a software mlx5 device (rxe0 gets mls0)");

module_param_named(cm, mls_cm, bool, 0444);
MODULE_PARM_DESC(cm, "users in the kernel connect by our devices, and not by the rxe devices below");
module_param_named(pi, mls_pi, bool, 0444);
MODULE_PARM_DESC(pi, "MRs with signatures can be allocated and mapped, and not registered");
module_param_named(iommu, mls_iommu, bool, 0444);
MODULE_PARM_DESC(iommu, "memory has another address for each device, as behind an IOMMU");

static LIST_HEAD(slots);
static DEFINE_MUTEX(slots_lock);	/* the list; taken under the locks of all devices */
static DEFINE_MUTEX(create_lock);	/* slots stay and get or lose their device */

static struct mls_slot *slot_find(const char *name)
{
	struct mls_slot *slot, *found = NULL;

	mutex_lock(&slots_lock);
	list_for_each_entry(slot, &slots, entry)
		if (!strcmp(dev_name(&slot->lower->dev), name))
			found = slot;
	mutex_unlock(&slots_lock);
	return found;
}

/* Under the lock of all devices: it may only take note. */
static int mls_client_add(struct ib_device *ibdev)
{
	struct mls_slot *slot;

	if (ibdev->ops.driver_id != RDMA_DRIVER_RXE)
		return -EOPNOTSUPP;
	slot = kzalloc(sizeof(*slot), GFP_KERNEL);
	if (!slot)
		return -ENOMEM;
	slot->lower = ibdev;
	init_completion(&slot->gone);
	mutex_lock(&slots_lock);
	list_add_tail(&slot->entry, &slots);
	mutex_unlock(&slots_lock);
	return 0;
}

/* Nothing of ours may be on the rxe device when this returns. */
static void mls_client_remove(struct ib_device *ibdev, void *data)
{
	struct mls_slot *slot;

	mutex_lock(&create_lock);
	slot = slot_find(dev_name(&ibdev->dev));
	if (slot) {
		mutex_lock(&slots_lock);
		list_del(&slot->entry);
		mutex_unlock(&slots_lock);
		mls_device_destroy(slot);
		kfree(slot);
	}
	mutex_unlock(&create_lock);
}

static struct ib_client mls_client = {
	.name = "mlx5_soft",
	.add = mls_client_add,
	.remove = mls_client_remove,
};

static int __init mls_create_one(const char *name)
{
	struct mls_slot *slot;
	int err = -ENODEV;

	mutex_lock(&create_lock);
	slot = slot_find(name);
	if (slot && !slot->dev)
		err = mls_device_create(slot);
	mutex_unlock(&create_lock);
	if (err)
		pr_err("mlx5_soft: %s: %d\n", name, err);
	return err;
}

static int __init mls_init(void)
{
	int err, i;

	err = mls_nic_init();
	if (err)
		return err;
	err = mls_dmabuf_init();
	if (err)
		goto err_nic;
	err = mls_buffer_init();
	if (err)
		goto err_dmabuf;
	mls_debugfs_init();
	err = ib_register_client(&mls_client);
	if (err)
		goto err_debugfs;
	for (i = 0; i < on_count; i++) {
		err = mls_create_one(on[i]);
		if (err)
			goto err_client;
	}
	return 0;

err_client:
	ib_unregister_client(&mls_client);
err_debugfs:
	mls_debugfs_uninit();
	mls_buffer_uninit();
err_dmabuf:
	mls_dmabuf_uninit();
err_nic:
	mls_nic_uninit();
	return err;
}

static void __exit mls_exit(void)
{
	ib_unregister_client(&mls_client);
	mls_debugfs_uninit();
	mls_buffer_uninit();
	mls_dmabuf_uninit();
	mls_nic_uninit();
}

module_init(mls_init);
module_exit(mls_exit);
MODULE_DESCRIPTION("mlx5 user ABI on soft-RoCE, for tests");
MODULE_SOFTDEP("pre: ib_uverbs rdma_rxe");
MODULE_LICENSE("GPL");
