// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes: the path of a link in one traffic class.  A lane is a link of its own that carries nothing
 * but heartbeats, in the class of the QPs that use it.  It never speaks for the peer, only for the
 * class.  Documentation/internals/links.md.
 */
#include <linux/slab.h>
#include "core/kick.h"
#include "core/qp.h"
#include "core/stat.h"
#include "link/link.h"
#include "link/link_priv.h"

/* The lane of a class; NULL: there is none.  @used, @all: how many others are used, and there. */
static struct shift_link *lane_lookup(struct shift_link *base, u8 tclass, unsigned int *used,
				      unsigned int *all)
{
	struct shift_link *lane;

	lockdep_assert_held(&shift_links_lock);
	*used = 0;
	*all = 0;
	list_for_each_entry(lane, &base->lanes, sibling) {
		if (lane->tclass == tclass)
			return lane;
		*used += !!READ_ONCE(lane->users);
		(*all)++;
	}
	return NULL;
}

/* Enter a new lane in the table. */
static void lane_add(struct shift_link *lane, struct shift_link *base, u8 tclass)
{
	lockdep_assert_held(&shift_links_lock);
	/* whoever takes it away from @base after this finds the lane, too */
	lane->dev = base->dev;
	lane->tclass = tclass;
	kref_get(&base->ref);
	lane->base = base;
	list_add_tail(&lane->sibling, &base->lanes);
	shift_link_add(lane);
}

/**
 * shift_lane_find - find or make the lane of a link in a traffic class, as a user
 * @base: the link, no lane; referenced.
 * @tclass: the class; its ECN bits are ignored.
 * @connect: have it connected in the background, if this side is the one to connect.
 *
 * SHIFT_LINK_LANES classes may be used at a time.  One that was used before goes with its next
 * heartbeat; what a peer asks for has to wait until it has.
 *
 * Context: process, may sleep, allocates with GFP_NOIO.
 * Return: the lane, for shift_link_put(), or ERR_PTR: -ENOMEM, -ESHUTDOWN, -ENODEV, -EBUSY (too
 * many classes).
 */
struct shift_link *shift_lane_find(struct shift_link *base, u8 tclass, bool connect)
{
	struct shift_link *lane, *new = shift_link_alloc(NULL, &base->local, &base->remote);
	unsigned int used, all;

	if (!new)
		return ERR_PTR(-ENOMEM);
	tclass &= SHIFT_LINK_CLASS;
	mutex_lock(&shift_links_lock);
	lane = lane_lookup(base, tclass, &used, &all);
	if (shift_links_closed) {
		lane = ERR_PTR(-ESHUTDOWN);
	} else if (!READ_ONCE(base->dev)) {
		lane = ERR_PTR(-ENODEV);
	} else if (!lane && (connect ? used : all) >= SHIFT_LINK_LANES) {
		lane = ERR_PTR(-EBUSY);
	} else if (!lane) {
		lane = new;
		new = NULL;
		lane_add(lane, base, tclass);
	}
	if (!IS_ERR(lane))
		shift_link_hold(lane, connect);
	mutex_unlock(&shift_links_lock);
	kfree(new);
	return lane;
}

/**
 * shift_lanes_end - a link is about to come up: its lanes begin anew
 * @base: the link.
 *
 * Those of its connection before may lead to a kernel that has gone, and what is known of a class
 * may be about a path that was dead as a whole.
 *
 * Context: process, may sleep.
 */
void shift_lanes_end(struct shift_link *base)
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

/**
 * shift_lanes_retry - a link has come up: its lanes look whether they can be connected
 * @base: the link.
 *
 * Context: process, may sleep.
 */
void shift_lanes_retry(struct shift_link *base)
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

/* Have the QPs of a lane know that it is not silent any more. */
static void lane_refresh(struct shift_link *lane)
{
	struct shift_link_user *user;

	mutex_lock(&lane->users_lock);
	list_for_each_entry(user, &lane->user_list, lane_entry) {
		if (user->silent == READ_ONCE(lane->silent))
			continue;
		WRITE_ONCE(user->silent, !user->silent);
		set_bit(SHIFT_LINK_NEWS_UP, &user->news);
		shift_qp_kick(user->sqp, SHIFT_QPB_LINKS);
	}
	mutex_unlock(&lane->users_lock);
}

/**
 * shift_lane_ready - can there be a lane now?
 * @lane: its timer has run out.
 *
 * Not while its link is down, nor if the peer's module knows no lanes, or if the link itself has
 * the class.  It is asked again when the link comes up.
 *
 * Context: process, may sleep.
 * Return: whether it can.
 */
bool shift_lane_ready(struct shift_link *lane)
{
	struct shift_link *link = lane->base;
	bool up, ready;

	spin_lock_irq(&link->lock);
	up = link->up;
	ready = up && link->conn->form.caps & SHIFT_MSG_CAP_LANES &&
		link->conn->tclass != lane->tclass;
	spin_unlock_irq(&link->lock);
	if (up && !ready)
		shift_lane_absolve(lane);
	else
		lane_refresh(lane);
	return ready;
}

