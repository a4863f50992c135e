// SPDX-License-Identifier: GPL-2.0
/*
 * Reading mlx5's send and receive rings.  The application can write there at any
 * time.  So each byte is copied once before it is looked at, and nothing that was read
 * is used as an index or a length before it was checked.
 */
#include "provider/mlx5/format.h"
#include "provider/mlx5/wqe.h"
#include "pure/wr.h"

/* a WQE in one piece, and how far it was read */
struct cursor {
	const u8 *at;
	u32 chunks;	/* left until the end */
};

/* the next segment, or NULL if the WQE is shorter */
static const void *cursor_take(struct cursor *c, u32 bytes)
{
	const void *segment = c->at;
	u32 chunks = bytes / SHIFT_MLX5_CHUNK;

	if (c->chunks < chunks)
		return NULL;
	c->at += bytes;
	c->chunks -= chunks;
	return segment;
}

static enum shift_mlx5_refusal decode_flags(const struct shift_mlx5_ctrl *ctrl,
					    struct shift_wr *wr)
{
	u8 flags = ctrl->flags;

	if ((flags & SHIFT_MLX5_UNKNOWN_FLAGS) || ctrl->stream[0] || ctrl->stream[1])
		return SHIFT_MLX5_FLAGS;
	if (flags & SHIFT_MLX5_SOLICITED)
		wr->flags |= SHIFT_WR_SOLICITED;

	switch (SHIFT_MLX5_COMPLETION(flags)) {
	case SHIFT_MLX5_COMPLETION_ON_ERROR:
		break;
	case SHIFT_MLX5_COMPLETION_ALWAYS:
		wr->flags |= SHIFT_WR_SIGNALED;
		break;
	default:
		return SHIFT_MLX5_FLAGS;
	}

	switch (SHIFT_MLX5_FENCE(flags)) {
	case SHIFT_MLX5_FENCE_NONE:
	case SHIFT_MLX5_FENCE_SMALL:	/* verbs keep that order without a fence */
		return SHIFT_MLX5_DECODED;
	case SHIFT_MLX5_FENCE_READS:
	case SHIFT_MLX5_FENCE_BOTH:
		wr->flags |= SHIFT_WR_FENCE;
		return SHIFT_MLX5_DECODED;
	default:
		return SHIFT_MLX5_FLAGS;
	}
}

static enum shift_mlx5_refusal decode_raddr(struct cursor *c, struct shift_wr *wr)
{
	const struct shift_mlx5_raddr *raddr = cursor_take(c, sizeof(*raddr));

	if (!raddr)
		return SHIFT_MLX5_SEGMENTS;
	wr->remote_addr = be64_to_cpu(raddr->addr);
	wr->rkey = be32_to_cpu(raddr->rkey);
	return SHIFT_MLX5_DECODED;
}

/*
 * One piece of inline data takes all that is left.  Operations that return data
 * cannot have inline data.
 */
static enum shift_mlx5_refusal decode_inline(struct cursor *c, struct shift_wr *wr,
					     u32 length)
{
	u32 room = c->chunks * SHIFT_MLX5_CHUNK - SHIFT_MLX5_INLINE_OFFSET;

	switch (wr->opcode) {
	case SHIFT_WR_RDMA_WRITE:
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
	case SHIFT_WR_SEND:
	case SHIFT_WR_SEND_WITH_IMM:
	case SHIFT_WR_SEND_WITH_INV:
		break;
	default:
		return SHIFT_MLX5_SEGMENTS;
	}
	/* refused if empty: it looks like a pointer to 2 GiB */
	if (!length)
		return SHIFT_MLX5_LENGTH;
	if (length > room)
		return SHIFT_MLX5_INLINE_SIZE;
	if (room - length >= SHIFT_MLX5_CHUNK)
		return SHIFT_MLX5_MIXED;

	wr->flags |= SHIFT_WR_INLINE;
	wr->length = length;
	wr->inline_data = c->at + SHIFT_MLX5_INLINE_OFFSET;
	return SHIFT_MLX5_DECODED;
}

