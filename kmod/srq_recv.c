// SPDX-License-Identifier: GPL-2.0
/*
 * Receives of an SRQ that is away: found in the provider's table, posted on a
 * kernel-owned SRQ, completed through the side ring of the CQ of the QP that got them.
 *
 * The table is the user's memory: what it says is bounded, and wrong only for him.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/ktime.h>
#include <rdma/ib_user_verbs.h>
#include "srq.h"
#include "standby.h"

#define RETRY_MS	20
#define HOLD_US		20000	/* for a CQ to be registered again, scaled */

static struct shift_abi_srq_table *table(const struct shift_srq *ssrq)
{
	return ssrq->table;
}

static struct shift_abi_srq_entry *entry(const struct shift_srq *ssrq, u32 tag)
{
	return ssrq->table + ssrq->entry_offset +
	       (size_t)(tag & SHIFT_TAG_INDEX) * ssrq->entry_size;
}

/* Is this the name of a receive?  An error completion does not tell otherwise. */
bool shift_srq_is_recv(const struct shift_qp *sqp, u64 wr_id)
{
	const struct shift_srq *ssrq = sqp->ssrq;

	return ssrq && ssrq->table && shift_tag_of(wr_id, ssrq->key, ssrq->entries);
}

/* From here on it is ours; post_lock. */
static void take(struct shift_srq *ssrq, u32 tag)
{
	const struct shift_abi_srq_entry *e = entry(ssrq, tag);
	u32 i, index = tag & SHIFT_TAG_INDEX;
	struct shift_srq_recv *recv = &ssrq->recv[index];
	struct shift_sge *sge = &ssrq->sge[(size_t)index * max(ssrq->max_sge, 1u)];

	/* used again before its completion was shown */
	if (recv->state != SHIFT_SRQ_RECV_FREE)
		return;
	ssrq->known[index] = tag;
	recv->tag = tag;
	recv->num_sge = min(READ_ONCE(e->num_sge), ssrq->max_sge);
	for (i = 0; i < recv->num_sge; i++) {
		sge[i].addr = READ_ONCE(e->sge[i].addr);
		sge[i].length = READ_ONCE(e->sge[i].length);
		sge[i].lkey = READ_ONCE(e->sge[i].lkey);
	}
	recv->state = SHIFT_SRQ_RECV_PENDING;
	list_add_tail(&recv->node, &ssrq->pending);
	ssrq->npending++;
}

/* Into ssrq->wr_sge; returns how many.  A bad key is for the message that meets it. */
static u32 translate(struct shift_srq *ssrq, const struct shift_srq_recv *recv, u8 path)
{
	u32 i, index = recv->tag & SHIFT_TAG_INDEX;
	const struct shift_sge *sge = &ssrq->sge[(size_t)index * max(ssrq->max_sge, 1u)];
	struct ib_sge *to = ssrq->wr_sge;

	for (i = 0; i < recv->num_sge; i++, sge++) {
		if (!sge->length)
			continue;
		to->addr = sge->addr;
		to->length = sge->length;
		if (shift_mr_translate(ssrq->spd, sge, path, &to->lkey))
			to->lkey = SHIFT_NO_KEY;
		to++;
	}
	return to - ssrq->wr_sge;
}

/* Post what can be posted; post_lock. */
static void post_all(struct shift_srq *ssrq)
{
	const struct ib_recv_wr *bad;
	struct shift_srq_recv *recv;

	while (ssrq->post_to && ssrq->nposted < ssrq->depth && !list_empty(&ssrq->pending)) {
		struct ib_recv_wr wr = { .sg_list = ssrq->wr_sge };

		recv = list_first_entry(&ssrq->pending, struct shift_srq_recv, node);
		wr.wr_cqe = &recv->cqe;
		wr.num_sge = translate(ssrq, recv, ssrq->post_path);
		/* full: the next completion makes room */
		if (ib_post_srq_recv(ssrq->post_to, &wr, &bad))
			return;
		list_move_tail(&recv->node, &ssrq->posted);
		recv->state = SHIFT_SRQ_RECV_POSTED;
		ssrq->npending--;
		ssrq->nposted++;
	}
}

