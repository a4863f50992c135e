// SPDX-License-Identifier: GPL-2.0
/* Device, memory and QPs of shift_verify. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verify.h"

void *memory(size_t len)
{
	void *p = NULL;

	if (posix_memalign(&p, sysconf(_SC_PAGESIZE), len))
		die(EXIT_SETUP, "no memory for %zu bytes", len);
	memset(p, 0, len);
	return p;
}

struct ibv_mr *memory_reg(struct side *side, void *p, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(side->pd, p, len, access);

	if (!mr)
		die(EXIT_SETUP, "ibv_reg_mr %zu bytes: %s", len, strerror(errno));
	return mr;
}

/* RoCE v2 with an IPv4 address: looked up by value, as an index may move. */
static int find_gid(struct side *side)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry entry;
	int i;

	for (i = 0; i < 64; i++) {
		if (ibv_query_gid_ex(side->context, 1, i, &entry, 0))
			continue;
		if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(entry.gid.raw, v4, sizeof(v4)))
			return i;
	}
	die(EXIT_SETUP, "%s has no IPv4 GID", side->opt.device);
}

void device_open(struct side *side)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), side->opt.device))
			side->context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!side->context)
		die(EXIT_SETUP, "cannot open %s", side->opt.device);
	side->gid_index = side->opt.gid_index < 0 ? find_gid(side) :
						    side->opt.gid_index;
	if (ibv_query_gid(side->context, 1, side->gid_index, &side->gid) ||
	    ibv_query_port(side->context, 1, &port))
		die(EXIT_SETUP, "cannot query %s", side->opt.device);
	side->mtu = port.active_mtu;
	async_start(side);
}

/* Requests that a QP may have outstanding. */
static unsigned int sends_of(const struct side *side)
{
	unsigned int parts = side->opt.protocol == PROTOCOL_SIMPLE ? MAX_PARTS : 1;

	/* --sabotage posts one more */
	return parts * side->opt.depth + side->ack_slots + !!side->opt.sabotage;
}

void qp_to_init(struct flow *flow, int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access,
	};

	if (ibv_modify_qp(flow->qp, &attr, IBV_QP_STATE | IBV_QP_PORT |
			  IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS))
		die(EXIT_SETUP, "QP to INIT: %s", strerror(errno));
}

static void create_qp(struct side *side, struct flow *flow)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.cap = {
			.max_send_wr = sends_of(side),
			.max_recv_wr = side->opt.protocol == PROTOCOL_SIMPLE ? side->slots : 1,
			.max_send_sge = side->opt.sge,
			.max_recv_sge = 1,
			.max_inline_data = side->opt.use_inline ?
					   side->opt.size : 0,
		},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = side->pd,
	};

	if (side->opt.wr_api) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	}
	flow->qp = ibv_create_qp_ex(side->context, &init);
	if (!flow->qp)
		die(EXIT_SETUP, "ibv_create_qp: %s", strerror(errno));
	if (side->opt.wr_api)
		flow->qpx = ibv_qp_to_qp_ex(flow->qp);
}

static void create_flow(struct side *side, unsigned int index)
{
	struct flow *flow = &side->flow[index];
	size_t ring = side->stride * side->slots;
	size_t source = side->stride * (side->opt.depth + !!side->opt.sabotage);
	size_t acks = sizeof(struct ack) * (side->ack_slots + 1);
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		     (side->opt.flush ? IBV_ACCESS_REMOTE_READ : 0);

	flow->index = index;
	flow->target = flow->expect_total = UINT64_MAX;
	flow->fifo_size = side->opt.depth + side->ack_slots;
	flow->fifo = calloc(flow->fifo_size, sizeof(*flow->fifo));
	if (!flow->fifo)
		die(EXIT_SETUP, "no memory");
	flow->source = memory(source);
	/* Two registrations of one buffer: each WR may use several lkeys. */
	flow->source_mr[0] = memory_reg(side, flow->source, source, 0);
	flow->source_mr[1] = memory_reg(side, flow->source, source, 0);

	/* The ring and, behind it, the word the peer's acks go to. */
	flow->ring = memory(ring + sizeof(struct ack));
	flow->ring_mr = memory_reg(side, flow->ring, ring + sizeof(struct ack), access);
	flow->acked = (struct ack *)(flow->ring + ring);
	flow->acked->inverse = ~0ULL;
	flow->ack_source = memory(acks);
	flow->ack_mr = memory_reg(side, flow->ack_source, acks, 0);

	create_qp(side, flow);
	qp_to_init(flow, IBV_ACCESS_REMOTE_WRITE);
}

