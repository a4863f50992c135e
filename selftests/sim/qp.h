/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of the devices: queue pairs and completion queues. */
#ifndef SIM_QP_H
#define SIM_QP_H

#include "nic.h"

#define RESULTS_MAX	16u		/* of atomics, that a responder can repeat */
#define SIM_DMA_KEY	0xdadau	/* all memory of a kernel */

struct wqe {
	struct sim_wr wr;
	u64 id;			/* wr_id, or a struct ib_cqe */
	bool signaled;
	u32 psn, packets, first;	/* of a resumed one: its first packet */
	u32 arrived;		/* packets of its answer */
};

enum kind { DATA, ACK, NAK, RNR, REFUSED, ANSWER };

struct packet {
	struct sim_timer timer;
	enum kind kind;
	int net, to;
	u32 qpn, from, psn, number;
	bool first, last;
	struct sim_wr wr;
	u64 data;			/* of an answer */
	u8 carried[];			/* of a link */
};

struct rqe { u64 id, addr; u32 length; bool bad; };

struct sim_cq {
	struct ib_cq ib;
	struct ib_wc wc[SIM_CQ];
	u32 head, tail;
	bool kernel, armed, disabled, polling;
};

struct sim_qp {
	struct ib_qp ib;
	struct sim_dev *dev;
	struct sim_cq *scq, *rcq;
	enum ib_qp_state state;
	u32 dest, error;
	bool loop;		/* connected to its own device */
	u8 timeout, retry_cnt, rnr_retry;
	bool sig_all;
	struct sim_ring *ring, *rring;	/* of the application; NULL: a kernel's */
	u64 fetched, rfetched;		/* of the rings */
	struct wqe q[SIM_Q];
	u64 tail, head, cur;		/* not acknowledged; posted; to be sent */
	u32 cur_packet, psn, tries, rnr_tries;
	struct sim_timer retry;
	bool waits_rnr;
	struct rqe rq[SIM_Q];
	u64 rtail, rhead;
	struct sim_srq *srq;
	struct rqe held;		/* of the SRQ, for the message that comes */
	bool holds;
	u32 expected;
	bool naked;			/* the gap was told of */
	bool asked_again;		/* for an answer that is missing */
	u8 max_rd_atomic, max_dest_rd_atomic;
	struct { u32 psn; u64 data; } result[RESULTS_MAX];
	u32 n_results;
	u64 received;
	bool carries, mute;		/* of a link; it loses all */
};

struct sim_srq {
	struct ib_srq ib;
	struct sim_dev *dev;
	struct sim_ring *ring;		/* of the application; NULL: a kernel's */
	struct rqe rq[SIM_Q];
	u64 tail, head;
	u32 max, limit, number;
};

static inline struct sim_srq *to_srq(struct ib_srq *srq)
{
	return container_of(srq, struct sim_srq, ib);
}

static inline struct sim_qp *to_qp(struct ib_qp *qp)
{
	return container_of(qp, struct sim_qp, ib);
}

static inline struct sim_cq *to_cq(struct ib_cq *cq)
{
	return container_of(cq, struct sim_cq, ib);
}

/* cq.c */
void sim_cq_start(void);
u32 sim_cqs_left(void);
void sim_cq_complete(struct sim_qp *qp, struct sim_cq *cq, struct ib_wc wc);

/* qp.c */
void sim_transmit(struct sim_qp *qp, struct packet p);
void sim_qp_pump(struct sim_qp *qp);			/* send what may be sent */
void sim_qp_flush(struct sim_qp *qp, u32 status);	/* all that is posted; the first with @status */
void sim_qp_broken(struct sim_qp *qp, u32 status);
void sim_qp_retries(struct sim_timer *timer);
void sim_qp_restart(struct sim_qp *qp);			/* after RESET, of a device that forgets */
int sim_qp_post_own(struct ib_qp *ib, const struct ib_send_wr *wr, const struct ib_send_wr **bad);

/* answer.c: READs and atomics */
bool sim_has_answer(u32 opcode);
bool sim_may_send(const struct sim_qp *qp, const struct wqe *w);	/* by limits and fences */
void sim_answer(struct sim_qp *qp, const struct packet *p);	/* a request that is due */
void sim_answer_again(struct sim_qp *qp, const struct packet *p);
bool sim_answer_arrives(struct sim_qp *qp, const struct packet *p);	/* it is what is due */

/* srq.c */
void sim_srq_start(void);
u32 sim_srqs_left(void);
bool sim_srq_take(struct sim_qp *qp);		/* false: there is none */
void sim_srq_drop(struct sim_qp *qp);
int sim_srq_create(struct ib_srq *ib, struct ib_srq_init_attr *init, struct ib_udata *udata);
int sim_srq_modify(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata);
int sim_srq_query(struct ib_srq *ib, struct ib_srq_attr *attr);
int sim_srq_destroy(struct ib_srq *ib, struct ib_udata *udata);

/* nic.c */
int sim_verb(struct sim_dev *dev, const char *name);	/* what each has in common */
void sim_qp_each(void (*fn)(struct sim_qp *qp, void *arg), void *arg);
struct sim_qp *sim_qp_find(int end, int net, u32 qpn);

#endif /* SIM_QP_H */
