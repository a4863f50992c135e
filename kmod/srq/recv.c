// SPDX-License-Identifier: GPL-2.0
/*
 * Receives of an SRQ that is away.  They are found in the provider's table, posted on a
 * kernel-owned SRQ, and completed through the side ring of the CQ of the QP that received.
 *
 * The application can write to the table.  So all that is read there is bounded, and what is wrong
 * there harms the application only.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include "core/node.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/ring.h"
#include "core/srq.h"
#include "pure/fsm.h"
#include "pure/srq_id.h"
#include "pure/wr.h"
#include "srq/srq.h"

#define HOLD_US		20000	/* for a CQ to be registered again, scaled */

static struct shift_abi_srq_table *srq_table(const struct shift_srq *ssrq)
{
	return ssrq->rings.table;
}

static struct shift_abi_srq_entry *srq_entry(const struct shift_srq *ssrq, u32 recv_id)
{
	return ssrq->rings.table + ssrq->rings.entry_offset +
	       (size_t)(recv_id & SHIFT_RECV_ID_INDEX) * ssrq->rings.entry_size;
}

/* Take over the receive with this id; post_lock. */
static void srq_take(struct shift_srq *ssrq, u32 recv_id)
{
	struct shift_srq_record *rec = &ssrq->rec;
	const struct shift_abi_srq_entry *e = srq_entry(ssrq, recv_id);
	u32 i, index = recv_id & SHIFT_RECV_ID_INDEX;
	struct shift_srq_recv *recv = &rec->recv[index];
	struct shift_sge *sge = &rec->sge[(size_t)index * max(ssrq->max_sge, 1u)];

	lockdep_assert_held(&ssrq->post_lock);
	/* taken over meanwhile; or the entry is used again before its completion was shown */
	if (rec->known[index] == recv_id || recv->state != SHIFT_SRQ_RECV_FREE)
		return;
	rec->known[index] = recv_id;
	recv->recv_id = recv_id;
	recv->num_sge = min(READ_ONCE(e->num_sge), ssrq->max_sge);
	for (i = 0; i < recv->num_sge; i++) {
		sge[i].addr = READ_ONCE(e->sge[i].addr);
		sge[i].length = READ_ONCE(e->sge[i].length);
		sge[i].lkey = READ_ONCE(e->sge[i].lkey);
	}
	recv->state = SHIFT_SRQ_RECV_PENDING;
	list_add_tail(&recv->node, &rec->pending);
	rec->npending++;
}

/*
 * Translate the buffers of a receive into ssrq->rec.wr_sge; returns how many.  A bad key makes an
 * error only when a message comes, as it does on the application's SRQ.
 */
static u32 srq_translate(struct shift_srq *ssrq, const struct shift_srq_recv *recv, u8 path)
{
	u32 i, index = recv->recv_id & SHIFT_RECV_ID_INDEX;
	const struct shift_sge *sge = &ssrq->rec.sge[(size_t)index * max(ssrq->max_sge, 1u)];
	struct ib_sge *to = ssrq->rec.wr_sge;

	for (i = 0; i < recv->num_sge; i++, sge++) {
		if (!sge->length)
			continue;
		to->addr = sge->addr;
		to->length = sge->length;
		if (shift_mr_translate(ssrq->spd, sge, path, &to->lkey))
			to->lkey = SHIFT_NO_KEY;
		to++;
	}
	return to - ssrq->rec.wr_sge;
}

/* How many receives the application's ring has; post_lock. */
static u32 srq_lent(const struct shift_srq *ssrq)
{
	lockdep_assert_held(&ssrq->post_lock);
	return ssrq->rec.lends && ssrq->rings.registered ?
	       ssrq->sdev->provider->srq->posted(ssrq) : 0;
}

/*
 * Lend a receive to the application's ring, as if the application had posted it there: the kernel
 * forgets it, and finds it again as it has found it first, in srq_take_outstanding(); post_lock.
 */
