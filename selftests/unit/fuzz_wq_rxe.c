// SPDX-License-Identifier: GPL-2.0
/*
 * Any bytes as a ring: what comes out stays inside it.  The input is a head of
 * HEAD bytes (geometry, indices, start) and then as many slots as there are.
 */
#include <stdlib.h>
#include "provider/rxe/wqe.h"
#include "pure/psn.h"

#define HEAD	16

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(cond)	do { if (!(cond)) abort(); } while (0)

static u32 word(const u8 *p)
{
	u32 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void check_slot(const u8 *slot, u32 slot_size, u32 skip)
{
	struct shift_rxe_mark mark;
	struct shift_wr wr;
	u64 sum = 0;
	u32 i, length;

	MUST(shift_rxe_mark(slot, slot_size, &mark) == 0 ||
	     slot_size < shift_rxe_slot_min());
	if (shift_rxe_decode(slot, slot_size, &wr))
		return;
	MUST(slot_size >= shift_rxe_slot_min());
	MUST(wr.num_sge <= SHIFT_WR_MAX_SGE && wr.length <= SHIFT_WR_MAX_LENGTH);
	MUST(shift_wr_packets(wr.opcode, wr.length, 256) <= SHIFT_PSN_MASK);
	if (wr.inline_data) {
		MUST(wr.inline_data >= slot && wr.length <= slot_size &&
		     wr.inline_data + wr.length <= slot + slot_size);
	} else {
		for (i = 0; i < wr.num_sge; i++)
			sum += wr.sge[i].length;
		MUST(sum == wr.length);
	}
	length = wr.length;
	if (shift_wr_skip(&wr, skip))
		return;
	MUST(wr.length == length - skip);
	if (!wr.inline_data) {
		for (sum = 0, i = 0; i < wr.num_sge; i++)
			sum += wr.sge[i].length;
		MUST(sum == wr.length);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct shift_rxe_rewind r;
	struct shift_rxe_view v;
	u8 *ring;
	u32 i;

	if (size < HEAD)
		return 0;
	memset(&v, 0, sizeof(v));
	v.slots = 1u << (data[0] & 7);
	v.slot_size = (data[1] & 3) == 3 ? 100u + data[2] :
					   shift_rxe_slot_min() + 16u * (data[1] & 7);
	v.errored = data[3] & 1;
	v.in_order = data[3] & 2;
	v.acked_valid = data[3] & 4;
	v.producer = data[4] & (v.slots - 1);
	v.consumer = data[5] & (v.slots - 1);
	v.acked = data[6] & (v.slots - 1);
	v.mtu = 256u << (data[7] & 3);
	v.start_psn = word(data + 8);
	data += HEAD;
	size -= HEAD;

	/* its own allocation, so that a byte too far is seen; short input repeats */
	ring = calloc(v.slots, v.slot_size);
	if (!ring)
		return 0;
	for (i = 0; i < v.slots && size; i++) {
		size_t from = ((size_t)i * v.slot_size) % size;
		size_t n = size - from < v.slot_size ? size - from : v.slot_size;

		memcpy(ring + (size_t)i * v.slot_size, data + from, n);
	}
	v.ring = ring;
	if (!shift_rxe_rewind(&v, &r)) {
		MUST(r.first < v.slots && r.count < v.slots);
		MUST(((r.first + r.count) & (v.slots - 1)) == v.producer);
		MUST(r.first_psn <= SHIFT_PSN_MASK);
	}
	for (i = 0; i < v.slots; i++)
		check_slot(ring + (size_t)i * v.slot_size, v.slot_size,
			   word(data - 4));
	free(ring);
	return 0;
}
