/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: every transition of a QP, every message about a QP, and what a failover
 * did to the queues.  Numbers of states, events and actions are those of fsm.h.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM shift

#if !defined(SHIFT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SHIFT_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_verbs.h>
#include "pure/fsm.h"
#include "pure/msg.h"

#define SHIFT_TRACE_STATES \
	SHIFT_TRACE_NAME(SHIFT_ST_OFF,		"OFF") \
	SHIFT_TRACE_NAME(SHIFT_ST_RUN,		"RUN") \
	SHIFT_TRACE_NAME(SHIFT_ST_ASKED,	"ASKED") \
	SHIFT_TRACE_NAME(SHIFT_ST_FENCE,	"FENCE") \
	SHIFT_TRACE_NAME(SHIFT_ST_AGREE,	"AGREE") \
	SHIFT_TRACE_NAME(SHIFT_ST_SYNC,		"SYNC") \
	SHIFT_TRACE_NAME(SHIFT_ST_FAIL,		"FAIL") \
	SHIFT_TRACE_LAST(SHIFT_ST_APP,		"APP")

#define SHIFT_TRACE_EVENTS \
	SHIFT_TRACE_NAME(SHIFT_EV_PAIRED,	"PAIRED") \
	SHIFT_TRACE_NAME(SHIFT_EV_TRIGGER,	"TRIGGER") \
	SHIFT_TRACE_NAME(SHIFT_EV_RX_REQ,	"RX_REQ") \
	SHIFT_TRACE_NAME(SHIFT_EV_RX_ACK,	"RX_ACK") \
	SHIFT_TRACE_NAME(SHIFT_EV_RX_NACK,	"RX_NACK") \
	SHIFT_TRACE_NAME(SHIFT_EV_FENCED,	"FENCED") \
	SHIFT_TRACE_NAME(SHIFT_EV_UNFENCED,	"UNFENCED") \
	SHIFT_TRACE_NAME(SHIFT_EV_RX_PROGRESS,	"RX_PROGRESS") \
	SHIFT_TRACE_NAME(SHIFT_EV_RX_UNKNOWN,	"RX_UNKNOWN") \
	SHIFT_TRACE_NAME(SHIFT_EV_RX_READY,	"RX_READY") \
	SHIFT_TRACE_NAME(SHIFT_EV_RX_GONE,	"RX_GONE") \
	SHIFT_TRACE_NAME(SHIFT_EV_DEADLINE,	"DEADLINE") \
	SHIFT_TRACE_NAME(SHIFT_EV_APP_ERROR,	"APP_ERROR") \
	SHIFT_TRACE_NAME(SHIFT_EV_FAIL,		"FAIL") \
	SHIFT_TRACE_NAME(SHIFT_EV_UNSTOPPED,	"UNSTOPPED") \
	SHIFT_TRACE_NAME(SHIFT_EV_UNPROTECT,	"UNPROTECT") \
	SHIFT_TRACE_NAME(SHIFT_EV_NO_QP,	"NO_QP") \
	SHIFT_TRACE_NAME(SHIFT_EV_ALONE,	"ALONE") \
	SHIFT_TRACE_LAST(SHIFT_EV_RETURNED,	"RETURNED")

