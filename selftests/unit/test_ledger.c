// SPDX-License-Identifier: GPL-2.0
/* The ledger against a model that is too simple to be wrong. */
#include "pure/ledger.h"
#include "pure/wr.h"
#include "ktap.h"

#define SLOTS	16
#define SLOT	8
#define MODEL	4096	/* operations per round at most */

static struct shift_entry entries[SLOTS];
static u8 raw[SLOTS * SLOT];
static struct shift_ledger l;

static void fresh(u32 index)
{
	memset(entries, 0xff, sizeof(entries));
	shift_ledger_init(&l, entries, raw, SLOTS, SLOT);
	shift_ledger_start(&l, index);
}

static void empty_and_full(struct ktap *t)
{
	u64 seq;
	int i;

	fresh(13);
	EXPECT_EQ(t, shift_ledger_count(&l), 0);
	EXPECT_EQ(t, shift_ledger_slot(&l, l.head), 13);
	EXPECT(t, !shift_ledger_next(&l, &seq));
	EXPECT(t, !shift_ledger_pop(&l, &seq));
	EXPECT_EQ(t, shift_ledger_progress(&l, 0), 0);
	EXPECT_EQ(t, shift_ledger_progress(&l, 1), -ERANGE);
	EXPECT_EQ(t, shift_ledger_seen(&l, 0), 0);
	EXPECT_EQ(t, shift_ledger_seen(&l, 1), -ERANGE);
	EXPECT_EQ(t, shift_ledger_executed(&l, 13), -EINVAL);
	shift_ledger_sent(&l, 13, 1);
	EXPECT_EQ(t, l.post, 13);

	for (i = 0; i < SLOTS - 1; i++)
		EXPECT_EQ(t, shift_ledger_append(&l, 1, 0), 0);
	EXPECT_EQ(t, shift_ledger_append(&l, 1, 0), -ENOSPC);
	EXPECT_EQ(t, shift_ledger_count(&l), SLOTS - 1);
	EXPECT(t, shift_ledger_raw(&l, 13) == raw + 13 * SLOT);
	EXPECT(t, shift_ledger_raw(&l, 16) == raw);

	shift_ledger_start(&l, SLOTS + 3);	/* a mask is applied */
	EXPECT_EQ(t, l.head, 3);
	shift_ledger_start_at(&l, (1ull << 32) + SLOTS + 3);	/* and here it is not */
	EXPECT_EQ(t, l.head, (1ull << 32) + SLOTS + 3);
	EXPECT_EQ(t, shift_ledger_slot(&l, l.head), 3);
	EXPECT_EQ(t, shift_ledger_append(&l, 1, 0), 0);
	EXPECT(t, shift_ledger_next(&l, &seq) && seq == (1ull << 32) + SLOTS + 3);
}

