// SPDX-License-Identifier: GPL-2.0
/*
 * Users of links: the QPs that are told what becomes of a link, and what they and operators
 * can ask of it.  Documentation/internals/links.md.
 */
#include <linux/mutex.h>
#include "core/kick.h"
#include "core/qp.h"
#include "core/stat.h"
#include "link/link.h"
#include "link/link_priv.h"

/**
 * shift_link_use - a QP gets the news of a link from here on
 * @link: the QP has a reference.
 * @user: on no list.
 * @lane: heartbeats in the class of its packets, of which it has a reference; NULL: there are none.
 *
 * For what happened before, look at user->up and at the link's state after this.
 *
 * Context: process, may sleep.
 */
void shift_link_use(struct shift_link *link, struct shift_link_user *user, struct shift_link *lane)
{
	user->lane = lane;
	if (lane) {
		mutex_lock(&lane->users_lock);
		WRITE_ONCE(user->silent, READ_ONCE(lane->silent));
		list_add_tail(&user->lane_entry, &lane->user_list);
		mutex_unlock(&lane->users_lock);
	}
	mutex_lock(&link->users_lock);
	WRITE_ONCE(user->up, shift_link_state(link) == SHIFT_LINK_UP);
	list_add_tail(&user->entry, &link->user_list);
	mutex_unlock(&link->users_lock);
}

/**
 * shift_link_unuse - a QP gets no news of a link any more
 * @link: the QP still has a reference.
 * @user: on its list.
 *
 * Context: process, may sleep.
 * Return: its lane, of which it has no use any more; NULL: it had none.
 */
struct shift_link *shift_link_unuse(struct shift_link *link, struct shift_link_user *user)
{
	struct shift_link *lane;

	mutex_lock(&link->users_lock);
	list_del_init(&user->entry);
	WRITE_ONCE(user->up, false);
	lane = user->lane;
	user->lane = NULL;
	mutex_unlock(&link->users_lock);
	if (lane) {
		mutex_lock(&lane->users_lock);
		list_del_init(&user->lane_entry);
		WRITE_ONCE(user->silent, false);
		mutex_unlock(&lane->users_lock);
	}
	WRITE_ONCE(user->news, 0);
	return lane;
}

/* What a QP hears of a link that is silent: "down", if the class of its own is not silent. */
static enum shift_link_news user_news(const struct shift_link_user *user,
				      enum shift_link_news news)
{
	if (news != SHIFT_LINK_NEWS_SILENT || !user->lane ||
	    shift_link_state(user->lane) != SHIFT_LINK_UP)
		return news;
	shift_stat_inc(SHIFT_STAT_SPARED);
	return SHIFT_LINK_NEWS_DOWN;
}

/**
 * shift_link_tell - note news for each QP that uses a link, and kick it
 * @link: referenced.
 * @news: what has become of it.
 *
 * The QP's work item takes the news in.  No QP's mutex is taken, as it may be held for as long as a
 * driver takes.
 *
 * Context: process, may sleep.
 */
void shift_link_tell(struct shift_link *link, enum shift_link_news news)
{
	struct shift_link_user *user;

	mutex_lock(&link->users_lock);
	list_for_each_entry(user, &link->user_list, entry) {
		WRITE_ONCE(user->up, news == SHIFT_LINK_NEWS_UP);
		set_bit(user_news(user, news), &user->news);
		/*
		 * What the peer has told of keys that are gone may have been lost with the link,
		 * and posts do not wait for the work item.
		 */
		if (news == SHIFT_LINK_NEWS_DOWN || news == SHIFT_LINK_NEWS_SILENT)
			shift_rkey_forget_all(user->sqp);
		shift_qp_kick(user->sqp, SHIFT_QPB_LINKS);
		cond_resched();
	}
	mutex_unlock(&link->users_lock);
}

static void guard_one(struct shift_link *link, bool on)
{
	unsigned long flags;

	spin_lock_irqsave(&link->lock, flags);
	link->guarded += on ? 1 : -1;
	spin_unlock_irqrestore(&link->lock, flags);
}

/**
 * shift_link_guard - a QP is protected from now on, or not any more
 * @link: referenced.
 * @user: the QP's, on the link's list; the QP is locked, so that it stays there.
 * @on: one protected QP more, or one less.
 *
 * Context: process, or with spinlocks.
 */
void shift_link_guard(struct shift_link *link, const struct shift_link_user *user, bool on)
{
	guard_one(link, on);
	if (user->lane)
		guard_one(user->lane, on);
}

u32 shift_link_id(const struct shift_link *link)
{
	return link->id;
}

const union ib_gid *shift_link_local(const struct shift_link *link)
{
	return &link->local;
}

const union ib_gid *shift_link_remote(const struct shift_link *link)
{
	return &link->remote;
}

/**
 * shift_link_state - what a link is at the moment
 * @link: referenced.
 *
 * Context: any.
 * Return: the state.  It changes before shift_link_ops.changed() tells of it.
 */
enum shift_link_state shift_link_state(const struct shift_link *link)
{
	if (READ_ONCE(link->up))
		return SHIFT_LINK_UP;
	if (READ_ONCE(link->pending) || READ_ONCE(link->conn))
		return SHIFT_LINK_CONNECTING;
	return SHIFT_LINK_DOWN;
}

/**
 * shift_link_dmac - the next hop of a path, as RDMA CM found it
 * @link: referenced.
 * @dmac: filled: ETH_ALEN bytes; zeroes before the link's first connection.
 *
 * The RDMA core resolves it for QPs of user space only, so that proxy QPs are connected with what
 * this returns.
 *
 * Context: any.
 */
void shift_link_dmac(struct shift_link *link, u8 *dmac)
{
	unsigned long flags;

	spin_lock_irqsave(&link->lock, flags);
	memcpy(dmac, link->dmac, ETH_ALEN);
	spin_unlock_irqrestore(&link->lock, flags);
}

/**
 * shift_link_fill_info - what operators see of a link
 * @link: referenced.
 * @info: filled in.
 *
 * Context: any.
 */
void shift_link_fill_info(const struct shift_link *link, struct shift_link_info *info)
{
	struct shift_link *l = (struct shift_link *)link;	/* for its lock */
	unsigned long flags;

	memset(info, 0, sizeof(*info));
	info->id = link->id;
	info->local = link->local;
	info->remote = link->remote;
	shift_peer_node(&link->remote, info->node);

	spin_lock_irqsave(&l->lock, flags);
	strscpy(info->dev, link->name, sizeof(info->dev));
	info->state = shift_link_state(link);
	memcpy(info->peer_boot_id, link->peer_boot_id, sizeof(info->peer_boot_id));
	info->tx = link->tx;
	info->rx = link->rx;
	info->connects = link->connects;
	info->acked = link->acked;
	info->dscps = link->dscps;
	if (link->conn) {
		info->proven = link->conn->auth.proven;
		info->form = link->conn->form;
	}
	spin_unlock_irqrestore(&l->lock, flags);
}
