/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Objects of the module and who owns them.  See Documentation/locking.md for
 * the order of locks and the life of each object.
 */
#ifndef SHIFT_H
#define SHIFT_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rhashtable-types.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <linux/completion.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>
#include <uapi/linux/shift.h>
#include <uapi/rdma/shift-abi.h>
#include "fsm.h"
#include "ledger.h"
#include "link.h"
#include "psn.h"
#include "ring.h"
#include "wq_rxe.h"

enum shift_obj_type { SHIFT_OBJ_DEV = 1, SHIFT_OBJ_PD, SHIFT_OBJ_CQ, SHIFT_OBJ_QP };

/**
 * struct shift_obj - head of everything that is found by a core object's pointer
 * @node: in shift_objects (object.c), keyed by @key.
 * @key: struct ib_device, ib_pd, ib_cq or ib_qp.
 * @type: enum shift_obj_type.
 * @list: in the device's list of its type, under sdev->list_lock.
 * @rcu: freed after a grace period: fast wrappers look up under RCU.
 */
struct shift_obj {
	struct rhash_head node;
	const void *key;
	enum shift_obj_type type;
	struct list_head list;
	struct rcu_head rcu;
};

/**
 * struct shift_dev - one RDMA device, from ib_client add to remove
 * @obj: in shift_objects while our wrappers may look it up.
 * @list: in shift_devices, under shift_devices_lock.
 * @ref: freed when the last object that points here is gone.
 * @ibdev: the device; NULL after remove.
 * @name: as of add.
 * @guid: node GUID, the identity of the device.
 * @saved: the driver's own operations, valid while @attached.
 * @attached: our wrappers are in ibdev->ops.
 * @tracking: new objects are shadowed (off while detaching).
 * @port_down: last port event.
 * @drained: an operator keeps QPs off it.
 * @mirror_sem: read while something is made on the backup device, write to
 *	change @backup.  Outside sqp->lock and spd->lock.
 * @backup: who stands in for this device; NULL: not paired. @mirror_sem.
 * @ring_sem: read while a fence looks into rings of CQs, write before one is
 *	unpinned.  Inside sqp->lock.
 * @objects: tracked PDs, CQs and QPs.
 * @list_lock: @pds, @cqs, @qps.
 * @qpn: QPs by QP number.
 * @mrs: mirrored MRs by lkey >> 8.
 */
struct shift_dev {
	struct shift_obj obj;
	struct list_head list;
	struct kref ref;
	struct ib_device *ibdev;
	char name[IB_DEVICE_NAME_MAX];
	u64 guid;
	struct ib_device_ops saved;
	bool attached;
	bool tracking;
	bool port_down;
	bool drained;
	struct rw_semaphore mirror_sem;
	struct rw_semaphore ring_sem;
	struct shift_dev *backup;
	atomic_t objects;
	struct mutex list_lock;
	struct list_head pds, cqs, qps;
	struct xarray qpn;
	struct xarray mrs;
	struct ib_event_handler events;
};

/**
 * struct shift_pd - shadow of a user PD
 * @reason: why QPs of this PD cannot be protected (first one found), or 0.
 * @mirror: PD on the backup device, made with the first MR.
 */
struct shift_pd {
	struct shift_obj obj;
	struct kref ref;
	struct shift_dev *sdev;
	struct ib_pd *pd;
	struct mutex lock;		/* mirror */
	struct shift_dev *bdev;
	struct ib_pd *mirror;
	atomic_t reason;
	bool resolved;			/* peers hold keys of it */
};

/** struct shift_mr - a mirrored MR; in sdev->mrs by lkey >> 8 until dereg */
struct shift_mr {
	struct kref ref;
	struct shift_pd *spd;
	struct ib_mr *mr;
	struct ib_mr *mirror;
	struct mm_struct *mm;		/* mmgrab'd, for the memlock credit */
	unsigned long npages;
	u64 iova, length;
	int access;
	u32 lkey, rkey;			/* default */
	u32 mirror_lkey, mirror_rkey;
	struct rcu_head rcu;
};

