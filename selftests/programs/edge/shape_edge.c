// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs of all shapes at once: depths, SGEs, signaling, completion queues.
 *
 * usage: shape_edge DEVICE [SERVER]
 * Both ends make the same list of QPs, and connect them. They do what lines on stdin say, and answer
 * each with one line, "ok" or the first error:
 *	round N	each QP does all that its depths allow: a WRITE, then a SEND with N as its
 *		immediate data, if the other end has receives; a QP without SGEs sends nothing.
 *		With sq_sig_all nothing says that it is signaled, and all is. Without, the WRITE
 *		is not, if a SEND follows that has room beside it
 *	check N	after a round: what the other end has written
 *	list	how many QPs there are; a line for each follows: its number and its shape
 *	end
 */
#include <arpa/inet.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "edge.h"

#define PORT	18537
#define SIZE	3000		/* of a WRITE: more than one packet */
#define LARGE	64
#define DEEP	8192
#define MOST	48
#define DEVICE_MOST UINT_MAX	/* as many as the device has, */
#define DEVICE_MOST_MAX	(1 << 16)	/* if these are not more than that */

enum cqs { CQ_TWO, CQ_ONE, CQ_MANY, CQ_ENTRY, CQ_MAX };

struct shape {
	/* depths here; the other end has @peer_send and @peer_recv */
	unsigned int send, recv, peer_send, peer_recv;
	unsigned int sges;
	bool sig_all;
	enum cqs cqs;
};

struct way {
	struct shape shape;
	char name[96];
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp;
	struct end peer;
	/* of this round */
	bool written, sent, received;
};

static struct way ways[MOST];
static unsigned int num_ways;
static struct { unsigned char in[SIZE], out[SIZE]; } memory[MOST];
static struct ibv_context *context;
static struct ibv_mr *mr;
static struct ibv_cq *many;
static struct ibv_device_attr limits;
static int fd;
static unsigned int turn;
static char wrong[160];

static void complain(const struct way *way, const char *what)
{
	if (!wrong[0])
		snprintf(wrong, sizeof(wrong), "%s: %s", way->name, what);
}

static unsigned int depth(unsigned int asked)
{
	return asked == DEVICE_MOST ? (unsigned int)limits.max_qp_wr : asked;
}

/* The shapes, as the client has them; the server has them the other way round. */
static void add_shape(bool server, struct shape s)
{
	static const char *const cqs[] = { "two", "one", "many", "entry", "most" };
	struct way *way = &ways[num_ways++];
	const struct shape *made = &way->shape;

	way->shape = server ? (struct shape) { s.peer_send, s.peer_recv, s.send, s.recv, s.sges,
					       s.sig_all, s.cqs } : s;
	snprintf(way->name, sizeof(way->name),
		 "sends=%d receives=%d peer_sends=%d peer_receives=%d sges=%u cqs=%s sig_all=%d",
		 made->send, made->recv, made->peer_send, made->peer_recv, s.sges, cqs[s.cqs],
		 s.sig_all);
	way->shape.send = depth(made->send);
	way->shape.recv = depth(made->recv);
}

static void add_shapes(bool server)
{
	static const unsigned int depths[] = { 0, 1, 2, LARGE };
	unsigned int s, r, sges;

	for (s = 0; s < 4; s++)
		for (r = 0; r < 4; r++)
			for (sges = 0; sges < 2; sges++)
				add_shape(server, (struct shape) {
					depths[s], depths[r], depths[r], depths[s], sges,
					(s + r) % 2, (enum cqs)((s + 2 * r + sges) % 3) });
	/* the other end can do nothing */
	add_shape(server, (struct shape) { LARGE, 0, 0, 0, 1, false, CQ_ONE });
	add_shape(server, (struct shape) { 0, 0, LARGE, 0, 1, false, CQ_ONE });
	add_shape(server, (struct shape) { 1, 1, 1, 1, 1, false, CQ_ENTRY });
	add_shape(server, (struct shape) { LARGE, LARGE, LARGE, LARGE, 1, true, CQ_MAX });
	add_shape(server, (struct shape) { DEEP, DEEP, DEEP, DEEP, 1, false, CQ_ONE });
	/* the names have -1 for that depth; rxe's would take hundreds of megabytes */
	if (limits.max_qp_wr <= DEVICE_MOST_MAX)
		add_shape(server, (struct shape) { DEVICE_MOST, 2, 2, DEVICE_MOST, 1, false, CQ_ONE });
}

