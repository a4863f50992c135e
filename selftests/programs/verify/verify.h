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
 * That is what happens without --ops; with it, see ops.h. What --protocol changes stands in
 * protocol.c.
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

#define MAX_PARTS	3	/* requests of a message of --protocol simple */
/* How long bytes of a message may trail its last one (a stalled processor). */
#define SETTLE_SECONDS	2.0

/* In wr_ids, beside the number of a message. */
#define WR_ACK_BIT	(1ULL << 63)
#define WR_RECEIVE_BIT	(1ULL << 62)
#define WR_FLUSH_BIT	(1ULL << 61)
#define WR_PART_BIT	(1ULL << 60)
#define WR_SEQ_MASK	((1ULL << 40) - 1)

/* Exit codes: what the scripts tell apart. */
enum {
	EXIT_OK = 0,
	EXIT_VIOLATION = 1,	/* data, order or completions are wrong */
	EXIT_SETUP = 2,
	EXIT_ERROR = 3,		/* the application got an error completion */
	EXIT_HANG = 4,		/* neither progress nor an error */
};

enum protocol { PROTOCOL_NONE, PROTOCOL_SIMPLE, PROTOCOL_LL, PROTOCOL_LL128 };

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
	unsigned int pace;	/* rest so many times as long as it has worked */
	unsigned int timeout;	/* seconds without progress */
	unsigned int qp_timeout;
	unsigned int retry;
	bool wr_api;
	bool use_inline;
	bool bidir;
	bool hold;
	bool events;
	bool small_cq;
	enum protocol protocol;
	bool flush;

	/* with --ops only; see ops.h */
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
	unsigned int alarm;		/* us between signals; 0: none */
	uint8_t tos;			/* traffic class of the QPs */
	uint32_t flow_label;
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

	/* receiver, with --protocol: see protocol.c */
	size_t lines;		/* of the next message that were taken */
	uint64_t receives_posted, told;
	uint64_t flushed;	/* messages below were */
	bool flushing;

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
	bool sabotaged;
	struct flow flush;	/* its QP and the peer's address only: flush.c */
	uint8_t *flush_bytes;
	struct ibv_mr *flush_mr;
};

/* oob.c: one TCP connection beside the rails under test */
int oob_open(const struct options *opt);
void oob_exchange(int fd, const void *mine, void *theirs, size_t len);
void oob_send(int fd, const void *buf, size_t len);
/* 1: whole message read, 0: nothing there, -1: the peer is gone */
int oob_try(int fd, void *buf, size_t len);
void input_start(void);
bool input_go(void);
bool input_stop(void);

/* qp.c: device, memory, QPs */
void *memory(size_t len);
struct ibv_mr *memory_reg(struct side *side, void *p, size_t len, int access);
void device_open(struct side *side);
void side_open(struct side *side);
void async_start(struct side *side);	/* async.c */

void qp_to_init(struct flow *flow, int access);
void qp_to_rts(struct side *side, struct flow *flow, uint32_t psn);

/* alarm.c */
void alarm_block(bool block);
void alarm_every(unsigned int us);
void async_stop(void);
void side_connect(struct side *side);
void side_close(struct side *side);

/* flow.c: posting, completing, checking; each returns true if it did
 * something */
bool flow_send(struct side *side, struct flow *flow);
bool flow_receive(struct side *side, struct flow *flow);
bool side_complete(struct side *side);
void side_no_more(struct side *side);
void flow_start(struct side *side, struct flow *flow);
void flow_final(struct side *side, struct flow *flow);

/* protocol.c */
enum protocol protocol_named(const char *name);
void protocol_check(const struct options *opt);
void protocol_fill(const struct side *side, const struct flow *flow, uint8_t *at, uint64_t seq);
unsigned int protocol_split(const struct side *side, struct ibv_send_wr *wr,
			    struct ibv_sge (*sge)[MAX_SGE], uint64_t seq);
bool protocol_take(struct side *side, struct flow *flow, bool *any);
void protocol_receive_post(struct flow *flow);
void protocol_told(struct flow *flow, const struct ibv_wc *wc);
int64_t protocol_late(struct side *side, const struct flow *flow);

/* flush.c */
void flush_open(struct side *side);
void flush_connect(struct side *side);
void flush_close(struct side *side);
bool flush_done(struct side *side, struct flow *flow);
void flush_completed(struct side *side, const struct ibv_wc *wc);

/* pattern.c */
#define POISON		0xdb

uint64_t pattern_key(unsigned int qp, uint64_t seq);
uint64_t pattern_word(uint64_t key, size_t word);
uint8_t pattern_byte(size_t at, size_t len, unsigned int qp, uint64_t seq);
void pattern_fill(uint8_t *to, size_t len, unsigned int qp, uint64_t seq);
/* offset of the first wrong byte, or len */
size_t pattern_check(const uint8_t *at, size_t len, unsigned int qp,
		     uint64_t seq);
/* the last byte of what is poisoned is 0: that of a pattern never is */
void poison(uint8_t *slot, size_t len);
size_t poison_check(const uint8_t *slot, size_t len);

/* cost.c: what a post takes */
enum cost { COST_POST, COST_RTR, COST_RTS };
uint64_t cost_begin(enum cost kind);
void cost_end(enum cost kind, uint64_t began);
void cost_say(void);

double now(void);
void went_on(const struct side *side);	/* messages were completed: report them, and rest */
void rest(unsigned int idle);	/* @idle: turns before this one without anything to do */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void die(int code, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

#endif
