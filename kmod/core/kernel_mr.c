// SPDX-License-Identifier: GPL-2.0
/*
 * What is registered of the MRs of users in the kernel, and their keys.
 *
 * Of such an MR the index, which is the key without its low byte, stays for its life.  Each
 * registration may change the low byte.  The mirror has an index of its own and the same low byte.
 */
#include <linux/hashtable.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include "core/dma.h"
#include "core/kernel_mr.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/stat.h"
#include "pure/wr.h"

/*
 * All of them, by the index of their keys.  Each registration and invalidation looks up its MR,
 * which takes a third of the instructions here that it takes in sdev->mrs.
 */
static DEFINE_HASHTABLE(kernel_mrs, 12);
static DEFINE_SPINLOCK(kernel_mrs_lock);	/* held to change it */

/**
 * shift_kernel_mr_new - what the shadow of an MR has only if its user is in the kernel
 * @smr: the shadow.
 * @lkey: the MR's.
 *
 * Context: process context.
 * Return: for kfree(); NULL: there is no memory.
 */
struct shift_kernel_mr *shift_kernel_mr_new(struct shift_mr *smr, u32 lkey)
{
	struct shift_kernel_mr *kernel = kzalloc(sizeof(*kernel), GFP_KERNEL);

	if (!kernel)
		return NULL;
	kernel->smr = smr;
	kernel->index = lkey >> 8;
	spin_lock_init(&kernel->lock);
	sg_init_table(kernel->map.sg, SHIFT_KERNEL_SG_KEPT);
	return kernel;
}

/* It is found from here on.  Process context. */
void shift_kernel_mr_add(struct shift_kernel_mr *kernel)
{
	spin_lock(&kernel_mrs_lock);
	hash_add_rcu(kernel_mrs, &kernel->node, kernel->index);
	spin_unlock(&kernel_mrs_lock);
}

/* It is not found any more, but by those that are looking for it under RCU.  Process context. */
void shift_kernel_mr_del(struct shift_kernel_mr *kernel)
{
	spin_lock(&kernel_mrs_lock);
	hash_del_rcu(&kernel->node);
	spin_unlock(&kernel_mrs_lock);
}

/* The MR of the QP's PD with a key's index, or NULL; RCU. */
static struct shift_mr *mr_of(const struct shift_pd *spd, u32 key)
{
	struct shift_kernel_mr *kernel;
	u32 index = key >> 8;

	hash_for_each_possible_rcu(kernel_mrs, kernel, node, index)
		if (kernel->index == index && kernel->smr->spd == spd)
			return kernel->smr;
	return NULL;
}

/* The shadow of an MR, or NULL; RCU. */
struct shift_mr *shift_kernel_mr_shadow(const struct ib_mr *mr)
{
	struct shift_kernel_mr *kernel;
	u32 index = mr->lkey >> 8;

	hash_for_each_possible_rcu(kernel_mrs, kernel, node, index)
		if (kernel->index == index && kernel->smr->mr == mr)
			return kernel->smr;
	return NULL;
}

/* The MR that an operation is about, or NULL; RCU. */
static struct shift_mr *mr_of_op(const struct shift_qp *sqp, struct shift_kernel_mr_op op)
{
	return sqp->spd && shift_kernel_mr_local(op.opcode) ? mr_of(sqp->spd, op.key) : NULL;
}

/*
 * The device has a registration, unless the peer has invalidated it since.  As long as it may not
 * have executed that, it may have the one before.
 */
static void mr_posted(struct shift_qp *sqp, struct shift_kernel_mr *kernel, u32 key, u8 path)
{
	struct shift_kernel_mr_on *on = &kernel->on[shift_path_device(path)];
	struct shift_kernel_mr_on was = *on;

	lockdep_assert_held(&kernel->lock);
	WRITE_ONCE(kernel->owner, sqp);
	if (kernel->any_gone && kernel->gone == key)
		return;
	*on = (struct shift_kernel_mr_on) { .valid = true, .key = key };
	if (!was.valid)
		return;
	on->also = was.also || was.key != key;
	on->older = was.also ? was.older : was.key;
}

/* A registration has ended on a device. */
static void mr_ended(struct shift_kernel_mr *kernel, u32 key, u8 path)
{
	struct shift_kernel_mr_on *on = &kernel->on[shift_path_device(path)];

	lockdep_assert_held(&kernel->lock);
	kernel->live = false;
	if (on->also && on->older == key)
		on->also = false;
	else
		on->valid = false;
}

