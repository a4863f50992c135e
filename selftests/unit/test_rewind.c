// SPDX-License-Identifier: GPL-2.0
/*
 * The rewind of rxe's send ring against a small rxe: provider, requester,
 * completer and the flush of an errored QP, as rdma-core 56 and Linux 6.1 and
 * 6.12 do them.
 */
#include <rdma/rdma_user_rxe.h>
#include "provider/rxe/wqe.h"
#include "pure/psn.h"
#include "ktap.h"

#define MAX_SLOTS	16
#define SLOT_SIZE	512
#define MTU		256
#define UNSENT		SHIFT_RXE_UNSENT

enum { POSTED, PROCESSING, PENDING, DONE, ERROR };	/* wqe_state_* */
enum { RETRY_EXC = 12, LOC_QP_OP = 2, FLUSH = 5, LOC_PROT = 4 };

static struct {
	union {
		struct rxe_send_wqe wqe;
		u8 bytes[SLOT_SIZE];
	} slot[MAX_SLOTS];
	u32 slots;
	u32 producer, consumer;
	u32 req_index;			/* next to send */
	u32 req_psn;
	bool error;
	/* truth */
	u32 psn_of[MAX_SLOTS];		/* first PSN of what is in the slot */
	u64 posted, completed;		/* in all */
	u64 failed;			/* posted number of what broke the QP */
	u32 acked;			/* consumer before the error */
	u32 next_psn;			/* of the next post */
	bool soiled;			/* slots behind the producer were written */
} nic;
static struct shift_rxe_view view;
static struct rnd rnd;

static struct rxe_send_wqe *at(u32 index)
{
	return &nic.slot[index & (nic.slots - 1)].wqe;
}

/* RESET .. RTS: zeroed slots, indices where they were */
static void rts(u32 slots)
{
	memset(&nic, 0, sizeof(nic));
	nic.slots = slots;
	nic.producer = rnd_below(&rnd, slots);
	nic.consumer = nic.producer;
	nic.req_index = nic.producer;
	nic.req_psn = rnd_one_in(&rnd, 2) ? rnd_below(&rnd, 1u << 24) :
					    0xffffffu - rnd_below(&rnd, 40);
	nic.next_psn = nic.req_psn;

	memset(&view, 0, sizeof(view));
	view.ring = nic.slot;
	view.slots = slots;
	view.slot_size = SLOT_SIZE;
	view.start_psn = nic.req_psn;
	at(nic.consumer - 1)->first_psn = SHIFT_RXE_START;
	view.mtu = MTU;
}

/* what the provider writes, by either of its two interfaces */
static void build(struct rxe_send_wqe *wqe, bool clear)
{
	static const u8 ops[] = {
		SHIFT_WR_RDMA_WRITE, SHIFT_WR_SEND, SHIFT_WR_RDMA_READ,
		SHIFT_WR_RDMA_WRITE_WITH_IMM, SHIFT_WR_ATOMIC_FETCH_AND_ADD,
		SHIFT_WR_LOCAL_INV,
	};

	if (clear)
		memset(wqe, 0, sizeof(*wqe));
	wqe->wr.opcode = ops[rnd_below(&rnd, sizeof(ops))];
	wqe->dma.length = wqe->wr.opcode == SHIFT_WR_ATOMIC_FETCH_AND_ADD ? 8 :
			  rnd_one_in(&rnd, 4) ? 0 : rnd_below(&rnd, 5 * MTU);
	wqe->dma.resid = wqe->dma.length;
	wqe->state = POSTED;
	wqe->first_psn = UNSENT;	/* and what else there was stays */
}

static u32 packets(const struct rxe_send_wqe *wqe)
{
	return shift_wr_packets(wqe->wr.opcode, wqe->dma.length, MTU);
}

