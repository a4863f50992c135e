/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rxe's send ring, as struct rxe_send_wqe in <rdma/rdma_user_rxe.h>: pure and
 * total.  Any bytes give a work request or a refusal.
 */
#ifndef SHIFT_WQ_RXE_H
#define SHIFT_WQ_RXE_H

#include "window.h"
#include "wr.h"

/*
 * What the provider writes into first_psn at every post, before it moves the
 * producer; and what we write into the slot before the consumer where a life begins.  rxe
 * replaces either with a PSN (24 bits) when it sends.
 */
#define SHIFT_RXE_UNSENT	0xffffffffu
#define SHIFT_RXE_START		0xfffffffeu

/* what provider and requester leave in a slot */
struct shift_rxe_mark {
	u32 first_psn;
	u32 last_psn;
	u32 status;		/* enum ib_wc_status once completed */
	u32 state;
	u32 opcode;
};

/* where they are in a slot */
u32 shift_rxe_status_offset(void);
u32 shift_rxe_first_psn_offset(void);
u32 shift_rxe_opcode_offset(void);

/* smallest slot that can hold a send WQE with nothing behind it */
u32 shift_rxe_slot_min(void);

/* 0, -EINVAL (malformed), -EOPNOTSUPP (an operation that is not covered) */
int shift_rxe_decode(const void *slot, u32 slot_size, struct shift_wr *wr);
/* a receive: wr_id, length and scatter list; 0, -EINVAL */
int shift_rxe_decode_recv(const void *slot, u32 slot_size, struct shift_wr *wr);
u32 shift_rxe_recv_slot_min(void);
/* 1: *op; 0: nothing with windows; -EOPNOTSUPP: what cannot be moved */
int shift_rxe_window(const void *slot, struct shift_window_op *op);
int shift_rxe_mark(const void *slot, u32 slot_size, struct shift_rxe_mark *m);

/*
 * A slot that is put back into the ring, as the provider would post it: what rxe
 * has changed in it is undone.  @nothing: as a WRITE of no bytes, which completes in
 * its turn and does nothing; -EOPNOTSUPP where that would show.
 */

/*
 * Rewind of an rxe send queue from a copy of its ring, taken after the
 * provider was held off and before RESET (which zeroes the ring).
 *
 * The ring is full with one slot free, and nobody writes that one: the slot
 * before the consumer holds what was completed last.
 *
 * @errored and a slot with LOC_QP_OP_ERR: rxe 6.12 flushes older operations that
 * were still under way without a trace in their slots; without @in_order or
 * @acked that is -ENODATA, unless nothing was completed before.
 */
struct shift_rxe_view {
	const void *ring;	/* copy of all slots */
	u32 slots;		/* power of two */
	u32 slot_size;
	u32 producer;		/* masked indices at the time of the copy */
	u32 consumer;
	bool errored;		/* the QP went to ERR: the consumer ran to the producer */
	u32 start_psn;		/* sq_psn of the last RTS */
	u32 mtu;
	bool in_order;		/* this rxe shows a local error only as the oldest (6.1) */
	bool acked_valid;	/* @acked is known */
	u32 acked;		/* index of the oldest operation that was flushed */
};

/**
 * struct shift_rxe_rewind - result of shift_rxe_rewind()
 * @first: ring index of the oldest operation without a completion.
 * @count: operations from there to the producer.
 * @first_psn: PSN of the first packet from @first on; 0 if there is none.
 * @local: nothing of that has packets, so that a peer cannot have executed any of it;
 *	not of a QP that broke.
 * @status: of the slot that broke the QP, if one was found; what is neither
 *	RETRY_EXC_ERR nor LOC_QP_OP_ERR is the application's own.
 */
struct shift_rxe_rewind {
	u32 first;
	u32 count;
	u32 first_psn;
	bool local;
	u32 status;
};

/*
 * 0; -ENODATA if no valid anchor is left (the ring was overrun: progress is
 * unknown); -EINVAL if the slots contradict one another or @v is malformed.
 */
int shift_rxe_rewind(const struct shift_rxe_view *v, struct shift_rxe_rewind *r);

#endif /* SHIFT_WQ_RXE_H */
