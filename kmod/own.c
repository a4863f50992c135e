// SPDX-License-Identifier: GPL-2.0
/*
 * The application's own QP is given back to it, if its provider can begin its rings anew:
 * from then on it posts as without the module.
 *
 * A QP that is home on one of the kernel's is switched once more, to SHIFT_PATH_OWN, as any
 * other: both ends settle, fence, and tell how far they got, which is as far as they were
 * asked.  Then each end's provider moves what lies in its rings to where index 0 is, its own QP
 * is connected to the other's, and READY is sent.  See Documentation/protocol.md.
 *
 * Posts wait in KICK meanwhile, so it is only tried when nothing is outstanding and both
 * applications are seen to poll.  What does not come about changes nothing: the QP
 * is on one of the kernel's again.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include "link.h"
#include "provider.h"

#define AWAKE_MS	100	/* so long after it got a word it is believed to poll; scaled */
#define RETRY_MS	100	/* to the next try, doubled with each; scaled */
#define TRIES_MAX	7	/* between two arrivals at home */
#define PATIENCE_MS	50	/* that a post waits for what needs the peer; scaled */

/* May be changed at any time. */
static bool give_back = true;
module_param(give_back, bool, 0644);
MODULE_PARM_DESC(give_back, "let a QP that is home again run on its application's own one, if its provider can");

static u64 scaled_ns(unsigned int ms)
{
	return (u64)ms * NSEC_PER_MSEC * max(READ_ONCE(shift_deadline_scale), 1u);
}

/*
 * Of one process one QP at a time is given back: a thread that waits in KICK for one does
 * not poll for another, whose peer's thread may wait likewise.
 */
static DEFINE_SPINLOCK(going_lock);
static LIST_HEAD(going);

static bool going_take(struct shift_qp *sqp)
{
	struct shift_qp *other;
	bool free = true;

	spin_lock_bh(&going_lock);
	list_for_each_entry(other, &going, own_node)
		free = free && (other == sqp || other->mm != sqp->mm);
	if (free && list_empty(&sqp->own_node))
		list_add_tail(&sqp->own_node, &going);
	spin_unlock_bh(&going_lock);
	return free;
}

static void going_drop(struct shift_qp *sqp)
{
	spin_lock_bh(&going_lock);
	list_del_init(&sqp->own_node);
	spin_unlock_bh(&going_lock);
}

/**
 * shift_own_awaited - may a thread of this QP's process wait in KICK, and so not poll?
 * @sqp: the QP.
 *
 * Context: any that may take a spinlock.
 */
bool shift_own_awaited(struct shift_qp *sqp)
{
	struct shift_qp *other;
	bool any = false;

	spin_lock_bh(&going_lock);
	list_for_each_entry(other, &going, own_node)
		any = any || other->mm == sqp->mm;
	spin_unlock_bh(&going_lock);
	return any;
}

/* A poll of the last moment: whoever sleeps, or computes, would keep the peer waiting. */
static bool awake(const struct shift_qp *sqp)
{
	return ktime_get_ns() - READ_ONCE(sqp->awake_ns) < scaled_ns(AWAKE_MS);
}

static bool fits_here(struct shift_qp *sqp)
{
	return READ_ONCE(give_back) && sqp->rebases && sqp->registered && sqp->qp &&
	       sqp->path == SHIFT_PATH_HOME && sqp->app_state == IB_QPS_RTS &&
	       !sqp->ssrq && !sqp->notes && !sqp->stop_status && !sqp->move_until &&
	       !READ_ONCE(sqp->sdev->drained) && !READ_ONCE(sqp->sdev->port_down) &&
	       READ_ONCE(sqp->rebase) != SHIFT_REBASE_BUSY && shift_switch_healthy(sqp);
}

/* Is it where that is possible, and wanted?  With a way out on either side. */
static bool fits(struct shift_qp *sqp)
{
	return sqp->spare[SHIFT_PATH_BACKUP] &&
	       sqp->link[0] && shift_link_state(sqp->link[0]) == SHIFT_LINK_UP &&
	       sqp->link[1] && shift_link_state(sqp->link[1]) == SHIFT_LINK_UP &&
	       fits_here(sqp);
}

