// SPDX-License-Identifier: GPL-2.0
/* Events are lines of the trace, with the words of shiftctl: in place of ctl/. */
#include "core/qp.h"
#include "end/inside.h"
#include "failover/failover.h"
#include "lib/names.h"

static void event_pair(struct shift_pair *p, enum shift_pair_event event)
{
}

static void event_link(const struct shift_link_info *info)
{
}

static void event_qp(struct shift_qp *sqp, enum shift_qp_event event, u64 time_ns)
{
	char name[SHIFT_NAME_NUMBER], cause[SHIFT_NAME_NUMBER], reason[SHIFT_NAME_NUMBER];

	sim_log("%s qp %u: event: %s, path %u, cause %s, reason %s", sqp->sdev->name, sqp->qpn,
		shift_name_of(&shift_qp_event_names, event, name), sqp->fo.path,
		shift_name_of(&shift_cause_names, shift_qp_shown_cause(sqp), cause),
		shift_name_of(&shift_reason_names, sqp->fo.reason, reason));
	sim_stays(sim_this_end, sqp->qpn, sqp->fo.reason == SHIFT_REASON_OPERATION);
}

const struct shift_event_ops sim_event_ops = {
	.pair = event_pair, .link = event_link, .qp = event_qp,
};