/* What was posted since the last look, in order; post_lock. */
static void ingest(struct shift_srq *ssrq)
{
	/* the order and the entries up to there */
	u64 posted = smp_load_acquire(&table(ssrq)->posted);
	u32 n, mask = ssrq->entries - 1;

	for (n = 0; n < ssrq->entries && ssrq->seen != posted; n++, ssrq->seen++) {
		u32 tag = READ_ONCE(table(ssrq)->order[ssrq->seen & mask]);
		u32 index = tag & SHIFT_TAG_INDEX;

		if (tag >> SHIFT_TAG_GENERATION && index < ssrq->entries &&
		    tag != ssrq->known[index] &&
		    /* an entry is filled in before it has its tag */
		    tag == smp_load_acquire(&entry(ssrq, tag)->tag))
			take(ssrq, tag);
	}
	ssrq->seen = posted;
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
	if (ssrq->post_to) {
		ingest(ssrq);
		post_all(ssrq);
	}
	spin_unlock_bh(&ssrq->post_lock);
}

/* Is an error completion of a QP kept from the application?  As shift_switch_verdict(). */
static bool kept(struct shift_srq *ssrq, u32 qpn)
{
	struct shift_qp *sqp;

	list_for_each_entry(sqp, &ssrq->members, srq_node) {
		enum shift_state state = READ_ONCE(sqp->state);

		if (sqp->qpn == qpn)
			return test_bit(SHIFT_QP_FENCED, &sqp->flags) ||
			       test_bit(SHIFT_QP_STALE, &sqp->flags) ||
			       (state != SHIFT_ST_OFF && state != SHIFT_ST_APP);
	}
	return false;
}

/* Completions that lie in a CQ: their receives are not outstanding. */
static void scan_cq(struct shift_srq *ssrq, const struct shift_ring *ring)
{
	u32 i, left = ring->slots, end = shift_ring_producer(ring);
	struct ib_uverbs_wc wc;

	for (i = shift_ring_consumer(ring); i != end && left--; i = (i + 1) & (ring->slots - 1)) {
		u32 tag;

		shift_ring_read_slot(ring, i, &wc, sizeof(wc));
		tag = shift_tag_of(wc.wr_id, ssrq->key, ssrq->entries);
		if (tag && tag == READ_ONCE(entry(ssrq, tag)->tag) &&
		    (!wc.status || !kept(ssrq, wc.qp_num)))
			ssrq->known[tag & SHIFT_TAG_INDEX] = tag;
	}
}