/**
 * shift_own_able - may it be asked to go back to its own QP?
 * @sqp: the QP, locked.
 */
bool shift_own_able(struct shift_qp *sqp)
{
	/* posts of one that was given up were promised to be taken in */
	return (sqp->state == SHIFT_ST_RUN || sqp->state == SHIFT_ST_ASKED) &&
	       !sqp->own_aborted && fits(sqp);
}

/* Two that ask at once, for two QPs of one process, would refuse each other. */
static bool asks(const struct shift_qp *sqp)
{
	return memcmp(shift_boot_id, sqp->peer_boot, sizeof(sqp->peer_boot)) > 0;
}

/*
 * A word for the provider, in the CQs that the application polls: the first poll that meets
 * one shows that it does, or does what is wanted.
 */
static bool tell(struct shift_qp *sqp)
{
	const struct shift_abi_wc wc = { .opcode = SHIFT_WC_REBASE, .qp_num = sqp->qpn };

	if (READ_ONCE(sqp->nudged))
		return true;
	sqp->nudged_ns = ktime_get_ns();
	WRITE_ONCE(sqp->nudged, true);
	if (shift_cq_tell(sqp->rcq, &wc) ||
	    (sqp->scq != sqp->rcq && shift_cq_tell(sqp->scq, &wc))) {
		WRITE_ONCE(sqp->nudged, false);
		return false;
	}
	return true;
}

/**
 * shift_own_wish - it has come home
 * @sqp: the QP, locked.
 *
 * It is tried when its application polls next.
 */
void shift_own_wish(struct shift_qp *sqp)
{
	sqp->own_next_ns = 0;
	sqp->own_tries = 0;
	if (asks(sqp) && fits(sqp))
		tell(sqp);
}

/*
 * A post has waited for too long, and its thread does not poll: the QP is to be where posts are
 * taken in again.  Once its provider is wanted that thread is who is waited for.
 */
static void give_up(struct shift_qp *sqp)
{
	if (sqp->state == SHIFT_ST_ASKED ||
	    (sqp->state == SHIFT_ST_AGREE && shift_switch_usable(sqp)))
		shift_switch_event(sqp, SHIFT_EV_DEADLINE, NULL);
}

/**
 * shift_own_run - it may be time to go back to the application's own QP
 * @sqp: the QP, locked.
 */
void shift_own_run(struct shift_qp *sqp)
{
	u64 now = ktime_get_ns();

	if (shift_own_is_under_way(sqp) && READ_ONCE(sqp->own_tired)) {
		give_up(sqp);
		return;
	}
	if (sqp->state != SHIFT_ST_RUN || !asks(sqp) || !fits(sqp) || sqp->own_tries >= TRIES_MAX)
		return;
	if (now < sqp->own_next_ns) {
		shift_switch_arm(sqp, RETRY_MS);
		return;
	}
	if (!awake(sqp)) {
		tell(sqp);	/* the poll that gets it comes here again */
		return;
	}
	if (!going_take(sqp)) {
		shift_switch_arm(sqp, RETRY_MS);
		return;
	}
	sqp->own_next_ns = now + scaled_ns(RETRY_MS << sqp->own_tries++);
	sqp->own_ask = true;
	shift_switch_event(sqp, SHIFT_EV_FAULT, NULL);
	sqp->own_ask = false;
	if (sqp->state != SHIFT_ST_RUN)
		return;
	going_drop(sqp);
	shift_switch_arm(sqp, RETRY_MS);
}

static bool nothing_left(struct shift_qp *sqp)
{
	bool empty;

	spin_lock_bh(&sqp->ledger_lock);
	empty = !shift_ledger_count(&sqp->ledger) && sqp->recvs.tail == sqp->recvs.done;
	spin_unlock_bh(&sqp->ledger_lock);
	return empty;
}

static bool settled(struct shift_qp *sqp)
{
	return nothing_left(sqp) && awake(sqp);
}

