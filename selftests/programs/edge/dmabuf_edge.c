// SPDX-License-Identifier: GPL-2.0
/*
 * Two ends of one QP whose data is in a dma-buf, and does what lines say, one by one: each is
 * answered by one line.
 *
 *	reg N		a buffer that N devices may have at once (0: any), for all that follows
 *	udmabuf		a buffer of /dev/udmabuf
 *	plain		memory of the process instead
 *	weak		the same, without the right to write into it
 *	rights		ibv_rereg_mr() that gives this right
 *	round		a WRITE into the peer's memory and a SEND; look at what the peer has written
 *	move		the buffer gets other pages
 *	change		ibv_rereg_mr() of plain memory to other memory
 *	extra N		one more buffer, which no request names; "no" if it could not be registered
 *	drop		deregister that one
 *			(EXTRA_FIRST in the environment: "extra 1" before the QP is connected)
 *	pinned		how much memory is charged to the process as pinned, in KiB
 *	end		deregister all
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "edge.h"
#include "../../mlx5_soft/buffer.h"

#define PORT	17995
#define PAGE	4096
#define PAGES	4
#define SIZE	(PAGES * PAGE)
#define WORDS	(PAGE / sizeof(uint64_t))
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* The peer writes into "in"; its SEND goes into "note". */
struct area {
	uint64_t out[WORDS], in[WORDS], note[WORDS], said[WORDS];
};

struct rig {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr, *extra;
	struct area *area;
	int fd, buffer, extra_buffer;
	struct end peer;
	union ibv_gid gid;
	uint64_t round;
};

static void wrong(const char *what, uint64_t value)
{
	printf("wrong %s: %llu\n", what, (unsigned long long)value);
	exit(1);
}

static int buffer_new(int importers)
{
	struct mls_buffer_new new = { .pages = PAGES, .importers = importers };
	int device = open("/dev/mlx5_soft_buffer", O_RDWR | O_CLOEXEC), fd;

	if (device < 0)
		die("/dev/mlx5_soft_buffer");
	fd = ioctl(device, MLS_BUFFER_NEW, &new);
	if (fd < 0)
		die("a buffer");
	close(device);
	return fd;
}

static void buffer_move(struct rig *rig)
{
	int device = open("/dev/mlx5_soft_buffer", O_RDWR | O_CLOEXEC);

	if (device < 0 || ioctl(device, MLS_BUFFER_MOVE, &rig->buffer))
		die("move");
	close(device);
}

/* Both ends tell where the peer is to write. */
static void tell(struct rig *rig)
{
	struct end mine = { .qpn = rig->qp->qp_num, .rkey = rig->mr->rkey,
			    .addr = (uintptr_t)rig->area->in, .gid = rig->gid };

	exchange(rig->fd, &mine, &rig->peer, sizeof(mine));
}

static void forget(struct rig *rig)
{
	if (rig->mr && ibv_dereg_mr(rig->mr))
		die("dereg");
	rig->mr = NULL;
	if (rig->area)
		munmap(rig->area, SIZE);
	rig->area = NULL;
	if (rig->buffer >= 0)
		close(rig->buffer);
	rig->buffer = -1;
}

/* @memory: the file by which the process reaches what is in @buffer. */
static void reg_buffer(struct rig *rig, int buffer, int memory)
{
	void *area;

	forget(rig);
	rig->buffer = buffer;
	area = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (area == MAP_FAILED)
		die("mmap");
	rig->area = area;
	rig->mr = ibv_reg_dmabuf_mr(rig->pd, 0, SIZE, (uintptr_t)area, rig->buffer, ACCESS);
	if (!rig->mr)
		die("ibv_reg_dmabuf_mr");
	tell(rig);
}

static void reg_new(struct rig *rig, int importers)
{
	int buffer = buffer_new(importers);

	reg_buffer(rig, buffer, buffer);
}

static void reg_udmabuf(struct rig *rig)
{
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	int memory = memfd_create("dmabuf_edge", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct udmabuf_create create = { .memfd = memory, .flags = UDMABUF_FLAGS_CLOEXEC,
					 .size = SIZE };
	int buffer;

	if (device < 0 || memory < 0 || ftruncate(memory, SIZE) ||
	    fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK))
		die("/dev/udmabuf");
	buffer = ioctl(device, UDMABUF_CREATE, &create);
	if (buffer < 0)
		die("UDMABUF_CREATE");
	reg_buffer(rig, buffer, memory);
	close(memory);
	close(device);
}

static struct area *plain_area(void)
{
	void *area = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		die("mmap");
	return area;
}

static void reg_plain(struct rig *rig, int access)
{
	forget(rig);
	rig->area = plain_area();
	rig->mr = ibv_reg_mr(rig->pd, rig->area, SIZE, access);
	if (!rig->mr)
		die("ibv_reg_mr");
	tell(rig);
}

/* Other memory; what has the old address now is poison. */
static void change(struct rig *rig)
{
	struct area *old = rig->area, *area = plain_area();

	if (ibv_rereg_mr(rig->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, area, SIZE, 0))
		die("ibv_rereg_mr");
	memset(old, 0xee, SIZE);
	munmap(old, SIZE);
	rig->area = area;
	tell(rig);
}

