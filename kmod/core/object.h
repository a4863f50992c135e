/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shadow objects of devices, PDs, MRs and CQs, and how they are found.
 * Documentation/internals/locking.md has the order of locks and the lifetime of each object.
 */
#ifndef SHIFT_CORE_OBJECT_H
#define SHIFT_CORE_OBJECT_H

#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <uapi/linux/shift.h>
#include <uapi/rdma/shift-abi.h>
#include "core/charge.h"
#include "core/proof.h"
#include "core/ring.h"
#include "pure/ulp.h"

struct shift_kernel_cq;
struct shift_kernel_mr;
struct shift_pair;
struct shift_provider;
struct shift_qp;
struct shift_sge;

enum shift_obj_type { SHIFT_OBJ_DEV = 1, SHIFT_OBJ_PD, SHIFT_OBJ_CQ, SHIFT_OBJ_QP,
		      SHIFT_OBJ_SRQ };

/**
 * struct shift_obj - head of everything that is found by a core object's pointer
 * @node: in shift_objects (object.c), keyed by @key.
 * @key: struct ib_device, ib_pd, ib_cq, ib_qp or ib_srq.
 * @type: enum shift_obj_type.
 * @list: in the device's list of its type, under sdev->list_lock.
 * @ufile, @handle, @mm: the application's uverbs file, its number there, and its process.  Only
 *	compared, never followed.
 * @rcu: freed after a grace period, as wrappers that do not sleep look up under RCU.
 */
struct shift_obj {
	struct hlist_node node;
	const void *key;
	enum shift_obj_type type;
	struct list_head list;
	struct ib_uverbs_file *ufile;
	u32 handle;
	struct mm_struct *mm;
	struct rcu_head rcu;
};

/* Called in the thread that creates the object. */
static inline void shift_obj_set_owner(struct shift_obj *obj, const struct ib_uobject *uobject)
{
	obj->ufile = uobject->ufile;
	obj->handle = uobject->id;
	obj->mm = current->mm;
}

/**
 * struct shift_dev - one RDMA device, from ib_client add to remove
 * @obj: in shift_objects while our wrappers may look it up.
 * @list: in shift_devices, under shift_devices_lock.
 * @ref: freed when the last object that points here is gone.
 * @ibdev: the device; NULL after remove.
 * @name: present name; written under shift_devices_lock and shift_name_lock.
 * @guid: node GUID, the identity of the device.
 * @driver: enum rdma_driver_id.
 * @provider: the operations for its kind; NULL: its QPs are not protected.
 * @proof: what it was seen to do of what @provider assumes.
 * @ops_mutex: held to change the device's operations, and while waiting for wrappers that still
 *	run.
 * @saved: the driver's own operations, valid while @attached.
 * @attached: our wrappers are in ibdev->ops; @ops_mutex.
 * @srcu: held by wrappers that may sleep.
 * @pinning: registrations of memory that are under way.
 * @port_down: last event of port 1.
 * @pair: the pair that objects made from now on belong to; NULL: none.  RCU; shift_devices_lock to
 *	change it.
 * @cm_dev: of a device in a pair: the device whose RDMA CM connects its links.  That is itself, or
 *	another one on the same interface if it cannot; NULL: there is none.  link/route.c.
 * @ring_sem: read while a fence looks into rings of CQs, written before a ring is
 *	unpinned.  Inside sqp->lock.
 * @objects: tracked PDs, CQs, QPs and SRQs; negative: new objects are not tracked.
 * @list_lock: protects @pds, @cqs, @qps and @srqs.
 * @qpn: QPs by QP number.
 * @unlisted: struct shift_unlisted by QP number: QPs that are not tracked.  Read under RCU.
 * @mrs: MRs by lkey >> 8.
 * @mws: memory windows by rkey >> 8: Documentation/internals/windows.md.
 * @mw_lock: protects the state of memory windows; inside ledger_lock.
 * @mw_mutex: protects the driver's windows; inside sqp->lock.
 */
