// SPDX-License-Identifier: GPL-2.0
/*
 * An application at the limit of its rdma cgroup: how many objects can it make?
 *
 * usage: objects_edge DEVICE [ah | DEPTH]
 * Makes a PD and a CQ, and then QPs and MRs in turn (with "ah": address handles too; with DEPTH: of
 * QPs with that many entries) until one is refused, or there are 1,000 of each.  Prints "made N",
 * waits for a line, destroys all of them, and prints "closed".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "edge.h"

#define MAX_ROUNDS 1000

static char buf[4096] __attribute__((aligned(4096)));
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp[MAX_ROUNDS];
static struct ibv_mr *mr[MAX_ROUNDS];
static struct ibv_ah *ah[MAX_ROUNDS];

static int make_qp(int i, int depth)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	qp[i] = ibv_create_qp(pd, &attr);
	return qp[i] ? 1 : 0;
}

static int make_mr(int i)
{
	mr[i] = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	return mr[i] ? 1 : 0;
}

static int make_ah(int i)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = { .hop_limit = 1 },
	};

	/* to itself: the address is known */
	attr.grh.sgid_index = find_gid(pd->context, &attr.grh.dgid);
	ah[i] = ibv_create_ah(pd, &attr);
	return ah[i] ? 1 : 0;
}

/* QPs, MRs and perhaps AHs until one is refused: how many. */
static int fill(int with_ah, int depth)
{
	int i, n = 0;

	for (i = 0; i < MAX_ROUNDS; i++) {
		if (with_ah && !make_ah(i))
			break;
		n += with_ah;
		if (!make_qp(i, depth))
			break;
		n++;
		if (!make_mr(i))
			break;
		n++;
	}
	return n;
}

static void destroy(void)
{
	int i;

	for (i = 0; i < MAX_ROUNDS; i++)
		if ((qp[i] && ibv_destroy_qp(qp[i])) || (mr[i] && ibv_dereg_mr(mr[i])) ||
		    (ah[i] && ibv_destroy_ah(ah[i])))
			die("cannot destroy");
	if (ibv_destroy_cq(cq) || ibv_dealloc_pd(pd))
		die("cannot destroy");
}

int main(int argc, char **argv)
{
	struct ibv_context *context;
	int depth = 4, with_ah = 0;
	char line[16];

	if (argc == 3) {
		with_ah = !strcmp(argv[2], "ah");
		depth = with_ah ? depth : atoi(argv[2]);
	}
	if (argc < 2 || argc > 3 || depth < 1) {
		fprintf(stderr, "usage: objects_edge DEVICE [ah | DEPTH]\n");
		return 2;
	}
	context = open_device(argv[1]);
	pd = ibv_alloc_pd(context);
	cq = pd ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	if (!cq)
		die("a PD and a CQ");
	printf("made %d\n", 2 + fill(with_ah, depth));
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 2;
	destroy();
	say("closed");
	return 0;
}
