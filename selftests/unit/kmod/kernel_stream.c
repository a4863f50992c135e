// SPDX-License-Identifier: GPL-2.0
/*
 * A stream between two nodes, which goes on until it is told to end.  Each of its requests, and
 * what comes of it, is checked at both ends (kernel_stream_check.c), so that one that is lost,
 * done twice or out of order is seen.  In /sys/kernel/debug/kernel_stream are:
 *
 *	numbers		a line for each QP: its index, number, key and address
 *	connect		a line is written: index, the peer's number, key, address, MAC and GID
 *	run		1: the sender begins; 0: no more begins, and all that is under way ends
 *	counts		what was seen so far
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "kernel_stream.h"

#define IDLE_MS		60000
#define LINE_MOST	160
#define POLL_MOST	16

static struct stream the_stream;
static DEFINE_MUTEX(stream_lock);	/* connect and run */

static unsigned int cqs_of(const struct stream *s)
{
	return s->options.one_cq ? 1 : 2 * s->options.qps;
}

static int poll_all(struct stream *s)
{
	unsigned int i;
	int n = 0;

	for (i = 0; i < cqs_of(s); i++)
		n += ib_process_cq_direct(s->cq[i], POLL_MOST);
	return n;
}

/* Posts what the sender may, and polls if nobody else does. */
static int stream_thread(void *data)
{
	struct stream *s = data;
	unsigned int i, pace = s->options.pace_us;

	while (!kthread_should_stop()) {
		if (s->ctx == IB_POLL_DIRECT)
			while (poll_all(s) && !kthread_should_stop())
				cond_resched();
		if (s->sends)
			for (i = 0; i < s->options.qps; i++)
				while (stream_sender_posts(s->qp[i]))
					cond_resched();
		usleep_range(pace, 2 * pace);
	}
	return 0;
}