static struct ibv_cq *make_cq(unsigned int entries)
{
	struct ibv_cq *cq = ibv_create_cq(context, entries, NULL, NULL, 0);

	if (!cq)
		die("CQ");
	return cq;
}

static void make_cqs(struct way *way)
{
	unsigned int send = way->shape.send, recv = way->shape.recv;
	int entries;

	switch (way->shape.cqs) {
	case CQ_MANY:
		way->scq = way->rcq = many;
		break;
	case CQ_ONE:
		entries = send + recv ? send + recv : 1;
		way->scq = way->rcq = make_cq(entries < limits.max_cqe ? entries : limits.max_cqe);
		break;
	case CQ_MAX:
		way->scq = way->rcq = make_cq(limits.max_cqe);
		break;
	default:
		way->scq = make_cq(send ? send : 1);
		way->rcq = make_cq(recv ? recv : 1);
	}
}

/* A device may refuse a shape: then there is no QP at either end. */
static void make_qp(struct way *way, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = way->shape.send, .max_recv_wr = way->shape.recv,
			.max_send_sge = way->shape.sges, .max_recv_sge = way->shape.sges,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = way->shape.sig_all,
	};

	make_cqs(way);
	attr.send_cq = way->scq;
	attr.recv_cq = way->rcq;
	way->qp = ibv_create_qp(pd, &attr);
}

static void post_recv(struct way *way)
{
	/* no message has data, so that receives without SGEs do as well */
	struct ibv_recv_wr *bad, wr = { .wr_id = way - ways };

	if (ibv_post_recv(way->qp, &wr, &bad))
		complain(way, "receive refused");
}

static bool may_send(const struct shape *s)
{
	return s->send && s->peer_recv;
}

static bool may_receive(const struct shape *s)
{
	return s->recv && s->peer_send;
}

/* Does the WRITE have no completion of its own? */
static bool is_silent(const struct shape *s)
{
	return !s->sig_all && s->send > 1 && may_send(s);
}

static void post(struct way *way, bool send)
{
	unsigned int i = way - ways;
	struct ibv_sge sge = {
		.addr = (uintptr_t)memory[i].out, .length = SIZE, .lkey = mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = i + MOST * (1 + send),
		.opcode = send ? IBV_WR_SEND_WITH_IMM : IBV_WR_RDMA_WRITE,
		.send_flags = way->shape.sig_all || (!send && is_silent(&way->shape)) ?
			      0 : IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = send ? 0 : way->shape.sges,
		.imm_data = htonl(turn),
	};

	wr.wr.rdma.remote_addr = way->peer.addr;
	wr.wr.rdma.rkey = way->peer.rkey;
	memset(memory[i].out, turn, SIZE);
	if (ibv_post_send(way->qp, &wr, &bad))
		complain(way, "send refused");
}

/* Connect all QPs: both ends have to. */
static void connect_all(void)
{
	static struct end mine[MOST], theirs[MOST];
	union ibv_gid gid;
	int index = find_gid(context, &gid);
	unsigned int i, n;

	for (i = 0; i < num_ways; i++)
		mine[i] = (struct end) { ways[i].qp ? ways[i].qp->qp_num : 0, mr->rkey,
					 (uintptr_t)memory[i].in, gid };
	exchange(fd, mine, theirs, sizeof(mine));
	for (i = 0; i < num_ways; i++) {
		struct way *way = &ways[i];

		way->peer = theirs[i];
		if (way->qp && !way->peer.qpn) {
			ibv_destroy_qp(way->qp);
			way->qp = NULL;
		}
		if (!way->qp)
			continue;
		connect_rtr(way->qp, index, &way->peer);
		for (n = way->shape.recv < 4 ? way->shape.recv : 4; n; n--)
			post_recv(way);
	}
	/* the receives of both are there */
	exchange(fd, &index, &n, sizeof(n));
	for (i = 0; i < num_ways; i++)
		if (ways[i].qp)
			connect_rts(ways[i].qp, 18);
}

