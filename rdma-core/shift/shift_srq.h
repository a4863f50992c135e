/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Receives of an SRQ that the rdma_shift module can take over: each has an entry
 * in a table that the kernel reads, and an id in the place of its wr_id, until its
 * completion is polled. See struct shift_abi_srq_table.
 *
 * No I/O and no libibverbs here.
 */
#ifndef SHIFT_SRQ_H
#define SHIFT_SRQ_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <rdma/shift-abi.h>

struct shift_srq_table {
	struct shift_abi_srq_table *map;	/* NULL: none */
	uint32_t		key;
	uint32_t		entries;
	uint32_t		entry_size;
	uint32_t		entry_offset;
	uint32_t		wqe_offset;	/* of the ids by WQE, if there are such */
	pthread_spinlock_t	lock;		/* free, nfree */
	uint32_t		*free;		/* ids to be used next */
	uint32_t		nfree;
};

static inline struct shift_abi_srq_entry *
shift_srq_entry(const struct shift_srq_table *t, uint32_t recv_id)
{
	return (void *)((char *)t->map + t->entry_offset +
			(size_t)(recv_id & SHIFT_RECV_ID_INDEX) * t->entry_size);
}

static inline uint32_t shift_srq_recv_id(const struct shift_abi_srq_entry *e)
{
	return atomic_load_explicit((const _Atomic(uint32_t) *)&e->recv_id,
				    memory_order_relaxed);
}

/* Take over a freshly mapped table; false, and nothing done, if it makes no sense */
static inline bool shift_srq_attach(struct shift_srq_table *t, void *map,
				  const struct shift_abi_reg_srq *reg)
{
	uint32_t i;

	if (!reg->key || !reg->entries || reg->entries > SHIFT_RECV_ID_INDEX + 1 ||
	    reg->entries & (reg->entries - 1) ||
	    reg->entry_size < sizeof(struct shift_abi_srq_entry) ||
	    reg->entry_offset < sizeof(*t->map) + reg->entries * sizeof(uint32_t) ||
	    reg->entry_offset > reg->table_len ||
	    (reg->table_len - reg->entry_offset) / reg->entry_size < reg->entries)
		return false;

	t->free = malloc(reg->entries * sizeof(*t->free));
	if (!t->free)
		return false;
	/* the last one is used first */
	for (i = 0; i < reg->entries; i++)
		t->free[i] = (reg->entries - 1 - i) | 1u << SHIFT_RECV_ID_GENERATION;
	t->nfree = reg->entries;
	t->key = reg->key;
	t->entries = reg->entries;
	t->entry_size = reg->entry_size;
	t->entry_offset = reg->entry_offset;
	t->wqe_offset = reg->wqe_offset;
	pthread_spin_init(&t->lock, PTHREAD_PROCESS_PRIVATE);
	t->map = map;
	return true;
}

/* The id of what the kernel has posted in a WQE; 0: nothing */
static inline uint32_t shift_srq_lent_id(const struct shift_srq_table *t, uint32_t wqe)
{
	const _Atomic(uint32_t) *ids = (void *)((char *)t->map + t->wqe_offset);

	return atomic_load_explicit(&ids[wqe], memory_order_relaxed);
}

static inline uint32_t shift_srq_max_sge(const struct shift_srq_table *t)
{
	return (t->entry_size - sizeof(struct shift_abi_srq_entry)) /
	       sizeof(struct shift_abi_sge);
}

/* A id to post with; 0: all are in use */
static inline uint32_t shift_srq_take(struct shift_srq_table *t)
{
	uint32_t recv_id = 0;

	pthread_spin_lock(&t->lock);
	if (t->nfree)
		recv_id = t->free[--t->nfree];
	pthread_spin_unlock(&t->lock);
	return recv_id;
}

/* The id of the same entry, of another generation */
static inline uint32_t shift_srq_next_id(uint32_t recv_id)
{
	recv_id += 1u << SHIFT_RECV_ID_GENERATION;
	if (!(recv_id >> SHIFT_RECV_ID_GENERATION))
		recv_id += 1u << SHIFT_RECV_ID_GENERATION;
	return recv_id;
}

/* It can be used again, as another generation */
static inline void shift_srq_give(struct shift_srq_table *t, uint32_t recv_id)
{
	recv_id = shift_srq_next_id(recv_id);
	pthread_spin_lock(&t->lock);
	t->free[t->nfree++] = recv_id;
	pthread_spin_unlock(&t->lock);
}

/* The entry of @recv_id is filled in: its place in the order. Holds the SRQ's lock. */
static inline void shift_srq_posted(struct shift_srq_table *t, uint32_t recv_id)
{
	struct shift_abi_srq_entry *e = shift_srq_entry(t, recv_id);
	uint64_t seq = t->map->posted;

	e->seq = seq;
	atomic_store_explicit((_Atomic(uint32_t) *)&e->recv_id, recv_id, memory_order_release);
	t->map->order[seq & (t->entries - 1)] = recv_id;
	atomic_store_explicit((_Atomic(uint64_t) *)&t->map->posted, seq + 1,
			      memory_order_release);
	/* the kernel sets the flag, runs a barrier on each CPU, and looks here */
	atomic_signal_fence(memory_order_seq_cst);
}

static inline uint64_t shift_srq_wr_id(const struct shift_srq_table *t, uint32_t recv_id)
{
	return (uint64_t)t->key << 32 | recv_id;
}

/* Is @wr_id of a receive of this SRQ that was not completed yet? */
static inline bool shift_srq_is_live(const struct shift_srq_table *t, uint64_t wr_id)
{
	uint32_t recv_id = wr_id;

	return wr_id >> 32 == t->key && recv_id >> SHIFT_RECV_ID_GENERATION &&
	       (recv_id & SHIFT_RECV_ID_INDEX) < t->entries &&
	       shift_srq_recv_id(shift_srq_entry(t, recv_id)) == recv_id;
}

/* It is complete: what the application calls it. The id is free from now on. */
static inline uint64_t shift_srq_complete(struct shift_srq_table *t, uint64_t wr_id)
{
	struct shift_abi_srq_entry *e = shift_srq_entry(t, wr_id);
	uint64_t theirs = e->wr_id;

	atomic_store_explicit((_Atomic(uint32_t) *)&e->recv_id, 0, memory_order_release);
	shift_srq_give(t, wr_id);
	return theirs;
}

#endif /* SHIFT_SRQ_H */
