// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel-owned QPs: they carry an application's QP that has left its own one, and work
 * while the application sleeps.
 *
 *	spare	in RESET, never connected: one for the path that may be needed next
 *	active	connected for one switch; later stopped
 *	retired	stopped for good, to be destroyed when there is time
 *
 * Each is connected once in its life: no packet, timer or completion of an earlier
 * one can be taken for its own, and drivers need not be good at using a QP again
 * (rxe is not: what its completer and responder had begun survives a RESET).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/interrupt.h>
#include <linux/irq_poll.h>
#include <linux/slab.h>
#include "mw.h"
#include "provider.h"
#include "srq.h"
#include "standby.h"

#define ANSWER_US		10000	/* for the NAK of a bad receive; scaled */
#define FLUSH_US		20000	/* for what a stopped QP was given; scaled */
#define RETIRED_MAX		4	/* of one QP's */

/* The QP that the peer's is to be connected to on @path; 0: there is none. */
u32 shift_standby_qpn(const struct shift_qp *sqp, u8 path)
{
	const struct shift_standby *b = path < SHIFT_PATHS ? sqp->spare[path] : NULL;

	/* its number on the wire, which is the device's affair */
	if (path == SHIFT_PATH_OWN)
		return sqp->qp ? sqp->qp->qp_num : 0;
	return b ? b->qp->qp_num : 0;
}

static void standby_event(struct ib_event *event, void *context)
{
	/* errors show in the completions */
}

/* Room for so many sends: mlx5's slots are blocks, of which each takes one or more. */
static u32 send_depth(const struct shift_qp *sqp)
{
	u32 depth = sqp->sq.slots;

	if (sqp->mlx5)
		depth = min(depth, sqp->asked_send);
	return max(depth, 1u);
}

static struct shift_standby *standby_make(struct shift_qp *sqp, u8 path, struct ib_pd *pd)
{
	struct ib_device *ibdev = pd->device;
	struct ib_qp_init_attr init = {
		.event_handler = standby_event,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = min_t(u32, send_depth(sqp), ibdev->attrs.max_qp_wr),
			.max_recv_wr = clamp_t(u32, sqp->recvs.slots, 1,
					       ibdev->attrs.max_qp_wr),
			.max_send_sge = clamp_t(u32, sqp->attr.cap.max_send_sge, 1,
						ibdev->attrs.max_send_sge),
			.max_recv_sge = clamp_t(u32, sqp->attr.cap.max_recv_sge, 1,
						ibdev->attrs.max_recv_sge),
			.max_inline_data = sqp->attr.cap.max_inline_data,
		},
	};
	struct shift_standby *b;

	b = kvzalloc(sizeof(*b), GFP_KERNEL);
	if (!b)
		return NULL;
	b->sqp = sqp;
	INIT_LIST_HEAD(&b->regions);
	b->cqe.done = shift_standby_done;
	b->recv_cqe.done = shift_standby_recv_done;
	b->depth = init.cap.max_send_wr;
	b->recv_depth = init.cap.max_recv_wr;
	if (sqp->ssrq) {
		b->pool = shift_srq_pool_get(sqp, path, pd);
		if (!b->pool)
			goto err_free;
		init.srq = b->pool->srq;
		init.cap.max_recv_wr = 0;
		init.cap.max_recv_sge = 0;
		b->recv_depth = b->pool->depth;
	}
	b->cq = ib_alloc_cq(ibdev, b, b->depth + b->recv_depth + 1, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(b->cq))
		goto err_pool;
	init.send_cq = b->cq;
	init.recv_cq = b->cq;
	b->qp = ib_create_qp(pd, &init);
	if (IS_ERR(b->qp))
		goto err_cq;
	return b;

err_cq:
	ib_free_cq(b->cq);
err_pool:
	shift_srq_pool_put(b->pool);
err_free:
	kvfree(b);
	return NULL;
}

/*
 * Where the keys of a path are valid: on the default device in the application's own
 * PD, which cannot go while its QP is there.
 */
