// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows of user space: which there are, whose they are, whether they are bound.
 *
 * A window is one QP's, the first that binds it.  It is looked up by the index of its key
 * under mw_lock each time: nobody keeps a pointer.  Every key is the application's word.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include "compat/compat.h"
#include "mw.h"

static bool windows = true;
module_param(windows, bool, 0644);
MODULE_PARM_DESC(windows, "protect queue pairs with memory windows (rxe, type 2)");

/* One whose regions we know how to make. */
bool shift_windows_enabled(const struct shift_dev *sdev)
{
	return READ_ONCE(windows) && sdev->driver == RDMA_DRIVER_RXE;
}

void shift_mw_init(struct shift_dev *sdev)
{
	xa_init_flags(&sdev->mws, XA_FLAGS_LOCK_BH);
	spin_lock_init(&sdev->mw_lock);
	mutex_init(&sdev->mw_mutex);
}

/* Pages of memory that windows may be bound to; in the registering caller, credited. */
struct ib_umem *shift_mw_pin(struct ib_device *ibdev, u64 start, u64 length, int access)
{
	struct ib_umem *umem = ib_umem_get(ibdev, start, length, access);

	return IS_ERR(umem) ? NULL : umem;
}

/**
 * shift_qp_can_move - can the operation be posted on another device?
 * @sqp: whose it is.
 * @wr: it.
 */
bool shift_qp_can_move(const struct shift_qp *sqp, const struct shift_wr *wr)
{
	struct shift_window_op op;

	return shift_wr_movable(wr) || (sqp->windows && shift_window_op(wr, &op));
}

/* Its window of that key's index; mw_lock. */
static struct shift_mw *mw_of(struct shift_qp *sqp, u32 key)
{
	struct shift_mw *smw = xa_load(&sqp->sdev->mws, shift_window_index(key));

	lockdep_assert_held(&sqp->sdev->mw_lock);
	return smw && smw->spd == sqp->spd ? smw : NULL;
}

/**
 * shift_mw_claim - a bind was posted: the window is that QP's from now on
 * @sqp: the QP.
 * @op: a BIND_MW.
 *
 * Two rings have no common order: a window that another QP has bound ends the protection
 * of its PD.
 *
 * Context: ledger_lock.
 */
void shift_mw_claim(struct shift_qp *sqp, const struct shift_window_op *op)
{
	struct shift_mw *smw;
	struct shift_mr *smr;
	bool stranger = true;

	spin_lock_bh(&sqp->sdev->mw_lock);
	smw = mw_of(sqp, op->old);
	if (smw) {
		if (!smw->owner)
			smw->owner = sqp;
		stranger = smw->owner != sqp;
	}
	spin_unlock_bh(&sqp->sdev->mw_lock);
	/* memory from before windows were allowed has no pages at hand */
	rcu_read_lock();
	smr = xa_load(&sqp->sdev->mrs, op->lkey >> 8);
	stranger |= smr && !READ_ONCE(smr->umem);
	rcu_read_unlock();
	/* a key that is no window's is the driver's to refuse */
	if (smw && stranger)
		shift_pd_spoil(sqp->spd, SHIFT_REASON_MW);
}

/* An operation completed on the QP's own NIC; ledger_lock. */
void shift_mw_was(struct shift_qp *sqp, const struct shift_window_op *op)
{
	struct shift_mw *smw;

	spin_lock_bh(&sqp->sdev->mw_lock);
	smw = mw_of(sqp, op->opcode == SHIFT_WR_BIND_MW ? op->old : op->key);
	if (smw && smw->owner == sqp)
		shift_window_was(&smw->win, op);
	spin_unlock_bh(&sqp->sdev->mw_lock);
}

/* Does the memory allow the bind?  mw_lock; the MR is looked up under RCU. */
static bool memory_fits(struct shift_qp *sqp, const struct shift_window_op *op)
{
	struct shift_mr *smr;
	bool fits;

	rcu_read_lock();
	smr = xa_load(&sqp->sdev->mrs, op->lkey >> 8);
	fits = smr && smr->lkey == op->lkey && smr->spd == sqp->spd && READ_ONCE(smr->umem) &&
	       shift_window_fits(op, smr->iova, smr->length, smr->access);
	rcu_read_unlock();
	return fits;
}

