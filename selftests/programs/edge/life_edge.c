// SPDX-License-Identifier: GPL-2.0
/*
 * The life of one QP, step by step: what its owner does to it while it may be elsewhere.
 *
 * usage: life_edge DEVICE [SERVER]
 * Both ends do what lines on stdin say, and answer each with one line:
 *	rtr	    tell the other end who this is, hear it, and go to RTR: both ends have to
 *	rts N	    go to RTS, with a timeout of 4.096 us << N
 *	access N    allow the other end to write (1), or not (0)
 *	err	    go to ERR
 *	reset	    go to RESET
 *	state	    the state that the QP says it has
 *	post N	    post N writes to the other end, of N, N-1 .. 1
 *	done N	    wait for N completions
 *	write N	    both, of one: N is what is written
 *	byte	    what the other end has written last
 *	bad	    post a receive whose memory is nobody's
 *	send	    wait for the completion of one SEND
 *	end
 * The line of a completed operation is "ok", or the errors in the order in which they came
 * ("2 ok, 1 NAME, 3 NAME"); that of a step "ok", or the error of its verb.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "edge.h"

#define PORT	18536
#define DEPTH	32
#define SIZE	3000		/* of a write: more than one packet */

struct rig {
	struct ibv_context *context;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct end peer;
	int fd;
	unsigned int posted;
	/* what was completed since it was asked for last, in the order it came */
	unsigned int want, got;
	struct {
		enum ibv_wc_status status;
		unsigned int count;
	} seen[DEPTH];
	unsigned int kinds;
	unsigned char in[SIZE], out[DEPTH][SIZE];
};

static void answer(int err)
{
	say(err ? strerror(err) : "ok");
}

static int change(struct rig *rig, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(rig->qp, &attr, IBV_QP_STATE);
}

static void meet_again(struct rig *rig)
{
	struct end mine = {
		.qpn = rig->qp->qp_num, .rkey = rig->mr->rkey, .addr = (uintptr_t)rig->in,
	};
	int index = find_gid(rig->context, &mine.gid);

	exchange(rig->fd, &mine, &rig->peer, sizeof(mine));
	connect_rtr(rig->qp, index, &rig->peer);
	say("ok");
}

static int allow(struct rig *rig, bool yes)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.qp_access_flags = yes ? IBV_ACCESS_REMOTE_WRITE : 0,
	};

	return ibv_modify_qp(rig->qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS);
}

static void show_state(struct rig *rig)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(rig->qp, &attr, IBV_QP_STATE, &init) || attr.qp_state > IBV_QPS_ERR)
		say("unknown");
	else
		say(names[attr.qp_state]);
}

static void post_bad_receive(struct rig *rig)
{
	struct ibv_sge sge = { .addr = (uintptr_t)rig->in, .length = SIZE, .lkey = 0x123456 };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_recv(rig->qp, &wr, &bad))
		die("receive");
}

static void post(struct rig *rig, enum ibv_wr_opcode opcode, unsigned int value)
{
	unsigned char *from = rig->out[rig->posted++ % DEPTH];
	struct ibv_sge sge = {
		.addr = (uintptr_t)from, .length = SIZE, .lkey = rig->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = rig->peer.addr, .rkey = rig->peer.rkey },
	};

	memset(from, value, SIZE);
	if (ibv_post_send(rig->qp, &wr, &bad))
		die("post");
}

static void collect(struct rig *rig)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(rig->cq, 1, &wc) == 1) {
		rig->got++;
		if (!rig->kinds || rig->seen[rig->kinds - 1].status != wc.status) {
			if (rig->kinds == DEPTH)
				die("completions");
			rig->seen[rig->kinds].status = wc.status;
			rig->seen[rig->kinds++].count = 0;
		}
		rig->seen[rig->kinds - 1].count++;
	}
}

static void tell(struct rig *rig)
{
	unsigned int i;

	if (!rig->want || rig->got < rig->want)
		return;
	for (i = 0; i < rig->kinds; i++) {
		bool good = rig->seen[i].status == IBV_WC_SUCCESS;

		if (rig->kinds > 1 || !good)
			printf("%s%u ", i ? ", " : "", rig->seen[i].count);
		printf("%s", good ? "ok" : ibv_wc_status_str(rig->seen[i].status));
	}
	say("");
	rig->want = rig->got = rig->kinds = 0;
}

/* False at the end. */
static bool obey(struct rig *rig)
{
	char line[64], word[16] = "";
	unsigned int n = 0;

	if (!fgets(line, sizeof(line), stdin))
		return false;
	sscanf(line, "%15s %u", word, &n);
	if (!strcmp(word, "rtr")) {
		meet_again(rig);
	} else if (!strcmp(word, "rts")) {
		connect_rts(rig->qp, n);
		say("ok");
	} else if (!strcmp(word, "access")) {
		answer(allow(rig, n));
	} else if (!strcmp(word, "err")) {
		answer(change(rig, IBV_QPS_ERR));
	} else if (!strcmp(word, "reset")) {
		answer(change(rig, IBV_QPS_RESET));
	} else if (!strcmp(word, "state")) {
		show_state(rig);
	} else if (!strcmp(word, "post")) {
		for (n = n < DEPTH ? n : DEPTH; n; n--)
			post(rig, IBV_WR_RDMA_WRITE, n);
		say("ok");
	} else if (!strcmp(word, "done")) {
		rig->want = n;
	} else if (!strcmp(word, "write")) {
		post(rig, IBV_WR_RDMA_WRITE, n);
		rig->want = 1;
	} else if (!strcmp(word, "send")) {
		post(rig, IBV_WR_SEND, n);
		rig->want = 1;
	} else if (!strcmp(word, "bad")) {
		post_bad_receive(rig);
		say("ok");
	} else if (!strcmp(word, "byte")) {
		printf("%u%s\n", rig->in[0], rig->in[0] == rig->in[SIZE - 1] ? "" : " torn");
		fflush(stdout);
	} else {
		return false;
	}
	return true;
}

static void set_up(struct rig *rig, const char *device, const char *server)
{
	struct ibv_pd *pd;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	rig->context = open_device(device);
	pd = ibv_alloc_pd(rig->context);
	rig->cq = ibv_create_cq(rig->context, 2 * DEPTH, NULL, NULL, 0);
	rig->mr = ibv_reg_mr(pd, rig, sizeof(*rig),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	attr.send_cq = attr.recv_cq = rig->cq;
	rig->qp = ibv_create_qp(pd, &attr);
	if (!rig->qp || !rig->mr)
		die("set-up");
	rig->fd = meet(server, PORT);
}

int main(int argc, char **argv)
{
	static struct rig rig;
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: life_edge DEVICE [SERVER]\n");
		return 2;
	}
	setvbuf(stdin, NULL, _IONBF, 0);	/* poll() sees each line */
	set_up(&rig, argv[1], argv[2]);
	say("connected");
	for (;;) {
		collect(&rig);
		tell(&rig);
		if (poll(&in, 1, rig.want ? 1 : 20) > 0 && !obey(&rig))
			break;
	}
	if (ibv_destroy_qp(rig.qp))
		die("destroy");
	say("closed");
	return 0;
}
