// SPDX-License-Identifier: GPL-2.0
/* What an application sets of its QP, and what it is shown of a QP that is away. */
#include <linux/module.h>
#include "core/kernel_qp.h"
#include "core/kick.h"
#include "core/provider.h"
#include "core/qp.h"
#include "failover/failover.h"
#include "provider/provider.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"
#include "pure/psn.h"
#include "srq/srq.h"
#include "verbs/verbs.h"

/* All that a modify from INIT to RTR has to set, and what may be set there, too. */
#define RTR_MASK (IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MIN_RNR_TIMER | \
		  IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_AV)
#define RTR_OPTIONAL (IB_QP_ACCESS_FLAGS | IB_QP_PORT)

static __always_inline
void qp_note_rtr(struct shift_qp *sqp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_ACCESS_FLAGS)
		sqp->app.attr.qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PATH_MTU) {
		sqp->app.attr.path_mtu = attr->path_mtu;
		sqp->app.mtu = ib_mtu_enum_to_int(attr->path_mtu);
	}
	if (mask & IB_QP_DEST_QPN)
		sqp->app.dest_qpn = attr->dest_qp_num;
	if (mask & IB_QP_RQ_PSN) {
		sqp->app.rq_psn = attr->rq_psn & SHIFT_PSN_MASK;
		sqp->fo.armed[0] = (struct shift_arming) { .psn = sqp->app.rq_psn };
		sqp->fo.resp = sqp->fo.armed[0];
	}
	if (mask & IB_QP_PORT)
		sqp->app.attr.port_num = attr->port_num;
	if (mask & IB_QP_MIN_RNR_TIMER)
		sqp->app.attr.min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		sqp->app.attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_AV) {
		const struct ib_global_route *grh = rdma_ah_read_grh(&attr->ah_attr);

		sqp->app.dgid = grh->dgid;
		if (grh->sgid_attr) {
			sqp->app.sgid = grh->sgid_attr->gid;
			sqp->app.sgid_index = grh->sgid_attr->index;
		}
		sqp->app.attr.ah_attr.sl = attr->ah_attr.sl;
		sqp->app.attr.ah_attr.grh.traffic_class = grh->traffic_class;
		sqp->app.attr.ah_attr.grh.hop_limit = grh->hop_limit;
		sqp->app.attr.ah_attr.grh.flow_label = grh->flow_label;
	}
}

/* All that a modify from RTR to RTS has to set. */
#define RTS_MASK (IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | \
		  IB_QP_MAX_QP_RD_ATOMIC)

static __always_inline
void qp_note_rts(struct shift_qp *sqp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_SQ_PSN)
		sqp->app.sq_psn = attr->sq_psn & SHIFT_PSN_MASK;
	if (mask & IB_QP_TIMEOUT)
		sqp->app.attr.timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		sqp->app.attr.retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		sqp->app.attr.rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		sqp->app.attr.max_rd_atomic = attr->max_rd_atomic;
}

static noinline void qp_note_any(struct shift_qp *sqp, const struct ib_qp_attr *attr, int mask)
{
	qp_note_rtr(sqp, attr, mask);
	qp_note_rts(sqp, attr, mask);
}

/* Note what the application sets: its peer is found by it, and other QPs are connected with it. */
static __always_inline
void qp_note_modify(struct shift_qp *sqp, const struct ib_qp_attr *attr, int mask)
{
	int noted = mask & (RTR_MASK | RTR_OPTIONAL | RTS_MASK);

	/* these are the common cases: with a constant mask the compiler leaves out the tests */
	if (noted == RTS_MASK)
		qp_note_rts(sqp, attr, RTS_MASK);
	else if (noted == RTR_MASK)
		qp_note_rtr(sqp, attr, RTR_MASK);
	else
		qp_note_any(sqp, attr, mask);
}

