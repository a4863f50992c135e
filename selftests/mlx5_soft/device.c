// SPDX-License-Identifier: GPL-2.0
/*
 * The ib_device: attributes, ports and port events are those of the rxe device below.
 */
#include <linux/netdevice.h>
#include <linux/string.h>
#include <linux/version.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/mlx5-abi.h>
#include <rdma/uverbs_ioctl.h>
#include "mlx5_soft.h"

/* Programs know this one, and that it has BlueFlame: a ConnectX-5. */
#define MLS_VENDOR_ID	0x02c9
#define MLS_VENDOR_PART	4119

static int mls_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	*attr = to_mls_dev(ibdev)->lower->attrs;
	attr->vendor_id = MLS_VENDOR_ID;
	attr->vendor_part_id = MLS_VENDOR_PART;
	attr->device_cap_flags &= ~(IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B |
				    IB_DEVICE_SRQ_RESIZE);
	/* of users in the kernel; applications have no such requests */
	if (!mls_cm)
		attr->device_cap_flags &= ~IB_DEVICE_MEM_MGT_EXTENSIONS;
	/* it goes with rxe or the module, never by itself */
	attr->kernel_cap_flags = mls_pi ? IBK_INTEGRITY_HANDOVER : 0;
	attr->max_pi_fast_reg_page_list_len = mls_pi ? attr->max_fast_reg_page_list_len / 2 : 0;
	attr->max_mw = 0;
	attr->max_send_sge = MLS_MAX_SGE;
	attr->max_recv_sge = MLS_MAX_SGE;
	attr->max_srq_sge = 15;
	attr->max_qp_wr = MLS_MAX_WQ / 4;
	attr->max_srq_wr = MLS_MAX_WQ / 4;
	attr->max_cqe = MLS_MAX_CQE / 4;
	return 0;
}

static int mls_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct mls_dev *dev = to_mls_dev(ibdev);
	int err = ib_query_port(dev->lower, 1, attr);

	if (!err && READ_ONCE(dev->faults.port_down))
		attr->state = IB_PORT_DOWN;
	return err;
}

static int mls_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	return ib_query_pkey(to_mls_dev(ibdev)->lower, 1, index, pkey);
}

static int mls_port_immutable(struct ib_device *ibdev, u32 port,
			      struct ib_port_immutable *immutable)
{
	struct ib_port_attr attr;
	int err;

	err = ib_query_port(ibdev, port, &attr);
	if (err)
		return err;
	immutable->pkey_tbl_len = attr.pkey_tbl_len;
	immutable->gid_tbl_len = attr.gid_tbl_len;
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP | RDMA_CORE_CAP_AF_IB |
		RDMA_CORE_CAP_ETH_AH;
	/* else neither MADs nor connections: those are rxe's own */
	if (mls_cm) {
		immutable->core_cap_flags |= RDMA_CORE_CAP_IB_MAD | RDMA_CORE_CAP_IB_CM;
		immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	}
	return 0;
}

static enum rdma_link_layer mls_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static int mls_op_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			    struct uverbs_attr_bundle *attrs)
{
	return mls_create_cq(ibcq, attr, attrs ? &attrs->driver_udata : NULL);
}
#else
#define mls_op_create_cq mls_create_cq
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
static struct ib_mr *mls_op_reg_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
				       int fd, int access, struct ib_dmah *dmah,
				       struct uverbs_attr_bundle *attrs)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return mls_reg_user_mr_dmabuf(ibpd, offset, length, iova, fd, access);
}
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
static struct ib_mr *mls_op_reg_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
				       int fd, int access, struct uverbs_attr_bundle *attrs)
{
	return mls_reg_user_mr_dmabuf(ibpd, offset, length, iova, fd, access);
}
#else
static struct ib_mr *mls_op_reg_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
				       int fd, int access, struct ib_udata *udata)
{
	return mls_reg_user_mr_dmabuf(ibpd, offset, length, iova, fd, access);
}
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
/* As mlx5's driver has it: CQs of user space have an operation of their own. */
static int mls_op_create_kernel_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
				   struct uverbs_attr_bundle *attrs)
{
	return attrs ? -EINVAL : mls_op_create_cq(ibcq, attr, NULL);
}

