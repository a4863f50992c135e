// SPDX-License-Identifier: GPL-2.0
/* Queue pairs: how they are tracked, and their doorbells. */
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include "compat/compat.h"
#include "core/account.h"
#include "core/ib.h"
#include "core/kernel_cq.h"
#include "core/kernel_qp.h"
#include "core/kick.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/stat.h"
#include "failover/failover.h"
#include "link/link.h"
#include "mw/mw.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"
#include "srq/srq.h"
#include "verbs/verbs.h"

static struct shift_cq *qp_cq(struct shift_dev *sdev, struct ib_cq *cq, bool kernel)
{
	struct shift_cq *scq = cq && !kernel ? shift_cq_find(cq) : NULL;

	if (cq && kernel)
		return shift_kernel_cq_join(sdev, cq);
	if (scq)
		shift_cq_get(scq);
	return scq;
}

static void qp_set_owner(struct shift_qp *sqp, const struct ib_qp *qp)
{
	if (sqp->kernel) {
		/* the name of its module; there is no process */
		strscpy(sqp->app.comm, qp->pd->res.kern_name, sizeof(sqp->app.comm));
		sqp->app.uid = GLOBAL_ROOT_UID;
		return;
	}
	/* struct ib_uqp_object begins with its struct ib_uobject */
	shift_obj_set_owner(&sqp->obj, (struct ib_uobject *)qp->uobject);
	sqp->app.pid = task_tgid_nr(current);
	sqp->app.uid = current_uid();
	get_task_comm(sqp->app.comm, current);
	sqp->app.memcg = shift_memcg_get(current->mm);
}

/* Why is a QP not protected when it was just created? */
static enum shift_reason qp_first_reason(struct shift_qp *sqp, bool srq_ok)
{
	if (sqp->app.init.qp_type != IB_QPT_RC)
		return SHIFT_REASON_QP_TYPE;
	if (!srq_ok)
		return SHIFT_REASON_SRQ;
	if (!sqp->spd || !sqp->scq || !sqp->rcq)
		return SHIFT_REASON_OLD_OBJECT;
	if (sqp->kernel)
		return shift_kernel_qp_register(sqp) ?: SHIFT_REASON_NOT_RTS;
	return SHIFT_REASON_NO_PROVIDER;
}

/* The driver has destroyed the QP, or it was never tracked. */
static void qp_leave_cqs(struct shift_qp *sqp)
{
	if (!sqp->kernel)
		return;
	shift_kernel_cq_leave(sqp->scq);
	shift_kernel_cq_leave(sqp->rcq);
}

/* Reclaim may wait for who holds such a lock, so that lockdep has to tell it from others. */
static struct lock_class_key kernel_qp_lock;

/* Nothing is queued for the QP from here on. */
static void qp_dead(struct shift_qp *sqp)
{
	spin_lock_bh(&sqp->inbox_lock);
	set_bit(SHIFT_QPB_DEAD, &sqp->pend.flags);
	spin_unlock_bh(&sqp->inbox_lock);
}

/* Wait for what was queued for a QP that is DEAD.  Sleeps; sqp->lock is not held. */
static void qp_cancel(struct shift_qp *sqp)
{
	cancel_delayed_work_sync(&sqp->pend.timer);
	cancel_work_sync(&sqp->pend.work);
	/* the driver may destroy the QP now, which this one looks at */
	cancel_work_sync(&sqp->report.work);
}

