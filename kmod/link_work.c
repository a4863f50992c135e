// SPDX-License-Identifier: GPL-2.0
/*
 * What links do in the background: the timer, which connects them and keeps them
 * in use, and the delivery of what happens on them.  Documentation/links.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": link: " fmt

#include <linux/module.h>
#include <linux/sched/mm.h>
#include "link_priv.h"
#include "shift.h"

#define SHIFT_LINK_RETRY_MIN	100	/* ms */
#define SHIFT_LINK_RETRY_MAX	5000

static unsigned int heartbeat_ms = 250;
module_param(heartbeat_ms, uint, 0644);
MODULE_PARM_DESC(heartbeat_ms, "ms between heartbeats of a link that protected QPs use, 0: none");

static unsigned int silent_ms = 400;
module_param(silent_ms, uint, 0644);
MODULE_PARM_DESC(silent_ms, "ms without an acknowledgment after which a path counts as dead, 0: never");

/**
 * shift_link_jiffies - a time of links
 * @ms: as documented.
 *
 * Return: jiffies, with shift_deadline_scale applied.
 */
unsigned long shift_link_jiffies(unsigned int ms)
{
	return msecs_to_jiffies(ms * max(READ_ONCE(shift_deadline_scale), 1U));
}

/**
 * shift_link_arm - set the timer, whether or not it was set
 * @link: locked.
 * @delay: jiffies.
 *
 * Context: any.
 */
void shift_link_arm(struct shift_link *link, unsigned long delay)
{
	lockdep_assert_held(&link->lock);

	if (!link->dev)
		return;
	kref_get(&link->ref);
	if (mod_delayed_work(shift_link_cm_wq, &link->timer, delay))
		kref_put(&link->ref, shift_link_free);
}

/**
 * shift_link_cut_off - a link has no device any more: no timer, no new carrier
 * @link: locked.
 *
 * Context: any.
 */
void shift_link_cut_off(struct shift_link *link)
{
	lockdep_assert_held(&link->lock);

	WRITE_ONCE(link->dev, NULL);
	if (cancel_delayed_work(&link->timer))
		kref_put(&link->ref, shift_link_free);
}

/**
 * shift_link_retry - a carrier was lost or did not come up: when to try again
 * @link: locked.
 */
void shift_link_retry(struct shift_link *link)
{
	lockdep_assert_held(&link->lock);

	if (!link->active || !link->users || link->pending || link->carrier)
		return;
	/* A pause is no deadline: deadline_scale is not for it. */
	shift_link_arm(link, msecs_to_jiffies(link->backoff));
	link->backoff = min(2 * link->backoff, (unsigned int)SHIFT_LINK_RETRY_MAX);
}

/**
 * shift_link_retry_now - do not wait with the next attempt
 * @link: locked.
 */
void shift_link_retry_now(struct shift_link *link)
{
	lockdep_assert_held(&link->lock);

	if (!link->active || !link->users || link->pending || link->carrier)
		return;
	link->backoff = SHIFT_LINK_RETRY_MIN;
	shift_link_arm(link, 0);
}

/*
 * Has the peer's NIC acknowledged nothing for too long?  A path may lose everything with
 * no event at either end; this is sooner than any retry limit.
 */
static bool shift_link_is_silent(const struct shift_link *link)
{
	const struct shift_carrier *c = link->carrier;
	unsigned int ms = READ_ONCE(silent_ms);

	return ms && c->sending && time_after(jiffies, c->since + shift_link_jiffies(ms));
}

/**
 * shift_link_beat - send something that the peer's NIC has to acknowledge
 * @link: locked, up.  What is not acknowledged yet is as good as another heartbeat.
 *
 * Context: any.
 * Return: 0, or what shift_carrier_post_send() says.
 */
int shift_link_beat(struct shift_link *link)
{
	struct shift_msg m = {
		.type = SHIFT_MSG_HEARTBEAT,
	};

	lockdep_assert_held(&link->lock);

	if (link->carrier->sending)
		return 0;
	memcpy(&m.src_cookie, shift_boot_id, sizeof(m.src_cookie));
	m.src_cookie |= 1;
	m.heartbeat.seq = ++link->heartbeat;
	return shift_carrier_post_send(link->carrier, &m);
}

/* What the timer does for a link that is up. */
static void shift_link_watch(struct shift_link *link)
{
	if (shift_link_is_silent(link)) {
		link->carrier->silent = true;
		shift_carrier_retire(link->carrier, "silent", 0);
	} else if (link->guarded) {
		shift_link_beat(link);
	}
}

static void shift_link_timer(struct work_struct *work)
{
	struct shift_link *link = container_of(to_delayed_work(work), struct shift_link, timer);
	unsigned int noio = memalloc_noio_save();
	unsigned int beat = READ_ONCE(heartbeat_ms);
	struct ib_device *connect = NULL;

	spin_lock_irq(&link->lock);
	if (link->pending && time_after_eq(jiffies, link->deadline)) {
		/* this sets the timer if we are to try again */
		shift_carrier_retire(link->pending, "overdue", 0);
	} else if (link->pending && !link->up) {
		shift_link_arm(link, link->deadline - jiffies);
	} else if (!link->carrier && link->active && link->users && link->dev) {
		/* the device stays while we use it, and so does the link; not that it knows it */
		link->carriers++;
		connect = link->dev;
	}
	if (link->up) {
		if (beat)
			shift_link_watch(link);
		if (link->up)
			shift_link_arm(link, shift_link_jiffies(beat ?: 1000));
	}
	spin_unlock_irq(&link->lock);

	if (connect) {
		/* rxe of 6.12 may lose its CM's QP for good when that sends without a carrier */
		if (!shift_gid_has_carrier(connect, &link->local) ||
		    shift_carrier_connect(link)) {
			spin_lock_irq(&link->lock);
			shift_link_retry(link);
			spin_unlock_irq(&link->lock);
		}
		shift_link_let_go(link);
	}
	memalloc_noio_restore(noio);
	kref_put(&link->ref, shift_link_free);
}

