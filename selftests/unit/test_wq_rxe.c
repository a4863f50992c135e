// SPDX-License-Identifier: GPL-2.0
/* Decoding of rxe's slots, and how they go back into a ring. */
#include <rdma/rdma_user_rxe.h>
#include "provider/rxe/wqe.h"
#include "pure/psn.h"
#include "ktap.h"

#define MAX_SLOTS	16
#define SLOT_SIZE	512
#define MTU		256
#define UNSENT		SHIFT_RXE_UNSENT
#define DATA		offsetof(struct rxe_send_wqe, dma.inline_data)
#define MAX_SGE		((SLOT_SIZE - DATA) / sizeof(struct rxe_sge))

enum { POSTED, PROCESSING, PENDING, DONE, ERROR };	/* wqe_state_* */
enum { RETRY_EXC = 12, LOC_QP_OP = 2, FLUSH = 5, LOC_PROT = 4 };

static struct shift_wr wr;
static union {
	struct rxe_send_wqe wqe;
	u8 bytes[SLOT_SIZE];
} one;

static void plain(u32 opcode, u32 flags)
{
	memset(&one, 0, sizeof(one));
	one.wqe.wr.wr_id = 0x1234567890ull;
	one.wqe.wr.opcode = opcode;
	one.wqe.wr.send_flags = flags;
}

static void put_sge(u32 i, u64 addr, u32 length, u32 lkey)
{
	struct rxe_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	memcpy(one.bytes + DATA + i * sizeof(sge), &sge, sizeof(sge));
}

static int decode(void)
{
	return shift_rxe_decode(&one, sizeof(one), &wr);
}

static void decode_each_operation(struct ktap *t)
{
	plain(SHIFT_WR_RDMA_WRITE_WITH_IMM, SHIFT_WR_SIGNALED | SHIFT_WR_FENCE);
	one.wqe.wr.wr.rdma.remote_addr = 0xabcdef0123ull;
	one.wqe.wr.wr.rdma.rkey = 77;
	one.wqe.wr.ex.imm_data = (__force __be32)99;
	one.wqe.iova = 1;	/* of a retry: not ours */
	one.wqe.dma.length = 30;
	one.wqe.dma.num_sge = 3;
	put_sge(0, 1000, 10, 5);
	put_sge(1, 2000, 0, 0xbad);
	put_sge(2, 3000, 20, 6);
	EXPECT_EQ(t, decode(), 0);
	EXPECT(t, wr.wr_id == 0x1234567890ull && wr.opcode == 1 && wr.flags == 3);
	EXPECT(t, wr.remote_addr == 0xabcdef0123ull && wr.rkey == 77 && wr.imm == 99);
	EXPECT(t, wr.length == 30 && wr.num_sge == 2 && !wr.inline_data);
	EXPECT(t, wr.sge[0].addr == 1000 && wr.sge[0].length == 10 &&
		  wr.sge[0].lkey == 5);
	EXPECT(t, wr.sge[1].addr == 3000 && wr.sge[1].lkey == 6);

	plain(SHIFT_WR_SEND_WITH_INV, SHIFT_WR_SOLICITED | SHIFT_WR_INLINE);
	one.wqe.wr.ex.invalidate_rkey = 0x4321;
	one.wqe.dma.length = 3;
	one.wqe.dma.num_sge = 7;	/* post_send leaves the number */
	memcpy(one.bytes + DATA, "abc", 3);
	EXPECT_EQ(t, decode(), 0);
	EXPECT(t, wr.imm == 0x4321 && wr.num_sge == 0 && wr.length == 3);
	EXPECT(t, wr.inline_data == one.bytes + DATA &&
		  !memcmp(wr.inline_data, "abc", 3));

	plain(SHIFT_WR_ATOMIC_CMP_AND_SWP, 0);
	one.wqe.wr.wr.atomic.remote_addr = 8;
	one.wqe.wr.wr.atomic.compare_add = 1;
	one.wqe.wr.wr.atomic.swap = 2;
	one.wqe.wr.wr.atomic.rkey = 3;
	one.wqe.dma.length = 8;
	one.wqe.dma.num_sge = 1;
	put_sge(0, 4000, 8, 9);
	EXPECT_EQ(t, decode(), 0);
	EXPECT(t, wr.remote_addr == 8 && wr.compare_add == 1 && wr.swap == 2 &&
		  wr.rkey == 3 && wr.num_sge == 1);
	one.wqe.dma.length = 7;
	put_sge(0, 4000, 7, 9);
	EXPECT_EQ(t, decode(), -EINVAL);

	plain(SHIFT_WR_SEND, 0);
	EXPECT_EQ(t, decode(), 0);
	EXPECT(t, wr.length == 0 && wr.num_sge == 0);

	plain(SHIFT_WR_LOCAL_INV, SHIFT_WR_FENCE);
	one.wqe.wr.ex.invalidate_rkey = 5;
	one.wqe.dma.length = 100;	/* has no meaning here */
	EXPECT_EQ(t, decode(), 0);
	EXPECT(t, wr.imm == 5 && wr.length == 0);

	plain(SHIFT_WR_BIND_MW, 0);
	one.wqe.wr.wr.mw.addr = 0x123456789000ull;
	one.wqe.wr.wr.mw.length = 4096;
	one.wqe.wr.wr.mw.mr_lkey = 11;
	one.wqe.wr.wr.mw.mw_rkey = 0x101;
	one.wqe.wr.wr.mw.rkey = 0x102;
	one.wqe.wr.wr.mw.access = SHIFT_WR_ACCESS_REMOTE_WRITE;
	one.wqe.dma.length = 100;	/* has no meaning here */
	EXPECT_EQ(t, decode(), 0);
	EXPECT(t, wr.rkey == 0x101 && wr.imm == 0x102 && wr.length == 4096 &&
		  wr.remote_addr == 0x123456789000ull && wr.num_sge == 1 &&
		  wr.sge[0].lkey == 11 && wr.access == SHIFT_WR_ACCESS_REMOTE_WRITE);
	one.wqe.wr.wr.mw.length = SHIFT_WR_MAX_LENGTH + 1ull;
	EXPECT_EQ(t, decode(), -EOPNOTSUPP);
}