/* @kernel: of a user in the kernel; belongs to the shadow, or is freed. */
static int qp_track(struct shift_dev *sdev, struct ib_qp *qp, const struct ib_qp_init_attr *attr,
		    const struct ib_qp_cap *asked, struct shift_kernel_qp *kernel)
{
	struct shift_qp *sqp = kzalloc(sizeof(*sqp), kernel ? GFP_KERNEL : GFP_KERNEL_ACCOUNT);
	struct shift_cq *held = NULL;
	bool srq_ok;
	int i, err;

	if (!sqp) {
		shift_kernel_qp_free(kernel);
		return -ENOMEM;
	}
	kref_init(&sqp->ref);
	mutex_init(&sqp->lock);
	if (kernel)
		lockdep_set_class(&sqp->lock, &kernel_qp_lock);
	spin_lock_init(&sqp->ledger_lock);
	spin_lock_init(&sqp->inbox_lock);
	init_waitqueue_head(&sqp->rings.gate_wait);
	xa_init_flags(&sqp->peer.rkeys, XA_FLAGS_LOCK_BH | XA_FLAGS_ACCOUNT);
	INIT_WORK(&sqp->pend.work, shift_failover_work);
	INIT_WORK(&sqp->report.work, shift_report_work);
	INIT_DELAYED_WORK(&sqp->pend.timer, shift_qp_timer);
	INIT_LIST_HEAD(&sqp->obj.list);
	INIT_LIST_HEAD(&sqp->proxies.retired);
	INIT_LIST_HEAD(&sqp->handback.node);
	for (i = 0; i < ARRAY_SIZE(sqp->peer.use); i++) {
		INIT_LIST_HEAD(&sqp->peer.use[i].entry);
		sqp->peer.use[i].sqp = sqp;
	}
	sqp->sdev = shift_dev_get(sdev);
	sqp->qp = qp;
	sqp->qpn = qp->qp_num;
	sqp->kernel = kernel;
	qp_set_owner(sqp, qp);
	sqp->app.init = *attr;
	sqp->app.asked_send = asked->max_send_wr;
	sqp->app.asked_recv = asked->max_recv_wr;
	sqp->app.sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	sqp->app.state = IB_QPS_RESET;
	__module_get(THIS_MODULE);

	sqp->spd = shift_pd_find(qp->pd);
	if (sqp->spd)
		shift_pd_get(sqp->spd);
	sqp->scq = qp_cq(sdev, attr->send_cq, kernel);
	sqp->rcq = qp_cq(sdev, attr->recv_cq, kernel);
	if (kernel && attr->srq)
		held = qp_cq(sdev, attr->recv_cq, kernel);
	srq_ok = shift_srq_join(sqp, attr->srq, &held);
	/* the SRQ has it already */
	if (held) {
		shift_kernel_cq_leave(held);
		shift_cq_put(held);
	}
	sqp->fo.reason = qp_first_reason(sqp, srq_ok);

	/* what completes could not be taken out of the record */
	err = kernel && (!sqp->scq || !sqp->rcq) ? -ENOMEM : shift_qp_new_cookie(sqp);
	/* QPs of other types may share a number: DCTs have 0, raw ones may have that of an RC QP */
	if (!err && attr->qp_type == IB_QPT_RC)
		err = xa_insert(&sdev->qpn, sqp->qpn, sqp, GFP_KERNEL);
	if (err)
		goto err_put;
	err = shift_track(sdev, &sqp->obj, qp, SHIFT_OBJ_QP, &sdev->qps);
	if (!err) {
		if (kernel)
			shift_stat_inc(SHIFT_STAT_KERNEL_QPS);
		return 0;
	}
	xa_cmpxchg(&sdev->qpn, sqp->qpn, sqp, NULL, 0);
err_put:
	/* whoever walks all QPs may have found it by its cookie, and have queued work for it */
	qp_dead(sqp);
	mutex_lock(&sqp->lock);
	sqp->qp = NULL;
	shift_srq_leave(sqp);
	mutex_unlock(&sqp->lock);
	qp_cancel(sqp);
	qp_leave_cqs(sqp);
	shift_qp_put(sqp);
	return err;
}

/* The record of a QP of the kernel, if it is to be tracked; else NULL. */
static struct shift_kernel_qp *qp_kernel_new(const struct shift_dev *sdev, const struct ib_qp *qp,
					     const struct ib_qp_init_attr *attr)
{
	enum shift_ulp ulp = shift_kernel_user(sdev, qp);

	return ulp == SHIFT_ULP_NONE ? NULL : shift_kernel_qp_new(ulp, attr);
}

static int wrap_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr,
			  struct ib_udata *udata)
{
	struct shift_lent lent;
	const struct ib_qp_cap asked = attr->cap;
	struct shift_kernel_qp *kernel = NULL;
	struct shift_dev *sdev;
	bool counted;
	int idx, err;

