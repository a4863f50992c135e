// SPDX-License-Identifier: GPL-2.0
/*
 * The ledger of a QP's send side.  Nothing here allocates, sleeps or locks: ledger.h says
 * which lock the caller holds.
 */
#include "pure/ledger.h"
#include "pure/psn.h"
#include "pure/wr.h"

/**
 * shift_ledger_init() - an empty ledger over the caller's memory
 * @l: the ledger.
 * @entry: @slots entries.
 * @raw: @slots * @slot_size bytes for the kernel copy of the ring.
 * @slots: slots of the user's ring, a power of two.
 * @slot_size: bytes of one.
 */
void shift_ledger_init(struct shift_ledger *l, struct shift_entry *entry,
		       void *raw, u32 slots, u32 slot_size)
{
	memset(entry, 0, slots * sizeof(*entry));
	l->entry = entry;
	l->raw = raw;
	l->slots = slots;
	l->slot_size = slot_size;
	shift_ledger_start(l, 0);
}

/**
 * shift_ledger_start() - empty the ledger and align it with the ring
 * @l: the ledger.
 * @index: ring index that the next entry will have.
 */
void shift_ledger_start(struct shift_ledger *l, u32 index)
{
	shift_ledger_start_at(l, index & (l->slots - 1));
}

/**
 * shift_ledger_start_at() - empty the ledger, and number its entries as a record does
 * @l: the ledger.
 * @seq: number of the next entry.
 */
void shift_ledger_start_at(struct shift_ledger *l, u64 seq)
{
	l->tail = seq;
	l->post = seq;
	l->head = seq;
	l->answered = seq;
}

/**
 * shift_ledger_kind() - what follows for an entry from its operation
 * @opcode: SHIFT_WR_*.
 *
 * Return: SHIFT_ENTRY_* bits.
 */
u8 shift_ledger_kind(u32 opcode)
{
	switch (opcode) {
	case SHIFT_WR_SEND:
	case SHIFT_WR_SEND_WITH_IMM:
	case SHIFT_WR_SEND_WITH_INV:
	/* the receiver of the rest of one would be told the rest's length */
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
		return SHIFT_ENTRY_WHOLE | SHIFT_ENTRY_RECV;
	case SHIFT_WR_RDMA_READ:
		return SHIFT_ENTRY_AGAIN;
	case SHIFT_WR_ATOMIC_CMP_AND_SWP:
	case SHIFT_WR_ATOMIC_FETCH_AND_ADD:
		return SHIFT_ENTRY_ONCE;
	default:
		return 0;
	}
}

/**
 * shift_ledger_append() - enter the operation in the raw slot of head
 * @l: the ledger.
 * @packets: request PSNs that it takes, see shift_wr_packets().
 * @flags: SHIFT_ENTRY_*.
 *
 * Return: 0, or -ENOSPC if as many are outstanding as the ring can hold.
 */
int shift_ledger_append(struct shift_ledger *l, u32 packets, u16 flags)
{
	if (l->head - l->tail >= l->slots - 1)
		return -ENOSPC;

	*shift_ledger_at(l, l->head) = (struct shift_entry) {
		.state = SHIFT_ENTRY_OUT,
		.flags = flags,
		.packets = packets,
	};
	l->head++;
	return 0;
}

/* Does the operation return data (a READ or an atomic) that have not arrived? */
static bool owes_answer(const struct shift_entry *e)
{
	return e->state != SHIFT_ENTRY_EXECUTED &&
	       e->flags & (SHIFT_ENTRY_AGAIN | SHIFT_ENTRY_ONCE);
}

/**
 * shift_ledger_unanswered() - does an entry with a fence have to wait?
 * @l: the ledger.
 * @seq: the entry; only the entries in front of it matter.
 *
 * An answer that has arrived stays so.  l->answered remembers how far the entries were looked
 * at, so that each is looked at once.
 *
 * Return: true if a READ or an atomic in front of @seq is without its answer.
 */
