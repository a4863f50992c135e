// SPDX-License-Identifier: GPL-2.0
/*
 * Receives of one QP, among them some that no kernel can post.
 *
 * usage: [RECV_DEPTH=N] recv_edge DEVICE [SERVER]
 * The server receives, the client sends. Both do what lines on stdin say:
 *	receive N	server: N receives, with room for a message each; "ok"
 *	spoil		server: one that is larger than all that there can be; "ok"
 *	send		client: a message, and a line with what became of it
 *	next		server: a line with the next receive that has ended, and how
 *	end		"closed"
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "edge.h"

#define PORT	18541
#define SIZE	64
#define SGES	3	/* of the largest size each they are too much for 32 bits */

static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static unsigned char memory[SIZE];
static uint64_t received;

static bool receive(struct ibv_sge *sge, int num_sge)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = received, .sg_list = sge, .num_sge = num_sge };

	if (ibv_post_recv(qp, &wr, &bad))
		return false;
	received++;
	return true;
}

static bool receives(unsigned long count)
{
	struct ibv_sge sge = { (uintptr_t)memory, SIZE, mr->lkey };

	while (count--)
		if (!receive(&sge, 1))
			return false;
	return true;
}

static bool spoil(void)
{
	struct ibv_sge sge[SGES];
	int i;

	for (i = 0; i < SGES; i++)
		sge[i] = (struct ibv_sge) { (uintptr_t)memory, INT_MAX, mr->lkey };
	return receive(sge, SGES);
}

static bool transmit(void)
{
	struct ibv_sge sge = { (uintptr_t)memory, SIZE, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	return !ibv_post_send(qp, &wr, &bad);
}

/* Wait for a completion, and tell of it. */
static void tell(void)
{
	struct ibv_wc wc;
	char line[80];
	int n;

	do
		n = poll_cq(cq, &wc);
	while (!n);
	if (n < 0)
		die("poll");
	snprintf(line, sizeof(line), "%lu %s", (unsigned long)wc.wr_id,
		 ibv_wc_status_str(wc.status));
	say(line);
}

static void set_up(const char *device, const char *server)
{
	struct ibv_context *context = open_device(device);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	const char *depth = getenv("RECV_DEPTH");
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 16, .max_recv_wr = depth ? atoi(depth) : 16,
			 .max_send_sge = 1, .max_recv_sge = SGES },
		.qp_type = IBV_QPT_RC,
	};
	struct end mine, theirs;
	int gid_index, fd;

	cq = ibv_create_cq(context, attr.cap.max_recv_wr + 32, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE);
	attr.send_cq = attr.recv_cq = cq;
	qp = cq && mr ? ibv_create_qp(pd, &attr) : NULL;
	if (!qp)
		die("set-up");
	fd = meet(server, PORT);
	gid_index = find_gid(context, &mine.gid);
	mine.qpn = qp->qp_num;
	exchange(fd, &mine, &theirs, sizeof(mine));
	connect_qp(qp, gid_index, &theirs);
	exchange(fd, &mine, &theirs, sizeof(mine));	/* both are ready */
}

int main(int argc, char **argv)
{
	unsigned long count;
	char line[80];
	bool ok;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: recv_edge DEVICE [SERVER]\n");
		return 2;
	}
	set_up(argv[1], argv[2]);
	say("connected");
	while (fgets(line, sizeof(line), stdin) && strncmp(line, "end", 3)) {
		if (!strncmp(line, "next", 4)) {
			tell();
			continue;
		}
		if (!strncmp(line, "send", 4)) {
			if (!transmit())
				die("send");
			tell();
			continue;
		}
		ok = sscanf(line, "receive %lu", &count) == 1 ? receives(count) : spoil();
		say(ok ? "ok" : strerror(errno));
	}
	if (ibv_destroy_qp(qp))
		die("destroy");
	say("closed");
	return 0;
}
