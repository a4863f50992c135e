// SPDX-License-Identifier: GPL-2.0
/*
 * QPs that share receives, and that are connected one after the other.
 *
 * usage: share_edge DEVICE				the server
 *	  share_edge DEVICE SERVER NUMBER	a client: 0 is the first QP of the server's
 * Lines on stdin, each answered with one line:
 *	next	server: wait for the next client, whose QP gets one on the same SRQ
 *	got N	server: receive N messages, in order for each QP, each in a receive of its own,
 *		which is posted again
 *	send N	client: send N messages, and wait for each
 *	limit N	server: set the limit of the SRQ
 *	event	server: wait until the limit is reached
 *	resize N	server: make the SRQ one of N receives
 *	drop N	server: destroy the QP of client N, who has sent what it will send
 *	again N	both: reset that client's QP and the server's, and connect them again
 *	cqes N	server: resize the CQ
 *	end
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "edge.h"

#define PORT	18560
#define QPS	4
#define RECVS	8
#define SIZE	1500		/* more than one packet */
#define EVENT_MS 60000

struct rig {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[QPS];
	unsigned int qps, number, sent, seen[QPS];
	bool posted[RECVS];
	unsigned char in[RECVS][SIZE], out[SIZE];
};

static void post(struct rig *rig, unsigned int i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)rig->in[i], .length = SIZE, .lkey = rig->mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };

	memset(rig->in[i], 0, SIZE);
	rig->posted[i] = true;
	if (ibv_post_srq_recv(rig->srq, &wr, &bad))
		die("receive");
}

/* Connect a QP: of the client's own number, or (@server is NULL) that of client @n. */
static void meet_peer(struct rig *rig, const char *server, unsigned int n, struct ibv_qp *qp)
{
	int fd = meet(server, PORT + (server ? rig->number : n));
	struct end mine = { .qpn = qp->qp_num }, peer;
	int index = find_gid(rig->context, &mine.gid);

	exchange(fd, &mine, &peer, sizeof(mine));
	connect_qp(qp, index, &peer);
	/* neither sends before both receive */
	exchange(fd, &mine, &peer, sizeof(mine));
	close(fd);
}

static void next(struct rig *rig, const char *server)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC, .send_cq = rig->cq, .recv_cq = rig->cq, .srq = rig->srq,
	};
	unsigned int n = rig->qps++;
	struct ibv_qp *qp = n < QPS ? ibv_create_qp(rig->pd, &attr) : NULL;

	if (!qp)
		die("QP");
	rig->qp[n] = qp;
	meet_peer(rig, server, n, qp);
}

static const char *again(struct rig *rig, const char *server, unsigned int n)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp *qp = server ? rig->qp[0] : rig->qp[n % QPS];

	if (ibv_modify_qp(qp, &reset, IBV_QP_STATE))
		return "not reset";
	meet_peer(rig, server, n, qp);
	return "ok";
}

/* Wrong: who sent it, its number, its bytes, or the receive. */
static bool is_right(struct rig *rig, const struct ibv_wc *wc)
{
	const unsigned char *in = rig->in[wc->wr_id % RECVS];
	unsigned int n, i;

	for (n = 0; n < rig->qps; n++)
		if (rig->qp[n] && rig->qp[n]->qp_num == wc->qp_num)
			break;
	if (n == rig->qps || wc->wr_id >= RECVS || !rig->posted[wc->wr_id] ||
	    wc->byte_len != SIZE || in[0] != n || in[1] != (unsigned char)++rig->seen[n])
		return false;
	for (i = 2; i < SIZE; i++)
		if (in[i] != in[1])
			return false;
	return true;
}

static const char *receive(struct rig *rig, unsigned int count)
{
	struct ibv_wc wc;

	while (count) {
		if (!poll_cq(rig->cq, &wc))
			continue;
		if (wc.status)
			return ibv_wc_status_str(wc.status);
		if (!is_right(rig, &wc))
			return "wrong: VIOLATION";
		rig->posted[wc.wr_id] = false;
		post(rig, wc.wr_id);
		count--;
	}
	return "ok";
}

static const char *send_all(struct rig *rig, unsigned int count)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)rig->out, .length = SIZE, .lkey = rig->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge,
		.num_sge = 1,
	};
	struct ibv_wc wc;

	for (; count; count--) {
		memset(rig->out, ++rig->sent, SIZE);
		rig->out[0] = rig->number;
		if (ibv_post_send(rig->qp[0], &wr, &bad))
			die("post");
		while (!poll_cq(rig->cq, &wc))
			;
		if (wc.status)
			return ibv_wc_status_str(wc.status);
	}
	return "ok";
}

