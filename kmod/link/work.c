// SPDX-License-Identifier: GPL-2.0
/*
 * What links do in the background: they connect, send heartbeats, and deliver messages and news.
 * Documentation/internals/links.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/sched/mm.h>
#include "core/ib.h"
#include "core/node.h"
#include "core/qp.h"
#include "core/reclaim.h"
#include "core/stat.h"
#include "link/link_priv.h"
#include "pure/msg.h"

#define SHIFT_LINK_RETRY_MAX	50	/* longest pause, in pauses of retry_ms */

static unsigned int retry_ms = 100;
module_param(retry_ms, uint, 0644);
MODULE_PARM_DESC(retry_ms, "ms before a link is connected again, doubled with each failure up to 50 times that");

static unsigned int heartbeat_ms = 250;
module_param(heartbeat_ms, uint, 0644);
MODULE_PARM_DESC(heartbeat_ms, "ms between heartbeats of a link that protected QPs use, 0: none");

static unsigned int silent_ms = 400;
module_param(silent_ms, uint, 0644);
MODULE_PARM_DESC(silent_ms, "ms without an acknowledgment after which a path counts as dead, 0: never");

/**
 * shift_link_arm - set one of a link's timers, or set it anew
 * @link: locked.
 * @work: its timer or its beat.
 * @delay: jiffies.
 *
 * Context: any.
 */
void shift_link_arm(struct shift_link *link, struct delayed_work *work, unsigned long delay)
{
	lockdep_assert_held(&link->lock);

	if (!link->dev)
		return;
	kref_get(&link->ref);
	if (mod_delayed_work(work == &link->beat ? shift_link_beat_wq : shift_link_cm_wq, work,
			     delay))
		shift_link_unref(link);
}

/* Have the delivery run after so many jiffies, whether or not it is waiting; the link is locked. */
static void link_deliver_in(struct shift_link *link, unsigned long delay)
{
	lockdep_assert_held(&link->lock);

	kref_get(&link->ref);
	if (mod_delayed_work(shift_link_wq, &link->deliver, delay))
		shift_link_unref(link);
}

/**
 * shift_link_cut_off - take the device of a link away, and stop its timers
 * @link: locked.
 *
 * What its inbox holds is delivered without pauses from here on.
 *
 * Context: any.
 */
void shift_link_cut_off(struct shift_link *link)
{
	lockdep_assert_held(&link->lock);

	WRITE_ONCE(link->dev, NULL);
	if (cancel_delayed_work(&link->timer))
		shift_link_unref(link);
	if (cancel_delayed_work(&link->beat))
		shift_link_unref(link);
	/* its workqueue may be destroyed from here on, which waits for work and not for timers */
	if (delayed_work_pending(&link->deliver))
		link_deliver_in(link, 0);
}

/**
 * shift_link_retry - a connection was lost or did not come up: try again after a pause
 * @link: locked.
 */
void shift_link_retry(struct shift_link *link)
{
	lockdep_assert_held(&link->lock);

	if (!link->active || !link->users || link->pending || link->conn)
		return;
	/* a pause is no deadline, so that deadline_scale does not apply */
	shift_link_arm(link, &link->timer, msecs_to_jiffies(READ_ONCE(retry_ms)) *
		       min(1ul << link->failures, (unsigned long)SHIFT_LINK_RETRY_MAX));
	link->failures = min(link->failures + 1, 30u);
}

/**
 * shift_link_retry_now - connect without a pause
 * @link: locked.
 */
void shift_link_retry_now(struct shift_link *link)
{
	lockdep_assert_held(&link->lock);

	if (!link->active || !link->users || link->pending || link->conn)
		return;
	link->failures = 0;
	shift_link_arm(link, &link->timer, 0);
}

/*
 * How long may the peer's NIC still acknowledge nothing, in jiffies?  A path may lose all packets
 * with no event at either end.  This finds out before a NIC's retry limit does.
 */
static long link_patience(const struct shift_link *link)
{
	const struct shift_conn *c = link->conn;
	unsigned int ms = READ_ONCE(silent_ms);

	if (!ms || !c->sending)
		return MAX_JIFFY_OFFSET;
	return c->since + shift_scaled_jiffies(ms) - jiffies;
}

