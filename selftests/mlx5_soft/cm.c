// SPDX-License-Identifier: GPL-2.0
/*
 * Connections of users in the kernel, with the module parameter "cm".  rxe has QP 1, and its MADs.
 * Those of the connection manager are taken from there as they come in (process_mad), and given to
 * the receives of a QP 1 of ours; what is sent goes out by an ordinary QP of rxe's, which a peer's
 * QP 1 does not tell from another.  The rxe device says that it has no connections, so that RDMA CM,
 * if it is loaded after this, leaves addresses to the device on top.
 */
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <rdma/ib_mad.h>
#include "mlx5_soft.h"

#define GRH_SIZE	sizeof(struct ib_grh)

bool mls_cm;

/* Devices that take MADs, by the address of the rxe device, and their receives. */
static DEFINE_XARRAY(takers);
static DEFINE_SPINLOCK(takers_lock);

/* A MAD for the oldest receive; false: there is none. */
static bool gsi_receive(struct mls_dev *dev, const struct ib_wc *wc, const struct ib_grh *grh,
			const struct ib_mad *mad)
{
	struct mls_stashed *recv;
	struct mls_cq *cq;
	u64 wr_id;
	u8 *to;

	recv = list_first_entry_or_null(&dev->gsi.recvs, struct mls_stashed, entry);
	if (!recv || !dev->gsi.qp || recv->length < GRH_SIZE + IB_MGMT_MAD_SIZE)
		return false;
	to = (u8 *)(uintptr_t)recv->addr;
	memcpy(to, grh, GRH_SIZE);
	memcpy(to + GRH_SIZE, mad, IB_MGMT_MAD_SIZE);
	wr_id = recv->wc.wr_id;
	recv->wc = *wc;
	recv->wc.wr_id = wr_id;
	recv->wc.qp = dev->gsi.qp->lower;
	cq = to_mls_cq(dev->gsi.qp->ibqp.recv_cq);
	spin_lock(&cq->stash_lock);
	list_move_tail(&recv->entry, &cq->stash);
	spin_unlock(&cq->stash_lock);
	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	return true;
}

/* rxe's ib_mad has received a MAD. */
static int cm_process_mad(struct ib_device *lower, int flags, u32 port, const struct ib_wc *wc,
			  const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
			  size_t *out_size, u16 *out_pkey)
{
	int ret = IB_MAD_RESULT_SUCCESS;
	struct mls_dev *dev;
	unsigned long irq;

	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_CM)
		return ret;
	/* nobody sleeps here, which mls_cm_give_back() relies on */
	spin_lock_irqsave(&takers_lock, irq);
	dev = xa_load(&takers, (unsigned long)lower);
	/* without a receive it is lost, as on the wire */
	if (dev) {
		gsi_receive(dev, wc, grh, in);
		ret |= IB_MAD_RESULT_CONSUMED;
	}
	spin_unlock_irqrestore(&takers_lock, irq);
	return ret;
}

/* Connections by the address of the rxe device are ours, once RDMA CM is loaded. */
void mls_cm_take(struct mls_dev *dev)
{
	dev->lower->port_data[1].immutable.core_cap_flags &= ~RDMA_CORE_CAP_IB_CM;
	WRITE_ONCE(dev->lower->ops.process_mad, cm_process_mad);
}

/* And the rxe device's again. */
void mls_cm_give_back(struct ib_device *lower)
{
	if (lower->ops.process_mad != cm_process_mad)
		return;
	WRITE_ONCE(lower->ops.process_mad, NULL);
	lower->port_data[1].immutable.core_cap_flags |= RDMA_CORE_CAP_IB_CM;
	synchronize_rcu_tasks();
}

void mls_gsi_start(struct mls_qp *qp)
{
	struct mls_dev *dev = to_mls_dev(qp->ibqp.device);

	dev->gsi.qp = qp;
	xa_store(&takers, (unsigned long)dev->lower, dev, GFP_KERNEL);
}

void mls_gsi_stop(struct mls_qp *qp)
{
	struct mls_dev *dev = to_mls_dev(qp->ibqp.device);
	struct mls_stashed *recv, *next;
	LIST_HEAD(recvs);

	xa_erase(&takers, (unsigned long)dev->lower);
	spin_lock_irq(&takers_lock);
	dev->gsi.qp = NULL;
	list_splice_init(&dev->gsi.recvs, &recvs);
	spin_unlock_irq(&takers_lock);
	list_for_each_entry_safe(recv, next, &recvs, entry)
		kfree(recv);
}

int mls_gsi_post_recv(struct mls_qp *qp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad)
{
	struct mls_dev *dev = to_mls_dev(qp->ibqp.device);
	struct mls_stashed *recv;
	unsigned long flags;

	for (; wr; wr = wr->next) {
		recv = wr->num_sge == 1 ? kzalloc(sizeof(*recv), GFP_ATOMIC) : NULL;
		if (!recv) {
			*bad = wr;
			return -ENOMEM;
		}
		recv->wc.wr_id = wr->wr_id;
		recv->addr = mls_iommu_kva(&dev->ibdev, wr->sg_list->addr);
		recv->length = wr->sg_list->length;
		spin_lock_irqsave(&takers_lock, flags);
		list_add_tail(&recv->entry, &dev->gsi.recvs);
		spin_unlock_irqrestore(&takers_lock, flags);
	}
	return 0;
}

int mls_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct rdma_ah_attr attr = *init->ah_attr;
	struct mls_ah *ah = to_mls_ah(ibah);
	int err;

	if (udata)
		return -EOPNOTSUPP;
	err = mls_translate_gid(to_mls_dev(ibah->device), &attr);
	if (err)
		return err;
	ah->lower = rdma_create_ah(to_mls_pd(ibah->pd)->lower, &attr, init->flags);
	return PTR_ERR_OR_ZERO(ah->lower);
}

int mls_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return rdma_destroy_ah_user(to_mls_ah(ibah)->lower, flags, NULL);
}

int mls_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	return rdma_query_ah(to_mls_ah(ibah)->lower, attr);
}
