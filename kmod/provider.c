// SPDX-License-Identifier: GPL-2.0
/* The kinds of devices that there are. */
#include "mw.h"
#include "provider.h"

static const struct shift_provider *const providers[] = {
	&shift_provider_rxe, &shift_provider_mlx5,
};

/* What an unregistered QP has outstanding is nobody's to move. */
int shift_provider_movable(struct shift_qp *sqp)
{
	return sqp->registered ? sqp->provider->movable(sqp) : -EOPNOTSUPP;
}

u32 shift_provider_cause(struct shift_qp *sqp)
{
	u32 status = 0;

	/* its rings stay while this is held */
	spin_lock_bh(&sqp->ledger_lock);
	if (sqp->registered)
		status = sqp->provider->cause(sqp);
	spin_unlock_bh(&sqp->ledger_lock);
	return status;
}

void shift_provider_doorbell(struct shift_qp *sqp)
{
	if (!sqp->provider || !sqp->qp)
		return;
	/* as that of the application would have */
	if (sqp->notes)
		shift_notes_doorbell(sqp);
	sqp->provider->doorbell(sqp);
}

const struct shift_provider *shift_provider_find(u32 id)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(providers); i++)
		if (providers[i]->id == id)
			return providers[i];
	return NULL;
}