static struct ib_pd *path_pd(struct shift_qp *sqp, u8 path)
{
	struct shift_dev *sdev = sqp->sdev;

	if (path == SHIFT_PATH_HOME)
		return sqp->qp && sdev->ibdev && sqp->spd ? sqp->spd->pd : NULL;
	return sdev->backup && sdev->backup->ibdev ? shift_pd_mirror(sqp->spd) : NULL;
}

/**
 * shift_qp_quiet - RESET a QP of our own that is to be destroyed
 * @qp: not posted to any more.
 *
 * rxe queues a packet that it has let pass just before the RESET and processes it
 * never: on 6.12 the destruction then waits for it, for 50 s.  Receiving runs under
 * RCU, so a RESET after a grace period drops it.  And rxe of 6.1 does not survive the
 * destruction of a QP at work.
 *
 * Context: process context; sleeps.
 */
void shift_qp_quiet(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	ib_modify_qp(qp, &attr, IB_QP_STATE);
	synchronize_rcu_expedited();
	ib_modify_qp(qp, &attr, IB_QP_STATE);
}

static void standby_free(struct shift_standby *b)
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

static void free_retired(struct shift_qp *sqp)
{
	struct shift_standby *b, *next;

	list_for_each_entry_safe(b, next, &sqp->retired, list) {
		list_del(&b->list);
		standby_free(b);
	}
	sqp->nretired = 0;
}

/* Nothing finds it any more; sqp->lock. */
static void retired(struct shift_qp *sqp, struct shift_standby *b)
{
	list_add_tail(&b->list, &sqp->retired);
	sqp->nretired++;
}

/**
 * shift_standby_prepare - have a spare QP on a path
 * @sqp: the QP, locked.
 * @path: SHIFT_PATH_BACKUP or SHIFT_PATH_HOME.
 *
 * Context: process context; may sleep on the device.
 * Return: 0, also if it is there already; -ENODEV, -ENOMEM.
 */
int shift_standby_prepare(struct shift_qp *sqp, u8 path)
{
	struct shift_standby *b;
	struct ib_pd *pd;

	lockdep_assert_held(&sqp->lock);
	if (path == SHIFT_PATH_OWN)
		return shift_own_able(sqp) ? 0 : -EAGAIN;
	if (!path || path >= SHIFT_PATHS)
		return -ENODEV;
	b = sqp->spare[path];
	if (b && shift_srq_pool_fits(sqp, path, b->pool))
		return 0;
	if (b) {
		/* of an earlier stay of its SRQ's there */
		retired(sqp, b);
		sqp->spare[path] = NULL;
	}
	/* switches that never come to RUN, where shift_standby_tidy() does it */
	if (sqp->nretired >= RETIRED_MAX)
		free_retired(sqp);
	down_read(&sqp->sdev->mirror_sem);
	pd = path_pd(sqp, path);
	if (pd)
		sqp->spare[path] = standby_make(sqp, path, pd);
	up_read(&sqp->sdev->mirror_sem);
	if (!sqp->spare[path])
		return pd ? -ENOMEM : -ENODEV;
	sqp->spare[path]->path = path;
	return 0;
}

/**
 * shift_standby_tidy - after a switch: destroy what is over, prepare the next
 * @sqp: the QP, locked, in RUN.
 *
 * Without a spare a later switch makes one, if it can.
 */
void shift_standby_tidy(struct shift_qp *sqp)
{
	free_retired(sqp);
	if (sqp->path)
		shift_standby_prepare(sqp, sqp->path == SHIFT_PATH_BACKUP ?
					   SHIFT_PATH_HOME : SHIFT_PATH_BACKUP);
}

/* The active one makes room; it was stopped. */
static void retire(struct shift_qp *sqp, struct shift_standby *next)
{
	struct shift_standby *b = sqp->active;

	spin_lock_bh(&sqp->ledger_lock);
	sqp->active = next;
	spin_unlock_bh(&sqp->ledger_lock);
	if (b)
		retired(sqp, b);
}

/* What the active one does not need of a path; process context, sqp->lock. */
void shift_standby_drop(struct shift_qp *sqp, u8 path)
{
	free_retired(sqp);
	standby_free(sqp->spare[path]);
	sqp->spare[path] = NULL;
}

