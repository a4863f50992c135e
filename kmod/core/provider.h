/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kinds of devices: the rings that the user-space provider of a kind
 * writes, and how a QP is stopped and its work taken over.  The rest of the module knows only
 * operations in the ledger, and receives, by their sequence number.
 */
#ifndef SHIFT_CORE_PROVIDER_H
#define SHIFT_CORE_PROVIDER_H

#include "core/qp.h"

struct shift_srq_rings;

/**
 * struct shift_new_cq - a CQ that is being registered
 * @again: in: it was registered before, and a resize has replaced its ring: must not be refused
 *	because the caller may not lock more memory.
 * @pins: out: its memory, but for the flag word.
 * @priv: out: what else the provider keeps of the CQ, or NULL; kmalloc'ed, freed by the caller.
 *	If it was registered before, that of its first registration is kept.
 */
struct shift_new_cq {
	bool again;
	struct shift_cq_pins pins;
	void *priv;
};

/**
 * struct shift_new_qp - a QP that is being registered
 * @pins: out: its memory, but for the flag word.
 * @entries: out: slots of the ledger, a power of two.
 * @priv: out: what else the provider keeps of the QP, or NULL; for @release.
 * @tracks_mws: out: the provider records operations on memory windows.
 */
struct shift_new_qp {
	struct shift_qp_pins pins;
	u32 entries;
	void *priv;
	bool tracks_mws;
};

/*
 * Called for a completion in a CQ, with its wr_id (or see shift_srq_ops.by_entry), enum
 * ib_wc_status, and QP number.
 */
typedef void shift_cqe_fn(void *arg, u64 wr_id, u32 status, u32 qpn);

/*
 * What a kind of device provides for its QPs: flags of struct shift_provider.  SEND_KICKS and
 * OWN_RECORD are about the rings of a QP, and asked of the provider of these; all others are about
 * the device, and asked of the device's.
 */
#define SHIFT_PROVIDES_WINDOWS		BIT(0)	/* QPs with memory windows can be protected */
/* not in ERR; and CQs of the kernel keep what a QP in RESET has completed */
#define SHIFT_PROVIDES_RESET_PSN	BIT(1)	/* a QP tells in RESET how far it got */
#define SHIFT_PROVIDES_SEND_KICKS	BIT(2)	/* no doorbell of one that is away is heard: KICK */
#define SHIFT_PROVIDES_STATE		BIT(3)	/* a query of a QP never waits for a device */
#define SHIFT_PROVIDES_KERNEL		BIT(4)	/* QPs of users in the kernel can be protected */
#define SHIFT_PROVIDES_OWN_RECORD	BIT(5)	/* an error kept back is of a recorded request */
#define SHIFT_PROVIDES_LOCAL_TWICE	BIT(6)	/* a retry does REG_MR and LOCAL_INV once more */

/**
 * struct shift_cq_ops - a completion queue, as a kind of device has it
 *
 * @pin: pin and check it, all but its flag word.  Process context of the owner, no lock held; the
 *	caller drops what was pinned and made, also after an error.
 * @leaves: it is about to be resized: wait until fences have read what a resize loses.  NULL: a
 *	resize loses nothing that a fence needs.
 *
 * scq->lock, bottom halves off:
 * @room: is there room for a completion of work that was replayed?  0; -ENOSPC: try again; -ENODEV:
 *	there never will be.
 * @put: put such a completion, of a QP, where the user of the CQ polls it, and wake the user if it
 *	waits.  There is room.
 * @armed: does the application wait for an event?  True once for each time that it asks for one.
 *	NULL: the op req_notify_cq says so.
 * @sleeps: has the application ever asked for an event?  NULL: no QP of this kind is handed back.
 */
struct shift_cq_ops {
	int (*pin)(struct shift_cq *scq, struct shift_new_cq *new,
		   const struct shift_abi_reg_cq *reg);
	void (*leaves)(const struct shift_cq *scq);
	int (*room)(const struct shift_cq *scq);
	void (*put)(struct shift_cq *scq, struct shift_qp *sqp, const struct shift_abi_wc *wc);
	bool (*armed)(struct shift_cq *scq, bool solicited);
	bool (*sleeps)(const struct shift_cq *scq);
};

