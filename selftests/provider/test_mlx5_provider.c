// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The patched libmlx5 over rings in plain memory, against a make-believe /dev/shift
 * (fake_kernel.c): no device and no kernel module. The device is played here.
 *
 * rdma-core/golden --test
 */
#define _GNU_SOURCE
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_mlx5.h"

static int (*poll_cq_v1)(struct ibv_cq *, int, struct ibv_wc *);
void (*register_cq)(struct mlx5_cq *);
void (*unregister_cq)(struct mlx5_cq *);
void (*register_qp)(struct mlx5_qp *);
static void (*unregister_qp)(struct mlx5_qp *);
static void (*forget_qp)(struct mlx5_qp *);
void (*clean_cq)(struct mlx5_cq *, uint32_t, struct mlx5_srq *);
static void (*init_qp_indices)(struct mlx5_qp *);

uint8_t cqes[CQES * 128] __attribute__((aligned(128)));
__be32 cq_db[2];
struct mlx5_cq test_cq;
static char data[8192];
uint32_t produced;
int v1;

int test_failures;
static int test_nr, failures;

void setup(int cqe_sz)
{
	static struct mlx5_qp *by_number[MLX5_QP_TABLE_MASK + 1];
	static struct mlx5_resource *by_uidx[MLX5_UIDX_TABLE_MASK + 1];
	static uint32_t rq_data[BLOCKS];
	struct ibv_cq_init_attr_ex attr = {
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};
	int i;

	memset(&kern, 0, sizeof(kern));
	kern.version = kern.oldest = SHIFT_ABI_VERSION;
	golden_ctx.cqe_version = v1;
	golden_ctx.shift.fd = -1;
	golden_ctx.shift.tried = false;
	golden_ctx.ibv_ctx.context.cmd_fd = 55;
	golden_ctx.dbg_fp = fopen("/dev/null", "w");
	golden_ctx.ibv_ctx.context.ops.poll_cq =
		v1 ? poll_cq_v1 : golden_function("mlx5_poll_cq");
	golden_ctx.qp_table[QPN >> MLX5_QP_TABLE_SHIFT].refcnt = !v1;
	golden_ctx.qp_table[QPN >> MLX5_QP_TABLE_SHIFT].table = v1 ? NULL : by_number;
	by_number[QPN & MLX5_QP_TABLE_MASK] = &golden_qp;
	golden_ctx.uidx_table[UIDX >> MLX5_UIDX_TABLE_SHIFT].refcnt = 1;
	golden_ctx.uidx_table[UIDX >> MLX5_UIDX_TABLE_SHIFT].table = by_uidx;
	by_uidx[UIDX & MLX5_UIDX_TABLE_MASK] = &golden_qp.rsc;

	memset(&test_cq, 0, sizeof(test_cq));
	mlx5_spinlock_init(&test_cq.lock, 1);
	test_cq.verbs_cq.cq.context = &golden_ctx.ibv_ctx.context;
	test_cq.verbs_cq.cq.cqe = CQES - 1;
	test_cq.verbs_cq.cq.handle = 7;
	test_cq.active_buf = &test_cq.buf_a;
	mlx5_buf_addr(&test_cq.buf_a) = cqes;
	test_cq.dbrec = cq_db;
	test_cq.cqe_sz = cqe_sz;
	if (golden_cq_fill_pfns(&test_cq, &attr, &golden_ctx))
		errx(1, "ibv_start_poll");
	for (i = 0; i < CQES * 128; i += 64)
		((struct mlx5_cqe64 *)(cqes + i))->op_own = MLX5_CQE_INVALID << 4;
	produced = 0;

	qp_init(BLOCKS, 0, false);
	golden_qp.rq.offset = BLOCKS * SHIFT_MLX5_BLOCK;
	golden_qp.rq.wr_data = rq_data;
	golden_qp.rsc.rsn = v1 ? UIDX : QPN;
	golden_qp.ibv_qp->handle = 8;
	golden_qp.ibv_qp->send_cq = &test_cq.verbs_cq.cq;
	golden_qp.ibv_qp->recv_cq = &test_cq.verbs_cq.cq;
	golden_qp.shift_mtu = MTU;
	register_cq(&test_cq);
	register_qp(&golden_qp);
}

