// SPDX-License-Identifier: GPL-2.0
/*
 * Connects a proxy QP to the peer's, and changes it as the application changes its own QP.
 * Everything here is in process context, under sqp->lock, and may sleep on the device.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/rdma_cm.h>
#include "core/ib.h"
#include "core/node.h"
#include "core/object.h"
#include "core/proxy.h"
#include "core/qp.h"
#include "link/link.h"
#include "proxy/proxy.h"
#include "pure/psn.h"

#define INIT_MASK	(IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS)
#define RTR_MASK	(IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | \
			 IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER)
#define RTS_MASK	(IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | \
			 IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC)
#define CHANGES		(IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER)	/* allowed at RTS */
#define SHIFT_ACK_SLOWEST	20	/* 4.3 s */
#define HOPS		64	/* if the application has set no limit */

/**
 * shift_start_psn - first PSN of a sender on a path armed for @epoch
 * @cookie: the sender's.
 * @epoch: of the failover.
 *
 * Both ends can compute it, so that a responder can be armed before its READY is sent.  The PSN
 * grows by 2^16 with each epoch, so that packets of an older epoch look like duplicates.
 */
u32 shift_start_psn(u64 cookie, u32 epoch)
{
	return shift_psn_add(hash_64(cookie, 24), (epoch & 0xff) << 16);
}

/* Modify a proxy QP, or (@b is NULL) the application's own QP, not through our wrapper. */
static int qp_modify(struct shift_qp *sqp, struct shift_proxy *b, struct ib_qp_attr *attr, int mask)
{
	return b ? ib_modify_qp(b->qp, attr, mask) :
		   sqp->sdev->saved.modify_qp(sqp->qp, attr, mask, NULL);
}

/*
 * The way of the packets is as the application has chosen it for its own QP: traffic class, hop
 * limit, and the flow label, from which drivers make the UDP source port.  If that is 0, each QP
 * has a port of its own.  @gid is given away.
 */
static void qp_set_route(const struct shift_qp *sqp, struct rdma_ah_attr *ah,
			 union ib_gid *remote, const struct ib_gid_attr *gid)
{
	const struct ib_global_route *app = &sqp->app.attr.ah_attr.grh;

	rdma_ah_set_sl(ah, sqp->app.attr.ah_attr.sl);
	rdma_move_grh_sgid_attr(ah, remote, app->flow_label, app->hop_limit ?: HOPS,
				app->traffic_class, gid);
}

/* Bring it to RTR, with both ends' addresses on its path. */
static int qp_to_rtr(struct shift_qp *sqp, struct shift_proxy *b, u32 qpn, u32 epoch,
		     struct ib_qp_attr *attr)
{
	bool home = !b || b->path == SHIFT_PATH_HOME;
	union ib_gid remote = home ? sqp->app.dgid : sqp->peer.backup_dgid;
	struct ib_device *ibdev = b ? b->qp->device : sqp->qp->device;
	struct shift_link *link = sqp->peer.link[!home];
	const struct ib_gid_attr *gid;
	int err;

	/* look up the GID by its value: its index may change when a port goes down and up */
	gid = shift_gid_find(ibdev, home ? &sqp->app.sgid : &sqp->peer.backup_sgid,
			     sqp->app.vlan);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IB_QPS_RTR;
	attr->path_mtu = sqp->app.attr.path_mtu;
	attr->dest_qp_num = qpn;
	attr->rq_psn = shift_start_psn(sqp->peer.cookie, epoch);
	attr->max_dest_rd_atomic = sqp->app.attr.max_dest_rd_atomic;
	attr->min_rnr_timer = sqp->app.attr.min_rnr_timer;
	attr->ah_attr.type = rdma_ah_find_type(ibdev, 1);
	rdma_ah_set_port_num(&attr->ah_attr, 1);
	qp_set_route(sqp, &attr->ah_attr, &remote, gid);
	if (attr->ah_attr.type == RDMA_AH_ATTR_TYPE_ROCE && link)
		shift_link_dmac(link, attr->ah_attr.roce.dmac);
	else if (attr->ah_attr.type == RDMA_AH_ATTR_TYPE_ROCE && shift_qp_is_loop(sqp))
		rdma_read_gid_l2_fields(gid, NULL, attr->ah_attr.roce.dmac);
	err = qp_modify(sqp, b, attr, RTR_MASK);
	rdma_destroy_ah_attr(&attr->ah_attr);
	return err;
}

/*
 * How long the NIC waits for an ACK (4.096 us << n, 0: for ever): as long as on the application's
 * QP.  On a machine so slow that deadlines are multiplied ACKs are late, too, and rxe may crash if
 * it repeats packets that were not lost.  So the NIC waits longer there, up to 4 s.
 */
static u8 qp_ack_timeout(const struct shift_qp *sqp)
{
	u8 slow = order_base_2(shift_scale(1));
	u8 timeout = sqp->app.attr.timeout;

	return timeout ? max_t(u8, timeout, min_t(u8, timeout + slow, SHIFT_ACK_SLOWEST)) : 0;
}

