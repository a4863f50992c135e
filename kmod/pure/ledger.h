/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ledger of a QP's send side: the record of its outstanding operations since its own QP
 * was fenced.  Pure; the caller serializes (shift_qp.ledger_lock).
 *
 * Entry @seq sits in slot @seq & (slots - 1), the same slot as in the user's
 * ring, and keeps a kernel copy of it.  States only go up, except that a
 * failover turns SENT back into OUT:  OUT -> SENT -> EXECUTED -> (reported).
 *
 *	tail <= post <= head;  head - tail <= slots - 1
 *	[tail, post) SENT or EXECUTED, [post, head) OUT or EXECUTED (after a rewind)
 *
 * The ledger itself enforces fences (IBV_SEND_FENCE), so that nothing is posted to a device
 * with a fence: an entry that has one is not the next to post before every READ and atomic in
 * front of it has its answer.
 */
#ifndef SHIFT_PURE_LEDGER_H
#define SHIFT_PURE_LEDGER_H

#include "pure/pure.h"

enum shift_entry_state {
	SHIFT_ENTRY_OUT,
	SHIFT_ENTRY_SENT,
	SHIFT_ENTRY_EXECUTED,
};

#define SHIFT_ENTRY_SILENT	(1 << 0)	/* unsignaled: completion is not shown */
#define SHIFT_ENTRY_SEEN	(1 << 1)	/* completion was already shown by the default CQ */
#define SHIFT_ENTRY_WHOLE	(1 << 2)	/* never resumed in the middle: takes a receive */
#define SHIFT_ENTRY_AGAIN	(1 << 3)	/* a READ: posted again if its answer is missing */
#define SHIFT_ENTRY_ONCE	(1 << 4)	/* an atomic: its answer cannot be had again */
#define SHIFT_ENTRY_LOST	(1 << 5)	/* executed, and its answer is lost */
#define SHIFT_ENTRY_RECV	(1 << 6)	/* consumes a receive of the peer's */
#define SHIFT_ENTRY_FENCED	(1 << 7)	/* waits for the answers to those before it */
#define SHIFT_ENTRY_APPLIED	(1 << 8)	/* its effect on a window, or an MR, was noted */

struct shift_entry {
	u16 flags;
	u8 state;
	u8 path;	/* of SENT */
	u8 status;	/* enum ib_wc_status once finished */
	u32 packets;	/* that it takes in all */
	u32 done;	/* of them executed at the peer (resume point) */
};

struct shift_ledger {
	struct shift_entry *entry;
	u8 *raw;		/* slots * slot_size bytes; NULL: the provider has the copy */
	u32 slots;		/* power of two */
	u32 slot_size;
	u64 tail;
	u64 post;
	u64 head;
	u64 answered;		/* every READ and atomic in front of this one has its answer */
};

void shift_ledger_init(struct shift_ledger *l, struct shift_entry *entry,
		       void *raw, u32 slots, u32 slot_size);
void shift_ledger_start(struct shift_ledger *l, u32 index);
void shift_ledger_start_at(struct shift_ledger *l, u64 seq);
static inline u32 shift_ledger_slot(const struct shift_ledger *l, u64 seq)
{
	return (u32)seq & (l->slots - 1);
}

static inline struct shift_entry *shift_ledger_at(struct shift_ledger *l, u64 seq)
{
	return &l->entry[shift_ledger_slot(l, seq)];
}

static inline u8 *shift_ledger_raw(struct shift_ledger *l, u64 seq)
{
	return l->raw + (size_t)shift_ledger_slot(l, seq) * l->slot_size;
}

static inline u32 shift_ledger_count(const struct shift_ledger *l)
{
	return (u32)(l->head - l->tail);
}

/* SHIFT_ENTRY_* that follow from the operation */
u8 shift_ledger_kind(u32 opcode);
/* the caller has filled raw of slot head; -ENOSPC if full */
int shift_ledger_append(struct shift_ledger *l, u32 packets, u16 flags);
/* has a READ or an atomic in front of @seq not got its answer? */
bool shift_ledger_unanswered(struct shift_ledger *l, u64 seq);
/* next entry to post, skipping executed ones; false: there is none, or it waits for its fence */
bool shift_ledger_next(struct shift_ledger *l, u64 *seq);
void shift_ledger_sent(struct shift_ledger *l, u64 seq, u8 path);
/* -EINVAL for an entry that is not outstanding or not SENT */
int shift_ledger_executed(struct shift_ledger *l, u64 seq);
/* the oldest entry from @seq on that is SENT; head if there is none */
u64 shift_ledger_next_sent(struct shift_ledger *l, u64 seq);
/* the oldest entry that is not finished; head if there is none */
u64 shift_ledger_unfinished(struct shift_ledger *l);
/* oldest entry if it is executed: leaves the ledger; false if it is not */
bool shift_ledger_pop(struct shift_ledger *l, u64 *seq);
/*
 * The responder executed @packets packets, counted from the first packet of
 * the entry at tail (its first in all, not the first after a resume).  Marks
 * entries EXECUTED and notes how far the next one got.  -ERANGE, and nothing
 * changed, if that is more than was ever posted; -ENODATA if an answer is lost.
 */
int shift_ledger_progress(struct shift_ledger *l, u64 packets);
/*
 * The same for a path on which only the SENT entries were sent: @packets is counted from
 * the first packet that the oldest of them sent there.
 */
int shift_ledger_progress_sent(struct shift_ledger *l, u64 packets);
/*
 * @packets was computed from a packet number, modulo 2^24.  False: the responder may have
 * executed 2^24 more as well.  @sent: only the SENT entries count, see above.
 */
bool shift_ledger_is_unique(struct shift_ledger *l, u64 packets, bool sent);
/* the entry that was executed in part; head if there is none */
u64 shift_ledger_cut(struct shift_ledger *l);
/*
 * Number of entries that a responder which cannot be asked may have executed, and that do
 * harm if executed twice.  @all: sent or not.  @once: out: an atomic is among them.
 */
u32 shift_ledger_doubtful(struct shift_ledger *l, u64 end, bool *once);
/* the first @n signaled entries from tail were completed by the default CQ */
int shift_ledger_seen(struct shift_ledger *l, u32 n);
/* back to OUT: all SENT ones are to be posted again */
void shift_ledger_rewind(struct shift_ledger *l);

#endif /* SHIFT_PURE_LEDGER_H */
