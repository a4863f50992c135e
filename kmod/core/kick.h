/* SPDX-License-Identifier: GPL-2.0 */
/* What waits for the work item of a QP: pending bits, its timer and messages. */
#ifndef SHIFT_CORE_KICK_H
#define SHIFT_CORE_KICK_H

#include <linux/types.h>
#include "pure/msg.h"

struct shift_qp;
struct work_struct;

/**
 * enum shift_qp_bit - what waits for the work item of a QP, or is true of it: sqp->pend.flags
 * @SHIFT_QPB_ERRORED: the CQE filter kept back an error, or the active QP broke.
 * @SHIFT_QPB_FENCED: its own QP, or a proxy QP, was reset since the last RUN.
 * @SHIFT_QPB_GATED: the provider waits, and doorbells are kept back.
 * @SHIFT_QPB_KICK: the ring has new work.
 * @SHIFT_QPB_TRIGGER: something has happened for which it may have to leave its path.
 * @SHIFT_QPB_DEADLINE: the timer has fired.
 * @SHIFT_QPB_RETRY_PAIR: a PAIR is to be sent (again).
 * @SHIFT_QPB_APP: the application has caused an error, or ends the QP.
 * @SHIFT_QPB_SHOWN: the application was shown an error of it since its last RESET.
 * @SHIFT_QPB_PROXY_ERR: the active proxy QP reported an error.
 * @SHIFT_QPB_DEAD: being destroyed: no new work.
 * @SHIFT_QPB_FIRST: first completion on the new path: operators are to be told.
 * @SHIFT_QPB_MOVE: an operator, or failback, wants it on the path move.to.
 * @SHIFT_QPB_TIDY: proxy QPs of the last failover are to be destroyed.
 * @SHIFT_QPB_SILENT: the path that it is on loses all packets.
 * @SHIFT_QPB_FOLLOW: other QPs of its SRQ have left its path.
 * @SHIFT_QPB_READY: the receives of its SRQ are on the new path: READY may have to be sent.
 * @SHIFT_QPB_STALE: the application has reset it while it was away: completions that the driver
 *	has of before are not to be shown again.
 * @SHIFT_QPB_KEPT: a doorbell was kept back while GATED.
 * @SHIFT_QPB_SOON: it is on the list of QPs to be paired at the next tick.
 * @SHIFT_QPB_HANDBACK: see whether it can be handed back.
 * @SHIFT_QPB_LINKS: one of its links has news in peer.use[].
 * @SHIFT_QPB_PATH_UP: a path may have come back: try again, if no path could be used before.
 * @SHIFT_QPB_MTU: the MTU of the backup's interface has changed.
 * @SHIFT_QPB_LOOK: an administrator asks whether its work can be moved: failover/look.c.
 * @SHIFT_QPB_REPORT: its NIC has told whether it has the error that its process reports.
 * @SHIFT_QPB_TIRED: a post has waited for long: it is to be let through, unless in a fence.
 */
enum shift_qp_bit {
	SHIFT_QPB_ERRORED,
	SHIFT_QPB_FENCED,
	SHIFT_QPB_GATED,
	SHIFT_QPB_KICK,
	SHIFT_QPB_TRIGGER,
	SHIFT_QPB_DEADLINE,
	SHIFT_QPB_RETRY_PAIR,
	SHIFT_QPB_APP,
	SHIFT_QPB_SHOWN,
	SHIFT_QPB_PROXY_ERR,
	SHIFT_QPB_DEAD,
	SHIFT_QPB_FIRST,
	SHIFT_QPB_MOVE,
	SHIFT_QPB_TIDY,
	SHIFT_QPB_SILENT,
	SHIFT_QPB_FOLLOW,
	SHIFT_QPB_READY,
	SHIFT_QPB_STALE,
	SHIFT_QPB_KEPT,
	SHIFT_QPB_SOON,
	SHIFT_QPB_HANDBACK,
	SHIFT_QPB_LINKS,
	SHIFT_QPB_PATH_UP,
	SHIFT_QPB_MTU,
	SHIFT_QPB_LOOK,
	SHIFT_QPB_REPORT,
	SHIFT_QPB_TIRED,
};

/* kinds of messages that can wait in a QP's mailbox: one each, newest epoch */
struct shift_mailbox {
	u32 valid;			/* bit per enum shift_msg_type */
	struct shift_msg msg[__SHIFT_MSG_MAX];
};

/* ms */
#define SHIFT_RESEND_MS	100	/* between copies of a message that may be lost */
#define SHIFT_AGAIN_MS	500	/* to the next try while the port stays down */
#define SHIFT_LATE_MS	1000	/* for which a peer that is late has said so; scaled */
#define SHIFT_WATCH_MS	2000	/* for what was posted to make progress */
#define SHIFT_KEY_MS	10000	/* for a peer to tell a remote key */
#define SHIFT_HEARD_MS	2	/* a message that a QP's peer may send, on average */
#define SHIFT_MISSED_MS	100	/* the same of questions for a key that does not exist */
#define SHIFT_GONE_MS	1500	/* for RDMA CM to tell that a peer has gone: link/dreq.c */

/* so many of each at once; Documentation/internals/links.md, "Rates" */
#define SHIFT_HEARD_MOST	1000
#define SHIFT_MISSED_MOST	64

/* kick.c */
void shift_qp_kick(struct shift_qp *sqp, unsigned int bit);
void shift_qp_kick_any(struct shift_qp *sqp, unsigned int bit);
void shift_qp_arm(struct shift_qp *sqp, unsigned int ms);
void shift_qp_arm_unless_set(struct shift_qp *sqp, unsigned int ms);
void shift_qp_watch(struct shift_qp *sqp);
void shift_qp_timer(struct work_struct *work);
bool shift_qp_post_msg(struct shift_qp *sqp, const struct shift_msg *m);
bool shift_qp_hears(struct shift_qp *sqp);
bool shift_qp_is_due(const struct shift_qp *sqp);
bool shift_qp_answers(struct shift_qp *sqp);
void shift_qp_note_missed(struct shift_qp *sqp);
void shift_qp_note_queued(struct shift_qp *sqp, u32 epoch);	/* any that may take a spinlock */
u64 shift_qp_queued_at(struct shift_qp *sqp, u32 epoch);
bool shift_qp_peer_is_late(const struct shift_qp *sqp);			/* any */
bool shift_qp_take_msg(struct shift_qp *sqp, struct shift_msg *m, u32 kept);
void shift_qp_keep_msg(struct shift_qp *sqp, const struct shift_msg *m);
void shift_qp_clear_msgs(struct shift_qp *sqp, bool pair);

#endif /* SHIFT_CORE_KICK_H */
