// SPDX-License-Identifier: GPL-2.0
/* Helpers over objects of the RDMA core. */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/sch_generic.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/uverbs_types.h>
#include <linux/interrupt.h>
#include <linux/irq_poll.h>
#include "core/ib.h"

/*
 * Is the interface of a GID, which is held, in the initial network namespace?  False also if the
 * address was removed.  @vlan: set to its VLAN, or SHIFT_VLAN_NONE.
 */
static bool gid_attr_is_ours(const struct ib_gid_attr *attr, u32 *vlan)
{
	u16 tag = SHIFT_VLAN_NONE;
	struct net_device *ndev;
	bool ours, stacked;

	rcu_read_lock();
	/* NULL: the address was removed */
	ndev = rcu_dereference(attr->ndev);
	/* in another namespace the same address means something else */
	ours = ndev && net_eq(dev_net(ndev), &init_net);
	/* one of a VLAN, or on top of such a one, has others below it; few have */
	stacked = ndev && !list_empty(&ndev->adj_list.lower);
	rcu_read_unlock();
	if (stacked && rdma_read_gid_l2_fields(attr, &tag, NULL))
		tag = SHIFT_VLAN_NONE;
	*vlan = tag;
	return ours;
}

/* Is it a RoCE v2 GID in the initial network namespace, and of that VLAN? */
static bool gid_fits(const struct ib_gid_attr *attr, u32 vlan)
{
	u32 its;

	return attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
	       gid_attr_is_ours(attr, &its) && (vlan == SHIFT_VLAN_ANY || its == vlan);
}

/**
 * shift_gid_find - find a GID of a device in the initial network namespace
 * @ibdev: the device; its port 1 is looked at.
 * @gid: the GID; interfaces of other namespaces may have the same one.
 * @vlan: its VLAN, SHIFT_VLAN_NONE or SHIFT_VLAN_ANY.
 *
 * Context: any that may take a spinlock.
 * Return: the GID, for rdma_put_gid_attr(), or ERR_PTR.
 */
const struct ib_gid_attr *shift_gid_find(struct ib_device *ibdev, const union ib_gid *gid,
					 u32 vlan)
{
	const struct ib_gid_attr *attr;
	int i;

	/* nearly always it is the first one of that value */
	attr = rdma_find_gid(ibdev, gid, IB_GID_TYPE_ROCE_UDP_ENCAP, NULL);
	if (IS_ERR(attr) || gid_fits(attr, vlan))
		return attr;
	rdma_put_gid_attr(attr);
	for (i = 0; i < ibdev->port_data[1].immutable.gid_tbl_len; i++) {
		attr = rdma_get_gid_attr(ibdev, 1, i);
		if (IS_ERR(attr))
			continue;
		if (!memcmp(&attr->gid, gid, sizeof(*gid)) && gid_fits(attr, vlan))
			return attr;
		rdma_put_gid_attr(attr);
	}
	return ERR_PTR(-ENOENT);
}

/**
 * shift_gid_is_there - is there a GID at a place of the table of port 1?
 * @ibdev: the device.
 * @index: the place.
 *
 * The place of one that has gone, and that a QP still has, is not given to another one.
 *
 * Context: any that may take a spinlock.
 */
bool shift_gid_is_there(struct ib_device *ibdev, u16 index)
{
	const struct ib_gid_attr *attr = rdma_get_gid_attr(ibdev, 1, index);

	if (IS_ERR(attr))
		return false;
	rdma_put_gid_attr(attr);
	return true;
}

/**
 * shift_gid_is_ours - is the interface of a GID in the initial network namespace?
 * @ibdev: the device; its port 1 is looked at.
 * @index: of the GID in the port's table.
 * @gid: the GID.
 * @vlan: set to its VLAN, or SHIFT_VLAN_NONE.
 *
 * Context: any that may take a spinlock.
 * Return: false if it is in another one, or if the address was removed.
 */
bool shift_gid_is_ours(struct ib_device *ibdev, int index, const union ib_gid *gid, u32 *vlan)
{
	const struct ib_gid_attr *attr = rdma_get_gid_attr(ibdev, 1, index);
	bool ours;

	*vlan = SHIFT_VLAN_NONE;
	if (IS_ERR(attr))
		return false;
	ours = !memcmp(&attr->gid, gid, sizeof(*gid)) && gid_attr_is_ours(attr, vlan);
	rdma_put_gid_attr(attr);
	return ours;
}

/**
 * shift_dev_gid - the address of a device on a path, in the initial network namespace
 * @ibdev: the device; its port 1 is looked at.
 * @vlan: its VLAN, SHIFT_VLAN_NONE or SHIFT_VLAN_ANY.
 * @gid: filled on success.
 *
 * Context: process context.
 * Return: 0, -ENOENT if it has no RoCE v2 GID of a global address there.
 */
