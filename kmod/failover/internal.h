/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of failover/ share.  The protocol: Documentation/internals/protocol.md. */
#ifndef SHIFT_FAILOVER_INTERNAL_H
#define SHIFT_FAILOVER_INTERNAL_H

#include "failover/failover.h"

struct shift_link;
struct shift_rule;

/* Both paths work in a move: do both ends let operations that are under way finish first? */
static inline bool shift_move_settles(u32 cause)
{
	return cause == SHIFT_CAUSE_OPERATOR || cause == SHIFT_CAUSE_SRQ;
}

/* Why it leaves its path; @moves: that goes back to a move.  sqp->lock */
static inline void shift_failover_because(struct shift_qp *sqp, enum shift_cause cause, bool moves)
{
	sqp->fo.cause = cause;
	sqp->fo.moves = moves;
}

/* Has a handback begun, and not ended?  sqp->lock */
static inline bool shift_handback_is_under_way(const struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	return sqp->fo.to == SHIFT_PATH_OWN && READ_ONCE(sqp->handback.hold);
}

/* The epoch of messages that are about the current state.  sqp->lock */
static inline u32 shift_epoch_current(const struct shift_qp *sqp)
{
	lockdep_assert_held(&sqp->lock);
	return sqp->fo.state == SHIFT_ST_ASKED ? sqp->fo.highest : sqp->fo.epoch;
}

#define SHIFT_ASKS_MAX	3		/* requests of one failover */
#define SHIFT_RESENDS_MIN	2	/* copies without an answer from a peer that is mute */
#define SHIFT_RESENDS_SPREAD	5	/* copies whose pauses double */
#define SHIFT_QUEUED_MS	120000	/* for a peer whose QP waits for its turn; scaled */
#define SHIFT_PUMP_RETRY_MS	20	/* to the next try to post */
#define SHIFT_HANDBACK_RETRY_MS	100	/* to the next try, doubled with each; scaled */

/* path.c */
u8 shift_path_choose(const struct shift_qp *sqp);
int shift_path_send(struct shift_qp *sqp, u8 path, struct shift_msg *m);
struct shift_link *shift_path_link(const struct shift_qp *sqp, u8 path);
bool shift_path_link_up(const struct shift_qp *sqp, u8 path);
bool shift_path_usable(const struct shift_qp *sqp);	/* sqp->lock, or inbox_lock */
bool shift_path_healthy(struct shift_qp *sqp);
bool shift_path_port_down(const struct shift_qp *sqp, u8 path);	/* any context */
bool shift_path_works(const struct shift_qp *sqp, u8 path);	/* sqp->lock, or inbox_lock */
bool shift_path_outage(struct shift_qp *sqp);
void shift_path_take_link(struct shift_qp *sqp, int i, struct shift_link *link);
void shift_path_drop_link(struct shift_qp *sqp, int i);

/* target.c; sqp->lock */
int shift_target_prepare(struct shift_qp *sqp, u8 to);
u32 shift_target_qpn(const struct shift_qp *sqp, u8 to);
int shift_target_arm(struct shift_qp *sqp, u8 to, u32 epoch, u32 qpn);
bool shift_target_ready(struct shift_qp *sqp);

/* handback.c */
bool shift_handback_awake(const struct shift_qp *sqp);
bool shift_handback_fits(struct shift_qp *sqp);
bool shift_handback_asks(const struct shift_qp *sqp);
bool shift_handback_tell(struct shift_qp *sqp);
void shift_handback_wish(struct shift_qp *sqp);
void shift_handback_hold(struct shift_qp *sqp);
void shift_handback_release(struct shift_qp *sqp);
void shift_handback_over(struct shift_qp *sqp);
bool shift_handback_ready(struct shift_qp *sqp);
void shift_handback_returned(struct shift_qp *sqp);

/* move.c */
bool shift_move_target_works(const struct shift_qp *sqp);
bool shift_move_wanted(const struct shift_qp *sqp, u8 path);
void shift_move_want(struct shift_qp *sqp, u8 to, bool keep);	/* sqp->lock */
void shift_move_done(struct shift_qp *sqp);		/* sqp->lock */
bool shift_move_stays(struct shift_qp *sqp);		/* sqp->lock */
bool shift_move_atomic(struct shift_qp *sqp);		/* sqp->lock */
bool shift_move_holds(struct shift_qp *sqp);		/* sqp->lock */

/* deadline.c; sqp->lock */
void shift_deadline_start(struct shift_qp *sqp, enum shift_state state);
bool shift_deadline_is_patient(struct shift_qp *sqp);
bool shift_deadline_peer_is_slow(struct shift_qp *sqp);