/**
 * shift_kernel_mr_posted - an operation was given to a device, and may be executed
 * @sqp: the QP.
 * @op: the operation.
 * @path: of the device.
 *
 * Context: any.
 */
void shift_kernel_mr_posted(struct shift_qp *sqp, struct shift_kernel_mr_op op, u8 path)
{
	struct shift_mr *smr;
	unsigned long flags;

	if (op.opcode != SHIFT_WR_REG_MR)
		return;
	rcu_read_lock();
	smr = mr_of_op(sqp, op);
	if (smr) {
		spin_lock_irqsave(&smr->kernel->lock, flags);
		mr_posted(sqp, smr->kernel, op.key, path);
		spin_unlock_irqrestore(&smr->kernel->lock, flags);
	}
	rcu_read_unlock();
}

static void mr_executed(struct shift_qp *sqp, struct shift_kernel_mr *kernel,
			struct shift_kernel_mr_op op, u8 path)
{
	struct shift_kernel_mr_on *on = &kernel->on[shift_path_device(path)];

	lockdep_assert_held(&kernel->lock);
	if (op.opcode == SHIFT_WR_LOCAL_INV) {
		mr_ended(kernel, op.key, path);
		return;
	}
	kernel->key = op.key;
	kernel->access = op.access;
	kernel->live = !kernel->any_gone || kernel->gone != op.key;
	WRITE_ONCE(kernel->owner, sqp);
	/* what the other device has is of before, even if its key, one of 256, is the same */
	kernel->on[!shift_path_device(path)].sure = false;
	if (!kernel->live) {
		/* the same key comes again after 256 registrations */
		kernel->any_gone = false;
		return;
	}
	/* the next registration may have been posted, and executed, too */
	if (on->valid && !on->sure && on->key != op.key)
		on->older = op.key;
	else
		*on = (struct shift_kernel_mr_on) { .valid = true, .sure = true, .key = op.key };
	on->also = !on->sure;
}

/**
 * shift_kernel_mr_executed - an operation was executed on a device
 * @sqp: the QP.
 * @op: the operation.
 * @path: of the device.
 *
 * Context: any; RCU.
 */
void shift_kernel_mr_executed(struct shift_qp *sqp, struct shift_kernel_mr_op op, u8 path)
{
	struct shift_mr *smr = mr_of_op(sqp, op);
	unsigned long flags;

	if (!smr)
		return;
	spin_lock_irqsave(&smr->kernel->lock, flags);
	mr_executed(sqp, smr->kernel, op, path);
	spin_unlock_irqrestore(&smr->kernel->lock, flags);
}

/**
 * shift_kernel_mr_invalidated - the peer has invalidated an MR by what was received
 * @sqp: the QP.
 * @key: the key, as the user knows it.
 * @path: where it was received.
 *
 * Context: any; RCU.
 */
void shift_kernel_mr_invalidated(struct shift_qp *sqp, u32 key, u8 path)
{
	struct shift_mr *smr = sqp->spd ? mr_of(sqp->spd, key) : NULL;
	unsigned long flags;

	if (!smr)
		return;
	spin_lock_irqsave(&smr->kernel->lock, flags);
	/* its registration is still in the record */
	if (!smr->kernel->live || smr->kernel->key != key) {
		smr->kernel->gone = key;
		smr->kernel->any_gone = true;
	}
	mr_ended(smr->kernel, key, path);
	spin_unlock_irqrestore(&smr->kernel->lock, flags);
}

/**
 * shift_kernel_mr_shown - the key that the user knows
 * @sqp: the QP.
 * @wire: the key that the device has shown.
 * @path: the device's.
 *
 * Context: any.
 */
u32 shift_kernel_mr_shown(const struct shift_qp *sqp, u32 wire, u8 path)
{
	struct shift_mr *smr;
	u32 key = wire;

	if (path != SHIFT_PATH_BACKUP)
		return wire;
	rcu_read_lock();
	smr = xa_load(&sqp->spd->mirrors, wire >> 8);
	if (smr)
		key = shift_kernel_key(smr->rkey, wire);
	rcu_read_unlock();
	return key;
}

/* The device's own MR on a path; NULL: there is none. */
struct ib_mr *shift_kernel_mr_of(const struct shift_mr *smr, u8 path)
{
	return path == SHIFT_PATH_BACKUP ? READ_ONCE(smr->mirror) : smr->mr;
}