struct shift_dev {
	struct shift_obj obj;
	struct list_head list;
	struct kref ref;
	struct ib_device *ibdev;
	char name[IB_DEVICE_NAME_MAX];
	u64 guid;
	u32 driver;
	const struct shift_provider *provider;
	struct shift_proof proof;
	struct mutex ops_mutex;
	struct ib_device_ops saved;
	bool attached;
	struct srcu_struct srcu;
	atomic_t pinning;
	bool port_down;
	struct shift_pair __rcu *pair;
	struct rw_semaphore ring_sem;
	struct shift_dev *cm_dev;
	atomic_t objects;
	struct mutex list_lock;
	struct list_head pds, cqs, qps, srqs;
	struct list_head old_pds;	/* applications have freed them, the module not yet */
	struct xarray qpn;
	struct xarray unlisted;
	struct xarray mrs;
	struct xarray mws;
	spinlock_t mw_lock;
	struct mutex mw_mutex;
	struct ib_event_handler events;
};

/**
 * struct shift_pd - shadow of a user PD, or of one of a user in the kernel
 * @ulp: the user in the kernel that has allocated it; NONE: an application has.
 * @mirrors: MRs of such a user by the index of their mirror's key.
 * @reason: why QPs of this PD cannot be protected (first one found), or 0.  It stays.
 * @unmirrored: how many of its MRs have no mirror, by reason: Documentation/internals/memory.md.
 *	CGROUP: also other objects whose charge is lacking.
 * @charge: for @mirror.
 * @pair: the pair that it was made under; NULL: there was none.
 * @mirror: PD on the backup device, made with the first MR.
 * @region_mutex: protects @regions, their MRs, and the umem of the PD's MRs.
 * @regions: the MRs that stand in for its memory windows.
 */
struct shift_pd {
	struct shift_obj obj;
	struct kref ref;
	struct shift_dev *sdev;
	struct ib_pd *pd;
	struct mutex lock;		/* held to make or drop mirror */
	struct shift_pair *pair;
	struct ib_pd *mirror;
	atomic_t reason;
	atomic_t unmirrored[__SHIFT_REASON_MAX];
	struct shift_charge charge;
	bool resolved;			/* peers were, or are being, told keys of its MRs */
	bool windows;			/* it has, or had, memory windows */
	struct mutex region_mutex;
	struct list_head regions;
	enum shift_ulp ulp;
	struct xarray mirrors;
};

/**
 * struct shift_mr - an MR, mirrored if it could be; in sdev->mrs by lkey >> 8 until dereg
 * @npages: pages that it pins and that its process is charged for; 0: a dma-buf.
 * @lacks: why it has no mirror, counted in its PD; NONE: it has or had one, or @charge lacks.
 * @charge: for @mirror.
 * @kernel: of a user in the kernel's; else NULL.  Of its keys only the index stays; it has no
 *	@account, and no range.
 *
 * Only @mirror and @umem change, and only to NULL: a registration that changes gets a new one.
 */
struct shift_mr {
	struct kref ref;
	struct shift_pd *spd;
	struct ib_mr *mr;
	struct ib_mr *mirror;		/* on the backup device; NULL: none */
	struct ib_umem *umem;		/* its pages, if windows may be bound to it */
	struct shift_account *account;	/* to which its pages are charged */
	unsigned long npages;
	u64 iova, length;
	int access;
	u32 lkey, rkey;			/* on the default device */
	u32 mirror_lkey, mirror_rkey;
	enum shift_reason lacks;
	struct shift_charge charge;
	struct shift_kernel_mr *kernel;
	struct rcu_head rcu;
};

/**
 * struct shift_cq_pins - user memory of a CQ, pinned and checked
 * @ring: the CQ's ring.
 * @flag: flag word.
 * @word: a word that the provider of its kind uses.
 */
