// SPDX-License-Identifier: GPL-2.0
/*
 * The fence: stop the default QP for good and take its work queue over.  How that is
 * done, and in which order, is its kind of device's affair (fence_rxe.c).
 *
 * The whole ring is the user's memory: see ring.h.  Errors here end in an error
 * completion, never in a guess.
 */

#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/smp.h>
#include "provider.h"

#define HOLD_US		20000	/* for a CQ that is being resized, scaled */

static void cpu_barrier(void *unused)
{
	/* a thread's look at the flag and its lock word: pairs with shift_fence_barrier() */
	smp_mb();
}

/**
 * shift_fence_barrier - order a store to a provider's flag word before loads of ours
 *
 * Whoever did not see the flag has all that he did before in sight afterwards.
 *
 * Context: process context.
 */
void shift_fence_barrier(void)
{
	/* the other side: cpu_barrier() */
	smp_mb();
	smp_call_function(cpu_barrier, NULL, 1);
}

u64 shift_fence_deadline(unsigned int us)
{
	return ktime_get_ns() + (u64)us * NSEC_PER_USEC *
	       max(READ_ONCE(shift_deadline_scale), 1u);
}

/*
 * The rings of both CQs, kept where they are until release_rings().  A CQ that is
 * being resized is registered again in a moment.
 */
static int hold_rings(struct shift_qp *sqp)
{
	u64 end = shift_fence_deadline(HOLD_US);

	for (;;) {
		down_read(&sqp->sdev->ring_sem);
		if (shift_cq_registered(sqp->scq) && shift_cq_registered(sqp->rcq))
			return 0;
		up_read(&sqp->sdev->ring_sem);
		if (ktime_get_ns() > end)
			return -EIO;
		usleep_range(500, 1000);
	}
}

static void release_rings(struct shift_qp *sqp)
{
	up_read(&sqp->sdev->ring_sem);
}

/* Let threads that WAIT go on; also when nothing was held. */
void shift_fence_open(struct shift_qp *sqp)
{
	if (!sqp->provider_held)
		return;
	if (sqp->gate.page)
		shift_word_write(&sqp->gate, sqp->ledger_live ?
					     sqp->provider->away_flags(sqp) : 0);
	WRITE_ONCE(sqp->provider_held, false);
	wake_up_all(&sqp->gate_wait);
}

/* State and expected PSN of the default QP. */
int shift_fence_query(struct shift_qp *sqp, struct ib_qp_attr *attr)
{
	struct ib_qp_init_attr init = {};

	memset(attr, 0, sizeof(*attr));
	return sqp->sdev->saved.query_qp(sqp->qp, attr, IB_QP_STATE | IB_QP_RQ_PSN, &init);
}

/* ERR or RESET, by the kernel: the application is not told. */
int shift_fence_stop(struct shift_qp *sqp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return sqp->sdev->saved.modify_qp(sqp->qp, &attr, IB_QP_STATE, NULL);
}

/**
 * shift_fence_heard - how far our responder got in the life that ends
 * @sqp: the QP, locked.
 * @path: where.
 * @expected: the PSN that it expects next.
 *
 * A life in which nothing was executed does not hide the one before: the peer may
 * not know yet how that ended.  Once both are ready in a life, it does.
 */
void shift_fence_heard(struct shift_qp *sqp, u8 path, u32 expected)
{
	const struct shift_life *armed = &sqp->armed[path];

	if (expected == armed->psn && armed->epoch != sqp->heard.epoch)
		return;
	sqp->heard = (struct shift_life) {
		.path = path, .epoch = armed->epoch, .psn = expected,
	};
}

/**
 * shift_fence - stop the default QP and rewind its send queue into the ledger
 * @sqp: the QP, locked.
 * @errored: out: it was in ERR already.
 *
 * One that is away has its active QP stopped.  sqp->heard is what the responder executed.
 *
 * Context: process context; sleeps for up to some tens of ms.
 * Return: 0; -ECANCELED: the error is the application's own, nothing was changed;
 * -EIO: all is as it should be, but the NIC could not be asked what its responder
 * executed; another error: what is outstanding cannot be told or moved, or the QP could
 * not be stopped (then SHIFT_QP_FENCED is clear).
 */
int shift_fence(struct shift_qp *sqp, bool *errored)
{
	int err;

	lockdep_assert_held(&sqp->lock);
	if (test_bit(SHIFT_QP_FENCED, &sqp->flags)) {
		err = shift_standby_fence(sqp);
		spin_lock_bh(&sqp->ledger_lock);
		shift_recv_rewind(sqp);
		spin_unlock_bh(&sqp->ledger_lock);
		return err;
	}
	if (!sqp->registered || hold_rings(sqp))
		return -EAGAIN;
	err = sqp->provider->fence(sqp, errored);
	shift_fence_open(sqp);
	release_rings(sqp);
	return err;
}