/* the same, by a doorbell that looks at the head of a slot only */
static void windows(struct ktap *t)
{
	struct shift_mw_op op;
	u32 opcode;

	for (opcode = 0; opcode < 300; opcode++) {
		plain(opcode, 0);
		one.wqe.wr.wr.mw.length = 1;
		EXPECT_EQ(t, shift_rxe_mw_op(&one, &op), opcode >= SHIFT_WR_LOCAL_INV &&
			  opcode <= SHIFT_WR_SEND_WITH_INV);
	}
	plain(SHIFT_WR_BIND_MW, 0);
	one.wqe.wr.wr.mw.mw_rkey = 0x101;
	one.wqe.wr.wr.mw.rkey = 0x102;
	one.wqe.wr.wr.mw.length = 64;
	EXPECT_EQ(t, shift_rxe_mw_op(&one, &op), 1);
	EXPECT(t, op.opcode == SHIFT_WR_BIND_MW && op.old == 0x101 && op.key == 0x102 &&
		  op.length == 64);
	one.wqe.wr.wr.mw.access = SHIFT_WR_ACCESS_ZERO_BASED;
	EXPECT_EQ(t, shift_rxe_mw_op(&one, &op), -EOPNOTSUPP);
	one.wqe.wr.wr.mw.access = 0;
	one.wqe.wr.wr.mw.length = 1ull << 40;
	EXPECT_EQ(t, shift_rxe_mw_op(&one, &op), -EOPNOTSUPP);
	plain(SHIFT_WR_SEND_WITH_INV, 0);
	one.wqe.wr.ex.invalidate_rkey = 77;
	EXPECT(t, shift_rxe_mw_op(&one, &op) == 1 && op.key == 77);
}

