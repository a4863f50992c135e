// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Random work requests: what the decoder says is held against what was asked for.
 * Rings are never cleared, so WQEs lie on the remains of others.
 */
#include <stdio.h>
#include <stdlib.h>
#include "golden_mlx5.h"

#define MAX_INLINE	900

static uint64_t seed = 88172645463325252ull;
static unsigned long decoded, wrapped;
static unsigned long by_opcode[SHIFT_WR_SEND_WITH_INV + 1];

uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

uint32_t below(uint32_t n)
{
	return (rnd() >> 16) % n;
}

static uint64_t number(void)
{
	return below(4) ? rnd() : below(3);
}

static uint32_t random_sges(struct shift_wr *wr, uint32_t max)
{
	uint64_t left = SHIFT_WR_MAX_LENGTH - 1;
	uint32_t i;

	wr->num_sge = below(max + 1);
	for (i = 0; i < wr->num_sge; i++) {
		uint32_t length = below(6) ? below(65536) : below(2) ? 0 : rnd();

		if (length > left)
			length = left;
		left -= length;
		wr->sge[i] = (struct shift_sge) { number(), length, number() };
		if (wr->sge[i].lkey == SHIFT_MLX5_END_LKEY)
			wr->sge[i].lkey = 0;
	}
	return wr->num_sge;
}

static void random_inline(struct shift_wr *wr, uint32_t max)
{
	uint32_t left = below(max + 1), i;

	wr->flags |= SHIFT_WR_INLINE;
	wr->num_sge = 1 + below(4);
	for (i = 0; i < wr->num_sge; i++) {
		uint32_t n = i == wr->num_sge - 1 ? left : below(left + 1);

		wr->sge[i] = (struct shift_sge) { (uintptr_t)text + below(1000), n, rnd() };
		left -= n;
	}
}

static void random_window(struct shift_wr *wr)
{
	wr->mw_type = 2;
	wr->rkey = rnd();
	wr->imm = (wr->rkey & ~0xff) | below(256);
	wr->num_sge = 1;
	wr->sge[0].lkey = number();
	if (!below(4))
		return;
	wr->sge[0].addr = number();
	wr->sge[0].length = 1 + below(1u << 31);
	wr->access = below(16);
	if (!wr->sge[0].addr || below(2))
		wr->remote_addr = wr->sge[0].addr;
	else
		wr->access |= SHIFT_WR_ACCESS_ZERO_BASED;
}

static void random_send(struct shift_wr *wr, bool big)
{
	memset(wr, 0, sizeof(*wr));
	wr->flags = below(8);
	wr->opcode = below(SHIFT_WR_SEND_WITH_INV + 1);
	switch (wr->opcode) {
	case SHIFT_WR_BIND_MW:
		random_window(wr);
		return;
	case SHIFT_WR_LOCAL_INV:
		wr->imm = number();
		return;
	case SHIFT_WR_ATOMIC_CMP_AND_SWP:
		wr->swap = number();
		/* fallthrough */
	case SHIFT_WR_ATOMIC_FETCH_AND_ADD:
		wr->compare_add = number();
		wr->num_sge = 1;
		wr->sge[0] = (struct shift_sge) { number(), 8, number() };
		break;
	case SHIFT_WR_RDMA_WRITE_WITH_IMM:
	case SHIFT_WR_SEND_WITH_IMM:
	case SHIFT_WR_SEND_WITH_INV:
		wr->imm = number();
		break;
	}
	switch (wr->opcode) {
	case SHIFT_WR_SEND:
	case SHIFT_WR_SEND_WITH_IMM:
	case SHIFT_WR_SEND_WITH_INV:
		break;
	default:
		wr->remote_addr = number();
		wr->rkey = number();
	}
	switch (wr->opcode) {
	case SHIFT_WR_ATOMIC_CMP_AND_SWP:
	case SHIFT_WR_ATOMIC_FETCH_AND_ADD:
		break;
	case SHIFT_WR_RDMA_READ:
		random_sges(wr, big ? SHIFT_WR_MAX_SGE : 12);
		break;
	default:
		if (below(2))
			random_sges(wr, big ? SHIFT_WR_MAX_SGE : 12);
		else
			random_inline(wr, big ? MAX_INLINE : 200);
	}
}

static int differs(const struct shift_wr *want, const struct shift_wr *got)
{
	return want->opcode != got->opcode || want->flags != got->flags ||
	       want->length != got->length || want->imm != got->imm ||
	       want->rkey != got->rkey || want->remote_addr != got->remote_addr ||
	       want->compare_add != got->compare_add || want->swap != got->swap ||
	       want->access != got->access || want->mw_type != got->mw_type ||
	       want->num_sge != got->num_sge || !want->inline_data != !got->inline_data ||
	       memcmp(want->sge, got->sge, sizeof(want->sge[0]) * want->num_sge) ||
	       (want->inline_data && memcmp(want->inline_data, got->inline_data, want->length));
}

