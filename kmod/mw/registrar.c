// SPDX-License-Identifier: GPL-2.0
/*
 * The registrar of a proxy QP: a QP of its own that registers memory on the same device.  On the
 * proxy QP a registration would wait behind operations that may wait for the peer's application for
 * ever.
 */
#include <linux/slab.h>
#include "core/ib.h"
#include "core/node.h"
#include "core/object.h"
#include "core/proxy.h"
#include "core/qp.h"
#include "mw/mw.h"

#define REGISTER_MS	2000	/* scaled */

struct registration {
	struct ib_cqe cqe;
	struct completion done;
	u32 status;
};

static void registered(struct ib_cq *cq, struct ib_wc *wc)
{
	struct registration *r = container_of(wc->wr_cqe, struct registration, cqe);

	r->status = wc->status;
	complete(&r->done);
}

/* NULL QPs and CQs are fine.  Process context; sleeps. */
void shift_registrar_free(struct shift_proxy *b)
{
	if (b->reg_qp) {
		shift_qp_quiet(b->reg_qp);
		ib_destroy_qp(b->reg_qp);
	}
	if (b->reg_cq)
		ib_free_cq(b->reg_cq);
	b->reg_qp = NULL;
	b->reg_cq = NULL;
	b->reg_connected = false;
}

static void registrar_event(struct ib_event *event, void *context)
{
}

/**
 * shift_registrar_make - make the registrar of a proxy QP, unless it is there
 * @b: the proxy QP.
 *
 * What is made in advance is not allocated on the way of a failover.
 *
 * Context: process context; sleeps.
 * Return: 0 or a negative errno.
 */
int shift_registrar_make(struct shift_proxy *b)
{
	struct ib_qp_init_attr init = {
		.event_handler = registrar_event,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = 2, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	if (b->reg_qp)
		return 0;
	b->reg_cq = ib_alloc_cq_any(b->qp->device, b, 4, IB_POLL_SOFTIRQ);
	if (IS_ERR(b->reg_cq)) {
		b->reg_cq = NULL;
		return -ENOMEM;
	}
	init.send_cq = b->reg_cq;
	init.recv_cq = b->reg_cq;
	b->reg_qp = ib_create_qp(b->qp->pd, &init);
	if (IS_ERR(b->reg_qp)) {
		b->reg_qp = NULL;
		shift_registrar_free(b);
		return -ENOMEM;
	}
	return 0;
}

/* Have a registrar that works. */
static int registrar_ready(struct shift_qp *sqp, struct shift_proxy *b)
{
	int err = shift_registrar_make(b);

	if (!err && !b->reg_connected) {
		/* it never sends a packet */
		err = shift_qp_connect_self(b->reg_qp, b->path == SHIFT_PATH_HOME ?
					    &sqp->app.sgid : &sqp->peer.backup_sgid,
					    sqp->app.vlan, sqp->app.attr.path_mtu);
		if (err)
			shift_registrar_free(b);
		else
			b->reg_connected = true;
	}
	return err;
}

/* An error has broken its QP: connect it anew, as another one would take memory in a failover. */
static int registrar_mend(struct shift_qp *sqp, struct shift_proxy *b)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	b->reg_connected = false;
	return ib_modify_qp(b->reg_qp, &attr, IB_QP_STATE) ?: registrar_ready(sqp, b);
}

static int registrar_run(struct shift_qp *sqp, struct shift_proxy *b, struct ib_send_wr *wr)
{
	struct registration r = { .cqe.done = registered };
	const struct ib_send_wr *bad;
	int err = registrar_ready(sqp, b);

	if (err)
		return err;
	wr->wr_cqe = &r.cqe;
	wr->send_flags = IB_SEND_SIGNALED;
	init_completion(&r.done);
	err = ib_post_send(b->reg_qp, wr, &bad);
	if (!err && !wait_for_completion_timeout(&r.done, msecs_to_jiffies(REGISTER_MS *
				shift_scale(1))))
		err = -ETIMEDOUT;
	if (!err && r.status)
		err = -EREMOTEIO;
	if (err && (err != -EREMOTEIO || registrar_mend(sqp, b)))
		shift_registrar_free(b);	/* and no completion of it comes later */
	return err;
}

/**
 * shift_registrar_register - register an MR on the device of a proxy QP
 * @sqp: the QP, locked.
 * @b: its proxy QP.
 * @mr: an MR of the PD of @b, with its pages, that is not registered.
 * @key: its key from now on.
 * @access: the rights.
 *
 * Context: process context; sleeps.
 * Return: 0 or a negative errno.
 */
int shift_registrar_register(struct shift_qp *sqp, struct shift_proxy *b, struct ib_mr *mr,
			     u32 key, int access)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR, .mr = mr, .key = key, .access = access,
	};

	lockdep_assert_held(&sqp->lock);
	return registrar_run(sqp, b, &wr.wr);
}

/**
 * shift_registrar_invalidate - the opposite
 * @sqp: the QP, locked.
 * @b: its proxy QP.
 * @key: with which an MR is registered there.
 *
 * Context: process context; sleeps.
 * Return: 0 or a negative errno; -EREMOTEIO: the device has refused, as nothing is registered so.
 */
int shift_registrar_invalidate(struct shift_qp *sqp, struct shift_proxy *b, u32 key)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = key };

	lockdep_assert_held(&sqp->lock);
	return registrar_run(sqp, b, &wr);
}
