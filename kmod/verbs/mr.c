// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions of user space: each is noted, and mirrored if that is possible.
 * Documentation/internals/memory.md.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "compat/compat.h"
#include "core/account.h"
#include "core/kernel_mr.h"
#include "core/object.h"
#include "core/pair.h"
#include "core/stat.h"
#include "failover/failover.h"
#include "mw/mw.h"
#include "verbs/mirror.h"
#include "verbs/verbs.h"

static unsigned long mr_pages(u64 start, u64 length)
{
	return (ALIGN(start + length, PAGE_SIZE) - ALIGN_DOWN(start, PAGE_SIZE)) >>
	       PAGE_SHIFT;
}

/* If windows may be bound to the MR, pin its pages once more: regions are made of them. */
static int mr_pin(struct shift_mr *smr, u64 start)
{
	struct shift_dev *sdev = smr->spd->sdev;
	const struct cred *cred;

	if (!(smr->access & IB_ACCESS_MW_BIND) || !shift_mw_enabled(sdev))
		return 0;
	cred = shift_account_pin_begin(smr->account);
	smr->umem = shift_mw_pin(sdev->ibdev, start, smr->length, smr->access);
	shift_account_pin_end(smr->account, cred, smr->umem ? smr->npages : 0);
	return smr->umem ? 0 : -ENOMEM;
}

/* Let the MR that replaces @old have the pages that were pinned for windows. */
static int mr_pin_keep(struct shift_mr *smr, struct shift_mr *old)
{
	if (!(smr->access & IB_ACCESS_MW_BIND) || !shift_mw_enabled(smr->spd->sdev))
		return 0;
	shift_region_revoke(old->spd, old, 0);
	mutex_lock(&old->spd->region_mutex);
	smr->umem = old->umem;
	WRITE_ONCE(old->umem, NULL);
	mutex_unlock(&old->spd->region_mutex);
	return smr->umem ? 0 : -ENOENT;
}

/**
 * struct mr_note - an MR that is being noted
 * @spd: its PD.
 * @smr: for the table of MRs; NULL: there was no memory.
 * @old: the MR that it replaces; NULL: none.
 * @used: its pair is in use, so that a mirror can be made.
 *
 * User memory is pinned between mr_note_begin() and mr_note_end(), which may take any time: no lock
 * is held.
 */
struct mr_note {
	struct shift_pd *spd;
	struct shift_mr *smr;
	struct shift_mr *old;
	bool used;
};

static bool mr_note_begin(struct mr_note *note, struct shift_pd *spd, struct ib_mr *mr,
			  u64 length, u64 iova, int access)
{
	struct shift_mr *smr = kzalloc(sizeof(*smr), GFP_KERNEL_ACCOUNT);

	note->spd = spd;
	note->smr = smr;
	note->old = NULL;
	note->used = shift_pair_use(spd->pair);
	if (!smr)
		return false;
	smr->account = shift_account_open();
	if (!smr->account) {
		kfree(smr);
		note->smr = NULL;
		return false;
	}
	kref_init(&smr->ref);
	smr->spd = spd;
	shift_pd_get(spd);
	smr->iova = iova;
	smr->length = length;
	smr->access = access;
	smr->mr = mr;
	smr->lkey = mr->lkey;
	smr->rkey = mr->rkey;
	return true;
}

/* The MR has no mirror, and is counted for as long as it is noted. */
static void mr_lacks(struct mr_note *note, enum shift_reason reason)
{
	note->smr->lacks = reason;
	if (atomic_inc_return(&note->spd->unmirrored[reason]) == 1)
		shift_pairing_look(note->spd);
}

/* May a mirror be made?  The process is charged for it, or has been for the MR that is replaced. */
static int mr_charge(struct mr_note *note)
{
	struct shift_mr *old = note->old, *smr = note->smr;

	if (!note->used)
		return -ENODEV;
	/* a mirror of another pair is on another device */
	if (old && old->spd->pair == note->spd->pair &&
	    shift_charge_move(&smr->charge, &old->charge, note->spd))
		return 0;
	return shift_charge_pd(&smr->charge, note->spd, 1, 0) ? 0 : -EDQUOT;
}

