// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libmlx5's fast paths in a loop, for callgrind to count one function's instructions,
 * or for the clock. A path is named by the function, and how many requests or completions
 * it is given: "mlx5_poll_cq:16" takes 16 in one call, ":0" finds nothing.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "golden_mlx5_lib.h"

#define ENTRIES	64
#define BATCH	16
#define ROUNDS	40

static struct mlx5_cq cq;
static struct mlx5_cqe64 entries[ENTRIES];
static struct ibv_sge sge = { .addr = 4096, .length = 8 };
static struct ibv_send_wr wrs[BATCH];

static void cq_init(void)
{
	static struct mlx5_qp *table[MLX5_QP_TABLE_MASK + 1];
	struct ibv_cq_init_attr_ex attr = {};
	static __be32 dbrec[2];
	uint32_t i;

	golden_ctx.qp_table[QPN >> MLX5_QP_TABLE_SHIFT].table = table;
	golden_ctx.qp_table[QPN >> MLX5_QP_TABLE_SHIFT].refcnt = 1;
	table[QPN & MLX5_QP_TABLE_MASK] = &golden_qp;
	mlx5_spinlock_init(&cq.lock, 1);
	cq.verbs_cq.cq.context = &golden_ctx.ibv_ctx.context;
	cq.verbs_cq.cq.cqe = ENTRIES - 1;
	cq.active_buf = &cq.buf_a;
	mlx5_buf_addr(&cq.buf_a) = entries;
	cq.dbrec = dbrec;
	cq.cqe_sz = 64;
	if (golden_cq_fill_pfns(&cq, &attr, &golden_ctx))
		errx(1, "ibv_start_poll");
	for (i = 0; i < ENTRIES; i++)
		entries[i].op_own = MLX5_CQE_INVALID << 4;
}

/* the device completes @n sends; what lies behind is of another lap */
static void complete(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t index = cq.cons_index + i;
		struct mlx5_cqe64 *e = &entries[index % ENTRIES];

		e->sop_drop_qpn = htobe32(MLX5_OPCODE_RDMA_WRITE << 24 | QPN);
		e->wqe_counter = htobe16(index);
		e->op_own = MLX5_CQE_REQ << 4 | !!(index & ENTRIES);
	}
}

static int poll(uint32_t n)
{
	static struct ibv_wc wc[BATCH];

	complete(n);
	return ibv_poll_cq(&cq.verbs_cq.cq, n ? n : 1, wc) != (int)n;
}

static int poll_lazy(uint32_t n)
{
	struct ibv_cq_ex *ex = &cq.verbs_cq.cq_ex;
	struct ibv_poll_cq_attr attr = {};

	complete(n);
	if (!n)
		return ibv_start_poll(ex, &attr) != ENOENT;
	if (ibv_start_poll(ex, &attr))
		return 1;
	while (--n)
		if (ibv_next_poll(ex))
			return 1;
	ibv_end_poll(ex);
	return 0;
}

static int post(uint32_t n)
{
	struct ibv_send_wr *bad;
	int ret;

	wrs[n - 1].next = NULL;
	ret = ibv_post_send(&golden_qp.verbs_qp.qp, wrs, &bad);
	sq_completed();
	return ret;
}

static int post_wr(uint32_t n)
{
	struct ibv_qp_ex *qpx = &golden_qp.verbs_qp.qp_ex;
	int ret;

	ibv_wr_start(qpx);
	while (n--) {
		ibv_wr_rdma_write(qpx, 1, 4096);
		ibv_wr_set_sge(qpx, 1, 4096, 8);
	}
	ret = ibv_wr_complete(qpx);
	sq_completed();
	return ret;
}

static int post_recv(uint32_t n)
{
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad;
	int ret;

	ret = ibv_post_recv(&golden_qp.verbs_qp.qp, &recv, &bad);
	sq_completed();
	return ret;
}

static const struct path {
	const char *function;
	int (*run)(uint32_t n);
} paths[] = {
	{ "mlx5_post_send", post },
	{ "mlx5_send_wr_start", post_wr },
	{ "mlx5_send_wr_rdma_write", post_wr },
	{ "mlx5_send_wr_set_sge_rc_uc", post_wr },
	{ "mlx5_send_wr_complete", post_wr },
	{ "post_wr", post_wr },		/* of this file: all of ibv_wr_* */
	{ "mlx5_post_recv", post_recv },
	{ "mlx5_poll_cq", poll },
	{ "mlx5_start_poll_v0_lock", poll_lazy },
	{ "mlx5_next_poll_v0", poll_lazy },
};

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* @what: one of the paths; @clock: print nanoseconds of a call, the best of some rounds */
int cost(const char *what, unsigned long loops, bool clock)
{
	const char *count = strchr(what, ':');
	size_t len = count ? (size_t)(count - what) : strlen(what);
	uint32_t n = count ? strtoul(count + 1, NULL, 10) : 1;
	const struct path *path = NULL;
	unsigned long i, round;
	double best = 0, ns;
	uint64_t start;
	uint32_t k;

	qp_init(256, 0, false);
	cq_init();
	for (k = 0; k < sizeof(paths) / sizeof(*paths); k++)
		if (strlen(paths[k].function) == len && !strncmp(paths[k].function, what, len))
			path = &paths[k];
	if (!path || n > BATCH)
		errx(2, "unknown path %s", what);
	for (k = 0; k < BATCH; k++) {
		wrs[k].sg_list = &sge;
		wrs[k].num_sge = 1;
		wrs[k].opcode = IBV_WR_RDMA_WRITE;
		wrs[k].next = &wrs[k + 1];
	}
	for (round = 0; round < (clock ? ROUNDS : 1); round++) {
		start = now();
		for (i = 0; i < loops; i++)
			if (path->run(n))
				errx(1, "%s failed", what);
		ns = (double)(now() - start) / loops;
		if (!round || ns < best)
			best = ns;
	}
	if (clock)
		printf("%.2f\n", best);
	return 0;
}
