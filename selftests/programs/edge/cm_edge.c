// SPDX-License-Identifier: GPL-2.0
/*
 * A connection of RDMA CM that is kept until it has left timewait, as a program does that connects
 * the same queue pair again.
 *
 * usage: cm_edge ADDRESS [connect]
 * Without "connect" it listens on ADDRESS.  Lines on stdin:
 *	ping COUNT	that many messages, one after the other, which the other end sends back
 *	end		disconnect
 * It says "ok", "disconnected STATUS" and "timewait over", and then ends.  An end that is not asked
 * for anything sends back what it receives.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include "edge.h"

#define PORT	"18540"
#define DEPTH	4

struct rig {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	unsigned long out, in[DEPTH];
	unsigned long sent, received;
	long left;		/* pings to be sent */
	bool asked;		/* by "ping": what comes is an answer */
};

static void receive(struct rig *rig, unsigned long slot)
{
	if (rdma_post_recv(rig->id, (void *)slot, &rig->in[slot], sizeof(rig->in[slot]), rig->mr))
		die("receive");
}

static void transmit(struct rig *rig)
{
	rig->out = rig->sent++;
	if (rdma_post_send(rig->id, NULL, &rig->out, sizeof(rig->out), rig->mr, IBV_SEND_SIGNALED))
		die("send");
}

static void received(struct rig *rig, unsigned long slot)
{
	if (slot != rig->received % DEPTH || rig->in[slot] != rig->received) {
		printf("wrong: message %lu in %lu\n", rig->in[slot], slot);
		exit(1);
	}
	rig->received++;
	receive(rig, slot);
	if (!rig->asked)
		transmit(rig);
	else if (--rig->left)
		transmit(rig);
	else
		say("ok");
}

/* Flushes are what the end of a connection leaves. */
static void look(struct rig *rig, struct ibv_cq *cq, bool receives)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0) {
		if (wc.status == IBV_WC_WR_FLUSH_ERR)
			continue;
		if (wc.status) {
			printf("wrong: %s\n", ibv_wc_status_str(wc.status));
			exit(1);
		}
		if (receives)
			received(rig, wc.wr_id);
	}
}

static void command(struct rig *rig)
{
	char line[80];
	long count;

	if (!fgets(line, sizeof(line), stdin))
		exit(2);
	if (sscanf(line, "ping %ld", &count) == 1 && count > 0) {
		rig->asked = true;
		rig->left = count;
		transmit(rig);
	} else if (!strncmp(line, "end", 3) && rdma_disconnect(rig->id)) {
		die("disconnect");
	}
}

/* True: the connection has left timewait. */
static bool event(struct rig *rig)
{
	struct rdma_cm_event *event;
	bool over;

	if (rdma_get_cm_event(rig->id->channel, &event))
		die("event");
	over = event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT;
	if (event->event == RDMA_CM_EVENT_DISCONNECTED)
		printf("disconnected %d\n", event->status);
	else
		printf("%s\n", over ? "timewait over" : rdma_event_str(event->event));
	fflush(stdout);
	/* the end that was asked answers */
	if (event->event == RDMA_CM_EVENT_DISCONNECTED)
		rdma_disconnect(rig->id);
	rdma_ack_cm_event(event);
	return over;
}

static struct rdma_cm_id *endpoint(const char *address, bool passive)
{
	struct rdma_addrinfo *res, hints = {
		.ai_port_space = RDMA_PS_TCP, .ai_flags = passive ? RAI_PASSIVE : 0,
	};
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_cm_id *id, *listener;

	if (rdma_getaddrinfo(address, PORT, &hints, &res) || rdma_create_ep(&id, res, NULL, &attr))
		die("endpoint");
	rdma_freeaddrinfo(res);
	if (!passive)
		return id;
	listener = id;
	if (rdma_listen(listener, 1))
		die("listen");
	say("listening");
	if (rdma_get_request(listener, &id))
		die("request");
	return id;
}

int main(int argc, char **argv)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	bool active = argc == 3 && !strcmp(argv[2], "connect");
	static struct rig rig;
	unsigned long slot;

	if (argc != 2 && !active) {
		fprintf(stderr, "usage: cm_edge ADDRESS [connect]\n");
		return 2;
	}
	rig.id = endpoint(argv[1], !active);
	rig.mr = rdma_reg_msgs(rig.id, &rig, sizeof(rig));
	if (!rig.mr)
		die("memory");
	for (slot = 0; slot < DEPTH; slot++)
		receive(&rig, slot);
	if (active ? rdma_connect(rig.id, &param) : rdma_accept(rig.id, &param))
		die("connection");
	say("connected");
	/* sync calls wait for the event of their own */
	if (rdma_migrate_id(rig.id, rdma_create_event_channel()))
		die("channel");
	for (;;) {
		struct pollfd wait[] = {
			{ .fd = STDIN_FILENO, .events = POLLIN },
			{ .fd = rig.id->channel->fd, .events = POLLIN },
		};

		if (poll(wait, 2, 1) < 0)
			die("poll");
		if (wait[0].revents)
			command(&rig);
		if (wait[1].revents && event(&rig))
			break;
		look(&rig, rig.id->send_cq, false);
		look(&rig, rig.id->recv_cq, true);
	}
	rdma_destroy_ep(rig.id);
	return 0;
}