/**
 * shift_link_beat - send something that the peer's NIC has to acknowledge
 * @link: locked, up.  If a send is not acknowledged yet, that serves as the heartbeat.
 *
 * Context: any.
 * Return: 0, or what shift_conn_post_send() says.
 */
int shift_link_beat(struct shift_link *link)
{
	struct shift_msg m = {
		.type = SHIFT_MSG_HEARTBEAT,
	};

	lockdep_assert_held(&link->lock);

	if (link->conn->sending)
		return 0;
	memcpy(&m.src_cookie, shift_boot_id, sizeof(m.src_cookie));
	m.src_cookie |= 1;
	m.heartbeat.seq = ++link->heartbeat;
	return shift_conn_post_send(link->conn, &m);
}

/*
 * The next heartbeat is due, or silence is to be found.  Without heartbeats, look once a second
 * whether they were switched on.
 */
static void link_arm_beat(struct shift_link *link)
{
	unsigned int ms = READ_ONCE(heartbeat_ms);
	unsigned long now = jiffies;
	long delay;

	if (time_after_eq(now, link->beat_at))
		link->beat_at = now + shift_scaled_jiffies(ms ?: 1000);
	/* at least one: read again, jiffies may be past it by now, and the timer would not end */
	delay = link->beat_at - now;
	if (ms)
		delay = clamp_t(long, link_patience(link) + 1, 1, delay);
	shift_link_arm(link, &link->beat, delay);
}

/* Runs for as long as the link is up.  Nothing here waits. */
static void link_beat(struct work_struct *work)
{
	struct shift_link *link = container_of(to_delayed_work(work), struct shift_link, beat);

	spin_lock_irq(&link->lock);
	/* a lane is for QPs of either side, but this side makes it, and ends it */
	if (link->up && link->base && link->active && !link->users) {
		shift_conn_retire(link->conn, "no queue pair has this class", 0);
	} else if (link->up && READ_ONCE(heartbeat_ms)) {
		if (link_patience(link) < 0) {
			link->conn->silent = true;
			shift_conn_retire(link->conn, "nothing was acknowledged", 0);
		} else if ((link->guarded || link->base) &&
			   time_after_eq(jiffies, link->beat_at)) {
			shift_link_beat(link);
		}
	}
	if (link->up)
		link_arm_beat(link);
	spin_unlock_irq(&link->lock);
	shift_link_unref(link);
}

static void link_timer(struct work_struct *work)
{
	struct shift_link *link = container_of(to_delayed_work(work), struct shift_link, timer);
	unsigned int noio = memalloc_noio_save();
	struct ib_device *connect = NULL;
	bool ready = !link->base || shift_lane_ready(link);
	bool mute = link->base && !READ_ONCE(heartbeat_ms);

	/* without heartbeats no class is judged, until there are some again */
	if (mute)
		shift_lane_absolve(link);
	spin_lock_irq(&link->lock);
	if (link->pending && time_after_eq(jiffies, link->deadline)) {
		/* this sets the timer for another attempt */
		shift_conn_retire(link->pending, "not established in time", 0);
	} else if (link->pending) {
		shift_link_arm(link, &link->timer, link->deadline - jiffies);
	} else if (mute) {
		if (link->users && link->dev)
			shift_link_arm(link, &link->timer, HZ);
	} else if (ready && !link->conn && link->active && link->users && link->dev &&
		   shift_peer_knows(&link->remote)) {
		/* so counted, the attempt keeps the device from being removed */
		link->conns++;
		connect = link->dev;
	}
	spin_unlock_irq(&link->lock);

	if (connect) {
		/* without a carrier rxe's CM may break for good: conn_may_disconnect() */
		if (!shift_gid_has_carrier(connect, &link->local) ||
		    shift_conn_connect(link)) {
			spin_lock_irq(&link->lock);
			/* if a port has become active meanwhile the timer is set already */
			if (!delayed_work_pending(&link->timer))
				shift_link_retry(link);
			spin_unlock_irq(&link->lock);
		}
		shift_link_let_go(link);
	}
	memalloc_noio_restore(noio);
	shift_link_unref(link);
}

/* Delivery */

/**
 * shift_link_queue - append an item for the delivery work
 * @link: locked.
 * @item: with its type and connection set, on no list.
 */
