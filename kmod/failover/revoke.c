// SPDX-License-Identifier: GPL-2.0
/*
 * Keys of memory that is deregistered: peers that were told its key on the backup forget it before
 * the application can use the key, which a device may give out again at once, for other memory.
 */
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include "core/kick.h"
#include "core/node.h"
#include "core/object.h"
#include "core/qp.h"
#include "core/stat.h"
#include "failover/failover.h"
#include "failover/internal.h"
#include "pure/msg.h"

#define REVOKE_MS	500	/* for peers to answer; scaled */

/**
 * struct revocation - a key that is being taken back
 * @node: in the list of all.
 * @spd: the PD of the memory.
 * @rkey: the key.
 * @holders: QPs whose peers have not answered, by the lower half of their cookie.
 * @first: this is the first time that peers are told.
 * @over: nobody is told any more: those who have not answered are mute.
 * @left: number of peers that are waited for.
 */
struct revocation {
	struct list_head node;
	const struct shift_pd *spd;
	u32 rkey;
	struct xarray holders;
	bool first, over;
	unsigned int left;
};

static DEFINE_SPINLOCK(revocations_lock);
static LIST_HEAD(revocations);
static DECLARE_WAIT_QUEUE_HEAD(revoked);

static int revoke_one(struct shift_qp *sqp, void *arg)
{
	struct shift_msg m = { .type = SHIFT_MSG_RKEY_GONE };
	struct revocation *r = arg;
	u32 id = (u32)sqp->cookie;
	int err;

	if (!sqp->peer.cookie || !READ_ONCE(sqp->peer.resolved))
		return 0;
	if (r->first && !READ_ONCE(sqp->peer.mute))
		xa_store(&r->holders, id, xa_mk_value(1), GFP_NOIO);
	else if (!r->first && !xa_load(&r->holders, id))
		return 0;
	if (r->over) {
		WRITE_ONCE(sqp->peer.mute, true);
		return 0;
	}
	if (shift_qp_is_loop(sqp)) {
		shift_rkey_disuse(sqp, r->rkey);
		xa_erase(&r->holders, id);
		return 0;
	}
	m.key.rkey = r->rkey;
	m.key.new_rkey = SHIFT_RKEY_TELL;
	err = shift_path_send(sqp, SHIFT_PATH_BACKUP, &m);
	/* the peer that has no link to this node, either, has forgotten all keys */
	if (err && err != -EAGAIN)
		xa_erase(&r->holders, id);
	else if (xa_load(&r->holders, id))
		r->left++;
	return 0;
}

/**
 * shift_rkey_revoke - memory is to be deregistered: let peers forget its key
 * @smr: the MR, which nobody can look up any more.
 *
 * Waits until each peer that may have the key has forgotten it, or has lost its links to this node,
 * or has not answered in time.  A peer that did not answer is not waited for again before it has.
 *
 * Context: process context; sleeps.
 */
void shift_rkey_revoke(struct shift_mr *smr)
{
	unsigned long end = jiffies + shift_scaled_jiffies(REVOKE_MS);
	struct revocation r = { .spd = smr->spd, .rkey = smr->rkey, .first = true };

	/* it was set before the MR was looked up for a peer */
	if (!smr->rkey || !READ_ONCE(smr->spd->resolved))
		return;
	xa_init(&r.holders);
	spin_lock(&revocations_lock);
	list_add_tail(&r.node, &revocations);
	spin_unlock(&revocations_lock);
	do {
		r.left = 0;
		r.over = !r.first && time_after(jiffies, end);
		shift_qp_walk(smr->spd, revoke_one, &r);
		r.first = false;
		/* the process ends: it has no other memory to which the key could be given */
		if (!r.left || current->flags & PF_EXITING)
			break;
		wait_event_timeout(revoked, xa_empty(&r.holders),
				   msecs_to_jiffies(SHIFT_RESEND_MS));
	} while (!xa_empty(&r.holders));
	spin_lock(&revocations_lock);
	list_del(&r.node);
	spin_unlock(&revocations_lock);
	xa_destroy(&r.holders);
}

/**
 * shift_rkey_revoked - the peer has forgotten a key
 * @sqp: the QP.
 * @rkey: the key.
 *
 * Context: process context; takes no mutex.
 */
void shift_rkey_revoked(struct shift_qp *sqp, u32 rkey)
{
	struct revocation *r;
	bool awaited = false;

	WRITE_ONCE(sqp->peer.mute, false);
	spin_lock(&revocations_lock);
	list_for_each_entry(r, &revocations, node)
		if (r->spd == sqp->spd && r->rkey == rkey)
			awaited |= !!xa_erase(&r->holders, (u32)READ_ONCE(sqp->cookie));
	spin_unlock(&revocations_lock);
	/* not for whatever a peer likes to say */
	if (awaited)
		wake_up_all(&revoked);
}

/**
 * shift_rkey_disuse - do not post with a key of the peer's any more
 * @sqp: the QP.
 * @rkey: the key, which is forgotten.
 *
 * Context: process context; takes no mutex.
 */
void shift_rkey_disuse(struct shift_qp *sqp, u32 rkey)
{
	shift_rkey_forget_memory(sqp, rkey);
	/* who has looked it up before posts with it under this lock */
	spin_lock_bh(&sqp->ledger_lock);
	spin_unlock_bh(&sqp->ledger_lock);
}
