// SPDX-License-Identifier: GPL-2.0
/*
 * A user of RDMA in the kernel, built under the name of one that rdma_shift knows (rds_rdma), to
 * do what each of them does and some do seldom: all ways of polling, several QPs on a CQ,
 * unsignaled requests, posts with interrupts disabled, registrations, refused posts,
 * RESET, errors, drain.
 *
 *	insmod rds_rdma.ko dev=rxe0 rounds=50
 *	insmod rds_rdma.ko dev=rxe0 rounds=50 pushes=1
 *
 *	insmod rds_rdma.ko dev=rxe0 cost=1000
 *	insmod rds_rdma.ko dev=mls0 full=1
 *	insmod rds_rdma.ko dev=mls0 mistake=1
 *
 *	insmod rds_rdma.ko dev=rxe0 stream=send poll=direct
 *
 * With pushes=1 completions are pushed as well that no device has: kernel_push.c.  With cost=N it
 * only tells what its calls cost: kernel_cost.c.  With full=1 it only drains full queues:
 * kernel_full.c.  With mistake=1 to 3 it only does what cannot be moved: kernel_mistake.c.  So far
 * two QPs of one device are connected to each other, and it never stays: loading it gives -EAGAIN
 * if all went well.
 *
 * With stream=send on one node and stream=receive on another one it stays, as a stream of requests
 * between both of which each is checked: kernel_stream.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include "kernel_conn.h"
#include "kernel_stream.h"
#include "kernel_user.h"

static char *dev = "rxe0";
module_param(dev, charp, 0444);
MODULE_PARM_DESC(dev, "the device");

static unsigned int rounds = 50;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "for each way of polling");

static unsigned int gid_index = 1;
module_param(gid_index, uint, 0444);
MODULE_PARM_DESC(gid_index, "of the device's address");

static bool pushes;
module_param(pushes, bool, 0444);
MODULE_PARM_DESC(pushes, "push completions that no device has; rdma_shift tracks this user");

static unsigned int cost;
module_param(cost, uint, 0444);
MODULE_PARM_DESC(cost, "only tell what calls cost, after so many of them");

static bool full;
module_param(full, bool, 0444);
MODULE_PARM_DESC(full, "only drain full queues of QPs on the backup; the device's pair is drained");

static unsigned int mistake;
module_param(mistake, uint, 0444);
MODULE_PARM_DESC(mistake, "1: only invalidate a key of nothing; 2: only register an MR twice; 3: only map an MR with signatures");

static char *stream;
module_param(stream, charp, 0444);
MODULE_PARM_DESC(stream, "be an end of a stream: send or receive");

static struct kernel_stream_options options = {
	.poll = "softirq", .qps = 1, .keys = 256, .pace_us = 1000,
};
module_param_named(poll, options.poll, charp, 0444);
MODULE_PARM_DESC(poll, "of a stream: softirq, workqueue, unbound or direct");
module_param_named(qps, options.qps, uint, 0444);
MODULE_PARM_DESC(qps, "of a stream");
module_param_named(keys, options.keys, uint, 0444);
MODULE_PARM_DESC(keys, "that an MR of a stream has in turn, a power of two up to 256");
module_param_named(one_cq, options.one_cq, bool, 0444);
MODULE_PARM_DESC(one_cq, "all QPs of a stream complete into one CQ");
module_param_named(global_key, options.global_key, bool, 0444);
MODULE_PARM_DESC(global_key, "the PD of a stream has a key for all memory, and nothing is registered");
module_param_named(atomics, options.atomics, bool, 0444);
MODULE_PARM_DESC(atomics, "a stream has FETCH_ADDs");
module_param_named(pace_us, options.pace_us, uint, 0444);
MODULE_PARM_DESC(pace_us, "a stream rests so long when it has posted what it may, in us");

static struct kernel_user the_user;

static void token_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct token *token = container_of(wc->wr_cqe, struct token, cqe);

	token->status = wc->status;
	complete(&token->done);
}

void token_begin(struct token *token)
{
	token->cqe.done = token_done;
	init_completion(&token->done);
}

int token_wait(struct kernel_user *u, struct token *token)
{
	unsigned long end = jiffies + WAIT;

	if (u->ctx != IB_POLL_DIRECT)
		return wait_for_completion_timeout(&token->done, WAIT) ? 0 : -ETIMEDOUT;
	while (!try_wait_for_completion(&token->done)) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		ib_process_cq_direct(u->cq, 3);
		cond_resched();
	}
	return 0;
}

int kernel_user_connect(struct ib_device *ibdev, struct ib_qp *qp, u32 peer, u32 rq_psn,
			u32 sq_psn)
{
	const struct ib_gid_attr *gid = rdma_get_gid_attr(ibdev, 1, gid_index);
	struct kernel_conn conn = {
		.qpn = peer, .sq_psn = sq_psn, .rq_psn = rq_psn, .mtu = IB_MTU_256, .timeout = 18,
	};

	if (IS_ERR(gid))
		return PTR_ERR(gid);
	conn.gid = gid->gid;
	rdma_read_gid_l2_fields(gid, NULL, conn.mac);
	rdma_put_gid_attr(gid);
	return kernel_conn_make(qp, gid_index, &conn);
}

static int qps_connect(struct kernel_user *u)
{
	int err = kernel_user_connect(u->ibdev, u->qp[0], u->qp[1]->qp_num, 101, 100);

	return err ?: kernel_user_connect(u->ibdev, u->qp[1], u->qp[0]->qp_num, 100, 101);
}

static int qp_new(struct kernel_user *u, int i, enum ib_sig_type signals)
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC, .sq_sig_type = signals, .send_cq = u->cq, .recv_cq = u->cq,
		.cap = {
			.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = MAX_SGE,
			.max_recv_sge = 1,
		},
	};
	struct ib_qp *qp = ib_create_qp(u->pd, &attr);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	u->qp[i] = qp;
	return 0;
}

static int post(struct ib_qp *qp, const struct ib_send_wr *wr, bool irqs_off)
{
	unsigned long flags;
	int err;

	if (irqs_off)
		local_irq_save(flags);
	err = ib_post_send(qp, wr, NULL);
	if (irqs_off)
		local_irq_restore(flags);
	return err;
}

static int post_recvs(struct kernel_user *u, int n)
{
	struct ib_sge sge = {
		.addr = u->dma + LENGTH, .length = LENGTH, .lkey = u->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr[CHAIN];
	int i;

	for (i = 0; i < n; i++) {
		token_begin(&u->recv[i]);
		wr[i] = (struct ib_recv_wr) {
			.next = i + 1 < n ? &wr[i + 1] : NULL, .wr_cqe = &u->recv[i].cqe,
			.sg_list = &sge, .num_sge = 1,
		};
	}
	return ib_post_recv(u->qp[1], wr, NULL);
}

/* A chain of SENDs, of which the last is signaled, and their receives. */
static int exchange(struct kernel_user *u, unsigned int round)
{
	struct ib_sge sge = { .addr = u->dma, .length = LENGTH, .lkey = u->pd->local_dma_lkey };
	struct ib_send_wr wr[CHAIN];
	int i, err, n = 1 + round % CHAIN;

	err = post_recvs(u, n);
	token_begin(&u->send);
	for (i = 0; i < n; i++)
		wr[i] = (struct ib_send_wr) {
			.next = i + 1 < n ? &wr[i + 1] : NULL, .wr_cqe = &u->send.cqe,
			.sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND,
			.send_flags = i + 1 < n ? 0 : IB_SEND_SIGNALED,
		};
	if (!err)
		err = post(u->qp[0], wr, round & 1);
	if (!err)
		err = token_wait(u, &u->send);
	for (i = 0; !err && i < n; i++)
		err = token_wait(u, &u->recv[i]);
	for (i = 0; !err && i < n; i++)
		err = u->recv[i].status ? -EIO : 0;
	return err ?: u->send.status ? -EIO : 0;
}