void teardown(void)
{
	unregister_qp(&golden_qp);
	clean_cq(&test_cq, golden_qp.rsc.rsn, NULL);
	forget_qp(&golden_qp);
	unregister_cq(&test_cq);
	CHECK(!v1 || !golden_ctx.qp_table[QPN >> MLX5_QP_TABLE_SHIFT].refcnt);
	fclose(golden_ctx.dbg_fp);
}

void post_n(uint64_t wr_id, int n, uint32_t len, unsigned int flags)
{
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = len, .lkey = 1 };
	struct ibv_send_wr wr[8] = {}, *bad;
	int i;

	for (i = 0; i < n; i++)
		wr[i] = (struct ibv_send_wr) {
			.wr_id = wr_id + i, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE, .send_flags = flags,
			.next = i + 1 < n ? &wr[i + 1] : NULL,
		};
	CHECK(!ibv_post_send(golden_qp.ibv_qp, wr, &bad));
}

void post(uint64_t wr_id)
{
	post_n(wr_id, 1, 8, IBV_SEND_SIGNALED);
}

void post_recv(uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = 64, .lkey = 1 };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	CHECK(!ibv_post_recv(golden_qp.ibv_qp, &wr, &bad));
}

int rung(void)
{
	unsigned int i;
	int any = 0;

	for (i = 0; i < sizeof(golden_uar); i++)
		any |= golden_uar[i];
	memset(golden_uar, 0, sizeof(golden_uar));
	return any != 0;
}

uint32_t record(int which)
{
	return be32toh(golden_qp.db[which]);
}

