// SPDX-License-Identifier: GPL-2.0
/*
 * A link whose heartbeats are not acknowledged speaks for the path, but a QP on that path knows
 * better: heartbeats may travel in another class, or be lost alone.  So a QP that hears of silence
 * looks whether its own operations go on, at its requester and, where a query costs nothing, at its
 * responder.  It leaves the path if they do not, and refuses to follow a peer that leaves for
 * silence if they do.
 */
#include <linux/ktime.h>
#include <linux/slab.h>
#include "core/kick.h"
#include "core/node.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/stat.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "provider/provider.h"

#define LOOK_MS		50	/* of the first look, scaled; progress doubles it */
#define LOOK_MAX_MS	800

/* How far it is on its own device: what its peer has acknowledged, and what it has executed. */
static void own_progress(struct shift_qp *sqp, u32 *sent, u32 *psn)
{
	struct ib_qp_attr *attr;

	*sent = 0;
	*psn = 0;
	sqp->rings.provider->still(sqp, sent);
	if (!(sqp->sdev->provider->flags & SHIFT_PROVIDES_STATE))
		return;
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	if (attr && !shift_fence_query(sqp, attr))
		*psn = attr->rq_psn;
	kfree(attr);
}

/* The same on a proxy QP. */
static void proxy_progress(struct shift_qp *sqp, u32 *sent, u32 *received)
{
	spin_lock_bh(&sqp->ledger_lock);
	*sent = sqp->rec.ledger.tail;
	*received = sqp->rec.recvs.done;
	spin_unlock_bh(&sqp->ledger_lock);
}

static void progress(struct shift_qp *sqp, u32 *sent, u32 *received)
{
	if (sqp->fo.path)
		proxy_progress(sqp, sent, received);
	else
		own_progress(sqp, sent, received);
}

static void look_begin(struct shift_qp *sqp, unsigned int ms)
{
	struct shift_qp_silence *silence = &sqp->silence;

	silence->ms = ms;
	silence->began_ns = ktime_get_ns();
	progress(sqp, &silence->sent, &silence->received);
	shift_qp_arm(sqp, ms);
}

static bool look_is_over(const struct shift_qp *sqp, unsigned int ms)
{
	return ktime_get_ns() >= sqp->silence.began_ns + shift_scaled_ns(ms);
}

/* Has anything been completed or executed since the look began? */
static bool look_sees_progress(struct shift_qp *sqp)
{
	u32 sent, received;

	progress(sqp, &sent, &received);
	return sent != sqp->silence.sent || received != sqp->silence.received;
}

/* Can it look?  Its rings are readable, and it has no error that says more. */
static bool can_look(const struct shift_qp *sqp)
{
	return sqp->fo.state == SHIFT_ST_RUN && sqp->rings.usable &&
	       !test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags);
}

/**
 * shift_silence_begins - heartbeats on the QP's path are not acknowledged
 * @sqp: the QP, locked.
 *
 * Context: process context; may ask a device that answers at once.
 * Return: false: the QP cannot look, and is to leave the path.
 */
bool shift_silence_begins(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (!can_look(sqp))
		return false;
	if (!sqp->silence.ms)
		look_begin(sqp, LOOK_MS);
	return true;
}

/**
 * shift_silence_over - the QP leaves RUN: a look that is under way is void
 * @sqp: the QP, locked.
 */
void shift_silence_over(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	sqp->silence.ms = 0;
}

/**
 * shift_silence_look - the QP's timer: has a look come to its end?
 * @sqp: the QP, locked, in RUN.
 *
 * As long as its operations go on and the link is down, it looks again.  That the link is up again
 * ends no look: a path may pass what connects a link, and nothing else.
 *
 * Context: process context; may ask a device that answers at once.
 * Return: true: nothing goes on, and the QP is to leave the path.
 */
bool shift_silence_look(struct shift_qp *sqp)
{
	unsigned int ms = sqp->silence.ms;

	lockdep_assert_held(&sqp->lock);
	if (!sqp->silence.ms || !can_look(sqp))
		return false;
	if (!look_is_over(sqp, ms)) {
		shift_qp_arm_unless_set(sqp, LOOK_MS);	/* the timer was used for something else */
		return false;
	}
	sqp->silence.ms = 0;
	if (!look_sees_progress(sqp))
		return true;
	if (ms == LOOK_MS)
		shift_stat_inc(SHIFT_STAT_STAYED);
	if (!shift_path_link_up(sqp, sqp->fo.path))
		look_begin(sqp, min_t(unsigned int, 2 * ms, LOOK_MAX_MS));
	return false;
}

/**
 * shift_silence_asked - the peer leaves the path for its silence: is this QP to follow?
 * @sqp: the QP, locked, in RUN on a path that works as far as it knows.
 *
 * Context: process context; may ask a device that answers at once.
 * Return: 0: it is; -EAGAIN: that is known when its timer has run out; -EBUSY: not, as its
 * operations go on.
 */
int shift_silence_asked(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (!shift_silence_begins(sqp))
		return 0;
	if (look_sees_progress(sqp))
		return -EBUSY;
	if (look_is_over(sqp, LOOK_MS))
		return 0;
	shift_qp_arm_unless_set(sqp, LOOK_MS);
	return -EAGAIN;
}
