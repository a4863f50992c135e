// SPDX-License-Identifier: GPL-2.0
/*
 * rdma_shift: keeps RDMA traffic alive when a NIC, a cable or a switch port
 * dies.  Ordered init and its reverse, which show which part needs which.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/utsname.h>
#include "core/account.h"
#include "core/event.h"
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/reclaim.h"
#include "ctl/ctl.h"
#include "failover/failover.h"
#include "link/link.h"
#include "provider/provider.h"
#include "verbs/verbs.h"

static int __init shift_init(void)
{
	int err;

	shift_event_register(&shift_ctl_events);
	shift_provider_register(&shift_provider_rxe);
	shift_provider_register(&shift_provider_mlx5);
	get_random_bytes(shift_boot_id, sizeof(shift_boot_id));
	shift_reclaim_init();
	strscpy(shift_node, init_utsname()->nodename, sizeof(shift_node));

	shift_wq = alloc_workqueue("shift", WQ_UNBOUND | WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	if (!shift_wq)
		return -ENOMEM;
	err = shift_account_init();
	if (err)
		goto err_wq;
	err = shift_report_init();
	if (err)
		goto err_account;
	err = shift_link_init(&shift_receive_link_ops);
	if (err)
		goto err_report;
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
err_report:
	shift_report_uninit();
err_account:
	shift_account_uninit();
err_wq:
	destroy_workqueue(shift_wq);
	return err;
}

/*
 * Every tracked object holds a reference to the module, so none is left here.
 * Wrappers may still be running on untracked objects until shift_device_uninit() has
 * taken the wrappers out of the devices' ops and waited.
 */
static void __exit shift_exit(void)
{
	shift_netlink_uninit();
	shift_device_uninit();
	shift_chardev_uninit();
	shift_link_uninit();
	shift_pairing_uninit();
	shift_report_uninit();
	destroy_workqueue(shift_wq);
	shift_qp_uninit();
	/* for QPs that call_rcu() is about to free */
	rcu_barrier();
	shift_account_uninit();
}

module_init(shift_init);
module_exit(shift_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Transparent failover of RDMA queue pairs between NICs");
/* Our ib_client must be added after that of uverbs, and removed before it. */
MODULE_SOFTDEP("pre: ib_uverbs");
