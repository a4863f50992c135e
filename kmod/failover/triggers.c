// SPDX-License-Identifier: GPL-2.0
/* What begins a failover: a move, the SRQ, a handback; or a peer or a backup that has gone. */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/moduleparam.h>
#include "core/event.h"
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "link/link.h"
#include "provider/provider.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"
#include "srq/srq.h"

#define HANDBACKS_MAX	7	/* tries between two arrivals at home */

/**
 * shift_move_run - begin a move to sqp->move.to
 * @sqp: the QP, locked.
 *
 * Nothing happens to a QP that is there already, that is in a failover, or that cannot be moved,
 * because a move is not worth an error.
 *
 * Context: process context; sleeps while the QP settles.
 */
void shift_move_run(struct shift_qp *sqp)
{
	bool must, works = shift_move_target_works(sqp);
	u8 others = shift_srq_path(sqp, &must);

	lockdep_assert_held(&sqp->lock);
	sqp->move.next = shift_from_now(SHIFT_AGAIN_MS);
	if (sqp->fo.state != SHIFT_ST_RUN || !shift_path_healthy(sqp))
		return;		/* a failover is under way, and the move is tried after it */
	if (others && !shift_move_wanted(sqp, others)) {
		works = false;	/* the SRQ's other QPs go to the other device */
	} else if (shift_move_wanted(sqp, sqp->fo.path)) {
		sqp->move.until = 0;
		return;
	}
	if (works && !shift_move_stays(sqp)) {
		shift_failover_because(sqp, SHIFT_CAUSE_OPERATOR, true);
		shift_failover_event(sqp, SHIFT_EV_TRIGGER, NULL);
		if (sqp->fo.state == SHIFT_ST_RUN)
			shift_failover_because(sqp, SHIFT_CAUSE_NONE, false);	/* no path to ask */
	}
	if (sqp->move.until)
		shift_qp_arm_unless_set(sqp, SHIFT_AGAIN_MS);
}

/* The timer has fired in RUN: try a move again that is still wanted; sqp->lock. */
void shift_move_again(struct shift_qp *sqp)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&sqp->lock);
	if (!sqp->move.until)
		return;
	if (now > sqp->move.until)
		sqp->move.until = 0;
	else if (now < sqp->move.next)
		shift_qp_arm_unless_set(sqp, SHIFT_AGAIN_MS);
	else
		shift_move_run(sqp);
}

/**
 * shift_move_follow - go to the path to which other QPs of the SRQ have gone
 * @sqp: the QP, locked.
 *
 * This is called again until the QP is there: it may be busy now and not be so later.
 *
 * Context: process context; sleeps while the QP settles.
 */
void shift_move_follow(struct shift_qp *sqp)
{
	bool broken, moves;
	u8 path = shift_srq_wanted(sqp, &broken, &moves);

	lockdep_assert_held(&sqp->lock);
	if (shift_srq_is_overdue(sqp)) {
		shift_failover_fail(sqp, IB_WC_RETRY_EXC_ERR);
		shift_srq_ended(sqp);
		return;
	}
	if (broken && shift_qp_is_moved(sqp)) {
		shift_failover_fail(sqp, IB_WC_RETRY_EXC_ERR);
		return;
	}
	/* nobody can consent any more, and the others cannot wait */
	if (path && sqp->fo.path && sqp->fo.state == SHIFT_ST_RUN && !sqp->peer.ok) {
		shift_failover_fail(sqp, IB_WC_RETRY_EXC_ERR);
		return;
	}
	if (sqp->fo.state != SHIFT_ST_RUN || !path || !shift_path_link_up(sqp, path) ||
	    !shift_path_healthy(sqp) ||
	    (!sqp->fo.path && shift_provider_movable(sqp)))
		return;
	shift_failover_because(sqp, SHIFT_CAUSE_SRQ, moves);
	shift_failover_event(sqp, SHIFT_EV_TRIGGER, NULL);
	if (sqp->fo.state == SHIFT_ST_RUN)
		shift_failover_because(sqp, SHIFT_CAUSE_NONE, false);	/* not now */
}

struct ask {
	struct shift_dev *sdev;
	u32 link_id, qpn;
	u8 to;
	bool keep;
	unsigned int told, cut_off;
};

static int move_ask_one(struct shift_qp *sqp, void *arg)
{
	struct ask *ask = arg;
	const struct shift_link *link = shift_path_link(sqp, sqp->fo.path);
	bool backup = sqp->fo.path == SHIFT_PATH_BACKUP, wanted = !backup;

	if (!shift_qp_is_protected(sqp) || (ask->qpn && sqp->qpn != ask->qpn))
		return 0;
	/* in a failover: a move that is kept is tried when that has ended */
	if (sqp->fo.state != SHIFT_ST_RUN && !ask->keep)
		return 0;
	if (ask->sdev ? sqp->sdev != ask->sdev : !link || shift_link_id(link) != ask->link_id)
		return 0;
	if (ask->sdev)
		wanted = ask->to == SHIFT_PATH_BACKUP;
	if (!ask->keep && wanted != backup &&
	    !shift_path_works(sqp, wanted ? SHIFT_PATH_BACKUP : SHIFT_PATH_HOME)) {
		ask->cut_off++;
		return 0;
	}
	shift_move_want(sqp, wanted ? SHIFT_PATH_BACKUP : SHIFT_PATH_DEFAULT, ask->keep);
	ask->told++;
	return 0;
}