static int srq_lend(struct shift_srq *ssrq, struct shift_srq_recv *recv)
{
	struct shift_srq_record *rec = &ssrq->rec;
	u32 index = recv->recv_id & SHIFT_RECV_ID_INDEX;
	int err;

	lockdep_assert_held(&ssrq->post_lock);
	/* before it can be completed */
	rec->known[index] = SHIFT_RECV_ID_NONE;
	err = ssrq->sdev->provider->srq->post(ssrq, (u64)ssrq->rings.key << 32 | recv->recv_id,
					     &rec->sge[(size_t)index * max(ssrq->max_sge, 1u)],
					     recv->num_sge);
	if (err) {
		rec->known[index] = recv->recv_id;
		return err;
	}
	list_del_init(&recv->node);
	recv->state = SHIFT_SRQ_RECV_FREE;
	rec->npending--;
	return 0;
}

static int srq_post_one(struct shift_srq *ssrq, struct shift_srq_recv *recv)
{
	struct shift_srq_record *rec = &ssrq->rec;
	struct ib_recv_wr wr = { .sg_list = rec->wr_sge, .wr_cqe = &recv->cqe };
	const struct ib_recv_wr *bad;
	int err;

	wr.num_sge = srq_translate(ssrq, recv, rec->post_path);
	/* full: the next completion makes room */
	err = ib_post_srq_recv(rec->post_to, &wr, &bad);
	if (err)
		return err;
	list_move_tail(&recv->node, &rec->posted);
	recv->state = SHIFT_SRQ_RECV_POSTED;
	rec->npending--;
	rec->nposted++;
	return 0;
}

/*
 * What was posted to a pool cannot be taken back.  So a part is kept, for a QP that is connected
 * later and draws from the ring: a quarter, rounded up, but the pool is not left without any.
 */
static bool srq_keeps(const struct shift_srq_record *rec)
{
	return !rec->lends && rec->nposted &&
	       rec->npending <= DIV_ROUND_UP(rec->npending + rec->nposted, 4);
}

/*
 * Post what can be posted; post_lock.  If QPs draw from the ring as well as from the pool, each of
 * both gets what is next when it has fewer.
 */
static void srq_post_all(struct shift_srq *ssrq)
{
	struct shift_srq_record *rec = &ssrq->rec;

	lockdep_assert_held(&ssrq->post_lock);
	while (!list_empty(&rec->pending)) {
		struct shift_srq_recv *recv = list_first_entry(&rec->pending,
							       struct shift_srq_recv, node);
		bool room = rec->post_to && rec->nposted < rec->depth;

		if (rec->lends && ssrq->rings.registered && !READ_ONCE(ssrq->spoiled) &&
		    (!room || srq_lent(ssrq) < rec->nposted) && !srq_lend(ssrq, recv))
			continue;
		if (!room || srq_keeps(rec) || srq_post_one(ssrq, recv))
			return;
	}
}

/* Take over what was posted since the last look, in order; post_lock. */
static void srq_ingest(struct shift_srq *ssrq)
{
	struct shift_srq_record *rec = &ssrq->rec;
	u32 n, mask = ssrq->rings.entries - 1;
	u64 posted;

	lockdep_assert_held(&ssrq->post_lock);
	/* before the order, and the entries, up to there are read */
	posted = smp_load_acquire(&srq_table(ssrq)->posted);

	for (n = 0; n < ssrq->rings.entries && rec->seen != posted; n++, rec->seen++) {
		u32 recv_id = READ_ONCE(srq_table(ssrq)->order[rec->seen & mask]);
		u32 index = recv_id & SHIFT_RECV_ID_INDEX;

		if (recv_id >> SHIFT_RECV_ID_GENERATION && index < ssrq->rings.entries &&
		    recv_id != rec->known[index] &&
		    /* an entry is filled in before it has its id */
		    recv_id == smp_load_acquire(&srq_entry(ssrq, recv_id)->recv_id))
			srq_take(ssrq, recv_id);
	}
	rec->seen = posted;
}

/**
 * shift_srq_doorbell - the application posted receives
 * @ssrq: the SRQ.
 *
 * Context: any that may take a spinlock, but softirq.
 */
void shift_srq_doorbell(struct shift_srq *ssrq)
{
	spin_lock_bh(&ssrq->post_lock);
	if (ssrq->rec.away) {
		srq_ingest(ssrq);
		srq_post_all(ssrq);
	}
	spin_unlock_bh(&ssrq->post_lock);
}