/* What is posted from here on waits. */
void shift_own_hold(struct shift_qp *sqp)
{
	spin_lock_bh(&sqp->ledger_lock);
	if (!sqp->own_hold)
		sqp->own_tired = false;
	sqp->own_hold = true;
	spin_unlock_bh(&sqp->ledger_lock);
}

/**
 * shift_own_settle - take in nothing new, and let all that was taken in finish; its
 * application shows that it is there, by polling or by posting
 * @sqp: the QP, locked.
 * @end: ktime, until when.
 *
 * Return: true: nothing is outstanding but receives, or it has failed; false: it is to be
 * called off.
 */
bool shift_own_settle(struct shift_qp *sqp, u64 end)
{
	if (!going_take(sqp))
		return false;
	shift_own_hold(sqp);
	if (!awake(sqp))
		tell(sqp);
	while (!settled(sqp) && ktime_get_ns() < end && !READ_ONCE(sqp->own_tired) &&
	       !shift_standby_error(sqp)) {
		shift_replay_pump(sqp);
		shift_recv_deliver(sqp);
		if (sqp->state == SHIFT_ST_FAIL)
			return true;
		usleep_range(100, 200);
	}
	return settled(sqp);
}

/* The QP is not protected any more, and may be on its own one already; sqp->lock. */
void shift_own_over(struct shift_qp *sqp)
{
	/* one that was fenced since is flushed by its ledger: posts go on telling of themselves */
	if (sqp->own_connected && !test_bit(SHIFT_QP_FENCED, &sqp->flags) && sqp->gate.page)
		shift_word_write(&sqp->gate, 0);
	shift_own_forget(sqp);
	shift_own_release(sqp);
}

/* Posts go on, wherever the QP is; any context that may take a spinlock. */
void shift_own_release(struct shift_qp *sqp)
{
	bool held;

	spin_lock_bh(&sqp->ledger_lock);
	held = sqp->own_hold;
	sqp->own_hold = false;
	sqp->own_aborted = false;
	spin_unlock_bh(&sqp->ledger_lock);
	going_drop(sqp);
	if (!held)
		return;
	wake_up_all(&sqp->gate_wait);
	shift_switch_kick(sqp, SHIFT_QP_KICK);
}

/* Another switch begins: what the last one wanted of the provider is over. */
void shift_own_forget(struct shift_qp *sqp)
{
	spin_lock_bh(&sqp->ledger_lock);
	/* who is about to change its rings does so */
	if (sqp->rebase != SHIFT_REBASE_BUSY)
		sqp->rebase = SHIFT_REBASE_NONE;
	spin_unlock_bh(&sqp->ledger_lock);
	/* the word may be lost by a RESET of the application's; two do no harm */
	WRITE_ONCE(sqp->nudged, false);
	sqp->own_connected = false;
	sqp->own_alone = false;
}

/**
 * shift_own_arm - the peer is stopped, too: the provider may begin
 * @sqp: the QP, locked; its own QP is in RESET.
 * @epoch: the switch that was agreed on.
 * @qpn: the peer's own QP.
 *
 * Return: 0.
 */
int shift_own_arm(struct shift_qp *sqp, u32 epoch, u32 qpn)
{
	sqp->armed[0] = (struct shift_life) {
		.epoch = epoch, .psn = shift_start_psn(sqp->peer_cookie, epoch),
	};
	sqp->own_peer_qpn = qpn;
	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->rebase != SHIFT_REBASE_BUSY)
		sqp->rebase = SHIFT_REBASE_WANTED;
	spin_unlock_bh(&sqp->ledger_lock);
	wake_up_all(&sqp->gate_wait);
	/* what the fence has found */
	shift_recv_deliver(sqp);
	tell(sqp);
	return 0;
}

/**
 * shift_own_ready - may the peer send to the application's own QP?
 * @sqp: the QP, locked, in SYNC or RUN.
 *
 * Connects it as soon as the provider's rings are ready.  From then on a fence is that
 * of a QP on its own device.  If it cannot be connected the deadline decides.
 */
