/* SPDX-License-Identifier: GPL-2.0 */
/* Shared receive queues. */
#ifndef SHIFT_CORE_SRQ_H
#define SHIFT_CORE_SRQ_H

#include <uapi/rdma/shift-abi.h>
#include "core/qp.h"
#include "pure/srq_id.h"

struct shift_kernel_srq;
struct shift_srq_ops;

/**
 * struct shift_srq_pool - a kernel-owned SRQ that holds the receives of an application's SRQ
 * @ref: held by the application's SRQ, and by each proxy QP on the pool.
 * @path: the path that it is on.
 * @srq: the kernel-owned SRQ.  It is used once: when the application's SRQ returns to @path
 *	another pool is made, as receives cannot be taken out of an SRQ.
 * @depth: receives that may be posted.
 * @spd: reference to the PD that @srq is in.
 */
struct shift_srq_pool {
	struct kref ref;
	u8 path;
	struct ib_srq *srq;
	u32 depth;
	struct shift_pd *spd;
};

enum shift_srq_recv_state {
	SHIFT_SRQ_RECV_FREE,		/* not taken over by the kernel, or lent to the ring */
	SHIFT_SRQ_RECV_PENDING,		/* in @pending */
	SHIFT_SRQ_RECV_POSTED,		/* in @posted */
	SHIFT_SRQ_RECV_DONE,		/* in srqm.done of a QP */
};

/** struct shift_srq_recv - a receive that the kernel took out of the application's ring */
struct shift_srq_recv {
	struct list_head node;
	struct ib_cqe cqe;
	struct shift_srq *ssrq;
	u32 recv_id;
	u8 state;
	u32 num_sge;
	struct shift_recv got;
};

/** struct shift_srq_cq - a CQ that has, or may have had, completions of the SRQ's receives */
struct shift_srq_cq {
	struct list_head node;
	struct shift_cq *scq;
};

#define SHIFT_SRQ_LEAVERS	32

/**
 * struct shift_srq_rings - what its provider has registered
 * @registered: @ring and the words are pinned.
 * @ring: the application's ring.
 * @flag: flag word.
 * @db: doorbell record, if the kind of device has one.
 * @wqe_offset: where @table has the ids of struct shift_srq_lent, for the provider; 0: nowhere.
 * @table: of receive ids; shared with the provider, mapped there: see shift-abi.h.
 * @key: half of the wr_id of each receive that the kernel posts; the other half is its receive
 *	id.
 *
 * Owner: srq/reg.c.  Changed under ssrq->lock.  The table and what describes it stay once they are
 * made, and are read without it.
 */
struct shift_srq_rings {
	bool registered;
	struct shift_ring ring;
	struct shift_word flag, db;
	void *table;			/* vmalloc */
	u32 key, entries, entry_size, entry_offset, table_len, wqe_offset;
};

/**
 * struct shift_srq_lent - what the kernel has posted in a ring whose completions name WQEs
 * @ids: by WQE: the receive that the kernel posted there last; 0: nothing yet, so that the WQE
 *	has the entry of its own number.
 * @order: WQEs in the order in which they were posted, by @head.
 * @head: number of receives that were posted.
 * @tail: those before it are complete.
 * @wqe: the one that the device takes next behind all that were posted.
 * @look: the WQE that was looked at last, whether it may be written.
 * @looked: @seen of struct shift_srq_record, plus 1, when all were looked at last.
 * @counter: what the doorbell record says.
 * @ours: the provider has said that it posts no more.
 * @empty: the device has none that was taken over.
 * @emptying: a QP is emptying the ring; ssrq->lock.
 */
struct shift_srq_lent {
	u32 *ids;
	u16 *order;
	u32 head, tail;
	u64 looked;
	u16 wqe, look, counter;
	bool ours, empty, emptying;
};

/**
 * struct shift_srq_record - receives that the kernel has taken over
 * @known: receive id of each entry that was seen complete, or was taken over; not of one that is
 *	lent to the ring.
 * @scratch: for one walk through the table; ssrq->lock.
 * @recv: by index of the receive id.
 * @sge: max_sge of each @recv.
 * @pending: receives to be posted, in order.
 * @posted: receives that are posted.
 * @post_to: the SRQ that they are posted to, on @post_path.
 * @depth: receives that may be posted there.
 * @away: the ring was emptied: the provider posts there no more, and the kernel may.
 * @lends: QPs draw from the ring, so that it gets a share of the receives.
 * @seen: number of the provider's posts that were looked at.
 * @lent: of a ring that tells less than others what it has.
 * @limit: as in struct ib_srq_attr, while it is @away; before, what was set last.
 * @done: handler of the completions of its receives.
 * @wr_sge: of the receive that is being posted.
 *
 * Owner: srq/recv.c.  Under ssrq->post_lock, if nothing else is said.
 */
