// SPDX-License-Identifier: GPL-2.0
/*
 * What waits for the work item of a QP: pending bits, its timer, and one message of each kind.
 * inbox_lock is also held to change the QP's state, for readers that cannot sleep; and nothing is
 * queued under it once the QP is DEAD.
 */
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include "core/kick.h"
#include "core/node.h"
#include "core/qp.h"
#include "core/stat.h"
#include "pure/msg.h"

/* Set a pending bit and queue the work item.  Any context that may take a spinlock. */
void shift_qp_kick(struct shift_qp *sqp, unsigned int bit)
{
	spin_lock_bh(&sqp->inbox_lock);
	if (!test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags)) {
		set_bit(bit, &sqp->pend.flags);
		queue_work(shift_wq, &sqp->pend.work);
	}
	spin_unlock_bh(&sqp->inbox_lock);
}

void shift_qp_arm(struct shift_qp *sqp, unsigned int ms)
{
	unsigned long delay = shift_scaled_jiffies(ms);

	spin_lock_bh(&sqp->inbox_lock);
	if (!test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags))
		mod_delayed_work(shift_wq, &sqp->pend.timer, delay);
	spin_unlock_bh(&sqp->inbox_lock);
}

/**
 * shift_qp_kick_any - the same where no other lock may be taken
 * @sqp: the QP.
 * @bit: the bit.
 *
 * Who makes a QP DEAD that is kicked in this way waits for a grace period.
 *
 * Context: any; RCU.
 */
void shift_qp_kick_any(struct shift_qp *sqp, unsigned int bit)
{
	if (!irqs_disabled()) {
		shift_qp_kick(sqp, bit);
	} else if (!test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags)) {
		set_bit(bit, &sqp->pend.flags);
		queue_work(shift_wq, &sqp->pend.work);
	}
}

/* Start the QP's timer, unless it runs already: then that one serves, too. */
void shift_qp_arm_unless_set(struct shift_qp *sqp, unsigned int ms)
{
	unsigned long delay = shift_scaled_jiffies(ms);

	spin_lock_bh(&sqp->inbox_lock);
	if (!test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags))
		queue_delayed_work(shift_wq, &sqp->pend.timer, delay);
	spin_unlock_bh(&sqp->inbox_lock);
}

/* Start the timer for the next shift_proxy_watch(). */
void shift_qp_watch(struct shift_qp *sqp)
{
	shift_qp_arm_unless_set(sqp, SHIFT_WATCH_MS);
}

void shift_qp_timer(struct work_struct *work)
{
	struct shift_qp *sqp = container_of(to_delayed_work(work), struct shift_qp, pend.timer);

	shift_qp_kick(sqp, SHIFT_QPB_DEADLINE);
}

/**
 * shift_qp_post_msg - put a message into the QP's mailbox
 * @sqp: the QP.
 * @m: validated message; it never replaces one of the same kind with a newer epoch.  A PAIR may be
 *	that of a new incarnation, whose epochs begin anew.
 *
 * Return: true if an earlier one of its kind was there, which the work item has not looked at.
 */
bool shift_qp_post_msg(struct shift_qp *sqp, const struct shift_msg *m)
{
	struct shift_mailbox *inbox = &sqp->pend.mailbox;
	bool late;

	spin_lock_bh(&sqp->inbox_lock);
	late = inbox->valid & BIT(m->type);
	if (!test_bit(SHIFT_QPB_DEAD, &sqp->pend.flags)) {
		if (!(inbox->valid & BIT(m->type)) || m->type == SHIFT_MSG_PAIR ||
		    m->epoch >= inbox->msg[m->type].epoch) {
			inbox->msg[m->type] = *m;
			inbox->valid |= BIT(m->type);
		}
		queue_work(shift_wq, &sqp->pend.work);
	}
	spin_unlock_bh(&sqp->inbox_lock);
	return late;
}

/* Count a message that a peer may not send any more for now. */
static bool allowed(bool allowed)
{
	if (!allowed)
		shift_stat_inc(SHIFT_STAT_FLOODED);
	return allowed;
}

/**
 * shift_qp_hears - the peer has sent a message for the QP's work item: may it?
 * @sqp: the QP.
 *
 * Each may cost as much as a fence, and another one can be sent as soon as it was taken out.
 *
 * Context: any that may take a spinlock.
 * Return: false: it has sent too many; this one is to be dropped, and was counted.
 */
bool shift_qp_hears(struct shift_qp *sqp)
{
	bool hears;

	spin_lock_bh(&sqp->inbox_lock);
	hears = shift_bucket_take(&sqp->pend.heard, ktime_get_ns(),
				  SHIFT_HEARD_MS * NSEC_PER_MSEC, SHIFT_HEARD_MOST);
	spin_unlock_bh(&sqp->inbox_lock);
	return allowed(hears);
}

