/* SPDX-License-Identifier: GPL-2.0 */
/* What the module needs of the RDMA core, for one process.  nic.c is the device. */
#ifndef SIM_RDMA_H
#define SIM_RDMA_H

#include "kernel.h"

#define IB_DEVICE_NAME_MAX 64
enum { IB_WR_SEND = 2 };
enum ib_event_type { IB_EVENT_QP_FATAL = 1, IB_EVENT_QP_REQ_ERR, IB_EVENT_QP_ACCESS_ERR,
		     IB_EVENT_COMM_EST, IB_EVENT_PORT_ERR, IB_EVENT_PORT_ACTIVE,
		     IB_EVENT_DEVICE_FATAL, IB_EVENT_GID_CHANGE };
enum { DMA_TO_DEVICE = 1, DMA_FROM_DEVICE };

union ib_gid {
	u8 raw[16];
	struct { __be64 subnet_prefix, interface_id; } global;
};

enum ib_qp_state { IB_QPS_RESET, IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS, IB_QPS_SQD, IB_QPS_SQE,
		   IB_QPS_ERR };
enum ib_qp_type { IB_QPT_GSI = 1, IB_QPT_RC };
enum ib_sig_type { IB_SIGNAL_ALL_WR, IB_SIGNAL_REQ_WR };
enum ib_atomic_cap { IB_ATOMIC_NONE, IB_ATOMIC_HCA, IB_ATOMIC_GLOB };
enum ib_port_state { IB_PORT_DOWN = 1, IB_PORT_ACTIVE = 4 };
enum rdma_driver_id { RDMA_DRIVER_UNKNOWN, RDMA_DRIVER_SIM = 99 };
enum rdma_ah_attr_type { RDMA_AH_ATTR_TYPE_ROCE = 2 };
enum ib_mtu { IB_MTU_1024 = 3 };
enum { IB_GID_TYPE_ROCE_UDP_ENCAP = 2 };
enum { IB_POLL_SOFTIRQ };
enum ib_cq_notify_flags { IB_CQ_SOLICITED = 1, IB_CQ_NEXT_COMP = 2, IB_CQ_SOLICITED_MASK = 3,
			  IB_CQ_REPORT_MISSED_EVENTS = 4 };
enum { IB_ACCESS_LOCAL_WRITE = 1, IB_ACCESS_REMOTE_WRITE = 2, IB_ACCESS_MW_BIND = 16,
       IB_ACCESS_ON_DEMAND = 64 };
enum {
	IB_QP_STATE = 1 << 0, IB_QP_ACCESS_FLAGS = 1 << 3, IB_QP_PKEY_INDEX = 1 << 4,
	IB_QP_PORT = 1 << 5, IB_QP_AV = 1 << 7, IB_QP_PATH_MTU = 1 << 8, IB_QP_TIMEOUT = 1 << 9,
	IB_QP_RETRY_CNT = 1 << 10, IB_QP_RNR_RETRY = 1 << 11, IB_QP_RQ_PSN = 1 << 12,
	IB_QP_MAX_QP_RD_ATOMIC = 1 << 13, IB_QP_MIN_RNR_TIMER = 1 << 15, IB_QP_SQ_PSN = 1 << 16,
	IB_QP_MAX_DEST_RD_ATOMIC = 1 << 17, IB_QP_DEST_QPN = 1 << 20,
};
enum ib_wc_status {
	IB_WC_SUCCESS, IB_WC_LOC_LEN_ERR, IB_WC_LOC_QP_OP_ERR, IB_WC_LOC_EEC_OP_ERR,
	IB_WC_LOC_PROT_ERR, IB_WC_WR_FLUSH_ERR, IB_WC_MW_BIND_ERR, IB_WC_BAD_RESP_ERR,
	IB_WC_LOC_ACCESS_ERR, IB_WC_REM_INV_REQ_ERR, IB_WC_REM_ACCESS_ERR, IB_WC_REM_OP_ERR,
	IB_WC_RETRY_EXC_ERR, IB_WC_RNR_RETRY_EXC_ERR, IB_WC_GENERAL_ERR = 21,
};
enum {
	IB_WC_SEND, IB_WC_RDMA_WRITE, IB_WC_RDMA_READ, IB_WC_COMP_SWAP, IB_WC_FETCH_ADD,
	IB_WC_BIND_MW, IB_WC_LOCAL_INV, IB_WC_REG_MR,
	IB_WC_RECV = 1 << 7, IB_WC_RECV_RDMA_WITH_IMM,
};
enum { IB_WC_GRH = 1, IB_WC_WITH_IMM = 2, IB_WC_WITH_INVALIDATE = 4 };
enum { IB_SEND_FENCE = 1, IB_SEND_SIGNALED = 2, IB_SEND_SOLICITED = 4, IB_SEND_INLINE = 8 };