/* One that is being resized is registered again in a moment. */
static int scan_cqs(struct shift_srq *ssrq)
{
	u64 end = ktime_get_ns() + (u64)HOLD_US * NSEC_PER_USEC *
		  max(READ_ONCE(shift_deadline_scale), 1u);
	struct shift_srq_cq *link;
	int err;

	for (;;) {
		err = 0;
		down_read(&ssrq->sdev->ring_sem);
		list_for_each_entry(link, &ssrq->cqs, node) {
			bool gone;

			spin_lock_bh(&link->scq->lock);
			gone = !link->scq->cq;
			spin_unlock_bh(&link->scq->lock);
			if (shift_cq_registered(link->scq))
				scan_cq(ssrq, &link->scq->ring);
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
 * From the application's ring: none of its QPs can execute one packet more.  Posts
 * may go on: each is either in the table when it is looked at, or followed by a KICK.
 */
static int take_from_ring(struct shift_srq *ssrq)
{
	struct ib_srq_attr attr = {};
	u32 i, n;
	u64 posted;
	int err;

	shift_word_write(&ssrq->flag, SHIFT_SRQ_FLAG_AWAY);
	shift_fence_barrier();
	err = scan_cqs(ssrq);
	if (err)
		return err;
	if (!ssrq->sdev->saved.query_srq(ssrq->srq, &attr))
		WRITE_ONCE(ssrq->limit, attr.srq_limit);
	/* QPs that are connected later must find nothing there */
	shift_ring_set_producer(&ssrq->ring, shift_ring_consumer(&ssrq->ring));
	/* the provider fills in an entry, then its tag, then counts it */
	posted = smp_load_acquire(&table(ssrq)->posted);
	for (i = 0; i < ssrq->entries; i++) {
		/* what belongs to this tag is there */
		ssrq->scratch[i].tag = smp_load_acquire(&entry(ssrq, i)->tag);
		ssrq->scratch[i].seq = READ_ONCE(entry(ssrq, i)->seq);
	}
	n = shift_tags_outstanding(ssrq->scratch, ssrq->entries, ssrq->known, posted);
	spin_lock_bh(&ssrq->post_lock);
	for (i = 0; i < n; i++)
		take(ssrq, ssrq->scratch[i].tag);
	ssrq->seen = posted;
	spin_unlock_bh(&ssrq->post_lock);
	return 0;
}

/* From a kernel-owned SRQ: all that was posted there and not completed. */
static void take_from_pool(struct shift_srq *ssrq)
{
	struct shift_srq_recv *recv;

	spin_lock_bh(&ssrq->post_lock);
	list_for_each_entry(recv, &ssrq->posted, node)
		recv->state = SHIFT_SRQ_RECV_PENDING;
	list_splice_init(&ssrq->posted, &ssrq->pending);
	ssrq->npending += ssrq->nposted;
	ssrq->nposted = 0;
	ssrq->post_to = NULL;
	spin_unlock_bh(&ssrq->post_lock);
}

/**
 * shift_srq_take_over - move all that is outstanding to ssrq->target
 * @ssrq: the SRQ; its lock is held, and no QP draws from ssrq->pool any more.
 *
 * Context: process context; sleeps for some ms.
 * Return: 0; a negative errno: what is outstanding cannot be told.
 */
int shift_srq_take_over(struct shift_srq *ssrq)
{
	int err = 0;

	lockdep_assert_held(&ssrq->lock);
	if (!ssrq->registered || !ssrq->srq)
		return -EIO;
	if (ssrq->pool)
		take_from_pool(ssrq);
	else
		err = take_from_ring(ssrq);
	if (err)
		return err;
	spin_lock_bh(&ssrq->post_lock);
	ssrq->post_to = ssrq->target->srq;
	ssrq->post_path = ssrq->target->path;
	ssrq->depth = ssrq->target->depth;
	ingest(ssrq);
	post_all(ssrq);
	spin_unlock_bh(&ssrq->post_lock);
	return 0;
}

static void limit_event(struct shift_srq *ssrq)
{
	struct ib_event event = { .event = IB_EVENT_SRQ_LIMIT_REACHED };
	struct ib_srq *srq = ssrq->srq;

	if (!ssrq->limit || ssrq->npending + ssrq->nposted >= ssrq->limit)
		return;
	ssrq->limit = 0;
	if (!srq || !srq->event_handler)
		return;
	event.device = srq->device;
	event.element.srq = srq;
	srq->event_handler(&event, srq->srq_context);
}

/* @sqp got it; ledger_lock. */
static void got(struct shift_qp *sqp, struct shift_srq_recv *recv, const struct ib_wc *wc)
{
	struct shift_recv e = shift_recv_got(sqp, wc);
	struct shift_srq *ssrq = recv->ssrq;

	spin_lock_bh(&ssrq->post_lock);
	if (recv->state == SHIFT_SRQ_RECV_POSTED) {
		recv->got = e;
		recv->state = SHIFT_SRQ_RECV_DONE;
		list_move_tail(&recv->node, &sqp->srq_done);
		ssrq->nposted--;
		limit_event(ssrq);
		post_all(ssrq);
	}
	spin_unlock_bh(&ssrq->post_lock);
}

/* Softirq, or a fence.  A flush means that the QP broke: the receive stays posted. */
void shift_srq_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct shift_srq_recv *recv = container_of(wc->wr_cqe, struct shift_srq_recv, cqe);
	struct shift_standby *b = cq->cq_context;
	struct shift_qp *sqp = b->sqp;
	bool failed = wc->status != IB_WC_SUCCESS;

	spin_lock_bh(&sqp->ledger_lock);
	if (shift_standby_flushed(b, wc)) {
		spin_unlock_bh(&sqp->ledger_lock);
		return;
	}
	if (wc->status != IB_WC_WR_FLUSH_ERR) {
		got(sqp, recv, wc);
		b->recv_failed |= failed;
	}
	if (failed && !b->error)
		WRITE_ONCE(b->error, IB_WC_WR_FLUSH_ERR);
	spin_unlock_bh(&sqp->ledger_lock);

	shift_recv_deliver(sqp);
	if (failed)
		shift_switch_kick(sqp, SHIFT_QP_STANDBY_ERR);
}

static int push_wc(struct shift_qp *sqp, const struct shift_srq_recv *recv)
{
	struct shift_abi_wc wc = {
		.wr_id = (u64)recv->ssrq->key << 32 | recv->tag,
		.status = recv->got.status,
		.opcode = recv->got.opcode,
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
	struct shift_srq *ssrq = sqp->ssrq;
	struct shift_srq_recv *recv, *next;
	int err = 0;

	spin_lock_bh(&ssrq->post_lock);
	list_for_each_entry_safe(recv, next, &sqp->srq_done, node) {
		err = push_wc(sqp, recv);
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

/* Its QP goes; sqp->lock. */
void shift_srq_drop_done(struct shift_qp *sqp)
{
	spin_lock_bh(&sqp->ledger_lock);
	shift_srq_deliver(sqp, true);
	spin_unlock_bh(&sqp->ledger_lock);
}
