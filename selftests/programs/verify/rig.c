// SPDX-License-Identifier: GPL-2.0
/* Device, memory, queues and QPs of shift_verify --ops. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

#define ALL_REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		    IBV_ACCESS_REMOTE_ATOMIC)

static void *zeroed(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (!p)
		die(EXIT_SETUP, "no memory");
	return p;
}

static unsigned int sends_of(const struct rig *rig)
{
	return rig->side.opt.depth + WINDOWS + EXTRA_WRS;
}

static void open_queues(struct rig *rig, struct lane *lane)
{
	const struct options *opt = &rig->side.opt;
	unsigned int receives = opt->srq ? rig->side.slots * opt->qps : rig->side.slots;

	if (opt->shared_cq) {
		if (!rig->queues)
			queue_open(rig, opt->qps * (sends_of(rig) + rig->side.slots) + 1,
				   false);
		lane->sends = lane->receives = &rig->queue[0];
		return;
	}
	lane->sends = queue_open(rig, sends_of(rig) + 1, false);
	lane->receives = queue_open(rig, receives + 1, opt->solicited);
}

static uint64_t send_ops(const struct plan *plan)
{
	uint64_t flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			 IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ |
			 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
			 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_BIND_MW |
			 IBV_QP_EX_WITH_LOCAL_INV;

	return plan->has[OP_AWRITE] ? flags | IBV_QP_EX_WITH_ATOMIC_WRITE : flags;
}

static void open_qp(struct rig *rig, struct lane *lane)
{
	const struct options *opt = &rig->side.opt;
	struct ibv_qp_init_attr_ex init = {
		.send_cq = lane->sends->cq,
		.recv_cq = lane->receives->cq,
		.srq = rig->srq,
		.cap = {
			.max_send_wr = sends_of(rig),
			.max_recv_wr = rig->srq ? 0 : rig->side.slots,
			.max_send_sge = opt->sge,
			.max_recv_sge = rig->srq ? 0 : opt->sge,
			.max_inline_data = opt->use_inline ? INLINE_MAX : 0,
		},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = rig->side.pd,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL_REMOTE,
	};

	if (opt->wr_api) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = send_ops(&rig->plan);
	}
	lane->qp = ibv_create_qp_ex(rig->side.context, &init);
	if (!lane->qp)
		die(EXIT_SETUP, "ibv_create_qp: %s", strerror(errno));
	if (opt->wr_api)
		lane->qpx = ibv_qp_to_qp_ex(lane->qp);
	if (ibv_modify_qp(lane->qp, &attr, IBV_QP_STATE | IBV_QP_PORT |
			  IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS))
		die(EXIT_SETUP, "QP to INIT: %s", strerror(errno));
}

static void open_memory(struct rig *rig, struct lane *lane)
{
	struct side *side = &rig->side;
	size_t local = side->stride * (side->opt.depth + 1);
	size_t ring = side->stride * side->slots;

	lane->local = memory(local);
	lane->local_mr[0] = memory_reg(side, lane->local, local, IBV_ACCESS_LOCAL_WRITE);
	lane->local_mr[1] = memory_reg(side, lane->local, local, IBV_ACCESS_LOCAL_WRITE);
	lane->ring = memory(ring);
	lane->ring_mr = memory_reg(side, lane->ring, ring, IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
	lane->reads = memory(ring);
	lane->reads_mr = memory_reg(side, lane->reads, ring, IBV_ACCESS_REMOTE_READ);
	lane->cells = memory(sizeof(*lane->cells));
	lane->cells_mr = memory_reg(side, lane->cells, sizeof(*lane->cells),
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	if (rig->srq)
		return;
	lane->receive = memory(ring);
	lane->receive_mr = memory_reg(side, lane->receive, ring, IBV_ACCESS_LOCAL_WRITE);
}

static struct ibv_mw *open_window(struct rig *rig)
{
	struct ibv_mw *mw = ibv_alloc_mw(rig->side.pd, IBV_MW_TYPE_2);

	if (!mw)
		die(EXIT_SETUP, "ibv_alloc_mw: %s", strerror(errno));
	return mw;
}

static void open_lane(struct rig *rig, unsigned int index)
{
	struct lane *lane = &rig->lane[index];
	unsigned int i;

	lane->out = (struct stream){ index, !rig->side.opt.server };
	lane->in = (struct stream){ index, !!rig->side.opt.server };
	lane->target = rig->side.sends ? UINT64_MAX : 0;
	lane->expect_total = rig->side.receives ? UINT64_MAX : 0;
	lane->note_size = sends_of(rig);
	lane->note = zeroed(lane->note_size, sizeof(*lane->note));
	lane->issue = zeroed(rig->side.opt.depth, sizeof(*lane->issue));
	lane->early = zeroed(rig->side.slots, sizeof(*lane->early));
	open_queues(rig, lane);
	open_memory(rig, lane);
	open_qp(rig, lane);
	if (rig->plan.has[OP_MW])
		lane->window = open_window(rig);
	for (i = 0; rig->plan.has[OP_SEND_INV] && i < WINDOWS; i++)
		lane->bound[i] = open_window(rig);
}

static void open_srq(struct rig *rig)
{
	const struct options *opt = &rig->side.opt;
	unsigned int count = rig->side.slots * opt->qps;
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = count, .max_sge = opt->sge },
	};
	size_t len = rig->side.stride * count;

	rig->srq = ibv_create_srq(rig->side.pd, &attr);
	if (!rig->srq)
		die(EXIT_SETUP, "ibv_create_srq: %s", strerror(errno));
	rig->srq_posted = zeroed(count, sizeof(*rig->srq_posted));
	rig->srq_buffers = memory(len);
	rig->srq_mr = memory_reg(&rig->side, rig->srq_buffers, len,
				 IBV_ACCESS_LOCAL_WRITE);
}

void rig_open(struct rig *rig)
{
	struct side *side = &rig->side;
	unsigned int i;

	device_open(side);
	side->pd = ibv_alloc_pd(side->context);
	if (!side->pd)
		die(EXIT_SETUP, "ibv_alloc_pd: %s", strerror(errno));
	if (side->opt.events) {
		side->channel = ibv_create_comp_channel(side->context);
		if (!side->channel)
			die(EXIT_SETUP, "ibv_create_comp_channel");
	}
	rig->queue = zeroed(2 * side->opt.qps, sizeof(*rig->queue));
	rig->lane = zeroed(side->opt.qps, sizeof(*rig->lane));
	if (side->opt.srq)
		open_srq(rig);
	rig->shared = memory(sizeof(*rig->shared));
	rig->shared_mr = memory_reg(side, rig->shared, sizeof(*rig->shared),
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	for (i = 0; i < side->opt.qps; i++)
		open_lane(rig, i);
}

static void to_rts(struct rig *rig, struct lane *lane, uint32_t psn)
{
	const struct options *opt = &rig->side.opt;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = rig->side.mtu,
		.dest_qp_num = lane->peer.qpn,
		.rq_psn = lane->peer.psn,
		.max_dest_rd_atomic = opt->rd_atomic,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = lane->peer.gid,
				.sgid_index = rig->side.gid_index,
				.hop_limit = 64,
				.traffic_class = opt->tos,
				.flow_label = opt->flow_label,
			},
		},
	};

	if (ibv_modify_qp(lane->qp, &attr, IBV_QP_STATE | IBV_QP_AV |
			  IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die(EXIT_SETUP, "QP to RTR: %s", strerror(errno));
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = psn;
	attr.timeout = opt->qp_timeout;
	attr.retry_cnt = opt->retry;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = opt->rd_atomic;
	if (ibv_modify_qp(lane->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			  IBV_QP_MAX_QP_RD_ATOMIC))
		die(EXIT_SETUP, "QP to RTS: %s", strerror(errno));
}

void rig_connect(struct rig *rig)
{
	unsigned int i;

	for (i = 0; i < rig->side.opt.qps; i++) {
		struct lane *lane = &rig->lane[i];
		struct lane_address mine = {
			.qpn = lane->qp->qp_num,
			/* Odd QPs soon wrap their packet numbers. */
			.psn = i % 2 ? 0xffffc0 : 0x1000 * (i + 1),
			.ring = (uintptr_t)lane->ring,
			.reads = (uintptr_t)lane->reads,
			.cells = (uintptr_t)lane->cells,
			.shared = (uintptr_t)rig->shared,
			.ring_key = lane->ring_mr->rkey,
			.reads_key = lane->reads_mr->rkey,
			.cells_key = lane->cells_mr->rkey,
			.shared_key = rig->shared_mr->rkey,
			.gid = rig->side.gid,
		};

		oob_exchange(rig->side.oob, &mine, &lane->peer, sizeof(mine));
		to_rts(rig, lane, mine.psn);
		say("qp %u %u %u", i, lane->qp->qp_num, lane->peer.qpn);
	}
}