static enum shift_mlx5_refusal add_sge(const struct shift_mlx5_data *data,
				       struct shift_wr *wr)
{
	u32 length = be32_to_cpu(data->byte_count);

	/* to the device, neither 0 nor a value with the upper bit is a length */
	if (!length || length >= SHIFT_MLX5_INLINE ||
	    length > SHIFT_WR_MAX_LENGTH - wr->length)
		return SHIFT_MLX5_LENGTH;
	if (wr->num_sge == SHIFT_WR_MAX_SGE)
		return SHIFT_MLX5_SGES;

	wr->length += length;
	wr->sge[wr->num_sge++] = (struct shift_sge) {
		.addr = be64_to_cpu(data->addr),
		.length = length,
		.lkey = be32_to_cpu(data->lkey),
	};
	return SHIFT_MLX5_DECODED;
}

static enum shift_mlx5_refusal decode_data(struct cursor *c, struct shift_wr *wr)
{
	const struct shift_mlx5_data *data = (const void *)c->at;
	enum shift_mlx5_refusal why;
	u32 byte_count;

	if (c->chunks && be32_to_cpu(data->byte_count) & SHIFT_MLX5_INLINE)
		return decode_inline(c, wr, be32_to_cpu(data->byte_count) &
					    ~SHIFT_MLX5_INLINE);

	while ((data = cursor_take(c, sizeof(*data)))) {
		byte_count = be32_to_cpu(data->byte_count);
		if (byte_count > SHIFT_MLX5_INLINE)
			return SHIFT_MLX5_MIXED;
		why = add_sge(data, wr);
		if (why)
			return why;
	}
	return SHIFT_MLX5_DECODED;
}

/* an atomic: the old value is returned into one buffer of the operand's size */
static enum shift_mlx5_refusal decode_atomic(struct cursor *c, struct shift_wr *wr)
{
	const struct shift_mlx5_atomic_mask *mask = NULL;
	const struct shift_mlx5_atomic *atomic;
	enum shift_mlx5_refusal why;

	why = decode_raddr(c, wr);
	if (why)
		return why;
	atomic = cursor_take(c, sizeof(*atomic));
	if (wr->opcode == SHIFT_WR_MASKED_ATOMIC_CMP_AND_SWP)
		mask = cursor_take(c, sizeof(*mask));
	if (!atomic || (wr->opcode == SHIFT_WR_MASKED_ATOMIC_CMP_AND_SWP && !mask))
		return SHIFT_MLX5_SEGMENTS;

	switch (wr->opcode) {
	case SHIFT_WR_MASKED_ATOMIC_CMP_AND_SWP:
		wr->swap_mask = be64_to_cpu(mask->swap);
		wr->compare_mask = be64_to_cpu(mask->compare);
		fallthrough;
	case SHIFT_WR_ATOMIC_CMP_AND_SWP:
		wr->swap = be64_to_cpu(atomic->swap_add);
		wr->compare_add = be64_to_cpu(atomic->compare);
		break;
	case SHIFT_WR_MASKED_ATOMIC_FETCH_AND_ADD:
		wr->compare_mask = be64_to_cpu(atomic->compare);
		fallthrough;
	default:
		wr->compare_add = be64_to_cpu(atomic->swap_add);
		break;
	}

	why = decode_data(c, wr);
	if (why)
		return why;
	return wr->num_sge == 1 && wr->length == sizeof(u64) ? SHIFT_MLX5_DECODED :
							      SHIFT_MLX5_SEGMENTS;
}

