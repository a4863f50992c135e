// SPDX-License-Identifier: GPL-2.0
/* Which slot has a wr_id: see wr_ids.h.  Nothing here allocates, sleeps or locks. */
#include "pure/wr_ids.h"

/* wr_ids are pointers, or numbers in order. */
static u32 *wr_bucket(const struct shift_wr_ids *ids, u64 wr_id)
{
	return &ids->bucket[(wr_id * 0x9e3779b97f4a7c15ull >> 32) & (ids->slots - 1)];
}

/* Bytes of memory for so many slots. */
size_t shift_wr_ids_size(u32 slots)
{
	return (size_t)slots * (sizeof(struct shift_wr_slot) + sizeof(u32));
}

/**
 * shift_wr_ids_init() - all slots are free
 * @ids: what is initialized.
 * @mem: shift_wr_ids_size() bytes of zeros, aligned for u64.
 * @slots: a power of two.
 */
void shift_wr_ids_init(struct shift_wr_ids *ids, void *mem, u32 slots)
{
	u32 i;

	*ids = (struct shift_wr_ids) {
		.slots = slots, .slot = mem, .bucket = mem + slots * sizeof(*ids->slot),
	};
	for (i = 0; i < slots; i++) {
		ids->bucket[i] = SHIFT_WR_NONE;
		ids->slot[i].next = i + 1 < slots ? i + 1 : SHIFT_WR_NONE;
	}
}

/**
 * shift_wr_ids_take() - a slot for a request, which is not listed yet
 * @ids: the slots.
 * @wr_id: the request's.
 *
 * Return: the slot; SHIFT_WR_NONE: none is free.
 */
u32 shift_wr_ids_take(struct shift_wr_ids *ids, u64 wr_id)
{
	struct shift_wr_slot *slot;
	u32 index = ids->free;

	if (index == SHIFT_WR_NONE)
		return index;
	slot = &ids->slot[index];
	ids->free = slot->next;
	slot->wr_id = wr_id;
	slot->used = true;
	if (!++slot->generation)
		slot->generation = 1;
	return index;
}

/**
 * shift_wr_ids_list() - the slot is found by its wr_id from now on
 * @ids: the slots.
 * @index: one that is used.  If it is listed nothing happens.
 */
void shift_wr_ids_list(struct shift_wr_ids *ids, u32 index)
{
	struct shift_wr_slot *slot = &ids->slot[index];
	u32 *bucket = wr_bucket(ids, slot->wr_id);

	if (slot->listed)
		return;
	slot->listed = true;
	slot->next = *bucket;
	*bucket = index;
	ids->listed++;
}

/* The opposite of shift_wr_ids_list().  If it is not listed nothing happens. */
void shift_wr_ids_unlist(struct shift_wr_ids *ids, u32 index)
{
	struct shift_wr_slot *slot = &ids->slot[index];
	u32 *from = wr_bucket(ids, slot->wr_id);

	if (!slot->listed)
		return;
	while (*from != index)
		from = &ids->slot[*from].next;
	*from = slot->next;
	slot->listed = false;
	ids->listed--;
}

/**
 * shift_wr_ids_find() - the slot that has a wr_id
 * @ids: the slots.
 * @wr_id: what is looked for.
 *
 * Return: one that is listed; SHIFT_WR_NONE: there is none.
 */
u32 shift_wr_ids_find(const struct shift_wr_ids *ids, u64 wr_id)
{
	u32 index = *wr_bucket(ids, wr_id);

	while (index != SHIFT_WR_NONE && ids->slot[index].wr_id != wr_id)
		index = ids->slot[index].next;
	return index;
}

/**
 * shift_wr_ids_free() - the request is completed
 * @ids: the slots.
 * @index: its slot.  If it is free nothing happens.
 */
void shift_wr_ids_free(struct shift_wr_ids *ids, u32 index)
{
	struct shift_wr_slot *slot = &ids->slot[index];

	if (!slot->used)
		return;
	shift_wr_ids_unlist(ids, index);
	slot->used = false;
	slot->next = ids->free;
	ids->free = index;
}