/* The application changes the state or the attributes of a QP that is away; sqp->lock. */
static noinline
int qp_modify_away(struct shift_qp *sqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	enum ib_qp_state was = sqp->fo.state == SHIFT_ST_FAIL ? IB_QPS_ERR : sqp->app.state;
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : was;
	int err;

	lockdep_assert_held(&sqp->lock);
	if (!ib_modify_qp_is_ok(was, next, IB_QPT_RC, mask))
		return -EINVAL;
	switch (next) {
	case IB_QPS_ERR:
		shift_failover_event(sqp, SHIFT_EV_APP_ERROR, NULL);
		sqp->app.state = IB_QPS_ERR;
		/* it failed with nothing outstanding: what is posted now is flushed, as by a NIC */
		spin_lock_bh(&sqp->ledger_lock);
		if (!shift_ledger_count(&sqp->rec.ledger))
			sqp->fo.fail_status = IB_WC_WR_FLUSH_ERR;
		spin_unlock_bh(&sqp->ledger_lock);
		return 0;
	case IB_QPS_RESET:
		shift_failover_event(sqp, SHIFT_EV_APP_ERROR, NULL);
		sqp->rings.start_told = false;	/* its effect was lost with the fence's RESET */
		set_bit(SHIFT_QPB_STALE, &sqp->pend.flags);
		sqp->fo.path = 0;
		clear_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
		clear_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags);
		clear_bit(SHIFT_QPB_GATED, &sqp->pend.flags);
		clear_bit(SHIFT_QPB_SHOWN, &sqp->pend.flags);
		shift_failover_unprotect(sqp, SHIFT_REASON_APP_ERROR);
		shift_proxy_destroy(sqp);
		shift_handback_forget(sqp);
		shift_qp_renew_cookie(sqp);
		sqp->app.state = IB_QPS_RESET;
		spin_lock_bh(&sqp->ledger_lock);
		sqp->rec.live = false;
		sqp->rec.any_outstanding = false;
		sqp->fo.stop_status = 0;
		spin_unlock_bh(&sqp->ledger_lock);
		shift_gate_write(sqp, 0);
		shift_provider_restarts(sqp);
		return sqp->sdev->saved.modify_qp(sqp->qp, attr, mask, udata);
	case IB_QPS_RTS:
		/* from RTR, or new attributes */
		qp_note_modify(sqp, attr, mask);
		sqp->app.state = IB_QPS_RTS;
		err = shift_proxy_modify(sqp, mask);
		if (err)
			sqp->app.state = was;
		shift_qp_kick(sqp, SHIFT_QPB_KICK);
		return err;
	default:
		return -EINVAL;
	}
}

/* The QP is about to go to @to, which is not RTS.  -EBUSY: it may not. */
static noinline int qp_leaves_state(struct shift_qp *sqp, enum ib_qp_state to)
{
	if (sqp->fo.state != SHIFT_ST_OFF)
		shift_failover_event(sqp, SHIFT_EV_APP_ERROR, NULL);
	/* the event was handled, or is of the life that ends: it would end a later protection */
	if (sqp->fo.state != SHIFT_ST_OFF || to == IB_QPS_RESET)
		clear_bit(SHIFT_QPB_APP, &sqp->pend.flags);
	if (to == IB_QPS_RESET)
		clear_bit(SHIFT_QPB_SHOWN, &sqp->pend.flags);
	/* error completions from here on are not of the time when the QP was away */
	if (to == IB_QPS_RTR || to == IB_QPS_ERR)
		clear_bit(SHIFT_QPB_STALE, &sqp->pend.flags);
	/* before it can take a receive */
	if (to == IB_QPS_RTR && sqp->srqm.ssrq && !shift_srq_connected(sqp))
		return -EBUSY;
	return 0;
}

/* The QP has gone to @to, which is neither RTR nor RTS. */
static noinline void qp_has_state(struct shift_qp *sqp, enum ib_qp_state to)
{
	if (sqp->kernel)
		shift_kernel_qp_state(sqp, to);
	if (to == IB_QPS_ERR || to == IB_QPS_RESET)
		shift_srq_ended(sqp);
	if (to == IB_QPS_RESET) {
		sqp->rings.start_told = false;
		shift_provider_restarts(sqp);
		/* others were never protected, and keep the reason for that */
		if (sqp->rings.usable)
			shift_failover_unprotect(sqp, SHIFT_REASON_NOT_RTS);
		shift_qp_renew_cookie(sqp);
	}
}

/*
 * A QP in ERR takes no receive of its SRQ any more, which its driver says by an event.  A user in
 * the kernel that drains such a QP waits for that, for a minute.  No lock is held.
 */
static noinline void qp_tell_last_recv(struct ib_qp *qp)
{
	struct ib_event event = {
		.device = qp->device, .event = IB_EVENT_QP_LAST_WQE_REACHED, .element.qp = qp,
	};

	if (qp->event_handler)
		qp->event_handler(&event, qp->qp_context);
}

