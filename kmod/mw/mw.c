// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows of user space: which there are, which QP owns each, whether it is bound.
 *
 * A window belongs to the first QP that binds it.  It is looked up under mw_lock by the index of
 * its key each time, so that nobody keeps a pointer.  Keys come from the application and may be
 * wrong.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include "compat/compat.h"
#include "core/object.h"
#include "core/provider.h"
#include "core/qp.h"
#include "mw/mw.h"
#include "pure/mw_state.h"
#include "pure/wr.h"

static bool windows = true;
module_param(windows, bool, 0644);
MODULE_PARM_DESC(windows, "protect queue pairs with memory windows (rxe, type 2)");

/* Are windows of this device supported? */
bool shift_mw_enabled(const struct shift_dev *sdev)
{
	return READ_ONCE(windows) && sdev->provider &&
	       sdev->provider->flags & SHIFT_PROVIDES_WINDOWS;
}

void shift_mw_init(struct shift_dev *sdev)
{
	xa_init_flags(&sdev->mws, XA_FLAGS_LOCK_BH | XA_FLAGS_ACCOUNT);
	spin_lock_init(&sdev->mw_lock);
	mutex_init(&sdev->mw_mutex);
}

/*
 * Pin the pages of memory that windows may be bound to; NULL: not possible.  In the thread that
 * registers the memory, after its locked memory was credited.
 */
struct ib_umem *shift_mw_pin(struct ib_device *ibdev, u64 start, u64 length, int access)
{
	struct ib_umem *umem = ib_umem_get_va(ibdev, start, length, access);

	return IS_ERR(umem) ? NULL : umem;
}

/* The window with that key's index, if it is of the QP's PD; mw_lock. */
static struct shift_mw *mw_of(struct shift_qp *sqp, u32 key)
{
	struct shift_mw *smw = xa_load(&sqp->sdev->mws, shift_mw_state_index(key));

	lockdep_assert_held(&sqp->sdev->mw_lock);
	return smw && smw->spd == sqp->spd ? smw : NULL;
}

/**
 * shift_mw_claim - a bind was posted: the window belongs to that QP from now on
 * @sqp: the QP.
 * @op: a BIND_MW.
 *
 * If two QPs bind the same window, the order of their operations is not known, as they are in two
 * rings.  Then the QPs of the PD are not protected any more.
 *
 * Context: ledger_lock.
 */
void shift_mw_claim(struct shift_qp *sqp, const struct shift_mw_op *op)
{
	struct shift_mw *smw;
	struct shift_mr *smr;
	bool foreign = true;

	lockdep_assert_held(&sqp->ledger_lock);
	spin_lock_bh(&sqp->sdev->mw_lock);
	smw = mw_of(sqp, op->old);
	if (smw) {
		if (!smw->owner)
			smw->owner = sqp;
		foreign = smw->owner != sqp;
	}
	spin_unlock_bh(&sqp->sdev->mw_lock);
	/* memory that was registered while windows were disabled has no pinned pages here */
	rcu_read_lock();
	smr = xa_load(&sqp->sdev->mrs, op->lkey >> 8);
	foreign |= smr && !READ_ONCE(smr->umem);
	rcu_read_unlock();
	/* the driver refuses a key that names no window */
	if (smw && foreign)
		shift_pd_spoil(sqp->spd, SHIFT_REASON_MW);
}

/* An operation completed on the QP's own NIC; ledger_lock. */
void shift_mw_was(struct shift_qp *sqp, const struct shift_mw_op *op)
{
	struct shift_mw *smw;

	lockdep_assert_held(&sqp->ledger_lock);
	spin_lock_bh(&sqp->sdev->mw_lock);
	smw = mw_of(sqp, op->opcode == SHIFT_WR_BIND_MW ? op->old : op->key);
	if (smw && smw->owner == sqp)
		shift_mw_state_was(&smw->win, op);
	spin_unlock_bh(&sqp->sdev->mw_lock);
}

/* May the window be bound to the memory that @op names?  mw_lock. */
static bool memory_fits(struct shift_qp *sqp, const struct shift_mw_op *op)
{
	struct shift_mr *smr;
	bool fits;

	lockdep_assert_held(&sqp->sdev->mw_lock);
	rcu_read_lock();
	smr = xa_load(&sqp->sdev->mrs, op->lkey >> 8);
	fits = smr && smr->lkey == op->lkey && smr->spd == sqp->spd && READ_ONCE(smr->umem) &&
	       shift_mw_state_fits(op, smr->iova, smr->length, smr->access);
	rcu_read_unlock();
	return fits;
}

