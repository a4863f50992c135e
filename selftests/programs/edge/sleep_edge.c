// SPDX-License-Identifier: GPL-2.0
/*
 * An application that sleeps in ibv_get_cq_event() unless there is something to do.
 *
 * usage: sleep_edge DEVICE [SERVER]
 * Both ends do what lines on stdin say, and answer each with one line:
 *	send N	    post N sends to the other end; "ok"
 *	count	    how many sends were completed, how many messages have come, and how often
 *		    the application was woken: "S sent R received W woken"
 *	end
 * A completion out of order, or an error, ends it with 1.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "edge.h"

#define PORT	18537
#define DEPTH	32
#define WORDS	300		/* of a message: more than one packet */
#define TIMEOUT	18		/* of an ACK: 1 s */

struct rig {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint64_t posted;
	atomic_ulong sent, received, woken;
	atomic_bool ending;	/* what is flushed from then on is nobody's */
	uint64_t out[DEPTH][WORDS], in[DEPTH][WORDS];
};

static void wrong(const char *what, uint64_t value)
{
	printf("wrong: %s %llu\n", what, (unsigned long long)value);
	exit(1);
}

static void receive(struct rig *rig, uint64_t number)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)rig->in[number % DEPTH], .length = sizeof(rig->in[0]),
		.lkey = rig->mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_recv(rig->qp, &wr, &bad))
		die("receive");
}

/* The number of the message in each word. */
static void transmit(struct rig *rig)
{
	uint64_t number = rig->posted++, *from = rig->out[number % DEPTH];
	struct ibv_sge sge = {
		.addr = (uintptr_t)from, .length = sizeof(rig->out[0]), .lkey = rig->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = number, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
	};
	int i;

	for (i = 0; i < WORDS; i++)
		from[i] = number;
	if (ibv_post_send(rig->qp, &wr, &bad))
		die("send");
}

static void completed(struct rig *rig, const struct ibv_wc *wc)
{
	uint64_t number;
	int i;

	if (rig->ending)
		return;
	if (wc->status)
		wrong(ibv_wc_status_str(wc->status), wc->wr_id);
	if (wc->opcode == IBV_WC_SEND) {
		if (wc->wr_id != rig->sent)
			wrong("send", wc->wr_id);
		rig->sent++;
		return;
	}
	number = rig->received;
	if (wc->wr_id != number || wc->byte_len != sizeof(rig->in[0]))
		wrong("receive", wc->wr_id);
	for (i = 0; i < WORDS; i++)
		if (rig->in[number % DEPTH][i] != number)
			wrong("message", rig->in[number % DEPTH][i]);
	receive(rig, number + DEPTH);
	rig->received++;
}

/* The CQ is looked at after an event only, and once more after it is armed. */
static void *sleeper(void *arg)
{
	struct rig *rig = arg;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int n;

	for (;;) {
		while ((n = ibv_get_cq_event(rig->channel, &cq, &context)) && errno == EINTR)
			;
		if (n)
			die("ibv_get_cq_event");
		rig->woken++;
		ibv_ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(cq, 0))
			die("ibv_req_notify_cq");
		while ((n = ibv_poll_cq(cq, 1, &wc)) > 0)
			completed(rig, &wc);
		if (n < 0)
			die("ibv_poll_cq");
	}
	return NULL;
}

static void set_up(struct rig *rig, const char *device, const char *server)
{
	struct ibv_pd *pd;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct end mine, peer;
	int fd, index, i;

	rig->context = open_device(device);
	pd = ibv_alloc_pd(rig->context);
	rig->channel = ibv_create_comp_channel(rig->context);
	rig->cq = ibv_create_cq(rig->context, 2 * DEPTH, NULL, rig->channel, 0);
	rig->mr = ibv_reg_mr(pd, rig, sizeof(*rig), IBV_ACCESS_LOCAL_WRITE);
	attr.send_cq = attr.recv_cq = rig->cq;
	rig->qp = ibv_create_qp(pd, &attr);
	if (!rig->qp || !rig->mr || ibv_req_notify_cq(rig->cq, 0))
		die("set-up");
	fd = meet(server, PORT);
	memset(&mine, 0, sizeof(mine));
	mine.qpn = rig->qp->qp_num;
	index = find_gid(rig->context, &mine.gid);
	exchange(fd, &mine, &peer, sizeof(mine));
	connect_rtr(rig->qp, index, &peer);
	for (i = 0; i < DEPTH; i++)
		receive(rig, i);
	connect_rts(rig->qp, TIMEOUT);
	/* nothing is sent before the other end can hear it */
	exchange(fd, &mine, &peer, sizeof(mine));
}

int main(int argc, char **argv)
{
	static struct rig rig;
	char line[64], word[16];
	pthread_t thread;
	unsigned int n;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: sleep_edge DEVICE [SERVER]\n");
		return 2;
	}
	set_up(&rig, argv[1], argv[2]);
	if (pthread_create(&thread, NULL, sleeper, &rig))
		die("thread");
	say("connected");
	while (fgets(line, sizeof(line), stdin)) {
		n = 0;
		if (sscanf(line, "%15s %u", word, &n) < 1 || !strcmp(word, "end"))
			break;
		if (!strcmp(word, "send")) {
			while (n--)
				transmit(&rig);
			say("ok");
		} else {
			printf("%lu sent %lu received %lu woken\n", rig.sent, rig.received,
			       rig.woken);
			fflush(stdout);
		}
	}
	rig.ending = true;
	if (ibv_destroy_qp(rig.qp))
		die("destroy");
	say("closed");
	exit(0);	/* with the other thread asleep */
}
