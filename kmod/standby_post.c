// SPDX-License-Identifier: GPL-2.0
/*
 * Posting to a kernel-owned QP, and its completions.
 *
 * Every WR is signaled: the ledger has to know.  Completions come in posting
 * order on an RC QP, so each belongs to the oldest entry that was posted.
 */
#include "standby.h"

u32 shift_standby_error(const struct shift_qp *sqp)
{
	return sqp->active ? READ_ONCE(sqp->active->error) : 0;
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

/* Softirq.  The QP's work item is woken only if it has something to do. */
void shift_standby_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct shift_standby *b = container_of(wc->wr_cqe, struct shift_standby, cqe);
	struct shift_qp *sqp = b->sqp;
	bool more;
	u64 seq;

	spin_lock_bh(&sqp->ledger_lock);
	if (!b->armed) {
		/* flushed by a reset: the ledger has taken it back */
		spin_unlock_bh(&sqp->ledger_lock);
		return;
	}
	if (b->inflight)
		b->inflight--;
	seq = shift_ledger_next_sent(&sqp->ledger, b->next_done);
	if (wc->status == IB_WC_SUCCESS && !b->error) {
		struct shift_entry *e = shift_ledger_at(&sqp->ledger, seq);
		u32 packets = e->packets - e->done;

		if (!shift_ledger_executed(&sqp->ledger, seq)) {
			b->next_done = seq + 1;
			sqp->sent.psn = shift_psn_add(sqp->sent.psn, packets);
		}
	} else if (!b->error || b->error == IB_WC_WR_FLUSH_ERR) {
		WRITE_ONCE(b->error, wc->status);
	}
	more = b->inflight < b->depth / 2 &&
	       (sqp->stop_status || sqp->ledger.post != sqp->ledger.head);
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
	if (!b->armed) {
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
 */
static int translate_sges(struct shift_qp *sqp, struct shift_standby *b)
{
	u32 i;

	for (i = 0; i < b->wr.num_sge; i++) {
		const struct shift_sge *sge = &b->wr.sge[i];

		b->sge[i].addr = sge->addr;
		b->sge[i].length = sge->length;
		if (shift_mr_translate(sqp->spd, sge, &b->sge[i].lkey))
			return -EACCES;
		if (b->path == SHIFT_PATH_HOME)
			b->sge[i].lkey = sge->lkey;
	}
	return 0;
}

/* The data of @b->wr as the scatter list of @wr. */
static int build_data(struct shift_qp *sqp, struct shift_standby *b, struct ib_send_wr *wr)
{
	wr->sg_list = b->sge;
	if (!(b->wr.flags & SHIFT_WR_INLINE)) {
		wr->num_sge = b->wr.num_sge;
		return translate_sges(sqp, b);
	}
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

/* @b->wr as the kernel's; numbers of opcodes are the same, @key is the peer's. */
static int build_wr(struct shift_qp *sqp, struct shift_standby *b, u32 key,
		    union standby_wr *wr)
{
	memset(wr, 0, sizeof(*wr));
	wr->send.wr_cqe = &b->cqe;
	wr->send.opcode = b->wr.opcode;
	wr->send.send_flags = IB_SEND_SIGNALED;
	if (b->wr.flags & SHIFT_WR_FENCE)
		wr->send.send_flags |= IB_SEND_FENCE;
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

static bool has_rkey(const struct shift_wr *wr)
{
	return wr->opcode != SHIFT_WR_SEND && wr->opcode != SHIFT_WR_SEND_WITH_IMM;
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
 * may not change its NIC), -EINVAL.
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
	if (!b || !b->open || b->held || b->error || b->inflight >= b->depth)
		return -EAGAIN;
	err = shift_rxe_decode(shift_ledger_raw(l, seq), l->slot_size, &b->wr);
	if (err)
		return err;
	*rkey = b->wr.rkey;
	if (b->path == SHIFT_PATH_HOME)
		key = b->wr.rkey;
	else if (has_rkey(&b->wr))
		err = shift_pairing_key(sqp, b->wr.rkey, &key);
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
	return 0;
}

/**
 * shift_standby_post_recv - post one receive
 * @sqp: the QP.
 * @seq: the next one of its receives.
 *
 * Context: any that may take a spinlock; ledger_lock.
 * Return: 0, -EAGAIN (not armed, or queue full), -EACCES (local key), -EINVAL.
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
	err = shift_rxe_decode_recv(r->raw + (size_t)((u32)seq & (r->slots - 1)) * r->slot_size,
				    r->slot_size, &b->wr);
	if (!err)
		err = translate_sges(sqp, b);
	if (err)
		return err;
	wr.wr_cqe = &b->recv_cqe;
	wr.sg_list = b->sge;
	wr.num_sge = b->wr.num_sge;
	err = ib_post_recv(b->qp, &wr, &bad);
	return err == -ENOMEM ? -EAGAIN : err;
}

/* Did an error of the application's own break it? */
bool shift_standby_recv_failed(const struct shift_qp *sqp)
{
	return sqp->active && READ_ONCE(sqp->active->recv_failed);
}

bool shift_standby_is_open(const struct shift_qp *sqp)
{
	return sqp->active && sqp->active->open;
}