/* Delivery */

/**
 * shift_link_queue - append to what the delivery work has to tell
 * @link: locked.
 * @item: with its type and carrier set, on no list.
 */
void shift_link_queue(struct shift_link *link, struct shift_link_item *item)
{
	lockdep_assert_held(&link->lock);

	kref_get(&item->carrier->ref);
	list_add_tail(&item->entry, &link->inbox);
	kref_get(&link->ref);
	if (!queue_work(shift_link_wq, &link->work))
		kref_put(&link->ref, shift_link_free);
}

static void shift_link_deliver_up(struct shift_link *link, struct shift_carrier *c)
{
	bool restarted;

	spin_lock_irq(&link->lock);
	if (link->carrier != c) {
		spin_unlock_irq(&link->lock);
		return;
	}
	restarted = memchr_inv(link->peer_boot_id, 0, sizeof(link->peer_boot_id)) &&
		    memcmp(link->peer_boot_id, c->boot_id, sizeof(c->boot_id));
	memcpy(link->peer_boot_id, c->boot_id, sizeof(c->boot_id));
	spin_unlock_irq(&link->lock);

	if (restarted)
		shift_link_peer_restarted(link);

	spin_lock_irq(&link->lock);
	if (link->carrier == c) {
		link->up = true;
		link->connects++;
		link->backoff = SHIFT_LINK_RETRY_MIN;
		c->told = true;
		shift_link_arm(link, shift_link_jiffies(READ_ONCE(heartbeat_ms) ?: 1000));
	}
	spin_unlock_irq(&link->lock);

	if (c->told) {
		pr_info_ratelimited("%u: %s to %pI6c is up\n", link->id, link->name,
				    link->remote.raw);
		shift_session_join(link);
		shift_link_changed(link, SHIFT_LINK_UP);
	}
}

/* The buffer goes back to the device first: callbacks may take their time. */
static u32 shift_link_take_batch(struct shift_link *link, struct shift_carrier *c,
				 struct shift_link_buf *buf)
{
	u32 len = min_t(u32, buf->len, SHIFT_LINK_BUF_SIZE);
	int err;

	memcpy(link->batch, buf->data, len);
	spin_lock_irq(&link->lock);
	if (!c->closing) {
		err = shift_carrier_post_recv(c, buf);
		if (err)
			shift_carrier_retire(c, "post receive", err);
	}
	spin_unlock_irq(&link->lock);
	return len;
}

static void shift_link_deliver_msgs(struct shift_link *link, struct shift_carrier *c,
				    struct shift_link_buf *buf)
{
	u32 at = 0, len = shift_link_take_batch(link, c, buf);
	struct shift_msg m;
	int n, err;

	while (at < len) {
		n = shift_msg_length(link->batch + at, len - at);
		err = n < 0 ? n : shift_msg_decode(link->batch + at, n, &m);
		if (err) {
			shift_stat_inc(SHIFT_STAT_MSG_BAD);
			pr_warn_ratelimited("%u: bad message from %pI6c dropped (%d)\n",
					    link->id, link->remote.raw, err);
			if (n < 0)
				return;
		} else {
			WRITE_ONCE(link->rx, link->rx + 1);
			if (c->told && m.type != SHIFT_MSG_HEARTBEAT)
				shift_link_received(link, &m);
		}
		at += n;
	}
}

static struct shift_link_item *shift_link_next(struct shift_link *link)
{
	struct shift_link_item *item;

	spin_lock_irq(&link->lock);
	item = list_first_entry_or_null(&link->inbox, struct shift_link_item, entry);
	if (item)
		list_del_init(&item->entry);
	spin_unlock_irq(&link->lock);
	return item;
}

static void shift_link_deliver(struct work_struct *work)
{
	struct shift_link *link = container_of(work, struct shift_link, work);
	unsigned int noio = memalloc_noio_save();
	struct shift_link_item *item;

	while ((item = shift_link_next(link))) {
		struct shift_carrier *c = item->carrier;

		switch (item->type) {
		case SHIFT_LINK_ITEM_UP:
			shift_link_deliver_up(link, c);
			break;
		case SHIFT_LINK_ITEM_DOWN:
			if (!c->told)
				break;
			pr_info_ratelimited("%u: %s to %pI6c is down: %s (%d)\n", link->id,
					    link->name, link->remote.raw, c->why, c->status);
			shift_session_leave(link);
			shift_link_changed(link, SHIFT_LINK_DOWN);
			if (c->silent)
				shift_link_silent(link);
			break;
		case SHIFT_LINK_ITEM_MSG:
			shift_link_deliver_msgs(link, c, container_of(item, struct shift_link_buf,
								      item));
			break;
		}
		/* gives back the item, too */
		shift_carrier_put(c);
	}
	memalloc_noio_restore(noio);
	kref_put(&link->ref, shift_link_free);
}

/**
 * shift_link_init_work - get a new link's timer and delivery ready
 * @link: nobody else's yet.
 */
void shift_link_init_work(struct shift_link *link)
{
	link->backoff = SHIFT_LINK_RETRY_MIN;
	INIT_WORK(&link->work, shift_link_deliver);
	INIT_DELAYED_WORK(&link->timer, shift_link_timer);
}
