// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Post work requests by the real libmlx5 to rings in plain memory: no device and no
 * kernel module.  Built by rdma-core/golden against libmlx5's own mlx5.h.
 *
 * usage: golden_mlx5 LIBMLX5 print FUNCTION=OFFSET...
 *	print rings and what was asked for, as C (selftests/unit/golden_mlx5.inc)
 *        golden_mlx5 LIBMLX5 random N FUNCTION=OFFSET...
 *	post N random batches and poll completions: the module's decoders have to agree
 *        golden_mlx5 LIBMLX5 cost NAME[:COUNT] LOOPS FUNCTION=OFFSET...
 *	call one of libmlx5's fast paths LOOPS times, for callgrind
 *        golden_mlx5 LIBMLX5 time NAME[:COUNT] LOOPS FUNCTION=OFFSET...
 *	the same with a clock: print nanoseconds of a call
 *        golden_mlx5 LIBMLX5 test FUNCTION=OFFSET...
 *	selftests/provider/test_mlx5_provider.c, of the patched library
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <err.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden_mlx5_lib.h"

static int (*fill_wr_pfns)(struct mlx5_qp *qp, const struct ibv_qp_init_attr_ex *attr,
			   const struct mlx5dv_qp_init_attr *mlx5_attr);

static struct link_map *map;		/* of libmlx5 */
static char **functions;		/* FUNCTION=OFFSET, and arguments that are none */
static struct mlx5_cq cq;
static struct mlx5_srq srq;
static struct ibv_pd pd;
static uint8_t inlined[1 << 16];	/* of all in asked[] */
static uint32_t num_inlined;

int (*golden_cq_fill_pfns)(struct mlx5_cq *cq, const struct ibv_cq_init_attr_ex *attr,
			   struct mlx5_context *ctx);
struct mlx5_context golden_ctx;
struct mlx5_qp golden_qp;
struct mlx5_bf golden_bf;
uint8_t golden_uar[8192] __attribute__((aligned(4096)));
uint8_t ring[MAX_BLOCKS * SHIFT_MLX5_BLOCK] __attribute__((aligned(4096)));
uint8_t text[2048];
struct shift_wr asked[MAX_ASKED];
uint32_t num_asked;

/* a function of libmlx5 that it does not export */
void *golden_function(const char *name)
{
	size_t n = strlen(name);
	char **arg;

	for (arg = functions; *arg; arg++)
		if (!strncmp(*arg, name, n) && (*arg)[n] == '=')
			return (void *)(map->l_addr + strtoul(*arg + n + 1, NULL, 16));
	errx(2, "where is %s?", name);
}

static void resolve(void)
{
	struct ibv_context_ops *ops = &golden_ctx.ibv_ctx.context.ops;

	ops->post_send = golden_function("mlx5_post_send");
	ops->post_recv = golden_function("mlx5_post_recv");
	ops->post_srq_recv = golden_function("mlx5_post_srq_recv");
	ops->bind_mw = golden_function("mlx5_bind_mw");
	ops->poll_cq = golden_function("mlx5_poll_cq");
	fill_wr_pfns = golden_function("mlx5_qp_fill_wr_pfns");
	golden_cq_fill_pfns = golden_function("mlx5_cq_fill_pfns");
}

static void wq_init(struct mlx5_wq *wq, uint32_t count)
{
	static uint64_t wrid[2][MAX_BLOCKS];
	static unsigned int head[2][MAX_BLOCKS];
	static uint32_t data[2][MAX_BLOCKS];
	int i = wq == &golden_qp.rq;

	memset(wq, 0, sizeof(*wq));
	mlx5_spinlock_init(&wq->lock, 1);
	wq->wrid = wrid[i];
	wq->wqe_head = head[i];
	wq->wr_data = data[i];
	wq->wqe_cnt = count;
	wq->max_post = count;
}

