// SPDX-License-Identifier: GPL-2.0
/*
 * What a peer may do through a memory window, and may not once it is invalidated.
 *
 * usage: window_edge DEVICE [SERVER]
 * Both ends do what lines on stdin say, and answer each with one line:
 *	bind N	    (server) bind window N to page N, with a new key, and tell the client
 *	stale N	    (server) the same with another key than it has
 *	wide N	    (server) the same beyond the end of the memory
 *	inv N	    (server) invalidate window N by LOCAL_INV
 *	get N	    (client) take the key of window N that the server has told last
 *	write N C   (client) write the byte C through window N, with the key it has
 *	past N      (client) write one byte behind window N's end
 *	sendinv N   (client) SEND_WITH_INV of window N
 *	wild        (client) SEND_WITH_INV of a key that nobody has told
 *	recv        (server) what was received: the window that was invalidated
 *	page N      (server) first and last byte of page N
 *	forget	    (server) deregister the memory
 *	end
 * A line of an operation is "ok", or the error of its completion.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "edge.h"

#define PORT	18534
#define SIZE	4096
#define WINDOWS	4
#define BEGIN	100		/* of a window in its page */
#define LENGTH	3000
#define DEPTH	16

struct rig {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_mw *mw[WINDOWS];
	unsigned char *buf;
	uint32_t key[WINDOWS];
	struct end peer;
	int fd;
};

/* The completion of what was posted last; one of a receive is kept for later. */
static enum ibv_wc_status complete(struct rig *rig, struct ibv_wc *wc)
{
	int n;

	do
		n = poll_cq(rig->cq, wc);
	while (!n);
	if (n < 0)
		die("poll");
	return wc->status;
}

static void post(struct rig *rig, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->send_flags |= IBV_SEND_SIGNALED;
	if (ibv_post_send(rig->qp, wr, &bad))
		die("post");
	say(complete(rig, &wc) ? ibv_wc_status_str(wc.status) : "ok");
}

static void post_receive(struct rig *rig)
{
	struct ibv_recv_wr wr = { 0 }, *bad;

	if (ibv_post_recv(rig->qp, &wr, &bad))
		die("receive");
}

/* The provider wants ibv_mw and MR; the rest of the WR is what it is given. */
static struct ibv_send_wr bind_wr(struct rig *rig, unsigned int n, uint32_t key)
{
	return (struct ibv_send_wr) {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {
			.mw = rig->mw[n], .rkey = key,
			.bind_info = {
				.mr = rig->mr, .length = LENGTH,
				.addr = (uintptr_t)rig->buf + n * SIZE + BEGIN,
				.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
			},
		},
	};
}

static void bind_window(struct rig *rig, unsigned int n)
{
	uint32_t key = ibv_inc_rkey(rig->mw[n]->rkey), told[2] = { n, key };
	struct ibv_send_wr wr = bind_wr(rig, n, key);

	post(rig, &wr);
	rig->mw[n]->rkey = key;
	if (send(rig->fd, told, sizeof(told), 0) != sizeof(told))
		die("tell");
}

static void bind_wrong(struct rig *rig, unsigned int n, bool stale)
{
	uint32_t key = rig->mw[n]->rkey;
	struct ibv_send_wr wr = bind_wr(rig, n, ibv_inc_rkey(key));

	if (stale)
		rig->mw[n]->rkey = key ^ 0x80;
	else
		wr.bind_mw.bind_info.length = WINDOWS * SIZE;
	post(rig, &wr);
	rig->mw[n]->rkey = key;
}

static void get(struct rig *rig)
{
	uint32_t told[2];

	if (recv(rig->fd, told, sizeof(told), MSG_WAITALL) != sizeof(told) ||
	    told[0] >= WINDOWS)
		die("told");
	rig->key[told[0]] = told[1];
	say("ok");
}

static void write_through(struct rig *rig, unsigned int n, unsigned int offset,
			  unsigned int length, int value)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)rig->buf, .length = length, .lkey = rig->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = rig->peer.addr + n * SIZE + BEGIN + offset,
			     .rkey = rig->key[n] },
	};

	memset(rig->buf, value, length);
	post(rig, &wr);
}

static void invalidate(struct rig *rig, enum ibv_wr_opcode opcode, uint32_t key)
{
	struct ibv_send_wr wr = { .opcode = opcode, .invalidate_rkey = key };

	post(rig, &wr);
}

/* rxe puts the kernel's IB_WC_WITH_INVALIDATE into the ring */
static void received(struct rig *rig)
{
	struct ibv_wc wc;
	int i;

	if (complete(rig, &wc)) {
		say(ibv_wc_status_str(wc.status));
		return;
	}
	post_receive(rig);
	for (i = 0; i < WINDOWS; i++)
		if (wc.wc_flags & (IBV_WC_WITH_INV | 1 << 2) &&
		    wc.invalidated_rkey == rig->mw[i]->rkey)
			break;
	printf("%s %d\n", wc.opcode == IBV_WC_RECV ? "window" : "opcode", i);
	fflush(stdout);
}

