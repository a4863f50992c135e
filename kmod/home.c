// SPDX-License-Identifier: GPL-2.0
/*
 * Moving without a fault, and the way home to the default NIC: see
 * Documentation/protocol.md.  All under sqp->lock, in the QP's work item or a
 * control verb.
 *
 *	DRAIN	what is posted stays in the ring; the ledger runs empty
 *	SUNK	so has the peer's; all that either received was shown
 *	HOME	the default QP is at RTR, the rings are as its driver left them
 *
 * rxe keeps its own consumer index of a ring.  RESET runs it up to the producer:
 * so the producer is set to where the ring shall begin, for the time of the RESET,
 * and what the ledger holds is written back afterwards.  Meanwhile the provider is
 * held off its rings by its gate and its locks, as for a fence.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include "shift.h"
#include "trace.h"

#define STEP_MS		2	/* between looks at what others have to do first */

/* Not a default yet: see Documentation/status.md. */
static bool moves;
module_param(moves, bool, 0644);
MODULE_PARM_DESC(moves, "moves by operators, and back to the default device (experimental)");

/* Are moves allowed at all? */
bool shift_home_moves(void)
{
	return READ_ONCE(moves);
}

/* May the QP come home?  One that was stopped amid a READ cannot (fence.c). */
bool shift_home_allowed(const struct shift_qp *sqp)
{
	return READ_ONCE(moves) && !sqp->stay;
}

/* Let the ledger take in what is posted again. */
void shift_home_thaw(struct shift_qp *sqp)
{
	spin_lock_bh(&sqp->ledger_lock);
	sqp->drain.frozen = false;
	sqp->drain.marked = false;
	spin_unlock_bh(&sqp->ledger_lock);
	sqp->drain.peer_done = false;
	sqp->drain.peer_home = false;
}

static bool default_usable(struct shift_qp *sqp)
{
	return shift_home_allowed(sqp) && sqp->link[0] && !READ_ONCE(sqp->sdev->port_down) &&
	       shift_link_state(sqp->link[0]) == SHIFT_LINK_UP;
}

/**
 * shift_home_move - an operator, or failback, wants the QP on sqp->move_to
 * @sqp: the QP, locked.
 *
 * Nothing happens to one that is there, or is on its way anywhere.
 */
void shift_home_move(struct shift_qp *sqp)
{
	/* a pair may have been drained before moves were turned off */
	if (!shift_home_moves() || sqp->state != SHIFT_ST_RUN || sqp->path == sqp->move_to)
		return;
	if (sqp->move_to) {
		/* what cannot be moved is not worth an error */
		if (shift_fence_supported(sqp))
			return;
		sqp->cause = SHIFT_CAUSE_OPERATOR;
		shift_switch_event(sqp, SHIFT_EV_FAULT, NULL);
		if (sqp->state == SHIFT_ST_RUN)
			sqp->cause = SHIFT_CAUSE_NONE;	/* no path to ask */
		return;
	}
	if (!default_usable(sqp) || !sqp->peer_ok)
		return;
	sqp->cause = SHIFT_CAUSE_OPERATOR;
	shift_switch_event(sqp, SHIFT_EV_MOVE, NULL);
}

struct ask {
	struct shift_dev *sdev;
	u32 link_id, qpn;
	u8 path;
	unsigned int told;
};

static int ask_one(struct shift_qp *sqp, void *arg)
{
	struct ask *ask = arg;
	const struct shift_link *link = sqp->link[sqp->path];

	if (sqp->state != SHIFT_ST_RUN || (ask->qpn && sqp->qpn != ask->qpn))
		return 0;
	if (ask->sdev ? sqp->sdev != ask->sdev : !link || shift_link_id(link) != ask->link_id)
		return 0;
	sqp->move_to = ask->sdev ? ask->path : !sqp->path;
	ask->told++;
	shift_switch_kick(sqp, SHIFT_QP_MOVE);
	return 0;
}

