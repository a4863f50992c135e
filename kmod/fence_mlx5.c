// SPDX-License-Identifier: GPL-2.0
/*
 * The fence of a QP on mlx5: Documentation/mlx5.md.
 *
 * (1) ERR: not one packet more, and what is outstanding is flushed.  (2) When the last
 * receive has its completion all that was executed has one.  (3) The responder's expected
 * PSN is final.  (4) RESET: nothing more is flushed, and a doorbell is without effect.
 * (5) KICK in the flag word, and a barrier on every CPU: who posted without seeing it is
 * in the doorbell record, who comes later tells us.  (6) The rings are copied.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include "provider_mlx5.h"

#define FLUSH_US	20000	/* for the CQ to have room, and for flushes; scaled */
#define BUSY_US		500000	/* for room, while a thread that polls may wait in KICK; scaled */

/*
 * What was polled, as the provider has it.  After the QP was given back that may be of before,
 * when completions came from side rings: that is no more than the rings hold.
 */
static u32 sends_polled(struct shift_qp *sqp)
{
	u32 tail = shift_word_read(&sqp->sq_tail), number = sqp->mlx5->number;

	if (!sqp->mlx5->sends_again)
		return tail;
	if (number - tail <= SHIFT_MLX5_MAX_RING)
		return number;
	sqp->mlx5->sends_again = false;
	return tail;
}

static u32 recvs_polled(struct shift_qp *sqp)
{
	u32 tail = shift_word_read(&sqp->rq_tail);

	if (!sqp->mlx5->recvs_again)
		return tail;
	if (-tail <= SHIFT_MLX5_MAX_RING)
		return 0;
	sqp->mlx5->recvs_again = false;
	return tail;
}

/* The newest completions of its sends, or of its receives. */
static void find(const struct shift_qp *sqp, bool recvs, struct shift_mlx5_found *found)
{
	const struct shift_cq *scq = recvs ? sqp->rcq : sqp->scq;

	shift_mlx5_cq_find(&scq->ring, shift_mlx5_consumer(scq), sqp->qpn, recvs, U32_MAX, found);
}

/*
 * The send ring as it is now; sqp->lock, and nothing else uses the ledger yet.  @fenced:
 * what was outstanding was flushed by us, and just now.  A QP that broke by itself did so
 * with the oldest that it had.
 *
 * The order matters: a completion that others' have replaced in the CQ was polled before,
 * what was polled was posted before, and its WQE was written before that.
 */
static void look(struct shift_qp *sqp, bool fenced, struct shift_mlx5_view *view)
{
	struct shift_mlx5_found found;
	u32 tail;
	u64 word;

	find(sqp, false, &found);
	/* what was replaced there was polled: the tail is read after it */
	smp_rmb();
	tail = sends_polled(sqp);
	if (sqp->rq.npages)
		recvs_polled(sqp);	/* for the note that it keeps */
	word = shift_word_read64(&sqp->anchor);
	shift_ring_copy(&sqp->sq_heads, sqp->mlx5->heads);
	shift_ring_copy(&sqp->sq, sqp->ledger.raw);
	*view = (struct shift_mlx5_view) {
		.sq = {
			.ring = sqp->ledger.raw,
			.blocks = sqp->sq.slots,
			.producer = SHIFT_MLX5_ANCHOR_INDEX(word),
			.qpn = sqp->qpn,
		},
		.packets = SHIFT_MLX5_ANCHOR_PACKETS(word),
		.completed = found.success,
		.last = found.last,
		.heads = sqp->mlx5->heads,
		.tail = tail,
		.flushed = !found.success && found.error && (fenced || found.begins),
		.first_flushed = found.first_error,
		.start_psn = sqp->sq_psn,
		.mtu = sqp->mtu,
	};
}

