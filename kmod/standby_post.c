// SPDX-License-Identifier: GPL-2.0
/*
 * Posting to a kernel-owned QP, and its completions.
 *
 * Every WR is signaled: the ledger has to know.  Completions come in posting
 * order on an RC QP, so each belongs to the oldest entry that was posted.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include "mw.h"
#include "provider.h"
#include "standby.h"

u32 shift_standby_error(const struct shift_qp *sqp)
{
	return sqp->active ? READ_ONCE(sqp->active->error) : 0;
}

/**
 * shift_standby_own_error - did an error of the application's own break the active QP?
 * @sqp: the QP, locked.
 *
 * A bad key, a bad length, a bad receive: another path does not help.  One that was
 * fenced since says nothing, what it did not execute is posted again.
 *
 * Return: enum ib_wc_status, 0 if not.
 */
u32 shift_standby_own_error(const struct shift_qp *sqp)
{
	const struct shift_standby *b = sqp->active;
	u32 status = shift_standby_error(sqp);

	if (!status || !b->armed)
		return 0;
	if (!READ_ONCE(b->recv_failed) &&
	    (status == IB_WC_RETRY_EXC_ERR || status == IB_WC_WR_FLUSH_ERR))
		return 0;
	return status;
}

/* A bad receive of the application's that the active QP has met, fenced since or not; 0: none. */
u32 shift_standby_recv_error(const struct shift_qp *sqp)
{
	const struct shift_standby *b = sqp->active;

	return b && READ_ONCE(b->recv_failed) ? b->error : 0;
}

bool shift_standby_busy(const struct shift_qp *sqp)
{
	return sqp->active && READ_ONCE(sqp->active->inflight);
}

/* Post nothing new, or go on with it; receives stay as they are. */
void shift_standby_hold(struct shift_qp *sqp, bool hold)
{
	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->active)
		sqp->active->held = hold;
	spin_unlock_bh(&sqp->ledger_lock);
}

bool shift_standby_is_held(const struct shift_qp *sqp)
{
	return sqp->active && READ_ONCE(sqp->active->held);
}

/* Of a QP that is halted: what was flushed is outstanding still.  ledger_lock. */
bool shift_standby_flushed(const struct shift_standby *b, const struct ib_wc *wc)
{
	return !b->armed || (!b->live && wc->status == IB_WC_WR_FLUSH_ERR);
}

/*
 * Has the work item something to do after a completion?  Room for more is made use of when
 * half of the queue is free; but a fence that held until now, @answered, at once.  ledger_lock.
 */
static bool more_to_do(struct shift_qp *sqp, const struct shift_standby *b, bool answered)
{
	struct shift_ledger *l = &sqp->ledger;
	bool next;
	u64 seq;

	next = shift_ledger_next(l, &seq);
	if (b->inflight < b->depth / 2)
		return next || sqp->stop_status;
	return next && answered && shift_ledger_at(l, seq)->flags & SHIFT_ENTRY_FENCED;
}

/* Softirq.  The QP's work item is woken only if it has something to do. */
void shift_standby_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct shift_standby *b = container_of(wc->wr_cqe, struct shift_standby, cqe);
	struct shift_qp *sqp = b->sqp;
	bool more, answered = false;
	u64 seq;

	spin_lock_bh(&sqp->ledger_lock);
	if (b->inflight)
		b->inflight--;
	if (shift_standby_flushed(b, wc)) {
		spin_unlock_bh(&sqp->ledger_lock);
		return;
	}
	seq = shift_ledger_next_sent(&sqp->ledger, b->next_done);
	/* a failed receive does not undo what the peer has answered */
	if (wc->status == IB_WC_SUCCESS) {
		struct shift_entry *e = shift_ledger_at(&sqp->ledger, seq);
		u32 packets = e->packets - e->done;

		if (!shift_ledger_executed(&sqp->ledger, seq)) {
			b->next_done = seq + 1;
			sqp->sent.psn = shift_psn_add(sqp->sent.psn, packets);
			answered = e->flags & (SHIFT_ENTRY_AGAIN | SHIFT_ENTRY_ONCE);
		}
	} else if (!b->error || b->error == IB_WC_WR_FLUSH_ERR) {
		WRITE_ONCE(b->error, wc->status);
	}
	more = more_to_do(sqp, b, answered);
	spin_unlock_bh(&sqp->ledger_lock);

	if (READ_ONCE(b->error)) {
		shift_switch_kick(sqp, SHIFT_QP_STANDBY_ERR);
		return;
	}
	shift_replay_deliver(sqp);
	if (more)
		shift_switch_kick(sqp, SHIFT_QP_KICK);
}