/**
 * struct shift_srq_ops - the ring of a shared receive queue, as a kind of device has it
 * @by_entry: a completion does not name a receive id, but a place in the ring, by its number
 *	(struct shift_srq_lent); one that was polled names none.
 *
 * @protects_if: SHIFT_CLAIM() of what the devices of a QP on an SRQ have to do besides.
 *
 * @pin: pin the ring, and its doorbell record if it has one, and check them.
 *
 * An SRQ none of whose QPs can execute another packet; ssrq->lock:
 * @settle: what its device has completed comes to where @unpolled looks for it.  -ENOSPC: try
 *	again.  NULL: it is there.
 * @unpolled: call @fn for each completion in a CQ that was not polled yet.  ring_sem is held for
 *	reading, so that the ring stays.
 * @empty: empty the SRQ's ring.  NULL: only the device can.
 *
 * If only the device can:
 * @drain: let the QP, in INIT, take what the device has; no other QP draws from the ring.  0: it
 *	has nothing any more; -EAGAIN: it has some yet; -ENETDOWN: not now; else a negative errno.
 *	sqp->lock; sleeps, for seconds at most (scaled).
 *
 * A ring that was emptied, so that nobody else posts there; post_lock:
 * @post: post a receive, with the application's keys.  -ENOSPC: the ring is full.
 * @posted: how many are posted.
 *
 * @reopen: the QP is about to be connected, and draws from the ring: what was taken over must not
 *	be there any more.  0, or a negative errno: it is.  sqp->lock, ssrq->lock; sleeps.  NULL:
 *	@empty has seen to that.
 */
struct shift_srq_ops {
	bool by_entry;
	u32 protects_if;
	int (*pin)(const struct shift_srq *ssrq, struct shift_srq_rings *rings,
		   const struct shift_abi_reg_srq *reg);
	int (*settle)(struct shift_cq *scq);
	void (*unpolled)(const struct shift_cq *scq, shift_cqe_fn *fn, void *arg);
	void (*empty)(struct shift_srq *ssrq);
	int (*drain)(struct shift_qp *sqp);
	int (*post)(struct shift_srq *ssrq, u64 wr_id, const struct shift_sge *sge, u32 num_sge);
	u32 (*posted)(struct shift_srq *ssrq);
	int (*reopen)(struct shift_qp *sqp);
};

/**
 * struct shift_mr_ops - MRs that a QP's user registers and invalidates by work requests
 *
 * ledger_lock:
 * @local: is that an operation on such an MR, for which no packet is sent?  Any context, no lock.
 * @build: the operation for the path's own MR; it is posted then.  0, -EACCES.
 * @executed: the path's device has executed an operation of the ledger, of any kind.
 * @mute: has the QP's own device completed nothing for SHIFT_WATCH_MS (scaled), with an operation
 *	on an MR behind another request?  Then a retry may have killed the QP
 *	(SHIFT_PROVIDES_LOCAL_TWICE).  @anew: the time begins now.  sqp->lock, and not ledger_lock.
 * @invalidated: the peer has invalidated an MR by a message; @wire: the key on the path.  Returns
 *	the key that the user knows.
 *
 * @follow: a proxy QP is armed: register what was registered on the path before.  0, or a negative
 *	errno.  sqp->lock; sleeps.
 */
struct shift_mr_ops {
	bool (*local)(u32 opcode);
	int (*build)(struct shift_qp *sqp, const struct shift_wr *wr, u8 path,
		     struct ib_reg_wr *to);
	void (*executed)(struct shift_qp *sqp, u64 seq, u8 path);
	bool (*mute)(struct shift_qp *sqp, bool anew);
	u32 (*invalidated)(struct shift_qp *sqp, u32 wire, u8 path);
	int (*follow)(struct shift_qp *sqp);
};

