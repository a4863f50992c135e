// SPDX-License-Identifier: GPL-2.0
/*
 * What depends on a charge (core/charge.c): of a PD, an MR, an SRQ or a window all QPs of its PD,
 * of a QP this one.
 */
#include "core/charge.h"
#include "core/kick.h"
#include "core/object.h"
#include "core/qp.h"
#include "verbs/verbs.h"

/* The PD may be going, and has no QPs any more then. */
static bool pd_lacks(void *owner)
{
	struct shift_pd *spd = owner;

	return atomic_inc_return(&spd->unmirrored[SHIFT_REASON_CGROUP]) == 1 &&
	       kref_get_unless_zero(&spd->ref);
}

static bool pd_lacks_no_more(void *owner)
{
	struct shift_pd *spd = owner;

	return atomic_dec_and_test(&spd->unmirrored[SHIFT_REASON_CGROUP]) &&
	       !shift_pd_reason(spd, SHIFT_PATH_DEFAULT) && kref_get_unless_zero(&spd->ref);
}

static void pd_tell(void *owner)
{
	struct shift_pd *spd = owner;

	shift_qp_kick_pd(spd, SHIFT_QPB_RETRY_PAIR);
	shift_pd_put(spd);
}

static const struct shift_charge_ops pd_charge_ops = {
	.lacks = pd_lacks,
	.lacks_no_more = pd_lacks_no_more,
	.tell = pd_tell,
};

/* The QP keeps its charge for as long as it is there; a kick takes no mutex. */
static bool qp_lacks(void *owner)
{
	shift_qp_kick(owner, SHIFT_QPB_RETRY_PAIR);
	return false;
}

static bool qp_lacks_no_more(void *owner)
{
	return false;
}

static const struct shift_charge_ops qp_charge_ops = {
	.lacks = qp_lacks,
	.lacks_no_more = qp_lacks_no_more,
};

/**
 * shift_charge_pd - charge the calling process for an object on which all QPs of a PD depend
 * @charge: of the object; zeroed.
 * @spd: its PD, or the object itself.
 * @backup: objects on the backup device.
 * @home: objects on the default device.
 *
 * Context: process context of the owner, before anything is made.
 * Return: true; false: it is refused, those QPs are told, and nothing may be made.
 */
bool shift_charge_pd(struct shift_charge *charge, struct shift_pd *spd, unsigned int backup,
		     unsigned int home)
{
	return shift_charge_take(charge, &pd_charge_ops, spd, spd->pair, backup, home);
}

/**
 * shift_charge_qp - charge the calling process for what may be made for a QP
 * @sqp: the QP.
 * @num: objects on each of its two devices.
 *
 * Context: process context of the owner, before anything is made.
 * Return: true; false: it is refused, and nothing may be made.
 */
bool shift_charge_qp(struct shift_qp *sqp, unsigned int num)
{
	return shift_charge_take(&sqp->charge, &qp_charge_ops, sqp, sqp->spd->pair, num, num);
}