static u32 access_of(u8 access)
{
	u32 flags = 0;

	if (access & SHIFT_MLX5_ACCESS_LOCAL_WRITE)
		flags |= SHIFT_WR_ACCESS_LOCAL_WRITE;
	if (access & SHIFT_MLX5_ACCESS_REMOTE_WRITE)
		flags |= SHIFT_WR_ACCESS_REMOTE_WRITE;
	if (access & SHIFT_MLX5_ACCESS_REMOTE_READ)
		flags |= SHIFT_WR_ACCESS_REMOTE_READ;
	if (access & SHIFT_MLX5_ACCESS_ATOMIC)
		flags |= SHIFT_WR_ACCESS_REMOTE_ATOMIC;
	return flags;
}

#define UMR_FLAGS	(SHIFT_MLX5_UMR_INLINE | SHIFT_MLX5_UMR_OFFSET)
#define UMR_MASK	(SHIFT_MLX5_MASK_FREE | SHIFT_MLX5_MASK_KEY)
#define BIND_MASK	(UMR_MASK | SHIFT_MLX5_MASK_LEN | SHIFT_MLX5_MASK_START | \
			 SHIFT_MLX5_MASK_LOCAL_WRITE | SHIFT_MLX5_MASK_REMOTE_READ | \
			 SHIFT_MLX5_MASK_REMOTE_WRITE | SHIFT_MLX5_MASK_ATOMIC)
#define BIND_ACCESS	(SHIFT_MLX5_ACCESS_LOCAL_WRITE | SHIFT_MLX5_ACCESS_REMOTE_READ | \
			 SHIFT_MLX5_ACCESS_REMOTE_WRITE | SHIFT_MLX5_ACCESS_ATOMIC)
#define BIND_OCTOWORDS	4	/* one entry, in a list that is a multiple of 64 bytes */
#define BIND_LIST	64

/* a window is bound to a piece of a memory region */
static enum shift_mlx5_refusal decode_bind(struct cursor *c, const struct shift_mlx5_mkey *mkey,
					   struct shift_wr *wr)
{
	const struct shift_mlx5_data *klm = cursor_take(c, BIND_LIST);
	u64 length = be64_to_cpu(mkey->len);
	u64 start = be64_to_cpu(mkey->start);
	struct shift_sge *sge = &wr->sge[0];

	if (!klm || c->chunks)
		return SHIFT_MLX5_SEGMENTS;
	if (mkey->status || mkey->access & ~BIND_ACCESS)
		return SHIFT_MLX5_UMR;
	if (!length || length > SHIFT_WR_MAX_LENGTH || be32_to_cpu(klm->byte_count) != length)
		return SHIFT_MLX5_LENGTH;

	sge->addr = be64_to_cpu(klm->addr);
	sge->length = length;
	sge->lkey = be32_to_cpu(klm->lkey);
	wr->num_sge = 1;
	wr->length = length;
	wr->access = access_of(mkey->access);
	wr->remote_addr = start;
	if (!start && sge->addr)
		wr->access |= SHIFT_WR_ACCESS_ZERO_BASED;
	else if (start != sge->addr)
		return SHIFT_MLX5_UMR;
	return SHIFT_MLX5_DECODED;
}

/*
 * A memory key is changed.  Only the forms that ibv_bind_mw, IBV_WR_BIND_MW and
 * IBV_WR_LOCAL_INV produce are decoded.  Fields that the mask does not name hold whatever was in
 * the ring before, and are not looked at.
 */
