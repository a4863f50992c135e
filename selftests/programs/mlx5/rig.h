/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs of mlx5 devices whose rings we write and whose completions we read
 * ourselves: what a device does is seen as it is, without a library in between.
 */
#ifndef MLX5_RIG_H
#define MLX5_RIG_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MTU		1024
#define PSN_MASK	0xffffffu
#define MEMORY		(16u << 20)	/* of each end */
#define DEPTH		128		/* sends, and receives, of a QP */
#define INLINE		600		/* bytes */
#define SIGNALED	MLX5_WQE_CTRL_CQ_UPDATE

struct port {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *mem;
	const char *name;
	uint8_t num;
	int gid_index;		/* -1: choose one */
	bool ethernet;
	union ibv_gid gid;
	uint16_t lid;
};

struct cq {
	struct ibv_cq *cq;
	struct mlx5dv_cq dv;
	uint32_t taken;
};

struct end {
	struct port *port;
	struct cq send, recv;
	struct ibv_qp *qp;
	struct mlx5dv_qp dv;
	uint32_t first_psn;	/* that it sends */
	uint16_t posted;	/* blocks ... */
	uint16_t last;		/* ... the newest WQE begins with this one */
	uint16_t recvs;
	unsigned int doorbell;	/* which of the two halves of the register is next */
};

/* @a is the one that sends in most tests. */
struct pair {
	struct end a, b;
};

/* How a pair is made; what is 0 has a default. */
struct setup {
	int cqe_size;		/* 64 */
	int timeout;		/* 18: a second */
	int retries;		/* 7 */
	int rnr_retries;	/* 7: for ever */
	bool signal_all;
	bool plain;		/* the library's to post and poll */
};

struct cqe {
	uint8_t opcode;		/* MLX5_CQE_* */
	uint8_t syndrome;	/* 0: success */
	uint8_t format;		/* 1: has 32 bytes of data, 2: 64 */
	uint16_t counter;
	uint32_t bytes;
	const uint8_t *entry;	/* the first of its bytes; the CQE proper is the last 64 */
};

/* Cannot go on: nothing is known of the device. */
void bail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

void port_open(struct port *port);
void pair_make(struct pair *pair, struct port *a, struct port *b, const struct setup *setup);
void pair_end(struct pair *pair);
/* Its steps, for a pair that is made of ends that were others' before. */
void end_make(struct end *end, struct port *port, const struct setup *setup);
void pair_connect(struct pair *pair, const struct setup *setup);
void end_end(struct end *end);

/* Into the ring; nothing is rung.  The index of the first block, or of the receive. */
uint16_t end_wqe(struct end *end, uint8_t opcode, uint8_t opmod, uint8_t flags,
		 const void *segments, unsigned int chunks);
uint16_t end_post(struct end *end, uint8_t opcode, uint8_t flags, size_t from, uint32_t length,
		  const struct end *peer, size_t to);
uint16_t end_inline(struct end *end, uint8_t flags, uint32_t length, const struct end *peer,
		    size_t to);
uint16_t end_recv(struct end *end, size_t at, uint32_t length);
void end_ring(struct end *end);

void end_state(struct end *end, enum ibv_qp_state state);
/* What the query says, counted from the first of that direction. */
bool end_is_broken(struct end *end);
uint32_t end_expects(struct end *end, const struct end *peer);
uint32_t end_sent(struct end *end);

unsigned int cq_ready(const struct cq *cq);
bool cq_take(struct cq *cq, struct cqe *cqe);
bool cq_wait(struct cq *cq, struct cqe *cqe);	/* false: there is none, and will be none */
bool patience(uint64_t *since);			/* true until it has lasted too long */

#endif /* MLX5_RIG_H */