/**
 * shift_move_ask - tell QPs to move
 * @sdev: those of this device go to @to; or NULL:
 * @link_id: those that use this link leave it.
 * @qpn: only this one; 0: all.
 * @to: SHIFT_PATH_DEFAULT (their own device) or SHIFT_PATH_BACKUP.
 * @keep: those that cannot move now are tried again.
 *
 * Context: process context, no QP's lock held.
 * Return: 0: some were told, or are there already; -ENOENT: there are none; -ENETUNREACH: the path
 * on which they are wanted does not work now, and they need not be tried again.
 */
int shift_move_ask(struct shift_dev *sdev, u32 link_id, u32 qpn, u8 to, bool keep)
{
	struct ask ask = {
		.sdev = sdev, .link_id = link_id, .qpn = qpn, .to = to, .keep = keep,
	};

	shift_qp_walk(NULL, move_ask_one, &ask);
	if (ask.told)
		return 0;
	return ask.cut_off ? -ENETUNREACH : -ENOENT;
}

/*
 * A post has waited for too long, and its thread does not poll: end the handback, so that posts are
 * taken in again.  In SYNC it is that thread which has to rebase the rings, so it goes on.
 */
static void handback_give_up(struct shift_qp *sqp)
{
	if (sqp->fo.state == SHIFT_ST_ASKED ||
	    (sqp->fo.state == SHIFT_ST_AGREE && shift_path_usable(sqp)))
		shift_failover_event(sqp, SHIFT_EV_DEADLINE, NULL);
}

/**
 * shift_handback_run - begin a handback if it is possible now, or give one up that takes too long
 * @sqp: the QP, locked.
 *
 * Context: process context; sleeps while the QP settles.
 */
void shift_handback_run(struct shift_qp *sqp)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&sqp->lock);
	if (shift_handback_is_under_way(sqp) && READ_ONCE(sqp->handback.tired)) {
		handback_give_up(sqp);
		return;
	}
	if (sqp->fo.state != SHIFT_ST_RUN || !shift_handback_asks(sqp) ||
	    !shift_handback_fits(sqp) || sqp->handback.tries >= HANDBACKS_MAX)
		return;
	if (now < sqp->handback.next_ns) {
		shift_qp_arm(sqp, SHIFT_HANDBACK_RETRY_MS);
		return;
	}
	if (!shift_handback_awake(sqp)) {
		shift_handback_tell(sqp);	/* the next poll sets HANDBACK */
		return;
	}
	if (!shift_handback_take(sqp)) {
		shift_qp_arm(sqp, SHIFT_HANDBACK_RETRY_MS);
		return;
	}
	sqp->handback.next_ns = now +
		shift_scaled_ns(SHIFT_HANDBACK_RETRY_MS << sqp->handback.tries++);
	sqp->handback.ask = true;
	shift_failover_event(sqp, SHIFT_EV_TRIGGER, NULL);
	sqp->handback.ask = false;
	if (sqp->fo.state != SHIFT_ST_RUN)
		return;
	shift_handback_drop(sqp);
	shift_qp_arm(sqp, SHIFT_HANDBACK_RETRY_MS);
}

/**
 * shift_failover_peer_gone - the peer's QP has ended
 * @sqp: the QP, locked.
 *
 * Context: process context; sleeps as a fence does.
 */
void shift_failover_peer_gone(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (shift_handback_goes_alone(sqp))
		shift_failover_event(sqp, SHIFT_EV_ALONE, NULL);
	else if (sqp->fo.path && (sqp->fo.state == SHIFT_ST_RUN || shift_path_healthy(sqp)))
		sqp->peer.ok = false;	/* sends will fail; the QP has no path to go back to */
	else
		shift_failover_event(sqp, SHIFT_EV_RX_GONE, NULL);
}

/**
 * shift_failover_backup_gone - the backup device is being removed
 * @sqp: the QP, locked.
 *
 * A QP that is home on a proxy QP goes on there.  Its peer is told when it asks for the backup.
 *
 * Context: process context; sleeps as a fence does.
 */
void shift_failover_backup_gone(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (sqp->fo.state == SHIFT_ST_FAIL || sqp->fo.state == SHIFT_ST_APP) {
		/* the protection has ended, but posts are flushed until the QP is destroyed */
		shift_pairing_drop(sqp);
		shift_proxy_destroy(sqp);
		return;
	}
	/* call off what this end has asked for */
	if (sqp->fo.path == SHIFT_PATH_HOME && sqp->fo.state == SHIFT_ST_ASKED &&
	    shift_path_healthy(sqp))
		shift_failover_event(sqp, SHIFT_EV_DEADLINE, NULL);
	if (sqp->fo.path != SHIFT_PATH_HOME || sqp->fo.state != SHIFT_ST_RUN) {
		shift_failover_unprotect(sqp, SHIFT_REASON_DEVICE_GONE);
		shift_proxy_destroy(sqp);
		return;
	}
	shift_proxy_drop(sqp, SHIFT_PATH_BACKUP);
	if (sqp->peer.link[1])
		shift_link_guard(sqp->peer.link[1], &sqp->peer.use[1], false);
	shift_path_drop_link(sqp, 1);
	sqp->fo.reason = SHIFT_REASON_DEVICE_GONE;
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
}
