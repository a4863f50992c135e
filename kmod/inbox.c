// SPDX-License-Identifier: GPL-2.0
/*
 * What waits for the machine of a QP: pending bits, its timer, and one message of
 * each kind.  inbox_lock also covers state changes for readers that cannot sleep,
 * and that nothing is queued once the QP is DEAD.
 */
#include "switch.h"

/* Any context that may take a spinlock; the QP must not be freed under us. */
void shift_switch_kick(struct shift_qp *sqp, unsigned int bit)
{
	spin_lock_bh(&sqp->inbox_lock);
	if (!test_bit(SHIFT_QP_DEAD, &sqp->flags)) {
		set_bit(bit, &sqp->flags);
		queue_work(shift_wq, &sqp->work);
	}
	spin_unlock_bh(&sqp->inbox_lock);
}

static LLIST_HEAD(connected);	/* each with a reference, and SHIFT_QP_SOON */

static void pair_connected(struct work_struct *work)
{
	struct shift_qp *sqp, *next;

	llist_for_each_entry_safe(sqp, next, llist_del_all(&connected), soon) {
		/* it may be put there again from here on: @next was read before */
		clear_bit_unlock(SHIFT_QP_SOON, &sqp->flags);
		shift_switch_kick(sqp, SHIFT_QP_RETRY_PAIR);
		shift_qp_put(sqp);
	}
}

static DECLARE_DELAYED_WORK(pair_tick, pair_connected);

/**
 * shift_switch_pair_soon - pair it at the next tick
 * @sqp: the QP, in state OFF.
 *
 * For the application's own verbs: waking its worker, or a timer of its own, would cost
 * them more than all the rest. QPs that are connected within one tick share it.
 *
 * Context: sqp->lock; not DEAD.
 */
void shift_switch_pair_soon(struct shift_qp *sqp)
{
	if (test_and_set_bit(SHIFT_QP_SOON, &sqp->flags))
		return;
	shift_qp_get(sqp);
	llist_add(&sqp->soon, &connected);
	/* by each: who was first may not have come this far yet */
	queue_delayed_work(shift_wq, &pair_tick, 1);
}

/* Of a DEAD one: it is on the list no longer after this; sleeps, sqp->lock not held. */
void shift_switch_pair_settle(struct shift_qp *sqp)
{
	if (test_bit(SHIFT_QP_SOON, &sqp->flags))
		flush_delayed_work(&pair_tick);
}

/* The module goes: no QP is left, but a tick that finds none may be. */
void shift_inbox_uninit(void)
{
	cancel_delayed_work_sync(&pair_tick);
}

void shift_switch_arm(struct shift_qp *sqp, unsigned int ms)
{
	unsigned long delay = msecs_to_jiffies(ms * max(READ_ONCE(shift_deadline_scale), 1u));

	spin_lock_bh(&sqp->inbox_lock);
	if (!test_bit(SHIFT_QP_DEAD, &sqp->flags))
		mod_delayed_work(shift_wq, &sqp->timer, delay);
	spin_unlock_bh(&sqp->inbox_lock);
}

/* A look at it some time; what was armed stays as it is, and is such a look. */
void shift_switch_later(struct shift_qp *sqp, unsigned int ms)
{
	unsigned long delay = msecs_to_jiffies(ms * max(READ_ONCE(shift_deadline_scale), 1u));

	spin_lock_bh(&sqp->inbox_lock);
	if (!test_bit(SHIFT_QP_DEAD, &sqp->flags))
		queue_delayed_work(shift_wq, &sqp->timer, delay);
	spin_unlock_bh(&sqp->inbox_lock);
}

/* The next look at what was posted. */
void shift_switch_watch(struct shift_qp *sqp)
{
	shift_switch_later(sqp, SHIFT_WATCH_MS);
}

void shift_switch_timer(struct work_struct *work)
{
	struct shift_qp *sqp = container_of(to_delayed_work(work), struct shift_qp, timer);

	shift_switch_kick(sqp, SHIFT_QP_DEADLINE);
}

/**
 * shift_switch_deliver - put a message into the QP's mailbox
 * @sqp: the QP.
 * @m: validated message; an older epoch never replaces a newer one.
 */
void shift_switch_deliver(struct shift_qp *sqp, const struct shift_msg *m)
{
	struct shift_mailbox *inbox = &sqp->inbox;

	spin_lock_bh(&sqp->inbox_lock);
	if (!test_bit(SHIFT_QP_DEAD, &sqp->flags)) {
		if (!(inbox->valid & BIT(m->type)) ||
		    m->epoch >= inbox->msg[m->type].epoch) {
			inbox->msg[m->type] = *m;
			inbox->valid |= BIT(m->type);
		}
		queue_work(shift_wq, &sqp->work);
	}
	spin_unlock_bh(&sqp->inbox_lock);
}

/*
 * False if it is empty, but for the kinds in @kept.  The oldest kind first, as the protocol orders
 * them within an epoch.
 */
bool shift_inbox_take(struct shift_qp *sqp, struct shift_msg *m, u32 kept)
{
	static const u8 order[] = {
		SHIFT_MSG_PAIR, SHIFT_MSG_GONE, SHIFT_MSG_NACK, SHIFT_MSG_REQ,
		SHIFT_MSG_ACK, SHIFT_MSG_PROGRESS, SHIFT_MSG_READY, SHIFT_MSG_RESOLVE,
	};
	bool found = false;
	int i;

	spin_lock_bh(&sqp->inbox_lock);
	for (i = 0; i < ARRAY_SIZE(order) && !found; i++) {
		if (!(sqp->inbox.valid & ~kept & BIT(order[i])))
			continue;
		*m = sqp->inbox.msg[order[i]];
		sqp->inbox.valid &= ~BIT(order[i]);
		found = true;
	}
	spin_unlock_bh(&sqp->inbox_lock);
	return found;
}

/* A PAIR stays: it may be the one that brings protection. */
void shift_inbox_clear(struct shift_qp *sqp)
{
	spin_lock_bh(&sqp->inbox_lock);
	sqp->inbox.valid &= BIT(SHIFT_MSG_PAIR);
	spin_unlock_bh(&sqp->inbox_lock);
}

/* Back into the mailbox for a later state, unless a newer one has come. */
void shift_inbox_keep(struct shift_qp *sqp, const struct shift_msg *m)
{
	spin_lock_bh(&sqp->inbox_lock);
	if (!(sqp->inbox.valid & BIT(m->type))) {
		sqp->inbox.msg[m->type] = *m;
		sqp->inbox.valid |= BIT(m->type);
	}
	spin_unlock_bh(&sqp->inbox_lock);
}

static bool is_protected(enum shift_state state)
{
	return state != SHIFT_ST_OFF && state != SHIFT_ST_FAIL && state != SHIFT_ST_APP;
}

/* Links beat for those that are protected, and for no other; sqp->lock. */
void shift_switch_state(struct shift_qp *sqp, enum shift_state state)
{
	bool was = is_protected(sqp->state), is = is_protected(state);
	int i;

	spin_lock_bh(&sqp->inbox_lock);
	WRITE_ONCE(sqp->state, state);
	spin_unlock_bh(&sqp->inbox_lock);
	sqp->waits = 0;
	if (!is)
		shift_own_over(sqp);
	for (i = 0; i < ARRAY_SIZE(sqp->link) && was != is; i++)
		if (sqp->link[i])
			shift_link_guard(sqp->link[i], is);
}
