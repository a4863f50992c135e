// SPDX-License-Identifier: GPL-2.0
/*
 * The backup QP: made and owned by the kernel on the backup device, so that it
 * works while the application sleeps.
 *
 * Every WR is signaled: the ledger has to know.  Completions come in posting
 * order on an RC QP, so each belongs to the oldest entry that was posted.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hash.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/rdma_cm.h>
#include "shift.h"

/**
 * struct shift_backup - a QP on the backup device
 * @sqp: whose it is; outlives this.
 * @qp: the QP.
 * @cq: its CQ, of its own.
 * @cqe: handler of every send completion.
 * @recv_cqe: handler of every receive completion.
 * @depth: send WRs that may be outstanding.
 * @recv_depth: receive WRs that may be.
 * @inflight: WRs that are; ledger_lock.
 * @next_done: ledger sequence of the next completion; ledger_lock.
 * @armed: at RTS for the epoch at hand; ledger_lock.
 * @open: work may be posted: both sides are ready; ledger_lock.
 * @recv_failed: a receive got an error of its own: the application's.
 * @error: first error status since it was armed.
 * @wr: scratch for posting; ledger_lock.
 * @sge: the same.
 */
struct shift_backup {
	struct shift_qp *sqp;
	struct ib_qp *qp;
	struct ib_cq *cq;
	struct ib_cqe cqe, recv_cqe;
	u32 depth, recv_depth;
	u32 inflight;
	u64 next_done;
	bool armed, open, recv_failed;
	u32 error;
	struct shift_wr wr;
	struct ib_sge sge[SHIFT_WR_MAX_SGE];
};

/**
 * shift_start_psn - first PSN of a sender on a path armed for @epoch
 * @cookie: the sender's.
 * @epoch: the switch.
 *
 * Both sides can tell it, so that a responder is ready before it says so; each
 * epoch is 2^16 further on, so that packets of an older one look like
 * duplicates.
 */
u32 shift_start_psn(u64 cookie, u32 epoch)
{
	return shift_psn_add(hash_64(cookie, 24), (epoch & 0xff) << 16);
}

u32 shift_backup_qpn(const struct shift_qp *sqp)
{
	return sqp->backup ? sqp->backup->qp->qp_num : 0;
}

u32 shift_backup_error(const struct shift_qp *sqp)
{
	return sqp->backup ? READ_ONCE(sqp->backup->error) : 0;
}

bool shift_backup_busy(const struct shift_qp *sqp)
{
	return sqp->backup && READ_ONCE(sqp->backup->inflight);
}

/* Softirq.  The QP's work item is woken only if it has something to do. */
static void backup_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct shift_backup *b = container_of(wc->wr_cqe, struct shift_backup, cqe);
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
		if (!shift_ledger_executed(&sqp->ledger, seq))
			b->next_done = seq + 1;
	} else if (!b->error || b->error == IB_WC_WR_FLUSH_ERR) {
		WRITE_ONCE(b->error, wc->status);
	}
	more = b->inflight < b->depth / 2 &&
	       (sqp->stop_status || sqp->ledger.post != sqp->ledger.head);
	spin_unlock_bh(&sqp->ledger_lock);

	if (READ_ONCE(b->error)) {
		shift_switch_kick(sqp, SHIFT_QP_BACKUP_ERR);
		return;
	}
	shift_replay_deliver(sqp);
	if (more)
		shift_switch_kick(sqp, SHIFT_QP_KICK);
}

/* Softirq.  A flush means that the QP broke; why, a completion of a send may tell. */
static void backup_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct shift_backup *b = container_of(wc->wr_cqe, struct shift_backup, recv_cqe);
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
		shift_switch_kick(sqp, SHIFT_QP_BACKUP_ERR);
}

static void backup_event(struct ib_event *event, void *context)
{
	/* errors show in the completions */
}

