/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The verifier's way to kmod/pure/ledger.c, which it is linked with: the record of a
 * direction's operations, kept in the state vector (lives.pml).  And the truth: what
 * the responder did, packet for packet.  RECORD_* are lives.pml's.
 */
#ifndef MODEL_RECORD_H
#define MODEL_RECORD_H

#include "pure/ledger.h"
#include "pure/psn.h"

enum {
	WRITE	= SHIFT_WR_RDMA_WRITE,
	IMM	= SHIFT_WR_RDMA_WRITE_WITH_IMM,
	SEND	= SHIFT_WR_SEND,
	READ	= SHIFT_WR_RDMA_READ,
	ATOMIC	= SHIFT_WR_ATOMIC_FETCH_AND_ADD,
};

/* what went wrong; lives.pml has the same numbers */
enum { FINE, TWICE, EARLY, DISORDER, WRONG_RECEIVE, ANSWER_LOST };

/* of the operations of a direction, by number */
static const u8 record_kinds[] = { RECORD_KINDS };

static struct shift_entry record_entries[8];
static struct shift_ledger record_ledger = { .entry = record_entries, .slots = 8 };

static u32 record_packets(int k)
{
	return shift_wr_packets(record_kinds[k], RECORD_PKTS, 1);
}

static u8 record_flags(int k)
{
	return shift_ledger_kind(record_kinds[k]) & ~(RECORD_BLIND);
}

static bool record_receives(int k)
{
	return record_flags(k) & SHIFT_ENTRY_RECV;
}

static struct shift_ledger *record_load(int d)
{
	struct shift_ledger *l = &record_ledger;
	int k;

	l->tail = now.tail[d];
	l->post = now.post[d];
	l->head = now.head[d];
	l->answered = l->tail;	/* not kept: no operation here is fenced */
	for (k = l->tail; k < l->head; k++)
		l->entry[k] = (struct shift_entry) {
			.state = now.est[d * RECORD_OPS + k],
			.flags = record_flags(k),
			.packets = record_packets(k),
			.done = now.edone[d * RECORD_OPS + k],
		};
	return l;
}

static void record_store(int d, struct shift_ledger *l)
{
	int k;

	now.tail[d] = l->tail;
	now.post[d] = l->post;
	now.head[d] = l->head;
	for (k = 0; k < RECORD_OPS; k++) {
		bool here = k >= l->tail && k < l->head;

		now.est[d * RECORD_OPS + k] = here ? l->entry[k].state : 0;
		now.edone[d * RECORD_OPS + k] = here ? l->entry[k].done : 0;
	}
}

/* where an operation goes on: what the work request that is posted says */
static u32 record_resume(const struct shift_entry *e)
{
	return e->done ? e->done + RECORD_SKEW : 0;
}

/* Post on a kernel's QP all that is to be posted. */
static void record_pump(int d, int path)
{
	struct shift_ledger *l = record_load(d);
	u64 seq;

	while (shift_ledger_next(l, &seq)) {
		struct shift_entry *e = shift_ledger_at(l, seq);

		now.from[d * RECORD_OPS + seq] = 1 + record_resume(e);
		now.snum[RECORD_QP(d, path)] += e->packets - e->done;
		shift_ledger_sent(l, seq, path);
	}
	record_store(d, l);
}

/* The application posts an operation. */
static void record_post(int d, int path)
{
	struct shift_ledger *l = record_load(d);
	int k = now.head[d];

	shift_ledger_append(l, record_packets(k), record_flags(k));
	record_store(d, l);
	if (path) {
		record_pump(d, path);
	} else {
		now.from[d * RECORD_OPS + k] = 1;
		now.snum[RECORD_QP(d, 0)] += record_packets(k);
	}
}

/* The operation, and its packet, that packet @n of an arming is; RECORD_OPS: there is none. */
static int record_at(int d, int n, int *packet)
{
	int k, rest;

	for (k = 0; k < RECORD_OPS; k++) {
		if (!now.from[d * RECORD_OPS + k])
			continue;
		*packet = now.from[d * RECORD_OPS + k] - 1;
		rest = record_packets(k) - *packet;
		if (n < rest) {
			*packet += n;
			return k;
		}
		n -= rest;
	}
	return RECORD_OPS;
}

static int record_op(int d, int n)
{
	int packet;

	return record_at(d, n, &packet);
}

/* The operation that the responder on a path is to execute next. */
static int record_next(int d, int path)
{
	return record_op(d, now.rexp[RECORD_QP(1 - d, path)]);
}