/* what the responder's progress means for each kind of operation */
static void kinds(struct ktap *t)
{
	u64 seq;

	EXPECT_EQ(t, shift_ledger_kind(SHIFT_WR_RDMA_WRITE), 0);
	EXPECT_EQ(t, shift_ledger_kind(SHIFT_WR_RDMA_WRITE_WITH_IMM),
		  SHIFT_ENTRY_WHOLE | SHIFT_ENTRY_RECV);
	EXPECT_EQ(t, shift_ledger_kind(SHIFT_WR_SEND_WITH_IMM),
		  SHIFT_ENTRY_WHOLE | SHIFT_ENTRY_RECV);

	/* a READ is asked again, what was executed behind it is not */
	fresh(5);
	shift_ledger_append(&l, 2, 0);
	shift_ledger_append(&l, 4, shift_ledger_kind(SHIFT_WR_RDMA_READ));
	shift_ledger_append(&l, 3, shift_ledger_kind(SHIFT_WR_SEND));
	shift_ledger_append(&l, 3, shift_ledger_kind(SHIFT_WR_SEND));
	EXPECT_EQ(t, shift_ledger_progress(&l, 2 + 4 + 3 + 2), 0);
	EXPECT_EQ(t, shift_ledger_at(&l, 5)->state, SHIFT_ENTRY_EXECUTED);
	EXPECT_EQ(t, shift_ledger_at(&l, 6)->state, SHIFT_ENTRY_OUT);
	EXPECT_EQ(t, shift_ledger_at(&l, 6)->done, 0);
	EXPECT_EQ(t, shift_ledger_at(&l, 7)->state, SHIFT_ENTRY_EXECUTED);
	EXPECT_EQ(t, shift_ledger_at(&l, 8)->state, SHIFT_ENTRY_OUT);
	EXPECT_EQ(t, shift_ledger_at(&l, 8)->done, 0);	/* a SEND begins anew */
	EXPECT_EQ(t, shift_ledger_unfinished(&l), 6);
	EXPECT(t, shift_ledger_next(&l, &seq) && seq == 6);
	shift_ledger_sent(&l, 6, 1);
	EXPECT(t, shift_ledger_next(&l, &seq) && seq == 8);
	shift_ledger_sent(&l, 8, 1);
	EXPECT_EQ(t, shift_ledger_next_sent(&l, 5), 6);
	EXPECT_EQ(t, shift_ledger_next_sent(&l, 7), 8);
	EXPECT_EQ(t, shift_ledger_next_sent(&l, 9), 9);
	EXPECT_EQ(t, shift_ledger_executed(&l, 6), 0);
	EXPECT_EQ(t, shift_ledger_unfinished(&l), 8);

	/* an atomic that was executed cannot be asked again; one that was not, can */
	fresh(0);
	shift_ledger_append(&l, 1, 0);
	shift_ledger_append(&l, 1, shift_ledger_kind(SHIFT_WR_ATOMIC_FETCH_AND_ADD));
	shift_ledger_append(&l, 1, shift_ledger_kind(SHIFT_WR_ATOMIC_CMP_AND_SWP));
	EXPECT_EQ(t, shift_ledger_progress(&l, 1), 0);
	EXPECT_EQ(t, shift_ledger_unfinished(&l), 1);
	EXPECT_EQ(t, shift_ledger_progress(&l, 2), -ENODATA);
	EXPECT_EQ(t, shift_ledger_unfinished(&l), 1);	/* its error begins there */
	EXPECT_EQ(t, shift_ledger_at(&l, 2)->state, SHIFT_ENTRY_OUT);
}

static void post_all(u8 path)
{
	u64 seq;

	while (shift_ledger_next(&l, &seq))
		shift_ledger_sent(&l, seq, path);
}

/* a second path: only what was sent there counts, and a resumed one only its rest */
static void second_path(struct ktap *t)
{
	fresh(3);
	shift_ledger_append(&l, 4, shift_ledger_kind(SHIFT_WR_RDMA_READ));	/* 3 */
	shift_ledger_append(&l, 2, shift_ledger_kind(SHIFT_WR_SEND));		/* 4 */
	shift_ledger_append(&l, 5, 0);						/* 5 */
	shift_ledger_append(&l, 3, shift_ledger_kind(SHIFT_WR_SEND));		/* 6 */
	shift_ledger_append(&l, 1, shift_ledger_kind(SHIFT_WR_ATOMIC_FETCH_AND_ADD));
	EXPECT_EQ(t, shift_ledger_progress_sent(&l, 1), -ERANGE);	/* none was sent */

	/* the first path: READ and SEND executed, the WRITE up to its third packet */
	EXPECT_EQ(t, shift_ledger_cut(&l), l.head);
	EXPECT_EQ(t, shift_ledger_progress(&l, 4 + 2 + 2), 0);
	EXPECT_EQ(t, shift_ledger_cut(&l), 5);		/* behind a READ */
	post_all(1);
	EXPECT_EQ(t, shift_ledger_progress_sent(&l, 4 + 3 + 3 + 1 + 1), -ERANGE);

	/* the READ again, one more packet of the WRITE */
	EXPECT_EQ(t, shift_ledger_progress_sent(&l, 4 + 1), 0);
	EXPECT_EQ(t, shift_ledger_at(&l, 3)->state, SHIFT_ENTRY_SENT);
	EXPECT_EQ(t, shift_ledger_at(&l, 5)->done, 3);
	shift_ledger_rewind(&l);
	post_all(2);
	EXPECT_EQ(t, shift_ledger_executed(&l, 3), 0);

	/* the rest of the WRITE, and two thirds of the SEND, which has no middle */
	EXPECT_EQ(t, shift_ledger_progress_sent(&l, 2 + 2), 0);
	EXPECT_EQ(t, shift_ledger_at(&l, 5)->state, SHIFT_ENTRY_EXECUTED);
	EXPECT_EQ(t, shift_ledger_cut(&l), l.head);
	EXPECT_EQ(t, shift_ledger_at(&l, 6)->state, SHIFT_ENTRY_SENT);
	EXPECT_EQ(t, shift_ledger_at(&l, 6)->done, 0);
	EXPECT_EQ(t, shift_ledger_progress_sent(&l, 3 + 1), -ENODATA);
	EXPECT_EQ(t, shift_ledger_unfinished(&l), 7);
}

