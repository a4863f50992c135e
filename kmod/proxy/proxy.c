// SPDX-License-Identifier: GPL-2.0
/*
 * Proxy QPs: kernel-owned QPs that carry the traffic of an application's QP after a failover, also
 * while the application sleeps.
 *
 *	spare	in RESET, never connected: one for the path that may be needed next
 *	active	connected for one failover; later stopped
 *	retired	stopped for good, to be destroyed when there is time
 *
 * Each is connected only once.  So no packet, timer or completion of an earlier connection can
 * be taken for one of the present, and drivers need not be good at using a QP again
 * (rxe is not: what its completer and responder have begun survives a RESET).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/interrupt.h>
#include <linux/irq_poll.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "core/account.h"
#include "core/ib.h"
#include "core/node.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/proxy.h"
#include "core/qp.h"
#include "mw/mw.h"
#include "provider/provider.h"
#include "proxy/proxy.h"
#include "pure/flush_wait.h"
#include "pure/psn.h"
#include "srq/srq.h"

#define ANSWER_US		10000	/* to wait for the NAK of a bad receive; scaled */
#define RETIRED_MAX		4	/* retired proxy QPs of one QP */

/* Number of the QP to which the peer's is to be connected on @path; 0: there is none. */
u32 shift_proxy_qpn(const struct shift_qp *sqp, u8 path)
{
	return path < SHIFT_PATHS ? READ_ONCE(sqp->proxies.qpn[path]) : 0;
}

/* Set the spare proxy QP of a path; @b NULL: there is none any more.  sqp->lock. */
static void proxy_set_spare(struct shift_qp *sqp, u8 path, struct shift_proxy *b)
{
	lockdep_assert_held(&sqp->lock);
	sqp->proxies.spare[path] = b;
	WRITE_ONCE(sqp->proxies.qpn[path], b ? b->qp->qp_num : 0);
}

/*
 * How much inline data a proxy QP has to take.  What the application's library says is not checked
 * by its driver: that of mlx5 asks for -4 bytes if there are neither SGEs nor inline data.
 */
static u32 proxy_inline(const struct shift_qp *sqp)
{
	u32 bytes = sqp->app.init.cap.max_inline_data;

	return bytes <= PAGE_SIZE ? bytes : 0;
}

static void proxy_event(struct ib_event *event, void *context)
{
	/* nothing to do: errors show in completions, too */
}

/*
 * Entries of its CQ.  The limit is met on rxe by rings of 16384 slots each.  Such a ring holds one
 * request less than it has slots, so that all completions have room all the same.
 */
static u32 proxy_cqes(const struct shift_proxy *b, const struct ib_device *ibdev)
{
	return min_t(u32, b->depth + b->recv_depth + 1, ibdev->attrs.max_cqe);
}

static int proxy_make_queues(struct shift_proxy *b, struct ib_pd *pd,
			     struct ib_qp_init_attr *init)
{
	b->cq = ib_alloc_cq_any(pd->device, b, proxy_cqes(b, pd->device), IB_POLL_SOFTIRQ);
	if (IS_ERR(b->cq))
		return PTR_ERR(b->cq);
	init->send_cq = b->cq;
	init->recv_cq = b->cq;
	b->qp = ib_create_qp(pd, init);
	if (IS_ERR(b->qp))
		goto err_cq;
	if (!b->sqp->rings.provider->mrs || !shift_registrar_make(b))
		return 0;
	ib_destroy_qp(b->qp);
err_cq:
	ib_free_cq(b->cq);
	return -ENOMEM;
}

