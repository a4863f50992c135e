// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions of user space, and their mirrors.
 *
 * A mirror MR is made in the registering caller, right after the default one:
 * a worker would pin what the address means later, against the wrong limits.
 * The mirror pins the same pages again and the core would charge them twice, so
 * the caller's locked memory is credited first: an application near its limit
 * is never worse off.  A mirror is gone before the default MR is.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "account.h"
#include "compat/compat.h"
#include "mw.h"

static unsigned long mr_pages(u64 start, u64 length)
{
	return (ALIGN(start + length, PAGE_SIZE) - ALIGN_DOWN(start, PAGE_SIZE)) >>
	       PAGE_SHIFT;
}

/* Caller: nobody finds @smr any more.  The reverse of the credit at creation. */
static void mr_drop_mirror(struct shift_mr *smr)
{
	struct ib_mr *mirror = xchg(&smr->mirror, NULL);

	if (!mirror)
		return;
	/* dereg uncharges what the credit had already taken off: add it first */
	atomic64_add(smr->npages, &smr->mm->pinned_vm);
	if (ib_dereg_mr(mirror)) {
		atomic64_sub(smr->npages, &smr->mm->pinned_vm);
		pr_warn_ratelimited("a mirror MR could not be deregistered\n");
	}
}

static void mr_release(struct kref *ref)
{
	struct shift_mr *smr = container_of(ref, struct shift_mr, ref);

	mr_drop_mirror(smr);
	shift_mr_unpin(smr);
	mmdrop(smr->mm);
	shift_pd_put(smr->spd);
	kfree_rcu(smr, rcu);
}

void shift_mr_put(struct shift_mr *smr)
{
	kref_put(&smr->ref, mr_release);
}

/**
 * shift_mr_find - the mirrored MR that a default key names
 * @sdev: default device.
 * @key: its lkey or rkey.
 *
 * Context: process context.
 * Return: the MR with a reference, or NULL.
 */
struct shift_mr *shift_mr_find(struct shift_dev *sdev, u32 key)
{
	struct shift_mr *smr;

	xa_lock(&sdev->mrs);
	smr = xa_load(&sdev->mrs, key >> 8);
	if (smr)
		kref_get(&smr->ref);
	xa_unlock(&sdev->mrs);
	return smr;
}

/**
 * shift_mr_translate - the key of a path for a local buffer
 * @spd: the QP's PD: a key of another one is refused.
 * @sge: address, length and lkey as the application gave them.
 * @path: on the default device the key stays, and no mirror is needed.
 * @key: the result.
 *
 * Context: any.
 * Return: 0, -EACCES.
 */
int shift_mr_translate(struct shift_pd *spd, const struct shift_sge *sge, u8 path, u32 *key)
{
	bool backup = path == SHIFT_PATH_BACKUP;
	struct shift_mr *smr;
	int err = -EACCES;

	rcu_read_lock();
	smr = xa_load(&spd->sdev->mrs, sge->lkey >> 8);
	if (smr && (!backup || READ_ONCE(smr->mirror)) && smr->lkey == sge->lkey &&
	    smr->spd == spd && sge->addr >= smr->iova && sge->length <= smr->length &&
	    sge->addr - smr->iova <= smr->length - sge->length) {
		*key = backup ? smr->mirror_lkey : sge->lkey;
		err = 0;
	}
	rcu_read_unlock();
	return err;
}

static int mr_mirror(struct shift_mr *smr, u64 start)
{
	struct ib_pd *pd = shift_pd_mirror(smr->spd);
	struct ib_mr *mirror;

	if (!pd)
		return -ENOMEM;
	atomic64_sub(smr->npages, &smr->mm->pinned_vm);
	mirror = ib_reg_user_mr(pd, start, smr->length, smr->iova, smr->access);
	if (IS_ERR(mirror)) {
		atomic64_add(smr->npages, &smr->mm->pinned_vm);
		return PTR_ERR(mirror);
	}
	smr->mirror = mirror;
	smr->mirror_lkey = mirror->lkey;
	smr->mirror_rkey = mirror->rkey;
	return 0;
}

