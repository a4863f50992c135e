// SPDX-License-Identifier: GPL-2.0
/*
 * Any bytes as a CQ of mlx5, and any index: what is found is what a plain reading of the same
 * entries says, in a bounded number of looks; also while others write.  The input is a head of
 * HEAD bytes and then the ring; short input repeats.
 */
#include <stdlib.h>
#include "provider/mlx5/cq.h"
#include "ring_mem.h"

#define HEAD	12
#define QPN	0x4711
#define SENDS	(1 << 0 | 1 << 13)			/* opcodes of completions */
#define RECVS	(1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 14)

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(cond)	do { if (!(cond)) abort(); } while (0)

static struct {
	const u8 *data;
	size_t size, at;
	u32 bytes;
} others;

/* a byte anywhere, as the input has it */
static void others_write(void)
{
	const u8 *d = others.data;
	u32 to = d[others.at % others.size] << 8 | d[(others.at + 1) % others.size];

	ring_mem.bytes[to % others.bytes] = d[(others.at + 2) % others.size];
	others.at += 3;
}

/* Entries of one QP that a device has handed over up to @end: random ones are nobody's. */
static void repair(u8 *ring, u32 slots, u32 stride, u32 end)
{
	static const u8 opcodes[] = { 0, 0, 1, 2, 3, 4, 5, 13, 13, 13, 14, 14, 0, 6, 12, 15 };
	u32 n, index;

	for (n = 1; n <= slots; n++) {
		struct shift_mlx5_cqe64 *e;

		index = end - n;
		e = (void *)(ring + ((index & (slots - 1)) + 1) * stride - sizeof(*e));
		if (e->op_own & 0x08)	/* a neighbor's, or an odd one */
			continue;
		e->syndrome &= 0x15;	/* often a flush */
		e->wqe_index = cpu_to_be16(3 * index);
		e->opcode_qpn = cpu_to_be32((e->signature & 1 ? SHIFT_MLX5_OP_SEND :
					     SHIFT_MLX5_OP_RDMA_READ) << 24 | QPN);
		e->op_own = opcodes[e->op_own >> 4] << 4 | (e->op_own & 2) | !!(index & slots);
	}
}

/* Does it say what of the QP was completed? */
static bool says(enum shift_mlx5_refusal why, const struct shift_mlx5_cqe *cqe, bool recvs)
{
	if (why == SHIFT_MLX5_GEOMETRY || why == SHIFT_MLX5_EMPTY || why == SHIFT_MLX5_COMPRESSED)
		return false;
	return cqe->qpn == QPN && ((recvs ? RECVS : SENDS) & 1 << cqe->opcode);
}

/*
 * The newest @most before @end and that one, from the oldest to the newest.  @ordered: so are
 * errors' indices, which no device has otherwise; what is said of those is not specified then.
 */
static struct shift_mlx5_found plainly(const struct shift_mlx5_cq *cq, u32 end, bool recvs,
				       u32 most, bool *ordered)
{
	struct shift_mlx5_found want = { };
	struct shift_mlx5_cqe cqe;
	u32 index;

	*ordered = true;
	for (index = end - most; index != end + 1; index++) {
		if (!says(shift_mlx5_decode_cqe(cq, index, &cqe), &cqe, recvs))
			continue;
		if (!cqe.status) {
			memset(&want, 0, sizeof(want));
			want.success = true;
			want.last = cqe.wqe_index;
			continue;
		}
		if (!want.error) {
			want.first_error = cqe.wqe_index;
			want.begins = cqe.status != SHIFT_WC_WR_FLUSH_ERR;
		} else if ((u16)(cqe.wqe_index - want.first_error) <=
			   (u16)(want.last_error - want.first_error)) {
			*ordered = false;
		}
		want.error = true;
		want.last_error = cqe.wqe_index;
		if (cqe.status != SHIFT_WC_WR_FLUSH_ERR)
			want.cause = cqe.status;
	}
	return want;
}

static void check_alone(const struct shift_ring *ring, u32 consumer, u32 room, bool recvs, u32 most,
			const struct shift_mlx5_found *found)
{
	struct shift_mlx5_cq cq = {
		.ring = ring_mem.bytes, .entries = ring->slots, .stride = ring->slot_size,
	};
	u32 end = consumer + ring->slots - room;
	struct shift_mlx5_found want;
	struct shift_mlx5_cqe cqe;
	bool ordered;

	/* handed over up to there, and no further */
	if (end != consumer)
		MUST(shift_mlx5_decode_cqe(&cq, end - 1, &cqe) != SHIFT_MLX5_EMPTY);
	if (room)
		MUST(shift_mlx5_decode_cqe(&cq, end, &cqe) == SHIFT_MLX5_EMPTY);
	want = plainly(&cq, end, recvs, most, &ordered);
	MUST(found->success == want.success && found->last == want.last);
	MUST(found->error == want.error);
	if (!ordered)
		return;
	MUST(found->begins == want.begins);
	MUST(found->first_error == want.first_error && found->last_error == want.last_error);
	MUST(found->cause == want.cause);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u32 consumer, most, room, own, n, to_end;
	struct shift_mlx5_found found;
	struct shift_ring ring = { };
	const u8 *head = data;
	bool recvs, alone;

	if (size <= HEAD)
		return 0;
	data += HEAD;
	size -= HEAD;
	to_end = 2 * ((head[0] & 7) + 1);
	ring.slots = 1u << (head[0] & 7);
	ring.slot_size = head[1] & 1 ? 128 : 64;
	recvs = head[1] & 2;
	alone = head[1] & 12;
	memcpy(&consumer, head + 2, sizeof(consumer));
	consumer &= head[1] & 16 ? 0xffffffff : SHIFT_MLX5_CI_MASK;
	most = head[1] & 32 ? 0xffffffff : head[6];

	others.data = data;
	others.size = size;
	others.at = 0;
	others.bytes = ring.slots * ring.slot_size;
	/* its own allocation, so that a byte too far is seen */
	ring_mem = (struct ring_mem) { .bytes = malloc(others.bytes) };
	if (!ring_mem.bytes)
		return 0;
	for (n = 0; n < others.bytes; n++)
		ring_mem.bytes[n] = data[n % size];
	if (head[1] & 64)
		repair(ring_mem.bytes, ring.slots, ring.slot_size,
		       consumer + head[7] % (ring.slots + 1));
	if (!alone)
		ring_mem.meanwhile = others_write;

	room = shift_mlx5_cq_room(&ring, consumer, QPN, &own);
	MUST(room <= ring.slots && own <= ring.slots - room);
	MUST(ring_mem.copies <= 2 * (ring.slots - room));
	MUST(ring_mem.words <= to_end + 8 * (ring.slots - room));
	ring_mem.words = ring_mem.copies = 0;
	shift_mlx5_cq_find(&ring, consumer, QPN, recvs, most, &found);
	most = min(most, ring.slots);
	MUST(ring_mem.copies <= most + 1 && ring_mem.words <= to_end + 4 * (most + 1));
	MUST(found.success || !found.last);
	MUST(found.error || (!found.begins && !found.cause));
	MUST(found.error || (!found.first_error && !found.last_error));
	MUST(!found.begins || found.cause);
	MUST(found.cause != SHIFT_WC_WR_FLUSH_ERR && found.cause <= SHIFT_WC_GENERAL_ERR);
	if (alone)
		check_alone(&ring, consumer, room, recvs, most, &found);
	free(ring_mem.bytes);
	return 0;
}