/**
 * shift_home_ask - tell QPs to move
 * @sdev: those of this device go to @path; or NULL:
 * @link_id: those that use this link leave it.
 * @qpn: only this one; 0: all.
 * @path: 0 default, 1 backup.
 *
 * Context: process context, no QP's lock held.
 * Return: how many were told; those that are there already are among them.
 */
unsigned int shift_home_ask(struct shift_dev *sdev, u32 link_id, u32 qpn, u8 path)
{
	struct ask ask = {
		.sdev = sdev, .link_id = link_id, .qpn = qpn, .path = path,
	};

	shift_qp_walk(ask_one, &ask);
	return ask.told;
}

static void send_drain(struct shift_qp *sqp)
{
	struct shift_msg m = { .type = SHIFT_MSG_REQ, .epoch = sqp->highest };

	m.req.from = sqp->path;
	m.req.to = sqp->to;
	m.req.kind = SHIFT_KIND_DRAIN;
	m.req.cause = sqp->cause;
	/* over the path it is about: a proof that it works */
	shift_switch_send(sqp, sqp->to, &m);
}

/**
 * shift_home_drain - DRAIN is entered
 * @sqp: the QP, locked, in Fallback.
 * @m: the peer's request, or NULL: it is ours.
 */
void shift_home_drain(struct shift_qp *sqp, const struct shift_msg *m)
{
	shift_home_thaw(sqp);
	sqp->to = 0;
	memset(&sqp->times, 0, sizeof(sqp->times));
	sqp->times.fault = ktime_get_real_ns();
	if (m) {
		sqp->highest = m->epoch;
		sqp->cause = SHIFT_CAUSE_PEER;
	} else {
		sqp->highest = shift_epoch_next(sqp->highest, sqp->cookie > sqp->peer_cookie);
	}
	spin_lock_bh(&sqp->ledger_lock);
	sqp->drain.frozen = true;
	spin_unlock_bh(&sqp->ledger_lock);
	if (!m)
		send_drain(sqp);
	sqp->drain.resent_ns = ktime_get_ns();
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, sqp->times.fault);
	shift_switch_kick(sqp, SHIFT_QP_KICK);
}

static void send_drained(struct shift_qp *sqp)
{
	struct shift_msg m = { .type = SHIFT_MSG_DRAINED, .epoch = sqp->highest };
	u64 took;

	shift_backup_counts(sqp, &m.drained.count, &took);
	shift_switch_send(sqp, sqp->path, &m);
}

/* Our sends are done: say how many receives of the peer's they took. */
void shift_home_drained(struct shift_qp *sqp)
{
	send_drained(sqp);
	sqp->drain.resent_ns = ktime_get_ns();
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
}

/* What a message tells, before its event is handled. */
void shift_home_note(struct shift_qp *sqp, const struct shift_msg *m)
{
	if (m->epoch != sqp->highest)
		return;
	if (m->type == SHIFT_MSG_DRAINED &&
	    (sqp->state == SHIFT_ST_DRAIN || sqp->state == SHIFT_ST_SUNK)) {
		sqp->drain.peer_done = true;
		sqp->drain.peer_count = m->drained.count;
	}
	if (m->type == SHIFT_MSG_HOME_READY &&
	    (sqp->state == SHIFT_ST_SUNK || sqp->state == SHIFT_ST_HOME))
		sqp->drain.peer_home = true;
}

/* The rings of both CQs stay pinned until up_read(); false: not registered. */
static bool cqs_clean(struct shift_qp *sqp)
{
	bool clean = false;

	down_read(&sqp->sdev->ring_sem);
	if (shift_cq_registered(sqp->scq) && shift_cq_registered(sqp->rcq))
		clean = shift_tally_clean(sqp, sqp->scq) && shift_tally_clean(sqp, sqp->rcq);
	up_read(&sqp->sdev->ring_sem);
	return clean;
}

