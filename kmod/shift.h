/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Objects of the module and who owns them.  See Documentation/locking.md for
 * the order of locks and the life of each object.
 */
#ifndef SHIFT_H
#define SHIFT_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
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
#include "flush.h"
#include "fsm.h"
#include "ledger.h"
#include "link.h"
#include "psn.h"
#include "ring.h"
#include "wq_rxe.h"

struct shift_provider;	/* provider.h */
struct shift_mlx5_qp;	/* provider_mlx5.h */
struct shift_notes;	/* mw.h */

enum shift_obj_type { SHIFT_OBJ_DEV = 1, SHIFT_OBJ_PD, SHIFT_OBJ_CQ, SHIFT_OBJ_QP,
		      SHIFT_OBJ_SRQ };

/**
 * struct shift_obj - head of everything that is found by a core object's pointer
 * @node: in shift_objects (object.c), keyed by @key.
 * @key: struct ib_device, ib_pd, ib_cq, ib_qp or ib_srq.
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
 * @driver: enum rdma_driver_id.
 * @saved: the driver's own operations, valid while @attached.
 * @attached: our wrappers are in ibdev->ops.
 * @tracking: new objects are shadowed (off while detaching).
 * @port_down: last port event.
 * @drained: an operator keeps QPs off it.
 * @policy: enum shift_policy of the pair.
 * @mirror_sem: read while something is made on the backup device, write to
 *	change @backup.  Outside sqp->lock and spd->lock.
 * @backup: who stands in for this device; NULL: not paired. @mirror_sem.
 * @carrier: of a pair: whose RDMA CM connects its links: itself, or another on the same
 *	interface if it has none; NULL: nobody's.  device.c.
 * @ring_sem: read while a fence looks into rings of CQs, write before one is
 *	unpinned.  Inside sqp->lock.
 * @objects: tracked PDs, CQs, QPs and SRQs.
 * @list_lock: @pds, @cqs, @qps, @srqs.
 * @qpn: QPs by QP number.
 * @mrs: MRs by lkey >> 8.
 * @mws: memory windows by rkey >> 8: Documentation/windows.md.
 * @mw_lock: what is known of them; inside ledger_lock.
 * @mw_mutex: the driver's windows; inside sqp->lock.
 */
struct shift_dev {
	struct shift_obj obj;
	struct list_head list;
	struct kref ref;
	struct ib_device *ibdev;
	char name[IB_DEVICE_NAME_MAX];
	u64 guid;
	u32 driver;
	struct ib_device_ops saved;
	bool attached;
	bool tracking;
	bool port_down;
	bool drained;
	u32 policy;
	struct rw_semaphore mirror_sem;
	struct rw_semaphore ring_sem;
	struct shift_dev *backup, *carrier;
	atomic_t objects;
	struct mutex list_lock;
	struct list_head pds, cqs, qps, srqs;
	struct list_head old_pds;	/* let go by applications, not by us; verbs_pd.c */
	struct xarray qpn;
	struct xarray mrs;
	struct xarray mws;
	spinlock_t mw_lock;
	struct mutex mw_mutex;
	struct ib_event_handler events;
};

/**
 * struct shift_pd - shadow of a user PD
 * @reason: why QPs of this PD cannot be protected (first one found), or 0.
 * @mirror: PD on the backup device, made with the first MR.
 * @region_mutex: @regions, their MRs, the umem of its MRs.
 * @regions: that stand in for its windows.
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
	bool windows;			/* it has, or had, memory windows */
	struct mutex region_mutex;
	struct list_head regions;
};

/** struct shift_mr - an MR, mirrored if it could be; in sdev->mrs by lkey >> 8 until dereg */
struct shift_mr {
	struct kref ref;
	struct shift_pd *spd;
	struct ib_mr *mr;
	struct ib_mr *mirror;		/* NULL: there is none */
	struct ib_umem *umem;		/* its pages, if windows may be bound to it */
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
	u64 fired;			/* mlx5: arm word that had its event, + 1 */
	const struct shift_provider *provider;	/* once it was registered */
	struct shift_ring ring;		/* user's CQ ring */
	struct shift_word flag;		/* user's flag word */
	struct shift_word db;		/* struct shift_cq_pins */
	struct shift_abi_side *side;	/* vmalloc_user */
	u32 side_len, side_entries;
	u32 side_producer;		/* ours; the shared one is a copy */
	u32 cqe;
	u32 promised;			/* entries that fences will yet write: fence_mlx5.c */
};

/* Paths of a QP; a message names the target by it. */
#define SHIFT_PATH_DEFAULT	0	/* its own QP on its own device, until it is fenced */
#define SHIFT_PATH_BACKUP	1	/* a QP of the kernel's on the backup device */
#define SHIFT_PATH_HOME		2	/* one on its own device: back after a switch */
#define SHIFT_PATHS		3
#define SHIFT_PATH_OWN		3	/* a target only: its own QP again, which is path 0 then */

