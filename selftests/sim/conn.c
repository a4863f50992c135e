// SPDX-License-Identifier: GPL-2.0
/* Queue pairs of links: how they break. */
#include "qp.h"

void sim_qp_carries(struct ib_qp *ib)
{
	to_qp(ib)->carries = true;
}

static void breaks(struct sim_qp *qp, void *arg)
{
	const int *what = arg;

	if (!qp->carries || qp->dev->net != what[0])
		return;
	if (what[1] < 0)
		qp->mute = true;
	else if (qp->dev->end == what[1])
		sim_qp_broken(qp, IB_WC_LOC_QP_OP_ERR);
}

void sim_conns_break(int net, int end)
{
	sim_qp_each(breaks, (int[]) { net, end });
}

static void is_mute(struct sim_qp *qp, void *arg)
{
	bool *at = arg;

	if (qp->mute && qp->state == IB_QPS_RTS)
		at[qp->dev->end] = true;
}

bool sim_conns_mute(int end)
{
	bool at[SIM_ENDS] = {};

	sim_qp_each(is_mute, at);
	return at[end];
}