static void destroyed(int failed)
{
	if (failed)
		die(EXIT_VIOLATION, "a destroy verb failed: %s", strerror(errno));
}

static void close_lane(struct lane *lane)
{
	unsigned int i;

	/* rxe holds the QP and the MR as long as a window is bound to them. */
	if (lane->window)
		destroyed(ibv_dealloc_mw(lane->window));
	for (i = 0; i < WINDOWS; i++)
		if (lane->bound[i])
			destroyed(ibv_dealloc_mw(lane->bound[i]));
	destroyed(ibv_destroy_qp(lane->qp) || ibv_dereg_mr(lane->local_mr[0]) ||
		  ibv_dereg_mr(lane->local_mr[1]) || ibv_dereg_mr(lane->ring_mr) ||
		  ibv_dereg_mr(lane->reads_mr) || ibv_dereg_mr(lane->cells_mr));
	if (lane->receive_mr)
		destroyed(ibv_dereg_mr(lane->receive_mr));
	free(lane->local);
	free(lane->ring);
	free(lane->reads);
	free(lane->cells);
	free(lane->receive);
	free(lane->note);
	free(lane->issue);
	free(lane->early);
}

void rig_close(struct rig *rig)
{
	unsigned int i;

	for (i = 0; i < rig->side.opt.qps; i++)
		close_lane(&rig->lane[i]);
	async_stop();
	if (rig->srq)
		destroyed(ibv_destroy_srq(rig->srq) || ibv_dereg_mr(rig->srq_mr));
	for (i = 0; i < rig->queues; i++)
		destroyed(ibv_destroy_cq(rig->queue[i].cq));
	destroyed((rig->side.channel && ibv_destroy_comp_channel(rig->side.channel)) ||
		  ibv_dereg_mr(rig->shared_mr) || ibv_dealloc_pd(rig->side.pd) ||
		  ibv_close_device(rig->side.context));
}