/* Is an error completion of a QP kept from the application?  As shift_cqe_filter() decides. */
static bool srq_error_is_kept(struct shift_srq *ssrq, u32 qpn)
{
	struct shift_qp *sqp;

	list_for_each_entry(sqp, &ssrq->members, srqm.node) {
		enum shift_state state = READ_ONCE(sqp->fo.state);

		if (sqp->qpn == qpn)
			return test_bit(SHIFT_QPB_FENCED, &sqp->pend.flags) ||
			       test_bit(SHIFT_QPB_STALE, &sqp->pend.flags) ||
			       (state != SHIFT_ST_OFF && state != SHIFT_ST_APP);
	}
	return false;
}

/* A completion lies in a CQ: its receive is not outstanding. */
static void srq_note_completed(void *arg, u64 wr_id, u32 status, u32 qpn)
{
	struct shift_srq *ssrq = arg;
	u32 recv_id = shift_srq_id_of(wr_id, ssrq->rings.key, ssrq->rings.entries);

	if (recv_id && recv_id == READ_ONCE(srq_entry(ssrq, recv_id)->recv_id) &&
	    (!status || !srq_error_is_kept(ssrq, qpn)))
		ssrq->rec.known[recv_id & SHIFT_RECV_ID_INDEX] = recv_id;
}

/* The same, if a completion names the entry: @index.  See srq_note_entries(). */
static void srq_note_entry(void *arg, u64 index, u32 status, u32 qpn)
{
	struct shift_srq *ssrq = arg;
	struct shift_qp *sqp;
	u32 i;

	if (index >= ssrq->rings.entries)
		return;
	list_for_each_entry(sqp, &ssrq->members, srqm.node)
		if (sqp->qpn == qpn && (!status || !srq_error_is_kept(ssrq, qpn)))
			goto completed;
	/* errors of one that was destroyed are dropped, and their receives stay in the table */
	for (i = 0; i < min_t(u32, ssrq->nleavers, SHIFT_SRQ_LEAVERS); i++)
		if (ssrq->leaver[i] == qpn && !status)
			goto completed;
	return;
completed:
	ssrq->rec.known[index] = ssrq->rec.scratch[index].recv_id;
}

/*
 * Note which receive is in each entry, before the CQs are looked at.  As long as a CQ has a
 * completion that names an entry, nothing else can be posted in that entry.
 */
static void srq_note_entries(struct shift_srq *ssrq)
{
	u32 i;

	for (i = 0; i < ssrq->rings.entries; i++) {
		/* before any CQ is read */
		ssrq->rec.scratch[i].recv_id = smp_load_acquire(&srq_entry(ssrq, i)->recv_id);
	}
}

/* Look through all CQs of the SRQ.  One that is being resized is registered again in a moment. */
static int srq_scan_cqs(struct shift_srq *ssrq)
{
	const struct shift_srq_ops *ops = ssrq->sdev->provider->srq;
	u64 end = shift_from_now_us(HOLD_US);
	struct shift_srq_cq *link;
	int err;

	if (ops->by_entry)
		srq_note_entries(ssrq);
	for (;;) {
		err = 0;
		down_read(&ssrq->sdev->ring_sem);
		list_for_each_entry(link, &ssrq->cqs, node) {
			bool gone;

			spin_lock_bh(&link->scq->lock);
			gone = !link->scq->cq;
			spin_unlock_bh(&link->scq->lock);
			if (shift_cq_registered(link->scq))
				ops->unpolled(link->scq, ops->by_entry ? srq_note_entry :
					      srq_note_completed, ssrq);
			else if (!gone)
				err = -EIO;
		}
		up_read(&ssrq->sdev->ring_sem);
		if (!err || ktime_get_ns() > end)
			return err;
		usleep_range(500, 1000);
	}
}

/*
 * Take over what is outstanding in the table and is not known: what the application's ring has, or
 * what a QP had begun to receive into.  No QP that draws from the ring executes one packet more.
 */
