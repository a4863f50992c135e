// SPDX-License-Identifier: GPL-2.0
/*
 * Entries of a CQ that are reserved for what the kernel makes a device complete there, so that no
 * completion of the application's is overwritten.
 */
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/queue.h"
#include "provider/mlx5/cq.h"
#include "provider/mlx5/mlx5.h"
#include "provider/mlx5/rig.h"

/**
 * shift_mlx5_reserve - reserve entries of a CQ for all that may be flushed to it, if there is room
 * @sqp: the QP.
 * @scq: the CQ, registered; ring_sem is held.
 * @most: what may be flushed, if all that the QP may have posted is outstanding.
 * @reserved: out: the number of entries.
 *
 * That is @most less the QP's entries that are not polled yet, as their requests still take a place
 * in the QP's queue.  So a CQ that has an entry for each request of all of its QPs always has room,
 * polled or not.
 *
 * Context: process context.
 * Return: false if there is no room.
 */
bool shift_mlx5_reserve(const struct shift_qp *sqp, struct shift_cq *scq, u64 most, u32 *reserved)
{
	struct shift_mlx5_cq_state *state = scq->priv;
	u32 own, need, room;
	bool fits;

	*reserved = 0;
	if (!most)
		return true;
	/* two fences must not reserve the same entries */
	mutex_lock(&state->lock);
	room = shift_mlx5_cq_room(&scq->pins.ring, shift_mlx5_consumer(scq), sqp->qpn, &own);
	need = most > own ? most - own : 0;
	fits = room >= (u64)state->reserved + need;
	if (fits) {
		state->reserved += need;
		*reserved = need;
	}
	mutex_unlock(&state->lock);
	return fits;
}

/*
 * At least half of what is free is left to others, as fences do not wait long for room.  Nor does
 * an application that has a CQ smaller than its SRQ, and counts what may be complete: so a small
 * number it is, and more only if that is few of all that is free.
 */
static u32 part_of(u32 room)
{
	return min_t(u32, DIV_ROUND_UP(room, 2), max_t(u32, room / 16, SHIFT_RIG_DEPTH));
}

/**
 * shift_mlx5_reserve_part - reserve entries of a QP's receive CQ, as many as can be spared
 * @sqp: the QP.
 *
 * Context: process context.
 * Return: the number of entries; 0: the CQ is full, or not registered.
 */
u32 shift_mlx5_reserve_part(const struct shift_qp *sqp)
{
	struct shift_cq *scq = sqp->rcq;
	struct shift_mlx5_cq_state *state;
	u32 own, room, part = 0;

	down_read(&sqp->sdev->ring_sem);
	if (shift_cq_registered(scq)) {
		state = scq->priv;
		mutex_lock(&state->lock);
		room = shift_mlx5_cq_room(&scq->pins.ring, shift_mlx5_consumer(scq), sqp->qpn,
					  &own);
		if (room > state->reserved)
			part = part_of(room - state->reserved);
		state->reserved += part;
		mutex_unlock(&state->lock);
	}
	up_read(&sqp->sdev->ring_sem);
	return part;
}

/* What was reserved is written, or will not be. */
void shift_mlx5_unreserve(struct shift_cq *scq, u32 reserved)
{
	struct shift_mlx5_cq_state *state = scq->priv;

	mutex_lock(&state->lock);
	state->reserved -= reserved;
	mutex_unlock(&state->lock);
}
