/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state machine of a protected QP: pure, table driven, no I/O.
 *
 * shift_fsm_find() finds the rule for an event in a state.  The caller holds the QP's mutex, takes
 * over the rule's next state and does the rule's action.  States, events and messages have the
 * names of Documentation/internals/protocol.md.
 */
#ifndef SHIFT_PURE_FSM_H
#define SHIFT_PURE_FSM_H

#include "pure/pure.h"

enum shift_state {
	SHIFT_ST_OFF,		/* not protected (yet, or any more) */
	SHIFT_ST_RUN,		/* protected, and working on its path */
	SHIFT_ST_ASKED,		/* REQ sent, waiting for the peer's ACK */
	SHIFT_ST_FENCE,		/* joined an epoch; fencing (transient) */
	SHIFT_ST_AGREE,		/* own PROGRESS sent, waiting for the peer's */
	SHIFT_ST_SYNC,		/* own READY sent, waiting for the peer's */
	SHIFT_ST_FAIL,		/* failed: errors are shown to the application */
	SHIFT_ST_APP,		/* the application's own error or teardown */
	__SHIFT_ST_MAX
};

enum shift_event {
	SHIFT_EV_PAIRED,	/* the peer's QP is known, and a QP on the backup is there */
	SHIFT_EV_TRIGGER,	/* a fault, or a move or a handback is wanted */
	SHIFT_EV_RX_REQ,
	SHIFT_EV_RX_ACK,
	SHIFT_EV_RX_NACK,
	SHIFT_EV_FENCED,	/* the QP is reset, and its progress is known */
	SHIFT_EV_UNFENCED,	/* the QP is reset, but the NIC cannot tell its progress */
	SHIFT_EV_RX_PROGRESS,	/* PROGRESS(OK) */
	SHIFT_EV_RX_UNKNOWN,	/* PROGRESS(UNKNOWN) */
	SHIFT_EV_RX_READY,
	SHIFT_EV_RX_GONE,	/* the peer's QP has ended, or its node has restarted */
	SHIFT_EV_DEADLINE,
	SHIFT_EV_APP_ERROR,	/* the application's own error, or its modify(ERR|RESET|SQD) */
	SHIFT_EV_FAIL,		/* the QP cannot go on, on any path */
	SHIFT_EV_UNSTOPPED,	/* the QP has to fail, and cannot be stopped */
	SHIFT_EV_UNPROTECT,	/* the application or an operator ends the protection */
	SHIFT_EV_NO_QP,		/* for the target of a message there is no QP at this end */
	SHIFT_EV_ALONE,		/* a step of a handback whose peer has gone */
	SHIFT_EV_RETURNED,	/* that handback has succeeded */
	__SHIFT_EV_MAX
};

/* Guards: what shift_fsm_find() asks its caller for. */
#define SHIFT_G_HEALTHY		(1u << 0) /* no error CQE, not fenced since the last RUN */
#define SHIFT_G_USABLE		(1u << 1) /* some other path may be asked for */
#define SHIFT_G_JOINS		(1u << 2) /* the epoch is newer than ours; the QP can go there */
#define SHIFT_G_CURRENT		(1u << 3) /* the message is of the epoch asked for or joined last */
#define SHIFT_G_AT_LEAST_ONCE	(1u << 4) /* both ends may go on with unknown progress */
#define SHIFT_G_IDLE		(1u << 5) /* no work that the peer's progress matters to */
#define SHIFT_G_NACK_GONE	(1u << 6) /* a NACK, as the peer's QP has ended */
#define SHIFT_G_OWN		(1u << 7) /* the own QP works: not stopped, no error kept back */

enum shift_action {
	SHIFT_ACT_NONE,
	SHIFT_ACT_PROTECT,	/* enter RUN on the default path */
	SHIFT_ACT_UNPROTECT,	/* end the protection: tell the peer, drop the pairing, ungate */
	SHIFT_ACT_FORGET,	/* drop the pairing of a QP that has ended */
	SHIFT_ACT_ASK,		/* new epoch; send REQ; deadline */
	SHIFT_ACT_NACK,		/* refuse a REQ: busy, gone, or no QP for it */
	SHIFT_ACT_REACK,	/* same epoch again: repeat the answer */
	SHIFT_ACT_JOIN,		/* take epoch and target; send ACK if it was a REQ; fence */
	SHIFT_ACT_UNGATE,	/* call the failover off before anything has changed */
	SHIFT_ACT_PROGRESS,	/* send PROGRESS; deadline */
	SHIFT_ACT_READY,	/* mark what was executed, arm the target, send READY */
	SHIFT_ACT_REPLAY,	/* complete what was executed, post the rest, ungate */
	SHIFT_ACT_KEEP,		/* leave the message in the mailbox for a later state */
	SHIFT_ACT_FAIL,		/* stop; complete what was executed, errors for the rest; GONE */
	SHIFT_ACT_APP,		/* flush what the NIC cannot flush; send GONE */
	SHIFT_ACT_LEAVE,	/* as APP; the driver flushes */
	SHIFT_ACT_ALONE,	/* arm the own QP, whose peer has gone */
	__SHIFT_ACT_MAX
};

/**
 * struct shift_rule - one line of the table
 * @from: bit mask of (1 << enum shift_state).
 * @event: enum shift_event.
 * @mask: guards that matter.
 * @want: their wanted values.
 * @action: enum shift_action.
 * @next: enum shift_state.
 */
struct shift_rule {
	u16 from;
	u8 event;
	u8 action;
	u8 next;
	u16 mask;
	u16 want;
};

const struct shift_rule *shift_fsm_find(enum shift_state state, enum shift_event event,
					bool (*holds)(void *arg, u32 guard), void *arg);
const struct shift_rule *shift_fsm_rules(unsigned int *n);
const char *shift_state_name(enum shift_state state);
const char *shift_event_name(enum shift_event event);
const char *shift_action_name(enum shift_action action);
unsigned int shift_fsm_deadline_ms(enum shift_state state);

u32 shift_epoch_next(u32 highest, bool odd);
u32 shift_epoch_learn(u32 highest, u32 busy);

#endif /* SHIFT_PURE_FSM_H */