struct ib_device;
struct ib_qp;
struct ib_cq;
struct ib_wc;
struct ib_udata { int n; };
struct ib_uobject { struct ib_uverbs_file *ufile; u32 id; };
struct rdma_restrack_entry { const char *kern_name; };
struct ib_pd {
	struct ib_device *device;
	u32 id, local_dma_lkey, flags, unsafe_global_rkey;
	atomic_t usecnt;
	struct rdma_restrack_entry res;
};
enum ib_mr_type { IB_MR_TYPE_USER };
enum { IB_MR_REREG_TRANS = 1, IB_MR_REREG_PD = 2, IB_MR_REREG_ACCESS = 4 };
struct ib_mr { struct ib_device *device; struct ib_pd *pd; enum ib_mr_type type; u32 lkey, rkey; };
struct ib_event;
struct ib_srq {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_uobject *uobject;
	void (*event_handler)(struct ib_event *event, void *context);
	void *srq_context;
};
enum ib_srq_type { IB_SRQT_BASIC };
enum ib_srq_attr_mask { IB_SRQ_MAX_WR = 1 << 0, IB_SRQ_LIMIT = 1 << 1 };
struct ib_srq_attr { u32 max_wr, max_sge, srq_limit; };
struct ib_srq_init_attr {
	void (*event_handler)(struct ib_event *event, void *context);
	void *srq_context;
	struct ib_srq_attr attr;
	enum ib_srq_type srq_type;
};
struct ib_umem;
struct ib_mw;
struct ib_gid_attr { union ib_gid gid; struct net_device ndev; u16 index; };
struct ib_global_route {
	const struct ib_gid_attr *sgid_attr;
	union ib_gid dgid;
	u32 flow_label;
	u8 hop_limit, traffic_class;
};
struct rdma_ah_attr {
	struct ib_global_route grh;
	u8 sl, port_num;
	enum rdma_ah_attr_type type;
	struct { u8 dmac[ETH_ALEN]; } roce;
};
struct ib_qp_attr {
	enum ib_qp_state qp_state, cur_qp_state;
	enum ib_mtu path_mtu;
	u32 rq_psn, sq_psn, dest_qp_num;
	int qp_access_flags;
	struct rdma_ah_attr ah_attr;
	u8 max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt,
	   rnr_retry;
};
struct ib_qp_cap {
	u32 max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};
