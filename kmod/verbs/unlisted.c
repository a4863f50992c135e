// SPDX-License-Identifier: GPL-2.0
/*
 * QPs of users in the kernel that are not to be protected.  They are only listed, so that an
 * operator sees before a fault who will not survive it.  Neither a pair nor this module stays for
 * them.
 *
 * The lists have no lock but their own, and nothing is allocated under it: proxy QPs are destroyed
 * on the way of a failover, and pass here.
 */
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "core/object.h"
#include "core/pair.h"
#include "verbs/verbs.h"

/**
 * shift_unlisted_add - list a QP that is not tracked
 * @sdev: its device.
 * @qp: an RC QP of the kernel that was just created.
 *
 * This module's own, as those of links, are not listed.  Without memory it is not, either.
 *
 * Context: a wrapper.
 */
void shift_unlisted_add(struct shift_dev *sdev, const struct ib_qp *qp)
{
	const char *user = qp->pd->res.kern_name ?: "";
	struct shift_unlisted *entry;

	if (!strcmp(user, KBUILD_MODNAME))
		return;
	entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	if (!entry)
		return;
	entry->qpn = qp->qp_num;
	strscpy(entry->user, user, sizeof(entry->user));
	if (xa_insert(&sdev->unlisted, entry->qpn, entry, GFP_KERNEL))
		kfree(entry);
}

/**
 * shift_unlisted_drop - a QP is about to be destroyed
 * @sdev: its device.
 * @qpn: its number; nothing is done if it is not listed.
 *
 * Context: a wrapper; does not sleep.
 */
void shift_unlisted_drop(struct shift_dev *sdev, u32 qpn)
{
	struct shift_unlisted *entry = xa_erase(&sdev->unlisted, qpn);

	if (entry)
		kfree_rcu(entry, rcu);
}

/* No wrapper will run for the device any more, or it goes: nothing of it is listed. */
void shift_unlisted_device_gone(struct shift_dev *sdev)
{
	struct shift_unlisted *entry;
	unsigned long qpn;

	xa_for_each(&sdev->unlisted, qpn, entry)
		shift_unlisted_drop(sdev, qpn);
}

/**
 * shift_unlisted_next - the next QP that is listed
 * @cursor: where the last one was; at first all zeros.  Out: where this one is.
 * @entry: out.
 *
 * Others may come and go between two calls; if devices do, one may be shown twice, or not at all.
 *
 * Context: any.
 * Return: whether there is one.
 */
bool shift_unlisted_next(struct shift_unlisted_cursor *cursor, struct shift_unlisted *entry)
{
	const struct shift_unlisted *found = NULL;
	unsigned int number = 0;
	struct shift_dev *sdev;

	rcu_read_lock();
	list_for_each_entry_rcu(sdev, &shift_devices, list) {
		if (number++ < cursor->dev)
			continue;
		found = xa_find(&sdev->unlisted, &cursor->qpn, U32_MAX, XA_PRESENT);
		if (found) {
			*entry = *found;
			shift_dev_name(sdev, cursor->name);
			cursor->qpn++;
			break;
		}
		cursor->dev++;
		cursor->qpn = 0;
	}
	rcu_read_unlock();
	return found;
}