/* Softirq.  A flush means that the QP broke; why, a completion of a send may tell. */
void shift_standby_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct shift_standby *b = container_of(wc->wr_cqe, struct shift_standby, recv_cqe);
	struct shift_qp *sqp = b->sqp;
	bool failed = wc->status != IB_WC_SUCCESS;

	spin_lock_bh(&sqp->ledger_lock);
	if (b->receives)
		b->receives--;
	if (shift_standby_flushed(b, wc)) {
		spin_unlock_bh(&sqp->ledger_lock);
		return;
	}
	if (wc->status != IB_WC_WR_FLUSH_ERR) {
		shift_recv_done(sqp, wc);
		b->recv_failed |= failed;
	}
	if (failed && !b->error)
		WRITE_ONCE(b->error, IB_WC_WR_FLUSH_ERR);
	spin_unlock_bh(&sqp->ledger_lock);

	shift_recv_deliver(sqp);
	if (failed)
		shift_switch_kick(sqp, SHIFT_QP_STANDBY_ERR);
}

/*
 * Every lkey is the application's word: it must name an MR of the QP's own PD.  On the
 * default device, too: QPs of the kernel may have keys there that no user may name.
 * A piece of no bytes may have any key, and is left out.
 */
static int translate_sges(struct shift_qp *sqp, struct shift_standby *b, int *num_sge)
{
	int n = 0, err = 0;
	u32 i;

	for (i = 0; i < b->wr.num_sge; i++) {
		const struct shift_sge *from = &b->wr.sge[i];
		struct ib_sge *to = &b->sge[n];

		if (!from->length)
			continue;
		to->addr = from->addr;
		to->length = from->length;
		if (shift_mr_translate(sqp->spd, from, b->path, &to->lkey)) {
			to->lkey = SHIFT_NO_KEY;
			err = -EACCES;
		}
		n++;
	}
	*num_sge = n;
	return err;
}

/* The data of @b->wr as the scatter list of @wr. */
static int build_data(struct shift_qp *sqp, struct shift_standby *b, struct ib_send_wr *wr)
{
	wr->sg_list = b->sge;
	if (!(b->wr.flags & SHIFT_WR_INLINE))
		return translate_sges(sqp, b, &wr->num_sge);
	b->sge[0].addr = (uintptr_t)b->wr.inline_data;
	b->sge[0].length = b->wr.length;
	b->sge[0].lkey = 0;
	wr->num_sge = b->wr.length ? 1 : 0;
	wr->send_flags |= IB_SEND_INLINE;
	return 0;
}

union standby_wr {
	struct ib_send_wr send;
	struct ib_rdma_wr rdma;
	struct ib_atomic_wr atomic;
};

/*
 * @b->wr as the kernel's; numbers of opcodes are the same, @key is the peer's.  Never with a
 * fence: the ledger has kept it.  rxe of 6.1 and 6.12 would wait until no READ at all is under
 * way, those behind the fenced one included; after a retry each waits for the other for ever.
 */
static int build_wr(struct shift_qp *sqp, struct shift_standby *b, u32 key,
		    union standby_wr *wr)
{
	memset(wr, 0, sizeof(*wr));
	wr->send.wr_cqe = &b->cqe;
	wr->send.opcode = b->wr.opcode;
	wr->send.send_flags = IB_SEND_SIGNALED;
	if (b->wr.flags & SHIFT_WR_SOLICITED)
		wr->send.send_flags |= IB_SEND_SOLICITED;

	switch (b->wr.opcode) {
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
		wr->send.ex.imm_data = (__force __be32)b->wr.imm;
		fallthrough;
	case SHIFT_WR_RDMA_WRITE:
	case SHIFT_WR_RDMA_READ:
		wr->rdma.remote_addr = b->wr.remote_addr;
		wr->rdma.rkey = key;
		break;
	case SHIFT_WR_SEND_WITH_IMM:
		wr->send.ex.imm_data = (__force __be32)b->wr.imm;
		break;
	case SHIFT_WR_SEND:
		break;
	case SHIFT_WR_SEND_WITH_INV:
		wr->send.ex.invalidate_rkey = key;
		break;
	case SHIFT_WR_ATOMIC_CMP_AND_SWP:
	case SHIFT_WR_ATOMIC_FETCH_AND_ADD:
		/* two NICs need not be atomic towards each other */
		if (!sqp->peer_atomic && b->path != SHIFT_PATH_HOME)
			return -EPERM;
		wr->atomic.remote_addr = b->wr.remote_addr;
		wr->atomic.compare_add = b->wr.compare_add;
		wr->atomic.swap = b->wr.swap;
		wr->atomic.rkey = key;
		break;
	default:
		return -EOPNOTSUPP;
	}
	return build_data(sqp, b, &wr->send);
}

