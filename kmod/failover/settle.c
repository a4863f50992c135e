// SPDX-License-Identifier: GPL-2.0
/* Lets operations that are under way finish before a move or a handback. */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/moduleparam.h>
#include "core/event.h"
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "provider/provider.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"
#include "pure/ledger.h"

#define SETTLE_US	50000	/* for work under way to finish, scaled */
#define SETTLE_TIMES	4	/* as long, if an atomic is among it */

static bool default_still(struct shift_qp *sqp, struct ib_qp_attr *attr)
{
	u32 done, psn = attr->rq_psn;

	return !shift_fence_query(sqp, attr) && psn == attr->rq_psn &&
	       sqp->rings.provider->still(sqp, &done);
}

/*
 * No event tells when the default QP has nothing to do, so look a few times.  True also if the QP
 * broke, or cannot be asked: waiting for it is of no use.
 */
static bool settle_default(struct shift_qp *sqp, u64 end)
{
	struct ib_qp_attr *attr = kzalloc(sizeof(*attr), GFP_NOIO);
	bool over = true;
	u32 still = 0;

	if (!attr)
		return true;
	if (!shift_fence_query(sqp, attr)) {
		while (still < 3 && attr->qp_state != IB_QPS_ERR && ktime_get_ns() < end) {
			usleep_range(100, 200);
			still = default_still(sqp, attr) ? still + 1 : 0;
		}
		over = still == 3 || attr->qp_state == IB_QPS_ERR;
	}
	kfree(attr);
	return over;
}

static bool settle_proxy(struct shift_qp *sqp, u64 end)
{
	while (shift_proxy_busy(sqp) && ktime_get_ns() < end)
		usleep_range(100, 200);
	return !shift_proxy_busy(sqp) || shift_proxy_error(sqp);
}

/* Is something under way that a fence may turn into an error? */
static bool once_is_outstanding(struct shift_qp *sqp)
{
	bool found;

	if (!sqp->fo.path)
		return shift_provider_movable(sqp) ||
		       (sqp->rings.provider->once && sqp->rings.provider->once(sqp));
	spin_lock_bh(&sqp->ledger_lock);
	shift_ledger_doubtful(&sqp->rec.ledger, 0, &found);
	spin_unlock_bh(&sqp->ledger_lock);
	return found;
}

static bool qp_settle(struct shift_qp *sqp)
{
	unsigned int n;
	u64 end;

	if (sqp->fo.path)
		shift_proxy_hold(sqp, true);
	else if (!test_bit(SHIFT_QPB_GATED, &sqp->pend.flags))
		sqp->rings.provider->hold(sqp);
	for (n = 0; n < SETTLE_TIMES; n++) {
		end = shift_from_now_us(SETTLE_US);
		if (sqp->fo.path ? settle_proxy(sqp, end) : settle_default(sqp, end))
			return true;
		if (!once_is_outstanding(sqp))
			return true;
	}
	return false;
}

/* Show operators what a move waits for: operations of this end, or those of the peer. */
static void show_waits(struct shift_qp *sqp, enum shift_qp_state waits)
{
	sqp->move.waits = waits;
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
}

static bool nothing_is_left(struct shift_qp *sqp)
{
	bool empty;

	spin_lock_bh(&sqp->ledger_lock);
	empty = !shift_ledger_count(&sqp->rec.ledger) && sqp->rec.recvs.tail == sqp->rec.recvs.done;
	spin_unlock_bh(&sqp->ledger_lock);
	return empty;
}

static bool handback_settled(struct shift_qp *sqp)
{
	return nothing_is_left(sqp) && shift_handback_awake(sqp);
}

/*
 * Before a handback: take in nothing new, and let all work finish.  Until @end (ktime) the work has
 * to finish, and the application has to poll or to post.
 */