void shift_link_queue(struct shift_link *link, struct shift_link_item *item)
{
	lockdep_assert_held(&link->lock);

	kref_get(&item->conn->ref);
	list_add_tail(&item->entry, &link->inbox);
	kref_get(&link->ref);
	/* during a pause it is queued already, and this waits as all else does */
	if (!queue_delayed_work(shift_link_wq, &link->deliver, 0))
		shift_link_unref(link);
}

/*
 * A link is about to come up: its lanes begin anew.  Those of its connection before may lead to a
 * kernel that has gone, and what is known of a class may be about a path that was dead as a whole.
 */
static void link_end_lanes(struct shift_link *base)
{
	struct shift_link *lane;

	mutex_lock(&shift_links_lock);
	list_for_each_entry(lane, &base->lanes, sibling) {
		spin_lock_irq(&lane->lock);
		if (lane->pending)
			shift_conn_retire(lane->pending, "its link is connected anew", 0);
		if (lane->conn)
			shift_conn_retire(lane->conn, "its link is connected anew", 0);
		WRITE_ONCE(lane->silent, false);
		spin_unlock_irq(&lane->lock);
	}
	mutex_unlock(&shift_links_lock);
}

/* A link has come up: its lanes look whether they can be connected. */
static void link_retry_lanes(struct shift_link *base)
{
	struct shift_link *lane;

	mutex_lock(&shift_links_lock);
	list_for_each_entry(lane, &base->lanes, sibling) {
		spin_lock_irq(&lane->lock);
		lane->failures = 0;
		if (!lane->pending && !lane->conn)
			shift_link_arm(lane, &lane->timer, 0);
		spin_unlock_irq(&lane->lock);
	}
	mutex_unlock(&shift_links_lock);
}

static void link_deliver_up(struct shift_link *link, struct shift_conn *c)
{
	bool restarted;

	spin_lock_irq(&link->lock);
	if (link->conn != c) {
		spin_unlock_irq(&link->lock);
		return;
	}
	/* also if it was never up: a QP may be paired over its other link, before a restart */
	restarted = !link->base &&
		    memcmp(link->peer_boot_id, c->boot_id, sizeof(c->boot_id));
	memcpy(link->peer_boot_id, c->boot_id, sizeof(c->boot_id));
	spin_unlock_irq(&link->lock);

	if (restarted)
		shift_link_tell(link, SHIFT_LINK_NEWS_RESTARTED);
	if (!link->base)
		link_end_lanes(link);

	spin_lock_irq(&link->lock);
	if (link->conn == c) {
		link->up = true;
		WRITE_ONCE(link->silent, false);
		link->connects++;
		link->failures = 0;
		c->told = true;
		link_arm_beat(link);
	}
	spin_unlock_irq(&link->lock);

	if (c->told && link->base) {
		pr_info_ratelimited("link %u: class %u of %s to %pI6c is up\n", link->base->id,
				    link->tclass, link->name, link->remote.raw);
		shift_lane_up(link);
	} else if (c->told) {
		pr_info_ratelimited("link %u: %s to %pI6c is up\n", link->id, link->name,
				    link->remote.raw);
		shift_session_join(link, c->node);
		shift_link_ops->changed(link);
		shift_link_tell(link, SHIFT_LINK_NEWS_UP);
		link_retry_lanes(link);
	}
}

static void link_beat_now(struct shift_link *link)
{
	spin_lock_irq(&link->lock);
	if (link->up)
		shift_link_beat(link);
	spin_unlock_irq(&link->lock);
}

static void link_deliver_down(struct shift_link *link, struct shift_conn *c)
{
	if (!c->told)
		return;
	if (link->base) {
		pr_info_ratelimited("link %u: class %u of %s to %pI6c is down: %s (%d)\n",
				    link->base->id, link->tclass, link->name, link->remote.raw,
				    c->why, c->status);
		/* the link may be as dead; without a QP of its class it has no heartbeats */
		if (c->silent)
			link_beat_now(link->base);
		shift_lane_down(link, c->silent);
		return;
	}
	pr_info_ratelimited("link %u: %s to %pI6c is down: %s (%d)\n", link->id, link->name,
			    link->remote.raw, c->why, c->status);
	shift_session_leave(link);
	shift_link_ops->changed(link);
	shift_link_tell(link, c->silent ? SHIFT_LINK_NEWS_SILENT : SHIFT_LINK_NEWS_DOWN);
}

