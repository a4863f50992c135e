/* SPDX-License-Identifier: GPL-2.0 */
/* The devices and networks of the simulated world. */
#ifndef SIM_NIC_H
#define SIM_NIC_H

#include "rdma.h"
#include "sim.h"

#define SIM_ENDS	2
#define SIM_NETS	2		/* 0: between the default devices; 1: between the backups */
#define SIM_MTU		1024u
#define SIM_RING	32u		/* slots of an application's ring */
#define SIM_Q		256u		/* that a device holds of one QP */
#define SIM_CQ		1024u		/* completions in a CQ */

/* an operation as the application posts it; its buffers have its number in their address */
struct sim_wr {
	u64 wr_id;
	u32 opcode, flags, length, imm, lkey, rkey;
	u64 addr, remote_addr, compare_add, swap;
};

/* what an application and its device share */
struct sim_ring {
	struct sim_wr slot[SIM_RING];
	u32 slots;		/* a power of two */
	u64 producer;
	u64 consumer;		/* slots before it are free */
	u64 acked;		/* operations that the device has completed with success */
	u32 acked_psn;		/* and the PSN behind them */
};

/* memory that a kernel reaches by a struct shift_word */
struct page { u32 word; };

struct sim_rights { u32 lkey, rkey; };		/* of the one MR on a device */

struct sim_dev {
	struct ib_device ib;
	int end, net;
	struct ib_gid_attr gid;
	struct sim_rights mr;
	bool down;
	bool dead;		/* nothing goes in or out, as its node has crashed or it is removed */
	bool gone;		/* it is removed */
	bool dumb;		/* it does not say how far its QPs have got */
	u32 refuses;		/* so many verbs, from now on */
	bool forgets;		/* at RESET: what was received, completions not polled, indices */
};

struct sim_net {
	u64 dark[2];		/* until then packets to this end are lost */
	u32 loss;		/* odds of one to so many; 0: none */
	u32 delay;		/* the same for a long way */
	u64 last[2];		/* arrival of the last packet at each end */
	u64 last_message[2];	/* the same of links */
};

static inline struct sim_wr *sim_slot(struct sim_ring *ring, u64 i)
{
	return &ring->slot[i % ring->slots];
}

static inline u32 sim_packets(u32 length)
{
	return length ? (length + SIM_MTU - 1) / SIM_MTU : 1;
}

extern struct sim_net sim_net[SIM_NETS];
extern u32 sim_rts_odds;	/* of a QP that sends before its driver says so */
extern u32 sim_softirq_odds;	/* of completions of a kernel that are handled late */
extern u32 sim_packet_us;	/* that a packet takes at most, mostly */
extern bool sim_qpns_again;	/* numbers of QPs that were destroyed are used again */
extern u32 sim_message_ms;	/* that a message takes at most, if it takes long */
extern u32 sim_stuck_odds;	/* of work that cannot be moved */
extern u32 sim_verb_odds;	/* of a driver's verb that fails, or takes long */
extern u32 sim_verb_ms;		/* so long at most */
extern u64 sim_verbs_end_ns;	/* when the last one that takes long ends */
extern bool sim_verb_failed;	/* one did, in this run */

void sim_dev_init(struct sim_dev *dev, int end, int net, bool forgets, bool lower,
		  bool global);
struct ib_qp *sim_qp_alloc(struct sim_dev *dev, struct ib_pd *pd);
void sim_qp_free(struct ib_qp *qp);
void sim_qp_ring(struct ib_qp *qp, struct sim_ring *sq, struct sim_ring *rq);
void sim_qp_bell(struct ib_qp *qp);	/* the device reads the send ring */
void sim_qp_recv_bell(struct ib_qp *qp);
u64 sim_qp_receives(struct ib_qp *qp);	/* of its ring, completed with success */
enum ib_qp_state sim_qp_state(struct ib_qp *qp);
u32 sim_qp_error(struct ib_qp *qp);	/* the first status that broke it */
const u32 *sim_cq_head(struct ib_cq *cq, u32 *tail);	/* indices that run freely */
void sim_cq_forget(struct ib_cq *cq, struct ib_qp *qp);	/* what was not polled of the QP */
bool sim_cq_has_success(struct ib_cq *cq, struct ib_qp *qp);
struct ib_srq *sim_srq_alloc(struct sim_dev *dev, struct ib_pd *pd, struct sim_ring *ring);
void sim_srq_free(struct ib_srq *srq);
bool sim_srq_has(int end, u64 addr);	/* a receive is posted */
void sim_cq_each(struct ib_cq *cq, void (*fn)(void *arg, u64 wr_id, u32 status, u32 qpn),
		 void *arg);
bool sim_cq_peek(struct ib_cq *cq, struct ib_wc *wc);	/* what is polled next */
void sim_qp_carries(struct ib_qp *qp);	/* it is a link's: what it sends is in memory */
/* a link's QPs on a network: they break at @end, or (-1) lose all from now on */
void sim_conns_break(int net, int end);
bool sim_conns_mute(int end);		/* is there one that loses all, and works on? */
void sim_nic_start(void);
u32 sim_qps_left(int end, int net);	/* of a device */
u32 sim_nic_left(void);			/* QPs and CQs that were not destroyed */

/* cm.c */
extern u32 sim_cm_odds;			/* of a message that is lost */
void sim_cm_start(void);
u32 sim_cms_left(void);
void cm_device_gone(int end, int net);	/* every id on it is told, and has to go */

/* net.c */
bool net_passes(int net, int to);	/* do packets to that end arrive? */

/* device.c: a key that is not one of that end's */
void sim_refused(int end, u32 rkey);

/* oracle.c: a packet was executed; false: the responder refuses it */
bool sim_executed(int end, int net, const struct sim_wr *wr, u32 packet, bool last, u64 recv_addr);

/* memory.c: what is read; what an atomic finds; what has arrived of an answer */
u64 sim_read(int end, const struct sim_wr *wr, u32 packet, bool again);
u64 sim_atomic(int end, int net, const struct sim_wr *wr);
void sim_landed(int end, const struct sim_wr *wr, u32 packet, u64 data);

/* recvs.c: a receive of a shared queue is taken; or not used in the end */
void sim_recv_taken(int end, u64 addr, u32 srq, bool ring);
void sim_recv_lent(int end, u64 addr);
void sim_limit_again(int end);	/* the device does not say, or does not do what is asked */
void sim_recv_dropped(int end, u64 addr);

#endif /* SIM_NIC_H */
