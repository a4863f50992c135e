// SPDX-License-Identifier: GPL-2.0
/*
 * Which QPs hold work that cannot be moved.  Administrators are told before a fault: each QP looks
 * into its rings in its own work item.  Who asks takes no lock of a QP's, and waits for a moment
 * only.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/wait.h>
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/stat.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "provider/provider.h"
#include "proxy/proxy.h"

#define LOOK_MS		100	/* for QPs to look; scaled */
#define BREAKS_MOST	4	/* proxy QPs that break with the same request */

static atomic_t looks;		/* QPs that were asked and have not looked yet */
static DECLARE_WAIT_QUEUE_HEAD(looked);

static void look_done(void)
{
	if (atomic_dec_and_test(&looks))
		wake_up_all(&looked);
}

static void look_ask(struct shift_qp *sqp)
{
	atomic_inc(&looks);
	spin_lock_bh(&sqp->inbox_lock);
	if (test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags) ||
	    test_and_set_bit(SHIFT_QPB_LOOK, &sqp->pend.flags))
		look_done();
	else
		queue_work(shift_wq, &sqp->pend.work);
	spin_unlock_bh(&sqp->inbox_lock);
}

/**
 * shift_look_all - let all QPs look whether their work can be moved
 *
 * shift_qp_shown() tells what they have found.  Of a QP whose work item does not run in time it
 * tells what was found before.
 *
 * Context: process context; waits for LOOK_MS (scaled) at most.
 */
void shift_look_all(void)
{
	unsigned long index = 0;
	struct shift_qp *sqp;

	for (; (sqp = shift_qp_next(&index)); shift_qp_put(sqp))
		if (READ_ONCE(sqp->fo.state) == SHIFT_ST_RUN && !READ_ONCE(sqp->fo.path))
			look_ask(sqp);
	wait_event_killable_timeout(looked, !atomic_read(&looks), shift_scaled_jiffies(LOOK_MS));
}

/*
 * If this QP or the peer's is on an SRQ, staying for an atomic would keep the SRQ's other QPs,
 * which can move.
 */
static bool may_stay_alone(const struct shift_qp *sqp)
{
	return sqp->peer.alone && !sqp->srqm.ssrq;
}

/* May the application post an operation soon, or has it, that no proxy QP may post? */
static bool has_own_kind(struct shift_qp *sqp)
{
	const struct shift_provider *provider = sqp->rings.provider;

	return provider && provider->keeps && !test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags) &&
	       provider->keeps(sqp);
}

/* It would be an error once the QP has left, while the QP's own NIC may outlast the fault. */
static bool stays_in_hope(struct shift_qp *sqp)
{
	return may_stay_alone(sqp) && has_own_kind(sqp);
}

/*
 * Is an atomic outstanding that no other NIC may execute?  A fence would make an error of it,
 * executed or not, while its own NIC repeats it, and has the answer if the path is back in time.
 */
static bool stays_for_answer(struct shift_qp *sqp)
{
	const struct shift_provider *provider = sqp->rings.provider;

	return !sqp->peer.atomic && may_stay_alone(sqp) && !provider->keeps && provider->once &&
	       provider->once(sqp);
}

/**
 * shift_qp_stays - does a QP stay on its default NIC, though the path has failed?
 * @sqp: the QP, locked.
 * @hopeful: as far as the peer knows, the QP's own retries may succeed.
 *
 * Context: process context.
 * Return: 0; -EOPNOTSUPP: it holds work that cannot be moved; -EAGAIN: it stays for as long as its
 * own retries last, or it is not known now.
 */
int shift_qp_stays(struct shift_qp *sqp, bool hopeful)
{
	int err;

	lockdep_assert_held(&sqp->lock);
	err = shift_provider_movable(sqp);
	if (!err && stays_for_answer(sqp))
		err = -EOPNOTSUPP;
	if (!err && hopeful && stays_in_hope(sqp))
		err = -EAGAIN;
	return err;
}