static struct shift_proxy *proxy_make(struct shift_qp *sqp, u8 path, struct ib_pd *pd)
{
	struct ib_device *ibdev = pd->device;
	struct ib_qp_init_attr init = {
		.event_handler = proxy_event,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = clamp_t(u32, sqp->rings.provider->send_slots(sqp), 1,
					       ibdev->attrs.max_qp_wr),
			.max_recv_wr = clamp_t(u32, sqp->rec.recvs.slots, 1,
					       ibdev->attrs.max_qp_wr),
			.max_send_sge = clamp_t(u32, sqp->app.init.cap.max_send_sge, 1,
						ibdev->attrs.max_send_sge),
			.max_recv_sge = clamp_t(u32, sqp->app.init.cap.max_recv_sge, 1,
						ibdev->attrs.max_recv_sge),
			.max_inline_data = proxy_inline(sqp),
		},
	};
	struct mem_cgroup *payer;
	struct shift_proxy *b;
	int err;

	b = kvzalloc(sizeof(*b), GFP_KERNEL | SHIFT_GFP_PAID);
	if (!b)
		return NULL;
	b->sqp = sqp;
	INIT_LIST_HEAD(&b->regions);
	b->cqe.done = shift_proxy_done;
	b->recv_cqe.done = shift_proxy_recv_done;
	b->depth = init.cap.max_send_wr;
	b->recv_depth = init.cap.max_recv_wr;
	if (sqp->srqm.ssrq) {
		b->pool = shift_srq_pool_get(sqp, path, pd);
		if (!b->pool)
			goto err_free;
		init.srq = b->pool->srq;
		init.cap.max_recv_wr = 0;
		init.cap.max_recv_sge = 0;
		b->recv_depth = b->pool->depth;
	}
	/*
	 * The driver's memory is charged to nobody.  If it was (rxe's sockets are) the process
	 * would be killed for what has no room within its limit, instead of being unprotected.
	 */
	payer = set_active_memcg(NULL);
	err = proxy_make_queues(b, pd, &init);
	set_active_memcg(payer);
	if (!err)
		return b;
	shift_srq_pool_put(b->pool);
err_free:
	kvfree(b);
	return NULL;
}

/*
 * The PD in which the keys of a path are valid.  On the default device it is the application's own
 * PD, which cannot be freed while the application's QP exists.
 */
static struct ib_pd *path_pd(struct shift_qp *sqp, u8 path)
{
	struct shift_dev *sdev = sqp->sdev;

	if (path == SHIFT_PATH_HOME)
		return sqp->qp && sdev->ibdev && sqp->spd ? sqp->spd->pd : NULL;
	return shift_pd_mirror(sqp->spd);
}

static void proxy_free(struct shift_proxy *b)
{
	if (!b)
		return;
	shift_regions_free(b);
	shift_qp_quiet(b->qp);
	ib_destroy_qp(b->qp);
	ib_free_cq(b->cq);
	shift_srq_pool_put(b->pool);
	kvfree(b);
}

static void proxy_free_retired(struct shift_qp *sqp)
{
	struct shift_proxy *b, *next;

	list_for_each_entry_safe(b, next, &sqp->proxies.retired, list) {
		list_del(&b->list);
		proxy_free(b);
	}
	sqp->proxies.nretired = 0;
}

/* Put a proxy QP that nothing uses any more in the list of retired ones; sqp->lock. */
static void proxy_add_retired(struct shift_qp *sqp, struct shift_proxy *b)
{
	lockdep_assert_held(&sqp->lock);
	list_add_tail(&b->list, &sqp->proxies.retired);
	sqp->proxies.nretired++;
}

/**
 * shift_proxy_prepare - make a spare proxy QP on a path, unless there is one
 * @sqp: the QP, locked.
 * @path: SHIFT_PATH_BACKUP or SHIFT_PATH_HOME.
 *
 * Context: process context; may sleep on the device.
 * Return: 0, also if it is there already; -ENODEV, -ENOMEM.
 */
