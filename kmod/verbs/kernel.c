// SPDX-License-Identifier: GPL-2.0
/*
 * Users in the kernel: which of them are tracked, and their verbs that do not sleep.
 *
 * The wrappers here are put into a device only if such a user can be protected on it.  They run
 * in any context, under RCU.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "core/dma.h"
#include "core/kernel_cq.h"
#include "core/kernel_qp.h"
#include "core/kernel_srq.h"
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/pair.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/reclaim.h"
#include "core/srq.h"
#include "failover/failover.h"
#include "provider/provider.h"
#include "proxy/proxy.h"
#include "pure/ledger.h"
#include "pure/ulp.h"
#include "srq/srq.h"
#include "verbs/verbs.h"

/* BIT(enum shift_ulp): at first those that are tested */
static u32 kernel_users = BIT(SHIFT_ULP_NVME) | BIT(SHIFT_ULP_NFS) | BIT(SHIFT_ULP_RDS) |
			  BIT(SHIFT_ULP_ISER);

static int users_set(const char *text, const struct kernel_param *param)
{
	int err = shift_ulp_parse(text, &kernel_users);

	if (err && strstr(text, "smc"))
		pr_err("kernel_users: SMC-R leaves a failed port by itself, at the same time as the module\n");
	return err;
}

/**
 * shift_users_text - names of users, with commas between them
 * @users: BIT(enum shift_ulp) of each; BIT(SHIFT_ULP_NONE): applications.
 * @text: where to.
 * @size: room there; SHIFT_KERNEL_USERS_TEXT is enough.
 *
 * Return: its length.
 */
int shift_users_text(u32 users, char *text, size_t size)
{
	int ulp, n = 0;

	for (ulp = 0; ulp < __SHIFT_ULP_MAX; ulp++)
		if (users & BIT(ulp))
			n += scnprintf(text + n, size - n, "%s%s", n ? "," : "",
				       ulp ? shift_ulp_name(ulp) : "applications");
	return n ?: scnprintf(text, size, "%s", shift_ulp_name(SHIFT_ULP_NONE));
}

/* Whose QPs are protected: as shift_users_text(). */
int shift_kernel_users_text(char *text, size_t size)
{
	return shift_users_text(kernel_users, text, size);
}

static int users_get(char *text, const struct kernel_param *param)
{
	int n = shift_kernel_users_text(text, PAGE_SIZE - 1);

	return n + scnprintf(text + n, PAGE_SIZE - n, "\n");
}

static const struct kernel_param_ops users_ops = { .set = users_set, .get = users_get };
module_param_cb(kernel_users, &users_ops, NULL, 0444);
MODULE_PARM_DESC(kernel_users, "users in the kernel whose QPs are protected: nvme,nfs,rds,iser,srp, or none");

/* Can QPs of such a device be stopped, and its work be done on another one? */
static bool dev_moves(const struct shift_dev *sdev)
{
	const struct shift_provider *device = sdev->provider;

	return device && device->flags & SHIFT_PROVIDES_KERNEL &&
	       (!device->kernel_users || *device->kernel_users);
}

/* Has it shown what is assumed of it? */
static bool dev_is_proven(const struct shift_dev *sdev)
{
	return shift_proof_holds(sdev, sdev->provider->protects_if);
}

/**
 * shift_kernel_users - is any user in the kernel to be tracked on a device?
 * @sdev: the device.
 *
 * Where none can be protected they are left alone.  Constant for the life of the device.
 */
bool shift_kernel_users(const struct shift_dev *sdev)
{
	return kernel_users && dev_moves(sdev);
}

/**
 * shift_kernel_pd_user - whose PD is it?
 * @sdev: its device.
 * @pd: a PD of the kernel.
 *
 * Context: process context.
 * Return: enum shift_ulp; NONE: it is not to be tracked.
 */
enum shift_ulp shift_kernel_pd_user(const struct shift_dev *sdev, const struct ib_pd *pd)
{
	enum shift_ulp ulp = shift_kernel_users(sdev) ? shift_ulp_of_module(pd->res.kern_name) :
							SHIFT_ULP_NONE;

	return kernel_users & BIT(ulp) ? ulp : SHIFT_ULP_NONE;
}

/* Has this module made a QP of the kernel itself? */
bool shift_kernel_is_own(const struct ib_qp *qp)
{
	return qp->res.kern_name && !strcmp(qp->res.kern_name, KBUILD_MODNAME);
}

