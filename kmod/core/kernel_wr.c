// SPDX-License-Identifier: GPL-2.0
/* Requests of users in the kernel, as the record of them has them. */
#include "core/kernel_wr.h"

/* The pure parts have numbers and layouts of their own. */
static_assert(sizeof(struct ib_sge) == sizeof(struct shift_sge));
static_assert(offsetof(struct ib_sge, addr) == offsetof(struct shift_sge, addr));
static_assert(offsetof(struct ib_sge, length) == offsetof(struct shift_sge, length));
static_assert(offsetof(struct ib_sge, lkey) == offsetof(struct shift_sge, lkey));
static_assert((int)IB_WR_SEND == (int)SHIFT_WR_SEND);
static_assert((int)IB_WR_RDMA_READ == (int)SHIFT_WR_RDMA_READ);
static_assert((int)IB_WR_LOCAL_INV == (int)SHIFT_WR_LOCAL_INV);
static_assert((int)IB_WR_SEND_WITH_INV == (int)SHIFT_WR_SEND_WITH_INV);
static_assert((int)IB_WR_RDMA_READ_WITH_INV == (int)SHIFT_WR_RDMA_READ_WITH_INV);
static_assert((int)IB_WR_REG_MR == (int)SHIFT_WR_REG_MR);
static_assert((int)IB_SEND_FENCE == (int)SHIFT_WR_FENCE);
static_assert((int)IB_SEND_SIGNALED == (int)SHIFT_WR_SIGNALED);
static_assert((int)IB_SEND_SOLICITED == (int)SHIFT_WR_SOLICITED);
static_assert((int)IB_SEND_INLINE == (int)SHIFT_WR_INLINE);

#define POST_FLAGS	(SHIFT_WR_FENCE | SHIFT_WR_SIGNALED | SHIFT_WR_SOLICITED | SHIFT_WR_INLINE)

/**
 * shift_post_of_send - a send request as the record has it
 * @post: filled in, but for its length.
 * @wr: the request.
 * @sig_all: its QP signals all requests.
 *
 * Context: any.
 */
void shift_post_of_send(struct shift_post *post, const struct ib_send_wr *wr, bool sig_all)
{
	/* what only atomics have is not looked at */
	post->wr_id = wr->wr_id;
	post->remote_addr = 0;
	post->mr = NULL;
	post->imm = wr->ex.invalidate_rkey;
	post->rkey = 0;
	post->access = 0;
	post->num_sge = wr->num_sge;
	post->opcode = wr->opcode;
	post->flags = wr->send_flags & POST_FLAGS;
	if (sig_all)
		post->flags |= SHIFT_WR_SIGNALED;
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		post->remote_addr = rdma_wr(wr)->remote_addr;
		post->rkey = rdma_wr(wr)->rkey;
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP:
	case IB_WR_MASKED_ATOMIC_FETCH_AND_ADD:
		post->remote_addr = atomic_wr(wr)->remote_addr;
		post->rkey = atomic_wr(wr)->rkey;
		post->compare_add = atomic_wr(wr)->compare_add;
		post->swap = atomic_wr(wr)->swap;
		post->compare_mask = atomic_wr(wr)->compare_add_mask;
		post->swap_mask = atomic_wr(wr)->swap_mask;
		break;
	case IB_WR_REG_MR:
	case IB_WR_REG_MR_INTEGRITY:
		/* the user may leave anything there */
		post->num_sge = 0;
		post->mr = reg_wr(wr)->mr;
		post->rkey = reg_wr(wr)->key;
		post->access = reg_wr(wr)->access;
		break;
	case IB_WR_LOCAL_INV:
		post->num_sge = 0;
		break;
	default:
		break;
	}
}

/**
 * shift_post_of_recv - a receive as the record has it
 * @post: filled in, but for its length.
 * @wr: the receive.
 *
 * Context: any.
 */
void shift_post_of_recv(struct shift_post *post, const struct ib_recv_wr *wr)
{
	/* nothing else of it is ever looked at */
	post->wr_id = wr->wr_id;
	post->num_sge = wr->num_sge;
	post->flags = SHIFT_WR_SIGNALED;
}

static void send_of_atomic(struct ib_atomic_wr *wr, const struct shift_post *post)
{
	wr->remote_addr = post->remote_addr;
	wr->rkey = post->rkey;
	wr->compare_add = post->compare_add;
	wr->swap = post->swap;
	wr->compare_add_mask = post->compare_mask;
	wr->swap_mask = post->swap_mask;
}

/**
 * shift_send_of_post - a send request, as it was recorded
 * @wr: filled in; valid as long as @slot and @inlined are.
 * @slot: of the record.
 * @inlined: for inline data.
 *
 * Context: any.
 */
void shift_send_of_post(union shift_kernel_wr *wr, u8 *slot, struct ib_sge *inlined)
{
	const struct shift_post *post = (struct shift_post *)slot;
	u8 *data = slot + sizeof(*post);

	memset(wr, 0, sizeof(*wr));
	wr->send.wr_id = post->wr_id;
	wr->send.opcode = post->opcode;
	wr->send.send_flags = post->flags & POST_FLAGS;
	wr->send.ex.invalidate_rkey = post->imm;
	wr->send.num_sge = post->num_sge;
	wr->send.sg_list = (struct ib_sge *)data;
	if (post->flags & SHIFT_WR_INLINE) {
		*inlined = (struct ib_sge) { .addr = (uintptr_t)data, .length = post->length };
		wr->send.num_sge = post->length ? 1 : 0;
		wr->send.sg_list = inlined;
	}
	switch (post->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		wr->rdma.remote_addr = post->remote_addr;
		wr->rdma.rkey = post->rkey;
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP:
	case IB_WR_MASKED_ATOMIC_FETCH_AND_ADD:
		send_of_atomic(&wr->atomic, post);
		break;
	case IB_WR_REG_MR:
	case IB_WR_REG_MR_INTEGRITY:
		wr->reg.mr = post->mr;
		wr->reg.key = post->rkey;
		wr->reg.access = post->access;
		break;
	default:
		break;
	}
}

/**
 * shift_recv_of_post - the same of a receive
 * @wr: filled in; valid as long as @slot is.
 * @slot: of the record.
 *
 * Context: any.
 */
void shift_recv_of_post(struct ib_recv_wr *wr, u8 *slot)
{
	const struct shift_post *post = (struct shift_post *)slot;

	*wr = (struct ib_recv_wr) {
		.wr_id = post->wr_id,
		.num_sge = post->num_sge,
		.sg_list = (struct ib_sge *)(slot + sizeof(*post)),
	};
}