/*
 * Has the application taken all completions of the time away?  They would be
 * overtaken by those of the default NIC, and error completions from before would be
 * taken for news.
 */
static bool all_shown(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->recvs;
	bool given;

	spin_lock_bh(&sqp->ledger_lock);
	given = r->tail == r->done &&
		(!shift_ledger_count(&sqp->ledger) ||
		 shift_ledger_at(&sqp->ledger, sqp->ledger.tail)->state !=
		 SHIFT_ENTRY_EXECUTED);
	if (given && !sqp->drain.marked) {
		sqp->drain.mark[0] = shift_cq_side_end(sqp->scq);
		sqp->drain.mark[1] = shift_cq_side_end(sqp->rcq);
		sqp->drain.marked = true;
	}
	spin_unlock_bh(&sqp->ledger_lock);
	return given && shift_cq_side_seen(sqp->scq, sqp->drain.mark[0]) &&
	       shift_cq_side_seen(sqp->rcq, sqp->drain.mark[1]) && cqs_clean(sqp);
}

/* A guard of SUNK: the peer has drained, and what it sent was received and shown. */
bool shift_home_peer_drained(struct shift_qp *sqp)
{
	u64 gave, took;

	if (!sqp->drain.peer_done)
		return false;
	shift_backup_counts(sqp, &gave, &took);
	return took >= sqp->drain.peer_count && all_shown(sqp);
}

static bool drained(struct shift_qp *sqp)
{
	bool empty;

	spin_lock_bh(&sqp->ledger_lock);
	empty = sqp->drain.frozen && !shift_ledger_count(&sqp->ledger);
	spin_unlock_bh(&sqp->ledger_lock);
	return empty && !shift_backup_busy(sqp);
}

static int default_state(struct shift_qp *sqp, struct ib_qp_attr *attr, int mask)
{
	return sqp->sdev->saved.modify_qp(sqp->qp, attr, mask, NULL);
}

static u32 ledger_slot(struct shift_qp *sqp, u64 seq)
{
	return shift_ledger_slot(&sqp->ledger, seq);
}

/* RESET, with the driver's own consumer index at the oldest entry; provider held. */
static int reset_at_tail(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->recvs;
	int err;

	shift_ring_set_producer(&sqp->sq, ledger_slot(sqp, sqp->ledger.tail));
	if (r->slots)
		shift_ring_set_producer(&sqp->rq, r->tail);
	err = shift_fence_reset(sqp);
	/* a packet that was let pass just before is dropped by the second one, and
	 * the requester of rxe 6.12 looks at its index before that is run up
	 */
	synchronize_rcu_expedited();
	return err ?: shift_fence_reset(sqp);
}

/* Receives as they were posted; from here on rxe owns them, once at RTR. */
static void restore_recvs(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->recvs;
	u64 seq;

	if (!r->slots)
		return;
	down_read(&sqp->sdev->ring_sem);
	if (shift_cq_registered(sqp->rcq))
		sqp->drain.tally = shift_tally_begin(sqp->rcq);
	up_read(&sqp->sdev->ring_sem);
	for (seq = r->tail; seq < r->head; seq++) {
		u8 *raw = r->raw + (size_t)((u32)seq & (r->slots - 1)) * r->slot_size;

		shift_rxe_renew_recv(raw, r->slot_size);
		shift_ring_write_slot(&sqp->rq, seq, 0, raw, r->slot_size);
	}
	shift_ring_set_consumer(&sqp->rq, r->tail);
	shift_ring_set_producer(&sqp->rq, r->head);
}

