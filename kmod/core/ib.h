/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers over objects of the RDMA core. */
#ifndef SHIFT_CORE_IB_H
#define SHIFT_CORE_IB_H

#include <rdma/ib_verbs.h>

/* ib.c */
#define SHIFT_VLAN_NONE	0xffff	/* as in the RDMA core */
#define SHIFT_VLAN_ANY	0x10000

bool shift_gid_is_ours(struct ib_device *ibdev, int index, const union ib_gid *gid, u32 *vlan);
bool shift_gid_is_there(struct ib_device *ibdev, u16 index);
const struct ib_gid_attr *shift_gid_find(struct ib_device *ibdev, const union ib_gid *gid,
					 u32 vlan);
/* first usable GID of port 1: RoCE v2, IPv4-mapped before global IPv6 */
int shift_dev_gid(struct ib_device *ibdev, u32 vlan, union ib_gid *gid);
bool shift_gid_has_carrier(struct ib_device *ibdev, const union ib_gid *gid);
bool shift_port_is_active(struct ib_device *ibdev, bool ask);
u32 shift_gid_mtu(struct ib_device *ibdev, const union ib_gid *gid);
bool shift_gid_carries(struct ib_device *ibdev, const union ib_gid *gid, u32 mtu, bool ask);
int shift_qp_stop(struct ib_qp *qp);			/* no lock needed */
void shift_qp_drain(struct ib_qp *qp, const struct ib_device_ops *ops);
void shift_qp_quiet(struct ib_qp *qp);			/* no lock needed */
void shift_cq_free(struct ib_cq *cq);
int shift_qp_connect_self(struct ib_qp *qp, const union ib_gid *own, u32 vlan, enum ib_mtu mtu);

#endif /* SHIFT_CORE_IB_H */