bool shift_ledger_unanswered(struct shift_ledger *l, u64 seq)
{
	if (seq > l->head)
		seq = l->head;
	if (l->answered < l->tail)
		l->answered = l->tail;
	while (l->answered < seq && !owes_answer(shift_ledger_at(l, l->answered)))
		l->answered++;
	return l->answered < seq;
}

/**
 * shift_ledger_next() - the next entry to post
 * @l: the ledger; executed entries at its post position are passed over.
 * @seq: the entry.  It stays the next one until shift_ledger_sent().
 *
 * An entry that waits for its fence holds back all entries behind it, too.  Everything in
 * front of it was sent.  So either the completion that brings the last missing answer, or a
 * rewind, ends the wait.
 *
 * Return: false if all were posted, or if a fence holds.
 */
bool shift_ledger_next(struct shift_ledger *l, u64 *seq)
{
	const struct shift_entry *e;

	while (l->post != l->head &&
	       shift_ledger_at(l, l->post)->state != SHIFT_ENTRY_OUT)
		l->post++;
	if (l->post == l->head)
		return false;
	e = shift_ledger_at(l, l->post);
	if (e->flags & SHIFT_ENTRY_FENCED && shift_ledger_unanswered(l, l->post))
		return false;

	*seq = l->post;
	return true;
}

/**
 * shift_ledger_sent() - an entry was posted on a path
 * @l: the ledger.
 * @seq: what shift_ledger_next() returned; anything else changes nothing.
 * @path: path whose QP it was posted on.
 */
void shift_ledger_sent(struct shift_ledger *l, u64 seq, u8 path)
{
	struct shift_entry *e;

	if (seq != l->post || seq == l->head)
		return;
	e = shift_ledger_at(l, seq);
	if (e->state != SHIFT_ENTRY_OUT)
		return;

	e->state = SHIFT_ENTRY_SENT;
	e->path = path;
	l->post++;
}

/**
 * shift_ledger_executed() - a posted entry got its completion
 * @l: the ledger.
 * @seq: the entry.
 *
 * Return: 0, or -EINVAL for an entry that is not outstanding or not SENT.
 */
int shift_ledger_executed(struct shift_ledger *l, u64 seq)
{
	struct shift_entry *e;

	if (seq - l->tail >= l->head - l->tail)
		return -EINVAL;
	e = shift_ledger_at(l, seq);
	if (e->state != SHIFT_ENTRY_SENT)
		return -EINVAL;

	e->state = SHIFT_ENTRY_EXECUTED;
	e->done = e->packets;
	return 0;
}

/**
 * shift_ledger_next_sent() - the entry whose completion comes next
 * @l: the ledger.
 * @seq: where to begin.
 *
 * Return: the oldest entry from @seq on that is SENT; head if there is none.
 */
u64 shift_ledger_next_sent(struct shift_ledger *l, u64 seq)
{
	if (seq < l->tail)
		seq = l->tail;
	while (seq < l->head && shift_ledger_at(l, seq)->state != SHIFT_ENTRY_SENT)
		seq++;
	return seq;
}

/**
 * shift_ledger_unfinished() - the entry with which error completions would have to begin
 * @l: the ledger.
 *
 * Return: the oldest entry that was not executed, or whose answer is lost, or that
 * has an error; head if there is none.
 */
u64 shift_ledger_unfinished(struct shift_ledger *l)
{
	u64 seq;

	for (seq = l->tail; seq < l->head; seq++) {
		const struct shift_entry *e = shift_ledger_at(l, seq);

		if (e->state != SHIFT_ENTRY_EXECUTED || e->status ||
		    e->flags & SHIFT_ENTRY_LOST)
			break;
	}
	return seq;
}

/**
 * shift_ledger_pop() - take the oldest entry out if it is executed
 * @l: the ledger.
 * @seq: the entry; its slot keeps its contents until head has gone round the ring.
 *
 * Completions thus leave strictly in posting order.
 *
 * Return: false if the ledger is empty or its oldest entry is not executed.
 */