static int srq_take_outstanding(struct shift_srq *ssrq)
{
	struct shift_srq_record *rec = &ssrq->rec;
	u32 i, n;
	u64 posted;
	int err;

	err = srq_scan_cqs(ssrq);
	if (err)
		return err;
	if (ssrq->sdev->provider->srq->empty)
		ssrq->sdev->provider->srq->empty(ssrq);
	/* the provider fills in an entry, then its id, then counts it */
	posted = smp_load_acquire(&srq_table(ssrq)->posted);
	for (i = 0; i < ssrq->rings.entries; i++) {
		/* before the rest of the entry is read */
		rec->scratch[i].recv_id = smp_load_acquire(&srq_entry(ssrq, i)->recv_id);
		rec->scratch[i].seq = READ_ONCE(srq_entry(ssrq, i)->seq);
	}
	n = shift_srq_ids_outstanding(rec->scratch, ssrq->rings.entries, rec->known, posted);
	spin_lock_bh(&ssrq->post_lock);
	for (i = 0; i < n; i++)
		srq_take(ssrq, rec->scratch[i].recv_id);
	/* a KICK may have looked further */
	if ((s64)(posted - rec->seen) > 0)
		rec->seen = posted;
	spin_unlock_bh(&ssrq->post_lock);
	return 0;
}

/*
 * Take over the outstanding receives of the application's ring.  No QP on the SRQ executes one
 * packet more.  The application may go on posting: what it posts is either in the table when that
 * is looked at, or is followed by a KICK.
 */
static int srq_take_from_ring(struct shift_srq *ssrq)
{
	struct ib_srq_attr attr = {}, none = {};
	int err;

	shift_word_write(&ssrq->rings.flag, SHIFT_SRQ_FLAG_AWAY);
	shift_fence_barrier();
	/*
	 * From now on the kernel watches the limit, and not the device.  If the device does not
	 * tell whether its event is still to come, the application rather gets two.
	 */
	if (!ssrq->rec.away && !ssrq->sdev->saved.query_srq(ssrq->srq, &attr)) {
		WRITE_ONCE(ssrq->rec.limit, attr.srq_limit);
		if (attr.srq_limit)
			ssrq->sdev->saved.modify_srq(ssrq->srq, &none, IB_SRQ_LIMIT, NULL);
	}
	err = srq_take_outstanding(ssrq);
	if (err)
		return err;
	/* a KICK that comes earlier is about posts that are looked at once more */
	spin_lock_bh(&ssrq->post_lock);
	ssrq->rec.away = true;
	spin_unlock_bh(&ssrq->post_lock);
	return 0;
}

/* What was posted on the pool in use and is not completed is to be posted elsewhere; post_lock. */
static void srq_recall(struct shift_srq *ssrq)
{
	struct shift_srq_record *rec = &ssrq->rec;
	struct shift_srq_recv *recv;

	lockdep_assert_held(&ssrq->post_lock);
	list_for_each_entry(recv, &rec->posted, node)
		recv->state = SHIFT_SRQ_RECV_PENDING;
	list_splice_init(&rec->posted, &rec->pending);
	rec->npending += rec->nposted;
	rec->nposted = 0;
	rec->post_to = NULL;
}

static void srq_take_from_pool(struct shift_srq *ssrq)
{
	spin_lock_bh(&ssrq->post_lock);
	srq_recall(ssrq);
	spin_unlock_bh(&ssrq->post_lock);
}

/**
 * shift_srq_pool_lost - the device of the pool in use goes, and no QP is on the pool any more
 * @ssrq: the SRQ; its lock is held.
 *
 * QPs that draw from the application's ring get what was posted there.
 *
 * Context: process context.
 */
void shift_srq_pool_lost(struct shift_srq *ssrq)
{
	lockdep_assert_held(&ssrq->lock);
	srq_take_from_pool(ssrq);
	spin_lock_bh(&ssrq->post_lock);
	srq_post_all(ssrq);
	spin_unlock_bh(&ssrq->post_lock);
}

/**
 * shift_srq_take_over - move all that is outstanding to ssrq->target
 * @ssrq: the SRQ; its lock is held, and no QP draws from ssrq->pool any more.
 *
 * Context: process context; sleeps for some ms.
 * Return: 0; a negative errno: it is not known what is outstanding.
 */
