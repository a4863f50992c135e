// SPDX-License-Identifier: GPL-2.0
/*
 * Completions of a kernel user's QP that no device has, as rdma_shift pushes them for work that was
 * replayed.  That module exports nothing for this: its functions are found by their names.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include "core/object.h"
#include "core/qp.h"
#include "kernel_user.h"

#define MANY	(3 * DEPTH)	/* more than one round of ib_process_cq() takes */
#define CQES	32

static struct {
	typeof(shift_object_find) *find;
	typeof(shift_cq_push) *push;
} shift;

/* Pushed completions are handled in the order in which they were pushed. */
static struct token tokens[MANY];
static unsigned int handled;
static bool disordered;

static void *address_of(const char *name)
{
	struct kprobe probe = { .symbol_name = name };
	void *address;

	if (register_kprobe(&probe))
		return NULL;
	address = probe.addr;
	unregister_kprobe(&probe);
	return address;
}

int kernel_push_init(void)
{
	shift.find = address_of("shift_object_find");
	shift.push = address_of("shift_cq_push");
	return shift.find && shift.push ? 0 : -ENOENT;
}

static int push(struct ib_cq *cq, struct ib_qp *qp, u64 wr_id)
{
	struct shift_abi_wc wc = { .wr_id = wr_id, .opcode = IB_WC_SEND, .qp_num = qp->qp_num };
	struct shift_obj *scq, *sqp;
	struct shift_cq_slot slot = {};

	rcu_read_lock();
	scq = shift.find(cq, SHIFT_OBJ_CQ);
	sqp = shift.find(qp, SHIFT_OBJ_QP);
	rcu_read_unlock();
	if (!scq || !sqp)
		return -ENOENT;
	/* the QP is ours, and keeps both */
	slot.sqp = container_of(sqp, struct shift_qp, obj);
	return shift.push(container_of(scq, struct shift_cq, obj), &wc, &slot);
}

/* The shadow of a QP of ours, which keeps it; or NULL. */
static struct shift_qp *shadow_of(struct ib_qp *qp)
{
	struct shift_obj *obj;

	rcu_read_lock();
	obj = shift.find(qp, SHIFT_OBJ_QP);
	rcu_read_unlock();
	return obj ? container_of(obj, struct shift_qp, obj) : NULL;
}

/* Wait until a QP is protected on its own device, or works on the backup. */
int kernel_push_path(struct ib_qp *qp, bool backup)
{
	unsigned long end = jiffies + WAIT;
	struct shift_qp *sqp = shadow_of(qp);

	if (!sqp)
		return -ENOENT;
	while (READ_ONCE(sqp->fo.path) != (backup ? SHIFT_PATH_BACKUP : SHIFT_PATH_DEFAULT) ||
	       READ_ONCE(sqp->fo.state) != SHIFT_ST_RUN) {
		if (time_after(jiffies, end)) {
			pr_err("qp %u: state %d, reason %d\n", qp->qp_num, sqp->fo.state,
			       sqp->fo.reason);
			return -ETIMEDOUT;
		}
		msleep(20);
	}
	return 0;
}

/* Wait until a QP is unprotected for that reason. */
int kernel_push_reason(struct ib_qp *qp, enum shift_reason reason)
{
	unsigned long end = jiffies + WAIT;
	struct shift_qp *sqp = shadow_of(qp);

	if (!sqp)
		return -ENOENT;
	while (READ_ONCE(sqp->fo.state) != SHIFT_ST_OFF || READ_ONCE(sqp->fo.reason) != reason) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		msleep(20);
	}
	return 0;
}

static void ordered_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct token *token = container_of(wc->wr_cqe, struct token, cqe);

	disordered |= token != &tokens[handled++];
	token->status = wc->status;
	complete(&token->done);
}

static void tokens_begin(void)
{
	int i;

	for (i = 0; i < MANY; i++) {
		token_begin(&tokens[i]);
		tokens[i].cqe.done = ordered_done;
	}
	handled = 0;
	disordered = false;
}

static int push_tokens(struct kernel_user *u, int n)
{
	int i, err = 0;

	tokens_begin();
	for (i = 0; !err && i < n; i++)
		err = push(u->cq, u->qp[i & 1], (uintptr_t)&tokens[i].cqe);
	return err;
}