static void begin(unsigned int number)
{
	unsigned int i;

	turn = number;
	for (i = 0; i < num_ways; i++) {
		struct way *way = &ways[i];

		way->written = !way->qp || !way->shape.send;
		way->sent = !way->qp || !may_send(&way->shape);
		way->received = !way->qp || !may_receive(&way->shape);
		if (!way->written)
			post(way, false);
		if (!way->written && is_silent(&way->shape))
			post(way, true);
	}
}

static void completed(const struct ibv_wc *wc)
{
	struct way *way = &ways[wc->wr_id % MOST];

	if (wc->status) {
		complain(way, ibv_wc_status_str(wc->status));
	} else if (wc->wr_id >= 2 * MOST) {
		if (way->sent || (!way->written && !is_silent(&way->shape)))
			complain(way, "the SEND completed twice, or the WRITE not at all");
		way->sent = true;
		way->written = true;
	} else if (wc->wr_id >= MOST) {
		if (way->written || is_silent(&way->shape))
			complain(way, "a completion of a WRITE that has none");
		way->written = true;
		if (!way->sent)
			post(way, true);
	} else {
		if (ntohl(wc->imm_data) != turn || way->received)
			complain(way, "a message of another round");
		way->received = true;
		post_recv(way);
	}
}

/* Poll until each QP is done, or something is wrong. */
static void finish(void)
{
	unsigned int i, left;
	struct ibv_wc wc;

	do {
		for (i = left = 0; i < num_ways; i++) {
			struct way *way = &ways[i];

			while (way->qp && !wrong[0] &&
			       (ibv_poll_cq(way->scq, 1, &wc) == 1 || ibv_poll_cq(way->rcq, 1, &wc) == 1))
				completed(&wc);
			left += !way->written || !way->sent || !way->received;
		}
		if (left)
			usleep(1000);
	} while (left && !wrong[0]);
}

static void look(unsigned int number)
{
	unsigned int i, n;

	for (i = 0; i < num_ways; i++)
		if (ways[i].qp && ways[i].shape.peer_send && ways[i].shape.sges)
			for (n = 0; n < SIZE; n++)
				if (memory[i].in[n] != (unsigned char)number)
					complain(&ways[i], "not what was written");
}

static void list(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < num_ways; i++)
		n += !!ways[i].qp;
	printf("%u\n", n);
	for (i = 0; i < num_ways; i++)
		if (ways[i].qp)
			printf("%u %s\n", ways[i].qp->qp_num, ways[i].name);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[64], word[16];
	unsigned int i, number;
	struct ibv_pd *pd;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: shape_edge DEVICE [SERVER]\n");
		return 2;
	}
	context = open_device(argv[1]);
	if (ibv_query_device(context, &limits))
		die("device");
	pd = ibv_alloc_pd(context);
	mr = pd ? ibv_reg_mr(pd, memory, sizeof(memory),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) : NULL;
	if (!mr)
		die("memory");
	many = make_cq(MOST * 2 * LARGE);
	add_shapes(argc == 2);
	for (i = 0; i < num_ways; i++)
		make_qp(&ways[i], pd);
	fd = meet(argc == 3 ? argv[2] : NULL, PORT);
	connect_all();
	say("connected");

	while (fgets(line, sizeof(line), stdin)) {
		number = 0;
		if (sscanf(line, "%15s %u", word, &number) < 1 || !strcmp(word, "end"))
			break;
		wrong[0] = 0;
		if (!strcmp(word, "list")) {
			list();
			continue;
		}
		if (!strcmp(word, "round")) {
			begin(number);
			finish();
		} else if (!strcmp(word, "check")) {
			look(number);
		}
		say(wrong[0] ? wrong : "ok");
	}
	for (i = 0; i < num_ways; i++)
		if (ways[i].qp && ibv_destroy_qp(ways[i].qp))
			die("destroy");
	say("closed");
	return 0;
}