/* How an attempt to mirror the MR has ended. */
static void mr_tried(struct mr_note *note, int err, enum shift_reason reason)
{
	if (!err) {
		shift_stat_inc(SHIFT_STAT_MIRROR_MR);
		return;
	}
	shift_stat_inc(SHIFT_STAT_MIRROR_FAILED);
	/* counted in its PD */
	if (shift_charge_is_lacking(&note->smr->charge))
		return;
	if (!note->smr->mirror)
		shift_charge_drop(&note->smr->charge);
	if (note->used && !READ_ONCE(note->spd->pair->dying))
		mr_lacks(note, reason);
	else
		shift_pd_spoil(note->spd, SHIFT_REASON_DEVICE_GONE);
}

/* Mirror memory of the calling process.  @special: it is of a kind that cannot be mirrored. */
static void mr_note_user(struct mr_note *note, u64 start, bool special)
{
	struct shift_mr *smr = note->smr;
	int err;

	if (smr->access & IB_ACCESS_ON_DEMAND) {
		mr_lacks(note, SHIFT_REASON_ODP);
		return;
	}
	if (special) {
		mr_lacks(note, SHIFT_REASON_MIRROR_MR);
		return;
	}
	smr->npages = mr_pages(start, smr->length);
	err = mr_charge(note);
	if (!err)
		err = shift_mirror_user(smr, start);
	if (!err)
		err = mr_pin(smr, start);
	mr_tried(note, err, SHIFT_REASON_MIRROR_MR);
}

/* An MR does not lack a mirror any more.  If it was the last one, its PD's QPs are paired again. */
static void mr_uncount(struct shift_mr *smr)
{
	enum shift_reason reason = smr->lacks;

	shift_charge_drop(&smr->charge);
	smr->lacks = SHIFT_REASON_NONE;
	if (reason && atomic_dec_and_test(&smr->spd->unmirrored[reason]) &&
	    !shift_pd_reason(smr->spd, SHIFT_PATH_DEFAULT))
		shift_pairing_look(smr->spd);
}

/*
 * Put the MR into the table, also one without a mirror: a proxy QP on the default device needs
 * none.
 */
static void mr_note_end(struct mr_note *note)
{
	struct shift_mr *smr = note->smr;

	/* -EBUSY: an MR with this key went without its dereg_mr being seen here */
	if (!smr || xa_insert(&note->spd->sdev->mrs, smr->lkey >> 8, smr, GFP_KERNEL)) {
		shift_pd_spoil(note->spd, SHIFT_REASON_MIRROR_MR);
		if (smr) {
			shift_mr_drop_mirror(smr);
			shift_mr_unpin(smr);
			mr_uncount(smr);
			shift_mr_put(smr);
		}
	}
	/* from here on shift_mr_pair_gone() finds the mirror */
	if (note->used)
		shift_pair_unuse(note->spd->pair);
}

static struct ib_mr *wrap_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova,
				      int access SHIFT_DMAH_PARAM, struct ib_udata *udata)
{
	struct shift_account *account = NULL;
	struct shift_lent lent = {};
	struct shift_dev *sdev;
	struct mr_note note;
	struct shift_pd *spd;
	struct ib_mr *mr;
	int idx;

	sdev = shift_verb_begin(pd->device, &idx);
	/*
	 * A mirror is registered by the kernel: if it waited for pages that count twice, as this
	 * does for the process, it would wait for its own.
	 */
	if (udata) {
		/* other threads may be mirroring its first MR before this has ended */
		account = shift_account_open();
		shift_account_lend(&lent, false);
	}
	atomic_inc(&sdev->pinning);
	do {
		mr = sdev->saved.reg_user_mr(pd, start, length, iova, access SHIFT_DMAH_ARG, udata);
	} while (mr == ERR_PTR(-ENOMEM) && shift_account_again(&lent));
	shift_account_settled(&lent);
	spd = IS_ERR(mr) || !udata ? NULL : shift_pd_find(pd);
	if (spd) {
		if (mr_note_begin(&note, spd, mr, length, iova, access))
			mr_note_user(&note, start, SHIFT_DMAH_USED);
		mr_note_end(&note);
	}
	if (!IS_ERR(mr) && udata)
		shift_charge_make_room(sdev);
	atomic_dec(&sdev->pinning);
	shift_account_restore(&lent);
	if (account)
		shift_account_close(account);
	shift_verb_end(sdev, idx);
	return mr;
}

/* Take an MR out of the table: the table's reference, or NULL. */
static struct shift_mr *mr_take_out(struct shift_dev *sdev, const struct ib_mr *mr, u32 lkey)
{
	struct shift_mr *smr;

