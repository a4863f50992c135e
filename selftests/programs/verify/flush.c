// SPDX-License-Identifier: GPL-2.0
/*
 * --flush: a QP that is connected to itself.  Before a message is used, a byte of it is READ from
 * the memory to which it was written, as NCCL does with that of a GPU, so that the NIC's writes
 * are there.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "verify.h"

void flush_open(struct side *side)
{
	struct ibv_qp_init_attr init = {
		.send_cq = side->cq, .recv_cq = side->cq,
		.cap = { .max_send_wr = side->opt.qps, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct flow *flush = &side->flush;

	flush->index = side->opt.qps;
	flush->qp = ibv_create_qp(side->pd, &init);
	if (!flush->qp)
		die(EXIT_SETUP, "ibv_create_qp: %s", strerror(errno));
	qp_to_init(flush, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	side->flush_bytes = memory(side->opt.qps);
	side->flush_mr = memory_reg(side, side->flush_bytes, side->opt.qps,
				    IBV_ACCESS_LOCAL_WRITE);
}

void flush_connect(struct side *side)
{
	struct flow *flush = &side->flush;

	flush->peer.qpn = flush->qp->qp_num;
	flush->peer.gid = side->gid;
	qp_to_rts(side, flush, 0);
	say("flush qp %u", flush->qp->qp_num);
}

static void flush_post(struct side *side, struct flow *flow)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)&side->flush_bytes[flow->index], .length = 1,
		.lkey = side->flush_mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = WR_FLUSH_BIT | flow->index,
		.sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {
			.remote_addr = (uintptr_t)flow->ring +
				       flow->verified % side->slots * side->stride,
			.rkey = flow->ring_mr->rkey,
		},
	};

	side->flush_bytes[flow->index] = POISON;
	if (ibv_post_send(side->flush.qp, &wr, &bad))
		die(EXIT_VIOLATION, "flush: ibv_post_send: %s", strerror(errno));
	flow->flushing = true;
}

/* Is the next message of a QP flushed?  If not, that is begun. */
bool flush_done(struct side *side, struct flow *flow)
{
	if (flow->flushed > flow->verified)
		return true;
	if (!flow->flushing)
		flush_post(side, flow);
	return false;
}

void flush_completed(struct side *side, const struct ibv_wc *wc)
{
	struct flow *flow = &side->flow[wc->wr_id & ~WR_FLUSH_BIT];
	uint8_t want = pattern_byte(0, side->opt.size, flow->index, flow->verified);

	if (!flow->flushing || wc->opcode != IBV_WC_RDMA_READ)
		die(EXIT_VIOLATION, "flush: completion %#" PRIx64 " with opcode %d", wc->wr_id,
		    wc->opcode);
	if (side->flush_bytes[flow->index] != want)
		die(EXIT_VIOLATION, "flush: qp %u message %" PRIu64 ": read %02x, not %02x",
		    flow->index, flow->verified, side->flush_bytes[flow->index], want);
	flow->flushing = false;
	flow->flushed = flow->verified + 1;
}

void flush_close(struct side *side)
{
	if (ibv_destroy_qp(side->flush.qp) || ibv_dereg_mr(side->flush_mr))
		die(EXIT_VIOLATION, "a destroy verb failed: %s", strerror(errno));
}