static const char *set_limit(struct rig *rig, unsigned int limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	return ibv_modify_srq(rig->srq, &attr, IBV_SRQ_LIMIT) ? "not set" : "ok";
}

static const char *resize(struct rig *rig, unsigned int receives)
{
	struct ibv_srq_attr attr = { .max_wr = receives }, now;

	if (ibv_modify_srq(rig->srq, &attr, IBV_SRQ_MAX_WR))
		return "not resized";
	return !ibv_query_srq(rig->srq, &now) && now.max_wr >= receives ? "ok" : "not that large";
}

static const char *drop(struct rig *rig, unsigned int n)
{
	if (n >= rig->qps || !rig->qp[n] || ibv_destroy_qp(rig->qp[n]))
		return "not destroyed";
	rig->qp[n] = NULL;
	return "ok";
}

static const char *resize_cq(struct rig *rig, unsigned int entries)
{
	return ibv_resize_cq(rig->cq, entries) ? "not resized" : "ok";
}

/* Events of the port may come, too. */
static const char *await_limit(struct rig *rig)
{
	struct pollfd fd = { .fd = rig->context->async_fd, .events = POLLIN };
	enum ibv_event_type type = IBV_EVENT_DEVICE_FATAL;
	struct ibv_async_event event;

	while (type != IBV_EVENT_SRQ_LIMIT_REACHED) {
		if (poll(&fd, 1, EVENT_MS) != 1 || ibv_get_async_event(rig->context, &event))
			return "no event";
		type = event.event_type;
		ibv_ack_async_event(&event);
	}
	return event.element.srq == rig->srq ? "ok" : "of another SRQ";
}

static void set_up(struct rig *rig, const char *device, bool serves)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = RECVS, .max_sge = 1 } };
	unsigned int i;

	rig->context = open_device(device);
	rig->pd = ibv_alloc_pd(rig->context);
	rig->cq = ibv_create_cq(rig->context, 64, NULL, NULL, 0);
	rig->mr = ibv_reg_mr(rig->pd, rig, sizeof(*rig), IBV_ACCESS_LOCAL_WRITE);
	if (!rig->mr || !rig->cq)
		die("set-up");
	if (!serves)
		return;
	rig->srq = ibv_create_srq(rig->pd, &attr);
	if (!rig->srq)
		die("SRQ");
	for (i = 0; i < RECVS; i++)
		post(rig, i);
}

static void close_all(struct rig *rig)
{
	while (rig->qps--)
		if (rig->qp[rig->qps] && ibv_destroy_qp(rig->qp[rig->qps]))
			die("destroy");
	if (rig->srq && ibv_destroy_srq(rig->srq))
		die("destroy SRQ");
	say("closed");
}

int main(int argc, char **argv)
{
	static struct rig rig;
	char line[64], word[16];
	unsigned int n;

	if (argc != 2 && argc != 4) {
		fprintf(stderr, "usage: share_edge DEVICE [SERVER NUMBER]\n");
		return 2;
	}
	rig.number = argc == 4 ? atoi(argv[3]) : 0;
	set_up(&rig, argv[1], argc == 2);
	if (argc == 4)
		next(&rig, argv[2]);
	say("ready");
	while (fgets(line, sizeof(line), stdin)) {
		n = 0;
		if (sscanf(line, "%15s %u", word, &n) < 1)
			break;
		if (!strcmp(word, "next")) {
			next(&rig, NULL);
			say("ok");
		} else if (!strcmp(word, "got")) {
			say(receive(&rig, n));
		} else if (!strcmp(word, "send")) {
			say(send_all(&rig, n));
		} else if (!strcmp(word, "limit")) {
			say(set_limit(&rig, n));
		} else if (!strcmp(word, "event")) {
			say(await_limit(&rig));
		} else if (!strcmp(word, "resize")) {
			say(resize(&rig, n));
		} else if (!strcmp(word, "drop")) {
			say(drop(&rig, n));
		} else if (!strcmp(word, "again")) {
			say(again(&rig, argc == 4 ? argv[2] : NULL, n));
		} else if (!strcmp(word, "cqes")) {
			say(resize_cq(&rig, n));
		} else {
			break;
		}
	}
	close_all(&rig);
	return 0;
}
