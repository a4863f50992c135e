// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The rings of selftests/unit/golden_mlx5.inc: each operation, each way round the end. */
#include <stdio.h>
#include <stdlib.h>
#include "golden_mlx5.h"

#define INLINE(at, n)	{ .addr = (uintptr_t)text + (at), .length = (n) }

/* all the rings' requests, printed behind the rings */
static struct shift_wr all[MAX_ASKED];
static uint32_t num_all;
/* their inline data, which the next ring would overwrite */
static uint8_t kept[1 << 16];
static uint32_t num_kept;

static void keep(void)
{
	uint32_t i;

	for (i = 0; i < num_asked; i++) {
		struct shift_wr *wr = &all[num_all++];

		*wr = asked[i];
		if (!wr->inline_data)
			continue;
		if (num_kept + wr->length > sizeof(kept) || num_all == MAX_ASKED)
			abort();
		memcpy(kept + num_kept, wr->inline_data, wr->length);
		wr->inline_data = kept + num_kept;
		num_kept += wr->length;
	}
}

static void print_ring(const char *name, const char *kind, uint32_t blocks, uint32_t slot_size,
		       uint32_t first, uint32_t producer)
{
	uint32_t size = blocks * (slot_size ? slot_size : SHIFT_MLX5_BLOCK), i;

	printf("\t{\n\t\t.name = \"%s\", .kind = GOLDEN_%s,\n", name, kind);
	printf("\t\t.blocks = %u, .slot_size = %u, .first = %u, .producer = %u,\n",
	       blocks, slot_size, first & 0xffff, producer & 0xffff);
	printf("\t\t.qpn = 0x%x, .wrs = %u, .num = %u, .bytes =\n", QPN, num_all, num_asked);
	for (i = 0; i < size; i++) {
		if (!(i % 32))
			printf("\t\t\"");
		printf("%02x", ring[i]);
		if (i % 32 == 31)
			printf("\"%s\n", i == size - 1 ? "," : "");
	}
	printf("\t},\n");
	keep();
}

static void print_number(const char *name, uint64_t value)
{
	if (value)
		printf(" .%s = 0x%llx,", name, (unsigned long long)value);
}

static void print_wr(const struct shift_wr *wr)
{
	uint32_t i;

	printf("\t{\n\t\t.opcode = %u,", wr->opcode);
	print_number("flags", wr->flags);
	print_number("length", wr->length);
	print_number("imm", wr->imm);
	print_number("access", wr->access);
	print_number("mw_type", wr->mw_type);
	printf("\n\t\t.rkey = 0x%x,", wr->rkey);
	print_number("remote_addr", wr->remote_addr);
	print_number("compare_add", wr->compare_add);
	print_number("swap", wr->swap);
	if (wr->inline_data) {
		printf("\n\t\t.inline_data = (const u8 *)");
		for (i = 0; i < wr->length; i++) {
			if (!(i % 72))
				printf("%s\n\t\t\t\"", i ? "\"" : "");
			putchar(wr->inline_data[i]);
		}
		printf("\",");
	}
	if (wr->num_sge)
		printf("\n\t\t.num_sge = %u, .sge = {\n", wr->num_sge);
	for (i = 0; i < wr->num_sge; i++)
		printf("\t\t\t{ 0x%llx, 0x%x, 0x%x },\n", (unsigned long long)wr->sge[i].addr,
		       wr->sge[i].length, wr->sge[i].lkey);
	printf("%s\n\t},\n", wr->num_sge ? "\t\t}," : "");
}

