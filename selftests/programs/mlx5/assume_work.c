// SPDX-License-Identifier: GPL-2.0
/* What is assumed of a device at work: PSNs, indices, formats. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "assume.h"

#define HERE	4096	/* where something is to arrive */
#define NONE	0xa5	/* what was there before */

static const char *with_pair(const struct setup *setup, const char *(*test)(struct pair *))
{
	struct pair pair;
	const char *why;

	make(&pair, setup);
	why = test(&pair);
	pair_end(&pair);
	return why;
}

static const char *completes(struct end *end)
{
	struct cqe cqe;

	end_ring(end);
	if (!cq_wait(&end->send, &cqe))
		return "no completion";
	return cqe.syndrome ? say("syndrome 0x%x", cqe.syndrome) : NULL;
}

/* As the query tells it of a QP at work, and of one in ERR. */
static const char *expects(struct pair *pair, uint32_t psns)
{
	uint32_t live = end_expects(&pair->b, &pair->a), sent = end_sent(&pair->a);

	end_state(&pair->b, IBV_QPS_ERR);
	if (end_expects(&pair->b, &pair->a) != psns)
		return say("%u PSNs, not %u", end_expects(&pair->b, &pair->a), psns);
	if (live != psns)
		return say("%u PSNs in ERR, and %u before", psns, live);
	if (sent != psns)
		printf("# %u PSNs, and the sender counts %u: nothing relies on that\n", psns, sent);
	return NULL;
}

static void post_atomic(struct end *end, uint8_t opcode, const struct end *peer)
{
	struct {
		struct mlx5_wqe_raddr_seg raddr;
		struct mlx5_wqe_atomic_seg atomic;
		struct mlx5_wqe_data_seg data;
	} s = {
		.raddr = { .raddr = htobe64((uintptr_t)peer->port->mem),
			   .rkey = htobe32(peer->port->mr->rkey) },
		.atomic.swap_add = htobe64(1),
	};

	mlx5dv_set_data_seg(&s.data, 8, end->port->mr->lkey, (uintptr_t)end->port->mem + HERE);
	end_wqe(end, opcode, 0, SIGNALED, &s, sizeof(s) / 16);
}

static const struct {
	const char *name;
	uint8_t opcode;
	uint32_t bytes, psns;
} requests[] = {
	{ "WRITE", MLX5_OPCODE_RDMA_WRITE, 0, 1 },
	{ "WRITE", MLX5_OPCODE_RDMA_WRITE, 1, 1 },
	{ "WRITE", MLX5_OPCODE_RDMA_WRITE, MTU, 1 },
	{ "WRITE", MLX5_OPCODE_RDMA_WRITE, MTU + 1, 2 },
	{ "WRITE", MLX5_OPCODE_RDMA_WRITE, 5000, 5 },
	{ "WRITE_WITH_IMM", MLX5_OPCODE_RDMA_WRITE_IMM, 0, 1 },
	{ "WRITE_WITH_IMM", MLX5_OPCODE_RDMA_WRITE_IMM, 3 * MTU, 3 },
	{ "SEND", MLX5_OPCODE_SEND, 0, 1 },
	{ "SEND", MLX5_OPCODE_SEND, MTU, 1 },
	{ "SEND", MLX5_OPCODE_SEND, MTU + 1, 2 },
	{ "READ", MLX5_OPCODE_RDMA_READ, 0, 1 },
	{ "READ", MLX5_OPCODE_RDMA_READ, 1, 1 },
	{ "READ", MLX5_OPCODE_RDMA_READ, MTU, 1 },
	{ "READ", MLX5_OPCODE_RDMA_READ, MTU + 1, 2 },
	{ "READ", MLX5_OPCODE_RDMA_READ, 5000, 5 },
	{ "COMPARE_AND_SWAP", MLX5_OPCODE_ATOMIC_CS, 8, 1 },
	{ "FETCH_AND_ADD", MLX5_OPCODE_ATOMIC_FA, 8, 1 },
};

static const char *psns_of(struct pair *pair, unsigned int i)
{
	uint8_t opcode = requests[i].opcode;
	const char *why;

	end_recv(&pair->b, 0, 64 << 10);
	if (opcode == MLX5_OPCODE_ATOMIC_CS || opcode == MLX5_OPCODE_ATOMIC_FA)
		post_atomic(&pair->a, opcode, &pair->b);
	else
		end_post(&pair->a, opcode, SIGNALED, 0, requests[i].bytes, &pair->b, 0);
	why = completes(&pair->a);
	return why ?: expects(pair, requests[i].psns);
}