static bool post(void)
{
	if (((nic.producer + 1) & (nic.slots - 1)) == nic.consumer) {
		/* ibv_post_send() refuses only after it has written */
		build(at(nic.producer), false);
		nic.soiled = true;
		return false;
	}
	build(at(nic.producer), rnd_one_in(&rnd, 2));
	nic.psn_of[nic.producer] = nic.next_psn;
	nic.next_psn = shift_psn_add(nic.next_psn, packets(at(nic.producer)));
	nic.producer = (nic.producer + 1) & (nic.slots - 1);
	nic.posted++;
	return true;
}

/* ibv_wr_start(), some builders, ibv_wr_abort() */
static void post_and_abort(void)
{
	u32 n, index = nic.producer;

	for (n = rnd_below(&rnd, nic.slots); n; n--) {
		if (((index + 1) & (nic.slots - 1)) == nic.consumer)
			break;
		build(at(index), true);
		index = (index + 1) & (nic.slots - 1);
		nic.soiled = true;
	}
}

static void send_one(void)
{
	struct rxe_send_wqe *wqe = at(nic.req_index);
	u32 n;

	if (nic.error || nic.req_index == nic.producer)
		return;
	n = packets(wqe);
	if (!n) {
		if (nic.req_index != nic.consumer)	/* it fences */
			return;
		wqe->state = DONE;
	} else {
		wqe->first_psn = nic.req_psn;
		wqe->last_psn = shift_psn_add(nic.req_psn, n - 1);
		if (wqe->wr.opcode == SHIFT_WR_RDMA_WRITE && n > 1 &&
		    rnd_one_in(&rnd, 4)) {
			/* only some packets out yet; goes on below */
			wqe->state = PROCESSING;
		} else {
			wqe->state = PENDING;
		}
		nic.req_psn = shift_psn_add(nic.req_psn, n);
	}
	nic.req_index = (nic.req_index + 1) & (nic.slots - 1);
}

static void complete_one(void)
{
	struct rxe_send_wqe *wqe = at(nic.consumer);

	if (nic.error || nic.consumer == nic.producer || wqe->state == POSTED)
		return;
	if (wqe->state == PROCESSING)
		wqe->state = PENDING;
	nic.consumer = (nic.consumer + 1) & (nic.slots - 1);
	nic.completed++;
}

/* resend all from the head on; a READ that was answered in part goes on there */
static void retry(void)
{
	struct rxe_send_wqe *wqe;
	u32 index, n, got;

	if (nic.error)
		return;
	for (index = nic.consumer; index != nic.req_index;
	     index = (index + 1) & (nic.slots - 1)) {
		wqe = at(index);
		n = packets(wqe);
		if (!n)
			continue;
		wqe->state = PENDING;
		if (index == nic.consumer && wqe->wr.opcode == SHIFT_WR_RDMA_READ &&
		    n > 1) {
			got = rnd_below(&rnd, n);
			wqe->first_psn = shift_psn_add(nic.psn_of[index], got);
		}
	}
}

/* ERR: all that is outstanding is flushed; later posts as well */
static void flush(bool stamp, bool stamp_one)
{
	while (nic.consumer != nic.producer) {
		if (stamp || stamp_one)
			at(nic.consumer)->status = FLUSH;
		stamp_one = false;
		nic.consumer = (nic.consumer + 1) & (nic.slots - 1);
		nic.completed++;
	}
}

/* the oldest operation ran out of retries */
static bool fail_head(bool old_rxe)
{
	struct rxe_send_wqe *wqe = at(nic.consumer);

	if (nic.error || nic.consumer == nic.producer || wqe->state == POSTED ||
	    wqe->state == DONE)
		return false;
	nic.failed = nic.completed;
	nic.acked = nic.consumer;
	wqe->status = RETRY_EXC;
	nic.consumer = (nic.consumer + 1) & (nic.slots - 1);
	nic.completed++;
	nic.error = true;
	flush(old_rxe, rnd_one_in(&rnd, 2));
	return true;
}

