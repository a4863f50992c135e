// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions in rxe of pages that are nobody's address: a work request makes them valid and
 * takes them back.  The QP that executes it is connected to itself and sends no packet.
 */
#include <rdma/ib_cache.h>
#include "mlx5_soft.h"

#define REGISTRAR_MS	20000	/* an emulated processor is slow */

struct registration {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

static void registration_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct registration *r = container_of(wc->wr_cqe, struct registration, cqe);

	r->status = wc->status;
	complete(&r->done);
}

static void registrar_event(struct ib_event *event, void *context)
{
}

static int registrar_connect(struct ib_qp *qp)
{
	const struct ib_gid_attr *gid;
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = 1, .path_mtu = IB_MTU_1024,
		.dest_qp_num = qp->qp_num,
	};
	union ib_gid own;
	int err;

	gid = rdma_get_gid_attr(qp->device, 1, 0);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	own = gid->gid;
	attr.ah_attr.type = rdma_ah_find_type(qp->device, 1);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_read_gid_l2_fields(gid, NULL, attr.ah_attr.roce.dmac);
	rdma_move_grh_sgid_attr(&attr.ah_attr, &own, 0, 1, 0, gid);
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
				      IB_QP_ACCESS_FLAGS);
	attr.qp_state = IB_QPS_RTR;
	if (!err)
		err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
					      IB_QP_DEST_QPN | IB_QP_RQ_PSN |
					      IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	attr.qp_state = IB_QPS_RTS;
	if (!err)
		err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
					      IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
					      IB_QP_MAX_QP_RD_ATOMIC);
	rdma_destroy_ah_attr(&attr.ah_attr);
	return err;
}

void mls_registrar_free(struct mls_pd *pd)
{
	if (pd->reg_qp)
		ib_destroy_qp(pd->reg_qp);
	if (pd->reg_cq)
		ib_free_cq(pd->reg_cq);
	pd->reg_qp = NULL;
	pd->reg_cq = NULL;
}

/* Make the QP of a PD, if it has none. */
int mls_registrar_make(struct mls_pd *pd)
{
	struct ib_qp_init_attr init = {
		.event_handler = registrar_event,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = { .max_send_wr = 2, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	int err = 0;

	mutex_lock(&pd->reg_lock);
	if (pd->reg_qp)
		goto out;
	pd->reg_cq = ib_alloc_cq(pd->lower->device, pd, 4, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(pd->reg_cq)) {
		err = PTR_ERR(pd->reg_cq);
		pd->reg_cq = NULL;
		goto out;
	}
	init.send_cq = pd->reg_cq;
	init.recv_cq = pd->reg_cq;
	pd->reg_qp = ib_create_qp(pd->lower, &init);
	if (IS_ERR(pd->reg_qp)) {
		err = PTR_ERR(pd->reg_qp);
		pd->reg_qp = NULL;
	} else {
		err = registrar_connect(pd->reg_qp);
	}
	if (err)
		mls_registrar_free(pd);
out:
	mutex_unlock(&pd->reg_lock);
	return err;
}

static int registrar_run(struct mls_pd *pd, struct ib_send_wr *wr)
{
	struct registration r = { .cqe.done = registration_done };
	int err;

	init_completion(&r.done);
	wr->wr_cqe = &r.cqe;
	mutex_lock(&pd->reg_lock);
	err = pd->reg_qp ? ib_post_send(pd->reg_qp, wr, NULL) : -ENOTCONN;
	if (!err && !wait_for_completion_timeout(&r.done, msecs_to_jiffies(REGISTRAR_MS))) {
		mls_registrar_free(pd);		/* no completion of it comes later */
		err = -ETIMEDOUT;
	}
	if (!err && r.status) {
		mls_registrar_free(pd);
		err = -EIO;
	}
	mutex_unlock(&pd->reg_lock);
	return err;
}

/* Make the region @mr of rxe's valid, whose pages are mapped: ib_map_mr_sg(). */
int mls_registrar_validate(struct mls_pd *pd, struct ib_mr *mr, int access)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR, .mr = mr, .key = mr->lkey, .access = access,
	};

	return registrar_run(pd, &wr.wr);
}

/* After this nothing reaches its pages. */
int mls_registrar_invalidate(struct mls_pd *pd, struct ib_mr *mr)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = mr->lkey };

	return registrar_run(pd, &wr);
}