static void page(struct rig *rig, unsigned int n)
{
	const unsigned char *at = rig->buf + n * SIZE;

	printf("page %02x %02x %02x %02x\n", at[BEGIN - 1], at[BEGIN],
	       at[BEGIN + LENGTH - 1], at[BEGIN + LENGTH]);
	fflush(stdout);
}

static void forget(struct rig *rig)
{
	int err = ibv_dereg_mr(rig->mr);

	if (!err)
		rig->mr = NULL;
	say(err ? strerror(err) : "ok");
}

/* False at the end. */
static bool obey(struct rig *rig)
{
	char line[64], word[16] = "";
	unsigned int n = 0, value = 0;

	if (!fgets(line, sizeof(line), stdin))
		return false;
	sscanf(line, "%15s %u %x", word, &n, &value);
	n %= WINDOWS;
	if (!strcmp(word, "bind"))
		bind_window(rig, n);
	else if (!strcmp(word, "inv"))
		invalidate(rig, IBV_WR_LOCAL_INV, rig->mw[n]->rkey);
	else if (!strcmp(word, "stale") || !strcmp(word, "wide"))
		bind_wrong(rig, n, *word == 's');
	else if (!strcmp(word, "get"))
		get(rig);
	else if (!strcmp(word, "write"))
		write_through(rig, n, 0, LENGTH, value);
	else if (!strcmp(word, "past"))
		write_through(rig, n, LENGTH, 1, 0xee);
	else if (!strcmp(word, "sendinv"))
		invalidate(rig, IBV_WR_SEND_WITH_INV, rig->key[n]);
	else if (!strcmp(word, "wild"))
		invalidate(rig, IBV_WR_SEND_WITH_INV, 0x12345678);
	else if (!strcmp(word, "recv"))
		received(rig);
	else if (!strcmp(word, "page"))
		page(rig, n);
	else if (!strcmp(word, "forget"))
		forget(rig);
	else
		return false;
	return true;
}

/* As an application would: whatever is refused shows. */
static void close_rig(struct rig *rig)
{
	unsigned int i;

	for (i = 0; i < WINDOWS; i++)
		if (rig->mw[i] && ibv_dealloc_mw(rig->mw[i]))
			die("dealloc");
	if (ibv_destroy_qp(rig->qp) || (rig->mr && ibv_dereg_mr(rig->mr)) ||
	    ibv_destroy_cq(rig->cq) || ibv_dealloc_pd(rig->pd))
		die("close");
}

int main(int argc, char **argv)
{
	const char *server = argc > 2 ? argv[2] : NULL;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_context *context;
	struct end mine = { 0 };
	struct rig rig = { 0 };
	void *buf = NULL;
	int i, index;

	if (argc < 2) {
		fprintf(stderr, "usage: window_edge DEVICE [SERVER]\n");
		return 2;
	}
	context = open_device(argv[1]);
	rig.pd = ibv_alloc_pd(context);
	if (posix_memalign(&buf, 4096, WINDOWS * SIZE))
		die("memory");
	rig.buf = buf;
	memset(buf, 0xc1, WINDOWS * SIZE);
	/* remote access by windows only */
	rig.mr = ibv_reg_mr(rig.pd, buf, WINDOWS * SIZE,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	rig.cq = ibv_create_cq(context, 4 * DEPTH, NULL, NULL, 0);
	init.send_cq = rig.cq;
	init.recv_cq = rig.cq;
	rig.qp = rig.mr && rig.cq ? ibv_create_qp(rig.pd, &init) : NULL;
	if (!rig.qp)
		die("set-up");
	for (i = 0; !server && i < WINDOWS; i++) {
		rig.mw[i] = ibv_alloc_mw(rig.pd, IBV_MW_TYPE_2);
		if (!rig.mw[i])
			die("window");
	}
	index = find_gid(context, &mine.gid);
	mine.qpn = rig.qp->qp_num;
	mine.addr = (uintptr_t)buf;
	rig.fd = meet(server, PORT);
	exchange(rig.fd, &mine, &rig.peer, sizeof(mine));
	connect_qp(rig.qp, index, &rig.peer);
	for (i = 0; i < DEPTH / 2; i++)
		post_receive(&rig);
	exchange(rig.fd, &mine, &rig.peer, sizeof(mine));	/* both are ready */
	say("connected");
	while (obey(&rig))
		;
	close_rig(&rig);
	say("closed");
	return 0;
}