/* an idle queue pair, its rings at @first; what they hold stays */
void qp_init(uint32_t blocks, uint32_t first, bool sig_all)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_RC };
	static __be32 db[2];

	memset(&golden_qp, 0, sizeof(golden_qp));
	golden_qp.ibv_qp = &golden_qp.verbs_qp.qp;
	golden_qp.ibv_qp->context = &golden_ctx.ibv_ctx.context;
	golden_qp.ibv_qp->pd = &pd;
	golden_qp.ibv_qp->qp_type = IBV_QPT_RC;
	golden_qp.ibv_qp->qp_num = QPN;
	golden_qp.ibv_qp->state = IBV_QPS_RTS;
	golden_qp.ibv_qp->send_cq = &cq.verbs_cq.cq;
	golden_qp.ibv_qp->recv_cq = &cq.verbs_cq.cq;
	golden_qp.max_inline_data = 900;
	golden_qp.atomics_enabled = 1;
	golden_qp.sq_signal_bits = sig_all ? MLX5_WQE_CTRL_CQ_UPDATE : 0;
	golden_qp.bf = &golden_bf;
	golden_qp.db = db;
	mlx5_buf_addr(&golden_qp.buf) = ring;
	golden_qp.sq_start = ring;

	wq_init(&golden_qp.sq, blocks);
	golden_qp.sq.max_gs = SHIFT_WR_MAX_SGE;
	golden_qp.sq.qp_state_max_gs = SHIFT_WR_MAX_SGE;
	golden_qp.sq.wqe_shift = 6;
	golden_qp.sq.cur_post = first;
	golden_qp.sq.qend = ring + blocks * SHIFT_MLX5_BLOCK;

	wq_init(&golden_qp.rq, blocks);
	golden_qp.rq.max_gs = SLOT_SGE;
	golden_qp.rq.qp_state_max_gs = SLOT_SGE;
	golden_qp.rq.wqe_shift = SLOT_SHIFT;
	golden_qp.rq.head = first;
	golden_qp.rq.tail = first;

#ifdef MLX5_SHIFT_H
	golden_qp.shift_mtu = 1024;
#endif
	if (fill_wr_pfns(&golden_qp, &attr, NULL))
		errx(1, "ibv_wr_*");
	num_asked = 0;
	num_inlined = 0;
}

void srq_init(uint32_t slots)
{
	static uint64_t wrid[MAX_BLOCKS];
	static unsigned long bitmap[MAX_BLOCKS / 8];
	static __be32 db;
	uint32_t i;

	memset(&srq, 0, sizeof(srq));
	srq.vsrq.srq.context = &golden_ctx.ibv_ctx.context;
	mlx5_spinlock_init(&srq.lock, 1);
	mlx5_buf_addr(&srq.buf) = ring;
	srq.wrid = wrid;
	srq.max = slots;
	srq.nwqes = slots;
	srq.wqe_shift = SLOT_SHIFT;
	srq.max_gs = SLOT_SGE - 1;
	srq.db = &db;
	srq.free_wqe_bitmap = bitmap;
	for (i = 0; i < slots; i++) {
		uint8_t *slot = ring + (i << SLOT_SHIFT);

		memset(slot, 0, sizeof(struct mlx5_wqe_srq_next_seg));
		((struct mlx5_wqe_srq_next_seg *)slot)->next_wqe_index =
			htobe16((i * 5 + 1) % slots);	/* as after many laps */
		if (!((i * 5 + 1) % slots))
			srq.tail = i;
	}
	num_asked = 0;
	num_inlined = 0;
}

/* what becomes of the request on its way into the ring */
static void remember(const struct shift_wr *ask, enum api api)
{
	struct shift_wr *want = &asked[num_asked++];
	uint32_t i;

	*want = *ask;
	if (ask->flags & SHIFT_WR_INLINE)
		want->inline_data = inlined + num_inlined;
	want->num_sge = 0;
	want->length = 0;
	memset(want->sge, 0, sizeof(want->sge));
	if (golden_qp.sq_signal_bits)
		want->flags |= SHIFT_WR_SIGNALED;
	for (i = 0; i < ask->num_sge; i++) {
		struct shift_sge sge = ask->sge[i];

		if (!sge.length)
			continue;
		if (api == POST_SEND && (ask->opcode == SHIFT_WR_ATOMIC_CMP_AND_SWP ||
					 ask->opcode == SHIFT_WR_ATOMIC_FETCH_AND_ADD))
			sge.length = 8;
		want->length += sge.length;
		if (ask->flags & SHIFT_WR_INLINE) {
			memcpy(inlined + num_inlined, (void *)(uintptr_t)sge.addr, sge.length);
			num_inlined += sge.length;
		} else {
			want->sge[want->num_sge++] = sge;
		}
	}
	if (num_inlined > sizeof(inlined) - SHIFT_MLX5_MAX_BLOCKS * SHIFT_MLX5_BLOCK)
		errx(1, "too much inline data");
	if (!want->length) {	/* nothing of it remains in the ring */
		want->flags &= ~SHIFT_WR_INLINE;
		want->inline_data = NULL;
	}
	if (want->opcode == SHIFT_WR_BIND_MW && !want->length) {
		want->remote_addr = 0;
		want->access = 0;
		if (want->mw_type == 2 && !(want->imm & 0xff)) {
			want->opcode = SHIFT_WR_LOCAL_INV;
			want->imm = want->rkey;
			want->rkey = 0;
			want->mw_type = 0;
		}
	}
}

