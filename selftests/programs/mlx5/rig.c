// SPDX-License-Identifier: GPL-2.0
/* Devices, queue pairs, rings and completions of mlx5_assume. */
#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "rig.h"

#define CHUNK		16
#define END_KEY		0x100	/* ends a scatter list */
#define PATIENCE	60	/* seconds, for what has to come */

/* What the device reads was written before. */
#if defined(__x86_64__)
#define to_device()	__asm__ volatile("sfence" ::: "memory")
#elif defined(__aarch64__)
#define to_device()	__asm__ volatile("dsb st" ::: "memory")
#else
#define to_device()	__sync_synchronize()
#endif

void bail(const char *format, ...)
{
	va_list args;

	printf("Bail out! ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf(": %s\n", strerror(errno));
	exit(2);
}

bool patience(uint64_t *since)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!*since)
		*since = now.tv_sec;
	return now.tv_sec - *since < PATIENCE;
}

static void choose_gid(struct port *port)
{
	struct ibv_gid_entry entry;
	int i, best = -1;

	for (i = 0; i < 64 && best < 0; i++)
		if (!ibv_query_gid_ex(port->ctx, port->num, i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(entry.gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12))
			best = i;
	if (best < 0) {
		errno = ENOENT;
		bail("%s has no RoCE v2 GID of an IPv4 address; name one", port->name);
	}
	port->gid_index = best;
}

void port_open(struct port *port)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr attr;
	int i;

	errno = ENODEV;
	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), port->name) &&
		    mlx5dv_is_supported(list[i]))
			port->ctx = ibv_open_device(list[i]);
	if (!port->ctx)
		bail("'%s' is not an mlx5 device", port->name);
	ibv_free_device_list(list);
	if (ibv_query_port(port->ctx, port->num, &attr))
		bail("%s: port %d", port->name, port->num);
	if (attr.state != IBV_PORT_ACTIVE) {
		errno = ENETDOWN;
		bail("%s: port %d", port->name, port->num);
	}
	port->ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	port->lid = attr.lid;
	if (port->ethernet && port->gid_index < 0)
		choose_gid(port);
	if (port->ethernet && ibv_query_gid(port->ctx, port->num, port->gid_index, &port->gid))
		bail("%s: GID %d", port->name, port->gid_index);
	port->pd = ibv_alloc_pd(port->ctx);
	if (!port->pd)
		bail("ibv_alloc_pd");
	if (posix_memalign((void **)&port->mem, sysconf(_SC_PAGESIZE), MEMORY))
		bail("memory");
	memset(port->mem, 0, MEMORY);
	port->mr = ibv_reg_mr(port->pd, port->mem, MEMORY, IBV_ACCESS_LOCAL_WRITE |
			      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_REMOTE_ATOMIC);
	if (!port->mr)
		bail("ibv_reg_mr");
}

static void cq_make(struct cq *cq, struct port *port, const struct setup *setup)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 4 * DEPTH };
	struct mlx5dv_cq_init_attr dv = {
		.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
		.cqe_size = setup->cqe_size ?: 64,
	};
	struct mlx5dv_obj obj = { .cq.out = &cq->dv };
	struct ibv_cq_ex *made = mlx5dv_create_cq(port->ctx, &attr, &dv);

	if (!made)
		bail("mlx5dv_create_cq");
	cq->cq = ibv_cq_ex_to_cq(made);
	cq->taken = 0;
	memset(&cq->dv, 0, sizeof(cq->dv));
	obj.cq.in = cq->cq;
	if (!setup->plain && mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ))
		bail("mlx5dv_init_obj of a CQ");
}

void end_make(struct end *end, struct port *port, const struct setup *setup)
{
	static uint32_t psn = 0xfff800;		/* soon at its end */
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = setup->signal_all,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 2,
			 .max_recv_sge = 2, .max_inline_data = INLINE },
	};
	struct mlx5dv_obj obj = { .qp.out = &end->dv };

	memset(end, 0, sizeof(*end));
	end->port = port;
	cq_make(&end->send, port, setup);
	cq_make(&end->recv, port, setup);
	attr.send_cq = end->send.cq;
	attr.recv_cq = end->recv.cq;
	end->qp = ibv_create_qp(port->pd, &attr);
	if (!end->qp)
		bail("ibv_create_qp");
	end->first_psn = psn;
	psn = (psn + 0x10000) & PSN_MASK;
	obj.qp.in = end->qp;
	if (!setup->plain && mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP))
		bail("mlx5dv_init_obj of a QP");
}

