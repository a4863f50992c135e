// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <string.h>

#include "lib/names.h"

#define NAMES(x, unknown) \
	const struct shift_names shift_##x##_names = { \
		x, sizeof(x) / sizeof(x[0]), unknown \
	}

static const char * const link_state[] = {
	[SHIFT_LINK_DOWN]	= "down",
	[SHIFT_LINK_CONNECTING]	= "connecting",
	[SHIFT_LINK_UP]		= "up",
};
NAMES(link_state, "");

static const char * const qp_state[] = {
	[SHIFT_QP_UNPROTECTED]	= "unprotected",
	[SHIFT_QP_DEFAULT]	= "default",
	[SHIFT_QP_SWITCHING]	= "switching",
	[SHIFT_QP_FALLBACK]	= "fallback",
	[SHIFT_QP_WAIT_SIGNALED] = "wait-signaled",
	[SHIFT_QP_WAIT_SINKED]	= "wait-sinked",
	[SHIFT_QP_FAILED]	= "failed",
	[SHIFT_QP_RETURNED]	= "returned",
};
NAMES(qp_state, "");

static const char * const reason[__SHIFT_REASON_MAX] = {
	[SHIFT_REASON_NONE]		= "none",
	[SHIFT_REASON_NOT_RTS]		= "not-rts",
	[SHIFT_REASON_NO_PROVIDER]	= "no-provider",
	[SHIFT_REASON_QP_TYPE]		= "qp-type",
	[SHIFT_REASON_OPERATION]	= "operation",
	[SHIFT_REASON_SRQ]		= "srq",
	[SHIFT_REASON_OLD_OBJECT]	= "old-object",
	[SHIFT_REASON_MIRROR_MR]	= "mirror-mr",
	[SHIFT_REASON_MIRROR_QP]	= "mirror-qp",
	[SHIFT_REASON_ODP]		= "odp",
	[SHIFT_REASON_MW]		= "mw",
	[SHIFT_REASON_NO_PEER]		= "no-peer",
	[SHIFT_REASON_LOOPBACK]		= "loopback",
	[SHIFT_REASON_NO_SESSION]	= "no-session",
	[SHIFT_REASON_PEER_UNPROTECTED]	= "peer-unprotected",
	[SHIFT_REASON_APP_ERROR]	= "app-error",
	[SHIFT_REASON_FAILED]		= "failed",
	[SHIFT_REASON_DEVICE_GONE]	= "device-gone",
	[SHIFT_REASON_ADDRESS]		= "address",
	[SHIFT_REASON_RINGS]		= "rings",
	[SHIFT_REASON_MTU]		= "mtu",
	[SHIFT_REASON_DMABUF]		= "dmabuf",
	[SHIFT_REASON_UNPROVEN]		= "unproven",
	[SHIFT_REASON_CGROUP]		= "cgroup",
	[SHIFT_REASON_NAMESPACE]	= "namespace",
	[SHIFT_REASON_KERNEL_USER]	= "kernel-user",
	[SHIFT_REASON_IOMMU]		= "iommu",
	[SHIFT_REASON_RECORD]		= "record",
	[SHIFT_REASON_UNLISTED]		= "unlisted",
};
NAMES(reason, "");

static const char * const cause[] = {
	[SHIFT_CAUSE_NONE]	= "none",
	[SHIFT_CAUSE_PORT]	= "port",
	[SHIFT_CAUSE_CQE]	= "cqe",
	[SHIFT_CAUSE_PEER]	= "peer",
	[SHIFT_CAUSE_HEARTBEAT]	= "heartbeat",
	[SHIFT_CAUSE_OPERATOR]	= "operator",
	[SHIFT_CAUSE_SRQ]	= "srq",
};
NAMES(cause, "");

static const char * const qp_event[] = {
	[SHIFT_QP_EV_STATE]	= "state",
	[SHIFT_QP_EV_FAULT]	= "fault",
	[SHIFT_QP_EV_AGREED]	= "agreed",
	[SHIFT_QP_EV_FENCED]	= "fenced",
	[SHIFT_QP_EV_REPLAYED]	= "replayed",
	[SHIFT_QP_EV_COMPLETION] = "completion",
	[SHIFT_QP_EV_ABANDONED]	= "abandoned",
	[SHIFT_QP_EV_FAILED]	= "failed",
	[SHIFT_QP_EV_MOVE]	= "move",
};
NAMES(qp_event, "event-");

/* enum ib_port_state */
static const char * const port_state[] = {
	"unknown", "down", "init", "armed", "active", "active-defer",
};
NAMES(port_state, "");

static const char * const policy[] = {
	[SHIFT_POLICY_EXACTLY_ONCE]  = "exactly-once",
	[SHIFT_POLICY_AT_LEAST_ONCE] = "at-least-once",
};
NAMES(policy, "");

/* The policy that @word names, or -1.  Old files and scripts have old words. */
int shift_policy_find(const char *word)
{
	int i;

	for (i = SHIFT_POLICY_EXACTLY_ONCE; i <= SHIFT_POLICY_AT_LEAST_ONCE; i++)
		if (!strcmp(policy[i], word))
			return i;
	if (!strcmp(word, "strict"))
		return SHIFT_POLICY_EXACTLY_ONCE;
	if (!strcmp(word, "paper"))
		return SHIFT_POLICY_AT_LEAST_ONCE;
	return -1;
}

/* Return: the name of @value, or its number if this program is too old for it. */
const char *shift_name_of(const struct shift_names *names, unsigned int value,
			  char buf[SHIFT_NAME_NUMBER])
{
	if (value < names->n && names->name[value])
		return names->name[value];
	snprintf(buf, SHIFT_NAME_NUMBER, "%s%u", names->unknown, value);
	return buf;
}
