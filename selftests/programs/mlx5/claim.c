// SPDX-License-Identifier: GPL-2.0
/*
 * Registers a QP of an mlx5 device with the module by hand, and says what is not true.
 *
 * usage: mlx5_claim DEVICE [SERVER]
 * First tries addresses that have to be refused, then registers one with words of its
 * own. Once the two ends are connected, each posts to the other for as long as stdin is open,
 * while a thread scribbles over all words that the kernel reads, and says of its rings that they
 * begin anew. Whatever becomes of the
 * QP is right. Ends with 1 if something was accepted or refused that should not.
 */
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "../abuse/abuse.h"
#include "../edge/edge.h"

#define PORT	18536
#define DEPTH	64
#define MEMORY	8192
#define KERNEL_ADDRESS	0xffff888000001000ULL

/* What is registered, beside the rings. */
struct words {
	uint64_t anchor;
	uint32_t cq_flag, qp_flag, sq_tail, rq_tail;
	uint32_t heads[4096];
};

struct rig {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct mlx5dv_qp dvqp;
	struct mlx5dv_cq dvcq;
	uint8_t memory[MEMORY];
	struct words words;
	struct end peer;
	uint32_t id;
	volatile uint32_t posted;
	volatile bool over;
};

static void create(struct rig *r, const char *device)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct mlx5dv_obj obj;

	r->ctx = open_device(device);
	r->pd = ibv_alloc_pd(r->ctx);
	r->mr = ibv_reg_mr(r->pd, r->memory, MEMORY, IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_REMOTE_WRITE);
	r->cq = ibv_create_cq(r->ctx, 4 * DEPTH, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = r->cq;
	r->qp = r->mr && r->cq ? ibv_create_qp(r->pd, &attr) : NULL;
	if (!r->qp)
		die("objects");
	obj.qp.in = r->qp;
	obj.qp.out = &r->dvqp;
	obj.cq.in = r->cq;
	obj.cq.out = &r->dvcq;
	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ))
		die("mlx5dv_init_obj");
}

static struct shift_abi_reg_qp claim(struct rig *r)
{
	return (struct shift_abi_reg_qp) {
		.abi_version = SHIFT_ABI_VERSION,
		.provider = SHIFT_PROVIDER_MLX5,
		.cmd_fd = r->ctx->cmd_fd,
		.handle = r->qp->handle,
		.sq = { .addr = (uintptr_t)r->dvqp.sq.buf,
			.len = r->dvqp.sq.wqe_cnt * r->dvqp.sq.stride },
		.rq = { .addr = (uintptr_t)r->dvqp.rq.buf,
			.len = r->dvqp.rq.wqe_cnt * r->dvqp.rq.stride },
		.flag_addr = (uintptr_t)&r->words.qp_flag,
		.db_addr = (uintptr_t)r->dvqp.dbrec,
		.rq_slot = r->dvqp.rq.stride,
		.anchor_addr = (uintptr_t)&r->words.anchor,
		.sq_tail_addr = (uintptr_t)&r->words.sq_tail,
		.sq_heads_addr = (uintptr_t)r->words.heads,
		.rq_tail_addr = (uintptr_t)&r->words.rq_tail,
	};
}

#define WITH(field, value, what) do {					\
	struct shift_abi_reg_qp reg = claim(r);				\
	reg.field = (value);						\
	refused(fd, SHIFT_IOC_REGISTER_QP, &reg, 0, what);		\
} while (0)

#define REBASE(what_step, err, what) do {				\
	struct shift_abi_rebase base = { .id = r->id, .step = (what_step) };	\
	refused(fd, SHIFT_IOC_REBASE, &base, err, what);		\
} while (0)

