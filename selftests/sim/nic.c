// SPDX-License-Identifier: GPL-2.0
/*
 * Devices: the verbs of a driver, and the two networks between the ends.  A verb runs in the thread
 * that calls it.
 */
#include "qp.h"

#define QPS_MAX		64

struct sim_net sim_net[SIM_NETS];
u64 sim_verbs_end_ns;
u32 sim_verb_odds, sim_verb_ms, sim_packet_us, sim_message_ms, sim_softirq_odds, sim_stuck_odds;
u32 sim_rts_odds;
bool sim_qpns_again, sim_verb_failed;
static struct sim_qp *qps[QPS_MAX];
static u32 next_qpn;

void sim_nic_start(void)
{
	memset(qps, 0, sizeof(qps));
	memset(sim_net, 0, sizeof(sim_net));
	next_qpn = 0;
	sim_verb_failed = false;
	sim_cq_start();
	sim_srq_start();
}

u32 sim_nic_left(void)
{
	u32 i, n = sim_cqs_left() + sim_srqs_left();

	for (i = 0; i < QPS_MAX; i++)
		n += !!qps[i];
	return n;
}

u32 sim_qps_left(int end, int net)
{
	u32 i, n = 0;

	for (i = 0; i < QPS_MAX; i++)
		n += qps[i] && qps[i]->dev->end == end && qps[i]->dev->net == net;
	return n;
}

struct sim_qp *sim_qp_find(int end, int net, u32 qpn)
{
	u32 i;

	for (i = 0; i < QPS_MAX; i++)
		if (qps[i] && qps[i]->ib.qp_num == qpn && qps[i]->dev->end == end &&
		    qps[i]->dev->net == net)
			return qps[i];
	return NULL;
}

void sim_qp_each(void (*fn)(struct sim_qp *qp, void *arg), void *arg)
{
	u32 i;

	for (i = 0; i < QPS_MAX; i++)
		if (qps[i])
			fn(qps[i], arg);
}

/* A NIC lets its driver wait before it refuses. */
static bool refuses(struct sim_dev *dev)
{
	if (!dev->refuses)
		return false;
	dev->refuses--;
	if (sim_draw(2))
		sim_sleep(sim_draw_between(US(10), MS(50)));
	return true;
}

int sim_verb(struct sim_dev *dev, const char *name)
{
	sim_might_sleep(name);
	sim_sleep(sim_draw_between(US(2), US(150)));
	if (sim_upset(sim_verb_odds, "a verb takes long")) {
		u64 ns = sim_draw(8) ? sim_draw_between(MS(1), MS(80)) :
				       sim_draw_between(MS(200), MS(sim_verb_ms));

		sim_verbs_end_ns = max(sim_verbs_end_ns, sim_now + ns);
		sim_sleep(ns);
	}
	if (refuses(dev) || sim_upset(sim_verb_odds * 2, "a verb fails")) {
		sim_log("      %s", name);
		sim_verb_failed = true;
		return -EIO;
	}
	return 0;
}

static void reset(struct sim_qp *qp)
{
	sim_timer_stop(&qp->retry);
	sim_srq_drop(qp);
	if (qp->dev->forgets && !qp->ring) {
		sim_cq_forget(&qp->scq->ib, &qp->ib);
		sim_cq_forget(&qp->rcq->ib, &qp->ib);
	}
	qp->state = IB_QPS_RESET;
	qp->tail = qp->cur = qp->head;
	qp->rtail = qp->rhead;
	qp->cur_packet = qp->tries = qp->rnr_tries = 0;
	qp->waits_rnr = qp->naked = qp->asked_again = false;
	qp->n_results = 0;
	qp->error = 0;
	if (qp->dev->forgets)
		sim_qp_restart(qp);
}

