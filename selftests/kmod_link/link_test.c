// SPDX-License-Identifier: GPL-2.0
/*
 * Links and peers alone: this stands in for the rest of the module and does
 * what is written to /sys/kernel/debug/shift_link_test/ctl, one command a line:
 *
 *	peer NODE ADDRESS[,BACKUP]... [ADDRESS...]	unpeer NODE
 *	get DEVICE LOCAL REMOTE				put N | put all
 *	send N COUNT
 *
 * N numbers the links that were got, from 0.  Reading gives counters and links.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>
#include "shift.h"

#define NUM_LINKS	64
#define NUM_DEVS	8

unsigned int shift_deadline_scale = 1;
module_param_named(deadline_scale, shift_deadline_scale, uint, 0644);
u8 shift_boot_id[16];

/* ms that a callback takes, to have the peer's queue fill up */
static unsigned int slow_ms;
module_param(slow_ms, uint, 0644);

static DEFINE_MUTEX(lock);		/* devs, links */
static struct ib_device *devs[NUM_DEVS];
static struct ib_event_handler handlers[NUM_DEVS];
static struct shift_link *links[NUM_LINKS];
static u64 sent[NUM_LINKS];
static struct dentry *dir;

static atomic_t ups, downs, restarts, received, gaps, bad, after_down, restart_while_up;

/* what was received, by link; links are called back one at a time */
static DEFINE_SPINLOCK(seen_lock);
static struct seen {
	struct shift_link *link;
	u64 next;
	bool up;
} seen[2 * NUM_LINKS];

static struct seen *find_seen(struct shift_link *link)
{
	struct seen *free = NULL;
	int i;

	spin_lock(&seen_lock);
	for (i = 0; i < ARRAY_SIZE(seen); i++) {
		if (seen[i].link == link) {
			free = &seen[i];
			break;
		}
		if (!seen[i].link && !free)
			free = &seen[i];
	}
	if (!free)
		free = &seen[0];
	if (free->link != link)
		*free = (struct seen) { .link = link };
	spin_unlock(&seen_lock);
	return free;
}

void shift_stat_add(enum shift_stat stat, unsigned long n)
{
	if (stat == SHIFT_STAT_MSG_BAD)
		atomic_inc(&bad);
}

void shift_link_received(struct shift_link *link, const struct shift_msg *m)
{
	struct seen *s = find_seen(link);

	might_sleep();
	if (slow_ms)
		msleep(slow_ms);
	if (!s->up)
		atomic_inc(&after_down);
	if (m->drained.count != s->next && s->next)
		atomic_inc(&gaps);
	s->next = m->drained.count + 1;
	atomic_inc(&received);
}

void shift_link_changed(struct shift_link *link, enum shift_link_state state)
{
	struct seen *s = find_seen(link);

	might_sleep();
	s->up = state == SHIFT_LINK_UP;
	s->next = 0;
	atomic_inc(s->up ? &ups : &downs);
	/* it may be put by its last user at the same time */
	if (!s->up)
		s->link = NULL;
}

void shift_link_peer_restarted(struct shift_link *link)
{
	might_sleep();
	if (shift_link_state(link) == SHIFT_LINK_UP)
		atomic_inc(&restart_while_up);
	atomic_inc(&restarts);
}

static int parse(const char *text, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (in4_pton(text, -1, gid->raw + 12, -1, NULL)) {
		gid->raw[10] = 0xff;
		gid->raw[11] = 0xff;
		return 0;
	}
	return in6_pton(text, -1, gid->raw, -1, NULL) ? 0 : -EINVAL;
}

static int do_peer(char *args)
{
	struct netlink_ext_ack extack = {};
	const char *node = strsep(&args, " ");
	struct shift_peer_nic *nics;
	char *nic, *backup;
	u32 n = 0;
	int err = 0;

	nics = kcalloc(SHIFT_PEER_NICS_MAX + 1, sizeof(*nics), GFP_KERNEL);
	if (!nics)
		return -ENOMEM;
	while (!err && n <= SHIFT_PEER_NICS_MAX && (nic = strsep(&args, " "))) {
		err = parse(strsep(&nic, ","), &nics[n].gid);
		while (!err && (backup = strsep(&nic, ",")))
			err = parse(backup, &nics[n].backup[nics[n].num_backups++]);
		n++;
	}
	if (!err)
		err = shift_peer_set(node, nics, n, &extack);
	kfree(nics);
	if (extack._msg)
		pr_info("peer %s refused: %s\n", node, extack._msg);
	return err;
}

static int do_get(char *args)
{
	const char *dev = strsep(&args, " ");
	const char *text = strsep(&args, " ");
	union ib_gid local, remote;
	struct shift_link *link;
	int i, n, err;

	if (!text || !args)
		return -EINVAL;
	err = parse(text, &local) ?: parse(args, &remote);
	if (err)
		return err;
	for (i = 0; i < NUM_DEVS; i++)
		if (devs[i] && !strcmp(dev_name(&devs[i]->dev), dev))
			break;
	for (n = 0; n < NUM_LINKS && links[n]; n++)
		;
	if (i == NUM_DEVS || n == NUM_LINKS)
		return -ENODEV;
	link = shift_link_get(devs[i], &local, &remote);
	if (IS_ERR(link))
		return PTR_ERR(link);
	links[n] = link;
	sent[n] = 0;
	return 0;
}

