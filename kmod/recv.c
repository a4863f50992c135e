// SPDX-License-Identifier: GPL-2.0
/*
 * Receives of a QP that is away from its default NIC: taken from the user's ring,
 * posted to the backup QP, and completed through the side ring of the receive CQ,
 * in the order in which they were posted.
 *
 * ledger_lock covers them as it covers the ledger of the send side.  In Fallback
 * the provider calls KICK after each post, as the ring has no doorbell.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include "mw.h"
#include "provider.h"

#define RETRY_MS	20

static u32 recv_slot(const struct shift_recvs *r, u64 seq)
{
	return (u32)seq & (r->slots - 1);
}

/**
 * shift_recv_init - memory for the receives of a QP
 * @r: filled in.
 * @ring: its receive ring; not pinned: it has none.
 *
 * Return: 0, -ENOMEM.
 */
int shift_recv_init(struct shift_recvs *r, const struct shift_ring *ring)
{
	memset(r, 0, sizeof(*r));
	if (!ring->npages)
		return 0;
	r->entry = kvcalloc(ring->slots, sizeof(*r->entry), GFP_KERNEL);
	r->raw = kvcalloc(ring->slots, ring->slot_size, GFP_KERNEL);
	if (!r->entry || !r->raw) {
		shift_recv_free(r);
		return -ENOMEM;
	}
	r->slots = ring->slots;
	r->slot_size = ring->slot_size;
	return 0;
}

void shift_recv_free(struct shift_recvs *r)
{
	kvfree(r->entry);
	kvfree(r->raw);
	memset(r, 0, sizeof(*r));
}

/* Copy the ring while it still has something in it: RESET zeroes it. */
void shift_recv_capture(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->recvs;
	u32 i;

	for (i = 0; i < r->slots; i++)
		shift_ring_copy_slot(&sqp->rq, i, shift_recv_raw(r, i));
}

/**
 * shift_recv_start - the fenced QP has @count receives without a completion
 * @sqp: the QP; ledger_lock.
 * @first: index of the oldest.
 * @count: how many.
 * @most: as many can be outstanding.
 */
void shift_recv_start(struct shift_qp *sqp, u32 first, u32 count, u32 most)
{
	struct shift_recvs *r = &sqp->recvs;

	if (!r->slots)
		return;
	r->tail = first;
	r->done = r->tail;
	r->post = r->tail;
	r->head = r->tail + count;
	r->most = most;
	sqp->provider->recvs_completed(sqp, r->tail);
}

/* What was posted and has no completion is to be posted again; ledger_lock. */
void shift_recv_rewind(struct shift_qp *sqp)
{
	sqp->recvs.post = sqp->recvs.done;
}

static void ingest(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->recvs;
	u32 n = sqp->provider->recvs_posted(sqp);

	for (; n && r->head - r->tail < r->most; n--, r->head++)
		shift_ring_copy_slot(&sqp->rq, recv_slot(r, r->head),
				     shift_recv_raw(r, r->head));
}

/* Post what can be posted; ledger_lock.  Returns what stopped it. */
static int post_all(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->recvs;
	int err = 0;

	while (r->post < r->head && !err) {
		err = shift_standby_post_recv(sqp, r->post);
		if (!err)
			r->post++;
	}
	return err;
}

/* Process context; returns whether the work item has to look again. */
static bool take_in(struct shift_qp *sqp)
{
	int err;

	/* its provider says when it is done */
	if (sqp->rebase == SHIFT_REBASE_BUSY)
		return false;
	ingest(sqp);
	sqp->provider->recvs_completed(sqp, sqp->recvs.tail);
	err = post_all(sqp);
	if (err == -EINVAL)
		sqp->stop_status = IB_WC_LOC_PROT_ERR;
	return sqp->stop_status || (err && err != -EAGAIN);
}

/**
 * shift_recv_pump - post receives on the backup QP
 * @sqp: the QP, locked; its backup is armed.
 */
void shift_recv_pump(struct shift_qp *sqp)
{
	bool more = false;

	lockdep_assert_held(&sqp->lock);
	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->registered && sqp->recvs.slots)
		more = take_in(sqp);
	spin_unlock_bh(&sqp->ledger_lock);
	if (more)
		shift_switch_arm(sqp, RETRY_MS);
	shift_recv_deliver(sqp);
}

/**
 * shift_recv_doorbell - the application posted receives on a QP that is away
 * @sqp: the QP.
 *
 * Context: any that may take a spinlock, but softirq.
 */
