// SPDX-License-Identifier: GPL-2.0
/* Deadlines of the states in which a QP waits for its peer. */
#include <linux/ktime.h>
#include "core/kick.h"
#include "core/node.h"
#include "core/qp.h"
#include "failover/internal.h"
#include "pure/fsm.h"
#include "pure/msg.h"

#define SHIFT_OWN_MS	300	/* for the provider to rebase its rings in a handback */

/**
 * shift_deadline_start - start the deadline of a state
 * @sqp: the QP, locked.
 * @state: the state; nothing happens if it has no deadline.
 *
 * Context: process context.
 */
void shift_deadline_start(struct shift_qp *sqp, enum shift_state state)
{
	unsigned int ms = shift_fsm_deadline_ms(state);

	lockdep_assert_held(&sqp->lock);
	if (!ms)
		return;
	/* posts of the application wait for a handback, so it may not take long */
	if (state == SHIFT_ST_SYNC && sqp->fo.to == SHIFT_PATH_OWN)
		ms = SHIFT_OWN_MS;
	sqp->fo.deadline_ns = shift_from_now(ms);
	sqp->fo.resends = 0;
	shift_qp_arm(sqp, min_t(unsigned int, ms, SHIFT_RESEND_MS));
}

/**
 * shift_deadline_is_patient - may a deadline wait for who is late?
 * @sqp: the QP, locked.
 *
 * While an end settles, or a handback is under way, posts are held: such a failover is called off,
 * or gone back on, in time.
 *
 * Context: process context.
 */
bool shift_deadline_is_patient(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	return !shift_handback_is_under_way(sqp) &&
	       !(shift_move_settles(sqp->fo.cause) && shift_path_healthy(sqp));
}

/**
 * shift_deadline_peer_is_slow - has the peer what was sent, and not come to look at it?
 * @sqp: the QP, locked, whose deadline is over.
 *
 * A deadline is for a peer that is mute.  This one has said since the deadline began that its QP
 * waits for its turn.
 *
 * Context: process context.
 * Return: true: the deadline is to begin again.
 */
bool shift_deadline_peer_is_slow(struct shift_qp *sqp)
{
	unsigned int ms = shift_fsm_deadline_ms(sqp->fo.state);
	u64 at = shift_qp_queued_at(sqp, shift_epoch_current(sqp));

	lockdep_assert_held(&sqp->lock);
	if (!at || !ms || !shift_deadline_is_patient(sqp))
		return false;
	return at + shift_scaled_ns(ms) >= sqp->fo.deadline_ns &&
	       ktime_get_ns() < sqp->fo.began_ns + shift_scaled_ns(SHIFT_QUEUED_MS);
}
