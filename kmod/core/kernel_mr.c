// SPDX-License-Identifier: GPL-2.0
/*
 * What is registered of the MRs of users in the kernel, and their keys.
 *
 * Of such an MR the index, which is the key without its low byte, stays for its life.  Each
 * registration may change the low byte.  The mirror has an index of its own and the same low byte.
 */
#include <linux/rcupdate.h>
#include <linux/xarray.h>
#include "core/kernel_mr.h"
#include "core/object.h"
#include "core/qp.h"
#include "pure/wr.h"

bool shift_kernel_mr_local(u32 opcode)
{
	return opcode == SHIFT_WR_REG_MR || opcode == SHIFT_WR_LOCAL_INV;
}

/* The MR of the QP's PD with a key's index, or NULL; RCU. */
static struct shift_mr *mr_of(const struct shift_pd *spd, u32 key)
{
	struct shift_mr *smr = xa_load(&spd->sdev->mrs, key >> 8);

	return smr && smr->kernel && smr->spd == spd ? smr : NULL;
}

/* The MR that an operation is about, or NULL; RCU. */
static struct shift_mr *mr_of_op(const struct shift_qp *sqp, const struct shift_kernel_mr_op *op)
{
	return sqp->spd && shift_kernel_mr_local(op->opcode) ? mr_of(sqp->spd, op->key) : NULL;
}

/* The device has a registration, unless the peer has invalidated it since. */
static void mr_posted(struct shift_qp *sqp, struct shift_kernel_mr *kernel, u32 key, u8 path)
{
	lockdep_assert_held(&kernel->lock);
	WRITE_ONCE(kernel->owner, sqp);
	if (!kernel->any_gone || kernel->gone != key)
		kernel->on[shift_path_device(path)] =
			(struct shift_kernel_mr_on) { .valid = true, .key = key };
}

static void mr_gone(struct shift_kernel_mr *kernel, u32 key, u8 path)
{
	lockdep_assert_held(&kernel->lock);
	kernel->gone = key;
	kernel->any_gone = true;
	kernel->live = false;
	kernel->on[shift_path_device(path)].valid = false;
}

/**
 * shift_kernel_mr_posted - an operation was given to a device, and may be executed
 * @sqp: the QP.
 * @op: the operation.
 * @path: of the device.
 *
 * Context: any.
 */
void shift_kernel_mr_posted(struct shift_qp *sqp, const struct shift_kernel_mr_op *op, u8 path)
{
	struct shift_mr *smr;
	unsigned long flags;

	if (op->opcode != SHIFT_WR_REG_MR)
		return;
	rcu_read_lock();
	smr = mr_of_op(sqp, op);
	if (smr) {
		spin_lock_irqsave(&smr->kernel->lock, flags);
		mr_posted(sqp, smr->kernel, op->key, path);
		spin_unlock_irqrestore(&smr->kernel->lock, flags);
	}
	rcu_read_unlock();
}

static void mr_executed(struct shift_qp *sqp, struct shift_kernel_mr *kernel,
			const struct shift_kernel_mr_op *op, u8 path)
{
	struct shift_kernel_mr_on *on = &kernel->on[shift_path_device(path)];

	lockdep_assert_held(&kernel->lock);
	if (op->opcode == SHIFT_WR_LOCAL_INV) {
		mr_gone(kernel, op->key, path);
		return;
	}
	mr_posted(sqp, kernel, op->key, path);
	on->sure = on->valid && on->key == op->key;
	kernel->key = op->key;
	kernel->access = op->access;
	kernel->live = !kernel->any_gone || kernel->gone != op->key;
}

/**
 * shift_kernel_mr_executed - an operation was executed on a device
 * @sqp: the QP.
 * @op: the operation.
 * @path: of the device.
 *
 * Context: any.
 */
void shift_kernel_mr_executed(struct shift_qp *sqp, const struct shift_kernel_mr_op *op, u8 path)
{
	struct shift_mr *smr;
	unsigned long flags;

	if (!shift_kernel_mr_local(op->opcode))
		return;
	rcu_read_lock();
	smr = mr_of_op(sqp, op);
	if (smr) {
		spin_lock_irqsave(&smr->kernel->lock, flags);
		mr_executed(sqp, smr->kernel, op, path);
		spin_unlock_irqrestore(&smr->kernel->lock, flags);
	}
	rcu_read_unlock();
}

/**
 * shift_kernel_mr_invalidated - the peer has invalidated an MR by what was received
 * @sqp: the QP.
 * @key: the key, as the user knows it.
 * @path: where it was received.
 *
 * Context: any.
 */
void shift_kernel_mr_invalidated(struct shift_qp *sqp, u32 key, u8 path)
{
	struct shift_mr *smr;
	unsigned long flags;

	if (!sqp->spd)
		return;
	rcu_read_lock();
	smr = mr_of(sqp->spd, key);
	if (smr) {
		spin_lock_irqsave(&smr->kernel->lock, flags);
		mr_gone(smr->kernel, key, path);
		spin_unlock_irqrestore(&smr->kernel->lock, flags);
	}
	rcu_read_unlock();
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

/**
 * shift_kernel_mr_find - the MR to register or to invalidate on a path
 * @sqp: the QP.
 * @key: the key of the operation, as the user knows it.
 * @path: the path.
 * @wire: out: the key there.
 *
 * Its range is that of the user's, who may have changed that since it was mapped.
 *
 * Context: any; the user keeps the MR for as long as the operation is outstanding.
 * Return: the MR; NULL: there is none.
 */
struct ib_mr *shift_kernel_mr_find(const struct shift_qp *sqp, u32 key, u8 path, u32 *wire)
{
	struct ib_mr *mr = NULL;
	struct shift_mr *smr;

	rcu_read_lock();
	smr = mr_of(sqp->spd, key);
	if (smr && !(path == SHIFT_PATH_BACKUP && smr->kernel->unmapped))
		mr = shift_kernel_mr_of(smr, path);
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
