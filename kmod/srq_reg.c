// SPDX-License-Identifier: GPL-2.0
/* What a provider registers of an SRQ: the table that both of us keep. */
#include <linux/moduleparam.h>
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "srq.h"

#define ENTRIES_MIN	64u
#define ENTRIES_MAX	(SHIFT_TAG_INDEX + 1)
#define TABLE_MAX	(16u << 20)
#define DEPTH_MAX	4096u

/* For operators who would rather not: looked at when a provider registers one. */
static bool srq_enabled = true;
module_param_named(srq, srq_enabled, bool, 0644);
MODULE_PARM_DESC(srq, "protect queue pairs on shared receive queues (default: Y)");

/*
 * Twice what the ring holds: as many again may have been completed and wait to be
 * polled.  An application that lets more wait leaves the table (rxe_shift_srq.c).
 */
static int table_layout(struct shift_srq *ssrq, u32 slots)
{
	u64 len;

	if (slots > ENTRIES_MAX / 2)
		return -E2BIG;
	ssrq->entries = max(2 * slots, ENTRIES_MIN);
	ssrq->entry_size = sizeof(struct shift_abi_srq_entry) +
			   ssrq->max_sge * sizeof(struct shift_abi_sge);
	ssrq->entry_offset = ALIGN(sizeof(struct shift_abi_srq_table) +
				   ssrq->entries * sizeof(u32), 64);
	len = PAGE_ALIGN(ssrq->entry_offset + (u64)ssrq->entries * ssrq->entry_size);
	if (len > TABLE_MAX)
		return -E2BIG;
	ssrq->table_len = len;
	ssrq->depth = min(slots, DEPTH_MAX);
	/* no pointer and no small number */
	ssrq->key = get_random_u32() | 0x80000001u;
	return 0;
}

void shift_srq_free_table(struct shift_srq *ssrq)
{
	vfree(ssrq->table);
	kvfree(ssrq->known);
	kvfree(ssrq->scratch);
	kvfree(ssrq->recv);
	kvfree(ssrq->sge);
	ssrq->table = NULL;
	ssrq->known = NULL;
	ssrq->scratch = NULL;
	ssrq->recv = NULL;
	ssrq->sge = NULL;
}

static int table_make(struct shift_srq *ssrq)
{
	u32 i, n = ssrq->entries;

	ssrq->table = vmalloc_user(ssrq->table_len);
	ssrq->known = kvcalloc(n, sizeof(*ssrq->known), GFP_KERNEL);
	ssrq->scratch = kvcalloc(n, sizeof(*ssrq->scratch), GFP_KERNEL);
	ssrq->recv = kvcalloc(n, sizeof(*ssrq->recv), GFP_KERNEL);
	ssrq->sge = kvcalloc((size_t)n * max(ssrq->max_sge, 1u), sizeof(*ssrq->sge), GFP_KERNEL);
	if (!ssrq->table || !ssrq->known || !ssrq->scratch || !ssrq->recv || !ssrq->sge) {
		shift_srq_free_table(ssrq);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++) {
		INIT_LIST_HEAD(&ssrq->recv[i].node);
		ssrq->recv[i].cqe.done = shift_srq_recv_done;
		ssrq->recv[i].ssrq = ssrq;
	}
	return 0;
}

/**
 * shift_srq_register - the provider will keep the table from now on
 * @ssrq: the SRQ, nothing posted yet.
 * @reg: what was asked for.
 *
 * Once in the life of an SRQ.
 *
 * Context: process context of the owner.
 * Return: 0, -EINVAL, -EFAULT, -E2BIG, -EEXIST, -ENOENT (it is being destroyed), -ENOMEM.
 */
int shift_srq_register(struct shift_srq *ssrq, const struct shift_abi_reg_srq *reg)
{
	struct shift_word flag;
	struct shift_ring ring;
	int err;

	if (!READ_ONCE(srq_enabled))
		return -EOPNOTSUPP;
	err = shift_ring_pin_rxe(&ring, reg->ring.addr, reg->ring.len);
	if (err)
		return err;
	err = shift_word_pin(&flag, reg->flag_addr);
	if (err)
		goto err_ring;
	mutex_lock(&ssrq->lock);
	if (ssrq->dead || ssrq->table)
		err = ssrq->dead ? -ENOENT : -EEXIST;
	else
		err = table_layout(ssrq, ring.slots);
	if (!err)
		err = table_make(ssrq);
	if (!err) {
		ssrq->ring = ring;
		ssrq->flag = flag;
		ssrq->registered = true;
	}
	mutex_unlock(&ssrq->lock);
	if (!err)
		return 0;
	shift_word_unpin(&flag);
err_ring:
	shift_ring_unpin(&ring);
	return err;
}

/* The provider lets go, or its file was closed: user memory is not touched any more. */
void shift_srq_unregister(struct shift_srq *ssrq)
{
	struct shift_ring ring;
	struct shift_word flag;

	mutex_lock(&ssrq->lock);
	ring = ssrq->ring;
	flag = ssrq->flag;
	memset(&ssrq->ring, 0, sizeof(ssrq->ring));
	ssrq->flag.page = NULL;
	ssrq->registered = false;
	mutex_unlock(&ssrq->lock);
	shift_ring_unpin(&ring);
	shift_word_unpin(&flag);
}