/** struct shift_cq - shadow of a user CQ */
struct shift_cq {
	struct shift_obj obj;
	struct kref ref;
	struct shift_dev *sdev;
	struct ib_cq *cq;		/* NULL once destroyed; under lock */
	struct ib_uverbs_file *ufile;	/* for comparison only */
	u32 handle;
	struct mm_struct *mm;		/* for comparison only */
	spinlock_t lock;		/* side ring, armed, cq */
	bool registered;
	u8 armed;			/* IB_CQ_SOLICITED, IB_CQ_NEXT_COMP; 0: not */
	struct shift_ring ring;		/* user's CQ ring */
	struct shift_word flag;		/* user's flag word */
	struct shift_abi_side *side;	/* vmalloc_user */
	u32 side_len, side_entries;
	u32 side_producer;		/* ours; the shared one is a copy */
	u32 cqe;
};

/* Paths of a QP; a message names the target by it. */
#define SHIFT_PATH_DEFAULT	0	/* its own QP on its own device, until it is fenced */
#define SHIFT_PATH_BACKUP	1	/* a QP of the kernel's on the backup device */
#define SHIFT_PATH_HOME		2	/* one on its own device: back after a switch */
#define SHIFT_PATHS		3

#define SHIFT_QP_ERRORED	0	/* an error CQE was swallowed */
#define SHIFT_QP_FENCED		1	/* default or backup was reset since the last RUN */
#define SHIFT_QP_GATED		2	/* the provider waits, doorbells are kept */
#define SHIFT_QP_KICK		3	/* the ring has new work */
#define SHIFT_QP_FAULT		4	/* a trigger is pending */
#define SHIFT_QP_DEADLINE	5
#define SHIFT_QP_RETRY_PAIR	6
#define SHIFT_QP_APP		7	/* application's own error or teardown */
#define SHIFT_QP_STANDBY_ERR	8	/* the active one reported an error */
#define SHIFT_QP_DEAD		9	/* being destroyed: no new work */
#define SHIFT_QP_FIRST		10	/* first completion on the new path: tell operators */
#define SHIFT_QP_MOVE		11	/* an operator, or failback, wants it on @move_to */
#define SHIFT_QP_SILENT		13	/* the path it is on loses everything */
#define SHIFT_QP_TIDY		12	/* QPs of the last switch are to be put away */

/* kinds of messages that can wait in a QP's mailbox: one each, newest epoch */
struct shift_mailbox {
	u32 valid;			/* bit per enum shift_msg_type */
	struct shift_msg msg[__SHIFT_MSG_MAX];
};

/**
 * struct shift_life - one time on one path, from its arming to its RESET
 * @path: 0 default.
 * @epoch: of the switch that armed it; 0: the application did.
 * @psn: who reads it knows what it counts.
 */
struct shift_life {
	u8 path;
	u32 epoch, psn;
};

/** struct shift_recv - what a receive got, as in struct ib_wc */
struct shift_recv {
	u32 status, opcode, byte_len, ex, wc_flags;
};

/**
 * struct shift_recvs - receives of a QP that is away from its default NIC
 * @entry: per slot.
 * @raw: kernel copy of the user's ring, slot for slot.
 * @slots: power of two; 0: no receive queue.
 * @slot_size: bytes of one.
 * @tail: oldest one that the application was not shown.
 * @done: oldest one without a completion.
 * @post: next one to post on the backup.
 * @head: next one to take from the ring.
 * @imm_len: length of a WRITE with immediate that is resumed, for the first one.
 *
 * tail <= done <= post <= head, under ledger_lock; slot of sequence s: s % slots.
 */
struct shift_recvs {
	struct shift_recv *entry;
	u8 *raw;
	u32 slots, slot_size;
	u64 tail, done, post, head;
	u32 imm_len;
};

/** struct shift_qp_times - CLOCK_REALTIME ns of the last switch, for operators */
struct shift_qp_times {
	u64 fault, agreed, fenced, replayed, completion;
};

struct shift_standby;	/* standby.h: a QP of the kernel's */

/**
 * struct shift_qp - a user RC QP and its shadow
 *
 * @lock serializes the machine (the work item) with modify, query and destroy.
 * @ledger_lock protects the ledger and the user ring's consumer index; taken in
 * completion context, inside @lock.  @inbox_lock protects the mailbox.
 */
struct shift_qp {
	struct shift_obj obj;
	struct kref ref;
	struct shift_dev *sdev;
	struct shift_pd *spd;
	struct shift_cq *scq, *rcq;
	struct ib_qp *qp;		/* default; NULL once destroyed; under lock */
	u32 qpn;
	struct ib_uverbs_file *ufile;
	u32 handle;
	struct mm_struct *mm;		/* for comparison only */
	pid_t pid;
	char comm[TASK_COMM_LEN];
	struct ib_qp_init_attr attr;	/* as created */
	u32 asked_send, asked_recv;	/* depths that it wanted */
	bool sig_all;