static int modify(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct sim_qp *qp = to_qp(ib);
	int err = sim_verb(qp->dev, "modify");

	if (err)
		return err;
	if (!(mask & IB_QP_STATE))
		return 0;
	switch (attr->qp_state) {
	case IB_QPS_RESET:
		reset(qp);
		return 0;
	case IB_QPS_ERR:
		if (qp->state == IB_QPS_RESET)
			return -EINVAL;
		qp->state = IB_QPS_ERR;
		sim_qp_flush(qp, IB_WC_WR_FLUSH_ERR);
		return 0;
	case IB_QPS_INIT:
		if (qp->state != IB_QPS_RESET)
			return -EINVAL;
		break;
	case IB_QPS_RTR:
		if (qp->state != IB_QPS_INIT)
			return -EINVAL;
		qp->dest = attr->dest_qp_num;
		qp->loop = mask & IB_QP_AV &&
			   !memcmp(&attr->ah_attr.grh.dgid, &qp->dev->gid.gid,
				   sizeof(qp->dev->gid.gid));
		qp->max_dest_rd_atomic = attr->max_dest_rd_atomic;
		qp->expected = attr->rq_psn & 0xffffff;
		break;
	case IB_QPS_RTS:
		if (qp->state != IB_QPS_RTR)
			return -EINVAL;
		qp->psn = attr->sq_psn & 0xffffff;
		qp->timeout = attr->timeout;
		qp->max_rd_atomic = attr->max_rd_atomic;
		qp->retry_cnt = attr->retry_cnt;
		qp->rnr_retry = attr->rnr_retry;
		break;
	default:
		return -EINVAL;
	}
	qp->state = attr->qp_state;
	if (qp->ring && qp->state == IB_QPS_RTR)
		sim_qp_recv_bell(ib);
	if (qp->ring && qp->state == IB_QPS_RTS)
		sim_qp_bell(ib);
	sim_qp_pump(qp);
	if (qp->ring && qp->state == IB_QPS_RTS &&
	    sim_upset(sim_rts_odds, "a QP sends before its driver says so"))
		sim_sleep(sim_draw_between(MS(1), MS(150)));
	return 0;
}

static int query(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	int err = sim_verb(to_qp(ib)->dev, "query");

	if (err)
		return err;
	if (to_qp(ib)->dev->dumb) {
		sim_verb_failed = true;
		return -EIO;
	}
	attr->qp_state = to_qp(ib)->state;
	attr->rq_psn = to_qp(ib)->expected;
	return 0;
}

static int create(struct ib_qp *ib, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct sim_qp *qp = to_qp(ib);
	u32 i = 0;

	while (qps[i])
		if (++i == QPS_MAX)
			sim_fail("too many QPs");
	qps[i] = qp;
	qp->scq = to_cq(init->send_cq);
	qp->rcq = to_cq(init->recv_cq);
	qp->srq = init->srq ? to_srq(init->srq) : NULL;
	qp->retry.fn = sim_qp_retries;
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	return 0;
}

static int destroy(struct ib_qp *ib, struct ib_udata *udata)
{
	struct sim_qp *qp = to_qp(ib);
	u32 i;

	sim_might_sleep(__func__);
	sim_timer_stop(&qp->retry);
	sim_srq_drop(qp);
	for (i = 0; i < QPS_MAX; i++)
		if (qps[i] == qp)
			qps[i] = NULL;
	return 0;
}

struct ib_qp *sim_qp_alloc(struct sim_dev *dev, struct ib_pd *pd)
{
	struct sim_qp *qp = sim_alloc(sizeof(*qp), GFP_NOIO);

	if (!qp)
		return NULL;
	qp->ib = (struct ib_qp) { .device = &dev->ib, .pd = pd, .qp_num = 0x100 + ++next_qpn,
				.qp_type = IB_QPT_RC };
	qp->dev = dev;
	return &qp->ib;
}

/* The lowest number that no QP of the device has: a number is soon used again. */
static u32 free_number(const struct sim_dev *dev)
{
	u32 qpn = 0x800;

	while (sim_qp_find(dev->end, dev->net, qpn))
		qpn++;
	return qpn;
}

void sim_qp_free(struct ib_qp *ib)
{
	kfree(to_qp(ib));
}

struct ib_qp *ib_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *init)
{
	int err = sim_verb((struct sim_dev *)pd->device, "create");
	struct ib_qp *qp = err ? NULL : sim_qp_alloc((struct sim_dev *)pd->device, pd);

	if (!qp)
		return ERR_PTR(err ?: -ENOMEM);
	if (sim_qpns_again)
		qp->qp_num = free_number((struct sim_dev *)pd->device);
	create(qp, init, NULL);
	return qp;
}

int ib_destroy_qp(struct ib_qp *qp)
{
	destroy(qp, NULL);
	sim_qp_free(qp);
	return 0;
}

int ib_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask)
{
	return modify(qp, attr, mask, NULL);
}

int ib_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	return query(qp, attr, mask, init);
}

int ib_query_port(struct ib_device *dev, int port, struct ib_port_attr *attr)
{
	int err = sim_verb((struct sim_dev *)dev, "query port");

	attr->state = ((struct sim_dev *)dev)->down ? IB_PORT_DOWN : IB_PORT_ACTIVE;
	return err;
}

