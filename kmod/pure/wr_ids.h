/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Slots of requests whose completions come in any order, and name them by the wr_id that their
 * user has given: the receives of a shared receive queue.  Pure; the caller serializes.
 */
#ifndef SHIFT_PURE_WR_IDS_H
#define SHIFT_PURE_WR_IDS_H

#include "pure/pure.h"

#define SHIFT_WR_NONE	(~0u)		/* no slot */

/**
 * struct shift_wr_slot - a request
 * @wr_id: the user's.
 * @next: in a bucket, if it is @listed; in the list of free slots, if it is not @used.
 * @generation: never 0 once it was used; another one each time.
 */
struct shift_wr_slot {
	u64 wr_id;
	u32 next;
	u16 generation;
	bool used;
	bool listed;
};

/**
 * struct shift_wr_ids - slots, and which of those that are listed has a wr_id
 * @slots: a power of two.
 * @free: the first free one.
 * @listed: how many are listed.
 * @slot: all slots.
 * @bucket: @slots of them.
 */
struct shift_wr_ids {
	u32 slots, free, listed;
	struct shift_wr_slot *slot;
	u32 *bucket;
};

size_t shift_wr_ids_size(u32 slots);
void shift_wr_ids_init(struct shift_wr_ids *ids, void *mem, u32 slots);
u32 shift_wr_ids_take(struct shift_wr_ids *ids, u64 wr_id);
void shift_wr_ids_list(struct shift_wr_ids *ids, u32 index);
void shift_wr_ids_unlist(struct shift_wr_ids *ids, u32 index);
u32 shift_wr_ids_find(const struct shift_wr_ids *ids, u64 wr_id);
void shift_wr_ids_free(struct shift_wr_ids *ids, u32 index);

#endif /* SHIFT_PURE_WR_IDS_H */
