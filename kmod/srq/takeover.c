// SPDX-License-Identifier: GPL-2.0
/*
 * Which receives of an SRQ are outstanding, as it leaves the place that they were posted to: the
 * application's ring or a pool.  Those of the ring are all in the provider's table that no CQ has a
 * completion of.  They are taken over to another pool, or given back to the ring for good.
 *
 * The application can write to the table and to its CQs.  So all that is read there is bounded,
 * and what is wrong there harms the application only.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include "core/kernel_srq.h"
#include "core/node.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/ring.h"
#include "core/srq.h"
#include "pure/fsm.h"
#include "pure/srq_id.h"
#include "srq/internal.h"
#include "srq/srq.h"

#define HOLD_US		20000	/* for a CQ to be registered again, scaled */

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
	u32 recv_id = ssrq->kernel ? shift_kernel_srq_recv_id(ssrq, wr_id) :
		      shift_srq_id_of(wr_id, ssrq->rings.key, ssrq->rings.entries);

	if (recv_id && recv_id == READ_ONCE(shift_srq_entry(ssrq, recv_id)->recv_id) &&
	    (!status || !srq_error_is_kept(ssrq, qpn)))
		ssrq->rec.known[recv_id & SHIFT_RECV_ID_INDEX] = recv_id;
}

/* The receive of a WQE, as srq_note_entries() has noted it; 0: none any more. */
static u32 srq_wqe_id(const struct shift_srq *ssrq, u32 wqe)
{
	u32 recv_id = ssrq->rec.lent.ids[wqe];

	if (!recv_id) {
		/* as the process has it: it must name no other entry */
		recv_id = ssrq->rec.scratch[wqe].recv_id;
		return (recv_id & SHIFT_RECV_ID_INDEX) == wqe ? recv_id : 0;
	}
	return ssrq->rec.scratch[recv_id & SHIFT_RECV_ID_INDEX].recv_id == recv_id ? recv_id : 0;
}

/* Is all that it has completed hidden, as it was taken to empty the ring?  See empty.c. */
static bool member_drains(const struct shift_qp *sqp)
{
	return READ_ONCE(sqp->app.state) == IB_QPS_INIT;
}

/* The same, if a completion names the WQE: @index.  See srq_note_entries(). */
static void srq_note_entry(void *arg, u64 index, u32 status, u32 qpn)
{
	struct shift_srq *ssrq = arg;
	struct shift_qp *sqp;
	u32 i, recv_id;

	if (index >= ssrq->rings.ring.slots)
		return;
	list_for_each_entry(sqp, &ssrq->members, srqm.node)
		if (sqp->qpn == qpn && !member_drains(sqp) &&
		    (!status || !srq_error_is_kept(ssrq, qpn)))
			goto completed;
	/* errors of one that was destroyed are dropped, and their receives stay in the table */
	for (i = 0; i < min_t(u32, ssrq->nleavers, SHIFT_SRQ_LEAVERS); i++)
		if (ssrq->leaver[i] == qpn && !status)
			goto completed;
	return;
completed:
	recv_id = srq_wqe_id(ssrq, index);
	if (recv_id)
		ssrq->rec.known[recv_id & SHIFT_RECV_ID_INDEX] = recv_id;
}

/*
 * Note which receive is in each entry, before the CQs are looked at.  As long as a CQ has a
 * completion that names a WQE, nothing else can be posted in that WQE.
 */
static void srq_note_entries(struct shift_srq *ssrq)
{
	u32 i;

	for (i = 0; i < ssrq->rings.entries; i++) {
		/* before any CQ is read */
		ssrq->rec.scratch[i].recv_id = smp_load_acquire(&shift_srq_entry(ssrq, i)->recv_id);
	}
}