enum { IB_EVENT_SRQ_LIMIT_REACHED = 15, IB_EVENT_QP_LAST_WQE_REACHED = 16 };
struct ib_event {
	struct ib_device *device;
	int event;
	union { u32 port_num; struct ib_srq *srq; struct ib_qp *qp; } element;
};
struct ib_qp_init_attr {
	void (*event_handler)(struct ib_event *event, void *context);
	void *qp_context;
	struct ib_cq *send_cq, *recv_cq;
	struct ib_srq *srq;
	struct ib_qp_cap cap;
	enum ib_sig_type sq_sig_type;
	enum ib_qp_type qp_type;
};
struct ib_cqe { void (*done)(struct ib_cq *cq, struct ib_wc *wc); };
struct ib_sge { u64 addr; u32 length, lkey; };
struct ib_send_wr {
	struct ib_send_wr *next;
	union { u64 wr_id; struct ib_cqe *wr_cqe; };
	struct ib_sge *sg_list;
	int num_sge, opcode, send_flags;
	union { __be32 imm_data; u32 invalidate_rkey; } ex;
};
struct ib_rdma_wr { struct ib_send_wr wr; u64 remote_addr; u32 rkey; };
struct ib_reg_wr { struct ib_send_wr wr; struct ib_mr *mr; u32 key; int access; };
struct ib_atomic_wr {
	struct ib_send_wr wr;
	u64 remote_addr, compare_add, swap;
	u32 rkey;
};
struct ib_recv_wr {
	struct ib_recv_wr *next;
	union { u64 wr_id; struct ib_cqe *wr_cqe; };
	struct ib_sge *sg_list;
	int num_sge;
};
struct ib_wc {
	union { u64 wr_id; struct ib_cqe *wr_cqe; };
	enum ib_wc_status status;
	u32 opcode, byte_len;
	struct ib_qp *qp;
	union { __be32 imm_data; u32 invalidate_rkey; } ex;
	u32 wc_flags;
};
struct irq_poll { struct ib_cq *cq; };
struct ib_cq {
	struct ib_device *device;
	void (*comp_handler)(struct ib_cq *cq, void *context);
	void *cq_context;
	struct ib_uobject *uobject;
	int cqe;
	struct irq_poll iop;
};
struct ib_qp {
	struct ib_device *device;
	struct ib_pd *pd;
	u32 qp_num;
	enum ib_qp_type qp_type;
	struct ib_uobject *uobject;
	void (*event_handler)(struct ib_event *event, void *context);
	void *qp_context;
};
struct ib_port_attr { enum ib_port_state state; };
struct ib_cq_init_attr { unsigned int cqe; };
struct ib_srq_init_attr;
struct ib_srq_attr;
struct ib_dm;
struct ib_dm_mr_attr { u64 length, offset; u32 access_flags; };
struct uverbs_attr_bundle;
struct ib_ah;
struct rdma_ah_init_attr;
struct ib_device_ops {
	enum rdma_driver_id driver_id;
	/* of users in the kernel only */
	void *alloc_mr, *map_mr_sg, *map_mr_sg_pi, *drain_sq, *drain_rq;
	int (*alloc_pd)(struct ib_pd *pd, struct ib_udata *udata);
	int (*dealloc_pd)(struct ib_pd *pd, struct ib_udata *udata);
	int (*create_user_ah)(struct ib_ah *ah, struct rdma_ah_init_attr *attr,
			      struct ib_udata *udata);
	struct ib_mr *(*reg_user_mr)(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
				     struct ib_udata *udata);
	struct ib_mr *(*reg_user_mr_dmabuf)(struct ib_pd *pd, u64 offset, u64 length, u64 iova,
					    int fd, int access, struct ib_udata *udata);
	struct ib_mr *(*rereg_user_mr)(struct ib_mr *mr, int flags, u64 start, u64 length, u64 iova,
				       int access, struct ib_pd *pd, struct ib_udata *udata);
	struct ib_mr *(*reg_dm_mr)(struct ib_pd *pd, struct ib_dm *dm, struct ib_dm_mr_attr *attr,
				   struct uverbs_attr_bundle *attrs);
	int (*dereg_mr)(struct ib_mr *mr, struct ib_udata *udata);
	int (*alloc_mw)(struct ib_mw *mw, struct ib_udata *udata);
	int (*dealloc_mw)(struct ib_mw *mw);
	int (*create_cq)(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			 struct ib_udata *udata);
	int (*destroy_cq)(struct ib_cq *cq, struct ib_udata *udata);
	int (*resize_user_cq)(struct ib_cq *cq, int cqe, struct ib_udata *udata);
	int (*req_notify_cq)(struct ib_cq *cq, enum ib_cq_notify_flags flags);
	int (*create_srq)(struct ib_srq *srq, struct ib_srq_init_attr *attr,
			  struct ib_udata *udata);
	int (*modify_srq)(struct ib_srq *srq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
			  struct ib_udata *udata);
	int (*query_srq)(struct ib_srq *srq, struct ib_srq_attr *attr);
	int (*destroy_srq)(struct ib_srq *srq, struct ib_udata *udata);
	int (*create_qp)(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
	int (*modify_qp)(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			 struct ib_udata *udata);
	int (*query_qp)(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			struct ib_qp_init_attr *init);
	int (*destroy_qp)(struct ib_qp *qp, struct ib_udata *udata);
	int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad_wr);
	int (*post_recv)(struct ib_qp *qp, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad_wr);
	int (*post_srq_recv)(struct ib_srq *srq, const struct ib_recv_wr *wr,
			     const struct ib_recv_wr **bad_wr);
	int (*poll_cq)(struct ib_cq *cq, int num, struct ib_wc *wc);
};
struct device { const char *name; };
struct ib_device {
	struct device dev;
	struct ib_device_ops ops;
	struct {
		u32 max_qp_wr, max_cqe, max_send_sge, max_recv_sge, max_srq_wr, max_srq_sge;
		enum ib_atomic_cap atomic_cap;
	} attrs;
	u64 node_guid;
	u8 phys_port_cnt;
	char name[IB_DEVICE_NAME_MAX];
};
struct ib_event_handler {
	struct ib_device *device;
	void (*handler)(struct ib_event_handler *handler, struct ib_event *event);
};
#define INIT_IB_EVENT_HANDLER(h, dev, fn) (*(h) = (struct ib_event_handler) { dev, fn })
struct ib_client {
	const char *name;
	int (*add)(struct ib_device *dev);
	void (*remove)(struct ib_device *dev, void *data);
	void (*rename)(struct ib_device *dev, void *data);
};
/* end/core.c */
int ib_register_client(struct ib_client *client);
void ib_unregister_client(struct ib_client *client);
void ib_set_client_data(struct ib_device *dev, struct ib_client *client, void *data);
void ib_register_event_handler(struct ib_event_handler *handler);
void ib_unregister_event_handler(struct ib_event_handler *handler);
struct uverbs_obj_type_class { int n; };
extern const struct uverbs_obj_type_class uverbs_idr_class;
static inline bool rdma_is_port_valid(struct ib_device *dev, u32 port) { return port == 1; }
static inline bool rdma_dev_access_netns(struct ib_device *dev, struct net *net) { return true; }
static inline bool rdma_protocol_roce(struct ib_device *dev, u32 port) { return true; }
struct ib_uverbs_file;
struct rdma_dev_addr;

