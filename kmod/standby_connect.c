// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel-owned QP is connected, and changed as the application changes its own.
 * Everything here is process context, under sqp->lock, and may sleep on the device.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/rdma_cm.h>
#include "standby.h"

#define INIT_MASK	(IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS)
#define RTR_MASK	(IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | \
			 IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER)
#define RTS_MASK	(IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | \
			 IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC)
#define CHANGES		(IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER)	/* at RTS */
#define SHIFT_ACK_SLOWEST	20	/* 4.3 s */

/**
 * shift_start_psn - first PSN of a sender on a path armed for @epoch
 * @cookie: the sender's.
 * @epoch: the switch.
 *
 * Both sides can tell it, so that a responder is ready before it says so; each
 * epoch is 2^16 further on, so that packets of an older one look like
 * duplicates.
 */
u32 shift_start_psn(u64 cookie, u32 epoch)
{
	return shift_psn_add(hash_64(cookie, 24), (epoch & 0xff) << 16);
}

/* A QP of the kernel's; @b NULL: the application's own, past our own wrapper. */
static int change(struct shift_qp *sqp, struct shift_standby *b, struct ib_qp_attr *attr, int mask)
{
	return b ? ib_modify_qp(b->qp, attr, mask) :
		   sqp->sdev->saved.modify_qp(sqp->qp, attr, mask, NULL);
}

/* Its device, and both ends' addresses on its path. */
static int to_rtr(struct shift_qp *sqp, struct shift_standby *b, u32 qpn, u32 epoch,
		  struct ib_qp_attr *attr)
{
	bool home = !b || b->path == SHIFT_PATH_HOME;
	union ib_gid remote = home ? sqp->dgid : sqp->backup_dgid;
	struct ib_device *ibdev = b ? b->qp->device : sqp->qp->device;
	struct shift_link *link = sqp->link[!home];
	const struct ib_gid_attr *gid;
	int err;

	/* by value: indices change when a port goes down and up */
	gid = rdma_find_gid(ibdev, home ? &sqp->sgid : &sqp->backup_sgid,
			    IB_GID_TYPE_ROCE_UDP_ENCAP, NULL);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IB_QPS_RTR;
	attr->path_mtu = sqp->app.path_mtu;
	attr->dest_qp_num = qpn;
	attr->rq_psn = shift_start_psn(sqp->peer_cookie, epoch);
	attr->max_dest_rd_atomic = sqp->app.max_dest_rd_atomic;
	attr->min_rnr_timer = sqp->app.min_rnr_timer;
	attr->ah_attr.type = rdma_ah_find_type(ibdev, 1);
	rdma_ah_set_port_num(&attr->ah_attr, 1);
	rdma_ah_set_sl(&attr->ah_attr, sqp->app.ah_attr.sl);
	rdma_move_grh_sgid_attr(&attr->ah_attr, &remote, 0,
				max_t(u8, sqp->app.ah_attr.grh.hop_limit, 64),
				sqp->app.ah_attr.grh.traffic_class, gid);
	if (attr->ah_attr.type == RDMA_AH_ATTR_TYPE_ROCE && link)
		shift_link_dmac(link, attr->ah_attr.roce.dmac);
	err = change(sqp, b, attr, RTR_MASK);
	rdma_destroy_ah_attr(&attr->ah_attr);
	return err;
}

/*
 * How long the NIC waits for an ACK (4.096 us << n, 0: for ever): as on the application's QP.  A
 * machine so slow that deadlines are multiplied has late ACKs, too, and rxe does not survive
 * retries of what was not lost; up to 4 s are waited there.
 */
static u8 ack_timeout(const struct shift_qp *sqp)
{
	u8 slow = order_base_2(max(READ_ONCE(shift_deadline_scale), 1u));
	u8 timeout = sqp->app.timeout;

	return timeout ? max_t(u8, timeout, min_t(u8, timeout + slow, SHIFT_ACK_SLOWEST)) : 0;
}