/* The pages once more, if windows may be bound to them: regions are made of those. */
static int mr_pin(struct shift_mr *smr, u64 start)
{
	struct shift_dev *sdev = smr->spd->sdev;

	if (!(smr->access & IB_ACCESS_MW_BIND) || !shift_windows_enabled(sdev))
		return 0;
	atomic64_sub(smr->npages, &smr->mm->pinned_vm);
	smr->umem = shift_mw_pin(sdev->ibdev, start, smr->length, smr->access);
	if (smr->umem)
		return 0;
	atomic64_add(smr->npages, &smr->mm->pinned_vm);
	return -ENOMEM;
}

/*
 * Note an MR and mirror it.  One without a mirror is noted, too: a QP that is home again
 * needs none.
 */
static int mr_track(struct shift_pd *spd, struct ib_mr *mr, u64 start, u64 length,
		    u64 iova, int access)
{
	struct shift_dev *sdev = spd->sdev;
	struct shift_mr *smr;
	int err, store;

	smr = kzalloc(sizeof(*smr), GFP_KERNEL);
	if (!smr)
		return -ENOMEM;
	kref_init(&smr->ref);
	smr->spd = spd;
	shift_pd_get(spd);
	smr->mm = current->mm;
	mmgrab(smr->mm);
	smr->npages = mr_pages(start, length);
	smr->iova = iova;
	smr->length = length;
	smr->access = access;
	smr->mr = mr;
	smr->lkey = mr->lkey;
	smr->rkey = mr->rkey;

	err = mr_mirror(smr, start);
	if (!err)
		err = mr_pin(smr, start);
	store = xa_err(xa_store(&sdev->mrs, smr->lkey >> 8, smr, GFP_KERNEL));
	if (store) {
		shift_mr_put(smr);
		return store;
	}
	if (!err)
		shift_stat_inc(SHIFT_STAT_MIRROR_MR);
	return err;
}

static struct ib_mr *wrap_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova,
				      int access SHIFT_DMAH_PARAM, struct ib_udata *udata)
{
	struct shift_account *lent = shift_account_lend();
	struct shift_dev *sdev;
	struct shift_pd *spd;
	struct ib_mr *mr;
	int idx;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(pd->device);
	mr = sdev->saved.reg_user_mr(pd, start, length, iova, access SHIFT_DMAH_ARG, udata);
	if (IS_ERR(mr) || !udata)
		goto out;
	spd = shift_pd_find(pd);
	if (!spd)
		goto out;
	if (access & IB_ACCESS_ON_DEMAND) {
		shift_pd_spoil(spd, SHIFT_REASON_ODP);
		goto out;
	}
	if (SHIFT_DMAH_USED) {
		shift_pd_spoil(spd, SHIFT_REASON_MIRROR_MR);
		goto out;
	}
	down_read(&sdev->mirror_sem);
	if (mr_track(spd, mr, start, length, iova, access)) {
		shift_pd_spoil(spd, sdev->backup ? SHIFT_REASON_MIRROR_MR :
						   SHIFT_REASON_DEVICE_GONE);
		shift_stat_inc(SHIFT_STAT_MIRROR_FAILED);
	}
	up_read(&sdev->mirror_sem);
out:
	srcu_read_unlock(&shift_srcu, idx);
	shift_account_restore(lent);
	return mr;
}

/* Take the mirror of @mr out of use; at once, before the default goes. */
static void mr_unmirror(struct shift_dev *sdev, struct ib_mr *mr)
{
	struct shift_mr *smr;

	xa_lock(&sdev->mrs);
	smr = xa_load(&sdev->mrs, mr->lkey >> 8);
	if (smr && smr->mr == mr)
		__xa_erase(&sdev->mrs, mr->lkey >> 8);
	else
		smr = NULL;
	xa_unlock(&sdev->mrs);
	if (!smr)
		return;
	shift_pairing_revoke(smr);
	mr_drop_mirror(smr);
	shift_mr_unpin(smr);
	shift_mr_put(smr);
}

/* What we do not mirror spoils its PD: no QP of it could be moved whole. */
static void mr_spoil(struct ib_pd *pd, enum shift_reason reason)
{
	struct shift_pd *spd = shift_pd_find(pd);

	if (spd)
		shift_pd_spoil(spd, reason);
}