#define FENCED	SHIFT_ENTRY_FENCED

/* the next one to post; -1: none, or a fence holds it */
static int next(void)
{
	u64 seq;

	return shift_ledger_next(&l, &seq) ? (int)seq : -1;
}

/* a fence waits for the answers due to what is in front of it, and for nothing else */
static void fences(struct ktap *t)
{
	const u8 read = shift_ledger_kind(SHIFT_WR_RDMA_READ);
	const u8 atomic = shift_ledger_kind(SHIFT_WR_ATOMIC_CMP_AND_SWP);

	/* no kind of operation has one by itself */
	EXPECT(t, !((read | atomic | shift_ledger_kind(SHIFT_WR_SEND)) & FENCED));

	/* WRITEs are not waited for, nor what is behind it, nor a fenced READ for itself */
	fresh(12);
	EXPECT(t, !shift_ledger_unanswered(&l, 12));
	shift_ledger_append(&l, 2, 0);			/* 12 */
	shift_ledger_append(&l, 2, read | FENCED);	/* 13 */
	shift_ledger_append(&l, 2, read);		/* 14 */
	EXPECT(t, !shift_ledger_unanswered(&l, 13));
	EXPECT(t, shift_ledger_unanswered(&l, 14));
	EXPECT(t, shift_ledger_unanswered(&l, 15));
	EXPECT(t, shift_ledger_unanswered(&l, 99));	/* no such entry: all of them */
	post_all(1);
	EXPECT_EQ(t, l.post, l.head);

	/* a READ in front, an atomic in front; an operation without a fence passes both */
	fresh(14);
	shift_ledger_append(&l, 4, read);		/* 14 */
	shift_ledger_append(&l, 1, 0);			/* 15 */
	shift_ledger_append(&l, 1, atomic);		/* 16 */
	shift_ledger_append(&l, 3, FENCED);		/* 17 */
	shift_ledger_append(&l, 1, 0);			/* 18: behind it, so it waits, too */
	shift_ledger_append(&l, 4, read);		/* 19 */
	post_all(1);
	EXPECT_EQ(t, l.post, 17);
	shift_ledger_sent(&l, 18, 1);			/* out of turn */
	EXPECT_EQ(t, shift_ledger_at(&l, 18)->state, SHIFT_ENTRY_OUT);
	EXPECT_EQ(t, shift_ledger_executed(&l, 15), 0);	/* no answer to anything */
	EXPECT_EQ(t, next(), -1);
	EXPECT_EQ(t, shift_ledger_executed(&l, 14), 0);
	EXPECT_EQ(t, next(), -1);			/* the atomic's is due */
	EXPECT_EQ(t, shift_ledger_executed(&l, 16), 0);
	EXPECT_EQ(t, next(), 17);			/* at once, not when something is posted */
	post_all(1);
	EXPECT_EQ(t, l.post, l.head);			/* the READ behind it went with it */
	EXPECT(t, !shift_ledger_unanswered(&l, 19));
	EXPECT(t, shift_ledger_unanswered(&l, 20));

	/* a switch: the READ is asked again, and is to be waited for again */
	fresh(0);
	shift_ledger_append(&l, 4, read);
	shift_ledger_append(&l, 1, 0);
	shift_ledger_append(&l, 1, read | FENCED);
	post_all(1);
	EXPECT_EQ(t, l.post, 2);
	EXPECT_EQ(t, shift_ledger_progress_sent(&l, 5), 0);	/* executed: no answer yet */
	EXPECT_EQ(t, next(), -1);
	shift_ledger_rewind(&l);
	EXPECT_EQ(t, next(), 0);
	post_all(2);
	EXPECT_EQ(t, l.post, 2);
	EXPECT_EQ(t, shift_ledger_executed(&l, 0), 0);
	EXPECT_EQ(t, next(), 2);
	/* what was answered stays so, shown to the application or not */
	post_all(2);
	shift_ledger_rewind(&l);
	EXPECT_EQ(t, next(), 2);
	shift_ledger_append(&l, 1, FENCED);		/* 3 */
	post_all(3);
	EXPECT_EQ(t, l.post, 3);
	EXPECT_EQ(t, shift_ledger_executed(&l, 2), 0);
	EXPECT_EQ(t, next(), 3);

	/* completed by the default CQ already: nothing is due */
	fresh(3);
	shift_ledger_append(&l, 4, read | SHIFT_ENTRY_SILENT);
	shift_ledger_append(&l, 1, 0);
	shift_ledger_append(&l, 1, FENCED);
	EXPECT_EQ(t, shift_ledger_seen(&l, 1), 0);
	EXPECT_EQ(t, next(), 5);

	/* nor does what is not there yet count as answered */
	fresh(7);
	shift_ledger_append(&l, 1, 0);
	EXPECT(t, !shift_ledger_unanswered(&l, 99));
	shift_ledger_append(&l, 1, read);
	EXPECT(t, shift_ledger_unanswered(&l, 9));

	/* a ledger that starts anew knows nothing of the one before */
	fresh(7);
	shift_ledger_append(&l, 1, 0);
	EXPECT(t, !shift_ledger_unanswered(&l, 8));
	shift_ledger_start(&l, 2);
	shift_ledger_append(&l, 1, read);
	shift_ledger_append(&l, 1, FENCED);
	post_all(1);
	EXPECT_EQ(t, l.post, 3);
}