int shift_proxy_prepare(struct shift_qp *sqp, u8 path)
{
	bool used = path == SHIFT_PATH_BACKUP;
	struct shift_proxy *b;
	struct ib_pd *pd;

	lockdep_assert_held(&sqp->lock);
	if (!path || path >= SHIFT_PATHS)
		return -ENODEV;
	b = sqp->proxies.spare[path];
	if (b && shift_srq_pool_fits(sqp, path, b->pool))
		return 0;
	if (b) {
		/* it is on a pool of its SRQ that is not used again */
		proxy_add_retired(sqp, b);
		proxy_set_spare(sqp, path, NULL);
	}
	/* failovers in a row never get to RUN, where shift_proxy_tidy() would do this */
	if (sqp->proxies.nretired >= RETIRED_MAX)
		proxy_free_retired(sqp);
	if (used && !shift_pair_use(shift_qp_pair(sqp)))
		return -ENODEV;
	pd = path_pd(sqp, path);
	if (pd)
		proxy_set_spare(sqp, path, proxy_make(sqp, path, pd));
	if (used)
		shift_pair_unuse(shift_qp_pair(sqp));
	if (!sqp->proxies.spare[path])
		return pd ? -ENOMEM : -ENODEV;
	sqp->proxies.spare[path]->path = path;
	return 0;
}

/**
 * shift_proxy_tidy - after a failover: destroy retired proxy QPs, and make the next spare
 * @sqp: the QP, locked, in RUN.
 *
 * If no spare can be made now, the next failover tries again.
 */
void shift_proxy_tidy(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	proxy_free_retired(sqp);
	if (sqp->fo.path)
		shift_proxy_prepare(sqp, sqp->fo.path == SHIFT_PATH_BACKUP ?
					   SHIFT_PATH_HOME : SHIFT_PATH_BACKUP);
}

/* Retire the active proxy QP, which was stopped, and make @next the active one. */
static void proxy_replace(struct shift_qp *sqp, struct shift_proxy *next)
{
	struct shift_proxy *b = sqp->rec.proxy;

	spin_lock_bh(&sqp->ledger_lock);
	sqp->rec.proxy = next;
	spin_unlock_bh(&sqp->ledger_lock);
	if (b)
		proxy_add_retired(sqp, b);
}

/* Retire the active proxy QP, which was stopped; none is active then.  sqp->lock. */
void shift_proxy_retire(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	proxy_replace(sqp, NULL);
}

/* Destroy retired proxy QPs, and the spare of a path; process context, sqp->lock. */
void shift_proxy_drop(struct shift_qp *sqp, u8 path)
{
	lockdep_assert_held(&sqp->lock);
	proxy_free_retired(sqp);
	proxy_free(sqp->proxies.spare[path]);
	proxy_set_spare(sqp, path, NULL);
}

/* Destroy all proxy QPs; process context, sqp->lock.  No completion handler runs after this. */
void shift_proxy_destroy(struct shift_qp *sqp)
{
	int i;

	lockdep_assert_held(&sqp->lock);
	shift_proxy_stop(sqp);
	proxy_replace(sqp, NULL);
	for (i = 0; i < SHIFT_PATHS; i++)
		shift_proxy_drop(sqp, i);
}

/*
 * Post nothing more: a QP in RESET refuses posts, which would look like an error.  From now on
 * flushes are no errors, either: shift_proxy_flushed().
 */
static void proxy_stop_posting(struct shift_proxy *b)
{
	spin_lock_bh(&b->sqp->ledger_lock);
	b->live = false;
	b->open = false;
	spin_unlock_bh(&b->sqp->ledger_lock);
}

/* Ignore completions from now on. */
static void proxy_disarm(struct shift_proxy *b)
{
	spin_lock_bh(&b->sqp->ledger_lock);
	b->armed = false;
	b->inflight = 0;
	spin_unlock_bh(&b->sqp->ledger_lock);
}

static int proxy_reset(struct shift_proxy *b)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	return ib_modify_qp(b->qp, &attr, IB_QP_STATE);
}

/* Bring it to RESET: no packet is executed any more. */
static int proxy_halt(struct shift_proxy *b)
{
	shift_qp_stop(b->qp);
	return proxy_reset(b);
}

/* Number of requests that were posted and have no completion yet. */
static u32 proxy_left(struct shift_proxy *b)
{
	u32 left;

	spin_lock_bh(&b->sqp->ledger_lock);
	left = b->inflight + b->receives;
	spin_unlock_bh(&b->sqp->ledger_lock);
	return left;
}

