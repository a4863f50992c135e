// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is deregistered and used for something else while a peer still writes.
 *
 * usage: dereg_edge DEVICE [SERVER]
 * The client writes into the server's memory without end, until it gets an error. The
 * server deregisters that memory when a line comes on stdin, fills it with something
 * else, and at the next line tells whether it is still that: exit 0, or 1. When it has
 * deregistered it says so in the kernel's trace, too, if there is one.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "edge.h"

#define PORT	18533
#define SIZE	(64 << 10)
#define SLOTS	16
#define OTHER	0x5a

static void post(struct ibv_qp *qp, const struct ibv_mr *mr, const struct end *peer,
		 unsigned int slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)mr->addr + slot * SIZE, .length = SIZE, .lkey = mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = slot, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = peer->addr + slot * SIZE, .rkey = peer->rkey },
	}, *bad;

	if (ibv_post_send(qp, &wr, &bad))
		die("post");
}

/* Write without end; the error that comes is the good end. */
static int write_on(struct ibv_qp *qp, struct ibv_cq *cq, const struct ibv_mr *mr,
		    const struct end *peer)
{
	unsigned long done = 0;
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		post(qp, mr, peer, i);
	for (;;) {
		int n = poll_cq(cq, &wc);

		if (n < 0)
			die("poll");
		if (!n)
			continue;
		if (wc.status) {
			printf("error %s\n", ibv_wc_status_str(wc.status));
			return 0;
		}
		if (++done % SLOTS == 0)
			say("progress");
		post(qp, mr, peer, wc.wr_id);
	}
}

static void mark(const char *text)
{
	int fd = open("/sys/kernel/tracing/trace_marker", O_WRONLY);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		perror("trace_marker");
	close(fd);
}

static int give_away(struct ibv_mr *mr, unsigned char *buf)
{
	char line[16];
	size_t i;

	if (!fgets(line, sizeof(line), stdin))
		return 2;
	if (ibv_dereg_mr(mr))
		die("dereg");
	mark("deregistered");
	memset(buf, OTHER, SLOTS * SIZE);
	say("deregistered");
	if (!fgets(line, sizeof(line), stdin))
		return 2;
	for (i = 0; i < SLOTS * SIZE; i++)
		if (buf[i] != OTHER) {
			printf("written at %zu\n", i);
			return 1;
		}
	say("untouched");
	return 0;
}

int main(int argc, char **argv)
{
	const char *server = argc > 2 ? argv[2] : NULL;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = SLOTS, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_context *context;
	struct end mine = { 0 }, peer;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	void *buf = NULL;
	int fd, index;

	if (argc < 2) {
		fprintf(stderr, "usage: dereg_edge DEVICE [SERVER]\n");
		return 2;
	}
	context = open_device(argv[1]);
	pd = ibv_alloc_pd(context);
	if (posix_memalign(&buf, 4096, SLOTS * SIZE))
		die("memory");
	memset(buf, 0xc1, SLOTS * SIZE);
	mr = ibv_reg_mr(pd, buf, SLOTS * SIZE, IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = ibv_create_cq(context, SLOTS + 1, NULL, NULL, 0);
	init.recv_cq = init.send_cq;
	qp = mr && init.send_cq ? ibv_create_qp(pd, &init) : NULL;
	if (!qp)
		die("set-up");
	index = find_gid(context, &mine.gid);
	mine.qpn = qp->qp_num;
	mine.rkey = mr->rkey;
	mine.addr = (uintptr_t)buf;
	fd = meet(server, PORT);
	exchange(fd, &mine, &peer, sizeof(mine));
	connect_qp(qp, index, &peer);
	exchange(fd, &mine, &peer, sizeof(mine));	/* both are ready */
	say("connected");
	if (!server)
		return give_away(mr, buf);
	if (getchar() == EOF)	/* so that it may be protected first */
		return 2;
	return write_on(qp, init.send_cq, mr, &peer);
}