/**
 * shift_kernel_user - whose QP is it?
 * @sdev: its device.
 * @qp: a QP of the kernel that was just created.
 *
 * Users have their QPs made by the RDMA CM, so the name of the QP is that one's.  They allocate the
 * PD themselves.  What this module makes in the PD of a user is its own.
 *
 * Context: process context.
 * Return: enum shift_ulp; NONE: it is not to be tracked.
 */
enum shift_ulp shift_kernel_user(const struct shift_dev *sdev, const struct ib_qp *qp)
{
	if (qp->qp_type != IB_QPT_RC || shift_kernel_is_own(qp))
		return SHIFT_ULP_NONE;
	return shift_kernel_pd_user(sdev, qp->pd);
}

/**
 * shift_kernel_qp_register - the engine may take the work of a kernel user's QP
 * @sqp: the QP, which nobody else can find yet.
 *
 * Context: process context.
 * Return: why not; NONE: it may, and a ledger is there.
 */
enum shift_reason shift_kernel_qp_register(struct shift_qp *sqp)
{
	struct shift_kernel_qp *kernel = sqp->kernel;
	struct shift_recvs *recvs = &sqp->rec.recvs;
	struct shift_pair *pair = shift_qp_pair(sqp);
	/* a ledger holds one entry less than it has slots */
	u32 slots = 2 * max(kernel->send.ring.slots, 1u);
	struct shift_entry *entry;

	if (kernel->unrecorded)
		return SHIFT_REASON_RECORD;
	if (!pair)
		return SHIFT_REASON_OLD_OBJECT;
	if (!dev_moves(sqp->sdev) || !dev_moves(pair->backup))
		return SHIFT_REASON_KERNEL_USER;
	if (!dev_is_proven(sqp->sdev) || !dev_is_proven(pair->backup))
		return SHIFT_REASON_UNPROVEN;
	/* how many receives of a shared queue it has begun is not known: they are not its own */
	if (sqp->srqm.ssrq && !(sqp->sdev->provider->flags & SHIFT_PROVIDES_RESET_PSN))
		return SHIFT_REASON_SRQ;
	if (!shift_dma_alike(sqp->sdev->ibdev, pair->backup->ibdev))
		return SHIFT_REASON_IOMMU;
	entry = shift_kernel_zalloc(array_size(slots, sizeof(*entry)));
	if (kernel->recv.ring.slots) {
		recvs->slots = kernel->recv.ring.slots;
		recvs->entry = shift_kernel_zalloc(array_size(recvs->slots,
							      sizeof(*recvs->entry)));
	}
	if (!entry || (recvs->slots && !recvs->entry)) {
		kvfree(entry);
		shift_recv_free(recvs);
		return SHIFT_REASON_RECORD;
	}
	shift_ledger_init(&sqp->rec.ledger, entry, NULL, slots, 0);
	sqp->rings.provider = &shift_provider_kernel;
	sqp->rings.usable = true;
	return SHIFT_REASON_NONE;
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
 * loaded, and the core keeps those of its pools until the device goes.  Nobody waits for reclaim
 * with the mutex: that may wait for a disk, and its driver for the mutex, to connect again.
 *
 * Context: process context.
 * Return: the shadow, for shift_kernel_cq_leave() and shift_cq_put(); NULL: there is none.
 */
struct shift_cq *shift_kernel_cq_join(struct shift_dev *sdev, struct ib_cq *cq)
{
	unsigned int noio = memalloc_noio_save();
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
	memalloc_noio_restore(noio);
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

/*
 * Requests of a gated QP were recorded only.  The engine takes them from there: in this thread if
 * the QP is on a proxy QP and the context allows it, else in the work item.
 */
static void kernel_kept(struct shift_qp *sqp, bool recv)
{
	bool here = !in_interrupt() && !irqs_disabled();
	unsigned int saved;

	if (here) {
		/* as in the work item: reclaim may wait for this very request */
		saved = shift_reclaim_begin();
		if (recv)
			shift_recv_doorbell(sqp);
		else
			shift_replay_doorbell(sqp);
		shift_reclaim_end(saved);
	}
	if (here && !recv)
		return;
	if (here && READ_ONCE(sqp->rec.live))
		return;
	set_bit(SHIFT_QPB_KEPT, &sqp->pend.flags);
	shift_qp_kick_any(sqp, SHIFT_QPB_KICK);
}

/**
 * shift_kernel_send - the op post_send of a tracked QP
 * @sqp: its shadow.
 * @qp: the QP.
 * @wr: as the op.
 * @bad_wr: the same.
 *
 * Context: any; RCU.
 * Return: as the op.
 */
int shift_kernel_send(struct shift_qp *sqp, struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad_wr)
{
	bool kept;
	int err;

	err = shift_kernel_post_send(sqp, qp, wr, bad_wr, &kept);
	if (kept)
		kernel_kept(sqp, false);
	return err;
}

static int wrap_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad_wr)
{
	struct shift_dev *sdev;
	struct shift_qp *sqp;
	bool kept;
	int err;

	rcu_read_lock();
	sqp = shift_qp_find_rcu(qp);
	if (sqp && sqp->kernel) {
		err = shift_kernel_post_recv(sqp, qp, wr, bad_wr, &kept);
		if (kept)
			kernel_kept(sqp, true);
	} else {
		sdev = sqp ? sqp->sdev : shift_ops_dev(qp->device);
		err = sdev->saved.post_recv(qp, wr, bad_wr);
	}
	rcu_read_unlock();
	return err;
}

/*
 * What is posted to an SRQ that is away is passed on in this thread, unless interrupts are
 * disabled.  Who completes requests of a target does so in any context.
 */
static int wrap_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
			      const struct ib_recv_wr **bad_wr)
{
	struct shift_dev *sdev;
	struct shift_srq *ssrq;
	bool kept = false;
	int err;

	rcu_read_lock();
	ssrq = shift_srq_find_rcu(srq);
	if (ssrq && ssrq->kernel) {
		err = shift_kernel_srq_post(ssrq, wr, bad_wr, &kept);
	} else {
		sdev = ssrq ? ssrq->sdev : shift_ops_dev(srq->device);
		err = sdev->saved.post_srq_recv(srq, wr, bad_wr);
	}
	if (kept && (in_hardirq() || irqs_disabled()))
		queue_work(shift_wq, &ssrq->kernel->work);
	else if (kept)
		shift_srq_doorbell(ssrq);
	rcu_read_unlock();
	return err;
}