static void decode_refusals(struct ktap *t)
{
	u32 opcode, i;

	for (opcode = 0; opcode < 300; opcode++) {
		plain(opcode, 0);
		one.wqe.dma.length = 8;
		one.wqe.dma.num_sge = 1;
		put_sge(0, 1, 8, 1);
		EXPECT_EQ(t, decode(), opcode <= SHIFT_WR_SEND_WITH_INV ? 0 : -EOPNOTSUPP);
	}
	for (i = 4; i < 32; i++) {
		plain(SHIFT_WR_SEND, 1u << i);
		EXPECT_EQ(t, decode(), -EOPNOTSUPP);
	}

	/* lengths that do not add up, also modulo 2^32 */
	plain(SHIFT_WR_RDMA_WRITE, 0);
	one.wqe.dma.length = 100;
	EXPECT_EQ(t, decode(), -EINVAL);
	one.wqe.dma.num_sge = 2;
	put_sge(0, 1, 0xfffffff0u, 1);
	put_sge(1, 1, 116, 1);
	EXPECT_EQ(t, decode(), -EINVAL);
	one.wqe.dma.length = 0;
	put_sge(0, 1, 0x80000000u, 1);
	put_sge(1, 1, 0x80000000u, 1);
	EXPECT_EQ(t, decode(), -EINVAL);
	one.wqe.dma.length = SHIFT_WR_MAX_LENGTH;
	one.wqe.dma.num_sge = 1;
	EXPECT_EQ(t, decode(), 0);
	one.wqe.dma.length++;
	put_sge(0, 1, SHIFT_WR_MAX_LENGTH + 1, 1);
	EXPECT_EQ(t, decode(), -EINVAL);

	/* more entries than the slot has room for */
	plain(SHIFT_WR_RDMA_WRITE, 0);
	one.wqe.dma.num_sge = MAX_SGE;
	EXPECT_EQ(t, decode(), 0);
	one.wqe.dma.num_sge = MAX_SGE + 1;
	EXPECT_EQ(t, decode(), -EINVAL);
	one.wqe.dma.num_sge = 0xffffffffu;
	EXPECT_EQ(t, decode(), -EINVAL);

	plain(SHIFT_WR_SEND, SHIFT_WR_INLINE);
	one.wqe.dma.length = SLOT_SIZE - DATA;
	EXPECT_EQ(t, decode(), 0);
	one.wqe.dma.length++;
	EXPECT_EQ(t, decode(), -EINVAL);
	plain(SHIFT_WR_RDMA_READ, SHIFT_WR_INLINE);
	EXPECT_EQ(t, decode(), -EINVAL);

	/* slots of the smallest size */
	plain(SHIFT_WR_SEND, 0);
	EXPECT_EQ(t, shift_rxe_decode(&one, shift_rxe_slot_min(), &wr), 0);
	EXPECT_EQ(t, shift_rxe_decode(&one, shift_rxe_slot_min() - 1, &wr), -EINVAL);
	EXPECT_EQ(t, shift_rxe_decode(&one, 0, &wr), -EINVAL);
	one.wqe.dma.num_sge = 1;
	EXPECT_EQ(t, shift_rxe_decode(&one, shift_rxe_slot_min(), &wr), -EINVAL);
}

static void decode_anything(struct ktap *t)
{
	struct rnd r = { .state = 10 };
	u64 sum;
	u32 i, n;

	for (n = 0; n < 100000; n++) {
		if (!(n % 16)) {
			rnd_fill(&r, &one, sizeof(one));
			ktap_breathe();
		}
		/* near enough to something real to get far */
		one.wqe.wr.opcode = rnd_below(&r, 12);
		one.wqe.wr.send_flags = rnd_below(&r, 17);
		one.wqe.dma.length = rnd_below(&r, 600);
		one.wqe.dma.num_sge = rnd_below(&r, 40);
		for (i = 0; i < MAX_SGE; i++)
			put_sge(i, i, rnd_below(&r, 40), 1);
		if (rnd_one_in(&r, 2)) {
			for (sum = 0, i = 0; i < one.wqe.dma.num_sge; i++)
				if (i < MAX_SGE)
					sum += ((struct rxe_sge *)(one.bytes + DATA))[i].length;
			one.wqe.dma.length = (u32)sum;
		}
		if (decode())
			continue;
		EXPECT(t, wr.num_sge <= SHIFT_WR_MAX_SGE);
		if (wr.flags & SHIFT_WR_INLINE) {
			EXPECT(t, wr.opcode == SHIFT_WR_LOCAL_INV ||
				  (wr.inline_data >= one.bytes + DATA &&
				   wr.inline_data + wr.length <= one.bytes + SLOT_SIZE));
			continue;
		}
		for (sum = 0, i = 0; i < wr.num_sge; i++)
			sum += wr.sge[i].length;
		EXPECT(t, sum == wr.length);
	}
}

static void marks(struct ktap *t)
{
	struct shift_rxe_mark m;

	plain(SHIFT_WR_SEND, 0);
	one.wqe.first_psn = 2;
	one.wqe.last_psn = UNSENT;
	one.wqe.status = 4;
	one.wqe.state = 5;
	EXPECT_EQ(t, shift_rxe_mark(&one, sizeof(one), &m), 0);
	EXPECT(t, m.first_psn == 2 && m.last_psn == UNSENT &&
		  m.status == 4 && m.state == 5 && m.opcode == SHIFT_WR_SEND);
	EXPECT_EQ(t, shift_rxe_mark(&one, shift_rxe_slot_min() - 1, &m), -EINVAL);
	EXPECT_EQ(t, one.bytes[shift_rxe_first_psn_offset()], 2);
}

