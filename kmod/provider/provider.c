// SPDX-License-Identifier: GPL-2.0
/* The registered kinds of devices, and calls to their operations. */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/smp.h>
#include "core/provider.h"
#include "core/qp.h"
#include "core/ring.h"
#include "provider/provider.h"

static const struct shift_provider *providers[4];

/**
 * shift_provider_register - add a kind of device
 * @provider: its operations.
 *
 * Context: while the module is loaded, before there are devices.
 */
void shift_provider_register(const struct shift_provider *provider)
{
	int i;

	for (i = 0; providers[i]; i++)
		if (WARN_ON(i == ARRAY_SIZE(providers) - 1))
			return;
	providers[i] = provider;
}

/*
 * Can the outstanding operations be posted on another device?  Those of a QP that is not registered
 * cannot, nor can operations on windows that the peer does not record.
 */
int shift_provider_movable(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (!sqp->rings.usable || shift_qp_mws_stay(sqp))
		return -EOPNOTSUPP;
	return sqp->rings.provider->movable(sqp);
}

u32 shift_provider_cause(struct shift_qp *sqp)
{
	u32 status = 0;

	/* the rings stay pinned while this is held */
	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->rings.usable)
		status = sqp->rings.provider->cause(sqp);
	spin_unlock_bh(&sqp->ledger_lock);
	return status;
}

void shift_provider_doorbell(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (!sqp->rings.provider || !sqp->qp)
		return;
	/* a doorbell of the application would have called this, too */
	if (sqp->rings.provider->posting)
		sqp->rings.provider->posting(sqp);
	sqp->rings.provider->doorbell(sqp);
}

/* The provider for devices of a driver; NULL: that kind is not supported. */
const struct shift_provider *shift_provider_of_driver(enum rdma_driver_id driver)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(providers) && providers[i]; i++)
		if (providers[i]->driver == driver)
			return providers[i];
	return NULL;
}

/* Tell the provider that the QP was reset; sqp->lock. */
void shift_provider_restarts(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (sqp->rings.provider && sqp->rings.provider->restarts)
		sqp->rings.provider->restarts(sqp);
}

/* Tell the provider that the ledger now has only what was not executed; sqp->lock. */
void shift_provider_executed(struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	if (sqp->rings.provider && sqp->rings.provider->executed)
		sqp->rings.provider->executed(sqp);
}

/* How often this QP has invalidated the peer's window of that key; sqp->lock. */
u32 shift_provider_invalidations(struct shift_qp *sqp, u32 key)
{
	lockdep_assert_held(&sqp->lock);
	if (!sqp->rings.provider || !sqp->rings.provider->invalidations)
		return 0;
	return sqp->rings.provider->invalidations(sqp, key);
}

/* Let threads that WAIT go on; does nothing if posts were not held. */
void shift_fence_open(struct shift_qp *sqp)
{
	if (!sqp->rings.held)
		return;
	shift_gate_write(sqp, sqp->rec.live ? sqp->rings.provider->away_flags(sqp) : 0);
	WRITE_ONCE(sqp->rings.held, false);
	wake_up_all(&sqp->rings.gate_wait);
}

/* State and expected PSN of the default QP. */
int shift_fence_query(struct shift_qp *sqp, struct ib_qp_attr *attr)
{
	struct ib_qp_init_attr init = {};

	memset(attr, 0, sizeof(*attr));
	return sqp->sdev->saved.query_qp(sqp->qp, attr, IB_QP_STATE | IB_QP_RQ_PSN, &init);
}

/* Bring the default QP to ERR or RESET without telling the application. */
int shift_fence_stop(struct shift_qp *sqp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return sqp->sdev->saved.modify_qp(sqp->qp, &attr, IB_QP_STATE, NULL);
}

/**
 * shift_fence_heard - note how far our responder got in the arming that ends
 * @sqp: the QP, locked.
 * @path: the path of that arming.
 * @expected: the PSN that the responder expects next.
 *
 * If nothing was executed in this arming, the note of the one before stays, as the peer may
 * not know yet how that one ended.  The peer knows it when both ends were ready in a later one.
 */
void shift_fence_heard(struct shift_qp *sqp, u8 path, u32 expected)
{
	const struct shift_arming *armed = &sqp->fo.armed[path];

	lockdep_assert_held(&sqp->lock);
	if (expected == armed->psn && armed->epoch != sqp->fo.resp.epoch)
		return;
	sqp->fo.resp = (struct shift_arming) {
		.path = path, .epoch = armed->epoch, .psn = expected,
	};
}
