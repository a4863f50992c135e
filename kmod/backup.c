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
#include <linux/irq_poll.h>
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
 * @armed: its completions are those of the epoch at hand; ledger_lock.
 * @live: at RTS: receives may be posted; ledger_lock.
 * @open: work may be posted: both sides are ready; ledger_lock.
 * @gave: operations that consumed a receive of the peer's, since armed; ledger_lock.
 * @took: receives that were consumed, since armed; ledger_lock.
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
	u64 next_done, gave, took;
	bool armed, live, open, recv_failed;
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
		struct shift_entry *e = shift_ledger_at(&sqp->ledger, seq);
		u32 packets = e->packets - e->done;

		if (!shift_ledger_executed(&sqp->ledger, seq)) {
			b->next_done = seq + 1;
			b->gave += !!(e->flags & SHIFT_ENTRY_RECV);
			sqp->sent.psn = shift_psn_add(sqp->sent.psn, packets);
		}
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
		b->took++;
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

/* Nothing more is posted: a QP in RESET refuses, which would look like an error. */
static void backup_hush(struct shift_backup *b)
{
	spin_lock_bh(&b->sqp->ledger_lock);
	b->live = false;
	b->open = false;
	spin_unlock_bh(&b->sqp->ledger_lock);
}

/* From here on completions are of the past. */
static void backup_disarm(struct shift_backup *b)
{
	spin_lock_bh(&b->sqp->ledger_lock);
	b->armed = false;
	b->inflight = 0;
	spin_unlock_bh(&b->sqp->ledger_lock);
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
	backup_hush(b);
	err = ib_modify_qp(b->qp, &attr, IB_QP_STATE);
	backup_disarm(b);
	return err;
}

/*
 * What the CQ holds was executed before the RESET, and the peer counts on it: its
 * handler is taken off the CQ, the rest handled here.
 */
static void backup_drain_cq(struct shift_backup *b)
{
	struct ib_cq *cq = b->cq;
	struct ib_wc wc[4];
	int i, n;

	irq_poll_disable(&cq->iop);
	do {
		n = ib_poll_cq(cq, ARRAY_SIZE(wc), wc);
		for (i = 0; i < n; i++)
			wc[i].wr_cqe->done(cq, &wc[i]);
	} while (n > 0);
	irq_poll_enable(&cq->iop);
	if (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
		irq_poll_sched(&cq->iop);
}

/**
 * shift_backup_fence - stop the backup QP and take in what it has done
 * @sqp: the QP, locked.
 *
 * Context: process context; sleeps.
 * Return: 0, also if it was stopped already; a negative errno of the device.
 */
int shift_backup_fence(struct shift_qp *sqp)
{
	struct ib_qp_attr *attr;
	struct shift_backup *b = sqp->backup;
	struct ib_qp_init_attr init = {};
	int err;

	if (!b || !b->armed)
		return 0;
	attr = kzalloc(sizeof(*attr), GFP_NOIO);
	if (!attr)
		return -ENOMEM;
	backup_hush(b);
	attr->qp_state = IB_QPS_RESET;
	err = ib_modify_qp(b->qp, attr, IB_QP_STATE);
	if (!err) {
		backup_drain_cq(b);
		err = ib_query_qp(b->qp, attr, IB_QP_RQ_PSN, &init);
	}
	if (!err)
		shift_fence_heard(sqp, 1, attr->rq_psn & SHIFT_PSN_MASK);
	kfree(attr);
	backup_disarm(b);
	return err;
}

/* Messages that consumed a receive, by direction, since it was armed. */
void shift_backup_counts(struct shift_qp *sqp, u64 *gave, u64 *took)
{
	struct shift_backup *b = sqp->backup;

	spin_lock_bh(&sqp->ledger_lock);
	*gave = b ? b->gave : 0;
	*took = b ? b->took : 0;
	spin_unlock_bh(&sqp->ledger_lock);
}

/* Both sides are ready: from now on doorbells post; sqp->lock. */
void shift_backup_open(struct shift_qp *sqp)
{
	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->backup)
		sqp->backup->open = sqp->backup->armed;
	sqp->sent = (struct shift_life) {
		.path = 1, .epoch = sqp->epoch,
		.psn = shift_start_psn(sqp->cookie, sqp->epoch),
	};
	sqp->sent_any = true;
	spin_unlock_bh(&sqp->ledger_lock);
}

