// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs of user space: tracking, and what the application sees of a QP
 * that has moved.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include "account.h"
#include "compat/compat.h"
#include "mw.h"
#include "provider.h"
#include "srq.h"

static struct shift_qp *qp_find(struct ib_qp *qp)
{
	struct shift_obj *obj = shift_object_find(qp, SHIFT_OBJ_QP);

	return obj ? container_of(obj, struct shift_qp, obj) : NULL;
}

static struct shift_cq *qp_track_cq(struct ib_cq *cq)
{
	struct shift_obj *obj = cq ? shift_object_find(cq, SHIFT_OBJ_CQ) : NULL;
	struct shift_cq *scq;

	if (!obj)
		return NULL;
	scq = container_of(obj, struct shift_cq, obj);
	shift_cq_get(scq);
	return scq;
}

static void qp_track(struct shift_dev *sdev, struct ib_qp *qp,
		     const struct ib_qp_init_attr *attr, const struct ib_qp_cap *asked)
{
	struct ib_uobject *uobject = (struct ib_uobject *)qp->uobject;
	struct shift_obj *pd;
	struct shift_qp *sqp;
	bool srq_ok;

	sqp = kzalloc(sizeof(*sqp), GFP_KERNEL);
	if (!sqp) {
		shift_srq_spoil(attr->srq);
		return;
	}
	kref_init(&sqp->ref);
	mutex_init(&sqp->lock);
	spin_lock_init(&sqp->ledger_lock);
	spin_lock_init(&sqp->inbox_lock);
	init_waitqueue_head(&sqp->gate_wait);
	xa_init_flags(&sqp->rkeys, XA_FLAGS_LOCK_BH);
	INIT_WORK(&sqp->work, shift_switch_work);
	INIT_DELAYED_WORK(&sqp->timer, shift_switch_timer);
	INIT_LIST_HEAD(&sqp->obj.list);
	INIT_LIST_HEAD(&sqp->retired);
	INIT_LIST_HEAD(&sqp->own_node);
	sqp->sdev = shift_dev_get(sdev);
	sqp->qp = qp;
	sqp->qpn = qp->qp_num;
	sqp->ufile = uobject->ufile;
	sqp->handle = uobject->id;
	sqp->mm = current->mm;
	sqp->pid = task_tgid_nr(current);
	get_task_comm(sqp->comm, current);
	sqp->attr = *attr;
	sqp->asked_send = asked->max_send_wr;
	sqp->asked_recv = asked->max_recv_wr;
	sqp->sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	sqp->app_state = IB_QPS_RESET;
	__module_get(THIS_MODULE);

	pd = shift_object_find(qp->pd, SHIFT_OBJ_PD);
	if (pd) {
		sqp->spd = container_of(pd, struct shift_pd, obj);
		shift_pd_get(sqp->spd);
	}
	sqp->scq = qp_track_cq(attr->send_cq);
	sqp->rcq = qp_track_cq(attr->recv_cq);
	srq_ok = shift_srq_join(sqp, attr->srq);
	if (attr->qp_type != IB_QPT_RC)
		sqp->reason = SHIFT_REASON_QP_TYPE;
	else if (!srq_ok)
		sqp->reason = SHIFT_REASON_SRQ;
	else if (!sqp->spd || !sqp->scq || !sqp->rcq)
		sqp->reason = SHIFT_REASON_OLD_OBJECT;
	else
		sqp->reason = SHIFT_REASON_NO_PROVIDER;

	if (shift_qp_new_cookie(sqp) ||
	    xa_err(xa_store(&sdev->qpn, sqp->qpn, sqp, GFP_KERNEL)))
		goto err_put;
	if (shift_object_insert(&sqp->obj, qp, SHIFT_OBJ_QP)) {
		xa_erase(&sdev->qpn, sqp->qpn);
		goto err_put;
	}
	atomic_inc(&sdev->objects);
	mutex_lock(&sdev->list_lock);
	list_add_tail(&sqp->obj.list, &sdev->qps);
	mutex_unlock(&sdev->list_lock);
	return;

err_put:
	shift_srq_spoil(attr->srq);
	shift_srq_leave(sqp);
	sqp->qp = NULL;
	shift_qp_put(sqp);
}

static int wrap_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr,
			  struct ib_udata *udata)
{
	struct shift_account *lent = shift_account_lend();
	const struct ib_qp_cap asked = attr->cap;
	struct shift_dev *sdev;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(qp->device);
	err = sdev->saved.create_qp(qp, attr, udata);
	/* XRC targets and QPs of kernel users come without @udata: not tracked */
	if (!err && udata && qp->uobject && READ_ONCE(sdev->tracking))
		qp_track(sdev, qp, attr, &asked);
	else if (!err && udata)
		shift_srq_spoil(attr->srq);
	srcu_read_unlock(&shift_srcu, idx);
	shift_account_restore(lent);
	return err;
}

