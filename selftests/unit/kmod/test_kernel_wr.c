// SPDX-License-Identifier: GPL-2.0
/* Requests of users in the kernel through the record: kmod/core/kernel_wr.c */
#include "core/kernel_wr.h"
#include "ktap.h"

#define SGES	3

static u64 memory[32];
static struct shift_wr got;
static struct ib_sge sges[SGES] = {
	{ .addr = 0xffff888012345678, .length = 4096, .lkey = 0x0102 },
	{ .addr = 2, .length = 1, .lkey = ~0u },
	{ .addr = 3, .length = 0, .lkey = 0 },
};

/* Record the request, and look what comes out; @got is wrong in all if that fails. */
static void through(struct ktap *t, const struct ib_send_wr *wr, bool sig_all)
{
	struct shift_post_ring ring;
	struct shift_post post;

	memset(&got, 0xff, sizeof(got));
	memset(&post, 0xff, sizeof(post));
	shift_post_ring_init(&ring, memory, 1, shift_post_slot_size(SGES, 64));
	ASSERT(t, ring.slot_size <= sizeof(memory));
	shift_post_of_send(&post, wr, sig_all);
	ASSERT(t, !shift_post_ring_add(&ring, &post, shift_post_sges(wr->sg_list)));
	ASSERT(t, !shift_post_decode(memory, ring.slot_size, &got));
	EXPECT_EQ(t, got.wr_id, wr->wr_id);
	EXPECT_EQ(t, got.opcode, wr->opcode);
}

static void same_sges(struct ktap *t)
{
	int i;

	EXPECT_EQ(t, got.num_sge, SGES);
	EXPECT_EQ(t, got.length, 4097u);
	for (i = 0; i < SGES; i++) {
		EXPECT(t, got.sge[i].addr == sges[i].addr);
		EXPECT_EQ(t, got.sge[i].length, sges[i].length);
		EXPECT_EQ(t, got.sge[i].lkey, sges[i].lkey);
	}
}

static void flags(struct ktap *t)
{
	struct ib_send_wr wr = {
		.wr_id = 0x1122334455667788, .opcode = IB_WR_SEND,
		.send_flags = IB_SEND_FENCE | IB_SEND_SOLICITED | IB_SEND_IP_CSUM,
		.sg_list = sges, .num_sge = SGES,
	};

	through(t, &wr, false);
	EXPECT_EQ(t, got.flags, SHIFT_WR_FENCE | SHIFT_WR_SOLICITED);
	same_sges(t);
	through(t, &wr, true);
	EXPECT_EQ(t, got.flags, SHIFT_WR_FENCE | SHIFT_WR_SOLICITED | SHIFT_WR_SIGNALED);
	wr.send_flags = IB_SEND_SIGNALED;
	through(t, &wr, false);
	EXPECT_EQ(t, got.flags, SHIFT_WR_SIGNALED);
}

static void rdma(struct ktap *t)
{
	static const enum ib_wr_opcode opcodes[] = {
		IB_WR_RDMA_WRITE, IB_WR_RDMA_WRITE_WITH_IMM, IB_WR_RDMA_READ,
		IB_WR_RDMA_READ_WITH_INV,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = 1, .sg_list = sges, .num_sge = SGES,
			.ex.imm_data = cpu_to_be32(0x01020304),
		},
		.remote_addr = 0xffff888087654321, .rkey = 0x87654321,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		wr.wr.opcode = opcodes[i];
		through(t, &wr.wr, false);
		EXPECT(t, got.remote_addr == wr.remote_addr && got.rkey == wr.rkey);
		EXPECT(t, (__force __be32)got.imm == wr.wr.ex.imm_data);
		same_sges(t);
	}
}

static void atomics(struct ktap *t)
{
	static const enum ib_wr_opcode opcodes[] = {
		IB_WR_ATOMIC_CMP_AND_SWP, IB_WR_ATOMIC_FETCH_AND_ADD,
		IB_WR_MASKED_ATOMIC_CMP_AND_SWP, IB_WR_MASKED_ATOMIC_FETCH_AND_ADD,
	};
	struct ib_atomic_wr wr = {
		.wr = { .wr_id = 1, .sg_list = sges, .num_sge = 1 },
		.remote_addr = 11, .compare_add = 12, .swap = 13, .compare_add_mask = 14,
		.swap_mask = 15, .rkey = 16,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		wr.wr.opcode = opcodes[i];
		through(t, &wr.wr, false);
		EXPECT(t, got.remote_addr == 11 && got.compare_add == 12 && got.swap == 13);
		EXPECT(t, got.compare_mask == 14 && got.swap_mask == 15 && got.rkey == 16);
		EXPECT_EQ(t, got.num_sge, 1u);
	}
}

/* Those for the device alone: nothing is read of a list that the user has left there. */
static void local(struct ktap *t)
{
	struct ib_reg_wr reg = {
		.wr = { .wr_id = 1, .opcode = IB_WR_REG_MR, .num_sge = 7 },
		.key = 0x1234ff, .access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ,
	};
	struct ib_send_wr wr = {
		.wr_id = 1, .opcode = IB_WR_LOCAL_INV, .num_sge = 7,
		.ex.invalidate_rkey = 0x1234fe,
	};

	through(t, &reg.wr, false);
	EXPECT(t, got.rkey == 0x1234ff && !got.num_sge && !got.length);
	EXPECT_EQ(t, got.access, SHIFT_WR_ACCESS_LOCAL_WRITE | SHIFT_WR_ACCESS_REMOTE_READ);
	through(t, &wr, false);
	EXPECT(t, got.imm == 0x1234fe && !got.num_sge && !got.length);
	wr.opcode = IB_WR_SEND_WITH_INV;
	wr.num_sge = 0;
	through(t, &wr, false);
	EXPECT_EQ(t, got.imm, 0x1234feu);
}

static void inline_data(struct ktap *t)
{
	static char text[] = "text";
	struct ib_sge sge = { .addr = (uintptr_t)text, .length = sizeof(text), .lkey = 5 };
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_INLINE, .sg_list = &sge, .num_sge = 1,
	};

	through(t, &wr, false);
	EXPECT_EQ(t, got.flags, SHIFT_WR_INLINE);
	EXPECT(t, got.length == sizeof(text) && !got.num_sge);
	EXPECT(t, got.inline_data && !memcmp(got.inline_data, "text", sizeof(text)));
}

static void receive(struct ktap *t)
{
	struct ib_recv_wr wr = { .wr_id = 0x99, .sg_list = sges, .num_sge = SGES };
	struct shift_post_ring ring;
	struct shift_post post;

	shift_post_ring_init(&ring, memory, 1, shift_post_slot_size(SGES, 0));
	shift_post_of_recv(&post, &wr);
	ASSERT(t, !shift_post_ring_add(&ring, &post, shift_post_sges(wr.sg_list)));
	ASSERT(t, !shift_post_decode(memory, ring.slot_size, &got));
	same_sges(t);
	EXPECT_EQ(t, shift_post_ring_done(&ring, 0x99), 0);
}

static const struct ktap_case cases[] = {
	KTAP_CASE(flags),
	KTAP_CASE(rdma),
	KTAP_CASE(atomics),
	KTAP_CASE(local),
	KTAP_CASE(inline_data),
	KTAP_CASE(receive),
};

KTAP_SUITE(kernel_wr, cases);
