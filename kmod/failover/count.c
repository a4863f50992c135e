// SPDX-License-Identifier: GPL-2.0
/* How many QPs of a device are in which state, as operators see it. */
#include "core/object.h"
#include "core/qp.h"
#include "core/stat.h"
#include "failover/failover.h"

static void count_one(struct shift_qp_counts *counts, enum shift_qp_state shown)
{
	counts->tracked++;
	if (shown == SHIFT_QP_UNPROTECTED || shown == SHIFT_QP_FAILED)
		return;
	counts->protected++;
	counts->fallback += shown == SHIFT_QP_FALLBACK;
	counts->switching += shown == SHIFT_QP_SWITCHING;
}

/**
 * shift_qp_count - count the QPs of a device
 * @sdev: the device; referenced by the caller.
 * @counts: filled in.
 *
 * The numbers agree with what QP_GET shows.  No QP is waited for.
 *
 * Context: process context; takes sdev->list_lock.
 */
void shift_qp_count(struct shift_dev *sdev, struct shift_qp_counts *counts)
{
	struct shift_obj *obj;

	memset(counts, 0, sizeof(*counts));
	mutex_lock(&sdev->list_lock);
	list_for_each_entry(obj, &sdev->qps, list) {
		struct shift_qp *sqp = container_of(obj, struct shift_qp, obj);
		enum shift_reason reason;

		count_one(counts, shift_qp_shown(sqp, &reason));
	}
	mutex_unlock(&sdev->list_lock);
}
