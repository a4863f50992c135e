// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions.  A session is all links that are up to one incarnation of a peer's module: to a node of
 * the directory with a boot id.  A message goes over the link that it is meant for, or over any
 * other of the session.
 */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include "core/stat.h"
#include "link/link.h"
#include "link/link_priv.h"
#include "pure/bucket.h"
#include "pure/msg.h"

/**
 * struct shift_session - the links to one peer
 * @hash: in shift_sessions.
 * @boot_id: of the peer.
 * @node: its name in the directory when the first link came up; another node may claim the boot id.
 * @links: by @session_entry, each with a reference; never empty.
 * @heard: what the peer may send for work items of QPs.
 */
struct shift_session {
	struct hlist_node hash;
	u8 boot_id[16];
	char node[SHIFT_NODE_MAX];
	struct list_head links;
	struct shift_bucket heard;
};

/* outside link->lock; protects all sessions and the entries of links in them */
static DEFINE_SPINLOCK(shift_sessions_lock);
static DEFINE_HASHTABLE(shift_sessions, 8);

static struct shift_session *session_find(const u8 *boot_id, const char *node)
{
	struct shift_session *s;

	lockdep_assert_held(&shift_sessions_lock);
	hash_for_each_possible(shift_sessions, s, hash, jhash(boot_id, 16, 0))
		if (!memcmp(s->boot_id, boot_id, sizeof(s->boot_id)) && !strcmp(s->node, node))
			return s;
	return NULL;
}

/**
 * shift_session_join - a link has come up
 * @link: its peer_boot_id is known.  If there is no memory it stays without a session.
 * @node: of the directory, to which it is connected.
 *
 * Context: delivery work of the link.
 */
void shift_session_join(struct shift_link *link, const char *node)
{
	struct shift_session *s, *new = kzalloc(sizeof(*new), GFP_NOIO);

	if (!new)
		return;
	memcpy(new->boot_id, link->peer_boot_id, sizeof(new->boot_id));
	strscpy(new->node, node, sizeof(new->node));
	INIT_LIST_HEAD(&new->links);

	spin_lock_bh(&shift_sessions_lock);
	strscpy(link->peer_node, new->node, sizeof(link->peer_node));
	s = session_find(new->boot_id, new->node);
	if (!s) {
		s = new;
		new = NULL;
		hash_add(shift_sessions, &s->hash, jhash(s->boot_id, 16, 0));
	}
	if (!link->session) {
		kref_get(&link->ref);
		link->session = s;
		list_add_tail(&link->session_entry, &s->links);
		/* who connects anew, perhaps as another kernel, gets no new allowance by that */
		s->heard.full_ns = max(s->heard.full_ns, link->heard.full_ns);
	}
	spin_unlock_bh(&shift_sessions_lock);
	kfree(new);
}

/**
 * shift_session_leave - a link has gone down
 * @link: may not be in a session.
 *
 * Context: delivery work of the link.
 */
void shift_session_leave(struct shift_link *link)
{
	struct shift_session *s;
	bool was;

	spin_lock_bh(&shift_sessions_lock);
	s = link->session;
	was = s;
	if (s) {
		link->session = NULL;
		link->heard = s->heard;
		list_del(&link->session_entry);
		if (list_empty(&s->links))
			hash_del(&s->hash);
		else
			s = NULL;
	}
	spin_unlock_bh(&shift_sessions_lock);
	kfree(s);
	if (was)
		shift_link_unref(link);
}

/**
 * shift_session_send - queue one message for a peer
 * @link: the one to prefer; its peer is the receiver.
 * @m: in host order; not needed after the call.
 *
 * Two messages may overtake one another if they go over different links.
 *
 * Context: any but hard interrupts, does not sleep and does not allocate.
 * Return: as shift_link_send().
 */
int shift_session_send(struct shift_link *link, const struct shift_msg *m)
{
	struct shift_session *s;
	struct shift_link *other;
	int err = shift_link_send(link, m);

	if (!err || err == -EINVAL)
		return err;

	spin_lock_bh(&shift_sessions_lock);
	/* a link that is down still has the boot id and the node of its last peer */
	s = session_find(link->peer_boot_id, link->peer_node);
	if (s) {
		list_for_each_entry(other, &s->links, session_entry) {
			if (other == link)
				continue;
			err = shift_link_send(other, m);
			if (!err)
				break;
		}
	}
	spin_unlock_bh(&shift_sessions_lock);
	return err;
}

/* Where it is noted what a link's peer may send. */
static struct shift_bucket *session_heard(struct shift_link *link)
{
	lockdep_assert_held(&shift_sessions_lock);
	return link->session ? &link->session->heard : &link->heard;
}

/* How large a peer's allowance is: a base, and a share for each use of its links by a QP. */
static u32 session_uses(const struct shift_link *link)
{
	u32 uses = SHIFT_LINK_HEARD_BASE;
	const struct shift_link *other;

	lockdep_assert_held(&shift_sessions_lock);
	if (!link->session)
		return uses + READ_ONCE(link->users);
	list_for_each_entry(other, &link->session->links, session_entry)
		uses += READ_ONCE(other->users);
	return uses;
}

/**
 * shift_session_hears - a peer has sent a message for which a QP's work item has to run: may it?
 * @link: the one that it came over.
 *
 * Each QP has a share of its own, which bounds what its peer can do to it.  This bounds what a node
 * can do to all QPs that are connected to it together.
 *
 * Context: any but hard interrupts, does not sleep and does not allocate.
 * Return: false: it has sent too many; this one is to be dropped, and was counted.
 */
bool shift_session_hears(struct shift_link *link)
{
	bool hears;

	spin_lock_bh(&shift_sessions_lock);
	hears = shift_bucket_take_of(session_heard(link), ktime_get_ns(), SHIFT_LINK_HEARD_NS,
				     SHIFT_LINK_HEARD_MOST, session_uses(link));
	spin_unlock_bh(&shift_sessions_lock);
	if (!hears)
		shift_stat_inc(SHIFT_STAT_FLOODED);
	return hears;
}

/**
 * shift_session_brings - a QP has begun to use a link, for the first time
 * @link: it is counted as a user already.
 *
 * Its peer may send messages for it, whatever was sent for others before.  So connections that come
 * and go all the time have what they need.
 *
 * Context: any but hard interrupts.
 */
void shift_session_brings(struct shift_link *link)
{
	spin_lock_bh(&shift_sessions_lock);
	shift_bucket_join(session_heard(link), SHIFT_LINK_HEARD_NS, SHIFT_LINK_HEARD_MOST,
			  session_uses(link));
	spin_unlock_bh(&shift_sessions_lock);
}
