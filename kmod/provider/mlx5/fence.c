// SPDX-License-Identifier: GPL-2.0
/*
 * The fence of a QP on mlx5: Documentation/internals/mlx5.md.
 *
 * (1) ERR: no packet is executed any more, and what is outstanding is flushed.  (2) When the
 * last receive has its completion, all that was executed has one.  (3) The responder's expected
 * PSN is final.  (4) RESET: nothing more is flushed, and a doorbell has no effect.
 * (5) KICK in the flag word, and a barrier on every CPU: work that was posted by a thread that
 * did not see the flag is in the doorbell record; threads that post later call KICK.
 * (6) The rings are copied.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/ring.h"
#include "provider/mlx5/cq.h"
#include "provider/mlx5/format.h"
#include "provider/mlx5/mlx5.h"
#include "provider/mlx5/rewind.h"
#include "provider/provider.h"
#include "pure/flush_wait.h"
#include "pure/ledger.h"
#include "pure/psn.h"
#include "pure/wr.h"

#define FLUSH_US	20000	/* to wait for room in the CQ; scaled */
#define BUSY_US		500000	/* to wait for room while KICK may keep a thread busy; scaled */

/*
 * Number of sends that the application has polled, as the provider in user space has it.  After a
 * handback that word may still have its value from before, when completions came from side rings.
 * It does if it is behind the number at the handback by no more than a ring holds.
 */
static u32 sends_polled(struct shift_qp *sqp)
{
	u32 tail = shift_word_read(mlx5_word(sqp, SHIFT_MLX5_SQ_TAIL));
	u32 number = mlx5_qp(sqp)->number;

	if (!mlx5_qp(sqp)->sends_again)
		return tail;
	if (number - tail <= SHIFT_MLX5_MAX_RING)
		return number;
	mlx5_qp(sqp)->sends_again = false;
	return tail;
}

static u32 recvs_polled(struct shift_qp *sqp)
{
	u32 tail = shift_word_read(mlx5_word(sqp, SHIFT_MLX5_RQ_TAIL));

	if (!mlx5_qp(sqp)->recvs_again)
		return tail;
	if (-tail <= SHIFT_MLX5_MAX_RING)
		return 0;
	mlx5_qp(sqp)->recvs_again = false;
	return tail;
}

/* Find the newest completions of its sends, or of its receives. */
static void cq_find_oldest(const struct shift_qp *sqp, bool recvs, struct shift_mlx5_found *found)
{
	const struct shift_cq *scq = recvs ? sqp->rcq : sqp->scq;

	shift_mlx5_cq_find(&scq->pins.ring, shift_mlx5_consumer(scq), sqp->qpn, recvs, U32_MAX,
			   found);
}

/*
 * Copy the send ring and read all that belongs to it; sqp->lock, and nothing else uses the ledger
 * yet.  @fenced: the fence has just flushed what was outstanding.  (If a QP broke by itself, the
 * oldest outstanding request is the one that failed.)
 *
 * The order matters: a completion that was overwritten in the CQ was polled before that, a request
 * that was polled was posted before that, and its WQE was written before that.
 */
static void ring_look(struct shift_qp *sqp, bool fenced, struct shift_mlx5_view *view)
{
	struct shift_mlx5_found found;
	u32 tail;
	u64 word;

	lockdep_assert_held(&sqp->lock);
	cq_find_oldest(sqp, false, &found);
	/* the tail is read after the CQ: what was overwritten there is counted in the tail */
	smp_rmb();
	tail = sends_polled(sqp);
	if (sqp->rings.pins.rq.npages)
		recvs_polled(sqp);	/* may clear recvs_again */
	word = shift_word_read64(mlx5_word(sqp, SHIFT_MLX5_ANCHOR));
	shift_ring_copy(&sqp->rings.pins.more, mlx5_qp(sqp)->heads);
	shift_ring_copy(&sqp->rings.pins.sq, sqp->rec.ledger.raw);
	*view = (struct shift_mlx5_view) {
		.sq = {
			.ring = sqp->rec.ledger.raw,
			.blocks = sqp->rings.pins.sq.slots,
			.producer = SHIFT_MLX5_ANCHOR_INDEX(word),
			.qpn = sqp->qpn,
		},
		.packets = SHIFT_MLX5_ANCHOR_PACKETS(word),
		.completed = found.success,
		.last = found.last,
		.heads = mlx5_qp(sqp)->heads,
		.tail = tail,
		.flushed = !found.success && found.error && (fenced || found.begins),
		.first_flushed = found.first_error,
		.start_psn = sqp->app.sq_psn,
		.mtu = sqp->app.mtu,
	};
}

