// SPDX-License-Identifier: GPL-2.0
/* Two ends of one QP, for programs that try what one may do to the other. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "edge.h"

void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(2);
}

void say(const char *text)
{
	puts(text);
	fflush(stdout);
}

struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (!context)
		die(name);
	return context;
}

int meet(const char *server, int port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0), conn;

	if (server) {
		inet_pton(AF_INET, server, &addr.sin_addr);
		if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
			die(server);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1))
		die("listen");
	say("listening");
	conn = accept(fd, NULL, NULL);
	if (conn < 0)
		die("accept");
	close(fd);
	return conn;
}

void exchange(int fd, const void *mine, void *theirs, size_t len)
{
	if (send(fd, mine, len, 0) != (ssize_t)len ||
	    recv(fd, theirs, len, MSG_WAITALL) != (ssize_t)len)
		die("exchange");
}

/* The first IPv4 address of RoCE v2. */
int find_gid(struct ibv_context *context, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	int i;

	if (ibv_query_port(context, 1, &port))
		die("port");
	for (i = 0; i < port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(context, 1, i, &entry, 0))
			continue;	/* the table may have holes */
		if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 && !entry.gid.raw[0] &&
		    entry.gid.raw[10] == 0xff) {
			*gid = entry.gid;
			return i;
		}
	}
	die("no GID");
	return -1;
}

void connect_rtr(struct ibv_qp *qp, int gid_index, const struct end *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  IBV_QP_ACCESS_FLAGS))
		die("INIT");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn, .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = { .dgid = peer->gid, .sgid_index = gid_index,
				 .hop_limit = 64 },
		},
	};
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			  IBV_QP_MIN_RNR_TIMER))
		die("RTR");
}

void connect_rts(struct ibv_qp *qp, int timeout)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 3, .rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("RTS");
}

void connect_qp(struct ibv_qp *qp, int gid_index, const struct end *peer)
{
	connect_rtr(qp, gid_index, peer);
	connect_rts(qp, 18);
}

/* Up to 1.6 ms: a program that polls all the time takes the processors of the emulated kernel. */
int poll_cq(struct ibv_cq *cq, struct ibv_wc *wc)
{
	static unsigned int idle;
	int n = ibv_poll_cq(cq, 1, wc);

	if (n)
		idle = 0;
	else
		usleep(50u << (idle < 5 ? idle++ : 5));
	return n;
}
