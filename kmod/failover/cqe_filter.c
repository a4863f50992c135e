// SPDX-License-Identifier: GPL-2.0
/* The CQE filter, and the state of a QP as operators see it. */
#include <linux/ktime.h>
#include <linux/module.h>
#include "core/account.h"
#include "core/kick.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/stat.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "provider/provider.h"
#include "pure/fsm.h"
#include "srq/srq.h"

/*
 * Could a failed path be the reason of this error?  rxe reports "no route" as a local error, as it
 * does for a malformed WQE: the work item looks at the port to tell them apart.
 */
static bool status_is_path_error(const struct shift_qp *sqp, const struct shift_cq *scq, u32 status,
				 u32 cause)
{
	/* a path makes no receive fail; in a CQ for both, receives cannot be told from sends */
	if (scq != sqp->scq && status != IB_WC_WR_FLUSH_ERR)
		return false;
	if (status == IB_WC_WR_FLUSH_ERR)
		status = cause;
	return status == IB_WC_RETRY_EXC_ERR || status == IB_WC_LOC_QP_OP_ERR;
}

/*
 * The process says that the path is broken.  If nothing else does, the failover is on its account.
 * NULL: it has none.
 */
static bool may_cause_failover(const struct shift_qp *sqp, struct shift_account *account)
{
	if (!account || READ_ONCE(sqp->sdev->port_down) ||
	    (!shift_qp_is_loop(sqp) && !shift_link_user_up(&sqp->peer.use[SHIFT_PATH_DEFAULT])) ||
	    shift_account_spend(account))
		return true;
	shift_stat_inc(SHIFT_STAT_DISBELIEVED);
	return false;
}

/*
 * Was an error kept back that this one says nothing new about?  A flush does not.  The record of a
 * user in the kernel has whatever has failed, in either CQ: it is done again, and fails again, or
 * is flushed.  If it were shown, what was kept back before would never complete.  GENERAL_ERR: the
 * record is not whole.
 */
static bool error_follows(const struct shift_qp *sqp, u32 status)
{
	if (!test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags))
		return false;
	return status == IB_WC_WR_FLUSH_ERR || (status != IB_WC_GENERAL_ERR &&
		sqp->rings.provider->flags & SHIFT_PROVIDES_OWN_RECORD);
}

/**
 * shift_cqe_filter - may the application see this error completion?
 * @sqp: the QP it belongs to.
 * @scq: the CQ that it was found in.
 * @status: its status.
 * @account: of the process that has found it; NULL: it may cause any number of failovers.
 *
 * Path errors of a QP that can leave its path are kept back.  All other errors are the
 * application's own, and end the protection.
 *
 * Context: any that may take a spinlock; never sleeps.
 * Return: SHIFT_CQE_DELIVER or SHIFT_CQE_SWALLOW.
 */
enum shift_abi_cqe_answer shift_cqe_filter(struct shift_qp *sqp, const struct shift_cq *scq,
					   u32 status, struct shift_account *account)
{
	enum shift_abi_cqe_answer answer = SHIFT_CQE_SWALLOW;
	unsigned int kick = SHIFT_QPB_KICK;
	u32 cause = 0;

	/* not for each flush of a QP whose error was shown: this reads the whole ring */
	if (shift_state_is_protected(READ_ONCE(sqp->fo.state)) &&
	    !test_bit(SHIFT_QPB_APP, &sqp->pend.flags) &&
	    !test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags) &&
	    !test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags)) {
		cause = shift_provider_cause(sqp);
		/* flushes may be polled before the error that they follow from */
		sqp->rings.provider->first_error(sqp, status == IB_WC_WR_FLUSH_ERR &&
						cause == IB_WC_RETRY_EXC_ERR ? cause : status);
	}
	spin_lock_bh(&sqp->inbox_lock);
	switch (sqp->fo.state) {
	case SHIFT_ST_OFF:
	case SHIFT_ST_APP:
		if (test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags) ||
		    test_bit(SHIFT_QPB_STALE, &sqp->pend.flags))
			break;
		answer = SHIFT_CQE_DELIVER;
		set_bit(SHIFT_QPB_SHOWN, &sqp->pend.flags);
		/* it is broken, and its application knows: no peer may be found for it now */
		if (sqp->fo.state == SHIFT_ST_OFF) {
			set_bit(SHIFT_QPB_APP, &sqp->pend.flags);
			kick = SHIFT_QPB_APP;
		}
		break;
	case SHIFT_ST_FAIL:
		break;
	default:
		if (test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags)) {
			/*
			 * Of work that the ledger has since the fence, or is about to have.  A QP
			 * that breaks by itself meanwhile may not be stopped, and not be in the
			 * ledger: then its application has to get an error all the same.
			 */
			if (!READ_ONCE(sqp->rec.live) && status != IB_WC_WR_FLUSH_ERR &&
			    status_is_path_error(sqp, scq, status, cause))
				set_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags);
			break;
		}
		if (test_bit(SHIFT_QPB_APP, &sqp->pend.flags)) {
			answer = SHIFT_CQE_DELIVER;
			set_bit(SHIFT_QPB_SHOWN, &sqp->pend.flags);
			break;
		}
		if (error_follows(sqp, status))
			break;
		if (status_is_path_error(sqp, scq, status, cause) &&
		    (sqp->fo.state != SHIFT_ST_RUN ||
		     (shift_path_usable(sqp) && may_cause_failover(sqp, account)))) {
			set_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags);
			set_bit(SHIFT_QPB_GATED, &sqp->pend.flags);
			kick = SHIFT_QPB_TRIGGER;
			break;
		}
		answer = SHIFT_CQE_DELIVER;
		/* here, so that the next error is not kept back, if a path comes up just now */
		set_bit(SHIFT_QPB_APP, &sqp->pend.flags);
		set_bit(SHIFT_QPB_SHOWN, &sqp->pend.flags);
		kick = SHIFT_QPB_APP;
	}
	spin_unlock_bh(&sqp->inbox_lock);

	if (kick != SHIFT_QPB_KICK)
		shift_qp_kick(sqp, kick);
	if (answer == SHIFT_CQE_SWALLOW)
		shift_stat_inc(SHIFT_STAT_SWALLOWED);
	return answer;
}

