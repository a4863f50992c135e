// SPDX-License-Identifier: GPL-2.0
/* Decoding of mlx5's completions. */
#include "provider/mlx5/cqe.h"
#include "ktap.h"

#define ENTRIES	4

static u8 ring[ENTRIES * 128];
static struct shift_mlx5_cq cq;
static struct shift_mlx5_cqe cqe;

static struct shift_mlx5_cqe64 *entry(u32 index)
{
	u32 at = (index & (ENTRIES - 1)) * cq.stride + cq.stride - 64;

	return (void *)(ring + at);
}

/* the device hands over entry @index */
static struct shift_mlx5_cqe64 *complete(u32 stride, u32 index, u8 opcode, u8 format)
{
	struct shift_mlx5_cqe64 *e;
	u32 i;

	cq = (struct shift_mlx5_cq) { .ring = ring, .entries = ENTRIES, .stride = stride };
	for (i = 0; i < sizeof(ring); i++)
		ring[i] = i;
	e = entry(index);
	memset(e, 0, sizeof(*e));
	for (i = 0; i < sizeof(e->reserved0); i++)
		e->reserved0[i] = 100 + i;
	e->user_index = cpu_to_be32(0xff000000 | 0x8765);
	e->opcode_qpn = cpu_to_be32(0x12345);
	e->wqe_index = cpu_to_be16(0xfedc);
	e->op_own = opcode << 4 | format << 2 | !!(index & ENTRIES);
	return e;
}

static void put_opcode(struct shift_mlx5_cqe64 *e, u8 opcode)
{
	e->opcode_qpn = cpu_to_be32(opcode << 24 | 0x12345);
}

static enum shift_mlx5_refusal decode(u32 index)
{
	return shift_mlx5_decode_cqe(&cq, index, &cqe);
}

static void ownership(struct ktap *t)
{
	struct shift_mlx5_cqe64 *e;
	u32 index;

	for (index = 0; index < 4 * ENTRIES; index++) {
		e = complete(64, index, SHIFT_MLX5_CQE_RECV, 0);
		EXPECT_EQ(t, decode(index), SHIFT_MLX5_DECODED);
		EXPECT_EQ(t, decode(index + ENTRIES), SHIFT_MLX5_EMPTY);
		EXPECT_EQ(t, decode(index - ENTRIES), SHIFT_MLX5_EMPTY);
		EXPECT_EQ(t, decode(index + 2 * ENTRIES), SHIFT_MLX5_DECODED);
		e->op_own |= 0xf0;	/* as the driver fills a new ring */
		EXPECT_EQ(t, decode(index), SHIFT_MLX5_EMPTY);
	}
	/* the index goes round in 32 bits */
	complete(128, 0xfffffffe, SHIFT_MLX5_CQE_RECV, 0);
	EXPECT_EQ(t, decode(0xfffffffe), SHIFT_MLX5_DECODED);
}

static void sends(struct ktap *t)
{
	static const struct { u8 opcode; u32 byte_len; bool known; } ops[] = {
		{ SHIFT_MLX5_OP_NOP, 0, true }, { SHIFT_MLX5_OP_SEND, 0, true },
		{ SHIFT_MLX5_OP_SEND_IMM, 0, true }, { SHIFT_MLX5_OP_SEND_INVAL, 0, true },
		{ SHIFT_MLX5_OP_RDMA_WRITE, 0, true }, { SHIFT_MLX5_OP_RDMA_WRITE_IMM, 0, true },
		{ SHIFT_MLX5_OP_RDMA_READ, 77, true }, { SHIFT_MLX5_OP_ATOMIC_CS, 8, true },
		{ SHIFT_MLX5_OP_ATOMIC_FA, 8, true }, { SHIFT_MLX5_OP_UMR, 0, true },
		{ SHIFT_MLX5_OP_ATOMIC_MASKED_CS, 0, false }, { 0x0e, 0, false },
	};
	struct shift_mlx5_cqe64 *e;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		e = complete(64, 5, SHIFT_MLX5_CQE_REQ, 0);
		put_opcode(e, ops[i].opcode);
		e->byte_count = cpu_to_be32(77);
		e->app = 1;	/* of receives only */
		EXPECT_EQ(t, decode(5), ops[i].known ? 0 : SHIFT_MLX5_OPCODE);
		EXPECT(t, cqe.opcode == SHIFT_MLX5_CQE_REQ && cqe.qpn == 0x12345 &&
			  cqe.wqe_opcode == ops[i].opcode && cqe.user_index == 0x8765 &&
			  cqe.wqe_index == 0xfedc && !cqe.status && !cqe.data_len);
		EXPECT_EQ(t, cqe.byte_len, ops[i].byte_len);
	}
}