static enum shift_mlx5_refusal decode_umr(struct cursor *c, const struct shift_mlx5_sq *sq,
					  u32 key, struct shift_wr *wr)
{
	const struct shift_mlx5_umr *umr = cursor_take(c, sizeof(*umr));
	const struct shift_mlx5_mkey *mkey = cursor_take(c, sizeof(*mkey));
	u64 mask, more;
	bool bind;
	u32 owner;

	if (!umr || !mkey)
		return SHIFT_MLX5_SEGMENTS;
	mask = be64_to_cpu(umr->mask);
	more = mask & SHIFT_MLX5_MASK_QPN;	/* type 2: bound to its queue pair */
	owner = be32_to_cpu(mkey->qpn_key) >> 8;
	bind = be16_to_cpu(umr->klm_octowords);

	if (umr->offset || (bind && be16_to_cpu(umr->klm_octowords) != BIND_OCTOWORDS))
		return SHIFT_MLX5_UMR;
	if (bind) {
		if (mask != (BIND_MASK | more) ||
		    umr->flags != (UMR_FLAGS | (more ? SHIFT_MLX5_UMR_CHECK_FREE : 0)) ||
		    owner != (more ? sq->qpn : SHIFT_MLX5_ANY_QPN))
			return SHIFT_MLX5_UMR;
	} else {
		if (mask != (UMR_MASK | more) ||
		    umr->flags != (UMR_FLAGS | (more ? SHIFT_MLX5_UMR_CHECK_QPN : 0)) ||
		    owner != SHIFT_MLX5_ANY_QPN || mkey->status != SHIFT_MLX5_MKEY_FREE)
			return SHIFT_MLX5_UMR;
		if (c->chunks)
			return SHIFT_MLX5_SEGMENTS;
	}

	wr->imm = key;
	/* a type 2 bind of no bytes, with 0 in the low byte of its key, looks like LOCAL_INV */
	if (!bind && more && !(be32_to_cpu(mkey->qpn_key) & 0xff)) {
		wr->opcode = SHIFT_WR_LOCAL_INV;
		return SHIFT_MLX5_DECODED;
	}
	wr->opcode = SHIFT_WR_BIND_MW;
	wr->mw_type = more ? 2 : 1;
	wr->rkey = key;
	wr->imm = (key & ~0xffu) | (be32_to_cpu(mkey->qpn_key) & 0xff);
	return bind ? decode_bind(c, mkey, wr) : SHIFT_MLX5_DECODED;
}

/* operations, in the order of their numbers; UMR is a bind or an invalidation */
static const struct operation {
	u8 opcode;
	u8 opmod;
	u8 wr;
} operations[] = {
	{ SHIFT_MLX5_OP_SEND_INVAL, 0, SHIFT_WR_SEND_WITH_INV },
	{ SHIFT_MLX5_OP_RDMA_WRITE, 0, SHIFT_WR_RDMA_WRITE },
	{ SHIFT_MLX5_OP_RDMA_WRITE_IMM, 0, SHIFT_WR_RDMA_WRITE_WITH_IMM },
	{ SHIFT_MLX5_OP_SEND, 0, SHIFT_WR_SEND },
	{ SHIFT_MLX5_OP_SEND_IMM, 0, SHIFT_WR_SEND_WITH_IMM },
	{ SHIFT_MLX5_OP_RDMA_READ, 0, SHIFT_WR_RDMA_READ },
	{ SHIFT_MLX5_OP_ATOMIC_CS, 0, SHIFT_WR_ATOMIC_CMP_AND_SWP },
	{ SHIFT_MLX5_OP_ATOMIC_FA, 0, SHIFT_WR_ATOMIC_FETCH_AND_ADD },
	{ SHIFT_MLX5_OP_ATOMIC_MASKED_CS, SHIFT_MLX5_OPMOD_8_BYTES,
	  SHIFT_WR_MASKED_ATOMIC_CMP_AND_SWP },
	{ SHIFT_MLX5_OP_ATOMIC_MASKED_FA, SHIFT_MLX5_OPMOD_8_BYTES,
	  SHIFT_WR_MASKED_ATOMIC_FETCH_AND_ADD },
	{ SHIFT_MLX5_OP_UMR, 0, SHIFT_WR_BIND_MW },
};

static const struct operation *find_operation(u8 opcode)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(operations); i++)
		if (operations[i].opcode == opcode)
			return &operations[i];
	return NULL;
}

static enum shift_mlx5_refusal decode_operation(const struct shift_mlx5_sq *sq,
						const struct shift_mlx5_ctrl *ctrl,
						struct cursor *c, struct shift_wr *wr)
{
	u32 head = be32_to_cpu(ctrl->opmod_index_opcode);
	const struct operation *op = find_operation(head & 0xff);
	enum shift_mlx5_refusal why;