/* CQs that are registered stay so while this holds. */
static bool rings_held(struct shift_qp *sqp)
{
	down_read(&sqp->sdev->ring_sem);
	if (shift_cq_registered(sqp->scq) && shift_cq_registered(sqp->rcq))
		return true;
	up_read(&sqp->sdev->ring_sem);
	return false;
}

/* The application may post meanwhile: what does not fit together is looked at again. */
static int look_back(struct shift_qp *sqp, bool fenced, struct shift_mlx5_view *view,
		     struct shift_mlx5_rewind *rewind)
{
	int tries, err;

	for (tries = 0; tries < 2; tries++) {
		look(sqp, fenced, view);
		err = shift_mlx5_rewind(view, &sqp->mlx5->wqe, rewind);
		if (!err || err == -EOPNOTSUPP)
			break;
	}
	return err;
}

/* What may be flushed to each of its CQs; if they are one, all to the first. */
static void flushes(const struct shift_qp *sqp, u64 *send, u64 *recv)
{
	*send = sqp->asked_send;
	*recv = sqp->rq.npages ? sqp->asked_recv : 0;
	if (sqp->scq != sqp->rcq)
		return;
	*send += *recv;
	*recv = 0;
}

/* Do the CQs have @send and @recv entries for all that may be flushed? */
static bool fits(const struct shift_qp *sqp, u32 send, u32 recv)
{
	u64 sends, recvs;

	flushes(sqp, &sends, &recvs);
	return send >= sends && recv >= recvs;
}

/**
 * shift_mlx5_movable - is what is outstanding of a kind that can be moved?
 * @sqp: the QP, locked, on its own device.
 *
 * The ring may change under the eyes of this: what does not fit together is no reason.
 * If neither the CQ nor what was polled tells where the outstanding ones begin it is
 * left alone for now.  One whose CQs are too small for a flush cannot be moved: it could
 * be stopped, but not be asked.
 *
 * Return: 0, -EOPNOTSUPP, -EAGAIN.
 */
int shift_mlx5_movable(struct shift_qp *sqp)
{
	struct shift_mlx5_rewind rewind;
	struct shift_mlx5_view view;
	int err;

	if (!rings_held(sqp))
		return 0;
	if (!fits(sqp, sqp->scq->ring.slots, sqp->rcq->ring.slots)) {
		up_read(&sqp->sdev->ring_sem);
		return -EOPNOTSUPP;
	}
	err = look_back(sqp, false, &view, &rewind);
	up_read(&sqp->sdev->ring_sem);
	if (err == -ENODATA && !view.completed)
		return -EAGAIN;
	return err == -EOPNOTSUPP ? err : 0;
}

/* Has all that was posted been completed?  What is not signaled is not known to be. */
bool shift_mlx5_still(struct shift_qp *sqp)
{
	struct shift_mlx5_rewind rewind;
	struct shift_mlx5_view view;
	bool still;

	if (!rings_held(sqp))
		return false;
	still = !look_back(sqp, false, &view, &rewind) && rewind.first == view.sq.producer;
	up_read(&sqp->sdev->ring_sem);
	return still;
}

/* What fences that are under way will yet write; of all CQs, as a QP has two. */
static DEFINE_MUTEX(promise_lock);

/*
 * Room for all that may be flushed, which is @most less what is not polled yet: its request has
 * a place in the QP's queue until then.  So a CQ that has a place for each request of all of its
 * QPs always has room, whoever polls it or not.
 */
static bool has_room(const struct shift_qp *sqp, struct shift_cq *scq, u64 most, u32 *need)
{
	u32 own, room;

	*need = 0;
	if (!most)
		return true;
	room = shift_mlx5_cq_room(&scq->ring, shift_mlx5_consumer(scq), sqp->qpn, &own);
	*need = most > own ? most - own : 0;
	return room >= (u64)scq->promised + *need;
}

