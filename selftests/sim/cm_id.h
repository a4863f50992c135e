/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of RDMA CM: its ids, and the messages between them. */
#ifndef SIM_CM_ID_H
#define SIM_CM_ID_H

#include "world.h"

#define CM_DATA		56		/* bytes of private data that a REQ has room for */

enum cm_state { CM_IDLE, CM_LISTENS, CM_ADDR, CM_ROUTE, CM_REQ_SENT, CM_REQ_HAD, CM_REP_SENT,
		CM_CONNECTED, CM_OVER, CM_DESTROYED };
enum cm_kind { CM_REQ, CM_REP, CM_RTU, CM_REJ, CM_DREQ, CM_DREP };

/* what an id's thread is to handle: a message, or a step that is over */
struct cm_input {
	struct cm_input *next;
	bool message;
	enum rdma_cm_event_type event;
	int status;
	enum cm_kind kind;
	u32 from, qpn, psn;
	__be16 port;
	u8 retries, tos, data[CM_DATA] __attribute__((aligned(8)));
};

struct cm_id {
	struct rdma_cm_id id;
	struct cm_id *next;
	int end, net;
	u32 number, peer;		/* 0: not known */
	enum cm_state state;
	struct mutex handler;
	struct mutex qp_mutex;		/* held while its QP is changed, or destroyed */
	struct cm_input *input;
	bool busy;			/* its thread runs */
	int uses;			/* of a listener: requests that are being handled */
	struct sim_timer step, again;
	int step_status;
	u8 timeout, retries, rnr, data[CM_DATA];
	u32 psn, peer_qpn, peer_psn;
	struct sa_path_rec path;
};

static inline struct cm_id *to_cm(struct rdma_cm_id *id)
{
	return container_of(id, struct cm_id, id);
}

/* cm.c */
struct cm_id *cm_new(int end, int net);
void cm_free(struct cm_id *cm);
struct cm_id *cm_find(int end, u32 number, u32 peer);	/* @number 0: by its peer */
struct cm_id *cm_listener(int end);
void cm_event(struct cm_id *cm, enum rdma_cm_event_type event, int status);
int cm_qp_ready(struct cm_id *cm);	/* to RTR and RTS */

/* cm_msg.c */
void cm_send(struct cm_id *cm, enum cm_kind kind);
bool cm_input(struct cm_id *cm, const struct cm_input *what);

#endif /* SIM_CM_ID_H */
