/* SPDX-License-Identifier: GPL-2.0 */
/* A stream of requests between two nodes, each of which is checked: kernel_stream.c. */
#ifndef KERNEL_STREAM_H
#define KERNEL_STREAM_H

#include <linux/atomic.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#define STREAM_QPS	4	/* at most */
#define ROUNDS		4	/* of a QP, under way */
#define SENDS		64	/* requests of a QP under way */
#define RECVS		32
#define SLOTS		16	/* for WRITEs of the sender; a power of two */
#define LONG		3000	/* bytes of a WRITE: three packets */
#define CHAIN_MOST	8	/* requests of a round */
#define STREAM_ATOMICS	4	/* under way */

struct kernel_stream_options {
	char *poll;
	unsigned int qps;
	unsigned int keys;
	bool one_cq;
	bool global_key;
	bool atomics;
	unsigned int pace_us;
};

enum stream_kind {
	STREAM_PLAIN,
	STREAM_KEY,		/* ends a round: a WRITE is in its slot, and here is a key */
	STREAM_ANSWER,		/* to that: what is behind the key was written */
};

struct stream_msg {
	u64 seq;		/* of the QP and direction */
	u64 round;
	u64 addr;		/* of a key */
	u32 key;
	u32 kind;		/* enum stream_kind */
};

/* All that a QP's requests have to do with, at either end. */
struct stream_memory {
	u8 answer[ROUNDS][PAGE_SIZE];	/* each is registered by itself */
	u8 slot[SLOTS][LONG];		/* registered for the life of the QP, with what follows */
	u64 counter;
	u8 source[ROUNDS][LONG];
	struct stream_msg send[SENDS], recv[RECVS];
	u64 result[SENDS];		/* of FETCH_ADDs */
};

/* A request that is under way, by its number modulo the size of its queue. */
struct stream_token {
	struct ib_cqe cqe;
	struct stream_qp *q;
	u64 number;
	u8 opcode;		/* enum ib_wc_opcode */
	bool signaled;
	bool ends;		/* a round, or an answer */
};

struct stream_request {
	union {
		struct ib_send_wr send;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct ib_reg_wr reg;
	};
	struct ib_sge sge;
};

struct stream_chain {
	struct stream_request request[CHAIN_MOST];
	unsigned int n;
};

enum stream_mr_state {
	STREAM_MR_FREE,
	STREAM_MR_REGISTERED,
	STREAM_MR_ANSWERED,	/* its key was used, and is to be invalidated */
	STREAM_MR_LEAVING,	/* that was posted */
};

struct stream_mr {
	struct ib_mr *mr;
	enum stream_mr_state state;
};

struct stream_qp {
	struct stream *stream;
	unsigned int index;
	struct ib_qp *qp;
	struct ib_mr *slots;	/* NULL: a key for all memory */
	struct stream_mr mr[ROUNDS];
	struct stream_memory *memory;
	u64 dma;
	u32 key;		/* of the peer's slots */
	u64 addr;
	bool connected;

	spinlock_t lock;	/* all below; bottom halves are off */
	struct stream_token sends[SENDS], recvs[RECVS];
	struct stream_chain chain;
	u64 posted, done;	/* sends: the next one, and the first without a completion */
	u64 recvs_posted, recvs_done;
	u64 told, heard;	/* the next message of either direction */
	u64 rounds, answered;	/* begun; answers that the sender has, or the receiver posted */
	u64 ended;		/* rounds, or answers, whose last request was completed */
	u64 adds;		/* FETCH_ADDs that were completed */
	struct stream_msg owed[ROUNDS];	/* of the receiver: rounds without an answer */
};

struct stream {
	struct ib_device *ibdev;
	unsigned int gid_index;
	struct kernel_stream_options options;
	enum ib_poll_context ctx;
	bool sends;		/* else it receives */
	bool running, ending;
	struct ib_pd *pd;
	struct ib_cq *cq[2 * STREAM_QPS];
	struct stream_qp *qp[STREAM_QPS];
	struct task_struct *thread;
	struct dentry *folder;
	atomic_t violations;
	atomic64_t registered, invalidated, remotely;
};

/* kernel_stream.c; these two are called by kernel_user.c */
int kernel_stream_begin(struct ib_device *ibdev, unsigned int gid_index, const char *end,
			const struct kernel_stream_options *options);
void kernel_stream_end(void);

/* kernel_stream_qp.c */
struct stream_qp *stream_qp_new(struct stream *s, unsigned int index);
void stream_qp_free(struct stream_qp *q);
int stream_qp_connect(struct stream_qp *q, const char *text);
int stream_qp_describe(struct stream_qp *q, char *text, int size);
bool stream_qp_idle(struct stream_qp *q);

/* kernel_stream_wr.c; with the QP's lock */
u64 stream_dma(struct stream_qp *q, const void *memory);
struct stream_request *stream_add(struct stream_qp *q, enum ib_wr_opcode opcode, bool signaled);
void stream_add_message(struct stream_qp *q, enum ib_wr_opcode opcode, bool signaled,
			const struct stream_msg *msg);
void stream_add_write(struct stream_qp *q, bool signaled, u64 round, u64 addr, u32 key);
void stream_add_reg(struct stream_qp *q, bool signaled, struct ib_mr *mr, void *memory,
		    unsigned int length, int access);
void stream_post(struct stream_qp *q);
void stream_post_recv(struct stream_qp *q);
bool stream_has_room(struct stream_qp *q, unsigned int requests);

/* kernel_stream_check.c */
__printf(2, 3) void stream_violated(struct stream_qp *q, const char *text, ...);
void stream_fill(struct stream_qp *q, u8 *memory, u64 round, bool answer);
void stream_poison(u8 *memory);
void stream_expect(struct stream_qp *q, const u8 *memory, u64 round, bool answer);
void stream_expect_poison(struct stream_qp *q, const u8 *memory, u64 round);
void stream_sent(struct ib_cq *cq, struct ib_wc *wc);
void stream_received(struct ib_cq *cq, struct ib_wc *wc);

/* kernel_stream_sender.c */
bool stream_sender_posts(struct stream_qp *q);
void stream_sender_heard(struct stream_qp *q, const struct stream_msg *msg,
			 const struct ib_wc *wc);
void stream_sender_sent(struct stream_qp *q, const struct stream_token *token);

/* kernel_stream_receiver.c */
void stream_receiver_heard(struct stream_qp *q, const struct stream_msg *msg);
void stream_receiver_answers(struct stream_qp *q);
int stream_receiver_opens(struct stream_qp *q);

/* Is the answer to a round to invalidate its key? */
static inline bool stream_invalidates(const struct stream *s, u64 round)
{
	return !s->options.global_key && !(round / ROUNDS & 1);
}

#endif /* KERNEL_STREAM_H */
