// SPDX-License-Identifier: GPL-2.0
/*
 * A device that does not do what is assumed of an mlx5 NIC, on purpose: each bit of debugfs'
 * "breaks" is the number of an assumption in Documentation/internals/mlx5.md.  Only QPs of kernel
 * users are affected, and of their completions those whose wr_id is a number and no address.
 */
#include <linux/random.h>
#include "mlx5_soft.h"

bool mls_breaks(const struct ib_device *ibdev, unsigned int number)
{
	return READ_ONCE(to_mls_dev((struct ib_device *)ibdev)->faults.breaks) & BIT(number);
}

/* What a poll of a kernel user's CQ shows; the number of completions that are left. */
int mls_break_wc(const struct ib_device *ibdev, struct ib_wc *wc, int num)
{
	bool flushed;
	int i, n = 0;

	for (i = 0; i < num; i++) {
		if (wc[i].wr_id >= PAGE_SIZE) {
			wc[n++] = wc[i];
			continue;
		}
		flushed = wc[i].status == IB_WC_WR_FLUSH_ERR;
		/* 2: some requests are not flushed */
		if (flushed && wc[i].wr_id & 1 && mls_breaks(ibdev, 2))
			continue;
		/* 21: nobody is told that there is no receive */
		if (wc[i].status == IB_WC_RNR_RETRY_EXC_ERR && mls_breaks(ibdev, 21))
			wc[i].status = IB_WC_RETRY_EXC_ERR;
		/* 4: the first completion in error is a flush, too */
		if (wc[i].status == IB_WC_RETRY_EXC_ERR && mls_breaks(ibdev, 4))
			wc[i].status = IB_WC_WR_FLUSH_ERR;
		/* 11: the index of a completion is not that of its request */
		if (wc[i].status == IB_WC_SUCCESS && mls_breaks(ibdev, 11))
			wc[i].wr_id ^= 1;
		wc[n++] = wc[i];
	}
	return n;
}

/* The state that a QP says it has. */
enum ib_qp_state mls_break_state(const struct mls_qp *qp, enum ib_qp_state state)
{
	/* 4: a QP that broke by itself says that it works */
	if (state == IB_QPS_ERR && mls_breaks(qp->ibqp.device, 4))
		return IB_QPS_RTS;
	return state;
}

/* The PSN that a QP says it expects. */
u32 mls_break_psn(const struct mls_qp *qp, u32 psn)
{
	const struct ib_device *ibdev = qp->ibqp.device;

	/* 3: it is not final in ERR */
	if (qp->state == IB_QPS_ERR && mls_breaks(ibdev, 3))
		psn += get_random_u32() & 0xffff;
	/* 7: it is that of messages, not of packets */
	if (qp->state == IB_QPS_RTS && mls_breaks(ibdev, 7))
		psn--;
	return psn & 0xffffff;
}

/* 10: what was received is at another place. */
void mls_break_recv(const struct ib_device *ibdev, struct ib_sge *sge)
{
	if (sge->length <= PAGE_SIZE && mls_breaks(ibdev, 10))
		sge->addr++;
}

/* 18: a completion names another receive of its SRQ. */
u64 mls_break_srq_recv(const struct mls_srq *srq, u64 wr_id)
{
	return wr_id < PAGE_SIZE && mls_breaks(srq->ibsrq.device, 18) ? wr_id ^ 1 : wr_id;
}
