// SPDX-License-Identifier: GPL-2.0
/* Moves: an operator, or failback, wants a QP on a path. */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "failover/internal.h"
#include "provider/provider.h"
#include "proxy/proxy.h"

#define MOVE_MS		10000	/* for a move that cannot be made at once, scaled */

/* Does the QP hold posts back, because it settled for a move?  sqp->lock. */
bool shift_move_holds(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (sqp->fo.path)
		return shift_proxy_is_held(sqp) || READ_ONCE(sqp->handback.hold);
	return test_bit(SHIFT_QPB_GATED, &sqp->pend.flags);
}

/**
 * shift_move_stays - would a move make errors of operations that are outstanding?
 * @sqp: the QP, locked.
 *
 * Such a QP stays where it is, because a move is not worth an error.
 *
 * Context: process context.
 */
bool shift_move_stays(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (sqp->fo.path)
		return false;
	return shift_provider_movable(sqp) ||
	       (sqp->rings.provider->keeps && sqp->rings.provider->keeps(sqp));
}

static bool backup_wanted(const struct shift_qp *sqp)
{
	return sqp->move.to == SHIFT_PATH_BACKUP;
}

/* Does the path that the QP is wanted on work?  sqp->lock. */
bool shift_move_target_works(const struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	return shift_path_works(sqp, backup_wanted(sqp) ? SHIFT_PATH_BACKUP : SHIFT_PATH_HOME);
}

/* Is @path on the device that the QP is wanted on?  Any context. */
bool shift_move_wanted(const struct shift_qp *sqp, u8 path)
{
	bool backup = path == SHIFT_PATH_BACKUP;

	return backup == backup_wanted(sqp);
}

/**
 * shift_move_want - have the QP moved
 * @sqp: the QP, locked.
 * @to: SHIFT_PATH_DEFAULT (its own device) or SHIFT_PATH_BACKUP.
 * @keep: if the QP cannot be moved now, try again until it arrives or MOVE_MS have passed.
 *
 * Context: process context.
 */
void shift_move_want(struct shift_qp *sqp, u8 to, bool keep)
{
	lockdep_assert_held(&sqp->lock);
	sqp->move.to = to;
	sqp->move.until = keep ? shift_from_now(MOVE_MS) : 0;
	shift_qp_kick(sqp, SHIFT_QPB_MOVE);
}

/**
 * shift_move_atomic - an atomic is next, and the backup is not atomic towards home
 * @sqp: the QP, locked, in RUN.
 *
 * An application must not get an error because an operator moved its QP while the default NIC
 * works.  So the QP is moved back, and the atomic waits.  This is called again until it arrives.
 *
 * Context: process context.
 * Return: true if the QP is on its way; false: the atomic is an error.
 */
bool shift_move_atomic(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	/* a device to which only the application may post could not take the atomic, either */
	if (sqp->fo.path != SHIFT_PATH_BACKUP || sqp->rings.provider->keeps)
		return false;
	if (!sqp->move.atomic_until)
		sqp->move.atomic_until = shift_from_now(MOVE_MS);
	if (!sqp->move.until || backup_wanted(sqp))
		shift_move_want(sqp, SHIFT_PATH_DEFAULT, true);
	if (ktime_get_ns() < sqp->move.atomic_until && shift_move_target_works(sqp))
		return true;
	sqp->move.until = 0;
	return false;
}

/* A failover has ended: is a move still wanted?  sqp->lock. */
void shift_move_done(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	sqp->move.atomic_until = 0;
	if (!sqp->move.until)
		return;
	if (shift_move_wanted(sqp, sqp->fo.path))
		sqp->move.until = 0;
	else
		shift_qp_arm_unless_set(sqp, SHIFT_AGAIN_MS);
}
