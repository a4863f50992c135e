// SPDX-License-Identifier: GPL-2.0
/*
 * Does a device let a QP of the kernel's work in a PD of an application's?
 *
 * The application writes "DEVICE PORT GID_INDEX" to /sys/kernel/debug/pd_probe.  The PD of its
 * first MR on that device gets a QP of the kernel's, which is connected to itself.  It sends the
 * first 8 bytes of the MR to the 8 bytes behind them.  The write fails if that does not work, and
 * the log tells at which step.  Documentation/internals/mlx5.md, point 19.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#define IDS		BIT(20)	/* of MRs that are looked at */
#define PIECE		8
#define DEADLINE	(5 * HZ)	/* for a message to oneself */
#define PSN		0x123456

static struct dentry *file;

/* The first MR of the process that calls; its rdma_restrack_put() is the caller's. */
static struct ib_mr *find_mr(struct ib_device *ibdev)
{
	u32 id;

	for (id = 0; id < IDS; id++) {
		struct rdma_restrack_entry *res;
		struct ib_mr *mr;

		cond_resched();
		res = rdma_restrack_get_byid(ibdev, RDMA_RESTRACK_MR, id);
		if (IS_ERR(res))
			continue;
		mr = container_of(res, struct ib_mr, res);
		if (!rdma_is_kernel_res(res) && same_thread_group(res->task, current) &&
		    mr->length >= 2 * PIECE)
			return mr;
		rdma_restrack_put(res);
	}
	return NULL;
}

/* Bring the QP to RTS, connected to itself. */
static int connect(struct ib_qp *qp, u8 port, int index)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = port,
		.path_mtu = IB_MTU_256,
		.dest_qp_num = qp->qp_num,
		.rq_psn = PSN,
		.sq_psn = PSN,
		.min_rnr_timer = 12,
		.timeout = 18,
		.retry_cnt = 3,
		.rnr_retry = 3,
	};
	const struct ib_gid_attr *gid;
	union ib_gid own;
	int err;

	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	gid = rdma_get_gid_attr(qp->device, port, index);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	own = gid->gid;
	attr.ah_attr.type = rdma_ah_find_type(qp->device, port);
	rdma_ah_set_port_num(&attr.ah_attr, port);
	if (attr.ah_attr.type == RDMA_AH_ATTR_TYPE_ROCE)
		rdma_read_gid_l2_fields(gid, NULL, attr.ah_attr.roce.dmac);
	rdma_move_grh_sgid_attr(&attr.ah_attr, &own, 0, 64, 0, gid);
	attr.qp_state = IB_QPS_RTR;
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			   IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	rdma_destroy_ah_attr(&attr.ah_attr);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTS;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

/* Send a piece of the MR to the next one. */
static int send(struct ib_qp *qp, struct ib_cq *cq, struct ib_mr *mr)
{
	struct ib_sge to = { .addr = mr->iova + PIECE, .length = PIECE, .lkey = mr->lkey };
	struct ib_sge from = { .addr = mr->iova, .length = PIECE, .lkey = mr->lkey };
	struct ib_recv_wr recv = { .sg_list = &to, .num_sge = 1 };
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED,
		.sg_list = &from, .num_sge = 1,
	};
	unsigned long end = jiffies + DEADLINE;
	struct ib_wc wc;
	int err, left = 2;

	err = ib_post_recv(qp, &recv, NULL);
	if (!err)
		err = ib_post_send(qp, &wr, NULL);
	while (!err && left) {
		int n = ib_poll_cq(cq, 1, &wc);

		if (n < 0)
			err = n;
		else if (n && wc.status != IB_WC_SUCCESS)
			err = -EIO;
		else if (n)
			left--;
		else if (time_after(jiffies, end))
			err = -ETIMEDOUT;
		else
			usleep_range(500, 1000);
	}
	return err;
}

static int probe(struct ib_device *ibdev, struct ib_mr *mr, u8 port, int index)
{
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
	};
	const char *step = "to make a CQ";
	struct ib_cq *cq;
	struct ib_qp *qp;
	int err;

	cq = ib_alloc_cq(ibdev, NULL, 16, 0, IB_POLL_DIRECT);
	if (IS_ERR(cq)) {
		err = PTR_ERR(cq);
		goto out;
	}
	step = "to make a QP in the application's PD";
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ib_create_qp(mr->pd, &init);
	err = PTR_ERR_OR_ZERO(qp);
	if (err)
		goto out_cq;
	step = "to connect it";
	err = connect(qp, port, index);
	if (!err) {
		step = "to send from the application's MR";
		err = send(qp, cq, mr);
	}
	ib_destroy_qp(qp);
out_cq:
	ib_free_cq(cq);
out:
	if (err)
		pr_info("%s: %s: %d\n", dev_name(&ibdev->dev), step, err);
	return err;
}

static ssize_t probe_write(struct file *filp, const char __user *text, size_t len, loff_t *pos)
{
	char name[IB_DEVICE_NAME_MAX], line[IB_DEVICE_NAME_MAX + 16] = {};
	struct ib_device *ibdev;
	struct ib_mr *mr;
	int index, err;
	u8 port;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, text, len))
		return -EFAULT;
	if (sscanf(line, "%63s %hhu %d", name, &port, &index) != 3)
		return -EINVAL;
	ibdev = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN);
	if (!ibdev)
		return -ENODEV;
	mr = find_mr(ibdev);
	err = -ENOENT;
	if (mr && rdma_is_port_valid(ibdev, port))
		err = probe(ibdev, mr, port, index);
	if (mr)
		rdma_restrack_put(&mr->res);
	ib_device_put(ibdev);
	return err ? err : len;
}

static const struct file_operations probe_ops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = probe_write,
};

static int __init probe_init(void)
{
	file = debugfs_create_file("pd_probe", 0200, NULL, NULL, &probe_ops);
	return PTR_ERR_OR_ZERO(file);
}

static void __exit probe_exit(void)
{
	debugfs_remove(file);
}

module_init(probe_init);
module_exit(probe_exit);
MODULE_DESCRIPTION("A kernel's QP in an application's PD, tried");
MODULE_LICENSE("GPL");