/**
 * struct shift_provider - one kind of device: Documentation/internals/providers.md
 * @id: enum shift_abi_provider.
 * @driver: driver of its devices.
 * @flags: SHIFT_PROVIDES_*.
 * @kernel_users: of the device, with SHIFT_PROVIDES_KERNEL: only if this module parameter is set;
 *	NULL: always.  It does not change.
 * @endless_retries: of the device: retry_cnt that means retries without an end; 0: none does.
 * @protects_if: SHIFT_CLAIM() of what a QP's device and its backup have to do.
 * @hands_back_if: what a QP's own device has to do for a handback.
 * @prove: try on a device what is assumed of it; fills masks of SHIFT_CLAIM().  0, or a negative
 *	errno: it cannot be tried now.  Process context; sleeps, for seconds at most (scaled).
 *	NULL: nothing is assumed.
 *
 * @cq: CQs.  NULL: no application registers.
 *
 * Registration; process context of the owner, no lock held; the caller drops what was pinned
 * and made, also after an error:
 * @pin_qp: pin and check a QP, all but its flag word.
 * @srq: rings of SRQs.  NULL: QPs on SRQs are not protected.
 * @mrs: NULL: its users have MRs by verbs only, or by memory windows.
 * @release: free what @pin_qp has left in priv.  Called in an RCU callback with bottom halves off:
 *	kvfree() takes that for an interrupt and defers what it cannot do there.
 * @send_slots: number of sends that may be outstanding.
 *
 * A QP on its own device; sqp->lock, unless said otherwise:
 * @posting: the application has rung a doorbell that is about to be passed on; RCU, no lock.
 *	NULL: of no interest.
 * @restarts: the QP was reset, which drops all that was posted.  NULL: of no interest.
 * @executed: the ledger now has only what was not executed.  NULL: of no interest.
 * @invalidations: how often this QP has invalidated the peer's window of a key.  NULL: never.
 * @starts: the next arming begins at the present indices of the rings: the QP was registered in
 *	RESET, or is about to go to RTS.
 * @movable: can the outstanding operations be posted on another device?  The application may post
 *	meanwhile.  0, -EOPNOTSUPP; -EAGAIN: that is not known now.
 * @cause: status that broke the QP, as its rings have it: enum ib_wc_status, 0: none.
 *	ledger_lock.
 * @first_error: the QP's first error completion is about to be polled.  Any context.
 * @hold: keep the application from posting; false if a thread may still post.
 * @still: has all that was posted been completed?  @done: out: a number that grows with each
 *	completion; 0 if there was none that is known.
 * @once: is an atomic outstanding?  NULL: then it is not movable.
 * @keeps: was something posted not long ago that a proxy QP may not post?  NULL: never.
 * @holds_flushes: have its CQs room for all that is flushed if it breaks?  NULL: it is not handed
 *	back.
 * @doorbell: the QP stays on its own device: ring doorbells that were kept back.
 * @quiet: wait for a moment in which a QP of such a device can be reset.  Asked of the device's.
 *	NULL: any will do.
 *
 * @fence: stop the QP for good, and fill ledger and receives with what has no completion.
 *	ring_sem is held for reading.  See shift_fence() for what it returns.
 *
 * A QP that was fenced, whose rings the kernel reads; ledger_lock:
 * @away_flags: the flag word while it is away from its own QP.
 * @take: copy the next operation that was posted to the ledger's head.  1: done; 0: there is
 *	none; a negative errno: it cannot be decoded, and @wr is not valid.  The same operation
 *	is returned again until the caller appends it.
 * @decode: decode an operation of the ledger; inline data stays valid until the next call.
 * @wr_id: the wr_id of an operation of the ledger, or by what the provider finds it.
 * @completed: operations before @seq are about to be completed, which frees their slots.
 * @recvs_posted: number of receives that were posted and not taken in.
 * @decode_recv: decode a receive of the record of receives.
 * @recv_wr_id: as @wr_id, of a receive.
 * @recvs_completed: as @completed, of receives.
 * @rebase: tell the provider which indices are to become 0.  -EAGAIN: not known now.  NULL: the
 *	QP cannot be handed back.
 * @rebased: the indices begin with 0; nothing is outstanding but receives, which are taken in
 *	anew.
 */
struct shift_provider {
	u32 id;
	enum rdma_driver_id driver;

	u32 flags;
	const bool *kernel_users;
	u8 endless_retries;
	u32 protects_if, hands_back_if;

	int (*prove)(struct ib_device *ibdev, u32 *held, u32 *failed);

	const struct shift_cq_ops *cq;
	int (*pin_qp)(struct shift_qp *sqp, struct shift_new_qp *new,
		      const struct shift_abi_reg_qp *reg);
	const struct shift_srq_ops *srq;
	const struct shift_mr_ops *mrs;
	void (*release)(void *priv);
	u32 (*send_slots)(const struct shift_qp *sqp);

	void (*posting)(struct shift_qp *sqp);
	void (*restarts)(struct shift_qp *sqp);
	void (*executed)(struct shift_qp *sqp);
	u32 (*invalidations)(struct shift_qp *sqp, u32 key);
	void (*starts)(struct shift_qp *sqp);
	int (*movable)(struct shift_qp *sqp);
	u32 (*cause)(struct shift_qp *sqp);
	void (*first_error)(struct shift_qp *sqp, u32 status);
	bool (*hold)(struct shift_qp *sqp);
	bool (*still)(struct shift_qp *sqp, u32 *done);
	bool (*once)(struct shift_qp *sqp);
	bool (*keeps)(struct shift_qp *sqp);
	bool (*holds_flushes)(struct shift_qp *sqp);
	void (*doorbell)(struct shift_qp *sqp);
	void (*quiet)(struct shift_qp *sqp);

	int (*fence)(struct shift_qp *sqp, bool *errored);

	u32 (*away_flags)(const struct shift_qp *sqp);
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

/* The provider of a device, if @id says the same; else NULL. */
static inline const struct shift_provider *shift_dev_provider(const struct shift_dev *sdev, u32 id)
{
	return sdev->provider && sdev->provider->id == id ? sdev->provider : NULL;
}

#endif /* SHIFT_CORE_PROVIDER_H */