static void test_register(void)
{
	setup(64);
	CHECK(kern.opens == 1 && kern.queries == 1 && kern.cq_regs == 1 && kern.qp_regs == 1);
	CHECK(kern.cq.provider == SHIFT_PROVIDER_MLX5 && kern.cq.abi_version == SHIFT_ABI_VERSION);
	CHECK(kern.cq.cmd_fd == 55 && kern.cq.handle == 7 && kern.cq.stride == 64);
	CHECK(kern.cq.ring.addr == (uintptr_t)cqes && kern.cq.ring.len == CQES * 64);
	CHECK(kern.cq.db_addr == (uintptr_t)cq_db && !kern.cq.reserved && !kern.cq.ring.reserved);
	CHECK(kern.qp.provider == SHIFT_PROVIDER_MLX5 && kern.qp.cmd_fd == 55);
	CHECK(kern.qp.handle == 8 && kern.qp.sq.addr == (uintptr_t)ring);
	CHECK(kern.qp.sq.len == BLOCKS * 64 && kern.qp.rq_slot == 1 << SLOT_SHIFT);
	CHECK(kern.qp.rq.addr == (uintptr_t)ring + BLOCKS * 64 &&
	      kern.qp.rq.len == BLOCKS << SLOT_SHIFT);
	CHECK(kern.qp.db_addr == (uintptr_t)golden_qp.db && !(kern.qp.db_addr & 7));
	CHECK(kern.qp.anchor_addr && !(kern.qp.anchor_addr & 7) && !(kern.qp.flag_addr & 3));
	CHECK(kern.qp.sq_tail_addr == (uintptr_t)&golden_qp.sq.tail &&
	      kern.qp.sq_heads_addr == (uintptr_t)golden_qp.sq.wqe_head &&
	      kern.qp.rq_tail_addr == (uintptr_t)&golden_qp.rq.tail);
	CHECK(!kern.qp.sq_lock_addr && !kern.qp.rq_lock_addr && !kern.qp.lock_free);
	teardown();
	CHECK(kern.cq_unregs == 1 && kern.qp_unregs == 1);

	setup(128);
	CHECK(kern.cq.stride == 128 && kern.cq.ring.len == CQES * 128);
	teardown();

	/* one that only receives has a ring of one block, beside what it has */
	setup(64);
	unregister_qp(&golden_qp);
	golden_qp.sq.wqe_cnt = 0;
	register_qp(&golden_qp);
	CHECK(kern.qp_regs == 2 && kern.qp.sq.len == 64 && !(kern.qp.sq.addr & 63));
	CHECK(kern.qp.sq.addr >= (uintptr_t)&golden_qp.shift &&
	      kern.qp.sq.addr + 64 <= (uintptr_t)(&golden_qp.shift + 1));
	CHECK(kern.qp.sq_heads_addr > kern.qp.sq.addr && !(kern.qp.sq_heads_addr & 3));
	CHECK(kern.qp.rq.len == BLOCKS << SLOT_SHIFT && kern.qp.rq_tail_addr);
	unregister_qp(&golden_qp);
	golden_qp.sq.wqe_cnt = BLOCKS;
	register_qp(&golden_qp);
	teardown();

	/* what is not to be protected is not registered, and the kernel knows why */
	setup(64);
	unregister_qp(&golden_qp);
	golden_qp.shift.off = true;
	register_qp(&golden_qp);
	CHECK(kern.refused == SHIFT_QP_CREATE_FOREIGN);
	golden_qp.shift.off = false;
	golden_qp.wq_sig = 1;
	register_qp(&golden_qp);
	CHECK(kern.refused == SHIFT_QP_CREATE_SIGNATURE);
	golden_qp.wq_sig = 0;
	golden_qp.flags = MLX5_QP_FLAGS_OOO_DP;
	register_qp(&golden_qp);
	CHECK(kern.refused == SHIFT_QP_CREATE_FOREIGN);
	golden_qp.flags = 0;
	golden_qp.ibv_qp->qp_type = IBV_QPT_UC;
	register_qp(&golden_qp);
	golden_qp.ibv_qp->qp_type = IBV_QPT_RC;
	CHECK(kern.qp_regs == 1);
	unregister_cq(&test_cq);
	register_qp(&golden_qp);
	CHECK(kern.qp_regs == 1);
	test_cq.shift.off = true;
	register_cq(&test_cq);
	CHECK(kern.cq_regs == 1);
	kern.refused = 0;
	register_qp(&golden_qp);
	CHECK(kern.qp_regs == 1 && kern.refused == SHIFT_QP_CREATE_FOREIGN);
	teardown();
}

/* All ways to post end in the doorbell, or in a kick */
static void post_ways(void)
{
	struct ibv_qp_ex *qpx = &golden_qp.verbs_qp.qp_ex;
	volatile uint32_t *flag = (uint32_t *)(uintptr_t)kern.qp.flag_addr;
	int kicks = kern.kicks;

	rung();
	post(1);
	CHECK(rung() && kern.kicks == kicks);
	ibv_wr_start(qpx);
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qpx, 1, 4096);
	ibv_wr_set_sge(qpx, 1, 4096, 8);
	*flag = SHIFT_QP_FLAG_KICK;		/* in the middle of a post */
	CHECK(!ibv_wr_complete(qpx));
	CHECK(!rung() && kern.kicks == kicks + 1);
	CHECK(record(MLX5_SND_DBR) == (golden_qp.sq.cur_post & 0xffff));
	post_n(2, 8, 8, 0);
	CHECK(!rung() && kern.kicks == kicks + 2);
	CHECK(record(MLX5_SND_DBR) == (golden_qp.sq.cur_post & 0xffff));
	post_recv(1);
	CHECK(kern.kicks == kicks + 3 && record(MLX5_RCV_DBR) == (golden_qp.rq.head & 0xffff));
	ibv_wr_start(qpx);
	ibv_wr_rdma_write(qpx, 1, 4096);
	ibv_wr_set_sge(qpx, 1, 4096, 8);
	ibv_wr_abort(qpx);
	CHECK(!rung() && kern.kicks == kicks + 3);
	kern.kick_result = 1;			/* not taken in */
	post(3);
	CHECK(rung() && kern.kicks == kicks + 4);
	kern.kick_result = 0;
	*flag = 0;
	post(4);
	post_recv(2);
	CHECK(rung() && kern.kicks == kicks + 4);
	sq_completed();
}