/*
 * Wait until everything that was posted is completed or flushed, as long as completions come.
 * Receives are needed most, as the peer cannot tell what was received here.
 */
static void proxy_wait_flushed(struct shift_proxy *b)
{
	struct shift_flush_wait wait;
	u32 left = proxy_left(b);

	shift_flush_wait_begin(&wait, ktime_get_ns(), shift_scale(1), left);
	while (left && !shift_flush_wait_is_over(&wait, ktime_get_ns(), left)) {
		usleep_range(50, 100);
		left = proxy_left(b);
	}
}

/* Query state and expected PSN, into b->attr. */
static int proxy_ask(struct shift_proxy *b)
{
	struct ib_qp_init_attr init = {};

	return ib_query_qp(b->qp, &b->attr, IB_QP_STATE | IB_QP_RQ_PSN, &init);
}

/*
 * Handle the completions that are still in the CQ: their work was executed, and the peer relies on
 * that.  The CQ's poll handler is kept away meanwhile.
 */
static void proxy_drain_cq(struct ib_cq *cq)
{
	struct ib_wc wc[4];
	int i, n;

	irq_poll_disable(&cq->iop);
	do {
		n = ib_poll_cq(cq, ARRAY_SIZE(wc), wc);
		for (i = 0; i < n; i++)
			wc[i].wr_cqe->done(cq, &wc[i]);
	} while (n > 0);
	irq_poll_enable(&cq->iop);
	if (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
		irq_poll_sched(&cq->iop);
}

/* Are receives left with it?  Those of a pool are not counted, and stay in the pool. */
static bool proxy_may_receive(const struct shift_proxy *b)
{
	return READ_ONCE(b->receives) || b->pool;
}

/*
 * A NIC need not know in RESET how far a QP has received, and its driver drops completions that
 * were not polled by then.  So it is asked in ERR, when all of its work is completed or flushed.
 */
static int proxy_ask_and_halt(struct shift_proxy *b)
{
	int err, asked = shift_qp_stop(b->qp);

	if (!asked)
		proxy_wait_flushed(b);
	proxy_drain_cq(b->cq);
	if (!asked)
		asked = proxy_ask(b);
	/* what counts in the answer is not to be dropped */
	if (b->pool)
		proxy_drain_cq(b->cq);
	err = proxy_reset(b);
	/* of a pool nothing is flushed: what was executed is completed when ERR is done */
	if (READ_ONCE(b->receives) || (asked && b->pool))
		return -ENODATA;
	return err || asked ? -EIO : 0;
}

/* A device that can be asked in RESET gives its final answer only then. */
static int proxy_halt_and_ask(struct shift_proxy *b)
{
	int stopped = shift_qp_stop(b->qp);

	/* in ERR it receives nothing more, and in RESET neither */
	if (proxy_reset(b))
		return stopped && proxy_may_receive(b) ? -ENODATA : -EIO;
	return proxy_ask(b) ? -EIO : 0;
}

/*
 * Wait until the peer was told of a bad receive.  rxe completes the receive first and sends the NAK
 * next, unless the QP is in ERR by then; it brings the QP to ERR when the NAK was sent.
 */
static void proxy_wait_answered(struct shift_proxy *b)
{
	u64 end = shift_from_now_us(ANSWER_US);

	while (!proxy_ask(b) && b->attr.qp_state != IB_QPS_ERR && ktime_get_ns() < end)
		usleep_range(50, 100);
}

/* Stop the active proxy QP.  Work that a fence has not taken in is lost.  sqp->lock. */
void shift_proxy_stop(struct shift_qp *sqp)
{
	struct shift_proxy *b = sqp->rec.proxy;

	lockdep_assert_held(&sqp->lock);
	if (!b)
		return;
	proxy_stop_posting(b);
	/* a fence may have failed to do this; if not, it does nothing to a QP in RESET */
	proxy_halt(b);
	proxy_disarm(b);
}

/**
 * shift_proxy_fence - stop the active proxy QP and take in what it has executed
 * @sqp: the QP, locked.
 *
 * Context: process context; sleeps.
 * Return: 0, also if it was stopped already; -EIO: it cannot be asked how far it has received;
 * -ENODATA: nor is it known here which of its receives were executed.
 */
int shift_proxy_fence(struct shift_qp *sqp)
{
	struct shift_proxy *b = sqp->rec.proxy;
	int err;

	lockdep_assert_held(&sqp->lock);
	if (!b || !b->armed)
		return 0;
	proxy_stop_posting(b);
	if (READ_ONCE(b->recv_failed))
		proxy_wait_answered(b);
	err = sqp->sdev->provider->flags & SHIFT_PROVIDES_RESET_PSN ?
	      proxy_halt_and_ask(b) : proxy_ask_and_halt(b);
	/* also if the device does not answer: the completions are in memory */
	proxy_drain_cq(b->cq);
	if (!err)
		shift_fence_heard(sqp, b->path, b->attr.rq_psn & SHIFT_PSN_MASK);
	proxy_disarm(b);
	return err;
}

/* Both ends are ready: from now on doorbells post to the proxy QP; sqp->lock. */
void shift_proxy_open(struct shift_qp *sqp)
{
	struct shift_proxy *b = sqp->rec.proxy;

	lockdep_assert_held(&sqp->lock);
	if (!b)
		return;
	spin_lock_bh(&sqp->ledger_lock);
	b->open = b->armed;
	sqp->rec.outstanding = (struct shift_arming) {
		.path = b->path, .epoch = sqp->fo.epoch,
		.psn = shift_start_psn(sqp->cookie, sqp->fo.epoch),
	};
	sqp->rec.any_outstanding = true;
	spin_unlock_bh(&sqp->ledger_lock);
}

/* Reserve the SRQ's pool on @path before the QP is fenced; see shift_srq_claim().  sqp->lock. */
int shift_proxy_claim(struct shift_qp *sqp, u8 path)
{
	const struct shift_proxy *b = path < SHIFT_PATHS ? sqp->proxies.spare[path] : NULL;

	lockdep_assert_held(&sqp->lock);
	return shift_srq_claim(sqp, b ? b->pool : NULL);
}

/* The active proxy QP is connected: are receives posted, so that READY can be sent?  sqp->lock. */
bool shift_proxy_ready(struct shift_qp *sqp)
{
	const struct shift_proxy *b = sqp->rec.proxy;

	lockdep_assert_held(&sqp->lock);
	return shift_srq_ready(sqp, b ? b->pool : NULL);
}

/**
 * shift_proxy_arm - connect the spare proxy QP of a path to the peer's for @epoch
 * @sqp: the QP, locked; the active proxy QP was stopped.
 * @path: the new path.
 * @epoch: of the failover that was agreed on.
 * @qpn: the peer's QP on that path.
 *
 * Return: 0 or a negative errno; then no proxy QP is active.
 */
int shift_proxy_arm(struct shift_qp *sqp, u8 path, u32 epoch, u32 qpn)
{
	struct shift_proxy *b;
	int err;

	lockdep_assert_held(&sqp->lock);
	err = shift_proxy_prepare(sqp, path);
	if (err)
		return err;
	b = sqp->proxies.spare[path];
	proxy_set_spare(sqp, path, NULL);
	err = shift_proxy_connect(b, epoch, qpn);
	if (err) {
		pr_warn_ratelimited("%s qp %u: cannot be connected on path %u (%d)\n",
				    sqp->sdev->name, sqp->qpn, path, err);
		proxy_add_retired(sqp, b);
		proxy_replace(sqp, NULL);
		return err;
	}
	sqp->fo.armed[path] = (struct shift_arming) {
		.path = path, .epoch = epoch, .psn = shift_start_psn(sqp->peer.cookie, epoch),
	};
	proxy_replace(sqp, b);
	spin_lock_bh(&sqp->ledger_lock);
	b->next_done = sqp->rec.ledger.tail;
	b->armed = true;
	b->live = true;
	spin_unlock_bh(&sqp->ledger_lock);
	return 0;
}
