/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs from one kind of device to the next: the rings that its user-space
 * provider writes, and how a queue pair of it is stopped and its work taken over.
 * All else in the module knows operations of the ledger and receives by number.
 */
#ifndef SHIFT_PROVIDER_H
#define SHIFT_PROVIDER_H

#include "switch.h"

/**
 * struct shift_cq_pins - what a provider registers of a CQ, pinned and checked
 * @ring: its ring.
 * @flag: flag word.
 * @db: mlx5: its doorbell record.
 * @again: it was registered before, and its ring was replaced: not to be refused for
 *	want of memory that the caller may lock.
 */
struct shift_cq_pins {
	struct shift_ring ring;
	struct shift_word flag, db;
	bool again;
};

/**
 * struct shift_qp_pins - what a provider registers of a QP, pinned and checked
 * @sq: send ring.
 * @rq: receive ring; not pinned: none.
 * @gate: flag word.
 * @sq_word: of the send queue: rxe's lock, mlx5's doorbell record.
 * @rq_word: of the receive queue, the same.
 * @anchor: mlx5: packets posted.
 * @sq_tail: mlx5: sends that were polled ...
 * @sq_heads: ... and where each was posted.
 * @rq_tail: mlx5: receives that were polled.
 * @lock_free: rxe: value of both locks when nobody is posting.
 * @entries: slots of the ledger, a power of two.
 * @mlx5: what its ledger needs beside; NULL: another kind.
 */
struct shift_qp_pins {
	struct shift_ring sq, rq, sq_heads;
	struct shift_word gate, sq_word, rq_word, anchor, sq_tail, rq_tail;
	u32 lock_free;
	u32 entries;
	struct shift_mlx5_qp *mlx5;
};

/**
 * struct shift_provider - one kind of device
 * @id: enum shift_abi_provider.
 * @driver: whose devices.
 *
 * Registration; process context of the owner, no lock held; what was pinned and made is
 * dropped by the caller, also after an error:
 * @pin_cq: pin a CQ, all but its flag word, and check that it is one.
 * @pin_qp: the same of a QP.
 *
 * @armed: a CQ's application waits for an event: true once for each arming.  scq->lock.
 *	NULL: what the req_notify_cq op was asked for.
 *
 * @sleeps: has the application of a CQ ever asked for an event?  scq->lock.  NULL: no QP of
 *	this kind is given back.
 *
 * A QP on its own device; sqp->lock, unless said otherwise:
 * @starts: its next life begins where its rings are now: registered in RESET, or about to go
 *	to RTS.
 * @movable: is what is outstanding of a kind that can be moved?  A look at a moving target.
 *	0, -EOPNOTSUPP; -EAGAIN: it cannot be told now.
 * @cause: what broke it, as the rings have it: enum ib_wc_status, 0: nothing.  ledger_lock.
 * @first_error: its first error completion is at hand.  Any context.
 * @hold: keep the provider off its rings, if that is possible: false if it is not off.
 * @still: has all that was posted been completed?
 * @once: is an atomic among what was not?  NULL: then it is not movable.
 * @keeps: has it posted what only its own device's user may post?  NULL: nothing is.
 * @doorbell: it goes on there: ring what was kept back.
 *
 * @fence: stop it for good, and fill ledger and receives with what has no completion.
 *	ring_sem is held for reading.  See shift_fence() for what it returns.
 *
 * Once it is fenced its rings are a mailbox; ledger_lock:
 * @away_flags: flag word of one that is away.
 * @kick_sends: sends are told of by KICK, too.
 * @take: copy the next operation that was posted to where the ledger has its head: 1;
 *	0: there is none; a negative errno: it cannot be told what it is, and @wr is
 *	not valid.  Taken again until the caller appends it.
 * @decode: an operation of the ledger; inline data stays valid until the next call.
 * @wr_id: what the provider knows it by; of a malformed one, too.
 * @completed: operations before @seq are about to be: the ring has room for others.
 * @recvs_posted: receives that were posted and are not taken in.
 * @decode_recv: a receive that is.
 * @recv_wr_id: as @wr_id.
 * @recvs_completed: as @completed.
 * @rebase: from where its indices are to begin with 0, for the provider.  -EAGAIN: that is
 *	not known now.  NULL: it cannot be given back.
 * @rebased: they do; nothing is outstanding but receives, which are taken in anew.
 */
struct shift_provider {
	u32 id;
	enum rdma_driver_id driver;

	int (*pin_cq)(struct shift_cq_pins *pins, const struct shift_abi_reg_cq *reg);
	int (*pin_qp)(struct shift_qp_pins *pins, const struct shift_abi_reg_qp *reg);

	bool (*armed)(struct shift_cq *scq, bool solicited);
	bool (*sleeps)(const struct shift_cq *scq);

	void (*starts)(struct shift_qp *sqp);
	int (*movable)(struct shift_qp *sqp);
	u32 (*cause)(struct shift_qp *sqp);
	void (*first_error)(struct shift_qp *sqp, u32 status);
	bool (*hold)(struct shift_qp *sqp);
	bool (*still)(struct shift_qp *sqp);
	bool (*once)(struct shift_qp *sqp);
	bool (*keeps)(struct shift_qp *sqp);
	void (*doorbell)(struct shift_qp *sqp);

	int (*fence)(struct shift_qp *sqp, bool *errored);

	u32 (*away_flags)(const struct shift_qp *sqp);
	bool kick_sends;
	int (*take)(struct shift_qp *sqp, struct shift_wr *wr);
	int (*decode)(struct shift_qp *sqp, u64 seq, struct shift_wr *wr);
	u64 (*wr_id)(const struct shift_qp *sqp, u64 seq);
	void (*completed)(struct shift_qp *sqp, u64 seq);
	u32 (*recvs_posted)(const struct shift_qp *sqp);
	int (*decode_recv)(const struct shift_qp *sqp, u64 seq, struct shift_wr *wr);
	u64 (*recv_wr_id)(const struct shift_qp *sqp, u64 seq);
	void (*recvs_completed)(struct shift_qp *sqp, u64 seq);
	int (*rebase)(struct shift_qp *sqp, struct shift_abi_rebase *base);
	void (*rebased)(struct shift_qp *sqp, const struct shift_abi_rebase *base);
};

extern const struct shift_provider shift_provider_rxe;	/* provider_rxe.c */
extern const struct shift_provider shift_provider_mlx5;	/* provider_mlx5.c */

/* provider.c: NULL: there is none of that number */
const struct shift_provider *shift_provider_find(u32 id);

/* fence_rxe.c */
bool shift_rxe_hold(struct shift_qp *sqp);
u32 shift_rxe_cause(struct shift_qp *sqp);
int shift_rxe_fence(struct shift_qp *sqp, bool *errored);

/* tally.c: counting in the memory of a user's CQ that rxe writes */
u32 shift_tally_begin(struct shift_cq *scq);
int shift_tally_done(struct shift_qp *sqp, struct shift_cq *scq, u32 from, bool recvs, u8 *slot);
void shift_tally_mark_error(struct shift_qp *sqp, u32 status);	/* any context */
int shift_tally_errors(struct shift_qp *sqp, struct shift_cq *scq, u32 pos, u32 end, u32 least,
		       struct shift_flush *flush, u8 *slot);
void shift_tally_settle(const struct shift_cq *scq);		/* sleeps */

/* for the fences: fence.c */
u64 shift_fence_deadline(unsigned int us);	/* ktime ns, scaled */
int shift_fence_stop(struct shift_qp *sqp, enum ib_qp_state state);

#endif /* SHIFT_PROVIDER_H */
