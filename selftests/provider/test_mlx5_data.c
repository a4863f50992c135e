// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Data that the device puts into completions, right beside what is hidden or replayed. */
#include "test_mlx5.h"

#define BUFFERS	10

static uint8_t buffers[BUFFERS][64];

static void setup_buffers(int cqe_sz)
{
	setup(cqe_sz);
	memset(buffers, FILLER, sizeof(buffers));
	kern.answer = SHIFT_CQE_SWALLOW;
}

/* what completion @n brings */
static void fill(uint8_t *p, uint32_t n, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		p[i] = n * 16 + i;
}

/* Has buffer @n got what completion @n brought, and no more? Length 0: nothing at all */
static bool has(uint32_t n, uint32_t len)
{
	uint8_t want[sizeof(*buffers)];

	memset(want, FILLER, sizeof(want));
	fill(want, n, len);
	return !memcmp(buffers[n], want, sizeof(want));
}

static void post_buffers(void)
{
	struct ibv_sge sge = { .length = sizeof(*buffers), .lkey = 1 };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	for (wr.wr_id = 0; wr.wr_id < BUFFERS; wr.wr_id++) {
		sge.addr = (uintptr_t)buffers[wr.wr_id];
		CHECK(!ibv_post_recv(golden_qp.ibv_qp, &wr, &bad));
	}
}

static void device_recv_data(uint16_t n, uint8_t scatter, uint32_t len)
{
	struct mlx5_cqe64 *e;

	device_put(&(struct shift_abi_wc) { .wr_id = n, .byte_len = len }, MLX5_CQE_RESP_SEND, 0);
	e = last_cqe();
	fill((void *)(scatter == MLX5_INLINE_SCATTER_64 ? e - 1 : e), n, len);
	e->op_own |= scatter;
}

static bool is_recv(const struct ibv_wc *wc, uint64_t n, uint32_t len)
{
	return wc->wr_id == n && !wc->status && wc->opcode == IBV_WC_RECV && wc->byte_len == len;
}

static bool is_shown(uint64_t n, uint32_t len)
{
	return ex()->wr_id == n && !ex()->status && ibv_wc_read_byte_len(ex()) == len;
}

static void receives(int cqe_sz, uint8_t scatter, uint32_t len)
{
	struct ibv_wc wc[8];

	setup_buffers(cqe_sz);
	post_buffers();
	post_n(100, 8, 8, IBV_SEND_SIGNALED);

	/* between errors */
	device_send_error(0, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
	device_recv_data(0, scatter, len);
	device_send_error(1, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	device_recv_data(1, scatter, len);
	CHECK(poll_wc(wc, 8) == 2 && is_recv(&wc[0], 0, len) && is_recv(&wc[1], 1, len));
	CHECK(has(0, len) && has(1, len) && kern.cqes == 2);
	device_send_error(2, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	device_recv_data(2, scatter, len);
	CHECK(!start_poll() && is_shown(2, len) && has(2, len) && kern.cqes == 3);
	ibv_end_poll(ex());

	/* what is replayed is in its buffer already, and no bytes of a completion get there */
	device_recv_data(3, scatter, len);
	side_put(4, IBV_WC_RECV, 0, len);
	CHECK(poll_wc(wc, 1) == 1 && is_recv(wc, 3, len) && has(3, len));
	device_recv_data(5, scatter, len);
	CHECK(poll_wc(wc, 8) == 2 && is_recv(&wc[0], 4, len) && is_recv(&wc[1], 5, len));
	CHECK(has(4, 0) && has(5, len));
	side_put(6, IBV_WC_RECV, 0, len);
	CHECK(!start_poll() && is_shown(6, len));
	device_recv_data(7, scatter, len);
	CHECK(!ibv_next_poll(ex()) && is_shown(7, len));
	ibv_end_poll(ex());
	CHECK(has(6, 0) && has(7, len));

	/* all three at once */
	device_send_error(3, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	device_recv_data(8, scatter, len);
	device_send_error(4, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	side_put(9, IBV_WC_RECV, 0, len);
	CHECK(poll_wc(wc, 8) == 2 && is_recv(&wc[0], 8, len) && is_recv(&wc[1], 9, len));
	CHECK(has(8, len) && has(9, 0) && kern.cqes == 5);
	CHECK(golden_qp.rq.tail == BUFFERS && golden_qp.sq.tail == 0);
	teardown();
}

void test_data(void)
{
	receives(64, MLX5_INLINE_SCATTER_32, 32);
	receives(64, MLX5_INLINE_SCATTER_32, 7);
	receives(128, MLX5_INLINE_SCATTER_32, 32);
	receives(128, MLX5_INLINE_SCATTER_64, 64);
	receives(128, MLX5_INLINE_SCATTER_64, 33);
}

static void post_reads(uint32_t n)
{
	struct ibv_sge sge = { .length = 32, .lkey = 1 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
	};

	for (wr.wr_id = 0; wr.wr_id < n; wr.wr_id++) {
		sge.addr = (uintptr_t)buffers[wr.wr_id];
		CHECK(!ibv_post_send(golden_qp.ibv_qp, &wr, &bad));
	}
}

/* In larger entries, or more of it, releases of libmlx5 look for it elsewhere */
static void device_read_data(uint16_t n)
{
	device_put(&(struct shift_abi_wc) { .wr_id = n, .opcode = IBV_WC_RDMA_READ, .byte_len = 32 },
		   MLX5_CQE_REQ, 0);
	fill((void *)last_cqe(), n, 32);
	last_cqe()->op_own |= MLX5_INLINE_SCATTER_32;
}

void test_data_read(void)
{
	struct ibv_wc wc[8];

	setup_buffers(64);
	post_reads(7);
	device_send_error(1, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
	device_read_data(0);			/* behind an error that is not its own */
	device_send_error(1, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	CHECK(poll_wc(wc, 8) == 1 && wc[0].wr_id == 0 && wc[0].opcode == IBV_WC_RDMA_READ);
	CHECK(has(0, 32) && kern.cqes == 2 && golden_qp.sq.tail == 1);
	device_send_error(2, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	device_read_data(1);
	CHECK(!start_poll() && is_shown(1, 32) && has(1, 32));
	ibv_end_poll(ex());
	CHECK(kern.cqes == 3 && golden_qp.sq.tail == 2);

	side_put(2, IBV_WC_RDMA_READ, 0, 32);
	CHECK(poll_wc(wc, 1) == 1 && wc[0].wr_id == 2 && wc[0].byte_len == 32 && has(2, 0));
	device_read_data(3);
	CHECK(poll_wc(wc, 8) == 1 && wc[0].wr_id == 3 && wc[0].byte_len == 32 && has(3, 32));

	device_send_error(4, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	device_read_data(4);
	side_put(5, IBV_WC_RDMA_READ, 0, 32);
	CHECK(!start_poll() && is_shown(4, 32) && has(4, 32));
	device_read_data(6);
	CHECK(!ibv_next_poll(ex()) && is_shown(5, 32) && has(5, 0));
	CHECK(!ibv_next_poll(ex()) && is_shown(6, 32) && has(6, 32));
	ibv_end_poll(ex());
	CHECK(kern.cqes == 4 && golden_qp.sq.tail == 7);
	teardown();
}