#define SHIFT_QP_ERRORED	0	/* an error CQE was swallowed, or the active QP broke */
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
#define SHIFT_QP_FOLLOW		14	/* other QPs of its SRQ have left */
#define SHIFT_QP_READY		15	/* the receives of its SRQ have come: READY may be owed */
#define SHIFT_QP_STALE		16	/* reset while away: the driver's completions were shown */
#define SHIFT_QP_TIDY		12	/* QPs of the last switch are to be put away */
#define SHIFT_QP_KEPT		17	/* a doorbell was kept while GATED */
#define SHIFT_QP_SOON		18	/* is to be paired at the next tick: on a list */
#define SHIFT_QP_OWN		19	/* its own QP may be given back: own.c */

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
 * @most: receives that can be outstanding.
 * @slot_size: bytes of one.
 * @tail: oldest one that the application was not shown.
 * @done: oldest one without a completion.
 * @post: next one to post on the backup.
 * @head: next one to take from the ring.
 *
 * tail <= done <= post <= head, under ledger_lock; slot of sequence s: s % slots.
 */
struct shift_recvs {
	struct shift_recv *entry;
	u8 *raw;
	u32 slots, most, slot_size;
	u64 tail, done, post, head;
};

/** struct shift_qp_times - CLOCK_REALTIME ns of the last switch, for operators */
struct shift_qp_times {
	u64 fault, agreed, fenced, replayed, completion;
};

static inline u8 *shift_recv_raw(const struct shift_recvs *r, u64 seq)
{
	return r->raw + (size_t)((u32)seq & (r->slots - 1)) * r->slot_size;
}

/**
 * enum shift_rebase - how far the provider is with its rings: own.c; ledger_lock
 * @SHIFT_REBASE_NONE: it is not wanted.
 * @SHIFT_REBASE_WANTED: all is stopped and empty: it may begin.
 * @SHIFT_REBASE_BUSY: its rings are being changed: nothing is read there.
 * @SHIFT_REBASED: their indices begin with 0.
 */
enum shift_rebase {
	SHIFT_REBASE_NONE,
	SHIFT_REBASE_WANTED,
	SHIFT_REBASE_BUSY,
	SHIFT_REBASED,
};

