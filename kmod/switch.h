/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What moves a QP from path to path: its machine, what that does, and what it keeps.
 * See Documentation/protocol.md.
 */
#ifndef SHIFT_SWITCH_H
#define SHIFT_SWITCH_H

#include "shift.h"

/* pairing.c: the way from a connected QP to a protected one, and its messages */
void shift_pairing_run(struct shift_qp *sqp);		/* sqp->lock */
void shift_pairing_message(struct shift_qp *sqp, const struct shift_msg *m);
void shift_pairing_drop(struct shift_qp *sqp);		/* sqp->lock */

/* keys.c: keys of the peer's, and ours for it */
/* tell peers of its PD's QPs that a key is gone; process context */
void shift_pairing_revoke(struct shift_mr *smr);
/* 0: *key; -EINPROGRESS: not known yet; -ENOENT: the peer has none */
int shift_pairing_key(const struct shift_qp *sqp, u32 rkey, u32 *key);	/* any context */
void shift_pairing_ask_key(struct shift_qp *sqp, u32 rkey);		/* sqp->lock */
void shift_pairing_resolve(struct shift_qp *sqp, const struct shift_msg *m); /* sqp->lock */
void shift_pairing_key_gone(struct shift_qp *sqp, u32 rkey);	/* sqp->lock; one of ours */
void shift_pairing_forget_key(struct shift_qp *sqp, u32 rkey);	/* any; one of the peer's */
void shift_pairing_forget_keys(struct shift_qp *sqp);		/* any */
void shift_pairing_key_message(struct shift_qp *sqp, struct shift_link *link,
			       const struct shift_msg *m);	/* no lock */

/* inbox.c: what waits for the machine; any context that may take a spinlock */
#define SHIFT_RESEND_MS	100	/* between copies of a message that may be lost */
#define SHIFT_AGAIN_MS	500	/* to the next try while the port stays down */
void shift_switch_kick(struct shift_qp *sqp, unsigned int bit);
void shift_switch_pair_soon(struct shift_qp *sqp);	/* sqp->lock */
void shift_switch_pair_settle(struct shift_qp *sqp);
void shift_inbox_uninit(void);
#define SHIFT_WATCH_MS	2000	/* for what was posted to make progress */
#define SHIFT_KEY_MS	10000	/* for a peer to tell a remote key */
void shift_switch_arm(struct shift_qp *sqp, unsigned int ms);
void shift_switch_later(struct shift_qp *sqp, unsigned int ms);
void shift_switch_watch(struct shift_qp *sqp);
void shift_switch_timer(struct work_struct *work);
void shift_switch_deliver(struct shift_qp *sqp, const struct shift_msg *m);
bool shift_inbox_take(struct shift_qp *sqp, struct shift_msg *m, u32 kept);
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
void shift_switch_ready(struct shift_qp *sqp);
bool shift_switch_usable(const struct shift_qp *sqp);	/* racy: a guard */
bool shift_switch_joins(struct shift_qp *sqp, const struct shift_msg *m);	/* sqp->lock */
bool shift_switch_healthy(struct shift_qp *sqp);

/* ending.c: how it ends other than well; sqp->lock */
void shift_switch_call_off(struct shift_qp *sqp);
void shift_switch_fail(struct shift_qp *sqp, u32 status);
void shift_switch_app(struct shift_qp *sqp);
void shift_switch_take_over(struct shift_qp *sqp);
void shift_switch_owed(struct shift_qp *sqp);
void shift_switch_unprotect(struct shift_qp *sqp, enum shift_reason reason);
void shift_switch_backup_gone(struct shift_qp *sqp);
void shift_switch_peer_gone(struct shift_qp *sqp);

/* verdict.c: what applications and operators are shown */
enum shift_abi_verdict shift_switch_verdict(struct shift_qp *sqp, const struct shift_cq *scq,
					    u32 status);
enum shift_qp_state shift_qp_shown(const struct shift_qp *sqp);	/* sqp->lock */
void shift_qp_refresh(struct shift_qp *sqp);	/* sqp->lock */
void shift_qp_note_links(struct shift_qp *sqp);	/* sqp->lock */

