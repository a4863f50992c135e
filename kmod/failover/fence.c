// SPDX-License-Identifier: GPL-2.0
/*
 * The fence: stop the QP's active path, and take the work that is outstanding into the ledger.  How
 * the default QP is stopped depends on its device: see provider/rxe/fence.c and
 * provider/mlx5/fence.c.
 *
 * The rings are the user's memory: see ring.h.  If they make no sense the application gets an error
 * completion; nothing is guessed.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/smp.h>
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/queue.h"
#include "failover/failover.h"
#include "provider/provider.h"
#include "proxy/proxy.h"

#define HOLD_US		20000	/* for a CQ that is being resized, scaled */

/*
 * Keep the rings of both CQs where they are, until release_rings().  A CQ that is being resized is
 * registered again in a moment.
 */
static int hold_rings(struct shift_qp *sqp)
{
	u64 end = shift_from_now_us(HOLD_US);

	for (;;) {
		down_read(&sqp->sdev->ring_sem);
		if (shift_cq_registered(sqp->scq) && shift_cq_registered(sqp->rcq))
			return 0;
		up_read(&sqp->sdev->ring_sem);
		if (ktime_get_ns() > end)
			return -EIO;
		usleep_range(500, 1000);
	}
}

static void release_rings(struct shift_qp *sqp)
{
	up_read(&sqp->sdev->ring_sem);
}

/**
 * shift_fence - stop the default QP and rewind its send queue into the ledger
 * @sqp: the QP, locked.
 * @errored: filled in: the default QP was in ERR already.
 *
 * If the default QP was fenced before, the proxy QP is stopped.  sqp->fo.resp tells what the
 * responder executed.
 *
 * Context: process context; sleeps for up to some tens of ms.
 * Return: 0; -ECANCELED: the error is the application's own, and nothing was changed; -EIO: the QP
 * is fenced, but the NIC could not be asked what its responder executed; another error: it cannot
 * be told what is outstanding, or that cannot be moved, or the QP cannot be reset, or it could not
 * be stopped at all (then SHIFT_QPB_FENCED is clear).
 */
int shift_fence(struct shift_qp *sqp, bool *errored)
{
	int err;

	lockdep_assert_held(&sqp->lock);
	if (test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags)) {
		err = shift_proxy_fence(sqp);
		spin_lock_bh(&sqp->ledger_lock);
		shift_recv_rewind(sqp);
		spin_unlock_bh(&sqp->ledger_lock);
		return err;
	}
	/* an error was shown, and what is flushed behind it is the driver's to show */
	if (test_bit(SHIFT_QPB_APP, &sqp->pend.flags) &&
	    !test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags))
		return -ECANCELED;
	if (!sqp->rings.usable || hold_rings(sqp))
		return -EAGAIN;
	err = sqp->rings.provider->fence(sqp, errored);
	shift_fence_open(sqp);
	release_rings(sqp);
	return err;
}
