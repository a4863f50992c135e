// SPDX-License-Identifier: GPL-2.0
/* One end of the simulated world: what the world and an application do with it. */
#include "core/kick.h"
#include "core/node.h"
#include "core/qp.h"
#include "core/stat.h"
#include "end/inside.h"
#include "failover/failover.h"
#include "link/link_priv.h"
#include "proxy/proxy.h"
#include "verbs/verbs.h"

int sim_this_end;

static struct mm_struct mm;
static union ib_gid peer_gid;
static struct sim_dev *own;
/* what all QPs of the application share */
static struct ib_pd *pd;
static struct ib_mr *mr;
static u32 users;

static int end_pair(bool there, u32 policy)
{
	return there ? shift_pair_add(own->ib.name, sim_backup->name, policy, NULL) :
		       shift_pair_del(own->ib.name, NULL);
}

static int end_start(int end, struct sim_dev *dev, struct sim_dev *dev1, const union ib_gid *peer,
		     const union ib_gid *peer_backup, u32 policy)
{
	u32 r[4];
	int i, err;

	sim_this_end = end;
	for (i = 0; i < 4; i++)
		r[i] = get_random_u32();
	memcpy(shift_boot_id, r, sizeof(r));
	sim_mail_start();
	sim_liar_start();
	sim_task.mm = &mm;
	own = dev;
	peer_gid = *peer;
	sim_providers();
	shift_event_register(&sim_event_ops);
	sim_core_start(dev, dev1);
	sim_links_start(peer, peer_backup);
	err = shift_device_init() ?: end_pair(true, policy);
	if (err)
		sim_fail("an end cannot be started (%d)", err);
	return 0;
}

static void end_stop(void)
{
	unsigned int i;

	sim_mail_wait();
	shift_device_uninit();
	shift_link_uninit();
	shift_pairing_uninit();
	shift_qp_uninit();
	for (i = 0; i < ARRAY_SIZE(shift_objects); i++)
		if (shift_objects[i].first)
			sim_fail("a shadow is left");
}

/* The application's PD, with its memory: it goes with the last of its users. */
struct ib_pd *sim_pd_get(void)
{
	struct ib_udata udata;
	int err;

	if (users++)
		return pd;
	pd = sim_alloc(sizeof(*pd), GFP_KERNEL);
	pd->device = &own->ib;
	err = own->ib.ops.alloc_pd(pd, &udata);
	mr = own->ib.ops.reg_user_mr(pd, 0, 1ull << 40, 0, IB_ACCESS_REMOTE_WRITE, &udata);
	if (err || IS_ERR(mr))
		sim_fail("memory cannot be registered");
	mr->device = &own->ib;
	mr->pd = pd;
	return pd;
}

/* The key on the default device stays, as with a driver that keeps keys; the mirror's does not. */
static void end_memory(void)
{
	struct ib_udata udata;

	own->ib.ops.dereg_mr(mr, NULL);
	mr = own->ib.ops.reg_user_mr(pd, 0, 1ull << 40, 0, IB_ACCESS_REMOTE_WRITE, &udata);
	if (IS_ERR(mr))
		sim_fail("memory cannot be registered");
	mr->device = &own->ib;
	mr->pd = pd;
}

void sim_pd_put(void)
{
	if (--users)
		return;
	own->ib.ops.dereg_mr(mr, NULL);
	own->ib.ops.dealloc_pd(pd, NULL);
	kfree(pd);
}

static void cq_new(struct sim_app_cq *app, u32 cqe)
{
	const struct ib_cq_init_attr attr = { .cqe = cqe };
	struct shift_abi_reg_cq reg = { .flag_addr = (u64)&app->flag };
	struct ib_udata udata;
	struct shift_cq *scq;
	int err;

	app->cq = ib_alloc_cq(&own->ib, NULL, 255, 0, -1);
	app->cq->uobject = &app->uobject;
	err = own->ib.ops.create_cq(app->cq, &attr, &udata);
	scq = shift_cq_find(app->cq);
	if (err || !scq)
		sim_fail("a CQ cannot be created (%d)", err);
	shift_cq_get(scq);
	reg.provider = sim_own->provider->id;
	err = shift_cq_register(scq, &reg);
	if (err)
		sim_fail("a CQ cannot be registered (%d)", err);
	app->scq = scq;
}