#define SHIFT_TRACE_ACTIONS \
	SHIFT_TRACE_NAME(SHIFT_ACT_NONE,	"NONE") \
	SHIFT_TRACE_NAME(SHIFT_ACT_PROTECT,	"PROTECT") \
	SHIFT_TRACE_NAME(SHIFT_ACT_UNPROTECT,	"UNPROTECT") \
	SHIFT_TRACE_NAME(SHIFT_ACT_FORGET,	"FORGET") \
	SHIFT_TRACE_NAME(SHIFT_ACT_ASK,		"ASK") \
	SHIFT_TRACE_NAME(SHIFT_ACT_NACK,	"NACK") \
	SHIFT_TRACE_NAME(SHIFT_ACT_REACK,	"REACK") \
	SHIFT_TRACE_NAME(SHIFT_ACT_JOIN,	"JOIN") \
	SHIFT_TRACE_NAME(SHIFT_ACT_UNGATE,	"UNGATE") \
	SHIFT_TRACE_NAME(SHIFT_ACT_PROGRESS,	"PROGRESS") \
	SHIFT_TRACE_NAME(SHIFT_ACT_READY,	"READY") \
	SHIFT_TRACE_NAME(SHIFT_ACT_REPLAY,	"REPLAY") \
	SHIFT_TRACE_NAME(SHIFT_ACT_KEEP,	"KEEP") \
	SHIFT_TRACE_NAME(SHIFT_ACT_FAIL,	"FAIL") \
	SHIFT_TRACE_NAME(SHIFT_ACT_APP,		"APP") \
	SHIFT_TRACE_NAME(SHIFT_ACT_LEAVE,	"LEAVE") \
	SHIFT_TRACE_LAST(SHIFT_ACT_ALONE,	"ALONE")

#define SHIFT_TRACE_MSGS \
	SHIFT_TRACE_NAME(SHIFT_MSG_HEARTBEAT,	"HEARTBEAT") \
	SHIFT_TRACE_NAME(SHIFT_MSG_PAIR,	"PAIR") \
	SHIFT_TRACE_NAME(SHIFT_MSG_REQ,		"REQ") \
	SHIFT_TRACE_NAME(SHIFT_MSG_ACK,		"ACK") \
	SHIFT_TRACE_NAME(SHIFT_MSG_NACK,	"NACK") \
	SHIFT_TRACE_NAME(SHIFT_MSG_PROGRESS,	"PROGRESS") \
	SHIFT_TRACE_NAME(SHIFT_MSG_RESOLVE,	"RESOLVE") \
	SHIFT_TRACE_NAME(SHIFT_MSG_RESOLVED,	"RESOLVED") \
	SHIFT_TRACE_NAME(SHIFT_MSG_RKEY_GONE,	"RKEY_GONE") \
	SHIFT_TRACE_NAME(SHIFT_MSG_READY,	"READY") \
	SHIFT_TRACE_LAST(SHIFT_MSG_GONE,	"GONE")

/* first the values, for tools that read the format; then the names */
#undef SHIFT_TRACE_NAME
#undef SHIFT_TRACE_LAST
#define SHIFT_TRACE_NAME(value, name) TRACE_DEFINE_ENUM(value);
#define SHIFT_TRACE_LAST(value, name) TRACE_DEFINE_ENUM(value);
SHIFT_TRACE_STATES
SHIFT_TRACE_EVENTS
SHIFT_TRACE_ACTIONS
SHIFT_TRACE_MSGS
#undef SHIFT_TRACE_NAME
#undef SHIFT_TRACE_LAST
#define SHIFT_TRACE_NAME(value, name) { value, name },
#define SHIFT_TRACE_LAST(value, name) { value, name }

/* A QP's state machine took a step (or stayed, if @from is @to). */
TRACE_EVENT(shift_qp_transition,
	TP_PROTO(const char *dev, u32 qpn, unsigned int from, unsigned int event,
		 unsigned int to, unsigned int action, u32 epoch),
	TP_ARGS(dev, qpn, from, event, to, action, epoch),
	TP_STRUCT__entry(
		__array(char, dev, IB_DEVICE_NAME_MAX)
		__field(u32, qpn)
		__field(u32, epoch)
		__field(u8, from)
		__field(u8, event)
		__field(u8, to)
		__field(u8, action)
	),
	TP_fast_assign(
		strscpy(__entry->dev, dev, IB_DEVICE_NAME_MAX);
		__entry->qpn = qpn;
		__entry->epoch = epoch;
		__entry->from = from;
		__entry->event = event;
		__entry->to = to;
		__entry->action = action;
	),
	TP_printk("dev=%s qpn=%u from=%s event=%s to=%s action=%s epoch=%u",
		  __entry->dev, __entry->qpn,
		  __print_symbolic(__entry->from, SHIFT_TRACE_STATES),
		  __print_symbolic(__entry->event, SHIFT_TRACE_EVENTS),
		  __print_symbolic(__entry->to, SHIFT_TRACE_STATES),
		  __print_symbolic(__entry->action, SHIFT_TRACE_ACTIONS),
		  __entry->epoch)
);

