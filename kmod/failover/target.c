// SPDX-License-Identifier: GPL-2.0
/* The QP at the target of a failover: one of the proxy QPs, or in a handback the QP's own. */
#include "core/qp.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"

/**
 * shift_target_prepare - make a QP for the target of a failover, if there is none
 * @sqp: the QP, locked.
 * @to: a path, or SHIFT_PATH_OWN: the application's own QP.
 *
 * Context: process context; may sleep on the device.
 * Return: 0, also if there was one; -ENODEV, -ENOMEM; -EAGAIN: the QP cannot be handed back now.
 */
int shift_target_prepare(struct shift_qp *sqp, u8 to)
{
	lockdep_assert_held(&sqp->lock);
	if (to == SHIFT_PATH_OWN)
		return shift_handback_able(sqp) ? 0 : -EAGAIN;
	return shift_proxy_prepare(sqp, to);
}

/* The number of the QP to which the peer is to connect its one; 0: there is none.  sqp->lock. */
u32 shift_target_qpn(const struct shift_qp *sqp, u8 to)
{
	lockdep_assert_held(&sqp->lock);
	if (to == SHIFT_PATH_OWN)
		return sqp->qp ? sqp->qp->qp_num : 0;
	return shift_proxy_qpn(sqp, to);
}

/**
 * shift_target_arm - connect the QP of a target to the peer's
 * @sqp: the QP, locked; what was active is stopped.
 * @to: the target.
 * @epoch: of the failover that was agreed on.
 * @qpn: the number of the peer's QP there.
 *
 * Context: process context; may sleep on the device.
 * Return: 0 or a negative errno; then nothing is active.
 */
int shift_target_arm(struct shift_qp *sqp, u8 to, u32 epoch, u32 qpn)
{
	lockdep_assert_held(&sqp->lock);
	if (to != SHIFT_PATH_OWN)
		return shift_proxy_arm(sqp, to, epoch, qpn);
	shift_proxy_retire(sqp);
	return shift_handback_arm(sqp, epoch, qpn);
}

/* May the peer send to the QP of sqp->fo.to?  sqp->lock */
bool shift_target_ready(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	return sqp->fo.to == SHIFT_PATH_OWN ? shift_handback_ready(sqp) : shift_proxy_ready(sqp);
}