const char *assume_psns(void)
{
	struct pair pair;
	const char *why = NULL;
	unsigned int i;

	for (i = 0; i < sizeof(requests) / sizeof(requests[0]) && !why; i++) {
		make(&pair, &(struct setup){});
		why = psns_of(&pair, i);
		if (why)
			printf("# %s of %u bytes:\n", requests[i].name, requests[i].bytes);
		pair_end(&pair);
	}
	return why;
}

static const char *nop(struct pair *pair)
{
	const char *why;

	end_wqe(&pair->a, MLX5_OPCODE_NOP, 0, SIGNALED, NULL, 0);
	why = completes(&pair->a);
	if (why)
		return why;
	end_post(&pair->a, MLX5_OPCODE_RDMA_WRITE, SIGNALED, 0, 8, &pair->b, 0);
	why = completes(&pair->a);
	return why ?: expects(pair, 1);
}

const char *assume_nop(void)
{
	return with_pair(&(struct setup){}, nop);
}

/* One after the other, by the library, as only that knows how to write them. */
static const char *bind_and_invalidate(struct pair *pair, struct ibv_mw *mw, struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)pair->a.port->mem, 8, pair->a.port->mr->lkey };
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_send_wr *wrong, wr[3] = {
		{ .opcode = IBV_WR_BIND_MW,
		  .bind_mw = { .mw = mw, .rkey = rkey,
			       .bind_info = { .mr = mr, .addr = (uintptr_t)pair->a.port->mem,
					      .length = 4096,
					      .mw_access_flags = IBV_ACCESS_REMOTE_WRITE } } },
		{ .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey },
		{ .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		  .wr.rdma = { (uintptr_t)pair->b.port->mem, pair->b.port->mr->rkey } },
	};
	uint64_t since = 0;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 3; i++) {
		wr[i].send_flags = IBV_SEND_SIGNALED;
		if (ibv_post_send(pair->a.qp, &wr[i], &wrong))
			return say("request %d cannot be posted", i);
		while (!ibv_poll_cq(pair->a.send.cq, 1, &wc))
			if (!patience(&since))
				return say("request %d has no completion", i);
		if (wc.status)
			return say("request %d: %s", i, ibv_wc_status_str(wc.status));
	}
	return expects(pair, 1);
}