static int mls_op_resize_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata)
{
	return mls_resize_cq(ibcq, min_t(unsigned int, cqe, MLS_MAX_CQE), udata);
}

static struct ib_mr *mls_op_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
					int access, struct ib_dmah *dmah,
					struct ib_udata *udata)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return mls_reg_user_mr(ibpd, start, length, iova, access, udata);
}
#endif

/* The end of an unregistration, or of a device that never was registered. */
static void mls_dealloc_driver(struct ib_device *ibdev)
{
	struct mls_dev *dev = to_mls_dev(ibdev);
	struct mls_slot *slot = dev->slot;

	mls_fault_uninit(dev);
	mls_engine_stop(dev);
	xa_destroy(&dev->mrs);
	xa_destroy(&dev->kernel_qps);
	mutex_destroy(&dev->lock);
	complete(&slot->gone);
}

static const struct ib_device_ops mls_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_MLX5,
	.uverbs_abi_ver = MLX5_IB_UVERBS_ABI_VERSION,
	.alloc_mr = mls_alloc_mr,
	.alloc_mr_integrity = mls_alloc_mr_integrity,
	.alloc_pd = mls_alloc_pd,
	.alloc_ucontext = mls_alloc_ucontext,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
	.create_cq = mls_op_create_kernel_cq,
	.create_user_cq = mls_op_create_cq,
	.reg_user_mr = mls_op_reg_user_mr,
	.resize_user_cq = mls_op_resize_cq,
#else
	.create_cq = mls_op_create_cq,
	.reg_user_mr = mls_reg_user_mr,
	.resize_cq = mls_resize_cq,
#endif
	.create_ah = mls_create_ah,
	.create_qp = mls_create_qp,
	.create_srq = mls_create_srq,
	.dealloc_driver = mls_dealloc_driver,
	.dealloc_pd = mls_dealloc_pd,
	.dealloc_ucontext = mls_dealloc_ucontext,
	.dereg_mr = mls_dereg_mr,
	.get_dma_mr = mls_get_dma_mr,
	.destroy_ah = mls_destroy_ah,
	.destroy_cq = mls_destroy_cq,
	.destroy_qp = mls_destroy_qp,
	.destroy_srq = mls_destroy_srq,
	.disassociate_ucontext = mls_disassociate_ucontext,
	.drain_rq = mls_drain_rq,
	.drain_sq = mls_drain_sq,
	.get_link_layer = mls_link_layer,
	.get_port_immutable = mls_port_immutable,
	.map_mr_sg = mls_map_mr_sg,
	.map_mr_sg_pi = mls_map_mr_sg_pi,
	.mmap = mls_mmap,
	.modify_qp = mls_modify_qp,
	.modify_srq = mls_modify_srq,
	.poll_cq = mls_poll_cq,
	.post_recv = mls_post_recv,
	.post_srq_recv = mls_post_srq_recv,
	.post_send = mls_post_send,
	.query_ah = mls_query_ah,
	.query_device = mls_query_device,
	.query_pkey = mls_query_pkey,
	.query_port = mls_query_port,
	.query_qp = mls_query_qp,
	.query_srq = mls_query_srq,
	.reg_user_mr_dmabuf = mls_op_reg_dmabuf,
	.req_notify_cq = mls_req_notify_cq,
	.rereg_user_mr = mls_rereg_user_mr,
	INIT_RDMA_OBJ_SIZE(ib_ah, mls_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, mls_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, mls_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, mls_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, mls_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, mls_ucontext, ibuc),
};

static void lower_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct mls_dev *dev = container_of(handler, struct mls_dev, lower_events);
	struct ib_event ours = { .device = &dev->ibdev, .event = event->event };

	if (event->event != IB_EVENT_PORT_ACTIVE && event->event != IB_EVENT_PORT_ERR)
		return;
	ours.element.port_num = 1;
	ib_dispatch_event(&ours);
}

