/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state machine of a protected QP: pure, table driven, no I/O.
 *
 * One function finds the rule for (state, event, guards); the caller holds the
 * QP's mutex, does what the rule's action says and takes over its next state.
 * States, events and messages carry the names of the protocol description
 * (Documentation/protocol.md).
 */
#ifndef SHIFT_FSM_H
#define SHIFT_FSM_H

#include "pure.h"

enum shift_state {
	SHIFT_ST_OFF,		/* not protected (yet, or any more) */
	SHIFT_ST_RUN,		/* on the active path, Default or Fallback */
	SHIFT_ST_ASKED,		/* SWITCH_REQ sent */
	SHIFT_ST_FENCE,		/* joined an epoch; fencing (transient) */
	SHIFT_ST_AGREE,		/* own PROGRESS sent, waiting for the peer's */
	SHIFT_ST_SYNC,		/* own READY sent, waiting for the peer's */
	SHIFT_ST_FAIL,		/* error shown to the application */
	SHIFT_ST_APP,		/* the application's own error or teardown */
	__SHIFT_ST_MAX
};

enum shift_event {
	SHIFT_EV_PAIRED,	/* mirror and peer are there */
	SHIFT_EV_UNPAIRED,	/* protection lost while running */
	SHIFT_EV_FAULT,		/* port event, error CQE, heartbeat; or a move is wanted */
	SHIFT_EV_RX_REQ,
	SHIFT_EV_RX_ACK,
	SHIFT_EV_RX_NACK,
	SHIFT_EV_FENCED,	/* all armed QPs reset, progress known */
	SHIFT_EV_UNFENCED,	/* a NIC could not be asked */
	SHIFT_EV_RX_PROGRESS,	/* PROGRESS(OK) */
	SHIFT_EV_RX_UNKNOWN,	/* PROGRESS(UNKNOWN) */
	SHIFT_EV_RX_READY,
	SHIFT_EV_RX_APP_ERR,	/* PROGRESS(APP_ERR) */
	SHIFT_EV_RX_GONE,	/* QP_GONE or FAIL of the peer */
	SHIFT_EV_DEADLINE,
	SHIFT_EV_APP_ERROR,	/* genuine error CQE, modify(ERR|RESET|SQD) */
	__SHIFT_EV_MAX
};

/* Guards: what the caller knows when the event is handled. */
#define SHIFT_G_HEALTHY		(1u << 0) /* no error CQE, not fenced since the last RUN */
#define SHIFT_G_USABLE		(1u << 1) /* some other path may be asked for */
#define SHIFT_G_JOINS		(1u << 2) /* epoch above mine and my asks; mirrors ready */
#define SHIFT_G_CURRENT		(1u << 3) /* message epoch is the one asked or joined last */
#define SHIFT_G_PAPER		(1u << 4) /* policy paper: go on with unknown progress */
#define SHIFT_G_IDLE		(1u << 5) /* no work that the peer's progress matters to */
#define SHIFT_G_NACK_GONE	(1u << 6) /* NACK or refusal because the peer's QP is gone */

enum shift_action {
	SHIFT_ACT_NONE,
	SHIFT_ACT_PROTECT,	/* enter RUN on the default path */
	SHIFT_ACT_UNPROTECT,	/* leave: drop the pairing, ungate */
	SHIFT_ACT_ASK,		/* new epoch; gate if errored; SWITCH_REQ; deadline */
	SHIFT_ACT_NACK,		/* refuse: busy, gone or no mirror */
	SHIFT_ACT_REACK,	/* same epoch again: repeat what was answered */
	SHIFT_ACT_JOIN,		/* take epoch and target; SWITCH_ACK if it was a REQ; gate; fence */
	SHIFT_ACT_UNGATE,	/* call the switch off, nothing changed */
	SHIFT_ACT_PROGRESS,	/* send PROGRESS; deadline */
	SHIFT_ACT_READY,	/* walk, mark executed, arm target, post receives, send READY */
	SHIFT_ACT_REPLAY,	/* complete executed, post the rest, ungate */
	SHIFT_ACT_KEEP,		/* leave the message in the mailbox for a later state */
	SHIFT_ACT_FAIL,		/* reset all, complete executed, errors for the rest, QP_GONE */
	SHIFT_ACT_APP,		/* cancel; flush what the rings cannot; QP_GONE */
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

const struct shift_rule *shift_fsm_find(enum shift_state state,
					enum shift_event event, u32 guards);
const struct shift_rule *shift_fsm_rules(unsigned int *n);
const char *shift_state_name(enum shift_state state);
const char *shift_event_name(enum shift_event event);
const char *shift_action_name(enum shift_action action);
unsigned int shift_fsm_deadline_ms(enum shift_state state);

u32 shift_epoch_next(u32 highest, bool odd);
u32 shift_epoch_learn(u32 highest, u32 busy);

#endif /* SHIFT_FSM_H */
