// SPDX-License-Identifier: GPL-2.0
/*
 * Users in the kernel: which of them are tracked, and their verbs that do not sleep.
 *
 * The wrappers here are put into a device only if the module was told of any such user.  They run
 * in any context, under RCU.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include "core/kernel_cq.h"
#include "core/kernel_qp.h"
#include "core/object.h"
#include "core/qp.h"
#include "provider/provider.h"
#include "pure/ulp.h"
#include "verbs/verbs.h"

static u32 kernel_users;	/* BIT(enum shift_ulp) */

static int users_set(const char *text, const struct kernel_param *param)
{
	return shift_ulp_parse(text, &kernel_users);
}

static int users_get(char *text, const struct kernel_param *param)
{
	int ulp, n = 0;

	for (ulp = SHIFT_ULP_NONE + 1; ulp < __SHIFT_ULP_MAX; ulp++)
		if (kernel_users & BIT(ulp))
			n += scnprintf(text + n, PAGE_SIZE - n, "%s%s", n ? "," : "",
				       shift_ulp_name(ulp));
	return n + scnprintf(text + n, PAGE_SIZE - n, "\n");
}

static const struct kernel_param_ops users_ops = { .set = users_set, .get = users_get };
module_param_cb(kernel_users, &users_ops, NULL, 0444);
MODULE_PARM_DESC(kernel_users, "users in the kernel whose QPs are recorded: nvme,nfs,rds,iser,srp");

/* Is any user in the kernel to be tracked?  Constant since the module was loaded. */
bool shift_kernel_users(void)
{
	return kernel_users;
}

/**
 * shift_kernel_user - whose QP is it?
 * @qp: a QP of the kernel that was just created.
 *
 * Users have their QPs made by the RDMA CM, so the name of the QP is that one's.  They allocate the
 * PD themselves.  What this module makes in the PD of a user is its own.
 *
 * Context: process context.
 * Return: enum shift_ulp; NONE: it is not to be tracked.
 */
enum shift_ulp shift_kernel_user(const struct ib_qp *qp)
{
	const char *name = qp->res.kern_name;
	enum shift_ulp ulp;

	if (!kernel_users || qp->qp_type != IB_QPT_RC || (name && !strcmp(name, KBUILD_MODNAME)))
		return SHIFT_ULP_NONE;
	ulp = shift_ulp_of_module(qp->pd->res.kern_name);
	return kernel_users & BIT(ulp) ? ulp : SHIFT_ULP_NONE;
}

/* Who makes or drops the shadow of a kernel user's CQ, or changes how many use it. */
static DEFINE_MUTEX(kernel_cqs);

static struct shift_cq *kernel_cq_track(struct shift_dev *sdev, struct ib_cq *cq)
{
	struct shift_kernel_cq *kernel = shift_kernel_cq_new(cq);

	return kernel ? shift_cq_track_kernel(sdev, cq, &shift_provider_kernel, kernel) : NULL;
}

/**
 * shift_kernel_cq_join - the shadow of a CQ that a tracked QP completes into
 * @sdev: its device.
 * @cq: the CQ.
 *
 * It is made for the first such QP, and goes with the last one: CQs are made before the module is
 * loaded, and the core keeps those of its pools until the device goes.
 *
 * Context: process context.
 * Return: the shadow, for shift_kernel_cq_leave() and shift_cq_put(); NULL: there is none.
 */
struct shift_cq *shift_kernel_cq_join(struct shift_dev *sdev, struct ib_cq *cq)
{
	struct shift_cq *scq;

	mutex_lock(&kernel_cqs);
	scq = shift_cq_find(cq);
	if (!scq)
		scq = kernel_cq_track(sdev, cq);
	if (scq && scq->kernel) {
		scq->kernel->users++;
		shift_cq_get(scq);
	} else {
		scq = NULL;
	}
	mutex_unlock(&kernel_cqs);
	return scq;
}

/* A QP is gone that shift_kernel_cq_join() was called for; NULL is fine. */
void shift_kernel_cq_leave(struct shift_cq *scq)
{
	if (!scq)
		return;
	mutex_lock(&kernel_cqs);
	if (!--scq->kernel->users)
		shift_cq_drop(&scq->obj);
	mutex_unlock(&kernel_cqs);
}

static int wrap_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad_wr)
{
	struct shift_dev *sdev;
	struct shift_qp *sqp;
	int err;

	rcu_read_lock();
	sqp = shift_qp_find_rcu(qp);
	if (sqp && sqp->kernel) {
		err = shift_kernel_post_recv(sqp, qp, wr, bad_wr);
	} else {
		sdev = sqp ? sqp->sdev : shift_ops_dev(qp->device);
		err = sdev->saved.post_recv(qp, wr, bad_wr);
	}
	rcu_read_unlock();
	return err;
}

/*
 * Poll the driver.  What was polled leaves the records while poll_lock is held.  So this happens in
 * the order of the device, also if two threads poll the CQ.
 */
static int kernel_poll_driver(struct shift_cq *scq, struct ib_cq *cq, int num, struct ib_wc *wc)
{
	const struct ib_qp *last = NULL;
	struct shift_qp *sqp = NULL;
	int i, n;

	lockdep_assert_held(&scq->kernel->poll_lock);
	n = scq->sdev->saved.poll_cq(cq, num, wc);
	for (i = 0; i < n; i++) {
		if (wc[i].qp != last) {
			last = wc[i].qp;
			/* only compared: it may be of a QP that was destroyed */
			sqp = shift_qp_find_rcu(last);
		}
		if (sqp && sqp->kernel)
			shift_kernel_polled(sqp, &wc[i]);
	}
	return n;
}

/*
 * The side ring comes first, and only when it is empty the driver's CQ: what is in it is older than
 * what the driver has of the same QP.
 */
static int kernel_poll(struct shift_cq *scq, struct ib_cq *cq, int num, struct ib_wc *wc)
{
	unsigned long flags;
	int n, more;

	spin_lock_irqsave(&scq->kernel->poll_lock, flags);
	n = shift_kernel_cq_take(scq->kernel, num, wc);
	if (n < num) {
		more = kernel_poll_driver(scq, cq, num - n, wc + n);
		if (more > 0 || !n)
			n += more;
	}
	spin_unlock_irqrestore(&scq->kernel->poll_lock, flags);
	return n;
}

static int wrap_poll_cq(struct ib_cq *cq, int num, struct ib_wc *wc)
{
	struct shift_dev *sdev;
	struct shift_obj *obj;
	struct shift_cq *scq;
	int n;

	rcu_read_lock();
	obj = shift_object_find_rcu(cq, SHIFT_OBJ_CQ);
	scq = obj ? container_of(obj, struct shift_cq, obj) : NULL;
	if (scq && scq->kernel) {
		n = kernel_poll(scq, cq, num, wc);
	} else {
		sdev = scq ? scq->sdev : shift_ops_dev(cq->device);
		n = sdev->saved.poll_cq(cq, num, wc);
	}
	rcu_read_unlock();
	return n;
}

const struct ib_device_ops shift_kernel_ops = {
	.post_recv = wrap_post_recv,
	.poll_cq = wrap_poll_cq,
};