/* Drop the packets that rxe queued as it was fenced: see shift_qp_quiet(). */
static void qp_quiet(struct shift_dev *sdev, struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	synchronize_rcu_expedited();
	sdev->saved.modify_qp(qp, &attr, IB_QP_STATE, NULL);
}

/*
 * The default half goes, by the application or with its device.  After this
 * nothing of ours touches @sqp->qp, the rings or the backup.  It is among those of its SRQ
 * until qp_left().
 */
static bool qp_detach(struct shift_qp *sqp)
{
	struct shift_dev *sdev = sqp->sdev;

	if (!shift_object_remove(&sqp->obj))
		return false;
	mutex_lock(&sdev->list_lock);
	list_del_init(&sqp->obj.list);
	mutex_unlock(&sdev->list_lock);
	xa_cmpxchg(&sdev->qpn, sqp->qpn, sqp, NULL, 0);

	/* whoever holds it has queued what he will */
	spin_lock_bh(&sqp->inbox_lock);
	set_bit(SHIFT_QP_DEAD, &sqp->flags);
	spin_unlock_bh(&sqp->inbox_lock);
	mutex_lock(&sqp->lock);
	if (sqp->state != SHIFT_ST_OFF)
		shift_switch_event(sqp, SHIFT_EV_APP_ERROR, NULL);
	shift_pairing_drop(sqp);
	shift_standby_destroy(sqp);
	shift_mw_disown(sqp);
	sqp->qp = NULL;
	sqp->ufile = NULL;
	mutex_unlock(&sqp->lock);
	shift_qp_unregister(sqp);
	/* DEAD is set: none queues another again */
	shift_switch_pair_settle(sqp);
	cancel_delayed_work_sync(&sqp->timer);
	cancel_work_sync(&sqp->work);
	atomic_dec(&sdev->objects);
	return true;
}

/* Detached, and its driver's half takes no receive any more, or its SRQ goes as well. */
static void qp_left(struct shift_qp *sqp)
{
	mutex_lock(&sqp->lock);
	shift_srq_leave(sqp);
	mutex_unlock(&sqp->lock);
	shift_qp_put(sqp);
}

static int wrap_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	struct shift_dev *sdev;
	struct shift_qp *sqp;
	bool detached;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(qp->device);
	sqp = qp_find(qp);
	detached = sqp && qp_detach(sqp);
	if (detached && test_bit(SHIFT_QP_FENCED, &sqp->flags))
		qp_quiet(sdev, qp);
	err = sdev->saved.destroy_qp(qp, udata);
	/* only now: others of its SRQ may take all receives along then */
	if (detached)
		qp_left(sqp);
	srcu_read_unlock(&shift_srcu, idx);
	return err;
}

/* What is rarely set but on the way to RTR */
#define RTR_MASK (IB_QP_ACCESS_FLAGS | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN | \
		  IB_QP_PORT | IB_QP_MIN_RNR_TIMER | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_AV)

static __always_inline
void qp_note_rtr(struct shift_qp *sqp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_ACCESS_FLAGS)
		sqp->app.qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PATH_MTU) {
		sqp->app.path_mtu = attr->path_mtu;
		sqp->mtu = ib_mtu_enum_to_int(attr->path_mtu);
	}
	if (mask & IB_QP_DEST_QPN)
		sqp->dest_qpn = attr->dest_qp_num;
	if (mask & IB_QP_RQ_PSN) {
		sqp->rq_psn = attr->rq_psn & SHIFT_PSN_MASK;
		sqp->armed[0] = (struct shift_life) { .psn = sqp->rq_psn };
		sqp->heard = sqp->armed[0];
	}
	if (mask & IB_QP_PORT)
		sqp->app.port_num = attr->port_num;
	if (mask & IB_QP_MIN_RNR_TIMER)
		sqp->app.min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		sqp->app.max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_AV) {
		const struct ib_global_route *grh = rdma_ah_read_grh(&attr->ah_attr);

		sqp->dgid = grh->dgid;
		if (grh->sgid_attr)
			sqp->sgid = grh->sgid_attr->gid;
		sqp->app.ah_attr.sl = attr->ah_attr.sl;
		sqp->app.ah_attr.grh.traffic_class = grh->traffic_class;
		sqp->app.ah_attr.grh.hop_limit = grh->hop_limit;
	}
}

/* What RTR to RTS has to give, all of it */
#define RTS_MASK (IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | \
		  IB_QP_MAX_QP_RD_ATOMIC)

static __always_inline
void qp_note_rts(struct shift_qp *sqp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_SQ_PSN)
		sqp->sq_psn = attr->sq_psn & SHIFT_PSN_MASK;
	if (mask & IB_QP_TIMEOUT)
		sqp->app.timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		sqp->app.retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		sqp->app.rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		sqp->app.max_rd_atomic = attr->max_rd_atomic;
}

