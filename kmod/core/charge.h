/* SPDX-License-Identifier: GPL-2.0 */
/* Objects that the module makes for a process count for the process's rdma cgroup: charge.c. */
#ifndef SHIFT_CORE_CHARGE_H
#define SHIFT_CORE_CHARGE_H

#include <linux/list.h>
#include <linux/types.h>

struct shift_charge;
struct shift_dev;
struct shift_pd;
struct shift_purse;
struct shift_qp;

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
 * @spd: the PD of the object; NULL: nothing was to be charged.
 * @sqp: if the object is a QP: this one depends on the charge; NULL: all QPs of the PD do.
 * @lacking: the charge was refused or given up: those QPs cannot be protected.
 *
 * Zeroed before shift_charge_take().  @lacking can be read by anybody; all else is charge.c's.
 */
struct shift_charge {
	struct shift_charge_part part[2];
	struct shift_pd *spd;
	struct shift_qp *sqp;
	bool lacking;
};

bool shift_charge_take(struct shift_charge *charge, struct shift_pd *spd, struct shift_qp *sqp,
		       unsigned int backup, unsigned int home);
bool shift_charge_move(struct shift_charge *charge, struct shift_charge *from,
		       struct shift_pd *spd);
void shift_charge_drop(struct shift_charge *charge);
void shift_charge_make_room(struct shift_dev *sdev);
void shift_charge_device_gone(struct shift_dev *sdev);

/* Any context. */
static inline bool shift_charge_is_lacking(const struct shift_charge *charge)
{
	return READ_ONCE(charge->lacking);
}

#endif /* SHIFT_CORE_CHARGE_H */