	xa_lock(&sdev->mrs);
	smr = xa_load(&sdev->mrs, lkey >> 8);
	if (smr && smr->mr == mr)
		__xa_erase(&sdev->mrs, lkey >> 8);
	else
		smr = NULL;
	xa_unlock(&sdev->mrs);
	if (smr && smr->kernel)
		shift_kernel_mr_del(smr->kernel);
	return smr;
}

static int wrap_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	struct shift_dev *sdev;
	struct shift_mr *smr;
	struct shift_pd *spd;
	int idx, err;

	sdev = shift_verb_begin(mr->device, &idx);
	smr = mr_take_out(sdev, mr, mr->lkey);
	spd = mr->pd ? shift_pd_find(mr->pd) : NULL;
	if (smr) {
		shift_rkey_revoke(smr);
		if (smr->kernel)
			shift_kernel_mr_settle(smr);
		shift_mr_drop_mirror(smr);
		shift_mr_unpin(smr);
	}
	err = sdev->saved.dereg_mr(mr, udata);
	/* the MR is still there, and is not noted any more */
	if (err && spd)
		shift_pd_spoil(spd, SHIFT_REASON_MIRROR_MR);
	if (smr) {
		mr_uncount(smr);
		shift_mr_put(smr);
	}
	shift_verb_end(sdev, idx);
	return err;
}

/* The memory of @old has got another PD or other rights: so gets what is kept of it. */
static void mr_note_kept(struct mr_note *note, struct shift_mr *old, int flags)
{
	struct shift_mr *smr = note->smr;
	int err;

	shift_account_close(smr->account);
	smr->account = shift_account_hold(old->account);
	smr->npages = old->npages;
	if (old->lacks && !old->mirror) {
		mr_lacks(note, old->lacks);
		return;
	}
	/* it may have been refused a mirror, or keep one whose charge was given up */
	if (!old->mirror && shift_charge_is_lacking(&old->charge)) {
		mr_lacks(note, SHIFT_REASON_CGROUP);
		return;
	}
	err = note->used ? shift_mirror_keep(smr, old, flags) : -ENODEV;
	if (!err) {
		mr_charge(note);
		err = mr_pin_keep(smr, old);
	}
	mr_tried(note, err, SHIFT_REASON_MIRROR_MR);
}

/* The driver has changed an MR, and may have made a new one: what is noted follows. */
static void mr_follow(struct shift_pd *spd, struct shift_mr *old, struct ib_mr *mr, int flags,
		      u64 start, u64 length, u64 iova, int access)
{
	bool moved = flags & IB_MR_REREG_TRANS;
	struct mr_note note;

	if (mr_note_begin(&note, spd, mr, moved ? length : old->length, moved ? iova : old->iova,
			  flags & IB_MR_REREG_ACCESS ? access : old->access)) {
		note.old = old;
		if (moved)
			mr_note_user(&note, start, false);
		else
			mr_note_kept(&note, old, flags);
	}
	mr_note_end(&note);
}

static struct ib_mr *wrap_rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length,
					u64 iova, int access, struct ib_pd *pd,
					struct ib_udata *udata)
{
	u32 lkey = mr->lkey;
	struct shift_dev *sdev;
	struct shift_mr *old;
	struct shift_pd *spd;
	struct shift_lent lent;
	struct ib_mr *ret;
	int idx;

	sdev = shift_verb_begin(mr->device, &idx);
	shift_account_lend(&lent, true);
	atomic_inc(&sdev->pinning);
	spd = shift_pd_find(flags & IB_MR_REREG_PD ? pd : mr->pd);
	ret = sdev->saved.rereg_user_mr(mr, flags, start, length, iova, access, pd, udata);
	shift_account_settled(&lent);
	/* after an error the MR is as it was, or must not be used */
	old = IS_ERR(ret) ? NULL : mr_take_out(sdev, mr, lkey);
	if (old) {
		if (spd)
			mr_follow(spd, old, ret ?: mr, flags, start, length, iova, access);
		shift_rkey_revoke(old);
		shift_mr_drop_mirror(old);
		shift_mr_unpin(old);
		mr_uncount(old);
		shift_mr_put(old);
	} else if (!IS_ERR(ret) && spd) {
		shift_pd_spoil(spd, SHIFT_REASON_MIRROR_MR);
	}
	atomic_dec(&sdev->pinning);
	shift_account_restore(&lent);
	shift_verb_end(sdev, idx);
	return ret;
}