/* Process context; sqp->lock.  No completion handler runs after this. */
void shift_standby_destroy(struct shift_qp *sqp)
{
	int i;

	shift_standby_stop(sqp);
	retire(sqp, NULL);
	for (i = 0; i < SHIFT_PATHS; i++)
		shift_standby_drop(sqp, i);
}

/*
 * Nothing more is posted: a QP in RESET refuses, which would look like an error.  And
 * flushes are not errors any more: shift_standby_flushed().
 */
static void standby_hush(struct shift_standby *b)
{
	spin_lock_bh(&b->sqp->ledger_lock);
	b->live = false;
	b->open = false;
	spin_unlock_bh(&b->sqp->ledger_lock);
}

/* From here on completions are of the past. */
static void standby_disarm(struct shift_standby *b)
{
	spin_lock_bh(&b->sqp->ledger_lock);
	b->armed = false;
	b->inflight = 0;
	spin_unlock_bh(&b->sqp->ledger_lock);
}

static int standby_to(struct shift_standby *b, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(b->qp, &attr, IB_QP_STATE);
}

/* Nothing is received any more.  Receiving runs under RCU. */
static int standby_break(struct shift_standby *b)
{
	int err = standby_to(b, IB_QPS_ERR);

	if (!err)
		synchronize_rcu_expedited();
	return err;
}

/*
 * Not one packet more.  By way of ERR: rxe of 6.1 does not survive a RESET while it
 * receives (the RESET and the responder each drop a packet's reference to the QP).
 */
static int standby_halt(struct shift_standby *b)
{
	standby_break(b);
	return standby_to(b, IB_QPS_RESET);
}

static bool standby_empty(struct shift_standby *b)
{
	bool empty;

	spin_lock_bh(&b->sqp->ledger_lock);
	empty = !b->inflight && !b->receives;
	spin_unlock_bh(&b->sqp->ledger_lock);
	return empty;
}

/*
 * All that it was given has come back, flushed at the least.  What a send did the peer knows;
 * what it has received is known here only.
 */
static void wait_flushed(struct shift_standby *b)
{
	u64 end = shift_fence_deadline(FLUSH_US);

	while (!standby_empty(b) && ktime_get_ns() < end)
		usleep_range(50, 100);
}

/* State and expected PSN, into b->attr. */
static int standby_ask(struct shift_standby *b)
{
	struct ib_qp_init_attr init = {};

	return ib_query_qp(b->qp, &b->attr, IB_QP_STATE | IB_QP_RQ_PSN, &init);
}

/*
 * What the CQ holds was executed, and the peer counts on it: its handler is taken off the
 * CQ, the rest handled here.
 */
static void drain_cq(struct ib_cq *cq)
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

/*
 * A NIC need not know in RESET what it has received, and its driver drops the completions
 * that were not polled by then: it is asked in ERR, when nothing of its work is left.
 */
static int nic_halt(struct shift_standby *b)
{
	int err, asked = standby_break(b);

	if (!asked)
		wait_flushed(b);
	drain_cq(b->cq);
	if (!asked)
		asked = standby_ask(b);
	err = standby_to(b, IB_QPS_RESET);
	/* those of an SRQ are not counted: no NIC's QP is on one yet */
	if (!err && (READ_ONCE(b->receives) || b->pool))
		return -ENODATA;
	return err || asked ? -EIO : 0;
}

/* rxe tells what it has received in RESET, too, and not before that is it the last word. */
static int rxe_halt(struct shift_standby *b)
{
	return standby_halt(b) || standby_ask(b) ? -EIO : 0;
}

/*
 * It has met a bad receive: rxe shows that first and tells the peer next, unless the QP is in
 * error by then.  It goes there by itself when the peer was told.
 */
static void let_it_answer(struct shift_standby *b)
{
	u64 end = shift_fence_deadline(ANSWER_US);

	while (!standby_ask(b) && b->attr.qp_state != IB_QPS_ERR && ktime_get_ns() < end)
		usleep_range(50, 100);
}

