// SPDX-License-Identifier: GPL-2.0
/*
 * The record of a kernel user's posted requests.  Nothing here allocates, sleeps or locks:
 * post_ring.h says what the caller does.
 */
#include "pure/post_ring.h"
#include "pure/psn.h"

/**
 * shift_post_slot_size() - bytes of a slot
 * @max_sge: SGEs that a request may have.
 * @max_inline: bytes of inline data that it may have instead.
 */
u32 shift_post_slot_size(u32 max_sge, u32 max_inline)
{
	u32 data = max(max_sge * (u32)sizeof(struct shift_sge), max_inline);

	return sizeof(struct shift_post) + ((data + 7) & ~7u);
}

/**
 * shift_post_ring_init() - an empty record over the caller's memory
 * @r: the record.
 * @mem: @slots * @slot_size bytes, aligned for u64.
 * @slots: a power of two.
 * @slot_size: from shift_post_slot_size().
 */
void shift_post_ring_init(struct shift_post_ring *r, void *mem, u32 slots, u32 slot_size)
{
	*r = (struct shift_post_ring) { .mem = mem, .slots = slots, .slot_size = slot_size };
}

/* Nothing is outstanding: the QP was created, or reset. */
void shift_post_ring_start(struct shift_post_ring *r)
{
	r->tail = r->head;
	r->kept = 0;
	r->lost = false;
	r->psn = 0;
	r->mtu = 0;
}

/**
 * shift_post_ring_count() - begin to count packets
 * @r: the record of a send queue that has sent nothing yet.
 * @psn: of the first packet that will be sent.
 * @mtu: path MTU in bytes.
 */
void shift_post_ring_count(struct shift_post_ring *r, u32 psn, u32 mtu)
{
	r->psn = psn & SHIFT_PSN_MASK;
	r->mtu = mtu;
}

/* Copy the data that the kernel user wants to have sent from its own memory. */
static int post_copy_inline(struct shift_post *post, u32 room, const struct shift_sge *sge)
{
	u8 *to = (u8 *)(post + 1);
	u32 i;

	if (post->num_sge > 0xffff)
		return -EINVAL;
	post->length = 0;
	for (i = 0; i < post->num_sge; i++) {
		if (sge[i].length > room)
			return -EINVAL;
		memcpy(to, (const void *)(uintptr_t)sge[i].addr, sge[i].length);
		to += sge[i].length;
		room -= sge[i].length;
		post->length += sge[i].length;
	}
	return 0;
}

/* Put the data of the next request behind it. */
static int post_data(struct shift_post_ring *r, struct shift_post *post,
		     const struct shift_sge *sge)
{
	u32 room = r->slot_size - sizeof(*post), i;
	struct shift_sge *to = (struct shift_sge *)(post + 1);
	u64 length = 0;

	if (post->flags & SHIFT_WR_INLINE)
		return post_copy_inline(post, room, sge);
	if (post->num_sge > room / sizeof(*sge))
		return -EINVAL;
	for (i = 0; i < post->num_sge; i++) {
		to[i] = sge[i];
		length += sge[i].length;
	}
	post->length = (u32)length;
	return length > SHIFT_WR_MAX_LENGTH ? -EINVAL : 0;
}

/**
 * shift_post_ring_add() - a request was posted
 * @r: the record.
 * @post: the request at shift_post_ring_next(); NULL: there is no room.
 * @sge: its SGEs; with SHIFT_WR_INLINE they name memory of the kernel.
 *
 * Return: 0; -ENOSPC: more are outstanding than fit; -EINVAL: it has more data than fit.  After an
 * error the record is lost.  -ENODATA: it was lost before.
 */
int shift_post_ring_add(struct shift_post_ring *r, struct shift_post *post,
			const struct shift_sge *sge)
{
	int err;

	if (r->lost)
		return -ENODATA;
	err = post ? post_data(r, post, sge) : -ENOSPC;
	if (err)
		r->lost = true;
	else
		r->head++;
	return err;
}

/**
 * shift_post_ring_keep() - a request was posted, and is kept back from the driver
 * @r: the record, which is not lost.
 * @post: as shift_post_ring_add().
 * @sge: the same.
 *
 * The driver cannot refuse it, so this does.  The record stays as it is then.
 *
 * Return: 0; -ENOMEM: it is full; -EINVAL: the request has more data than fit.
 */