/* no route: what is to be sent next fails, with others perhaps under way */
static bool fail_local(bool old_rxe)
{
	struct rxe_send_wqe *wqe;
	bool one = rnd_one_in(&rnd, 2);

	/* also with all of it sent before, and sent again */
	if (rnd_one_in(&rnd, 3) && nic.consumer != nic.req_index)
		nic.req_index = nic.consumer;
	if (nic.error || nic.req_index == nic.producer)
		return false;
	if (old_rxe && nic.req_index != nic.consumer)
		return false;	/* the older ones come first */
	wqe = at(nic.req_index);
	if (!packets(wqe))
		return false;
	nic.failed = nic.completed;
	nic.acked = nic.consumer;
	wqe->status = LOC_QP_OP;
	wqe->state = ERROR;
	nic.error = true;
	if (old_rxe) {
		nic.consumer = (nic.consumer + 1) & (nic.slots - 1);
		nic.completed++;
		flush(true, false);
	} else {
		/* the requester stamps the one behind, the completer none */
		if (one && ((nic.req_index + 1) & (nic.slots - 1)) != nic.producer)
			at(nic.req_index + 1)->status = FLUSH;
		flush(false, false);
	}
	return true;
}

static void some_traffic(void)
{
	int n;

	nic.soiled = false;
	for (n = (int)rnd_below(&rnd, 5 * nic.slots); n; n--) {
		switch (rnd_below(&rnd, 8)) {
		case 0: case 1: case 2:
			post();
			break;
		case 3: case 4:
			send_one();
			break;
		case 5: case 6:
			complete_one();
			break;
		default:
			retry();
			break;
		}
	}
}

static int rewind_now(struct shift_rxe_rewind *r)
{
	view.producer = nic.producer;
	view.consumer = nic.consumer;
	view.errored = nic.error;
	return shift_rxe_rewind(&view, r);
}

/* the first operation with packets from number @n on */
static struct rxe_send_wqe *oldest_packets(u64 n)
{
	for (; n < nic.posted; n++) {
		struct rxe_send_wqe *wqe = at(nic.producer - (u32)(nic.posted - n));

		if (packets(wqe))
			return wqe;
	}
	return NULL;
}

/* the truth about operation number @n (counted from RTS) */
static void expect_first(struct ktap *t, const struct shift_rxe_rewind *r, u64 n)
{
	u32 count = (u32)(nic.posted - n);
	u32 index = (nic.producer - count) & (nic.slots - 1);

	EXPECT_EQ(t, r->count, count);
	EXPECT_EQ(t, r->first, index);
	if (r->local)
		EXPECT(t, count && !nic.error && !oldest_packets(n));
	else if (count)
		EXPECT_EQ(t, r->first_psn, nic.psn_of[index]);
}

/* no slot that is left from before operation number @n had PSNs */
static bool only_local_before(u64 n)
{
	u32 first = (nic.producer - (u32)(nic.posted - n)) & (nic.slots - 1);
	u32 index;

	for (index = nic.producer; index != first;
	     index = (index + 1) & (nic.slots - 1))
		if (packets(at(index)))
			return false;
	return true;
}

static void rewind_of_a_running_qp(struct ktap *t)
{
	struct shift_rxe_rewind r;
	u32 local = 0, sent = 0;
	int round, ret;

	rnd.state = 11;
	for (round = 0; round < 30000; round++) {
		rts(2u << rnd_below(&rnd, 4));
		some_traffic();
		if (rnd_one_in(&rnd, 4))
			post_and_abort();
		ret = rewind_now(&r);
		if (ret == -ENODATA) {
			const struct rxe_send_wqe *first = oldest_packets(nic.completed);

			/* nothing with PSNs is sent, and no slot before it has any:
			 * aborted posts went over them, or all are local
			 */
			EXPECT(t, first && first->first_psn == UNSENT);
			EXPECT(t, nic.soiled || only_local_before(nic.completed));
			continue;
		}
		EXPECT_EQ(t, ret, 0);
		expect_first(t, &r, nic.completed);
		local += r.local && only_local_before(nic.completed);
		sent += r.count && !r.local && !packets(at(nic.consumer)) &&
			only_local_before(nic.completed);
		if (t->failed)
			return;
		if (!(round % 1000))
			ktap_breathe();
	}
	/* no PSN was left before them: none needed, and that of a later one */
	EXPECT(t, local > 10 && sent > 10);
}

