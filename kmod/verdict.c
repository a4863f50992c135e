// SPDX-License-Identifier: GPL-2.0
/* What applications and operators are shown of a QP. */
#include "provider.h"

/*
 * Could a path be behind it?  A local error is rxe's word for "no route", and for
 * a WQE that makes no sense: the machine looks at the port before it believes.
 */
static bool path_error(const struct shift_qp *sqp, const struct shift_cq *scq, u32 status,
		       u32 cause)
{
	/* no path makes a receive fail; one that shares its CQ with sends looks like them */
	if (scq != sqp->scq && status != IB_WC_WR_FLUSH_ERR)
		return false;
	if (status == IB_WC_WR_FLUSH_ERR)
		status = cause;
	return status == IB_WC_RETRY_EXC_ERR || status == IB_WC_LOC_QP_OP_ERR;
}

/**
 * shift_switch_verdict - may the application see this error completion?
 * @sqp: the QP it belongs to.
 * @scq: the CQ that it was found in.
 * @status: its status.
 *
 * Only path errors of a QP that can move are kept; everything else is the
 * application's and ends the protection.
 *
 * Context: any that may take a spinlock; never sleeps.
 * Return: SHIFT_CQE_DELIVER or SHIFT_CQE_SWALLOW.
 */
enum shift_abi_verdict shift_switch_verdict(struct shift_qp *sqp, const struct shift_cq *scq,
					    u32 status)
{
	enum shift_abi_verdict verdict = SHIFT_CQE_SWALLOW;
	unsigned int kick = SHIFT_QP_KICK;
	u32 cause = 0;

	if (READ_ONCE(sqp->state) != SHIFT_ST_OFF && !test_bit(SHIFT_QP_FENCED, &sqp->flags) &&
	    !test_bit(SHIFT_QP_ERRORED, &sqp->flags)) {
		cause = shift_provider_cause(sqp);
		/* flushes may be polled before what they follow from */
		sqp->provider->first_error(sqp, status == IB_WC_WR_FLUSH_ERR &&
						cause == IB_WC_RETRY_EXC_ERR ? cause : status);
	}
	spin_lock_bh(&sqp->inbox_lock);
	switch (sqp->state) {
	case SHIFT_ST_OFF:
	case SHIFT_ST_APP:
		verdict = test_bit(SHIFT_QP_FENCED, &sqp->flags) ||
			  test_bit(SHIFT_QP_STALE, &sqp->flags) ? SHIFT_CQE_SWALLOW :
								  SHIFT_CQE_DELIVER;
		break;
	case SHIFT_ST_FAIL:
		break;
	default:
		if (test_bit(SHIFT_QP_FENCED, &sqp->flags))
			break;	/* from before the fence: the ledger has it */
		if (test_bit(SHIFT_QP_APP, &sqp->flags)) {
			verdict = SHIFT_CQE_DELIVER;
			break;
		}
		if (status == IB_WC_WR_FLUSH_ERR && test_bit(SHIFT_QP_ERRORED, &sqp->flags))
			break;
		if (path_error(sqp, scq, status, cause) &&
		    (sqp->state != SHIFT_ST_RUN || shift_switch_usable(sqp))) {
			set_bit(SHIFT_QP_ERRORED, &sqp->flags);
			set_bit(SHIFT_QP_GATED, &sqp->flags);
			kick = SHIFT_QP_FAULT;
			break;
		}
		verdict = SHIFT_CQE_DELIVER;
		kick = SHIFT_QP_APP;
	}
	spin_unlock_bh(&sqp->inbox_lock);

	if (kick != SHIFT_QP_KICK)
		shift_switch_kick(sqp, kick);
	if (verdict == SHIFT_CQE_SWALLOW)
		shift_stat_inc(SHIFT_STAT_SWALLOWED);
	return verdict;
}

/**
 * shift_qp_shown - the state as operators see it
 * @sqp: the QP, locked.
 */
enum shift_qp_state shift_qp_shown(const struct shift_qp *sqp)
{
	if (sqp->waits)
		return sqp->waits;
	switch (sqp->state) {
	case SHIFT_ST_OFF:
	case SHIFT_ST_APP:
		return SHIFT_QP_UNPROTECTED;
	case SHIFT_ST_RUN:
		if (sqp->path == SHIFT_PATH_BACKUP)
			return SHIFT_QP_FALLBACK;
		if (sqp->reason)
			return SHIFT_QP_UNPROTECTED;
		return sqp->path ? SHIFT_QP_RETURNED : SHIFT_QP_DEFAULT;
	case SHIFT_ST_FAIL:
		return SHIFT_QP_FAILED;
	default:
		return SHIFT_QP_SWITCHING;
	}
}