/* Take ring_sem, so that both CQs stay registered; false: one of them is not. */
static bool rings_held(struct shift_qp *sqp)
{
	down_read(&sqp->sdev->ring_sem);
	if (shift_cq_registered(sqp->scq) && shift_cq_registered(sqp->rcq))
		return true;
	up_read(&sqp->sdev->ring_sem);
	return false;
}

/* Rewind the send ring.  As the application may post meanwhile, try twice. */
static int ring_look_back(struct shift_qp *sqp, bool fenced, struct shift_mlx5_view *view,
			  struct shift_mlx5_rewind *rewind)
{
	int tries, err;

	for (tries = 0; tries < 2; tries++) {
		ring_look(sqp, fenced, view);
		err = shift_mlx5_rewind(view, &mlx5_qp(sqp)->wqe, rewind);
		if (!err || err == -EOPNOTSUPP)
			break;
	}
	return err;
}

/* Number of flushes that may go to each of its CQs; to the first, if both are the same. */
static void cq_flushes(const struct shift_qp *sqp, u64 *send, u64 *recv)
{
	*send = sqp->app.asked_send;
	/* of an SRQ the receive that was under way, at most */
	*recv = sqp->rings.pins.rq.npages ? sqp->app.asked_recv : !!sqp->srqm.ssrq;
	if (sqp->scq != sqp->rcq)
		return;
	*send += *recv;
	*recv = 0;
}

/* Are @send and @recv entries in its CQs enough for all that may be flushed? */
static bool cq_fits(const struct shift_qp *sqp, u32 send, u32 recv)
{
	u64 sends, recvs;

	cq_flushes(sqp, &sends, &recvs);
	return send >= sends && recv >= recvs;
}

/* Have its CQs, if they are registered, room for all that is flushed if it breaks?  sqp->lock. */
bool shift_mlx5_holds_flushes(struct shift_qp *sqp)
{
	bool fits;

	lockdep_assert_held(&sqp->lock);
	if (!rings_held(sqp))
		return true;
	fits = cq_fits(sqp, sqp->scq->pins.ring.slots, sqp->rcq->pins.ring.slots);
	up_read(&sqp->sdev->ring_sem);
	return fits;
}

/**
 * shift_mlx5_movable - can the outstanding operations be posted on another device?
 * @sqp: the QP, locked, on its own device.
 *
 * The ring may change meanwhile, so that contradictions in it are no reason to say no.
 * If neither the CQ nor the number of polled sends tells where the outstanding operations begin,
 * the answer is -EAGAIN.  A QP whose CQs are too small for its flushes cannot be moved: it could
 * be stopped, but not be asked how far it has received.
 *
 * Return: 0, -EOPNOTSUPP, -EAGAIN.
 */
int shift_mlx5_movable(struct shift_qp *sqp)
{
	struct shift_mlx5_rewind rewind;
	struct shift_mlx5_view view;
	int err;

	lockdep_assert_held(&sqp->lock);
	if (!shift_mlx5_holds_flushes(sqp))
		return -EOPNOTSUPP;
	if (!rings_held(sqp))
		return 0;
	err = ring_look_back(sqp, false, &view, &rewind);
	up_read(&sqp->sdev->ring_sem);
	if (err == -ENODATA && !view.completed)
		return -EAGAIN;
	return err == -EOPNOTSUPP ? err : 0;
}

/* Has all that was posted been completed?  False if the last sends were not signaled. */
bool shift_mlx5_still(struct shift_qp *sqp, u32 *done)
{
	struct shift_mlx5_rewind rewind;
	struct shift_mlx5_view view;
	bool still = false;

	*done = 0;
	if (!rings_held(sqp))
		return false;
	if (!ring_look_back(sqp, false, &view, &rewind)) {
		*done = rewind.first;
		still = rewind.first == view.sq.producer;
	}
	up_read(&sqp->sdev->ring_sem);
	return still;
}

/*
 * Reserve entries in both of its CQs.  Two QPs that have the same CQs in opposite roles may both
 * fail, and have to try again.
 */