static int numbers_show(struct seq_file *file, void *unused)
{
	struct stream *s = file->private;
	char line[LINE_MOST];
	unsigned int i;

	for (i = 0; i < s->options.qps; i++) {
		stream_qp_describe(s->qp[i], line, sizeof(line));
		seq_puts(file, line);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(numbers);

static int counts_show(struct seq_file *file, void *unused)
{
	struct stream *s = file->private;
	u64 rounds = U64_MAX, answered = 0, ended = 0, told = 0, heard = 0, requests = 0;
	u64 adds = 0, counter = 0;
	unsigned int i;

	for (i = 0; i < s->options.qps; i++) {
		struct stream_qp *q = s->qp[i];

		spin_lock_bh(&q->lock);
		rounds = min(rounds, min(q->answered, q->ended));
		answered += q->answered;
		ended += q->ended;
		told += q->told;
		heard += q->heard;
		requests += q->done;
		adds += q->adds;
		counter += READ_ONCE(q->memory->counter);
		spin_unlock_bh(&q->lock);
	}
	/* of the QP that has fewest */
	seq_printf(file, "rounds %llu\n", rounds);
	seq_printf(file, "answered %llu\nended %llu\n", answered, ended);
	seq_printf(file, "told %llu\nheard %llu\n", told, heard);
	seq_printf(file, "requests %llu\n", requests);
	seq_printf(file, "adds %llu\ncounter %llu\n", adds, counter);
	seq_printf(file, "registered %lld\n", (s64)atomic64_read(&s->registered));
	seq_printf(file, "invalidated %lld\n", (s64)atomic64_read(&s->invalidated));
	seq_printf(file, "remotely %lld\n", (s64)atomic64_read(&s->remotely));
	seq_printf(file, "violations %d\n", atomic_read(&s->violations));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counts);

static ssize_t connect_write(struct file *file, const char __user *from, size_t count, loff_t *pos)
{
	struct stream *s = file->private_data;
	unsigned int index;
	char line[LINE_MOST];
	int err = -EINVAL, skip;

	if (count >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, count))
		return -EFAULT;
	line[count] = 0;
	mutex_lock(&stream_lock);
	if (sscanf(line, "%u %n", &index, &skip) == 1 && index < s->options.qps)
		err = stream_qp_connect(s->qp[index], line + skip);
	mutex_unlock(&stream_lock);
	return err ?: count;
}

static const struct file_operations connect_fops = {
	.owner = THIS_MODULE, .open = simple_open, .write = connect_write,
};

static int wait_idle(struct stream *s)
{
	unsigned long end = jiffies + msecs_to_jiffies(IDLE_MS);
	unsigned int i;

	for (i = 0; i < s->options.qps; i++)
		while (!stream_qp_idle(s->qp[i])) {
			if (time_after(jiffies, end))
				return -ETIMEDOUT;
			msleep(20);
		}
	return 0;
}

static ssize_t run_write(struct file *file, const char __user *from, size_t count, loff_t *pos)
{
	struct stream *s = file->private_data;
	bool run;
	int err;

	err = kstrtobool_from_user(from, count, &run);
	if (err)
		return err;
	mutex_lock(&stream_lock);
	WRITE_ONCE(s->running, run);
	if (!run)
		err = wait_idle(s);
	mutex_unlock(&stream_lock);
	return err ?: count;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE, .open = simple_open, .write = run_write,
};

static void stream_free(struct stream *s)
{
	unsigned int i;

	debugfs_remove(s->folder);
	WRITE_ONCE(s->running, false);
	WRITE_ONCE(s->ending, true);
	if (!IS_ERR_OR_NULL(s->thread))
		kthread_stop(s->thread);
	for (i = 0; i < ARRAY_SIZE(s->qp); i++)
		if (!IS_ERR_OR_NULL(s->qp[i]))
			stream_qp_free(s->qp[i]);
	for (i = 0; i < ARRAY_SIZE(s->cq); i++)
		if (!IS_ERR_OR_NULL(s->cq[i]))
			ib_free_cq(s->cq[i]);
	if (!IS_ERR_OR_NULL(s->pd))
		ib_dealloc_pd(s->pd);
	memset(s, 0, sizeof(*s));
}

static int stream_make(struct stream *s)
{
	unsigned int i, qps = s->options.qps, cqs = cqs_of(s);

	s->pd = ib_alloc_pd(s->ibdev, s->options.global_key ? IB_PD_UNSAFE_GLOBAL_RKEY : 0);
	if (IS_ERR(s->pd))
		return PTR_ERR(s->pd);
	for (i = 0; i < cqs; i++) {
		s->cq[i] = ib_alloc_cq(s->ibdev, NULL, (s->options.one_cq ? qps : 1) *
				       (SENDS + RECVS + 2), 0, s->ctx);
		if (IS_ERR(s->cq[i]))
			return PTR_ERR(s->cq[i]);
	}
	for (i = 0; i < qps; i++) {
		s->qp[i] = stream_qp_new(s, i);
		if (IS_ERR(s->qp[i]))
			return PTR_ERR(s->qp[i]);
	}
	s->thread = kthread_run(stream_thread, s, "kernel_stream");
	if (IS_ERR(s->thread))
		return PTR_ERR(s->thread);
	s->folder = debugfs_create_dir("kernel_stream", NULL);
	debugfs_create_file("numbers", 0400, s->folder, s, &numbers_fops);
	debugfs_create_file("connect", 0200, s->folder, s, &connect_fops);
	debugfs_create_file("run", 0200, s->folder, s, &run_fops);
	debugfs_create_file("counts", 0400, s->folder, s, &counts_fops);
	return 0;
}

/**
 * kernel_stream_begin - make an end of a stream
 * @ibdev: its device, which the caller keeps
 * @gid_index: of the device's address
 * @end: "send" or "receive"
 * @options: as the parameters
 *
 * Return: 0 or a negative errno.
 */
int kernel_stream_begin(struct ib_device *ibdev, unsigned int gid_index, const char *end,
			const struct kernel_stream_options *options)
{
	static const char * const ways[] = {
		[IB_POLL_SOFTIRQ] = "softirq", [IB_POLL_WORKQUEUE] = "workqueue",
		[IB_POLL_UNBOUND_WORKQUEUE] = "unbound", [IB_POLL_DIRECT] = "direct",
	};
	struct stream *s = &the_stream;
	int err, way = match_string(ways, ARRAY_SIZE(ways), options->poll);

	if (way < 0 || !options->qps || options->qps > STREAM_QPS ||
	    (strcmp(end, "send") && strcmp(end, "receive")))
		return -EINVAL;
	s->ibdev = ibdev;
	s->gid_index = gid_index;
	s->options = *options;
	s->ctx = way;
	s->sends = !strcmp(end, "send");
	err = stream_make(s);
	if (err)
		stream_free(s);
	return err;
}

void kernel_stream_end(void)
{
	stream_free(&the_stream);
}
