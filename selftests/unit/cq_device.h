/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A CQ of mlx5 in plain memory, with a device and an application that are too simple to be
 * wrong.  What they did is noted, so that what cq_mlx5.c has to find is known otherwise.
 */
#ifndef CQ_DEVICE_H
#define CQ_DEVICE_H

#include "provider/mlx5/cq.h"
#include "ktap.h"
#include "ring_mem.h"

#define SLOTS	16	/* at most */
#define MINE	0x12345u
#define OTHER	0x54321u
#define ALL	0xffffffffu
#define FLUSH	0x05	/* syndromes */
#define RETRIES	0x15
#define ACCESS	0x13

/* what the device wrote, by slot; seq: its index, as it runs on */
struct note {
	bool there;
	u32 seq, qpn;
	u16 wqe;
	u8 opcode, syndrome;
};

static u8 bytes[SLOTS * 128] __aligned(8);
static struct note notes[SLOTS];
static struct shift_ring ring;
static struct shift_mlx5_found found;
static u32 produced, polled;

static const u32 strides[] = { 64, 128 };

static inline struct shift_mlx5_cqe64 *entry(u32 index)
{
	return (void *)(bytes + ((index & (ring.slots - 1)) + 1) * ring.slot_size - 64);
}

/* As a library fills a new ring: no entry is anybody's. */
static inline void fresh(u32 slots, u32 stride, u32 start)
{
	u32 i;

	ring = (struct shift_ring) { .slots = slots, .slot_size = stride };
	ring_mem = (struct ring_mem) { .bytes = bytes };
	memset(bytes, 0, sizeof(bytes));
	memset(notes, 0, sizeof(notes));
	produced = polled = start;
	for (i = 0; i < slots; i++)
		entry(i)->op_own = SHIFT_MLX5_CQE_INVALID << 4;
}

/* The next entry, if there is room: as a device does, the last byte last. */
static inline struct shift_mlx5_cqe64 *hand_over(u32 qpn, u8 opcode, u16 wqe, u8 syndrome)
{
	struct shift_mlx5_cqe64 *e = entry(produced);

	e->user_index = cpu_to_be32(qpn);
	e->opcode_qpn = cpu_to_be32(SHIFT_MLX5_OP_SEND << 24 | qpn);
	e->wqe_index = cpu_to_be16(wqe);
	e->syndrome = syndrome;
	barrier();
	e->op_own = opcode << 4 | !!(produced & ring.slots);
	notes[produced & (ring.slots - 1)] = (struct note) {
		.there = true, .seq = produced, .qpn = qpn, .wqe = wqe, .opcode = opcode,
		.syndrome = syndrome,
	};
	produced++;
	return e;
}

static inline struct shift_mlx5_cqe64 *sent(u16 wqe)
{
	return hand_over(MINE, SHIFT_MLX5_CQE_REQ, wqe, 0);
}

static inline void send_error(u16 wqe, u8 syndrome)
{
	hand_over(MINE, SHIFT_MLX5_CQE_REQ_ERR, wqe, syndrome);
}

/* The consumer's index as the doorbell record has it. */
static inline u32 record(void)
{
	return polled & SHIFT_MLX5_CI_MASK;
}

/* Looks that it takes to find the end, at most. */
static inline u32 to_end(void)
{
	u32 n = 1;

	while (ring.slots >> n)
		n++;
	return 2 * n;
}

/* and, of what is not polled, how many are MINE */
static inline u32 room_own(struct ktap *t, u32 *own)
{
	u32 n;

	ring_mem.words = ring_mem.copies = 0;
	n = shift_mlx5_cq_room(&ring, record(), MINE, own);
	EXPECT(t, n + *own <= ring.slots && ring_mem.copies <= 2 * (ring.slots - n));
	EXPECT(t, ring_mem.words <= to_end() + 8 * (ring.slots - n));
	return n;
}

static inline u32 room(struct ktap *t)
{
	u32 own;

	return room_own(t, &own);
}

static inline void find_most(struct ktap *t, u32 qpn, bool recvs, u32 most)
{
	ring_mem.words = ring_mem.copies = 0;
	shift_mlx5_cq_find(&ring, record(), qpn, recvs, most, &found);
	most = min(most, ring.slots);
	EXPECT(t, ring_mem.copies <= most + 1 && ring_mem.words <= to_end() + 4 * (most + 1));
}

static inline void find(struct ktap *t)
{
	find_most(t, MINE, false, ALL);
}

/* What is to be found in the newest @most notes. */
static inline struct shift_mlx5_found expected(u32 qpn, bool recvs, u32 most)
{
	struct shift_mlx5_found want = { };
	u32 seq;

	for (seq = produced - min(most, ring.slots); seq != produced; seq++) {
		const struct note *n = &notes[seq & (ring.slots - 1)];
		bool recv = n->opcode != SHIFT_MLX5_CQE_REQ && n->opcode != SHIFT_MLX5_CQE_REQ_ERR;

		if (!n->there || n->seq != seq || n->qpn != qpn || recv != recvs)
			continue;
		if (!n->syndrome) {
			want = (struct shift_mlx5_found){ .success = true, .last = n->wqe };
			continue;
		}
		if (!want.error)
			want.first_error = n->wqe;
		if (!want.error)
			want.begins = n->syndrome != FLUSH;
		want.error = true;
		want.last_error = n->wqe;
		if (n->syndrome != FLUSH)
			want.cause = n->syndrome == ACCESS ? SHIFT_WC_REM_ACCESS_ERR :
							     SHIFT_WC_RETRY_EXC_ERR;
	}
	return want;
}

static inline bool same(const struct shift_mlx5_found *a, const struct shift_mlx5_found *b)
{
	return a->success == b->success && a->error == b->error && a->begins == b->begins &&
	       a->last == b->last && a->first_error == b->first_error &&
	       a->last_error == b->last_error && a->cause == b->cause;
}

#endif /* CQ_DEVICE_H */