/* In the form in which rxe shall find them; nothing of the ring is touched yet. */
static int renew_sends(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->ledger;
	int err = 0;
	u64 seq;

	for (seq = l->tail; seq < l->head && !err; seq++) {
		struct shift_entry *e = shift_ledger_at(l, seq);

		/* one that was cut is written again from its beginning */
		if (e->state != SHIFT_ENTRY_EXECUTED)
			e->done = 0;
		err = shift_rxe_renew(shift_ledger_raw(l, seq), l->slot_size,
				      e->state == SHIFT_ENTRY_EXECUTED);
	}
	return err;
}

static int to_rtr(struct shift_qp *sqp)
{
	struct ib_qp_attr *attr = kzalloc(sizeof(*attr), GFP_NOIO);
	int err;

	if (!attr)
		return -ENOMEM;
	err = reset_at_tail(sqp);
	if (err)
		goto out;
	attr->qp_state = IB_QPS_INIT;
	attr->port_num = 1;
	attr->qp_access_flags = sqp->app.qp_access_flags;
	err = default_state(sqp, attr, SHIFT_INIT_MASK);
	if (err)
		goto out;
	restore_recvs(sqp);
	err = shift_qp_attr_rtr(sqp->sdev->ibdev, &sqp->sgid, &sqp->dgid, sqp, sqp->dest_qpn,
				sqp->epoch, attr);
	if (err)
		goto out;
	err = default_state(sqp, attr, SHIFT_RTR_MASK);
	rdma_destroy_ah_attr(&attr->ah_attr);
out:
	kfree(attr);
	return err;
}

static void send_home_ready(struct shift_qp *sqp)
{
	struct shift_msg m = { .type = SHIFT_MSG_HOME_READY, .epoch = sqp->epoch };

	m.ready.qpn = sqp->qpn;
	m.ready.start_psn = shift_start_psn(sqp->cookie, sqp->epoch);
	shift_switch_send(sqp, 0, &m);
}

/* One try; -EBUSY: the application has something to do first. */
static int arm_default(struct shift_qp *sqp)
{
	int err;

	if (!sqp->registered || !sqp->qp)
		return -EIO;
	shift_recv_deliver(sqp);
	shift_replay_deliver(sqp);
	if (!all_shown(sqp))
		return -EBUSY;
	if (!shift_fence_hold(sqp)) {
		shift_fence_open(sqp);
		return -EBUSY;
	}
	err = shift_backup_fence(sqp);
	spin_lock_bh(&sqp->ledger_lock);
	if (!err && sqp->recvs.tail != sqp->recvs.done)
		err = -EIO;	/* the peer was not done */
	if (!err)
		err = shift_replay_take(sqp);
	if (!err) {
		shift_recv_take(sqp);
		err = renew_sends(sqp);
	}
	sqp->drain.held = !err;
	spin_unlock_bh(&sqp->ledger_lock);
	if (err) {
		shift_fence_open(sqp);
		return err;
	}
	sqp->armed[0] = (struct shift_life) {
		.epoch = sqp->epoch, .psn = shift_start_psn(sqp->peer_cookie, sqp->epoch),
	};
	sqp->drain.armed = true;
	return to_rtr(sqp);
}

static void home_step(struct shift_qp *sqp)
{
	int err;

	if (sqp->drain.armed)
		return;
	err = arm_default(sqp);
	if (err == -EBUSY)
		return;
	if (err) {
		pr_warn_ratelimited("%s qp %u: cannot return to its device (%d)\n",
				    sqp->sdev->name, sqp->qpn, err);
		shift_switch_event(sqp, SHIFT_EV_DEADLINE, NULL);
		return;
	}
	send_home_ready(sqp);
	sqp->drain.resent_ns = ktime_get_ns();
	shift_switch_event(sqp, SHIFT_EV_PROVIDER_HOME, NULL);
}

/**
 * shift_home_enter - HOME is entered
 * @sqp: the QP, locked; drained, or everything fenced and agreed on.
 */
void shift_home_enter(struct shift_qp *sqp)
{
	sqp->epoch = sqp->highest;
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
	shift_switch_kick(sqp, SHIFT_QP_KICK);
}