static const struct shift_wr plain[] = {
	{ .opcode = SHIFT_WR_SEND, .flags = SHIFT_WR_SIGNALED, .num_sge = 1,
	  .sge = { { 0x1122334455667788, 0x1000, 0xa1b2c3d4 } } },
	{ .opcode = SHIFT_WR_SEND_WITH_IMM, .flags = SHIFT_WR_SOLICITED, .imm = 0x01020304,
	  .num_sge = 2, .sge = { { 0x7000, 1, 5 }, { 0x8000, 0x7fffffff, 6 } } },
	{ .opcode = SHIFT_WR_SEND_WITH_INV, .flags = SHIFT_WR_FENCE, .imm = 0xdeadbe01,
	  .num_sge = 1, .sge = { { 0x7001, 3, 5 } } },
	{ .opcode = SHIFT_WR_RDMA_WRITE, .remote_addr = 0x7f0123456789, .rkey = 0x77777,
	  .num_sge = 1, .sge = { { 0x9000, 65536, 8 } } },
	{ .opcode = SHIFT_WR_RDMA_WRITE_WITH_IMM, .remote_addr = 0x10, .rkey = 0x88888,
	  .imm = 0xff00ff01, .flags = SHIFT_WR_SIGNALED | SHIFT_WR_FENCE | SHIFT_WR_SOLICITED,
	  .num_sge = 3, .sge = { { 0x1, 1, 1 }, { 0x2, 0, 2 }, { 0x3, 3, 3 } } },
	{ .opcode = SHIFT_WR_RDMA_READ, .remote_addr = 0xffffffffffff0000, .rkey = 0xffffffff,
	  .num_sge = 1, .sge = { { 0xfffffffffffffff0, 16, 0xfffffffe } } },
	{ .opcode = SHIFT_WR_ATOMIC_CMP_AND_SWP, .remote_addr = 0x4008, .rkey = 9,
	  .compare_add = 0x0102030405060708, .swap = 0x1112131415161718, .num_sge = 1,
	  .sge = { { 0x5000, 8, 4 } } },
	{ .opcode = SHIFT_WR_ATOMIC_FETCH_AND_ADD, .remote_addr = 0x4010, .rkey = 10,
	  .compare_add = 0xfffffffffffffffe, .flags = SHIFT_WR_SIGNALED, .num_sge = 1,
	  .sge = { { 0x5008, 8, 4 } } },
	{ .opcode = SHIFT_WR_SEND },
	{ .opcode = SHIFT_WR_RDMA_WRITE, .remote_addr = 1, .rkey = 2, .num_sge = 1,
	  .sge = { { 0x6000, 0, 7 } } },
};

static const struct shift_wr windows[] = {
	{ .opcode = SHIFT_WR_BIND_MW, .mw_type = 2, .rkey = 0x1234500, .imm = 0x1234501,
	  .access = SHIFT_WR_ACCESS_REMOTE_WRITE | SHIFT_WR_ACCESS_REMOTE_READ,
	  .remote_addr = 0x7f0000001000, .flags = SHIFT_WR_SIGNALED,
	  .num_sge = 1, .sge = { { 0x7f0000001000, 0x2000, 0x555 } } },
	{ .opcode = SHIFT_WR_SEND, .num_sge = 1, .sge = { { 0x7001, 3, 5 } } },
	{ .opcode = SHIFT_WR_LOCAL_INV, .imm = 0x1234501, .flags = SHIFT_WR_FENCE },
	{ .opcode = SHIFT_WR_BIND_MW, .mw_type = 2, .rkey = 0x1234501, .imm = 0x1234577,
	  .access = SHIFT_WR_ACCESS_REMOTE_ATOMIC | SHIFT_WR_ACCESS_LOCAL_WRITE |
		    SHIFT_WR_ACCESS_ZERO_BASED,
	  .num_sge = 1, .sge = { { 0x7f0000003000, 0x80000000, 0x556 } } },
	{ .opcode = SHIFT_WR_RDMA_READ, .remote_addr = 5, .rkey = 6, .num_sge = 1,
	  .sge = { { 0x7001, 3, 5 } } },
	{ .opcode = SHIFT_WR_BIND_MW, .mw_type = 2, .rkey = 0x1234577, .imm = 0x1234578,
	  .num_sge = 1, .sge = { { 0, 0, 0x557 } } },
};

static void plain_rings(void)
{
	static const struct { const char *name; enum api api; bool sig_all; } ways[] = {
		{ "ibv_post_send", POST_SEND, false },
		{ "ibv_post_send, all signaled", POST_SEND, true },
		{ "ibv_wr_*", WR, false },
		{ "ibv_wr_* with lists", WR_LIST, false },
	};
	uint32_t i, n;

	for (n = 0; n < ARRAY_SIZE(ways); n++) {
		/* the last lap before the index begins anew */
		qp_init(16, 65536 - 9, ways[n].sig_all);
		for (i = 0; i < ARRAY_SIZE(plain); i++)
			ask(&plain[i], ways[n].api);
		print_ring(ways[n].name, "SEND", 16, 0, 65536 - 9, sq_posted());
	}
}

static void window_rings(void)
{
	const struct shift_wr bind = {
		.opcode = SHIFT_WR_BIND_MW, .mw_type = 1, .rkey = 0xabcdeff,
		.imm = 0xabcde00, .access = SHIFT_WR_ACCESS_REMOTE_READ,
		.remote_addr = 0x7f0000001000, .num_sge = 1,
		.sge = { { 0x7f0000001000, 0x2000, 0x555 } },
	};
	struct shift_wr unbind = bind;
	uint32_t i;

	/* both a bind and an invalidation go round the end */
	qp_init(16, 13, false);
	for (i = 0; i < ARRAY_SIZE(windows); i++)
		ask(&windows[i], POST_SEND);
	print_ring("windows by ibv_post_send", "SEND", 16, 0, 13, sq_posted());
	qp_init(16, 8 + 32, false);
	for (i = 0; i < ARRAY_SIZE(windows); i++)
		ask(&windows[i], WR);
	print_ring("windows by ibv_wr_*", "SEND", 16, 0, 8 + 32, sq_posted());

	qp_init(8, 6, false);
	ask(&bind, BIND);
	unbind.rkey = 0xabcde00;
	unbind.imm = 0xabcde01;
	unbind.access = 0;
	unbind.remote_addr = 0;
	unbind.sge[0].addr = 0;
	unbind.sge[0].length = 0;
	ask(&unbind, BIND);
	print_ring("ibv_bind_mw", "SEND", 8, 0, 6, sq_posted());
}