void shift_recv_doorbell(struct shift_qp *sqp)
{
	bool more = false;

	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->ledger_live && sqp->registered && sqp->recvs.slots) {
		if (sqp->state == SHIFT_ST_FAIL || sqp->state == SHIFT_ST_APP)
			more = true;
		else
			more = take_in(sqp);
	}
	spin_unlock_bh(&sqp->ledger_lock);
	if (more)
		shift_switch_kick(sqp, SHIFT_QP_KICK);
}

/**
 * shift_recv_got - what the application is to be shown of a completion
 * @sqp: the QP; ledger_lock.
 * @wc: of a receive on its active QP.
 *
 * The key that a SEND_WITH_INV invalidated was that of a region: the window's is shown.
 */
struct shift_recv shift_recv_got(struct shift_qp *sqp, const struct ib_wc *wc)
{
	struct shift_recv e = {
		.status = wc->status,
		.opcode = wc->opcode,
		.byte_len = wc->byte_len,
		.ex = (__force u32)wc->ex.imm_data,
		.wc_flags = wc->wc_flags & (IB_WC_GRH | IB_WC_WITH_IMM |
					    IB_WC_WITH_INVALIDATE),
	};

	if (!wc->status && wc->wc_flags & IB_WC_WITH_INVALIDATE)
		e.ex = shift_region_invalidated(sqp, wc->ex.invalidate_rkey);
	return e;
}

/**
 * shift_recv_done - the backup completed its oldest receive
 * @sqp: the QP; ledger_lock.
 * @wc: the completion.
 *
 * Context: softirq.
 */
void shift_recv_done(struct shift_qp *sqp, const struct ib_wc *wc)
{
	struct shift_recvs *r = &sqp->recvs;
	struct shift_recv *e = &r->entry[recv_slot(r, r->done)];

	if (r->done == r->post)
		return;
	*e = shift_recv_got(sqp, wc);
	r->done++;
	post_all(sqp);
}

static int push_wc(struct shift_qp *sqp, u64 seq)
{
	struct shift_recvs *r = &sqp->recvs;
	const struct shift_recv *e = &r->entry[recv_slot(r, seq)];
	struct shift_abi_wc wc = {
		.status = e->status,
		/* the device need not say what it was of one in error */
		.opcode = e->opcode | IB_WC_RECV,
		.byte_len = e->byte_len,
		.ex = e->ex,
		.wc_flags = e->wc_flags,
		.qp_num = sqp->qpn,
		.port_num = 1,
	};
	struct shift_cq_slot slot = {
		.sqp = sqp, .seq = seq, .free = sqp->provider->recvs_completed,
	};

	wc.wr_id = sqp->provider->recv_wr_id(sqp, seq);
	return shift_cq_push(sqp->rcq, &wc, &slot);
}

static bool may_show(const struct shift_qp *sqp)
{
	return shift_standby_is_open(sqp) || sqp->state == SHIFT_ST_FAIL ||
	       sqp->state == SHIFT_ST_APP || sqp->rebase == SHIFT_REBASE_WANTED;
}

/**
 * shift_recv_deliver - show the application what it has received
 * @sqp: the QP.
 *
 * Not before both sides are ready: until then another switch may begin.
 *
 * Context: process or softirq context, any lock but ledger_lock.
 */
void shift_recv_deliver(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->recvs;
	int err;

	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->ssrq && may_show(sqp) && shift_srq_deliver(sqp, false))
		shift_switch_arm(sqp, RETRY_MS);
	while (r->tail < r->done && may_show(sqp)) {
		err = push_wc(sqp, r->tail);
		if (err == -ENOSPC) {
			shift_switch_arm(sqp, RETRY_MS);
			break;
		}
		r->tail++;
	}
	spin_unlock_bh(&sqp->ledger_lock);
}

/**
 * shift_recv_flush - error completions for all receives, now and later
 * @sqp: the QP, locked, in FAIL or APP; nothing can be received any more.
 */
void shift_recv_flush(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->recvs;

	lockdep_assert_held(&sqp->lock);
	if (sqp->ssrq)
		shift_recv_deliver(sqp);	/* what others may receive into stays posted */
	if (!sqp->registered || !r->slots || !sqp->ledger_live)
		return;
	spin_lock_bh(&sqp->ledger_lock);
	ingest(sqp);
	for (; r->done < r->head; r->done++)
		r->entry[recv_slot(r, r->done)] = (struct shift_recv) {
			.status = IB_WC_WR_FLUSH_ERR,
			.opcode = IB_WC_RECV,
		};
	r->post = r->done;
	spin_unlock_bh(&sqp->ledger_lock);
	shift_recv_deliver(sqp);
}