/*
 * A message was sent, or has come in.  @dev and @qpn are those of this node's QP that it is
 * about.  One that comes for a QP that has gone, and a link's heartbeats, leave no record.
 */
DECLARE_EVENT_CLASS(shift_msg,
	TP_PROTO(const char *dev, u32 qpn, unsigned int type, u32 epoch),
	TP_ARGS(dev, qpn, type, epoch),
	TP_STRUCT__entry(
		__array(char, dev, IB_DEVICE_NAME_MAX)
		__field(u32, qpn)
		__field(u32, epoch)
		__field(u8, type)
	),
	TP_fast_assign(
		strscpy(__entry->dev, dev, IB_DEVICE_NAME_MAX);
		__entry->qpn = qpn;
		__entry->epoch = epoch;
		__entry->type = type;
	),
	TP_printk("dev=%s qpn=%u type=%s epoch=%u", __entry->dev, __entry->qpn,
		  __print_symbolic(__entry->type, SHIFT_TRACE_MSGS),
		  __entry->epoch)
);

DEFINE_EVENT(shift_msg, shift_msg_tx,
	TP_PROTO(const char *dev, u32 qpn, unsigned int type, u32 epoch),
	TP_ARGS(dev, qpn, type, epoch)
);

DEFINE_EVENT(shift_msg, shift_msg_rx,
	TP_PROTO(const char *dev, u32 qpn, unsigned int type, u32 epoch),
	TP_ARGS(dev, qpn, type, epoch)
);

/*
 * A QP was fenced.  @expected_psn tells how far its peer got in sending to it on
 * the path that it leaves; @err if the NIC could not be asked.
 */
TRACE_EVENT(shift_fence,
	TP_PROTO(const char *dev, u32 qpn, u32 epoch, u32 expected_psn, int err),
	TP_ARGS(dev, qpn, epoch, expected_psn, err),
	TP_STRUCT__entry(
		__array(char, dev, IB_DEVICE_NAME_MAX)
		__field(u32, qpn)
		__field(u32, epoch)
		__field(u32, expected_psn)
		__field(int, err)
	),
	TP_fast_assign(
		strscpy(__entry->dev, dev, IB_DEVICE_NAME_MAX);
		__entry->qpn = qpn;
		__entry->epoch = epoch;
		__entry->expected_psn = expected_psn;
		__entry->err = err;
	),
	TP_printk("dev=%s qpn=%u epoch=%u expected_psn=0x%06x err=%d",
		  __entry->dev, __entry->qpn, __entry->epoch,
		  __entry->expected_psn, __entry->err)
);

/* Outstanding work was posted again on the new path, except what was found executed. */
TRACE_EVENT(shift_replay,
	TP_PROTO(const char *dev, u32 qpn, u32 epoch, u32 executed, u32 replayed),
	TP_ARGS(dev, qpn, epoch, executed, replayed),
	TP_STRUCT__entry(
		__array(char, dev, IB_DEVICE_NAME_MAX)
		__field(u32, qpn)
		__field(u32, epoch)
		__field(u32, executed)
		__field(u32, replayed)
	),
	TP_fast_assign(
		strscpy(__entry->dev, dev, IB_DEVICE_NAME_MAX);
		__entry->qpn = qpn;
		__entry->epoch = epoch;
		__entry->executed = executed;
		__entry->replayed = replayed;
	),
	TP_printk("dev=%s qpn=%u epoch=%u executed=%u replayed=%u",
		  __entry->dev, __entry->qpn, __entry->epoch,
		  __entry->executed, __entry->replayed)
);

#endif /* SHIFT_TRACE_H */

/* Kbuild has the module's folder in the include path; this is relative to it. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH core
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
