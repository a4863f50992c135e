// SPDX-License-Identifier: GPL-2.0
/* RDMA CM as the kernels' code calls it: ids, and what is done with them. */
#include "cm_id.h"

#define REP_AGAIN	MS(4295)	/* until a REP is sent once more */

u32 sim_cm_odds;
struct net init_net = { .net_cookie = 1 };
static struct cm_id *ids;
static u32 last_number;

void sim_cm_start(void)
{
	ids = NULL;
	last_number = 0;
}

u32 sim_cms_left(void)
{
	struct cm_id *cm;
	u32 n = 0;

	for (cm = ids; cm; cm = cm->next)
		n++;
	return n;
}

static void resolved(struct sim_timer *timer)
{
	struct cm_id *cm = container_of(timer, struct cm_id, step);
	bool addr = cm->state == CM_ADDR;

	cm_input(cm, &(struct cm_input) {
		.event = !cm->step_status ?
			 (addr ? RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ROUTE_RESOLVED) :
			 (addr ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ROUTE_ERROR),
		.status = cm->step_status,
	});
}

static void rep_again(struct sim_timer *timer)
{
	struct cm_id *cm = container_of(timer, struct cm_id, again);

	if (cm->state == CM_REP_SENT)
		cm_send(cm, CM_REP);
}

/* NULL: no memory */
struct cm_id *cm_new(int end, int net)
{
	struct cm_id *cm = sim_alloc(sizeof(*cm), GFP_ATOMIC);

	if (!cm)
		return NULL;
	cm->end = end;
	cm->net = net;
	cm->number = ++last_number;
	cm->psn = 5000 + 111 * cm->number;
	mutex_init(&cm->handler);
	mutex_init(&cm->qp_mutex);
	cm->step.fn = resolved;
	cm->again.fn = rep_again;
	cm->id.route.addr.dev_addr.net = &init_net;
	cm->id.route.addr.dev_addr.bound_dev_if = net + 1;
	cm->next = ids;
	ids = cm;
	return cm;
}

void cm_free(struct cm_id *cm)
{
	struct cm_id **at = &ids;
	struct cm_input *in;

	if (cm->id.qp)
		sim_fail("a cm_id is destroyed before its QP");
	while (*at != cm)
		at = &(*at)->next;
	*at = cm->next;
	sim_timer_stop(&cm->step);
	sim_timer_stop(&cm->again);
	while ((in = cm->input)) {
		cm->input = in->next;
		kfree(in);
	}
	kfree(cm);
}

struct cm_id *cm_find(int end, u32 number, u32 peer)
{
	struct cm_id *cm = ids;

	while (cm && (cm->end != end || (number ? cm->number != number : cm->peer != peer)))
		cm = cm->next;
	return cm;
}

struct cm_id *cm_listener(int end)
{
	struct cm_id *cm = ids;

	while (cm && (cm->end != end || cm->state != CM_LISTENS))
		cm = cm->next;
	return cm;
}

void cm_device_gone(int end, int net)
{
	u64 end_ns = sim_now + MS(17000 + sim_verb_ms);
	struct cm_id *cm;
	bool left;

	for (cm = ids; cm; cm = cm->next)
		if (cm->end == end && cm->net == net && cm->id.device)
			cm_input(cm, &(struct cm_input) { .event = RDMA_CM_EVENT_DEVICE_REMOVAL });
	do {
		if (sim_now >= end_ns)
			sim_fail("a cm_id keeps a device that is removed");
		sim_sleep(MS(1));
		left = false;
		for (cm = ids; cm; cm = cm->next)
			left |= cm->end == end && cm->net == net && cm->id.device;
	} while (left);
}

struct rdma_cm_id *rdma_create_id(struct net *net, rdma_cm_event_handler handler, void *context,
				  enum rdma_ucm_port_space ps, enum ib_qp_type type)
{
	struct cm_id *cm;

	sim_might_sleep(__func__);
	cm = cm_new(sim_end_now, -1);
	if (!cm)
		return ERR_PTR(-ENOMEM);
	cm->id.event_handler = handler;
	cm->id.context = context;
	return &cm->id;
}

void rdma_destroy_id(struct rdma_cm_id *id)
{
	struct cm_id *cm = to_cm(id);
	enum cm_state was;

	if (sim_is_held(&cm->handler.lock))
		sim_fail("a cm_id is destroyed by its own handler");
	mutex_lock(&cm->handler);
	was = cm->state;
	cm->state = CM_DESTROYED;
	mutex_unlock(&cm->handler);
	sim_timer_stop(&cm->step);
	sim_timer_stop(&cm->again);
	if (was == CM_CONNECTED)
		cm_send(cm, CM_DREQ);
	else if (was == CM_REQ_SENT || was == CM_REQ_HAD || was == CM_REP_SENT)
		cm_send(cm, CM_REJ);
	while (cm->busy || cm->uses)
		sim_sleep(US(20));
	cm_free(cm);
}

void rdma_lock_handler(struct rdma_cm_id *id)
{
	mutex_lock(&to_cm(id)->handler);
}

void rdma_unlock_handler(struct rdma_cm_id *id)
{
	mutex_unlock(&to_cm(id)->handler);
}

int rdma_set_afonly(struct rdma_cm_id *id, int afonly)
{
	return 0;
}

int rdma_set_reuseaddr(struct rdma_cm_id *id, int reuse)
{
	return 0;
}

/* Its networks treat all classes alike. */
void rdma_set_service_type(struct rdma_cm_id *id, int tos)
{
	to_cm(id)->path.traffic_class = tos;
}

int rdma_set_ack_timeout(struct rdma_cm_id *id, u8 timeout)
{
	to_cm(id)->timeout = timeout;
	return 0;
}

