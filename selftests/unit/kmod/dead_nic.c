// SPDX-License-Identifier: GPL-2.0
/*
 * Makes a soft-RoCE device as good as dead to its host: what its driver is asked about
 * a QP ends in an error, though packets may still come and go.
 *
 *	insmod dead_nic.ko dev=rxe0 [reset=1]
 *
 * With reset=1 it refuses to bring a QP to RESET, too.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <rdma/ib_verbs.h>

static char *dev = "rxe0";
module_param(dev, charp, 0444);
MODULE_PARM_DESC(dev, "the device");

static bool reset;
module_param(reset, bool, 0444);
MODULE_PARM_DESC(reset, "refuse RESET");

static unsigned int refused;
module_param(refused, uint, 0444);
MODULE_PARM_DESC(refused, "requests refused so far");

static bool is_dead(const struct ib_qp *qp)
{
	return !strcmp(dev_name(&qp->device->dev), dev);
}

/* Non-zero: the end of this call is not of interest. */
static int query_begins(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return !is_dead((struct ib_qp *)regs_get_kernel_argument(regs, 0));
}

static int query_ends(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	refused++;
	regs_set_return_value(regs, -EIO);
	return 0;
}

static struct kretprobe query = {
	.kp.symbol_name = "rxe_query_qp",
	.entry_handler = query_begins,
	.handler = query_ends,
	.maxactive = 64,
};

/* An attribute that no driver knows: it refuses before it does anything. */
static int modify_begins(struct kprobe *p, struct pt_regs *regs)
{
	const struct ib_qp_attr *attr = (void *)regs_get_kernel_argument(regs, 1);

	if (reset && is_dead((struct ib_qp *)regs_get_kernel_argument(regs, 0)) &&
	    regs->dx & IB_QP_STATE && attr->qp_state == IB_QPS_RESET) {
		refused++;
		regs->dx |= BIT(31);
	}
	return 0;
}

static struct kprobe modify = {
	.symbol_name = "rxe_modify_qp",
	.pre_handler = modify_begins,
};

static int __init dead_nic_init(void)
{
	int err = register_kretprobe(&query);

	if (err)
		return err;
	err = register_kprobe(&modify);
	if (err)
		unregister_kretprobe(&query);
	return err;
}

static void __exit dead_nic_exit(void)
{
	unregister_kprobe(&modify);
	unregister_kretprobe(&query);
}

module_init(dead_nic_init);
module_exit(dead_nic_exit);
MODULE_DESCRIPTION("A NIC that does not answer, for tests of rdma_shift");
MODULE_LICENSE("GPL");
