// SPDX-License-Identifier: GPL-2.0
/* Lists of work requests, posted by ibv_post_send or by ibv_wr_*. */
#include <string.h>

#include "ops.h"

struct ibv_send_wr *batch_add(struct batch *batch)
{
	struct ibv_send_wr *wr = &batch->wr[batch->count];

	memset(wr, 0, sizeof(*wr));
	wr->sg_list = batch->sge[batch->count];
	if (batch->count)
		wr[-1].next = wr;
	batch->count++;
	return wr;
}

/* Pieces from two registrations in turn, of unequal length unless @equal. */
unsigned int cut_pieces(uint8_t *at, size_t len, unsigned int n, struct ibv_mr *const *mr,
			bool equal, struct ibv_sge *sge)
{
	size_t left = len;
	unsigned int i;

	for (i = 0; i < n; i++) {
		size_t piece = left / (n - i + (equal ? 0 : 1));

		if (i == n - 1)
			piece = left;
		else if (!piece)
			piece = 1;
		sge[i].addr = (uintptr_t)at;
		sge[i].length = piece;
		sge[i].lkey = mr[i % 2]->lkey;
		at += piece;
		left -= piece;
	}
	return n;
}

void note_add(struct lane *lane, const struct ibv_send_wr *wr, enum role role,
	      uint64_t number)
{
	static const enum ibv_wc_opcode opcodes[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
		[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
		[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
		[IBV_WR_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
	};
	struct note *note = &lane->note[lane->note_tail % lane->note_size];

	if (lane->note_tail - lane->note_head == lane->note_size)
		die(EXIT_SETUP, "qp %u: too much posted", lane->out.qp);
	lane->note_tail++;
	note->wr_id = wr->wr_id;
	note->opcode = opcodes[wr->opcode];
	note->role = role;
	note->number = number;
	note->signaled = wr->send_flags & IBV_SEND_SIGNALED;
}

static void start_one(struct ibv_qp_ex *qpx, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qpx, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qpx, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr,
				      wr->imm_data);
		break;
	case IBV_WR_SEND:
		ibv_wr_send(qpx);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qpx, wr->imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qpx, wr->invalidate_rkey);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qpx, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qpx, wr->wr.atomic.rkey,
					wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qpx, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
				      wr->wr.atomic.compare_add, wr->wr.atomic.swap);
		break;
	case IBV_WR_BIND_MW:
		ibv_wr_bind_mw(qpx, wr->bind_mw.mw, wr->bind_mw.rkey,
			       &wr->bind_mw.bind_info);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(qpx, wr->invalidate_rkey);
		break;
	case IBV_WR_ATOMIC_WRITE:
		ibv_wr_atomic_write(qpx, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr,
				    (void *)(uintptr_t)wr->sg_list->addr);
		break;
	default:
		die(EXIT_SETUP, "opcode %d", wr->opcode);
	}
}

static void set_data(struct ibv_qp_ex *qpx, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_ATOMIC_WRITE:
	case IBV_WR_BIND_MW:
	case IBV_WR_LOCAL_INV:
		return;
	default:
		break;
	}
	/* Without a setter the request is not complete, also where there is no data. */
	if (!wr->num_sge)
		ibv_wr_set_sge_list(qpx, 0, wr->sg_list);
	else if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(qpx, (void *)(uintptr_t)wr->sg_list->addr,
				       wr->sg_list->length);
	else if (wr->num_sge == 1)
		ibv_wr_set_sge(qpx, wr->sg_list->lkey, wr->sg_list->addr,
			       wr->sg_list->length);
	else
		ibv_wr_set_sge_list(qpx, wr->num_sge, wr->sg_list);
}

static int post_ex(struct ibv_qp_ex *qpx, const struct ibv_send_wr *wr)
{
	ibv_wr_start(qpx);
	for (; wr; wr = wr->next) {
		qpx->wr_id = wr->wr_id;
		/* The rxe provider needs INLINE said here, too. */
		qpx->wr_flags = wr->send_flags;
		start_one(qpx, wr);
		set_data(qpx, wr);
	}
	return ibv_wr_complete(qpx);
}

void batch_post(struct rig *rig, struct lane *lane, struct batch *batch)
{
	struct ibv_send_wr *bad;
	int ret = 0;

	if (batch->count)
		ret = rig->side.opt.wr_api ? post_ex(lane->qpx, batch->wr) :
					     ibv_post_send(lane->qp, batch->wr, &bad);
	if (ret)
		die(EXIT_VIOLATION, "qp %u: posting: %s", lane->out.qp, strerror(ret));
	batch->count = 0;
}
