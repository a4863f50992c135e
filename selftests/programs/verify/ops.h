/* SPDX-License-Identifier: GPL-2.0 */
/*
 * shift_verify --ops: every operation of an RC QP, drawn from a plan both sides know.
 *
 * The plan says what message seq of a QP and direction is, so the target knows what
 * must come next and the issuer what must be returned. Per QP and direction the target
 * owns a ring (WRITEs), a ring of sources (READs), receives and two cells (atomics);
 * seq lives in slot seq % slots of either ring. What the sides tell each other beside
 * the data (completed so far, slots given back, keys of memory windows) goes over the
 * control connection, so that a run of READs has READs on its QPs and nothing else.
 */
#ifndef VERIFY_OPS_H
#define VERIFY_OPS_H

#include <pthread.h>
#include <stdatomic.h>

#include "verify.h"

#define STAMP		0xdb	/* what nobody may overwrite */
#define INLINE_MAX	256
#define WINDOWS		4	/* memory windows per QP for SEND_WITH_INV */
#define EXTRA_WRS	2	/* WRs that only sabotage posts */
#define LOST_SECONDS	10.0
#define DRAIN_SECONDS	20.0

enum op {
	OP_WRITE, OP_WRITE_IMM, OP_SEND, OP_SEND_IMM, OP_SEND_INV, OP_READ,
	OP_FADD, OP_CAS, OP_MW, OP_AWRITE, OP_COUNT
};

struct plan {
	enum op ops[32];
	unsigned int count;
	bool mix;		/* drawn, not in turn */
	bool equal_pieces;
	bool has[OP_COUNT];
	uint64_t seed;
	const struct options *opt;
};

struct step {
	enum op op;
	uint32_t len;
	unsigned int pieces;
	uint32_t imm;
	uint64_t add;
	bool shared;		/* FETCH_ADD on the cell of all QPs */
	bool solicited, inlined, fenced, drawn_signal;
};

struct stream {			/* one direction of one QP */
	unsigned int qp;
	unsigned int dir;	/* 0: from the client */
};

enum role { ROLE_DATA, ROLE_BIND };

struct note {			/* a WR on the send queue */
	uint64_t wr_id;
	uint64_t number;	/* seq, or which bind */
	enum ibv_wc_opcode opcode;
	enum role role;
	bool signaled;
};

struct issue {			/* an operation whose result is due */
	struct step step;
	uint64_t expected;	/* what an atomic must return */
	bool stamped;
};

struct cells {
	volatile uint64_t sum;
	volatile uint64_t swap;
};

struct lane_address {
	uint32_t qpn, psn;
	uint64_t ring, reads, cells, shared;
	uint32_t ring_key, reads_key, cells_key, shared_key;
	union ibv_gid gid;
};

struct queue {			/* a CQ */
	struct ibv_cq *cq;
	struct ibv_cq_ex *ex;
	unsigned int entries;
	unsigned int taken, resized;
	atomic_uint fired;	/* events the sleeper took */
	bool only_solicited;
	unsigned int solicited;	/* completions with it since the queue was armed */
	double owed;		/* since when an event is due */
};

struct lane {			/* a QP with what both directions need */
	struct stream out, in;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct queue *sends, *receives;
	struct lane_address peer;

	struct note *note;
	unsigned int note_size;
	uint64_t note_head, note_tail;
	bool failed;		/* posts nothing any more */
	bool reported;		/* an error completion was seen */
	bool drained;		/* ... and everything after it, and the peer told */
	bool reminded;
	bool spoilt;		/* something was posted twice */
	uint64_t flushed;
	double failed_at;
	struct ibv_wc flushed_receive;	/* if that was the first sign */

	/* issuer */
	uint8_t *local;		/* depth slots and one more */
	struct ibv_mr *local_mr[2];
	struct issue *issue;
	uint64_t posted, completed, told, returned, target;
	uint64_t sum, swaps, window_steps, last_shared;
	bool any_shared;
	struct ibv_mw *window;	/* for OP_MW */
	uint32_t key[WINDOWS];
	uint64_t keys_got, keys_used;

	/* target */
	uint8_t *ring, *reads, *receive;
	struct cells *cells;
	struct ibv_mr *ring_mr, *reads_mr, *receive_mr, *cells_mr;
	uint64_t verified, recycled, credited, peer_completed, expect_total;
	uint64_t arrived;	/* WRITEs below were seen, or are not looked for */
	bool *early;		/* of each slot: stamped before the issuer told */
	uint64_t receives_posted, received;
	uint64_t in_sum, in_shared, in_swaps, in_invs;
	struct ibv_mw *bound[WINDOWS];
	double waiting;		/* for a receive that is overdue, since */
	bool peer_failed;
	uint64_t peer_posted;
};

struct heap {			/* results of the shared cell, smallest first */
	struct { uint64_t old, add; } *at;
	size_t count, size;
	uint64_t next;		/* all below was seen */
};