/* Why is a QP in RUN on its default NIC not protected against a fault?  NONE: it is protected. */
static enum shift_reason run_reason(const struct shift_qp *sqp)
{
	enum shift_reason reason = shift_qp_reason(sqp, READ_ONCE(sqp->fo.path));

	if (!reason)
		reason = READ_ONCE(sqp->fo.reason);
	if (reason || READ_ONCE(sqp->fo.path))
		return reason;
	if (!shift_srq_movable(sqp))
		return SHIFT_REASON_SRQ;
	if (shift_qp_is_loop(sqp) ? shift_path_works(sqp, SHIFT_PATH_BACKUP) :
				    shift_link_user_up(&sqp->peer.use[1]))
		return READ_ONCE(sqp->fo.stuck) ? SHIFT_REASON_OPERATION : SHIFT_REASON_NONE;
	return SHIFT_REASON_NO_SESSION;
}

/**
 * shift_qp_shown - the state as operators see it
 * @sqp: the QP.
 * @reason: filled in: why the QP is not protected, or has failed; else NONE.
 *
 * Called without sqp->lock and racy by nature: each value was true at some moment, but they need
 * not be of the same one.
 *
 * Context: any that may take a spinlock.
 * Return: the state, for operators.
 */
enum shift_qp_state shift_qp_shown(const struct shift_qp *sqp, enum shift_reason *reason)
{
	u8 waits = READ_ONCE(sqp->move.waits), path = READ_ONCE(sqp->fo.path);

	*reason = SHIFT_REASON_NONE;
	if (waits)
		return waits;
	switch (READ_ONCE(sqp->fo.state)) {
	case SHIFT_ST_OFF:
	case SHIFT_ST_APP:
		*reason = READ_ONCE(sqp->fo.reason);
		return SHIFT_QP_UNPROTECTED;
	case SHIFT_ST_RUN:
		if (path == SHIFT_PATH_BACKUP)
			return SHIFT_QP_FALLBACK;
		*reason = run_reason(sqp);
		if (*reason)
			return SHIFT_QP_UNPROTECTED;
		return path ? SHIFT_QP_RETURNED : SHIFT_QP_DEFAULT;
	case SHIFT_ST_FAIL:
		*reason = READ_ONCE(sqp->fo.reason);
		return SHIFT_QP_FAILED;
	default:
		return SHIFT_QP_SWITCHING;
	}
}

/**
 * shift_qp_shown_cause - why a QP has left its path, as operators see it
 * @sqp: the QP.
 *
 * What goes back to a move is one, also at the peer and for other QPs on the SRQ.
 *
 * Context: any; racy by nature.
 */
enum shift_cause shift_qp_shown_cause(const struct shift_qp *sqp)
{
	return READ_ONCE(sqp->fo.moves) ? SHIFT_CAUSE_OPERATOR : READ_ONCE(sqp->fo.cause);
}
