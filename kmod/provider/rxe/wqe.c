// SPDX-License-Identifier: GPL-2.0
/*
 * Reading rxe's send ring.  Its layout is uapi.  The application can write there at any
 * time.  So everything is copied before it is looked at, and nothing that was read is used
 * as an index or a length before it was checked.
 */
#include <rdma/rdma_user_rxe.h>
#include "provider/rxe/wqe.h"
#include "pure/psn.h"
#include "pure/mw_state.h"
#include "pure/wr.h"

#define KNOWN_FLAGS	(SHIFT_WR_FENCE | SHIFT_WR_SIGNALED | \
			 SHIFT_WR_SOLICITED | SHIFT_WR_INLINE)

/* more than any slot has: core/ring.c */
#define SLOT_MOST	0x10000u

#define DATA_OFFSET	offsetof(struct rxe_send_wqe, dma.inline_data)

static_assert(sizeof(struct rxe_sge) == 16);
static_assert(offsetof(struct rxe_send_wqe, dma.sge) == DATA_OFFSET);
static_assert(sizeof(struct rxe_send_wqe) <= DATA_OFFSET + sizeof(u64));

/**
 * shift_rxe_slot_min() - smallest slot that can hold a send WQE
 *
 * Return: bytes, with nothing behind the WQE's fixed part.
 */
u32 shift_rxe_slot_min(void)
{
	return sizeof(struct rxe_send_wqe);
}

/**
 * shift_rxe_slot_size() - what a send WQE needs
 * @num_sge: pieces of memory that it may have.
 * @inline_data: bytes that it may carry itself.
 *
 * Return: bytes, without rxe's rounding.
 */
u32 shift_rxe_slot_size(u32 num_sge, u32 inline_data)
{
	u64 list = (u64)num_sge * sizeof(struct rxe_sge);
	u64 size = sizeof(struct rxe_send_wqe) + (list > inline_data ? list : inline_data);

	return size > SLOT_MOST ? SLOT_MOST : size;
}