/* Again what the peer may not have got. */
void shift_home_resend(struct shift_qp *sqp)
{
	switch (sqp->state) {
	case SHIFT_ST_DRAIN:
		if (sqp->cause != SHIFT_CAUSE_PEER)
			send_drain(sqp);
		break;
	case SHIFT_ST_SUNK:
		send_drained(sqp);
		break;
	case SHIFT_ST_HOME:
		if (sqp->drain.armed)
			send_home_ready(sqp);
		break;
	default:
		break;
	}
}

/**
 * shift_home_step - look whether a QP in DRAIN, SUNK or HOME can go on
 * @sqp: the QP, locked.
 *
 * Called for each thing that may have changed, and every few milliseconds, as
 * nobody tells when an application polls.
 */
void shift_home_step(struct shift_qp *sqp)
{
	enum shift_state state = sqp->state;

	switch (state) {
	case SHIFT_ST_DRAIN:
		if (!drained(sqp))
			break;
		shift_switch_event(sqp, SHIFT_EV_LEDGER_EMPTY, NULL);
		if (sqp->state != SHIFT_ST_SUNK)
			break;
		fallthrough;
	case SHIFT_ST_SUNK:
		shift_switch_event(sqp, SHIFT_EV_LEDGER_EMPTY, NULL);
		if (sqp->state != SHIFT_ST_HOME)
			break;
		fallthrough;
	case SHIFT_ST_HOME:
		home_step(sqp);
		break;
	default:
		return;
	}
	if (sqp->state != SHIFT_ST_DRAIN && sqp->state != SHIFT_ST_SUNK &&
	    sqp->state != SHIFT_ST_HOME)
		return;
	if (ktime_get_ns() - sqp->drain.resent_ns > SHIFT_RESEND_MS * NSEC_PER_MSEC *
	    max(READ_ONCE(shift_deadline_scale), 1u)) {
		shift_home_resend(sqp);
		sqp->drain.resent_ns = ktime_get_ns();
	}
	shift_switch_arm(sqp, STEP_MS);
}

static int to_rts(struct shift_qp *sqp)
{
	struct ib_qp_attr *attr;
	int err;

	if (sqp->app_state != IB_QPS_RTS)
		return 0;
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	if (!attr)
		return -ENOMEM;
	shift_qp_attr_rts(sqp, sqp->epoch, attr);
	err = default_state(sqp, attr, SHIFT_RTS_MASK);
	kfree(attr);
	return err;
}

/* Did the provider wait?  One that did not has overwritten what was put back. */
static bool rings_untouched(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->recvs;

	return shift_ring_producer(&sqp->sq) == ledger_slot(sqp, sqp->ledger.tail) &&
	       (!r->slots || shift_ring_producer(&sqp->rq) == ((u32)r->head & (r->slots - 1)));
}

static void restore_sends(struct shift_qp *sqp)
{
	struct shift_ledger *l = &sqp->ledger;
	u64 seq;

	for (seq = l->tail; seq < l->head; seq++)
		shift_ring_write_slot(&sqp->sq, seq, 0, shift_ledger_raw(l, seq), l->slot_size);
	shift_ring_set_consumer(&sqp->sq, l->tail);
	shift_fence_mark_start(sqp);
	shift_ring_set_producer(&sqp->sq, l->head);
}

/**
 * shift_home_return - both ends are ready: run on the default NIC
 * @sqp: the QP, locked.
 *
 * Return: 0 or a negative errno: the QP has to fail.
 */
