// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Polling of the patched libmlx5: its own completions, hidden errors, the side ring. */
#define _GNU_SOURCE
#include <errno.h>
#include "test_mlx5.h"

static struct mlx5_cqe64 *cqe_at(uint32_t index)
{
	return (void *)(cqes + (index % CQES + 1) * test_cq.cqe_sz - 64);
}

struct mlx5_cqe64 *last_cqe(void)
{
	return cqe_at(produced - 1);
}

static struct mlx5_cqe64 *cqe_new(void)
{
	struct mlx5_cqe64 *e = cqe_at(produced);

	memset(e, 0, sizeof(*e));
	e->srqn_uidx = htobe32(v1 ? UIDX : 0);
	return e;
}

static void cqe_give(struct mlx5_cqe64 *e, uint8_t opcode)
{
	e->op_own = opcode << 4 | !!(produced & CQES);
	produced++;
}

/* the device says what the kernel would say of @wc */
void device_put(const struct shift_abi_wc *wc, uint8_t opcode, uint8_t syndrome)
{
	static const uint8_t wqe_opcodes[] = {
		[IBV_WC_SEND] = MLX5_OPCODE_SEND, [IBV_WC_RDMA_WRITE] = MLX5_OPCODE_RDMA_WRITE,
		[IBV_WC_RDMA_READ] = MLX5_OPCODE_RDMA_READ,
		[IBV_WC_COMP_SWAP] = MLX5_OPCODE_ATOMIC_CS,
		[IBV_WC_FETCH_ADD] = MLX5_OPCODE_ATOMIC_FA, [IBV_WC_BIND_MW] = MLX5_OPCODE_UMR,
		[IBV_WC_LOCAL_INV] = MLX5_OPCODE_UMR,
	};
	struct mlx5_cqe64 *e = cqe_new();

	e->wqe_counter = htobe16(wc->wr_id);
	e->sop_drop_qpn = htobe32(QPN);
	if (opcode == MLX5_CQE_REQ)
		e->sop_drop_qpn = htobe32(wqe_opcodes[wc->opcode] << 24 | QPN);
	if (wc->status) {
		((struct mlx5_err_cqe *)e)->syndrome = syndrome;
		((struct mlx5_err_cqe *)e)->vendor_err_synd = wc->vendor_err;
	} else {
		e->byte_cnt = htobe32(wc->byte_len);
		e->imm_inval_pkey = opcode == MLX5_CQE_RESP_SEND_INV ? htobe32(wc->ex) : wc->ex;
		e->flags_rqpn = htobe32(wc->src_qp);
	}
	cqe_give(e, opcode);
}

void device_send_done(uint16_t index)
{
	struct shift_abi_wc wc = { .wr_id = index, .opcode = IBV_WC_RDMA_WRITE };

	device_put(&wc, MLX5_CQE_REQ, 0);
}

void device_send_error(uint16_t index, uint8_t syndrome)
{
	struct shift_abi_wc wc = { .wr_id = index, .status = 1 };

	device_put(&wc, MLX5_CQE_REQ_ERR, syndrome);
}

void side_put(uint16_t index, uint32_t opcode, uint32_t status, uint32_t len)
{
	struct shift_abi_wc wc = {
		.wr_id = index, .opcode = opcode, .status = status, .byte_len = len,
		.qp_num = QPN, .vendor_err = status ? 0x81 : 0,
	};

	kern_put(&wc);
	kern_raise();
}

int poll_wc(struct ibv_wc *wc, int n)
{
	return ibv_poll_cq(&test_cq.verbs_cq.cq, n, wc);
}

struct ibv_cq_ex *ex(void)
{
	return &test_cq.verbs_cq.cq_ex;
}

int start_poll(void)
{
	struct ibv_poll_cq_attr attr = {};

	return ibv_start_poll(ex(), &attr);
}