static void rights(struct rig *rig)
{
	if (ibv_rereg_mr(rig->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS))
		die("ibv_rereg_mr");
	tell(rig);
}

static void expect(struct rig *rig)
{
	int sends = 2, receives = 1;
	struct ibv_wc wc;

	while (sends || receives) {
		if (poll_cq(rig->cq, &wc) < 1)
			continue;
		if (wc.status)
			wrong(ibv_wc_status_str(wc.status), wc.wr_id);
		if (wc.opcode == IBV_WC_RECV)
			receives--;
		else
			sends--;
		if (sends < 0 || receives < 0)
			wrong("completion", wc.wr_id);
	}
}

static void round_trip(struct rig *rig)
{
	struct ibv_sge into = { (uintptr_t)rig->area->note, PAGE, rig->mr->lkey };
	struct ibv_sge data = { (uintptr_t)rig->area->out, PAGE, rig->mr->lkey };
	struct ibv_sge word = { (uintptr_t)rig->area->said, sizeof(uint64_t), rig->mr->lkey };
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = 1, .sg_list = &into, .num_sge = 1 };
	struct ibv_send_wr *bad, send = {
		.wr_id = 3, .sg_list = &word, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, write = {
		.wr_id = 2, .next = &send, .sg_list = &data, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = rig->peer.addr, .rkey = rig->peer.rkey },
	};
	unsigned int i;

	rig->round++;
	for (i = 0; i < WORDS; i++) {
		rig->area->out[i] = rig->round << 32 | i;
		rig->area->in[i] = 0;
	}
	rig->area->said[0] = rig->round;
	if (ibv_post_recv(rig->qp, &recv, &bad_recv))
		die("receive");
	tell(rig);	/* both are ready */
	if (ibv_post_send(rig->qp, &write, &bad))
		die("post");
	expect(rig);
	if (rig->area->note[0] != rig->round)
		wrong("note", rig->area->note[0]);
	for (i = 0; i < WORDS; i++)
		if (rig->area->in[i] != (rig->round << 32 | i))
			wrong("word", rig->area->in[i]);
}

static bool extra(struct rig *rig, int importers)
{
	rig->extra_buffer = buffer_new(importers);
	rig->extra = ibv_reg_dmabuf_mr(rig->pd, 0, SIZE, 0, rig->extra_buffer, ACCESS);
	if (!rig->extra)
		close(rig->extra_buffer);
	return rig->extra != NULL;
}

static void drop(struct rig *rig)
{
	if (ibv_dereg_mr(rig->extra))
		die("dereg");
	close(rig->extra_buffer);
}

static void pinned(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	unsigned int kib = 0;
	char line[200];

	while (status && fgets(line, sizeof(line), status) &&
	       sscanf(line, "VmPin: %u", &kib) != 1)
		;
	if (status)
		fclose(status);
	printf("%u\n", kib);
	fflush(stdout);
}

static void order(struct rig *rig, const char *line)
{
	bool done = true;
	int n;

	if (!strncmp(line, "pinned", 6)) {
		pinned();
		return;
	}
	if (sscanf(line, "reg %d", &n) == 1)
		reg_new(rig, n);
	else if (!strncmp(line, "udmabuf", 7))
		reg_udmabuf(rig);
	else if (!strncmp(line, "rights", 6))
		rights(rig);
	else if (!strncmp(line, "plain", 5))
		reg_plain(rig, ACCESS);
	else if (!strncmp(line, "weak", 4))
		reg_plain(rig, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	else if (!strncmp(line, "round", 5))
		round_trip(rig);
	else if (!strncmp(line, "move", 4))
		buffer_move(rig);
	else if (!strncmp(line, "change", 6))
		change(rig);
	else if (!strncmp(line, "drop", 4))
		drop(rig);
	else if (sscanf(line, "extra %d", &n) == 1)
		done = extra(rig, n);
	else
		wrong("order", 0);
	say(done ? "ok" : "no");
}

int main(int argc, char **argv)
{
	static struct rig rig = { .buffer = -1 };
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_context *context;
	char line[80];
	int gid_index;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: dmabuf_edge DEVICE [SERVER]\n");
		return 2;
	}
	context = open_device(argv[1]);
	rig.pd = ibv_alloc_pd(context);
	rig.cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = rig.cq;
	rig.qp = rig.pd && rig.cq ? ibv_create_qp(rig.pd, &attr) : NULL;
	if (!rig.qp)
		die("set-up");
	gid_index = find_gid(context, &rig.gid);
	rig.fd = meet(argv[2], PORT);
	reg_plain(&rig, ACCESS);
	if (getenv("EXTRA_FIRST"))
		extra(&rig, 1);
	connect_qp(rig.qp, gid_index, &rig.peer);
	tell(&rig);
	say("connected");
	while (fgets(line, sizeof(line), stdin) && strncmp(line, "end", 3))
		order(&rig, line);
	if (ibv_destroy_qp(rig.qp))
		die("destroy");
	forget(&rig);
	if (ibv_destroy_cq(rig.cq) || ibv_dealloc_pd(rig.pd))
		die("destroy");
	say("closed");
	return 0;
}
