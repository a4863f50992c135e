// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Random completions: what the decoder says is held against libmlx5's ibv_poll_cq(). */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "golden_mlx5_lib.h"
#include "provider/mlx5/cqe.h"

#define ENTRIES		8
#define MAX_DATA	64

static uint8_t entries[ENTRIES * 128] __attribute__((aligned(128)));
static uint8_t scattered[MAX_DATA];
static unsigned long polled, with_data, failed;

static void fail(const char *what, const struct ibv_wc *wc, const struct shift_mlx5_cqe *cqe)
{
	errx(1, "completion: %s; opcode %u/%u status %u/%u length %u/%u imm %x/%x", what,
	     wc->opcode, cqe->opcode << 8 | cqe->wqe_opcode, wc->status, cqe->status,
	     wc->byte_len, cqe->byte_len, wc->imm_data, cqe->imm);
}

/* all places of the send ring hold a READ, and all receives can take MAX_DATA */
static void post_all(void)
{
	struct shift_wr wr = {
		.num_sge = 1, .sge = { { (uintptr_t)scattered, MAX_DATA, 1 } },
	};
	uint32_t i;

	qp_init(16, 0, false);
	golden_qp.rq.offset = 16 * SHIFT_MLX5_BLOCK;	/* they have the same memory else */
	for (i = 0; i < 15; i++) {
		wr.opcode = SHIFT_WR_SEND;
		ask_recv(&wr, false);
		wr.opcode = SHIFT_WR_RDMA_READ;
		ask(&wr, POST_SEND);
	}
}