static struct ib_mr *wrap_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length,
					     u64 iova, int fd, int access SHIFT_DMAH_PARAM,
					     SHIFT_DMABUF_UDATA *udata)
{
	struct shift_dev *sdev;
	struct mr_note note;
	struct shift_pd *spd;
	struct ib_mr *mr;
	int idx, err;

	sdev = shift_verb_begin(pd->device, &idx);
	atomic_inc(&sdev->pinning);
	mr = sdev->saved.reg_user_mr_dmabuf(pd, offset, length, iova, fd, access
					    SHIFT_DMAH_ARG, udata);
	spd = IS_ERR(mr) ? NULL : shift_pd_find(pd);
	if (spd) {
		if (mr_note_begin(&note, spd, mr, length, iova, access)) {
			err = SHIFT_DMAH_USED ? -ENODEV : mr_charge(&note);
			if (!err)
				err = shift_mirror_dmabuf(note.smr, offset, fd, udata);
			mr_tried(&note, err, SHIFT_REASON_DMABUF);
		}
		mr_note_end(&note);
	}
	if (!IS_ERR(mr))
		shift_charge_make_room(sdev);
	atomic_dec(&sdev->pinning);
	shift_verb_end(sdev, idx);
	return mr;
}

static struct ib_mr *wrap_reg_dm_mr(struct ib_pd *pd, struct ib_dm *dm,
				    struct ib_dm_mr_attr *attr,
				    struct uverbs_attr_bundle *attrs)
{
	struct shift_dev *sdev;
	struct mr_note note;
	struct shift_pd *spd;
	struct ib_mr *mr;
	int idx;

	sdev = shift_verb_begin(pd->device, &idx);
	mr = sdev->saved.reg_dm_mr(pd, dm, attr, attrs);
	spd = IS_ERR(mr) ? NULL : shift_pd_find(pd);
	if (spd) {
		if (mr_note_begin(&note, spd, mr, attr->length, attr->offset, attr->access_flags))
			mr_lacks(&note, SHIFT_REASON_MIRROR_MR);
		mr_note_end(&note);
	}
	if (!IS_ERR(mr))
		shift_charge_make_room(sdev);
	shift_verb_end(sdev, idx);
	return mr;
}

const struct ib_device_ops shift_mr_ops = {
	.reg_user_mr = wrap_reg_user_mr,
	.reg_user_mr_dmabuf = wrap_reg_user_mr_dmabuf,
	.rereg_user_mr = wrap_rereg_user_mr,
	.reg_dm_mr = wrap_reg_dm_mr,
	.dereg_mr = wrap_dereg_mr,
};

/*
 * The MR at @index.  If @pair is given: with a new reference, and only if it belongs to @pair.
 * If @pair is NULL: whatever is there, taken out of the table with the table's reference.
 */
static struct shift_mr *mr_take(struct shift_dev *sdev, unsigned long index,
				const struct shift_pair *pair)
{
	struct shift_mr *smr;

	xa_lock(&sdev->mrs);
	smr = xa_load(&sdev->mrs, index);
	if (smr && !pair)
		__xa_erase(&sdev->mrs, index);
	else if (smr && smr->spd->pair == pair)
		kref_get(&smr->ref);
	else
		smr = NULL;
	xa_unlock(&sdev->mrs);
	if (smr && smr->kernel && !pair)
		shift_kernel_mr_del(smr->kernel);
	return smr;
}

/**
 * shift_mr_pair_gone - drop the mirror MRs of a pair
 * @pair: dying; no new ones are made.
 *
 * The MRs stay noted: see mr_note_end().
 *
 * Context: process context.
 */
void shift_mr_pair_gone(struct shift_pair *pair)
{
	struct shift_dev *sdev = pair->sdev;
	struct shift_mr *smr;
	unsigned long index;

	xa_for_each(&sdev->mrs, index, smr) {
		smr = mr_take(sdev, index, pair);
		if (!smr)
			continue;
		shift_pd_spoil(smr->spd, SHIFT_REASON_DEVICE_GONE);
		shift_mr_drop_mirror(smr);
		shift_mr_put(smr);
	}
}

/**
 * shift_mr_device_gone - a default device goes: forget its MRs and PDs
 * @sdev: the device; its pairs are empty, and no verb is under way.
 *
 * Context: process context.
 */
void shift_mr_device_gone(struct shift_dev *sdev)
{
	struct shift_mr *smr;
	unsigned long index;

	xa_for_each(&sdev->mrs, index, smr) {
		smr = mr_take(sdev, index, NULL);
		if (!smr)
			continue;
		shift_mr_unpin(smr);
		shift_mr_put(smr);
	}
	shift_mw_device_gone(sdev);
	shift_pd_device_gone(sdev);
}
