// SPDX-License-Identifier: GPL-2.0
/*
 * What the device has in the ring of an SRQ is taken out by a QP of the application's that is about
 * to be connected.  A QP of the kernel's sends it messages of no bytes, through the device's own
 * port, until one finds no receive.  The completions are in the application's CQ, and its provider
 * shows none of them.  See Documentation/internals/srq.md.
 */
#include <linux/ktime.h>
#include <linux/slab.h>
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "provider/mlx5/mlx5.h"
#include "provider/mlx5/rig.h"
#include "provider/provider.h"

#define DRAIN_MS	1000	/* for all messages of one call, scaled */

/* Send up to @most messages.  0: one has found no receive; -EAGAIN: all have found one. */
static int drain(struct shift_rig *rig, u32 most)
{
	struct shift_rig_end *from = &rig->end[0];
	u64 end = shift_from_now(DRAIN_MS);
	u32 i, n;
	int err;

	err = shift_rig_connect(rig);
	while (!err && most) {
		n = min_t(u32, most, SHIFT_RIG_DEPTH);
		shift_rig_part(rig, 0);
		for (i = 0; i < n && !err; i++)
			err = shift_rig_send(rig, 0, 0, 0, true);
		if (err)
			return err;
		if (!shift_rig_wait(rig, 0, n, 0, DRAIN_MS))
			return -ETIMEDOUT;
		if (from->rnr)
			return 0;
		for (i = 0; i < n; i++)
			if (from->sends.seen[i].status != SHIFT_TRIAL_OK)
				return -EIO;
		most -= n;
		if (ktime_get_ns() > end)
			break;
	}
	return err ?: -EAGAIN;
}

/* Back to INIT, with what the application has set there. */
static int qp_init_again(struct shift_qp *sqp, struct ib_qp_attr *attr)
{
	int err = shift_fence_stop(sqp, IB_QPS_RESET);

	attr->qp_state = IB_QPS_INIT;
	attr->qp_access_flags = sqp->app.attr.qp_access_flags;
	return err ?: sqp->sdev->saved.modify_qp(sqp->qp, attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
						 IB_QP_PORT | IB_QP_ACCESS_FLAGS, NULL);
}

static int drain_by(struct shift_qp *sqp, u32 most)
{
	struct shift_rig *rig;
	int err;

	/* its own attributes are in the way */
	err = shift_fence_stop(sqp, IB_QPS_RESET);
	if (err)
		return err;
	rig = shift_rig_borrow(sqp->qp, &sqp->sdev->saved);
	if (IS_ERR(rig))
		return PTR_ERR(rig);
	err = drain(rig, most);
	/* nothing is sent any more before the application's QP is reset */
	shift_rig_free(rig);
	return err;
}

/**
 * shift_mlx5_drain - let a QP take what the device has in the ring of its SRQ
 * @sqp: the QP, locked, in INIT; nothing else draws from the ring.
 *
 * Context: process context; sleeps, for seconds at most (scaled).
 * Return: 0: the device has nothing any more; -EAGAIN: there was no room in the QP's CQ for more
 * completions; -ENETDOWN: the port is down; -EBUSY: the CQ is full; else a negative errno.  The QP
 * is in INIT again.
 */
int shift_mlx5_drain(struct shift_qp *sqp)
{
	struct ib_qp_init_attr init = {};
	struct ib_port_attr port;
	struct ib_qp_attr *attr;
	u32 room;
	int err;

	lockdep_assert_held(&sqp->lock);
	if (ib_query_port(sqp->qp->device, 1, &port) || port.state != IB_PORT_ACTIVE)
		return -ENETDOWN;
	attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	if (!attr)
		return -ENOMEM;
	room = shift_mlx5_reserve_part(sqp);
	err = room ? 0 : -EBUSY;
	if (!err)
		err = sqp->sdev->saved.query_qp(sqp->qp, attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
						IB_QP_PORT, &init);
	if (!err) {
		err = drain_by(sqp, room);
		if (qp_init_again(sqp, attr))
			err = -EIO;
	}
	if (room)
		shift_mlx5_unreserve(sqp->rcq, room);
	kfree(attr);
	return err;
}
