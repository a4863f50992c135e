// SPDX-License-Identifier: GPL-2.0
/*
 * Address handles of user space.  No protected QP has any; but they count for the same rdma cgroup
 * as what the module makes: core/charge.c.
 */
#include "core/object.h"
#include "verbs/verbs.h"

static int wrap_create_user_ah(struct ib_ah *ah, struct rdma_ah_init_attr *attr,
			       struct ib_udata *udata)
{
	struct shift_dev *sdev;
	int idx, err;

	sdev = shift_verb_begin(ah->device, &idx);
	err = sdev->saved.create_user_ah(ah, attr, udata);
	if (!err)
		shift_charge_make_room(sdev);
	shift_verb_end(sdev, idx);
	return err;
}

const struct ib_device_ops shift_ah_ops = {
	.create_user_ah = wrap_create_user_ah,
};
