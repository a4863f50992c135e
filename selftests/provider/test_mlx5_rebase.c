// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The patched libmlx5 begins its rings anew, as a QP comes back to its device. */
#include "test_mlx5.h"

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
	CHECK(rung() && !kern.rebase_wanted);
	began(1);
	CHECK(be32toh(ctrl_of(0)->opmod_idx_opcode) >> 8 == 0);
	CHECK(golden_qp.sq.wrid[0] == 900);
	*(uint32_t *)(uintptr_t)kern.qp.flag_addr = 0;
	shown(true, 0);
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
	kern.verdict = SHIFT_CQE_SWALLOW;
	device_send_error(3, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	kern.rebase_wanted = 1;
	side_put(0, SHIFT_WC_REBASE, 0, 0);
	shown(false, 0);
	began(0);
	CHECK(!poll_wc(&wc, 1));
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