static noinline void qp_note_any(struct shift_qp *sqp, const struct ib_qp_attr *attr, int mask)
{
	qp_note_rtr(sqp, attr, mask);
	qp_note_rts(sqp, attr, mask);
}

/* Keep what the application has set: a route needs it, and so does a re-arm. */
static __always_inline
void qp_note_modify(struct shift_qp *sqp, const struct ib_qp_attr *attr, int mask)
{
	/* what is seldom changed on its own: with a constant mask nothing is asked one by one */
	if ((mask & (RTR_MASK | RTS_MASK)) == RTS_MASK)
		qp_note_rts(sqp, attr, RTS_MASK);
	else
		qp_note_any(sqp, attr, mask);
}

/* The application's own step on a QP that has moved; sqp->lock is held. */
static noinline
int qp_modify_away(struct shift_qp *sqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	enum ib_qp_state was = sqp->state == SHIFT_ST_FAIL ? IB_QPS_ERR : sqp->app_state;
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : was;
	int err;

	if (!ib_modify_qp_is_ok(was, next, IB_QPT_RC, mask))
		return -EINVAL;
	switch (next) {
	case IB_QPS_ERR:
		shift_switch_event(sqp, SHIFT_EV_APP_ERROR, NULL);
		sqp->app_state = IB_QPS_ERR;
		return 0;
	case IB_QPS_RESET:
		shift_switch_event(sqp, SHIFT_EV_APP_ERROR, NULL);
		sqp->start_told = false;	/* the fence's RESET took it away */
		set_bit(SHIFT_QP_STALE, &sqp->flags);
		sqp->path = 0;
		clear_bit(SHIFT_QP_FENCED, &sqp->flags);
		clear_bit(SHIFT_QP_ERRORED, &sqp->flags);
		clear_bit(SHIFT_QP_GATED, &sqp->flags);
		shift_switch_unprotect(sqp, SHIFT_REASON_APP_ERROR);
		shift_standby_destroy(sqp);
		shift_own_forget(sqp);
		shift_qp_renew_cookie(sqp);
		sqp->app_state = IB_QPS_RESET;
		spin_lock_bh(&sqp->ledger_lock);
		sqp->ledger_live = false;
		sqp->sent_any = false;
		sqp->stop_status = 0;
		spin_unlock_bh(&sqp->ledger_lock);
		if (sqp->gate.page)
			shift_word_write(&sqp->gate, 0);
		shift_notes_restart(sqp);
		return sqp->sdev->saved.modify_qp(sqp->qp, attr, mask, udata);
	case IB_QPS_RTS:
		/* from RTR, or new attributes */
		qp_note_modify(sqp, attr, mask);
		sqp->app_state = IB_QPS_RTS;
		err = shift_standby_modify(sqp, mask);
		if (err)
			sqp->app_state = was;
		shift_switch_kick(sqp, SHIFT_QP_KICK);
		return err;
	default:
		return -EINVAL;
	}
}

/* About to go to @to, which is not RTS. */
static noinline void qp_leaves_state(struct shift_qp *sqp, enum ib_qp_state to)
{
	if (sqp->state != SHIFT_ST_OFF) {
		shift_switch_event(sqp, SHIFT_EV_APP_ERROR, NULL);
		/* the machine knows now, and a later life has errors of its own */
		clear_bit(SHIFT_QP_APP, &sqp->flags);
	}
	/* what is flushed or fails from here on is of this life */
	if (to == IB_QPS_RTR || to == IB_QPS_ERR)
		clear_bit(SHIFT_QP_STALE, &sqp->flags);
	/* before it can take a receive */
	if (to == IB_QPS_RTR)
		shift_srq_connected(sqp);
}

/* Has gone to @to, which is neither RTR nor RTS. */
static noinline void qp_has_state(struct shift_qp *sqp, enum ib_qp_state to)
{
	if (to == IB_QPS_ERR || to == IB_QPS_RESET)
		shift_srq_ended(sqp);
	if (to == IB_QPS_RESET) {
		sqp->start_told = false;
		shift_notes_restart(sqp);
		/* the others have a reason that lasts */
		if (sqp->registered)
			shift_switch_unprotect(sqp, SHIFT_REASON_NOT_RTS);
		shift_qp_renew_cookie(sqp);
	}
}