static bool promise(struct shift_qp *sqp)
{
	struct shift_mlx5_qp *mlx5 = sqp->mlx5;
	u64 sends, recvs;
	bool room;

	flushes(sqp, &sends, &recvs);
	mutex_lock(&promise_lock);
	room = has_room(sqp, sqp->scq, sends, &mlx5->flush_send) &&
	       has_room(sqp, sqp->rcq, recvs, &mlx5->flush_recv);
	if (room) {
		sqp->scq->promised += mlx5->flush_send;
		sqp->rcq->promised += mlx5->flush_recv;
	}
	mutex_unlock(&promise_lock);
	return room;
}

/* They are written: the CQs themselves show it. */
static void kept(struct shift_qp *sqp)
{
	mutex_lock(&promise_lock);
	sqp->scq->promised -= sqp->mlx5->flush_send;
	sqp->rcq->promised -= sqp->mlx5->flush_recv;
	mutex_unlock(&promise_lock);
}

/*
 * Room in the CQs for all that ERR will flush; else neighbors would lose completions.
 * The application may poll meanwhile, unless it waits for another QP to be given back: that
 * ends soon.  If there is room, it is kept for this one: see kept().
 */
static bool room_to_flush(struct shift_qp *sqp)
{
	u64 last = shift_fence_deadline(BUSY_US), end = shift_fence_deadline(FLUSH_US);

	while (!promise(sqp)) {
		u64 now = ktime_get_ns();

		if (shift_own_awaited(sqp) && now < last)
			end = shift_fence_deadline(FLUSH_US);
		if (now > end)
			return false;
		usleep_range(100, 200);
	}
	return true;
}

/* Index behind the newest receive that has a completion of any kind. */
static u16 recvs_ended(const struct shift_mlx5_found *found)
{
	if (found->error)
		return found->last_error + 1;
	return found->success ? found->last + 1 : 0;
}

/*
 * All receives that were posted when it went to ERR are completed or flushed; or it takes
 * too long: others' completions may have replaced those.
 */
static void wait_flushed(struct shift_qp *sqp)
{
	u64 end = shift_fence_deadline(FLUSH_US);
	struct shift_mlx5_found found;
	u16 posted;

	if (!sqp->rq.npages)
		return;
	posted = shift_mlx5_counter(&sqp->rq_word);
	for (;;) {
		find(sqp, true, &found);
		/* those that were posted since may be among them */
		if ((u16)(recvs_ended(&found) - posted) <= sqp->rq.slots ||
		    ktime_get_ns() > end)
			return;
		usleep_range(50, 100);
	}
}

/*
 * Stop it.  Without ERR its responder cannot be asked: a device need not know of one in
 * RESET.
 *
 * Return: 0; -EIO: not asked; -EBUSY: it does not stop.
 */
static int stop(struct shift_qp *sqp, struct ib_qp_attr *attr, bool errored)
{
	bool promised = !errored && room_to_flush(sqp);
	int deaf = -EIO, err = 0;

	/* flushes may be seen from here on */
	set_bit(SHIFT_QP_FENCED, &sqp->flags);
	if (promised)
		err = shift_fence_stop(sqp, IB_QPS_ERR);
	if (!err && (promised || errored)) {
		wait_flushed(sqp);
		deaf = shift_fence_query(sqp, attr) ? -EIO : 0;
	}
	if (!err)
		err = shift_fence_stop(sqp, IB_QPS_RESET);
	if (promised)
		kept(sqp);
	if (!err)
		return deaf;
	clear_bit(SHIFT_QP_FENCED, &sqp->flags);
	return -EBUSY;
}

/* From here on the ring is a mailbox; ledger_lock. */
static int fill_ledger(struct shift_qp *sqp, u16 first)
{
	struct shift_ledger *l = &sqp->ledger;
	struct shift_wr wr;
	int got, err = 0;

	shift_ledger_start(l, 0);
	sqp->mlx5->at[0] = first;
	while (shift_ledger_count(l) < l->slots - 1) {
		got = shift_mlx5_take(sqp, &wr);
		if (!got)
			break;
		if (shift_replay_enter(sqp, got > 0 ? &wr : NULL))
			err = -EOPNOTSUPP;
	}
	return err;
}