static bool cqs_reserve(struct shift_qp *sqp)
{
	struct shift_mlx5_qp *mlx5 = mlx5_qp(sqp);
	u64 sends, recvs;

	cq_flushes(sqp, &sends, &recvs);
	if (!shift_mlx5_reserve(sqp, sqp->scq, sends, &mlx5->flush_send))
		return false;
	if (shift_mlx5_reserve(sqp, sqp->rcq, recvs, &mlx5->flush_recv))
		return true;
	shift_mlx5_unreserve(sqp->scq, mlx5->flush_send);
	return false;
}

/* The flushes are written: from now on the CQs themselves show that less room is left. */
static void cqs_unreserve(struct shift_qp *sqp)
{
	shift_mlx5_unreserve(sqp->scq, mlx5_qp(sqp)->flush_send);
	shift_mlx5_unreserve(sqp->rcq, mlx5_qp(sqp)->flush_recv);
}

/*
 * Reserve room in the CQs for all that ERR will flush; without room other QPs would lose
 * completions.  If there is none, wait for the application to poll.  A thread that waits in KICK
 * for the handback of another QP does not poll, but that wait ends soon: so this waits for longer.
 */
static bool reserve_for_flushes(struct shift_qp *sqp)
{
	u64 last = shift_from_now_us(BUSY_US), end = shift_from_now_us(FLUSH_US);

	while (!cqs_reserve(sqp)) {
		u64 now = ktime_get_ns();

		if (shift_handback_awaited(sqp) && now < last)
			end = shift_from_now_us(FLUSH_US);
		if (now > end)
			return false;
		usleep_range(100, 200);
	}
	return true;
}

/* Index behind the newest receive, or send, that has a completion of any kind. */
static u16 queue_ended(const struct shift_qp *sqp, bool recvs)
{
	struct shift_mlx5_found found;

	cq_find_oldest(sqp, recvs, &found);
	if (found.error)
		return found.last_error + 1;
	return found.success ? found.last + 1 : 0;
}

/*
 * Wait until all receives that were posted before ERR are completed or flushed, as long as flushes
 * come, be it of sends.  They need not all be seen, as completions of other QPs may have
 * overwritten theirs.
 */
static void wait_flushed(struct shift_qp *sqp)
{
	struct shift_flush_wait wait;
	u16 posted, ended;

	if (!sqp->rings.pins.rq.npages)
		return;
	/* what its process has asked for may be any number; the rings have a bound */
	shift_flush_wait_begin(&wait, ktime_get_ns(), shift_scale(1),
			       (u64)sqp->rings.pins.sq.slots + sqp->rings.pins.rq.slots);
	posted = shift_mlx5_counter(sqp, SHIFT_MLX5_RQ_COUNTER);
	for (;;) {
		ended = queue_ended(sqp, true);
		/* the newest may be a receive that was posted after @posted was read */
		if ((u16)(ended - posted) <= sqp->rings.pins.rq.slots ||
		    shift_flush_wait_is_over(&wait, ktime_get_ns(),
					     (u32)queue_ended(sqp, false) << 16 | ended))
			return;
		usleep_range(50, 100);
	}
}

/*
 * Stop the QP.  The responder can only be asked in ERR, as a device need not know anything of a QP
 * in RESET.
 *
 * A QP that gets to ERR and no further executes nothing any more.  Flushes may have been polled and
 * kept back by then, so its work has to be taken over all the same.
 *
 * @reset: out: it is in RESET.
 * Return: 0; -EIO: stopped, but not asked; -EBUSY: it does not stop.
 */
static int qp_stop(struct shift_qp *sqp, struct ib_qp_attr *attr, bool errored, bool *reset)
{
	bool reserved = !errored && reserve_for_flushes(sqp);
	int query_err = -EIO, err = 0;
	bool stopped;

	/* before ERR: from then on the application may poll flushes */
	set_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
	if (reserved)
		err = shift_fence_stop(sqp, IB_QPS_ERR);
	stopped = errored || (reserved && !err);
	if (stopped) {
		wait_flushed(sqp);
		query_err = shift_fence_query(sqp, attr) ? -EIO : 0;
	}
	if (!err)
		err = shift_fence_stop(sqp, IB_QPS_RESET);
	if (reserved)
		cqs_unreserve(sqp);
	*reset = !err;
	if (*reset || stopped)
		return query_err;
	clear_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
	return -EBUSY;
}

