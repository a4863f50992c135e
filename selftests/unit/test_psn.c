// SPDX-License-Identifier: GPL-2.0
/* Packet arithmetic, and resuming a transfer in the middle. */
#include "pure/psn.h"
#include "ktap.h"

static void packets(struct ktap *t)
{
	static const u32 by_length[] = {
		SHIFT_WR_RDMA_WRITE, SHIFT_WR_RDMA_WRITE_WITH_IMM, SHIFT_WR_SEND,
		SHIFT_WR_SEND_WITH_IMM, SHIFT_WR_SEND_WITH_INV, SHIFT_WR_RDMA_READ,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(by_length); i++) {
		EXPECT_EQ(t, shift_wr_packets(by_length[i], 0, 1024), 1);
		EXPECT_EQ(t, shift_wr_packets(by_length[i], 1, 1024), 1);
		EXPECT_EQ(t, shift_wr_packets(by_length[i], 1024, 1024), 1);
		EXPECT_EQ(t, shift_wr_packets(by_length[i], 1025, 1024), 2);
		EXPECT_EQ(t, shift_wr_packets(by_length[i], 65536, 1024), 64);
		EXPECT_EQ(t, shift_wr_packets(by_length[i], 1u << 31, 256), 1u << 23);
		EXPECT_EQ(t, shift_wr_packets(by_length[i], ~0u, 4096), 1u << 20);
		EXPECT_EQ(t, shift_wr_packets(by_length[i], 100, 0), 1);
	}
	EXPECT_EQ(t, shift_wr_packets(SHIFT_WR_ATOMIC_CMP_AND_SWP, 8, 256), 1);
	EXPECT_EQ(t, shift_wr_packets(SHIFT_WR_ATOMIC_FETCH_AND_ADD, 4096, 256), 1);
	EXPECT_EQ(t, shift_wr_packets(SHIFT_WR_LOCAL_INV, 0, 1024), 0);
	EXPECT_EQ(t, shift_wr_packets(SHIFT_WR_BIND_MW, 4096, 1024), 0);
	EXPECT_EQ(t, shift_wr_packets(1000, 0, 1024), 1);
}

static void wrap_around(struct ktap *t)
{
	struct rnd r = { .state = 2 };
	int i;

	EXPECT_EQ(t, shift_psn_delta(0, 0xffffff), 1);
	EXPECT_EQ(t, shift_psn_delta(0xffffff, 0), 0xffffff);
	EXPECT_EQ(t, shift_psn_add(0xffffff, 1), 0);
	EXPECT_EQ(t, shift_psn_rearm(0xff0000), 0);
	EXPECT_EQ(t, shift_psn_delta(shift_psn_rearm(7), 7), 0x10000);

	for (i = 0; i < 10000; i++) {
		u32 psn = rnd32(&r) & SHIFT_PSN_MASK;
		u32 n = rnd_below(&r, 1u << 24);
		u32 sum = shift_psn_add(psn, n);

		EXPECT(t, sum <= SHIFT_PSN_MASK);
		EXPECT(t, shift_psn_delta(sum, psn) == n);
		EXPECT(t, shift_psn_add(sum, shift_psn_delta(psn, sum)) == psn);
	}
}

/* address and key of one byte of a request, as the NIC would find it */
static bool byte_at(const struct shift_wr *wr, u32 n, u64 *addr, u32 *lkey)
{
	u32 i;

	for (i = 0; i < wr->num_sge; i++) {
		if (n < wr->sge[i].length) {
			*addr = wr->sge[i].addr + n;
			*lkey = wr->sge[i].lkey;
			return true;
		}
		n -= wr->sge[i].length;
	}
	return false;
}

static void skip_keeps_every_later_byte(struct ktap *t)
{
	static struct shift_wr was, wr;
	struct rnd r = { .state = 3 };
	int round;
	u32 i, n;

	for (round = 0; round < 3000; round++) {
		u32 bytes, k1 = 0, k2 = 0;
		u64 a1 = 0, a2 = 0;

		memset(&was, 0, sizeof(was));
		was.opcode = rnd_one_in(&r, 2) ? SHIFT_WR_RDMA_WRITE :
						 SHIFT_WR_RDMA_WRITE_WITH_IMM;
		was.remote_addr = rnd64(&r);
		was.num_sge = rnd_below(&r, SHIFT_WR_MAX_SGE + 1);
		for (i = 0; i < was.num_sge; i++) {
			was.sge[i].addr = rnd64(&r);
			was.sge[i].length = rnd_below(&r, 5);
			was.sge[i].lkey = rnd32(&r);
			was.length += was.sge[i].length;
		}
		bytes = rnd_below(&r, was.length + 1);
		wr = was;
		EXPECT_EQ(t, shift_wr_skip(&wr, bytes), 0);
		EXPECT_EQ(t, wr.length, was.length - bytes);
		EXPECT(t, wr.remote_addr == was.remote_addr + bytes);
		for (n = 0; n < wr.length; n++) {
			EXPECT(t, byte_at(&wr, n, &a1, &k1) &&
				  byte_at(&was, n + bytes, &a2, &k2) &&
				  a1 == a2 && k1 == k2);
		}
		EXPECT(t, !byte_at(&wr, wr.length, &a1, &k1));
		if (bytes && wr.num_sge)
			EXPECT(t, wr.sge[0].length);

		wr = was;
		EXPECT_EQ(t, shift_wr_skip(&wr, was.length + 1), -EINVAL);
		EXPECT(t, !memcmp(&wr, &was, sizeof(wr)));
	}
}

static void skip_refusals(struct ktap *t)
{
	static const u8 data[8];
	static struct shift_wr wr;

	memset(&wr, 0, sizeof(wr));
	wr.opcode = SHIFT_WR_RDMA_WRITE;
	wr.flags = SHIFT_WR_INLINE;
	wr.length = sizeof(data);
	wr.inline_data = data;
	EXPECT_EQ(t, shift_wr_skip(&wr, 3), 0);
	EXPECT(t, wr.inline_data == data + 3 && wr.length == 5);

	wr.opcode = SHIFT_WR_SEND;
	EXPECT_EQ(t, shift_wr_skip(&wr, 1), -EINVAL);
	EXPECT_EQ(t, shift_wr_skip(&wr, 0), 0);
	EXPECT(t, wr.length == 5);

	/* buffers shorter than they claim */
	memset(&wr, 0, sizeof(wr));
	wr.opcode = SHIFT_WR_RDMA_WRITE;
	wr.length = 100;
	wr.num_sge = 1;
	wr.sge[0].length = 10;
	EXPECT_EQ(t, shift_wr_skip(&wr, 11), -EINVAL);
	wr.num_sge = SHIFT_WR_MAX_SGE + 1;
	EXPECT_EQ(t, shift_wr_skip(&wr, 5), -EINVAL);
}

static const struct ktap_case cases[] = {
	KTAP_CASE(packets),
	KTAP_CASE(wrap_around),
	KTAP_CASE(skip_keeps_every_later_byte),
	KTAP_CASE(skip_refusals),
};

KTAP_SUITE(psn, cases);