/* a responder that cannot be asked: what may have been executed */
static void doubt(struct ktap *t)
{
	bool once;

	fresh(9);
	EXPECT_EQ(t, shift_ledger_doubtful(&l, l.head, &once), 0);
	EXPECT(t, !once);
	shift_ledger_append(&l, 4, 0);
	shift_ledger_append(&l, 3, SHIFT_ENTRY_AGAIN);
	shift_ledger_append(&l, 1, SHIFT_ENTRY_WHOLE | SHIFT_ENTRY_RECV);
	shift_ledger_append(&l, 1, SHIFT_ENTRY_ONCE);
	EXPECT_EQ(t, shift_ledger_doubtful(&l, l.head, &once), 3);
	EXPECT(t, once);
	/* nor what was posted after the fence */
	EXPECT_EQ(t, shift_ledger_doubtful(&l, 12, &once), 2);
	EXPECT(t, !once);
	/* on a later path only what is SENT */
	EXPECT_EQ(t, shift_ledger_doubtful(&l, 0, &once), 0);
	EXPECT(t, !once);
	shift_ledger_sent(&l, 9, 1);
	shift_ledger_sent(&l, 10, 1);
	EXPECT_EQ(t, shift_ledger_doubtful(&l, 0, &once), 1);
	shift_ledger_sent(&l, 11, 1);
	shift_ledger_sent(&l, 12, 1);
	EXPECT_EQ(t, shift_ledger_doubtful(&l, 0, &once), 3);
	EXPECT(t, once);
	EXPECT_EQ(t, shift_ledger_executed(&l, 9), 0);
	EXPECT_EQ(t, shift_ledger_executed(&l, 12), 0);
	EXPECT_EQ(t, shift_ledger_doubtful(&l, 0, &once), 1);
	EXPECT_EQ(t, shift_ledger_doubtful(&l, l.head, &once), 1);
	EXPECT(t, !once);
	EXPECT_EQ(t, shift_ledger_executed(&l, 11), 0);
	/* a READ is left: no doubt */
	EXPECT_EQ(t, shift_ledger_doubtful(&l, l.head, &once), 0);
}

