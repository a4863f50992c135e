// SPDX-License-Identifier: GPL-2.0
/*
 * MRs of users in the kernel: each is noted and mirrored when it is allocated.  What is registered
 * of it later, and where: core/kernel_mr.c.
 */
#include <linux/slab.h>
#include "core/kernel_mr.h"
#include "core/object.h"
#include "core/pair.h"
#include "core/stat.h"
#include "failover/failover.h"
#include "verbs/verbs.h"

static struct shift_mr *kernel_mr_new(struct shift_pd *spd, struct ib_mr *mr)
{
	struct shift_mr *smr = kzalloc(sizeof(*smr), GFP_KERNEL);

	if (!smr)
		return NULL;
	smr->kernel = shift_kernel_mr_new(smr, mr->lkey);
	if (!smr->kernel) {
		kfree(smr);
		return NULL;
	}
	kref_init(&smr->ref);
	smr->spd = spd;
	shift_pd_get(spd);
	smr->mr = mr;
	smr->lkey = mr->lkey;
	smr->rkey = mr->rkey;
	return smr;
}

/* Make the mirror; its pair is in use. */
static int kernel_mr_mirror(struct shift_mr *smr, enum ib_mr_type type, u32 max_num_sg)
{
	struct shift_pd *spd = smr->spd;
	struct ib_pd *pd = shift_pd_mirror(spd);
	struct ib_mr *mirror;
	int err;

	if (!pd)
		return -ENOMEM;
	mirror = ib_alloc_mr(pd, type, max_num_sg);
	if (IS_ERR(mirror))
		return PTR_ERR(mirror);
	err = xa_insert(&spd->mirrors, mirror->rkey >> 8, smr, GFP_KERNEL);
	if (err) {
		ib_dereg_mr(mirror);
		return err;
	}
	smr->mirror_lkey = mirror->lkey;
	smr->mirror_rkey = mirror->rkey;
	shift_pair_add_mirror(spd->pair);
	WRITE_ONCE(smr->mirror, mirror);
	return 0;
}

static void kernel_mr_note(struct shift_pd *spd, struct ib_mr *mr, enum ib_mr_type type,
			   u32 max_num_sg)
{
	bool used = shift_pair_use(spd->pair);
	struct shift_mr *smr = kernel_mr_new(spd, mr);
	int err = -ENODEV;

	if (smr && used)
		err = kernel_mr_mirror(smr, type, max_num_sg);
	shift_stat_inc(err ? SHIFT_STAT_MIRROR_FAILED : SHIFT_STAT_MIRROR_MR);
	if (smr && err) {
		smr->lacks = SHIFT_REASON_MIRROR_MR;
		if (atomic_inc_return(&spd->unmirrored[smr->lacks]) == 1)
			shift_pairing_look(spd);
	}
	/* before anybody can take it out of @mrs, and out of this table with it */
	if (smr)
		shift_kernel_mr_add(smr->kernel);
	/* -EBUSY: an MR with this index went without its dereg_mr being seen here */
	if (!smr || xa_insert(&spd->sdev->mrs, smr->lkey >> 8, smr, GFP_KERNEL)) {
		shift_pd_spoil(spd, SHIFT_REASON_MIRROR_MR);
		if (smr) {
			shift_kernel_mr_del(smr->kernel);
			shift_mr_drop_mirror(smr);
			shift_mr_put(smr);
		}
	}
	if (used)
		shift_pair_unuse(spd->pair);
}

static struct ib_mr *wrap_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	struct shift_dev *sdev;
	struct shift_pd *spd;
	struct ib_mr *mr;
	int idx;

	sdev = shift_verb_begin(pd->device, &idx);
	mr = sdev->saved.alloc_mr(pd, type, max_num_sg);
	spd = IS_ERR(mr) ? NULL : shift_pd_find(pd);
	if (spd && spd->ulp)
		kernel_mr_note(spd, mr, type, max_num_sg);
	shift_verb_end(sdev, idx);
	return mr;
}

/*
 * Signatures are made by the device, and another device cannot go on with them.  NVMe allocates
 * MRs for them on each device that has any, and maps one only for a disk that wants them.  So QPs
 * of the PD are unprotected from the first mapping on, which comes before the first request.
 *
 * Any context.
 */
static int wrap_map_mr_sg_pi(struct ib_mr *mr, struct scatterlist *data, int num_data,
			     unsigned int *data_offset, struct scatterlist *meta, int num_meta,
			     unsigned int *meta_offset)
{
	struct shift_dev *sdev;
	struct shift_pd *spd;
	int n;

	rcu_read_lock();
	sdev = shift_ops_dev(mr->device);
	spd = shift_pd_find(mr->pd);
	if (spd && spd->ulp && !shift_pd_reason(spd, SHIFT_PATH_BACKUP)) {
		shift_pd_spoil(spd, SHIFT_REASON_OPERATION);
		shift_pairing_look_soon();
	}
	n = sdev->saved.map_mr_sg_pi(mr, data, num_data, data_offset, meta, num_meta, meta_offset);
	rcu_read_unlock();
	return n;
}

/* Any context. */
static int wrap_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int nents,
			  unsigned int *sg_offset)
{
	unsigned int offset = sg_offset ? *sg_offset : 0;
	struct shift_dev *sdev;
	struct shift_mr *smr;
	int n;

	rcu_read_lock();
	smr = shift_kernel_mr_shadow(mr);
	sdev = smr ? smr->spd->sdev : shift_ops_dev(mr->device);
	n = sdev->saved.map_mr_sg(mr, sg, nents, sg_offset);
	if (smr && n > 0)
		shift_kernel_mr_mapped(smr, sg, nents, offset, n);
	rcu_read_unlock();
	return n;
}

const struct ib_device_ops shift_kernel_mr_ops = {
	.alloc_mr = wrap_alloc_mr,
	.map_mr_sg = wrap_map_mr_sg,
	.map_mr_sg_pi = wrap_map_mr_sg_pi,
};
