// SPDX-License-Identifier: GPL-2.0
/*
 * QPs of users in the kernel that are not to be protected.  They are only listed, so that an
 * operator sees before a fault who will not survive it.  Neither a pair nor this module stays for
 * them.
 */
#include <linux/slab.h>
#include "core/object.h"
#include "core/pair.h"
#include "verbs/verbs.h"

/**
 * shift_unlisted_add - list a QP that is not tracked
 * @sdev: its device.
 * @qp: an RC QP of the kernel that was just created.
 *
 * Without memory it is not listed.
 *
 * Context: a wrapper.
 */
void shift_unlisted_add(struct shift_dev *sdev, const struct ib_qp *qp)
{
	struct shift_unlisted *entry = kzalloc(sizeof(*entry), GFP_KERNEL);

	if (!entry)
		return;
	entry->qpn = qp->qp_num;
	strscpy(entry->user, qp->pd->res.kern_name ?: "", sizeof(entry->user));
	mutex_lock(&sdev->list_lock);
	if (xa_insert(&sdev->unlisted, entry->qpn, entry, GFP_NOIO))
		kfree(entry);
	mutex_unlock(&sdev->list_lock);
}

/**
 * shift_unlisted_drop - a QP is about to be destroyed
 * @sdev: its device.
 * @qpn: its number; nothing is done if it is not listed.
 *
 * Context: a wrapper.
 */
void shift_unlisted_drop(struct shift_dev *sdev, u32 qpn)
{
	mutex_lock(&sdev->list_lock);
	kfree(xa_erase(&sdev->unlisted, qpn));
	mutex_unlock(&sdev->list_lock);
}

/* No wrapper will run for the device any more, or it goes: nothing of it is listed. */
void shift_unlisted_device_gone(struct shift_dev *sdev)
{
	struct shift_unlisted *entry;
	unsigned long qpn;

	mutex_lock(&sdev->list_lock);
	xa_for_each(&sdev->unlisted, qpn, entry) {
		xa_erase(&sdev->unlisted, qpn);
		kfree(entry);
	}
	mutex_unlock(&sdev->list_lock);
}

/**
 * shift_unlisted_walk - show all that are listed
 * @show: is called for each, with its device; allocates nothing that waits for I/O.
 * @arg: for @show.
 *
 * Context: process context; takes shift_devices_lock, and list_lock inside.
 * Return: 0, or what @show has returned.
 */
int shift_unlisted_walk(shift_unlisted_fn show, void *arg)
{
	struct shift_unlisted *entry;
	struct shift_dev *sdev;
	unsigned long qpn;
	int err = 0;

	mutex_lock(&shift_devices_lock);
	list_for_each_entry(sdev, &shift_devices, list) {
		mutex_lock(&sdev->list_lock);
		xa_for_each(&sdev->unlisted, qpn, entry) {
			err = show(sdev, entry, arg);
			if (err)
				break;
		}
		mutex_unlock(&sdev->list_lock);
		if (err)
			break;
	}
	mutex_unlock(&shift_devices_lock);
	return err;
}
