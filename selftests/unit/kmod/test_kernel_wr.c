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

static bool same_data(const struct ib_send_wr *wr, const struct ib_send_wr *back)
{
	if (wr->send_flags & IB_SEND_INLINE)
		return back->num_sge == 1 && back->sg_list->length == wr->sg_list->length &&
		       !memcmp((void *)(uintptr_t)back->sg_list->addr,
			       (void *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length);
	return back->num_sge == got.num_sge &&
	       (!got.num_sge ||
		!memcmp(back->sg_list, wr->sg_list, got.num_sge * sizeof(*wr->sg_list)));
}

/* What was recorded can be posted again. */
static void and_back(struct ktap *t, const struct ib_send_wr *wr)
{
	union shift_kernel_wr back;
	struct ib_sge inlined;

	memset(&back, 0xff, sizeof(back));
	shift_send_of_post(&back, (u8 *)memory, &inlined);
	EXPECT(t, back.send.wr_id == wr->wr_id && back.send.opcode == wr->opcode);
	EXPECT_EQ(t, back.send.send_flags, (int)got.flags);
	EXPECT(t, !back.send.next && back.send.ex.imm_data == wr->ex.imm_data);
	EXPECT(t, same_data(wr, &back.send));
	switch (wr->opcode) {
	case IB_WR_REG_MR:
	case IB_WR_REG_MR_INTEGRITY:
		EXPECT(t, back.reg.mr == reg_wr(wr)->mr && back.reg.key == reg_wr(wr)->key &&
		       back.reg.access == reg_wr(wr)->access);
		break;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		EXPECT(t, back.rdma.rkey == rdma_wr(wr)->rkey &&
		       back.rdma.remote_addr == rdma_wr(wr)->remote_addr);
		break;
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		break;
	default:
		EXPECT(t, back.atomic.rkey == atomic_wr(wr)->rkey &&
		       back.atomic.remote_addr == atomic_wr(wr)->remote_addr &&
		       back.atomic.compare_add == atomic_wr(wr)->compare_add &&
		       back.atomic.swap == atomic_wr(wr)->swap &&
		       back.atomic.compare_add_mask == atomic_wr(wr)->compare_add_mask &&
		       back.atomic.swap_mask == atomic_wr(wr)->swap_mask);
	}
}

/* Record the request, and look what comes out; @got is wrong in all if that fails. */
static void through(struct ktap *t, const struct ib_send_wr *wr, bool sig_all)
{
	struct shift_post_ring ring;
	struct shift_post *post;

	memset(&got, 0xff, sizeof(got));
	memset(memory, 0xff, sizeof(memory));
	shift_post_ring_init(&ring, memory, 1, shift_post_slot_size(SGES, 64));
	ASSERT(t, ring.slot_size <= sizeof(memory));
	post = shift_post_ring_next(&ring);
	shift_post_of_send(post, wr, sig_all);
	ASSERT(t, !shift_post_ring_add(&ring, post, shift_post_sges(wr->sg_list)));
	ASSERT(t, !shift_post_decode(memory, ring.slot_size, &got));
	EXPECT_EQ(t, got.wr_id, wr->wr_id);
	EXPECT_EQ(t, got.opcode, wr->opcode);
	and_back(t, wr);
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
		.mr = (struct ib_mr *)sges, .key = 0x1234ff, .access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ,
	};
	struct ib_send_wr wr = {
		.wr_id = 1, .opcode = IB_WR_LOCAL_INV, .num_sge = 7,
		.ex.invalidate_rkey = 0x1234fe,
	};

	through(t, &reg.wr, false);
	EXPECT(t, got.rkey == 0x1234ff && !got.num_sge && !got.length);
	EXPECT_EQ(t, got.access, SHIFT_WR_ACCESS_LOCAL_WRITE | SHIFT_WR_ACCESS_REMOTE_READ);
	/* it is never moved, but it may be posted to its own device after it was kept back */
	reg.wr.opcode = IB_WR_REG_MR_INTEGRITY;
	through(t, &reg.wr, false);
	EXPECT(t, !got.num_sge && !got.length);
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
	struct shift_post *post;
	struct ib_recv_wr back;

	shift_post_ring_init(&ring, memory, 1, shift_post_slot_size(SGES, 0));
	post = shift_post_ring_next(&ring);
	shift_post_of_recv(post, &wr);
	ASSERT(t, !shift_post_ring_add(&ring, post, shift_post_sges(wr.sg_list)));
	ASSERT(t, !shift_post_decode(memory, ring.slot_size, &got));
	same_sges(t);
	shift_recv_of_post(&back, (u8 *)memory);
	EXPECT(t, back.wr_id == 0x99 && back.num_sge == SGES && !back.next);
	EXPECT(t, !memcmp(back.sg_list, sges, sizeof(sges)));
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