/* fence.c: stop the default QP and take over its work queue; sqp->lock */
int shift_fence(struct shift_qp *sqp, bool *errored);
int shift_fence_query(struct shift_qp *sqp, struct ib_qp_attr *attr);
void shift_fence_heard(struct shift_qp *sqp, u8 path, u32 expected);
void shift_fence_barrier(void);
void shift_fence_open(struct shift_qp *sqp);	/* let the provider go on */

/* provider.c: what of it depends on the kind of device */
int shift_provider_movable(struct shift_qp *sqp);	/* 0, -EOPNOTSUPP; sqp->lock */
u32 shift_provider_cause(struct shift_qp *sqp);		/* enum ib_wc_status; any context */
void shift_provider_doorbell(struct shift_qp *sqp);	/* ring what was kept; sqp->lock */

/* srq.c: QPs that share receives move together; sqp->lock */
extern const struct ib_device_ops shift_srq_ops;
bool shift_srq_join(struct shift_qp *sqp, struct ib_srq *srq);	/* false: unprotected */
void shift_srq_spoil(struct ib_srq *srq);
void shift_srq_leave(struct shift_qp *sqp);
void shift_srq_connected(struct shift_qp *sqp);
void shift_srq_ended(struct shift_qp *sqp);
bool shift_srq_movable(const struct shift_qp *sqp);
u8 shift_srq_path(const struct shift_qp *sqp, bool *must);
u8 shift_srq_wanted(const struct shift_qp *sqp, bool *broken);
int shift_srq_claim(struct shift_qp *sqp, struct shift_srq_pool *pool);
void shift_srq_fenced(struct shift_qp *sqp);
bool shift_srq_ready(struct shift_qp *sqp, struct shift_srq_pool *pool);
void shift_srq_device_gone(struct shift_dev *sdev, bool backup_only);
/* srq_recv.c */
bool shift_srq_is_recv(const struct shift_qp *sqp, u64 wr_id);	/* any context */
int shift_srq_deliver(struct shift_qp *sqp, bool all);		/* ledger_lock */

/* replay.c: the ledger towards the backup QP and the application */
void shift_replay_pump(struct shift_qp *sqp);	/* sqp->lock */
void shift_replay_doorbell(struct shift_qp *sqp);	/* any context */
void shift_replay_deliver(struct shift_qp *sqp);	/* any process context */
void shift_replay_flush(struct shift_qp *sqp);	/* sqp->lock */
int shift_replay_enter(struct shift_qp *sqp, const struct shift_wr *wr);	/* ledger_lock */
int shift_replay_progress(struct shift_qp *sqp, const struct shift_msg *m);
u32 shift_replay_doubtful(struct shift_qp *sqp, bool *once);	/* ledger_lock */

/* recv.c: receives of a QP that is away */
int shift_recv_init(struct shift_recvs *r, const struct shift_ring *ring);
void shift_recv_free(struct shift_recvs *r);
void shift_recv_capture(struct shift_qp *sqp);		/* sqp->lock; before RESET */
void shift_recv_start(struct shift_qp *sqp, u32 first, u32 count, u32 most); /* ledger_lock */
void shift_recv_rewind(struct shift_qp *sqp);		/* ledger_lock */
void shift_recv_pump(struct shift_qp *sqp);		/* sqp->lock; armed */
void shift_recv_doorbell(struct shift_qp *sqp);		/* any context but softirq */
void shift_recv_done(struct shift_qp *sqp, const struct ib_wc *wc); /* ledger_lock */
void shift_recv_deliver(struct shift_qp *sqp);		/* any but hard interrupts */
void shift_recv_flush(struct shift_qp *sqp);		/* sqp->lock */
struct shift_recv shift_recv_got(struct shift_qp *sqp, const struct ib_wc *wc);	/* ledger_lock */

/* move.c: changes of path that somebody wants */
void shift_move_run(struct shift_qp *sqp);		/* sqp->lock */
/* Do both ends let what is under way finish, as both paths work? */
static inline bool shift_move_settles(u32 cause)
{
	return cause == SHIFT_CAUSE_OPERATOR || cause == SHIFT_CAUSE_SRQ;
}

