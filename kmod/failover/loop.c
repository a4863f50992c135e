// SPDX-License-Identifier: GPL-2.0
/*
 * A QP that is connected to itself, as NCCL has one to flush what its NIC has written to a GPU.
 *
 * It is its own peer: it has its own cookie for the peer's, and no links.  What it has to tell the
 * peer goes into its own mailbox, and the rules of fsm.c take it from there: its request is the
 * consent to it, its progress is that of the peer, and its proxy QP is connected to itself.
 */
#include "core/ib.h"
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "failover/internal.h"
#include "pure/fsm.h"
#include "pure/msg.h"

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
	sqp->peer.windows = sqp->rings.tracks_mws;
	memcpy(sqp->peer.boot, shift_boot_id, sizeof(sqp->peer.boot));
	sqp->peer.told = true;
	sqp->peer.ok = true;
	sqp->peer.tries = 0;
	shift_failover_event(sqp, SHIFT_EV_PAIRED, NULL);
}

/**
 * shift_loop_send - a QP that is connected to itself sends its peer a message
 * @sqp: the QP.
 * @m: the message, with its cookies.
 *
 * Two are not sent: it knows that it consents, and that it ends.
 *
 * Context: process context; takes no mutex.
 * Return: 0.
 */
int shift_loop_send(struct shift_qp *sqp, const struct shift_msg *m)
{
	switch (m->type) {
	case SHIFT_MSG_ACK:
	case SHIFT_MSG_GONE:
		break;
	case SHIFT_MSG_RESOLVE:
	case SHIFT_MSG_RESOLVED:
	case SHIFT_MSG_RKEY_GONE:
		shift_rkey_message(sqp, NULL, m);
		break;
	default:
		shift_qp_post_msg(sqp, m);
	}
	return 0;
}

/**
 * shift_loop_works - can a QP that is connected to itself use a path?
 * @sqp: the QP; its ports are looked at elsewhere.
 * @path: the path.
 *
 * Context: any.
 */
bool shift_loop_works(const struct shift_qp *sqp, u8 path)
{
	const struct shift_pair *pair = shift_qp_pair(sqp);

	return path != SHIFT_PATH_BACKUP || (pair && !READ_ONCE(pair->dying));
}