static int do_put(const char *args)
{
	int n;

	if (!strcmp(args, "all")) {
		for (n = 0; n < NUM_LINKS; n++) {
			if (links[n])
				shift_link_put(links[n]);
			links[n] = NULL;
		}
		return 0;
	}
	if (kstrtoint(args, 0, &n) || n < 0 || n >= NUM_LINKS || !links[n])
		return -EINVAL;
	shift_link_put(links[n]);
	links[n] = NULL;
	return 0;
}

static int do_send(char *args)
{
	struct shift_msg m = { .type = SHIFT_MSG_DRAINED, .dst_cookie = 1, .src_cookie = 2,
			       .epoch = 1 };
	int n, count, err;

	if (sscanf(args, "%d %d", &n, &count) != 2 || n < 0 || n >= NUM_LINKS || !links[n])
		return -EINVAL;
	while (count-- > 0) {
		m.drained.count = ++sent[n];
		do {
			err = shift_link_send(links[n], &m);
			if (err == -EAGAIN)
				usleep_range(50, 100);
		} while (err == -EAGAIN && !signal_pending(current));
		if (err) {
			sent[n]--;
			return err;
		}
	}
	return 0;
}

static ssize_t ctl_write(struct file *file, const char __user *data, size_t size, loff_t *pos)
{
	char *line = memdup_user_nul(data, size), *args;
	const char *cmd;
	int err;

	if (IS_ERR(line))
		return PTR_ERR(line);
	args = strim(line);
	cmd = strsep(&args, " ");
	mutex_lock(&lock);
	if (!args)
		err = -EINVAL;
	else if (!strcmp(cmd, "peer"))
		err = do_peer(args);
	else if (!strcmp(cmd, "unpeer"))
		err = shift_peer_del(args, NULL);
	else if (!strcmp(cmd, "get"))
		err = do_get(args);
	else if (!strcmp(cmd, "put"))
		err = do_put(args);
	else if (!strcmp(cmd, "send"))
		err = do_send(args);
	else
		err = -EINVAL;
	mutex_unlock(&lock);
	kfree(line);
	return err ?: size;
}

static int show_link(const struct shift_link_info *info, void *arg)
{
	static const char * const states[] = { "DOWN", "CONNECTING", "UP" };

	seq_printf(arg, "link %u %s %pI6c %pI6c %s node=%s boot=%*phN tx=%llu rx=%llu connects=%llu\n",
		   info->id, info->dev, info->local.raw, info->remote.raw, states[info->state],
		   info->node, 4, info->peer_boot_id, info->tx, info->rx, info->connects);
	return 0;
}

static int ctl_show(struct seq_file *seq, void *unused)
{
	seq_printf(seq, "ups=%d downs=%d restarts=%d received=%d gaps=%d bad=%d after_down=%d restart_while_up=%d\n",
		   atomic_read(&ups), atomic_read(&downs), atomic_read(&restarts),
		   atomic_read(&received), atomic_read(&gaps), atomic_read(&bad),
		   atomic_read(&after_down), atomic_read(&restart_while_up));
	return shift_link_walk(show_link, seq);
}

static int ctl_open(struct inode *inode, struct file *file)
{
	return single_open(file, ctl_show, NULL);
}

static const struct file_operations ctl_fops = {
	.owner = THIS_MODULE,
	.open = ctl_open,
	.read = seq_read,
	.write = ctl_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static void event(struct ib_event_handler *handler, struct ib_event *event)
{
	if (event->event == IB_EVENT_PORT_ACTIVE)
		shift_link_device_up(handler->device);
}

static int add_dev(struct ib_device *dev)
{
	int i;

	mutex_lock(&lock);
	for (i = 0; i < NUM_DEVS && devs[i]; i++)
		;
	if (i < NUM_DEVS) {
		devs[i] = dev;
		INIT_IB_EVENT_HANDLER(&handlers[i], dev, event);
		ib_register_event_handler(&handlers[i]);
	}
	mutex_unlock(&lock);
	return 0;
}

static void remove_dev(struct ib_device *dev, void *data)
{
	int i;

	mutex_lock(&lock);
	for (i = 0; i < NUM_DEVS; i++) {
		if (devs[i] == dev) {
			devs[i] = NULL;
			ib_unregister_event_handler(&handlers[i]);
		}
	}
	mutex_unlock(&lock);
	shift_link_device_gone(dev);
}

static struct ib_client client = {
	.name = "shift_link_test",
	.add = add_dev,
	.remove = remove_dev,
};

static int __init test_init(void)
{
	int err;

	get_random_bytes(shift_boot_id, sizeof(shift_boot_id));
	err = shift_link_init();
	if (err)
		return err;
	err = ib_register_client(&client);
	if (err) {
		shift_link_uninit();
		return err;
	}
	dir = debugfs_create_dir("shift_link_test", NULL);
	debugfs_create_file("ctl", 0600, dir, NULL, &ctl_fops);
	return 0;
}

static void __exit test_exit(void)
{
	char all[] = "all";

	debugfs_remove_recursive(dir);
	mutex_lock(&lock);
	do_put(all);
	mutex_unlock(&lock);
	ib_unregister_client(&client);
	shift_link_uninit();
}

module_init(test_init);
module_exit(test_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("links of rdma_shift, alone");
