// SPDX-License-Identifier: GPL-2.0
/*
 * What calls of a user in the kernel cost, in nanoseconds: those of a SEND, and those with which it
 * registers memory before that.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include "kernel_user.h"

enum call { POST_RECV, POST_SEND, POLL_CQ, MAP_MR_SG, POST_REG_MR, POLL_REG_MR, CALLS };

/* As they are printed.  That with REG_MR posts two requests, and poll_cq finds one completion. */
static const char *const call_names[CALLS] = {
	"post_recv", "post_send", "poll_cq", "map_mr_sg", "post_reg_mr", "poll_reg_mr",
};

struct costs {
	u32 *ns[CALLS];
};

static int by_size(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* Poll until so many completions are there; the cost of the first that is found. */
static int poll_all(struct kernel_user *u, int count, u32 *ns)
{
	unsigned long end = jiffies + WAIT;
	int n, found = 0;
	struct ib_wc wc;
	u64 began;

	while (found < count) {
		began = ktime_get_ns();
		n = ib_poll_cq(u->cq, 1, &wc);
		if (n == 1 && !found)
			*ns = ktime_get_ns() - began;
		if (n < 0 || (n == 1 && wc.status))
			return -EIO;
		found += n;
		if (!n && time_after(jiffies, end))
			return -ETIMEDOUT;
		if (!n)
			cond_resched();
	}
	return 0;
}

static int cost_once(struct kernel_user *u, struct costs *c, unsigned int i)
{
	struct ib_sge sge = { .addr = u->dma, .length = LENGTH, .lkey = u->pd->local_dma_lkey };
	struct ib_recv_wr recv = { .wr_cqe = &u->recv[0].cqe, .sg_list = &sge, .num_sge = 1 };
	struct ib_send_wr send = {
		.wr_cqe = &u->send.cqe, .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	u64 times[3];
	int err;

	times[0] = ktime_get_ns();
	err = ib_post_recv(u->qp[1], &recv, NULL);
	times[1] = ktime_get_ns();
	if (!err)
		err = ib_post_send(u->qp[0], &send, NULL);
	times[2] = ktime_get_ns();
	c->ns[POST_RECV][i] = times[1] - times[0];
	c->ns[POST_SEND][i] = times[2] - times[1];
	return err ?: poll_all(u, 2, &c->ns[POLL_CQ][i]);
}

/* The memory is registered with the next key, after the last registration has ended. */
static int cost_of_mr(struct kernel_user *u, struct scatterlist *sg, struct costs *c,
		      unsigned int i)
{
	struct ib_reg_wr reg = {
		.wr = {
			.opcode = IB_WR_REG_MR, .wr_cqe = &u->send.cqe,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = u->mr, .access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	struct ib_send_wr inv = {
		.next = &reg.wr, .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = u->mr->rkey,
	};
	u64 times[3];
	int err;

	if (i)
		ib_update_fast_reg_key(u->mr, ib_inc_rkey(u->mr->rkey));
	reg.key = u->mr->rkey;
	times[0] = ktime_get_ns();
	err = ib_map_mr_sg(u->mr, sg, 1, NULL, PAGE_SIZE) == 1 ? 0 : -EIO;
	times[1] = ktime_get_ns();
	if (!err)
		err = ib_post_send(u->qp[0], i ? &inv : &reg.wr, NULL);
	times[2] = ktime_get_ns();
	c->ns[MAP_MR_SG][i] = times[1] - times[0];
	c->ns[POST_REG_MR][i] = times[2] - times[1];
	return err ?: poll_all(u, 1, &c->ns[POLL_REG_MR][i]);
}

static void say_costs(struct costs *c, unsigned int count)
{
	int call;

	for (call = 0; call < CALLS; call++) {
		sort(c->ns[call], count, sizeof(*c->ns[call]), by_size, NULL);
		pr_info("cost of %s %u\n", call_names[call], c->ns[call][count / 4]);
	}
}

/**
 * kernel_cost - post and poll, and say what that took
 * @u: the user, which polls by itself; its QPs are connected.
 * @count: how often.
 *
 * A quarter of the calls took less: those that no interrupt came into.
 *
 * Return: 0 or a negative errno.
 */
int kernel_cost(struct kernel_user *u, unsigned int count)
{
	struct costs c = {};
	struct scatterlist sg;
	unsigned int i;
	int err = 0;

	sg_init_one(&sg, u->memory, PAGE_SIZE);
	if (ib_dma_map_sg(u->ibdev, &sg, 1, DMA_BIDIRECTIONAL) != 1)
		return -EIO;
	for (i = 0; i < CALLS; i++) {
		c.ns[i] = kcalloc(count, sizeof(*c.ns[i]), GFP_KERNEL);
		err = c.ns[i] ? err : -ENOMEM;
	}
	for (i = 0; !err && i < count; i++)
		err = cost_once(u, &c, i) ?: cost_of_mr(u, &sg, &c, i);
	if (!err)
		say_costs(&c, count);
	for (i = 0; i < CALLS; i++)
		kfree(c.ns[i]);
	ib_dma_unmap_sg(u->ibdev, &sg, 1, DMA_BIDIRECTIONAL);
	return err;
}