static void test_post(void)
{
	setup(64);
	post_ways();
	golden_bf.uuarn = 1;			/* BlueFlame */
	golden_ctx.prefer_bf = 1;
	post_ways();
	golden_bf.need_lock = 1;
	post_ways();
	golden_bf.need_lock = 0;
	golden_bf.uuarn = 0;
	golden_ctx.prefer_bf = 0;
	teardown();
}

static uint64_t packets(void)
{
	uint64_t word = *(uint64_t *)(uintptr_t)kern.qp.anchor_addr;

	CHECK((uint16_t)word == (golden_qp.sq.cur_post & 0xffff));
	CHECK((uint16_t)word == record(MLX5_SND_DBR));
	return word >> 16;
}

static void test_anchor(void)
{
	struct ibv_qp_ex *qpx = &golden_qp.verbs_qp.qp_ex;
	struct ibv_sge sge[3] = {
		{ .addr = 4096, .length = 600, .lkey = 1 }, { .length = 0 },
		{ .addr = 8192, .length = 425, .lkey = 1 },
	};
	struct ibv_data_buf bufs[2] = { { data, 80 }, { data, 60 } };
	struct ibv_send_wr *bad, wr = { .sg_list = sge, .num_sge = 3, .opcode = IBV_WR_RDMA_READ };
	uint64_t want = 0;
	int i;

	setup(64);
	post_n(1, 4, 0, 0);
	CHECK(packets() == (want += 4));
	post_n(1, 4, MTU, 0);
	CHECK(packets() == (want += 4));
	post_n(1, 4, MTU + 1, 0);
	CHECK(packets() == (want += 8));
	post_n(1, 1, 0x7fffffff, 0);
	CHECK(packets() == (want += 0x80000000 / MTU));
	sq_completed();
	CHECK(!ibv_post_send(golden_qp.ibv_qp, &wr, &bad));
	CHECK(packets() == (want += 2));
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.num_sge = 1;
	sge[0].length = 5000;			/* 8 bytes, whatever it says */
	CHECK(!ibv_post_send(golden_qp.ibv_qp, &wr, &bad));
	CHECK(packets() == (want += 1));
	wr.opcode = IBV_WR_LOCAL_INV;
	wr.num_sge = 0;
	CHECK(!ibv_post_send(golden_qp.ibv_qp, &wr, &bad));
	CHECK(packets() == want);
	golden_qp.shift_mtu = 128;		/* inline data can be larger than that */
	wr.opcode = IBV_WR_SEND;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	sge[0] = (struct ibv_sge) { .addr = (uintptr_t)data, .length = 129 };
	CHECK(!ibv_post_send(golden_qp.ibv_qp, &wr, &bad));
	CHECK(packets() == (want += 2));
	sge[0].length = 120;			/* with its header it is */
	CHECK(!ibv_post_send(golden_qp.ibv_qp, &wr, &bad));
	CHECK(packets() == (want += 1));

	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, data, 257);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data_list(qpx, 2, bufs);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, data, 0);
	CHECK(!ibv_wr_complete(qpx));
	CHECK(packets() == (want += 3 + 2 + 1));
	sq_completed();
	golden_qp.shift_mtu = MTU;
	for (i = 0; i < 2; i++) {		/* taken back, then posted */
		ibv_wr_start(qpx);
		ibv_wr_rdma_write(qpx, 1, 4096);
		ibv_wr_set_sge(qpx, 1, 4096, 10 * MTU);
		ibv_wr_local_inv(qpx, 1);
		ibv_wr_rdma_read(qpx, 1, 4096);
		sge[0] = (struct ibv_sge) { .addr = 4096, .length = MTU, .lkey = 1 };
		ibv_wr_set_sge_list(qpx, 3, sge);
		if (i)
			CHECK(!ibv_wr_complete(qpx));
		else
			ibv_wr_abort(qpx);
		CHECK(packets() == (want += i ? 10 + 2 : 0));
	}
	/* the one that fails is not posted, those before it are */
	wr = (struct ibv_send_wr) { .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };
	sge[0].length = 3 * MTU;
	wr.next = &(struct ibv_send_wr) { .sg_list = sge, .num_sge = 1, .opcode = 99 };
	CHECK(ibv_post_send(golden_qp.ibv_qp, &wr, &bad) == EINVAL && bad == wr.next);
	CHECK(packets() == (want += 3));
	for (i = 0; i < 70000; i++) {		/* the index goes round */
		post(1);
		sq_completed();
	}
	CHECK(packets() == (want += 70000));
	init_qp_indices(&golden_qp);
	CHECK(!*(uint64_t *)(uintptr_t)kern.qp.anchor_addr);
	teardown();
}

