// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes: the path of a link in one traffic class.  A lane is a link of its own that carries nothing
 * but heartbeats, in the class of the QPs that use it.  It never speaks for the peer, only for the
 * class.  Documentation/internals/links.md.
 */
#include "core/kick.h"
#include "core/qp.h"
#include "core/stat.h"
#include "link/link.h"
#include "link/link_priv.h"

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
