/* SPDX-License-Identifier: GPL-2.0 */
/* A QP of the user in the kernel gets its peer: kernel_conn.c. */
#ifndef KERNEL_CONN_H
#define KERNEL_CONN_H

#include <linux/if_ether.h>
#include <rdma/ib_verbs.h>

/* Where a QP is to be connected to; the device and its address are the QP's own. */
struct kernel_conn {
	union ib_gid gid;
	u8 mac[ETH_ALEN];
	u32 qpn;
	u32 sq_psn, rq_psn;
	enum ib_mtu mtu;
	u8 timeout;		/* as in struct ib_qp_attr */
	u8 atomics;		/* that may be under way; 0: none are allowed */
};

int kernel_conn_make(struct ib_qp *qp, unsigned int gid_index, const struct kernel_conn *conn);

#endif /* KERNEL_CONN_H */