static void end_connect(struct end *end, const struct end *peer, const struct setup *setup)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = end->port->num,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};

	if (ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
			  IBV_QP_ACCESS_FLAGS))
		bail("to INIT");
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = peer->qp->qp_num;
	attr.rq_psn = peer->first_psn;
	attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = 12;
	attr.ah_attr.port_num = end->port->num;
	attr.ah_attr.dlid = peer->port->lid;
	attr.ah_attr.is_global = end->port->ethernet;
	attr.ah_attr.grh.dgid = peer->port->gid;
	attr.ah_attr.grh.sgid_index = end->port->ethernet ? end->port->gid_index : 0;
	attr.ah_attr.grh.hop_limit = 64;
	if (ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			  IBV_QP_MIN_RNR_TIMER))
		bail("to RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = setup->timeout ?: 18;
	attr.retry_cnt = setup->retries ?: 7;
	attr.rnr_retry = setup->rnr_retries ?: 7;
	attr.sq_psn = end->first_psn;
	attr.max_rd_atomic = 4;
	if (ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		bail("to RTS");
}

void pair_connect(struct pair *pair, const struct setup *setup)
{
	end_connect(&pair->a, &pair->b, setup);
	end_connect(&pair->b, &pair->a, setup);
}

void pair_make(struct pair *pair, struct port *a, struct port *b, const struct setup *setup)
{
	end_make(&pair->a, a, setup);
	end_make(&pair->b, b, setup);
	pair_connect(pair, setup);
}

void end_end(struct end *end)
{
	if (ibv_destroy_qp(end->qp) || ibv_destroy_cq(end->send.cq) ||
	    ibv_destroy_cq(end->recv.cq))
		bail("destroying a QP and its CQs");
}

void pair_end(struct pair *pair)
{
	end_end(&pair->a);
	end_end(&pair->b);
}

uint16_t end_wqe(struct end *end, uint8_t opcode, uint8_t opmod, uint8_t flags,
		 const void *segments, unsigned int chunks)
{
	struct mlx5_wqe_ctrl_seg ctrl = {};
	uint32_t size = end->dv.sq.wqe_cnt * end->dv.sq.stride;
	uint32_t at = end->posted * MLX5_SEND_WQE_BB % size;
	uint16_t index = end->posted;
	unsigned int i;

	mlx5dv_set_ctrl_seg(&ctrl, index, opcode, opmod, end->qp->qp_num, flags, chunks + 1, 0, 0);
	memcpy((uint8_t *)end->dv.sq.buf + at, &ctrl, CHUNK);
	for (i = 0; i < chunks; i++)
		memcpy((uint8_t *)end->dv.sq.buf + (at + (i + 1) * CHUNK) % size,
		       (const uint8_t *)segments + i * CHUNK, CHUNK);
	end->posted += (chunks + 4) / 4;
	end->last = index;
	return index;
}

static void remote(struct mlx5_wqe_raddr_seg *seg, const struct end *peer, size_t to)
{
	seg->raddr = htobe64((uintptr_t)peer->port->mem + to);
	seg->rkey = htobe32(peer->port->mr->rkey);
	seg->reserved = 0;
}

uint16_t end_post(struct end *end, uint8_t opcode, uint8_t flags, size_t from, uint32_t length,
		  const struct end *peer, size_t to)
{
	struct {
		struct mlx5_wqe_raddr_seg raddr;
		struct mlx5_wqe_data_seg data;
	} s;
	bool send = opcode == MLX5_OPCODE_SEND;

	remote(&s.raddr, peer, to);
	mlx5dv_set_data_seg(&s.data, length, end->port->mr->lkey,
			    (uintptr_t)end->port->mem + from);
	return end_wqe(end, opcode, 0, flags, send ? (void *)&s.data : (void *)&s.raddr,
		       !send + !!length);
}

uint16_t end_inline(struct end *end, uint8_t flags, uint32_t length, const struct end *peer,
		    size_t to)
{
	struct {
		struct mlx5_wqe_raddr_seg raddr;
		struct mlx5_wqe_inl_data_seg head;
		uint8_t data[INLINE];
		uint8_t pad[CHUNK];
	} s = {};

	remote(&s.raddr, peer, to);
	s.head.byte_count = htobe32(length | MLX5_INLINE_SEG);
	memcpy(s.data, end->port->mem, length);
	return end_wqe(end, MLX5_OPCODE_RDMA_WRITE, 0, flags, &s,
		       (sizeof(s.raddr) + sizeof(s.head) + length + CHUNK - 1) / CHUNK);
}

uint16_t end_recv(struct end *end, size_t at, uint32_t length)
{
	struct mlx5_wqe_data_seg *seg = (void *)((uint8_t *)end->dv.rq.buf +
		end->recvs % end->dv.rq.wqe_cnt * end->dv.rq.stride);

	mlx5dv_set_data_seg(seg, length, end->port->mr->lkey, (uintptr_t)end->port->mem + at);
	if (end->dv.rq.stride > CHUNK)
		mlx5dv_set_data_seg(seg + 1, 0, END_KEY, 0);
	to_device();
	end->dv.dbrec[MLX5_RCV_DBR] = htobe32((uint16_t)(end->recvs + 1));
	return end->recvs++;
}

/* All that is in the ring; the register gets the beginning of the newest WQE. */
void end_ring(struct end *end)
{
	uint8_t *reg = (uint8_t *)end->dv.bf.reg + end->doorbell;
	uint64_t head;

	memcpy(&head, (uint8_t *)end->dv.sq.buf +
	       end->last % end->dv.sq.wqe_cnt * MLX5_SEND_WQE_BB, sizeof(head));
	to_device();
	end->dv.dbrec[MLX5_SND_DBR] = htobe32(end->posted);
	to_device();
	*(volatile uint64_t *)reg = head;
	to_device();
	end->doorbell ^= end->dv.bf.size;
}

void end_state(struct end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	if (ibv_modify_qp(end->qp, &attr, IBV_QP_STATE))
		bail("to state %d", state);
	if (state == IBV_QPS_RESET)
		end->posted = end->recvs = 0;
}

static void query(struct end *end, struct ibv_qp_attr *attr)
{
	struct ibv_qp_init_attr init;

	if (ibv_query_qp(end->qp, attr, IBV_QP_STATE | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN, &init))
		bail("ibv_query_qp");
}

bool end_is_broken(struct end *end)
{
	struct ibv_qp_attr attr;

	query(end, &attr);
	return attr.qp_state == IBV_QPS_ERR;
}

uint32_t end_expects(struct end *end, const struct end *peer)
{
	struct ibv_qp_attr attr;

	query(end, &attr);
	return (attr.rq_psn - peer->first_psn) & PSN_MASK;
}

uint32_t end_sent(struct end *end)
{
	struct ibv_qp_attr attr;

	query(end, &attr);
	return (attr.sq_psn - end->first_psn) & PSN_MASK;
}

static const uint8_t *entry_at(const struct cq *cq, uint32_t index)
{
	return (uint8_t *)cq->dv.buf + (size_t)(index & (cq->dv.cqe_cnt - 1)) * cq->dv.cqe_size;
}

static const struct mlx5_cqe64 *written(const struct cq *cq, uint32_t index)
{
	const struct mlx5_cqe64 *cqe = (const void *)(entry_at(cq, index) + cq->dv.cqe_size - 64);
	uint8_t own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);

	return own >> 4 != MLX5_CQE_INVALID &&
	       (own & MLX5_CQE_OWNER_MASK) == !!(index & cq->dv.cqe_cnt) ? cqe : NULL;
}

