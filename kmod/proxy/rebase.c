// SPDX-License-Identifier: GPL-2.0
/* The ioctls of a provider whose QP is being handed back; they do not take sqp->lock. */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include "core/kick.h"
#include "core/node.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/queue.h"
#include "proxy/proxy.h"
#include "pure/ledger.h"

#define PATIENCE_MS	50	/* a post waits so long for a handback; scaled */

/*
 * Has a post to wait?  Not if the QP runs, if its provider may rebase its rings, or if the handback
 * was given up, as the kernel then takes posts in again.
 */
static bool kick_waits(struct shift_qp *sqp)
{
	return READ_ONCE(sqp->handback.hold) && !READ_ONCE(sqp->handback.aborted) &&
	       READ_ONCE(sqp->handback.rebase) != SHIFT_REBASE_WANTED;
}

/**
 * shift_handback_kick - something was posted: may the kernel take it in?
 * @sqp: the QP.
 *
 * Context: the thread that posts; sleeps for PATIENCE_MS (scaled) at most.
 * Return: 0: yes; 1: no, but the kernel will take it in later; -EAGAIN: no, the provider may rebase
 * its rings; -ENOTCONN: no, the application's own QP works again, or its handback was given up and
 * it is not stopped yet.  The doorbell is to be rung then: if the QP does not stop, its driver has
 * to know what it is to flush.
 */
long shift_handback_kick(struct shift_qp *sqp)
{
	unsigned long most = nsecs_to_jiffies(shift_scaled_ns(PATIENCE_MS));
	bool held, aborted, live;
	long left = 1;

	if (READ_ONCE(sqp->handback.hold))
		WRITE_ONCE(sqp->handback.awake_ns, ktime_get_ns());
	if (kick_waits(sqp)) {
		left = wait_event_killable_timeout(sqp->rings.gate_wait, !kick_waits(sqp), most);
		if (left < 0)
			return -EINTR;
	}
	/* FENCED was cleared before the hold was, and is set before the flag word is */
	spin_lock_bh(&sqp->ledger_lock);
	held = sqp->handback.hold;
	aborted = sqp->handback.aborted;
	live = sqp->rec.live;
	if (held && !left)
		sqp->handback.tired = true;
	spin_unlock_bh(&sqp->ledger_lock);
	if (held && !left)
		shift_qp_kick(sqp, SHIFT_QPB_HANDBACK);
	if (held && !aborted)
		return -EAGAIN;
	if (held)
		return live ? 1 : -ENOTCONN;
	return test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags) ? 0 : -ENOTCONN;
}

static int rebase_begin(struct shift_qp *sqp, struct shift_abi_rebase *base)
{
	int err = -EAGAIN;

	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->handback.rebase == SHIFT_REBASE_WANTED && sqp->handback.hold &&
	    sqp->rings.usable &&
	    !shift_ledger_count(&sqp->rec.ledger) && sqp->rec.recvs.tail == sqp->rec.recvs.done &&
	    sqp->rec.recvs.post == sqp->rec.recvs.done)
		err = sqp->rings.provider->rebase(sqp, base);
	if (!err)
		sqp->handback.rebase = SHIFT_REBASE_BUSY;
	spin_unlock_bh(&sqp->ledger_lock);
	return err;
}

static int rebase_done(struct shift_qp *sqp, const struct shift_abi_rebase *base)
{
	int err = -EINVAL;

	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->handback.rebase == SHIFT_REBASE_BUSY && sqp->rings.usable) {
		sqp->rings.provider->rebased(sqp, base);
		shift_recv_start(sqp, 0, 0, sqp->rec.recvs.most);
		sqp->handback.rebase = SHIFT_REBASED;
		err = 0;
	}
	spin_unlock_bh(&sqp->ledger_lock);
	if (!err) {
		shift_qp_kick(sqp, SHIFT_QPB_READY);
		/* if the handback was given up, receives are to be posted to a proxy QP */
		shift_qp_kick(sqp, SHIFT_QPB_KICK);
	}
	return err;
}

/**
 * shift_handback_rebase - the provider begins or ends a rebase, or says that it polls
 * @sqp: the QP.
 * @base: see SHIFT_IOC_REBASE.
 *
 * Context: any that may take a spinlock.
 * Return: 0; -EAGAIN: nothing is to be done; -EINVAL.
 */
long shift_handback_rebase(struct shift_qp *sqp, struct shift_abi_rebase *base)
{
	bool prompt;
	int err;

	switch (base->step) {
	case SHIFT_REBASE_BEGIN:
		err = rebase_begin(sqp, base);
		break;
	case SHIFT_REBASE_DONE:
		return base->reserved ? -EINVAL : rebase_done(sqp, base);
	case SHIFT_REBASE_LATER:
		err = -EAGAIN;
		break;
	default:
		return -EINVAL;
	}
	prompt = ktime_get_ns() - READ_ONCE(sqp->handback.nudged_ns) <
		 shift_scaled_ns(SHIFT_AWAKE_MS);
	if (prompt)
		WRITE_ONCE(sqp->handback.awake_ns, ktime_get_ns());
	WRITE_ONCE(sqp->handback.nudged, false);
	if (err)
		shift_qp_kick(sqp, SHIFT_QPB_HANDBACK);
	return err;
}
