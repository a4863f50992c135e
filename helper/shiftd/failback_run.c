// SPDX-License-Identifier: GPL-2.0-only
/* Failback: what the kernel has goes to the policy, what that decides to the kernel. */
#include <errno.h>
#include <string.h>

#include "lib/command.h"
#include "shiftd/failback_run.h"
#include "shiftd/log.h"

struct look {
	struct shift_failback *fb;
	struct shift_nl *nl;
	char drained[SHIFT_PEER_NICS_MAX][SHIFT_DEV_MAX];
	unsigned int n_drained;
	bool incomplete;
	unsigned int moved;
};

static void on_pair(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		    void *arg)
{
	struct look *look = arg;

	(void)cmd;
	(void)nlh;
	if (!tb[SHIFT_A_DRAINED] || !tb[SHIFT_A_DEV])
		return;
	if (look->n_drained == SHIFT_PEER_NICS_MAX) {
		look->incomplete = true;
		return;
	}
	nla_strlcpy(look->drained[look->n_drained++], tb[SHIFT_A_DEV],
		    SHIFT_DEV_MAX);
}

static void on_link(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		    void *arg)
{
	struct look *look = arg;
	struct shift_failback_link link;

	(void)cmd;
	(void)nlh;
	if (!tb[SHIFT_A_DEV] || !tb[SHIFT_A_REMOTE_GID] || !tb[SHIFT_A_LINK_ID] ||
	    !tb[SHIFT_A_LINK_STATE] || !tb[SHIFT_A_CONNECTS] ||
	    !tb[SHIFT_A_ACKED])
		return;
	link = (struct shift_failback_link){
		.dev = nla_get_string(tb[SHIFT_A_DEV]),
		.id = nla_get_u32(tb[SHIFT_A_LINK_ID]),
		.up = nla_get_u32(tb[SHIFT_A_LINK_STATE]) == SHIFT_LINK_UP,
		.connects = nla_get_u64(tb[SHIFT_A_CONNECTS]),
		.acked = nla_get_u64(tb[SHIFT_A_ACKED]),
	};
	memcpy(link.remote.raw, nla_data(tb[SHIFT_A_REMOTE_GID]), SHIFT_GID_LEN);
	if (shift_failback_link(look->fb, &link))
		look->incomplete = true;
}

static void on_qp(int cmd, struct nlmsghdr *nlh, struct nlattr **tb, void *arg)
{
	struct look *look = arg;
	struct shift_gid remote;
	unsigned int i;
	const char *dev;
	bool loop;

	(void)cmd;
	(void)nlh;
	if (!tb[SHIFT_A_DEV] || !tb[SHIFT_A_LOCAL_GID] || !tb[SHIFT_A_REMOTE_GID] ||
	    !tb[SHIFT_A_QPN] || !tb[SHIFT_A_QP_STATE])
		return;
	dev = nla_get_string(tb[SHIFT_A_DEV]);
	for (i = 0; i < look->n_drained; i++)
		if (!strcmp(look->drained[i], dev))
			return;
	memcpy(remote.raw, nla_data(tb[SHIFT_A_REMOTE_GID]), SHIFT_GID_LEN);
	loop = !memcmp(remote.raw, nla_data(tb[SHIFT_A_LOCAL_GID]), SHIFT_GID_LEN);
	if (shift_failback_qp(look->fb, dev, &remote, loop, nla_get_u32(tb[SHIFT_A_QPN]),
			      nla_get_u32(tb[SHIFT_A_QP_STATE])))
		look->incomplete = true;
}

static void move(const char *dev, uint32_t qpn, bool canary, void *arg)
{
	struct look *look = arg;

	if (canary)
		log_info("failback: the path of %s is good again; QP %u goes back first", dev,
			 qpn);
	else
		look->moved++;
	if (shift_nl_move(look->nl, dev, qpn, 0, false))
		log_debug("failback: QP %u of %s: %s", qpn, dev,
			  shift_nl_error(look->nl));
}

static bool probe(uint32_t link, void *arg)
{
	struct look *look = arg;

	if (!shift_nl_link_probe(look->nl, link))
		return true;
	log_debug("failback: probe of link %u: %s", link,
		  shift_nl_error(look->nl));
	return false;
}

/**
 * shift_failback_run() - one look at the kernel, and what follows
 * @fb: policy and memory
 * @nl: open
 * @policy: from the configuration
 * @now: ms of the monotonic clock
 *
 * Return: in how many ms to call again; UINT64_MAX: when something happens.
 */
uint64_t shift_failback_run(struct shift_failback *fb, struct shift_nl *nl,
			    const struct shift_failback_policy *policy,
			    uint64_t now)
{
	static const struct shift_failback_ops ops = { move, probe };
	struct look look = { .fb = fb, .nl = nl };
	uint64_t again;

	shift_failback_begin(fb);
	if (shift_nl_get(nl, SHIFT_CMD_PAIR_GET, 1, on_pair, &look) ||
	    shift_nl_get(nl, SHIFT_CMD_LINK_GET, 1, on_link, &look) ||
	    shift_nl_get(nl, SHIFT_CMD_QP_GET, 1, on_qp, &look) ||
	    look.incomplete)
		return SHIFT_FAILBACK_RETRY_MS;	/* half a look decides nothing */
	again = shift_failback_end(fb, now, policy, &ops, &look);
	if (look.moved)
		log_info("failback: %u more QP(s) go back", look.moved);
	return again;
}
