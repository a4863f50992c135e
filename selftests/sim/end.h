/* SPDX-License-Identifier: GPL-2.0 */
/* One end: a kernel with the module, as the world sees it.  There are two copies of its code. */
#ifndef SIM_END_H
#define SIM_END_H

#include "nic.h"

/* a QP of an application, and what its patched provider knows */
struct sim_app_qp {
	struct ib_qp *qp;
	void *sqp;		/* struct shift_qp; one reference */
	struct ib_uobject uobject;
	struct sim_ring sq, rq;
	struct page gate;
	bool loop;		/* it is connected to itself */
	bool posting;		/* its queue lock is held */
	u64 base, rbase;	/* of the rings, at the kernel's sequence number 0 */
	u64 was_acked, was_received;	/* before RESET */
};

/* a shared receive queue */
struct sim_app_srq {
	struct ib_srq *srq;
	void *ssrq;		/* struct shift_srq; one reference */
	void *table;		/* of receive ids */
	struct ib_uobject uobject;
	struct sim_ring ring[2];	/* the second one after a resize */
	struct page flag;
};

struct sim_app_cq {
	struct ib_cq *cq;
	void *scq;		/* struct shift_cq; one reference */
	struct ib_uobject uobject;
	struct page flag;
};

#define SIM_RECVS	12u		/* that an application has posted at most */

/* how an application makes its QP */
struct sim_shape {
	u8 timeout, retries, rd_atomic;
	u8 sends;		/* that may be outstanding */
	bool sig_all;
	bool two_cqs;		/* or one for both of its queues */
	bool tight_cqs;		/* no larger than they must be */
	bool rebases;		/* its provider can begin its rings anew */
};

struct shift_abi_rebase;
struct shift_abi_reg_srq;
struct shift_abi_side;

struct sim_kernel {
	int (*start)(int end, struct sim_dev *own, struct sim_dev *backup,
		     const union ib_gid *peer, const union ib_gid *peer_backup, u32 policy);
	void (*stop)(void);
	int (*create)(struct sim_app_qp *app, struct sim_app_cq *cq, struct sim_app_srq *srq,
		      const struct sim_shape *shape);
	int (*connect)(struct sim_app_qp *app, u32 qpn, u32 psn, u32 peer_psn,
		       const struct sim_shape *shape);
	int (*modify)(struct sim_app_qp *app, enum ib_qp_state state);
	void (*destroy)(struct sim_app_qp *app, struct sim_app_cq *cq);
	void (*doorbell)(struct sim_app_qp *app);
	void (*kick)(struct sim_app_qp *app);
	long (*kick_send)(struct sim_app_qp *app);
	long (*rebase)(struct sim_app_qp *app, struct shift_abi_rebase *base);
	void (*wait)(struct sim_app_qp *app);
	void (*srq_create)(struct sim_app_srq *app, struct ib_srq_init_attr *init,
			   struct shift_abi_reg_srq *reg);
	int (*srq_modify)(struct sim_app_srq *app, enum ib_srq_attr_mask mask, u32 value);
	void (*srq_kick)(struct sim_app_srq *app);
	bool (*srq_keeps)(struct sim_app_srq *app, u64 addr);	/* a receive, unposted */
	void (*srq_destroy)(struct sim_app_srq *app);
	bool (*swallow)(struct sim_app_qp *app, struct sim_app_cq *cq, u32 status);
	struct shift_abi_side *(*side)(struct sim_app_cq *cq, u32 *len);
	bool (*links_up)(const struct sim_app_qp *app);
	void (*port)(int net, bool down);
	void (*device)(int net, bool there);	/* it is added, or removed */
	int (*pair)(bool there, u32 policy);
	void (*memory)(void);	/* the application registers its memory anew */
	void (*move)(u8 to, bool keep);
	const char *(*shows)(const struct sim_app_qp *app, bool *rest, bool *failed, u8 *path);
	bool (*returns)(const struct sim_app_qp *app);	/* it is being handed back */
	unsigned long (*stat)(int stat);
	u64 (*cookie)(const struct sim_app_qp *app);
	const u8 *boot_id;
	void (*rules)(void);
	void (*lead)(const struct sim_app_qp *app, u32 epochs);	/* it has asked in vain before */
	void (*storm)(u64 ns);	/* how long a work item of a QP waits at most */
};

extern const struct sim_kernel a_sim_kernel, b_sim_kernel;

/* what happens to messages between a link and the QPs */
struct sim_mail {
	u32 odds;		/* of one to so many; 0: nothing */
	u64 calm, calm_until;	/* after something has happened, nothing does for so long */
	bool lost;		/* one was, in this run */
};

extern struct sim_mail sim_mail;

/* main.c: which rules of pure/fsm.c are taken, in all children and at both ends */
#define SIM_GUARDS	8u

struct sim_rules {
	u8 taken[256][8];		/* row, state */
	u8 answer[8][32][SIM_GUARDS][2];	/* state, event, guard: it does not hold, it holds */
};

extern struct sim_rules *sim_rules;

/* node.c: a message is heeded; a link has come up */
void sim_message(int end, const u8 *boot, u64 cookie);
void sim_session(int end, int net, const u8 *boot);

/* asks.c: a REQ, and a READY, has come */
void sim_asked(u64 from, u64 to, u32 epoch, u8 path, u64 fault);
void sim_begins(u64 from, u64 to, u32 epoch, u32 psn);

/* oracle.c: whether a QP stays on its NIC for an operation that cannot be moved */
void sim_stays(int end, u32 qpn, bool stays);

#endif /* SIM_END_H */