int shift_home_return(struct shift_qp *sqp)
{
	const struct ib_send_wr *bad;
	int err = to_rts(sqp);

	if (!err && !rings_untouched(sqp))
		err = -EIO;
	if (err) {
		pr_warn_ratelimited("%s qp %u: cannot run on its device again (%d)\n",
				    sqp->sdev->name, sqp->qpn, err);
		return err;
	}
	spin_lock_bh(&sqp->ledger_lock);
	restore_sends(sqp);
	sqp->ledger_live = false;
	sqp->drain.held = false;
	sqp->sent_any = false;
	sqp->stop_status = 0;
	shift_ledger_start(&sqp->ledger, ledger_slot(sqp, sqp->ledger.head));
	spin_unlock_bh(&sqp->ledger_lock);
	shift_home_thaw(sqp);
	sqp->drain.armed = false;
	sqp->heard = sqp->armed[0];
	sqp->sq_psn = shift_start_psn(sqp->cookie, sqp->epoch);
	sqp->rq_psn = sqp->armed[0].psn;
	sqp->path = 0;
	sqp->asks = 0;
	sqp->error_status = 0;
	sqp->reason = SHIFT_REASON_NONE;
	sqp->cause = SHIFT_CAUSE_NONE;
	clear_bit(SHIFT_QP_ERRORED, &sqp->flags);
	clear_bit(SHIFT_QP_FENCED, &sqp->flags);
	/* doorbells that were kept find the driver now */
	clear_bit(SHIFT_QP_GATED, &sqp->flags);
	shift_fence_open(sqp);
	if (sqp->gate.page)
		shift_word_write(&sqp->gate, 0);
	sqp->sdev->saved.post_send(sqp->qp, NULL, &bad);
	shift_stat_inc(SHIFT_STAT_RETURNS);
	shift_notify_qp(sqp, SHIFT_QP_EV_STATE, ktime_get_real_ns());
	return 0;
}

/* Receives that the default QP was given and has completed; negative: not known. */
static int recvs_done(struct shift_qp *sqp)
{
	int n = -ENODATA;
	u8 *slot;

	if (!sqp->recvs.slots)
		return 0;
	down_read(&sqp->sdev->ring_sem);
	slot = kzalloc(sqp->rcq->ring.slot_size, GFP_NOIO);
	if (slot && shift_cq_registered(sqp->rcq))
		n = shift_tally_done(sqp, sqp->rcq, sqp->drain.tally, true, slot);
	up_read(&sqp->sdev->ring_sem);
	kfree(slot);
	return n;
}

/**
 * shift_home_abort - not home after all: the default QP is stopped again
 * @sqp: the QP, locked.
 *
 * The peer may be ahead: what it has sent to the default QP counts.
 *
 * Return: 0; -EIO: what the default QP has done cannot be told.
 */
int shift_home_abort(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->recvs;
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr *attr;
	int done, err = -EIO;

	shift_home_thaw(sqp);
	if (!sqp->drain.armed)
		return 0;
	sqp->drain.armed = false;
	if (!sqp->qp || !sqp->registered)
		return -EIO;
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	if (!shift_fence_reset(sqp) && attr &&
	    !sqp->sdev->saved.query_qp(sqp->qp, attr, IB_QP_RQ_PSN, &init)) {
		shift_fence_heard(sqp, 0, attr->rq_psn & SHIFT_PSN_MASK);
		err = 0;
	}
	kfree(attr);
	done = recvs_done(sqp);

	/* the ledger is the record, the rings its mailbox */
	spin_lock_bh(&sqp->ledger_lock);
	if (done < 0 || done > r->head - r->tail) {
		err = -EIO;
	} else {
		r->tail += done;
		r->done = r->tail;
		r->post = r->tail;
	}
	shift_ring_set_consumer(&sqp->sq, ledger_slot(sqp, sqp->ledger.tail));
	shift_ring_set_producer(&sqp->sq, ledger_slot(sqp, sqp->ledger.head));
	if (r->slots) {
		shift_ring_set_consumer(&sqp->rq, r->tail);
		shift_ring_set_producer(&sqp->rq, r->head);
	}
	sqp->drain.held = false;
	spin_unlock_bh(&sqp->ledger_lock);
	shift_fence_open(sqp);
	return err;
}