struct shift_srq_record {
	u32 *known;
	struct shift_srq_id *scratch;
	struct shift_srq_recv *recv;
	struct shift_sge *sge;
	struct list_head pending, posted;
	struct ib_srq *post_to;
	u8 post_path;
	u32 depth, npending, nposted;
	bool away, lends;
	u64 seen;
	struct shift_srq_lent lent;
	u32 limit;
	void (*done)(struct ib_cq *cq, struct ib_wc *wc);
	struct ib_sge wr_sge[SHIFT_WR_MAX_SGE];
};

/**
 * struct shift_srq - shadow of an SRQ of an application, or of a user in the kernel
 * @srq: the application's SRQ; NULL once destroyed.
 * @ops: of its ring; NULL: its device has none.
 * @kernel: what is noted of an SRQ of a user in the kernel; NULL: it is an application's.
 * @lock: protects @members and their srqm, @cqs, @pool, @target, @next and flags.
 *	Inside sqp->lock.
 * @look: for readers that cannot sleep: held with @lock to change @members, @pool
 *	or @target.  Inside inbox_lock.
 * @pool: the pool that holds its receives; NULL: they are in the application's ring.
 * @target: the pool that they go to, while some of its QPs have left @pool and others have
 *	not.
 * @next: by path: the pool that is made ready for a failover, and that spare proxy QPs are on.
 * @deadline_ns: when QPs that have left @pool give up waiting for the others, unless these wait for
 *	their work items.
 * @latest_ns: when they give up in any case.
 * @told_ns: when members that have not left were told last.
 * @late_ns: when members that were connected since it left the ring are told next.
 * @late_ms: how long after that once more.
 * @moves: the first that left for @target, or for @pool if that is NULL, did so in a move.
 * @leaver: numbers of the QPs that were destroyed last, whose completions may still be in a CQ.
 * @nleavers: how many were destroyed.
 * @spoiled: cannot be moved (any more).
 * @broken: its receives were lost while they were away: its QPs fail.
 * @post_lock: protects @rec.  Inside ledger_lock.
 * @charge: for its pools.
 */
struct shift_srq {
	struct shift_obj obj;
	struct kref ref;
	struct shift_dev *sdev;
	struct shift_pd *spd;
	struct ib_srq *srq;
	u32 max_wr, max_sge;
	const struct shift_srq_ops *ops;
	struct shift_kernel_srq *kernel;

	struct mutex lock;
	spinlock_t look;
	struct list_head members;
	struct list_head cqs;
	struct shift_srq_pool *pool, *target, *next[SHIFT_PATHS];
	u64 deadline_ns, latest_ns, told_ns, late_ns;
	u32 late_ms;
	struct delayed_work timer;
	u32 leaver[SHIFT_SRQ_LEAVERS], nleavers;
	bool dead, moves, spoiled, broken;
	struct shift_srq_rings rings;
	struct shift_charge charge;

	spinlock_t post_lock;
	struct shift_srq_record rec;
};

static inline struct shift_abi_srq_table *shift_srq_table(const struct shift_srq *ssrq)
{
	return ssrq->rings.table;
}

/* The entry of the table that a receive's id names. */
static inline struct shift_abi_srq_entry *shift_srq_entry(const struct shift_srq *ssrq, u32 recv_id)
{
	return ssrq->rings.table + ssrq->rings.entry_offset +
	       (size_t)(recv_id & SHIFT_RECV_ID_INDEX) * ssrq->rings.entry_size;
}

/* srq.c */
struct shift_srq *shift_srq_find_rcu(struct ib_srq *srq);	/* RCU */
struct shift_srq *shift_srq_find(struct ib_srq *srq);
bool shift_srq_is_recv(const struct shift_qp *sqp, u64 wr_id);	/* any context */
void shift_srq_get(struct shift_srq *ssrq);
void shift_srq_put(struct shift_srq *ssrq);
void shift_srq_free_table(struct shift_srq *ssrq);
bool shift_srq_is_one_way(const struct shift_srq *ssrq);	/* any */

#endif /* SHIFT_CORE_SRQ_H */