static void register_by_hand(struct rig *r, int fd)
{
	struct shift_abi_reg_cq cq = {
		.abi_version = SHIFT_ABI_VERSION,
		.provider = SHIFT_PROVIDER_MLX5,
		.cmd_fd = r->ctx->cmd_fd,
		.handle = r->cq->handle,
		.ring = { .addr = (uintptr_t)r->dvcq.buf,
			  .len = r->dvcq.cqe_cnt * r->dvcq.cqe_size },
		.flag_addr = (uintptr_t)&r->words.cq_flag,
		.stride = r->dvcq.cqe_size,
		.db_addr = (uintptr_t)r->dvcq.dbrec,
	};
	uint8_t *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	void *fixed = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t hole = (uintptr_t)map + 4096;
	struct shift_abi_reg_qp qp;

	munmap(map + 4096, 4096);
	allowed(fd, SHIFT_IOC_REGISTER_CQ, &cq, "CQ");
	WITH(sq_tail_addr, 0, "no tail");
	WITH(sq_tail_addr, (uintptr_t)&r->words.sq_tail + 2, "tail unaligned");
	WITH(sq_tail_addr, KERNEL_ADDRESS, "tail in the kernel");
	WITH(sq_tail_addr, hole, "tail unmapped");
	WITH(sq_tail_addr, (uintptr_t)fixed, "tail in read-only memory");
	WITH(sq_heads_addr, 0, "no numbers");
	WITH(sq_heads_addr, (uintptr_t)r->words.heads + 1, "numbers unaligned");
	WITH(sq_heads_addr, KERNEL_ADDRESS, "numbers in the kernel");
	WITH(sq_heads_addr, ~3ULL, "numbers at the end of the address space");
	WITH(sq_heads_addr, hole, "numbers unmapped");
	WITH(sq_heads_addr, hole - 4, "numbers of which one is mapped");
	WITH(sq_heads_addr, (uintptr_t)fixed, "numbers in read-only memory");
	WITH(rq_tail_addr, 0, "no receive tail");
	WITH(rq_tail_addr, (uintptr_t)&r->words.rq_tail + 1, "receive tail unaligned");
	WITH(rq_tail_addr, KERNEL_ADDRESS, "receive tail in the kernel");
	WITH(rq_tail_addr, hole, "receive tail unmapped");
	qp = claim(r);
	memset(&qp.rq, 0, sizeof(qp.rq));
	qp.rq_slot = 0;
	refused(fd, SHIFT_IOC_REGISTER_QP, &qp, 0, "receive tail without receives");
	WITH(sq.len, 64 * 65536, "more blocks than there may be");
	qp = claim(r);
	qp.create_flags = SHIFT_QP_CREATE_REBASE;
	allowed(fd, SHIFT_IOC_REGISTER_QP, &qp, "QP");
	r->id = qp.id;
	REBASE(SHIFT_REBASE_BEGIN, EAGAIN, "REBASE of one that is not away");
	REBASE(SHIFT_REBASE_DONE, EINVAL, "REBASE that had not begun");
	REBASE(SHIFT_REBASE_LATER, EAGAIN, "REBASE that nobody waits for");
	REBASE(99, EINVAL, "REBASE of no step");
}

/* Any step at any time, or none for long: it begins, and is not done, or done without that */
static void rebase(struct rig *r, int fd, unsigned int *seed)
{
	struct shift_abi_rebase base = {
		.id = r->id, .step = rand_r(seed) % 4, .sq_number = rand_r(seed),
		.reserved = !(rand_r(seed) % 4),
	};

	ioctl(fd, SHIFT_IOC_REBASE, &base);
}

static void *scribble(void *arg)
{
	struct rig *r = arg;
	unsigned int seed = 7;

	while (!r->over) {
		uint32_t i, near = r->posted - rand_r(&seed) % 8 + 4;
		uint64_t index = be32toh(r->dvqp.dbrec[MLX5_SND_DBR]) & 0xffff;

		r->words.sq_tail = rand_r(&seed) % 8 ? near : (uint32_t)rand_r(&seed) << 1;
		r->words.rq_tail = rand_r(&seed) % 8 ? near : (uint32_t)rand_r(&seed) << 1;
		/* now and then as they may be: a WQE in each block, from some number on */
		for (i = 0; i < 4096; i++)
			r->words.heads[i] = near + (rand_r(&seed) % 64 ? i : 7 * i);
		if (rand_r(&seed) % 4)
			index += rand_r(&seed) % 3;
		*(volatile uint64_t *)&r->words.anchor =
			(uint64_t)(near + rand_r(&seed) % 3) << 16 | (index & 0xffff);
	}
	return NULL;
}

static void post(struct rig *r)
{
	struct ibv_sge sge = { (uintptr_t)r->memory, 100, r->mr->lkey };
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { r->peer.addr, r->peer.rkey },
	};
	struct ibv_wc wc;

	if (!ibv_post_send(r->qp, &wr, &bad))
		r->posted++;
	ibv_post_recv(r->qp, &recv, &bad_recv);
	while (ibv_poll_cq(r->cq, 1, &wc) > 0)
		;
}

int main(int argc, char **argv)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	static struct rig r;
	pthread_t thread;
	struct end mine;
	unsigned int seed = 11;
	int fd, gid_index;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: mlx5_claim DEVICE [SERVER]\n");
		return 2;
	}
	fd = open_shift();
	create(&r, argv[1]);
	register_by_hand(&r, fd);
	gid_index = find_gid(r.ctx, &mine.gid);
	mine.qpn = r.qp->qp_num;
	mine.rkey = r.mr->rkey;
	mine.addr = (uintptr_t)r.memory;
	exchange(meet(argv[2], PORT), &mine, &r.peer, sizeof(mine));
	connect_qp(r.qp, gid_index, &r.peer);
	say("connected");
	/* the provider tells of each error completion */
	if (!freopen("/dev/null", "w", stderr) ||
	    pthread_create(&thread, NULL, scribble, &r))
		return 2;
	while (!poll(&in, 1, 1)) {
		post(&r);
		rebase(&r, fd, &seed);
	}
	r.over = true;
	pthread_join(thread, NULL);
	if (ibv_destroy_qp(r.qp) || ibv_destroy_cq(r.cq))
		die("destroy");
	printf("%d bad\n", failures);
	return failures != 0;
}
