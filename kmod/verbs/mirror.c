// SPDX-License-Identifier: GPL-2.0
/*
 * Mirrors of memory regions: Documentation/internals/memory.md.
 *
 * All is done by the thread that registers the MR.  A worker would pin what lies at the address
 * later, and would be charged to other limits.
 */
#include <linux/module.h>
#include "core/account.h"
#include "core/object.h"
#include "core/pair.h"
#include "verbs/mirror.h"

static void mirror_made(struct shift_mr *smr, struct ib_mr *mirror)
{
	smr->mirror = mirror;
	smr->mirror_lkey = mirror->lkey;
	smr->mirror_rkey = mirror->rkey;
}

/* What the core's handlers fill in of an MR that a driver's op returns. */
static void mirror_fill_in(struct ib_mr *mirror, struct ib_pd *pd)
{
	mirror->device = pd->device;
	mirror->pd = pd;
	mirror->type = IB_MR_TYPE_USER;
	atomic_inc(&pd->usecnt);
}

/**
 * shift_mirror_user - mirror memory of the calling process
 * @smr: an MR that nobody can look up yet.
 * @start: its address.
 *
 * The mirror pins the same pages again, and the core charges them a second time.  That is taken
 * back, and is not judged by the limit of the process: core/account.c.
 *
 * Context: process context of the owner, between shift_pair_use() and shift_pair_unuse(); pins user
 * memory, so no lock may be held.
 * Return: 0 or a negative errno.
 */
int shift_mirror_user(struct shift_mr *smr, u64 start)
{
	struct ib_pd *pd = shift_pd_mirror(smr->spd);
	const struct cred *cred;
	struct ib_mr *mirror;

	if (!pd)
		return -ENOMEM;
	cred = shift_account_pin_begin(smr->account);
	mirror = ib_reg_user_mr(pd, start, smr->length, smr->iova, smr->access);
	shift_account_pin_end(smr->account, cred, IS_ERR(mirror) ? 0 : smr->npages);
	if (IS_ERR(mirror))
		return PTR_ERR(mirror);
	shift_pair_add_mirror(smr->spd->pair);
	mirror_made(smr, mirror);
	return 0;
}

/**
 * shift_mirror_dmabuf - mirror a dma-buf by the backup driver's own op
 * @smr: an MR that nobody can look up yet.
 * @offset: where it begins in the buffer.
 * @fd: the buffer, a descriptor of the calling process.
 * @udata: of the application's call, as flags for the driver are in it.
 *
 * Nobody is charged for its pages.
 *
 * Context: as shift_mirror_user().
 * Return: 0 or a negative errno.
 */
int shift_mirror_dmabuf(struct shift_mr *smr, u64 offset, int fd, SHIFT_DMABUF_UDATA *udata)
{
	struct ib_pd *pd = shift_pd_mirror(smr->spd);
	const struct ib_device_ops *ops;
	struct ib_mr *mirror;

	if (!pd)
		return -ENOMEM;
	ops = &pd->device->ops;
	if (!ops->reg_user_mr_dmabuf)
		return -EOPNOTSUPP;
	mirror = ops->reg_user_mr_dmabuf(pd, offset, smr->length, smr->iova, fd, smr->access
					 SHIFT_DMAH_NONE, udata);
	if (IS_ERR(mirror))
		return PTR_ERR(mirror);
	mirror_fill_in(mirror, pd);
	shift_pair_add_mirror(smr->spd->pair);
	mirror_made(smr, mirror);
	return 0;
}

/* Change the PD or the rights of @mirror.  It, or a new one in its place; or an error. */
static struct ib_mr *mirror_change(struct ib_mr *mirror, int flags, int access, struct ib_pd *pd)
{
	const struct ib_device_ops *ops = &mirror->device->ops;
	struct ib_pd *was = mirror->pd;
	struct ib_mr *changed;

	if (!ops->rereg_user_mr)
		return ERR_PTR(-EOPNOTSUPP);
	changed = ops->rereg_user_mr(mirror, flags, 0, 0, 0, access, pd, NULL);
	if (IS_ERR(changed))
		return changed;
	if (changed) {
		mirror_fill_in(changed, pd);
		ib_dereg_mr(mirror);
		return changed;
	}
	/* a driver may have written mirror->pd itself */
	atomic_inc(&pd->usecnt);
	mirror->pd = pd;
	atomic_dec(&was->usecnt);
	return mirror;
}

/**
 * shift_mirror_keep - give the mirror of an MR to the one that replaces it
 * @smr: an MR that nobody can look up yet; same pages as @old, another PD or other rights.
 * @old: what it replaces.
 * @flags: IB_MR_REREG_PD, IB_MR_REREG_ACCESS.
 *
 * The backup driver's own op changes the mirror and keeps its pages: other ones may lie at the
 * address by now.
 *
 * Context: as shift_mirror_user().
 * Return: 0, or a negative errno: @old keeps what it has.
 */
int shift_mirror_keep(struct shift_mr *smr, struct shift_mr *old, int flags)
{
	struct ib_mr *mirror, *changed;
	struct ib_pd *pd;

	/* a mirror of another pair is on another device */
	if (smr->spd->pair != old->spd->pair)
		return -EXDEV;
	pd = shift_pd_mirror(smr->spd);
	if (!pd)
		return -ENOMEM;
	mirror = xchg(&old->mirror, NULL);
	if (!mirror)
		return -ENOENT;
	changed = mirror_change(mirror, flags, smr->access, pd);
	if (IS_ERR(changed)) {
		old->mirror = mirror;
		return PTR_ERR(changed);
	}
	mirror_made(smr, changed);
	return 0;
}