/* Its NICs wait for a time of their own: qp.c. */
int rdma_set_min_rnr_timer(struct rdma_cm_id *id, u8 timer)
{
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	/* there is no IPv6 */
	if (addr->sa_family != AF_INET)
		return -EADDRNOTAVAIL;
	memcpy(&id->route.addr.src_addr, addr, sizeof(struct sockaddr_in));
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	to_cm(id)->state = CM_LISTENS;
	return 0;
}

static void sockaddr_gid(const struct sockaddr *addr, union ib_gid *gid)
{
	ipv6_addr_set_v4mapped(((const struct sockaddr_in *)addr)->sin_addr.s_addr,
			       (struct in6_addr *)gid);
}

void rdma_gid2ip(struct sockaddr *to, const union ib_gid *gid)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;

	in->sin_family = AF_INET;
	memcpy(&in->sin_addr, gid->raw + 12, 4);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, const struct sockaddr *dst,
		      unsigned long timeout_ms)
{
	struct cm_id *cm = to_cm(id);
	int net;

	lockdep_assert_held(&cm->handler);
	sockaddr_gid((struct sockaddr *)&id->route.addr.src_addr, &cm->path.sgid);
	sockaddr_gid(dst, &cm->path.dgid);
	for (net = 0; net < SIM_NETS; net++)
		if (!dev[cm->end][net].gone &&
		    !memcmp(&dev[cm->end][net].gid.gid, &cm->path.sgid, sizeof(cm->path.sgid)))
			break;
	if (net == SIM_NETS)
		return -EADDRNOTAVAIL;
	cm->net = net;
	cm->state = CM_ADDR;
	id->device = &dev[cm->end][net].ib;
	/* a neighbour may be known from before */
	cm->step_status = net_works(net) || sim_draw(2) ? 0 : -ETIMEDOUT;
	sim_timer_set(&cm->step, sim_now + (cm->step_status ? MS(timeout_ms) :
							      sim_draw_between(US(20), US(300))));
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, unsigned long timeout_ms)
{
	struct cm_id *cm = to_cm(id);

	lockdep_assert_held(&cm->handler);
	cm->state = CM_ROUTE;
	id->route.path_rec = &cm->path;
	cm->path.dmac[0] = 2;
	cm->path.dmac[5] = 1 + !cm->end;
	cm->step_status = 0;
	sim_timer_set(&cm->step, sim_now + sim_draw_between(US(2), US(100)));
	return 0;
}

int rdma_connect_locked(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct cm_id *cm = to_cm(id);

	lockdep_assert_held(&cm->handler);
	if (param->private_data_len > CM_DATA)
		sim_fail("a HELLO is longer than a REQ has room for");
	cm->retries = param->retry_count;
	cm->rnr = param->rnr_retry_count;
	memcpy(cm->data, param->private_data, param->private_data_len);
	cm->state = CM_REQ_SENT;
	cm_send(cm, CM_REQ);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct cm_id *cm = to_cm(id);
	int err;

	lockdep_assert_held(&cm->handler);
	cm->rnr = param->rnr_retry_count;
	memcpy(cm->data, param->private_data, param->private_data_len);
	err = cm_qp_ready(cm);
	if (err) {
		cm->state = CM_OVER;
		cm_send(cm, CM_REJ);
		return err;
	}
	cm->state = CM_REP_SENT;
	sim_timer_set(&cm->again, sim_now + REP_AGAIN);
	cm_send(cm, CM_REP);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct cm_id *cm = to_cm(id);

	if (cm->state != CM_CONNECTED && cm->state != CM_REP_SENT && cm->state != CM_OVER)
		return -EINVAL;
	mutex_lock(&cm->qp_mutex);
	if (id->qp)
		ib_modify_qp(id->qp, &attr, IB_QP_STATE);
	mutex_unlock(&cm->qp_mutex);
	if (cm->state != CM_OVER) {
		cm->state = CM_OVER;
		cm_send(cm, CM_DREQ);
	}
	return 0;
}

int rdma_notify(struct rdma_cm_id *id, int event)
{
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ib_pd *pd, struct ib_qp_init_attr *init)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT };
	struct ib_qp *qp = ib_create_qp(pd, init);
	int err;

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	err = ib_modify_qp(qp, &attr, IB_QP_STATE);
	if (err) {
		ib_destroy_qp(qp);
		return err;
	}
	sim_qp_carries(qp);
	id->qp = qp;
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct cm_id *cm = to_cm(id);

	mutex_lock(&cm->qp_mutex);
	ib_destroy_qp(id->qp);
	id->qp = NULL;
	mutex_unlock(&cm->qp_mutex);
}

int cm_qp_ready(struct cm_id *cm)
{
	struct ib_qp_attr rtr = {
		.qp_state = IB_QPS_RTR, .dest_qp_num = cm->peer_qpn, .rq_psn = cm->peer_psn,
	};
	struct ib_qp_attr rts = {
		.qp_state = IB_QPS_RTS, .sq_psn = cm->psn, .timeout = cm->timeout,
		.retry_cnt = cm->retries, .rnr_retry = cm->rnr,
	};

	int err = 0;

	mutex_lock(&cm->qp_mutex);
	if (cm->id.qp)
		err = ib_modify_qp(cm->id.qp, &rtr, IB_QP_STATE) ?:
		      ib_modify_qp(cm->id.qp, &rts, IB_QP_STATE);
	mutex_unlock(&cm->qp_mutex);
	return err;
}

const char *rdma_event_msg(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		"address resolved", "address error", "route resolved", "route error",
		"connect request", "connect response", "connect error", "unreachable", "rejected",
		"established", "disconnected", "device removal", "timewait exit",
	};

	return event < ARRAY_SIZE(names) ? names[event] : "?";
}