const char *assume_umr(void)
{
	struct ibv_mw *mw = NULL;
	struct ibv_mr *mr = NULL;
	struct pair pair;
	const char *why;

	make(&pair, &(struct setup){ .plain = true });
	mw = ibv_alloc_mw(pair.a.port->pd, IBV_MW_TYPE_2);
	if (mw)
		mr = ibv_reg_mr(pair.a.port->pd, pair.a.port->mem, 4096, IBV_ACCESS_LOCAL_WRITE |
				IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
	why = mr ? bind_and_invalidate(&pair, mw, mr) :
		   say("SKIP the device has no memory windows: %s", strerror(errno));
	pair_end(&pair);
	if (mr)
		ibv_dereg_mr(mr);
	if (mw)
		ibv_dealloc_mw(mw);
	return why;
}

static const char *counters(struct pair *pair)
{
	unsigned int i, n, blocks = 0, recvs = 0, size = pair->b.dv.rq.wqe_cnt;
	uint16_t index[32];
	struct cqe cqe;

	/* indices go on beyond the ring, and round at 2^16 */
	while (blocks < 65536 + 1000) {
		uint16_t before = pair->a.posted;

		for (i = 0; i < 32; i++)
			index[i] = end_inline(&pair->a, SIGNALED, i % 8 ? INLINE - i : i,
					      &pair->b, 0);
		end_ring(&pair->a);
		for (i = 0; i < 32; i++)
			if (!cq_wait(&pair->a.send, &cqe) || cqe.syndrome ||
			    cqe.counter != index[i])
				return say("a send of index %u completes as %u, syndrome 0x%x",
					   index[i], cqe.counter, cqe.syndrome);
		blocks += (uint16_t)(pair->a.posted - before);
	}
	while (recvs < 2 * size + 5) {
		for (n = 0; n < 32; n++)
			index[n] = end_recv(&pair->b, 0, 64);
		for (n = 0; n < 32; n++)
			end_post(&pair->a, MLX5_OPCODE_SEND, n == 31 ? SIGNALED : 0, 0, 8,
				 &pair->b, 0);
		if (completes(&pair->a))
			return "SENDs fail";
		for (n = 0; n < 32; n++, recvs++)
			if (!cq_wait(&pair->b.recv, &cqe) || cqe.syndrome ||
			    cqe.counter != index[n])
				return say("a receive of index %u completes as %u, syndrome 0x%x",
					   index[n], cqe.counter, cqe.syndrome);
	}
	return NULL;
}

const char *assume_counters(void)
{
	return with_pair(&(struct setup){}, counters);
}

static const char *post_length(struct pair *pair, uint32_t length, uint32_t lkey)
{
	struct {
		struct mlx5_wqe_raddr_seg raddr;
		struct mlx5_wqe_data_seg data;
	} s = {
		.raddr = { .raddr = htobe64((uintptr_t)pair->b.port->mem + HERE),
			   .rkey = htobe32(pair->b.port->mr->rkey) },
	};

	memset(pair->a.port->mem, 0, HERE);
	memset(pair->b.port->mem + HERE, NONE, HERE);
	mlx5dv_set_data_seg(&s.data, length, lkey, (uintptr_t)pair->a.port->mem);
	end_wqe(&pair->a, MLX5_OPCODE_RDMA_WRITE, 0, SIGNALED, &s, sizeof(s) / 16);
	return completes(&pair->a);
}

/* A pointer to 2 GiB, of memory of which 4 KiB are registered. */
static const char *length_0(struct pair *pair)
{
	struct ibv_mr *mr = ibv_reg_mr(pair->a.port->pd, pair->a.port->mem, 4096,
				       IBV_ACCESS_LOCAL_WRITE);
	const char *why;

	if (!mr)
		bail("ibv_reg_mr");
	why = post_length(pair, 0, mr->lkey);
	ibv_dereg_mr(mr);
	if (!why)
		return "a pointer of length 0 is taken for nothing";
	return strncmp(why, "syndrome", 8) ? why : NULL;
}

/* Inline data of no bytes: the rest of the segment is not looked at. */
static const char *length_2_31(struct pair *pair)
{
	const char *why = post_length(pair, MLX5_INLINE_SEG, pair->a.port->mr->lkey);
	size_t i;

	if (why)
		return why;
	for (i = 0; i < HERE; i++)
		if (pair->b.port->mem[HERE + i] != NONE)
			return "an entry of length 2^31 has written something";
	return expects(pair, 1);
}

const char *assume_lengths(void)
{
	const char *why = with_pair(&(struct setup){}, length_0);

	return why ?: with_pair(&(struct setup){}, length_2_31);
}

/* Is @length bytes' data where the module looks for it?  @formats: those that were seen. */
static const char *data_of(const struct cqe *cqe, int cqe_size, const uint8_t *memory,
			   uint32_t length, bool request, unsigned int *formats)
{
	const uint8_t *at = memory;
	uint8_t pattern[64];

	memset(pattern, length, sizeof(pattern));
	*formats |= 1 << cqe->format;
	if (cqe->bytes != length)
		return say("%u bytes, not %u", cqe->bytes, length);
	if (cqe->format == 1 && request && cqe_size == 128) {
		printf("# %u bytes of a READ in format 1: the module refuses them\n", length);
		return NULL;
	}
	if (cqe->format == 1)
		at = cqe->entry + cqe_size - 64;
	else if (cqe->format == 2)
		at = cqe->entry;
	if (cqe->format == 3 || (cqe->format == 2 && cqe_size == 64))
		return say("a completion of %d bytes has format %u", cqe_size, cqe->format);
	if (memcmp(at, pattern, length))
		return say("%u bytes are not where format %u has them, in entries of %d bytes",
			   length, cqe->format, cqe_size);
	return NULL;
}

static const char *data(struct pair *pair, int cqe_size, uint32_t length, unsigned int *formats)
{
	struct port *a = pair->a.port, *b = pair->b.port;
	const char *why;
	struct cqe cqe;

	memset(a->mem, length, 64);
	memset(b->mem, length, 64);
	memset(a->mem + HERE, NONE, 64);
	memset(b->mem + HERE, NONE, 64);
	end_recv(&pair->b, HERE, 64);
	end_post(&pair->a, MLX5_OPCODE_SEND, SIGNALED, 0, length, &pair->b, 0);
	why = completes(&pair->a);
	if (why)
		return why;
	if (!cq_wait(&pair->b.recv, &cqe) || cqe.syndrome)
		return "a receive is not completed";
	why = data_of(&cqe, cqe_size, b->mem + HERE, length, false, formats);
	if (why)
		return why;
	end_post(&pair->a, MLX5_OPCODE_RDMA_READ, SIGNALED, HERE, length, &pair->b, 0);
	end_ring(&pair->a);
	if (!cq_wait(&pair->a.send, &cqe) || cqe.syndrome)
		return "a READ is not completed";
	return data_of(&cqe, cqe_size, a->mem + HERE, length, true, formats);
}

const char *assume_data(void)
{
	static const uint32_t lengths[] = { 1, 16, 32, 33, 48, 64 };
	unsigned int i, formats = 0;
	const char *why = NULL;
	struct pair pair;
	int size;

	for (size = 64; size <= 128 && !why; size *= 2) {
		make(&pair, &(struct setup){ .cqe_size = size, .signal_all = true });
		for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]) && !why; i++)
			why = data(&pair, size, lengths[i], &formats);
		pair_end(&pair);
	}
	if (why)
		return why;
	return formats == 1 ? "SKIP the device puts no data into completions" : NULL;
}