/* Its user is woken by whatever way it polls, and is shown all of them in order. */
int kernel_push_some(struct kernel_user *u, unsigned int round)
{
	int n = round % 3 ? 1 + round % DEPTH : MANY;
	int err = push_tokens(u, n);

	if (!err)
		err = token_wait(u, &tokens[n - 1]);
	if (!err && (handled != n || disordered))
		err = -EILSEQ;
	if (err)
		pr_err("pushed %d, handled %u%s: %d\n", n, handled,
		       disordered ? ", in another order" : "", err);
	return err;
}

/* What was pushed is handled before what the drain posts. */
int kernel_push_drain(struct kernel_user *u)
{
	int err = push_tokens(u, MANY);

	ib_drain_qp(u->qp[0]);
	if (!err && (handled != MANY || disordered))
		err = -EILSEQ;
	if (err)
		pr_err("drained, and %u handled: %d\n", handled, err);
	return err;
}

/* Fill the ring; it takes as many as the CQ.  Then the QP goes, and they go with it. */
int kernel_push_destroy(struct kernel_user *u)
{
	int n, err = 0;

	/* others are polled at once */
	if (u->ctx != IB_POLL_DIRECT)
		return 0;
	tokens_begin();
	if (push(u->cq, u->qp[0], (uintptr_t)&tokens[0].cqe))
		return -EIO;
	for (n = 1; !err; n++)
		err = push(u->cq, u->qp[1], (uintptr_t)&tokens[1].cqe);
	if (err != -ENOSPC || n - 1 < u->cq->cqe) {
		pr_err("%d fit into a CQ of %d: %d\n", n - 1, u->cq->cqe, err);
		return -EIO;
	}
	ib_destroy_qp(u->qp[1]);
	u->qp[1] = NULL;
	if (ib_process_cq_direct(u->cq, -1) != 1 || handled != 1 || disordered) {
		pr_err("of a QP that is gone: %u were handled\n", handled);
		return -EIO;
	}
	return 0;
}

static atomic_t woken;

static void woken_by(struct ib_cq *cq, void *context)
{
	atomic_inc(&woken);
}

static int woken_times(int times)
{
	unsigned long end = jiffies + WAIT;

	while (atomic_read(&woken) < times && time_before(jiffies, end))
		usleep_range(500, 1000);
	return atomic_read(&woken) == times ? 0 : -EIO;
}

static int handler_run(struct ib_cq *cq, struct ib_qp *qp)
{
	struct ib_wc wc[2];

	/* nobody has seen whether it was armed before it was tracked */
	if (push(cq, qp, 1) || woken_times(1))
		return -1;
	/* once for an arming */
	if (push(cq, qp, 2) || woken_times(1))
		return -2;
	/* it is told what it has missed, by the value if it asks for that, else by its handler */
	if (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) != 1 ||
	    woken_times(1))
		return -3;
	if (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP) || woken_times(2))
		return -4;
	if (ib_poll_cq(cq, 2, wc) != 2 || wc[0].wr_id != 1 || wc[1].wr_id != 2 ||
	    wc[0].qp != qp || ib_poll_cq(cq, 1, wc))
		return -5;
	if (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) ||
	    woken_times(2))
		return -6;
	return push(cq, qp, 3) || woken_times(3) ? -7 : 0;
}

/* A user that has a handler of its own, and arms without being told what it has missed. */
int kernel_push_handler(struct kernel_user *u)
{
	struct ib_cq_init_attr attr = { .cqe = CQES };
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = {
			.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_pd *pd = ib_alloc_pd(u->ibdev, 0);
	struct ib_cq *cq;
	struct ib_qp *qp;
	int err;

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	atomic_set(&woken, 0);
	cq = ib_create_cq(u->ibdev, woken_by, NULL, NULL, &attr);
	err = PTR_ERR_OR_ZERO(cq);
	if (err)
		goto out_pd;
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ib_create_qp(pd, &init);
	err = PTR_ERR_OR_ZERO(qp);
	if (!err) {
		err = handler_run(cq, qp);
		ib_destroy_qp(qp);
	}
	ib_destroy_cq(cq);
out_pd:
	ib_dealloc_pd(pd);
	return err;
}