struct rig {
	struct side side;	/* options, device, connection, totals */
	struct plan plan;
	struct lane *lane;
	struct queue *queue;
	unsigned int queues;
	struct ibv_srq *srq;
	bool *srq_posted;
	uint8_t *srq_buffers;
	struct ibv_mr *srq_mr;
	uint64_t *shared;	/* the cell all QPs add to */
	struct ibv_mr *shared_mr;
	struct heap heap;
	pthread_t sleeper;
	atomic_bool sleep_over;
	bool sabotaged;
	uint64_t receives_posted;
	uint64_t failures;
	double clock;		/* seconds in which this side ran */
	bool quiet;		/* said that all is done: tells nothing any more */
};

enum tell { TELL_TOTAL = 1, TELL_DONE, TELL_ERROR, TELL_COMPLETED, TELL_CREDIT, TELL_KEY,
	    TELL_FAILED };

struct tell_message {
	uint32_t type, index;
	uint64_t value;
};

/* plan.c */
void plan_open(struct plan *plan, const struct options *opt);
void plan_step(const struct plan *plan, struct stream s, uint64_t seq, struct step *step);
uint64_t plan_swap(const struct plan *plan, struct stream s, uint64_t nth);
const char *op_name(enum op op);
bool op_receives(enum op op);
unsigned int stream_key(struct stream s);

/* rig.c */
void rig_open(struct rig *rig);
void rig_connect(struct rig *rig);
void rig_close(struct rig *rig);

/* queue.c */
struct queue *queue_open(struct rig *rig, unsigned int entries, bool only_solicited);
void queue_arm(struct queue *queue);
bool queues_work(struct rig *rig);
bool queues_left(struct rig *rig);
void sleeper_start(struct rig *rig);
void sleeper_stop(struct rig *rig);

/* post.c: a list of WRs by either API */
struct batch {
	struct ibv_send_wr wr[MAX_CHAIN + EXTRA_WRS];
	struct ibv_sge sge[MAX_CHAIN + EXTRA_WRS][MAX_SGE];
	unsigned int count;
};
struct ibv_send_wr *batch_add(struct batch *batch);
void batch_post(struct rig *rig, struct lane *lane, struct batch *batch);
unsigned int cut_pieces(uint8_t *at, size_t len, unsigned int n, struct ibv_mr *const *mr,
			bool equal, struct ibv_sge *sge);
void note_add(struct lane *lane, const struct ibv_send_wr *wr, enum role role,
	      uint64_t number);

/* issuer.c */
void issuer_start(struct rig *rig, struct lane *lane);
bool issuer_send(struct rig *rig, struct lane *lane);
void issuer_key(struct lane *lane, uint64_t value);
void issuer_credit(struct lane *lane, uint64_t value);
void issuer_result(struct rig *rig, struct lane *lane, uint64_t seq);
void issuer_final(struct rig *rig);

/* sendq.c: completions of the send queue */
void sendq_complete(struct rig *rig, struct lane *lane, const struct ibv_wc *wc);
void lane_fail(struct rig *rig, struct lane *lane);
bool lane_drain(struct rig *rig, struct lane *lane);

/* target.c */
void target_start(struct rig *rig, struct lane *lane);
void target_bind_all(struct rig *rig, struct lane *lane);
void target_bound(struct rig *rig, struct lane *lane, uint64_t nth);
void target_receive(struct rig *rig, struct lane *lane, const struct ibv_wc *wc);
void target_completed(struct rig *rig, struct lane *lane, uint64_t value);
bool target_recycle(struct rig *rig, struct lane *lane);
void target_overdue(struct rig *rig, struct lane *lane);
void target_final(struct rig *rig);

/* stamp.c: receives of a lane, stamps */
void receive_post(struct rig *rig, struct lane *lane, uint64_t which);
uint64_t receive_take(struct rig *rig, struct lane *lane, const struct ibv_wc *wc,
		      uint8_t **at);
void stamp(uint8_t *at, size_t len);
size_t stamp_check(const uint8_t *at, size_t len);

/* sabotage.c */
bool sabotage(struct rig *rig, const char *kind, const struct lane *lane, uint64_t seq);
void sabotage_check(const char *kind);
void sabotage_claim(uint32_t qpn);

/* session.c */
int ops_main(const struct options *opt);
void tell(struct rig *rig, enum tell type, unsigned int index, uint64_t value);

struct lane *find_lane(struct rig *rig, uint32_t qpn);

/*
 * rxe writes the kernel's IB_WC_WITH_INVALIDATE into the ring, which is another bit
 * than IBV_WC_WITH_INV (and that of IBV_WC_IP_CSUM_OK); its provider passes it on.
 */
#define WC_INVALIDATED	(IBV_WC_WITH_INV | 1 << 2)
#define RECEIVE_BIT	(1ULL << 62)
#define BIND_BIT	(1ULL << 61)

#endif
