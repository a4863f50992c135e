// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Call the fast paths of a built rxe provider on rings in plain memory, so
 * that callgrind can count their instructions: no device and no kernel module.
 * Built by rdma-core/cost once for each variant, against its own rxe.h.
 *
 * usage: cost LIBRXE FUNCTION OFFSET LOOPS
 */
#define _GNU_SOURCE
#include <config.h>
#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "rxe.h"
#include "rxe_queue.h"

#define RING_LOG2	8
#define ELEM_LOG2	9

static struct rxe_queue_buf *ring_new(void)
{
	struct rxe_queue_buf *q;

	q = aligned_alloc(4096, 4096 + (1UL << (RING_LOG2 + ELEM_LOG2)));
	if (!q)
		err(1, "ring");
	memset(q, 0, 4096 + (1UL << (RING_LOG2 + ELEM_LOG2)));
	q->log2_elem_size = ELEM_LOG2;
	q->index_mask = (1U << RING_LOG2) - 1;
	return q;
}

int main(int argc, char **argv)
{
	static struct rxe_context ctx;
	static struct rxe_cq cq;
	static struct rxe_qp qp;
	struct ibv_sge sge = { .addr = 4096, .length = 8 };
	struct ibv_send_wr swr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
	};
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad_swr;
	struct ibv_recv_wr *bad_rwr;
	struct ibv_wc wc[16];
	struct link_map *map;
	const char *name;
	void *lib, *fn;
	int i, loops, ret = 0;

	if (argc != 5)
		errx(2, "usage: cost LIBRXE FUNCTION OFFSET LOOPS");

	lib = dlopen(argv[1], RTLD_NOW);
	if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map))
		errx(1, "%s", dlerror());
	name = argv[2];
	fn = (void *)(map->l_addr + strtoul(argv[3], NULL, 16));
	loops = atoi(argv[4]);

	ctx.ibv_ctx.context.cmd_fd = open("/dev/null", O_RDWR);
	qp.vqp.qp.context = &ctx.ibv_ctx.context;
	qp.vqp.qp.qp_type = IBV_QPT_RC;
	qp.vqp.qp.state = IBV_QPS_RTS;
	qp.sq.queue = ring_new();
	qp.rq.queue = ring_new();
	qp.sq.max_sge = 1;
	qp.rq.max_sge = 1;
	cq.queue = ring_new();
	pthread_spin_init(&qp.sq.lock, 0);
	pthread_spin_init(&qp.rq.lock, 0);
	pthread_spin_init(&cq.lock, 0);

	for (i = 0; i < loops && !ret; i++) {
		if (!strcmp(name, "rxe_post_send")) {
			ret = ((int (*)(void *, void *, void *))fn)(&qp.vqp.qp, &swr, &bad_swr);
			qp.sq.queue->consumer_index = qp.sq.queue->producer_index;
		} else if (!strcmp(name, "rxe_post_recv")) {
			ret = ((int (*)(void *, void *, void *))fn)(&qp.vqp.qp, &rwr, &bad_rwr);
			qp.rq.queue->consumer_index = qp.rq.queue->producer_index;
		} else if (!strcmp(name, "wr_start")) {
			((void (*)(void *))fn)(&qp.vqp.qp_ex);
			pthread_spin_unlock(&qp.sq.lock);
		} else if (!strcmp(name, "wr_rdma_write")) {
			((void (*)(void *, uint32_t, uint64_t))fn)(&qp.vqp.qp_ex, 1, 4096);
			qp.sq.queue->consumer_index = qp.cur_index;
		} else if (!strcmp(name, "rxe_poll_cq")) {
			/* one hit, then full: an empty look is another function's cost */
			cq.queue->producer_index = (cq.queue->consumer_index + 1) & 255;
			ret = ((int (*)(void *, int, void *))fn)(&cq.vcq.cq, 1, wc) != 1;
		} else if (!strcmp(name, "rxe_poll_cq:16")) {
			cq.queue->producer_index = (cq.queue->consumer_index + 16) & 255;
			ret = ((int (*)(void *, int, void *))fn)(&cq.vcq.cq, 16, wc) != 16;
		} else if (!strcmp(name, "rxe_poll_cq:0")) {
			ret = ((int (*)(void *, int, void *))fn)(&cq.vcq.cq, 16, wc) != 0;
		} else if (!strcmp(name, "cq_start_poll")) {
			cq.queue->producer_index = (cq.queue->consumer_index + 1) & 255;
			ret = ((int (*)(void *))fn)(&cq.vcq.cq_ex);
			pthread_spin_unlock(&cq.lock);
		} else if (!strcmp(name, "cq_next_poll")) {
			cq.queue->producer_index = (cq.cur_index + 2) & 255;
			ret = ((int (*)(void *))fn)(&cq.vcq.cq_ex);
		} else {
			errx(2, "unknown function %s", name);
		}
	}

	if (ret)
		errx(1, "%s returned %d", name, ret);
	return 0;
}
