// SPDX-License-Identifier: GPL-2.0
/*
 * Receives of an SRQ that is away.  They are found in the provider's table, posted on a
 * kernel-owned SRQ, and completed through the side ring of the CQ of the QP that received.
 *
 * The application can write to the table.  So all that is read there is bounded, and what is wrong
 * there harms the application only.
 */
#include "core/kernel_srq.h"
#include "core/node.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "core/srq.h"
#include "pure/wr.h"
#include "srq/internal.h"
#include "srq/srq.h"

/**
 * shift_srq_take - take over a receive of the provider's table, unless it was already
 * @ssrq: the SRQ; post_lock.
 * @recv_id: its id, whose index is within the table.
 *
 * Context: any, under a spinlock.
 */
void shift_srq_take(struct shift_srq *ssrq, u32 recv_id)
{
	struct shift_srq_record *rec = &ssrq->rec;
	const struct shift_abi_srq_entry *e = shift_srq_entry(ssrq, recv_id);
	u32 i, index = recv_id & SHIFT_RECV_ID_INDEX;
	struct shift_srq_recv *recv = &rec->recv[index];
	struct shift_sge *sge = &rec->sge[(size_t)index * max(ssrq->max_sge, 1u)];

	lockdep_assert_held(&ssrq->post_lock);
	/* taken over meanwhile; or the entry is used again before its completion was shown */
	if (rec->known[index] == recv_id || recv->state != SHIFT_SRQ_RECV_FREE)
		return;
	/* shown to a user in the kernel since the table was looked at, and free */
	if (ssrq->kernel && READ_ONCE(e->recv_id) != recv_id)
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
	if (ssrq->kernel)
		shift_kernel_srq_taken(ssrq, recv_id);
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
static u32 srq_lent(struct shift_srq *ssrq)
{
	lockdep_assert_held(&ssrq->post_lock);
	return ssrq->rec.lends && ssrq->rings.registered ?
	       ssrq->ops->posted(ssrq) : 0;
}

/**
 * shift_srq_lend - lend a receive to the application's ring
 * @ssrq: the SRQ; post_lock.
 * @recv: one that is posted nowhere.
 *
 * It is as if the application had posted it there: the kernel forgets it, and finds it again as it
 * has found it first (takeover.c).
 *
 * Context: any, under a spinlock.
 * Return: 0; a negative errno: the ring is full.
 */
int shift_srq_lend(struct shift_srq *ssrq, struct shift_srq_recv *recv)
{
	struct shift_srq_record *rec = &ssrq->rec;
	u32 index = recv->recv_id & SHIFT_RECV_ID_INDEX;
	int err;

	lockdep_assert_held(&ssrq->post_lock);
	/* before it can be completed */
	rec->known[index] = SHIFT_RECV_ID_NONE;
	err = ssrq->ops->post(ssrq, (u64)ssrq->rings.key << 32 | recv->recv_id,
			      &rec->sge[(size_t)index * max(ssrq->max_sge, 1u)], recv->num_sge);
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

/**
 * shift_srq_post - post what can be posted
 * @ssrq: the SRQ; post_lock.
 *
 * If QPs draw from the ring as well as from the pool, each of both gets what is next when it has
 * fewer.
 *
 * Context: any, under a spinlock.
 */
void shift_srq_post(struct shift_srq *ssrq)
{
	struct shift_srq_record *rec = &ssrq->rec;

	lockdep_assert_held(&ssrq->post_lock);
	while (!list_empty(&rec->pending)) {
		struct shift_srq_recv *recv = list_first_entry(&rec->pending,
							       struct shift_srq_recv, node);
		bool room = rec->post_to && rec->nposted < rec->depth;

		if (rec->lends && ssrq->rings.registered && !READ_ONCE(ssrq->spoiled) &&
		    (!room || srq_lent(ssrq) < rec->nposted) && !shift_srq_lend(ssrq, recv))
			continue;
		if (!room || srq_keeps(rec) || srq_post_one(ssrq, recv))
			return;
	}
}

/**
 * shift_srq_ingest - take over what the application has posted since the last look, in order
 * @ssrq: the SRQ; post_lock.
 *
 * Context: any, under a spinlock.
 */
void shift_srq_ingest(struct shift_srq *ssrq)
{
	struct shift_srq_record *rec = &ssrq->rec;
	u32 n, mask = ssrq->rings.entries - 1;
	u64 posted;

	lockdep_assert_held(&ssrq->post_lock);
	/* before the order, and the entries, up to there are read */
	posted = smp_load_acquire(&shift_srq_table(ssrq)->posted);

	for (n = 0; n < ssrq->rings.entries && rec->seen != posted; n++, rec->seen++) {
		u32 recv_id = READ_ONCE(shift_srq_table(ssrq)->order[rec->seen & mask]);
		u32 index = recv_id & SHIFT_RECV_ID_INDEX;

		if (recv_id >> SHIFT_RECV_ID_GENERATION && index < ssrq->rings.entries &&
		    recv_id != rec->known[index] &&
		    /* an entry is filled in before it has its id */
		    recv_id == smp_load_acquire(&shift_srq_entry(ssrq, recv_id)->recv_id))
			shift_srq_take(ssrq, recv_id);
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
		shift_srq_ingest(ssrq);
		shift_srq_post(ssrq);
	}
	spin_unlock_bh(&ssrq->post_lock);
}

/**
 * shift_srq_tell_limit - send the application the event of the SRQ's limit, once
 * @ssrq: the SRQ; post_lock.
 *
 * Context: any, under a spinlock.
 */
void shift_srq_tell_limit(struct shift_srq *ssrq)
{
	struct ib_event event = { .event = IB_EVENT_SRQ_LIMIT_REACHED };
	struct ib_srq *srq = ssrq->srq;

	ssrq->rec.limit = 0;
	if (ssrq->kernel) {
		/* it may post when it is told */
		WRITE_ONCE(ssrq->kernel->limit, true);
		queue_work(shift_wq, &ssrq->kernel->work);
		return;
	}
	if (!srq || !srq->event_handler)
		return;
	event.device = srq->device;
	event.element.srq = srq;
	srq->event_handler(&event, srq->srq_context);
}

/**
 * shift_srq_look_at_limit - tell the application if fewer receives are left than its limit
 * @ssrq: an SRQ that is away; post_lock.
 *
 * Context: any, under a spinlock.
 */
void shift_srq_look_at_limit(struct shift_srq *ssrq)
{
	const struct shift_srq_record *rec = &ssrq->rec;

	if (rec->limit && rec->npending + rec->nposted + srq_lent(ssrq) < rec->limit)
		shift_srq_tell_limit(ssrq);
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
		shift_srq_look_at_limit(ssrq);
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
		shift_srq_look_at_limit(ssrq);
		shift_srq_post(ssrq);
	}
	spin_unlock_bh(&ssrq->post_lock);
}

/**
 * shift_srq_work - what a user in the kernel has posted, where it could not be passed on
 * @work: of struct shift_kernel_srq.
 *
 * Its handler is called with no lock held, as by a driver.
 */
void shift_srq_work(struct work_struct *work)
{
	struct shift_kernel_srq *kernel = container_of(work, struct shift_kernel_srq, work);
	struct shift_srq *ssrq = kernel->ssrq;
	struct ib_event event = { .event = IB_EVENT_SRQ_LIMIT_REACHED };
	struct ib_srq *srq;

	shift_srq_doorbell(ssrq);
	if (!xchg(&kernel->limit, false))
		return;
	spin_lock_bh(&ssrq->post_lock);
	srq = ssrq->srq;
	spin_unlock_bh(&ssrq->post_lock);
	/* who destroys it waits for this */
	if (!srq || !srq->event_handler)
		return;
	event.device = srq->device;
	event.element.srq = srq;
	srq->event_handler(&event, srq->srq_context);
}

static int srq_push_wc(struct shift_qp *sqp, const struct shift_srq_recv *recv)
{
	struct shift_srq *ssrq = recv->ssrq;
	struct shift_abi_wc wc = {
		.wr_id = ssrq->kernel ? shift_kernel_srq_wr_id(ssrq, recv->recv_id) :
					(u64)ssrq->rings.key << 32 | recv->recv_id,
		.status = recv->got.status,
		/* a device need not set the opcode of a completion in error */
		.opcode = recv->got.opcode | IB_WC_RECV,
		.byte_len = recv->got.byte_len,
		.ex = recv->got.ex,
		.wc_flags = recv->got.wc_flags,
		.qp_num = sqp->qpn,
		.port_num = 1,
	};
	struct shift_cq_slot slot = {
		.sqp = sqp, .seq = recv->recv_id,
		/* a provider in user space frees the entry when it polls */
		.free = ssrq->kernel ? shift_kernel_srq_completed : NULL,
	};

	return shift_cq_push(sqp->rcq, &wc, &slot);
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

/* What a QP has received was shown to nobody and will not be: its receives are posted again. */
static void srq_post_again(struct shift_qp *sqp)
{
	struct shift_srq *ssrq = sqp->srqm.ssrq;
	struct shift_srq_recv *recv;

	lockdep_assert_held(&sqp->ledger_lock);
	spin_lock_bh(&ssrq->post_lock);
	list_for_each_entry(recv, &sqp->srqm.done, node) {
		recv->state = SHIFT_SRQ_RECV_PENDING;
		ssrq->rec.npending++;
	}
	list_splice_init(&sqp->srqm.done, &ssrq->rec.pending);
	shift_srq_post(ssrq);
	spin_unlock_bh(&ssrq->post_lock);
}

/*
 * The QP goes: show what it has received, as far as there is room.  A user in the kernel is shown
 * nothing of a QP that is gone, and has polled for all of it before; sqp->lock.
 */
void shift_srq_drop_done(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->srqm.ssrq->kernel)
		srq_post_again(sqp);
	else
		shift_srq_deliver(sqp, true);
	spin_unlock_bh(&sqp->ledger_lock);
}