/**
 * shift_qp_is_due - will the QP's work item run, whether or not a message comes?
 * @sqp: the QP.
 *
 * Context: any.  Racy by nature.
 */
bool shift_qp_is_due(const struct shift_qp *sqp)
{
	return work_pending(&sqp->pend.work) || test_bit(SHIFT_QPB_SOON, &sqp->pend.flags);
}

/**
 * shift_qp_answers - the peer asks for a key: is it answered?
 * @sqp: the QP.
 *
 * A peer that asks again and again for keys that do not exist is guessing.  Until its allowance has
 * come back it is not answered about keys that exist, either.
 *
 * Context: any that may take a spinlock.
 * Return: false: it is not answered, and was counted.
 */
bool shift_qp_answers(struct shift_qp *sqp)
{
	bool answers;

	spin_lock_bh(&sqp->inbox_lock);
	answers = shift_bucket_has(&sqp->pend.missed, ktime_get_ns(),
				   SHIFT_MISSED_MS * NSEC_PER_MSEC, SHIFT_MISSED_MOST);
	spin_unlock_bh(&sqp->inbox_lock);
	return allowed(answers);
}

/* The peer has asked for a key that does not exist. */
void shift_qp_note_missed(struct shift_qp *sqp)
{
	spin_lock_bh(&sqp->inbox_lock);
	shift_bucket_take(&sqp->pend.missed, ktime_get_ns(), SHIFT_MISSED_MS * NSEC_PER_MSEC,
			  SHIFT_MISSED_MOST);
	spin_unlock_bh(&sqp->inbox_lock);
}

/* The peer has what was sent in @epoch, and has not come to look at it. */
void shift_qp_note_queued(struct shift_qp *sqp, u32 epoch)
{
	spin_lock_bh(&sqp->inbox_lock);
	sqp->pend.queued_epoch = epoch;
	WRITE_ONCE(sqp->pend.queued_ns, ktime_get_ns());
	spin_unlock_bh(&sqp->inbox_lock);
}

/**
 * shift_qp_queued_at - when has the peer said last that a message of ours waits for its work item?
 * @sqp: the QP.
 * @epoch: of that message.
 *
 * Return: ktime; 0: it has not said so of that epoch.
 */
u64 shift_qp_queued_at(struct shift_qp *sqp, u32 epoch)
{
	u64 at;

	spin_lock_bh(&sqp->inbox_lock);
	at = sqp->pend.queued_epoch == epoch ? sqp->pend.queued_ns : 0;
	spin_unlock_bh(&sqp->inbox_lock);
	return at;
}

/* Has the peer said just now that its QP has not come to look at what was sent?  Racy by nature. */
bool shift_qp_peer_is_late(const struct shift_qp *sqp)
{
	u64 at = READ_ONCE(sqp->pend.queued_ns);

	return at && ktime_get_ns() - at < shift_scaled_ns(SHIFT_LATE_MS);
}

/*
 * Take the next message out of the mailbox; false: there is none but those of kinds in @kept.
 * Messages are taken in the order in which the protocol sends their kinds within an epoch.
 */
bool shift_qp_take_msg(struct shift_qp *sqp, struct shift_msg *m, u32 kept)
{
	static const u8 order[] = {
		SHIFT_MSG_PAIR, SHIFT_MSG_GONE, SHIFT_MSG_NACK, SHIFT_MSG_REQ,
		SHIFT_MSG_ACK, SHIFT_MSG_PROGRESS, SHIFT_MSG_READY, SHIFT_MSG_RESOLVE,
	};
	bool found = false;
	int i;

	spin_lock_bh(&sqp->inbox_lock);
	for (i = 0; i < ARRAY_SIZE(order) && !found; i++) {
		if (!(sqp->pend.mailbox.valid & ~kept & BIT(order[i])))
			continue;
		*m = sqp->pend.mailbox.msg[order[i]];
		sqp->pend.mailbox.valid &= ~BIT(order[i]);
		found = true;
	}
	spin_unlock_bh(&sqp->inbox_lock);
	return found;
}

/* Drop all messages; but not PAIR if @pair, as the QP may yet become protected by it. */
void shift_qp_clear_msgs(struct shift_qp *sqp, bool pair)
{
	spin_lock_bh(&sqp->inbox_lock);
	sqp->pend.mailbox.valid &= pair ? BIT(SHIFT_MSG_PAIR) : 0;
	spin_unlock_bh(&sqp->inbox_lock);
}

/* Put a message back, for a later state, unless a newer one of its kind has come. */
void shift_qp_keep_msg(struct shift_qp *sqp, const struct shift_msg *m)
{
	spin_lock_bh(&sqp->inbox_lock);
	if (!(sqp->pend.mailbox.valid & BIT(m->type))) {
		sqp->pend.mailbox.msg[m->type] = *m;
		sqp->pend.mailbox.valid |= BIT(m->type);
	}
	spin_unlock_bh(&sqp->inbox_lock);
}