/* A lane is for heartbeats: it is in no session, and speaks for no QP. */
static void link_deliver_msg(struct shift_link *link, const struct shift_msg *m)
{
	if (m->type == SHIFT_MSG_HEARTBEAT)
		return;
	if (link->base)
		shift_stat_inc(SHIFT_STAT_MSG_BAD);
	else
		shift_link_ops->received(link, m);
}

/* Copy what was received, so that the buffer can be posted again before messages are handled. */
static u32 link_take_batch(struct shift_link *link, struct shift_conn *c,
			   struct shift_link_buf *buf)
{
	u32 len = min_t(u32, buf->len, SHIFT_LINK_BUF_SIZE);
	int err;

	memcpy(link->batch, buf->data, len);
	spin_lock_irq(&link->lock);
	if (!c->closing) {
		err = shift_buf_post_recv(c, buf);
		if (err)
			shift_conn_retire(c, "post receive", err);
	}
	spin_unlock_irq(&link->lock);
	return len;
}

static void link_deliver_msgs(struct shift_link *link, struct shift_conn *c,
			      struct shift_link_buf *buf)
{
	u32 at = 0, len = link_take_batch(link, c, buf);
	struct shift_msg m;
	int n, err;

	while (at < len) {
		n = shift_msg_length(link->batch + at, len - at);
		err = n < 0 ? n : shift_msg_decode(link->batch + at, n, &m);
		if (err) {
			shift_stat_inc(SHIFT_STAT_MSG_BAD);
			pr_warn_ratelimited("link %u: bad message from %pI6c dropped (%d)\n",
					    link->id, link->remote.raw, err);
			if (n < 0)
				return;
		} else {
			WRITE_ONCE(link->rx, link->rx + 1);
			if (c->told)
				link_deliver_msg(link, &m);
		}
		at += n;
	}
}

static struct shift_link_item *link_next(struct shift_link *link)
{
	struct shift_link_item *item;

	spin_lock_irq(&link->lock);
	item = list_first_entry_or_null(&link->inbox, struct shift_link_item, entry);
	if (item)
		list_del_init(&item->entry);
	spin_unlock_irq(&link->lock);
	return item;
}

/*
 * A turn is over, and more is waiting.  The next turn begins at the next tick, so that a peer that
 * sends as fast as it can does not keep a CPU busy.  No buffer is given back meanwhile: when all
 * are used, its NIC has to wait (RNR).
 */
static void link_pause(struct shift_link *link)
{
	bool paused = false;

	spin_lock_irq(&link->lock);
	if (!list_empty(&link->inbox)) {
		paused = link->dev;
		link_deliver_in(link, paused ? 1 : 0);
	}
	spin_unlock_irq(&link->lock);
	if (paused)
		shift_stat_inc(SHIFT_STAT_PAUSED);
}

static void link_deliver(struct work_struct *work)
{
	struct shift_link *link = container_of(to_delayed_work(work), struct shift_link, deliver);
	/* QPs of users in the kernel wait for their messages */
	unsigned int saved = shift_reclaim_begin();
	struct shift_link_item *item;
	unsigned int left;

	for (left = SHIFT_LINK_TURN; left && (item = link_next(link)); left--) {
		struct shift_conn *c = item->conn;

		switch (item->type) {
		case SHIFT_LINK_ITEM_UP:
			link_deliver_up(link, c);
			break;
		case SHIFT_LINK_ITEM_DOWN:
			link_deliver_down(link, c);
			break;
		case SHIFT_LINK_ITEM_MSG:
			link_deliver_msgs(link, c, container_of(item, struct shift_link_buf,
								item));
			break;
		}
		/* frees the item, too, which is part of the connection */
		shift_conn_put(c);
	}
	if (!left)
		link_pause(link);
	shift_reclaim_end(saved);
	shift_link_unref(link);
}

/**
 * shift_link_init_work - get a new link's timers and delivery ready
 * @link: nobody else's yet.
 */
void shift_link_init_work(struct shift_link *link)
{
	INIT_DELAYED_WORK(&link->deliver, link_deliver);
	INIT_DELAYED_WORK(&link->timer, link_timer);
	INIT_DELAYED_WORK(&link->beat, link_beat);
}