static int end_create(struct sim_app_qp *app, struct sim_app_cq *cq, struct sim_app_srq *srq,
		      const struct sim_shape *shape)
{
	struct shift_abi_reg_qp reg = {
		.provider = sim_own->provider->id,
		.create_flags = shape->rebases ? SHIFT_QP_CREATE_REBASE : 0,
	};
	struct ib_udata udata;
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = shape->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR,
		.cap = { shape->sends, SIM_RECVS, 1, 1, 0 },
	};
	u32 cqe = shape->tight_cqs ? shape->sends + SIM_RECVS : 4 * SIM_RING - 1;
	struct shift_qp *sqp;
	int err;

	sim_pd_get();
	cq_new(&cq[0], cqe);
	if (shape->two_cqs)
		cq_new(&cq[1], cqe);
	init.send_cq = cq[0].cq;
	init.recv_cq = cq[shape->two_cqs].cq;
	init.srq = srq ? srq->srq : NULL;
	reg.rq.addr = !srq;
	app->sq.slots = roundup_pow_of_two(shape->sends + 1);
	app->rq.slots = SIM_RING;
	app->qp = sim_qp_alloc(own, pd);
	app->qp->uobject = &app->uobject;
	sim_qp_ring(app->qp, &app->sq, &app->rq);
	err = own->ib.ops.create_qp(app->qp, &init, &udata);
	sqp = shift_qp_find(app->qp);
	if (err || !sqp)
		sim_fail("a QP cannot be created (%d)", err);
	shift_qp_get(sqp);
	app->sqp = sqp;
	reg.sq.addr = (u64)app;
	reg.flag_addr = (u64)&app->gate;
	err = shift_qp_register(sqp, &reg);
	if (err)
		sim_fail("a QP cannot be registered (%d)", err);
	return 0;
}

static int end_modify(struct sim_app_qp *app, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return own->ib.ops.modify_qp(app->qp, &attr, IB_QP_STATE, NULL);
}

static int end_connect(struct sim_app_qp *app, u32 qpn, u32 psn, u32 peer_psn,
		       const struct sim_shape *shape)
{
	struct ib_qp_attr rtr = {
		.qp_state = IB_QPS_RTR, .path_mtu = IB_MTU_1024, .dest_qp_num = qpn,
		.rq_psn = peer_psn, .max_dest_rd_atomic = shape->rd_atomic, .min_rnr_timer = 12,
		.ah_attr.grh = {
			.sgid_attr = &own->gid, .dgid = app->loop ? own->gid.gid : peer_gid,
			/* half of the worlds have lanes, as links have class 0 */
			.traffic_class = shape->timeout & 1 ? 32 : 0,
		},
	};
	struct ib_qp_attr rts = {
		.qp_state = IB_QPS_RTS, .sq_psn = psn, .timeout = shape->timeout,
		.retry_cnt = shape->retries,
		.rnr_retry = 7, .max_rd_atomic = shape->rd_atomic,
	};
	int err = end_modify(app, IB_QPS_INIT);

	if (!err)
		err = own->ib.ops.modify_qp(app->qp, &rtr, IB_QP_STATE | IB_QP_AV |
			IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER, NULL);
	if (!err)
		err = own->ib.ops.modify_qp(app->qp, &rts, IB_QP_STATE | IB_QP_TIMEOUT |
			IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			IB_QP_MAX_QP_RD_ATOMIC, NULL);
	return err;
}

static void cq_destroy(struct sim_app_cq *cq)
{
	struct shift_cq *scq = cq->scq;

	shift_cq_unregister(scq);
	own->ib.ops.destroy_cq(cq->cq, NULL);
	shift_cq_put(scq);
	ib_free_cq(cq->cq);
}

static void end_destroy(struct sim_app_qp *app, struct sim_app_cq *cq)
{
	shift_qp_put(app->sqp);
	own->ib.ops.destroy_qp(app->qp, NULL);
	sim_qp_free(app->qp);
	cq_destroy(&cq[0]);
	if (cq[1].cq)
		cq_destroy(&cq[1]);
	sim_pd_put();
}

