/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rxe's send ring, as struct rxe_send_wqe in <rdma/rdma_user_rxe.h>: pure and
 * total.  Any bytes give a work request or a refusal.
 */
#ifndef SHIFT_PROVIDER_RXE_WQE_H
#define SHIFT_PROVIDER_RXE_WQE_H

#include "pure/mw_state.h"
#include "pure/wr.h"

/*
 * Mark in first_psn that an operation was not sent.  The provider writes it at every post, before
 * it moves the producer.  The kernel writes it into the slot before the consumer when an arming
 * begins.  rxe replaces it with a PSN (24 bits) when it sends.
 */
#define SHIFT_RXE_UNSENT	0xffffffffu
#define SHIFT_RXE_START		0xfffffffeu

/* marks that the provider and rxe's requester leave in a slot */
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
/* bytes of a send or receive WQE, before rxe rounds them up */
u32 shift_rxe_slot_size(u32 num_sge, u32 inline_data);
u32 shift_rxe_recv_slot_size(u32 num_sge);

/* 0, -EINVAL (malformed), -EOPNOTSUPP (an operation that is not covered) */
int shift_rxe_decode(const void *slot, u32 slot_size, struct shift_wr *wr);
/* a receive: wr_id, length and scatter list; 0, -EINVAL */
int shift_rxe_decode_recv(const void *slot, u32 slot_size, struct shift_wr *wr);
u32 shift_rxe_recv_slot_min(void);
/* the reverse, for memory of @slot_size bytes: how many of them; 0: there is no room */
u32 shift_rxe_encode_recv(void *slot, u32 slot_size, u64 wr_id, const struct shift_sge *sge,
			  u32 num_sge);
/* 1: decoded; 0: not an operation on windows; -EOPNOTSUPP: it cannot be moved */
int shift_rxe_mw_op(const void *slot, struct shift_mw_op *op);
int shift_rxe_mark(const void *slot, u32 slot_size, struct shift_rxe_mark *m);

/*
 * Rewind of an rxe send queue from a copy of its ring, which is made after the provider
 * was kept from posting and before RESET (which zeroes the ring).
 *
 * A full ring still has one free slot, which nobody writes: so the slot
 * before the consumer holds the operation that was completed last.
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
	bool errored;		/* the QP is in ERR: the consumer has moved up to the producer */
	u32 start_psn;		/* sq_psn of the last RTS */
	u32 mtu;
	bool in_order;		/* rxe of 6.1: a local error is that of the oldest operation */
	bool acked_valid;	/* @acked is known */
	u32 acked;		/* index of the oldest operation that was flushed */
};

/**
 * struct shift_rxe_rewind - result of shift_rxe_rewind()
 * @first: ring index of the oldest operation without a completion.
 * @count: operations from there to the producer.
 * @first_psn: PSN of the first packet from @first on; 0 if there is none.
 * @local: none of these operations has packets, so that a peer cannot have executed any; false for
 *	a QP that broke.
 * @status: status of the operation that broke the QP, if one was found; if neither RETRY_EXC_ERR
 *	nor LOC_QP_OP_ERR, the application has caused the error.
 */
struct shift_rxe_rewind {
	u32 first;
	u32 count;
	u32 first_psn;
	bool local;
	u32 status;
};

/*
 * 0; -ENODATA if no slot has a PSN to count from (the ring was overwritten, and progress
 * is unknown); -EINVAL if the slots contradict one another or @v is malformed.
 */
int shift_rxe_rewind(const struct shift_rxe_view *v, struct shift_rxe_rewind *r);

#endif /* SHIFT_PROVIDER_RXE_WQE_H */