/*
 * The peer's key that it has, and that matters: one of no bytes may have any.  Not a READ, as
 * rxe of 6.1 looks at the key of each READ that is repeated.
 */
static bool has_rkey(const struct shift_wr *wr, u32 *rkey)
{
	*rkey = wr->opcode == SHIFT_WR_SEND_WITH_INV ? wr->imm : wr->rkey;
	if (wr->opcode == SHIFT_WR_SEND || wr->opcode == SHIFT_WR_SEND_WITH_IMM)
		return false;
	return wr->length || wr->opcode == SHIFT_WR_SEND_WITH_INV ||
	       wr->opcode == SHIFT_WR_RDMA_READ;
}

/* What @rkey of @b->wr is on @b's path: 0, -EINPROGRESS (asked for), -ENOENT. */
static int translate_rkey(struct shift_qp *sqp, struct shift_standby *b, u32 rkey, u32 *key)
{
	int err;

	*key = rkey;
	if (b->path == SHIFT_PATH_HOME && !sqp->windows)
		return 0;
	err = shift_pairing_key(sqp, rkey, key);
	if (err == -ENOENT && b->wr.opcode == SHIFT_WR_RDMA_READ && !b->wr.length) {
		/* no key at all: not kept, there are four billion of them */
		shift_pairing_forget_key(sqp, rkey);
		*key = rkey;
		err = 0;
	}
	return err;
}

/*
 * BIND_MW and LOCAL_INV are notes in a table and not for the device.  An invalidation waits
 * for all before it, and for the region, whose end is not for a spinlock.
 */
static int perform(struct shift_qp *sqp, struct shift_standby *b, u64 seq, u32 *rkey)
{
	struct shift_window_op op;
	int err;

	if (!shift_window_op(&b->wr, &op))
		return -EOPNOTSUPP;
	if (op.opcode == SHIFT_WR_LOCAL_INV && b->inflight)
		return -EAGAIN;
	*rkey = op.key;
	if (op.opcode == SHIFT_WR_LOCAL_INV && shift_region_is_there(sqp, op.key))
		return -ESTALE;
	err = shift_mw_perform(sqp, &op);
	if (err)
		return err;
	shift_ledger_at(&sqp->ledger, seq)->flags |= SHIFT_ENTRY_APPLIED;
	shift_ledger_sent(&sqp->ledger, seq, b->path);
	shift_ledger_executed(&sqp->ledger, seq);
	return 0;
}

/**
 * shift_standby_post - post one entry of the ledger
 * @sqp: the QP.
 * @seq: the entry, next in order.
 * @rkey: out: the remote key that is not known, with -EINPROGRESS.
 *
 * Context: any but softirq; ledger_lock.
 * Return: 0, -EAGAIN (not open, or queue full), -EINPROGRESS (remote key to be
 * asked for), -EACCES (local key), -ENOENT (remote key), -EPERM (an atomic that
 * may not change its NIC), -EKEYREJECTED (a bind), -ESTALE (a region, of the key @rkey,
 * has to be ended), -EINVAL.
 */
int shift_standby_post(struct shift_qp *sqp, u64 seq, u32 *rkey)
{
	struct shift_ledger *l = &sqp->ledger;
	struct shift_entry *e = shift_ledger_at(l, seq);
	struct shift_standby *b = sqp->active;
	const struct ib_send_wr *bad;
	union standby_wr wr;
	u32 key = 0;
	int err;

	lockdep_assert_held(&sqp->ledger_lock);
	if (!b || !b->open || !b->sends || b->held || b->error || b->inflight >= b->depth)
		return -EAGAIN;
	err = sqp->provider->decode(sqp, seq, &b->wr);
	if (err)
		return err;
	if (shift_window_local(b->wr.opcode))
		return perform(sqp, b, seq, rkey);
	if (has_rkey(&b->wr, rkey))
		err = translate_rkey(sqp, b, *rkey, &key);
	if (!err && e->done)
		err = shift_wr_skip(&b->wr, e->done * sqp->mtu);
	if (!err)
		err = build_wr(sqp, b, key, &wr);
	if (err)
		return err;

	err = ib_post_send(b->qp, &wr.send, &bad);
	if (err)
		return err == -ENOMEM ? -EAGAIN : err;
	/* its completion waits for ledger_lock */
	b->inflight++;
	shift_ledger_sent(l, seq, b->path);
	/* the window may be bound again, with the same key after 256 times */
	if (b->wr.opcode == SHIFT_WR_SEND_WITH_INV)
		shift_pairing_forget_key(sqp, *rkey);
	return 0;
}

