// SPDX-License-Identifier: GPL-2.0
/*
 * What comes in on links: messages for QPs, which are dropped, answered at once, or put into the
 * mailbox of the QP for its work item.  No QP's mutex is taken.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "core/event.h"
#include "core/kick.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/stat.h"
#include "core/trace.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "link/link.h"
#include "pure/msg.h"

/* Tell the peer that this QP cannot be protected; no lock. */
static void refuse_pair(struct shift_qp *sqp, struct shift_link *link,
			const struct shift_msg *m)
{
	struct shift_msg r = {
		.type = SHIFT_MSG_PAIR,
		.src_cookie = READ_ONCE(sqp->cookie),
		.dst_cookie = m->src_cookie,
	};

	r.pair.flags = SHIFT_PAIR_ACK | SHIFT_PAIR_REFUSED;
	r.pair.src_qpn = m->pair.dst_qpn;
	r.pair.dst_qpn = m->pair.src_qpn;
	memcpy(r.pair.src_gid, m->pair.dst_gid, sizeof(r.pair.src_gid));
	memcpy(r.pair.dst_gid, m->pair.src_gid, sizeof(r.pair.dst_gid));
	r.pair.mtu = m->pair.mtu;
	trace_shift_msg_tx(sqp->sdev->name, sqp->qpn, r.type, r.epoch);
	shift_link_send(link, &r);
}

/*
 * Has a link's peer a say in what becomes of a QP?  Its backup's GID stays known if the directory
 * forgets the node.  No lock: while the application connects its QP a message may be dropped, and
 * the peer repeats it.
 */
static bool is_of_peer(const struct shift_qp *sqp, const struct shift_link *link)
{
	const union ib_gid *remote = shift_link_remote(link);

	return shift_link_leads_to(link, &sqp->app.dgid) ||
	       !memcmp(remote, &sqp->peer.backup_dgid, sizeof(*remote));
}

/*
 * Has a PAIR come over the path that it is about, from the backup that it names to the QP's own?
 * That is what it proves.  A refusal proves nothing.  No lock, as above.
 */
static bool is_on_path(const struct shift_qp *sqp, const struct shift_link *link,
		       const struct shift_msg *m)
{
	const union ib_gid *local = shift_link_local(link), *remote = shift_link_remote(link);

	if (m->pair.flags & SHIFT_PAIR_REFUSED)
		return true;
	if (memcmp(remote, m->pair.backup_gid, sizeof(*remote)))
		return false;
	/* a QP that has no link yet has to look for its backup first, and does so for a PAIR */
	return !READ_ONCE(sqp->peer.link[1]) ||
	       !memcmp(local, &sqp->peer.backup_sgid, sizeof(*local));
}

/*
 * The peer has sent this before, and the QP's work item has not come to look at it, as a fence
 * takes long or other QPs have their turn first.  Say so: a peer that hears nothing would give up.
 * Here no mutex is taken, so that the answer does not wait for what it is about.
 */
static void tell_queued(struct shift_qp *sqp, struct shift_link *link, const struct shift_msg *m)
{
	struct shift_msg r = {
		.type = SHIFT_MSG_NACK, .epoch = m->epoch,
		.src_cookie = m->dst_cookie, .dst_cookie = m->src_cookie,
		.nack.code = SHIFT_NACK_QUEUED,
	};

	trace_shift_msg_tx(sqp->sdev->name, sqp->qpn, r.type, r.epoch);
	shift_link_send(link, &r);
}

/*
 * A message for a QP that is not paired with its sender any more.  The GONE that said so may have
 * been lost with the path that it took, and the peer would ask until its deadline: send it again.
 * The message is never early: a peer learns the cookie of a QP from that QP alone, which has learnt
 * the peer's cookie before.  Only the QP's peer is answered: see is_of_peer().
 */
static void tell_gone(struct shift_link *link, const struct shift_msg *m)
{
	struct shift_msg r = {
		.type = SHIFT_MSG_GONE, .epoch = m->epoch,
		.src_cookie = m->dst_cookie, .dst_cookie = m->src_cookie,
	};

	if ((m->type == SHIFT_MSG_REQ || m->type == SHIFT_MSG_PROGRESS) &&
	    shift_session_hears(link))
		shift_link_send(link, &r);
}