static int decode_opcode(const struct rxe_send_wqe *wqe, struct shift_wr *wr)
{
	const struct rxe_send_wr *from = &wqe->wr;

	switch (from->opcode) {
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
		wr->imm = (__force u32)from->ex.imm_data;
		fallthrough;
	case SHIFT_WR_RDMA_WRITE:
	case SHIFT_WR_RDMA_READ:
		wr->remote_addr = from->wr.rdma.remote_addr;
		wr->rkey = from->wr.rdma.rkey;
		return 0;
	case SHIFT_WR_SEND_WITH_IMM:
		wr->imm = (__force u32)from->ex.imm_data;
		return 0;
	case SHIFT_WR_SEND:
		return 0;
	case SHIFT_WR_SEND_WITH_INV:
	case SHIFT_WR_LOCAL_INV:
		wr->imm = from->ex.invalidate_rkey;
		return 0;
	case SHIFT_WR_BIND_MW:
		/* the slot does not say of which type the window is: 2 is assumed */
		if (from->wr.mw.length > SHIFT_WR_MAX_LENGTH)
			return -EOPNOTSUPP;
		wr->imm = from->wr.mw.rkey;
		wr->rkey = from->wr.mw.mw_rkey;
		wr->remote_addr = from->wr.mw.addr;
		wr->length = (u32)from->wr.mw.length;
		wr->access = from->wr.mw.access;
		wr->mw_type = 2;
		wr->num_sge = 1;
		wr->sge[0] = (struct shift_sge) {
			.addr = from->wr.mw.addr,
			.length = wr->length,
			.lkey = from->wr.mw.mr_lkey,
		};
		return 0;
	case SHIFT_WR_ATOMIC_CMP_AND_SWP:
	case SHIFT_WR_ATOMIC_FETCH_AND_ADD:
		wr->remote_addr = from->wr.atomic.remote_addr;
		wr->compare_add = from->wr.atomic.compare_add;
		wr->swap = from->wr.atomic.swap;
		wr->rkey = from->wr.atomic.rkey;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int decode_inline(const u8 *slot, u32 slot_size, struct shift_wr *wr)
{
	switch (wr->opcode) {
	case SHIFT_WR_RDMA_WRITE:
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
	case SHIFT_WR_SEND:
	case SHIFT_WR_SEND_WITH_IMM:
	case SHIFT_WR_SEND_WITH_INV:
		break;
	default:
		return -EINVAL;
	}
	if (wr->length > slot_size - DATA_OFFSET)
		return -EINVAL;

	wr->inline_data = slot + DATA_OFFSET;
	return 0;
}

static int decode_sge(const u8 *slot, u32 slot_size, u32 offset, u32 num_sge,
		      struct shift_wr *wr)
{
	u64 sum = 0;
	u32 i;

	if (num_sge > SHIFT_WR_MAX_SGE ||
	    num_sge > (slot_size - offset) / sizeof(struct rxe_sge))
		return -EINVAL;

	for (i = 0; i < num_sge; i++) {
		struct rxe_sge sge;

		memcpy(&sge, slot + offset + i * sizeof(sge), sizeof(sge));
		if (!sge.length)	/* rxe ignores the key of an empty entry, too */
			continue;
		sum += sge.length;
		wr->sge[wr->num_sge++] = (struct shift_sge) {
			.addr = sge.addr,
			.length = sge.length,
			.lkey = sge.lkey,
		};
	}
	return sum == wr->length ? 0 : -EINVAL;
}

/**
 * shift_rxe_decode() - a send WQE as a work request
 * @slot: kernel copy of the slot, any alignment; must outlive @wr if the data
 *	is inline.
 * @slot_size: its bytes.
 * @wr: the result, undefined on error.
 *
 * Fields that rxe changes while it sends (iova, resid, cur_sge) are not looked at: the
 * result is the request as it was posted.  Empty scatter/gather entries are dropped.
 *
 * Return: 0, -EINVAL if malformed, -EOPNOTSUPP for an operation or a flag that
 * is not covered.
 */
int shift_rxe_decode(const void *slot, u32 slot_size, struct shift_wr *wr)
{
	struct rxe_send_wqe wqe;
	int ret;

	if (slot_size < sizeof(wqe))
		return -EINVAL;
	memcpy(&wqe, slot, sizeof(wqe));

	memset(wr, 0, sizeof(*wr));
	wr->wr_id = wqe.wr.wr_id;
	wr->opcode = wqe.wr.opcode;
	wr->flags = wqe.wr.send_flags;
	if (wr->flags & ~KNOWN_FLAGS)
		return -EOPNOTSUPP;

	ret = decode_opcode(&wqe, wr);
	if (ret)
		return ret;
	if (wr->opcode == SHIFT_WR_LOCAL_INV || wr->opcode == SHIFT_WR_BIND_MW)
		return 0;

	wr->length = wqe.dma.length;
	if (wr->length > SHIFT_WR_MAX_LENGTH)
		return -EINVAL;
	if ((wr->opcode == SHIFT_WR_ATOMIC_CMP_AND_SWP ||
	     wr->opcode == SHIFT_WR_ATOMIC_FETCH_AND_ADD) && wr->length < 8)
		return -EINVAL;

	if (wr->flags & SHIFT_WR_INLINE)
		return decode_inline(slot, slot_size, wr);
	return decode_sge(slot, slot_size, DATA_OFFSET, wqe.dma.num_sge, wr);
}

/**
 * shift_rxe_recv_slot_min() - smallest slot that can hold a receive WQE
 *
 * Return: bytes, with nothing behind the WQE's fixed part.
 */
u32 shift_rxe_recv_slot_min(void)
{
	return sizeof(struct rxe_recv_wqe);
}

/**
 * shift_rxe_recv_slot_size() - what a receive WQE needs
 * @num_sge: pieces of memory that it may have.
 *
 * Return: bytes, without rxe's rounding.
 */
u32 shift_rxe_recv_slot_size(u32 num_sge)
{
	u64 size = sizeof(struct rxe_recv_wqe) + (u64)num_sge * sizeof(struct rxe_sge);

	return size > SLOT_MOST ? SLOT_MOST : size;
}

/**
 * shift_rxe_decode_recv() - a receive WQE as a work request
 * @slot: kernel copy of the slot, any alignment.
 * @slot_size: its bytes.
 * @wr: the result, undefined on error: wr_id, length, num_sge and sge.
 *
 * Fields that rxe changes while it receives (resid, cur_sge) are not looked at.
 *
 * Return: 0, -EINVAL if malformed.
 */
int shift_rxe_decode_recv(const void *slot, u32 slot_size, struct shift_wr *wr)
{
	struct rxe_recv_wqe wqe;

	if (slot_size < sizeof(wqe))
		return -EINVAL;
	memcpy(&wqe, slot, sizeof(wqe));

	memset(wr, 0, sizeof(*wr));
	wr->wr_id = wqe.wr_id;
	wr->length = wqe.dma.length;
	return decode_sge(slot, slot_size, offsetof(struct rxe_recv_wqe, dma.sge),
			  wqe.dma.num_sge, wr);
}

/**
 * shift_rxe_encode_recv() - a receive WQE, as the provider writes it
 * @slot: where to; aligned to 8 bytes.
 * @slot_size: bytes there.
 * @wr_id: of the receive.
 * @sge: its scatter list.
 * @num_sge: entries of that.
 *
 * Return: bytes written; 0 if there is no room for them.
 */
u32 shift_rxe_encode_recv(void *slot, u32 slot_size, u64 wr_id, const struct shift_sge *sge,
			  u32 num_sge)
{
	const u32 head = offsetof(struct rxe_recv_wqe, dma.sge);
	u32 i, len = head + num_sge * sizeof(struct rxe_sge);
	struct rxe_recv_wqe *wqe = slot;

	if (num_sge > SHIFT_WR_MAX_SGE || len > slot_size)
		return 0;
	memset(wqe, 0, head);
	wqe->wr_id = wr_id;
	wqe->dma.num_sge = num_sge;
	for (i = 0; i < num_sge; i++) {
		wqe->dma.sge[i] = (struct rxe_sge) {
			.addr = sge[i].addr, .length = sge[i].length, .lkey = sge[i].lkey,
		};
		wqe->dma.length += sge[i].length;
	}
	wqe->dma.resid = wqe->dma.length;
	return len;
}

static void mark_of(const struct rxe_send_wqe *wqe, struct shift_rxe_mark *m)
{
	m->first_psn = wqe->first_psn;
	m->last_psn = wqe->last_psn;
	m->status = wqe->status;
	m->state = wqe->state;
	m->opcode = wqe->wr.opcode;
}

/**
 * shift_rxe_mark() - marks that the provider and rxe's requester leave in a slot
 * @slot: kernel copy of the slot, any alignment.
 * @slot_size: its bytes.
 * @m: the result; nothing of it is checked.
 *
 * Return: 0, or -EINVAL if the slot is too small.
 */
int shift_rxe_mark(const void *slot, u32 slot_size, struct shift_rxe_mark *m)
{
	struct rxe_send_wqe wqe;

	if (slot_size < sizeof(wqe))
		return -EINVAL;
	memcpy(&wqe, slot, sizeof(wqe));
	mark_of(&wqe, m);
	return 0;
}

/**
 * shift_rxe_mw_op() - decode an operation on windows from the head of its slot
 * @slot: shift_rxe_slot_min() bytes of it; any alignment.
 * @op: the result.
 *
 * Return: 1; 0: the operation does nothing to a window; -EOPNOTSUPP: it is not covered.
 */
int shift_rxe_mw_op(const void *slot, struct shift_mw_op *op)
{
	struct rxe_send_wqe wqe;
	struct shift_wr wr;

	memcpy(&wqe, slot, sizeof(wqe));
	if (!shift_window_uses(wqe.wr.opcode))
		return 0;
	memset(&wr, 0, sizeof(wr));
	wr.opcode = wqe.wr.opcode;
	if (decode_opcode(&wqe, &wr) || !shift_mw_op(&wr, op))
		return -EOPNOTSUPP;
	return 1;
}

u32 shift_rxe_opcode_offset(void)
{
	return offsetof(struct rxe_send_wqe, wr.opcode);
}

u32 shift_rxe_status_offset(void)
{
	return offsetof(struct rxe_send_wqe, status);
}

u32 shift_rxe_first_psn_offset(void)
{
	return offsetof(struct rxe_send_wqe, first_psn);
}

/* one slot as the rewind sees it */
struct place {
	struct shift_rxe_mark mark;
	u32 packets;
};

static void slot_look(const struct shift_rxe_view *v, u32 index, struct place *p)
{
	struct rxe_send_wqe wqe;

	index &= v->slots - 1;
	memcpy(&wqe, (const u8 *)v->ring + (size_t)index * v->slot_size,
	       sizeof(wqe));
	mark_of(&wqe, &p->mark);
	p->packets = shift_wr_packets(wqe.wr.opcode, wqe.dma.length, v->mtu);
}

/* Was the operation sent?  rxe replaces the provider's mark "unsent" with a PSN. */
static bool slot_was_sent(const struct place *p)
{
	return p->packets && p->mark.first_psn <= SHIFT_PSN_MASK;
}

/* Does the slot before the consumer have our mark that nothing was completed since RTS? */
static bool slot_is_start(const struct place *p)
{
	return p->mark.first_psn == SHIFT_RXE_START;
}

/*
 * PSN behind the operation that was completed last, from the slots before @first.  A slot
 * stays as it was at completion until the provider uses it again.
 */
static bool anchor_before(const struct shift_rxe_view *v, u32 first, u32 count, u32 *psn)
{
	u32 n, index = first;
	struct place p;

	for (n = 0; n < v->slots - count; n++) {
		index = (index - 1) & (v->slots - 1);
		slot_look(v, index, &p);
		if (slot_is_start(&p)) {
			*psn = v->start_psn & SHIFT_PSN_MASK;
			return true;
		}
		if (p.mark.first_psn == SHIFT_RXE_UNSENT && p.packets)
			return false;	/* an aborted or refused post has overwritten it */
		if (p.packets) {
			*psn = shift_psn_add(p.mark.last_psn, 1);
			return slot_was_sent(&p);
		}
	}
	return false;
}

/*
 * PSN of the first packet of @p, from the operation's own slot: from last_psn, as rxe changes
 * first_psn of a READ that it repeats from the middle.  rxe writes the two one after the other, so
 * that a copy may have a last_psn of the slot's previous operation.
 */
static bool anchor_own(const struct place *p, u32 *psn)
{
	u32 gone;	/* packets of a READ that have arrived */

	if (!slot_was_sent(p))
		return false;
	*psn = (p->mark.last_psn + 1 - p->packets) & SHIFT_PSN_MASK;
	gone = shift_psn_delta(p->mark.first_psn, *psn);
	return p->mark.opcode == SHIFT_WR_RDMA_READ ? gone < p->packets : !gone;
}

/*
 * Find the oldest outstanding operation that has packets.  Those before it use no PSN, so that
 * its first PSN is that of all of them.  False: none has packets.
 */
static bool find_packets(const struct shift_rxe_view *v, const struct shift_rxe_rewind *r,
			 struct place *p)
{
	u32 n;

	for (n = 0; n < r->count; n++) {
		slot_look(v, r->first + n, p);
		if (p->packets)
			return true;
	}
	return false;
}

static int find_anchor(const struct shift_rxe_view *v, struct shift_rxe_rewind *r)
{
	u32 before = 0, own = 0;
	bool has_before, has_own;
	struct place p;

	/* a QP that only binds windows has no PSN in its ring, and needs none */
	if (v->errored) {
		slot_look(v, r->first, &p);
	} else if (!find_packets(v, r, &p)) {
		r->local = true;
		return 0;
	}
	has_before = anchor_before(v, r->first, r->count, &before);
	has_own = anchor_own(&p, &own);

	if (has_before && has_own && before != own)
		return -EINVAL;
	if (!has_before && !has_own)
		return -ENODATA;
	r->first_psn = has_before ? before : own;
	return 0;
}

/*
 * A local error need not be that of the oldest operation: newer rxe also flushes operations
 * before it that were under way, without a trace in their slots.  @acked is the index of the
 * oldest.  If that is not known, the ring must prove that there were none.
 */
static int from_oldest(const struct shift_rxe_view *v, u32 index,
		       struct shift_rxe_rewind *r)
{
	u32 mask = v->slots - 1;
	u32 count = (v->producer - v->acked) & mask;
	struct place p;

	if (v->in_order)
		return 0;
	if (v->acked_valid && count >= r->count) {
		r->first = v->acked & mask;
		r->count = count;
		return 0;
	}
	slot_look(v, (index - 1) & mask, &p);
	return slot_is_start(&p) ? 0 : -ENODATA;
}

/* Find the operation that broke the QP: all behind it was flushed, or posted later. */
static int find_failed(const struct shift_rxe_view *v, struct shift_rxe_rewind *r)
{
	u32 n, index = v->producer;
	struct place p;

	for (n = 1; n < v->slots; n++) {
		index = (index - 1) & (v->slots - 1);
		slot_look(v, index, &p);
		if (!p.mark.status || p.mark.status == SHIFT_WC_WR_FLUSH_ERR)
			continue;

		r->first = index;
		r->count = n;
		r->status = p.mark.status;
		switch (p.mark.status) {
		case SHIFT_WC_RETRY_EXC_ERR:
			return slot_was_sent(&p) ? 0 : -ENODATA;
		case SHIFT_WC_LOC_QP_OP_ERR:
			return from_oldest(v, index, r);
		default:
			return -ENODATA;	/* the application has caused the error */
		}
	}
	return -ENODATA;
}

static int find_outstanding(const struct shift_rxe_view *v,
			    struct shift_rxe_rewind *r)
{
	r->first = v->consumer;
	r->count = (v->producer - v->consumer) & (v->slots - 1);
	return 0;
}

/**
 * shift_rxe_rewind() - which operations have no completion yet
 * @v: copy of the ring and what is known of the QP.
 * @r: the result; @status is valid on error too.
 *
 * Return: 0; -ENODATA if it cannot be told (the failed operation was
 * overwritten, or is not known to be the oldest, or no slot has a PSN to count from); -EINVAL
 * if the slots contradict one another or @v is malformed.
 */
int shift_rxe_rewind(const struct shift_rxe_view *v, struct shift_rxe_rewind *r)
{
	int ret;

	memset(r, 0, sizeof(*r));
	/* a ring of one slot, of a QP without a send queue, is always empty */
	if (!v->slots || (v->slots & (v->slots - 1)) ||
	    v->slot_size < sizeof(struct rxe_send_wqe) ||
	    v->producer >= v->slots || v->consumer >= v->slots || !v->mtu)
		return -EINVAL;

	ret = v->errored ? find_failed(v, r) : find_outstanding(v, r);
	if (ret || !r->count)
		return ret;
	return find_anchor(v, r);
}