	if (!op)
		return SHIFT_MLX5_OPCODE;
	if (head >> 24 != op->opmod)
		return SHIFT_MLX5_OPMOD;

	wr->opcode = op->wr;
	switch (wr->opcode) {
	case SHIFT_WR_SEND_WITH_INV:
		wr->imm = be32_to_cpu(ctrl->imm);
		return decode_data(c, wr);
	case SHIFT_WR_SEND_WITH_IMM:
		wr->imm = (__force u32)ctrl->imm;
		return decode_data(c, wr);
	case SHIFT_WR_SEND:
		return decode_data(c, wr);
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
		wr->imm = (__force u32)ctrl->imm;
		fallthrough;
	case SHIFT_WR_RDMA_WRITE:
	case SHIFT_WR_RDMA_READ:
		why = decode_raddr(c, wr);
		return why ? why : decode_data(c, wr);
	case SHIFT_WR_BIND_MW:
		return decode_umr(c, sq, be32_to_cpu(ctrl->imm), wr);
	default:
		return decode_atomic(c, wr);
	}
}

/* copy a WQE of @blocks, without its first @from blocks, to one piece of memory */
static void straighten(const struct shift_mlx5_sq *sq, u16 index, u32 from, u32 blocks, u8 *to)
{
	u32 i;

	for (i = from; i < blocks; i++) {
		u32 block = (index + i) & (sq->blocks - 1);

		memcpy(to + i * SHIFT_MLX5_BLOCK,
		       (const u8 *)sq->ring + (size_t)block * SHIFT_MLX5_BLOCK,
		       SHIFT_MLX5_BLOCK);
	}
	barrier();	/* the compiler must check the copy, not read the ring again */
}

/**
 * shift_mlx5_decode() - a send WQE as a work request
 * @sq: the ring.
 * @index: of the WQE's first block, modulo 2^16 and not modulo the ring.
 * @wqe: the result; must outlive the use of its work request.
 *
 * The next WQE is @wqe->blocks further, unless that is 0.  On a refusal nothing else of
 * @wqe is valid.
 *
 * Return: SHIFT_MLX5_DECODED or why not.
 */
enum shift_mlx5_refusal
shift_mlx5_decode(const struct shift_mlx5_sq *sq, u16 index, struct shift_mlx5_wqe *wqe)
{
	u16 posted = sq->producer - index;
	enum shift_mlx5_refusal why;
	struct shift_mlx5_ctrl ctrl;
	struct cursor c;
	u32 chunks, blocks;

	memset(&wqe->wr, 0, sizeof(wqe->wr));
	wqe->blocks = 0;
	if (!sq->ring || !sq->blocks || sq->blocks > SHIFT_MLX5_MAX_RING ||
	    (sq->blocks & (sq->blocks - 1)))
		return SHIFT_MLX5_GEOMETRY;
	if (!posted || posted > sq->blocks)
		return SHIFT_MLX5_EMPTY;

	straighten(sq, index, 0, 1, wqe->bytes);
	memcpy(&ctrl, wqe->bytes, sizeof(ctrl));
	if (((be32_to_cpu(ctrl.opmod_index_opcode) >> 8) & 0xffff) != index)
		return SHIFT_MLX5_INDEX;
	if (be32_to_cpu(ctrl.qpn_chunks) >> 8 != sq->qpn)
		return SHIFT_MLX5_QPN;
	chunks = be32_to_cpu(ctrl.qpn_chunks) & 0xff;
	blocks = (chunks * SHIFT_MLX5_CHUNK + SHIFT_MLX5_BLOCK - 1) / SHIFT_MLX5_BLOCK;
	if (!chunks || chunks > SHIFT_MLX5_MAX_CHUNKS || blocks > posted)
		return SHIFT_MLX5_SIZE;
	straighten(sq, index, 1, blocks, wqe->bytes);

	if (sq->signature || ctrl.signature)
		why = SHIFT_MLX5_SIGNED;
	else
		why = decode_flags(&ctrl, &wqe->wr);
	if (!why) {
		c.at = wqe->bytes + sizeof(ctrl);
		c.chunks = chunks - 1;
		why = decode_operation(sq, &ctrl, &c, &wqe->wr);
	}
	if (shift_mlx5_refusal_errno(why) != -EINVAL)
		wqe->blocks = blocks;
	return why;
}