static void local_operations_follow_their_successors(struct ktap *t)
{
	u64 seq;

	fresh(0);
	shift_ledger_append(&l, 0, 0);	/* 0: local */
	shift_ledger_append(&l, 2, 0);	/* 1 */
	shift_ledger_append(&l, 0, 0);	/* 2: local */
	shift_ledger_append(&l, 0, 0);	/* 3: local */
	shift_ledger_append(&l, 3, 0);	/* 4 */

	EXPECT_EQ(t, shift_ledger_progress(&l, 0), 0);
	EXPECT(t, !shift_ledger_pop(&l, &seq));
	EXPECT_EQ(t, shift_ledger_progress(&l, 1), 0);
	EXPECT_EQ(t, entries[0].state, SHIFT_ENTRY_EXECUTED);
	EXPECT_EQ(t, entries[1].state, SHIFT_ENTRY_OUT);
	EXPECT_EQ(t, entries[1].done, 1);
	EXPECT_EQ(t, shift_ledger_progress(&l, 2), 0);
	EXPECT_EQ(t, entries[1].state, SHIFT_ENTRY_EXECUTED);
	EXPECT_EQ(t, entries[2].state, SHIFT_ENTRY_OUT);	/* nobody knows */
	EXPECT_EQ(t, shift_ledger_progress(&l, 4), 0);
	EXPECT_EQ(t, entries[3].state, SHIFT_ENTRY_EXECUTED);
	EXPECT_EQ(t, entries[4].done, 2);
	EXPECT_EQ(t, shift_ledger_progress(&l, 3), 0);		/* older news */
	EXPECT_EQ(t, entries[4].done, 2);
	EXPECT_EQ(t, shift_ledger_progress(&l, 6), -ERANGE);
	EXPECT_EQ(t, entries[4].state, SHIFT_ENTRY_OUT);
	EXPECT_EQ(t, shift_ledger_progress(&l, 5), 0);
	EXPECT_EQ(t, entries[4].state, SHIFT_ENTRY_EXECUTED);
	EXPECT(t, !shift_ledger_next(&l, &seq));
}

/* packets of all entries may pass 32 bits */
static void progress_in_64_bits(struct ktap *t)
{
	int i;

	fresh(0);
	for (i = 0; i < 4; i++)
		shift_ledger_append(&l, 0x80000000u, 0);
	EXPECT_EQ(t, shift_ledger_progress(&l, 0x180000001ull), 0);
	EXPECT_EQ(t, entries[2].state, SHIFT_ENTRY_EXECUTED);
	EXPECT_EQ(t, entries[3].done, 1);
	EXPECT_EQ(t, shift_ledger_progress(&l, 0x200000001ull), -ERANGE);
}

/* a packet number has 24 bits: with a whole round outstanding it may stand for two places */
static void one_round_is_ambiguous(struct ktap *t)
{
	const u32 round = 1u << 24;

	fresh(2);
	EXPECT(t, shift_ledger_is_unique(&l, 0, false));
	EXPECT(t, shift_ledger_is_unique(&l, 0, true));
	shift_ledger_append(&l, round - 5, 0);
	shift_ledger_append(&l, 4, SHIFT_ENTRY_WHOLE);
	EXPECT(t, shift_ledger_is_unique(&l, 0, false));
	EXPECT(t, shift_ledger_is_unique(&l, round - 1, false));
	shift_ledger_append(&l, 3, 0);			/* round + 2 in all */
	EXPECT(t, !shift_ledger_is_unique(&l, 0, false));
	EXPECT(t, !shift_ledger_is_unique(&l, 2, false));
	EXPECT(t, shift_ledger_is_unique(&l, 3, false));
	EXPECT(t, shift_ledger_is_unique(&l, round - 1, false));

	/* on a later path only what was sent there counts, and of that the rest */
	EXPECT(t, shift_ledger_is_unique(&l, 0, true));
	EXPECT_EQ(t, shift_ledger_progress(&l, 2), 0);
	post_all(1);
	EXPECT(t, !shift_ledger_is_unique(&l, 0, true));
	EXPECT(t, shift_ledger_is_unique(&l, 1, true));
	EXPECT_EQ(t, shift_ledger_executed(&l, 2), 0);
	EXPECT(t, shift_ledger_is_unique(&l, 0, true));
}