/**
 * shift_lane_welcome - does a link take a connection of the peer's for one of its lanes?
 * @link: referenced.
 * @boot_id: from the HELLO.
 *
 * Context: process.
 * Return: true: it is connected to that kernel, which so has proved what it had to.
 */
bool shift_lane_welcome(struct shift_link *link, const u8 *boot_id)
{
	bool welcome;

	spin_lock_irq(&link->lock);
	welcome = link->up && link->conn->form.caps & SHIFT_MSG_CAP_LANES &&
		  !memcmp(link->conn->boot_id, boot_id, sizeof(link->conn->boot_id));
	spin_unlock_irq(&link->lock);
	return welcome;
}

/* Tell the QPs of a lane, and have them know whether it is silent. */
static void lane_tell(struct shift_link *lane, enum shift_link_news news)
{
	struct shift_link_user *user;

	mutex_lock(&lane->users_lock);
	list_for_each_entry(user, &lane->user_list, lane_entry) {
		WRITE_ONCE(user->silent, READ_ONCE(lane->silent));
		set_bit(news, &user->news);
		shift_qp_kick(user->sqp, SHIFT_QPB_LINKS);
		cond_resched();
	}
	mutex_unlock(&lane->users_lock);
}

/* For operators: they know a class by its DSCP. */
static void lane_note(struct shift_link *lane, bool up)
{
	u64 bit = 1ull << (lane->tclass >> 2);

	spin_lock_irq(&lane->base->lock);
	lane->base->dscps = up ? lane->base->dscps | bit : lane->base->dscps & ~bit;
	spin_unlock_irq(&lane->base->lock);
}

/**
 * shift_lane_up - a lane has come up
 * @lane: referenced.
 *
 * Context: process, may sleep.
 */
void shift_lane_up(struct shift_link *lane)
{
	lane_note(lane, true);
	lane_tell(lane, SHIFT_LINK_NEWS_UP);
}

static void lane_beat_link(struct shift_link *link)
{
	spin_lock_irq(&link->lock);
	if (link->up)
		shift_link_beat(link);
	spin_unlock_irq(&link->lock);
}

/**
 * shift_lane_down - a lane has gone down
 * @lane: referenced.
 * @silent: because it was silent.
 *
 * If its link was silent before, the QPs have not heard of that for the lane's sake.
 *
 * Context: process, may sleep.
 */
void shift_lane_down(struct shift_link *lane, bool silent)
{
	lane_note(lane, false);
	if (silent)
		shift_stat_inc(SHIFT_STAT_LANES_SILENT);
	/* one that is not guarded would not find out that it is no better */
	if (silent)
		lane_beat_link(lane->base);
	if (silent || READ_ONCE(lane->base->silent))
		lane_tell(lane, SHIFT_LINK_NEWS_SILENT);
}

/**
 * shift_lane_absolve - nothing is known of the class of a lane any more, as there can be no lane
 * @lane: referenced.
 *
 * Its QPs are judged by their link alone.
 *
 * Context: process, may sleep.
 */
void shift_lane_absolve(struct shift_link *lane)
{
	spin_lock_irq(&lane->lock);
	WRITE_ONCE(lane->silent, false);
	spin_unlock_irq(&lane->lock);
	lane_refresh(lane);
}

/**
 * shift_lane_use - a QP begins to use a link: have it judged by heartbeats in its own class
 * @link: the link.
 * @user: the QP's, not on the list of @link yet.  Its lane stays NULL if there are too many.
 * @tclass: its class.
 *
 * Context: process, may sleep.
 */
void shift_lane_use(struct shift_link *link, struct shift_link_user *user, u8 tclass)
{
	struct shift_link *lane = shift_lane_find(link, tclass, true);

	user->lane = IS_ERR(lane) ? NULL : lane;
	if (!user->lane)
		return;
	mutex_lock(&lane->users_lock);
	WRITE_ONCE(user->silent, READ_ONCE(lane->silent));
	list_add_tail(&user->lane_entry, &lane->user_list);
	mutex_unlock(&lane->users_lock);
}

/**
 * shift_lane_unuse - undo shift_lane_use()
 * @lane: the QP's; the reference is dropped.
 * @user: the QP's, on the list of its link no more.
 *
 * Context: process, may sleep.
 */
void shift_lane_unuse(struct shift_link *lane, struct shift_link_user *user)
{
	mutex_lock(&lane->users_lock);
	list_del_init(&user->lane_entry);
	WRITE_ONCE(user->silent, false);
	mutex_unlock(&lane->users_lock);
	shift_link_put(lane);
}

/**
 * shift_lane_is_up - are heartbeats in the QP's own class acknowledged?
 * @user: the QP's, on the list of its link, whose users_lock is held.
 *
 * Context: any.
 * Return: whether they are; false if there are none.
 */
bool shift_lane_is_up(const struct shift_link_user *user)
{
	return user->lane && shift_link_state(user->lane) == SHIFT_LINK_UP;
}