static int handback_settle(struct shift_qp *sqp, u64 end)
{
	if (!shift_handback_take(sqp))
		return -EBUSY;
	shift_handback_hold(sqp);
	if (!shift_handback_awake(sqp))
		shift_handback_tell(sqp);
	while (!handback_settled(sqp) && ktime_get_ns() < end && !READ_ONCE(sqp->handback.tired) &&
	       !shift_proxy_error(sqp)) {
		if (shift_replay_pump(sqp)) {
			sqp->fo.fail_status = sqp->fo.stop_status;
			return -EIO;
		}
		shift_recv_deliver(sqp);
		usleep_range(100, 200);
	}
	return handback_settled(sqp) ? 0 : -EBUSY;
}

/**
 * shift_move_settle - post nothing new, and let operations that are under way finish
 * @sqp: the QP, locked, on a path that works.
 * @to: the path that the QP is to go to.
 *
 * Atomics get their answers, and no READ is sent twice.  Also, rxe does not survive a RESET in the
 * middle of a packet, because it processes packets beside its tasks; so both ends settle before
 * either is fenced.  Operations that do not finish in time are left to the fence; not so atomics,
 * because a move is not worth an error.  A QP that has settled can go on: see
 * shift_failover_abort().
 *
 * Context: process context; sleeps.
 * Return: 0; -EBUSY: the move is to be called off, as an atomic, or work that cannot be moved at
 * all, is under way, or work is left before a handback; -EIO: the QP has to fail with
 * fo.fail_status.
 */
int shift_move_settle(struct shift_qp *sqp, u8 to)
{
	bool over;

	lockdep_assert_held(&sqp->lock);
	if (to == SHIFT_PATH_OWN)
		return handback_settle(sqp, shift_from_now(SETTLE_US / USEC_PER_MSEC));
	if (!sqp->fo.path &&
	    (!sqp->rings.usable || test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags)))
		return 0;
	show_waits(sqp, SHIFT_QP_WAIT_SIGNALED);
	over = qp_settle(sqp);
	if (over && sqp->fo.state == SHIFT_ST_ASKED)
		show_waits(sqp, SHIFT_QP_WAIT_SINKED);
	else
		sqp->move.waits = 0;
	return over ? 0 : -EBUSY;
}

/**
 * shift_handback_goes_alone - can the QP be handed back though the peer's has gone?
 * @sqp: the QP, locked.
 *
 * Both ends had settled, so all remaining steps are local: the own QP is connected to the peer's
 * former one as soon as the provider is ready.  The application finds what it would find without
 * the module: receives that wait, and sends that nobody answers.
 *
 * Context: process context.
 */
bool shift_handback_goes_alone(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	return sqp->fo.to == SHIFT_PATH_OWN &&
	       (sqp->fo.state == SHIFT_ST_AGREE || sqp->fo.state == SHIFT_ST_SYNC) &&
	       (sqp->handback.alone || nothing_is_left(sqp));
}

/**
 * shift_handback_alone - a step of a handback whose peer has gone
 * @sqp: the QP, locked, in SYNC.
 *
 * The step is repeated until the provider is ready.  It has no deadline, because the provider runs
 * when the application posts or polls.
 *
 * Context: process context; may sleep on the device.
 * Return: SHIFT_EV_RETURNED; SHIFT_EV_FAIL: the QP cannot be handed back; __SHIFT_EV_MAX: not yet.
 */
enum shift_event shift_handback_alone(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (!sqp->handback.alone) {
		/*
		 * the peer went before it sent PROGRESS, by which the QP is armed; or the own QP
		 * could not be connected, and the deadline has not ended the handback yet
		 */
		if (sqp->fo.armed[0].epoch != sqp->fo.epoch ||
		    READ_ONCE(sqp->handback.rebase) == SHIFT_REBASE_NONE)
			shift_handback_arm(sqp, sqp->fo.epoch, sqp->app.dest_qpn);
		sqp->peer.ok = false;
		sqp->handback.alone = true;
	}
	if (shift_handback_ready(sqp))
		return SHIFT_EV_RETURNED;
	/* the QP could not be connected, or there is no provider that could rebase its rings */
	if (!sqp->handback.alone || !sqp->rings.usable || !shift_qp_cqs_registered(sqp))
		return SHIFT_EV_FAIL;
	shift_qp_arm(sqp, SHIFT_HANDBACK_RETRY_MS);
	return __SHIFT_EV_MAX;
}
