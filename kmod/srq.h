/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared receive queues: srq.c (the shadow), srq_move.c (the QPs on it, which move as
 * one), srq_reg.c (what the provider registers), srq_recv.c (receives, while it is away).
 */
#ifndef SHIFT_SRQ_H
#define SHIFT_SRQ_H

#include <rdma/ib_verbs.h>
#include "switch.h"
#include "tag.h"
#include "wr.h"

/**
 * struct shift_srq_pool - a kernel-owned SRQ that holds the receives of one
 * @ref: of the SRQ, and of each kernel-owned QP on it.
 * @path: where.
 * @srq: used for one stay of the SRQ's on @path: what was posted cannot be taken back.
 * @depth: receives that may be posted.
 * @spd: keeps the PD that it is in.
 */
struct shift_srq_pool {
	struct kref ref;
	u8 path;
	struct ib_srq *srq;
	u32 depth;
	struct shift_pd *spd;
};

enum shift_srq_recv_state {
	SHIFT_SRQ_RECV_FREE,		/* the kernel has nothing to do with it */
	SHIFT_SRQ_RECV_PENDING,		/* in @pending */
	SHIFT_SRQ_RECV_POSTED,		/* in @posted */
	SHIFT_SRQ_RECV_DONE,		/* in srq_done of a QP */
};

/** struct shift_srq_recv - a receive that was taken over */
struct shift_srq_recv {
	struct list_head node;
	struct ib_cqe cqe;
	struct shift_srq *ssrq;
	u32 tag;
	u8 state;
	u32 num_sge;
	struct shift_recv got;
};

/** struct shift_srq_cq - a CQ that has, or may have had, completions of the SRQ */
struct shift_srq_cq {
	struct list_head node;
	struct shift_cq *scq;
};

/**
 * struct shift_srq - shadow of a user SRQ
 * @srq: default; NULL once destroyed.
 * @lock: @members and what they have of it, @cqs, @pool, @target, @next, flags.
 *	Inside sqp->lock and mirror_sem.
 * @look: for readers that cannot sleep: held with @lock to change @members, @pool
 *	or @target.  Inside inbox_lock.
 * @pool: where its receives are; NULL: in the application's ring.
 * @target: where they shall go, while some of its QPs have left @pool and
 *	others have not.
 * @next: for the next stay on a path, with QPs on it already.
 * @deadline_ns: when the QPs that have left give up.
 * @spoiled: cannot be moved (any more).
 * @broken: away, and its receives are lost: its QPs fail.
 * @table: shared with the provider, mapped there: see shift-abi.h.
 * @post_lock: all below it.  Inside ledger_lock.
 * @known: tag of each entry that was seen complete, or was taken over.
 * @recv: by index of the tag.
 * @sge: max_sge of each @recv.
 * @pending: to be posted, in order.
 * @seen: how many posts of the provider's were looked at.
 * @limit: as in struct ib_srq_attr, while it is away.
 */
struct shift_srq {
	struct shift_obj obj;
	struct kref ref;
	struct shift_dev *sdev;
	struct shift_pd *spd;
	struct ib_srq *srq;
	struct ib_uverbs_file *ufile;	/* for comparison only */
	u32 handle;
	struct mm_struct *mm;		/* for comparison only */
	u32 max_sge;

	struct mutex lock;
	spinlock_t look;
	struct list_head members;
	struct list_head cqs;
	struct shift_srq_pool *pool, *target, *next[SHIFT_PATHS];
	u64 deadline_ns;
	struct delayed_work timer;
	bool dead, spoiled, broken;

	bool registered;
	struct shift_ring ring;
	struct shift_word flag;
	void *table;			/* vmalloc_user */
	u32 key, entries, entry_size, entry_offset, table_len;

	spinlock_t post_lock;
	u32 *known;
	struct shift_tag *scratch;	/* @lock */
	struct shift_srq_recv *recv;
	struct shift_sge *sge;
	struct list_head pending, posted;
	struct ib_srq *post_to;
	u8 post_path;
	u32 depth, npending, nposted;
	u64 seen;
	u32 limit;
	struct ib_sge wr_sge[SHIFT_WR_MAX_SGE];
};

/* srq.c */
void shift_srq_get(struct shift_srq *ssrq);
void shift_srq_put(struct shift_srq *ssrq);

/* srq_move.c */
void shift_srq_timer(struct work_struct *work);
void shift_srq_drop_pools(struct shift_srq *ssrq, u8 path);	/* ssrq->lock; 0: all */
struct shift_srq_pool *shift_srq_pool_get(struct shift_qp *sqp, u8 path, struct ib_pd *pd);
void shift_srq_pool_put(struct shift_srq_pool *pool);
bool shift_srq_pool_fits(struct shift_qp *sqp, u8 path, const struct shift_srq_pool *pool);

/* srq_reg.c */
int shift_srq_register(struct shift_srq *ssrq, const struct shift_abi_reg_srq *reg);
void shift_srq_unregister(struct shift_srq *ssrq);
void shift_srq_free_table(struct shift_srq *ssrq);

/* srq_recv.c */
int shift_srq_take_over(struct shift_srq *ssrq);	/* ssrq->lock */
void shift_srq_doorbell(struct shift_srq *ssrq);
void shift_srq_recv_done(struct ib_cq *cq, struct ib_wc *wc);
void shift_srq_drop_done(struct shift_qp *sqp);

#endif /* SHIFT_SRQ_H */
