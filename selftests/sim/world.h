/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of the world: applications, networks, faults and the oracle share one run. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "end.h"
#include "shift_side.h"
#include "shift_srq.h"

#define QPS_MAX		3u		/* of an application */
#define OPS_MAX		64u
#define PACKETS_MAX	6u
#define RECVS_MAX	(2 * OPS_MAX)
#define SRQ_NUMBERS	1024u		/* that are made in a run */

#define CELLS		4u		/* of memory that several operations name */
#define NO_CELL		CELLS

struct op {
	u32 opcode, length, packets, flags, cell;
	u64 remote_addr, posted_at;
	u8 done[PACKETS_MAX];		/* how often each packet was executed */
	u32 executed, recv;
	bool twice;			/* executed, in part or as a whole */
	u64 result;			/* of an atomic: what it has found */
	u64 got[PACKETS_MAX], got_at[PACKETS_MAX];	/* of its answer; 0: not yet */
};

enum recv_state {
	RECV_POSTED,
	RECV_TAKEN,		/* from a shared queue, by a message that comes */
	RECV_DROPPED,		/* the same, but its QP was stopped */
	RECV_USED, RECV_SHOWN,
};

/* the receives of a queue: of one QP, or shared */
struct recvs {
	u32 number;
	bool shared;
	u32 posted, shown;
	u32 from;			/* the SRQ of which one was taken last */
	bool left[SRQ_NUMBERS];		/* SRQs from which no more are taken */
	bool lent;			/* some were, to the application's ring */
	/* id: the operation that has used it; limits: of its SRQ, when it was taken */
	/* lent: the kernel has put it into the application's ring, and is not told when it is taken */
	struct { enum recv_state state; u32 id, srq, limits; bool lent; } recv[RECVS_MAX];
};

/* a shared receive queue, which all QPs of one end are on, or none */
struct shared {
	bool there;
	bool made;			/* by its application, which is alive */
	struct sim_app_srq app;
	struct shift_srq_table table;
	struct recvs recvs;
	bool locked;
	u32 at;				/* of its rings */
	u32 limit;			/* an event is wanted */
	bool asking;			/* for that event */
	u32 limits;			/* how many were set */
	u32 unseen;			/* taken from the ring since then, which nobody is told */
	bool unsure;			/* whether one is wanted */
	bool again;			/* it may come once too often */
	bool gone;			/* its backup device has gone, perhaps with receives */
	u64 dry;			/* until then nobody posts */
};

/* one end of a connection: a QP and its application */
struct side {
	int end;
	struct side *peer;		/* itself, if it is connected to itself */
	u32 qpn;
	struct sim_app_qp app;
	struct sim_app_cq cq[2];	/* its sends', and its receives' if they have another */
	struct shift_side ring[2];	/* of the CQs: what the kernel has completed */
	bool polling;			/* the lock of both CQs is held */
	struct op op[OPS_MAX];
	u32 ops, posted, completed;	/* to post; posted; the next that may be completed */
	u32 executed;			/* of its operations, at the peer */
	struct shared *srq;		/* or NULL */
	struct recvs *recvs, own;
	u32 used, shown;		/* receives, by this QP */
	u32 recv[RECVS_MAX];		/* in which order */
	bool error;			/* its application was shown one */
	bool send_error;		/* of an operation */
	bool vague;			/* that is all it gets */
	bool ended;			/* it has ended its QP itself */
	bool flushed;			/* by ERR: all that it has posted is completed */
	bool lost;			/* its first error is that of an atomic that may have one */
	bool stays;			/* on its NIC, for an atomic */
	bool late;			/* it begins after a crash */
	bool crashed;			/* with its node, or its device was removed */
	bool rebooted;			/* its node has another kernel now */
	bool alive, over;		/* it has a QP; its application has ended */
	u64 asleep;			/* until then it does not poll */
	u32 threads;			/* of its application */
};

/* what may go wrong in a run: drawn once */
struct plan {
	bool mild, forgets, moves, ends, nomem, stuck, pollers;
	bool storm;			/* the work items of an end's QPs are late */
	bool patient;			/* its QPs' own retries bridge any fault */
	bool restarts, late, removes, again, anew, lower[SIM_NETS];
	bool loops;			/* the last QP of each end is connected to itself */
	bool reads, atomics, global;	/* a counter may be reached through both devices */
	struct sim_shape shape;
	u32 calm_ms;			/* from one fault of a mild run to the next */
	/* of one to so many: what may happen instead of another fault, and what applications do */
	struct { u32 restart, remove, end, resize, limit, rebase; } odds;
	u32 srqs;			/* ends whose QPs share receives, whatever chance says */
	u32 joins;			/* late connections begin after so many faults; 0: of all */
	u32 homes;			/* QPs are moved away, and home, and one of so many faults is another */
	u32 refuses;			/* verbs in a row that a NIC may refuse */
	bool idle;			/* end 1 posts no sends: its QPs do not break if the peer's go */
	bool early;			/* the first fault may come before QPs are protected */
	bool only_moves;		/* nothing happens but moves by an operator */
	u32 qps, faults, pace, mail, naps, dry, policy[SIM_ENDS];
};

