// SPDX-License-Identifier: GPL-2.0
/*
 * Scribbles over the rings and doorbell records of an mlx5 device: whatever stands
 * there, the kernel survives, and a good QP works after that.
 */
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEPTH	64
#define MEMORY	8192

static uint64_t state;

static uint32_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 16;
}

static void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

struct victim {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	union ibv_gid gid;
	uint8_t memory[MEMORY];
	struct mlx5dv_qp dvqp;
	struct mlx5dv_cq dvcq;
	struct mlx5dv_srq dvsrq;
	uint16_t sends, recvs;
	uint32_t taken;
};

static struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	need(list != NULL, "ibv_get_device_list");
	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	need(ctx != NULL, name);
	ibv_free_device_list(list);
	return ctx;
}

/* To itself: what it sends comes back. */
static void connect_self(struct victim *v)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};

	need(!ibv_modify_qp(v->qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
			    IBV_QP_ACCESS_FLAGS), "to INIT");
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = v->qp->qp_num;
	attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = v->gid;
	attr.ah_attr.grh.sgid_index = 1;
	attr.ah_attr.grh.hop_limit = 1;
	need(!ibv_modify_qp(v->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			    IBV_QP_MIN_RNR_TIMER), "to RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 12;
	attr.retry_cnt = 1;
	attr.rnr_retry = 1;
	attr.max_rd_atomic = 4;
	need(!ibv_modify_qp(v->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "to RTS");
}

static void create(struct victim *v, int with_srq)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = DEPTH, .max_sge = 2 } };
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = with_srq ? 0 : DEPTH,
			 .max_send_sge = 2, .max_recv_sge = with_srq ? 0 : 2,
			 .max_inline_data = 64 },
	};
	struct mlx5dv_obj obj;

	v->cq = ibv_create_cq(v->ctx, 4 * DEPTH, NULL, NULL, 0);
	need(v->cq != NULL, "ibv_create_cq");
	v->srq = with_srq ? ibv_create_srq(v->pd, &srq) : NULL;
	need(!with_srq || v->srq, "ibv_create_srq");
	attr.send_cq = v->cq;
	attr.recv_cq = v->cq;
	attr.srq = v->srq;
	v->qp = ibv_create_qp(v->pd, &attr);
	need(v->qp != NULL, "ibv_create_qp");
	connect_self(v);
	obj.qp.in = v->qp;
	obj.qp.out = &v->dvqp;
	obj.cq.in = v->cq;
	obj.cq.out = &v->dvcq;
	obj.srq.in = v->srq;
	obj.srq.out = &v->dvsrq;
	memset(&v->dvqp, 0, sizeof(v->dvqp));
	memset(&v->dvcq, 0, sizeof(v->dvcq));
	memset(&v->dvsrq, 0, sizeof(v->dvsrq));
	need(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ |
			      (with_srq ? MLX5DV_OBJ_SRQ : 0)), "mlx5dv_init_obj");
	v->sends = 0;
	v->recvs = 0;
	v->taken = 0;
}

static void destroy(struct victim *v)
{
	need(!ibv_destroy_qp(v->qp), "ibv_destroy_qp");
	need(!v->srq || !ibv_destroy_srq(v->srq), "ibv_destroy_srq");
	need(!ibv_destroy_cq(v->cq), "ibv_destroy_cq");
}

static void scribble(void *at, size_t size)
{
	uint8_t *byte = at;

	while (size--)
		*byte++ = rnd();
}

/* Mostly right, so that more than the first check is reached. */
static void data_seg(struct victim *v, struct mlx5_wqe_data_seg *seg)
{
	if (rnd() % 8 == 0) {
		scribble(seg, sizeof(*seg));
		return;
	}
	seg->byte_count = htobe32(rnd() % 8 ? rnd() % 256 : rnd());
	seg->lkey = htobe32(rnd() % 8 ? v->mr->lkey : rnd());
	seg->addr = htobe64((uintptr_t)v->memory + rnd() % MEMORY);
}

static unsigned int bad_send(struct victim *v)
{
	static const uint8_t opcodes[] = { 0, 1, 8, 9, 10, 11, 16, 17, 18, 0x25 };
	uint8_t wqe[1024];
	struct mlx5_wqe_ctrl_seg *ctrl = (void *)wqe;
	struct mlx5_wqe_raddr_seg *raddr = (void *)(ctrl + 1);
	unsigned int i, ds = rnd() % 8 ? 2 + rnd() % 6 : rnd() % 64;
	unsigned int blocks = (ds * 16 + 63) / 64 + !ds;
	uint8_t opcode = rnd() % 8 ? opcodes[rnd() % sizeof(opcodes)] : rnd();

	scribble(wqe, sizeof(wqe));
	for (i = 1; i < 64; i++)
		data_seg(v, (void *)(wqe + i * 16));
	if (rnd() % 16) {
		mlx5dv_set_ctrl_seg(ctrl, v->sends, opcode, 0, v->qp->qp_num,
				    rnd() % 2 ? MLX5_WQE_CTRL_CQ_UPDATE : rnd(), ds, 0,
				    rnd());
		if (rnd() % 8) {
			raddr->raddr = htobe64((uintptr_t)v->memory + rnd() % MEMORY);
			raddr->rkey = htobe32(rnd() % 8 ? v->mr->rkey : rnd());
		}
	}
	for (i = 0; i < blocks; i++)
		memcpy((uint8_t *)v->dvqp.sq.buf +
		       (v->sends + i) % v->dvqp.sq.wqe_cnt * v->dvqp.sq.stride,
		       wqe + i * 64, 64);
	return blocks;
}

