// SPDX-License-Identifier: GPL-2.0
/*
 * What an end has not, or has in a simpler way: charged memory, pinned pages, windows.  A ring is a
 * struct sim_ring, a word a struct page.
 */
#include "core/account.h"
#include "core/ib.h"
#include "core/kernel_cq.h"
#include "core/kernel_qp.h"
#include "core/kernel_srq.h"
#include "core/node.h"
#include "core/qp.h"
#include "core/reclaim.h"
#include "end/inside.h"
#include "link/auth.h"
#include "mw/mw.h"
#include "provider/provider.h"
#include "proxy/proxy.h"
#include "verbs/verbs.h"

/* verbs/gsi.c: nothing is posted on QP 1 */
void shift_gsi_posting(struct ib_qp *qp, const struct ib_send_wr *wr) { }

/* core/reclaim.c */
unsigned int shift_reclaim_begin(void) { return 0; }
void shift_reclaim_end(unsigned int saved) { }
void shift_reclaim_waits(void) { }
void shift_reclaim_waited(void) { }

/* core/kernel_cq.c, core/kernel_qp.c, verbs/kernel.c, verbs/drain.c: the kernel has no users of its own */
const struct ib_device_ops shift_kernel_ops, shift_drain_ops;
bool shift_kernel_users(const struct shift_dev *sdev) { return false; }
enum shift_ulp shift_kernel_user(const struct shift_dev *sdev, const struct ib_qp *qp)
{
	return SHIFT_ULP_NONE;
}
struct shift_cq *shift_kernel_cq_join(struct shift_dev *sdev, struct ib_cq *cq) { return NULL; }
void shift_kernel_cq_leave(struct shift_cq *scq) { }
bool shift_kernel_is_own(const struct ib_qp *qp) { return false; }
const struct shift_srq_ops shift_kernel_srq_provider;

/* core/kernel_srq.c */
int shift_kernel_srq_new(struct shift_srq *ssrq, work_func_t work) { return -EOPNOTSUPP; }
void shift_kernel_srq_free(struct shift_kernel_srq *kernel) { }
int shift_kernel_srq_hold(struct shift_srq *ssrq) { return -EOPNOTSUPP; }
u32 shift_kernel_srq_recv_id(struct shift_srq *ssrq, u64 wr_id) { return 0; }
void shift_kernel_srq_taken(struct shift_srq *ssrq, u32 recv_id) { }
u64 shift_kernel_srq_wr_id(const struct shift_srq *ssrq, u32 recv_id) { return 0; }
void shift_kernel_srq_completed(struct shift_qp *sqp, u64 next) { }
void shift_kernel_cq_end(struct shift_kernel_cq *kernel) { }
void shift_kernel_cq_free(struct shift_kernel_cq *kernel) { }
void shift_kernel_cq_lose(struct shift_kernel_cq *kernel, const struct ib_qp *qp) { }
void shift_kernel_cq_forget(struct shift_kernel_cq *kernel, const struct ib_qp *qp) { }
int shift_kernel_cq_arm(struct shift_cq *scq, struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	return -EOPNOTSUPP;
}

struct shift_kernel_qp *shift_kernel_qp_new(enum shift_ulp ulp, const struct ib_qp_init_attr *attr)
{
	return NULL;
}

void shift_kernel_qp_free(struct shift_kernel_qp *kernel) { }
void shift_kernel_qp_state(struct shift_qp *sqp, enum ib_qp_state state) { }
int shift_kernel_send(struct shift_qp *sqp, struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad_wr)
{
	return -EOPNOTSUPP;
}

enum shift_reason shift_kernel_qp_register(struct shift_qp *sqp)
{
	return SHIFT_REASON_KERNEL_USER;
}

enum shift_ulp shift_kernel_pd_user(const struct shift_dev *sdev, const struct ib_pd *pd)
{
	return SHIFT_ULP_NONE;
}
void shift_kernel_mr_del(struct shift_kernel_mr *kernel) { }
int shift_kernel_lkey(const struct shift_pd *spd, u32 lkey, u8 path, u32 *key) { return -EACCES; }
bool shift_kernel_rkey(const struct shift_pd *spd, const struct shift_mr *smr, u32 rkey, u32 *key)
{
	return false;
}

/* mw/kernel_mr.c, mw/registrar.c */
void shift_kernel_mr_settle(struct shift_mr *smr) { }
int shift_registrar_make(struct shift_proxy *b) { return -EOPNOTSUPP; }

const struct ib_device_ops shift_kernel_mr_ops;

static char sim_account;

void shift_account_lend(struct shift_lent *lent, bool once) { }
bool shift_account_again(struct shift_lent *lent) { return false; }
void shift_account_settled(struct shift_lent *lent) { }
void shift_account_restore(struct shift_lent *lent) { }
/* any address: nothing is charged */
struct shift_account *shift_account_open(void) { return (void *)&sim_account; }
struct shift_account *shift_account_hold(struct shift_account *account) { return account; }
void shift_account_close(struct shift_account *account) { }
const struct cred *shift_account_pin_begin(struct shift_account *account) { return NULL; }
void shift_account_pin_end(struct shift_account *account, const struct cred *cred,
			   unsigned long npages) { }
void shift_account_unpin_begin(struct shift_account *account, unsigned long npages) { }
void shift_account_unpin_end(struct shift_account *account, unsigned long kept) { }
bool shift_account_spend(struct shift_account *account) { return true; }

/* core/charge.c: there is no limit */
bool shift_charge_take(struct shift_charge *charge, const struct shift_charge_ops *ops, void *owner,
		       struct shift_pair *pair, unsigned int backup, unsigned int home)
{
	return true;
}

