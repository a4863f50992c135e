// SPDX-License-Identifier: GPL-2.0
/* Memory windows as applications allocate and free them. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include "compat/compat.h"
#include "core/object.h"
#include "mw/mw.h"
#include "pure/mw_state.h"
#include "verbs/verbs.h"

static int mw_track(struct shift_dev *sdev, struct shift_pd *spd, struct ib_mw *mw)
{
	struct shift_mw *smw;
	int err;

	smw = kzalloc(sizeof(*smw), GFP_KERNEL_ACCOUNT);
	if (!smw)
		return -ENOMEM;
	smw->spd = spd;
	smw->mw = mw;
	shift_mw_state_init(&smw->win, mw->rkey);
	/* -EBUSY: the index was that of a window which shift_mw_recycle() has made anew */
	err = xa_insert_bh(&sdev->mws, shift_mw_state_index(mw->rkey), smw, GFP_KERNEL);
	if (err) {
		kfree(smw);
		return err;
	}
	shift_pd_get(spd);
	WRITE_ONCE(spd->windows, true);
	/* a region; and a QP with its CQ, as this may be the only window of its QP */
	shift_charge_pd(&smw->charge, spd, 3, 3);
	return 0;
}

static int wrap_alloc_mw(struct ib_mw *mw, struct ib_udata *udata)
{
	struct shift_dev *sdev;
	struct shift_pd *spd;
	int idx, err;

	sdev = shift_verb_begin(mw->device, &idx);
	err = sdev->saved.alloc_mw(mw, udata);
	spd = err ? NULL : shift_pd_find(mw->pd);
	if (!spd || !shift_dev_tracks(sdev))
		goto out;
	if (!shift_mw_enabled(sdev) || mw->type != IB_MW_TYPE_2 || mw_track(sdev, spd, mw))
		shift_pd_spoil(spd, SHIFT_REASON_MW);
out:
	if (!err && udata)
		shift_charge_make_room(sdev);
	shift_verb_end(sdev, idx);
	return err;
}

/* The shadow of @mw, and its index in sdev->mws; mw_mutex. */
static struct shift_mw *mw_take(struct shift_dev *sdev, struct ib_mw *mw, unsigned long *at)
{
	struct shift_mw *smw;

	lockdep_assert_held(&sdev->mw_mutex);
	xa_for_each(&sdev->mws, *at, smw)
		if (smw->mw == mw)
			return smw;
	return NULL;
}

static void mw_free(struct shift_dev *sdev, struct shift_mw *smw, unsigned long index)
{
	spin_lock_bh(&sdev->mw_lock);
	xa_erase_bh(&sdev->mws, index);
	spin_unlock_bh(&sdev->mw_lock);
	shift_charge_drop(&smw->charge);
	shift_pd_put(smw->spd);
	kfree(smw);
}

/* From here on no QP finds the window bound, and no region stands in for it. */
static void mw_revoke(struct shift_dev *sdev, struct ib_mw *mw)
{
	struct shift_pd *spd = NULL;
	struct shift_mw *smw;
	unsigned long index;

	mutex_lock(&sdev->mw_mutex);
	smw = mw_take(sdev, mw, &index);
	if (smw) {
		spin_lock_bh(&sdev->mw_lock);
		smw->win.bound = false;
		spin_unlock_bh(&sdev->mw_lock);
		spd = smw->spd;
		shift_pd_get(spd);
	}
	mutex_unlock(&sdev->mw_mutex);
	if (!spd)
		return;
	/* waits for regions of this PD that are being registered: not under mw_mutex */
	shift_region_revoke(spd, NULL, index);
	shift_pd_put(spd);
}

static int wrap_dealloc_mw(struct ib_mw *mw)
{
	struct shift_dev *sdev;
	struct shift_mw *smw;
	unsigned long index;
	int idx, err = 0;

	sdev = shift_verb_begin(mw->device, &idx);
	mw_revoke(sdev, mw);
	mutex_lock(&sdev->mw_mutex);
	smw = mw_take(sdev, mw, &index);
	if (!smw || !smw->gone)
		err = sdev->saved.dealloc_mw(mw);
	if (!err && smw)
		mw_free(sdev, smw, index);
	mutex_unlock(&sdev->mw_mutex);
	shift_verb_end(sdev, idx);
	return err;
}

const struct ib_device_ops shift_mw_ops = {
	.alloc_mw = wrap_alloc_mw,
	.dealloc_mw = wrap_dealloc_mw,
};

/* The device goes; the module tracks no QP on it any more. */
void shift_mw_device_gone(struct shift_dev *sdev)
{
	struct shift_mw *smw;
	unsigned long index;

	mutex_lock(&sdev->mw_mutex);
	xa_for_each(&sdev->mws, index, smw) {
		/* the core has the driver deallocate it later, when no wrapper prevents that */
		if (smw->gone && sdev->saved.alloc_mw(smw->mw, NULL))
			pr_err("%s: a memory window is deallocated twice\n", sdev->name);
		mw_free(sdev, smw, index);
	}
	mutex_unlock(&sdev->mw_mutex);
}
