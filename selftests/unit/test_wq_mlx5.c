// SPDX-License-Identifier: GPL-2.0
/* Decoding of mlx5's send rings: what the golden rings do not have, and each refusal. */
#include "provider/mlx5/wqe.h"
#include "ktap.h"

#define BLOCKS	8
#define QPN	0x123456
#define INDEX	0xfffe		/* wraps: 16 bits and the ring */

static u8 ring[64 * SHIFT_MLX5_BLOCK];
static struct shift_mlx5_wqe wqe;
static struct shift_mlx5_sq sq;

/* where chunk @n of the WQE at INDEX lies */
static void *chunk(u32 n)
{
	u32 at = (INDEX & (sq.blocks - 1)) * SHIFT_MLX5_BLOCK + n * SHIFT_MLX5_CHUNK;

	return ring + at % (sq.blocks * SHIFT_MLX5_BLOCK);
}

static struct shift_mlx5_ctrl *ctrl(void)
{
	return chunk(0);
}

static void put_head(u8 opmod, u8 opcode, u32 chunks)
{
	ctrl()->opmod_index_opcode = cpu_to_be32(opmod << 24 | (INDEX & 0xffff) << 8 | opcode);
	ctrl()->qpn_chunks = cpu_to_be32(QPN << 8 | chunks);
}

/* an operation without segments */
static void plain(u8 opcode, u32 chunks)
{
	memset(ring, 0, sizeof(ring));
	memset(&sq, 0, sizeof(sq));
	sq.ring = ring;
	sq.blocks = BLOCKS;
	sq.producer = (u16)(INDEX + BLOCKS);
	sq.qpn = QPN;
	put_head(0, opcode, chunks);
}

static void put_raddr(u32 n, u64 addr, u32 rkey)
{
	struct shift_mlx5_raddr *raddr = chunk(n);

	raddr->addr = cpu_to_be64(addr);
	raddr->rkey = cpu_to_be32(rkey);
}

static void put_data(u32 n, u64 addr, u32 length, u32 lkey)
{
	struct shift_mlx5_data *data = chunk(n);

	data->byte_count = cpu_to_be32(length);
	data->lkey = cpu_to_be32(lkey);
	data->addr = cpu_to_be64(addr);
}

static void put_pair(u32 n, u64 first, u64 second)
{
	struct shift_mlx5_atomic *pair = chunk(n);

	pair->swap_add = cpu_to_be64(first);
	pair->compare = cpu_to_be64(second);
}

static enum shift_mlx5_refusal decode(void)
{
	return shift_mlx5_decode(&sq, INDEX, &wqe);
}

/* a WRITE of 100 bytes */
static void write_of_one(void)
{
	plain(SHIFT_MLX5_OP_RDMA_WRITE, 3);
	put_raddr(1, 0x1000, 7);
	put_data(2, 0x2000, 100, 8);
}

static void masked_atomics(struct ktap *t)
{
	plain(0, 0);
	put_head(9, SHIFT_MLX5_OP_ATOMIC_MASKED_CS, 5);
	put_raddr(1, 0x1008, 7);
	put_pair(2, 0x1111222233334444, 0x2222333344445555);
	put_pair(3, 0x3333444455556666, 0x4444555566667777);
	put_data(4, 0x2000, 8, 9);
	ASSERT(t, decode() == SHIFT_MLX5_DECODED);
	EXPECT_EQ(t, wqe.wr.opcode, SHIFT_WR_MASKED_ATOMIC_CMP_AND_SWP);
	EXPECT(t, wqe.wr.swap == 0x1111222233334444 &&
		  wqe.wr.compare_add == 0x2222333344445555 &&
		  wqe.wr.swap_mask == 0x3333444455556666 &&
		  wqe.wr.compare_mask == 0x4444555566667777);
	EXPECT(t, wqe.wr.remote_addr == 0x1008 && wqe.wr.rkey == 7 && wqe.blocks == 2);
	EXPECT(t, !shift_wr_movable(&wqe.wr));

	plain(0, 0);
	put_head(9, SHIFT_MLX5_OP_ATOMIC_MASKED_FA, 4);
	put_pair(2, 5, 0x8000000000000000ull);
	put_data(3, 0x2000, 8, 9);
	ASSERT(t, decode() == SHIFT_MLX5_DECODED);
	EXPECT(t, wqe.wr.compare_add == 5 && wqe.wr.compare_mask == 1ull << 63 &&
		  wqe.blocks == 1);
	EXPECT(t, !shift_wr_movable(&wqe.wr));

	/* of 4 bytes, of 16, and in no known size */
	put_head(8, SHIFT_MLX5_OP_ATOMIC_MASKED_FA, 4);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_OPMOD);
	put_head(10, SHIFT_MLX5_OP_ATOMIC_MASKED_FA, 4);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_OPMOD);
	put_head(0, SHIFT_MLX5_OP_ATOMIC_MASKED_FA, 4);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_OPMOD);
	put_head(9, SHIFT_MLX5_OP_ATOMIC_FA, 4);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_OPMOD);
}

