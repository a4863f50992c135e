// SPDX-License-Identifier: GPL-2.0
/*
 * Posting to a proxy QP.
 *
 * Every WR is signaled, as the ledger needs to know what was executed.  Completions come in posting
 * order on an RC QP, so that each belongs to the oldest entry that was posted.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/proxy.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/stat.h"
#include "mw/mw.h"
#include "proxy/proxy.h"
#include "pure/ledger.h"
#include "pure/mw_state.h"
#include "pure/wr.h"

u32 shift_proxy_error(const struct shift_qp *sqp)
{
	return sqp->rec.proxy ? READ_ONCE(sqp->rec.proxy->error) : 0;
}

/**
 * shift_proxy_own_error - did the application cause the error that broke the active QP?
 * @sqp: the QP, locked.
 *
 * Another path does not help against a bad key, a bad length or a bad receive.  The error of a QP
 * that was fenced since does not count, as what it did not execute is posted again.
 *
 * Return: enum ib_wc_status, 0 if not.
 */
u32 shift_proxy_own_error(const struct shift_qp *sqp)
{
	const struct shift_proxy *b = sqp->rec.proxy;
	u32 status = shift_proxy_error(sqp);

	lockdep_assert_held(&sqp->lock);
	if (!status || !b->armed)
		return 0;
	if (!READ_ONCE(b->recv_failed) &&
	    (status == IB_WC_RETRY_EXC_ERR || status == IB_WC_WR_FLUSH_ERR))
		return 0;
	return status;
}

/* Status of a bad receive that broke the active QP, even if that was fenced since; 0: none. */
u32 shift_proxy_recv_error(const struct shift_qp *sqp)
{
	const struct shift_proxy *b = sqp->rec.proxy;

	lockdep_assert_held(&sqp->lock);
	return b && READ_ONCE(b->recv_failed) ? b->error : 0;
}

bool shift_proxy_busy(const struct shift_qp *sqp)
{
	return sqp->rec.proxy && READ_ONCE(sqp->rec.proxy->inflight);
}

/* Stop posting sends (@hold), or go on with it; receives are not affected. */
void shift_proxy_hold(struct shift_qp *sqp, bool hold)
{
	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->rec.proxy)
		sqp->rec.proxy->held = hold;
	spin_unlock_bh(&sqp->ledger_lock);
}

bool shift_proxy_is_held(const struct shift_qp *sqp)
{
	return sqp->rec.proxy && READ_ONCE(sqp->rec.proxy->held);
}

/*
 * Is the completion to be ignored, as the proxy QP is being stopped?  What was flushed by that is
 * still outstanding.  ledger_lock.
 */
bool shift_proxy_flushed(const struct shift_proxy *b, const struct ib_wc *wc)
{
	lockdep_assert_held(&b->sqp->ledger_lock);
	return !b->armed || (!b->live && wc->status == IB_WC_WR_FLUSH_ERR);
}

/*
 * The application may give any lkey: it must name an MR of the QP's own PD.  This is checked on the
 * default device, too, as a kernel-owned QP can use keys there that no application may use.
 * Entries of no bytes may have any key, and are left out.
 */
static int proxy_translate_sges(struct shift_qp *sqp, struct shift_proxy *b, int *num_sge)
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

/* Fill in the gather list of @wr, or inline data, from @b->wr. */
static int proxy_build_data(struct shift_qp *sqp, struct shift_proxy *b, struct ib_send_wr *wr)
{
	wr->sg_list = b->sge;
	if (!(b->wr.flags & SHIFT_WR_INLINE))
		return proxy_translate_sges(sqp, b, &wr->num_sge);
	b->sge[0].addr = (uintptr_t)b->wr.inline_data;
	b->sge[0].length = b->wr.length;
	b->sge[0].lkey = 0;
	wr->num_sge = b->wr.length ? 1 : 0;
	wr->send_flags |= IB_SEND_INLINE;
	return 0;
}

union proxy_wr {
	struct ib_send_wr send;
	struct ib_rdma_wr rdma;
	struct ib_atomic_wr atomic;
	struct ib_reg_wr reg;
};