int shift_dev_gid(struct ib_device *ibdev, u32 vlan, union ib_gid *gid)
{
	const struct ib_gid_attr *attr;
	bool found = false;
	int i, len;

	len = ibdev->port_data[1].immutable.gid_tbl_len;
	for (i = 0; i < len; i++) {
		attr = rdma_get_gid_attr(ibdev, 1, i);
		if (IS_ERR(attr))
			continue;
		if (gid_fits(attr, vlan)) {
			bool v4 = ipv6_addr_v4mapped((struct in6_addr *)&attr->gid);
			bool ll = ipv6_addr_type((struct in6_addr *)&attr->gid) &
				  IPV6_ADDR_LINKLOCAL;

			if (v4 || (!found && !ll)) {
				*gid = attr->gid;
				found = true;
			}
			if (v4) {
				rdma_put_gid_attr(attr);
				break;
			}
		}
		rdma_put_gid_attr(attr);
	}
	return found ? 0 : -ENOENT;
}

/* The network interface that a GID belongs to, held, or NULL.  Any that may take a spinlock. */
static struct net_device *gid_netdev(struct ib_device *ibdev, const union ib_gid *gid)
{
	const struct ib_gid_attr *attr;
	struct net_device *ndev;

	attr = shift_gid_find(ibdev, gid, SHIFT_VLAN_ANY);
	if (IS_ERR(attr))
		return NULL;
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (IS_ERR(ndev))
		ndev = NULL;
	dev_hold(ndev);
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
	return ndev;
}

/**
 * shift_gid_has_carrier - does the interface that a GID belongs to have a carrier?
 * @ibdev: the device.
 * @gid: one of its GIDs.
 *
 * RDMA drivers learn of a lost carrier up to a second later; the netdev knows at once.  A carrier
 * that is back is of use when the netdev's transmit queues work again.
 *
 * Context: any that may take a spinlock.
 */
bool shift_gid_has_carrier(struct ib_device *ibdev, const union ib_gid *gid)
{
	struct net_device *ndev = gid_netdev(ibdev, gid);
	bool ok = ndev && netif_running(ndev) && netif_carrier_ok(ndev) && !qdisc_tx_is_noop(ndev);

	dev_put(ndev);
	return ok;
}

/**
 * shift_port_is_active - is port 1 of a device active?
 * @ibdev: the device.
 * @ask: the driver, too.  rxe of 6.12 answers under rtnl_lock, where others wait for reclaim: not
 *	for a QP that this may wait for.
 *
 * Without the driver it is what the RDMA core has noted at the port's last event, or when the
 * device came.
 *
 * Context: any that may take a spinlock; process context if the driver is asked, and it may sleep.
 */
bool shift_port_is_active(struct ib_device *ibdev, bool ask)
{
	enum ib_port_state state;
	struct ib_port_attr attr;

	if (ask)
		return !ib_query_port(ibdev, 1, &attr) && attr.state == IB_PORT_ACTIVE;
	return !ib_get_cached_port_state(ibdev, 1, &state) && state == IB_PORT_ACTIVE;
}

/**
 * shift_gid_mtu - the MTU of the interface that a GID belongs to
 * @ibdev: the device.
 * @gid: one of its GIDs.
 *
 * Context: any that may take a spinlock.
 * Return: bytes; 0: there is no such interface.
 */
u32 shift_gid_mtu(struct ib_device *ibdev, const union ib_gid *gid)
{
	struct net_device *ndev = gid_netdev(ibdev, gid);
	u32 mtu = ndev ? READ_ONCE(ndev->mtu) : 0;

	dev_put(ndev);
	return mtu;
}

/**
 * shift_gid_carries - can packets of a path MTU be sent from a GID?
 * @ibdev: the device; its port 1 is looked at.
 * @gid: one of its GIDs.
 * @mtu: path MTU, bytes.
 * @ask: the driver, too.  rxe of 6.12 answers under rtnl_lock, where others wait for reclaim: not
 *	for a QP that this may wait for.
 *
 * The port's active MTU need not be that of the GID's interface, which may be a VLAN.
 *
 * Context: process context; may sleep on the device if it is asked.
 * Return: false if not; true if it can, or if that cannot be told.
 */
bool shift_gid_carries(struct ib_device *ibdev, const union ib_gid *gid, u32 mtu, bool ask)
{
	u32 netdev = shift_gid_mtu(ibdev, gid);
	struct ib_port_attr attr;

	if (netdev && ib_mtu_enum_to_int(iboe_get_mtu(netdev)) < (int)mtu)
		return false;
	return !ask || ib_query_port(ibdev, 1, &attr) ||
	       ib_mtu_enum_to_int(attr.active_mtu) >= (int)mtu;
}

