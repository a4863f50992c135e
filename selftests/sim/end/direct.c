// SPDX-License-Identifier: GPL-2.0
/*
 * A provider whose applications post to their device without a system call, as on mlx5: nothing
 * holds them off their rings, a device forgets at RESET, and rings can begin anew.
 */
#include "core/kick.h"
#include "core/node.h"
#include "core/ring.h"
#include "end/inside.h"
#include "provider/provider.h"

static bool direct_hold(struct shift_qp *sqp)
{
	return false;
}

static bool direct_holds_flushes(struct shift_qp *sqp)
{
	return true;
}

static void direct_doorbell(struct shift_qp *sqp)
{
}

/* Does the application wait for events?  None does here. */
static bool direct_sleeps(const struct shift_cq *scq)
{
	return false;
}

/* In ERR all that was executed has its completion, and the responder can be asked. */
static int direct_stop(struct shift_qp *sqp, struct ib_qp_attr *attr, bool errored, bool *reset)
{
	int asked;

	set_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
	if (!errored && shift_fence_stop(sqp, IB_QPS_ERR)) {
		clear_bit(SHIFT_QPB_FENCED, &sqp->pend.flags);
		return -EBUSY;
	}
	asked = shift_fence_query(sqp, attr);
	sim_app_of(sqp)->was_acked = sim_app_of(sqp)->sq.acked;
	sim_app_of(sqp)->was_received = sim_qp_receives(sqp->qp);
	*reset = !shift_fence_stop(sqp, IB_QPS_RESET);
	return asked ? -EIO : 0;
}

static int direct_fence(struct shift_qp *sqp, bool *errored)
{
	u32 cause = sim_qp_error(sqp->qp);
	struct ib_qp_attr attr;
	bool reset;
	int err;

	*errored = sim_qp_state(sqp->qp) == IB_QPS_ERR;
	if (*errored && !test_bit(SHIFT_QPB_ERRORED, &sqp->pend.flags) &&
	    cause != IB_WC_RETRY_EXC_ERR)
		return -ECANCELED;
	err = direct_stop(sqp, &attr, *errored, &reset);
	if (err == -EBUSY)
		return err;
	if (!err)
		shift_fence_heard(sqp, 0, attr.rq_psn & SHIFT_PSN_MASK);
	shift_word_write(&sqp->rings.pins.gate, SHIFT_QP_FLAG_KICK);
	shift_fence_barrier();
	spin_lock_bh(&sqp->ledger_lock);
	/* the application goes on posting: what it posts from here on is taken in by KICK */
	shift_recv_capture(sqp);
	sim_take_over(sqp, sim_app_of(sqp)->was_acked, sim_app_of(sqp)->was_received);
	spin_unlock_bh(&sqp->ledger_lock);
	return reset ? err : -EBUSY;
}

static int direct_rebase(struct shift_qp *sqp, struct shift_abi_rebase *base)
{
	base->sq_base = sim_app_of(sqp)->base + sqp->rec.ledger.head;
	base->rq_base = sim_app_of(sqp)->rbase + sqp->rec.recvs.done;
	return 0;
}

/* What is taken in next is in slot 0. */
static void direct_rebased(struct shift_qp *sqp, const struct shift_abi_rebase *base)
{
	sim_app_of(sqp)->base = -sqp->rec.ledger.head;
	sim_app_of(sqp)->rbase = 0;
}

const struct shift_provider *sim_direct_provider(const struct shift_provider *base)
{
	static struct shift_provider direct;
	static struct shift_cq_ops cq;

	direct = *base;
	cq = *base->cq;
	cq.sleeps = direct_sleeps;
	direct.cq = &cq;
	direct.id = 2;
	direct.driver = RDMA_DRIVER_SIM + 1;
	direct.hold = direct_hold;
	direct.holds_flushes = direct_holds_flushes;
	direct.doorbell = direct_doorbell;
	direct.fence = direct_fence;
	direct.flags = SHIFT_PROVIDES_SEND_KICKS;
	direct.rebase = direct_rebase;
	direct.rebased = direct_rebased;
	return &direct;
}