/**
 * shift_qp_look - see whether the outstanding work of a QP can be moved
 * @sqp: the QP, locked.
 *
 * It is shown as unprotected if not, also if it moves all the same, for the sake of others on an
 * SRQ, and makes an error of it.  As long as it is so, the QP looks again from time to time, so
 * that nobody is told of work that was completed long ago.
 *
 * Context: process context.
 */
void shift_qp_look(struct shift_qp *sqp)
{
	bool stuck;

	lockdep_assert_held(&sqp->lock);
	stuck = sqp->fo.state == SHIFT_ST_RUN && !sqp->fo.path &&
		(shift_provider_movable(sqp) || has_own_kind(sqp));
	WRITE_ONCE(sqp->fo.stuck, stuck);
	if (stuck)
		shift_qp_watch(sqp);
}

/* May a retry of its device's leave the QP dead, without an error? */
static bool may_be_mute(const struct shift_qp *sqp)
{
	return sqp->rings.provider && sqp->rings.provider->mrs &&
	       sqp->fo.state == SHIFT_ST_RUN && !sqp->fo.path &&
	       sqp->sdev->provider->flags & SHIFT_PROVIDES_LOCAL_TWICE;
}

/**
 * shift_qp_is_mute - does a QP's own NIC do nothing any more about what it has?
 * @sqp: the QP, locked.
 * @anew: look from now on; what was seen before does not count.
 *
 * rxe leaves QPs of users in the kernel so: Documentation/internals/kernel-users.md.  That is a
 * fault of this QP.  While it is protected on its own NIC, such a QP looks from time to time.
 *
 * Context: process context.
 */
bool shift_qp_is_mute(struct shift_qp *sqp, bool anew)
{
	lockdep_assert_held(&sqp->lock);
	if (!may_be_mute(sqp))
		return false;
	shift_qp_watch(sqp);
	if (!sqp->rings.provider->mrs->mute(sqp, anew))
		return false;
	shift_stat_inc(SHIFT_STAT_STALLED);
	pr_warn_ratelimited("%s qp %u: nothing completed for %llu ms\n", sqp->sdev->name, sqp->qpn,
			    div_u64(shift_scaled_ns(SHIFT_WATCH_MS), NSEC_PER_MSEC));
	return true;
}

/**
 * shift_qp_breaks_again - has a user in the kernel posted what no device executes?
 * @sqp: the QP, locked, whose proxy QP has broken.
 *
 * rxe of 6.12 flushes all of a QP for that, and tells no error, as if its path had failed.  So it
 * would break on each path, with the same request, for ever.
 *
 * Context: process context.
 */
bool shift_qp_breaks_again(struct shift_qp *sqp)
{
	u64 oldest;
	bool none;

	lockdep_assert_held(&sqp->lock);
	if (!sqp->kernel || shift_proxy_error(sqp) != IB_WC_WR_FLUSH_ERR ||
	    !shift_path_works(sqp, sqp->fo.path))
		return false;
	spin_lock_bh(&sqp->ledger_lock);
	oldest = shift_ledger_unfinished(&sqp->rec.ledger);
	none = oldest == sqp->rec.ledger.head;
	spin_unlock_bh(&sqp->ledger_lock);
	/* that is not a request's doing */
	if (none)
		return false;
	if (sqp->fo.broke_at != oldest)
		sqp->fo.breaks = 0;
	sqp->fo.broke_at = oldest;
	return ++sqp->fo.breaks >= BREAKS_MOST;
}

/* The QP looks because it was asked to; sqp->lock. */
void shift_qp_look_asked(struct shift_qp *sqp)
{
	shift_qp_look(sqp);
	look_done();
}

/* A QP that is DEAD, and whose work item has ended, does not look any more.  Process context. */
void shift_qp_look_drop(struct shift_qp *sqp)
{
	if (test_and_clear_bit(SHIFT_QPB_LOOK, &sqp->pend.flags))
		look_done();
}