	sdev = shift_verb_begin(qp->device, &idx);
	shift_account_lend(&lent, true);
	err = sdev->saved.create_qp(qp, attr, udata);
	/* XRC targets come without @udata, too: not tracked */
	if (!err && !udata)
		kernel = qp_kernel_new(sdev, qp, attr);
	if (err || (!udata && shift_kernel_is_own(qp)))
		goto out;
	counted = (kernel || (udata && qp->uobject)) && shift_dev_count(sdev);
	if (!counted)
		shift_kernel_qp_free(kernel);
	else if (!qp_track(sdev, qp, attr, &asked, kernel))
		goto out;
	if (counted)
		shift_dev_uncount(sdev);
	if (!udata && qp->qp_type == IB_QPT_RC)
		shift_unlisted_add(sdev, qp);
	if (attr->srq && !shift_srq_spoil(attr->srq)) {
		shift_unlisted_drop(sdev, qp->qp_num);
		sdev->saved.destroy_qp(qp, udata);
		err = -EBUSY;
	}
out:
	if (!err && udata)
		shift_charge_make_room(sdev);
	shift_account_restore(&lent);
	shift_verb_end(sdev, idx);
	return err;
}

/* Has the address gone with which it was connected?  RDMA CM can send nothing from it any more. */
static bool qp_is_mute(const struct shift_qp *sqp)
{
	return sqp->sdev->ibdev && !shift_gid_is_there(sqp->sdev->ibdev, sqp->app.sgid_index);
}

/*
 * The application's QP goes, because the application destroys it or because its device is removed.
 * When this returns true, the module touches neither the QP nor its rings nor the backup any more.
 * The shadow is a member of its SRQ until qp_left().
 */
static bool qp_detach(struct shift_qp *sqp)
{
	struct shift_dev *sdev = sqp->sdev;
	unsigned int noio;

	if (!shift_untrack(sdev, &sqp->obj))
		return false;
	xa_cmpxchg(&sdev->qpn, sqp->qpn, sqp, NULL, 0);
	if (sqp->kernel) {
		shift_kernel_cq_lose(sqp->scq->kernel, sqp->qp);
		shift_kernel_cq_lose(sqp->rcq->kernel, sqp->qp);
	}

	qp_dead(sqp);
	if (sqp->kernel)
		synchronize_rcu_expedited();	/* shift_qp_kick_any() */
	noio = shift_qp_lock(sqp);
	if (sqp->fo.state != SHIFT_ST_OFF)
		shift_failover_event(sqp, SHIFT_EV_APP_ERROR, NULL);
	/* its device may be going: the application polls for all that it has posted */
	if (sqp->fo.state == SHIFT_ST_FAIL || sqp->fo.state == SHIFT_ST_APP)
		shift_replay_flush(sqp);
	shift_pairing_drop(sqp);
	shift_proxy_destroy(sqp);
	shift_mw_disown(sqp);
	WRITE_ONCE(sqp->qp, NULL);
	sqp->obj.ufile = NULL;
	shift_qp_unlock(sqp, noio);
	shift_qp_unregister(sqp);
	shift_pairing_settle(sqp);
	qp_cancel(sqp);
	shift_charge_drop(&sqp->charge);
	shift_qp_look_drop(sqp);
	shift_connection_ends(sdev->ibdev, sqp->qpn, sqp->app.dest_qpn, qp_is_mute(sqp));
	shift_dev_uncount(sdev);
	return true;
}

/*
 * A detached QP leaves its SRQ: the driver has destroyed the application's QP, so that it takes no
 * receive any more, or the SRQ goes as well.
 */
static void qp_left(struct shift_qp *sqp)
{
	unsigned int noio = shift_qp_lock(sqp);

	shift_srq_leave(sqp);
	shift_qp_unlock(sqp, noio);
	qp_leave_cqs(sqp);
	shift_qp_put(sqp);
}