/*
 * Build the kernel's work request from @b->wr; opcodes have the same numbers, @key is the remote
 * key.  Fences are never passed on: the ledger enforces them.  (With a fence rxe of 6.1 and 6.12
 * waits until no READ at all is under way, those behind the fenced request included; after a retry
 * the two wait for one another for ever.)
 */
static int proxy_build_wr(struct shift_qp *sqp, struct shift_proxy *b, u32 key,
			  union proxy_wr *wr)
{
	const struct shift_mr_ops *mrs = sqp->rings.provider->mrs;

	memset(wr, 0, sizeof(*wr));
	wr->send.wr_cqe = &b->cqe;
	wr->send.opcode = b->wr.opcode;
	wr->send.send_flags = IB_SEND_SIGNALED;
	if (b->wr.flags & SHIFT_WR_SOLICITED)
		wr->send.send_flags |= IB_SEND_SOLICITED;

	if (mrs && mrs->local(b->wr.opcode))
		return mrs->build(sqp, &b->wr, b->path, &wr->reg);
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
		if (!sqp->peer.atomic && b->path != SHIFT_PATH_HOME)
			return -EPERM;
		wr->atomic.remote_addr = b->wr.remote_addr;
		wr->atomic.compare_add = b->wr.compare_add;
		wr->atomic.swap = b->wr.swap;
		wr->atomic.rkey = key;
		break;
	default:
		return -EOPNOTSUPP;
	}
	return proxy_build_data(sqp, b, &wr->send);
}

/*
 * Does the request have a remote key that must be valid?  A request of no bytes may have any key,
 * except a READ: rxe of 6.1 looks at the key of a READ that is repeated.
 */
static bool wr_has_rkey(const struct shift_wr *wr, u32 *rkey)
{
	*rkey = wr->opcode == SHIFT_WR_SEND_WITH_INV ? wr->imm : wr->rkey;
	if (wr->opcode == SHIFT_WR_SEND || wr->opcode == SHIFT_WR_SEND_WITH_IMM)
		return false;
	return wr->length || wr->opcode == SHIFT_WR_SEND_WITH_INV ||
	       wr->opcode == SHIFT_WR_RDMA_READ;
}

/* The key for @rkey on @b's path.  0, -EINPROGRESS (the peer has to be asked), -ENOENT. */
static int proxy_translate_rkey(struct shift_qp *sqp, struct shift_proxy *b, u32 rkey, u32 *key)
{
	int err;

	*key = rkey;
	if (b->path == SHIFT_PATH_HOME && !sqp->peer.windows)
		return 0;
	err = shift_rkey_get(sqp, rkey, key);
	if (err == -ENOENT && b->wr.opcode == SHIFT_WR_RDMA_READ && !b->wr.length) {
		/* any number will do: do not remember it, there are four billion of them */
		shift_rkey_forget(sqp, rkey);
		*key = rkey;
		err = 0;
	}
	return err;
}

/*
 * BIND_MW and LOCAL_INV change the recorded state of a window; nothing is posted.  An invalidation
 * waits for all operations before it, and for the end of the window's region, which needs a mutex.
 */
static int proxy_perform(struct shift_qp *sqp, struct shift_proxy *b, u64 seq, u32 *rkey)
{
	struct shift_mw_op op;
	int err;

	if (!shift_mw_op(&b->wr, &op))
		return -EOPNOTSUPP;
	if (op.opcode == SHIFT_WR_LOCAL_INV && b->inflight)
		return -EAGAIN;
	*rkey = op.key;
	if (op.opcode == SHIFT_WR_LOCAL_INV && shift_region_is_there(sqp, op.key))
		return -ESTALE;
	err = shift_mw_perform(sqp, &op);
	if (err)
		return err;
	shift_ledger_at(&sqp->rec.ledger, seq)->flags |= SHIFT_ENTRY_APPLIED;
	shift_ledger_sent(&sqp->rec.ledger, seq, b->path);
	shift_ledger_executed(&sqp->rec.ledger, seq);
	return 0;
}

/*
 * Has a request to wait until nothing is under way?  rxe begins a retry with the oldest request
 * that is not answered, and does the operations on MRs behind it once more, which fails and leaves
 * the QP dead, and silent.  So nothing is under way beside such an operation.
 */