static void set_data(struct ibv_qp_ex *qpx, const struct shift_wr *ask, bool list)
{
	struct ibv_data_buf bufs[SHIFT_WR_MAX_SGE];
	struct ibv_sge sges[SHIFT_WR_MAX_SGE];
	uint32_t i;

	for (i = 0; i < ask->num_sge; i++) {
		bufs[i].addr = (void *)(uintptr_t)ask->sge[i].addr;
		bufs[i].length = ask->sge[i].length;
		sges[i].addr = ask->sge[i].addr;
		sges[i].length = ask->sge[i].length;
		sges[i].lkey = ask->sge[i].lkey;
	}
	if (ask->flags & SHIFT_WR_INLINE) {
		if (!list && ask->num_sge == 1)
			ibv_wr_set_inline_data(qpx, bufs[0].addr, bufs[0].length);
		else
			ibv_wr_set_inline_data_list(qpx, ask->num_sge, bufs);
	} else if (!list && ask->num_sge == 1) {
		ibv_wr_set_sge(qpx, sges[0].lkey, sges[0].addr, sges[0].length);
	} else {
		ibv_wr_set_sge_list(qpx, ask->num_sge, sges);
	}
}

static struct mlx5_mr mr;
static struct ibv_mw mw;

static struct ibv_mw_bind_info window(const struct shift_wr *ask)
{
	struct ibv_mw_bind_info info = {};

	memset(&mr, 0, sizeof(mr));
	mr.vmr.mr_type = IBV_MR_TYPE_MR;
	mr.vmr.ibv_mr.pd = &pd;
	mr.vmr.ibv_mr.lkey = ask->sge[0].lkey;
	mw.context = &golden_ctx.ibv_ctx.context;
	mw.pd = &pd;
	mw.rkey = ask->rkey;
	mw.type = ask->mw_type == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
	info.mr = &mr.vmr.ibv_mr;
	info.addr = ask->sge[0].addr;
	info.length = ask->sge[0].length;
	info.mw_access_flags = ask->access;	/* the numbers are the same */
	return info;
}

static void ask_wr(const struct shift_wr *ask, bool list)
{
	struct ibv_qp_ex *qpx = &golden_qp.verbs_qp.qp_ex;
	struct ibv_mw_bind_info info;

	qpx->wr_id = num_asked;
	qpx->wr_flags = ask->flags;
	switch (ask->opcode) {
	case SHIFT_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qpx, ask->rkey, ask->remote_addr);
		break;
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qpx, ask->rkey, ask->remote_addr, ask->imm);
		break;
	case SHIFT_WR_SEND:
		ibv_wr_send(qpx);
		break;
	case SHIFT_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qpx, ask->imm);
		break;
	case SHIFT_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qpx, ask->imm);
		break;
	case SHIFT_WR_RDMA_READ:
		ibv_wr_rdma_read(qpx, ask->rkey, ask->remote_addr);
		break;
	case SHIFT_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qpx, ask->rkey, ask->remote_addr, ask->compare_add,
				      ask->swap);
		break;
	case SHIFT_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qpx, ask->rkey, ask->remote_addr, ask->compare_add);
		break;
	case SHIFT_WR_LOCAL_INV:
		ibv_wr_local_inv(qpx, ask->imm);
		return;
	case SHIFT_WR_BIND_MW:
		info = window(ask);
		ibv_wr_bind_mw(qpx, &mw, ask->imm, &info);
		return;
	}
	set_data(qpx, ask, list);
}

static void ask_post_send(const struct shift_wr *ask)
{
	struct ibv_sge sges[SHIFT_WR_MAX_SGE];
	struct ibv_send_wr wr = {
		.wr_id = num_asked, .opcode = ask->opcode, .send_flags = ask->flags,
		.sg_list = sges, .num_sge = ask->num_sge,
	}, *bad;
	uint32_t i;

	for (i = 0; i < ask->num_sge; i++) {
		sges[i].addr = ask->sge[i].addr;
		sges[i].length = ask->sge[i].length;
		sges[i].lkey = ask->sge[i].lkey;
	}
	switch (ask->opcode) {
	case SHIFT_WR_SEND_WITH_IMM:
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
		wr.imm_data = ask->imm;
		break;
	case SHIFT_WR_SEND_WITH_INV:
	case SHIFT_WR_LOCAL_INV:
		wr.invalidate_rkey = ask->imm;
		break;
	case SHIFT_WR_BIND_MW:
		wr.num_sge = 0;
		wr.bind_mw.bind_info = window(ask);
		wr.bind_mw.mw = &mw;
		wr.bind_mw.rkey = ask->imm;
		break;
	}
	switch (ask->opcode) {
	case SHIFT_WR_RDMA_WRITE:
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
	case SHIFT_WR_RDMA_READ:
		wr.wr.rdma.remote_addr = ask->remote_addr;
		wr.wr.rdma.rkey = ask->rkey;
		break;
	case SHIFT_WR_ATOMIC_CMP_AND_SWP:
	case SHIFT_WR_ATOMIC_FETCH_AND_ADD:
		wr.wr.atomic.remote_addr = ask->remote_addr;
		wr.wr.atomic.rkey = ask->rkey;
		wr.wr.atomic.compare_add = ask->compare_add;
		wr.wr.atomic.swap = ask->swap;
		break;
	}
	if (ibv_post_send(golden_qp.ibv_qp, &wr, &bad))
		errx(1, "ibv_post_send: opcode %u", ask->opcode);
}