/* The oldest receive without a completion, of those @posted; the order is that of look(). */
static u16 first_recv(struct shift_qp *sqp, u16 *posted)
{
	struct shift_mlx5_found found;
	u32 tail;

	find(sqp, true, &found);
	/* what was replaced there was polled: the tail is read after it */
	smp_rmb();
	tail = recvs_polled(sqp);
	*posted = shift_mlx5_counter(&sqp->rq_word);
	return found.success ? shift_mlx5_later(found.last + 1, tail, *posted) : tail;
}

/* ledger_lock; @posted: counter when they were copied. */
static int fill_recvs(struct shift_qp *sqp, u16 first, u16 posted)
{
	u16 count = posted - first;

	if (count > sqp->rq.slots) {
		shift_recv_start(sqp, posted, 0, sqp->rq.slots);
		return -EINVAL;
	}
	shift_recv_start(sqp, first, count, sqp->rq.slots);
	return 0;
}

/* An error of the application's own is the application's to see. */
static bool own_error(struct shift_qp *sqp)
{
	u32 cause;

	if (test_bit(SHIFT_QP_ERRORED, &sqp->flags))
		return false;
	cause = shift_provider_cause(sqp);
	return cause != IB_WC_RETRY_EXC_ERR && cause != IB_WC_LOC_QP_OP_ERR;
}

/**
 * shift_mlx5_fence - stop the default QP and rewind its send queue into the ledger
 * @sqp: the QP, locked and not fenced yet.
 * @errored: out: it was in ERR already.
 *
 * Return: as shift_fence().
 */
int shift_mlx5_fence(struct shift_qp *sqp, bool *errored)
{
	struct ib_qp_attr *attr = kzalloc(sizeof(*attr), GFP_NOIO);
	struct shift_mlx5_rewind rewind;
	struct shift_mlx5_view view;
	int err, rewound, deaf, recv_err;
	u16 recv_first = 0, posted = 0;

	if (!attr)
		return -ENOMEM;
	*errored = shift_fence_query(sqp, attr) ? test_bit(SHIFT_QP_ERRORED, &sqp->flags) :
						  attr->qp_state == IB_QPS_ERR;
	if (*errored && own_error(sqp)) {
		err = -ECANCELED;
		goto out;
	}
	deaf = stop(sqp, attr, *errored);
	if (deaf == -EBUSY) {
		err = deaf;
		goto out;
	}
	if (!deaf)
		shift_fence_heard(sqp, 0, attr->rq_psn & SHIFT_PSN_MASK);

	shift_word_write(&sqp->gate, SHIFT_QP_FLAG_KICK);
	shift_fence_barrier();
	rewound = look_back(sqp, !*errored && !deaf, &view, &rewind);
	if (rewound == -EINVAL)
		rewind.first = shift_mlx5_counter(&sqp->sq_word);
	if (sqp->rq.npages) {
		recv_first = first_recv(sqp, &posted);
		shift_recv_capture(sqp);
	}

	spin_lock_bh(&sqp->ledger_lock);
	err = fill_ledger(sqp, rewind.first);
	if (rewound)
		err = rewound;
	if (sqp->rq.npages) {
		recv_err = fill_recvs(sqp, recv_first, posted);
		if (!err)
			err = recv_err;
	}
	sqp->sent = (struct shift_life) {
		.epoch = sqp->armed[0].epoch, .psn = rewind.first_psn,
	};
	sqp->sent_any = shift_ledger_count(&sqp->ledger);
	sqp->ledger_live = true;
	spin_unlock_bh(&sqp->ledger_lock);
	if (err)
		pr_warn_ratelimited("%s qp %u: outstanding work could not be taken over (%d)\n",
				    sqp->sdev->name, sqp->qpn, err);
	else if (deaf)
		err = -EIO;
out:
	kfree(attr);
	return err;
}