int shift_srq_take_over(struct shift_srq *ssrq)
{
	int err = 0;

	lockdep_assert_held(&ssrq->lock);
	if (!ssrq->rings.registered || !ssrq->srq)
		return -EIO;
	if (ssrq->pool)
		srq_take_from_pool(ssrq);
	else if (READ_ONCE(ssrq->spoiled))
		err = -EBUSY;	/* another ring may have some, or a QP may draw from this one */
	else
		err = srq_take_from_ring(ssrq);
	if (err)
		return err;
	spin_lock_bh(&ssrq->post_lock);
	ssrq->rec.post_to = ssrq->target->srq;
	ssrq->rec.post_path = ssrq->target->path;
	ssrq->rec.depth = ssrq->target->depth;
	srq_ingest(ssrq);
	srq_post_all(ssrq);
	spin_unlock_bh(&ssrq->post_lock);
	return 0;
}

static void srq_tell_limit(struct shift_srq *ssrq)
{
	struct ib_event event = { .event = IB_EVENT_SRQ_LIMIT_REACHED };
	struct ib_srq *srq = ssrq->srq;

	ssrq->rec.limit = 0;
	if (!srq || !srq->event_handler)
		return;
	event.device = srq->device;
	event.element.srq = srq;
	srq->event_handler(&event, srq->srq_context);
}

static void srq_limit_event(struct shift_srq *ssrq)
{
	const struct shift_srq_record *rec = &ssrq->rec;

	if (rec->limit && rec->npending + rec->nposted + srq_lent(ssrq) < rec->limit)
		srq_tell_limit(ssrq);
}

/**
 * shift_srq_lends - QPs begin to draw from the application's ring, or have stopped
 * @ssrq: an SRQ that is away; its lock is held.
 * @lends: they begin; else no QP draws from the ring any more.
 *
 * While they do, the ring gets a share of the receives.  What is left of it is taken back then.
 *
 * Context: process context; sleeps for some ms.
 */
void shift_srq_lends(struct shift_srq *ssrq, bool lends)
{
	lockdep_assert_held(&ssrq->lock);
	if (ssrq->rec.lends == lends || shift_srq_is_one_way(ssrq))
		return;
	spin_lock_bh(&ssrq->post_lock);
	ssrq->rec.lends = lends;
	spin_unlock_bh(&ssrq->post_lock);
	/* if the CQs cannot be looked at the rest stays in the ring, for QPs that come later */
	if (!lends && (!ssrq->rings.registered || ssrq->dead || READ_ONCE(ssrq->spoiled) ||
		       srq_take_outstanding(ssrq)))
		return;
	spin_lock_bh(&ssrq->post_lock);
	srq_post_all(ssrq);
	spin_unlock_bh(&ssrq->post_lock);
}

/* The device watches the limit again.  If it refuses, the application rather gets its event now. */
static void srq_watch_no_more(struct shift_srq *ssrq)
{
	struct ib_srq_attr attr = { .srq_limit = READ_ONCE(ssrq->rec.limit) };

	if (!attr.srq_limit ||
	    !ssrq->sdev->saved.modify_srq(ssrq->srq, &attr, IB_SRQ_LIMIT, NULL))
		return;
	spin_lock_bh(&ssrq->post_lock);
	srq_tell_limit(ssrq);
	spin_unlock_bh(&ssrq->post_lock);
}

/**
 * shift_srq_give_back - put all receives back into the application's ring, for good
 * @ssrq: an SRQ that is away; its lock is held, and no QP draws from a pool.
 *
 * The provider holds its lock, so that it posts nothing now.  From here on it posts as if its SRQ
 * had never been away.
 *
 * Context: process context; sleeps.
 * Return: true; false: there is no room for all of them, and nothing was done.
 */