bool shift_own_ready(struct shift_qp *sqp)
{
	int err;

	if (sqp->state == SHIFT_ST_RUN || sqp->own_connected)
		return true;
	if (READ_ONCE(sqp->rebase) != SHIFT_REBASED) {
		/* a lock was taken, or the word was lost on one who does not poll */
		tell(sqp);
		return false;
	}
	err = shift_own_connect(sqp);
	if (err) {
		pr_warn_ratelimited("%s qp %u: cannot be connected again (%d)\n",
				    sqp->sdev->name, sqp->qpn, err);
		shift_own_forget(sqp);
		return false;
	}
	sqp->sq_psn = shift_start_psn(sqp->cookie, sqp->armed[0].epoch);
	sqp->rq_psn = sqp->armed[0].psn;
	sqp->own_connected = true;
	sqp->path = 0;
	/* what is flushed from here on is the driver's to flush */
	spin_lock_bh(&sqp->ledger_lock);
	sqp->ledger_live = false;
	sqp->sent_any = false;
	spin_unlock_bh(&sqp->ledger_lock);
	clear_bit(SHIFT_QP_FENCED, &sqp->flags);
	return true;
}

/**
 * shift_own_returned - both ends' own QPs work
 * @sqp: the QP, locked.
 */
void shift_own_returned(struct shift_qp *sqp)
{
	sqp->heard = sqp->armed[0];
	sqp->unfenced = false;
	sqp->reason = SHIFT_REASON_NONE;
	sqp->asks = 0;
	clear_bit(SHIFT_QP_ERRORED, &sqp->flags);
	clear_bit(SHIFT_QP_GATED, &sqp->flags);
	clear_bit(SHIFT_QP_KEPT, &sqp->flags);
	shift_own_forget(sqp);
	if (sqp->registered)
		shift_word_write(&sqp->gate, 0);
	shift_own_release(sqp);
	shift_stat_inc(SHIFT_STAT_GIVEN_BACK);
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
	set_bit(SHIFT_QP_TIDY, &sqp->flags);
	shift_move_done(sqp);
}

/**
 * shift_own_alone - the peer's QP is gone while this one is being given back
 * @sqp: the QP, locked.
 *
 * Both ends had settled, so all that is left to do is local: its own QP is connected to what
 * is not there any more, as soon as the provider is ready.  So its application finds what it
 * would without the module: receives that wait, and sends that nobody answers.  There is no
 * deadline: whoever posts or polls is its provider.
 *
 * Return: false: it is not being given back, or not far enough for that.
 */
bool shift_own_alone(struct shift_qp *sqp)
{
	if (sqp->to != SHIFT_PATH_OWN ||
	    (sqp->state != SHIFT_ST_AGREE && sqp->state != SHIFT_ST_SYNC))
		return false;
	if (!sqp->own_alone) {
		if (!nothing_left(sqp))
			return false;
		if (sqp->state == SHIFT_ST_AGREE)
			shift_own_arm(sqp, sqp->epoch, sqp->dest_qpn);
		sqp->peer_ok = false;
		sqp->own_alone = true;
		shift_switch_state(sqp, SHIFT_ST_SYNC);
	}
	if (shift_own_ready(sqp)) {
		shift_switch_state(sqp, SHIFT_ST_RUN);
		shift_own_returned(sqp);
		shift_switch_event(sqp, SHIFT_EV_RX_GONE, NULL);
	} else if (sqp->own_alone && sqp->registered && READ_ONCE(sqp->scq->registered) &&
		   READ_ONCE(sqp->rcq->registered)) {
		shift_switch_arm(sqp, RETRY_MS);
	} else {
		/* cannot be connected, or nobody is there who could change its rings */
		shift_switch_fail(sqp, IB_WC_RETRY_EXC_ERR);
	}
	return true;
}

/* Until the QP runs, its provider is wanted, or it is on its way to where posts are taken in. */
static bool kick_waits(struct shift_qp *sqp)
{
	return READ_ONCE(sqp->own_hold) && !READ_ONCE(sqp->own_aborted) &&
	       READ_ONCE(sqp->rebase) != SHIFT_REBASE_WANTED;
}