/* Is packet @n the first one of an operation that was sent in the arming? */
static bool record_begins(int d, int n)
{
	return !n || record_op(d, n) != record_op(d, n - 1);
}

/* The responder on a path executes its next packet. */
static int record_truth(int d, int path)
{
	int qp = RECORD_QP(1 - d, path);
	int packet, m, first = 0, k = record_at(d, now.rexp[qp], &packet);
	u8 *done, *part;

	if (k == RECORD_OPS)
		return TWICE;
	for (m = 0; m < k; m++) {
		if (!now.tdone[d * RECORD_OPS + m])
			return DISORDER;
		first += record_receives(m);
	}
	done = &now.tdone[d * RECORD_OPS + k];
	part = &now.texec[d * RECORD_OPS + k];
	if (record_kinds[k] == READ) {	/* one request; it may be asked again */
		now.rexp[qp] += record_packets(k);
		*done = 1;
		return packet ? DISORDER : FINE;
	}
	if (*done)
		return TWICE;
	/* what takes a receive is told when it is whole: until then it may begin again */
	if (record_receives(k) && record_begins(d, now.rexp[qp])) {
		if (packet)
			return DISORDER;	/* a message without its beginning */
		*part = 0;
	}
	if (packet != *part)
		return packet < *part ? TWICE : DISORDER;
	now.rexp[qp]++;
	++*part;
	if (*part < record_packets(k))
		return FINE;
	*done = 1;
	*part = 0;
	if (!record_receives(k))
		return FINE;
	return now.recvs[1 - d]++ == first ? FINE : WRONG_RECEIVE;
}

/* A SEND that the responder @n has begun and not finished: its receive is posted again. */
static void record_recv_rewind(int n)
{
	int k, d = 1 - n;

	for (k = 0; RECORD_RECV_LOST && k < RECORD_OPS; k++)
		now.recvs[n] += record_kinds[k] == SEND && now.texec[d * RECORD_OPS + k];
}

/* Success may be shown: it was executed, and its answer is there if it has one. */
static bool record_is_done(int d, int k)
{
	if (!now.tdone[d * RECORD_OPS + k])
		return false;
	return (record_kinds[k] != READ && record_kinds[k] != ATOMIC) ||
	       now.answered[d * RECORD_OPS + k];
}

/* What was executed leaves in order. */
static int record_deliver(int d, struct shift_ledger *l)
{
	int bad = FINE;
	u64 seq;

	while (shift_ledger_pop(l, &seq))
		if (!record_is_done(d, seq))
			bad = EARLY;
	record_store(d, l);
	return bad;
}

/* Is an atomic under way? */
static bool record_once(int d, int path)
{
	bool once;

	shift_ledger_doubtful(record_load(d), path ? 0 : ~0ull, &once);
	return once;
}

/* The completion of the oldest operation under way. */
static int record_complete(int d, int path)
{
	struct shift_ledger *l = record_load(d);
	u64 seq = path ? shift_ledger_next_sent(l, l->tail) : l->tail;
	struct shift_entry *e = shift_ledger_at(l, seq);
	u32 rest = e->packets - e->done;

	if (seq == l->head)
		return FINE;
	if (!path)
		e->state = SHIFT_ENTRY_SENT;	/* no ledger yet */
	if (!shift_ledger_executed(l, seq))
		now.sentn[d] += rest;
	return record_deliver(d, l);
}

/* One packet more was acknowledged: the last one of an operation completes it. */
static int record_acked(int d, int path)
{
	int n = now.sack[RECORD_QP(d, path)];

	if (!record_begins(d, n))
		return FINE;
	now.answered[d * RECORD_OPS + record_op(d, n - 1)] = 1;
	return record_complete(d, path);
}

/* The responder executed @packets in the arming that the operations went to. */
static int record_progress(int d, int packets)
{
	struct shift_ledger *l = record_load(d);
	int err = 0;

	if (packets >= 0)
		err = now.sentp[d] ? shift_ledger_progress_sent(l, packets) :
				     shift_ledger_progress(l, packets);
	if (err == -ENODATA)
		return ANSWER_LOST;
	if (err)
		return TWICE;
	shift_ledger_rewind(l);
	record_store(d, l);
	return FINE;
}

/* Both ends are ready: complete what was executed, post the rest. */
static int record_open(int d, int path)
{
	int k, bad = record_deliver(d, record_load(d));

	for (k = 0; k < RECORD_OPS; k++)
		now.from[d * RECORD_OPS + k] = 0;
	record_pump(d, path);
	return bad;
}

#endif /* MODEL_RECORD_H */
