/* SPDX-License-Identifier: GPL-2.0 */
/* Proxy QPs: kernel-owned QPs that carry the traffic of application's QPs. */
#ifndef SHIFT_PROXY_PROXY_H
#define SHIFT_PROXY_PROXY_H

#include "core/qp.h"

struct shift_proxy;

/*
 * Operations, or receives, that are handled with ledger_lock held, and so with softirqs off.  Then
 * the lock is dropped, and what depends on it is looked at anew; see "Passes with softirqs off" in
 * Documentation/internals/locking.md.
 */
#ifndef SHIFT_PASS
#define SHIFT_PASS	128
#endif

/* So many passes go once over a ring; others may fill it meanwhile, and go on by themselves. */
static inline u32 shift_passes(u32 slots)
{
	return slots / SHIFT_PASS + 2;
}

/* One more was handled with ledger_lock held.  It may be dropped and taken again here. */
static inline void shift_ledger_breathe(struct shift_qp *sqp, u32 *n)
{
	if (++*n % SHIFT_PASS)
		return;
	spin_unlock_bh(&sqp->ledger_lock);
	spin_lock_bh(&sqp->ledger_lock);
}

/* proxy.c */
int shift_proxy_prepare(struct shift_qp *sqp, u8 path);
u32 shift_proxy_qpn(const struct shift_qp *sqp, u8 path);
int shift_proxy_claim(struct shift_qp *sqp, u8 path);
bool shift_proxy_ready(struct shift_qp *sqp);
int shift_proxy_arm(struct shift_qp *sqp, u8 path, u32 epoch, u32 qpn);
void shift_proxy_open(struct shift_qp *sqp);
int shift_proxy_fence(struct shift_qp *sqp);
void shift_proxy_stop(struct shift_qp *sqp);
void shift_proxy_tidy(struct shift_qp *sqp);
void shift_proxy_drop(struct shift_qp *sqp, u8 path);
void shift_proxy_destroy(struct shift_qp *sqp);
void shift_proxy_retire(struct shift_qp *sqp);
int shift_replay_post(struct shift_qp *sqp, u32 *rkey);	/* ledger_lock */

/* connect.c */
u32 shift_start_psn(u64 cookie, u32 epoch);		/* no lock needed */
int shift_proxy_modify(struct shift_qp *sqp, int mask);
int shift_qp_reconnect(struct shift_qp *sqp);
int shift_qp_restart(struct shift_qp *sqp);
int shift_proxy_connect(struct shift_proxy *b, u32 epoch, u32 qpn);

/* post.c */
int shift_proxy_post(struct shift_qp *sqp, u64 seq, u32 *rkey);	/* ledger_lock */
int shift_proxy_post_recv(struct shift_qp *sqp, u64 seq);		/* ledger_lock */
bool shift_proxy_is_open(const struct shift_qp *sqp);			/* ledger_lock */
void shift_proxy_hold(struct shift_qp *sqp, bool hold);
bool shift_proxy_is_held(const struct shift_qp *sqp);
u32 shift_proxy_error(const struct shift_qp *sqp);	/* ib_wc_status, 0: none */
u32 shift_proxy_own_error(const struct shift_qp *sqp);	/* the same */
u32 shift_proxy_recv_error(const struct shift_qp *sqp);	/* sqp->lock */
bool shift_proxy_busy(const struct shift_qp *sqp);
bool shift_proxy_watch(struct shift_qp *sqp);				/* sqp->lock */
bool shift_proxy_flushed(const struct shift_proxy *b, const struct ib_wc *wc);

/* done.c */
void shift_srq_recv_done(struct ib_cq *cq, struct ib_wc *wc);
void shift_proxy_done(struct ib_cq *cq, struct ib_wc *wc);
void shift_proxy_recv_done(struct ib_cq *cq, struct ib_wc *wc);

/* replay.c */
void shift_replay_doorbell(struct shift_qp *sqp);	/* any context */
void shift_replay_deliver(struct shift_qp *sqp);	/* any process context */
void shift_replay_flush(struct shift_qp *sqp);	/* sqp->lock */
int shift_replay_progress(struct shift_qp *sqp, const struct shift_msg *m);
u32 shift_replay_doubtful(struct shift_qp *sqp, bool *once);	/* ledger_lock */

/* recv.c */
void shift_recv_pump(struct shift_qp *sqp);		/* sqp->lock; armed */
void shift_recv_doorbell(struct shift_qp *sqp);		/* any context but softirq */
void shift_recv_done(struct shift_qp *sqp, const struct ib_wc *wc); /* ledger_lock */
void shift_recv_deliver(struct shift_qp *sqp);		/* any but hard interrupts */
void shift_recv_flush(struct shift_qp *sqp);		/* sqp->lock */
struct shift_recv shift_recv_got(struct shift_qp *sqp, const struct ib_wc *wc);	/* ledger_lock */

/* rebase.c */
long shift_handback_kick(struct shift_qp *sqp);			/* no lock; sleeps */
/* no lock */
long shift_handback_rebase(struct shift_qp *sqp, struct shift_abi_rebase *base);

#endif /* SHIFT_PROXY_PROXY_H */