static int wrap_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	struct shift_dev *sdev;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(mr->device);
	mr_unmirror(sdev, mr);
	err = sdev->saved.dereg_mr(mr, udata);
	/* it lives on, and is not known any more */
	if (err && mr->pd)
		mr_spoil(mr->pd, SHIFT_REASON_MIRROR_MR);
	srcu_read_unlock(&shift_srcu, idx);
	return err;
}

static struct ib_mr *wrap_rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length,
					u64 iova, int access, struct ib_pd *pd,
					struct ib_udata *udata)
{
	struct shift_account *lent = shift_account_lend();
	struct shift_dev *sdev;
	struct ib_mr *ret;
	int idx;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(mr->device);
	mr_unmirror(sdev, mr);
	mr_spoil(mr->pd, SHIFT_REASON_MIRROR_MR);
	if (pd)
		mr_spoil(pd, SHIFT_REASON_MIRROR_MR);
	ret = sdev->saved.rereg_user_mr(mr, flags, start, length, iova, access, pd, udata);
	srcu_read_unlock(&shift_srcu, idx);
	shift_account_restore(lent);
	return ret;
}

static struct ib_mr *wrap_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length,
					     u64 iova, int fd, int access SHIFT_DMAH_PARAM,
					     SHIFT_DMABUF_UDATA *udata)
{
	struct shift_dev *sdev;
	struct ib_mr *mr;
	int idx;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(pd->device);
	mr = sdev->saved.reg_user_mr_dmabuf(pd, offset, length, iova, fd, access
					    SHIFT_DMAH_ARG, udata);
	if (!IS_ERR(mr))
		mr_spoil(pd, SHIFT_REASON_MIRROR_MR);
	srcu_read_unlock(&shift_srcu, idx);
	return mr;
}

static struct ib_mr *wrap_reg_dm_mr(struct ib_pd *pd, struct ib_dm *dm,
				    struct ib_dm_mr_attr *attr,
				    struct uverbs_attr_bundle *attrs)
{
	struct shift_dev *sdev;
	struct ib_mr *mr;
	int idx;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(pd->device);
	mr = sdev->saved.reg_dm_mr(pd, dm, attr, attrs);
	if (!IS_ERR(mr))
		mr_spoil(pd, SHIFT_REASON_MIRROR_MR);
	srcu_read_unlock(&shift_srcu, idx);
	return mr;
}

const struct ib_device_ops shift_mr_ops = {
	.reg_user_mr = wrap_reg_user_mr,
	.reg_user_mr_dmabuf = wrap_reg_user_mr_dmabuf,
	.rereg_user_mr = wrap_rereg_user_mr,
	.reg_dm_mr = wrap_reg_dm_mr,
	.dereg_mr = wrap_dereg_mr,
};

/* The mirror of an MR goes; the MR stays noted if its own device stays. */
static void mr_drop_one(struct shift_dev *sdev, unsigned long index, bool backup_only)
{
	struct shift_mr *smr;

	xa_lock(&sdev->mrs);
	smr = xa_load(&sdev->mrs, index);
	if (smr && backup_only)
		kref_get(&smr->ref);
	else if (smr)
		__xa_erase(&sdev->mrs, index);
	xa_unlock(&sdev->mrs);
	if (!smr)
		return;
	shift_pd_spoil(smr->spd, SHIFT_REASON_DEVICE_GONE);
	mr_drop_mirror(smr);
	if (!backup_only)
		shift_mr_unpin(smr);
	shift_mr_put(smr);
}

/**
 * shift_mr_device_gone - a device goes: drop what hangs on it
 * @sdev: default device.
 * @backup_only: only the mirrors, since the backup goes; else all tracking.
 *
 * Context: process context.  sdev->backup is NULL already: no new mirrors.
 */
void shift_mr_device_gone(struct shift_dev *sdev, bool backup_only)
{
	struct shift_mr *smr;
	unsigned long index;

	xa_for_each(&sdev->mrs, index, smr)
		mr_drop_one(sdev, index, backup_only);
	/* a verb that is under way may have taken a mirror, and not given it back yet */
	synchronize_srcu(&shift_srcu);
	if (!backup_only)
		shift_mw_device_gone(sdev);
	shift_pd_device_gone(sdev, backup_only);
}