/**
 * shift_standby_post_recv - post one receive
 * @sqp: the QP.
 * @seq: the next one of its receives.
 *
 * Context: any that may take a spinlock; ledger_lock.
 * Return: 0, -EAGAIN (not armed, or queue full), -EINVAL.
 */
int shift_standby_post_recv(struct shift_qp *sqp, u64 seq)
{
	struct shift_recvs *r = &sqp->recvs;
	struct shift_standby *b = sqp->active;
	const struct ib_recv_wr *bad;
	struct ib_recv_wr wr = {};
	int err;

	lockdep_assert_held(&sqp->ledger_lock);
	if (!b || !b->live || r->post - r->done >= b->recv_depth)
		return -EAGAIN;
	err = sqp->provider->decode_recv(sqp, seq, &b->wr);
	if (err)
		return err;
	/* a bad key is an error of the message that meets it, as without us */
	translate_sges(sqp, b, &wr.num_sge);
	wr.wr_cqe = &b->recv_cqe;
	wr.sg_list = b->sge;
	err = ib_post_recv(b->qp, &wr, &bad);
	if (!err)
		b->receives++;	/* its completion waits for ledger_lock */
	return err == -ENOMEM ? -EAGAIN : err;
}

bool shift_standby_is_open(const struct shift_qp *sqp)
{
	return sqp->active && sqp->active->open;
}

/* The oldest that is under way may wait for the peer's application, for as long as it likes. */
static bool waits_for_recv(struct shift_qp *sqp, struct shift_standby *b)
{
	u64 seq = shift_ledger_next_sent(&sqp->ledger, b->next_done);

	return seq < sqp->ledger.head &&
	       shift_ledger_at(&sqp->ledger, seq)->flags & SHIFT_ENTRY_RECV;
}

/* How long nothing was completed though work is under way, ns; ledger_lock. */
static u64 stalled_ns(struct shift_standby *b, u64 now)
{
	if (b->open && b->inflight && !b->error && b->since && b->next_done == b->watched)
		return now - b->since;
	b->watched = b->next_done;
	b->since = b->inflight ? now : 0;
	b->rung = 0;
	return 0;
}

/**
 * shift_standby_watch - does what was posted go on?
 * @sqp: the QP, locked, in RUN on a QP of the kernel's.
 *
 * A device that has lost work reports no error; so this is the deadline of what was
 * posted.  rxe 6.1 can lose it: its requester stops at the limit of packets or buffers
 * under way, and only then says that it waits to be woken.  If its completer, on another
 * CPU, takes the last acknowledgment in between, nobody wakes it; and its retransmit timer,
 * which wakes the completer alone, repeats only what was sent.  It takes a new post, and an
 * application whose queue is full does not post.  On an emulated CPU that is kept from
 * running for milliseconds "in between" is long.
 *
 * A doorbell with no work is such a post for rxe and nothing for others (rxe 6.12 has one
 * task for both and needs none).  If nothing completes for as long again the path is to
 * be left, unless the peer's application may be what is waited for.
 *
 * What a fence holds back was not posted, so it has no deadline of its own: the READ or
 * atomic that it waits for has.
 *
 * Return: true if the path is to be left.
 */
bool shift_standby_watch(struct shift_qp *sqp)
{
	u64 limit = (u64)SHIFT_WATCH_MS * NSEC_PER_MSEC *
		    max(READ_ONCE(shift_deadline_scale), 1u);
	struct shift_standby *b = sqp->active;
	const struct ib_send_wr *bad;
	bool ring, waits = false;
	u64 age;

	lockdep_assert_held(&sqp->lock);
	if (!b)
		return false;
	spin_lock_bh(&sqp->ledger_lock);
	age = stalled_ns(b, ktime_get_ns());
	ring = age >= limit;
	if (ring) {
		waits = waits_for_recv(sqp, b);
		ib_post_send(b->qp, NULL, &bad);
		b->rung++;
	}
	spin_unlock_bh(&sqp->ledger_lock);
	if (!ring || waits)
		return false;
	if (b->rung == 1) {
		shift_stat_inc(SHIFT_STAT_STALLED);
		pr_warn_ratelimited("%s qp %u: nothing completed on path %u for %llu ms\n",
				    sqp->sdev->name, sqp->qpn, b->path,
				    div_u64(age, NSEC_PER_MSEC));
	}
	return age >= 2 * limit;
}