bool shift_charge_move(struct shift_charge *charge, struct shift_charge *from, void *owner)
{
	return false;
}

void shift_charge_drop(struct shift_charge *charge) { }
void shift_charge_make_room(struct shift_dev *sdev) { }
void shift_charge_device_gone(struct shift_dev *sdev) { }

/* verbs/ah.c */
const struct ib_device_ops shift_ah_ops;

/* provider/proof.c: nothing is assumed of these devices */
void shift_proof_init(struct shift_dev *sdev) { }
void shift_proof_begin(struct shift_dev *sdev) { }
void shift_proof_wait(struct shift_dev *sdev) { }
void shift_proof_end(struct shift_dev *sdev) { }
void shift_proof_again(struct shift_dev *sdev) { }
bool shift_proof_holds(const struct shift_dev *sdev, u32 claims) { return !claims; }

/* link/auth.c: there is no key */
int shift_auth_init(void) { return 0; }
void shift_auth_uninit(void) { }
unsigned int shift_auth_keys(void) { return 0; }
void shift_auth_ask(const struct shift_conn *c, struct shift_auth_frame *frame) { }
int shift_auth_take(struct shift_conn *c, const struct shift_auth_frame *frame, u32 len,
		    struct shift_auth_frame *answer)
{
	return -ENOKEY;
}

/* core/ib.c */
bool shift_gid_is_ours(struct ib_device *ibdev, int index, const union ib_gid *gid, u32 *vlan)
{
	*vlan = SHIFT_VLAN_NONE;
	return true;
}

bool shift_gid_is_there(struct ib_device *ibdev, u16 index) { return true; }
const struct ib_gid_attr *shift_gid_find(struct ib_device *ibdev, const union ib_gid *gid,
					 u32 vlan)
{
	struct sim_dev *dev = (struct sim_dev *)ibdev;

	return memcmp(gid, &dev->gid.gid, sizeof(*gid)) ? ERR_PTR(-ENOENT) : &dev->gid;
}

int shift_dev_gid(struct ib_device *ibdev, u32 vlan, union ib_gid *gid)
{
	*gid = ((struct sim_dev *)ibdev)->gid.gid;
	return 0;
}

bool shift_gid_has_carrier(struct ib_device *ibdev, const union ib_gid *gid)
{
	return !((struct sim_dev *)ibdev)->down;
}

bool shift_port_is_active(struct ib_device *ibdev, bool ask)
{
	struct ib_port_attr attr;

	return !ib_query_port(ibdev, 1, &attr) && attr.state == IB_PORT_ACTIVE;
}

u32 shift_gid_mtu(struct ib_device *ibdev, const union ib_gid *gid)
{
	return 1500;
}

bool shift_gid_carries(struct ib_device *ibdev, const union ib_gid *gid, u32 mtu, bool ask)
{
	return true;
}

int shift_qp_stop(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	int err = ib_modify_qp(qp, &attr, IB_QP_STATE);

	if (!err)
		synchronize_rcu_expedited();
	return err;
}

void shift_qp_drain(struct ib_qp *qp, const struct ib_device_ops *ops)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	synchronize_rcu_expedited();
	ops->modify_qp(qp, &attr, IB_QP_STATE, NULL);
}

void shift_qp_quiet(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	ib_modify_qp(qp, &attr, IB_QP_STATE);
	shift_qp_drain(qp, &qp->device->ops);
}

void shift_cq_free(struct ib_cq *cq)
{
	ib_free_cq(cq);
}

/* core/ring.c */
void shift_fence_barrier(void) { }

static struct sim_ring *ring_of(const struct shift_ring *ring)
{
	return (struct sim_ring *)ring->pages;
}

void shift_ring_copy_slot(const struct shift_ring *ring, u32 index, void *to)
{
	memcpy(to, sim_slot(ring_of(ring), index), sizeof(struct sim_wr));
}

void shift_ring_unpin(struct shift_ring *ring)
{
	memset(ring, 0, sizeof(*ring));
}

int shift_word_pin(struct shift_word *word, u64 addr)
{
	word->page = (struct page *)addr;
	return 0;
}

void shift_word_unpin(struct shift_word *word)
{
	word->page = NULL;
}

void shift_word_write(const struct shift_word *word, u32 value)
{
	word->page->word = value;
}

/* mw/: there are none */
void shift_mw_init(struct shift_dev *sdev) { }
bool shift_mw_enabled(const struct shift_dev *sdev) { return false; }
struct ib_umem *shift_mw_pin(struct ib_device *dev, u64 start, u64 length, int access) { return NULL; }
void shift_mr_unpin(struct shift_mr *smr) { }
void shift_region_revoke(struct shift_pd *spd, const struct shift_mr *smr, u32 index) { }
void shift_mw_device_gone(struct shift_dev *sdev) { }
const struct ib_device_ops shift_mw_ops;
int shift_mw_perform(struct shift_qp *sqp, const struct shift_mw_op *op) { return -EOPNOTSUPP; }
void shift_mw_told(struct shift_qp *sqp, u32 key, u32 n) { }
void shift_mw_recycle(struct shift_qp *sqp) { }
void shift_mw_disown(struct shift_qp *sqp) { }
int shift_region_get(struct shift_qp *sqp, u32 key, u32 *wire) { return -ENOENT; }
bool shift_region_drop(struct shift_qp *sqp, u32 key) { return false; }
void shift_region_reap(struct shift_qp *sqp) { }
void shift_regions_free(struct shift_proxy *b) { }
u32 shift_region_invalidated(struct shift_qp *sqp, u32 wire) { return wire; }
bool shift_region_is_there(const struct shift_qp *sqp, u32 key) { return false; }
