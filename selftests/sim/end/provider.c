// SPDX-License-Identifier: GPL-2.0
/*
 * A provider whose rings say what is right, so that only failover/ and proxy/ are tried.  An
 * application is held off its rings, as on rxe; direct.c has what is like mlx5.
 */
#include "core/kick.h"
#include "core/node.h"
#include "core/qp.h"
#include "core/queue.h"
#include "core/srq.h"
#include "end/inside.h"
#include "provider/provider.h"
#include "proxy/proxy.h"

static int sim_pin_cq(struct shift_cq *scq, struct shift_new_cq *new,
		      const struct shift_abi_reg_cq *reg)
{
	return 0;
}

static void pin_ring(struct shift_ring *ring, struct sim_ring *user)
{
	ring->pages = (struct page **)user;
	ring->npages = 1;
	ring->slots = user->slots;
	ring->slot_size = sizeof(struct sim_wr);
}

static int sim_pin_qp(struct shift_qp *sqp, struct shift_new_qp *new,
		      const struct shift_abi_reg_qp *reg)
{
	struct sim_app_qp *app = (void *)reg->sq.addr;

	pin_ring(&new->pins.sq, &app->sq);
	if (reg->rq.addr)
		pin_ring(&new->pins.rq, &app->rq);
	new->entries = app->sq.slots;
	new->priv = app;
	return 0;
}

static int sim_srq_pin(const struct shift_srq *ssrq, struct shift_srq_rings *rings,
		       const struct shift_abi_reg_srq *reg)
{
	pin_ring(&rings->ring, (struct sim_ring *)reg->ring.addr);
	return 0;
}

static void sim_srq_empty(struct shift_srq *ssrq)
{
	struct sim_ring *ring = (struct sim_ring *)ssrq->rings.ring.pages;

	ring->producer = ring->consumer;
}

static u32 sim_srq_posted(struct shift_srq *ssrq)
{
	const struct sim_ring *ring = (const void *)ssrq->rings.ring.pages;

	return ring->producer - ring->consumer;
}

static int sim_srq_post(struct shift_srq *ssrq, u64 wr_id, const struct shift_sge *sge, u32 num_sge)
{
	struct sim_ring *ring = (struct sim_ring *)ssrq->rings.ring.pages;

	if (sim_srq_posted(ssrq) == ring->slots - 1)
		return -ENOSPC;
	*sim_slot(ring, ring->producer) = (struct sim_wr) {
		.wr_id = wr_id, .addr = sge->addr, .length = sge->length, .lkey = sge->lkey,
	};
	ring->producer++;
	sim_recv_lent(sim_this_end, sge->addr);
	return 0;
}

static void sim_cq_unpolled(const struct shift_cq *scq, shift_cqe_fn *fn, void *arg)
{
	sim_cq_each(scq->cq, fn, arg);
}

static void sim_release(void *priv)
{
}

static u32 sim_send_slots(const struct shift_qp *sqp)
{
	return sim_app_of(sqp)->sq.slots - 1;
}

static void sim_starts(struct shift_qp *sqp)
{
}

static int sim_movable(struct shift_qp *sqp)
{
	return sim_upset(sim_stuck_odds, "work cannot be moved") ? -EOPNOTSUPP : 0;
}

static u32 sim_cause(struct shift_qp *sqp)
{
	return sqp->qp ? sim_qp_error(sqp->qp) : 0;
}

static void sim_first_error(struct shift_qp *sqp, u32 status)
{
	sqp->fo.error_status = status;
}

static bool sim_hold(struct shift_qp *sqp)
{
	u64 end;

	set_bit(SHIFT_QPB_GATED, &sqp->pend.flags);
	WRITE_ONCE(sqp->rings.held, true);
	shift_word_write(&sqp->rings.pins.gate, SHIFT_QP_FLAG_GATE);
	synchronize_rcu_expedited();
	for (end = shift_from_now_us(20000); sim_app_of(sqp)->posting; usleep_range(20, 50))
		if (ktime_get_ns() > end)
			return false;
	return true;
}

static bool sim_still(struct shift_qp *sqp, u32 *done)
{
	*done = sim_app_of(sqp)->sq.acked;
	return *done == (u32)sim_app_of(sqp)->sq.producer;
}

/* Is an atomic outstanding? */
static bool sim_once(struct shift_qp *sqp)
{
	struct sim_ring *sq = &sim_app_of(sqp)->sq;
	u64 i;

	for (i = sq->acked; i < sq->producer; i++)
		if (shift_ledger_kind(sim_slot(sq, i)->opcode) & SHIFT_ENTRY_ONCE)
			return true;
	return false;
}

static void sim_doorbell(struct shift_qp *sqp)
{
	const struct ib_send_wr *bad;

	sqp->sdev->saved.post_send(sqp->qp, NULL, &bad);
}

static void decode(const struct sim_wr *from, struct shift_wr *wr)
{
	memset(wr, 0, offsetof(struct shift_wr, sge));
	wr->wr_id = from->wr_id;
	wr->opcode = from->opcode;
	wr->flags = from->flags;
	wr->length = from->length;
	wr->imm = from->imm;
	wr->rkey = from->rkey;
	wr->remote_addr = from->remote_addr;
	wr->compare_add = from->compare_add;
	wr->swap = from->swap;
	wr->num_sge = 1;
	wr->sge[0] = (struct shift_sge) {
		.addr = from->addr, .length = from->length, .lkey = from->lkey,
	};
}