/* state.c */
bool shift_failover_joins(struct shift_qp *sqp, const struct shift_msg *m);	/* sqp->lock */

/* ending.c */
void shift_failover_abort(struct shift_qp *sqp);
enum shift_event shift_failover_stop(struct shift_qp *sqp);		/* sleeps */
void shift_failover_show_error(struct shift_qp *sqp);
void shift_failover_app(struct shift_qp *sqp);
void shift_failover_leave_to_driver(struct shift_qp *sqp);
void shift_failover_leave_protection(struct shift_qp *sqp);
void shift_failover_push_pending_error(struct shift_qp *sqp);

/* resolve.c */
void shift_rkey_ask(struct shift_qp *sqp, u32 rkey);		/* sqp->lock */
void shift_rkey_resolve(struct shift_qp *sqp, const struct shift_msg *m); /* sqp->lock */
void shift_rkey_gone(struct shift_qp *sqp, u32 rkey);		/* sqp->lock */
void shift_rkey_message(struct shift_qp *sqp, struct shift_link *link,
			const struct shift_msg *m);	/* no lock; of itself: any */

/* revoke.c */
void shift_rkey_revoked(struct shift_qp *sqp, u32 rkey);	/* no lock */
void shift_rkey_disuse(struct shift_qp *sqp, u32 rkey);		/* no lock */

/* look.c; sqp->lock */
int shift_qp_stays(struct shift_qp *sqp, bool hopeful);
void shift_qp_look(struct shift_qp *sqp);
bool shift_qp_is_mute(struct shift_qp *sqp, bool anew);
bool shift_qp_breaks_again(struct shift_qp *sqp);
void shift_qp_look_asked(struct shift_qp *sqp);

/**
 * enum shift_verdict - what becomes of an error that a process reports
 * @SHIFT_VERDICT_OPEN: not known yet.
 * @SHIFT_VERDICT_TRUE: the QP has it, or nobody can tell in time.
 * @SHIFT_VERDICT_FALSE: the QP works.
 */
enum shift_verdict {
	SHIFT_VERDICT_OPEN,
	SHIFT_VERDICT_TRUE,
	SHIFT_VERDICT_FALSE,
};

/* report.c; sqp->lock */
enum shift_verdict shift_report_judge(struct shift_qp *sqp);

/* silence.c; sqp->lock */
bool shift_silence_begins(struct shift_qp *sqp);
void shift_silence_over(struct shift_qp *sqp);
bool shift_silence_look(struct shift_qp *sqp);
int shift_silence_asked(struct shift_qp *sqp);

/* pump.c */
bool shift_replay_pump(struct shift_qp *sqp);	/* sqp->lock */

/* settle.c */
int shift_move_settle(struct shift_qp *sqp, u8 to);	/* sqp->lock; sleeps */
bool shift_handback_goes_alone(struct shift_qp *sqp);		/* sqp->lock */
enum shift_event shift_handback_alone(struct shift_qp *sqp);	/* sqp->lock */

/* action.c */
enum shift_event shift_failover_prepare(struct shift_qp *sqp, const struct shift_rule *rule,
					const struct shift_msg *m);
enum shift_event shift_failover_act(struct shift_qp *sqp, const struct shift_rule *rule,
				    const struct shift_msg *m);
void shift_failover_nack(struct shift_qp *sqp, const struct shift_msg *m);
void shift_failover_resend(struct shift_qp *sqp);
void shift_failover_ready(struct shift_qp *sqp);

/* triggers.c */
void shift_failover_peer_gone(struct shift_qp *sqp);
void shift_move_run(struct shift_qp *sqp);		/* sqp->lock */
void shift_move_again(struct shift_qp *sqp);		/* sqp->lock */
void shift_move_follow(struct shift_qp *sqp);		/* sqp->lock */
void shift_handback_run(struct shift_qp *sqp);

/* loop.c */
void shift_loop_pair(struct shift_qp *sqp, bool atomic);	/* sqp->lock */

/* pairing.c */
void shift_pairing_run(struct shift_qp *sqp);		/* sqp->lock */
void shift_pairing_message(struct shift_qp *sqp, const struct shift_msg *m);
void shift_pairing_links(struct shift_qp *sqp);		/* sqp->lock */
void shift_pairing_mtu(struct shift_qp *sqp);		/* sqp->lock */

#endif /* SHIFT_FAILOVER_INTERNAL_H */
