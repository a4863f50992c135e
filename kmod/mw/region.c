// SPDX-License-Identifier: GPL-2.0
/*
 * Regions: MRs that stand in for memory windows while their QP runs on a proxy QP.
 *
 * A region is a fast-registered MR of a window's range, of pages that were pinned when the
 * application registered its memory.  It is made in the work item, when the peer asks for the
 * window's key.  The registrar registers it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include "core/account.h"
#include "core/object.h"
#include "core/proxy.h"
#include "core/qp.h"
#include "mw/mw.h"
#include "pure/mw_state.h"

/**
 * struct shift_region - an MR in place of a window
 * @list: in b->regions; ledger_lock and spd->region_mutex.
 * @all: in spd->regions.
 * @smr: the MR of the memory; only compared.
 * @mr: the region's MR; NULL: it was ended.
 * @key: the window's key.
 * @wire: the region's own key, while it is valid.
 * @gone: the peer has invalidated it; ledger_lock.
 */
struct shift_region {
	struct list_head list, all;
	const struct shift_mr *smr;
	struct ib_mr *mr;
	u32 key, wire;
	bool gone;
};

/* The pages of @win, one for each entry; NULL: no memory, or @win is outside of its MR. */
static struct scatterlist *pages_of(const struct shift_mr *smr, const struct shift_mw_state *win,
				    unsigned int *n)
{
	u64 from = win->addr - smr->iova + ib_umem_offset(smr->umem);
	u64 left = win->length;
	u32 offset = offset_in_page(from);
	struct sg_page_iter iter;
	struct scatterlist *sgl;
	unsigned int i;

	if (offset != offset_in_page(win->addr))
		return NULL;
	*n = (offset + left + PAGE_SIZE - 1) >> PAGE_SHIFT;
	sgl = kvmalloc_array(*n, sizeof(*sgl), GFP_NOIO | SHIFT_GFP_PAID);
	if (!sgl)
		return NULL;
	sg_init_table(sgl, *n);
	__sg_page_iter_start(&iter, smr->umem->sgt_append.sgt.sgl,
			     smr->umem->sgt_append.sgt.orig_nents, from >> PAGE_SHIFT);
	for (i = 0; i < *n; i++) {
		u32 part = min_t(u64, left, PAGE_SIZE - offset);

		if (!__sg_page_iter_next(&iter)) {
			kvfree(sgl);
			return NULL;
		}
		sg_set_page(&sgl[i], sg_page_iter_page(&iter), part, offset);
		left -= part;
		offset = 0;
	}
	return sgl;
}

/* Make a valid MR of the window's range on the path of @b; NULL: not possible now. */
static struct ib_mr *mr_make(struct shift_qp *sqp, struct shift_proxy *b,
			     const struct shift_mr *smr, const struct shift_mw_state *win)
{
	struct ib_device *ibdev = b->qp->device;
	struct scatterlist *sgl;
	unsigned int n, mapped;
	struct ib_mr *mr;
	int err = -EIO;

	sgl = pages_of(smr, win, &n);
	if (!sgl)
		return NULL;
	mr = ib_alloc_mr(b->qp->pd, IB_MR_TYPE_MEM_REG, n);
	if (IS_ERR(mr)) {
		mr = NULL;
		goto out_free;
	}
	mapped = ib_dma_map_sg(ibdev, sgl, n, DMA_BIDIRECTIONAL);
	if (mapped == n && ib_map_mr_sg(mr, sgl, n, NULL, PAGE_SIZE) == (int)n) {
		mr->iova = win->addr;
		ib_update_fast_reg_key(mr, win->key & 0xff);
		err = shift_registrar_register(sqp, b, mr, mr->rkey,
					       win->access | IB_ACCESS_LOCAL_WRITE);
	}
	/* a device that does no DMA, as rxe, has mapped nothing */
	if (mapped)
		ib_dma_unmap_sg(ibdev, sgl, n, DMA_BIDIRECTIONAL);
	if (err) {
		pr_warn_ratelimited("%s qp %u: no region for a memory window (%d)\n",
				    sqp->sdev->name, sqp->qpn, err);
		ib_dereg_mr(mr);
		mr = NULL;
	}
out_free:
	kvfree(sgl);
	return mr;
}

static void region_end(struct shift_region *region)
{
	struct ib_mr *mr = region->mr;

	WRITE_ONCE(region->mr, NULL);
	if (mr && ib_dereg_mr(mr))
		pr_warn_ratelimited("a region could not be deregistered\n");
}

/* spd->region_mutex */
static void region_free(struct shift_proxy *b, struct shift_region *region)
{
	lockdep_assert_held(&b->sqp->spd->region_mutex);
	region_end(region);
	spin_lock_bh(&b->sqp->ledger_lock);
	list_del(&region->list);
	spin_unlock_bh(&b->sqp->ledger_lock);
	list_del(&region->all);
	kfree(region);
}

static struct shift_region *region_find(const struct shift_proxy *b, u32 key)
{
	struct shift_region *region;

	list_for_each_entry(region, &b->regions, list)
		if (region->key == key && !region->gone && region->mr)
			return region;
	return NULL;
}

/* Make the region of a window.  @memory: out: the window's MR, with a reference, or untouched. */
static int region_make(struct shift_qp *sqp, struct shift_proxy *b, u32 key,
		       struct shift_region **result, struct shift_mr **memory)
{
	struct shift_region *region;
	struct shift_mw_state win;
	struct shift_mr *smr;