static int sim_take(struct shift_qp *sqp, struct shift_wr *wr)
{
	struct shift_ledger *l = &sqp->rec.ledger;
	struct sim_app_qp *app = sim_app_of(sqp);
	struct sim_wr *raw = (void *)shift_ledger_raw(l, l->head);

	if (app->base + l->head == app->sq.producer)
		return 0;
	shift_ring_copy_slot(&sqp->rings.pins.sq, app->base + l->head, raw);
	decode(raw, wr);
	return 1;
}

static int sim_decode(struct shift_qp *sqp, u64 seq, struct shift_wr *wr)
{
	decode((void *)shift_ledger_raw(&sqp->rec.ledger, seq), wr);
	return 0;
}

static u64 sim_wr_id(const struct shift_qp *sqp, u64 seq)
{
	struct shift_ledger l = sqp->rec.ledger;

	return ((struct sim_wr *)shift_ledger_raw(&l, seq))->wr_id;
}

static void sim_completed(struct shift_qp *sqp, u64 seq)
{
	sim_app_of(sqp)->sq.consumer = sim_app_of(sqp)->base + seq;
}

static u32 sim_recvs_posted(const struct shift_qp *sqp)
{
	struct sim_app_qp *app = sim_app_of(sqp);

	return app->rq.producer - (app->rbase + sqp->rec.recvs.head);
}

static int sim_decode_recv(const struct shift_qp *sqp, u64 seq, struct shift_wr *wr)
{
	decode((void *)shift_recv_raw(&sqp->rec.recvs, seq), wr);
	return 0;
}

static u64 sim_recv_wr_id(const struct shift_qp *sqp, u64 seq)
{
	return ((struct sim_wr *)shift_recv_raw(&sqp->rec.recvs, seq))->wr_id;
}

static void sim_recvs_completed(struct shift_qp *sqp, u64 seq)
{
	sim_app_of(sqp)->rq.consumer = sim_app_of(sqp)->rbase + seq;
}

static u32 sim_away_flags(const struct shift_qp *sqp)
{
	return SHIFT_QP_FLAG_KICK;
}

/* Take over what begins with @first and @received in the rings; ledger_lock. */
void sim_take_over(struct shift_qp *sqp, u64 first, u64 received)
{
	struct sim_app_qp *app = sim_app_of(sqp);
	struct shift_ledger *l = &sqp->rec.ledger;
	struct shift_wr wr;

	shift_ledger_start(l, first);
	app->base = first - l->tail;
	app->rbase = received - (received & (SIM_RING - 1));
	while (sim_take(sqp, &wr))
		if (shift_replay_enter(sqp, &wr))
			sim_fail("an operation cannot be entered");
	sqp->rec.outstanding = (struct shift_arming) {
		.epoch = sqp->fo.armed[0].epoch,
		.psn = first ? app->sq.acked_psn : sqp->app.sq_psn,
	};
	sqp->rec.any_outstanding = shift_ledger_count(l);
	shift_recv_start(sqp, received & (SIM_RING - 1), app->rq.producer - received, SIM_RING - 1);
	sqp->rec.own_end = l->head;
	sqp->rec.live = true;
	sim_completed(sqp, l->tail);
}

static int sim_fence(struct shift_qp *sqp, bool *errored)
{
	struct ib_qp_attr attr;
	u32 cause;
	int err;

	sim_hold(sqp);
	*errored = sim_qp_state(sqp->qp) == IB_QPS_ERR;
	cause = sim_qp_error(sqp->qp);
	if (*errored && !test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags) &&
	    cause != IB_WC_RETRY_EXC_ERR)
		return -ECANCELED;
	synchronize_rcu_expedited();
	shift_recv_capture(sqp);
	set_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
	if (shift_fence_stop(sqp, IB_QPS_RESET)) {
		clear_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
		return -EBUSY;
	}
	err = shift_fence_query(sqp, &attr);
	if (!err)
		shift_fence_heard(sqp, 0, attr.rq_psn & SHIFT_PSN_MASK);
	spin_lock_bh(&sqp->ledger_lock);
	shift_recv_capture(sqp);
	sim_take_over(sqp, sim_app_of(sqp)->sq.acked, sim_qp_receives(sqp->qp));
	spin_unlock_bh(&sqp->ledger_lock);
	return err ? -EIO : 0;
}

static const struct shift_srq_ops sim_srq_ops = {
	.pin = sim_srq_pin, .unpolled = sim_cq_unpolled, .empty = sim_srq_empty,
	.post = sim_srq_post, .posted = sim_srq_posted,
};

static const struct shift_cq_ops sim_cq_ops = {
	.pin = sim_pin_cq, .room = shift_cq_side_room, .put = shift_cq_side_put,
};

static const struct shift_provider sim_provider = {
	.id = 1, .driver = RDMA_DRIVER_SIM,
	.cq = &sim_cq_ops, .pin_qp = sim_pin_qp, .srq = &sim_srq_ops,
	.release = sim_release,
	.send_slots = sim_send_slots, .starts = sim_starts, .movable = sim_movable,
	.cause = sim_cause, .first_error = sim_first_error, .hold = sim_hold, .still = sim_still,
	.once = sim_once,
	.doorbell = sim_doorbell, .fence = sim_fence, .away_flags = sim_away_flags,
	.take = sim_take, .decode = sim_decode, .wr_id = sim_wr_id, .completed = sim_completed,
	.recvs_posted = sim_recvs_posted,
	.decode_recv = sim_decode_recv, .recv_wr_id = sim_recv_wr_id,
	.recvs_completed = sim_recvs_completed, .flags = SHIFT_PROVIDES_RESET_PSN | SHIFT_PROVIDES_STATE,
};

/* Once in the life of a process: of devices that remember, and of those that forget at RESET. */
void sim_providers(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	shift_provider_register(&sim_provider);
	shift_provider_register(sim_direct_provider(&sim_provider));
}