struct shift_cq_pins {
	struct shift_ring ring;
	struct shift_word flag, word;
};

/**
 * struct shift_cq - shadow of an application's CQ, or of one that tracked kernel users have
 *
 * Of a kernel user's only @obj to @kernel, @lock, @registered and @provider are used.
 */
struct shift_cq {
	struct shift_obj obj;
	struct kref ref;
	struct shift_dev *sdev;
	struct ib_cq *cq;		/* NULL once destroyed; under lock */
	struct shift_kernel_cq *kernel;	/* NULL: it is an application's */
	spinlock_t lock;		/* protects the side ring, armed and cq */
	bool registered;
	u8 armed;			/* IB_CQ_SOLICITED, IB_CQ_NEXT_COMP; 0: not */
	const struct shift_provider *provider;	/* NULL: it was not registered yet */
	struct shift_cq_pins pins;	/* valid while registered */
	void *priv;			/* of the provider; kmalloc'ed, freed with this */
	struct shift_abi_side *side;	/* vmalloc */
	u32 side_len, side_entries;
	u32 side_producer;		/* the one in the shared memory is a copy */
	u32 cqe;
};

/* Paths of a QP.  Messages name the target of a failover by its number. */
#define SHIFT_PATH_DEFAULT	0	/* its own QP on the default device, until it is fenced */
#define SHIFT_PATH_BACKUP	1	/* a proxy QP on the backup device */
#define SHIFT_PATH_HOME		2	/* a proxy QP on the default device, after a failback */
#define SHIFT_PATHS		3
#define SHIFT_PATH_OWN		3	/* a target only: handback, to its own QP, as path 0 */
/* A key that no device gives out: an MR's index is below, and it is not a PD's key. */
#define SHIFT_NO_KEY	(~0u)

/**
 * struct shift_cq_slot - the slot of a user's work queue that a completion frees
 * @sqp: the QP of the completion; ledger_lock, if a slot is freed.
 * @seq: sequence number of the work request in the slot.
 * @free: the provider's completed() or recvs_completed(), called with @seq + 1; NULL: the
 *	completion frees no slot.
 */
struct shift_cq_slot {
	struct shift_qp *sqp;
	u64 seq;
	void (*free)(struct shift_qp *sqp, u64 seq);
};

/* object.c */
int shift_object_insert(struct shift_obj *obj, const void *key, enum shift_obj_type type);
bool shift_object_remove(struct shift_obj *obj);	/* true for one caller only */
struct shift_obj *shift_object_find(const void *key, enum shift_obj_type type);
int shift_track(struct shift_dev *sdev, struct shift_obj *obj, const void *key,
		enum shift_obj_type type, struct list_head *list);
bool shift_untrack(struct shift_dev *sdev, struct shift_obj *obj);
void shift_untrack_all(struct shift_dev *sdev, struct list_head *list,
		       void (*drop)(struct shift_obj *obj));

/* device.c */
extern struct list_head shift_devices;
extern struct mutex shift_devices_lock;
bool shift_dev_is_known(const struct ib_device *ibdev);
struct shift_dev *shift_dev_new(struct ib_device *ibdev);
struct shift_dev *shift_dev_get(struct shift_dev *sdev);
void shift_dev_put(struct shift_dev *sdev);	/* process context */
void shift_dev_rename(struct shift_dev *sdev);
const char *shift_dev_name(const struct shift_dev *sdev, char name[IB_DEVICE_NAME_MAX]);
bool shift_dev_count(struct shift_dev *sdev);
void shift_dev_uncount(struct shift_dev *sdev);
bool shift_dev_tracks(const struct shift_dev *sdev);
struct shift_dev *shift_verb_begin(struct ib_device *ibdev, int *idx) __acquires(SRCU);
void shift_verb_end(struct shift_dev *sdev, int idx) __releases(SRCU);
void shift_verbs_wait(struct shift_dev *sdev);
struct shift_dev *shift_dev_by_name(const char *name);
bool shift_dev_has_gid(struct shift_dev *sdev, const union ib_gid *gid);
/* Is @gid one of the default device or its backup?  Between shift_pair_use() and unuse(). */
bool shift_gid_is_local(struct shift_pair *pair, const union ib_gid *gid);