/* what a patched provider calls */
static void end_doorbell(struct sim_app_qp *app)
{
	const struct ib_send_wr *bad;

	own->ib.ops.post_send(app->qp, NULL, &bad);
}

static void end_kick(struct sim_app_qp *app)
{
	shift_recv_doorbell(app->sqp);
}

/* as SHIFT_IOC_KICK of sends */
static long end_kick_send(struct sim_app_qp *app)
{
	struct shift_qp *sqp = app->sqp;
	long err;

	/* again if posts were held meanwhile, as the work may not have been taken in */
	do {
		err = sqp->rings.rebases ? shift_handback_kick(sqp) : 0;
		if (!err)
			shift_replay_doorbell(sqp);
	} while (!err && READ_ONCE(sqp->handback.hold));
	if (err >= 0)
		shift_recv_doorbell(sqp);
	return err < 0 ? err : 0;
}

static long end_rebase(struct sim_app_qp *app, struct shift_abi_rebase *base)
{
	return shift_handback_rebase(app->sqp, base);
}

static void end_wait(struct sim_app_qp *app)
{
	struct shift_qp *sqp = app->sqp;

	wait_event_killable_timeout(sqp->rings.gate_wait, !READ_ONCE(sqp->rings.held), HZ);
}

static bool end_swallow(struct sim_app_qp *app, struct sim_app_cq *cq, u32 status)
{
	return shift_cqe_filter(app->sqp, cq->scq, status, NULL) == SHIFT_CQE_SWALLOW;
}

static struct shift_abi_side *end_side(struct sim_app_cq *cq, u32 *len)
{
	struct shift_cq *scq = cq->scq;

	*len = scq->side_len;
	return scq->side;
}

static void end_move(u8 to, bool keep)
{
	shift_pair_move(own->ib.name, 0, to, keep, NULL);
}

static const char *end_shows(const struct sim_app_qp *app, bool *rest, bool *failed, u8 *path)
{
	struct shift_qp *sqp = app->sqp;
	enum shift_state state = sqp->fo.state;

	*rest = state == SHIFT_ST_OFF || state == SHIFT_ST_RUN || state == SHIFT_ST_FAIL ||
		state == SHIFT_ST_APP;
	*failed = state == SHIFT_ST_FAIL || state == SHIFT_ST_APP;
	*path = sqp->fo.path;
	return shift_state_name(state);
}

static bool end_returns(const struct sim_app_qp *app)
{
	const struct shift_qp *sqp = app->sqp;

	return sqp->handback.hold;
}

static bool end_links_up(const struct sim_app_qp *app)
{
	return sim_links_up(app->sqp);
}

static u64 end_cookie(const struct sim_app_qp *app)
{
	return ((struct shift_qp *)app->sqp)->cookie;
}

static void end_lead(const struct sim_app_qp *app, u32 epochs)
{
	struct shift_qp *sqp = app->sqp;

	mutex_lock(&sqp->lock);
	if (sqp->fo.state == SHIFT_ST_RUN)
		sqp->fo.highest += epochs;
	mutex_unlock(&sqp->lock);
}

static unsigned long end_stat(int stat)
{
	return shift_stat_read(stat);
}

const struct sim_kernel sim_kernel = {
	.start = end_start, .stop = end_stop, .create = end_create, .connect = end_connect,
	.modify = end_modify, .destroy = end_destroy, .doorbell = end_doorbell, .kick = end_kick,
	.srq_create = end_srq_create, .srq_modify = end_srq_modify,
	.srq_kick = end_srq_kick, .srq_keeps = end_srq_keeps, .srq_destroy = end_srq_destroy,
	.kick_send = end_kick_send, .rebase = end_rebase, .wait = end_wait,
	.swallow = end_swallow, .side = end_side, .links_up = end_links_up,
	.port = sim_core_port, .device = sim_core_device, .pair = end_pair, .memory = end_memory,
	.move = end_move, .shows = end_shows, .returns = end_returns, .stat = end_stat,
	.cookie = end_cookie, .boot_id = shift_boot_id, .rules = sim_rules_print,
	.lead = end_lead, .storm = sim_storm,
};