/**
 * shift_own_kick - something was posted: may it be taken in?
 * @sqp: the QP.
 *
 * Context: the poster's; sleeps for PATIENCE_MS (scaled) at most.
 * Return: 0; 1: not now, it will be; -EAGAIN: not yet, the provider may begin its rings anew;
 * -ENOTCONN: its own QP works again.
 */
long shift_own_kick(struct shift_qp *sqp)
{
	unsigned long most = nsecs_to_jiffies(scaled_ns(PATIENCE_MS));
	bool held, aborted;
	long left = 1;

	if (READ_ONCE(sqp->own_hold))
		WRITE_ONCE(sqp->awake_ns, ktime_get_ns());
	if (kick_waits(sqp)) {
		left = wait_event_killable_timeout(sqp->gate_wait, !kick_waits(sqp), most);
		if (left < 0)
			return -EINTR;
	}
	/* FENCED was cleared before the hold was, and is set before the flag word is */
	spin_lock_bh(&sqp->ledger_lock);
	held = sqp->own_hold;
	aborted = sqp->own_aborted;
	if (held && !left)
		sqp->own_tired = true;
	spin_unlock_bh(&sqp->ledger_lock);
	if (held && !left)
		shift_switch_kick(sqp, SHIFT_QP_OWN);
	if (held)
		return aborted ? 1 : -EAGAIN;
	return test_bit(SHIFT_QP_FENCED, &sqp->flags) ? 0 : -ENOTCONN;
}

static int rebase_begin(struct shift_qp *sqp, struct shift_abi_rebase *base)
{
	int err = -EAGAIN;

	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->rebase == SHIFT_REBASE_WANTED && sqp->own_hold && sqp->registered &&
	    !shift_ledger_count(&sqp->ledger) && sqp->recvs.tail == sqp->recvs.done &&
	    sqp->recvs.post == sqp->recvs.done)
		err = sqp->provider->rebase(sqp, base);
	if (!err)
		sqp->rebase = SHIFT_REBASE_BUSY;
	spin_unlock_bh(&sqp->ledger_lock);
	return err;
}

static int rebase_done(struct shift_qp *sqp, const struct shift_abi_rebase *base)
{
	int err = -EINVAL;

	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->rebase == SHIFT_REBASE_BUSY && sqp->registered) {
		sqp->provider->rebased(sqp, base);
		shift_recv_start(sqp, 0, 0, sqp->recvs.most);
		sqp->rebase = SHIFT_REBASED;
		err = 0;
	}
	spin_unlock_bh(&sqp->ledger_lock);
	if (!err) {
		shift_switch_kick(sqp, SHIFT_QP_READY);
		/* or it is elsewhere by now, where receives are to be posted */
		shift_switch_kick(sqp, SHIFT_QP_KICK);
	}
	return err;
}

/**
 * shift_own_rebase - the provider has got the word, or has done what it asks for
 * @sqp: the QP.
 * @base: see SHIFT_IOC_REBASE.
 *
 * Context: any that may take a spinlock.
 * Return: 0; -EAGAIN: nothing is to be done; -EINVAL.
 */
long shift_own_rebase(struct shift_qp *sqp, struct shift_abi_rebase *base)
{
	bool prompt;
	int err;

	switch (base->step) {
	case SHIFT_REBASE_BEGIN:
		err = rebase_begin(sqp, base);
		break;
	case SHIFT_REBASE_DONE:
		return base->reserved ? -EINVAL : rebase_done(sqp, base);
	case SHIFT_REBASE_LATER:
		err = -EAGAIN;
		break;
	default:
		return -EINVAL;
	}
	prompt = ktime_get_ns() - READ_ONCE(sqp->nudged_ns) < scaled_ns(AWAKE_MS);
	if (prompt)
		WRITE_ONCE(sqp->awake_ns, ktime_get_ns());
	WRITE_ONCE(sqp->nudged, false);
	if (err)
		shift_switch_kick(sqp, SHIFT_QP_OWN);
	return err;
}
