// SPDX-License-Identifier: GPL-2.0
/*
 * Two QPs on one small CQ, of which one may be idle while the other fills the CQ.
 *
 * usage: idle_edge DEVICE [SERVER]
 * The server sends back what it receives. The client does what lines on stdin say, and
 * answers each with "ok":
 *	ping N COUNT	COUNT messages by QP N, one after the other, and their answers
 *	look		polls until the next line comes, where nothing is to be seen
 *	end
 * Both look at each byte and at the order, and end with 1 if something is wrong or comes
 * twice. One of three sends is signaled.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "edge.h"

#define PORT	18535
#define QPS	2
#define DEPTH	8
#define CQES	63		/* a ring of 64: more than what both may have outstanding */
#define WORDS	300		/* of a message: more than one packet */

struct message {
	uint64_t word[WORDS];
};

struct lane {
	struct ibv_qp *qp;
	struct message out, in[DEPTH];
	uint64_t sent, completed, received;
};

struct rig {
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct lane lane[QPS];
	int fd;
};

static void wrong(const char *what, uint64_t value)
{
	printf("wrong: %s %" PRIu64 "\n", what, value);
	exit(1);
}

static void receive(struct rig *rig, int n, uint64_t slot)
{
	struct lane *l = &rig->lane[n];
	struct ibv_sge sge = {
		(uintptr_t)&l->in[slot], sizeof(struct message), rig->mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_recv(l->qp, &wr, &bad))
		die("receive");
}

/* The number of the message in each word, which is also the send's wr_id. */
static void transmit(struct rig *rig, int n)
{
	struct lane *l = &rig->lane[n];
	struct ibv_sge sge = { (uintptr_t)&l->out, sizeof(l->out), rig->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = l->sent, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = l->sent % 3 ? 0 : IBV_SEND_SIGNALED,
	};
	int i;

	for (i = 0; i < WORDS; i++)
		l->out.word[i] = l->sent;
	l->sent++;
	if (ibv_post_send(l->qp, &wr, &bad))
		die("send");
}

/* One completion, if there is one: true if it was of a receive of the QP in @n. */
static bool completion(struct rig *rig, int *n)
{
	struct lane *l;
	struct ibv_wc wc;
	int i;

	if (poll_cq(rig->cq, &wc) < 1)
		return false;
	*n = wc.qp_num != rig->lane[0].qp->qp_num;
	l = &rig->lane[*n];
	if (wc.status)
		wrong(ibv_wc_status_str(wc.status), wc.wr_id);
	if (wc.opcode == IBV_WC_SEND) {
		if (wc.wr_id != 3 * l->completed++)
			wrong("send", wc.wr_id);
		return false;
	}
	if (wc.wr_id != l->received % DEPTH || wc.byte_len != sizeof(struct message))
		wrong("receive", wc.wr_id);
	for (i = 0; i < WORDS; i++)
		if (l->in[wc.wr_id].word[i] != l->received)
			wrong("message", l->in[wc.wr_id].word[i]);
	l->received++;
	receive(rig, *n, wc.wr_id);
	return true;
}

static void ping(struct rig *rig, int n, long count)
{
	int from;

	while (count--) {
		transmit(rig, n);
		while (!completion(rig, &from) || from != n)
			;
	}
	say("ok");
}

static void look(struct rig *rig)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	int n;

	say("looks");
	while (!poll(&input, 1, 0))
		if (completion(rig, &n))
			wrong("receive", n);
	say("ok");
}

/* Until the client is gone. */
static void echo(struct rig *rig)
{
	char byte;
	int n;

	fcntl(rig->fd, F_SETFL, O_NONBLOCK);
	while (recv(rig->fd, &byte, 1, 0) < 0 && errno == EAGAIN)
		if (completion(rig, &n))
			transmit(rig, n);
}

static void set_up(struct rig *rig, const char *device, const char *server)
{
	struct ibv_context *context = open_device(device);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct end mine, theirs;
	int i, slot, gid_index;

	rig->cq = ibv_create_cq(context, CQES, NULL, NULL, 0);
	rig->mr = ibv_reg_mr(pd, rig->lane, sizeof(rig->lane), IBV_ACCESS_LOCAL_WRITE);
	attr.send_cq = attr.recv_cq = rig->cq;
	rig->fd = meet(server, PORT);
	gid_index = find_gid(context, &mine.gid);
	for (i = 0; i < QPS; i++) {
		rig->lane[i].qp = ibv_create_qp(pd, &attr);
		if (!rig->lane[i].qp || !rig->mr)
			die("set-up");
		mine.qpn = rig->lane[i].qp->qp_num;
		exchange(rig->fd, &mine, &theirs, sizeof(mine));
		connect_qp(rig->lane[i].qp, gid_index, &theirs);
		for (slot = 0; slot < DEPTH; slot++)
			receive(rig, i, slot);
	}
	exchange(rig->fd, &mine, &theirs, sizeof(mine));	/* both are ready */
}

int main(int argc, char **argv)
{
	static struct rig rig;
	char line[80];
	long count;
	int n;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: idle_edge DEVICE [SERVER]\n");
		return 2;
	}
	set_up(&rig, argv[1], argv[2]);
	say("connected");
	if (!argv[2]) {
		echo(&rig);
	} else {
		while (fgets(line, sizeof(line), stdin) && strncmp(line, "end", 3))
			if (!strncmp(line, "look", 4))
				look(&rig);
			else if (sscanf(line, "ping %d %ld", &n, &count) == 2 && n >= 0 && n < QPS)
				ping(&rig, n, count);
	}
	for (n = 0; n < QPS; n++)
		if (ibv_destroy_qp(rig.lane[n].qp))
			die("destroy");
	return 0;
}