	struct mutex lock;
	enum shift_state state;
	enum shift_reason reason;	/* if state is OFF, FAIL or APP */
	unsigned long flags;		/* SHIFT_QP_* */
	struct work_struct work;
	struct delayed_work timer;
	u64 cookie, peer_cookie;
	u32 epoch, highest;		/* joined; highest sent or joined */
	u8 path, to;			/* active, target */
	u8 asks;			/* SWITCH_REQs of this switch */
	struct shift_life heard;	/* last one that executed for the peer; psn: expected */
	struct shift_life armed[SHIFT_PATHS];	/* last arming; psn: the peer's first */
	bool unfenced;			/* it could not be asked */
	u8 move_to;			/* SHIFT_PATH_DEFAULT (its own device) or _BACKUP */
	u32 error_status;		/* enum ib_wc_status: first error kept back ... */
	u32 error_pos;			/* ... and where the send CQ's ring was then */
	u32 error_rpos;			/* ... and the receive CQ's */
	u32 fail_status;		/* enum ib_wc_status for the first unfinished */
	u32 stop_status;		/* an operation that cannot be replayed waits */
	bool first_done;		/* first completion on the new path was seen */
	enum shift_cause cause;
	u64 deadline_ns;		/* ktime: when the state at hand gives up */
	unsigned long key_asked;	/* jiffies of the last RESOLVE */
	u32 switches;
	struct shift_qp_times times;
	u32 replayed, executed;

	/* what the application connected, from its modify_qp */
	enum ib_qp_state app_state;
	u32 dest_qpn, sq_psn, rq_psn, mtu;
	union ib_gid sgid, dgid;
	struct ib_qp_attr app;		/* last values of what we re-use */

	/* provider */
	bool registered;
	struct shift_ring sq, rq;
	struct shift_word gate;		/* user's flag word */
	struct shift_word sq_lock, rq_lock;
	u32 lock_free;
	bool provider_held;		/* flag word is set: providers WAIT */
	wait_queue_head_t gate_wait;

	/* peer and backup */
	struct shift_link *link[2];	/* of the default and of the backup device */
	union ib_gid backup_sgid, backup_dgid;
	bool peer_ok;			/* PAIR was exchanged both ways */
	bool peer_told;			/* peer was sent our cookie and its own */
	bool peer_atomic;		/* its NICs are atomic towards each other */
	bool resolved;			/* peer holds keys of ours */
	unsigned int pair_tries;
	struct shift_standby *active;	/* changed under ledger_lock */
	struct shift_standby *spare[SHIFT_PATHS];
	u32 qpn_here;			/* of ours, in the switch that was joined last */
	struct list_head retired;
	struct xarray rkeys;		/* default rkey -> backup rkey, of the peer */

	spinlock_t ledger_lock;
	struct shift_ledger ledger;
	struct shift_recvs recvs;
	bool ledger_live;		/* it takes what is posted: default QP is fenced */
	u32 resumed_imm;		/* length of a WRITE with immediate that is resumed */
	/*
	 * Where operations went whose end is not known; psn: of the ledger's tail
	 * (path 0), or of the oldest that is SENT there.
	 */
	struct shift_life sent;
	bool sent_any;			/* there are such */

	spinlock_t inbox_lock;
	struct shift_mailbox inbox;
};

/* object.c: find shadows by the core's pointers; RCU */
int shift_object_init(void);
void shift_object_uninit(void);
int shift_object_insert(struct shift_obj *obj, const void *key, enum shift_obj_type type);
bool shift_object_remove(struct shift_obj *obj);	/* true for one caller only */
struct shift_obj *shift_object_find(const void *key, enum shift_obj_type type);

/* device.c */
extern struct list_head shift_devices;
extern struct mutex shift_devices_lock;
int shift_device_init(void);
void shift_device_uninit(void);
struct shift_dev *shift_dev_get(struct shift_dev *sdev);
void shift_dev_put(struct shift_dev *sdev);
int shift_pair_add(const char *dev, const char *backup, struct netlink_ext_ack *extack);
int shift_pair_del(const char *dev, struct netlink_ext_ack *extack);
/* QPs of @dev (all, or the one of @qpn) to @path; @keep: and those to come */
int shift_pair_move(const char *dev, u32 qpn, u8 path, bool keep,
		    struct netlink_ext_ack *extack);
