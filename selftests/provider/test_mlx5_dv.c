// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Rings that mlx5dv gives away, or takes requests out of, are not registered any more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <err.h>
#include "test_mlx5.h"
#include "mlx5_ifc.h"

static struct mlx5dv_qp dv_qp;
static struct mlx5dv_cq dv_cq;

/* What an application calls: the library was loaded for nobody else to see */
static void *exported(const char *name)
{
	void *lib = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *fn = lib ? dlsym(lib, name) : NULL;

	if (!fn)
		errx(2, "where is %s?", name);
	dlclose(lib);
	return fn;
}

static void export(uint64_t what)
{
	int (*init_obj)(struct mlx5dv_obj *, uint64_t) = exported("mlx5dv_init_obj");
	static struct verbs_device device;
	struct mlx5dv_obj obj = {
		.qp = { golden_qp.ibv_qp, &dv_qp }, .cq = { &test_cq.verbs_cq.cq, &dv_cq },
	};

	/* it looks whether the device is one of libmlx5's */
	device.ops = golden_function("mlx5_dev_ops");
	golden_ctx.ibv_ctx.context.device = &device.device;
	golden_ctx.dv_ctx_ops = golden_function("mlx5_dv_ctx_ops");
	memset(&dv_qp, 0, sizeof(dv_qp));
	memset(&dv_cq, 0, sizeof(dv_cq));
	CHECK(!init_obj(&obj, what));
}

/* Away from its device, as its flag says, and with one request posted there */
static void setup_away(void)
{
	setup(64);
	*(volatile uint32_t *)(uintptr_t)kern.qp.flag_addr = SHIFT_QP_FLAG_KICK;
	rung();
	post(10);
	CHECK(!rung() && kern.kicks == 1);
}

/* All ways to post ring a doorbell, and the kernel is not told */
static void check_posts(void)
{
	struct ibv_qp_ex *qpx = &golden_qp.verbs_qp.qp_ex;
	int kicks = kern.kicks;

	rung();
	post(20);
	CHECK(rung() && record(MLX5_SND_DBR) == (golden_qp.sq.cur_post & 0xffff));
	ibv_wr_start(qpx);
	qpx->wr_id = 21;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qpx, 1, 4096);
	ibv_wr_set_sge(qpx, 1, 4096, 8);
	CHECK(!ibv_wr_complete(qpx));
	CHECK(rung() && record(MLX5_SND_DBR) == (golden_qp.sq.cur_post & 0xffff));
	post_recv(30);
	CHECK(record(MLX5_RCV_DBR) == (golden_qp.rq.head & 0xffff));
	CHECK(kern.kicks == kicks);
}