static int backup_make(struct shift_qp *sqp, struct ib_device *ibdev, struct ib_pd *pd)
{
	struct ib_qp_init_attr init = {
		.event_handler = backup_event,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = min_t(u32, sqp->sq.slots, ibdev->attrs.max_qp_wr),
			.max_recv_wr = clamp_t(u32, sqp->recvs.slots, 1,
					       ibdev->attrs.max_qp_wr),
			.max_send_sge = clamp_t(u32, sqp->attr.cap.max_send_sge, 1,
						ibdev->attrs.max_send_sge),
			.max_recv_sge = clamp_t(u32, sqp->attr.cap.max_recv_sge, 1,
						ibdev->attrs.max_recv_sge),
			.max_inline_data = sqp->attr.cap.max_inline_data,
		},
	};
	struct shift_backup *b;
	int err;

	b = kvzalloc(sizeof(*b), GFP_KERNEL);
	if (!b)
		return -ENOMEM;
	b->sqp = sqp;
	b->cqe.done = backup_done;
	b->recv_cqe.done = backup_recv_done;
	b->depth = init.cap.max_send_wr;
	b->recv_depth = init.cap.max_recv_wr;
	b->cq = ib_alloc_cq(ibdev, b, b->depth + b->recv_depth + 1, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(b->cq)) {
		err = PTR_ERR(b->cq);
		goto err_free;
	}
	init.send_cq = b->cq;
	init.recv_cq = b->cq;
	b->qp = ib_create_qp(pd, &init);
	if (IS_ERR(b->qp)) {
		err = PTR_ERR(b->qp);
		goto err_cq;
	}
	sqp->backup = b;
	return 0;

err_cq:
	ib_free_cq(b->cq);
err_free:
	kvfree(b);
	return err;
}

/**
 * shift_backup_create - make the backup QP; it stays in RESET until armed
 * @sqp: the QP, locked.
 *
 * Context: process context; may sleep on the backup device.
 * Return: 0 or a negative errno.
 */
int shift_backup_create(struct shift_qp *sqp)
{
	struct shift_dev *sdev = sqp->sdev;
	struct ib_pd *pd;
	int err = -ENODEV;

	lockdep_assert_held(&sqp->lock);
	if (sqp->backup)
		return 0;
	down_read(&sdev->mirror_sem);
	if (sdev->backup && sdev->backup->ibdev) {
		pd = shift_pd_mirror(sqp->spd);
		err = pd ? backup_make(sqp, sdev->backup->ibdev, pd) : -ENOMEM;
	}
	up_read(&sdev->mirror_sem);
	return err;
}

/**
 * shift_qp_quiet - RESET a QP of our own that is to be destroyed
 * @qp: not posted to any more.
 *
 * rxe queues a packet that it has let pass just before the RESET and processes it
 * never: on 6.12 the destruction then waits for it, for 50 s.  Receiving runs under
 * RCU, so a RESET after a grace period drops it.  And rxe of 6.1 does not survive the
 * destruction of a QP at work.
 *
 * Context: process context; sleeps.
 */
void shift_qp_quiet(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	ib_modify_qp(qp, &attr, IB_QP_STATE);
	synchronize_rcu_expedited();
	ib_modify_qp(qp, &attr, IB_QP_STATE);
}

/* Process context; sqp->lock.  No completion handler runs after this. */
void shift_backup_destroy(struct shift_qp *sqp)
{
	struct shift_backup *b = sqp->backup;

	if (!b)
		return;
	shift_backup_reset(sqp);
	spin_lock_bh(&sqp->ledger_lock);
	sqp->backup = NULL;
	spin_unlock_bh(&sqp->ledger_lock);
	shift_qp_quiet(b->qp);
	ib_destroy_qp(b->qp);
	ib_free_cq(b->cq);
	kvfree(b);
}

/**
 * shift_backup_reset - not one packet more on the backup path
 * @sqp: the QP, locked.
 *
 * Return: 0 or a negative errno of the device.
 */