void side_open(struct side *side)
{
	unsigned int i, entries;

	device_open(side);
	side->pd = ibv_alloc_pd(side->context);
	if (!side->pd)
		die(EXIT_SETUP, "ibv_alloc_pd: %s", strerror(errno));
	if (side->opt.events) {
		side->channel = ibv_create_comp_channel(side->context);
		if (!side->channel)
			die(EXIT_SETUP, "ibv_create_comp_channel");
	}
	entries = side->opt.small_cq ? side->opt.depth / side->opt.signal_every + 2 :
				       side->opt.depth;
	if (side->opt.protocol == PROTOCOL_SIMPLE)
		entries += (MAX_PARTS - 1) * side->opt.depth + side->slots;
	entries = side->opt.qps * (entries + side->ack_slots + side->opt.flush);
	side->cq = ibv_create_cq(side->context, entries, NULL, side->channel, 0);
	if (!side->cq)
		die(EXIT_SETUP, "ibv_create_cq: %s", strerror(errno));
	side->flow = calloc(side->opt.qps, sizeof(*side->flow));
	if (!side->flow)
		die(EXIT_SETUP, "no memory");
	for (i = 0; i < side->opt.qps; i++)
		create_flow(side, i);
	if (side->opt.flush && side->receives)
		flush_open(side);
}

static int modify(struct side *side, struct flow *flow, struct ibv_qp_attr *attr, int mask)
{
	enum cost kind = attr->qp_state == IBV_QPS_RTR ? COST_RTR : COST_RTS;
	uint64_t began = side->opt.cost ? cost_begin(kind) : 0;
	int ret = ibv_modify_qp(flow->qp, attr, mask);

	if (side->opt.cost)
		cost_end(kind, began);
	return ret;
}

void qp_to_rts(struct side *side, struct flow *flow, uint32_t psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = side->mtu,
		.dest_qp_num = flow->peer.qpn,
		.rq_psn = flow->peer.psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = flow->peer.gid,
				.sgid_index = side->gid_index,
				.hop_limit = 64,
				.traffic_class = side->opt.tos,
				.flow_label = side->opt.flow_label,
			},
		},
	};

	if (modify(side, flow, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
		   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		   IBV_QP_MIN_RNR_TIMER))
		die(EXIT_SETUP, "QP to RTR: %s", strerror(errno));
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = psn;
	attr.timeout = side->opt.qp_timeout;
	/* Not 7: rxe takes that for "for ever". */
	attr.retry_cnt = side->opt.retry;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	if (modify(side, flow, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die(EXIT_SETUP, "QP to RTS: %s", strerror(errno));
}

void side_connect(struct side *side)
{
	unsigned int i;

	for (i = 0; i < side->opt.qps; i++) {
		struct flow *flow = &side->flow[i];
		struct qp_address mine = {
			.qpn = flow->qp->qp_num,
			/* Odd QPs soon wrap their packet numbers. */
			.psn = i % 2 ? 0xffffc0 : 0x1000 * (i + 1),
			.ring = (uintptr_t)flow->ring,
			.ack = (uintptr_t)flow->acked,
			.rkey = flow->ring_mr->rkey,
			.gid = side->gid,
		};

		oob_exchange(side->oob, &mine, &flow->peer, sizeof(mine));
		qp_to_rts(side, flow, mine.psn);
		say("qp %u %u %u", i, flow->qp->qp_num, flow->peer.qpn);
	}
	if (side->flush.qp)
		flush_connect(side);
}

void side_close(struct side *side)
{
	unsigned int i;

	if (side->flush.qp)
		flush_close(side);
	for (i = 0; i < side->opt.qps; i++) {
		struct flow *flow = &side->flow[i];

		if (ibv_destroy_qp(flow->qp) ||
		    ibv_dereg_mr(flow->source_mr[0]) ||
		    ibv_dereg_mr(flow->source_mr[1]) ||
		    ibv_dereg_mr(flow->ring_mr) || ibv_dereg_mr(flow->ack_mr))
			die(EXIT_VIOLATION, "a destroy verb failed: %s",
			    strerror(errno));
		free(flow->source);
		free(flow->ring);
		free(flow->ack_source);
		free(flow->fifo);
	}
	free(side->flow);
	async_stop();
	if (ibv_destroy_cq(side->cq) ||
	    (side->channel && ibv_destroy_comp_channel(side->channel)) ||
	    ibv_dealloc_pd(side->pd) || ibv_close_device(side->context))
		die(EXIT_VIOLATION, "a destroy verb failed: %s",
		    strerror(errno));
}
