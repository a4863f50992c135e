// SPDX-License-Identifier: GPL-2.0
/*
 * rdma_shift: keeps RDMA traffic alive when a NIC, a cable or a switch port
 * dies.  Ordered init and its reverse: the lifetimes are read off here.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/random.h>
#include <linux/utsname.h>
#include "switch.h"

char shift_node[SHIFT_NODE_MAX];
u8 shift_boot_id[16];
struct workqueue_struct *shift_wq;

unsigned int shift_deadline_scale = 1;
module_param_named(deadline_scale, shift_deadline_scale, uint, 0644);
MODULE_PARM_DESC(deadline_scale, "multiplies every deadline (for slow machines)");

static int __init shift_init(void)
{
	int err;

	get_random_bytes(shift_boot_id, sizeof(shift_boot_id));
	strscpy(shift_node, init_utsname()->nodename, sizeof(shift_node));

	shift_wq = alloc_workqueue("shift", WQ_UNBOUND | WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	if (!shift_wq)
		return -ENOMEM;
	err = shift_object_init();
	if (err)
		goto err_wq;
	err = shift_qp_init();
	if (err)
		goto err_object;
	err = shift_link_init();
	if (err)
		goto err_qp;
	err = shift_chardev_init();
	if (err)
		goto err_link;
	err = shift_device_init();
	if (err)
		goto err_chardev;
	err = shift_netlink_init();
	if (err)
		goto err_device;
	return 0;

err_device:
	shift_device_uninit();
err_chardev:
	shift_chardev_uninit();
err_link:
	shift_link_uninit();
err_qp:
	shift_qp_uninit();
err_object:
	shift_object_uninit();
err_wq:
	destroy_workqueue(shift_wq);
	return err;
}

/*
 * Every tracked object holds a reference to the module, so none is left here;
 * wrappers may still be running on untracked ones until device_uninit has
 * taken them out of the devices' ops and waited.
 */
static void __exit shift_exit(void)
{
	shift_netlink_uninit();
	shift_device_uninit();
	shift_chardev_uninit();
	shift_link_uninit();
	shift_inbox_uninit();
	destroy_workqueue(shift_wq);
	shift_qp_uninit();
	shift_object_uninit();
	/* QPs are freed by the second, which the first one begins */
	rcu_barrier();
	srcu_barrier(&shift_srcu);
}

module_init(shift_init);
module_exit(shift_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Transparent failover of RDMA queue pairs between NICs");
/* our client must be added after, and removed before, that of uverbs */
MODULE_SOFTDEP("pre: ib_uverbs");