int shift_backup_reset(struct shift_qp *sqp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct shift_backup *b = sqp->backup;
	int err;

	if (!b)
		return 0;
	err = ib_modify_qp(b->qp, &attr, IB_QP_STATE);
	spin_lock_bh(&sqp->ledger_lock);
	b->armed = false;
	b->open = false;
	b->inflight = 0;
	spin_unlock_bh(&sqp->ledger_lock);
	return err;
}

/* Both sides are ready: from now on doorbells post; sqp->lock. */
void shift_backup_open(struct shift_qp *sqp)
{
	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->backup)
		sqp->backup->open = sqp->backup->armed;
	spin_unlock_bh(&sqp->ledger_lock);
}

static int backup_to_rtr(struct shift_qp *sqp, u32 epoch, struct ib_qp_attr *attr)
{
	struct shift_backup *b = sqp->backup;
	const struct ib_gid_attr *sgid;
	int err;

	sgid = rdma_find_gid(b->qp->device, &sqp->backup_sgid, IB_GID_TYPE_ROCE_UDP_ENCAP,
			     NULL);
	if (IS_ERR(sgid))
		return PTR_ERR(sgid);
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IB_QPS_RTR;
	attr->path_mtu = sqp->app.path_mtu;
	attr->dest_qp_num = sqp->peer_backup_qpn;
	attr->rq_psn = shift_start_psn(sqp->peer_cookie, epoch);
	attr->max_dest_rd_atomic = sqp->app.max_dest_rd_atomic;
	attr->min_rnr_timer = sqp->app.min_rnr_timer;
	attr->ah_attr.type = rdma_ah_find_type(b->qp->device, 1);
	rdma_ah_set_port_num(&attr->ah_attr, 1);
	rdma_ah_set_sl(&attr->ah_attr, sqp->app.ah_attr.sl);
	rdma_move_grh_sgid_attr(&attr->ah_attr, &sqp->backup_dgid, 0,
				max_t(u8, sqp->app.ah_attr.grh.hop_limit, 64),
				sqp->app.ah_attr.grh.traffic_class, sgid);
	err = ib_modify_qp(b->qp, attr,
			   IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			   IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	rdma_destroy_ah_attr(&attr->ah_attr);
	return err;
}

static int backup_to_rts(struct shift_qp *sqp, u32 epoch, struct ib_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IB_QPS_RTS;
	attr->timeout = sqp->app.timeout;
	attr->retry_cnt = sqp->app.retry_cnt;
	attr->rnr_retry = 7;	/* without end: the peer's receives are being moved too */
	attr->sq_psn = shift_start_psn(sqp->cookie, epoch);
	attr->max_rd_atomic = sqp->app.max_rd_atomic;
	return ib_modify_qp(sqp->backup->qp, attr,
			    IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			    IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

/**
 * shift_backup_arm - connect the backup QP to the peer's for @epoch
 * @sqp: the QP, locked; the backup is in RESET.
 * @epoch: the switch that was agreed on.
 *
 * Return: 0 or a negative errno; the QP is in RESET then.
 */
int shift_backup_arm(struct shift_qp *sqp, u32 epoch)
{
	struct shift_backup *b = sqp->backup;
	struct ib_qp_attr *attr;
	int err;

	if (!b)
		return -ENODEV;
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	if (!attr)
		return -ENOMEM;
	err = shift_backup_reset(sqp);
	if (err)
		goto out;
	attr->qp_state = IB_QPS_INIT;
	attr->port_num = 1;
	attr->qp_access_flags = sqp->app.qp_access_flags;
	err = ib_modify_qp(b->qp, attr,
			   IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	if (!err)
		err = backup_to_rtr(sqp, epoch, attr);
	if (!err)
		err = backup_to_rts(sqp, epoch, attr);
	if (err) {
		pr_warn_ratelimited("%s qp %u: backup cannot be connected (%d)\n",
				    sqp->sdev->name, sqp->qpn, err);
		shift_backup_reset(sqp);
		goto out;
	}
	spin_lock_bh(&sqp->ledger_lock);
	b->error = 0;
	b->recv_failed = false;
	b->inflight = 0;
	b->next_done = sqp->ledger.tail;
	b->armed = true;
	spin_unlock_bh(&sqp->ledger_lock);
out:
	kfree(attr);
	return err;
}

/* Every lkey is the application's word: it must name an MR of the QP's own PD. */
static int translate_sges(struct shift_qp *sqp, struct shift_backup *b)
{
	u32 i;

	for (i = 0; i < b->wr.num_sge; i++) {
		const struct shift_sge *sge = &b->wr.sge[i];

		b->sge[i].addr = sge->addr;
		b->sge[i].length = sge->length;
		if (shift_mr_translate(sqp->spd, sge, &b->sge[i].lkey))
			return -EACCES;
	}
	return 0;
}

/* The data of @b->wr as the scatter list of @wr. */
static int build_data(struct shift_qp *sqp, struct shift_backup *b, struct ib_send_wr *wr)
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

union backup_wr {
	struct ib_send_wr send;
	struct ib_rdma_wr rdma;
	struct ib_atomic_wr atomic;
};

/* @b->wr as the kernel's; numbers of opcodes are the same, @key is the peer's. */
static int build_wr(struct shift_qp *sqp, struct shift_backup *b, u32 key,
		    union backup_wr *wr)
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
		if (!sqp->peer_atomic)
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
 * shift_backup_post - post one entry of the ledger
 * @sqp: the QP.
 * @seq: the entry, next in order.
 * @rkey: out: the remote key that is not known, with -EINPROGRESS.
 *
 * Context: any but softirq; ledger_lock.
 * Return: 0, -EAGAIN (not open, or queue full), -EINPROGRESS (remote key to be
 * asked for), -EACCES (local key), -ENOENT (remote key), -EPERM (an atomic that
 * may not change its NIC), -EINVAL.
 */
int shift_backup_post(struct shift_qp *sqp, u64 seq, u32 *rkey)
{
	struct shift_ledger *l = &sqp->ledger;
	struct shift_entry *e = shift_ledger_at(l, seq);
	struct shift_backup *b = sqp->backup;
	const struct ib_send_wr *bad;
	union backup_wr wr;
	u32 key = 0;
	int err;

	lockdep_assert_held(&sqp->ledger_lock);
	if (!b || !b->open || b->error || b->inflight >= b->depth)
		return -EAGAIN;
	err = shift_rxe_decode(shift_ledger_raw(l, seq), l->slot_size, &b->wr);
	if (err)
		return err;
	*rkey = b->wr.rkey;
	if (has_rkey(&b->wr))
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
	shift_ledger_sent(l, seq, sqp->path);
	return 0;
}

/**
 * shift_backup_post_recv - post one receive
 * @sqp: the QP.
 * @seq: the next one of its receives.
 *
 * Context: any that may take a spinlock; ledger_lock.
 * Return: 0, -EAGAIN (not armed, or queue full), -EACCES (local key), -EINVAL.
 */
int shift_backup_post_recv(struct shift_qp *sqp, u64 seq)
{
	struct shift_recvs *r = &sqp->recvs;
	struct shift_backup *b = sqp->backup;
	const struct ib_recv_wr *bad;
	struct ib_recv_wr wr = {};
	int err;

	lockdep_assert_held(&sqp->ledger_lock);
	if (!b || !b->armed || r->post - r->done >= b->recv_depth)
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
bool shift_backup_recv_failed(const struct shift_qp *sqp)
{
	return sqp->backup && READ_ONCE(sqp->backup->recv_failed);
}

bool shift_backup_is_open(const struct shift_qp *sqp)
{
	return sqp->backup && sqp->backup->open;
}