/*
 * Is it handled here, with a limit of its own (failover/resolve.c)?  A question for a key is left
 * to the work item if both ends have memory windows.
 */
static bool is_about_keys(const struct shift_qp *sqp, const struct shift_msg *m)
{
	if (m->type == SHIFT_MSG_RESOLVE)
		return !READ_ONCE(sqp->peer.windows);
	return m->type == SHIFT_MSG_RESOLVED || m->type == SHIFT_MSG_RKEY_GONE;
}

/* It says that the peer waits for its turn, and is only noted. */
static bool is_queued(const struct shift_msg *m)
{
	return m->type == SHIFT_MSG_NACK && m->nack.code == SHIFT_NACK_QUEUED;
}

/*
 * May the peer send this?  Each message may cost a pass of the QP's work item, or a fence.  One
 * that comes while the work item is queued already costs no pass of its own, and does not count for
 * the node.  Copies are such messages: there are many while thousands of QPs wait for their turn.
 */
static bool is_heard(struct shift_qp *sqp, struct shift_link *link, const struct shift_msg *m)
{
	if (is_about_keys(sqp, m))
		return true;
	if (!shift_qp_hears(sqp))
		return false;
	return is_queued(m) || shift_qp_is_due(sqp) || shift_session_hears(link);
}

/*
 * A message for a QP, in the link's work item.  It is recorded here and not where it is handled:
 * in a mailbox it may be replaced by a newer one, and not all go there.
 */
static void link_received(struct shift_link *link, const struct shift_msg *m)
{
	bool pair = m->type == SHIFT_MSG_PAIR;
	struct shift_qp *sqp = pair ? shift_qp_find_named(m) : shift_qp_find_cookie(m->dst_cookie);

	if (!sqp) {
		/* a PAIR may be early; what has a cookie is late, or guesses */
		if (!pair)
			shift_stat_inc(SHIFT_STAT_MSG_STALE);
		return;
	}
	if (!is_of_peer(sqp, link) || (pair && !is_on_path(sqp, link, m))) {
		pr_warn_ratelimited("%s qp %u: %s from %pI6c dropped, which has no say in that\n",
				    sqp->sdev->name, sqp->qpn, shift_msg_name(m->type),
				    shift_link_remote(link)->raw);
		shift_stat_inc(SHIFT_STAT_STRANGERS);
		shift_qp_put(sqp);
		return;
	}
	trace_shift_msg_rx(sqp->sdev->name, sqp->qpn, m->type, m->epoch);
	if (pair && !READ_ONCE(sqp->rings.usable)) {
		if (!(m->pair.flags & SHIFT_PAIR_ACK))
			refuse_pair(sqp, link, m);
		shift_qp_put(sqp);
		return;
	}
	if (!pair && READ_ONCE(sqp->peer.cookie) != m->src_cookie) {
		shift_stat_inc(SHIFT_STAT_MSG_STALE);
		tell_gone(link, m);
		shift_qp_put(sqp);
		return;
	}
	if (!is_heard(sqp, link, m)) {
		shift_qp_put(sqp);
		return;
	}

	switch (m->type) {
	case SHIFT_MSG_RESOLVE:
	case SHIFT_MSG_RESOLVED:
	case SHIFT_MSG_RKEY_GONE:
		shift_rkey_message(sqp, link, m);
		break;
	case SHIFT_MSG_NACK:
		if (is_queued(m))
			shift_qp_note_queued(sqp, m->epoch);
		else
			shift_qp_post_msg(sqp, m);
		break;
	case SHIFT_MSG_REQ:
	case SHIFT_MSG_PROGRESS:
		if (shift_qp_post_msg(sqp, m))
			tell_queued(sqp, link, m);
		break;
	default:
		shift_qp_post_msg(sqp, m);
	}
	shift_qp_put(sqp);
}

static void link_changed(struct shift_link *link)
{
	struct shift_link_info info;

	shift_link_fill_info(link, &info);
	shift_notify_link(&info);
}

const struct shift_link_ops shift_receive_link_ops = {
	.received = link_received,
	.changed = link_changed,
};