static void atomics_have_one_buffer(struct ktap *t)
{
	plain(SHIFT_MLX5_OP_ATOMIC_CS, 4);
	put_data(3, 0x2000, 8, 9);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_DECODED);
	put_head(0, SHIFT_MLX5_OP_ATOMIC_CS, 5);
	put_data(4, 0x3000, 8, 9);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_SEGMENTS);
	put_head(0, SHIFT_MLX5_OP_ATOMIC_CS, 3);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_SEGMENTS);
	put_head(0, SHIFT_MLX5_OP_ATOMIC_CS, 2);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_SEGMENTS);
	put_head(0, SHIFT_MLX5_OP_ATOMIC_CS, 4);
	put_data(3, 0x2000, 16, 9);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_SEGMENTS);
	put_data(3, 0x2000, SHIFT_MLX5_INLINE | 8, 9);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_SEGMENTS);
}

static void place_and_owner(struct ktap *t)
{
	u32 i;

	write_of_one();
	EXPECT_EQ(t, decode(), SHIFT_MLX5_DECODED);
	EXPECT_EQ(t, shift_mlx5_decode(&sq, INDEX + 1, &wqe), SHIFT_MLX5_INDEX);
	/* the same place, a lap later */
	sq.producer += BLOCKS;
	EXPECT_EQ(t, shift_mlx5_decode(&sq, (u16)(INDEX + BLOCKS), &wqe), SHIFT_MLX5_INDEX);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_EMPTY);	/* was overwritten */
	sq.producer = (u16)INDEX;
	EXPECT_EQ(t, decode(), SHIFT_MLX5_EMPTY);
	sq.producer = (u16)(INDEX - 1);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_EMPTY);

	write_of_one();
	sq.qpn = QPN + 1;
	EXPECT_EQ(t, decode(), SHIFT_MLX5_QPN);
	EXPECT_EQ(t, wqe.blocks, 0);

	for (i = 0; i < 256; i++) {
		write_of_one();
		put_head(0, SHIFT_MLX5_OP_RDMA_WRITE, i);
		if (!i || i > BLOCKS * 4)
			EXPECT_EQ(t, decode(), SHIFT_MLX5_SIZE);
		else if (i == 1)
			EXPECT_EQ(t, decode(), SHIFT_MLX5_SEGMENTS);
		else
			EXPECT_EQ(t, decode(), i > 3 ? SHIFT_MLX5_LENGTH : 0);
		EXPECT_EQ(t, wqe.blocks, i < 2 || i > BLOCKS * 4 ? 0 : (i + 3) / 4);
	}
	write_of_one();
	put_head(0, SHIFT_MLX5_OP_RDMA_WRITE, 9);
	sq.producer = (u16)(INDEX + 2);		/* of three blocks */
	EXPECT_EQ(t, decode(), SHIFT_MLX5_SIZE);
}