/* The user has destroyed its QP, and is shown no completion of it any more. */
static void qp_forget_completions(struct shift_qp *sqp, const struct ib_qp *qp)
{
	if (!sqp->kernel)
		return;
	shift_kernel_cq_forget(sqp->scq->kernel, qp);
	shift_kernel_cq_forget(sqp->rcq->kernel, qp);
}

static int wrap_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	struct shift_dev *sdev;
	struct shift_qp *sqp;
	bool detached;
	int idx, err;

	sdev = shift_verb_begin(qp->device, &idx);
	sqp = shift_qp_find(qp);
	detached = sqp && qp_detach(sqp);
	/* before the driver gives its number to another one */
	if (!sqp && !udata && qp->qp_type == IB_QPT_RC)
		shift_unlisted_drop(sdev, qp->qp_num);
	if (detached && test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags))
		shift_qp_drain(qp, &sdev->saved);
	if (detached)
		qp_forget_completions(sqp, qp);
	err = sdev->saved.destroy_qp(qp, udata);
	/* another QP's fence may have found more in the driver's CQ */
	if (detached)
		qp_forget_completions(sqp, qp);
	/* only now, as other QPs of its SRQ may then take all receives to another path */
	if (detached)
		qp_left(sqp);
	shift_verb_end(sdev, idx);
	return err;
}

/*
 * Called at each doorbell of a device whose doorbell is a system call: that of a user QP comes
 * without a work request.  It runs under RCU.  A fence sets GATED and waits for a grace period, and
 * then knows that no doorbell is on its way into the driver.
 */
static int wrap_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad_wr)
{
	struct shift_dev *sdev;
	struct shift_qp *sqp;
	int err;

	rcu_read_lock();
	sqp = shift_qp_find_rcu(qp);
	if (sqp && !wr && test_bit(SHIFT_QPB_GATED, &sqp->pend.flags)) {
		shift_replay_doorbell(sqp);
		err = 0;
	} else if (wr && sqp && sqp->kernel) {
		err = shift_kernel_send(sqp, qp, wr, bad_wr);
	} else {
		if (sqp && !wr && READ_ONCE(sqp->rings.tracks_mws))
			sqp->rings.provider->posting(sqp);
		if (!sqp && qp->qp_type == IB_QPT_GSI)
			shift_gsi_posting(qp, wr);
		sdev = sqp ? sqp->sdev : shift_ops_dev(qp->device);
		err = sdev->saved.post_send(qp, wr, bad_wr);
	}
	rcu_read_unlock();
	return err;
}

const struct ib_device_ops shift_qp_ops = {
	.create_qp = wrap_create_qp,
	.destroy_qp = wrap_destroy_qp,
	.post_send = wrap_post_send,
};

/**
 * shift_qp_pair_gone - QPs of a dying pair lose their protection
 * @pair: the pair; nothing more is made on its backup.
 *
 * Those on the default device go on.  Those on the backup fail.
 *
 * Context: process context.
 */
void shift_qp_pair_gone(struct shift_pair *pair)
{
	unsigned long index = 0;
	struct shift_qp *sqp;
	unsigned int noio;

	for (; (sqp = shift_qp_next(&index)); shift_qp_put(sqp)) {
		if (shift_qp_pair(sqp) != pair)
			continue;
		noio = shift_qp_lock(sqp);
		if (sqp->qp)
			shift_failover_backup_gone(sqp);
		shift_qp_unlock(sqp, noio);
	}
}

/**
 * shift_qp_device_gone - a default device goes: detach its QPs
 * @sdev: the device, which does not track new objects.
 *
 * Context: process context; waits for verbs that are under way.
 */
void shift_qp_device_gone(struct shift_dev *sdev)
{
	struct shift_qp *sqp, *next;
	unsigned long index = 0;
	LIST_HEAD(left);

	for (; (sqp = shift_qp_next(&index)); shift_qp_put(sqp))
		if (sqp->sdev == sdev && qp_detach(sqp))
			list_add_tail(&sqp->obj.list, &left);
	/* a verb may have found one, and wait for its lock */
	shift_verbs_wait(sdev);
	list_for_each_entry_safe(sqp, next, &left, obj.list) {
		list_del_init(&sqp->obj.list);
		qp_left(sqp);
	}
}
