// SPDX-License-Identifier: GPL-2.0
/*
 * Interposition: the only file that writes a device's operations.
 *
 * Entries are exchanged one by one, and only where the driver has one, because the core derives
 * from that what a device can do.  A wrapper calls sdev->saved, never the entry that it was called
 * by.  Wrappers that may sleep run under the device's SRCU, the others under RCU.  A thread may
 * have loaded the pointer to a wrapper and not entered its read section yet, or have left that and
 * not returned yet.  For those threads detaching waits for RCU tasks.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/netlink.h>
#include <linux/rcupdate.h>
#include <linux/srcu.h>
#include "compat/compat.h"
#include "core/object.h"
#include "verbs/verbs.h"

#define OPS_RETRY_MS	100

#define OP(table, name) { offsetof(struct ib_device_ops, name), &(table), false }
/* only put in if users in the kernel are to be tracked on the device */
#define KERNEL_OP(table, name) { offsetof(struct ib_device_ops, name), &(table), true }

static const struct {
	size_t offset;
	const struct ib_device_ops *from;
	bool kernel;
} ops_table[] = {
	OP(shift_pd_ops, alloc_pd),
	OP(shift_pd_ops, dealloc_pd),
	OP(shift_ah_ops, create_user_ah),
	OP(shift_mr_ops, reg_user_mr),
	OP(shift_mr_ops, reg_user_mr_dmabuf),
	OP(shift_mr_ops, rereg_user_mr),
	OP(shift_mr_ops, reg_dm_mr),
	OP(shift_mr_ops, dereg_mr),
	OP(shift_mw_ops, alloc_mw),
	OP(shift_mw_ops, dealloc_mw),
	OP(shift_cq_ops, create_cq),
#ifdef SHIFT_HAVE_CREATE_USER_CQ
	OP(shift_cq_ops, create_user_cq),
#endif
	OP(shift_cq_ops, destroy_cq),
	OP(shift_cq_ops, resize_user_cq),
	OP(shift_cq_ops, req_notify_cq),
	OP(shift_srq_ops, create_srq),
	OP(shift_srq_ops, modify_srq),
	OP(shift_srq_ops, query_srq),
	OP(shift_srq_ops, destroy_srq),
	OP(shift_qp_ops, create_qp),
	OP(shift_modify_ops, modify_qp),
	OP(shift_modify_ops, query_qp),
	OP(shift_qp_ops, destroy_qp),
	OP(shift_qp_ops, post_send),
	KERNEL_OP(shift_kernel_ops, post_recv),
	KERNEL_OP(shift_kernel_ops, post_srq_recv),
	KERNEL_OP(shift_kernel_ops, poll_cq),
	KERNEL_OP(shift_drain_ops, drain_sq),
	KERNEL_OP(shift_drain_ops, drain_rq),
	KERNEL_OP(shift_kernel_mr_ops, alloc_mr),
	KERNEL_OP(shift_kernel_mr_ops, map_mr_sg),
	KERNEL_OP(shift_kernel_mr_ops, map_mr_sg_pi),
};

static void **ops_entry(const struct ib_device_ops *ops, int i)
{
	return (void **)((u8 *)ops + ops_table[i].offset);
}

/* Our entry, or NULL: it stays the driver's. */
static void *ops_ours(const struct shift_dev *sdev, int i)
{
	if (ops_table[i].kernel && !shift_kernel_users(sdev))
		return NULL;
	return *ops_entry(ops_table[i].from, i);
}

/*
 * Put our entries into the operations (@in), or the driver's back.  If another module has replaced
 * an entry meanwhile: returns false, and everything is as before.
 */
static bool ops_swap(struct shift_dev *sdev, bool in)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(ops_table); i++) {
		void *theirs = *ops_entry(&sdev->saved, i);
		void *ours = ops_ours(sdev, i);
		void *from = in ? theirs : ours;

		if (theirs && ours &&
		    cmpxchg(ops_entry(&sdev->ibdev->ops, i), from, in ? ours : theirs) != from)
			goto undo;
	}
	return true;

undo:
	while (i--) {
		void *theirs = *ops_entry(&sdev->saved, i);
		void *ours = ops_ours(sdev, i);

		if (theirs && ours)
			cmpxchg(ops_entry(&sdev->ibdev->ops, i), in ? ours : theirs,
				in ? theirs : ours);
	}
	return false;
}

/* Are all entries ours, so that ops_swap() can put back the driver's? */
static bool ops_are_ours(struct shift_dev *sdev)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(ops_table); i++) {
		void *ours = ops_ours(sdev, i);

		if (*ops_entry(&sdev->saved, i) && ours &&
		    READ_ONCE(*ops_entry(&sdev->ibdev->ops, i)) != ours)
			return false;
	}
	return true;
}

/* Wait until no thread is in a wrapper, or about to enter or to leave one. */
static void ops_wait(struct shift_dev *sdev)
{
	int i;

	/* the first time for threads that enter a wrapper, the second for those that return */
	for (i = 0; i < 2; i++) {
		synchronize_rcu_tasks();
		shift_synchronize_rcu_tasks_rude();
		if (!i)
			shift_verbs_wait(sdev);
	}
}