static void geometry(struct ktap *t)
{
	u32 n;

	for (n = 0; n <= BLOCKS; n++) {
		write_of_one();
		sq.blocks = n;
		if (n && !(n & (n - 1))) {
			sq.producer = (u16)(INDEX + 1);
			put_head(0, SHIFT_MLX5_OP_RDMA_WRITE, 3);
			put_raddr(1, 0x1000, 7);
			put_data(2, 0x2000, 100, 8);
			EXPECT_EQ(t, decode(), SHIFT_MLX5_DECODED);
		} else {
			EXPECT_EQ(t, decode(), SHIFT_MLX5_GEOMETRY);
		}
	}
	write_of_one();
	ctrl()->opmod_index_opcode = cpu_to_be32(SHIFT_MLX5_OP_RDMA_WRITE);
	memcpy(ring, chunk(0), SHIFT_MLX5_BLOCK);
	sq.blocks = 32768;	/* only the first of them is looked at */
	sq.producer = 1;
	EXPECT_EQ(t, shift_mlx5_decode(&sq, 0, &wqe), SHIFT_MLX5_DECODED);
	sq.blocks = 65536;
	EXPECT_EQ(t, decode(), SHIFT_MLX5_GEOMETRY);
	sq.blocks = 1u << 31;
	EXPECT_EQ(t, decode(), SHIFT_MLX5_GEOMETRY);
	sq.blocks = BLOCKS;
	sq.ring = NULL;
	EXPECT_EQ(t, decode(), SHIFT_MLX5_GEOMETRY);
}

static void flags(struct ktap *t)
{
	u32 i, want;

	for (i = 0; i < 256; i++) {
		u32 fence = i >> 5, completion = (i >> 2) & 3;
		bool known = !(i & 0x11) && (completion == 0 || completion == 2) &&
			     (fence < 3 || fence == 4);

		write_of_one();
		ctrl()->flags = i;
		EXPECT_EQ(t, decode(), known ? SHIFT_MLX5_DECODED : SHIFT_MLX5_FLAGS);
		EXPECT_EQ(t, wqe.blocks, 1);
		if (!known)
			continue;
		want = (fence > 1 ? SHIFT_WR_FENCE : 0) |
		       (completion ? SHIFT_WR_SIGNALED : 0) |
		       (i & 2 ? SHIFT_WR_SOLICITED : 0);
		EXPECT_EQ(t, wqe.wr.flags, want);
	}
	write_of_one();
	ctrl()->stream[1] = 1;
	EXPECT_EQ(t, decode(), SHIFT_MLX5_FLAGS);
	write_of_one();
	ctrl()->signature = 1;
	EXPECT_EQ(t, decode(), SHIFT_MLX5_SIGNED);
	write_of_one();
	sq.signature = true;	/* may be 0 by chance */
	EXPECT_EQ(t, decode(), SHIFT_MLX5_SIGNED);
	EXPECT_EQ(t, wqe.blocks, 1);
}

static void opcodes(struct ktap *t)
{
	static const u8 known[] = { 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11, 0x12, 0x14, 0x15,
				    0x25 };
	u32 i, n;

	for (i = 0; i < 256; i++) {
		bool found = false;

		for (n = 0; n < ARRAY_SIZE(known); n++)
			found |= known[n] == i;
		plain(i, 3);
		EXPECT_EQ(t, decode() == SHIFT_MLX5_OPCODE, !found);
		put_head(7, i, 3);
		EXPECT_EQ(t, decode(), found ? SHIFT_MLX5_OPMOD : SHIFT_MLX5_OPCODE);
		EXPECT_EQ(t, wqe.blocks, 1);	/* the walk can go on */
	}
}

static void lengths(struct ktap *t)
{
	u32 i;

	write_of_one();
	put_data(2, 0, 0, 8);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_LENGTH);
	put_data(2, 0, 1u << 31, 8);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_LENGTH);
	put_data(2, 0, 0x7fffffff, 8);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_DECODED);

	put_head(0, SHIFT_MLX5_OP_RDMA_WRITE, 4);
	put_data(3, 0, 1, 8);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_DECODED);
	EXPECT_EQ(t, wqe.wr.length, 1u << 31);
	put_data(3, 0, 2, 8);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_LENGTH);
	/* modulo 2^32 it would be small */
	put_head(0, SHIFT_MLX5_OP_RDMA_WRITE, 6);
	put_data(3, 0, 0x7fffffff, 8);
	put_data(4, 0, 0x7fffffff, 8);
	put_data(5, 0, 0x7fffffff, 8);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_LENGTH);

	plain(SHIFT_MLX5_OP_SEND, 63);
	sq.blocks = 64;
	sq.producer = (u16)(INDEX + 64);
	for (i = 0; i < 63; i++) {
		put_head(0, SHIFT_MLX5_OP_SEND, i + 1);
		EXPECT_EQ(t, decode(), i > SHIFT_WR_MAX_SGE ? SHIFT_MLX5_SGES : 0);
		EXPECT_EQ(t, wqe.blocks, (i + 4) / 4);
		if (i <= SHIFT_WR_MAX_SGE)
			EXPECT_EQ(t, wqe.wr.num_sge, i);
		put_data(i + 1, i, 1, 1);
	}
}

