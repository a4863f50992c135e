// SPDX-License-Identifier: GPL-2.0
/* Receives: posting them, which one a completion must name; stamped memory. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ops.h"

void stamp(uint8_t *at, size_t len)
{
	memset(at, STAMP, len);
}

/* Offset of the first byte that is not the stamp's, or len. */
size_t stamp_check(const uint8_t *at, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (at[i] != STAMP)
			return i;
	return len;
}

static uint8_t *receive_at(struct rig *rig, struct lane *lane, uint64_t which)
{
	if (rig->srq)
		return rig->srq_buffers + which * rig->side.stride;
	return lane->receive + which % rig->side.slots * rig->side.stride;
}

/* Buffer @which of the SRQ, or the next of the QP. */
void receive_post(struct rig *rig, struct lane *lane, uint64_t which)
{
	struct ibv_mr *mr[2] = { rig->srq ? rig->srq_mr : lane->receive_mr };
	struct ibv_sge sge[MAX_SGE];
	struct ibv_recv_wr wr = { .sg_list = sge }, *bad;
	uint8_t *at;
	int ret;

	if (!rig->srq)
		which = lane->receives_posted;
	at = receive_at(rig, lane, which);
	mr[1] = mr[0];
	wr.num_sge = cut_pieces(at, rig->side.opt.size,
				rig->side.opt.sge < rig->side.opt.size ?
				rig->side.opt.sge : 1, mr, false, sge);
	if (sabotage(rig, "receive", lane, rig->receives_posted++))
		sge[0].lkey ^= 0xff;
	if (rig->srq) {
		wr.wr_id = RECEIVE_BIT | which;
		rig->srq_posted[which] = true;
		ret = ibv_post_srq_recv(rig->srq, &wr, &bad);
	} else {
		wr.wr_id = RECEIVE_BIT | (uint64_t)lane->in.qp << 40 | which;
		lane->receives_posted++;
		ret = ibv_post_recv(lane->qp, &wr, &bad);
	}
	if (ret)
		die(EXIT_VIOLATION, "qp %u: posting a receive: %s", lane->in.qp,
		    strerror(ret));
}

/* Which buffer was consumed; dies if it is not one whose turn it was. */
uint64_t receive_take(struct rig *rig, struct lane *lane, const struct ibv_wc *wc,
		      uint8_t **at)
{
	uint64_t which = wc->wr_id & ~RECEIVE_BIT;

	if (rig->srq) {
		if (which >= (uint64_t)rig->side.slots * rig->side.opt.qps ||
		    !rig->srq_posted[which])
			die(EXIT_VIOLATION, "qp %u: receive %#" PRIx64
			    " completed that is not posted", lane->in.qp, wc->wr_id);
		rig->srq_posted[which] = false;
	} else {
		uint64_t due = RECEIVE_BIT | (uint64_t)lane->in.qp << 40 | lane->received;

		if (wc->wr_id != due)
			die(EXIT_VIOLATION, "qp %u: receive %#" PRIx64
			    " completed, expected %#" PRIx64, lane->in.qp, wc->wr_id,
			    due);
		which = lane->received;
	}
	lane->received++;
	*at = receive_at(rig, lane, which);
	return which;
}
