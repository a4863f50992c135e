// SPDX-License-Identifier: GPL-2.0
/*
 * The fence of a QP of a user in the kernel: Documentation/internals/kernel-users.md.
 *
 * Order matters.  (1) What is posted is kept back; posts that are under way have ended.  (2) After
 * RESET no packet is executed, and nothing completes any more.  (3) What the driver has completed
 * until then is in its CQs.  It goes into their side rings, in front of what will complete on the
 * new path, and leaves the record.  (4) The record is what is outstanding.
 *
 * Some devices forget in RESET how far they have received, and their drivers what was completed.
 * Such a QP goes to ERR first.  When all its receives have a completion, what it has executed is
 * known, and it is asked.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include "core/kernel_cq.h"
#include "core/kernel_mr.h"
#include "core/kernel_qp.h"
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/queue.h"
#include "provider/kernel/kernel.h"
#include "provider/provider.h"
#include "pure/flush_wait.h"
#include "pure/ledger.h"
#include "pure/psn.h"
#include "pure/wr.h"

#define DRAIN_US	200000	/* for the user to poll, if a side ring is full; scaled */
#define ROOM_US		500000	/* for QPs of the same CQs that are being fenced; scaled */

/**
 * shift_kernel_hold - the op hold: keep what is posted back from the driver
 * @sqp: the QP, locked.
 *
 * Context: process context.
 * Return: true: nobody is in the driver any more.
 */
bool shift_kernel_hold(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	WRITE_ONCE(sqp->rings.held, true);
	shift_kernel_qp_hold(sqp);
	return true;
}

/* Move what the driver has completed into the side rings.  -ENOSPC: one of them is full. */
static int drain_once(struct shift_qp *sqp)
{
	int err = shift_kernel_cq_drain(sqp->scq);

	return err || sqp->rcq == sqp->scq ? err : shift_kernel_cq_drain(sqp->rcq);
}

/* The same; -ENOSPC: their user does not poll. */
static int drain(struct shift_qp *sqp)
{
	u64 end = shift_from_now_us(DRAIN_US);
	int err;

	for (;;) {
		err = drain_once(sqp);
		if (!err || ktime_get_ns() > end)
			return err;
		usleep_range(100, 200);
	}
}

/* The QP is in error, and none was kept back: has its user caused it?  What tells so is shown. */
static bool error_is_own(struct shift_qp *sqp)
{
	u32 cause;

	drain(sqp);
	cause = READ_ONCE(sqp->kernel->cause);
	return cause && cause != IB_WC_RETRY_EXC_ERR && cause != IB_WC_LOC_QP_OP_ERR;
}

/* A device that refuses RESET may still take ERR: it executes nothing any more, either. */
static int stop(struct shift_qp *sqp)
{
	return shift_fence_stop(sqp, IB_QPS_RESET) && shift_fence_stop(sqp, IB_QPS_ERR) ?
	       -EBUSY : 0;
}

/*
 * In ERR: wait until all receives are completed or flushed, so that it is known which of them were
 * executed, as long as flushes come, be it of sends.  Sends need not be waited for: the peer knows.
 */
static int wait_flushed(struct shift_qp *sqp)
{
	struct shift_flush_wait wait;
	int err;

	shift_flush_wait_begin(&wait, ktime_get_ns(), shift_scale(1),
			       (u64)shift_kernel_outstanding(&sqp->kernel->send) +
			       shift_kernel_outstanding(&sqp->kernel->recv));
	for (;;) {
		err = drain_once(sqp);
		if (!err && !shift_kernel_recvs_left(sqp))
			return 0;
		if (shift_flush_wait_is_over(&wait, ktime_get_ns(),
					     shift_kernel_flushes_seen(sqp)))
			return err ?: -ETIMEDOUT;
		usleep_range(50, 100);
	}
}

/*
 * Reserve room for a flush of each request that the driver has.  An overrun would end a CQ, and hit
 * other QPs.  Nothing is posted meanwhile, and what was completed makes room.  If QPs have it that
 * are being fenced, too, wait for these: their fences poll what they flush.  What QPs complete that
 * are not fenced is polled as it comes.
 */
static bool reserve_for_flushes(struct shift_qp *sqp, struct shift_kernel_room *room)
{
	u64 end = shift_from_now_us(ROOM_US);
	int err;

	for (;;) {
		err = drain(sqp) ?: shift_kernel_flushes_reserve(sqp, room);
		if (err != -EAGAIN || ktime_get_ns() > end)
			return !err;
		usleep_range(100, 200);
	}
}

/* Ask how far it has received.  -EIO: that is not known. */
static int ask(struct shift_qp *sqp, struct ib_qp_attr *attr)
{
	if (shift_fence_query(sqp, attr))
		return -EIO;
	shift_fence_heard(sqp, 0, attr->rq_psn & SHIFT_PSN_MASK);
	return 0;
}

/* Stop a QP by RESET, which leaves its completions, and in which it tells what it knows. */
static int stop_and_ask(struct shift_qp *sqp, struct ib_qp_attr *attr, int *query_err)
{
	int err = stop(sqp);

	if (!err)
		*query_err = ask(sqp, attr);
	return err;
}

/*
 * Stop a QP by ERR, and RESET it when it has told all.  One that gets to ERR and no further is
 * stopped, too: what its driver still completes of it is dropped.  One that cannot get to ERR is
 * left alone: a RESET would take away what it has received, and acknowledged.
 */