struct shift_standby;	/* standby.h: a QP of the kernel's */
struct shift_srq;	/* srq.h: a shared receive queue */
struct shift_srq_pool;

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
	struct llist_node soon;		/* SHIFT_QP_SOON */
	u64 cookie, peer_cookie;
	u32 epoch, highest;		/* joined; highest sent or joined */
	u8 path, to;			/* active, target */
	u8 asks;			/* SWITCH_REQs of this switch */
	struct shift_life heard;	/* last one that executed for the peer; psn: expected */
	struct shift_life armed[SHIFT_PATHS];	/* last arming; psn: the peer's first */
	bool unfenced;			/* a NIC could not be asked since the last RUN */
	u8 move_to;			/* SHIFT_PATH_DEFAULT (its own device) or _BACKUP */
	u64 move_until, move_next;	/* ktime: so long (0: not) it is tried again, and when */
	u64 atomic_until;		/* ktime: so long an atomic waits for home; 0: none does */
	u8 waits;			/* SHIFT_QP_WAIT_*: what a move waits for; 0: nothing */
	u32 error_status;		/* enum ib_wc_status: first error kept back ... */
	u32 error_pos;			/* ... and where the send CQ's ring was then */
	u32 error_rpos;			/* ... and the receive CQ's */
	u32 fail_status;		/* enum ib_wc_status for the first unfinished */
	u32 owed_status;		/* one that was kept back, and waits for room in the CQ */
	u32 stop_status;		/* an operation that cannot be replayed waits */
	u64 key_since;			/* ktime: in @key_epoch @key_waits is waited for */
	u32 key_waits, key_epoch;
	bool first_done;		/* first completion on the new path was seen */
	enum shift_cause cause;
	u64 deadline_ns;		/* ktime: when the state at hand gives up */
	u64 reacked_ns;			/* ktime: when the peer was answered once more */
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
	bool rebases;			/* its provider can REBASE */
	bool start_told;		/* provider->starts() was called for the next RTS */
	const struct shift_provider *provider;	/* once it was registered */
	struct shift_ring sq, rq, sq_heads;
	struct shift_word gate;		/* user's flag word */
	struct shift_word sq_word, rq_word, anchor, sq_tail, rq_tail;	/* struct shift_qp_pins */
	struct shift_mlx5_qp *mlx5;	/* beside the ledger, and as long */
	u32 lock_free;
	bool provider_held;		/* flag word is set: providers WAIT */
	wait_queue_head_t gate_wait;

	/* given back to the application: own.c */
	bool own_hold;			/* what is posted waits; ledger_lock */
	enum shift_rebase rebase;	/* ledger_lock */
	bool own_ask;			/* the next ask is for that */
	bool own_aborted;		/* it did not come about: the switch back does not count */
	bool own_tired;			/* a post has waited too long for it; ledger_lock */
	bool own_connected;		/* the application's QP is, and a switch not over */
	bool own_alone;			/* the peer's QP is gone: its READY is not waited for */
	bool nudged;			/* its provider was sent a word, and has not got it */
	u64 nudged_ns, awake_ns, own_next_ns;	/* ktime: when, it got one, the next try */
	u8 own_tries;
	struct list_head own_node;	/* among those of which a process has one at a time */
	u32 own_peer_qpn;

	/* peer and backup */
	struct shift_link *link[2];	/* of the default and of the backup device */
	bool link_ok[2];		/* they are up; for readers without lock */
	union ib_gid backup_sgid, backup_dgid;
	bool peer_ok;			/* PAIR was exchanged both ways */
	bool peer_told;			/* peer was sent our cookie and its own */
	u8 peer_boot[16];		/* its boot id then */
	bool peer_atomic;		/* its NICs are atomic towards each other */
	bool resolved;			/* peer holds keys of ours */
	unsigned int pair_tries;
	struct shift_standby *active;	/* changed under ledger_lock */
	struct shift_standby *spare[SHIFT_PATHS];
	u32 qpn_here;			/* of ours, in the switch that was joined last */
	struct list_head retired;
	unsigned int nretired;
	struct xarray rkeys;		/* default rkey -> the path's, of the peer */
	bool windows;			/* both ends know what becomes of memory windows */
	struct shift_notes *notes;	/* NULL: we do not */

	struct shift_srq *ssrq;		/* NULL: it has receives of its own */
	/* under ssrq->lock */
	struct list_head srq_node;
	struct shift_srq_pool *srq_pool;	/* it draws from, or did; NULL: the user's ring */
	bool srq_live;			/* it can receive */
	bool srq_left;			/* before others of its SRQ */
	bool srq_waits;			/* READY is owed until the receives have come */
	struct list_head srq_done;	/* received, not shown; ledger_lock */

	spinlock_t ledger_lock;
	struct shift_ledger ledger;
	struct shift_recvs recvs;
	bool ledger_live;		/* it takes what is posted: default QP is fenced */
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
struct shift_dev *shift_dev_by_name(const char *name);
void shift_dev_choose_carrier(struct shift_dev *sdev);
void shift_dev_drop_backup(struct shift_dev *sdev);	/* sleeps; after shift_ops_detach() */
/* first usable GID of port 1: RoCE v2, IPv4-mapped before global IPv6 */
int shift_dev_gid(struct ib_device *ibdev, union ib_gid *gid);
struct shift_link *shift_dev_link(struct shift_dev *sdev, const union ib_gid *local,
				  const union ib_gid *remote);
/* is @gid one of @sdev's or of its backup's? mirror_sem held */
bool shift_gid_is_local(struct shift_dev *sdev, const union ib_gid *gid);
bool shift_gid_has_carrier(struct ib_device *ibdev, const union ib_gid *gid);

/* pair.c: process context */
int shift_pair_add(const char *dev, const char *backup, enum shift_policy policy,
		   struct netlink_ext_ack *extack);
int shift_pair_set(const char *dev, enum shift_policy policy, struct netlink_ext_ack *extack);
int shift_pair_del(const char *dev, struct netlink_ext_ack *extack);
/* QPs of @dev (all, or the one of @qpn) to @path; @keep: and those to come */
int shift_pair_move(const char *dev, u32 qpn, u8 path, bool keep,
		    struct netlink_ext_ack *extack);
/* calls @fn for every pair under shift_devices_lock; stops at non-zero */
int shift_pair_walk(int (*fn)(struct shift_dev *sdev, struct shift_dev *backup,
			      void *arg), void *arg);

/* ops.c: interposition */
extern struct srcu_struct shift_srcu;	/* slow wrappers */
int shift_ops_attach(struct shift_dev *sdev);
int shift_ops_detach(struct shift_dev *sdev, bool force);

static inline struct shift_dev *shift_ops_dev(struct ib_device *ibdev)
{
	struct shift_obj *obj = shift_object_find(ibdev, SHIFT_OBJ_DEV);

	return obj ? container_of(obj, struct shift_dev, obj) : NULL;
}