/* Invalidate and register again, with the next key; the invalidation is not signaled. */
static int reregister(struct kernel_user *u, bool first)
{
	struct ib_send_wr inv = {
		.opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = u->mr->rkey,
	};
	struct ib_reg_wr reg = {
		.wr = {
			.opcode = IB_WR_REG_MR, .wr_cqe = &u->send.cqe,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = u->mr, .access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	struct scatterlist sg;
	int err;

	sg_init_one(&sg, u->memory, PAGE_SIZE);
	if (ib_dma_map_sg(u->ibdev, &sg, 1, DMA_BIDIRECTIONAL) != 1)
		return -EIO;
	token_begin(&u->send);
	if (!first) {
		err = ib_post_send(u->qp[0], &inv, NULL);
		if (err)
			goto out;
		ib_update_fast_reg_key(u->mr, ib_inc_rkey(u->mr->rkey));
	}
	err = ib_map_mr_sg(u->mr, &sg, 1, NULL, PAGE_SIZE) == 1 ? 0 : -EIO;
	reg.key = u->mr->rkey;
	if (!err)
		err = ib_post_send(u->qp[0], &reg.wr, NULL);
	if (!err)
		err = token_wait(u, &u->send);
	if (!err && u->send.status)
		err = -EIO;
out:
	ib_dma_unmap_sg(u->ibdev, &sg, 1, DMA_BIDIRECTIONAL);
	return err;
}

/* A request with more SGEs than the QP takes: the driver refuses it, and the record is as before. */
static int refused(struct kernel_user *u)
{
	struct ib_sge sge[MAX_SGE + 1] = {};
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND, .sg_list = sge, .num_sge = ARRAY_SIZE(sge),
	};
	const struct ib_send_wr *bad = NULL;

	return ib_post_send(u->qp[0], &wr, &bad) && bad == &wr ? 0 : -EINVAL;
}

/* More than its queue takes: the driver refuses the rest, and the record is lost. */
static int overfill(struct kernel_user *u)
{
	struct ib_sge sge = { .addr = u->dma, .length = LENGTH, .lkey = u->pd->local_dma_lkey };
	static struct ib_recv_wr wr[4 * DEPTH];
	const struct ib_recv_wr *bad = NULL;
	int i, err;

	token_begin(&u->recv[0]);
	for (i = 0; i < ARRAY_SIZE(wr); i++)
		wr[i] = (struct ib_recv_wr) {
			.next = i + 1 < ARRAY_SIZE(wr) ? &wr[i + 1] : NULL,
			.wr_cqe = &u->recv[0].cqe, .sg_list = &sge, .num_sge = 1,
		};
	err = ib_post_recv(u->qp[0], wr, &bad);
	return err && bad && bad != wr ? 0 : -EINVAL;
}

static int qps_reset(struct kernel_user *u)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	int err = ib_modify_qp(u->qp[0], &attr, IB_QP_STATE);

	return err ?: ib_modify_qp(u->qp[1], &attr, IB_QP_STATE);
}