bool shift_ledger_pop(struct shift_ledger *l, u64 *seq)
{
	if (l->tail == l->head ||
	    shift_ledger_at(l, l->tail)->state != SHIFT_ENTRY_EXECUTED)
		return false;

	*seq = l->tail++;
	if (l->post < l->tail)
		l->post = l->tail;
	return true;
}

/*
 * The responder got @packets packets of @e, counted from its first.  -ENODATA if
 * it was executed and its answer is lost.
 */
static int entry_progress(struct shift_entry *e, u64 packets)
{
	if (packets < e->packets) {
		if (e->done < packets && !(e->flags & (SHIFT_ENTRY_WHOLE | SHIFT_ENTRY_AGAIN)))
			e->done = (u32)packets;
		return 0;
	}
	if (e->flags & SHIFT_ENTRY_AGAIN)
		return 0;
	if (e->flags & SHIFT_ENTRY_ONCE && e->state != SHIFT_ENTRY_EXECUTED) {
		e->flags |= SHIFT_ENTRY_LOST;
		e->done = e->packets;
		e->state = SHIFT_ENTRY_EXECUTED;
		return -ENODATA;
	}
	e->done = e->packets;
	e->state = SHIFT_ENTRY_EXECUTED;
	return 0;
}

/* Packets that an entry takes if it is sent now: a resumed operation sends only its rest. */
static u32 entry_rest(const struct shift_entry *e)
{
	return e->packets - e->done;
}

/* Packets of all entries. */
static u64 packets_posted(struct shift_ledger *l)
{
	u64 total = 0;
	u64 seq;

	for (seq = l->tail; seq != l->head; seq++)
		total += shift_ledger_at(l, seq)->packets;
	return total;
}

/* Packets that were sent on a later path. */
static u64 packets_sent(struct shift_ledger *l)
{
	u64 total = 0;
	u64 seq;

	for (seq = l->tail; seq != l->head; seq++)
		if (shift_ledger_at(l, seq)->state == SHIFT_ENTRY_SENT)
			total += entry_rest(shift_ledger_at(l, seq));
	return total;
}

/**
 * shift_ledger_is_unique() - does a packet number tell how much was executed?
 * @l: the ledger.
 * @packets: from the first outstanding packet to that number, modulo 2^24.
 * @sent: only the SENT entries were sent, as in shift_ledger_progress_sent().
 *
 * Return: false if so much is outstanding that 2^24 packets more may have been executed.
 */
bool shift_ledger_is_unique(struct shift_ledger *l, u64 packets, bool sent)
{
	return packets + SHIFT_PSN_MASK + 1 > (sent ? packets_sent(l) : packets_posted(l));
}

/**
 * shift_ledger_progress() - what the responder executed
 * @l: the ledger.
 * @packets: packets counted from the first one of the entry at tail.
 *
 * An operation without packets (a local one) counts as executed once a packet
 * behind it is.  Progress never goes backwards: a smaller number than an earlier one
 * changes nothing.  A READ without its completion is posted again.  That keeps the order
 * which verbs promise: an operation behind it may overtake it unless it has a fence, and
 * an operation with a fence was not sent yet.
 *
 * Return: 0; -ERANGE, and nothing changed, if that is more than was posted;
 * -ENODATA if an atomic was executed whose answer is lost.
 */
int shift_ledger_progress(struct shift_ledger *l, u64 packets)
{
	u64 seq;
	int ret = 0;

	if (packets > packets_posted(l))
		return -ERANGE;

	for (seq = l->tail; packets; seq++) {
		struct shift_entry *e = shift_ledger_at(l, seq);

		if (entry_progress(e, packets))
			ret = -ENODATA;
		packets -= packets < e->packets ? packets : e->packets;
	}
	return ret;
}

