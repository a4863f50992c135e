// SPDX-License-Identifier: GPL-2.0
/* A QP is connected by numbers, without the RDMA CM. */
#include <linux/etherdevice.h>
#include <rdma/ib_cache.h>
#include "kernel_conn.h"

/**
 * kernel_conn_make - bring a QP from RESET to RTS
 * @qp: the QP
 * @gid_index: of its device's address
 * @conn: its peer
 *
 * Return: 0 or a negative errno.
 */
int kernel_conn_make(struct ib_qp *qp, unsigned int gid_index, const struct kernel_conn *conn)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE |
				   (conn->atomics ? IB_ACCESS_REMOTE_ATOMIC : 0),
	};
	const struct ib_gid_attr *gid;
	int err;

	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	gid = rdma_get_gid_attr(qp->device, 1, gid_index);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTR, .path_mtu = conn->mtu, .dest_qp_num = conn->qpn,
		.rq_psn = conn->rq_psn, .min_rnr_timer = 12,
		.max_dest_rd_atomic = conn->atomics ?: 1,
	};
	attr.ah_attr.type = rdma_ah_find_type(qp->device, 1);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_grh(&attr.ah_attr, (union ib_gid *)&conn->gid, 0, gid_index, 64, 0);
	ether_addr_copy(attr.ah_attr.roce.dmac, conn->mac);
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			   IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	rdma_put_gid_attr(gid);
	if (err)
		return err;
	attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTS, .timeout = conn->timeout, .retry_cnt = 6, .rnr_retry = 7,
		.sq_psn = conn->sq_psn, .max_rd_atomic = conn->atomics ?: 1,
	};
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}