static bool proxy_waits_alone(const struct shift_qp *sqp, const struct shift_proxy *b, bool local)
{
	/* both devices of a pair are of one kind for users that have such operations */
	return b->inflight && (local || b->local) &&
	       sqp->sdev->provider->flags & SHIFT_PROVIDES_LOCAL_TWICE;
}

/**
 * shift_proxy_post - post one entry of the ledger
 * @sqp: the QP.
 * @seq: the entry, next in order.
 * @rkey: out: the remote key that is not known, with -EINPROGRESS.
 *
 * Context: any but softirq; ledger_lock.
 * Return: 0, -EAGAIN (not open, or queue full), -EINPROGRESS (remote key to be
 * asked for), -EACCES (local key), -ENOENT (remote key), -EPERM (an atomic that
 * may not change its NIC), -EKEYREJECTED (a bind), -ESTALE (shift_region_drop() has to be called
 * for the key @rkey before), -EINVAL.
 */
int shift_proxy_post(struct shift_qp *sqp, u64 seq, u32 *rkey)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	struct shift_entry *e = shift_ledger_at(l, seq);
	struct shift_proxy *b = sqp->rec.proxy;
	const struct shift_mr_ops *mrs;
	const struct ib_send_wr *bad;
	union proxy_wr wr;
	bool local;
	u32 key = 0;
	int err;

	lockdep_assert_held(&sqp->ledger_lock);
	if (!b || !b->open || !b->sends || b->held || b->error || b->inflight >= b->depth)
		return -EAGAIN;
	err = sqp->rings.provider->decode(sqp, seq, &b->wr);
	if (err)
		return err;
	mrs = sqp->rings.provider->mrs;
	if (!mrs && shift_window_local(b->wr.opcode))
		return proxy_perform(sqp, b, seq, rkey);
	local = mrs && mrs->local(b->wr.opcode);
	if (proxy_waits_alone(sqp, b, local))
		return -EAGAIN;
	if (wr_has_rkey(&b->wr, rkey))
		err = proxy_translate_rkey(sqp, b, *rkey, &key);
	if (!err && e->done)
		err = shift_wr_skip(&b->wr, e->done * sqp->app.mtu);
	if (!err)
		err = proxy_build_wr(sqp, b, key, &wr);
	if (err)
		return err;

	err = ib_post_send(b->qp, &wr.send, &bad);
	if (err)
		return err == -ENOMEM ? -EAGAIN : err;
	/* the completion handler waits for ledger_lock, which is held */
	b->inflight++;
	b->local = local;
	shift_ledger_sent(l, seq, b->path);
	/* the window may be bound again, and after 256 times it has the same key */
	if (b->wr.opcode == SHIFT_WR_SEND_WITH_INV)
		shift_rkey_forget(sqp, *rkey);
	return 0;
}

/*
 * What stands for a receive that cannot be posted as it is: the message that takes it fails, as one
 * does that takes a receive with a bad key.  It fails at the place at which it was posted, and what
 * was posted before is of use until then.
 */
static int proxy_post_spoiled(struct shift_proxy *b, struct ib_recv_wr *wr)
{
	const struct ib_recv_wr *bad;

	/* room for any message, whose length may be looked at before the key */
	b->sge[0] = (struct ib_sge) { .length = SHIFT_WR_MAX_LENGTH - 1, .lkey = SHIFT_NO_KEY };
	wr->num_sge = 1;
	return ib_post_recv(b->qp, wr, &bad);
}

/* The device takes no receives: it is of no use.  ledger_lock. */
static void proxy_give_up(struct shift_proxy *b)
{
	lockdep_assert_held(&b->sqp->ledger_lock);
	WRITE_ONCE(b->error, IB_WC_WR_FLUSH_ERR);
	shift_qp_kick(b->sqp, SHIFT_QPB_PROXY_ERR);
}

/**
 * shift_proxy_post_recv - post one receive
 * @sqp: the QP.
 * @seq: the next one of its receives.
 *
 * Context: any that may take a spinlock; ledger_lock.
 * Return: 0; -EAGAIN: not armed, or broken, or the queue is full.
 */
