// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues of mlx5, and the completions in their CQs: Documentation/internals/srq.md.
 *
 * What a ring has once had cannot be taken back: the device reads it at any time, and no command
 * empties it.  So the kernel does not look at the ring, and leaves it as it is.
 */
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include "core/object.h"
#include "core/ring.h"
#include "core/srq.h"
#include "provider/mlx5/cq.h"
#include "provider/mlx5/mlx5.h"

/* Read when a provider registers an SRQ. */
static bool mlx5_srq;
module_param(mlx5_srq, bool, 0644);
MODULE_PARM_DESC(mlx5_srq, "protect QPs on SRQs of mlx5, to which none can connect once they left");

/* As many as the driver's ring has; each has an entry of the same number in the table. */
static int mlx5_srq_pin(const struct shift_srq *ssrq, struct shift_ring *ring,
			const struct shift_abi_reg_srq *reg)
{
	u32 slots = ssrq->max_wr + 1;

	memset(ring, 0, sizeof(*ring));
	if (!READ_ONCE(mlx5_srq))
		return -EOPNOTSUPP;
	if (reg->ring.addr || reg->ring.len || !is_power_of_2(slots))
		return -EINVAL;
	ring->slots = slots;
	return 0;
}

static void mlx5_cq_unpolled(const struct shift_cq *scq, shift_cqe_fn *fn, void *arg)
{
	u32 consumer = shift_mlx5_consumer(scq);

	/* what was polled before that is free in the table, or is another receive by now */
	smp_rmb();
	shift_mlx5_cq_recvs(&scq->pins.ring, consumer, fn, arg);
}

const struct shift_srq_ops shift_mlx5_srq_ops = {
	.by_entry = true,
	.pin = mlx5_srq_pin,
	.unpolled = mlx5_cq_unpolled,
};