static void inline_data(struct ktap *t)
{
	static const u8 with[] = { SHIFT_MLX5_OP_SEND_INVAL, SHIFT_MLX5_OP_SEND,
				   SHIFT_MLX5_OP_SEND_IMM };
	u32 n, i, chunks;

	/* each length in each size: only the size that it needs */
	for (chunks = 2; chunks <= 12; chunks++) {
		u32 room = (chunks - 1) * SHIFT_MLX5_CHUNK - SHIFT_MLX5_INLINE_OFFSET;

		for (n = 0; n < 200; n++) {
			plain(with[n % ARRAY_SIZE(with)], chunks);
			put_data(1, 0x6162636465666768ull, SHIFT_MLX5_INLINE | n, 0x61616161);
			if (!n)
				EXPECT_EQ(t, decode(), SHIFT_MLX5_LENGTH);
			else if (n > room)
				EXPECT_EQ(t, decode(), SHIFT_MLX5_INLINE_SIZE);
			else if (room - n >= SHIFT_MLX5_CHUNK)
				EXPECT_EQ(t, decode(), SHIFT_MLX5_MIXED);
			else
				EXPECT_EQ(t, decode(), SHIFT_MLX5_DECODED);
		}
	}
	plain(SHIFT_MLX5_OP_SEND, 9);		/* three blocks, the ring ends after two */
	put_data(1, 0, SHIFT_MLX5_INLINE | 124, 0);
	memset(chunk(2), 'b', 32);
	memset(chunk(4), 'c', 64);
	memset(chunk(8), 'd', 16);
	ASSERT(t, decode() == SHIFT_MLX5_DECODED);
	EXPECT(t, wqe.wr.flags == SHIFT_WR_INLINE && wqe.wr.num_sge == 0);
	for (i = 12; i < 124; i++)
		EXPECT_EQ(t, wqe.wr.inline_data[i], i < 44 ? 'b' : i < 108 ? 'c' : 'd');

	/* an operation that brings data back, a pointer behind it, one before it */
	plain(SHIFT_MLX5_OP_RDMA_READ, 3);
	put_data(2, 0, SHIFT_MLX5_INLINE | 12, 0);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_SEGMENTS);
	plain(SHIFT_MLX5_OP_SEND, 3);
	put_data(1, 0, SHIFT_MLX5_INLINE | 12, 0);
	put_data(2, 0, 5, 0);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_MIXED);
	put_data(1, 0, 5, 0);
	put_data(2, 0, SHIFT_MLX5_INLINE | 12, 0);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_MIXED);
	put_data(2, 0, SHIFT_MLX5_INLINE, 0);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_LENGTH);
}

static struct shift_mlx5_umr *umr(void)
{
	return chunk(1);
}

static struct shift_mlx5_mkey *mkey(void)
{
	return chunk(4);
}

/* a bind of type 2, or an invalidation */
static void change_key(bool bind)
{
	plain(SHIFT_MLX5_OP_UMR, bind ? 12 : 8);
	ctrl()->imm = cpu_to_be32(0xaabbcc01);
	umr()->flags = 0x90 | (bind ? 0x20 : 0x08);
	umr()->klm_octowords = cpu_to_be16(bind ? 4 : 0);
	umr()->mask = cpu_to_be64(bind ? 0x203c6041 : 0x20006000);
	mkey()->status = bind ? 0 : 0x40;
	mkey()->qpn_key = cpu_to_be32(bind ? QPN << 8 | 2 : 0xffffff00);
	mkey()->start = cpu_to_be64(0x5000);
	mkey()->len = cpu_to_be64(100);
	put_data(8, 0x5000, 100, 77);
}