static void receives(struct ktap *t)
{
	struct shift_mlx5_cqe64 *e;

	e = complete(128, 3, SHIFT_MLX5_CQE_RECV_IMM, 0);
	e->imm = (__force __be32)0x01020304;
	e->byte_count = cpu_to_be32(1u << 31);
	e->op_own |= 2;
	EXPECT_EQ(t, decode(3), SHIFT_MLX5_DECODED);
	EXPECT(t, cqe.imm == 0x01020304 && cqe.byte_len == 1u << 31 && cqe.solicited);
	e->app = 1;
	EXPECT_EQ(t, decode(3), SHIFT_MLX5_APP);

	e = complete(64, 3, SHIFT_MLX5_CQE_RECV_INV, 0);
	e->imm = cpu_to_be32(0x01020304);
	EXPECT_EQ(t, decode(3), SHIFT_MLX5_DECODED);
	EXPECT(t, cqe.imm == 0x01020304 && !cqe.solicited);
	e = complete(64, 3, SHIFT_MLX5_CQE_RECV_WRITE_IMM, 0);
	e->imm = (__force __be32)7;
	EXPECT_EQ(t, decode(3), SHIFT_MLX5_DECODED);
	EXPECT_EQ(t, cqe.imm, 7);
	complete(64, 3, SHIFT_MLX5_CQE_RESIZE, 0);
	EXPECT_EQ(t, decode(3), SHIFT_MLX5_DECODED);
	EXPECT_EQ(t, cqe.opcode, SHIFT_MLX5_CQE_RESIZE);
}

static void errors(struct ktap *t)
{
	static const u8 known[][2] = {
		{ 0x01, 1 }, { 0x02, 2 }, { 0x04, 4 }, { 0x05, 5 }, { 0x06, 6 }, { 0x10, 7 },
		{ 0x11, 8 }, { 0x12, 9 }, { 0x13, 10 }, { 0x14, 11 }, { 0x15, 12 }, { 0x16, 13 },
		{ 0x22, 16 },
	};
	struct shift_mlx5_cqe64 *e;
	u32 i, n;

	for (i = 0; i < 256; i++) {
		u8 want = SHIFT_WC_GENERAL_ERR;

		for (n = 0; n < ARRAY_SIZE(known); n++)
			if (known[n][0] == i)
				want = known[n][1];
		e = complete(i & 1 ? 64 : 128, i, i & 2 ? SHIFT_MLX5_CQE_REQ_ERR :
							  SHIFT_MLX5_CQE_RECV_ERR, 0);
		put_opcode(e, SHIFT_MLX5_OP_RDMA_READ);
		e->syndrome = i;
		e->vendor_syndrome = 255 - i;
		EXPECT_EQ(t, decode(i), SHIFT_MLX5_DECODED);
		EXPECT(t, cqe.status == want && cqe.vendor == 255 - i && cqe.qpn == 0x12345 &&
			  cqe.wqe_index == 0xfedc && !cqe.byte_len);
		EXPECT_EQ(t, cqe.wqe_opcode, i & 2 ? SHIFT_MLX5_OP_RDMA_READ : 0);
	}
}

