// SPDX-License-Identifier: GPL-2.0
/* What a provider registers of an SRQ: the table that it shares with the kernel. */
#include <linux/moduleparam.h>
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "core/provider.h"
#include "core/ring.h"
#include "core/srq.h"
#include "srq/srq.h"

#define ENTRIES_MIN	64u
#define ENTRIES_MAX	(SHIFT_RECV_ID_INDEX + 1)
#define TABLE_MAX	(16u << 20)
#define DEPTH_MAX	4096u

/* Read when a provider registers an SRQ. */
static bool srq_enabled = true;
module_param_named(srq, srq_enabled, bool, 0644);
MODULE_PARM_DESC(srq, "protect queue pairs on shared receive queues (default: Y)");

/*
 * The table has room for twice what the ring holds, because as many receives may be completed and
 * not polled yet.  If an application leaves more completions unpolled, its provider gives up the
 * table.
 */
static int table_layout(struct shift_srq *ssrq, u32 slots, bool by_wqe)
{
	struct shift_srq_rings *rings = &ssrq->rings;
	u32 words;
	u64 len;

	if (slots > ENTRIES_MAX / 2)
		return -E2BIG;
	rings->entries = max(2 * slots, ENTRIES_MIN);
	rings->entry_size = sizeof(struct shift_abi_srq_entry) +
			   ssrq->max_sge * sizeof(struct shift_abi_sge);
	words = rings->entries;
	if (by_wqe) {
		rings->wqe_offset = sizeof(struct shift_abi_srq_table) + words * sizeof(u32);
		words += slots;
	}
	rings->entry_offset = ALIGN(sizeof(struct shift_abi_srq_table) + words * sizeof(u32), 64);
	len = PAGE_ALIGN(rings->entry_offset + (u64)rings->entries * rings->entry_size);
	if (len > TABLE_MAX)
		return -E2BIG;
	rings->table_len = len;
	ssrq->rec.depth = min(slots, DEPTH_MAX);
	/* part of a wr_id: not to be taken for a pointer or a small number of the application's */
	rings->key = get_random_u32() | 0x80000001u;
	return 0;
}

/* Are QPs on SRQs to be protected? */
bool shift_srq_is_enabled(void)
{
	return READ_ONCE(srq_enabled);
}

/**
 * shift_srq_make_table - make the table of an SRQ's receives
 * @ssrq: the SRQ, nothing posted yet; locked, or nobody else can find it.
 * @slots: of its ring, a power of two.
 * @gfp: GFP_KERNEL_ACCOUNT, or GFP_KERNEL: nobody pays for a user in the kernel.
 *
 * Context: process context.
 * Return: 0, -E2BIG, -ENOMEM.
 */
int shift_srq_make_table(struct shift_srq *ssrq, u32 slots, gfp_t gfp)
{
	struct shift_srq_record *rec = &ssrq->rec;
	bool by_wqe = ssrq->ops->by_entry;
	u32 i, n;
	int err;

	err = table_layout(ssrq, slots, by_wqe);
	if (err)
		return err;
	n = ssrq->rings.entries;
	ssrq->rings.table = __vmalloc(ssrq->rings.table_len, gfp | __GFP_ZERO);
	rec->known = kvcalloc(n, sizeof(*rec->known), gfp);
	rec->scratch = kvcalloc(n, sizeof(*rec->scratch), gfp);
	rec->recv = kvcalloc(n, sizeof(*rec->recv), gfp);
	rec->sge = kvcalloc((size_t)n * max(ssrq->max_sge, 1u), sizeof(*rec->sge), gfp);
	if (by_wqe) {
		rec->lent.ids = kvcalloc(slots, sizeof(*rec->lent.ids), gfp);
		rec->lent.order = kvcalloc(slots, sizeof(*rec->lent.order), gfp);
	}
	if (!ssrq->rings.table || !rec->known || !rec->scratch || !rec->recv || !rec->sge ||
	    (by_wqe && (!rec->lent.ids || !rec->lent.order))) {
		shift_srq_free_table(ssrq);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++) {
		INIT_LIST_HEAD(&rec->recv[i].node);
		rec->recv[i].cqe.done = rec->done;
		rec->recv[i].ssrq = ssrq;
	}
	return 0;
}

static void rings_unpin(struct shift_srq_rings *rings)
{
	shift_word_unpin(&rings->flag);
	shift_word_unpin(&rings->db);
	shift_ring_unpin(&rings->ring);
}

/**
 * shift_srq_register - pin an SRQ's ring, and make the table that its provider is to keep
 * @ssrq: the SRQ, nothing posted yet.
 * @reg: what the provider says; key and layout of the table are in @ssrq.
 *
 * An SRQ can be registered once.
 *
 * Context: process context of the owner.
 * Return: 0, -EINVAL, -EFAULT, -E2BIG, -EEXIST, -ENOENT (it is being destroyed), -ENOMEM,
 * -EOPNOTSUPP (switched off by the module parameter srq, or the provider is too old).
 */
int shift_srq_register(struct shift_srq *ssrq, const struct shift_abi_reg_srq *reg)
{
	const struct shift_provider *provider = shift_dev_provider(ssrq->sdev, reg->provider);
	struct shift_srq_rings pins = {};
	int err;

	if (!provider || !provider->srq)
		return -EINVAL;
	if (!shift_srq_is_enabled())
		return -EOPNOTSUPP;
	err = provider->srq->pin(ssrq, &pins, reg);
	if (!err)
		err = shift_word_pin(&pins.flag, reg->flag_addr);
	if (err)
		goto err_pins;
	mutex_lock(&ssrq->lock);
	if (ssrq->dead || ssrq->rings.table)
		err = ssrq->dead ? -ENOENT : -EEXIST;
	else
		err = shift_srq_make_table(ssrq, pins.ring.slots, GFP_KERNEL_ACCOUNT);
	if (!err) {
		ssrq->rings.ring = pins.ring;
		ssrq->rings.flag = pins.flag;
		ssrq->rings.db = pins.db;
		ssrq->rings.registered = true;
	}
	mutex_unlock(&ssrq->lock);
	if (!err)
		return 0;
err_pins:
	rings_unpin(&pins);
	return err;
}

/*
 * The provider has unregistered the SRQ, or its file was closed.  User memory is not touched after
 * this returns.
 */
void shift_srq_unregister(struct shift_srq *ssrq)
{
	struct shift_srq_rings *rings = &ssrq->rings, pins = {};

	mutex_lock(&ssrq->lock);
	/* receives are lent to the ring under this lock */
	spin_lock_bh(&ssrq->post_lock);
	swap(pins.ring, rings->ring);
	swap(pins.flag, rings->flag);
	swap(pins.db, rings->db);
	rings->registered = false;
	spin_unlock_bh(&ssrq->post_lock);
	mutex_unlock(&ssrq->lock);
	rings_unpin(&pins);
}