/* the model: every operation ever, no ring, no positions but two counters */
static struct {
	u8 state, flags, path;
	bool seen;
	u32 packets, done;
} op[MODEL];
static u32 first, last;		/* outstanding: [first, last) */

static u32 fences_held;		/* how often one was found waiting */

static bool posted_before(u32 n)	/* nothing OUT in front of it */
{
	u32 i;

	for (i = first; i < n; i++)
		if (op[i].state == SHIFT_ENTRY_OUT)
			return false;
	return true;
}

static void model_progress(struct ktap *t, struct rnd *r, u64 base)
{
	u64 total = 0, want, left;
	u32 i, j;

	(void)base;
	for (i = first; i < last; i++)
		total += op[i].packets;
	want = rnd_one_in(r, 8) ? total + 1 + rnd_below(r, 3) :
				  rnd_below(r, (u32)total + 1);
	EXPECT_EQ(t, shift_ledger_progress(&l, want), want > total ? -ERANGE : 0);
	if (want > total)
		return;

	left = want;
	for (i = first; i < last; i++) {
		u64 later = 0;

		/* asked again, whatever the responder has done */
		if (op[i].flags & SHIFT_ENTRY_AGAIN) {
			left -= left < op[i].packets ? left : op[i].packets;
			continue;
		}
		/* executed if all its packets are, and one behind it if it has none */
		if (op[i].packets) {
			if (left >= op[i].packets) {
				op[i].state = SHIFT_ENTRY_EXECUTED;
				op[i].done = op[i].packets;
				left -= op[i].packets;
			} else {
				if (op[i].done < left)
					op[i].done = (u32)left;
				left = 0;
			}
			continue;
		}
		for (j = i + 1; j < last; j++)
			later += op[j].packets;
		if (left && later)
			op[i].state = SHIFT_ENTRY_EXECUTED;
	}
}

static void model_seen(struct ktap *t, struct rnd *r)
{
	u32 signaled = 0, n, i;

	for (i = first; i < last; i++)
		signaled += !(op[i].flags & SHIFT_ENTRY_SILENT);
	n = rnd_below(r, signaled + 2);
	EXPECT_EQ(t, shift_ledger_seen(&l, n), n > signaled ? -ERANGE : 0);
	if (n > signaled)
		return;
	for (i = first; n; i++) {
		op[i].state = SHIFT_ENTRY_EXECUTED;
		op[i].done = op[i].packets;
		op[i].seen = true;
		n -= !(op[i].flags & SHIFT_ENTRY_SILENT);
	}
}

static void model_post(struct ktap *t, struct rnd *r, u64 base)
{
	u64 seq = 0;
	u32 i, n, want;
	bool held = false;

	for (want = first; want < last; want++)
		if (op[want].state == SHIFT_ENTRY_OUT)
			break;
	for (i = first; i < want && want < last && op[want].flags & FENCED; i++)
		held |= op[i].flags & SHIFT_ENTRY_AGAIN && op[i].state != SHIFT_ENTRY_EXECUTED;
	fences_held += held;
	if (!EXPECT_EQ(t, shift_ledger_next(&l, &seq), want < last && !held) ||
	    want == last || held)
		return;
	n = (u32)(seq - base);
	EXPECT_EQ(t, n, want);
	if (rnd_one_in(r, 10))
		return;			/* the post failed: it stays next */
	op[n].path = (u8)rnd_below(r, 3);
	shift_ledger_sent(&l, seq, op[n].path);
	op[n].state = SHIFT_ENTRY_SENT;
	/* out of turn: refused */
	shift_ledger_sent(&l, seq, 9);
	shift_ledger_sent(&l, seq + 7, 9);
}