static void data_in_the_entry(struct ktap *t)
{
	struct shift_mlx5_cqe64 *e;
	u32 n;

	for (n = 0; n < 100; n++) {
		e = complete(64, 2, SHIFT_MLX5_CQE_RECV, SHIFT_MLX5_CQE_DATA_32);
		e->byte_count = cpu_to_be32(n);
		EXPECT_EQ(t, decode(2), n > 32 ? SHIFT_MLX5_INLINE_SIZE : 0);
		if (n <= 32)
			EXPECT(t, cqe.data_len == n && !memcmp(cqe.data, e, n));

		e = complete(128, 2, SHIFT_MLX5_CQE_RECV_IMM, SHIFT_MLX5_CQE_DATA_32);
		e->byte_count = cpu_to_be32(n);
		EXPECT_EQ(t, decode(2), n > 32 ? SHIFT_MLX5_INLINE_SIZE : 0);
		if (n <= 32)
			EXPECT(t, cqe.data_len == n && !memcmp(cqe.data, e, n));

		e = complete(128, 2, SHIFT_MLX5_CQE_RECV_INV, SHIFT_MLX5_CQE_DATA_64);
		e->byte_count = cpu_to_be32(n);
		EXPECT_EQ(t, decode(2), n > 64 ? SHIFT_MLX5_INLINE_SIZE : 0);
		if (n <= 64)
			EXPECT(t, cqe.data_len == n && !memcmp(cqe.data, e - 1, n));

		/* there is no half before it */
		e = complete(64, 2, SHIFT_MLX5_CQE_RECV, SHIFT_MLX5_CQE_DATA_64);
		e->byte_count = cpu_to_be32(n);
		EXPECT_EQ(t, decode(2), SHIFT_MLX5_INLINE_SIZE);
	}

	e = complete(64, 2, SHIFT_MLX5_CQE_REQ, SHIFT_MLX5_CQE_DATA_32);
	put_opcode(e, SHIFT_MLX5_OP_ATOMIC_CS);
	EXPECT_EQ(t, decode(2), SHIFT_MLX5_DECODED);
	EXPECT(t, cqe.data_len == 8 && !memcmp(cqe.data, e, 8));
	put_opcode(e, SHIFT_MLX5_OP_RDMA_WRITE);
	EXPECT_EQ(t, decode(2), SHIFT_MLX5_INLINE_SIZE);
	e = complete(128, 2, SHIFT_MLX5_CQE_REQ, SHIFT_MLX5_CQE_DATA_32);
	put_opcode(e, SHIFT_MLX5_OP_ATOMIC_CS);
	EXPECT_EQ(t, decode(2), SHIFT_MLX5_INLINE_SIZE);
}

static void cqe_refusals(struct ktap *t)
{
	u32 i;

	for (i = 0; i < 16; i++) {
		bool known = i <= SHIFT_MLX5_CQE_RESIZE || i == SHIFT_MLX5_CQE_REQ_ERR ||
			     i == SHIFT_MLX5_CQE_RECV_ERR;

		complete(64, 1, i, SHIFT_MLX5_CQE_COMPRESSED);
		EXPECT_EQ(t, decode(1), i == 15 ? SHIFT_MLX5_EMPTY : SHIFT_MLX5_COMPRESSED);
		complete(64, 1, i, 0);
		EXPECT_EQ(t, decode(1), i == 15 ? SHIFT_MLX5_EMPTY :
					known ? SHIFT_MLX5_DECODED : SHIFT_MLX5_OPCODE);
	}
	complete(64, 1, SHIFT_MLX5_CQE_RECV, 0);
	for (i = 0; i < 300; i++) {
		cq.stride = i;
		EXPECT_EQ(t, decode(1) == SHIFT_MLX5_GEOMETRY, i != 64 && i != 128);
	}
	cq.stride = 64;
	for (i = 0; i <= ENTRIES; i++) {
		cq.entries = i;
		EXPECT_EQ(t, decode(1) == SHIFT_MLX5_GEOMETRY, !i || i == 3);
	}
	cq.entries = 1u << 25;
	EXPECT_EQ(t, decode(1), SHIFT_MLX5_GEOMETRY);
	cq.entries = ENTRIES;
	cq.ring = NULL;
	EXPECT_EQ(t, decode(1), SHIFT_MLX5_GEOMETRY);
}

static const struct ktap_case cases[] = {
	KTAP_CASE(ownership),
	KTAP_CASE(sends),
	KTAP_CASE(receives),
	KTAP_CASE(errors),
	KTAP_CASE(data_in_the_entry),
	KTAP_CASE(cqe_refusals),
};

KTAP_SUITE(cqe_mlx5, cases);
