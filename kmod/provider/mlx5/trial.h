/* SPDX-License-Identifier: GPL-2.0 */
/* A device under trial: what its parts share. */
#ifndef SHIFT_PROVIDER_MLX5_TRIAL_H
#define SHIFT_PROVIDER_MLX5_TRIAL_H

#include "core/proof.h"
#include "provider/mlx5/rig.h"

#define SOON_MS	200	/* for what need not wait for a timer */
#define RETRIES_MS	4000	/* two ACK timeouts; NICs make each four times as long */
#define STILL_MS	20	/* some RNR timers: nothing may happen meanwhile */

/**
 * struct trial - what was tried so far
 * @rig: two QPs of the device.
 * @tried: SHIFT_CLAIM() of each.
 * @failed: those that did not hold.
 */
struct trial {
	struct shift_rig *rig;
	u32 tried, failed;
};

static inline void claim(struct trial *t, u32 number, bool holds)
{
	t->tried |= SHIFT_CLAIM(number);
	if (!holds)
		t->failed |= SHIFT_CLAIM(number);
}

/* trial_srq.c */
int shift_trial_srq_stop(struct trial *t);
int shift_trial_srq_empty(struct trial *t);

#endif /* SHIFT_PROVIDER_MLX5_TRIAL_H */
