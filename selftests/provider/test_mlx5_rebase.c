// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The patched libmlx5 begins its rings anew, as a QP comes back to its device. */
#include "test_mlx5.h"

static bool mlx5_shown(struct mlx5_cq *cq, uint32_t rsn)
{
	bool (*shown)(struct mlx5_cq *, uint32_t) = golden_function("mlx5_shift_cq_shown");

	return shown(cq, rsn);
}

#define SENDS	70	/* round the ring, and a bit */
#define RECVS	(BLOCKS + 3)

/* A QP that has been away for long: its rings are somewhere, and some is not shown yet */
static void away(void)
{
	struct ibv_wc wc;
	int i;

	*(uint32_t *)(uintptr_t)kern.qp.flag_addr = SHIFT_QP_FLAG_KICK;
	for (i = 0; i < SENDS; i++) {
		post(100 + i);
		if (i >= SENDS - 2)
			continue;
		side_put(golden_qp.sq.cur_post - 1, 0, 0, 8);
		CHECK(poll_wc(&wc, 1) == 1 && wc.wr_id == 100U + i);
	}
	for (i = 0; i < RECVS; i++) {
		post_recv(500 + i);
		if (i >= 5)
			continue;
		side_put(i, SHIFT_WC_RECV, 0, 8);
		CHECK(poll_wc(&wc, 1) == 1 && wc.wr_id == 500U + i);
	}
	/* executed, and not shown: two sends, two receives */
	side_put(golden_qp.sq.cur_post - 2, 0, 0, 8);
	side_put(5, SHIFT_WC_RECV, 0, 8);
	side_put(golden_qp.sq.cur_post - 1, 0, 0, 8);
	side_put(6, SHIFT_WC_RECV, 0, 8);
	kern.rebase = (struct shift_abi_rebase) {
		.sq_base = golden_qp.sq.cur_post & 0xffff, .rq_base = 7,
		.packets = golden_qp.shift_psn,
	};
}

static struct mlx5_wqe_ctrl_seg *ctrl_of(unsigned int index)
{
	return golden_qp.sq_start + (index & (BLOCKS - 1)) * SHIFT_MLX5_BLOCK;
}

/* The doorbell was rung with the first WQE of the ring, in either of its registers */
static bool rung_for_first(void)
{
	bool right = !memcmp(golden_uar, ctrl_of(0), 8) || !memcmp(golden_uar + 256, ctrl_of(0), 8);

	return rung() && right;
}

/* Completions of before and after, in their order, each with its own wr_id */
static void shown(bool sent, uint16_t first)
{
	static const uint64_t before[] = { 168, 505, 169, 506 };
	struct ibv_wc wc[8];
	unsigned int i;
	int n;

	if (sent)
		device_send_done(0);
	n = poll_wc(wc, 8);
	CHECK(n == 4 + sent);
	for (i = 0; i < 4; i++)
		CHECK(wc[i].wr_id == before[i] && !wc[i].status);
	CHECK(!sent || wc[4].wr_id == 900);
	/* the oldest receive */
	device_put(&(struct shift_abi_wc) { .wr_id = first, .qp_num = QPN, .byte_len = 8,
		   .opcode = SHIFT_WC_RECV }, MLX5_CQE_RESP_SEND, 0);
	CHECK(poll_wc(wc, 1) == 1 && wc->wr_id == 507);
}

static void began(uint16_t posted)
{
	uint64_t anchor = *(uint64_t *)(uintptr_t)kern.qp.anchor_addr;

	CHECK(kern.rebases[SHIFT_REBASE_DONE] == 1);
	CHECK(golden_qp.sq.cur_post == posted && record(MLX5_SND_DBR) == posted);
	CHECK(record(MLX5_RCV_DBR) == RECVS - 7);
	CHECK(anchor == ((uint64_t)posted << 16 | posted));
	CHECK(kern.rebase.sq_number == SENDS);
}

/* A WRITE, and one with more data inline than there is room for */
static void post_and_refused(void)
{
	struct ibv_sge sge[] = {
		{ .addr = (uintptr_t)cqes, .length = 8, .lkey = 1 },
		{ .addr = (uintptr_t)cqes, .length = 1000, .lkey = 1 },
	};
	struct ibv_send_wr refused = {
		.wr_id = 901, .sg_list = &sge[1], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE,
	}, wr = {
		.wr_id = 900, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.next = &refused,
	}, *bad = NULL;

	CHECK(ibv_post_send(golden_qp.ibv_qp, &wr, &bad) && bad == &refused);
}

/* In a post: what was written for it is the first in the ring, and the device is told */
void test_rebase_kick(void)
{
	setup(64);
	CHECK(kern.qp.create_flags & SHIFT_QP_CREATE_REBASE);
	away();
	kern.rebase_wanted = 1;
	kern.kick_result = -1;
	rung();
	post(900);
	CHECK(rung_for_first() && !kern.rebase_wanted);
	began(1);
	CHECK(be32toh(ctrl_of(0)->opmod_idx_opcode) >> 8 == 0);
	CHECK(golden_qp.sq.wrid[0] == 900);
	*(uint32_t *)(uintptr_t)kern.qp.flag_addr = 0;
	shown(true, 0);
	teardown();

	/* the last of a list is refused: what was written before it is what is rung for */
	setup(64);
	away();
	kern.rebase_wanted = 1;
	kern.kick_result = -1;
	rung();
	post_and_refused();
	CHECK(rung());		/* with the block behind, as without all this */
	began(1);
	CHECK(golden_qp.sq.wrid[0] == 900);
	teardown();

	/* others hold a lock: not now */
	setup(64);
	away();
	kern.rebase_wanted = 1;
	pthread_spin_lock(&golden_qp.rq.lock.lock);
	side_put(0, SHIFT_WC_REBASE, 0, 0);
	shown(false, 7);
	CHECK(!kern.rebases[SHIFT_REBASE_BEGIN] && kern.rebases[SHIFT_REBASE_LATER] == 1);
	pthread_spin_unlock(&golden_qp.rq.lock.lock);
	teardown();
}

/* In a poll, and with completions of the device's own that were hidden, or are not shown */
void test_rebase_poll(void)
{
	struct ibv_wc wc;

	setup(64);
	away();
	kern.answer = SHIFT_CQE_SWALLOW;
	device_send_error(3, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	kern.rebase_wanted = 1;
	side_put(0, SHIFT_WC_REBASE, 0, 0);
	shown(false, 0);
	began(0);
	CHECK(!poll_wc(&wc, 1));
	teardown();

	/* what goes behind the side ring by now would go before it, then: not now */
	setup(64);
	away();
	kern.rebase_wanted = 1;
	CHECK(poll_wc(&wc, 1) == 1 && wc.wr_id == 168);
	device_send_error(3, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	CHECK(!mlx5_shown(&test_cq, golden_qp.rsc.rsn));
	teardown();

	/* a word that only asks whether somebody polls */
	setup(64);
	away();
	side_put(0, SHIFT_WC_REBASE, 0, 0);
	shown(false, 7);
	CHECK(kern.rebases[SHIFT_REBASE_BEGIN] == 1 && !kern.rebases[SHIFT_REBASE_DONE]);
	CHECK(golden_qp.sq.cur_post == SENDS);
	teardown();
}