static void compare(struct ktap *t, u64 base)
{
	u32 i;

	EXPECT(t, l.tail == base + first && l.head == base + last);
	EXPECT(t, l.tail <= l.post && l.post <= l.head);
	EXPECT(t, l.head - l.tail <= SLOTS - 1);
	for (i = first; i < last; i++) {
		const struct shift_entry *e = shift_ledger_at(&l, base + i);
		bool done = op[i].state == SHIFT_ENTRY_EXECUTED;

		EXPECT(t, e->state == op[i].state);
		EXPECT(t, e->packets == op[i].packets && e->done == op[i].done);
		EXPECT(t, !!(e->flags & SHIFT_ENTRY_SEEN) == op[i].seen);
		EXPECT(t, (e->flags & ~SHIFT_ENTRY_SEEN) == op[i].flags);
		EXPECT(t, op[i].state != SHIFT_ENTRY_SENT || e->path == op[i].path);
		EXPECT(t, base + i < l.post ? op[i].state != SHIFT_ENTRY_OUT :
					      op[i].state != SHIFT_ENTRY_SENT);
		EXPECT(t, !done || e->done == e->packets);
		if (base + i < l.post)
			EXPECT(t, posted_before(i));
	}
}

static void against_the_model(struct ktap *t)
{
	struct rnd r = { .state = 4 };
	int round, step;
	u64 base, seq;
	u32 n;

	fences_held = 0;
	for (round = 0; round < 200; round++) {
		base = rnd_below(&r, SLOTS);
		fresh((u32)base);
		memset(op, 0, sizeof(op));
		first = last = 0;

		for (step = 0; step < 400 && last < MODEL; step++) {
			switch (rnd_below(&r, 12)) {
			case 0: case 1: case 2:
				n = rnd_one_in(&r, 4) ? 0 : rnd_below(&r, 5);
				op[last].packets = n;
				op[last].flags = (u8)rnd_below(&r, 2);
				if (rnd_one_in(&r, 4)) {
					op[last].flags |= SHIFT_ENTRY_AGAIN;
					n++;	/* a READ has a packet at least */
					op[last].packets = n;
				}
				if (rnd_one_in(&r, 4))
					op[last].flags |= FENCED;
				op[last].done = 0;
				op[last].state = SHIFT_ENTRY_OUT;
				op[last].seen = false;
				if (last - first == SLOTS - 1) {
					EXPECT_EQ(t, shift_ledger_append(&l, n, 0),
						  -ENOSPC);
					break;
				}
				EXPECT_EQ(t, shift_ledger_append(&l, n,
							op[last].flags), 0);
				last++;
				break;
			case 3: case 4: case 5:
				model_post(t, &r, base);
				break;
			case 6: case 7:		/* any number, outstanding or not */
				n = first + rnd_below(&r, SLOTS + 2);
				if (n >= last || op[n].state != SHIFT_ENTRY_SENT) {
					EXPECT_EQ(t, shift_ledger_executed(&l, base + n),
						  -EINVAL);
					break;
				}
				EXPECT_EQ(t, shift_ledger_executed(&l, base + n), 0);
				op[n].state = SHIFT_ENTRY_EXECUTED;
				op[n].done = op[n].packets;
				break;
			case 8: case 9:
				if (first < last &&
				    op[first].state == SHIFT_ENTRY_EXECUTED) {
					EXPECT(t, shift_ledger_pop(&l, &seq) &&
						  seq == base + first);
					first++;
				} else {
					EXPECT(t, !shift_ledger_pop(&l, &seq));
				}
				break;
			case 10:
				if (rnd_one_in(&r, 3))
					model_progress(t, &r, base);
				else if (rnd_one_in(&r, 3))
					model_seen(t, &r);
				break;
			case 11:
				if (!rnd_one_in(&r, 4))
					break;
				shift_ledger_rewind(&l);
				for (n = first; n < last; n++)
					if (op[n].state == SHIFT_ENTRY_SENT)
						op[n].state = SHIFT_ENTRY_OUT;
				break;
			}
			compare(t, base);
			if (t->failed)
				return;
		}
		ktap_breathe();
	}
	EXPECT(t, fences_held > 100);
}

static const struct ktap_case cases[] = {
	KTAP_CASE(empty_and_full),
	KTAP_CASE(kinds),
	KTAP_CASE(second_path),
	KTAP_CASE(fences),
	KTAP_CASE(doubt),
	KTAP_CASE(local_operations_follow_their_successors),
	KTAP_CASE(progress_in_64_bits),
	KTAP_CASE(one_round_is_ambiguous),
	KTAP_CASE(against_the_model),
};

KTAP_SUITE(ledger, cases);