static int qp_to_rts(struct shift_qp *sqp, struct shift_proxy *b, u32 epoch,
		     struct ib_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IB_QPS_RTS;
	attr->timeout = b ? qp_ack_timeout(sqp) : sqp->app.attr.timeout;
	attr->retry_cnt = sqp->app.attr.retry_cnt;
	/* 7: retry for ever, as the peer's receives may not be on its proxy QP yet */
	attr->rnr_retry = b ? 7 : sqp->app.attr.rnr_retry;
	attr->sq_psn = shift_start_psn(sqp->cookie, epoch);
	attr->max_rd_atomic = sqp->app.attr.max_rd_atomic;
	return qp_modify(sqp, b, attr, RTS_MASK);
}

static int proxy_to_rts(struct shift_proxy *b, u32 epoch, struct ib_qp_attr *attr)
{
	struct shift_qp *sqp = b->sqp;
	int err = qp_to_rts(sqp, b, epoch, attr);

	spin_lock_bh(&sqp->ledger_lock);
	b->sends = !err;
	spin_unlock_bh(&sqp->ledger_lock);
	return err;
}

static int qp_to_init(struct shift_qp *sqp, struct shift_proxy *b, struct ib_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IB_QPS_INIT;
	attr->port_num = 1;
	attr->qp_access_flags = sqp->app.attr.qp_access_flags;
	return qp_modify(sqp, b, attr, INIT_MASK);
}

/*
 * Bring a proxy QP to the state to which the application has brought its own QP, and (@b is NULL)
 * that one to RTR.
 */
static int qp_connect(struct shift_qp *sqp, struct shift_proxy *b, u32 epoch, u32 qpn)
{
	struct ib_qp_attr *attr;
	int err;

	lockdep_assert_held(&sqp->lock);
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	if (!attr)
		return -ENOMEM;
	err = qp_to_init(sqp, b, attr);
	if (!err)
		err = qp_to_rtr(sqp, b, qpn, epoch, attr);
	/* the application's timeout is not known before RTS; nothing is sent by then */
	if (!err && b && sqp->app.state != IB_QPS_RTR)
		err = proxy_to_rts(b, epoch, attr);
	kfree(attr);
	return err;
}

/**
 * shift_proxy_connect - connect a proxy QP, up to the state of the application's own QP
 * @b: a spare proxy QP.
 * @epoch: of the failover that was agreed on.
 * @qpn: the peer's QP.
 *
 * Return: 0 or a negative errno.
 */
int shift_proxy_connect(struct shift_proxy *b, u32 epoch, u32 qpn)
{
	return qp_connect(b->sqp, b, epoch, qpn);
}

/**
 * shift_qp_reconnect - connect the application's own QP, which is in RESET, to the peer's own QP
 * @sqp: the QP, which shift_handback_arm() has armed.
 *
 * It receives then, and sends after shift_qp_restart().
 *
 * Return: 0 or a negative errno; then the QP is in RESET again.
 */
int shift_qp_reconnect(struct shift_qp *sqp)
{
	struct ib_qp_attr reset = { .qp_state = IB_QPS_RESET };
	int err = qp_connect(sqp, NULL, sqp->fo.armed[0].epoch, sqp->handback.peer_qpn);

	if (err)
		qp_modify(sqp, NULL, &reset, IB_QP_STATE);
	return err;
}

/**
 * shift_qp_restart - let the application's own QP send, which shift_qp_reconnect() has connected
 * @sqp: the QP, whose peer is connected, too.
 *
 * Return: 0 or a negative errno.
 */
int shift_qp_restart(struct shift_qp *sqp)
{
	struct ib_qp_attr *attr;
	int err;

	lockdep_assert_held(&sqp->lock);
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	if (!attr)
		return -ENOMEM;
	err = qp_to_rts(sqp, NULL, sqp->fo.armed[0].epoch, attr);
	kfree(attr);
	return err;
}

/**
 * shift_proxy_modify - the application has modified its QP at RTS: modify the proxy QP, too
 * @sqp: the QP, with the new attributes; it runs on a proxy QP.
 * @mask: attributes that the application gave.
 *
 * If the proxy QP is broken or not connected, the next one is connected with the new attributes.
 *
 * Return: 0 or a negative errno.
 */
int shift_proxy_modify(struct shift_qp *sqp, int mask)
{
	struct shift_proxy *b = sqp->rec.proxy;
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
		err = proxy_to_rts(b, sqp->fo.armed[b->path].epoch, attr);
	if (!err && mask & CHANGES) {
		attr->qp_access_flags = sqp->app.attr.qp_access_flags;
		attr->min_rnr_timer = sqp->app.attr.min_rnr_timer;
		err = ib_modify_qp(b->qp, attr, mask & CHANGES);
	}
	if (err && !ib_query_qp(b->qp, attr, IB_QP_STATE, &init) &&
	    attr->qp_state == IB_QPS_ERR)
		err = 0;
	kfree(attr);
	return err;
}