/* Errors of a switch are hidden, and nothing that was posted counts as completed */
void test_swallow(void)
{
	struct ibv_wc wc[8];
	uint32_t tail;

	setup(64);
	post_n(10, 4, 8, IBV_SEND_SIGNALED);
	post_recv(20);
	device_send_done(0);
	device_send_error(1, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
	device_send_error(2, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	device_put(&(struct shift_abi_wc) { .wr_id = 0, .status = 1 }, MLX5_CQE_RESP_ERR,
		   MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	kern.answer = SHIFT_CQE_SWALLOW;
	CHECK(poll_wc(wc, 8) == 1 && wc[0].wr_id == 10 && !wc[0].status);
	CHECK(kern.cqes == 3 && kern.cqe.cq_id == CQ_ID && kern.cqe.qp_num == QPN);
	CHECK(kern.cqe.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(golden_qp.sq.tail == 1 && golden_qp.rq.tail == 0);
	CHECK(test_cq.cons_index == 4 && be32toh(cq_db[0]) == 4);
	CHECK(poll_wc(wc, 8) == 0);

	/* their completions come from the kernel; errors it reports itself are shown unasked */
	side_put(1, IBV_WC_RDMA_WRITE, 0, 0);
	side_put(0, IBV_WC_RECV, 0, 5);
	side_put(2, IBV_WC_RDMA_WRITE, IBV_WC_RETRY_EXC_ERR, 0);
	CHECK(poll_wc(wc, 8) == 3);
	CHECK(wc[0].wr_id == 11 && !wc[0].status && wc[0].opcode == IBV_WC_RDMA_WRITE);
	CHECK(wc[1].wr_id == 20 && wc[1].opcode == IBV_WC_RECV && wc[1].byte_len == 5);
	CHECK(wc[2].wr_id == 12 && wc[2].status == IBV_WC_RETRY_EXC_ERR &&
	      wc[2].vendor_err == 0x81);
	CHECK(golden_qp.sq.tail == 3 && golden_qp.rq.tail == 1 && kern.cqes == 3);
	CHECK(poll_wc(wc, 8) == 0 && !cq_flag());

	/* of a CQ with entries of both kinds: asked once, if hidden or not */
	post_n(20, 2, 8, IBV_SEND_SIGNALED);
	device_send_error(3, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	device_send_error(4, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	side_put(3, IBV_WC_RDMA_WRITE, 0, 0);
	CHECK(poll_wc(wc, 8) == 1 && wc[0].wr_id == 13 && kern.cqes == 5);
	kern.answer = SHIFT_CQE_DELIVER;
	device_send_error(4, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	side_put(5, IBV_WC_RDMA_WRITE, 0, 0);
	CHECK(poll_wc(wc, 8) == 2 && wc[0].wr_id == 20 && wc[0].status == IBV_WC_WR_FLUSH_ERR);
	CHECK(wc[1].wr_id == 21 && kern.cqes == 6);
	tail = golden_qp.sq.tail;
	post(30);
	device_send_error(6, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
	CHECK(poll_wc(wc, 8) == 1 && wc[0].wr_id == 30 && wc[0].status == IBV_WC_REM_ACCESS_ERR);
	CHECK(kern.cqes == 7 && golden_qp.sq.tail == tail + 1);
	teardown();
}

void test_swallow_lazy(void)
{
	struct ibv_wc wc[8];

	setup(64);
	post_n(10, 6, 8, IBV_SEND_SIGNALED);
	kern.answer = SHIFT_CQE_SWALLOW;
	device_send_error(0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	CHECK(start_poll() == ENOENT && golden_qp.sq.tail == 0 && kern.cqes == 1);
	device_send_error(0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	device_send_done(0);
	device_send_error(1, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	CHECK(!start_poll() && ex()->wr_id == 10 && !ex()->status);
	side_put(1, IBV_WC_RDMA_WRITE, 0, 0);	/* behind the error */
	CHECK(!ibv_next_poll(ex()) && ex()->wr_id == 11 && !ex()->status);
	CHECK(ibv_next_poll(ex()) == ENOENT);
	ibv_end_poll(ex());
	CHECK(kern.cqes == 3 && golden_qp.sq.tail == 2 && be32toh(cq_db[0]) == 4);
	kern.answer = SHIFT_CQE_DELIVER;
	device_send_error(2, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	CHECK(!start_poll() && ex()->wr_id == 12 && ex()->status == IBV_WC_WR_FLUSH_ERR);
	ibv_end_poll(ex());
	side_put(3, IBV_WC_RDMA_WRITE, IBV_WC_WR_FLUSH_ERR, 0);
	CHECK(!start_poll() && ex()->wr_id == 13 && ex()->status == IBV_WC_WR_FLUSH_ERR);
	CHECK(ibv_wc_read_vendor_err(ex()) == 0x81 && kern.cqes == 4);
	ibv_end_poll(ex());
	CHECK(start_poll() == ENOENT && poll_wc(wc, 8) == 0 && !cq_flag());
	teardown();
}

struct seen {
	uint64_t wr_id, ts;
	uint32_t status, opcode, vendor, flags, len, imm, qp_num, src_qp, slid, sl, dlid, pad;
};

static struct seen seen_lazy(void)
{
	struct seen s = { .status = UINT32_MAX };

	if (start_poll())
		return s;
	s.wr_id = ex()->wr_id;
	s.status = ex()->status;
	s.opcode = s.status ? 0 : ibv_wc_read_opcode(ex());
	s.vendor = s.status ? ibv_wc_read_vendor_err(ex()) : 0;
	s.flags = s.status ? 0 : ibv_wc_read_wc_flags(ex());
	s.len = ibv_wc_read_byte_len(ex());
	s.imm = s.flags & IBV_WC_WITH_INV ? ibv_wc_read_invalidated_rkey(ex()) :
		s.flags & IBV_WC_WITH_IMM ? ibv_wc_read_imm_data(ex()) : 0;
	s.qp_num = ibv_wc_read_qp_num(ex());
	s.src_qp = ibv_wc_read_src_qp(ex());
	s.slid = ibv_wc_read_slid(ex());
	s.sl = ibv_wc_read_sl(ex());
	s.dlid = ibv_wc_read_dlid_path_bits(ex());
	s.ts = s.status ? 0 : ibv_wc_read_completion_ts(ex());
	ibv_end_poll(ex());
	return s;
}

static struct seen seen_poll(void)
{
	struct ibv_wc wc = {};
	struct seen s = { .status = UINT32_MAX };

	if (poll_wc(&wc, 1) != 1)
		return s;
	s = (struct seen) {
		.wr_id = wc.wr_id, .status = wc.status, .vendor = wc.vendor_err,
		.qp_num = wc.qp_num, .opcode = wc.opcode, .flags = wc.wc_flags,
		.len = wc.byte_len, .src_qp = wc.src_qp, .slid = wc.slid, .sl = wc.sl,
	};
	if (wc.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV))
		s.imm = wc.imm_data;
	return s;
}

static const struct {
	struct shift_abi_wc wc;
	uint8_t opcode, syndrome;
	enum ibv_wr_opcode wr;
} kinds[] = {
	{ { .opcode = IBV_WC_SEND }, MLX5_CQE_REQ, 0, IBV_WR_SEND },
	{ { .opcode = IBV_WC_RDMA_WRITE }, MLX5_CQE_REQ, 0, IBV_WR_RDMA_WRITE },
	{ { .opcode = IBV_WC_RDMA_READ, .byte_len = 77 }, MLX5_CQE_REQ, 0, IBV_WR_RDMA_READ },
	{ { .opcode = IBV_WC_COMP_SWAP, .byte_len = 8 }, MLX5_CQE_REQ, 0,
	  IBV_WR_ATOMIC_CMP_AND_SWP },
	{ { .opcode = IBV_WC_FETCH_ADD, .byte_len = 8 }, MLX5_CQE_REQ, 0,
	  IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ { .opcode = IBV_WC_BIND_MW }, MLX5_CQE_REQ, 0, IBV_WR_BIND_MW },
	{ { .opcode = IBV_WC_LOCAL_INV }, MLX5_CQE_REQ, 0, IBV_WR_LOCAL_INV },
	{ { .opcode = IBV_WC_RECV, .byte_len = 3000, .src_qp = 0x54321 }, MLX5_CQE_RESP_SEND },
	{ { .opcode = IBV_WC_RECV, .byte_len = 1, .ex = 0x11223344, .wc_flags = IBV_WC_WITH_IMM },
	  MLX5_CQE_RESP_SEND_IMM },
	{ { .opcode = IBV_WC_RECV, .ex = 0x11223344, .wc_flags = IBV_WC_WITH_INV },
	  MLX5_CQE_RESP_SEND_INV },
	{ { .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .byte_len = 9, .ex = 0x55667788,
	    .wc_flags = IBV_WC_WITH_IMM }, MLX5_CQE_RESP_WR_IMM },
#define ERROR(name, synd)						\
	{ { .status = IBV_WC_##name, .vendor_err = 0x12 }, MLX5_CQE_REQ_ERR,	\
	  MLX5_CQE_SYNDROME_##synd, IBV_WR_RDMA_WRITE }
	ERROR(LOC_LEN_ERR, LOCAL_LENGTH_ERR),
	ERROR(LOC_QP_OP_ERR, LOCAL_QP_OP_ERR),
	ERROR(LOC_PROT_ERR, LOCAL_PROT_ERR),
	ERROR(WR_FLUSH_ERR, WR_FLUSH_ERR),
	ERROR(MW_BIND_ERR, MW_BIND_ERR),
	ERROR(BAD_RESP_ERR, BAD_RESP_ERR),
	ERROR(LOC_ACCESS_ERR, LOCAL_ACCESS_ERR),
	ERROR(REM_INV_REQ_ERR, REMOTE_INVAL_REQ_ERR),
	ERROR(REM_ACCESS_ERR, REMOTE_ACCESS_ERR),
	ERROR(REM_OP_ERR, REMOTE_OP_ERR),
	ERROR(RETRY_EXC_ERR, TRANSPORT_RETRY_EXC_ERR),
	ERROR(RNR_RETRY_EXC_ERR, RNR_RETRY_EXC_ERR),
	ERROR(REM_ABORT_ERR, REMOTE_ABORTED_ERR),
	{ { .status = IBV_WC_GENERAL_ERR, .vendor_err = 3 }, MLX5_CQE_REQ_ERR, 0x7f,
	  IBV_WR_RDMA_WRITE },
	{ { .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV }, MLX5_CQE_RESP_ERR,
	  MLX5_CQE_SYNDROME_WR_FLUSH_ERR },
};

/* What the side ring says is seen as if the device had said it, by both ways to poll */
void test_accessors(void)
{
	struct ibv_sge sge = { .addr = 4096, .length = 8, .lkey = 1 };
	struct ibv_mw mw = { .type = IBV_MW_TYPE_2, .rkey = 0x100 };
	struct mlx5_mr mr = {};
	unsigned int kind, way;
	struct seen seen[4];

	setup(v1 ? 128 : 64);
	for (kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++) {
		struct shift_abi_wc wc = kinds[kind].wc;
		bool recv = wc.opcode & SHIFT_WC_RECV;

		for (way = 0; way < 4; way++) {
			struct ibv_send_wr *bad, wr = {
				.wr_id = 1000 + kind, .sg_list = &sge, .num_sge = 1,
				.opcode = kinds[kind].wr, .send_flags = IBV_SEND_SIGNALED,
			};

			if (wr.opcode == IBV_WR_BIND_MW) {
				wr.bind_mw.mw = &mw;
				wr.bind_mw.rkey = 0x101;
				wr.bind_mw.bind_info = (struct ibv_mw_bind_info) {
					.mr = &mr.vmr.ibv_mr, .addr = 4096, .length = 8,
				};
			}
			wc.qp_num = QPN;
			if (recv) {
				wc.wr_id = golden_qp.rq.head & 0xffff;
				post_recv(1000 + kind);
			} else {
				wc.wr_id = golden_qp.sq.cur_post & 0xffff;
				CHECK(!ibv_post_send(golden_qp.ibv_qp, &wr, &bad));
			}
			if (way & 1) {
				kern_put(&wc);
				kern_raise();
			} else {
				device_put(&wc, kinds[kind].opcode, kinds[kind].syndrome);
			}
			seen[way] = way & 2 ? seen_lazy() : seen_poll();
			CHECK(seen[way].wr_id == 1000 + kind && seen[way].status == wc.status);
			CHECK(golden_qp.sq.tail == golden_qp.sq.head);
			CHECK(golden_qp.rq.tail == golden_qp.rq.head);
			if (wc.status)
				continue;
			CHECK(seen[way].opcode == wc.opcode && seen[way].len == wc.byte_len);
			CHECK(seen[way].imm == wc.ex && seen[way].flags == wc.wc_flags);
			CHECK(seen[way].src_qp == wc.src_qp);
		}
		CHECK(!memcmp(&seen[0], &seen[1], sizeof(seen[0])));
		CHECK(!memcmp(&seen[2], &seen[3], sizeof(seen[0])));
		if (test_failures) {
			printf("# kind %u\n", kind);
			break;
		}
	}
	CHECK(start_poll() == ENOENT && !cq_flag());
	teardown();
}

/* Own completions that were there go first; none waits for ever */
void test_order(void)
{
	struct ibv_wc wc[8];
	int i;

	setup(64);
	post_n(10, 8, 8, IBV_SEND_SIGNALED);
	device_send_done(0);
	device_send_done(1);
	side_put(2, IBV_WC_RDMA_WRITE, 0, 0);
	CHECK(poll_wc(wc, 1) == 1 && wc[0].wr_id == 10);
	device_send_done(3);			/* after it */
	CHECK(poll_wc(wc, 1) == 1 && wc[0].wr_id == 11);
	CHECK(poll_wc(wc, 2) == 2 && wc[0].wr_id == 12 && wc[1].wr_id == 13);
	CHECK(cq_flag());			/* it was not seen to be empty */
	CHECK(poll_wc(wc, 8) == 0 && !cq_flag());

	/* never empty */
	device_send_done(4);
	side_put(5, IBV_WC_RDMA_WRITE, 0, 0);
	CHECK(!start_poll() && ex()->wr_id == 14);
	device_send_done(6);
	CHECK(!ibv_next_poll(ex()) && ex()->wr_id == 15);
	CHECK(!ibv_next_poll(ex()) && ex()->wr_id == 16);
	device_send_done(7);
	CHECK(!ibv_next_poll(ex()) && ex()->wr_id == 17);
	CHECK(ibv_next_poll(ex()) == ENOENT);
	ibv_end_poll(ex());

	/* many laps of all rings and of the index */
	for (i = 0; i < 70000; i++) {
		uint16_t at = golden_qp.sq.cur_post;

		post(i);
		if (i % 3)
			side_put(at, IBV_WC_RDMA_WRITE, 0, 0);
		else
			device_send_done(at);
		if (poll_wc(wc, 8) != 1 || wc[0].wr_id != (uint64_t)i || wc[0].status)
			break;
	}
	CHECK(i == 70000 && golden_qp.sq.tail == golden_qp.sq.head);
	teardown();
}

/* A completion completes what was posted unsignaled before it */
void test_unsignaled(void)
{
	struct ibv_sge sge[8] = {};
	struct ibv_send_wr *bad, wr = {
		.wr_id = 50, .sg_list = sge, .num_sge = 8, .opcode = IBV_WR_RDMA_WRITE,
	};
	struct ibv_wc wc[8];
	int i;

	setup(64);
	for (i = 0; i < 8; i++)
		sge[i] = (struct ibv_sge) { .addr = 4096, .length = 8, .lkey = 1 };
	for (i = 0; i < 5; i++)			/* three blocks each */
		CHECK(!ibv_post_send(golden_qp.ibv_qp, &wr, &bad));
	wr.wr_id = 51;
	wr.send_flags = IBV_SEND_SIGNALED;
	CHECK(!ibv_post_send(golden_qp.ibv_qp, &wr, &bad));
	CHECK(golden_qp.sq.cur_post == 18 && golden_qp.sq.head == 6);
	side_put(15, IBV_WC_RDMA_WRITE, 0, 0);
	CHECK(poll_wc(wc, 8) == 1 && wc[0].wr_id == 51 && golden_qp.sq.tail == 6);
	wr.wr_id = 52;
	CHECK(!ibv_post_send(golden_qp.ibv_qp, &wr, &bad));
	side_put(18, IBV_WC_RDMA_WRITE, 0, 0);
	CHECK(!start_poll() && ex()->wr_id == 52 && golden_qp.sq.tail == 7);
	ibv_end_poll(ex());
	teardown();
}

/* RESET and destroy take a QP's completions out; what is of nobody is not shown */
void test_clean(void)
{
	struct shift_abi_wc wc = { .opcode = IBV_WC_RDMA_WRITE, .qp_num = QPN + 1 };
	struct ibv_wc got[8];

	setup(64);
	post(1);
	side_put(0, IBV_WC_RDMA_WRITE, 0, 0);
	clean_cq(&test_cq, golden_qp.rsc.rsn, NULL);
	CHECK(poll_wc(got, 8) == 0 && golden_qp.sq.tail == 0);
	kern_put(&wc);
	wc.qp_num = UINT32_MAX;
	kern_put(&wc);
	side_put(0, IBV_WC_RDMA_WRITE, 0, 0);
	CHECK(poll_wc(got, 8) == 1 && got[0].wr_id == 1);

	/* registered again, as when the CQ is resized: what lies in the side ring stays */
	post(2);
	side_put(1, IBV_WC_RDMA_WRITE, 0, 0);
	unregister_cq(&test_cq);
	test_cq.shift_flag = 0;
	register_cq(&test_cq);
	CHECK(kern.cq_regs == 2 && cq_flag());
	CHECK(poll_wc(got, 8) == 1 && got[0].wr_id == 2);
	teardown();
}

static int clock_error;

/* libmlx5's own, in its place */
int mlx5dv_get_clock_info(struct ibv_context *context, struct mlx5dv_clock_info *info)
{
	return clock_error;
}

static int start_poll_without_clock(void)
{
	int ret;

	clock_error = EBUSY;
	ret = start_poll();
	clock_error = 0;
	return ret;
}

/* Without a clock nothing is shown, and nothing is lost */
void test_clock(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.wc_flags = IBV_WC_STANDARD_FLAGS |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};

	setup(64);
	golden_ctx.clock_info_page = (void *)cqes;
	CHECK(!golden_cq_fill_pfns(&test_cq, &attr, &golden_ctx));
	golden_ctx.clock_info_page = NULL;
	post_n(10, 6, 8, IBV_SEND_SIGNALED);

	device_send_done(0);
	CHECK(start_poll_without_clock() == EBUSY);
	CHECK(!start_poll() && ex()->wr_id == 10);
	ibv_end_poll(ex());

	device_send_done(1);
	side_put(2, IBV_WC_RDMA_WRITE, 0, 0);
	CHECK(start_poll_without_clock() == EBUSY);
	CHECK(!start_poll() && ex()->wr_id == 11);
	ibv_end_poll(ex());
	device_send_done(3);			/* behind it */
	CHECK(start_poll_without_clock() == EBUSY);
	CHECK(!start_poll() && ex()->wr_id == 12);
	ibv_end_poll(ex());
	CHECK(start_poll_without_clock() == EBUSY);
	CHECK(!start_poll() && ex()->wr_id == 13);
	CHECK(ibv_next_poll(ex()) == ENOENT);
	ibv_end_poll(ex());

	/* a hidden error on the way to what is shown */
	kern.answer = SHIFT_CQE_SWALLOW;
	device_send_error(4, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	CHECK(start_poll_without_clock() == EBUSY && !kern.cqes);
	side_put(4, IBV_WC_RDMA_WRITE, 0, 0);
	CHECK(start_poll_without_clock() == EBUSY && !kern.cqes);
	CHECK(!start_poll() && ex()->wr_id == 14 && kern.cqes == 1);
	CHECK(ibv_next_poll(ex()) == ENOENT);
	ibv_end_poll(ex());
	CHECK(start_poll() == ENOENT && !cq_flag() && golden_qp.sq.tail == 5);
	teardown();
}