/* calls @fn for every pair under shift_devices_lock; stops at non-zero */
int shift_pair_walk(int (*fn)(struct shift_dev *sdev, struct shift_dev *backup,
			      void *arg), void *arg);
/* first usable GID of port 1: RoCE v2, IPv4-mapped before global IPv6 */
int shift_dev_gid(struct ib_device *ibdev, union ib_gid *gid);
/* is @gid one of @sdev's or of its backup's? mirror_sem held */
bool shift_gid_is_local(struct shift_dev *sdev, const union ib_gid *gid);

/* ops.c: interposition */
extern struct srcu_struct shift_srcu;	/* slow wrappers */
int shift_ops_attach(struct shift_dev *sdev);
int shift_ops_detach(struct shift_dev *sdev, bool force);

static inline struct shift_dev *shift_ops_dev(struct ib_device *ibdev)
{
	struct shift_obj *obj = shift_object_find(ibdev, SHIFT_OBJ_DEV);

	return obj ? container_of(obj, struct shift_dev, obj) : NULL;
}

/* verbs_mr.c: PDs and MRs */
extern const struct ib_device_ops shift_mr_ops;
void shift_pd_get(struct shift_pd *spd);
void shift_pd_put(struct shift_pd *spd);
void shift_pd_spoil(struct shift_pd *spd, enum shift_reason reason);
struct ib_pd *shift_pd_mirror(struct shift_pd *spd);	/* mirror_sem held */
struct shift_mr *shift_mr_find(struct shift_dev *sdev, u32 key);	/* kref taken */
void shift_mr_put(struct shift_mr *smr);
int shift_mr_translate(struct shift_pd *spd, const struct shift_sge *sge, u32 *key);
void shift_mr_device_gone(struct shift_dev *sdev, bool backup_only);

/* verbs_cq.c: CQs, side rings */
extern const struct ib_device_ops shift_cq_ops;
void shift_cq_get(struct shift_cq *scq);
void shift_cq_put(struct shift_cq *scq);
int shift_cq_push(struct shift_cq *scq, const struct shift_abi_wc *wc);
void shift_cq_unregister(struct shift_cq *scq);	/* process context; not in a fence */
bool shift_cq_registered(struct shift_cq *scq);
void shift_cq_device_gone(struct shift_dev *sdev);

/* verbs_qp.c */
extern const struct ib_device_ops shift_qp_ops;
void shift_qp_get(struct shift_qp *sqp);
void shift_qp_put(struct shift_qp *sqp);
struct shift_qp *shift_qp_find_cookie(u64 cookie);		/* kref taken */
struct shift_qp *shift_qp_find_qpn(struct shift_dev *sdev, u32 qpn); /* kref taken */
void shift_qp_unregister(struct shift_qp *sqp);
void shift_qp_device_gone(struct shift_dev *sdev);
int shift_qp_init(void);
void shift_qp_uninit(void);
/* calls @fn for every tracked QP with its lock held; stops at non-zero */
int shift_qp_walk(int (*fn)(struct shift_qp *sqp, void *arg), void *arg);

/* chardev.c */
int shift_chardev_init(void);
void shift_chardev_uninit(void);

/* pairing.c: the way from a connected QP to a protected one, and its messages */
void shift_pairing_run(struct shift_qp *sqp);		/* sqp->lock */
void shift_pairing_message(struct shift_qp *sqp, const struct shift_msg *m);
/* tell peers of its PD's QPs that a key is gone; process context */
void shift_pairing_revoke(struct shift_mr *smr);
void shift_pairing_drop(struct shift_qp *sqp);		/* sqp->lock */
/* 0: *key; -EINPROGRESS: not known yet; -ENOENT: the peer has none */
int shift_pairing_key(const struct shift_qp *sqp, u32 rkey, u32 *key);	/* any context */
void shift_pairing_ask_key(struct shift_qp *sqp, u32 rkey);		/* sqp->lock */

/* inbox.c: what waits for the machine; any context that may take a spinlock */
#define SHIFT_RESEND_MS	100	/* between copies of a message that may be lost */
#define SHIFT_AGAIN_MS	500	/* to the next try while the port stays down */
void shift_switch_kick(struct shift_qp *sqp, unsigned int bit);
void shift_switch_arm(struct shift_qp *sqp, unsigned int ms);
void shift_switch_timer(struct work_struct *work);
void shift_switch_deliver(struct shift_qp *sqp, const struct shift_msg *m);
bool shift_inbox_take(struct shift_qp *sqp, struct shift_msg *m);
void shift_inbox_keep(struct shift_qp *sqp, const struct shift_msg *m);
void shift_inbox_clear(struct shift_qp *sqp);
void shift_switch_state(struct shift_qp *sqp, enum shift_state state);