/*
 * May the user see this error?  With interrupts disabled the CQE filter cannot be asked.  Then it
 * may, unless the QP was fenced: the record stops, so that the QP does not move any more.
 */
static bool error_is_shown(struct shift_qp *sqp, const struct shift_cq *scq, u32 status)
{
	if (irqs_disabled())
		return shift_kernel_qp_stop_unless_fenced(sqp);
	/* what is outstanding is not known: nothing is kept back, whatever the reason */
	if (!test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags) && !shift_kernel_qp_is_whole(sqp))
		status = IB_WC_GENERAL_ERR;
	return shift_cqe_filter(sqp, scq, status, NULL) == SHIFT_CQE_DELIVER;
}

/* Take errors out of polled completions that their user is not to see; returns how many stay. */
static int keep_shown(const struct shift_cq *scq, int n, struct ib_wc *wc)
{
	struct shift_qp *sqp;
	int i, shown = 0;

	for (i = 0; i < n; i++) {
		sqp = wc[i].status ? shift_qp_find_rcu(wc[i].qp) : NULL;
		if (sqp && sqp->kernel) {
			if (!error_is_shown(sqp, scq, wc[i].status))
				continue;
			shift_kernel_qp_stop(sqp);
			if (sqp->srqm.ssrq && sqp->srqm.ssrq->kernel)
				shift_kernel_srq_errored(sqp->srqm.ssrq, wc[i].wr_id);
		}
		if (shown != i)
			wc[shown] = wc[i];
		shown++;
	}
	return shown;
}

/*
 * The side ring comes first, and only when it is empty the driver's CQ: what is in it is older than
 * what the driver has of the same QP.  Who is given less than it has asked for takes that for the
 * end, so that this goes on if something was kept back.
 */
static int kernel_poll(struct shift_cq *scq, struct ib_cq *cq, int num, struct ib_wc *wc)
{
	struct shift_kernel_cq *kernel = scq->kernel;
	int got, shown, n = 0;
	unsigned long flags;
	bool raw, side;

	do {
		spin_lock_irqsave(&kernel->poll_lock, flags);
		got = shift_kernel_cq_take(kernel, num - n, wc + n, &raw);
		side = got;
		if (!side) {
			got = shift_kernel_cq_poll(scq, cq, num - n, wc + n);
			raw = true;
		}
		spin_unlock_irqrestore(&kernel->poll_lock, flags);
		if (got <= 0)
			return n ?: got;
		shown = raw ? keep_shown(scq, got, wc + n) : got;
		n += shown;
	} while (n < num && (side || shown < got));
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
	.post_srq_recv = wrap_post_srq_recv,
	.poll_cq = wrap_poll_cq,
};
