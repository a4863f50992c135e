// SPDX-License-Identifier: GPL-2.0
/*
 * Faults and counters in debugfs: mlx5_soft/<device>/.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include "mlx5_soft.h"

static struct dentry *root;

static int stats_show(struct seq_file *file, void *unused)
{
	struct mls_dev *dev = file->private;
	struct mls_stats *s = &dev->stats;

	mutex_lock(&dev->lock);
	seq_printf(file, "sends %llu\nrecvs %llu\ncqes %llu\nevents %llu\n", s->sends, s->recvs,
		   s->cqes, s->events);
	seq_printf(file, "errors %llu\nflushes %llu\ndoorbells %llu\nblueflame %llu\n",
		   s->errors, s->flushes, s->doorbells, s->blueflame);
	seq_printf(file, "inlines %llu\nfaults %llu\n", s->inlines, s->faults);
	mutex_unlock(&dev->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

/* QP numbers of the device, one per line, with the state. */
static int qps_show(struct seq_file *file, void *unused)
{
	struct mls_dev *dev = file->private;
	struct mls_qp *qp;

	mutex_lock(&dev->lock);
	list_for_each_entry(qp, &dev->qps, entry)
		seq_printf(file, "%u state %d sq %u rq %u rxe %u flights %u recvs %u rings %u %u\n",
			   qp->number, qp->state, qp->sq_head, qp->rq_head,
			   qp->lower->qp_num, qp->flight_next - qp->flight_first, qp->recvs,
			   (u16)mls_pin_word(&qp->db, MLX5_SND_DBR * sizeof(__be32)),
			   (u16)mls_pin_word(&qp->db, MLX5_RCV_DBR * sizeof(__be32)));
	mutex_unlock(&dev->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(qps);

/* All that is still in use ends in an error: the device is no good any more. */
static int fatal_set(void *data, u64 value)
{
	struct mls_dev *dev = data;
	struct ib_event event = { .device = &dev->ibdev, .event = IB_EVENT_DEVICE_FATAL };
	struct mls_qp *qp;

	mutex_lock(&dev->lock);
	list_for_each_entry(qp, &dev->qps, entry)
		mls_qp_break(qp);
	dev->stats.faults++;
	mutex_unlock(&dev->lock);
	mls_engine_kick(dev);
	ib_dispatch_event(&event);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(fatal_fops, NULL, fatal_set, "%llu\n");

/* Going on again has to be noticed at once. */
static int silent_set(void *data, u64 value)
{
	struct mls_dev *dev = data;

	mutex_lock(&dev->lock);
	dev->stats.faults += !!value && !dev->faults.silent;
	dev->faults.silent = value;
	mutex_unlock(&dev->lock);
	mls_engine_kick(dev);
	return 0;
}

static int silent_get(void *data, u64 *value)
{
	*value = ((struct mls_dev *)data)->faults.silent;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(silent_fops, silent_get, silent_set, "%llu\n");

static int fail_set(void *data, u64 value)
{
	struct mls_dev *dev = data;

	if (value > U8_MAX)
		return -EINVAL;
	mutex_lock(&dev->lock);
	dev->faults.fail_next = value;
	mutex_unlock(&dev->lock);
	return 0;
}

static int fail_get(void *data, u64 *value)
{
	*value = ((struct mls_dev *)data)->faults.fail_next;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(fail_fops, fail_get, fail_set, "%llu\n");

static int lose_set(void *data, u64 value)
{
	struct mls_dev *dev = data;

	if (value > U32_MAX)
		return -EINVAL;
	mutex_lock(&dev->lock);
	dev->faults.lose_ack = value;
	mutex_unlock(&dev->lock);
	return 0;
}

static int lose_get(void *data, u64 *value)
{
	*value = ((struct mls_dev *)data)->faults.lose_ack;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(lose_fops, lose_get, lose_set, "%llu\n");

static int breaks_set(void *data, u64 value)
{
	WRITE_ONCE(((struct mls_dev *)data)->faults.breaks, value);
	return 0;
}

static int breaks_get(void *data, u64 *value)
{
	*value = ((struct mls_dev *)data)->faults.breaks;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(breaks_fops, breaks_get, breaks_set, "0x%llx\n");

static int accl_set(void *data, u64 value)
{
	struct mls_dev *dev = data;

	if (value >= 2 * MLS_ACCL_MUTE)
		return -EINVAL;
	mls_nic_has_accl(dev, !(value & MLS_ACCL_NONE));
	WRITE_ONCE(dev->faults.roce_accl, value);
	return 0;
}

static int accl_get(void *data, u64 *value)
{
	*value = ((struct mls_dev *)data)->faults.roce_accl;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(accl_fops, accl_get, accl_set, "0x%llx\n");

static int query_set(void *data, u64 value)
{
	if (value > 60 * MSEC_PER_SEC)
		return -EINVAL;
	WRITE_ONCE(((struct mls_dev *)data)->faults.query_ms, value);
	return 0;
}

static int query_get(void *data, u64 *value)
{
	*value = ((struct mls_dev *)data)->faults.query_ms;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(query_fops, query_get, query_set, "%llu\n");

/* The core notes the state with any event, and nobody is told that the port went or came. */
static int port_set(void *data, u64 value)
{
	struct mls_dev *dev = data;
	struct ib_event event = {
		.device = &dev->ibdev, .event = IB_EVENT_LID_CHANGE, .element.port_num = 1,
	};

	WRITE_ONCE(dev->faults.port_down, value);
	ib_dispatch_event(&event);
	flush_workqueue(ib_wq);
	return 0;
}

static int port_get(void *data, u64 *value)
{
	*value = READ_ONCE(((struct mls_dev *)data)->faults.port_down);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(port_fops, port_get, port_set, "%llu\n");

static int flush_set(void *data, u64 value)
{
	if (value > USEC_PER_SEC)
		return -EINVAL;
	WRITE_ONCE(((struct mls_dev *)data)->faults.flush_us, value);
	return 0;
}

static int flush_get(void *data, u64 *value)
{
	*value = ((struct mls_dev *)data)->faults.flush_us;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(flush_fops, flush_get, flush_set, "%llu\n");

void mls_fault_init(struct mls_dev *dev)
{
	struct dentry *dir = debugfs_create_dir(dev_name(&dev->ibdev.dev), root);

	dev->debugfs = dir;
	debugfs_create_file("stats", 0400, dir, dev, &stats_fops);
	debugfs_create_file("qps", 0400, dir, dev, &qps_fops);
	debugfs_create_file_unsafe("silent", 0600, dir, dev, &silent_fops);
	debugfs_create_file_unsafe("fatal", 0200, dir, dev, &fatal_fops);
	debugfs_create_file_unsafe("fail_next", 0600, dir, dev, &fail_fops);
	debugfs_create_file_unsafe("lose_ack", 0600, dir, dev, &lose_fops);
	debugfs_create_file_unsafe("breaks", 0600, dir, dev, &breaks_fops);
	debugfs_create_file_unsafe("roce_accl", 0600, dir, dev, &accl_fops);
	debugfs_create_file_unsafe("query_ms", 0600, dir, dev, &query_fops);
	debugfs_create_file_unsafe("port_down", 0600, dir, dev, &port_fops);
	debugfs_create_file_unsafe("flush_us", 0600, dir, dev, &flush_fops);
}

void mls_fault_uninit(struct mls_dev *dev)
{
	debugfs_remove_recursive(dev->debugfs);
	dev->debugfs = NULL;
}

void mls_debugfs_init(void)
{
	root = debugfs_create_dir("mlx5_soft", NULL);
}

void mls_debugfs_uninit(void)
{
	debugfs_remove_recursive(root);
}
