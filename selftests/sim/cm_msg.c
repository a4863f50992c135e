// SPDX-License-Identifier: GPL-2.0
/* RDMA CM's messages between the ends.  An id's thread takes them in order. */
#include "cm_id.h"

struct cm_msg {
	struct sim_timer timer;
	int to, net;
	u32 id;
	struct cm_input in;
};

static const char *kind_name(enum cm_kind kind)
{
	static const char *const names[] = { "REQ", "REP", "RTU", "REJ", "DREQ", "DREP" };

	return names[kind];
}

/* A hostile peer: its HELLO is changed on the way to end a. */
static void lie(struct cm_id *cm)
{
	u8 *data = cm->input->data;
	u32 at;

	if (!sim_hostile || cm->end || !sim_upset(3, "a HELLO is changed"))
		return;
	sim_lies++;
	do {
		at = sim_draw(CM_DATA);
		data[at] = sim_draw(2) ? sim_draw(256) : data[at] ^ 1u << sim_draw(8);
	} while (sim_draw(3));
}

/* Call the handler; the id's handler lock is held. */
void cm_event(struct cm_id *cm, enum rdma_cm_event_type event, int status)
{
	struct rdma_cm_event what = { .event = event, .status = status };

	if (event == RDMA_CM_EVENT_ESTABLISHED) {
		lie(cm);
		what.param.conn.private_data = cm->input->data;
		what.param.conn.private_data_len = CM_DATA;
	}
	if (cm->id.event_handler(&cm->id, &what))
		sim_fail("RDMA CM is to destroy a cm_id at %s", rdma_event_msg(event));
}

/* A request has come: ask the listener.  False: @cm is freed. */
static bool requested(struct cm_id *cm)
{
	struct cm_id *listener = cm_listener(cm->end);
	struct rdma_cm_event what = {
		.event = RDMA_CM_EVENT_CONNECT_REQUEST,
		.param.conn = { .private_data = cm->input->data, .private_data_len = CM_DATA },
	};
	int refused = -ENOENT;

	if (listener) {
		lie(cm);
		listener->uses++;
		mutex_lock(&listener->handler);
		if (listener->state == CM_LISTENS) {
			/* the kernel has a class of its own for a listener's lock */
			cm->handler.lock.name = "handler of a new cm_id";
			mutex_lock(&cm->handler);
			refused = listener->id.event_handler(&cm->id, &what);
			mutex_unlock(&cm->handler);
			cm->handler.lock.name = "&cm->handler";
			cm->handler.lock.class = -1;
		}
		mutex_unlock(&listener->handler);
		listener->uses--;
	}
	if (!refused)
		return true;
	cm->state = CM_OVER;
	cm_send(cm, CM_REJ);
	cm_free(cm);
	return false;
}

static void replied(struct cm_id *cm)
{
	int err;

	if (cm->state == CM_CONNECTED)
		cm_send(cm, CM_RTU);
	if (cm->state != CM_REQ_SENT)
		return;
	cm->peer = cm->input->from;
	cm->peer_qpn = cm->input->qpn;
	cm->peer_psn = cm->input->psn;
	err = cm->id.qp ? cm_qp_ready(cm) : -EINVAL;
	if (err) {
		cm->state = CM_OVER;
		cm_send(cm, CM_REJ);
		cm_event(cm, RDMA_CM_EVENT_CONNECT_ERROR, err);
		return;
	}
	cm->state = CM_CONNECTED;
	cm_send(cm, CM_RTU);
	cm_event(cm, RDMA_CM_EVENT_ESTABLISHED, 0);
}

/* The handler lock is held. */
static void message(struct cm_id *cm)
{
	switch (cm->input->kind) {
	case CM_REP:
		replied(cm);
		break;
	case CM_RTU:
		if (cm->state != CM_REP_SENT)
			break;
		cm->state = CM_CONNECTED;
		cm_event(cm, RDMA_CM_EVENT_ESTABLISHED, 0);
		break;
	case CM_REJ:
		if (cm->state != CM_REQ_SENT && cm->state != CM_REP_SENT)
			break;
		cm->state = CM_OVER;
		cm_event(cm, RDMA_CM_EVENT_REJECTED, 28);
		break;
	case CM_DREQ:
		if (cm->state != CM_CONNECTED && cm->state != CM_REP_SENT)
			break;
		cm->state = CM_OVER;
		cm_send(cm, CM_DREP);
		cm_event(cm, RDMA_CM_EVENT_DISCONNECTED, 0);
		break;
	case CM_DREP:
		cm_event(cm, RDMA_CM_EVENT_DISCONNECTED, 0);
		break;
	default:
		break;
	}
}