static int ask_and_stop(struct shift_qp *sqp, struct ib_qp_attr *attr, bool errored,
			int *query_err)
{
	/* if it is in ERR already, its NIC has flushed it before anybody knew */
	if (!errored && shift_fence_stop(sqp, IB_QPS_ERR))
		return -EBUSY;
	WRITE_ONCE(sqp->kernel->over, true);
	/* it is not known which receives were executed, and what comes late will be taken away */
	*query_err = wait_flushed(sqp) ? -ENODATA : ask(sqp, attr);
	drain_once(sqp);
	shift_fence_stop(sqp, IB_QPS_RESET);
	return 0;
}

/*
 * From here on no error is shown.  -ECANCELED: the user was shown its own one meanwhile; -ENODATA:
 * the record was stopped, or is lost.
 */
static int begin(struct shift_qp *sqp)
{
	int err = -ECANCELED;

	spin_lock_bh(&sqp->inbox_lock);
	if (!test_bit(SHIFT_QPB_APP, &sqp->pend.flags) ||
	    test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags))
		err = shift_kernel_qp_begin_fence(sqp) ? 0 : -ENODATA;
	spin_unlock_bh(&sqp->inbox_lock);
	return err;
}

/* Stop the QP as its device asks for.  After an error FENCED may be set: the caller clears it. */
static int begin_and_stop(struct shift_qp *sqp, struct ib_qp_attr *attr, bool errored,
			  int *query_err)
{
	bool resets = sqp->sdev->provider->flags & SHIFT_PROVIDES_RESET_PSN;
	struct shift_kernel_room room = {};
	int err = -EBUSY;

	/* this may take long, and its user is shown its own errors meanwhile */
	if (!resets && !errored && !reserve_for_flushes(sqp, &room))
		return err;
	err = begin(sqp);
	if (!err)
		err = resets ? stop_and_ask(sqp, attr, query_err) :
			       ask_and_stop(sqp, attr, errored, query_err);
	shift_kernel_flushes_unreserve(sqp, &room);
	return err;
}

/* Make the record of sends the ledger; ledger_lock.  -EOPNOTSUPP: some of it cannot be moved. */
static int fill_ledger(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	u32 n, first, psn;
	struct shift_wr wr;
	int err = 0;

	n = shift_kernel_queue_take(&sqp->kernel->send, &first, &psn);
	/* the record goes on counting, and a ledger that begins with its slot would not agree */
	shift_ledger_start_at(l, first);
	while (n--) {
		struct shift_kernel_mr_op op = shift_kernel_qp_op(sqp, l->head);
		bool bad = shift_kernel_decode(sqp, l->head, &wr);

		shift_kernel_mr_posted(sqp, op, SHIFT_PATH_DEFAULT);
		if (shift_replay_enter(sqp, bad ? NULL : &wr))
			err = -EOPNOTSUPP;
	}
	sqp->rec.outstanding = (struct shift_arming) {
		.epoch = sqp->fo.armed[0].epoch, .psn = psn,
	};
	sqp->rec.any_outstanding = shift_ledger_count(l);
	sqp->rec.own_end = l->head;
	return err;
}

static void fill_recvs(struct shift_qp *sqp)
{
	struct shift_kernel_queue *queue = &sqp->kernel->recv;
	u32 n, first, psn;

	n = shift_kernel_queue_take(queue, &first, &psn);
	shift_recv_start(sqp, first, n, queue->ring.slots);
}

static void drop_errors(struct shift_qp *sqp)
{
	shift_kernel_cq_drop_raw(sqp->scq->kernel, sqp->qp);
	shift_kernel_cq_drop_raw(sqp->rcq->kernel, sqp->qp);
}

/**
 * shift_kernel_fence - the op fence
 * @sqp: the QP, locked and not fenced yet.
 * @errored: out: it was in ERR already.
 *
 * A QP whose record is not whole is not stopped: its driver shows what becomes of its work.
 *
 * Context: process context; sleeps.
 * Return: as shift_fence().
 */
int shift_kernel_fence(struct shift_qp *sqp, bool *errored)
{
	const struct shift_provider *device = sqp->sdev->provider;
	int err, query_err = -EIO, drain_err;
	struct ib_qp_attr *attr;

	lockdep_assert_held(&sqp->lock);
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	if (!attr)
		return -ENOMEM;
	shift_kernel_hold(sqp);
	err = -ENODATA;
	if (!shift_kernel_qp_is_whole(sqp))
		goto out;
	*errored = shift_fence_query(sqp, attr) ?
		   test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags) : attr->qp_state == IB_QPS_ERR;
	err = -ECANCELED;
	if (*errored && !test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags) && error_is_own(sqp))
		goto out;
	if (!*errored && device->quiet)
		device->quiet(sqp);
	/* packets that are being received on a CPU that was kept from running */
	synchronize_rcu_expedited();

	err = begin_and_stop(sqp, attr, *errored, &query_err);
	if (err) {
		clear_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
		goto out;
	}
	drain_err = drain(sqp);

	spin_lock_bh(&sqp->ledger_lock);
	err = fill_ledger(sqp);
	fill_recvs(sqp);
	sqp->rec.live = true;
	spin_unlock_bh(&sqp->ledger_lock);
	drop_errors(sqp);
	if (!err)
		err = drain_err;
	if (err)
		pr_warn_ratelimited("%s qp %u: outstanding work could not be taken over (%d)\n",
				    sqp->sdev->name, sqp->qpn, err);
	else
		err = query_err;
out:
	kfree(attr);
	return err;
}
