// SPDX-License-Identifier: GPL-2.0
/*
 * A QP that is connected to itself, as NCCL has one to flush what its NIC has written to a GPU.
 *
 * It is its own peer: it has its own cookie for the peer's, and no links.  What it has to tell the
 * peer goes into its own mailbox (path.c), and the rules of fsm.c take it from there: its request
 * is the consent to it, its progress is that of the peer, and its proxy QP is connected to itself.
 */
#include "core/node.h"
#include "core/qp.h"
#include "failover/internal.h"
#include "pure/fsm.h"

/**
 * shift_loop_pair - a QP that is connected to itself has found its peer
 * @sqp: the QP, locked, in OFF, with a proxy QP for the backup.
 * @atomic: its two NICs are atomic towards each other.
 *
 * Context: process context; may sleep.
 */
void shift_loop_pair(struct shift_qp *sqp, bool atomic)
{
	lockdep_assert_held(&sqp->lock);
	sqp->peer.cookie = sqp->cookie;
	sqp->peer.atomic = atomic;
	sqp->peer.alone = true;
	sqp->peer.windows = sqp->rings.tracks_mws;
	memcpy(sqp->peer.boot, shift_boot_id, sizeof(sqp->peer.boot));
	sqp->peer.told = true;
	sqp->peer.ok = true;
	sqp->peer.tries = 0;
	shift_failover_event(sqp, SHIFT_EV_PAIRED, NULL);
}