/* What was not taken in by a fence is lost; sqp->lock. */
void shift_standby_stop(struct shift_qp *sqp)
{
	struct shift_standby *b = sqp->active;

	if (!b)
		return;
	standby_hush(b);
	/* once more, if a fence could not: in RESET this changes nothing */
	standby_halt(b);
	standby_disarm(b);
}

/**
 * shift_standby_fence - stop the active QP and take in what it has done
 * @sqp: the QP, locked.
 *
 * Context: process context; sleeps.
 * Return: 0, also if it was stopped already; -EIO: it cannot be asked; -ENODATA: nor is it
 * known here which of its receives were executed.
 */
int shift_standby_fence(struct shift_qp *sqp)
{
	struct shift_standby *b = sqp->active;
	int err;

	if (!b || !b->armed)
		return 0;
	standby_hush(b);
	if (READ_ONCE(b->recv_failed))
		let_it_answer(b);
	err = b->qp->device->ops.driver_id == RDMA_DRIVER_RXE ? rxe_halt(b) : nic_halt(b);
	/* also of a device that does not answer: this is memory */
	drain_cq(b->cq);
	if (!err)
		shift_fence_heard(sqp, b->path, b->attr.rq_psn & SHIFT_PSN_MASK);
	standby_disarm(b);
	return err;
}

/* Both sides are ready: from now on doorbells post; sqp->lock. */
void shift_standby_open(struct shift_qp *sqp)
{
	struct shift_standby *b = sqp->active;

	if (!b)
		return;
	spin_lock_bh(&sqp->ledger_lock);
	b->open = b->armed;
	sqp->sent = (struct shift_life) {
		.path = b->path, .epoch = sqp->epoch,
		.psn = shift_start_psn(sqp->cookie, sqp->epoch),
	};
	sqp->sent_any = true;
	spin_unlock_bh(&sqp->ledger_lock);
}

/* It is about to be fenced, to go to the spare QP of @path: may it?  sqp->lock. */
int shift_standby_claim(struct shift_qp *sqp, u8 path)
{
	const struct shift_standby *b = path < SHIFT_PATHS ? sqp->spare[path] : NULL;

	return shift_srq_claim(sqp, b ? b->pool : NULL);
}

/* The active one is connected: may the peer send to it?  sqp->lock. */
bool shift_standby_ready(struct shift_qp *sqp)
{
	const struct shift_standby *b = sqp->active;

	return shift_srq_ready(sqp, b ? b->pool : NULL);
}

/**
 * shift_standby_arm - connect the spare QP of a path to the peer's for @epoch
 * @sqp: the QP, locked; the active one was stopped.
 * @path: where.
 * @epoch: the switch that was agreed on.
 * @qpn: the peer's QP there.
 *
 * Return: 0 or a negative errno; then nothing is active.
 */
int shift_standby_arm(struct shift_qp *sqp, u8 path, u32 epoch, u32 qpn)
{
	struct shift_standby *b;
	int err;

	if (path == SHIFT_PATH_OWN) {
		retire(sqp, NULL);
		return shift_own_arm(sqp, epoch, qpn);
	}
	err = shift_standby_prepare(sqp, path);
	if (err)
		return err;
	b = sqp->spare[path];
	sqp->spare[path] = NULL;
	err = shift_standby_connect(b, epoch, qpn);
	if (err) {
		pr_warn_ratelimited("%s qp %u: cannot be connected on path %u (%d)\n",
				    sqp->sdev->name, sqp->qpn, path, err);
		retired(sqp, b);
		retire(sqp, NULL);
		return err;
	}
	sqp->armed[path] = (struct shift_life) {
		.path = path, .epoch = epoch, .psn = shift_start_psn(sqp->peer_cookie, epoch),
	};
	retire(sqp, b);
	spin_lock_bh(&sqp->ledger_lock);
	b->next_done = sqp->ledger.tail;
	b->armed = true;
	b->live = true;
	spin_unlock_bh(&sqp->ledger_lock);
	return 0;
}