	if (shift_mw_find(sqp, key, &win))
		return -ENOENT;
	smr = *memory = shift_mr_find(sqp->sdev, win.lkey);
	if (!smr)
		return -ENOENT;
	/* the driver checked what was bound on the own NIC; check it here for this path */
	if (smr->lkey != win.lkey || smr->spd != sqp->spd || !smr->umem ||
	    win.addr < smr->iova || win.length > smr->length ||
	    win.addr - smr->iova > smr->length - win.length)
		return -ENOENT;
	region = kzalloc(sizeof(*region), GFP_NOIO | SHIFT_GFP_PAID);
	if (!region)
		return -ENOMEM;
	region->mr = mr_make(sqp, b, smr, &win);
	if (!region->mr) {
		kfree(region);
		return -ENOMEM;
	}
	region->smr = smr;
	region->key = key;
	region->wire = region->mr->rkey;
	list_add_tail(&region->all, &sqp->spd->regions);
	spin_lock_bh(&sqp->ledger_lock);
	list_add_tail(&region->list, &b->regions);
	spin_unlock_bh(&sqp->ledger_lock);
	*result = region;
	return 0;
}

/**
 * shift_region_get - the key for a window on the present path
 * @sqp: the QP, locked, armed on a proxy QP.
 * @key: the window's key.
 * @wire: out: the key that the peer is to use.
 *
 * Context: process context; sleeps.
 * Return: 0; -ENOENT: no such window is bound; anything else: ask again.
 */
int shift_region_get(struct shift_qp *sqp, u32 key, u32 *wire)
{
	struct shift_proxy *b = sqp->rec.proxy;
	struct shift_region *region;
	struct shift_mr *smr = NULL;
	int err = 0;

	lockdep_assert_held(&sqp->lock);
	if (!b || !b->armed)
		return -EAGAIN;
	mutex_lock(&sqp->spd->region_mutex);
	region = region_find(b, key);
	if (!region)
		err = region_make(sqp, b, key, &region, &smr);
	if (!err)
		*wire = region->wire;
	mutex_unlock(&sqp->spd->region_mutex);
	/* after the unlock: the last reference takes a region_mutex, perhaps that of another PD */
	if (smr)
		shift_mr_put(smr);
	return err;
}

/* This end invalidates a window: end its region; true if there was one. */
bool shift_region_drop(struct shift_qp *sqp, u32 key)
{
	struct shift_proxy *b = sqp->rec.proxy;
	struct shift_region *region = NULL;

	lockdep_assert_held(&sqp->lock);
	if (!b)
		return false;
	mutex_lock(&sqp->spd->region_mutex);
	region = region_find(b, key);
	if (region)
		region_free(b, region);
	mutex_unlock(&sqp->spd->region_mutex);
	return region;
}

/* Free regions that the peer has invalidated, or that were revoked. */
void shift_region_reap(struct shift_qp *sqp)
{
	struct shift_region *region, *next;
	struct shift_proxy *b = sqp->rec.proxy;

	lockdep_assert_held(&sqp->lock);
	if (!b || list_empty(&b->regions))
		return;
	mutex_lock(&sqp->spd->region_mutex);
	list_for_each_entry_safe(region, next, &b->regions, list)
		if (READ_ONCE(region->gone) || !region->mr)
			region_free(b, region);
	mutex_unlock(&sqp->spd->region_mutex);
}

/* Free the regions of a proxy QP that is destroyed. */
void shift_regions_free(struct shift_proxy *b)
{
	struct shift_region *region, *next;

	mutex_lock(&b->sqp->spd->region_mutex);
	list_for_each_entry_safe(region, next, &b->regions, list)
		region_free(b, region);
	mutex_unlock(&b->sqp->spd->region_mutex);
	shift_registrar_free(b);
}

/**
 * shift_region_revoke - the application deregisters memory, or frees a window
 * @spd: its PD.
 * @smr: the memory; NULL: it is a window.
 * @index: index of the window's keys.
 *
 * Context: process context; the memory or window cannot be looked up any more, or is not bound.
 */
void shift_region_revoke(struct shift_pd *spd, const struct shift_mr *smr, u32 index)
{
	struct shift_region *region;

	mutex_lock(&spd->region_mutex);
	list_for_each_entry(region, &spd->regions, all)
		if (smr ? region->smr == smr : shift_mw_state_index(region->key) == index)
			region_end(region);
	mutex_unlock(&spd->region_mutex);
}

/* Unpin the pages of an MR that windows could be bound to; no region of them is left. */
void shift_mr_unpin(struct shift_mr *smr)
{
	struct ib_umem *umem;

	shift_region_revoke(smr->spd, smr, 0);
	mutex_lock(&smr->spd->region_mutex);
	umem = smr->umem;
	WRITE_ONCE(smr->umem, NULL);
	mutex_unlock(&smr->spd->region_mutex);
	if (!umem)
		return;
	shift_account_unpin_begin(smr->account, smr->npages);
	ib_umem_release(umem);
	shift_account_unpin_end(smr->account, 0);
}

u32 shift_region_invalidated(struct shift_qp *sqp, u32 wire)
{
	struct shift_region *region;

	lockdep_assert_held(&sqp->ledger_lock);
	list_for_each_entry(region, &sqp->rec.proxy->regions, list) {
		if (region->wire != wire || region->gone)
			continue;
		WRITE_ONCE(region->gone, true);
		shift_mw_invalidated(sqp, region->key);
		return region->key;
	}
	return wire;
}

bool shift_region_is_there(const struct shift_qp *sqp, u32 key)
{
	const struct shift_region *region;

	lockdep_assert_held(&sqp->ledger_lock);
	list_for_each_entry(region, &sqp->rec.proxy->regions, list)
		if (region->key == key && !region->gone && READ_ONCE(region->mr))
			return true;
	return false;
}
