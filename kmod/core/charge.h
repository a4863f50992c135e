/* SPDX-License-Identifier: GPL-2.0 */
/* Objects that the module makes for a process count for the process's rdma cgroup: charge.c. */
#ifndef SHIFT_CORE_CHARGE_H
#define SHIFT_CORE_CHARGE_H

#include <linux/list.h>
#include <linux/types.h>

struct shift_charge;
struct shift_dev;
struct shift_pair;
struct shift_purse;

/**
 * struct shift_charge_ops - what depends on charges of one kind
 * @lacks: the charge is refused or given up, and lacking from now on.
 * @lacks_no_more: a charge that was lacking goes.
 * @tell: tell who depends on it, and give away the reference that the others have taken for it.
 *
 * All are given the owner of the charge.  The first two are called under a mutex that is inside all
 * others, and return whether @tell is to be called, which is done without it.
 */
struct shift_charge_ops {
	bool (*lacks)(void *owner);
	bool (*lacks_no_more)(void *owner);
	void (*tell)(void *owner);
};

/**
 * struct shift_charge_part - what is charged on one device
 * @node: in the list of @purse.
 * @purse: where it is charged; NULL: nothing is.
 * @charge: what it is a part of.
 * @num: number of objects.
 */
struct shift_charge_part {
	struct list_head node;
	struct shift_purse *purse;
	struct shift_charge *charge;
	unsigned int num;
};

/**
 * struct shift_charge - what is charged for one object of an application
 * @part: on the backup, and on the default device.
 * @ops: of its kind; NULL: nothing was to be charged.
 * @owner: what depends on the charge, for @ops.
 * @lacking: the charge was refused or given up: what depends on it cannot be protected.
 *
 * Zeroed before shift_charge_take().  @lacking can be read by anybody; all else is charge.c's.
 */
struct shift_charge {
	struct shift_charge_part part[2];
	const struct shift_charge_ops *ops;
	void *owner;
	bool lacking;
};

bool shift_charge_take(struct shift_charge *charge, const struct shift_charge_ops *ops, void *owner,
		       struct shift_pair *pair, unsigned int backup, unsigned int home);
bool shift_charge_move(struct shift_charge *charge, struct shift_charge *from, void *owner);
void shift_charge_drop(struct shift_charge *charge);
void shift_charge_make_room(struct shift_dev *sdev);
void shift_charge_device_gone(struct shift_dev *sdev);

/* Any context. */
static inline bool shift_charge_is_lacking(const struct shift_charge *charge)
{
	return READ_ONCE(charge->lacking);
}

#endif /* SHIFT_CORE_CHARGE_H */