void shift_move_want(struct shift_qp *sqp, u8 to, bool keep);	/* sqp->lock */
void shift_move_again(struct shift_qp *sqp);		/* sqp->lock */
void shift_move_done(struct shift_qp *sqp);		/* sqp->lock */
bool shift_move_stays(struct shift_qp *sqp);		/* sqp->lock */
bool shift_move_atomic(struct shift_qp *sqp);		/* sqp->lock */
void shift_move_follow(struct shift_qp *sqp);		/* sqp->lock */
bool shift_move_holds(struct shift_qp *sqp);		/* sqp->lock */
bool shift_move_settle(struct shift_qp *sqp, u8 to);	/* sqp->lock; sleeps */
/* ask for it; process context, no lock: QPs told so.  One of @sdev and @link_id */
unsigned int shift_move_ask(struct shift_dev *sdev, u32 link_id, u32 qpn, u8 to,
			    bool keep);

/* own.c: the application's own QP is given back to it; sqp->lock, unless said otherwise */
bool shift_own_able(struct shift_qp *sqp);
void shift_own_run(struct shift_qp *sqp);
bool shift_own_awaited(struct shift_qp *sqp);			/* no lock */
void shift_own_wish(struct shift_qp *sqp);
bool shift_own_settle(struct shift_qp *sqp, u64 end);		/* sleeps */
void shift_own_hold(struct shift_qp *sqp);
void shift_own_release(struct shift_qp *sqp);
void shift_own_forget(struct shift_qp *sqp);
void shift_own_over(struct shift_qp *sqp);
int shift_own_arm(struct shift_qp *sqp, u32 epoch, u32 qpn);
bool shift_own_ready(struct shift_qp *sqp);
bool shift_own_alone(struct shift_qp *sqp);
void shift_own_returned(struct shift_qp *sqp);
long shift_own_kick(struct shift_qp *sqp);			/* no lock; sleeps */
long shift_own_rebase(struct shift_qp *sqp, struct shift_abi_rebase *base);	/* no lock */
/* Has both ends' consent been asked for, and the QP not arrived?  sqp->lock */
static inline bool shift_own_is_under_way(const struct shift_qp *sqp)
{
	return sqp->to == SHIFT_PATH_OWN && READ_ONCE(sqp->own_hold);
}

/* Is what is posted to stay where it is for now?  ledger_lock */
static inline bool shift_own_keeps_off(const struct shift_qp *sqp)
{
	return sqp->own_hold || sqp->rebase == SHIFT_REBASE_BUSY;
}

/* standby.c: QPs of the kernel's; sqp->lock */
int shift_standby_prepare(struct shift_qp *sqp, u8 path);
u32 shift_standby_qpn(const struct shift_qp *sqp, u8 path);
int shift_standby_claim(struct shift_qp *sqp, u8 path);
bool shift_standby_ready(struct shift_qp *sqp);
int shift_standby_arm(struct shift_qp *sqp, u8 path, u32 epoch, u32 qpn);
void shift_standby_open(struct shift_qp *sqp);
int shift_standby_fence(struct shift_qp *sqp);
void shift_standby_stop(struct shift_qp *sqp);
void shift_standby_tidy(struct shift_qp *sqp);
void shift_standby_drop(struct shift_qp *sqp, u8 path);
void shift_standby_destroy(struct shift_qp *sqp);
void shift_qp_quiet(struct ib_qp *qp);			/* no lock needed */

/* standby_connect.c; sqp->lock */
u32 shift_start_psn(u64 cookie, u32 epoch);		/* no lock needed */
int shift_standby_modify(struct shift_qp *sqp, int mask);
int shift_own_connect(struct shift_qp *sqp);

/* standby_post.c: work for the active one */
int shift_standby_post(struct shift_qp *sqp, u64 seq, u32 *rkey);	/* ledger_lock */
int shift_standby_post_recv(struct shift_qp *sqp, u64 seq);		/* ledger_lock */
bool shift_standby_is_open(const struct shift_qp *sqp);			/* ledger_lock */
void shift_standby_hold(struct shift_qp *sqp, bool hold);
bool shift_standby_is_held(const struct shift_qp *sqp);
u32 shift_standby_error(const struct shift_qp *sqp);	/* ib_wc_status, 0: none */
u32 shift_standby_own_error(const struct shift_qp *sqp);	/* the same */
u32 shift_standby_recv_error(const struct shift_qp *sqp);	/* sqp->lock */
bool shift_standby_busy(const struct shift_qp *sqp);
bool shift_standby_watch(struct shift_qp *sqp);				/* sqp->lock */

#endif /* SHIFT_SWITCH_H */