static int wrap_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			  struct ib_udata *udata)
{
	int to = mask & IB_QP_STATE ? (int)attr->qp_state : -1;
	struct shift_dev *sdev;
	struct shift_qp *sqp;
	unsigned int noio;
	bool last = false;
	int idx, err;

	/* as shift_verb_begin(), with one look-up */
	rcu_read_lock();
	sqp = shift_qp_find_rcu(qp);
	sdev = likely(sqp) ? sqp->sdev : shift_ops_dev(qp->device);
	idx = srcu_read_lock(&sdev->srcu);
	rcu_read_unlock();
	if (unlikely(!sqp)) {
		err = sdev->saved.modify_qp(qp, attr, mask, udata);
		goto out;
	}
	noio = shift_qp_lock(sqp);
	if (unlikely(!sqp->qp)) {
		/* the device is being removed, and the QP was detached */
		err = sdev->saved.modify_qp(qp, attr, mask, udata);
		goto unlock;
	}
	if (unlikely(to == IB_QPS_ERR || to == IB_QPS_RESET) && !shift_qp_is_away(sqp) &&
	    ib_modify_qp_is_ok(sqp->app.state, to, IB_QPT_RC, mask))
		shift_failover_claim_errors(sqp);
	if (unlikely(shift_qp_is_away(sqp))) {
		err = qp_modify_away(sqp, attr, mask, udata);
		last = to == IB_QPS_ERR && !err && sqp->kernel && sqp->srqm.ssrq;
		goto unlock;
	}
	/* in a handback: for its application it has been in RTS all the time */
	if (unlikely(sqp->handback.quiet) && to != IB_QPS_ERR && to != IB_QPS_RESET) {
		err = shift_handback_start(sqp);
		if (err)
			goto unlock;
	}
	if (to == IB_QPS_RTS) {
		if (sqp->app.state != IB_QPS_RTS && sqp->rings.usable) {
			if (!sqp->rings.start_told)
				sqp->rings.provider->starts(sqp);
			sqp->rings.start_told = false;
		}
	} else if (to >= 0) {
		err = qp_leaves_state(sqp, to);
		if (unlikely(err))
			goto unlock;
	}
	err = sdev->saved.modify_qp(qp, attr, mask, udata);
	if (err) {
		if (to == IB_QPS_RTR)
			shift_srq_ended(sqp);
		goto unlock;
	}
	qp_note_modify(sqp, attr, mask);
	if (to < 0)
		goto unlock;
	sqp->app.state = to;
	if (to == IB_QPS_RTS || to == IB_QPS_RTR) {
		if (sqp->fo.state == SHIFT_ST_OFF && !test_bit(SHIFT_QPB_SOON, &sqp->pend.flags))
			shift_pairing_soon(sqp);
	} else {
		qp_has_state(sqp, to);
	}
unlock:
	shift_qp_unlock(sqp, noio);
	if (unlikely(last))
		qp_tell_last_recv(qp);
out:
	shift_verb_end(sdev, idx);
	return err;
}

/* Show the state and the attributes that the application has set, not those of a fenced QP. */
static void qp_show_away(const struct shift_qp *sqp, struct ib_qp_attr *attr)
{
	const struct ib_qp_attr *app = &sqp->app.attr;

	attr->qp_state = sqp->fo.state == SHIFT_ST_FAIL ? IB_QPS_ERR : sqp->app.state;
	attr->cur_qp_state = attr->qp_state;
	attr->qp_access_flags = app->qp_access_flags;
	attr->path_mtu = app->path_mtu;
	attr->dest_qp_num = sqp->app.dest_qpn;
	attr->timeout = app->timeout;
	attr->retry_cnt = app->retry_cnt;
	attr->rnr_retry = app->rnr_retry;
	attr->min_rnr_timer = app->min_rnr_timer;
	attr->max_rd_atomic = app->max_rd_atomic;
	attr->max_dest_rd_atomic = app->max_dest_rd_atomic;
}

static int wrap_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			 struct ib_qp_init_attr *init)
{
	struct shift_dev *sdev;
	unsigned int noio = 0;
	struct shift_qp *sqp;
	int idx, err;

	sdev = shift_verb_begin(qp->device, &idx);
	sqp = shift_qp_find(qp);
	if (sqp)
		noio = shift_qp_lock(sqp);
	err = sdev->saved.query_qp(qp, attr, mask, init);
	if (sqp) {
		if (!err && (shift_qp_is_away(sqp) || sqp->handback.quiet))
			qp_show_away(sqp, attr);
		shift_qp_unlock(sqp, noio);
	}
	shift_verb_end(sdev, idx);
	return err;
}

const struct ib_device_ops shift_modify_ops = {
	.modify_qp = wrap_modify_qp,
	.query_qp = wrap_query_qp,
};