/**
 * shift_mw_perform - a local operation of a QP that is away
 * @sqp: the QP.
 * @op: BIND_MW or LOCAL_INV, next in order; all before it completed if it is the latter.
 *
 * Context: ledger_lock.
 * Return: 0, -EKEYREJECTED (bind), -EINVAL.
 */
int shift_mw_perform(struct shift_qp *sqp, const struct shift_window_op *op)
{
	bool bind = op->opcode == SHIFT_WR_BIND_MW;
	struct shift_mw *smw;
	int err = -EINVAL;

	spin_lock_bh(&sqp->sdev->mw_lock);
	smw = mw_of(sqp, bind ? op->old : op->key);
	if (bind && smw && (!smw->owner || smw->owner == sqp) && memory_fits(sqp, op)) {
		smw->owner = sqp;
		err = shift_window_bind(&smw->win, op);
	} else if (!bind && smw && smw->owner == sqp) {
		err = shift_window_invalidate(&smw->win, op->key);
	}
	spin_unlock_bh(&sqp->sdev->mw_lock);
	return err && bind ? -EKEYREJECTED : err;
}

/**
 * shift_mw_find - a window that this QP has bound
 * @sqp: the QP.
 * @key: its key.
 * @win: out: what is known of it.
 *
 * Context: any that may take a spinlock.
 * Return: 0; -ENOENT: there is none with that key, or it is not bound.
 */
int shift_mw_find(struct shift_qp *sqp, u32 key, struct shift_window *win)
{
	struct shift_mw *smw;
	int err = -ENOENT;

	spin_lock_bh(&sqp->sdev->mw_lock);
	smw = mw_of(sqp, key);
	if (smw && smw->owner == sqp && shift_window_open(&smw->win, key)) {
		*win = smw->win;
		err = 0;
	}
	spin_unlock_bh(&sqp->sdev->mw_lock);
	return err;
}

/* The peer invalidated it @n times when both were on their own NICs. */
void shift_mw_told(struct shift_qp *sqp, u32 key, u32 n)
{
	struct shift_mw *smw;

	spin_lock_bh(&sqp->sdev->mw_lock);
	smw = mw_of(sqp, key);
	if (smw && smw->owner == sqp)
		shift_window_told(&smw->win, n);
	spin_unlock_bh(&sqp->sdev->mw_lock);
}

/* The peer invalidated it on a QP of the kernel's. */
void shift_mw_invalidated(struct shift_qp *sqp, u32 key)
{
	struct shift_mw *smw;

	spin_lock_bh(&sqp->sdev->mw_lock);
	smw = mw_of(sqp, key);
	if (smw && smw->owner == sqp)
		shift_window_invalidate(&smw->win, key);
	spin_unlock_bh(&sqp->sdev->mw_lock);
}

bool shift_mw_owns(struct shift_qp *sqp)
{
	struct shift_mw *smw;
	unsigned long index;
	bool owns = false;

	spin_lock_bh(&sqp->sdev->mw_lock);
	xa_for_each(&sqp->sdev->mws, index, smw)
		owns |= smw->owner == sqp;
	spin_unlock_bh(&sqp->sdev->mw_lock);
	return owns;
}

/* The QP goes; its windows stay. */
void shift_mw_disown(struct shift_qp *sqp)
{
	struct shift_mw *smw;
	unsigned long index;

	spin_lock_bh(&sqp->sdev->mw_lock);
	xa_for_each(&sqp->sdev->mws, index, smw)
		if (smw->owner == sqp)
			smw->owner = NULL;
	spin_unlock_bh(&sqp->sdev->mw_lock);
}

/* The driver's window anew: free, and of no QP and no MR; mw_mutex. */
static void make_anew(struct shift_dev *sdev, struct shift_mw *smw)
{
	int tries;

	if (smw->gone || sdev->saved.dealloc_mw(smw->mw))
		return;
	/* one has just become free, so only memory can be short */
	for (tries = 0; tries < 100; tries++) {
		if (!sdev->saved.alloc_mw(smw->mw, NULL))
			return;
		msleep(20);
	}
	smw->gone = true;
	pr_warn("%s: a memory window is lost\n", sdev->name);
}

/**
 * shift_mw_recycle - the QP has left its own NIC: nobody may use its windows there
 * @sqp: the QP, locked and fenced.
 *
 * Whether one is bound there is not known, and an invalidation of one that is not would
 * be the end of rxe.  Dropping it and making it anew needs no knowledge; and the QP and
 * the MRs that it held are free.
 *
 * Context: process context; sleeps.
 */