/* Entries that the device has written and nobody has taken. */
unsigned int cq_ready(const struct cq *cq)
{
	unsigned int n = 0;

	while (n < cq->dv.cqe_cnt && written(cq, cq->taken + n))
		n++;
	return n;
}

bool cq_take(struct cq *cq, struct cqe *cqe)
{
	const struct mlx5_cqe64 *raw = written(cq, cq->taken);
	const struct mlx5_err_cqe *err = (const void *)raw;

	if (!raw)
		return false;
	memset(cqe, 0, sizeof(*cqe));
	cqe->opcode = raw->op_own >> 4;
	cqe->format = raw->op_own >> 2 & 3;
	cqe->counter = be16toh(raw->wqe_counter);
	cqe->entry = entry_at(cq, cq->taken);
	if (cqe->opcode == MLX5_CQE_REQ_ERR || cqe->opcode == MLX5_CQE_RESP_ERR)
		cqe->syndrome = err->syndrome;
	else
		cqe->bytes = be32toh(raw->byte_cnt);
	cq->taken++;
	cq->dv.dbrec[0] = htobe32(cq->taken & 0xffffff);
	return true;
}

bool cq_wait(struct cq *cq, struct cqe *cqe)
{
	uint64_t since = 0;

	while (!cq_take(cq, cqe))
		if (!patience(&since))
			return false;
	return true;
}
