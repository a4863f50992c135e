// SPDX-License-Identifier: GPL-2.0
/* Shadows of MRs, and the translation of their keys to those of the mirror. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include "compat/compat.h"
#include "core/account.h"
#include "core/kernel_mr.h"
#include "core/object.h"
#include "core/pair.h"
#include "pure/wr.h"

/*
 * Deregister the mirror of an MR that nobody can look up any more.  Process context.
 *
 * Its pages were charged for the MR that it mirrors.  Deregistration uncharges them, so they are
 * charged again before it.
 */
void shift_mr_drop_mirror(struct shift_mr *smr)
{
	struct ib_mr *mirror = xchg(&smr->mirror, NULL);
	bool kept;

	if (!mirror)
		return;
	if (smr->kernel)
		xa_erase(&smr->spd->mirrors, smr->mirror_rkey >> 8);
	/* if the pair goes the MR's user may be mapping both */
	if (smr->kernel && READ_ONCE(smr->spd->pair->dying))
		synchronize_rcu_expedited();
	if (smr->account)
		shift_account_unpin_begin(smr->account, smr->npages);
	kept = ib_dereg_mr(mirror);
	if (smr->account)
		shift_account_unpin_end(smr->account, kept ? smr->npages : 0);
	if (kept)
		pr_warn_ratelimited("a mirror MR could not be deregistered\n");
	shift_pair_drop_mirror(smr->spd->pair);
	/* what is lacking is counted for as long as the MR is there: verbs/mr.c */
	if (!shift_charge_is_lacking(&smr->charge))
		shift_charge_drop(&smr->charge);
}

static void mr_free(struct rcu_head *rcu)
{
	struct shift_mr *smr = container_of(rcu, struct shift_mr, rcu);

	kfree(smr->kernel);
	kfree(smr);
}

static void mr_release(struct kref *ref)
{
	struct shift_mr *smr = container_of(ref, struct shift_mr, ref);

	WARN_ON_ONCE(smr->mirror || smr->umem);
	if (smr->account)
		shift_account_close(smr->account);
	shift_pd_put(smr->spd);
	call_rcu(&smr->rcu, mr_free);
}

void shift_mr_put(struct shift_mr *smr)
{
	kref_put(&smr->ref, mr_release);
}

/**
 * shift_mr_find - the MR that a key of the default device names
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
 * shift_mr_translate - the local key of a buffer on a path
 * @spd: the QP's PD: a key of another PD is refused.
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

	if (spd->ulp)
		return shift_kernel_lkey(spd, sge->lkey, path, key);
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

/**
 * shift_mr_backup_rkey - the key on the backup of memory that a peer names
 * @spd: the PD of the peer's QP: memory of another PD has none.
 * @rkey: the key that the peer knows.
 * @key: out.
 *
 * Context: process context.
 * Return: false: there is none.
 */
bool shift_mr_backup_rkey(const struct shift_pd *spd, u32 rkey, u32 *key)
{
	struct shift_mr *smr = shift_mr_find(spd->sdev, rkey);
	bool found = false;

	if (spd->ulp) {
		found = shift_kernel_rkey(spd, smr, rkey, key);
	} else if (smr && READ_ONCE(smr->mirror) && smr->rkey == rkey && smr->spd == spd) {
		*key = smr->mirror_rkey;
		found = true;
	}
	if (smr)
		shift_mr_put(smr);
	return found;
}