static void umr_refusals(struct ktap *t)
{
	u32 bind, i;

	for (bind = 0; bind < 2; bind++) {
		change_key(bind);
		ASSERT(t, decode() == SHIFT_MLX5_DECODED);
		EXPECT_EQ(t, wqe.wr.opcode, bind ? SHIFT_WR_BIND_MW : SHIFT_WR_LOCAL_INV);
		EXPECT_EQ(t, wqe.wr.imm, bind ? 0xaabbcc02 : 0xaabbcc01);
		EXPECT(t, !shift_wr_movable(&wqe.wr));
		/* each bit of what says what is changed, and of whom it belongs to */
		for (i = 0; i < 64; i++) {
			change_key(bind);
			umr()->mask ^= cpu_to_be64(1ull << i);
			EXPECT_EQ(t, decode(), SHIFT_MLX5_UMR);
		}
		for (i = 0; i < 8; i++) {
			change_key(bind);
			umr()->flags ^= 1 << i;
			EXPECT_EQ(t, decode(), SHIFT_MLX5_UMR);
			change_key(bind);
			mkey()->status ^= 1 << i;
			EXPECT_EQ(t, decode(), SHIFT_MLX5_UMR);
		}
		for (i = 8; i < 32; i++) {
			change_key(bind);
			mkey()->qpn_key ^= cpu_to_be32(1u << i);
			EXPECT_EQ(t, decode(), SHIFT_MLX5_UMR);
		}
		for (i = 0; i < 16; i++) {
			change_key(bind);
			umr()->klm_octowords ^= cpu_to_be16(1 << i);
			EXPECT(t, decode() != SHIFT_MLX5_DECODED);
			change_key(bind);
			umr()->offset ^= cpu_to_be16(1 << i);
			EXPECT_EQ(t, decode(), SHIFT_MLX5_UMR);
		}
		for (i = 2; i < 32; i++) {
			change_key(bind);
			put_head(0, SHIFT_MLX5_OP_UMR, i);
			EXPECT_EQ(t, decode(), i == (bind ? 12 : 8) ? 0 : SHIFT_MLX5_SEGMENTS);
		}
		change_key(bind);
		put_head(1, SHIFT_MLX5_OP_UMR, bind ? 12 : 8);
		EXPECT_EQ(t, decode(), SHIFT_MLX5_OPMOD);
	}

	change_key(true);
	mkey()->start = 0;
	ASSERT(t, decode() == SHIFT_MLX5_DECODED);
	EXPECT_EQ(t, wqe.wr.access, SHIFT_WR_ACCESS_ZERO_BASED);
	mkey()->start = cpu_to_be64(0x5001);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_UMR);
	change_key(true);
	mkey()->access = 0x80;
	EXPECT_EQ(t, decode(), SHIFT_MLX5_UMR);
	change_key(true);
	mkey()->len = cpu_to_be64(101);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_LENGTH);
	mkey()->len = 0;
	put_data(8, 0x5000, 0, 77);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_LENGTH);
	put_data(8, 0x5000, 100, 77);
	mkey()->len = cpu_to_be64((1ull << 32) + 100);
	EXPECT_EQ(t, decode(), SHIFT_MLX5_LENGTH);
}

static void refusals(struct ktap *t)
{
	u32 i;

	EXPECT_EQ(t, shift_mlx5_refusal_errno(SHIFT_MLX5_DECODED), 0);
	EXPECT_EQ(t, shift_mlx5_refusal_errno(SHIFT_MLX5_LINK), -EINVAL);
	EXPECT_EQ(t, shift_mlx5_refusal_errno(SHIFT_MLX5_SIGNED), -EOPNOTSUPP);
	for (i = 0; i < __SHIFT_MLX5_REFUSALS; i++)
		EXPECT(t, strcmp(shift_mlx5_refusal_name(i), "?"));
	EXPECT(t, !strcmp(shift_mlx5_refusal_name(__SHIFT_MLX5_REFUSALS), "?"));
}

static const struct ktap_case cases[] = {
	KTAP_CASE(masked_atomics),
	KTAP_CASE(atomics_have_one_buffer),
	KTAP_CASE(place_and_owner),
	KTAP_CASE(geometry),
	KTAP_CASE(flags),
	KTAP_CASE(opcodes),
	KTAP_CASE(lengths),
	KTAP_CASE(inline_data),
	KTAP_CASE(umr_refusals),
	KTAP_CASE(refusals),
};

KTAP_SUITE(wq_mlx5, cases);
