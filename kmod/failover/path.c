// SPDX-License-Identifier: GPL-2.0
/* Which path a QP can take, and messages over paths. */
#include <linux/ktime.h>
#include <linux/module.h>
#include "core/kick.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/trace.h"
#include "failover/internal.h"
#include "link/link.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"
#include "pure/msg.h"
#include "srq/srq.h"

/* Consent has to be given over the path that it is for; other messages may take any path. */
static bool bound_to_path(u8 type)
{
	return type == SHIFT_MSG_PAIR || type == SHIFT_MSG_REQ || type == SHIFT_MSG_ACK;
}

/*
 * The link that shows whether a path works; NULL: there is none.  Needs sqp->lock, or inbox_lock in
 * RUN while the QP is not fenced: such a QP keeps its links until its state has changed.
 */
struct shift_link *shift_path_link(const struct shift_qp *sqp, u8 path)
{
	lockdep_assert(lockdep_is_held(&sqp->lock) || lockdep_is_held(&sqp->inbox_lock));
	return sqp->peer.link[path == SHIFT_PATH_BACKUP];
}

/*
 * A QP that is connected to itself sends a message.  Two are not sent: it knows that it consents,
 * and that it ends.
 */
static void send_to_itself(struct shift_qp *sqp, const struct shift_msg *m)
{
	if (m->type != SHIFT_MSG_ACK && m->type != SHIFT_MSG_GONE)
		shift_qp_post_msg(sqp, m);
}

/**
 * shift_path_send - send a message to the peer's QP
 * @sqp: the QP, locked.
 * @path: the path over which it is sent; if it may go over any, another one may be taken.
 * @m: the message; the cookies are filled in.
 *
 * Context: process context; does not wait for the peer.
 * Return: 0 or a negative errno; a message may be lost in either case.
 */
int shift_path_send(struct shift_qp *sqp, u8 path, struct shift_msg *m)
{
	struct shift_link *other, *link = shift_path_link(sqp, path);
	int err;

	lockdep_assert_held(&sqp->lock);
	/* the backup may have gone */
	if (!link && !bound_to_path(m->type))
		link = shift_path_link(sqp, SHIFT_PATH_DEFAULT);
	m->src_cookie = sqp->cookie;
	m->dst_cookie = sqp->peer.cookie;
	if (!link && !shift_qp_is_loop(sqp))
		return -ENOTCONN;
	trace_shift_msg_tx(sqp->sdev->name, sqp->qpn, m->type, m->epoch);
	if (!link) {
		send_to_itself(sqp, m);
		return 0;
	}
	if (bound_to_path(m->type))
		return shift_link_send(link, m);
	err = shift_session_send(link, m);
	other = sqp->peer.link[link == sqp->peer.link[0]];
	/* a link that has not been up yet does not know the session of its peer */
	return err == -ENOTCONN && other ? shift_session_send(other, m) : err;
}

/* Is the NIC of a path without a port?  Any context. */
bool shift_path_port_down(const struct shift_qp *sqp, u8 path)
{
	const struct shift_pair *pair = shift_qp_pair(sqp);

	if (path != SHIFT_PATH_BACKUP)
		return READ_ONCE(sqp->sdev->port_down);
	return pair && READ_ONCE(pair->backup->port_down);
}

/* Can a QP that is connected to itself use a path, whatever its ports say?  Any context. */
static bool works_to_itself(const struct shift_qp *sqp, u8 path)
{
	const struct shift_pair *pair = shift_qp_pair(sqp);

	return path != SHIFT_PATH_BACKUP || (pair && !READ_ONCE(pair->dying));
}

/*
 * Is the link of a path up and its class not silent, or is none needed?  Locks: as
 * shift_path_link(); a QP that is connected to itself has no link, and needs none.
 */
bool shift_path_link_up(const struct shift_qp *sqp, u8 path)
{
	struct shift_link *link;

	if (shift_qp_is_loop(sqp))
		return works_to_itself(sqp, path);
	link = shift_path_link(sqp, path);
	return link && shift_link_state(link) == SHIFT_LINK_UP &&
	       !READ_ONCE(sqp->peer.use[path == SHIFT_PATH_BACKUP].silent);
}

/* Does a path look as if it worked, by link and port?  Locks: as shift_path_link_up(). */
bool shift_path_works(const struct shift_qp *sqp, u8 path)
{
	return shift_path_link_up(sqp, path) && !shift_path_port_down(sqp, path);
}

/* The time for which the application's own QP would have repeated a packet; ns, at most 5 min. */
static u64 retry_time(const struct shift_qp *sqp)
{
	const struct shift_provider *provider = sqp->sdev->provider;
	const struct ib_qp_attr *attr = &sqp->app.attr;
	u64 most = 300 * (u64)NSEC_PER_SEC;

	if (!attr->timeout || (attr->retry_cnt && attr->retry_cnt == provider->endless_retries))
		return most;
	/* a NIC may wait for up to four times the timeout: InfiniBand specification, C9-141 */
	return min(most, (4 * 4096ull << (attr->timeout & 31)) * (attr->retry_cnt + 1));
}