struct call { int end, net; struct side *side; bool up, silent, down; u8 to; };

extern const struct sim_kernel *const kernel[SIM_ENDS];
extern struct sim_dev dev[SIM_ENDS][SIM_NETS];
extern struct side side[QPS_MAX][SIM_ENDS];
extern struct shared shared[SIM_ENDS];
extern struct plan plan;
extern bool stopping;			/* applications are to end */
extern bool over;			/* and have ended */
extern bool may_fail;			/* an application may be shown an error */
extern bool unpaired;			/* an end has no pair any more */
extern bool harmed;			/* something else than a move has happened */
extern u32 phase;			/* of the faults; work is left for each */
extern u32 helpers;			/* threads of the world that have not ended */

#define for_each_side(s) for (s = side[0]; s < side[plan.qps]; s++)

/* of an operation, in all of a run */
static inline u32 id_of(const struct side *s, u32 n)
{
	return (s - side[0]) * OPS_MAX + n;
}

/* world.c: a helper that gets a copy of @what */
void call_start(int end, const char *name, sim_fn *fn, const struct call *what);

/* worlds.c: runs that have more of one kind of trouble */
bool world_pick(const char *name);	/* false: there is none of that name */
void world_weigh(void);			/* a plan was drawn */
void world_begin(void);			/* the faults begin */

/* app.c */
void app_start(struct side *s);
bool app_is_put_off(void);		/* one of them, in the middle of something */

/* library.c: what a patched provider does, between an application and its device */
struct sim_wc { u64 wr_id; u32 status, byte_len, imm; bool recv; };
void lib_start(struct side *s);
void lib_post_send(struct side *s, const struct sim_wr *wr);
void lib_post_recv(struct side *s, void (*fill)(struct side *s, struct sim_wr *wr));
void lib_srq_start(int end);
void lib_srq_stop(int end);
int lib_srq_resize(int end);
bool lib_srq_is_away(int end);
bool lib_poll(struct side *s, struct sim_wc *wc);	/* false: there is nothing */

/* oracle.c */
struct op *op_of(const struct sim_wr *wr, u32 packet, struct side **from);
void is_executed_at(int end, const struct side *from);
void op_is_due(struct side *from, u32 n);
void saw_send(struct side *s, const struct sim_wc *wc);
void saw_error(struct side *s, const char *what, u32 n, u32 status);
u32 oracle_twice(int end);		/* operations that were executed twice */
bool may_be_twice(const struct side *s);
bool at_rest(const struct side *s);
void oracle_check(void);		/* everything is over */

/* asks.c */
void asks_start(void);

/* memory.c */
void memory_start(void);
void memory_touch(int end);		/* the application writes itself */
void memory_write(const struct side *from, const struct op *op, u32 packet);
void memory_check(const struct side *s, u32 n);		/* what a READ or an atomic has brought */
u64 memory_counter(int end, u32 cell);
bool op_has_answer(const struct op *op);
bool op_is_atomic(const struct op *op);
bool op_is_answered(const struct op *op);
/* node.c */
void node_start(void);
void nodes_boot(void);			/* both, and connections that begin with them */
void nodes_late(void);			/* the other connections, unless they have begun */
void nodes_check(void);
void nodes_halt(void);
void node_restarts(int end, u64 pause_ns);

void sides_draw(void);			/* connections of one act */
void sides_begin(bool late);
void sides_destroy(int end);		/* -1: of both */

/* device.c */
void pair_is_kept(int end);
void pair_anew(int end);
bool device_is_gone(int end, int net);
void device_goes(int end, int net);
void devices_return(void);
void memory_anew(int end, bool breaks);

/* recvs.c */
u64 recvs_addr(const struct recvs *q, u32 r);
void recvs_used(struct side *to, u32 id, u64 addr);
bool recvs_shown(const struct side *s);
void recvs_home(int end);
void recvs_check(const struct side *s);
void saw_recv(struct side *s, const struct sim_wc *wc);
void saw_limit(struct ib_event *event, void *context);
void shared_check(int end);

/* net.c */
bool net_works(int net);
void net_break(int net, bool silent);
void net_mended(void);			/* nothing goes wrong any more: wait for links */

/* resize.c */
void resize_start(int end);

/* fault.c */
void faults(void);
void repair(void);

#endif /* SIM_WORLD_H */