bool shift_srq_give_back(struct shift_srq *ssrq)
{
	struct shift_srq_record *rec = &ssrq->rec;
	struct shift_srq_recv *recv, *next;
	bool room;

	lockdep_assert_held(&ssrq->lock);
	spin_lock_bh(&ssrq->post_lock);
	/* its KICK may be under way, and finds nothing then */
	srq_ingest(ssrq);
	room = ssrq->sdev->provider->srq->posted(ssrq) + rec->npending + rec->nposted <
	       ssrq->rings.ring.slots;
	if (room) {
		srq_recall(ssrq);
		rec->lends = true;
		list_for_each_entry_safe(recv, next, &rec->pending, node)
			srq_lend(ssrq, recv);
		srq_limit_event(ssrq);
		rec->lends = false;
		rec->away = false;
		shift_word_write(&ssrq->rings.flag, 0);
	}
	spin_unlock_bh(&ssrq->post_lock);
	if (room)
		srq_watch_no_more(ssrq);
	return room;
}

/**
 * shift_srq_watch_limit - look whether few receives are left, as the ring tells nobody
 * @ssrq: the SRQ.
 *
 * Context: any that may take a spinlock, but softirq.
 * Return: true if it is to be called again.
 */
bool shift_srq_watch_limit(struct shift_srq *ssrq)
{
	bool again;

	spin_lock_bh(&ssrq->post_lock);
	if (ssrq->rec.lends)
		srq_limit_event(ssrq);
	again = ssrq->rec.lends && ssrq->rec.limit;
	spin_unlock_bh(&ssrq->post_lock);
	return again;
}

/**
 * shift_srq_got - a QP has completed a receive of its SRQ
 * @sqp: the QP.
 * @recv: the receive.
 * @got: what was received.
 *
 * Context: any that may take a spinlock; ledger_lock.
 */
void shift_srq_got(struct shift_qp *sqp, struct shift_srq_recv *recv,
		   const struct shift_recv *got)
{
	struct shift_srq *ssrq = recv->ssrq;

	lockdep_assert_held(&sqp->ledger_lock);
	spin_lock_bh(&ssrq->post_lock);
	if (recv->state == SHIFT_SRQ_RECV_POSTED) {
		recv->got = *got;
		recv->state = SHIFT_SRQ_RECV_DONE;
		list_move_tail(&recv->node, &sqp->srqm.done);
		ssrq->rec.nposted--;
		srq_limit_event(ssrq);
		srq_post_all(ssrq);
	}
	spin_unlock_bh(&ssrq->post_lock);
}

static int srq_push_wc(struct shift_qp *sqp, const struct shift_srq_recv *recv)
{
	struct shift_abi_wc wc = {
		.wr_id = (u64)recv->ssrq->rings.key << 32 | recv->recv_id,
		.status = recv->got.status,
		/* a device need not set the opcode of a completion in error */
		.opcode = recv->got.opcode | IB_WC_RECV,
		.byte_len = recv->got.byte_len,
		.ex = recv->got.ex,
		.wc_flags = recv->got.wc_flags,
		.qp_num = sqp->qpn,
		.port_num = 1,
	};

	return shift_cq_push(sqp->rcq, &wc, NULL);
}

/**
 * shift_srq_deliver - show the application what a QP has received
 * @sqp: the QP, on an SRQ; ledger_lock.
 * @all: forget what cannot be shown.
 *
 * Return: -ENOSPC: try again.
 */
int shift_srq_deliver(struct shift_qp *sqp, bool all)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	struct shift_srq_recv *recv, *next;
	int err = 0;

	lockdep_assert_held(&sqp->ledger_lock);
	spin_lock_bh(&ssrq->post_lock);
	list_for_each_entry_safe(recv, next, &sqp->srqm.done, node) {
		err = srq_push_wc(sqp, recv);
		if (err == -ENOSPC && !all)
			break;
		err = 0;
		/* it can be posted again as soon as the lock is free */
		list_del_init(&recv->node);
		recv->state = SHIFT_SRQ_RECV_FREE;
	}
	spin_unlock_bh(&ssrq->post_lock);
	return err;
}

/* The QP goes: show what it has received, as far as there is room; sqp->lock. */
void shift_srq_drop_done(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	spin_lock_bh(&sqp->ledger_lock);
	shift_srq_deliver(sqp, true);
	spin_unlock_bh(&sqp->ledger_lock);
}