/* pd.c */
void shift_pd_get(struct shift_pd *spd);
void shift_pd_put(struct shift_pd *spd);
extern struct mutex shift_pd_lock;
void shift_pd_drop_mirror(struct shift_pd *spd);	/* shift_pd_lock */
struct shift_pd *shift_pd_find(struct ib_pd *pd);
void shift_pd_spoil(struct shift_pd *spd, enum shift_reason reason);
enum shift_reason shift_pd_reason(const struct shift_pd *spd, u8 path);	/* any context */
struct ib_pd *shift_pd_mirror(struct shift_pd *spd);	/* between use and unuse */

/* mr.c */
struct shift_mr *shift_mr_find(struct shift_dev *sdev, u32 key);	/* kref taken */
void shift_mr_put(struct shift_mr *smr);	/* any; its mirror was dropped before */
void shift_mr_drop_mirror(struct shift_mr *smr);
bool shift_mr_backup_rkey(const struct shift_pd *spd, u32 rkey, u32 *key);
int shift_mr_translate(struct shift_pd *spd, const struct shift_sge *sge, u8 path, u32 *key);

/* cq.c */
void shift_cq_get(struct shift_cq *scq);
void shift_cq_put(struct shift_cq *scq);
int shift_cq_push(struct shift_cq *scq, const struct shift_abi_wc *wc,
		  const struct shift_cq_slot *slot);
int shift_cq_side_room(const struct shift_cq *scq);
void shift_cq_side_put(struct shift_cq *scq, struct shift_qp *sqp, const struct shift_abi_wc *wc);
int shift_cq_tell(struct shift_cq *scq, const struct shift_abi_wc *wc);
bool shift_cq_registered(struct shift_cq *scq);

/*
 * All shadows.  Each doorbell, post and poll looks up its object here.  So the table has a fixed
 * size: to find a bucket in one that grows takes as many instructions again.
 */
#define SHIFT_OBJECT_BITS	14
extern DECLARE_HASHTABLE(shift_objects, SHIFT_OBJECT_BITS);

/* The shadow of whatever @key is, or NULL; RCU. */
static inline struct shift_obj *shift_object_any_rcu(const void *key)
{
	struct shift_obj *obj;

	hash_for_each_possible_rcu(shift_objects, obj, node, (unsigned long)key)
		if (obj->key == key)
			return obj;
	return NULL;
}

/**
 * shift_object_find_rcu - the shadow of a core object, for callers in a read section of RCU
 * @key: the core object.
 * @type: what it is.
 *
 * On kernels with preemption a read section takes as many instructions as the look-up.
 *
 * Context: any, under rcu_read_lock().
 * Return: its head or NULL.
 */
static inline struct shift_obj *shift_object_find_rcu(const void *key, enum shift_obj_type type)
{
	struct shift_obj *obj = shift_object_any_rcu(key);

	return obj && obj->type == type ? obj : NULL;
}

/* The shadow of a CQ, or NULL: it is not tracked. */
static inline struct shift_cq *shift_cq_find(const struct ib_cq *cq)
{
	struct shift_obj *obj = shift_object_find(cq, SHIFT_OBJ_CQ);

	return obj ? container_of(obj, struct shift_cq, obj) : NULL;
}

static inline struct shift_dev *shift_ops_dev(struct ib_device *ibdev)
{
	struct shift_obj *obj = shift_object_find(ibdev, SHIFT_OBJ_DEV);

	return obj ? container_of(obj, struct shift_dev, obj) : NULL;
}

#endif /* SHIFT_CORE_OBJECT_H */