/* A word of those that the kernel pins */
static uint32_t word(uint64_t addr, uint32_t n)
{
	return ((volatile uint32_t *)(uintptr_t)addr)[n];
}

/* Does the ring say that so many sends were polled, and where the next one is? */
static void check_tail(uint32_t polled, uint32_t index)
{
	uint32_t blocks = kern.qp.sq.len / 64;

	CHECK(word(kern.qp.sq_tail_addr, 0) == polled);
	CHECK(word(kern.qp.sq_heads_addr, index & (blocks - 1)) == polled);
}

/* What the kernel needs to know which sends and receives were polled */
static void test_tail(void)
{
	struct ibv_qp_ex *qpx = &golden_qp.verbs_qp.qp_ex;
	struct ibv_sge sge[9] = {};
	struct ibv_send_wr *bad, wr = {
		.sg_list = sge, .num_sge = 9, .opcode = IBV_WR_RDMA_WRITE,
	};
	uint32_t large, last, i;
	struct ibv_wc wc[8];

	setup(64);
	for (i = 0; i < 9; i++)
		sge[i] = (struct ibv_sge) { .addr = 4096, .length = 8, .lkey = 1 };
	CHECK(word(kern.qp.sq_tail_addr, 0) == 0 && word(kern.qp.rq_tail_addr, 0) == 0);
	post(1);
	large = golden_qp.sq.cur_post;
	CHECK(!ibv_post_send(golden_qp.ibv_qp, &wr, &bad));	/* not signaled */
	ibv_wr_start(qpx);
	ibv_wr_rdma_write(qpx, 1, 4096);
	ibv_wr_set_sge(qpx, 1, 4096, 8);
	ibv_wr_abort(qpx);
	ibv_wr_start(qpx);
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qpx, 1, 4096);
	ibv_wr_set_sge(qpx, 1, 4096, 8);
	CHECK(!ibv_wr_complete(qpx));
	last = golden_qp.sq.cur_post;
	post(4);
	check_tail(0, 0);
	device_send_done(0);
	CHECK(poll_wc(wc, 8) == 1);
	check_tail(1, large);
	device_send_done(last - 1);
	CHECK(poll_wc(wc, 8) == 1);
	check_tail(3, last);
	post_recv(1);
	post_recv(2);
	device_put(&(struct shift_abi_wc) { .opcode = IBV_WC_RECV }, MLX5_CQE_RESP_SEND, 0);
	CHECK(poll_wc(wc, 8) == 1 && word(kern.qp.rq_tail_addr, 0) == 1);

	/* errors that are hidden are not polled */
	kern.answer = SHIFT_CQE_SWALLOW;
	device_send_error(last, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	device_put(&(struct shift_abi_wc) { .wr_id = 1, .status = 1 }, MLX5_CQE_RESP_ERR,
		   MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	CHECK(poll_wc(wc, 8) == 0 && word(kern.qp.rq_tail_addr, 0) == 1);
	check_tail(3, last);
	init_qp_indices(&golden_qp);		/* RESET */
	CHECK(word(kern.qp.sq_tail_addr, 0) == 0 && word(kern.qp.rq_tail_addr, 0) == 0);
	teardown();
}

static void test_absent(void)
{
	struct ibv_wc wc[8];
	int error;

	setup(64);
	teardown();
	for (error = 0; error < 3; error++) {
		setup(64);
		unregister_qp(&golden_qp);
		unregister_cq(&test_cq);
		forget_qp(&golden_qp);
		golden_ctx.shift.tried = false;
		kern.fd = 0;
		kern.absent = error == 0;
		kern.version = kern.oldest = SHIFT_ABI_VERSION + (error == 1);
		kern.reg_cq_error = error == 2 ? ENOMEM : 0;
		kern.cq_regs = kern.qp_regs = kern.kicks = kern.cqes = 0;
		test_cq.shift_flag = 0;
		register_cq(&test_cq);
		register_qp(&golden_qp);
		CHECK(!kern.cq_regs && !kern.qp_regs);
		rung();
		post(1);
		CHECK(rung());
		device_send_error(0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		CHECK(poll_wc(wc, 8) == 1 && wc[0].status == IBV_WC_WR_FLUSH_ERR && !kern.cqes);
		kern.absent = 0;
		teardown();
	}
}

static void run(const char *name, void (*fn)(void))
{
	test_failures = 0;
	for (v1 = 0; v1 < 2; v1++)
		fn();
	printf("%sok %d %s\n", test_failures ? "not " : "", ++test_nr, name);
	failures += !!test_failures;
}

int provider_test(void)
{
	poll_cq_v1 = golden_function("mlx5_poll_cq_v1");
	register_cq = golden_function("mlx5_shift_register_cq");
	unregister_cq = golden_function("mlx5_shift_unregister_cq");
	register_qp = golden_function("mlx5_shift_register_qp");
	unregister_qp = golden_function("mlx5_shift_unregister_qp");
	forget_qp = golden_function("mlx5_shift_forget_qp");
	clean_cq = golden_function("__mlx5_cq_clean");
	init_qp_indices = golden_function("mlx5_init_qp_indices");

	setbuf(stdout, NULL);
	printf("KTAP version 1\n1..25\n");
	run("mlx5_provider_no_module", test_absent);
	run("mlx5_provider_register", test_register);
	run("mlx5_provider_post", test_post);
	run("mlx5_provider_anchor", test_anchor);
	run("mlx5_provider_tail", test_tail);
	run("mlx5_provider_swallow", test_swallow);
	run("mlx5_provider_swallow_lazy", test_swallow_lazy);
	run("mlx5_provider_accessors", test_accessors);
	run("mlx5_provider_order", test_order);
	run("mlx5_provider_unsignaled", test_unsignaled);
	run("mlx5_provider_clean", test_clean);
	run("mlx5_provider_data", test_data);
	run("mlx5_provider_data_read", test_data_read);
	run("mlx5_provider_export_qp", test_export_qp);
	run("mlx5_provider_export_cq", test_export_cq);
	run("mlx5_provider_cancel", test_cancel);
	run("mlx5_provider_rebase_kick", test_rebase_kick);
	run("mlx5_provider_rebase_poll", test_rebase_poll);
	run("mlx5_provider_srq_home", test_srq_home);
	run("mlx5_provider_srq_order", test_srq_order);
	run("mlx5_provider_srq_errors", test_srq_errors);
	run("mlx5_provider_srq_away", test_srq_away);
	run("mlx5_provider_srq_export", test_srq_export);
	run("mlx5_provider_srq_empty", test_srq_empty);
	if (strcmp(RDMA_CORE_VERSION, "56.1"))
		run("mlx5_provider_clock", test_clock);
	else
		printf("ok %d mlx5_provider_clock # SKIP cannot run here: 56.1 loses CQEs itself\n", ++test_nr);
	return !!failures;
}
