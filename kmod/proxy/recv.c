// SPDX-License-Identifier: GPL-2.0
/*
 * Receives of a QP that runs on a proxy QP: taken from the user's ring, posted to the
 * proxy QP, and completed through the side ring of the receive CQ, in the order in which
 * they were posted.
 *
 * ledger_lock covers them as it covers the ledger of the send side.  In Fallback
 * the provider calls KICK after each post, as the ring has no doorbell.
 */
#include <linux/slab.h>
#include "core/kick.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/proxy.h"
#include "core/qp.h"
#include "core/queue.h"
#include "mw/mw.h"
#include "proxy/proxy.h"
#include "pure/fsm.h"
#include "srq/srq.h"

#define RETRY_MS	20

/* True: there are more, but SHIFT_PASS were taken. */
static bool recv_ingest(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->rec.recvs;
	u32 posted = sqp->rings.provider->recvs_posted(sqp);
	u32 n = min_t(u32, posted, SHIFT_PASS);

	for (; n && r->head - r->tail < r->most; n--, r->head++)
		shift_recv_copy(sqp, r->head);
	return !n && posted > SHIFT_PASS;
}

/*
 * Post receives until none is left, or none can be posted; ledger_lock.  True: SHIFT_PASS were
 * posted, and there are more.
 */
static bool recv_post(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->rec.recvs;
	unsigned int n;

	lockdep_assert_held(&sqp->ledger_lock);
	for (n = 0; r->post < r->head; n++) {
		if (n == SHIFT_PASS)
			return true;
		if (shift_proxy_post_recv(sqp, r->post))
			break;
		r->post++;
	}
	return false;
}

/* Take receives from the ring and post them.  True: there are more. */
static bool recv_take_in(struct shift_qp *sqp)
{
	bool more;

	/* the provider changes its rings, and says when it is done */
	if (sqp->handback.rebase == SHIFT_REBASE_BUSY)
		return false;
	more = recv_ingest(sqp);
	sqp->rings.provider->recvs_completed(sqp, sqp->rec.recvs.tail);
	return recv_post(sqp) || more;
}

/**
 * shift_recv_pump - post receives to the proxy QP
 * @sqp: the QP, locked; its proxy QP is armed.
 */
void shift_recv_pump(struct shift_qp *sqp)
{
	u32 passes = 0;
	bool left;

	lockdep_assert_held(&sqp->lock);
	do {
		left = false;
		spin_lock_bh(&sqp->ledger_lock);
		if (sqp->rings.usable && sqp->rec.recvs.slots)
			left = recv_take_in(sqp);
		spin_unlock_bh(&sqp->ledger_lock);
	} while (left && ++passes < shift_passes(sqp->rec.recvs.slots));
	if (left)
		shift_qp_arm(sqp, RETRY_MS);
	shift_recv_deliver(sqp);
}

/**
 * shift_recv_doorbell - the application posted receives on a QP that runs on a proxy QP
 * @sqp: the QP.
 *
 * Context: any that may take a spinlock, but softirq.
 */
void shift_recv_doorbell(struct shift_qp *sqp)
{
	u32 most, passes = 0;
	bool left, flush;

	do {
		left = false;
		flush = false;
		spin_lock_bh(&sqp->ledger_lock);
		most = shift_passes(sqp->rec.recvs.slots);
		if (sqp->rec.live && sqp->rings.usable && sqp->rec.recvs.slots) {
			if (sqp->fo.state == SHIFT_ST_FAIL || sqp->fo.state == SHIFT_ST_APP)
				flush = true;
			else
				left = recv_take_in(sqp);
		}
		spin_unlock_bh(&sqp->ledger_lock);
	} while (left && ++passes < most);
	if (left || flush)
		shift_qp_kick(sqp, SHIFT_QPB_KICK);
}

/**
 * shift_recv_got - the completion of a receive as the application is to see it
 * @sqp: the QP; ledger_lock.
 * @wc: completion of a receive on its proxy QP.
 *
 * If a SEND_WITH_INV invalidated the key of a region, or of an MR, the key that the user knows is
 * shown.
 */
struct shift_recv shift_recv_got(struct shift_qp *sqp, const struct ib_wc *wc)
{
	const struct shift_mr_ops *mrs = sqp->rings.provider->mrs;
	struct shift_recv e = {
		.status = wc->status,
		.opcode = wc->opcode,
		.byte_len = wc->byte_len,
		.ex = (__force u32)wc->ex.imm_data,
		.wc_flags = wc->wc_flags & (IB_WC_GRH | IB_WC_WITH_IMM |
					    IB_WC_WITH_INVALIDATE),
	};

