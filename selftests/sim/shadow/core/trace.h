/* SPDX-License-Identifier: GPL-2.0 */
/* In place of kmod/core/trace.h: the tracepoints write to the trace of a run. */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include "pure/fsm.h"
#include "pure/msg.h"

static inline void trace_shift_qp_transition(const char *dev, u32 qpn, unsigned int from,
					     unsigned int event, unsigned int to,
					     unsigned int action, u32 epoch)
{
	sim_log("%s qp %u: %s, %s -> %s: %s, epoch %u", dev, qpn, shift_state_name(from),
		shift_event_name(event), shift_state_name(to), shift_action_name(action), epoch);
}

static inline void trace_shift_msg_tx(const char *dev, u32 qpn, u8 type, u32 epoch)
{
	sim_log("%s qp %u: sends %s, epoch %u", dev, qpn, shift_msg_name(type), epoch);
}

static inline void trace_shift_msg_rx(const char *dev, u32 qpn, u8 type, u32 epoch)
{
	sim_log("%s qp %u: has %s, epoch %u", dev, qpn, shift_msg_name(type), epoch);
}

static inline void trace_shift_fence(const char *dev, u32 qpn, u32 epoch, u32 psn, int err)
{
	sim_log("%s qp %u: fenced, epoch %u, expects psn %u (%d)", dev, qpn, epoch, psn, err);
}

static inline void trace_shift_replay(const char *dev, u32 qpn, u32 epoch, u32 executed,
				      u32 replayed)
{
	sim_log("%s qp %u: replays, epoch %u: %u executed, %u posted again", dev, qpn, epoch,
		executed, replayed);
}

#endif /* SIM_TRACE_H */