static void cm_thread(void *arg)
{
	struct cm_id *cm = arg;
	struct cm_input *in;

	while ((in = cm->input)) {
		if (in->message && in->kind == CM_REQ) {
			if (!requested(cm))
				return;
		} else {
			mutex_lock(&cm->handler);
			if (cm->state != CM_DESTROYED && in->message)
				message(cm);
			else if (cm->state != CM_DESTROYED)
				cm_event(cm, in->event, in->status);
			mutex_unlock(&cm->handler);
		}
		cm->input = in->next;
		kfree(in);
	}
	cm->busy = false;
}

/* Have an id's thread handle @what.  Any context.  False: no memory. */
bool cm_input(struct cm_id *cm, const struct cm_input *what)
{
	struct cm_input *in = sim_alloc(sizeof(*in), GFP_ATOMIC), **at = &cm->input;

	if (!in)
		return false;
	*in = *what;
	in->next = NULL;
	while (*at)
		at = &(*at)->next;
	*at = in;
	if (!cm->busy) {
		cm->busy = true;
		sim_thread_start(cm->end, "RDMA CM", cm_thread, cm, false);
	}
	return true;
}

static struct cm_id *new_request(const struct cm_msg *m)
{
	struct cm_id *cm = cm_new(m->to, m->net);

	if (!cm)
		return NULL;
	cm->state = CM_REQ_HAD;
	cm->peer = m->in.from;
	cm->peer_qpn = m->in.qpn;
	cm->peer_psn = m->in.psn;
	cm->retries = m->in.retries;
	cm->path = (struct sa_path_rec) {
		.sgid = dev[m->to][m->net].gid.gid, .dgid = dev[!m->to][m->net].gid.gid,
		.dmac = { 2, 0, 0, 0, 0, 1 + !m->to }, .traffic_class = m->in.tos,
	};
	cm->id.device = &dev[m->to][m->net].ib;
	cm->id.route.path_rec = &cm->path;
	((struct sockaddr_in *)&cm->id.route.addr.dst_addr)->sin_port = m->in.port;
	return cm;
}

static void arrives(struct sim_timer *timer)
{
	struct cm_msg *m = container_of(timer, struct cm_msg, timer);
	struct cm_id *cm;

	if (net_passes(m->net, m->to)) {
		sim_log("%c RDMA CM: has %s", 'a' + m->to, kind_name(m->in.kind));
		if (m->in.kind == CM_REQ)
			cm = new_request(m);
		else
			cm = cm_find(m->to, m->id, m->in.from);
		if (cm && !cm_input(cm, &m->in) && m->in.kind == CM_REQ)
			cm_free(cm);
	}
	kfree(m);
}

/* Send a message to the peer of @cm.  Any context. */
void cm_send(struct cm_id *cm, enum cm_kind kind)
{
	u64 delay = sim_draw_between(US(5), US(2 * sim_packet_us));
	struct cm_msg *m;

	if (!net_passes(cm->net, !cm->end) || dev[cm->end][cm->net].down ||
	    sim_upset(sim_cm_odds, "a message of RDMA CM is lost"))
		return;
	m = sim_alloc(sizeof(*m), GFP_ATOMIC);
	if (!m)
		return;
	*m = (struct cm_msg) {
		.timer.fn = arrives, .to = !cm->end, .net = cm->net, .id = cm->peer,
		.in = {
			.message = true, .kind = kind, .from = cm->number, .psn = cm->psn,
			.qpn = cm->id.qp ? cm->id.qp->qp_num : 0, .retries = cm->retries,
			.tos = cm->path.traffic_class,
			.port = ((struct sockaddr_in *)&cm->id.route.addr.src_addr)->sin_port,
		},
	};
	memcpy(m->in.data, cm->data, CM_DATA);
	sim_timer_set(&m->timer, sim_now + delay);
}