/* machine.c: the work item */
void shift_switch_work(struct work_struct *work);

/* switch.c: rules and actions; sqp->lock */
void shift_switch_event(struct shift_qp *sqp, enum shift_event event,
			const struct shift_msg *m);
void shift_switch_nack(struct shift_qp *sqp, const struct shift_msg *m);
int shift_switch_send(struct shift_qp *sqp, u8 path, struct shift_msg *m);
struct shift_link *shift_switch_link(const struct shift_qp *sqp, u8 path);
void shift_switch_resend(struct shift_qp *sqp);
bool shift_switch_usable(const struct shift_qp *sqp);	/* racy: a guard */
bool shift_switch_healthy(struct shift_qp *sqp);

/* ending.c: how it ends other than well; sqp->lock */
void shift_switch_call_off(struct shift_qp *sqp);
void shift_switch_fail(struct shift_qp *sqp, u32 status);
void shift_switch_app(struct shift_qp *sqp);
void shift_switch_unprotect(struct shift_qp *sqp, enum shift_reason reason);

/* verdict.c: what applications and operators are shown */
enum shift_abi_verdict shift_switch_verdict(struct shift_qp *sqp, u32 status);
enum shift_qp_state shift_qp_shown(const struct shift_qp *sqp);	/* sqp->lock */
void shift_qp_refresh(struct shift_qp *sqp);	/* sqp->lock */

/* fence.c: stop the default QP and take over its work queue; sqp->lock */
int shift_fence(struct shift_qp *sqp, bool *errored);
int shift_fence_query(struct shift_qp *sqp, struct ib_qp_attr *attr);
bool shift_fence_hold(struct shift_qp *sqp);	/* keep the provider off its rings */
void shift_fence_heard(struct shift_qp *sqp, u8 path, u32 expected);
void shift_fence_open(struct shift_qp *sqp);	/* let the provider go on */
int shift_fence_supported(struct shift_qp *sqp);
void shift_fence_mark_start(struct shift_qp *sqp);
u32 shift_fence_cause(struct shift_qp *sqp);	/* any context */

/* tally.c: counting in the memory of a user's CQ */
u32 shift_tally_begin(struct shift_cq *scq);
int shift_tally_done(struct shift_qp *sqp, struct shift_cq *scq, u32 from, bool recvs, u8 *slot);
void shift_tally_mark_error(struct shift_qp *sqp, u32 status);	/* any context */
int shift_tally_errors(struct shift_qp *sqp, struct shift_cq *scq, u32 pos, u32 least, u8 *slot);

/* replay.c: the ledger towards the backup QP and the application */
void shift_replay_pump(struct shift_qp *sqp);	/* sqp->lock */
void shift_replay_doorbell(struct shift_qp *sqp);	/* any context */
void shift_replay_deliver(struct shift_qp *sqp);	/* any process context */
void shift_replay_flush(struct shift_qp *sqp);	/* sqp->lock */
int shift_replay_progress(struct shift_qp *sqp, const struct shift_msg *m);

/* recv.c: receives of a QP that is away */
int shift_recv_init(struct shift_recvs *r, const struct shift_ring *ring);
void shift_recv_free(struct shift_recvs *r);
void shift_recv_capture(struct shift_qp *sqp);		/* sqp->lock; before RESET */
bool shift_recv_used(const struct shift_qp *sqp);	/* ever; after capture */
void shift_recv_start(struct shift_qp *sqp, u32 first, u32 count); /* ledger_lock */
void shift_recv_rewind(struct shift_qp *sqp);		/* ledger_lock */
void shift_recv_pump(struct shift_qp *sqp);		/* sqp->lock; armed */
void shift_recv_doorbell(struct shift_qp *sqp);		/* any context but softirq */
void shift_recv_done(struct shift_qp *sqp, const struct ib_wc *wc); /* ledger_lock */
void shift_recv_deliver(struct shift_qp *sqp);		/* any but hard interrupts */
void shift_recv_flush(struct shift_qp *sqp);		/* sqp->lock */
void shift_recv_imm_len(struct shift_qp *sqp, u32 len);