struct ib_pd *ib_alloc_pd(struct ib_device *dev, int flags)
{
	struct ib_pd *pd = sim_alloc(sizeof(*pd), GFP_NOIO);

	if (!pd)
		return ERR_PTR(-ENOMEM);
	pd->device = dev;
	pd->local_dma_lkey = SIM_DMA_KEY;
	return pd;
}

void ib_dealloc_pd(struct ib_pd *pd)
{
	kfree(pd);
}

/* An MR on a device.  The application's own has the same keys always, its mirror has new ones. */
struct ib_mr *ib_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access)
{
	struct sim_dev *dev = (struct sim_dev *)pd->device;
	struct ib_mr *mr = sim_alloc(sizeof(*mr), GFP_KERNEL);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	if (dev->net)
		dev->mr.rkey += 0x10000;
	*mr = (struct ib_mr) {
		.device = pd->device, .pd = pd, .lkey = dev->mr.lkey, .rkey = dev->mr.rkey,
	};
	return mr;
}

static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
				 struct ib_udata *udata)
{
	return ib_reg_user_mr(pd, start, length, iova, access);
}

static int dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	return ib_dereg_mr(mr);
}

static int alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
{
	return 0;
}

static int destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	return 0;
}

int ib_dereg_mr(struct ib_mr *mr)
{
	kfree(mr);
	return 0;
}

bool ib_modify_qp_is_ok(enum ib_qp_state from, enum ib_qp_state to, enum ib_qp_type type, int mask)
{
	switch (to) {
	case IB_QPS_RESET:
	case IB_QPS_ERR:
		return to == IB_QPS_RESET || from != IB_QPS_RESET;
	case IB_QPS_INIT:
		return from == IB_QPS_RESET;
	case IB_QPS_RTR:
		return from == IB_QPS_INIT;
	case IB_QPS_RTS:
		return from == IB_QPS_RTR || from == IB_QPS_RTS;
	default:
		return false;
	}
}

const char *ib_wc_status_msg(u32 status)
{
	static const char *const names[] = {
		"success", "local length", "local QP operation", "local EEC", "local protection",
		"flushed", "window bind", "bad response", "local access", "remote invalid request",
		"remote access", "remote operation", "retry exceeded", "RNR retry exceeded",
	};

	return status < ARRAY_SIZE(names) ? names[status] : "?";
}

void sim_dev_init(struct sim_dev *dev, int end, int net, bool forgets, bool lower,
		  bool global)
{
	memset(dev, 0, sizeof(*dev));
	dev->end = end;
	dev->net = net;
	dev->forgets = forgets;
	dev->gid.gid = (union ib_gid) {
		.raw = { [10] = 0xff, 0xff, 10, 0, net, 10 + (end ^ (int)lower) },
	};
	dev->gid.ndev = (struct net_device) { .net = &init_net, .ifindex = net + 1, .addr_len = 6 };
	/* both are of one index, as with all drivers */
	dev->mr = (struct sim_rights) {
		.lkey = 0x1000 + 0x100 * net + end, .rkey = 0x1080 + 0x100 * net + end,
	};
	dev->ib.ops = (struct ib_device_ops) {
		.driver_id = RDMA_DRIVER_SIM + forgets, .alloc_pd = alloc_pd, .dealloc_pd = alloc_pd,
		.reg_user_mr = reg_user_mr, .dereg_mr = dereg_mr, .create_cq = create_cq,
		.destroy_cq = destroy_cq, .create_qp = create, .modify_qp = modify,
		.query_qp = query, .destroy_qp = destroy, .post_send = sim_qp_post_own,
		.create_srq = sim_srq_create, .modify_srq = sim_srq_modify,
		.query_srq = sim_srq_query, .destroy_srq = sim_srq_destroy,
	};
	dev->ib.phys_port_cnt = 1;
	dev->ib.attrs.max_qp_wr = SIM_Q - 1;
	dev->ib.attrs.max_cqe = 1 << 15;
	dev->ib.attrs.max_send_sge = 4;
	dev->ib.attrs.max_recv_sge = 4;
	dev->ib.attrs.max_srq_wr = SIM_Q - 1;
	dev->ib.attrs.max_srq_sge = 4;
	dev->ib.attrs.atomic_cap = global ? IB_ATOMIC_GLOB : IB_ATOMIC_HCA;
	dev->ib.name[0] = 'a' + end;
	dev->ib.name[1] = '0' + net;
	dev->ib.dev.name = dev->ib.name;
}
