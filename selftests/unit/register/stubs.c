// SPDX-License-Identifier: GPL-2.0
/* The rest of the module, as far as a registration asks for it. */
#include <stdlib.h>
#include "core/object.h"
#include "core/qp.h"
#include "core/srq.h"
#include "core/stat.h"
#include "ctl/ctl.h"
#include "failover/failover.h"
#include "fuzz.h"
#include "mw/mw.h"
#include "provider/provider.h"
#include "proxy/proxy.h"
#include "srq/srq.h"
#include "stubs.h"
#include "verbs/verbs.h"

struct shift_pair fuzz_pair;
const struct attribute_group *shift_misc_groups[1];

int shift_pair_walk(int (*fn)(struct shift_pair *pair, void *arg), void *arg)
{
	return fn(&fuzz_pair, arg);
}

bool shift_cq_registered(struct shift_cq *scq) { return scq->registered; }
void shift_cq_get(struct shift_cq *scq) { kref_get(&scq->ref); }
void shift_qp_get(struct shift_qp *sqp) { kref_get(&sqp->ref); }

/* The program has a reference to each object until it is over. */
static void never(struct kref *ref)
{
	sim_fail("the last reference to an object is dropped");
}

void shift_cq_put(struct shift_cq *scq) { kref_put(&scq->ref, never); }
void shift_qp_put(struct shift_qp *sqp) { kref_put(&sqp->ref, never); }
void shift_dev_put(struct shift_dev *sdev) { }
void shift_pd_put(struct shift_pd *spd) { }

struct shift_qp *shift_qp_find_qpn(struct shift_dev *sdev, u32 qpn)
{
	struct shift_obj *obj;

	list_for_each_entry(obj, &sdev->qps, list) {
		struct shift_qp *sqp = container_of(obj, struct shift_qp, obj);

		if (sqp->qpn == qpn) {
			shift_qp_get(sqp);
			return sqp;
		}
	}
	return NULL;
}

DEFINE_PER_CPU(struct shift_stats, shift_stats);
bool shift_mw_enabled(const struct shift_dev *sdev) { return true; }
bool shift_proof_holds(const struct shift_dev *sdev, u32 claims) { return !fuzz_refuses(); }
bool shift_charge_qp(struct shift_qp *sqp, unsigned int num) { return !fuzz_refuses(); }

void shift_failover_unprotect(struct shift_qp *sqp, enum shift_reason reason)
{
	lockdep_assert_held(&sqp->lock);
	sqp->fo.reason = reason;
}

unsigned int shift_deadline_scale = 1;
void shift_replay_doorbell(struct shift_qp *sqp) { }
void shift_recv_doorbell(struct shift_qp *sqp) { }
int shift_srq_empty(struct shift_qp *sqp, const struct shift_abi_empty *cmd) { return -EINVAL; }
int shift_mlx5_drain(struct shift_qp *sqp) { return -ENETDOWN; }
void shift_cq_count_settle(const struct shift_cq *scq) { }
int shift_cq_side_room(const struct shift_cq *scq) { return -ENODEV; }
void shift_cq_side_put(struct shift_cq *scq, struct shift_qp *sqp, const struct shift_abi_wc *wc) { }
long shift_handback_kick(struct shift_qp *sqp) { return -ENOTCONN; }
enum shift_abi_cqe_answer shift_cqe_filter(struct shift_qp *sqp, const struct shift_cq *scq,
					   u32 status, struct shift_account *account)
{
	return SHIFT_CQE_DELIVER;
}

long shift_handback_rebase(struct shift_qp *sqp, struct shift_abi_rebase *base)
{
	return base->step == SHIFT_REBASE_BEGIN ? 0 : -EAGAIN;
}