/*
 * May this thread map the mirror?  If another one does, the mirror is of no use when that ends.
 * The caller has seen what is to be mapped under the same lock, so that nobody maps what is newer
 * in between.
 */
static bool mirror_map_begin(struct shift_kernel_mr *kernel)
{
	bool busy = kernel->mapping;

	lockdep_assert_held(&kernel->lock);
	kernel->mapping = true;
	kernel->clash |= busy;
	return !busy;
}

static void mirror_map_end(struct shift_kernel_mr *kernel, bool whole)
{
	unsigned long flags;

	spin_lock_irqsave(&kernel->lock, flags);
	kernel->unmapped = !whole || kernel->clash;
	kernel->mapping = false;
	kernel->clash = false;
	spin_unlock_irqrestore(&kernel->lock, flags);
}

/*
 * Give the mirror the pages of a list, as the MR has them, after mirror_map_begin().  iSER and
 * rdma_rw map an MR anew before they post what invalidates it, so that a failover may just be
 * mapping what it had before.
 */
static void mirror_map(struct shift_mr *smr, struct ib_mr *mirror, struct scatterlist *sg,
		       int nents, unsigned int offset, unsigned int page_size, int mapped)
{
	int n;

	mirror->page_size = page_size;
	n = mirror->device->ops.map_mr_sg(mirror, sg, nents, &offset);
	if (n != mapped)
		shift_stat_inc(SHIFT_STAT_MIRROR_FAILED);
	mirror_map_end(smr->kernel, n == mapped);
}

/* Is all that is mapped memory of the host?  The other NIC may not reach that of another device. */
static bool is_memory(struct ib_device *ibdev, struct scatterlist *sg, int nents)
{
	struct scatterlist *each;
	int i;

	if (ib_uses_virt_dma(ibdev))
		return true;
	for_each_sg(sg, each, nents, i)
		if (sg_dma_len(each) && !shift_dma_is_memory(ibdev, sg_dma_address(each)))
			return false;
	return true;
}

/**
 * shift_kernel_mr_mapped - an MR of a user's was mapped
 * @smr: its shadow.
 * @sg: the list, as the op map_mr_sg was given it.
 * @nents: the same.
 * @offset: the same.
 * @mapped: what it has returned: at least 1.
 *
 * The mirror is mapped when it is going to be registered, which it seldom is.  Until then a short
 * list is kept.  Its memory stays mapped for the device as long as the user's MR is registered.
 *
 * Context: any; RCU.
 */
void shift_kernel_mr_mapped(struct shift_mr *smr, struct scatterlist *sg, int nents,
			    unsigned int offset, int mapped)
{
	struct shift_kernel_map *map = &smr->kernel->map;
	struct ib_mr *mirror = READ_ONCE(smr->mirror);
	bool fits = mirror && is_memory(smr->mr->device, sg, nents);
	bool kept = fits && nents <= SHIFT_KERNEL_SG_KEPT, mine = false;
	unsigned long flags;
	int i;

	if (!mirror)
		return;
	spin_lock_irqsave(&smr->kernel->lock, flags);
	map->nents = kept ? nents : 0;
	map->offset = offset;
	map->page_size = smr->mr->page_size;
	map->mapped = mapped;
	for (i = 0; i < map->nents; i++, sg = sg_next(sg)) {
		sg_dma_address(&map->sg[i]) = sg_dma_address(sg);
		sg_dma_len(&map->sg[i]) = sg_dma_len(sg);
	}
	smr->kernel->unmapped |= !fits;
	smr->kernel->clash |= !fits && smr->kernel->mapping;
	if (fits && !kept)
		mine = mirror_map_begin(smr->kernel);
	spin_unlock_irqrestore(&smr->kernel->lock, flags);
	if (!fits) {
		/* its QPs stay where they are */
		shift_pd_spoil(smr->spd, SHIFT_REASON_OPERATION);
	} else if (mine) {
		mirror_map(smr, mirror, sg, nents, offset, smr->mr->page_size, mapped);
	}
}

