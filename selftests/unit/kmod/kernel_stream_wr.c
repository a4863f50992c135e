// SPDX-License-Identifier: GPL-2.0
/* Requests of a stream: each has a number and a token, by which its completion is checked. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/scatterlist.h>
#include "kernel_stream.h"

u64 stream_dma(struct stream_qp *q, const void *memory)
{
	return q->dma + ((const u8 *)memory - (const u8 *)q->memory);
}

static enum ib_wc_opcode completes_as(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_WRITE:
		return IB_WC_RDMA_WRITE;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return IB_WC_FETCH_ADD;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	default:
		return IB_WC_SEND;
	}
}

bool stream_has_room(struct stream_qp *q, unsigned int requests)
{
	return q->posted - q->done + requests <= SENDS;
}

/**
 * stream_add - one more request behind those that are posted together
 * @q: a QP that has room for it
 * @opcode: of the request
 * @signaled: whether it is to complete
 *
 * Return: the request, all else of which is up to the caller.
 */
struct stream_request *stream_add(struct stream_qp *q, enum ib_wr_opcode opcode, bool signaled)
{
	struct stream_request *request = &q->chain.request[q->chain.n];
	struct stream_token *token = &q->sends[q->posted % SENDS];

	*token = (struct stream_token) {
		.cqe.done = stream_sent, .q = q, .number = q->posted++,
		.opcode = completes_as(opcode), .signaled = signaled,
	};
	memset(request, 0, sizeof(*request));
	request->send.wr_cqe = &token->cqe;
	request->send.opcode = opcode;
	request->send.send_flags = signaled ? IB_SEND_SIGNALED : 0;
	request->sge.lkey = q->stream->pd->local_dma_lkey;
	if (q->chain.n++)
		request[-1].send.next = &request->send;
	return request;
}

static void add_piece(struct stream_qp *q, struct stream_request *request, const void *memory,
		      unsigned int length)
{
	request->sge.addr = stream_dma(q, memory);
	request->sge.length = length;
	request->send.sg_list = &request->sge;
	request->send.num_sge = 1;
}

/* A message, with the next number of its direction. */
void stream_add_message(struct stream_qp *q, enum ib_wr_opcode opcode, bool signaled,
			const struct stream_msg *msg)
{
	struct stream_msg *sent = &q->memory->send[q->posted % SENDS];
	struct stream_token *token = &q->sends[q->posted % SENDS];
	struct stream_request *request = stream_add(q, opcode, signaled);

	*sent = *msg;
	sent->seq = q->told++;
	token->ends = msg->kind != STREAM_PLAIN;
	if (opcode == IB_WR_SEND_WITH_INV)
		request->send.ex.invalidate_rkey = msg->key;
	add_piece(q, request, sent, sizeof(*sent));
}

/* What the sender, or the receiver, writes in a round. */
void stream_add_write(struct stream_qp *q, bool signaled, u64 round, u64 addr, u32 key)
{
	struct stream_request *request = stream_add(q, IB_WR_RDMA_WRITE, signaled);
	u8 *source = q->memory->source[round % ROUNDS];

	stream_fill(q, source, round, !q->stream->sends);
	add_piece(q, request, source, LONG);
	request->rdma.remote_addr = addr;
	request->rdma.rkey = key;
}

/* Register memory, with the key that the MR has. */
void stream_add_reg(struct stream_qp *q, bool signaled, struct ib_mr *mr, void *memory,
		    unsigned int length, int access)
{
	struct stream_request *request = stream_add(q, IB_WR_REG_MR, signaled);
	struct scatterlist sg;

	sg_init_one(&sg, memory, length);
	sg_dma_address(&sg) = stream_dma(q, memory);
	sg_dma_len(&sg) = length;
	if (ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE) != 1)
		stream_violated(q, "memory is not mapped");
	request->reg.mr = mr;
	request->reg.key = mr->rkey;
	request->reg.access = access;
	atomic64_inc(&q->stream->registered);
}

/*
 * Post what was added: some with interrupts disabled, and some one by one.  The receiver does so
 * with its lock.
 */
void stream_post(struct stream_qp *q)
{
	struct stream_chain *chain = &q->chain;
	bool single = q->told % 3 == 1, irqs_off = q->told % 4 == 1;
	unsigned long flags;
	unsigned int i;
	int err = 0;

	if (single)
		for (i = 0; i < chain->n; i++)
			chain->request[i].send.next = NULL;
	if (irqs_off)
		local_irq_save(flags);
	for (i = 0; !err && i < (single ? chain->n : 1); i++)
		err = ib_post_send(q->qp, &chain->request[i].send, NULL);
	if (irqs_off)
		local_irq_restore(flags);
	chain->n = 0;
	if (err)
		stream_violated(q, "a request is refused: %d", err);
}

void stream_post_recv(struct stream_qp *q)
{
	struct stream_token *token = &q->recvs[q->recvs_posted % RECVS];
	struct ib_sge sge = {
		.addr = stream_dma(q, &q->memory->recv[q->recvs_posted % RECVS]),
		.length = sizeof(struct stream_msg), .lkey = q->stream->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &token->cqe, .sg_list = &sge, .num_sge = 1 };
	int err;

	*token = (struct stream_token) {
		.cqe.done = stream_received, .q = q, .number = q->recvs_posted++,
		.opcode = IB_WC_RECV, .signaled = true,
	};
	err = ib_post_recv(q->qp, &wr, NULL);
	if (err)
		stream_violated(q, "a receive is refused: %d", err);
}
