/* SPDX-License-Identifier: GPL-2.0 */
/*
 * shift_verify: RDMA WRITEs whose every byte, order and completion is checked.
 *
 * Per QP and direction the receiver owns a ring of slots. Message seq goes to
 * slot seq % slots, filled with a pattern of (qp, seq, offset). The receiver
 * checks slot after slot and then poisons it; it gives a slot back, by an ack
 * WRITE in the other direction, only half a ring later and only if the poison is
 * whole. As the sender never has more than a quarter of the ring outstanding,
 * each message that could be executed twice would hit a slot still guarded.
 *
 * That is what happens without --ops; with it, see verify_ops.h.
 */
#ifndef VERIFY_H
#define VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#define MAX_QPS		256
#define MAX_SGE		8
#define MAX_CHAIN	128
#define WC_BATCH	16

/* Exit codes: what the scripts tell apart. */
enum {
	EXIT_OK = 0,
	EXIT_VIOLATION = 1,	/* data, order or completions are wrong */
	EXIT_SETUP = 2,
	EXIT_ERROR = 3,		/* the application got an error completion */
	EXIT_HANG = 4,		/* neither progress nor an error */
};

struct options {
	const char *server;	/* NULL: we are the server */
	const char *device;
	int gid_index;		/* -1: first RoCE v2 GID with an IPv4 address */
	int port;
	unsigned int qps;
	size_t size;
	uint64_t iters;		/* per QP; 0: until "stop" on stdin */
	unsigned int depth;	/* outstanding WRITEs per QP */
	unsigned int chain;	/* WRs per post */
	unsigned int sge;
	unsigned int signal_every;
	unsigned int progress;	/* print every so many completed WRITEs */
	unsigned int timeout;	/* seconds without progress */
	unsigned int qp_timeout;
	unsigned int retry;
	bool wr_api;
	bool use_inline;
	bool bidir;
	bool hold;
	bool events;
	bool small_cq;

	/* with --ops only; see verify_ops.h */
	const char *ops;
	const char *sabotage;
	uint64_t seed;
	size_t size_min;
	unsigned int rd_atomic;
	unsigned int fence;	/* one of so many is fenced, with --mix; 0: none */
	bool mix;
	bool poll_ex;
	bool srq;
	bool shared_cq;
	bool resize_cq;
	bool guard;
	bool allow_error;
	bool solicited;
	bool more_events;
	bool keyless;
	bool cost;
};

/* What the two sides tell each other before they connect. */
struct qp_address {
	uint32_t qpn;
	uint32_t psn;
	uint64_t ring;		/* where the peer writes data */
	uint64_t ack;		/* where the peer writes its acks */
	uint32_t rkey;
	uint32_t pad;
	union ibv_gid gid;
};

/* An ack is valid only if both halves fit: it may be read half-written. */
struct ack {
	uint64_t count;
	uint64_t inverse;
};

enum wr_kind { WR_DATA, WR_ACK };

/* One signaled WR whose completion must be the next one of its QP. */
struct expected {
	uint64_t wr_id;
	uint64_t seq;
};

struct flow {
	unsigned int index;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct qp_address peer;

	/* sender */
	uint8_t *source;	/* depth slots */
	struct ibv_mr *source_mr[2];
	volatile struct ack *acked;	/* the peer writes it */
	uint64_t posted, completed, returned;
	uint64_t target;	/* how many in all; UINT64_MAX: not known yet */

	/* receiver */
	uint8_t *ring;
	struct ibv_mr *ring_mr;
	uint64_t verified, given_back, expect_total;
	struct ack *ack_source;	/* ack_slots of them */
	struct ibv_mr *ack_mr;
	uint64_t acks_posted, acks_completed;

	/* signaled WRs in posting order */
	struct expected *fifo;
	unsigned int fifo_size;
	uint64_t fifo_head, fifo_tail;
};

struct side {
	struct options opt;
	bool sends, receives;
	unsigned int slots;	/* per ring */
	unsigned int ack_slots;
	size_t stride;		/* bytes from slot to slot */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	union ibv_gid gid;
	int gid_index;
	enum ibv_mtu mtu;
	struct flow *flow;
	uint64_t done_total;	/* completed data WRITEs of all QPs */
	uint64_t seen_total;	/* verified messages of all QPs */
	int oob;
	struct ibv_wc wc[WC_BATCH];
	unsigned int wc_next, wc_count;
	bool in_error;
	bool peer_stopped;
};

/* verify_oob.c: one TCP connection beside the rails under test */
int oob_open(const struct options *opt);
void oob_exchange(int fd, const void *mine, void *theirs, size_t len);
void oob_send(int fd, const void *buf, size_t len);
/* 1: whole message read, 0: nothing there, -1: the peer is gone */
int oob_try(int fd, void *buf, size_t len);
void input_start(void);
bool input_go(void);
bool input_stop(void);

/* verify_qp.c: device, memory, QPs */
void *memory(size_t len);
struct ibv_mr *memory_reg(struct side *side, void *p, size_t len, int access);
void device_open(struct side *side);
void side_open(struct side *side);
void async_start(struct side *side);	/* verify_async.c */
void async_stop(void);
void side_connect(struct side *side);
void side_close(struct side *side);

/* verify_flow.c: posting, completing, checking; each returns true if it did
 * something */
bool flow_send(struct side *side, struct flow *flow);
bool flow_receive(struct side *side, struct flow *flow);
bool side_complete(struct side *side);
void side_no_more(struct side *side);
void flow_start(struct side *side, struct flow *flow);
void flow_final(struct side *side, struct flow *flow);

/* pattern */
void pattern_fill(uint8_t *to, size_t len, unsigned int qp, uint64_t seq);
/* offset of the first wrong byte, or len */
size_t pattern_check(const uint8_t *at, size_t len, unsigned int qp,
		     uint64_t seq);
uint8_t pattern_byte(size_t at, size_t len, unsigned int qp, uint64_t seq);

/* verify_cost.c: what a post takes */
enum cost { COST_POST, COST_RTR, COST_RTS };
uint64_t cost_begin(enum cost kind);
void cost_end(enum cost kind, uint64_t began);
void cost_say(void);

double now(void);
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void die(int code, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

#endif