int shift_post_ring_keep(struct shift_post_ring *r, struct shift_post *post,
			 const struct shift_sge *sge)
{
	int err = post ? post_data(r, post, sge) : -ENOMEM;

	if (err)
		return err;
	r->head++;
	r->kept++;
	return 0;
}

/* The PSN behind a request that begins at @psn. */
static u32 post_ends(const struct shift_post_ring *r, const struct shift_post *post, u32 psn)
{
	if (!r->mtu)
		return psn;
	return (psn + shift_wr_packets(post->opcode, post->length, r->mtu)) & SHIFT_PSN_MASK;
}

/* Forget the oldest request. */
static void post_drop(struct shift_post_ring *r)
{
	const struct shift_post *post = (struct shift_post *)shift_post_ring_slot(r, r->tail);

	r->psn = post_ends(r, post, r->psn);
	r->tail++;
}

/**
 * shift_post_ring_done() - a successful completion was polled
 * @r: the record.
 * @wr_id: the completion's.
 *
 * Completions of a queue come in posting order, and a signaled one stands for all requests in front
 * of its own.  So it is that of the oldest signaled request.
 *
 * Return: 0; -EINVAL: that request has another wr_id, or there is none: the record is lost.
 * -ENODATA: it was lost before.
 */
int shift_post_ring_done(struct shift_post_ring *r, u64 wr_id)
{
	const struct shift_post *post;
	u64 seq = r->tail;
	u32 psn = r->psn;

	if (r->lost)
		return -ENODATA;
	while (seq != r->head) {
		post = (struct shift_post *)shift_post_ring_slot(r, seq++);
		psn = post_ends(r, post, psn);
		if (!(post->flags & SHIFT_WR_SIGNALED))
			continue;
		if (post->wr_id != wr_id)
			break;
		r->tail = seq;
		r->psn = psn;
		return 0;
	}
	r->lost = true;
	return -EINVAL;
}

/**
 * shift_post_ring_complete() - all requests before one are completed
 * @r: the record.
 * @seq: that one, modulo 2^32.  If it is not outstanding nothing happens.
 */
void shift_post_ring_complete(struct shift_post_ring *r, u32 seq)
{
	u32 n = seq - (u32)r->tail;

	if (n > shift_post_ring_outstanding(r))
		return;
	while (n--)
		post_drop(r);
}

static bool is_atomic(u32 opcode)
{
	return opcode == SHIFT_WR_ATOMIC_CMP_AND_SWP || opcode == SHIFT_WR_ATOMIC_FETCH_AND_ADD ||
	       opcode == SHIFT_WR_MASKED_ATOMIC_CMP_AND_SWP ||
	       opcode == SHIFT_WR_MASKED_ATOMIC_FETCH_AND_ADD;
}

/**
 * shift_post_decode() - the common form of a request
 * @slot: a slot of the record, or a copy.
 * @slot_size: bytes of it.
 * @wr: filled in; its inline data are in @slot.
 *
 * Return: 0, or -EINVAL: it has more SGEs than the common form.
 */
int shift_post_decode(const void *slot, u32 slot_size, struct shift_wr *wr)
{
	const struct shift_post *post = slot;
	const u8 *data = (const u8 *)slot + sizeof(*post);

	*wr = (struct shift_wr) {
		.wr_id = post->wr_id,
		.opcode = post->opcode,
		.flags = post->flags,
		.length = post->length,
		.imm = post->imm,
		.rkey = post->rkey,
		.remote_addr = post->remote_addr,
		.access = post->access,
	};
	if (is_atomic(post->opcode)) {
		wr->compare_add = post->compare_add;
		wr->swap = post->swap;
		wr->compare_mask = post->compare_mask;
		wr->swap_mask = post->swap_mask;
	}
	if (post->flags & SHIFT_WR_INLINE) {
		if (post->length > slot_size - sizeof(*post))
			return -EINVAL;
		wr->inline_data = data;
		return 0;
	}
	if (post->num_sge > SHIFT_WR_MAX_SGE ||
	    post->num_sge > (slot_size - sizeof(*post)) / sizeof(struct shift_sge))
		return -EINVAL;
	wr->num_sge = post->num_sge;
	memcpy(wr->sge, data, post->num_sge * sizeof(*wr->sge));
	return 0;
}
