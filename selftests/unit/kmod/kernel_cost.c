// SPDX-License-Identifier: GPL-2.0
/* What calls of a user in the kernel cost: post_send, post_recv and poll_cq, in nanoseconds. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include "kernel_user.h"

struct costs {
	u32 *ns[3];	/* post_recv, post_send, poll_cq that finds one completion */
};

static int by_size(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* Poll until both completions of a SEND are there; the cost of the first that is found. */
static int poll_both(struct kernel_user *u, u32 *ns)
{
	unsigned long end = jiffies + WAIT;
	int n, found = 0;
	struct ib_wc wc;
	u64 began;

	while (found < 2) {
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
	c->ns[0][i] = times[1] - times[0];
	c->ns[1][i] = times[2] - times[1];
	return err ?: poll_both(u, &c->ns[2][i]);
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
	unsigned int i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(c.ns); i++) {
		c.ns[i] = kcalloc(count, sizeof(*c.ns[i]), GFP_KERNEL);
		err = c.ns[i] ? err : -ENOMEM;
	}
	for (i = 0; !err && i < count; i++)
		err = cost_once(u, &c, i);
	for (i = 0; !err && i < ARRAY_SIZE(c.ns); i++)
		sort(c.ns[i], count, sizeof(*c.ns[i]), by_size, NULL);
	if (!err)
		pr_info("cost post_recv %u post_send %u poll_cq %u\n", c.ns[0][count / 4],
			c.ns[1][count / 4], c.ns[2][count / 4]);
	for (i = 0; i < ARRAY_SIZE(c.ns); i++)
		kfree(c.ns[i]);
	return err;
}
