/* SPDX-License-Identifier: GPL-2.0 */
/* What the module needs of RDMA CM.  rdma.h includes this; cm.c and cm_msg.c are it. */
#ifndef SIM_CM_H
#define SIM_CM_H

enum rdma_ucm_port_space { RDMA_PS_TCP = 0x0106 };
enum rdma_cm_event_type {
	RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ROUTE_RESOLVED,
	RDMA_CM_EVENT_ROUTE_ERROR, RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_CONNECT_RESPONSE,
	RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_UNREACHABLE, RDMA_CM_EVENT_REJECTED,
	RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_DEVICE_REMOVAL,
	RDMA_CM_EVENT_TIMEWAIT_EXIT,
};
struct rdma_conn_param {
	const void *private_data;
	u8 private_data_len, responder_resources, initiator_depth, retry_count, rnr_retry_count;
};
struct rdma_cm_event {
	enum rdma_cm_event_type event;
	int status;
	union { struct rdma_conn_param conn; } param;
};
struct sa_path_rec { union ib_gid sgid, dgid; u8 dmac[ETH_ALEN], traffic_class; };
static inline u8 *sa_path_get_dmac(struct sa_path_rec *path) { return path->dmac; }
struct rdma_dev_addr { struct net *net; int bound_dev_if; };
struct rdma_cm_id;
typedef int (*rdma_cm_event_handler)(struct rdma_cm_id *id, struct rdma_cm_event *event);
struct rdma_cm_id {
	struct ib_device *device;
	void *context;
	struct ib_qp *qp;
	rdma_cm_event_handler event_handler;
	struct {
		struct {
			struct rdma_dev_addr dev_addr;
			struct sockaddr_storage src_addr, dst_addr;
		} addr;
		struct sa_path_rec *path_rec;
	} route;
};

struct rdma_cm_id *rdma_create_id(struct net *net, rdma_cm_event_handler handler, void *context,
				  enum rdma_ucm_port_space ps, enum ib_qp_type type);
void rdma_destroy_id(struct rdma_cm_id *id);
int rdma_set_afonly(struct rdma_cm_id *id, int afonly);
int rdma_set_reuseaddr(struct rdma_cm_id *id, int reuse);
int rdma_set_ack_timeout(struct rdma_cm_id *id, u8 timeout);
int rdma_set_min_rnr_timer(struct rdma_cm_id *id, u8 timer);
void rdma_set_service_type(struct rdma_cm_id *id, int tos);
int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);
int rdma_listen(struct rdma_cm_id *id, int backlog);
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, const struct sockaddr *dst,
		      unsigned long timeout_ms);
int rdma_resolve_route(struct rdma_cm_id *id, unsigned long timeout_ms);
int rdma_connect_locked(struct rdma_cm_id *id, struct rdma_conn_param *param);
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int rdma_disconnect(struct rdma_cm_id *id);
int rdma_notify(struct rdma_cm_id *id, int event);
void rdma_lock_handler(struct rdma_cm_id *id);
void rdma_unlock_handler(struct rdma_cm_id *id);
int rdma_create_qp(struct rdma_cm_id *id, struct ib_pd *pd, struct ib_qp_init_attr *init);
void rdma_destroy_qp(struct rdma_cm_id *id);
const char *rdma_event_msg(enum rdma_cm_event_type event);
void rdma_gid2ip(struct sockaddr *to, const union ib_gid *gid);

#endif /* SIM_CM_H */