/* The operations are the driver's again: forget all objects, and the device as well. */
static void ops_drop_objects(struct shift_dev *sdev)
{
	ops_wait(sdev);
	shift_qp_device_gone(sdev);
	shift_srq_device_gone(sdev);
	shift_cq_device_gone(sdev);
	shift_mr_device_gone(sdev);
	shift_unlisted_device_gone(sdev);
	sdev->attached = false;
	if (shift_object_remove(&sdev->obj))
		shift_dev_put(sdev);
}

/**
 * shift_ops_attach - put our wrappers into a device's ops
 * @sdev: the device.
 *
 * Context: process context, sdev->ops_mutex; waits for nobody.
 * Return: 0, also if they are there; -EEXIST, -ENOMEM, -EBUSY (another module changes them).  If
 * sdev->attached is set after an error, some wrappers were there for a moment and may still run:
 * shift_ops_detached() is to be called.
 */
int shift_ops_attach(struct shift_dev *sdev)
{
	int err;

	lockdep_assert_held(&sdev->ops_mutex);
	if (sdev->attached)
		return 0;
	sdev->saved = sdev->ibdev->ops;
	err = shift_object_insert(&sdev->obj, sdev->ibdev, SHIFT_OBJ_DEV);
	if (err)
		return err;
	kref_get(&sdev->ref);
	atomic_set(&sdev->objects, 0);
	sdev->attached = true;
	if (ops_swap(sdev, true))
		return 0;
	/* and may have tracked objects */
	atomic_add(INT_MIN, &sdev->objects);
	return -EBUSY;
}

/**
 * shift_ops_swap_out - restore a device's operations, if nothing is tracked
 * @sdev: the device.
 * @extack: where a refusal is explained.
 *
 * New objects are not tracked from here on.  Wrappers may still run: shift_ops_detached().
 *
 * Context: process context, sdev->ops_mutex; waits for nobody.
 * Return: 0, or -EBUSY and nothing has changed.
 */
int shift_ops_swap_out(struct shift_dev *sdev, struct netlink_ext_ack *extack)
{
	lockdep_assert_held(&sdev->ops_mutex);
	/* shift_ops_detached() would wait for it, and it may take any time */
	if (atomic_read(&sdev->pinning)) {
		NL_SET_ERR_MSG_MOD(extack, "memory is being registered on the device");
		return -EBUSY;
	}
	/* before the count is negative, because what is made while it is stays untracked */
	if (!ops_are_ours(sdev))
		goto taken;
	if (atomic_cmpxchg(&sdev->objects, 0, INT_MIN)) {
		if (shift_pd_users(sdev) & ~BIT(SHIFT_ULP_NONE))
			NL_SET_ERR_MSG_MOD(extack, "users in the kernel use it: see pair show");
		else
			NL_SET_ERR_MSG_MOD(extack, "applications use it: stop them first");
		return -EBUSY;
	}
	if (ops_swap(sdev, false))
		return 0;
	atomic_set(&sdev->objects, 0);
taken:
	NL_SET_ERR_MSG_MOD(extack, "another module has changed the device's operations");
	return -EBUSY;
}

/**
 * shift_ops_detached - wait until no thread runs a wrapper
 * @sdev: the device, after shift_ops_swap_out(), or if shift_ops_attach() has left it attached.
 *
 * Context: process context, sdev->ops_mutex; no other lock is held.
 */
void shift_ops_detached(struct shift_dev *sdev)
{
	lockdep_assert_held(&sdev->ops_mutex);
	ops_drop_objects(sdev);
}

/*
 * Another module may have put its entries over ours, so that it calls ours.  If the device is
 * removed, that module keeps those pointers, and this module's code has to stay loaded.  If this
 * module is being unloaded, which cannot be refused any more, it waits for the other one.
 */
static bool ops_swap_out_last(struct shift_dev *sdev, bool unloading)
{
	bool told = false;

	while (!ops_swap(sdev, false)) {
		if (!told)
			pr_err("%s: another module has changed the device's operations; %s\n",
			       sdev->name, unloading ? "waiting until it is gone" :
						       "staying loaded for good");
		told = true;
		if (!unloading) {
			__module_get(THIS_MODULE);
			return false;
		}
		msleep(OPS_RETRY_MS);
	}
	return true;
}

/**
 * shift_ops_device_gone - a device goes: restore its operations, forget all objects
 * @sdev: the device; its pairs are empty.
 * @unloading: the module is being unloaded.
 *
 * Context: process context.
 */
void shift_ops_device_gone(struct shift_dev *sdev, bool unloading)
{
	mutex_lock(&sdev->ops_mutex);
	if (sdev->attached) {
		if (shift_dev_tracks(sdev))
			atomic_add(INT_MIN, &sdev->objects);
		/*
		 * While the wrappers are there: with the QPs go the proxy QPs in applications' PDs,
		 * before a PD can be deallocated.
		 */
		shift_qp_device_gone(sdev);
		if (ops_swap_out_last(sdev, unloading)) {
			ops_drop_objects(sdev);
		} else {
			/* the wrappers stay: they still find the device and sdev->saved */
			shift_verbs_wait(sdev);
			shift_srq_device_gone(sdev);
			shift_cq_device_gone(sdev);
			shift_mr_device_gone(sdev);
			shift_unlisted_device_gone(sdev);
		}
	}
	mutex_unlock(&sdev->ops_mutex);
}