int shift_proxy_post_recv(struct shift_qp *sqp, u64 seq)
{
	struct shift_recvs *r = &sqp->rec.recvs;
	struct shift_proxy *b = sqp->rec.proxy;
	const struct ib_recv_wr *bad;
	struct ib_recv_wr wr = {};
	int err;

	lockdep_assert_held(&sqp->ledger_lock);
	if (!b || !b->live || b->error || r->post - r->done >= b->recv_depth)
		return -EAGAIN;
	wr.wr_cqe = &b->recv_cqe;
	wr.sg_list = b->sge;
	err = sqp->rings.provider->decode_recv(sqp, seq, &b->wr);
	if (!err) {
		/* a bad key is not refused here: the message that uses the receive fails */
		proxy_translate_sges(sqp, b, &wr.num_sge);
		err = ib_post_recv(b->qp, &wr, &bad);
	}
	if (err && err != -ENOMEM) {
		pr_warn_ratelimited("%s qp %u: a receive cannot be posted on path %u (%d): the message that takes it fails\n",
				    sqp->sdev->name, sqp->qpn, b->path, err);
		err = proxy_post_spoiled(b, &wr);
	}
	if (err && err != -ENOMEM)
		proxy_give_up(b);
	if (err)
		return -EAGAIN;
	b->receives++;	/* the completion handler waits for ledger_lock */
	return 0;
}

bool shift_proxy_is_open(const struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->ledger_lock);
	return sqp->rec.proxy && sqp->rec.proxy->open;
}

/*
 * Does the oldest operation under way need a receive?  Then it may wait for the peer's application,
 * which may take as long as it likes.
 */
static bool proxy_waits_for_recv(struct shift_qp *sqp, struct shift_proxy *b)
{
	u64 seq = shift_ledger_next_sent(&sqp->rec.ledger, b->next_done);

	return seq < sqp->rec.ledger.head &&
	       shift_ledger_at(&sqp->rec.ledger, seq)->flags & SHIFT_ENTRY_RECV;
}

/* Time in ns for which nothing was completed although work is under way; ledger_lock. */
static u64 proxy_stalled_ns(struct shift_proxy *b, u64 now)
{
	lockdep_assert_held(&b->sqp->ledger_lock);
	if (b->open && b->inflight && !b->error && b->since && b->next_done == b->watched)
		return now - b->since;
	b->watched = b->next_done;
	b->since = b->inflight ? now : 0;
	b->rung = 0;
	return 0;
}

/**
 * shift_proxy_watch - does the proxy QP complete what was posted to it?
 * @sqp: the QP, locked, in RUN on a proxy QP.
 *
 * A device that has lost work reports no error, so that posted work needs a deadline.  rxe of 6.1
 * can lose work: its requester stops at the limit of packets or buffers under way, and after that
 * notes that it waits to be woken.  If its completer, on another CPU, handles the last
 * acknowledgment between the two, nobody wakes the requester.  The retransmit timer wakes the
 * completer alone, and repeats only what was sent.  A new post would wake the requester, but an
 * application whose queue is full does not post.  On an emulated CPU, which may not run for
 * milliseconds, the time between the two steps is long.
 *
 * A doorbell with no work is such a post for rxe, and does nothing on other devices (rxe of 6.12
 * has one task for both and does not need it).  If nothing completes for the same time again, the
 * path has to be left, unless the peer's application may be the cause.
 *
 * An operation that waits for its fence was not posted and has no deadline.  The READ or atomic
 * that it waits for has one.
 *
 * Return: true if the path is to be left.
 */
bool shift_proxy_watch(struct shift_qp *sqp)
{
	u64 limit = shift_scaled_ns(SHIFT_WATCH_MS);
	struct shift_proxy *b = sqp->rec.proxy;
	const struct ib_send_wr *bad;
	bool ring, waits = false;
	u64 age;

	lockdep_assert_held(&sqp->lock);
	if (!b)
		return false;
	spin_lock_bh(&sqp->ledger_lock);
	age = proxy_stalled_ns(b, ktime_get_ns());
	ring = age >= limit;
	if (ring) {
		waits = proxy_waits_for_recv(sqp, b);
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