/* @operands: two chunks of COMPARE_AND_SWAP, one of FETCH_AND_ADD. */
static const char *masked(struct pair *pair, uint8_t opcode, const uint64_t *operands,
			  unsigned int chunks, uint64_t before, uint64_t after)
{
	volatile uint64_t *cell = (uint64_t *)pair->b.port->mem;
	struct mlx5_wqe_raddr_seg *raddr;
	uint64_t s[8] = {}, *operand;
	unsigned int i;
	const char *why;

	raddr = (void *)s;
	raddr->raddr = htobe64((uintptr_t)cell);
	raddr->rkey = htobe32(pair->b.port->mr->rkey);
	operand = s + 2;
	for (i = 0; i < 2 * chunks; i++)
		operand[i] = htobe64(operands[i]);
	mlx5dv_set_data_seg((void *)(operand + i), 8, pair->a.port->mr->lkey,
			    (uintptr_t)pair->a.port->mem + HERE);
	*cell = before;
	/* operands of 8 bytes: log2 of that, less 2 */
	end_wqe(&pair->a, opcode, 8 | 1, SIGNALED, s, chunks + 2);
	why = completes(&pair->a);
	if (why)
		return say("SKIP the device refuses them: opcode 0x%x", opcode);
	return *cell == after ? NULL : say("opcode 0x%x makes 0x%llx of 0x%llx", opcode,
					   (unsigned long long)*cell, (unsigned long long)before);
}

static const char *masked_swap(struct pair *pair)
{
	/* swap, compare, and the masks of both */
	static const uint64_t operands[] = { 0xab00, 0x88, 0xff00, 0xff };

	return masked(pair, MLX5_OPCODE_ATOMIC_MASKED_CS, operands, 2, 0x1122334455667788,
		      0x112233445566ab88);
}

static const char *masked_add(struct pair *pair)
{
	/* two fields, by the highest bits of each */
	static const uint64_t operands[] = { 0x0000000200000001, 0x8000000080000000 };

	return masked(pair, MLX5_OPCODE_ATOMIC_MASKED_FA, operands, 1, 0x00000005ffffffff,
		      0x0000000700000000);
}

const char *assume_masked(void)
{
	const char *why = with_pair(&(struct setup){}, masked_swap);

	return why ?: with_pair(&(struct setup){}, masked_add);
}

static const char *producer(struct pair *pair)
{
	uint8_t *target = pair->b.port->mem + HERE;
	const char *why;

	memset(pair->a.port->mem, 0x5a, 64);
	memset(target, NONE, 64);
	end_post(&pair->a, MLX5_OPCODE_RDMA_WRITE, SIGNALED, 0, 64, &pair->b, HERE);
	settle();
	if (cq_ready(&pair->a.send) || target[0] != NONE)
		return "it is executed";
	why = completes(&pair->a);
	if (why)
		return why;
	return target[0] == 0x5a ? NULL : "with its doorbell it is not executed";
}

const char *assume_producer(void)
{
	return with_pair(&(struct setup){}, producer);
}