static void bad_recv(struct victim *v)
{
	uint8_t *wqe;

	if (v->srq) {
		wqe = (uint8_t *)v->dvsrq.buf + (rnd() % DEPTH) * v->dvsrq.stride;
		if (rnd() % 4 == 0)
			scribble(wqe, 16);
		data_seg(v, (void *)(wqe + 16));
		*v->dvsrq.dbrec = htobe32(++v->recvs + (rnd() % 64 ? 0 : rnd()));
		return;
	}
	wqe = (uint8_t *)v->dvqp.rq.buf + v->recvs++ % v->dvqp.rq.wqe_cnt * v->dvqp.rq.stride;
	data_seg(v, (void *)wqe);
	data_seg(v, (void *)(wqe + 16));
	v->dvqp.dbrec[MLX5_RCV_DBR] = htobe32((rnd() % 64 ? v->recvs : rnd()) & 0xffff);
}

static void pause_us(long us)
{
	struct timespec t = { .tv_nsec = us * 1000 };

	nanosleep(&t, NULL);
}

/* Not by the library, which trusts what the device writes, and we scribble there. */
static void consume(struct victim *v)
{
	struct mlx5_cqe64 *cqe = v->dvcq.buf;
	unsigned int i;
	uint8_t own;

	for (i = 0; i < v->dvcq.cqe_cnt; i++, v->taken++) {
		own = *(volatile uint8_t *)&cqe[v->taken % v->dvcq.cqe_cnt].op_own;
		if (own >> 4 == MLX5_CQE_INVALID ||
		    (own & MLX5_CQE_OWNER_MASK) != !!(v->taken & v->dvcq.cqe_cnt))
			break;
	}
	v->dvcq.dbrec[0] = htobe32(v->taken & 0xffffff);
}

static void abuse(struct victim *v)
{
	unsigned int i, steps = 8 + rnd() % 24;

	for (i = 0; i < steps; i++) {
		if (rnd() % 2)
			bad_recv(v);
		v->sends += bad_send(v);
		/* twice as visible as it should be, now and then */
		v->dvqp.dbrec[MLX5_SND_DBR] = htobe32((rnd() % 64 ? v->sends : rnd()) & 0xffff);
		if (rnd() % 16 == 0)
			v->dvcq.dbrec[0] = rnd();
		if (rnd() % 8 == 0)
			v->dvcq.dbrec[1] = rnd();
		if (rnd() % 32 == 0)
			scribble(v->dvcq.buf, 64 * 4);
		else
			consume(v);
		if (rnd() % 4 == 0)
			pause_us(rnd() % 3000);
	}
}

/* A message to itself, the ordinary way. */
static void good(struct victim *v)
{
	struct ibv_sge sge = { (uintptr_t)v->memory, 100, v->mr->lkey };
	struct ibv_send_wr *wrong, wr = {
		.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)v->memory + 4096, v->mr->rkey },
	};
	struct ibv_wc wc;
	int n = 0, i;

	create(v, 0);
	scribble(v->memory, MEMORY);
	need(!ibv_post_send(v->qp, &wr, &wrong), "ibv_post_send");
	for (i = 0; i < 20000 && !n; i++) {
		n = ibv_poll_cq(v->cq, 1, &wc);
		pause_us(500);
	}
	need(n == 1 && !wc.status && wc.wr_id == 7, "a good WRITE");
	need(!memcmp(v->memory, v->memory + 4096, 100), "its data");
	destroy(v);
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 2 ? atoi(argv[2]) : 20, i;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)time(NULL);
	static struct victim v;

	if (argc < 2) {
		fprintf(stderr, "usage: mlx5_abuse DEVICE [ROUNDS [SEED]]\n");
		return 2;
	}
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	state = seed * 0x9e3779b97f4a7c15ULL + 1;
	/* the provider tells of each error completion */
	if (!freopen("/dev/null", "w", stderr))
		return 2;
	v.ctx = open_named(argv[1]);
	need(!ibv_query_gid(v.ctx, 1, 1, &v.gid), "ibv_query_gid");
	v.pd = ibv_alloc_pd(v.ctx);
	need(v.pd != NULL, "ibv_alloc_pd");
	v.mr = ibv_reg_mr(v.pd, v.memory, MEMORY, IBV_ACCESS_LOCAL_WRITE |
			  IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_ATOMIC);
	need(v.mr != NULL, "ibv_reg_mr");
	for (i = 0; i < rounds; i++) {
		create(&v, i % 2);
		abuse(&v);
		destroy(&v);
	}
	good(&v);
	printf("survived %u rounds\n", rounds);
	return 0;
}