	lockdep_assert_held(&sqp->ledger_lock);
	if (wc->status || !(wc->wc_flags & IB_WC_WITH_INVALIDATE))
		return e;
	if (mrs)
		e.ex = mrs->invalidated(sqp, wc->ex.invalidate_rkey, sqp->rec.proxy->path);
	else
		e.ex = shift_region_invalidated(sqp, wc->ex.invalidate_rkey);
	return e;
}

/**
 * shift_recv_done - the proxy QP completed its oldest receive
 * @sqp: the QP; ledger_lock.
 * @wc: the completion.
 *
 * Context: softirq.
 */
void shift_recv_done(struct shift_qp *sqp, const struct ib_wc *wc)
{
	struct shift_recvs *r = &sqp->rec.recvs;
	struct shift_recv *e = &r->entry[shift_recv_slot(r, r->done)];

	lockdep_assert_held(&sqp->ledger_lock);
	if (r->done == r->post)
		return;
	*e = shift_recv_got(sqp, wc);
	r->done++;
	/* if this does not post all, whoever has taken them in goes on */
	recv_post(sqp);
}

static int recv_push_wc(struct shift_qp *sqp, u64 seq)
{
	struct shift_recvs *r = &sqp->rec.recvs;
	const struct shift_recv *e = &r->entry[shift_recv_slot(r, seq)];
	struct shift_abi_wc wc = {
		.status = e->status,
		/* a device need not set the opcode of a completion in error */
		.opcode = e->opcode | IB_WC_RECV,
		.byte_len = e->byte_len,
		.ex = e->ex,
		.wc_flags = e->wc_flags,
		.qp_num = sqp->qpn,
		.port_num = 1,
	};
	struct shift_cq_slot slot = {
		.sqp = sqp, .seq = seq, .free = sqp->rings.provider->recvs_completed,
	};

	wc.wr_id = sqp->rings.provider->recv_wr_id(sqp, seq);
	return shift_cq_push(sqp->rcq, &wc, &slot);
}

static bool recv_may_show(const struct shift_qp *sqp)
{
	return shift_proxy_is_open(sqp) || sqp->fo.state == SHIFT_ST_FAIL ||
	       sqp->fo.state == SHIFT_ST_APP || sqp->handback.rebase == SHIFT_REBASE_WANTED;
}

/**
 * shift_recv_deliver - show completed receives to the application
 * @sqp: the QP.
 *
 * Not before both ends are ready, as another failover may begin until then.
 *
 * Context: process or softirq context, any lock but ledger_lock.
 */
void shift_recv_deliver(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->rec.recvs;
	u32 n = 0;
	int err;

	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->srqm.ssrq && recv_may_show(sqp) && shift_srq_deliver(sqp, false))
		shift_qp_arm(sqp, RETRY_MS);
	/* what is completed meanwhile is shown by its own completion handler */
	while (r->tail < r->done && n < r->slots && recv_may_show(sqp)) {
		err = recv_push_wc(sqp, r->tail);
		if (err == -ENOSPC) {
			shift_qp_arm(sqp, RETRY_MS);
			break;
		}
		r->tail++;
		shift_ledger_breathe(sqp, &n);
	}
	spin_unlock_bh(&sqp->ledger_lock);
}

/**
 * shift_recv_flush - error completions for all receives, now and later
 * @sqp: the QP, locked, in FAIL or APP; nothing can be received any more.
 */
void shift_recv_flush(struct shift_qp *sqp)
{
	struct shift_recvs *r = &sqp->rec.recvs;
	u32 passes = 0;
	bool more;

	lockdep_assert_held(&sqp->lock);
	if (sqp->srqm.ssrq)
		shift_recv_deliver(sqp);	/* receives of the SRQ stay posted for other QPs */
	if (!sqp->rings.usable || !r->slots || !sqp->rec.live)
		return;
	do {
		spin_lock_bh(&sqp->ledger_lock);
		more = recv_ingest(sqp);
		for (; r->done < r->head; r->done++)
			r->entry[shift_recv_slot(r, r->done)] = (struct shift_recv) {
				.status = IB_WC_WR_FLUSH_ERR,
				.opcode = IB_WC_RECV,
			};
		r->post = r->done;
		spin_unlock_bh(&sqp->ledger_lock);
	} while (more && ++passes < shift_passes(r->slots));
	if (more)
		shift_qp_arm(sqp, RETRY_MS);
	shift_recv_deliver(sqp);
}