/* move.c: changes of path that somebody wants */
void shift_move_run(struct shift_qp *sqp);		/* sqp->lock */
void shift_move_settle(struct shift_qp *sqp);		/* sqp->lock; sleeps */
/* ask for it; process context, no lock: QPs told so.  One of @sdev and @link_id */
unsigned int shift_move_ask(struct shift_dev *sdev, u32 link_id, u32 qpn, u8 to);

/* standby.c: QPs of the kernel's; sqp->lock */
int shift_standby_prepare(struct shift_qp *sqp, u8 path);
u32 shift_standby_qpn(const struct shift_qp *sqp, u8 path);
int shift_standby_arm(struct shift_qp *sqp, u8 path, u32 epoch, u32 qpn);
void shift_standby_open(struct shift_qp *sqp);
int shift_standby_fence(struct shift_qp *sqp);
void shift_standby_stop(struct shift_qp *sqp);
void shift_standby_tidy(struct shift_qp *sqp);
void shift_standby_destroy(struct shift_qp *sqp);
void shift_qp_quiet(struct ib_qp *qp);			/* no lock needed */
u32 shift_start_psn(u64 cookie, u32 epoch);

/* standby_post.c: work for the active one */
int shift_standby_post(struct shift_qp *sqp, u64 seq, u32 *rkey);	/* ledger_lock */
int shift_standby_post_recv(struct shift_qp *sqp, u64 seq);		/* ledger_lock */
bool shift_standby_is_open(const struct shift_qp *sqp);			/* ledger_lock */
void shift_standby_hold(struct shift_qp *sqp, bool hold);
bool shift_standby_recv_failed(const struct shift_qp *sqp);
u32 shift_standby_error(const struct shift_qp *sqp);	/* ib_wc_status, 0: none */
bool shift_standby_busy(const struct shift_qp *sqp);

/* node identity (main.c) */
extern char shift_node[SHIFT_NODE_MAX];
extern struct workqueue_struct *shift_wq;
extern unsigned int shift_deadline_scale;

/* counters (stat.c): monotonic */
enum shift_stat {
	SHIFT_STAT_FAULTS,		/* triggers accepted */
	SHIFT_STAT_SWITCHES,		/* failovers completed */
	SHIFT_STAT_ABANDONED,		/* called off, nothing changed */
	SHIFT_STAT_FAILED,		/* ended in an error to the application */
	SHIFT_STAT_REPLAYED,		/* operations posted again */
	SHIFT_STAT_RESUMED,		/* of them, WRITEs resumed in the middle */
	SHIFT_STAT_EXECUTED,		/* operations found executed, not replayed */
	SHIFT_STAT_SWALLOWED,		/* error completions kept from applications */
	SHIFT_STAT_SIDE_WC,		/* completions delivered through side rings */
	SHIFT_STAT_MIRROR_MR,		/* MR mirrors made */
	SHIFT_STAT_MIRROR_FAILED,
	SHIFT_STAT_PAIRED,		/* QPs that became protected */
	SHIFT_STAT_ILLEGAL,		/* transitions refused */
	SHIFT_STAT_MSG_BAD,		/* malformed messages dropped */
	SHIFT_STAT_MSG_STALE,		/* messages of an old epoch ignored */
	SHIFT_STAT_RETURNS,		/* of the switches, those back to the default NIC */
	SHIFT_STAT_EVENT_LOST,		/* netlink events dropped for want of memory */
	__SHIFT_STAT_MAX
};
void shift_stat_add(enum shift_stat stat, unsigned long n);
static inline void shift_stat_inc(enum shift_stat stat)
{
	shift_stat_add(stat, 1);
}
u64 shift_stat_read(enum shift_stat stat);
const char *shift_stat_name(enum shift_stat stat);

/*
 * netlink.c; the notifiers may be called with sqp->lock held and never sleep
 * on user space (GFP_KERNEL under memalloc_noio, or dropped)
 */
int shift_netlink_init(void);
void shift_netlink_uninit(void);
void shift_notify_pair(struct shift_dev *sdev, struct shift_dev *backup, bool added);
void shift_notify_link(const struct shift_link_info *info);
void shift_notify_qp(struct shift_qp *sqp, enum shift_qp_event event, u64 time_ns);
const char *shift_reason_text(enum shift_reason reason);

#endif /* SHIFT_H */