static void fail(const char *what, uint32_t i, enum shift_mlx5_refusal why,
		 const struct shift_wr *want, const struct shift_wr *got)
{
	fprintf(stderr, "%s %u: %s; opcode %u/%u flags %x/%x length %u/%u sges %u/%u "
		"imm %x/%x rkey %x/%x addr %llx/%llx access %x/%x\n", what, i,
		shift_mlx5_refusal_name(why), want->opcode, got->opcode, want->flags,
		got->flags, want->length, got->length, want->num_sge, got->num_sge, want->imm,
		got->imm, want->rkey, got->rkey, (unsigned long long)want->remote_addr,
		(unsigned long long)got->remote_addr, want->access, got->access);
	exit(1);
}

static void check_sends(uint32_t blocks, uint16_t first)
{
	struct shift_mlx5_sq sq = {
		.ring = ring, .blocks = blocks, .qpn = QPN, .producer = sq_posted(),
	};
	static struct shift_mlx5_wqe wqe;
	enum shift_mlx5_refusal why;
	uint16_t at = first;
	uint32_t i;

	for (i = 0; i < num_asked; i++) {
		why = shift_mlx5_decode(&sq, at, &wqe);
		if (why || differs(&asked[i], &wqe.wr))
			fail("send", i, why, &asked[i], &wqe.wr);
		if ((at & (blocks - 1)) + wqe.blocks > blocks)
			wrapped++;
		by_opcode[wqe.wr.opcode]++;
		at += wqe.blocks;
		decoded++;
	}
	if (at != sq.producer || shift_mlx5_decode(&sq, at, &wqe) != SHIFT_MLX5_EMPTY)
		fail("end", i, SHIFT_MLX5_DECODED, &asked[0], &wqe.wr);
}

static void random_sends(uint32_t blocks)
{
	bool big = blocks >= 64;
	uint32_t most = big ? 16 : 4;
	uint32_t batches = 1 + below(8);
	struct shift_wr wr[8];
	uint32_t first, i;

	qp_init(blocks, rnd(), !below(4));
	while (batches--) {
		first = sq_posted();
		/* room for the longest, so that what is outstanding is never overwritten */
		while (sq_posted() - first + most <= blocks && num_asked < MAX_ASKED / 2 &&
		       below(30)) {
			uint32_t n = 1 + below(sizeof(wr) / sizeof(wr[0]));

			if (n > (blocks - (sq_posted() - first)) / most)
				n = 1;
			for (i = 0; i < n; i++)
				random_send(&wr[i], big);
			if (below(2))
				ask_batch(wr, n, !below(4));
			else
				ask(&wr[0], below(WR_LIST + 1));
		}
		check_sends(blocks, first);
		sq_completed();
	}
}

static void random_receives(uint32_t slots)
{
	struct shift_mlx5_rq rq = { .ring = ring, .slots = slots, .slot_size = 1 << SLOT_SHIFT };
	bool shared = below(2);
	enum shift_mlx5_refusal why;
	uint16_t first = rnd(), at, next;
	struct shift_wr wr, got;
	uint32_t n = slots - 1, i;

	qp_init(slots, first, false);
	if (shared)
		srq_init(slots);
	while (n-- && below(50)) {
		memset(&wr, 0, sizeof(wr));
		random_sges(&wr, shared ? SLOT_SGE - 1 : SLOT_SGE);
		for (i = 0; shared && i < wr.num_sge; i++)
			if (!wr.sge[i].length)	/* libmlx5 posts these, and they are refused */
				wr.num_sge = i;
		ask_recv(&wr, shared);
	}
	at = shared ? 0 : first;
	for (i = 0; i < num_asked; i++) {
		if (shared)
			why = shift_mlx5_decode_srq(&rq, at, &got, &next);
		else
			why = shift_mlx5_decode_recv(&rq, at, &got);
		if (why || differs(&asked[i], &got))
			fail("receive", i, why, &asked[i], &got);
		at = shared ? next : at + 1;
		decoded++;
	}
}

int random_all(unsigned long batches)
{
	unsigned long n;
	uint32_t i;

	for (n = 0; n < batches; n++) {
		if (below(8))
			random_sends(4u << below(7));
		else
			random_receives(2u << below(7));
	}
	printf("%lu requests decoded as asked for, %lu of them round the ring's end; sends by opcode:",
	       decoded, wrapped);
	for (i = 0; i <= SHIFT_WR_SEND_WITH_INV; i++)
		printf(" %lu", by_opcode[i]);
	printf("\n");
	random_completions(batches * 16);
	return 0;
}