/* The interface of rxe, held; its first GID is the only one who tells. */
static struct net_device *lower_netdev(struct ib_device *lower)
{
	const struct ib_gid_attr *attr;
	struct net_device *ndev;

	attr = rdma_get_gid_attr(lower, 1, 0);
	if (IS_ERR(attr))
		return ERR_CAST(attr);
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (!IS_ERR(ndev))
		dev_hold(ndev);
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
	return ndev;
}

static int register_on_netdev(struct mls_dev *dev)
{
	const char *below = dev_name(&dev->lower->dev);
	char name[IB_DEVICE_NAME_MAX];
	struct net_device *ndev;
	int err;

	ndev = lower_netdev(dev->lower);
	if (IS_ERR(ndev))
		return PTR_ERR(ndev);
	err = ib_device_set_netdev(&dev->ibdev, ndev, 1);
	/* from now on held by the device */
	dev->ndev = ndev;
	dev_put(ndev);
	if (err)
		return err;
	snprintf(name, sizeof(name), "mls%s", below + strcspn(below, "0123456789"));
	return ib_register_device(&dev->ibdev, name, mls_iommu ? dev->ibdev.dev.parent : NULL);
}

/**
 * mls_device_create() - put a device on an rxe device
 * @slot: the rxe device, which stays until this returns
 *
 * Return: 0 or -errno.
 */
int mls_device_create(struct mls_slot *slot)
{
	struct mls_nic *nic;
	struct mls_dev *dev;
	int err;

	dev = ib_alloc_device(mls_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	dev->slot = slot;
	dev->lower = slot->lower;
	mutex_init(&dev->lock);
	INIT_LIST_HEAD(&dev->qps);
	INIT_LIST_HEAD(&dev->cqs);
	INIT_LIST_HEAD(&dev->srqs);
	xa_init(&dev->mrs);
	xa_init(&dev->kernel_qps);
	INIT_LIST_HEAD(&dev->gsi.recvs);
	err = mls_nic_create(dev);
	if (err) {
		ib_dealloc_device(&dev->ibdev);
		return err;
	}
	nic = dev->nic;
	err = mls_engine_start(dev);
	if (err) {
		ib_dealloc_device(&dev->ibdev);
		mls_nic_destroy(nic);
		return err;
	}
	dev->ibdev.node_type = RDMA_NODE_IB_CA;
	dev->ibdev.phys_port_cnt = 1;
	dev->ibdev.num_comp_vectors = 1;
	dev->ibdev.node_guid = dev->lower->node_guid ^ cpu_to_be64(1);
	strscpy(dev->ibdev.node_desc, "mlx5_soft", sizeof(dev->ibdev.node_desc));
	ib_set_device_ops(&dev->ibdev, &mls_ops);
	if (mls_cm)
		mls_cm_take(dev);
	err = register_on_netdev(dev);
	if (err) {
		mls_cm_give_back(dev->lower);
		ib_dealloc_device(&dev->ibdev);
		reinit_completion(&slot->gone);
		mls_nic_destroy(nic);
		return err;
	}
	slot->dev = dev;
	mls_fault_init(dev);
	INIT_IB_EVENT_HANDLER(&dev->lower_events, dev->lower, lower_event);
	ib_register_event_handler(&dev->lower_events);
	return 0;
}

/**
 * mls_device_destroy() - remove the device of a slot, if it has one
 * @slot: the rxe device
 *
 * Applications lose their objects.  Unregistration takes the lock of a class that
 * the caller may hold for the rxe device: a worker of the core does it.
 */
void mls_device_destroy(struct mls_slot *slot)
{
	struct mls_dev *dev = slot->dev;
	struct mls_nic *nic;

	if (!dev)
		return;
	nic = dev->nic;
	slot->dev = NULL;
	ib_unregister_event_handler(&dev->lower_events);
	ib_unregister_device_queued(&dev->ibdev);
	wait_for_completion(&slot->gone);
	mls_cm_give_back(slot->lower);
	mls_nic_destroy(nic);
}