/* inline data and scatter lists that cross the end of the ring at each place they can */
static void wrap_rings(void)
{
	static const struct { const char *name; enum api api; } ways[] = {
		{ "wrap by ibv_post_send", POST_SEND },
		{ "wrap by ibv_wr_*", WR_LIST },
	};
	static const uint32_t sizes[] = { 1, 12, 28, 29, 44, 45, 108, 220 };
	struct shift_wr sges = {
		.opcode = SHIFT_WR_RDMA_READ, .remote_addr = 0x123456, .rkey = 0x77,
		.flags = SHIFT_WR_SIGNALED, .num_sge = 9,
	};
	uint32_t i, n;

	for (i = 0; i < sges.num_sge; i++)
		sges.sge[i] = (struct shift_sge) { 0x10000 * i, i == 3 ? 0 : i + 1, 100 + i };

	for (n = 0; n < ARRAY_SIZE(ways); n++) {
		qp_init(4, 3, false);
		ask(&sges, ways[n].api);
		print_ring(ways[n].name, "SEND", 4, 0, 3, sq_posted());

		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			struct shift_wr wr = {
				.opcode = i & 1 ? SHIFT_WR_RDMA_WRITE_WITH_IMM : SHIFT_WR_SEND,
				.flags = SHIFT_WR_INLINE | SHIFT_WR_SIGNALED, .num_sge = 3,
				.sge = { INLINE(i, sizes[i] / 2), INLINE(100, 0),
					 INLINE(200 + i, sizes[i] - sizes[i] / 2) },
			};

			if (i & 1) {
				wr.imm = i;
				wr.remote_addr = 0xabc;
				wr.rkey = 0xdef;
			}
			qp_init(4, 3 + 4 * i, false);
			ask(&wr, ways[n].api);
			print_ring(ways[n].name, "SEND", 4, 0, 3 + 4 * i, sq_posted());
		}
	}
}

static void receive_rings(void)
{
	static const struct shift_wr recvs[] = {
		{ .num_sge = 1, .sge = { { 0x1122334455667788, 0x1000, 0xa1b2c3d4 } } },
		{ .num_sge = 0 },
		{ .num_sge = 3, .sge = { { 1, 1, 1 }, { 2, 2, 2 }, { 3, 0x7ffffff0, 3 } } },
		{ .num_sge = 2, .sge = { { 0xffffffffffffffff, 1, 0xffffffff }, { 5, 5, 5 } } },
	};
	static const struct shift_wr whole = {
		.num_sge = 4, .sge = { { 1, 1, 1 }, { 2, 2, 2 }, { 3, 3, 3 }, { 4, 4, 4 } },
	};
	static const struct shift_wr empty = {
		.num_sge = 3, .sge = { { 1, 1, 1 }, { 2, 0, 2 }, { 3, 3, 3 } },
	};
	uint32_t i;

	qp_init(8, 65536 - 3, false);
	for (i = 0; i < ARRAY_SIZE(recvs); i++)
		ask_recv(&recvs[i], false);
	ask_recv(&whole, false);
	ask_recv(&empty, false);
	print_ring("ibv_post_recv", "RECV", 8, 1 << SLOT_SHIFT, 65536 - 3,
		   65536 - 3 + num_asked);

	srq_init(8);
	for (i = 0; i < ARRAY_SIZE(recvs); i++)
		ask_recv(&recvs[i], true);
	print_ring("ibv_post_srq_recv", "SRQ", 8, 1 << SLOT_SHIFT, 0, 0);
}

void print_all(void)
{
	uint32_t i;

	printf("/* SPDX-License-Identifier: GPL-2.0 */\n"
	       "/* made by rdma-core/golden from rdma-core " RDMA_CORE_VERSION ": do not edit */\n\n"
	       "static const struct golden_ring golden_rings[] = {\n");
	plain_rings();
	window_rings();
	wrap_rings();
	receive_rings();
	printf("};\n\nstatic const struct shift_wr golden_wrs[] = {\n");
	for (i = 0; i < num_all; i++)
		print_wr(&all[i]);
	printf("};\n");
}
