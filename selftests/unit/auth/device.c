// SPDX-License-Identifier: GPL-2.0
/* RDMA CM and a NIC: which events and completions there are the program says. */
#include <stdlib.h>
#include "core/ib.h"
#include "fuzz.h"

struct fuzz_id fuzz_ids[FUZZ_IDS];
struct rdma_cm_id fuzz_listener;
static struct ib_pd pd;
static struct ib_cq cq;

static struct fuzz_id *to_fuzz(struct rdma_cm_id *id)
{
	return container_of(id, struct fuzz_id, id);
}

static struct fuzz_id *of_qp(struct ib_qp *qp)
{
	return container_of(qp, struct fuzz_id, qp);
}

struct fuzz_id *fuzz_new_id(void)
{
	struct fuzz_id *f;

	for (f = fuzz_ids; f < fuzz_ids + FUZZ_IDS && f->state; f++)
		;
	if (f == fuzz_ids + FUZZ_IDS)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->state = FUZZ_NEW;
	f->id.device = &fuzz_device;
	f->path.sgid = fuzz_link.local;
	f->path.dgid = fuzz_link.remote;
	return f;
}

struct rdma_cm_id *rdma_create_id(struct net *net, rdma_cm_event_handler handler, void *context,
				  enum rdma_ucm_port_space ps, enum ib_qp_type type)
{
	struct fuzz_id *f;

	/* listeners have none */
	if (!context) {
		struct rdma_cm_id *id = fuzz_listener.event_handler ?
			calloc(1, sizeof(*id)) : &fuzz_listener;

		id->event_handler = handler;
		return id;
	}
	f = fuzz_refuses() ? NULL : fuzz_new_id();
	if (!f)
		return ERR_PTR(-ENOMEM);
	f->id.event_handler = handler;
	f->id.context = context;
	return &f->id;
}

void rdma_destroy_id(struct rdma_cm_id *id)
{
	struct fuzz_id *f = to_fuzz(id);

	if (!f->state)
		sim_fail("a cm_id is destroyed twice");
	if (id->qp)
		sim_fail("a cm_id is destroyed before its QP");
	f->state = FUZZ_FREE;
}

static int moves(struct rdma_cm_id *id, enum fuzz_state from, enum fuzz_state to)
{
	struct fuzz_id *f = to_fuzz(id);

	if (f->state != from || fuzz_refuses())
		return -EINVAL;
	f->state = to;
	return 0;
}

int rdma_set_afonly(struct rdma_cm_id *id, int afonly) { return 0; }
int rdma_set_reuseaddr(struct rdma_cm_id *id, int reuse) { return 0; }
int rdma_set_ack_timeout(struct rdma_cm_id *id, u8 timeout) { return 0; }
int rdma_set_min_rnr_timer(struct rdma_cm_id *id, u8 timer) { return 0; }
void rdma_set_service_type(struct rdma_cm_id *id, int tos) { }
int rdma_listen(struct rdma_cm_id *id, int backlog) { return 0; }
int rdma_notify(struct rdma_cm_id *id, int event) { return 0; }
int rdma_disconnect(struct rdma_cm_id *id) { return -EINVAL; }
void rdma_lock_handler(struct rdma_cm_id *id) { }
void rdma_unlock_handler(struct rdma_cm_id *id) { }
const char *rdma_event_msg(enum rdma_cm_event_type event) { return "event"; }
const char *ib_wc_status_msg(u32 status) { return "status"; }

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return fuzz_refuses() ? -EADDRINUSE : 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, const struct sockaddr *dst,
		      unsigned long timeout_ms)
{
	return moves(id, FUZZ_NEW, FUZZ_ADDR);
}

int rdma_resolve_route(struct rdma_cm_id *id, unsigned long timeout_ms)
{
	return moves(id, FUZZ_ADDR, FUZZ_ROUTE);
}

int rdma_connect_locked(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	return moves(id, FUZZ_ROUTE, FUZZ_ASKED);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	return moves(id, FUZZ_NEW, FUZZ_ASKED);
}

void rdma_gid2ip(struct sockaddr *to, const union ib_gid *gid)
{
	to->sa_family = AF_INET;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ib_pd *p, struct ib_qp_init_attr *init)
{
	struct fuzz_id *f = to_fuzz(id);

	if (fuzz_refuses())
		return -ENOMEM;
	f->conn = init->qp_context;
	id->qp = &f->qp;
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct fuzz_id *f = to_fuzz(id);

	f->num_recv = 0;
	f->num_sent = 0;
	f->conn = NULL;
	id->qp = NULL;
}

struct ib_pd *ib_alloc_pd(struct ib_device *dev, int flags)
{
	return fuzz_refuses() ? ERR_PTR(-ENOMEM) : &pd;
}

void ib_dealloc_pd(struct ib_pd *p) { }

struct ib_cq *ib_alloc_cq(struct ib_device *dev, void *context, int cqe, int vector, int poll)
{
	return fuzz_refuses() ? ERR_PTR(-ENOMEM) : &cq;
}

void shift_cq_free(struct ib_cq *c) { }
int shift_qp_stop(struct ib_qp *qp) { return 0; }
void shift_qp_quiet(struct ib_qp *qp) { }

int ib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct fuzz_id *f = of_qp(qp);

	if (f->num_recv == SHIFT_LINK_BUFS)
		sim_fail("a receive is posted twice");
	if (fuzz_refuses())
		return -ENOMEM;
	f->recv[f->num_recv++] = container_of(wr->wr_cqe, struct shift_link_buf, cqe);
	return 0;
}

int ib_post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct fuzz_id *f = of_qp(qp);

	if (f->num_sent == SHIFT_LINK_BUFS)
		sim_fail("a buffer is sent twice");
	if (fuzz_refuses())
		return -ENOMEM;
	f->sent[f->num_sent++] = container_of(wr->wr_cqe, struct shift_link_buf, cqe);
	f->last.len = wr->sg_list->length;
	memcpy(f->last.bytes, (void *)wr->sg_list->addr, f->last.len);
	fuzz_check_sent(f);
	return 0;
}