static void receives(struct ktap *t)
{
	static union {
		struct rxe_recv_wqe wqe;
		u8 bytes[256];
	} slot;
	const u32 sge = offsetof(struct rxe_recv_wqe, dma.sge);
	const struct rxe_sge entry = { .addr = 0x1000, .length = 30, .lkey = 7 };
	const struct shift_sge sges[] = {
		{ .addr = 0x2000, .length = 30, .lkey = 8 },
		{ .addr = 0x3000, .length = 20, .lkey = 9 },
	};
	struct rnd r = { .state = 11 };
	int i;

	slot.wqe.wr_id = 77;
	EXPECT_EQ(t, shift_rxe_decode_recv(&slot, sizeof(slot), &wr), 0);
	EXPECT(t, wr.wr_id == 77 && !wr.length && !wr.num_sge);

	memcpy(slot.bytes + sge, &entry, sizeof(entry));
	memcpy(slot.bytes + sge + sizeof(entry), &entry, sizeof(entry));
	slot.wqe.dma.num_sge = 2;
	slot.wqe.dma.length = 60;
	slot.wqe.dma.resid = 5;		/* half received */
	slot.wqe.dma.cur_sge = 1;
	EXPECT_EQ(t, shift_rxe_decode_recv(&slot, sizeof(slot), &wr), 0);
	EXPECT(t, wr.length == 60 && wr.num_sge == 2 && wr.sge[1].addr == 0x1000 &&
		  wr.sge[1].length == 30 && wr.sge[1].lkey == 7);
	slot.wqe.dma.length = 61;
	EXPECT_EQ(t, shift_rxe_decode_recv(&slot, sizeof(slot), &wr), -EINVAL);
	slot.wqe.dma.length = 60;
	EXPECT_EQ(t, shift_rxe_decode_recv(&slot, sge + 31, &wr), -EINVAL);
	slot.wqe.dma.num_sge = 0xffffffffu;
	EXPECT_EQ(t, shift_rxe_decode_recv(&slot, sizeof(slot), &wr), -EINVAL);
	EXPECT_EQ(t, shift_rxe_decode_recv(&slot, shift_rxe_recv_slot_min() - 1, &wr), -EINVAL);

	memset(slot.bytes, 0xff, sizeof(slot));
	EXPECT_EQ(t, shift_rxe_encode_recv(&slot, sge + 31, 78, sges, 2), 0);
	EXPECT_EQ(t, shift_rxe_encode_recv(&slot, sizeof(slot), 78, sges, 2), sge + 32);
	EXPECT_EQ(t, shift_rxe_decode_recv(&slot, sizeof(slot), &wr), 0);
	EXPECT(t, wr.wr_id == 78 && wr.length == 50 && wr.num_sge == 2 &&
		  wr.sge[0].addr == 0x2000 && wr.sge[1].length == 20 && wr.sge[1].lkey == 9);
	EXPECT(t, slot.wqe.dma.resid == 50 && !slot.wqe.dma.cur_sge && !slot.wqe.dma.sge_offset);
	EXPECT_EQ(t, shift_rxe_encode_recv(&slot, sizeof(slot), 79, NULL, 0), sge);
	EXPECT_EQ(t, shift_rxe_encode_recv(&slot, ~0u, 79, sges, SHIFT_WR_MAX_SGE + 1), 0);

	for (i = 0; i < 20000; i++) {
		rnd_fill(&r, slot.bytes, sizeof(slot));
		slot.wqe.dma.num_sge = rnd_below(&r, 20);
		if (shift_rxe_decode_recv(&slot, sizeof(slot), &wr))
			continue;
		EXPECT(t, wr.num_sge <= SHIFT_WR_MAX_SGE);
	}
}

static const struct ktap_case cases[] = {
	KTAP_CASE(decode_each_operation),
	KTAP_CASE(windows),
	KTAP_CASE(decode_refusals),
	KTAP_CASE(decode_anything),
	KTAP_CASE(marks),
	KTAP_CASE(receives),
};

KTAP_SUITE(wq_rxe, cases);