/* Take all outstanding operations, from index @first on, into the ledger; ledger_lock. */
static int fill_ledger(struct shift_qp *sqp, u16 first)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	struct shift_wr wr;
	int got, err = 0;

	lockdep_assert_held(&sqp->ledger_lock);
	shift_ledger_start(l, 0);
	mlx5_qp(sqp)->at[0] = first;
	while (shift_ledger_count(l) < l->slots - 1) {
		got = shift_mlx5_take(sqp, &wr);
		if (!got)
			break;
		if (shift_replay_enter(sqp, got > 0 ? &wr : NULL))
			err = -EOPNOTSUPP;
	}
	return err;
}

/*
 * Index of the oldest receive without a completion.  @posted: out: counter of posted receives.
 * For the order of reads see ring_look().
 */
static u16 first_recv(struct shift_qp *sqp, u16 *posted)
{
	struct shift_mlx5_found found;
	u32 tail;

	cq_find_oldest(sqp, true, &found);
	/* the tail is read after the CQ: what was overwritten there is counted in the tail */
	smp_rmb();
	tail = recvs_polled(sqp);
	*posted = shift_mlx5_counter(sqp, SHIFT_MLX5_RQ_COUNTER);
	return found.success ? shift_mlx5_later(found.last + 1, tail, *posted) : tail;
}

/* Take over the outstanding receives; ledger_lock.  @posted: counter when the ring was copied. */
static int fill_recvs(struct shift_qp *sqp, u16 first, u16 posted)
{
	u16 count = posted - first;

	lockdep_assert_held(&sqp->ledger_lock);
	if (count > sqp->rings.pins.rq.slots) {
		shift_recv_start(sqp, posted, 0, sqp->rings.pins.rq.slots);
		return -EINVAL;
	}
	shift_recv_start(sqp, first, count, sqp->rings.pins.rq.slots);
	return 0;
}

/* Did the application cause the error that broke the QP?  Then it is shown to the application. */
static bool application_erred(struct shift_qp *sqp)
{
	u32 cause;

	if (test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags))
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
	int err, rewound, query_err, recv_err;
	u16 recv_first = 0, posted = 0;
	bool reset;

	lockdep_assert_held(&sqp->lock);
	if (!attr)
		return -ENOMEM;
	*errored = shift_fence_query(sqp, attr) ? test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags) :
						  attr->qp_state == IB_QPS_ERR;
	if (*errored && application_erred(sqp)) {
		err = -ECANCELED;
		goto out;
	}
	query_err = qp_stop(sqp, attr, *errored, &reset);
	if (query_err == -EBUSY) {
		err = query_err;
		goto out;
	}
	if (!query_err)
		shift_fence_heard(sqp, 0, attr->rq_psn & SHIFT_PSN_MASK);

	shift_word_write(&sqp->rings.pins.gate, SHIFT_QP_FLAG_KICK);
	shift_fence_barrier();
	rewound = ring_look_back(sqp, !*errored && !query_err, &view, &rewind);
	if (rewound == -EINVAL)
		rewind.first = shift_mlx5_counter(sqp, SHIFT_MLX5_SQ_COUNTER);
	if (sqp->rings.pins.rq.npages) {
		recv_first = first_recv(sqp, &posted);
		shift_recv_capture(sqp);
	}

	spin_lock_bh(&sqp->ledger_lock);
	err = fill_ledger(sqp, rewind.first);
	if (rewound)
		err = rewound;
	if (sqp->rings.pins.rq.npages) {
		recv_err = fill_recvs(sqp, recv_first, posted);
		if (!err)
			err = recv_err;
	}
	sqp->rec.outstanding = (struct shift_arming) {
		.epoch = sqp->fo.armed[0].epoch, .psn = rewind.first_psn,
	};
	sqp->rec.any_outstanding = shift_ledger_count(&sqp->rec.ledger);
	sqp->rec.own_end = sqp->rec.ledger.head;
	sqp->rec.live = true;
	spin_unlock_bh(&sqp->ledger_lock);
	if (err)
		pr_warn_ratelimited("%s qp %u: outstanding work could not be taken over (%d)\n",
				    sqp->sdev->name, sqp->qpn, err);
	else if (query_err)
		err = -EIO;
	/* what it still flushes would mix with the completions of a proxy QP */
	if (!reset)
		err = -EBUSY;
out:
	kfree(attr);
	return err;
}