static int to_rts(struct shift_qp *sqp, struct shift_standby *b, u32 epoch,
		  struct ib_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IB_QPS_RTS;
	attr->timeout = b ? ack_timeout(sqp) : sqp->app.timeout;
	attr->retry_cnt = sqp->app.retry_cnt;
	/* without end: the peer's receives are being moved too */
	attr->rnr_retry = b ? 7 : sqp->app.rnr_retry;
	attr->sq_psn = shift_start_psn(sqp->cookie, epoch);
	attr->max_rd_atomic = sqp->app.max_rd_atomic;
	return change(sqp, b, attr, RTS_MASK);
}

static int standby_to_rts(struct shift_standby *b, u32 epoch, struct ib_qp_attr *attr)
{
	struct shift_qp *sqp = b->sqp;
	int err = to_rts(sqp, b, epoch, attr);

	spin_lock_bh(&sqp->ledger_lock);
	b->sends = !err;
	spin_unlock_bh(&sqp->ledger_lock);
	return err;
}

static int to_init(struct shift_qp *sqp, struct shift_standby *b, struct ib_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IB_QPS_INIT;
	attr->port_num = 1;
	attr->qp_access_flags = sqp->app.qp_access_flags;
	return change(sqp, b, attr, INIT_MASK);
}

/* As far as the application has connected its own. */
static int connect(struct shift_qp *sqp, struct shift_standby *b, u32 epoch, u32 qpn)
{
	struct ib_qp_attr *attr;
	int err;

	lockdep_assert_held(&sqp->lock);
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	if (!attr)
		return -ENOMEM;
	err = to_init(sqp, b, attr);
	if (!err)
		err = to_rtr(sqp, b, qpn, epoch, attr);
	/* one that has not said how long it waits for ACKs sends nothing yet */
	if (!err && sqp->app_state != IB_QPS_RTR)
		err = b ? standby_to_rts(b, epoch, attr) : to_rts(sqp, NULL, epoch, attr);
	kfree(attr);
	return err;
}

/**
 * shift_standby_connect - to the peer's, as far as the application has connected its own
 * @b: a spare one.
 * @epoch: the switch that was agreed on.
 * @qpn: the peer's QP.
 *
 * Return: 0 or a negative errno.
 */
int shift_standby_connect(struct shift_standby *b, u32 epoch, u32 qpn)
{
	return connect(b->sqp, b, epoch, qpn);
}

/**
 * shift_own_connect - the application's own QP, which is in RESET, to the peer's own
 * @sqp: the QP, that shift_own_arm() has armed.
 *
 * Return: 0 or a negative errno; then it is in RESET again.
 */
int shift_own_connect(struct shift_qp *sqp)
{
	struct ib_qp_attr reset = { .qp_state = IB_QPS_RESET };
	int err = connect(sqp, NULL, sqp->armed[0].epoch, sqp->own_peer_qpn);

	if (err)
		change(sqp, NULL, &reset, IB_QP_STATE);
	return err;
}

/**
 * shift_standby_modify - the application has changed its QP, which is away, at RTS
 * @sqp: the QP, with the new attributes.
 * @mask: which were given.
 *
 * One that is not connected now, or broken, gets them when it is connected again.
 *
 * Return: 0 or a negative errno.
 */
int shift_standby_modify(struct shift_qp *sqp, int mask)
{
	struct shift_standby *b = sqp->active;
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr *attr;
	int err = 0;

	lockdep_assert_held(&sqp->lock);
	if (!b || !b->armed || READ_ONCE(b->error))
		return 0;
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	if (!attr)
		return -ENOMEM;
	if (!b->sends)
		err = standby_to_rts(b, sqp->armed[b->path].epoch, attr);
	if (!err && mask & CHANGES) {
		attr->qp_access_flags = sqp->app.qp_access_flags;
		attr->min_rnr_timer = sqp->app.min_rnr_timer;
		err = ib_modify_qp(b->qp, attr, mask & CHANGES);
	}
	if (err && !ib_query_qp(b->qp, attr, IB_QP_STATE, &init) &&
	    attr->qp_state == IB_QPS_ERR)
		err = 0;
	kfree(attr);
	return err;
}