static int work(struct kernel_user *u)
{
	unsigned int i;
	int err = qps_connect(u);

	if (cost)
		return err ?: kernel_cost(u, cost);
	for (i = 0; !err && i < rounds; i++) {
		if (pushes)
			err = kernel_push_some(u, i);
		if (!err)
			err = exchange(u, i);
		if (!err)
			err = refused(u);
		if (!err)
			err = reregister(u, !i);
		/* a QP that begins anew, with nothing outstanding */
		if (!err && i == rounds / 2) {
			err = qps_reset(u);
			if (!err)
				err = qps_connect(u);
		}
	}
	if (err)
		pr_err("round %u: %d\n", i, err);
	if (!err)
		err = overfill(u);
	/* what was posted is gone, so that the drain finds room */
	if (!err)
		err = qps_reset(u) ?: qps_connect(u);
	if (!err && pushes)
		err = kernel_push_drain(u);
	ib_drain_qp(u->qp[0]);
	ib_drain_qp(u->qp[1]);
	if (!err && pushes)
		err = kernel_push_destroy(u);
	return err;
}

static void user_free(struct kernel_user *u)
{
	int i;

	for (i = 0; i < 2; i++)
		if (u->qp[i])
			ib_destroy_qp(u->qp[i]);
	if (u->mr)
		ib_dereg_mr(u->mr);
	if (u->cq)
		ib_free_cq(u->cq);
	if (u->dma)
		ib_dma_unmap_single(u->ibdev, u->dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (u->pd)
		ib_dealloc_pd(u->pd);
	free_page((unsigned long)u->memory);
}

static int user_run(struct kernel_user *u, enum ib_poll_context ctx)
{
	struct ib_device *ibdev = u->ibdev;
	void *made;
	int err = 0;

	memset(u, 0, sizeof(*u));
	u->ibdev = ibdev;
	u->ctx = ctx;
	u->memory = (u8 *)get_zeroed_page(GFP_KERNEL);
	if (!u->memory)
		return -ENOMEM;
	made = ib_alloc_pd(ibdev, 0);
	if (IS_ERR(made)) {
		err = PTR_ERR(made);
		goto out;
	}
	u->pd = made;
	u->dma = ib_dma_map_single(ibdev, u->memory, PAGE_SIZE, DMA_BIDIRECTIONAL);
	made = ib_alloc_cq(ibdev, NULL, 8 * DEPTH, 0, ctx);
	if (IS_ERR(made)) {
		err = PTR_ERR(made);
		goto out;
	}
	u->cq = made;
	made = ib_alloc_mr(u->pd, IB_MR_TYPE_MEM_REG, 1);
	if (IS_ERR(made)) {
		err = PTR_ERR(made);
		goto out;
	}
	u->mr = made;
	err = qp_new(u, 0, IB_SIGNAL_REQ_WR) ?: qp_new(u, 1, IB_SIGNAL_ALL_WR);
	if (!err)
		err = work(u);
out:
	user_free(u);
	return err;
}

static int __init kernel_user_init(void)
{
	static const enum ib_poll_context ways[] = {
		IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE, IB_POLL_UNBOUND_WORKQUEUE, IB_POLL_DIRECT,
	};
	int i, err = 0;

	the_user.ibdev = ib_device_get_by_name(dev, RDMA_DRIVER_UNKNOWN);
	if (!the_user.ibdev)
		return -ENODEV;
	if (stream) {
		err = kernel_stream_begin(the_user.ibdev, gid_index, stream, &options);
		if (err)
			ib_device_put(the_user.ibdev);
		return err;
	}
	if (pushes)
		err = kernel_push_init();
	if (cost)
		err = user_run(&the_user, IB_POLL_DIRECT);
	if (full)
		err = kernel_full(the_user.ibdev);
	if (mistake)
		err = kernel_mistake(the_user.ibdev, mistake);
	for (i = 0; !err && !cost && !full && !mistake && i < ARRAY_SIZE(ways); i++) {
		err = user_run(&the_user, ways[i]);
		if (err)
			pr_err("way of polling %d: %d\n", ways[i], err);
	}
	if (!err && pushes) {
		err = kernel_push_handler(&the_user);
		if (err)
			pr_err("own handler: %d\n", err);
	}
	ib_device_put(the_user.ibdev);
	return err ?: -EAGAIN;
}

static void __exit kernel_user_exit(void)
{
	kernel_stream_end();
	ib_device_put(the_user.ibdev);
}

module_init(kernel_user_init);
module_exit(kernel_user_exit);
MODULE_DESCRIPTION("A user of RDMA in the kernel, for tests of rdma_shift");
MODULE_LICENSE("GPL");