void shift_mw_recycle(struct shift_qp *sqp)
{
	struct shift_dev *sdev = sqp->sdev;
	struct shift_mw *smw;
	unsigned long index;
	bool mine;

	lockdep_assert_held(&sqp->lock);
	if (!sqp->notes)
		return;
	mutex_lock(&sdev->mw_mutex);
	xa_for_each(&sdev->mws, index, smw) {
		spin_lock_bh(&sdev->mw_lock);
		mine = smw->owner == sqp;
		spin_unlock_bh(&sdev->mw_lock);
		if (mine)
			make_anew(sdev, smw);
	}
	mutex_unlock(&sdev->mw_mutex);
}

static struct shift_pd *pd_of(struct ib_pd *pd)
{
	struct shift_obj *obj = shift_object_find(pd, SHIFT_OBJ_PD);

	return obj ? container_of(obj, struct shift_pd, obj) : NULL;
}

static int mw_track(struct shift_dev *sdev, struct shift_pd *spd, struct ib_mw *mw)
{
	struct shift_mw *smw;
	int err;

	smw = kzalloc(sizeof(*smw), GFP_KERNEL);
	if (!smw)
		return -ENOMEM;
	smw->spd = spd;
	smw->mw = mw;
	shift_window_init(&smw->win, mw->rkey);
	/* a driver's window that was made anew has left its old index to others */
	err = xa_insert_bh(&sdev->mws, shift_window_index(mw->rkey), smw, GFP_KERNEL);
	if (err) {
		kfree(smw);
		return err;
	}
	shift_pd_get(spd);
	WRITE_ONCE(spd->windows, true);
	return 0;
}

static int wrap_alloc_mw(struct ib_mw *mw, struct ib_udata *udata)
{
	struct shift_dev *sdev;
	struct shift_pd *spd;
	int idx, err;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(mw->device);
	err = sdev->saved.alloc_mw(mw, udata);
	spd = err ? NULL : pd_of(mw->pd);
	if (!spd || !READ_ONCE(sdev->tracking))
		goto out;
	if (!shift_windows_enabled(sdev) || mw->type != IB_MW_TYPE_2 || mw_track(sdev, spd, mw))
		shift_pd_spoil(spd, SHIFT_REASON_MW);
out:
	srcu_read_unlock(&shift_srcu, idx);
	return err;
}

/* The window of @mw, for its dealloc; mw_mutex. */
static struct shift_mw *mw_take(struct shift_dev *sdev, struct ib_mw *mw, unsigned long *at)
{
	struct shift_mw *smw;

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
	shift_pd_put(smw->spd);
	kfree(smw);
}

/* Nobody finds the window open any more, and nothing stands in for it. */
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
	/* waits for this PD's registrations, which others' windows need not do */
	shift_region_revoke(spd, NULL, index);
	shift_pd_put(spd);
}

static int wrap_dealloc_mw(struct ib_mw *mw)
{
	struct shift_dev *sdev;
	struct shift_mw *smw;
	unsigned long index;
	int idx, err = 0;

	idx = srcu_read_lock(&shift_srcu);
	sdev = shift_ops_dev(mw->device);
	mw_revoke(sdev, mw);
	mutex_lock(&sdev->mw_mutex);
	smw = mw_take(sdev, mw, &index);
	if (!smw || !smw->gone)
		err = sdev->saved.dealloc_mw(mw);
	if (!err && smw)
		mw_free(sdev, smw, index);
	mutex_unlock(&sdev->mw_mutex);
	srcu_read_unlock(&shift_srcu, idx);
	return err;
}

const struct ib_device_ops shift_mw_ops = {
	.alloc_mw = wrap_alloc_mw,
	.dealloc_mw = wrap_dealloc_mw,
};

/* The device goes; no QP of ours is left on it. */
void shift_mw_device_gone(struct shift_dev *sdev)
{
	struct shift_mw *smw;
	unsigned long index;

	mutex_lock(&sdev->mw_mutex);
	xa_for_each(&sdev->mws, index, smw) {
		/* the driver is asked to deallocate it later, when nobody is here to stop that */
		if (smw->gone && sdev->saved.alloc_mw(smw->mw, NULL))
			pr_err("%s: a memory window is deallocated twice\n", sdev->name);
		mw_free(sdev, smw, index);
	}
	mutex_unlock(&sdev->mw_mutex);
}