void ask(const struct shift_wr *ask, enum api api)
{
	struct ibv_qp_ex *qpx = &golden_qp.verbs_qp.qp_ex;
	struct ibv_mw_bind bind = { .wr_id = num_asked, .send_flags = ask->flags };

	switch (api) {
	case POST_SEND:
		ask_post_send(ask);
		break;
	case WR:
	case WR_LIST:
		ibv_wr_start(qpx);
		ask_wr(ask, api == WR_LIST);
		if (ibv_wr_complete(qpx))
			errx(1, "ibv_wr_complete: opcode %u", ask->opcode);
		break;
	case BIND:
		bind.bind_info = window(ask);
		if (ibv_bind_mw(golden_qp.ibv_qp, &mw, &bind))
			errx(1, "ibv_bind_mw");
		break;
	}
	remember(ask, api);
}

void ask_recv(const struct shift_wr *ask, bool shared)
{
	struct ibv_sge sges[SLOT_SGE];
	struct ibv_recv_wr wr = { .wr_id = num_asked, .sg_list = sges, .num_sge = ask->num_sge };
	struct ibv_recv_wr *bad;
	uint32_t i;

	for (i = 0; i < ask->num_sge; i++) {
		sges[i].addr = ask->sge[i].addr;
		sges[i].length = ask->sge[i].length;
		sges[i].lkey = ask->sge[i].lkey;
	}
	if (shared ? ibv_post_srq_recv(&srq.vsrq.srq, &wr, &bad) :
		     ibv_post_recv(golden_qp.ibv_qp, &wr, &bad))
		errx(1, "receive");
	remember(ask, POST_SEND);
}

/* several in one ibv_wr_complete(), of which some may be taken back */
void ask_batch(const struct shift_wr *wr, uint32_t n, bool abort)
{
	struct ibv_qp_ex *qpx = &golden_qp.verbs_qp.qp_ex;
	uint32_t i;

	ibv_wr_start(qpx);
	for (i = 0; i < n; i++)
		ask_wr(&wr[i], i & 1);
	if (abort) {
		ibv_wr_abort(qpx);
		return;
	}
	if (ibv_wr_complete(qpx))
		errx(1, "ibv_wr_complete");
	for (i = 0; i < n; i++)
		remember(&wr[i], WR);
}

uint32_t sq_posted(void)
{
	return golden_qp.sq.cur_post;
}

/* all that was posted has completed */
void sq_completed(void)
{
	golden_qp.sq.tail = golden_qp.sq.head;
	golden_qp.rq.tail = golden_qp.rq.head;
	num_asked = 0;
	num_inlined = 0;
}

int main(int argc, char **argv)
{
	unsigned int i;
	void *lib;

	if (argc < 4)
		errx(2, "usage: golden_mlx5 LIBMLX5 print|test|random N|cost|time NAME LOOPS FUNCTION=OFFSET...");
	lib = dlopen(argv[1], RTLD_NOW);
	if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map))
		errx(1, "%s", dlerror());
	functions = argv + 3;
	resolve();

	for (i = 0; i < sizeof(text); i++)
		text[i] = 'a' + i % 26;
	memset(ring, FILLER, sizeof(ring));
	pd.context = &golden_ctx.ibv_ctx.context;
	cq.verbs_cq.cq.context = &golden_ctx.ibv_ctx.context;
	mlx5_spinlock_init(&cq.lock, 1);
	mlx5_spinlock_init(&golden_bf.lock, 1);
	golden_bf.reg = golden_uar;
	golden_bf.buf_size = 256;

	if (!strcmp(argv[2], "print"))
		print_all();
	else if (!strcmp(argv[2], "cost") || !strcmp(argv[2], "time"))
		return cost(argv[3], strtoul(argv[4], NULL, 0), !strcmp(argv[2], "time"));
	else if (!strcmp(argv[2], "test"))
		return provider_test();
	else
		return random_all(strtoul(argv[3], NULL, 0));
	return 0;
}
