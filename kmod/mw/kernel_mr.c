// SPDX-License-Identifier: GPL-2.0
/*
 * MRs of a user in the kernel follow their QP to another device: before the QP is ready there, what
 * is registered on the device that it leaves is registered on the new one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/xarray.h>
#include "core/kernel_mr.h"
#include "core/object.h"
#include "core/proxy.h"
#include "core/qp.h"
#include "mw/mw.h"

#define MAPPING_LOOKS	20	/* at an MR that is being mapped, some 50 us apart */

/* What a device has of an MR from now on; @key: if it is registered there. */
static void mr_set(struct shift_kernel_mr *kernel, u8 path, bool valid, u32 key)
{
	spin_lock_irq(&kernel->lock);
	kernel->on[shift_path_device(path)] =
		(struct shift_kernel_mr_on) { .valid = valid, .sure = valid, .key = key };
	spin_unlock_irq(&kernel->lock);
}

/* Bring one MR to the state on the device of @b that its user's operations have led to. */
static int mr_follow(struct shift_qp *sqp, struct shift_proxy *b, struct shift_mr *smr)
{
	struct ib_mr *mr = shift_kernel_mr_of(smr, b->path);
	struct shift_kernel_mr *kernel = smr->kernel;
	struct shift_kernel_mr_on on;
	int err, access, looks = MAPPING_LOOKS;
	u32 key, wire;
	bool live;

	spin_lock_irq(&kernel->lock);
	on = kernel->on[shift_path_device(b->path)];
	live = kernel->live;
	key = kernel->key;
	access = kernel->access;
	spin_unlock_irq(&kernel->lock);

	if (!mr)
		return live ? -ENOENT : 0;
	if (on.valid && (!on.sure || !live || on.key != key)) {
		/* if it is not registered there this fails, and does no harm */
		err = shift_registrar_invalidate(sqp, b, shift_kernel_key(mr->rkey, on.key));
		if (err == -EREMOTEIO && on.also)
			err = shift_registrar_invalidate(sqp, b,
							 shift_kernel_key(mr->rkey, on.older));
		/* what the device was not asked, or has not answered, may be registered still */
		if (err && err != -EREMOTEIO)
			return err;
		on.valid = false;
		mr_set(kernel, b->path, false, 0);
	}
	if (!live || on.valid)
		return 0;
	/* its user may just be mapping it anew, which is over in a moment */
	while (!shift_kernel_mr_find(sqp, key, b->path, true, &wire)) {
		if (!--looks)
			return -ENOENT;
		usleep_range(50, 100);
	}
	err = shift_registrar_register(sqp, b, mr, wire, access);
	if (!err)
		mr_set(kernel, b->path, true, key);
	return err;
}

/**
 * shift_kernel_mr_settle - wait until an MR is not being registered by a failover
 * @smr: an MR that was taken out of the table: no other failover finds it.
 *
 * After this its user's MR may be deregistered, and its mirror.
 *
 * Context: process context; sleeps.
 */
void shift_kernel_mr_settle(struct shift_mr *smr)
{
	mutex_lock(&smr->spd->region_mutex);
	mutex_unlock(&smr->spd->region_mutex);
}

/* The same of an MR that was found in the table: its user may deregister it at any time. */
static int mr_follow_if_there(struct shift_qp *sqp, struct shift_mr *smr, unsigned long index)
{
	int err = 0;

	mutex_lock(&smr->spd->region_mutex);
	if (xa_load(&sqp->sdev->mrs, index) == smr)
		err = mr_follow(sqp, sqp->rec.proxy, smr);
	mutex_unlock(&smr->spd->region_mutex);
	return err;
}

/**
 * shift_kernel_mrs_follow - register what is registered, on the path that a QP goes to
 * @sqp: a kernel user's QP, locked; its new proxy QP is armed, and what was executed is known.
 *
 * Context: process context; sleeps.
 * Return: 0 or a negative errno.
 */
int shift_kernel_mrs_follow(struct shift_qp *sqp)
{
	struct shift_dev *sdev = sqp->sdev;
	struct shift_mr *smr;
	unsigned long index;
	int err = 0;

	lockdep_assert_held(&sqp->lock);
	xa_for_each(&sdev->mrs, index, smr) {
		smr = shift_mr_find(sdev, index << 8);
		if (!smr)
			continue;
		if (smr->kernel && smr->spd == sqp->spd && READ_ONCE(smr->kernel->owner) == sqp)
			err = mr_follow_if_there(sqp, smr, index);
		shift_mr_put(smr);
		if (err) {
			pr_warn_ratelimited("%s qp %u: an MR could not be registered on path %u (%d)\n",
					    sdev->name, sqp->qpn, sqp->rec.proxy->path, err);
			break;
		}
	}
	return err;
}
