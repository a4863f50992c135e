// SPDX-License-Identifier: GPL-2.0
/*
 * An RDMA device on which nothing can be made, of a driver and with ports as asked for: odd0.
 *
 *	insmod odd_nic.ko driver=2 ports=1
 */
#include <linux/module.h>
#include <rdma/ib_verbs.h>

static unsigned int driver;
module_param(driver, uint, 0444);
MODULE_PARM_DESC(driver, "enum rdma_driver_id");

static unsigned int ports = 1;
module_param(ports, uint, 0444);
MODULE_PARM_DESC(ports, "number of ports");

static struct odd_nic {
	struct ib_device ibdev;
} *nic;

static int odd_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	memset(attr, 0, sizeof(*attr));
	return 0;
}

static int odd_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	attr->state = IB_PORT_DOWN;
	attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_1024;
	attr->active_mtu = IB_MTU_1024;
	attr->active_width = IB_WIDTH_1X;
	attr->active_speed = IB_SPEED_SDR;
	attr->gid_tbl_len = 16;
	return 0;
}

static int odd_port_immutable(struct ib_device *ibdev, u32 port,
			      struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = 16;
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP | RDMA_CORE_CAP_ETH_AH;
	return 0;
}

static enum rdma_link_layer odd_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int odd_refuses(void)
{
	return -EOPNOTSUPP;
}

/*
 * Modules of the kernel are told only of devices that have all of these.  Nobody gets beyond a PD,
 * so that the other arguments and results of the rest do not matter.
 */
#define REFUSED	((void *)odd_refuses)

static struct ib_device_ops odd_ops = {
	.owner = THIS_MODULE,
	.query_device = odd_query_device,
	.query_port = odd_query_port,
	.get_port_immutable = odd_port_immutable,
	.get_link_layer = odd_link_layer,
	.alloc_pd = REFUSED,
	.dealloc_pd = REFUSED,
	.create_qp = REFUSED,
	.modify_qp = REFUSED,
	.destroy_qp = REFUSED,
	.post_send = REFUSED,
	.post_recv = REFUSED,
	.create_cq = REFUSED,
	.destroy_cq = REFUSED,
	.poll_cq = REFUSED,
	.req_notify_cq = REFUSED,
	.get_dma_mr = REFUSED,
	.reg_user_mr = REFUSED,
	.dereg_mr = REFUSED,
	.size_ib_pd = sizeof(struct ib_pd),
};

static int __init odd_nic_init(void)
{
	int err;

	nic = ib_alloc_device(odd_nic, ibdev);
	if (!nic)
		return -ENOMEM;
	nic->ibdev.node_type = RDMA_NODE_IB_CA;
	nic->ibdev.phys_port_cnt = ports;
	nic->ibdev.num_comp_vectors = 1;
	nic->ibdev.node_guid = cpu_to_be64(0x0dd);
	odd_ops.driver_id = driver;
	ib_set_device_ops(&nic->ibdev, &odd_ops);
	err = ib_register_device(&nic->ibdev, "odd0", NULL);
	if (err)
		ib_dealloc_device(&nic->ibdev);
	return err;
}

static void __exit odd_nic_exit(void)
{
	ib_unregister_device(&nic->ibdev);
	ib_dealloc_device(&nic->ibdev);
}

module_init(odd_nic_init);
module_exit(odd_nic_exit);
MODULE_DESCRIPTION("An RDMA device that cannot be paired, for tests of rdma_shift");
MODULE_LICENSE("GPL");