/**
 * shift_qp_stop - bring a kernel-owned QP to ERR, and wait until nothing is received any more
 * @qp: any.
 *
 * This comes before the RESET of a QP that may be receiving: the RESET and the responder of rxe of
 * 6.1 both drop a packet's reference to it.  Drivers receive under RCU.
 *
 * Context: process context; sleeps.
 * Return: 0 or a negative errno.
 */
int shift_qp_stop(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	int err = ib_modify_qp(qp, &attr, IB_QP_STATE);

	if (!err)
		synchronize_rcu_expedited();
	return err;
}

/**
 * shift_qp_drain - drop packets that reached a QP during its RESET, before it is destroyed
 * @qp: in RESET.
 * @ops: of its device; the driver's own for an application's QP.
 *
 * rxe may queue a packet that it has checked just before the RESET, and then never processes
 * it: on 6.12 the destruction of the QP waits 50 s for that packet.  rxe receives under RCU, so
 * that a second RESET after a grace period drops the packet.
 *
 * Context: process context; sleeps.
 */
void shift_qp_drain(struct ib_qp *qp, const struct ib_device_ops *ops)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	synchronize_rcu_expedited();
	ops->modify_qp(qp, &attr, IB_QP_STATE, NULL);
}

/**
 * shift_qp_quiet - RESET a kernel-owned QP before it is destroyed
 * @qp: not posted to any more.
 *
 * rxe of 6.1 crashes if a QP is destroyed that still sends or receives.
 *
 * Context: process context; sleeps.
 */
void shift_qp_quiet(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	ib_modify_qp(qp, &attr, IB_QP_STATE);
	shift_qp_drain(qp, &qp->device->ops);
}

/**
 * shift_cq_free - free a CQ of IB_POLL_SOFTIRQ that may have had a completion just now
 * @cq: its QPs are destroyed.
 *
 * ib_free_cq() waits only until the CQ's handler is not scheduled any more, and the handler arms
 * the CQ once more after that.
 *
 * Context: process context; sleeps.
 */
void shift_cq_free(struct ib_cq *cq)
{
	irq_poll_disable(&cq->iop);
	/* the handler runs in a softirq */
	synchronize_rcu_expedited();
	irq_poll_enable(&cq->iop);
	ib_free_cq(cq);
}

/**
 * shift_qp_connect_self - connect a kernel-owned QP to itself
 * @qp: in RESET.
 * @own: an address of its device.
 * @vlan: as shift_gid_find().
 * @mtu: path MTU.
 *
 * It retries nothing: neither what is not answered, nor what finds no receive.
 *
 * Context: process context; sleeps.
 * Return: 0 or a negative errno.
 */
int shift_qp_connect_self(struct ib_qp *qp, const union ib_gid *own, u32 vlan, enum ib_mtu mtu)
{
	const struct ib_gid_attr *gid;
	struct ib_qp_attr *attr;
	union ib_gid remote = *own;
	int err;

	gid = shift_gid_find(qp->device, own, vlan);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	if (!attr) {
		rdma_put_gid_attr(gid);
		return -ENOMEM;
	}
	attr->qp_state = IB_QPS_INIT;
	attr->port_num = 1;
	attr->path_mtu = mtu;
	attr->dest_qp_num = qp->qp_num;
	attr->ah_attr.type = rdma_ah_find_type(qp->device, 1);
	rdma_ah_set_port_num(&attr->ah_attr, 1);
	if (attr->ah_attr.type == RDMA_AH_ATTR_TYPE_ROCE)
		rdma_read_gid_l2_fields(gid, NULL, attr->ah_attr.roce.dmac);
	rdma_move_grh_sgid_attr(&attr->ah_attr, &remote, 0, 1, 0, gid);
	err = ib_modify_qp(qp, attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
				     IB_QP_ACCESS_FLAGS);
	attr->qp_state = IB_QPS_RTR;
	if (!err)
		err = ib_modify_qp(qp, attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
					     IB_QP_DEST_QPN | IB_QP_RQ_PSN |
					     IB_QP_MAX_DEST_RD_ATOMIC |
					     IB_QP_MIN_RNR_TIMER);
	attr->qp_state = IB_QPS_RTS;
	if (!err)
		err = ib_modify_qp(qp, attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
					     IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
					     IB_QP_MAX_QP_RD_ATOMIC);
	rdma_destroy_ah_attr(&attr->ah_attr);
	kfree(attr);
	return err;
}