/* Has the mirror the pages of the MR?  They are given to it if they were kept.  RCU. */
static bool mirror_is_mapped(struct shift_mr *smr, struct ib_mr *mirror)
{
	struct shift_kernel_map map;
	bool mapped, mine = false;
	unsigned long flags;

	spin_lock_irqsave(&smr->kernel->lock, flags);
	map = smr->kernel->map;
	smr->kernel->map.nents = 0;
	if (map.nents)
		mine = mirror_map_begin(smr->kernel);
	spin_unlock_irqrestore(&smr->kernel->lock, flags);
	if (mine)
		mirror_map(smr, mirror, map.sg, map.nents, map.offset, map.page_size, map.mapped);
	spin_lock_irqsave(&smr->kernel->lock, flags);
	mapped = !smr->kernel->mapping && !smr->kernel->unmapped;
	spin_unlock_irqrestore(&smr->kernel->lock, flags);
	return mapped;
}

/**
 * shift_kernel_mr_find - the MR to register or to invalidate on a path
 * @sqp: the QP.
 * @key: the key of the operation, as the user knows it.
 * @path: the path.
 * @pages: it is to be registered, and has to have its pages.
 * @wire: out: the key there.
 *
 * Its range is that of the user's, who may have changed that since it was mapped.
 *
 * Context: any; the user keeps the MR for as long as the operation is outstanding.
 * Return: the MR; NULL: there is none.
 */
struct ib_mr *shift_kernel_mr_find(const struct shift_qp *sqp, u32 key, u8 path, bool pages,
				   u32 *wire)
{
	struct ib_mr *mr = NULL;
	struct shift_mr *smr;

	rcu_read_lock();
	smr = mr_of(sqp->spd, key);
	if (smr)
		mr = shift_kernel_mr_of(smr, path);
	if (mr && pages && mr != smr->mr && !mirror_is_mapped(smr, mr))
		mr = NULL;
	if (mr) {
		*wire = shift_kernel_key(path == SHIFT_PATH_BACKUP ? smr->mirror_rkey : smr->rkey,
					 key);
		if (mr != smr->mr)
			mr->iova = smr->mr->iova;
	}
	rcu_read_unlock();
	return mr;
}

/**
 * shift_kernel_mr_is_there - does the user still have the MR of a registration that was kept back?
 * @sqp: the QP.
 * @key: the key.
 * @mr: the MR as it was posted; only compared.
 *
 * Context: any.
 */
bool shift_kernel_mr_is_there(const struct shift_qp *sqp, u32 key, const struct ib_mr *mr)
{
	struct shift_mr *smr;
	bool there;

	rcu_read_lock();
	smr = mr_of(sqp->spd, key);
	there = smr && smr->mr == mr;
	rcu_read_unlock();
	return there;
}

/**
 * shift_kernel_lkey - a local key on a path
 * @spd: the QP's PD.
 * @lkey: the key as the user knows it.
 * @path: the path.
 * @key: out.
 *
 * Context: any.
 * Return: 0, -EACCES.
 */
int shift_kernel_lkey(const struct shift_pd *spd, u32 lkey, u8 path, u32 *key)
{
	const struct ib_pd *mirror = READ_ONCE(spd->mirror);
	struct shift_mr *smr;
	int err = -EACCES;

	*key = lkey;
	if (path != SHIFT_PATH_BACKUP)
		return 0;
	if (mirror && lkey == spd->pd->local_dma_lkey) {
		*key = mirror->local_dma_lkey;
		return 0;
	}
	rcu_read_lock();
	smr = mr_of(spd, lkey);
	if (smr && READ_ONCE(smr->mirror)) {
		*key = shift_kernel_key(smr->mirror_lkey, lkey);
		err = 0;
	}
	rcu_read_unlock();
	return err;
}

/**
 * shift_kernel_rkey - the key on the backup of memory of a kernel user's
 * @spd: the QP's PD.
 * @smr: the MR with the key's index; NULL: there is none.
 * @rkey: the key that the peer knows.
 * @key: out.
 *
 * Whether it is registered is up to the device, as it is for the key that the peer knows.
 *
 * Context: process context.
 * Return: false: there is none.
 */
bool shift_kernel_rkey(const struct shift_pd *spd, const struct shift_mr *smr, u32 rkey, u32 *key)
{
	const struct ib_pd *mirror = READ_ONCE(spd->mirror);

	if (smr && smr->kernel && smr->spd == spd && READ_ONCE(smr->mirror)) {
		*key = shift_kernel_key(smr->mirror_rkey, rkey);
		return true;
	}
	if (!mirror || !(spd->pd->flags & IB_PD_UNSAFE_GLOBAL_RKEY) ||
	    rkey != spd->pd->unsafe_global_rkey)
		return false;
	*key = mirror->unsafe_global_rkey;
	return true;
}