/**
 * shift_ledger_progress_sent() - what the responder executed on a later path
 * @l: the ledger.
 * @packets: packets counted from the first one that the oldest SENT entry sent there.
 *
 * Entries that are not SENT were not sent on that path.  Otherwise as shift_ledger_progress().
 *
 * Return: 0; -ERANGE, and nothing changed, if that is more than was sent;
 * -ENODATA if an atomic was executed whose answer is lost.
 */
int shift_ledger_progress_sent(struct shift_ledger *l, u64 packets)
{
	u64 seq;
	int ret = 0;

	if (packets > packets_sent(l))
		return -ERANGE;

	for (seq = l->tail; packets; seq++) {
		struct shift_entry *e = shift_ledger_at(l, seq);
		u64 part = entry_rest(e);

		if (e->state != SHIFT_ENTRY_SENT)
			continue;
		if (part > packets)
			part = packets;
		if (entry_progress(e, e->done + part))
			ret = -ENODATA;
		packets -= part;
	}
	return ret;
}

/**
 * shift_ledger_cut() - the operation that the fault interrupted
 * @l: the ledger.
 *
 * There is one at most.  READs that are posted again may stand in front of it.
 *
 * Return: the entry that is to be resumed in its middle; head if there is none.
 */
u64 shift_ledger_cut(struct shift_ledger *l)
{
	u64 seq;

	for (seq = l->tail; seq != l->head; seq++) {
		const struct shift_entry *e = shift_ledger_at(l, seq);

		if (e->state != SHIFT_ENTRY_EXECUTED && e->done)
			break;
	}
	return seq;
}

/**
 * shift_ledger_doubtful() - what would perhaps be executed twice if posted again
 * @l: the ledger.
 * @end: count entries before it that are not SENT, too, as it is not known which of them were sent.
 * @once: out: an atomic is among them.
 *
 * READs do not count: they may be executed twice.
 *
 * Return: the number of entries.
 */
u32 shift_ledger_doubtful(struct shift_ledger *l, u64 end, bool *once)
{
	u32 n = 0;
	u64 seq;

	*once = false;
	for (seq = l->tail; seq != l->head; seq++) {
		const struct shift_entry *e = shift_ledger_at(l, seq);

		if (e->state == SHIFT_ENTRY_EXECUTED || e->flags & SHIFT_ENTRY_AGAIN ||
		    (seq >= end && e->state != SHIFT_ENTRY_SENT))
			continue;
		n++;
		*once |= e->flags & SHIFT_ENTRY_ONCE;
	}
	return n;
}

/**
 * shift_ledger_seen() - completions that the default CQ already delivered
 * @l: the ledger.
 * @n: number of signaled entries (not SHIFT_ENTRY_SILENT) from tail; they, and
 *	the silent ones between them, were executed.
 *
 * Return: 0, or -ERANGE, and nothing changed, if there are fewer.
 */
int shift_ledger_seen(struct shift_ledger *l, u32 n)
{
	u64 end, seq;

	for (end = l->tail; n; end++) {
		if (end == l->head)
			return -ERANGE;
		if (!(shift_ledger_at(l, end)->flags & SHIFT_ENTRY_SILENT))
			n--;
	}

	for (seq = l->tail; seq != end; seq++) {
		struct shift_entry *e = shift_ledger_at(l, seq);

		e->state = SHIFT_ENTRY_EXECUTED;
		e->done = e->packets;
		e->flags |= SHIFT_ENTRY_SEEN;
	}
	return 0;
}

/**
 * shift_ledger_rewind() - all that was posted and not executed is to be posted
 * again
 * @l: the ledger.
 */
void shift_ledger_rewind(struct shift_ledger *l)
{
	u64 seq;

	for (seq = l->tail; seq != l->post; seq++) {
		struct shift_entry *e = shift_ledger_at(l, seq);

		if (e->state == SHIFT_ENTRY_SENT)
			e->state = SHIFT_ENTRY_OUT;
	}
	l->post = l->tail;
}