/**
 * shift_path_outage - does a QP that was stopped for a failover wait for a path to the peer?
 * @sqp: the QP, locked, in a state with a deadline.
 *
 * A deadline is for a peer that is mute.  While no path to the peer works nobody can answer.  Both
 * ends are stopped, or one is and the other goes on as before, so that waiting does no harm; and
 * without the module the application's own QP would wait, too.
 *
 * Context: process context.
 * Return: true: its deadline is to begin again.
 */
bool shift_path_outage(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (sqp->fo.state != SHIFT_ST_ASKED && sqp->fo.state != SHIFT_ST_AGREE &&
	    sqp->fo.state != SHIFT_ST_SYNC)
		return false;
	/* posts are held in a handback, which has short deadlines for that reason */
	if (shift_path_healthy(sqp) || test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags) ||
	    shift_handback_is_under_way(sqp))
		return false;
	/* the other QPs of its SRQ may leave it one path only */
	return !shift_path_choose(sqp) && ktime_get_ns() < sqp->fo.began_ns + retry_time(sqp);
}

/*
 * The path to ask for: away from the one that failed, if the other looks as if it worked; the next
 * REQ of a failover asks for the other one.  0: there is none.  Locks: as shift_path_link().
 */
u8 shift_path_choose(const struct shift_qp *sqp)
{
	bool must;
	u8 others = shift_srq_path(sqp, &must);
	bool away = shift_qp_is_moved(sqp) || sqp->handback.connected;
	bool home = away && shift_path_works(sqp, SHIFT_PATH_HOME);
	bool backup = shift_path_works(sqp, SHIFT_PATH_BACKUP);
	bool returns = sqp->fo.to == SHIFT_PATH_OWN && sqp->fo.state != SHIFT_ST_RUN && away;

	if (others && (must || shift_path_link_up(sqp, others)))
		return shift_path_link_up(sqp, others) ? others : 0;
	/* a handback that failed goes back even if no path works: posts are held until then */
	if (returns && home == backup)
		return SHIFT_PATH_HOME;
	if (!home || !backup)
		return home ? SHIFT_PATH_HOME : backup ? SHIFT_PATH_BACKUP : 0;
	if (sqp->fo.asks)
		return sqp->fo.to == SHIFT_PATH_BACKUP ? SHIFT_PATH_HOME : SHIFT_PATH_BACKUP;
	return sqp->fo.path == SHIFT_PATH_BACKUP ? SHIFT_PATH_HOME : SHIFT_PATH_BACKUP;
}

/*
 * Could the QP ask for a path right now?  Locks: as shift_path_link().  The CQE filter calls this
 * without sqp->lock, so it is racy by nature; the guard is evaluated again under that lock.
 */
bool shift_path_usable(const struct shift_qp *sqp)
{
	lockdep_assert(lockdep_is_held(&sqp->lock) || lockdep_is_held(&sqp->inbox_lock));
	return sqp->rings.usable && sqp->peer.ok && sqp->fo.asks < SHIFT_ASKS_MAX &&
	       (sqp->fo.path || sqp->rec.proxy || sqp->proxies.spare[SHIFT_PATH_BACKUP]) &&
	       !shift_qp_reason(sqp, sqp->fo.path) &&
	       shift_qp_cqs_registered(sqp) && shift_srq_movable(sqp) && shift_path_choose(sqp);
}

/* Is there no error completion, and was the QP not fenced since the last RUN?  sqp->lock. */
bool shift_path_healthy(struct shift_qp *sqp)
{
	bool open;

	lockdep_assert_held(&sqp->lock);
	if (test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags))
		return false;
	if (!sqp->fo.path)
		return !test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags) && !sqp->handback.connected;
	spin_lock_bh(&sqp->ledger_lock);
	open = shift_proxy_is_open(sqp);
	spin_unlock_bh(&sqp->ledger_lock);
	return open && !shift_proxy_error(sqp);
}

/**
 * shift_path_take_link - the QP uses a link from here on
 * @sqp: the QP, locked, without that link.
 * @i: an index of sqp->peer.link.
 * @link: the reference becomes the QP's; NULL: there is none.
 *
 * Context: process context; may sleep.
 */
void shift_path_take_link(struct shift_qp *sqp, int i, struct shift_link *link)
{
	struct shift_link *lane;

	lockdep_assert_held(&sqp->lock);
	sqp->peer.link[i] = link;
	if (!link)
		return;
	/* without a lane the link speaks for its class, too */
	lane = shift_link_lane(link, sqp->app.attr.ah_attr.grh.traffic_class, true);
	shift_link_use(link, &sqp->peer.use[i], IS_ERR(lane) ? NULL : lane);
	/* once: a peer that has it paired again and again gets no more by that */
	if (!sqp->peer.use[i].known)
		shift_session_brings(link);
	sqp->peer.use[i].known = true;
}

/**
 * shift_path_drop_link - the QP does not use a link any more
 * @sqp: the QP, locked.
 * @i: an index of sqp->peer.link; nothing happens if there is none.
 *
 * Context: process context; may sleep.
 */
void shift_path_drop_link(struct shift_qp *sqp, int i)
{
	struct shift_link *lane, *link = sqp->peer.link[i];

	lockdep_assert_held(&sqp->lock);
	sqp->peer.link[i] = NULL;
	if (!link)
		return;
	lane = shift_link_unuse(link, &sqp->peer.use[i]);
	if (lane)
		shift_link_put(lane);
	shift_link_put(link);
}
