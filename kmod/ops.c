// SPDX-License-Identifier: GPL-2.0
/*
 * Interposition: the only file that writes a device's ops.
 *
 * Entries are exchanged one by one, and only where the driver has one (the core
 * derives what it offers from that).  A wrapper calls sdev->saved, never the
 * entry it sits in.  Slow wrappers run under shift_srcu, fast ones under RCU; the
 * gap between the core's load of a pointer and the wrapper's first instruction
 * is covered by RCU tasks at detach.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/srcu.h>
#include "compat/compat.h"
#include "mw.h"
#include "sysfs.h"

DEFINE_SRCU(shift_srcu);

#define OP(table, name) { offsetof(struct ib_device_ops, name), &(table) }

static const struct {
	size_t offset;
	const struct ib_device_ops *from;
} ops_table[] = {
	OP(shift_pd_ops, alloc_pd),
	OP(shift_pd_ops, dealloc_pd),
	OP(shift_mr_ops, reg_user_mr),
	OP(shift_mr_ops, reg_user_mr_dmabuf),
	OP(shift_mr_ops, rereg_user_mr),
	OP(shift_mr_ops, reg_dm_mr),
	OP(shift_mr_ops, dereg_mr),
	OP(shift_mw_ops, alloc_mw),
	OP(shift_mw_ops, dealloc_mw),
	OP(shift_cq_ops, create_cq),
	OP(shift_cq_ops, destroy_cq),
	OP(shift_cq_ops, resize_cq),
	OP(shift_cq_ops, req_notify_cq),
	OP(shift_srq_ops, create_srq),
	OP(shift_srq_ops, modify_srq),
	OP(shift_srq_ops, query_srq),
	OP(shift_srq_ops, destroy_srq),
	OP(shift_qp_ops, create_qp),
	OP(shift_qp_ops, modify_qp),
	OP(shift_qp_ops, query_qp),
	OP(shift_qp_ops, destroy_qp),
	OP(shift_qp_ops, post_send),
};

static void **ops_entry(const struct ib_device_ops *ops, int i)
{
	return (void **)((u8 *)ops + ops_table[i].offset);
}

static void ops_swap_in(struct shift_dev *sdev)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(ops_table); i++) {
		void *theirs = *ops_entry(&sdev->saved, i);
		void *ours = *ops_entry(ops_table[i].from, i);

		if (theirs && ours)
			WARN_ON_ONCE(cmpxchg(ops_entry(&sdev->ibdev->ops, i),
					     theirs, ours) != theirs);
	}
}

/* false, and everything as before, if somebody else has put an entry over ours */
static bool ops_swap_out(struct shift_dev *sdev)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(ops_table); i++) {
		void *theirs = *ops_entry(&sdev->saved, i);
		void *ours = *ops_entry(ops_table[i].from, i);

		if (theirs && ours && READ_ONCE(*ops_entry(&sdev->ibdev->ops, i)) != ours)
			return false;
	}
	for (i = 0; i < ARRAY_SIZE(ops_table); i++) {
		void *theirs = *ops_entry(&sdev->saved, i);
		void *ours = *ops_entry(ops_table[i].from, i);

		if (theirs && ours)
			cmpxchg(ops_entry(&sdev->ibdev->ops, i), ours, theirs);
	}
	return true;
}

static void ops_wait(void)
{
	synchronize_rcu_tasks();
	shift_synchronize_rcu_tasks_rude();
	synchronize_srcu(&shift_srcu);
	synchronize_rcu();
}

/**
 * shift_ops_attach - put our wrappers into a device's ops
 * @sdev: the device, with its backup set.
 *
 * Context: process context, shift_devices_lock.
 * Return: 0, -EEXIST, -ENOMEM.
 */
int shift_ops_attach(struct shift_dev *sdev)
{
	int err;

	lockdep_assert_held(&shift_devices_lock);
	if (sdev->attached)
		return 0;
	sdev->saved = sdev->ibdev->ops;
	err = shift_object_insert(&sdev->obj, sdev->ibdev, SHIFT_OBJ_DEV);
	if (err)
		return err;
	kref_get(&sdev->ref);
	WRITE_ONCE(sdev->tracking, true);
	ops_swap_in(sdev);
	sdev->attached = true;
	shift_sysfs_add(sdev);
	return 0;
}

/**
 * shift_ops_detach - give a device its own ops back
 * @sdev: the device.
 * @force: the device is going: let go of objects that are still tracked.
 *
 * Context: process context.
 * Return: 0, -EBUSY.
 */
int shift_ops_detach(struct shift_dev *sdev, bool force)
{
	WRITE_ONCE(sdev->tracking, false);
	synchronize_srcu(&shift_srcu);
	if (!force && atomic_read(&sdev->objects)) {
		WRITE_ONCE(sdev->tracking, true);
		return -EBUSY;
	}
	/* while wrappers are there: QPs of ours in an application's PD go before it can */
	if (force)
		shift_qp_device_gone(sdev);
	if (!ops_swap_out(sdev)) {
		/* our code must stay: it may be called for ever */
		if (!force) {
			WRITE_ONCE(sdev->tracking, true);
			return -EBUSY;
		}
		pr_err("%s: ops were changed by another module; staying loaded\n", sdev->name);
		__module_get(THIS_MODULE);
	}
	ops_wait();
	if (force) {
		shift_qp_device_gone(sdev);
		shift_srq_device_gone(sdev, false);
		shift_cq_device_gone(sdev);
		shift_mr_device_gone(sdev, false);
	}
	shift_sysfs_remove(sdev);
	sdev->attached = false;
	if (shift_object_remove(&sdev->obj))
		shift_dev_put(sdev);
	return 0;
}