/**
 * shift_qp_attr_rtr - attributes for RTR on a path
 * @ibdev: the device of the path.
 * @sgid: its address there.
 * @dgid: the peer's.
 * @sqp: whose; the rest is as the application has set it.
 * @qpn: the peer's QP.
 * @epoch: of the switch.
 * @attr: the result; the caller calls rdma_destroy_ah_attr() on its ah_attr.
 *
 * Return: 0, -ENOENT if the device lost the address.
 */
int shift_qp_attr_rtr(struct ib_device *ibdev, const union ib_gid *sgid, const union ib_gid *dgid,
		      struct shift_qp *sqp, u32 qpn, u32 epoch, struct ib_qp_attr *attr)
{
	const struct ib_gid_attr *gid;
	union ib_gid remote = *dgid;

	/* by value: indices change when a port goes down and up */
	gid = rdma_find_gid(ibdev, sgid, IB_GID_TYPE_ROCE_UDP_ENCAP, NULL);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IB_QPS_RTR;
	attr->path_mtu = sqp->app.path_mtu;
	attr->dest_qp_num = qpn;
	attr->rq_psn = shift_start_psn(sqp->peer_cookie, epoch);
	attr->max_dest_rd_atomic = sqp->app.max_dest_rd_atomic;
	attr->min_rnr_timer = sqp->app.min_rnr_timer;
	attr->ah_attr.type = rdma_ah_find_type(ibdev, 1);
	rdma_ah_set_port_num(&attr->ah_attr, 1);
	rdma_ah_set_sl(&attr->ah_attr, sqp->app.ah_attr.sl);
	rdma_move_grh_sgid_attr(&attr->ah_attr, &remote, 0,
				max_t(u8, sqp->app.ah_attr.grh.hop_limit, 64),
				sqp->app.ah_attr.grh.traffic_class, gid);
	return 0;
}

/* Attributes for RTS on a path; see above. */
void shift_qp_attr_rts(struct shift_qp *sqp, u32 epoch, struct ib_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IB_QPS_RTS;
	attr->timeout = sqp->app.timeout;
	attr->retry_cnt = sqp->app.retry_cnt;
	attr->rnr_retry = sqp->app.rnr_retry;
	attr->sq_psn = shift_start_psn(sqp->cookie, epoch);
	attr->max_rd_atomic = sqp->app.max_rd_atomic;
}

static int backup_to_rtr(struct shift_qp *sqp, u32 epoch, struct ib_qp_attr *attr)
{
	struct shift_backup *b = sqp->backup;
	int err;

	err = shift_qp_attr_rtr(b->qp->device, &sqp->backup_sgid, &sqp->backup_dgid, sqp,
				sqp->peer_backup_qpn, epoch, attr);
	if (err)
		return err;
	err = ib_modify_qp(b->qp, attr, SHIFT_RTR_MASK);
	rdma_destroy_ah_attr(&attr->ah_attr);
	return err;
}

static int backup_to_rts(struct shift_qp *sqp, u32 epoch, struct ib_qp_attr *attr)
{
	shift_qp_attr_rts(sqp, epoch, attr);
	attr->rnr_retry = 7;	/* without end: the peer's receives are being moved too */
	return ib_modify_qp(sqp->backup->qp, attr, SHIFT_RTS_MASK);
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
	err = ib_modify_qp(b->qp, attr, SHIFT_INIT_MASK);
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
	sqp->armed[1] = (struct shift_life) {
		.path = 1, .epoch = epoch, .psn = shift_start_psn(sqp->peer_cookie, epoch),
	};
	spin_lock_bh(&sqp->ledger_lock);
	b->error = 0;
	b->recv_failed = false;
	b->inflight = 0;
	b->gave = 0;
	b->took = 0;
	b->next_done = sqp->ledger.tail;
	b->armed = true;
	b->live = true;
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
bool shift_backup_recv_failed(const struct shift_qp *sqp)
{
	return sqp->backup && READ_ONCE(sqp->backup->recv_failed);
}

bool shift_backup_is_open(const struct shift_qp *sqp)
{
	return sqp->backup && sqp->backup->open;
}