/* Look through all CQs of the SRQ.  One that is being resized is registered again in a moment. */
static int srq_scan_cqs(struct shift_srq *ssrq)
{
	const struct shift_srq_ops *ops = ssrq->ops;
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
			if (!shift_cq_registered(link->scq)) {
				err = gone ? err : -EIO;
				continue;
			}
			if (ops->settle && ops->settle(link->scq))
				err = -ENOSPC;
			ops->unpolled(link->scq, ops->by_entry ? srq_note_entry :
				      srq_note_completed, ssrq);
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

	/* its device goes: what the driver has completed stays in its CQs, for who polls it then */
	if (ssrq->kernel && !shift_dev_tracks(ssrq->sdev))
		return -ENODEV;
	err = srq_scan_cqs(ssrq);
	if (err)
		return err;
	/* an error that was polled is shown by now, and its entry free, or it is kept back */
	if (ssrq->kernel)
		synchronize_rcu_expedited();
	if (ssrq->ops->empty)
		ssrq->ops->empty(ssrq);
	/* the provider fills in an entry, then its id, then counts it */
	posted = smp_load_acquire(&shift_srq_table(ssrq)->posted);
	for (i = 0; i < ssrq->rings.entries; i++) {
		/* before the rest of the entry is read */
		rec->scratch[i].recv_id = smp_load_acquire(&shift_srq_entry(ssrq, i)->recv_id);
		rec->scratch[i].seq = READ_ONCE(shift_srq_entry(ssrq, i)->seq);
	}
	n = shift_srq_ids_outstanding(rec->scratch, ssrq->rings.entries, rec->known, posted);
	spin_lock_bh(&ssrq->post_lock);
	for (i = 0; i < n; i++)
		shift_srq_take(ssrq, rec->scratch[i].recv_id);
	/* a KICK may have looked further */
	if ((s64)(posted - rec->seen) > 0)
		rec->seen = posted;
	spin_unlock_bh(&ssrq->post_lock);
	return 0;
}

/* From now on what the user posts is left to the kernel. */
static int srq_hold(struct shift_srq *ssrq)
{
	if (ssrq->kernel)
		return shift_kernel_srq_hold(ssrq);
	shift_word_write(&ssrq->rings.flag, SHIFT_SRQ_FLAG_AWAY);
	shift_fence_barrier();
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

	err = srq_hold(ssrq);
	if (err)
		return err;
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
	/* users in the kernel may connect other QPs, to which the ring, as it is, is of use */
	if (err && !ssrq->kernel)
		return err;
	/* a KICK that comes earlier is about posts that are looked at once more */
	spin_lock_bh(&ssrq->post_lock);
	/* what the driver has is not taken over, also not by the next post */
	if (err && (s64)(ssrq->kernel->held_at - ssrq->rec.seen) > 0)
		ssrq->rec.seen = ssrq->kernel->held_at;
	ssrq->rec.away = true;
	spin_unlock_bh(&ssrq->post_lock);
	return err;
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
	shift_srq_post(ssrq);
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
	shift_srq_ingest(ssrq);
	shift_srq_post(ssrq);
	spin_unlock_bh(&ssrq->post_lock);
	return 0;
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
	if (ssrq->rec.lends == lends || (shift_srq_is_one_way(ssrq) && !ssrq->rec.lent.empty))
		return;
	spin_lock_bh(&ssrq->post_lock);
	/* nobody draws from it any more: what is not complete the device keeps */
	if (!lends && shift_srq_is_one_way(ssrq) && ssrq->rings.registered)
		ssrq->rec.lent.empty = !ssrq->ops->posted(ssrq);
	ssrq->rec.lends = lends;
	spin_unlock_bh(&ssrq->post_lock);
	/* if the CQs cannot be looked at the rest stays in the ring, for QPs that come later */
	if (!lends && (!ssrq->rings.registered || ssrq->dead || READ_ONCE(ssrq->spoiled) ||
		       srq_take_outstanding(ssrq))) {
		ssrq->rec.lent.empty = true;
		return;
	}
	spin_lock_bh(&ssrq->post_lock);
	shift_srq_post(ssrq);
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
	shift_srq_tell_limit(ssrq);
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
	shift_srq_ingest(ssrq);
	room = ssrq->ops->posted(ssrq) + rec->npending + rec->nposted <
	       ssrq->rings.ring.slots;
	if (room) {
		srq_recall(ssrq);
		rec->lends = true;
		list_for_each_entry_safe(recv, next, &rec->pending, node)
			shift_srq_lend(ssrq, recv);
		shift_srq_look_at_limit(ssrq);
		rec->lends = false;
		rec->away = false;
		shift_word_write(&ssrq->rings.flag, 0);
	}
	spin_unlock_bh(&ssrq->post_lock);
	if (room)
		srq_watch_no_more(ssrq);
	return room;
}