static void rewind_after_an_error(struct ktap *t)
{
	u32 exact = 0, overrun = 0, doubt = 0;
	struct shift_rxe_rewind r;
	int round, ret, late;
	bool old_rxe, local;
	u32 room;

	rnd.state = 12;
	for (round = 0; round < 60000; round++) {
		rts(2u << rnd_below(&rnd, 4));
		some_traffic();
		old_rxe = rnd_one_in(&rnd, 2);
		local = rnd_one_in(&rnd, 3);
		if (!(local ? fail_local(old_rxe) : fail_head(old_rxe)))
			continue;
		view.in_order = old_rxe;
		if (rnd_one_in(&rnd, 2)) {
			view.acked_valid = true;
			view.acked = nic.acked;
		}

		/* the application has not noticed yet */
		for (late = (int)rnd_below(&rnd, nic.slots + 3); late; late--) {
			post();
			flush(old_rxe, rnd_one_in(&rnd, 3));
		}
		if (rnd_one_in(&rnd, 4))
			post_and_abort();

		ret = rewind_now(&r);
		room = nic.slots - 1;
		if (!ret) {
			expect_first(t, &r, nic.failed);
			EXPECT_EQ(t, r.status, local ? LOC_QP_OP : RETRY_EXC);
			exact++;
		} else if (ret == -ENODATA) {
			if (nic.posted - nic.failed > room) {
				overrun++;
			} else {
				/* only what cannot be known is given up */
				EXPECT(t, nic.soiled || (local && (!old_rxe ||
					  only_local_before(nic.failed))));
				doubt++;
			}
		} else {
			EXPECT_EQ(t, ret, -ENODATA);
		}
		if (t->failed)
			return;
		if (!(round % 1000))
			ktap_breathe();
	}
	EXPECT(t, exact > 1000 && overrun > 1000 && doubt > 100);
}

/* exactly as stated: the cases that the random rounds rest on */
static void rewind_by_hand(struct ktap *t)
{
	struct shift_rxe_rewind r;
	int i;

	rnd.state = 13;
	rts(8);
	EXPECT_EQ(t, rewind_now(&r), 0);	/* nothing ever posted */
	EXPECT_EQ(t, r.count, 0);
	nic.error = true;
	EXPECT_EQ(t, rewind_now(&r), -ENODATA);	/* errored, no culprit */
	nic.error = false;

	/* nothing completed since RTS: the start PSN */
	for (i = 0; i < 7; i++)
		EXPECT(t, post());
	EXPECT_EQ(t, rewind_now(&r), 0);
	EXPECT_EQ(t, r.count, 7);
	EXPECT_EQ(t, r.first_psn, view.start_psn);

	/* PSNs that contradict the slot before */
	for (i = 0; i < 7; i++)
		at(nic.consumer + i)->wr.opcode = SHIFT_WR_SEND;
	at(nic.consumer)->dma.length = 0;
	at(nic.consumer)->first_psn = (view.start_psn + 1) & SHIFT_PSN_MASK;
	at(nic.consumer)->last_psn = at(nic.consumer)->first_psn;
	EXPECT_EQ(t, rewind_now(&r), -EINVAL);
	at(nic.consumer)->first_psn = view.start_psn;
	EXPECT_EQ(t, rewind_now(&r), 0);	/* last_psn still to be written */
	EXPECT_EQ(t, r.first_psn, view.start_psn);
	at(nic.consumer)->last_psn = view.start_psn;
	EXPECT_EQ(t, rewind_now(&r), 0);
	EXPECT_EQ(t, r.first_psn, view.start_psn);

	/* a refused post went over the slot before it: its own PSNs are left */
	EXPECT(t, !post());
	EXPECT_EQ(t, rewind_now(&r), 0);
	EXPECT_EQ(t, r.first_psn, view.start_psn);
	at(nic.consumer)->first_psn = UNSENT;
	EXPECT_EQ(t, rewind_now(&r), -ENODATA);

	/* an error of the application's own */
	rts(8);
	post();
	at(nic.consumer)->status = LOC_PROT;
	nic.error = true;
	EXPECT_EQ(t, rewind_now(&r), -ENODATA);
	EXPECT_EQ(t, r.status, LOC_PROT);

	/* an old status in a slot that was posted again and never sent */
	at(nic.consumer)->status = RETRY_EXC;
	at(nic.consumer)->first_psn = UNSENT;
	at(nic.consumer)->wr.opcode = SHIFT_WR_SEND;
	EXPECT_EQ(t, rewind_now(&r), -ENODATA);
}