/* All errors are shown, by both ways to poll, and the kernel is not asked */
static void check_polls(uint16_t index)
{
	int asked = kern.cqes;
	struct ibv_wc wc[8];

	kern.answer = SHIFT_CQE_SWALLOW;
	post_n(40, 3, 8, IBV_SEND_SIGNALED);
	device_send_done(index);
	device_send_error(index + 1, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
	CHECK(poll_wc(wc, 8) == 2 && wc[0].wr_id == 40 && !wc[0].status);
	CHECK(wc[1].wr_id == 41 && wc[1].status == IBV_WC_RETRY_EXC_ERR);
	device_send_error(index + 2, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	CHECK(!start_poll() && ex()->wr_id == 42 && ex()->status == IBV_WC_WR_FLUSH_ERR);
	ibv_end_poll(ex());
	CHECK(golden_qp.sq.tail == golden_qp.sq.head && kern.cqes == asked);
}

void test_export_qp(void)
{
	struct ibv_wc wc[8];

	setup_away();
	export(MLX5DV_OBJ_QP);
	CHECK(dv_qp.sq.buf == ring && dv_qp.sq.wqe_cnt == BLOCKS && dv_qp.dbrec == golden_qp.db);
	CHECK(kern.qp_unregs == 1 && !kern.cq_unregs);
	check_posts();
	device_send_done(0);
	device_send_done(1);
	device_send_done(2);
	CHECK(poll_wc(wc, 8) == 3 && wc[2].wr_id == 21);

	/* its CQ is as it was */
	side_put(0, IBV_WC_RECV, 0, 5);
	CHECK(poll_wc(wc, 8) == 1 && wc[0].wr_id == 30 && wc[0].byte_len == 5);

	/* once more, as when it could not be destroyed: the kernel hears why not */
	register_qp(&golden_qp);
	CHECK(kern.qp_regs == 1 && kern.refused == SHIFT_QP_CREATE_FOREIGN);
	export(MLX5DV_OBJ_QP);
	teardown();
	CHECK(kern.qp_unregs == 1 && kern.cq_unregs == 1);
}

void test_export_cq(void)
{
	struct ibv_wc wc[8];

	setup(64);
	post(10);
	kern.answer = SHIFT_CQE_SWALLOW;
	device_send_error(0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	CHECK(poll_wc(wc, 8) == 0 && kern.cqes == 1);
	side_put(0, IBV_WC_RDMA_WRITE, 0, 0);
	export(MLX5DV_OBJ_CQ);
	CHECK(dv_cq.buf == cqes && dv_cq.cqe_cnt == CQES && dv_cq.dbrec == cq_db);
	CHECK(kern.cq_unregs == 1 && !kern.qp_unregs);

	/* what was replayed by then is there, and nothing comes after it */
	CHECK(poll_wc(wc, 8) == 1 && wc[0].wr_id == 10 && !wc[0].status);
	CHECK(poll_wc(wc, 8) == 0 && !cq_flag());
	check_polls(1);

	/* neither when it is resized, nor for a QP that is created later */
	register_cq(&test_cq);
	CHECK(kern.cq_regs == 1);
	register_qp(&golden_qp);
	CHECK(kern.qp_regs == 1 && kern.refused == SHIFT_QP_CREATE_FOREIGN);
	teardown();
	CHECK(kern.qp_unregs == 1 && kern.cq_unregs == 1);

	setup_away();
	export(MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ);
	CHECK(kern.qp_unregs == 1 && kern.cq_unregs == 1);
	check_posts();
	device_send_done(2);
	CHECK(poll_wc(wc, 8) == 1 && wc[0].wr_id == 21);
	check_polls(3);
	teardown();
	CHECK(kern.qp_unregs == 1 && kern.cq_unregs == 1);
}

/* libmlx5's own, in its place: the queue is drained, and the device has sent nothing of it */
int mlx5dv_devx_qp_query(struct ibv_qp *qp, const void *in, size_t inlen, void *out,
			 size_t outlen)
{
	void *qpc = DEVX_ADDR_OF(query_qp_out, out, qpc);

	DEVX_SET(qpc, qpc, state, MLX5_QPC_STATE_SQDRAINED);
	DEVX_SET(qpc, qpc, hw_sq_wqebb_counter, 0);
	return 0;
}

static uint8_t opcode_at(uint32_t block)
{
	struct mlx5_wqe_ctrl_seg *ctrl = (void *)(ring + block * SHIFT_MLX5_BLOCK);

	return be32toh(ctrl->opmod_idx_opcode) & 0xff;
}

/* Requests that were posted, and counted, become NOPs */
void test_cancel(void)
{
	int (*cancel)(struct mlx5dv_qp_ex *, uint64_t) =
		exported("mlx5dv_qp_cancel_posted_send_wrs");
	struct ibv_wc wc[8];

	setup_away();
	post_n(11, 2, 8, IBV_SEND_SIGNALED);
	CHECK(kern.kicks == 2);
	CHECK(cancel(&golden_qp.dv_qp, 11) == 1);
	CHECK(opcode_at(0) == MLX5_OPCODE_RDMA_WRITE && opcode_at(1) == MLX5_OPCODE_NOP &&
	      opcode_at(2) == MLX5_OPCODE_RDMA_WRITE);
	CHECK(kern.qp_unregs == 1 && !kern.cq_unregs);
	check_posts();

	device_send_done(0);
	device_send_done(1);
	last_cqe()->sop_drop_qpn = htobe32(MLX5_OPCODE_NOP << 24 | QPN);
	device_send_done(2);
	CHECK(poll_wc(wc, 8) == 3 && wc[1].wr_id == 11 && wc[1].opcode == IBV_WC_RDMA_WRITE);
	register_qp(&golden_qp);
	CHECK(kern.qp_regs == 1 && kern.refused == SHIFT_QP_CREATE_FOREIGN);
	teardown();
	CHECK(kern.qp_unregs == 1 && kern.cq_unregs == 1);
}
