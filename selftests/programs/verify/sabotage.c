// SPDX-License-Identifier: GPL-2.0
/*
 * --sabotage KIND does one thing wrong, once, on the client's first QP: proves that
 * the checks can fail. READ sources and receives are spoilt by the server, who owns them.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <rdma/shift-abi.h>

#include "ops.h"

#define FIRST_SEQ 40

static const char * const kinds[] = {
	"corrupt", "double-send", "skip", "late-write", "double-add", "double-swap",
	"imm", "signal", "unsignal", "stale-read", "rkey", "revive", "length",
	"receive", "claim",
};

void sabotage_check(const char *kind)
{
	unsigned int i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kind, kinds[i]))
			return;
	die(EXIT_SETUP, "no such --sabotage");
}

/* True once, where it is to be done. */
bool sabotage(struct rig *rig, const char *kind, const struct lane *lane, uint64_t seq)
{
	const struct options *opt = &rig->side.opt;
	bool at_server = !strcmp(kind, "stale-read") || !strcmp(kind, "receive");

	if (!opt->sabotage || rig->sabotaged || strcmp(opt->sabotage, kind) ||
	    !opt->server != at_server || lane->out.qp || seq < FIRST_SEQ)
		return false;
	rig->sabotaged = true;
	say("sabotage %s at %llu", kind, (unsigned long long)seq);
	return true;
}

/* Ask about an error of a QP in whatever CQs the provider has registered through @fd. */
static bool claim_through(int fd, struct shift_abi_cqe *cqe)
{
	for (cqe->cq_id = 1; cqe->cq_id < 64; cqe->cq_id++)
		if (!ioctl(fd, SHIFT_IOC_CQE, cqe) && cqe->answer == SHIFT_CQE_SWALLOW)
			return true;
	return false;
}

/* claim: tell the kernel, as a provider would, that a QP that works has run out of retries. */
void sabotage_claim(uint32_t qpn)
{
	struct shift_abi_cqe cqe = { .qp_num = qpn, .status = IBV_WC_RETRY_EXC_ERR };
	char link[64], target[64];
	bool kept = false;
	ssize_t len;
	int fd;

	for (fd = 3; fd < 1024 && !kept; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		len = readlink(link, target, sizeof(target) - 1);
		target[len > 0 ? len : 0] = '\0';
		kept = !strcmp(target, SHIFT_ABI_DEVICE) && claim_through(fd, &cqe);
	}
	say("claim %s", kept ? "kept" : "refused");
}