static inline const char *dev_name(const struct device *dev) { return dev->name; }
static inline const char *ib_event_msg(int event) { return "QP event"; }
static inline struct net_device *rdma_read_gid_attr_ndev_rcu(const struct ib_gid_attr *attr)
{
	return (struct net_device *)&attr->ndev;
}
static inline bool rdma_cap_ib_cm(struct ib_device *dev, int port) { return true; }
static inline u64 ib_dma_map_single(struct ib_device *dev, void *p, size_t size, int direction)
{
	return (u64)p;
}
static inline int ib_dma_mapping_error(struct ib_device *dev, u64 addr) { return 0; }
static inline void ib_dma_unmap_single(struct ib_device *dev, u64 addr, size_t size, int dir) { }
static inline void ib_dma_sync_single_for_cpu(struct ib_device *d, u64 a, size_t s, int dir) { }
static inline void ib_dma_sync_single_for_device(struct ib_device *d, u64 a, size_t s, int dir) { }
#define ib_alloc_cq_any(dev, context, cqe, poll) ib_alloc_cq(dev, context, cqe, 0, poll)
struct ib_cq *ib_alloc_cq(struct ib_device *dev, void *context, int cqe, int vector, int poll);
void ib_free_cq(struct ib_cq *cq);
int ib_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc);
int ib_req_notify_cq(struct ib_cq *cq, int flags);
void irq_poll_disable(struct irq_poll *iop);
void irq_poll_enable(struct irq_poll *iop);
void irq_poll_sched(struct irq_poll *iop);
struct ib_pd *ib_alloc_pd(struct ib_device *dev, int flags);
void ib_dealloc_pd(struct ib_pd *pd);
int ib_dereg_mr(struct ib_mr *mr);
struct ib_mr *ib_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access);
struct ib_qp *ib_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *init);
int ib_destroy_qp(struct ib_qp *qp);
int ib_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask);
int ib_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init);
int ib_post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
int ib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
int ib_query_port(struct ib_device *dev, int port, struct ib_port_attr *attr);
struct ib_srq *ib_create_srq(struct ib_pd *pd, struct ib_srq_init_attr *init);
int ib_destroy_srq(struct ib_srq *srq);
int ib_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad);
bool ib_modify_qp_is_ok(enum ib_qp_state from, enum ib_qp_state to, enum ib_qp_type type, int mask);
const char *ib_wc_status_msg(u32 status);
static inline int ib_mtu_enum_to_int(enum ib_mtu mtu) { return 128 << mtu; }

static inline int rdma_read_gid_l2_fields(const struct ib_gid_attr *attr, u16 *vlan, u8 *mac)
{
	return 0;
}
static inline void rdma_put_gid_attr(const struct ib_gid_attr *attr) { }
static inline enum rdma_ah_attr_type rdma_ah_find_type(struct ib_device *dev, int port)
{
	return RDMA_AH_ATTR_TYPE_ROCE;
}
static inline void rdma_ah_set_port_num(struct rdma_ah_attr *ah, u8 port) { ah->port_num = port; }
static inline void rdma_ah_set_sl(struct rdma_ah_attr *ah, u8 sl) { ah->sl = sl; }
static inline void rdma_move_grh_sgid_attr(struct rdma_ah_attr *ah, union ib_gid *dgid, u32 flow,
					   u8 hops, u8 class, const struct ib_gid_attr *sgid)
{
	ah->grh = (struct ib_global_route) {
		.sgid_attr = sgid, .dgid = *dgid, .flow_label = flow, .hop_limit = hops,
		.traffic_class = class,
	};
}
static inline void rdma_destroy_ah_attr(struct rdma_ah_attr *ah) { }
static inline const struct ib_global_route *rdma_ah_read_grh(const struct rdma_ah_attr *ah)
{
	return &ah->grh;
}

#include "cm.h"

#endif /* SIM_RDMA_H */