/* verbs_pd.c, verbs_mr.c: PDs and MRs */
extern const struct ib_device_ops shift_mr_ops;
extern const struct ib_device_ops shift_pd_ops;
void shift_pd_get(struct shift_pd *spd);
void shift_pd_put(struct shift_pd *spd);
struct shift_pd *shift_pd_find(struct ib_pd *pd);
void shift_pd_spoil(struct shift_pd *spd, enum shift_reason reason);
struct ib_pd *shift_pd_mirror(struct shift_pd *spd);	/* mirror_sem held */
struct shift_mr *shift_mr_find(struct shift_dev *sdev, u32 key);	/* kref taken */
void shift_mr_put(struct shift_mr *smr);
/* One that no device has given out: its index is beyond those of rxe, and no PD's. */
#define SHIFT_NO_KEY	(~0u)
int shift_mr_translate(struct shift_pd *spd, const struct shift_sge *sge, u8 path, u32 *key);
void shift_mr_device_gone(struct shift_dev *sdev, bool backup_only);
void shift_pd_device_gone(struct shift_dev *sdev, bool backup_only);

/* verbs_cq.c: CQs, side rings */
extern const struct ib_device_ops shift_cq_ops;
void shift_cq_get(struct shift_cq *scq);
void shift_cq_put(struct shift_cq *scq);
/**
 * struct shift_cq_slot - the slot of a user's ring that a completion is of
 * @sqp: its QP; ledger_lock.
 * @seq: its number.
 * @free: completed() or recvs_completed() of the provider; takes the number behind it.
 */
struct shift_cq_slot {
	struct shift_qp *sqp;
	u64 seq;
	void (*free)(struct shift_qp *sqp, u64 seq);
};

int shift_cq_push(struct shift_cq *scq, const struct shift_abi_wc *wc,
		  const struct shift_cq_slot *slot);
int shift_cq_tell(struct shift_cq *scq, const struct shift_abi_wc *wc);
bool shift_cq_registered(struct shift_cq *scq);
void shift_cq_device_gone(struct shift_dev *sdev);

/* register.c: process context of the owner */
int shift_cq_register(struct shift_cq *scq, const struct shift_abi_reg_cq *reg);
void shift_cq_unregister(struct shift_cq *scq);	/* not in a fence */
int shift_qp_register(struct shift_qp *sqp, const struct shift_abi_reg_qp *reg);
void shift_qp_unregister(struct shift_qp *sqp);

/* verbs_qp.c */
extern const struct ib_device_ops shift_qp_ops;
/* Is the application's QP somewhere else than on its default NIC? */
static inline bool shift_qp_is_away(const struct shift_qp *sqp)
{
	return sqp->path || test_bit(SHIFT_QP_FENCED, &sqp->flags) ||
	       sqp->state == SHIFT_ST_FAIL;
}

void shift_qp_device_gone(struct shift_dev *sdev);

/* qp.c */
void shift_qp_get(struct shift_qp *sqp);
void shift_qp_put(struct shift_qp *sqp);
struct shift_qp *shift_qp_find_cookie(u64 cookie);		/* kref taken */
struct shift_qp *shift_qp_find_qpn(struct shift_dev *sdev, u32 qpn); /* kref taken */
int shift_qp_new_cookie(struct shift_qp *sqp);
void shift_qp_renew_cookie(struct shift_qp *sqp);
struct shift_qp *shift_qp_next(unsigned long *index);		/* kref taken */
int shift_qp_init(void);
void shift_qp_uninit(void);
/* calls @fn for every tracked QP (of @spd, if given) with its lock held; stops at non-zero */
int shift_qp_walk(const struct shift_pd *spd, int (*fn)(struct shift_qp *sqp, void *arg),
		  void *arg);

/* chardev.c */
int shift_chardev_init(void);
void shift_chardev_uninit(void);

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
	SHIFT_STAT_UNKNOWN,		/* QPs whose NIC could not be asked how far it got */
	SHIFT_STAT_DOUBTFUL,		/* operations posted again that may be executed twice */
	SHIFT_STAT_STALLED,		/* kernel-owned QPs whose work stood still */
	SHIFT_STAT_GIVEN_BACK,		/* QPs that run on their application's own QP again */
	SHIFT_STAT_KICKS,		/* posts that a provider told of by a system call */
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
 * netlink.c, netlink_event.c; the notifiers may be called with sqp->lock held and never sleep
 * on user space (GFP_KERNEL under memalloc_noio, or dropped)
 */
int shift_netlink_init(void);
void shift_netlink_uninit(void);
void shift_notify_pair(struct shift_dev *sdev, struct shift_dev *backup, bool added);
void shift_notify_link(const struct shift_link_info *info);
void shift_notify_qp(struct shift_qp *sqp, enum shift_qp_event event, u64 time_ns);
const char *shift_reason_text(enum shift_reason reason);

#endif /* SHIFT_H */