/**
 * shift_mw_perform - do a window operation of a QP that runs on a proxy QP
 * @sqp: the QP.
 * @op: BIND_MW or LOCAL_INV, next in order.  Before a LOCAL_INV all that was posted is completed.
 *
 * Context: ledger_lock.
 * Return: 0, -EKEYREJECTED (bind), -EINVAL.
 */
int shift_mw_perform(struct shift_qp *sqp, const struct shift_mw_op *op)
{
	bool bind = op->opcode == SHIFT_WR_BIND_MW;
	struct shift_mw *smw;
	int err = -EINVAL;

	lockdep_assert_held(&sqp->ledger_lock);
	spin_lock_bh(&sqp->sdev->mw_lock);
	smw = mw_of(sqp, bind ? op->old : op->key);
	if (bind && smw && (!smw->owner || smw->owner == sqp) && memory_fits(sqp, op)) {
		smw->owner = sqp;
		err = shift_mw_state_bind(&smw->win, op);
	} else if (!bind && smw && smw->owner == sqp) {
		err = shift_mw_state_invalidate(&smw->win, op->key);
	}
	spin_unlock_bh(&sqp->sdev->mw_lock);
	return err && bind ? -EKEYREJECTED : err;
}

/**
 * shift_mw_find - look up a window that this QP has bound
 * @sqp: the QP.
 * @key: its key.
 * @win: out: its state.
 *
 * Context: any that may take a spinlock.
 * Return: 0; -ENOENT: there is none with that key, or it is not bound.
 */
int shift_mw_find(struct shift_qp *sqp, u32 key, struct shift_mw_state *win)
{
	struct shift_mw *smw;
	int err = -ENOENT;

	spin_lock_bh(&sqp->sdev->mw_lock);
	smw = mw_of(sqp, key);
	if (smw && smw->owner == sqp && shift_mw_state_open(&smw->win, key)) {
		*win = smw->win;
		err = 0;
	}
	spin_unlock_bh(&sqp->sdev->mw_lock);
	return err;
}

/* The peer says that it invalidated a window @n times while both were on their own QPs. */
void shift_mw_told(struct shift_qp *sqp, u32 key, u32 n)
{
	struct shift_mw *smw;

	spin_lock_bh(&sqp->sdev->mw_lock);
	smw = mw_of(sqp, key);
	if (smw && smw->owner == sqp)
		shift_mw_state_told(&smw->win, n);
	spin_unlock_bh(&sqp->sdev->mw_lock);
}

/* The peer invalidated a window of a QP that runs on a proxy QP. */
void shift_mw_invalidated(struct shift_qp *sqp, u32 key)
{
	struct shift_mw *smw;

	spin_lock_bh(&sqp->sdev->mw_lock);
	smw = mw_of(sqp, key);
	if (smw && smw->owner == sqp)
		shift_mw_state_invalidate(&smw->win, key);
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

/* The QP is destroyed: its windows belong to no QP. */
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

/* Free the driver's window and allocate it again, so that no QP and no MR uses it; mw_mutex. */
static void mw_recreate(struct shift_dev *sdev, struct shift_mw *smw)
{
	int tries;

	lockdep_assert_held(&sdev->mw_mutex);
	if (smw->gone || sdev->saved.dealloc_mw(smw->mw))
		return;
	/* A window has just become free, so that only lack of memory can make this fail. */
	for (tries = 0; tries < 100; tries++) {
		if (!sdev->saved.alloc_mw(smw->mw, NULL))
			return;
		msleep(20);
	}
	smw->gone = true;
	pr_warn("%s: a memory window could not be allocated again\n", sdev->name);
}

/**
 * shift_mw_recycle - the QP has left its own NIC: make its windows unusable there
 * @sqp: the QP, locked and fenced.
 *
 * It is not known whether a window is bound there, and rxe crashes if one that is not bound is
 * invalidated.  Freeing a window and allocating it again works in either case, and ends its
 * references to the QP and to MRs.
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
	if (!sqp->rings.tracks_mws)
		return;
	mutex_lock(&sdev->mw_mutex);
	xa_for_each(&sdev->mws, index, smw) {
		spin_lock_bh(&sdev->mw_lock);
		mine = smw->owner == sqp;
		spin_unlock_bh(&sdev->mw_lock);
		if (mine)
			mw_recreate(sdev, smw);
	}
	mutex_unlock(&sdev->mw_mutex);
}

