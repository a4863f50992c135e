// SPDX-License-Identifier: GPL-2.0
/* Takes the application's posts to the proxy QP, and completions back to the application. */
#include <linux/ktime.h>
#include "core/kick.h"
#include "core/node.h"
#include "core/qp.h"
#include "failover/internal.h"
#include "mw/mw.h"
#include "proxy/proxy.h"

/* Before a window is invalidated: end the use of its region, of which the peer is told. */
static bool end_region(struct shift_qp *sqp, u32 key)
{
	if (!shift_region_drop(sqp, key))
		return false;
	shift_rkey_gone(sqp, key);
	return true;
}

/*
 * Has the peer not answered for too long, in this epoch, what this key is?  One that has gone does
 * not answer, but RDMA CM may be about to tell the application so: without the module there is no
 * error, either, before the QP's own retries have run out.
 */
static bool key_overdue(struct shift_qp *sqp, u32 rkey)
{
	u64 most = shift_scaled_ns(sqp->peer.ok ? SHIFT_KEY_MS : SHIFT_GONE_MS);
	u64 now = ktime_get_ns();

	if (!sqp->peer.rkey_since || sqp->peer.rkey_waits != rkey ||
	    sqp->peer.rkey_epoch != sqp->fo.epoch) {
		sqp->peer.rkey_since = now;
		sqp->peer.rkey_waits = rkey;
		sqp->peer.rkey_epoch = sqp->fo.epoch;
	}
	return now - sqp->peer.rkey_since > most;
}

/**
 * shift_replay_pump - move work from the ring over the ledger to the proxy QP
 * @sqp: the QP, locked, on a proxy QP that is not fenced.
 *
 * Context: process context.
 * Return: true: the QP has to fail with fo.stop_status, because work cannot be posted that is next.
 */
bool shift_replay_pump(struct shift_qp *sqp)
{
	u32 rkey, passes = 0;
	int err;

	lockdep_assert_held(&sqp->lock);
	if (!sqp->rings.usable)
		return false;
	shift_replay_deliver(sqp);
	shift_region_reap(sqp);
	do {
		spin_lock_bh(&sqp->ledger_lock);
		err = shift_replay_post(sqp, &rkey);
		spin_unlock_bh(&sqp->ledger_lock);
	} while ((err > 0 && ++passes < shift_passes(sqp->rec.ledger.slots)) ||
		 (err == -ESTALE && end_region(sqp, rkey)));
	if (sqp->rings.tracks_mws)
		shift_replay_deliver(sqp);
	if (err != -EINPROGRESS)
		sqp->peer.rkey_since = 0;
	switch (err) {
	case 0:
		break;
	case 1:			/* the application posts as fast as this goes on: let others run */
		shift_qp_kick(sqp, SHIFT_QPB_KICK);
		return false;
	case -EAGAIN:		/* send queue full or held; KICK is set when that changes */
		return false;
	case -EINPROGRESS:
		if (!key_overdue(sqp, rkey)) {
			if (sqp->peer.ok)
				shift_rkey_ask(sqp, rkey);
			shift_qp_arm(sqp, SHIFT_PUMP_RETRY_MS);
			return false;
		}
		/* the peer has gone, or does not answer */
		sqp->fo.stop_status = IB_WC_RETRY_EXC_ERR;
		break;
	case -ENOMEM:
	case -ESTALE:
		shift_qp_arm(sqp, SHIFT_PUMP_RETRY_MS);
		return false;
	case -EACCES:
		sqp->fo.stop_status = IB_WC_LOC_PROT_ERR;
		break;
	case -ENOENT:
		sqp->fo.stop_status = IB_WC_REM_ACCESS_ERR;
		break;
	case -EPERM:
		if (shift_move_atomic(sqp)) {
			shift_qp_arm(sqp, SHIFT_PUMP_RETRY_MS);
			return false;
		}
		sqp->fo.stop_status = IB_WC_RETRY_EXC_ERR;
		break;
	case -EKEYREJECTED:
		sqp->fo.stop_status = IB_WC_MW_BIND_ERR;
		break;
	default:
		sqp->fo.stop_status = IB_WC_LOC_QP_OP_ERR;
	}
	return sqp->fo.stop_status && !shift_proxy_busy(sqp);
}