static int wrap_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			  struct ib_udata *udata)
{
	int to = mask & IB_QP_STATE ? (int)attr->qp_state : -1;
	struct shift_qp *sqp;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sqp = qp_find(qp);
	if (unlikely(!sqp)) {
		err = shift_ops_dev(qp->device)->saved.modify_qp(qp, attr, mask, udata);
		goto out;
	}
	mutex_lock(&sqp->lock);
	if (unlikely(!sqp->qp)) {
		/* its device is being removed */
		err = sqp->sdev->saved.modify_qp(qp, attr, mask, udata);
		goto unlock;
	}
	if (unlikely(to == IB_QPS_ERR || to == IB_QPS_RESET) && !shift_qp_is_away(sqp) &&
	    ib_modify_qp_is_ok(sqp->app_state, to, IB_QPT_RC, mask))
		shift_switch_take_over(sqp);
	if (unlikely(shift_qp_is_away(sqp))) {
		err = qp_modify_away(sqp, attr, mask, udata);
		goto unlock;
	}
	if (to == IB_QPS_RTS) {
		if (sqp->app_state != IB_QPS_RTS && sqp->registered) {
			if (!sqp->start_told)
				sqp->provider->starts(sqp);
			sqp->start_told = false;
		}
	} else if (to >= 0) {
		qp_leaves_state(sqp, to);
	}
	err = sqp->sdev->saved.modify_qp(qp, attr, mask, udata);
	if (err) {
		if (to == IB_QPS_RTR)
			shift_srq_ended(sqp);
		goto unlock;
	}
	qp_note_modify(sqp, attr, mask);
	if (to < 0)
		goto unlock;
	sqp->app_state = to;
	if (to == IB_QPS_RTS || to == IB_QPS_RTR) {
		if (sqp->state == SHIFT_ST_OFF && !test_bit(SHIFT_QP_SOON, &sqp->flags))
			shift_switch_pair_soon(sqp);
	} else {
		qp_has_state(sqp, to);
	}
unlock:
	mutex_unlock(&sqp->lock);
out:
	srcu_read_unlock(&shift_srcu, idx);
	return err;
}

/* What the application has set, and how far it is from the application's point of view. */
static void qp_show_away(const struct shift_qp *sqp, struct ib_qp_attr *attr)
{
	const struct ib_qp_attr *app = &sqp->app;

	attr->qp_state = sqp->state == SHIFT_ST_FAIL ? IB_QPS_ERR : sqp->app_state;
	attr->cur_qp_state = attr->qp_state;
	attr->qp_access_flags = app->qp_access_flags;
	attr->path_mtu = app->path_mtu;
	attr->dest_qp_num = sqp->dest_qpn;
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
	struct shift_qp *sqp;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(qp->device);
	sqp = qp_find(qp);
	if (sqp)
		mutex_lock(&sqp->lock);
	err = sdev->saved.query_qp(qp, attr, mask, init);
	if (sqp) {
		/* our fence must not show */
		if (!err && shift_qp_is_away(sqp))
			qp_show_away(sqp, attr);
		mutex_unlock(&sqp->lock);
	}
	srcu_read_unlock(&shift_srcu, idx);
	return err;
}

/*
 * Fast: the doorbell of a user QP on rxe comes here with no WR.  Under RCU, so
 * that a fence which has set GATED and waited knows that no doorbell is on its
 * way into the driver.
 */
static int wrap_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad_wr)
{
	struct shift_dev *sdev;
	struct shift_qp *sqp;
	int err;

	rcu_read_lock();
	sqp = qp_find(qp);
	if (sqp && !wr && test_bit(SHIFT_QP_GATED, &sqp->flags)) {
		shift_replay_doorbell(sqp);
		err = 0;
	} else {
		if (sqp && !wr && READ_ONCE(sqp->notes))
			shift_notes_doorbell(sqp);
		sdev = sqp ? sqp->sdev : shift_ops_dev(qp->device);
		err = sdev->saved.post_send(qp, wr, bad_wr);
	}
	rcu_read_unlock();
	return err;
}

const struct ib_device_ops shift_qp_ops = {
	.create_qp = wrap_create_qp,
	.modify_qp = wrap_modify_qp,
	.query_qp = wrap_query_qp,
	.destroy_qp = wrap_destroy_qp,
	.post_send = wrap_post_send,
};

/**
 * shift_qp_device_gone - the default device or its backup is being removed
 * @sdev: default device.
 *
 * While the device still has our ops (only the backup goes): QPs lose their
 * protection, and go on if they are here.  Otherwise they lose their default half as well.
 *
 * Context: process context.
 */
void shift_qp_device_gone(struct shift_dev *sdev)
{
	unsigned long index = 0;
	struct shift_qp *sqp;

	for (; (sqp = shift_qp_next(&index)); shift_qp_put(sqp)) {
		if (sqp->sdev != sdev)
			continue;
		if (READ_ONCE(sdev->tracking)) {
			mutex_lock(&sqp->lock);
			shift_switch_backup_gone(sqp);
			mutex_unlock(&sqp->lock);
		} else if (qp_detach(sqp)) {
			qp_left(sqp);
		}
	}
}