static bool ring_of_receives(const struct shift_mlx5_rq *rq)
{
	return rq->ring && rq->slots && rq->slots <= SHIFT_MLX5_MAX_RING &&
	       rq->slot_size >= SHIFT_MLX5_CHUNK && rq->slot_size <= SHIFT_MLX5_MAX_SLOT &&
	       !(rq->slot_size % SHIFT_MLX5_CHUNK);
}

static enum shift_mlx5_refusal decode_scatter(const u8 *slot, u32 size, struct shift_wr *wr)
{
	enum shift_mlx5_refusal why;
	struct shift_mlx5_data data;

	for (; size; size -= sizeof(data), slot += sizeof(data)) {
		memcpy(&data, slot, sizeof(data));
		barrier();
		if (be32_to_cpu(data.lkey) == SHIFT_MLX5_END_LKEY)
			break;
		why = add_sge(&data, wr);
		if (why)
			return why;
	}
	return SHIFT_MLX5_DECODED;
}

/**
 * shift_mlx5_decode_recv() - a receive as a work request
 * @rq: the ring.
 * @index: of the receive, modulo 2^16 or modulo the ring.
 * @wr: the result, undefined if refused: length, num_sge and sge.
 *
 * Return: SHIFT_MLX5_DECODED or why not.
 */
enum shift_mlx5_refusal
shift_mlx5_decode_recv(const struct shift_mlx5_rq *rq, u16 index, struct shift_wr *wr)
{
	memset(wr, 0, sizeof(*wr));
	if (!ring_of_receives(rq) || (rq->slots & (rq->slots - 1)))
		return SHIFT_MLX5_GEOMETRY;
	if (rq->signature)
		return SHIFT_MLX5_SIGNED;
	return decode_scatter((const u8 *)rq->ring +
			      (size_t)(index & (rq->slots - 1)) * rq->slot_size,
			      rq->slot_size, wr);
}

/**
 * shift_mlx5_decode_srq() - a shared receive as a work request
 * @rq: the ring.
 * @index: of the receive, below the number of slots.
 * @wr: the result, undefined if refused: length, num_sge and sge.
 * @next: index of the next receive in the list; valid also if the scatter list is refused as not
 *	covered.  The list may be circular, so that the caller has to limit its steps.
 *
 * Return: SHIFT_MLX5_DECODED or why not.
 */
enum shift_mlx5_refusal
shift_mlx5_decode_srq(const struct shift_mlx5_rq *rq, u16 index, struct shift_wr *wr,
		      u16 *next)
{
	struct shift_mlx5_srq_next head;
	const u8 *slot;

	memset(wr, 0, sizeof(*wr));
	*next = 0;
	if (!ring_of_receives(rq) || rq->slot_size < sizeof(head) + SHIFT_MLX5_CHUNK ||
	    index >= rq->slots)
		return SHIFT_MLX5_GEOMETRY;

	slot = (const u8 *)rq->ring + (size_t)index * rq->slot_size;
	memcpy(&head, slot, sizeof(head));
	barrier();
	if (be16_to_cpu(head.next) >= rq->slots)
		return SHIFT_MLX5_LINK;
	*next = be16_to_cpu(head.next);
	if (rq->signature || head.signature)
		return SHIFT_MLX5_SIGNED;
	return decode_scatter(slot + sizeof(head), rq->slot_size - sizeof(head), wr);
}