static uint32_t send_opcode(uint8_t opcode)
{
	switch (opcode) {
	case SHIFT_MLX5_OP_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case SHIFT_MLX5_OP_RDMA_WRITE:
	case SHIFT_MLX5_OP_RDMA_WRITE_IMM:
		return IBV_WC_RDMA_WRITE;
	case SHIFT_MLX5_OP_ATOMIC_CS:
		return IBV_WC_COMP_SWAP;
	case SHIFT_MLX5_OP_ATOMIC_FA:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

static void compare(const struct ibv_wc *wc, const struct shift_mlx5_cqe *cqe)
{
	bool error = cqe->opcode >= SHIFT_MLX5_CQE_REQ_ERR;

	if (wc->status != cqe->status || wc->qp_num != cqe->qpn ||
	    wc->wr_id != golden_qp.sq.wrid[cqe->wqe_index & 15])
		fail("head", wc, cqe);
	failed += error;
	polled++;
	if (error) {
		if (wc->vendor_err != cqe->vendor)
			fail("error", wc, cqe);
		return;
	}
	switch (cqe->opcode) {
	case SHIFT_MLX5_CQE_REQ:
		if (wc->opcode != send_opcode(cqe->wqe_opcode))
			fail("opcode", wc, cqe);
		break;
	case SHIFT_MLX5_CQE_RECV_WRITE_IMM:
		if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM)
			fail("opcode", wc, cqe);
		break;
	default:
		if (wc->opcode != IBV_WC_RECV)
			fail("opcode", wc, cqe);
	}
	if ((wc->wc_flags & IBV_WC_WITH_IMM && cqe->opcode != SHIFT_MLX5_CQE_REQ &&
	     wc->imm_data != cqe->imm) ||
	    (wc->wc_flags & IBV_WC_WITH_INV && wc->invalidated_rkey != cqe->imm))
		fail("imm", wc, cqe);
	/* libmlx5 leaves the length of what brings nothing back as it was */
	if ((cqe->opcode != SHIFT_MLX5_CQE_REQ || cqe->byte_len) && wc->byte_len != cqe->byte_len)
		fail("length", wc, cqe);
	if (cqe->data_len && memcmp(scattered, cqe->data, cqe->data_len))
		fail("data", wc, cqe);
	with_data += !!cqe->data_len;
}

/* what follows is chosen so that libmlx5 takes it, too; the rest is random */
static void choose(struct shift_mlx5_cqe64 *e, uint32_t index, uint32_t stride)
{
	static const uint8_t opcodes[] = { 0, 0, 1, 2, 3, 4, 13, 14 };
	static const uint8_t sends[] = { 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11, 0x12 };
	uint8_t opcode = opcodes[below(8)], send = sends[below(8)];
	uint8_t format = opcode > 4 ? 0 : below(stride == 64 ? 2 : 3);

	if (!opcode && (stride == 128 || send < SHIFT_MLX5_OP_RDMA_READ))
		format = 0;	/* see mlx5.md on READs in entries of 128 bytes */
	if (format)
		e->byte_count = htobe32(opcode ? below(format == 1 ? 33 : 65) : 1 + below(32));
	if (!opcode && send > SHIFT_MLX5_OP_RDMA_READ)
		format = 0;	/* the WQEs there are READs */
	if (opcode > 4 && !below(4))
		e->syndrome = below(0x24);
	e->user_index &= htobe32(0xff000000);
	e->app = 0;
	e->opcode_qpn = htobe32(send << 24 | QPN);
	e->wqe_index = htobe16(be16toh(e->wqe_index) % 15);
	e->op_own = opcode << 4 | format << 2 | (e->op_own & 2) | !!(index & ENTRIES);
}

void random_completions(unsigned long n)
{
	static struct mlx5_qp *table[MLX5_QP_TABLE_MASK + 1];
	static struct mlx5_cq cq;
	static __be32 dbrec[2];
	struct shift_mlx5_cq ours = { .ring = entries, .entries = ENTRIES };
	struct ibv_cq *ibcq = &cq.verbs_cq.cq;
	enum shift_mlx5_refusal why;
	struct shift_mlx5_cqe cqe;
	struct ibv_wc wc;
	uint32_t index, i;

	post_all();
	for (i = 0; i < 16; i++)
		golden_qp.rq.wrid[i] = golden_qp.sq.wrid[i];
	golden_ctx.dbg_fp = fopen("/dev/null", "w");	/* it says each error */
	golden_ctx.qp_table[QPN >> MLX5_QP_TABLE_SHIFT].table = table;
	golden_ctx.qp_table[QPN >> MLX5_QP_TABLE_SHIFT].refcnt = 1;
	table[QPN & MLX5_QP_TABLE_MASK] = &golden_qp;
	mlx5_spinlock_init(&cq.lock, 1);
	ibcq->context = &golden_ctx.ibv_ctx.context;
	ibcq->cqe = ENTRIES - 1;
	cq.active_buf = &cq.buf_a;
	mlx5_buf_addr(&cq.buf_a) = entries;
	cq.dbrec = dbrec;

	while (n--) {
		index = rnd();
		ours.stride = below(2) ? 64 : 128;
		cq.cqe_sz = ours.stride;
		cq.cons_index = index;
		for (i = 0; i < sizeof(entries); i++)
			entries[i] = rnd() >> 20;
		choose((void *)(entries + (index & (ENTRIES - 1)) * ours.stride + ours.stride - 64),
		       index, ours.stride);
		why = shift_mlx5_decode_cqe(&ours, index, &cqe);
		if (why || ibv_poll_cq(ibcq, 1, &wc) != 1)
			fail(shift_mlx5_refusal_name(why), &wc, &cqe);
		compare(&wc, &cqe);

		/* an entry of the last lap */
		cq.cons_index = index + ENTRIES;
		if (ibv_poll_cq(ibcq, 1, &wc) ||
		    shift_mlx5_decode_cqe(&ours, index + ENTRIES, &cqe) != SHIFT_MLX5_EMPTY)
			fail("lap", &wc, &cqe);
	}
	printf("%lu completions as ibv_poll_cq has them, %lu of them with data, %lu errors\n",
	       polled, with_data, failed);
}