static void rewind_bad_views(struct ktap *t)
{
	struct shift_rxe_rewind r;

	rnd.state = 15;
	rts(8);
	view.producer = view.consumer = 0;
#define BAD(change) do {					\
	struct shift_rxe_view good = view;			\
	change;							\
	EXPECT_EQ(t, shift_rxe_rewind(&view, &r), -EINVAL);	\
	view = good;						\
	EXPECT_EQ(t, shift_rxe_rewind(&view, &r), 0);		\
} while (0)
	BAD(view.slots = 0);
	BAD(view.slots = 7);
	BAD(view.slot_size = shift_rxe_slot_min() - 1);
	BAD(view.producer = 8);
	BAD(view.consumer = 0xffffffffu);
	BAD(view.mtu = 0);
}

/* A QP that was made with max_send_wr 0 has a ring of one slot, which nothing fits in. */
static void rewind_without_a_send_queue(struct ktap *t)
{
	struct shift_rxe_rewind r;

	rts(1);
	EXPECT_EQ(t, rewind_now(&r), 0);
	EXPECT_EQ(t, r.count, 0);
	/* nothing of it can have broken the QP */
	nic.error = true;
	EXPECT_EQ(t, rewind_now(&r), -ENODATA);
}

static void rewind_of_anything(struct ktap *t)
{
	struct shift_rxe_rewind r;
	int round;
	u32 i;

	rnd.state = 16;
	for (round = 0; round < 20000; round++) {
		rts(2u << rnd_below(&rnd, 4));
		some_traffic();
		for (i = rnd_below(&rnd, 6); i; i--) {
			u32 byte = rnd_below(&rnd, sizeof(struct rxe_send_wqe));

			nic.slot[rnd_below(&rnd, nic.slots)].bytes[byte] =
				(u8)rnd32(&rnd);
		}
		nic.error = rnd_one_in(&rnd, 2);
		if (rewind_now(&r) || !r.count)
			continue;
		EXPECT(t, r.first < nic.slots && r.count < nic.slots);
		EXPECT(t, ((r.first + r.count) & (nic.slots - 1)) == nic.producer);
		EXPECT(t, r.first_psn <= SHIFT_PSN_MASK);
	}
}

static const struct ktap_case cases[] = {
	KTAP_CASE(rewind_by_hand),
	KTAP_CASE(rewind_of_a_running_qp),
	KTAP_CASE(rewind_after_an_error),
	KTAP_CASE(rewind_bad_views),
	KTAP_CASE(rewind_without_a_send_queue),
	KTAP_CASE(rewind_of_anything),
};

KTAP_SUITE(rewind, cases);
