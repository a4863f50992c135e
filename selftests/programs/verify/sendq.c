// SPDX-License-Identifier: GPL-2.0
/*
 * Completions of a send queue: the next signaled WR, once, with its opcode; after an
 * error every WR, signaled or not, is flushed in order and none succeeds.
 */
#include <inttypes.h>
#include <string.h>

#include "ops.h"

static struct note *head(struct lane *lane)
{
	return &lane->note[lane->note_head % lane->note_size];
}

static bool none_left(const struct lane *lane)
{
	return lane->note_head == lane->note_tail;
}

/* What comes before @wr_id was executed; the note of @wr_id itself stays. */
static void pass_unsignaled(struct rig *rig, struct lane *lane, uint64_t wr_id)
{
	while (!none_left(lane) && head(lane)->wr_id != wr_id && !head(lane)->signaled) {
		struct note *note = head(lane);

		lane->note_head++;
		issuer_result(rig, lane, note->number);
	}
	if (none_left(lane))
		die(EXIT_VIOLATION, "qp %u: completion %#" PRIx64
		    " where none is due", lane->out.qp, wr_id);
	if (head(lane)->wr_id != wr_id)
		die(EXIT_VIOLATION, "qp %u: completion %#" PRIx64
		    ", expected %#" PRIx64, lane->out.qp, wr_id, head(lane)->wr_id);
}

static void report(struct lane *lane, const struct ibv_wc *wc)
{
	lane->reported = true;
	say("error qp %u wr %#" PRIx64 ": %s", lane->out.qp, wc->wr_id,
	    ibv_wc_status_str(wc->status));
}

static void error(struct rig *rig, struct lane *lane, const struct ibv_wc *wc)
{
	if (lane->reported) {
		if (wc->status != IBV_WC_WR_FLUSH_ERR)
			die(EXIT_VIOLATION, "qp %u: %s after an error", lane->out.qp,
			    ibv_wc_status_str(wc->status));
		if (none_left(lane) || head(lane)->wr_id != wc->wr_id)
			die(EXIT_VIOLATION, "qp %u: %#" PRIx64
			    " flushed out of order", lane->out.qp, wc->wr_id);
		lane->flushed++;
	} else {
		pass_unsignaled(rig, lane, wc->wr_id);
		report(lane, wc);
		lane_fail(rig, lane);
	}
	lane->note_head++;
}

void sendq_complete(struct rig *rig, struct lane *lane, const struct ibv_wc *wc)
{
	struct note *note;

	if (wc->status != IBV_WC_SUCCESS &&
	    !(lane->reported && sabotage(rig, "revive", lane, lane->posted))) {
		error(rig, lane, wc);
		return;
	}
	if (lane->reported)
		die(EXIT_VIOLATION, "qp %u: success of %#" PRIx64 " after an error",
		    lane->out.qp, wc->wr_id);
	pass_unsignaled(rig, lane, wc->wr_id);
	note = head(lane);
	if (!note->signaled)
		die(EXIT_VIOLATION, "qp %u: completion %#" PRIx64
		    " of an unsignaled WR", lane->out.qp, wc->wr_id);
	if (wc->opcode != note->opcode)
		die(EXIT_VIOLATION, "qp %u: completion %#" PRIx64
		    " has opcode %d, not %d", lane->out.qp, wc->wr_id, wc->opcode,
		    note->opcode);
	lane->note_head++;
	if (note->role == ROLE_BIND)
		target_bound(rig, lane, note->number);
	else
		issuer_result(rig, lane, note->number);
}

/* This QP posts no more; what it has outstanding must be flushed. */
void lane_fail(struct rig *rig, struct lane *lane)
{
	if (lane->failed)
		return;
	lane->failed = true;
	lane->failed_at = rig->clock;
	rig->failures++;
}

/*
 * rxe of 6.1 may forget a WR that is posted just as its QP breaks: told once more it
 * remembers. Only where it is on its own: what the module shows has to be whole.
 */
static void remind(struct lane *lane)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	lane->reminded = true;
	say("reminded of a WR that was not flushed");
	if (ibv_modify_qp(lane->qp, &attr, IBV_QP_STATE))
		die(EXIT_VIOLATION, "qp %u: to ERR", lane->in.qp);
}

/* Nothing is left on a QP in error: the peer may look at what was executed. */
bool lane_drain(struct rig *rig, struct lane *lane)
{
	if (!lane->failed || lane->drained)
		return false;
	if (!none_left(lane)) {
		if (rig->side.opt.sabotage && rig->side.opt.allow_error && !lane->reminded &&
		    rig->clock - lane->failed_at > DRAIN_SECONDS / 2)
			remind(lane);
		if (rig->clock - lane->failed_at > DRAIN_SECONDS && lane->reminded)
			die(EXIT_HANG, "qp %u: the device has forgotten a WR", lane->out.qp);
		if (rig->clock - lane->failed_at > DRAIN_SECONDS)
			die(EXIT_VIOLATION, "qp %u: %" PRIu64 " WRs were not flushed",
			    lane->out.qp, lane->note_tail - lane->note_head);
		return false;
	}
	lane->drained = true;
	if (!lane->reported && lane->flushed_receive.status)
		report(lane, &lane->flushed_receive);
	say("flushed %" PRIu64, lane->flushed);
	if (!rig->side.opt.allow_error) {
		tell(rig, TELL_ERROR, 0, 0);
		die(EXIT_ERROR, "error completion");
	}
	tell(rig, TELL_COMPLETED, lane->out.qp, lane->completed);
	tell(rig, TELL_FAILED, lane->out.qp, lane->posted);
	return true;
}
